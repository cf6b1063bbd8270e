/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Watches the fleet: reports on standard output, and one warning each for what an operator should
 * know. Main thread.
 */
#pragma once

#include "ctl/irq.h"
#include "ctl/output.h"
#include "ctl/report.h"
#include "fleet.h"

struct monitor {
	const struct conf *conf; /* borrowed */
	struct fleet *fleet;	 /* borrowed; what was said of its ports is noted there */
	struct report report[2]; /* the newest and the one before */
	unsigned newest;
	struct output output; /* standard output */
	struct irq irq;	      /* -I */
	uint64_t start_ns;    /* 0: not started */
	uint64_t reported_ns;
	uint64_t judged_ns; /* when it was last told what vanished */
};

/* Prepares for a fleet whose fleet_init() succeeded. Returns 0, or -errno after a message. */
int monitor_open(struct monitor *monitor, struct fleet *fleet, const struct conf *conf);

/* The fleet has changed: rates count from now on. Returns 0, or -errno after a message, and then there are no
 * reports any more. */
int monitor_change(struct monitor *monitor, const struct conf *conf);

/* Rates and times count from here on. */
void monitor_start(struct monitor *monitor);

/*
 * Fills the older of the two reports with what is now, makes it the newest, and warns of what in it an
 * operator should know. Waits WORKER_ANSWER_MS at most for workers that are off their CPUs. The report is
 * valid until the next but one is collected.
 */
struct report *monitor_collect(struct monitor *monitor, bool final);

/*
 * Collects, warns, and puts a report on standard output: the last one if `final`, which waits longer for
 * its reader. Quiet, it is collected all the same: frames that nobody has are a warning, not a report.
 * Returns 0, or -errno after a message if standard output takes no more.
 */
int monitor_report(struct monitor *monitor, bool final);

/* Says how many reports nobody took, and frees. A zeroed monitor is fine. */
void monitor_close(struct monitor *monitor);
