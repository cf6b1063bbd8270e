/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One socket of one worker on one port: where a port and a worker cross. Main thread. */
#pragma once

#include "conf/conf.h"
#include "fwd/worker.h"
#include "plan/plan.h"
#include "xdp/netdev.h"
#include "xdp/port_state.h"
#include "xdp/prog.h"
#include "xdp/xsk.h"

/* One interface that is forwarded. */
struct port {
	const struct conf_port *conf; /* borrowed */
	struct netdev netdev;
	struct prog prog;
	struct netdev_queues attached; /* what the device had once the program was; 0: not told */
	int promiscuous_fd;	       /* 0 or -1: not asked for */
	bool promiscuous;	       /* by that fd, now */
	struct port_states states;     /* what it is fit for, and was */
	/* What was said of it, once each. */
	bool said_unexplained, said_partial, said_oversize, said_no_napi;
};

struct lane {
	bool made; /* there is, or was, a socket */
	struct xsk xsk;
	struct xsk_stats stats; /* as last read; final once the socket is closed */
	bool no_napi;		/* busy polling finds nothing to poll */
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

/*
 * Makes the worker's socket on the port, if the plan has one there, stocks its fill ring and binds it: zero-copy or copy, as
 * asked and as can be had. A queue that was closed a moment ago is retried for up to 2 s. A worker that runs
 * has the port's number without a queue; it is parked for the moments in which it is given one. Returns 0
 * or -errno after a message; -ECANCELED, without one, if a signal to end is pending.
 */
int lane_open(struct lane *lane, const struct lane_opts *opts);
