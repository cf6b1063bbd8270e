/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which frames of the ports the host gets: from the configuration, and from the addresses that it has,
 * which are followed while millraced runs. Main thread.
 */
#pragma once

#include <systemd/sd-event.h>

#include "conf/conf.h"
#include "lane.h"
#include "xdp/steer.h"

struct fleet;

/*
 * Gives the program of a port, which was just attached, its policy, unless it is somebody else's. Before a
 * socket stands in a slot of it. Returns 0, or -errno after a message that names the device.
 */
int steering_open(struct port *port, enum conf_mode mode);

/* Goes over to what port->conf says now. What cannot be had is said. */
void steering_apply(const struct port *port, enum conf_mode mode);

/* What gives frames of a port to the host. */
struct steering_count {
	const struct pass_rule *rule; /* NULL: `default` does, and then */
	const char *class;	      /* which of its frames, static */
	bool both;		      /* for the wire too */
	uint64_t frames;	      /* that the host got by it */
};

/* Calls `each` for whatever `default` has, then for every rule, as far as they are told. */
typedef void steering_count_fn(const struct port *port, const struct steering_count *count,
			       void *context);
void steering_each_count(const struct port *port, steering_count_fn *each, void *context);

/* NULL, as of a port that is not open, is fine. */
void steering_close(struct port *port);

/* Follows the host's addresses for all ports of the fleet, which must outlive it. */
struct steering_watch {
	int fd;			/* 0: not open */
	struct fleet *fleet;	/* borrowed */
	sd_event_source *news;	/* owned, as the next */
	sd_event_source *timer; /* armed while there is news that is not looked at */
};

/* Before the first port is opened, so that no change goes unnoticed. Returns 0, or -errno after a message. */
int steering_watch_open(struct steering_watch *watch);

/* Has the loop call it. Returns 0 or -errno. */
int steering_watch_start(struct steering_watch *watch, struct fleet *fleet, sd_event *loop);

void steering_watch_close(struct steering_watch *watch);
