/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* All that runs: a forwarder for each forward of the configuration. Main thread. */
#pragma once

#include "conf/conf.h"
#include "forwarder.h"
#include "plan/plan.h"

struct fleet {
	const struct conf *conf; /* borrowed, as the next */
	struct plan *plan;	 /* of that conf */
	unsigned forwards;
	struct forwarder **forward; /* owned; as the configuration lists them */
	int done_fd; /* eventfd: workers write to it, with a finite job or a probe that came back */
};

/* How many there are, over all forwards. */
unsigned fleet_workers(const struct fleet *fleet);
unsigned fleet_ports(const struct fleet *fleet);
unsigned fleet_lanes(const struct fleet *fleet);

/* True if every worker has done a finite job. */
bool fleet_done(const struct fleet *fleet);

/* The port on that device, and its forwarder; NULL: none. */
struct port *fleet_find(const struct fleet *fleet, int ifindex, struct forwarder **forwarder);

/* Calls `each` for every port. */
typedef void fleet_port_fn(const struct port *port, void *context);
void fleet_each_port(const struct fleet *fleet, fleet_port_fn *each, void *context);

/* The port of that name in the configuration, and its forwarder; NULL: none. */
struct port *fleet_port(const struct fleet *fleet, const char *name, struct forwarder **forwarder);

/* Takes a plan without errors and its conf, which must outlive *fleet; touches nothing. Returns 0, or
 * -errno after a message: -ENOMEM, -EMFILE. */
int fleet_init(struct fleet *fleet, const struct conf *conf, struct plan *plan);

/* These do with every forward what forwarder_open() and so on do with one; the first error ends it. */
int fleet_open(struct fleet *fleet);
int fleet_start(struct fleet *fleet);
void fleet_stop(struct fleet *fleet);
int fleet_close_lanes(struct fleet *fleet);
void fleet_close(struct fleet *fleet);

/*
 * Goes over from the present configuration to another, both of whose plans are without errors: forwards that
 * are the same run on untouched; what may change in a running one (wait, batch, CPUs, promiscuous mode) is
 * handed to its workers; of one that only receives, single ports come and go; others are stopped, started, or
 * both. Returns 0, and uses conf and plan from then on, in which the memory of what runs on is noted; or
 * -errno after messages: then what ran before runs, as before, unless a message says otherwise.
 */
int fleet_change(struct fleet *fleet, const struct conf *conf, struct plan *plan);
