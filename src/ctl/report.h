/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Statistics as people and programs read them. The daemon collects, these write. Main thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "conf/conf.h"
#include "fwd/fdb.h"
#include "fwd/mode.h"
#include "fwd/stats.h"
#include "xdp/port_state.h"
#include "xdp/xsk.h"

/* Whether the poller runs the driver's NAPI from its own calls. */
enum report_busy_poll {
	REPORT_BUSY_POLL_OFF, /* not asked for */
	REPORT_BUSY_POLL_ON,
	REPORT_BUSY_POLL_NOT_EFFECTIVE, /* asked for, and the kernel or the device does not do it */
};

struct report_socket {
	const char *interface;
	const char *port;    /* its name in the configuration */
	const char *forward; /* likewise */
	const struct mode *mode;
	unsigned queue;
	unsigned worker;			   /* index in report.worker */
	unsigned worker_number;			   /* that one's number in its forward */
	bool native, zero_copy, need_wakeup, poll; /* as they are, not as asked */
	bool frags;				   /* a packet may take several descriptors */
	enum report_busy_poll busy_poll;
	const struct queue_counts *counts;
	struct xsk_stats stats;
};

struct report_program {
	const char *interface;
	bool external;	       /* somebody else's: what it counts is not known, and 0 here */
	uint64_t seen;	       /* frames it was run on */
	uint64_t passed;       /* of these, given to the host */
	uint64_t departed;     /* of these, seen once the device had left, and in nobody's hands */
	uint64_t seen_settled; /* `seen` of when it was last judged what is unexplained */
	uint64_t unexplained;  /* see report_unexplained() */
};

enum report_link {
	REPORT_LINK_UP,
	REPORT_LINK_DOWN,
	REPORT_LINK_ABSENT, /* deleted, or moved to another network namespace */
};

/* Frames of a port that the host and the wire both needed. */
struct report_copies {
	uint64_t copied;  /* the host has them, and the other port sent them */
	uint64_t dropped; /* the host alone has them: they came too fast */
	uint64_t failed;  /* likewise: the other port could not send them */
};

/* What there is to know of a port beside its counts; only where somebody asked for it. */
struct report_port {
	const char *port;   /* its name in the configuration */
	const char *device; /* the kernel's name for it, or the last one it had */
	const char *driver; /* "" if it is not told */
	int ifindex;
	enum report_link link;
	const struct port_states *states;
	uint64_t now_ns; /* their clock */
	uint32_t mtu;
	uint32_t rx_queues, tx_queues; /* active ones, without what our program adds */
	bool served;		       /* else there is no program of ours */
	bool native;		       /* how the program is attached */
	bool promiscuous;	       /* by us; others may have their own reasons */
	uint32_t prog_id;
	const char *prog_name;
	const uint8_t *prog_tag;   /* PROG_TAG_BYTES */
	bool copies;		   /* there may be such frames; */
	struct report_copies copy; /* of them */
	bool bridged;		   /* it is one of a bridge, */
	struct fdb_counts fdb;	   /* which has learned this there */
};

struct report_worker {
	const char *forward; /* its name in the configuration */
	unsigned number;     /* in that forward, as the plan has it */
	const struct mode *mode;
	unsigned cpu;
	enum conf_wait wait;
	bool fresh; /* counts are not those of the report before */
	struct worker_counts counts;
};

struct report {
	uint64_t elapsed_ns;  /* since start */
	uint64_t interval_ns; /* since the previous report */
	bool current;	      /* every worker's counts are of now */
	bool extra_stats;     /* rows of the sockets' own statistics are wanted */
	bool app_stats;	      /* rows of calls and cycles are wanted */
	bool irq;	      /* irqs counts an interrupt */
	uint64_t irqs;	      /* since start */
	unsigned sockets, programs, workers, ports;
	struct report_socket *socket;
	struct report_program *program;
	struct report_worker *worker;
	struct report_port *port; /* `ports` of them */
};

/* The words for them, as reports spell them. Static. */
const char *report_link_name(enum report_link link);
const char *report_wait_name(enum conf_wait wait);
const char *report_busy_poll_name(enum report_busy_poll busy_poll);
const char *report_call_name(enum call_count call);

/*
 * Frames that the program saw and that nobody has: seen by the previous report, less what is
 * explained by now (passed, received, dropped by the socket), never below 0. Two moments, because
 * frames are under way between the program's count and the socket's. 0 with our own program and
 * map; else a foreign program, a wrong map key, or a socket on another queue than the frame's, which
 * the kernel drops uncounted.
 */
uint64_t report_unexplained(const struct report *report, const struct report_program *program,
			    uint64_t seen_before);

/*
 * Frames dropped for being larger than a chunk has room for. The kernel counts them in rx_dropped
 * only; in copy mode without multi-buffer every other frame in there met an empty fill ring and is
 * counted for that too. Elsewhere it cannot be told: 0.
 */
uint64_t report_oversize(const struct report_socket *socket);

/* The cycles of all workers together: the least, the sum, the most. period_ns is 0 if none has any. */
struct cycle_counts report_cycle(const struct report *report);

/* The mean of sum_ns, 0 before the first cycle. */
uint64_t report_cycle_average_ns(const struct cycle_counts *cycle);

/* xdpsock's rows, rates over the interval; `before` holds the totals of the previous report, NULL
 * for none. Returns 0, or -errno if the stream did not take them. */
int report_text(FILE *out, const struct report *report, const struct report *before);

/* One JSON object and a newline. Returns 0, -ENOMEM, or -errno if the stream did not take it. */
int report_json(FILE *out, const struct report *report);
