/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the daemon does for operators who ask on the control socket. Main thread. */
#pragma once

#include <systemd/sd-event.h>

#include "confirm.h"
#include "ctl/server.h"
#include "daemon.h"
#include "fleet.h"
#include "mirror.h"
#include "monitor.h"

struct operators {
	struct fleet *fleet;	  /* borrowed; NULL: nothing runs yet */
	struct control *control;  /* NULL: not asked for. Owned. */
	struct monitor monitor;	  /* reports of its own, beside those on standard output */
	struct report *report;	  /* the newest; the monitor's */
	struct report_port *port; /* as many as the fleet has. Owned. */
	const char *path;	  /* of the configuration file; NULL: flags */
	/* Reads the configuration again. The daemon's; set before operators_open(). */
	int (*reload)(void *daemon);
	void *daemon;
	struct mirrors *mirrors; /* likewise */
	struct confirm *confirm; /* the daemon's; set before operators_open() */
	uint64_t generation;	 /* reloads that succeeded */
	uint64_t reloaded_ns;	 /* when the last one was tried; 0: never */
	bool reload_taken;	 /* it succeeded */
	unsigned reload_errors;	 /* what it complained of */
	uint64_t opened_ns;
	uint64_t collected_ns; /* when the report was; 0: never, or no longer true */
};

/* Makes the socket if the configuration names one: before privileges are given up. Clients wait until
 * operators_start(). file: NULL for a run from flags. Returns 0, or -errno after a message. */
int operators_open(struct operators *operators, const struct conf *conf,
		   const struct daemon_file *file);

/* Serves from the loop; rates and times count from here on. Returns 0, or -errno after a message. */
int operators_start(struct operators *operators, struct fleet *fleet, sd_event *loop);

/* Reads the configuration again, as an operator asks by command or by SIGHUP, and notes what came of it.
 * Returns 0, or -errno after messages. */
int operators_reload(struct operators *operators);

/* The fleet has changed: what was collected of it is no longer true. Returns 0, or -ENOMEM after a message:
 * then nobody may ask any more. */
int operators_change(struct operators *operators, const struct conf *conf);

/* Ends that, before the fleet is stopped. A zeroed one is fine. */
void operators_close(struct operators *operators);
