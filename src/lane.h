/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One socket of one worker on one port: where a port and a worker cross. Main thread. */
#pragma once

#include "conf/conf.h"
#include "fwd/worker.h"
#include "plan/plan.h"
#include "xdp/netdev.h"
#include "xdp/port_state.h"
#include "xdp/prog.h"
#include "xdp/steer.h"
#include "xdp/xsk.h"

/* What is known of a program that somebody took off; program_watch.c's. Times of the monotonic clock, 0: never. */
struct port_loss {
	uint64_t since_ns; /* it is lost; 0: it is where it should be */
	uint64_t back_ns;  /* it was attached again */
	uint64_t retry_ns; /* not before then */
	uint64_t wait_ns;  /* until the next attempt but one */
	bool said;
	uint32_t top; /* the dispatcher in which our program was found; 0: none yet */
};

/* What is known of frames that the program saw and nobody has; monitor.c's. */
struct port_vanished {
	uint64_t frames; /* so far */
	uint64_t at_ns;	 /* the last of them were missed; 0: none were, or that is over */
	uint64_t seen;	 /* by the program until then */
};

/* One interface that is forwarded. */
struct port {
	const struct conf_port *conf; /* borrowed */
	struct netdev netdev;
	struct prog prog;
	struct prog_counts past; /* of programs that went with their devices */
	uint64_t
		departed; /* frames that they saw once the device had left, with no socket of ours behind it */
	struct steer *steer;	       /* owned; NULL: the program has no policy yet */
	struct netdev_queues attached; /* what the device had once the program was; 0: not told */
	bool served;		       /* the program is attached, and what the plan has is open */
	int promiscuous_fd;	       /* 0 or -1: not asked for */
	bool promiscuous;	       /* by that fd, now */
	struct port_states states;     /* what it is fit for, and was */
	/* While there is a device, or to be one, that is not served. */
	bool judged;	     /* it is being looked at whether it can be */
	unsigned tries;	     /* in vain */
	uint64_t retry_ns;   /* when it is tried again; 0: when something happens to it */
	char complaint[256]; /* why not, as it was said */
	struct port_loss loss;
	struct port_vanished vanished;
	bool slots_wrong; /* one was, at the last look */
	/* What was said of it, once each. */
	bool said_unexplained, said_partial, said_oversize, said_no_napi;
};

/* What became of its slot in the XSKMAP; slot_watch.c's. */
struct lane_slot {
	uint64_t emptied; /* by somebody, and filled again */
	uint64_t said_ns; /* when that was said; 0: never */
	bool stolen;	  /* somebody else's socket is in it */
};

struct lane {
	bool made; /* there is, or was, a socket */
	struct xsk xsk;
	struct xsk_stats
		stats;	       /* as last read, of all sockets it had; final once they are closed */
	struct xsk_stats past; /* of those that are closed */
	struct lane_slot slot;
	bool no_napi; /* busy polling finds nothing to poll */
};

struct lane_opts {
	const struct port *port; /* attached */
	unsigned index;		 /* of the port, in its forward */
	const struct plan_lane *plan;
	struct worker *worker;
	const struct conf_forward *conf;
	const struct lane *peers; /* lanes over the same UMEM opened so far: they may share it */
	unsigned peer_count;
};

/* True if the device has the queues that the lane is to have. */
bool lane_fits(const struct plan_lane *plan, const struct netdev *netdev, unsigned queue);

/* Reads the statistics, while there is a socket: *socket gets those of this one. Returns 0 or -errno. */
int lane_read_stats(struct lane *lane, struct xsk_stats *socket);

/*
 * Closes the socket of a port that stays while its device is gone, or is not to be served; what goes there is
 * dropped (link_down), and counts go on where they are. Returns how many frames came back, by the ledger.
 * No socket is fine.
 */
uint32_t lane_lose(struct lane *lane, struct worker *worker, unsigned port);

/*
 * Makes the worker's socket on the port, if the plan has one there, stocks its fill ring and binds it: zero-copy or copy, as
 * asked and as can be had. A queue that was closed a moment ago is retried for up to 2 s. A worker that runs
 * has the port's number without a queue; it is parked for the moments in which it is given one. Where the
 * device does not have the queue, or there is no device yet, there is no socket either. Returns 0
 * or -errno after a message; -ECANCELED, without one, if a signal to end is pending.
 */
int lane_open(struct lane *lane, const struct lane_opts *opts);
