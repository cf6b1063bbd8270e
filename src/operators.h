/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the daemon does for operators who ask on the control socket. Main thread. */
#pragma once

#include <systemd/sd-event.h>

#include "ctl/server.h"
#include "forwarder.h"
#include "monitor.h"

struct operators {
	struct forwarder *forwarder; /* borrowed, as the next */
	const struct plan *plan;
	struct control *control; /* NULL: not asked for. Owned. */
	struct monitor monitor;	 /* reports of its own, beside those on standard output */
	struct report *report;	 /* the newest; the monitor's */
	struct report_port port[CONF_PORTS_MAX];
	uint64_t opened_ns;
	uint64_t collected_ns; /* when the report was; 0: never, or no longer true */
};

/* Makes the socket if the configuration names one, for a surveyed forwarder: before privileges are
 * given up. Clients wait until operators_start(). Returns 0, or -errno after a message. */
int operators_open(struct operators *operators, struct forwarder *forwarder,
		   const struct conf *conf, const struct plan *plan);

/* Serves from the loop; rates and times count from here on. Returns 0, or -errno after a message. */
int operators_start(struct operators *operators, sd_event *loop);

/* Ends that, before the forwarder is stopped. A zeroed one is fine. */
void operators_close(struct operators *operators);
