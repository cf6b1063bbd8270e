/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a service manager is told of us, in the words of sd_notify(3): that every port forwards that can, what goes on, that
 * a reload or the end is under way, and, as often as its watchdog wants it, that every worker works. Without
 * a manager that asked for it nothing happens. Main thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "ctl/report.h"
#include "fleet.h"

/* A longer status is cut. */
#define SERVICE_STATUS_SIZE 1024

struct service {
	int fd;			   /* of the manager's socket; 0: there is none. Owned. */
	const struct fleet *fleet; /* borrowed; NULL: not started */
	sd_event_source *watchdog; /* owned, as the next */
	sd_event_source *settle;
	uint64_t watchdog_us; /* within which it wants to be fed; 0: it does not */
	uint64_t fed_ns;      /* when it was */
	uint64_t started_ns;
	bool held;	    /* a worker is; that was said */
	bool ready;	    /* that was told */
	bool reload_failed; /* the last one */
	/* Counts of all sockets together when they were last looked at, and what they say. */
	uint64_t counted_ns, rx_packets, tx_packets;
	char rates[64];
	char status[SERVICE_STATUS_SIZE]; /* as it was told */
};

/* Connects to the manager's socket, if there is one, while that is still allowed; sd_notify() would open it
 * again for each word. Returns 0, or -errno after a message. */
int service_open(struct service *service);

/*
 * The fleet has started, and its links are followed: READY at once, or once links are back that attaching
 * our programs has taken down, and within SERVICE_SETTLE_NS in any case. The watchdog is fed from the loop
 * from now on. Returns 0, or -errno without a message.
 */
int service_start(struct service *service, const struct fleet *fleet, sd_event *loop);

/* A network card that takes its link down to attach a program has it back within 4 s (igb); a cable that
 * is pulled meanwhile must not hold up a boot. */
#define SERVICE_SETTLE_NS (5 * NSEC_PER_SEC)

/* Takes the rates from a report that was just collected. */
void service_count(struct service *service, const struct report *report);

/* Tells the status if it is another than was told. Once a second. */
void service_renew(struct service *service);

/* Around a reload; `taken`: it went well. */
void service_reloading(struct service *service);
void service_reloaded(struct service *service, bool taken);

/* The end begins. Also of a start that failed. */
void service_stopping(struct service *service);

/* A zeroed one is fine. */
void service_close(struct service *service);
