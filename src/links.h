/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Follows what happens to the links of the fleet's ports, as the kernel tells it by rtnetlink: keeps the state
 * of every port, closes the port whose device goes while the others run on, and serves it again when there is
 * a device of its name. Nothing is polled while all are served. A device that is there and cannot be served is tried again
 * when something happens to it, soon at first and then every 10 s, for not all that stands in the way is told of
 * when it ends. Main thread.
 */
#pragma once

#include <systemd/sd-event.h>

#include "fleet.h"

struct links {
	struct fleet *fleet; /* borrowed; NULL: not started */
	int watch_fd;	     /* link events; 0 or less: not open. Owned. */
	/* A port whose device goes is closed and waits for it; else, in a run from flags, that ends the run. */
	bool ports_wait;
	bool ended;  /* by that */
	bool unseen; /* a device could not be looked at: that is to be done again */
	sd_event *loop;
	sd_event_source *timer; /* for the next try */
	sd_event_source *watch; /* of watch_fd */
};

/* Starts to listen: before the first look at a device, so that nothing can happen to it unnoticed. Returns 0,
 * or -errno after a message. */
int links_open(struct links *links);

/* Follows the fleet, which has started, from the loop; that it exits if a run from flags has lost its device.
 * Returns 0, or -errno without a message. */
int links_start(struct links *links, struct fleet *fleet, sd_event *loop);

/* Before a reload: takes notice of what has happened until now, so that the plan is made of it. */
void links_catch_up(struct links *links);

/* After a reload, also one that failed: there may be other ports, and what could not be served may be now. */
void links_renew(struct links *links);

/* A zeroed one is fine. */
void links_close(struct links *links);
