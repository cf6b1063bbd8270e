/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One forward: its ports, its workers, and the lanes where they cross; opened, started, stopped and
 * closed as a whole. Main thread.
 *
 *	new -> open -> start -> stop -> close_lanes -> free
 *
 * Each may be followed by stop, close_lanes and free, whatever it returned.
 */
#pragma once

#include "conf/conf.h"
#include "fwd/bridge.h"
#include "fwd/mode.h"
#include "fwd/worker.h"
#include "lane.h"
#include "loop_alarm.h"
#include "loop_probe.h"
#include "plan/plan.h"
#include "xdp/umem.h"

/* What its workers were last told, and, while one of them may still use it, what before. */
struct params {
	struct worker_params worker;
	struct params *before;
};

/* What was said of stations that move. */
struct forwarder_moves {
	uint64_t told;	  /* moves so far when it was said */
	uint64_t said_ns; /* of the monotonic clock; 0: never */
};

struct forwarder {
	struct plan_forward *plan; /* borrowed; what is known of its devices is kept up there */
	const struct conf_forward *conf; /* of the plan */
	const struct mode *mode;
	unsigned ports, workers;
	struct port port[CONF_PORTS_MAX];
	struct params *params; /* NULL: those of the start. Owned. */
	struct umem *umem;     /* one a worker, or the first for all of them */
	struct worker **worker;
	struct lane *lane;     /* CONF_PORTS_MAX a worker */
	struct bridge *bridge; /* of a bridge; else NULL. Owned; bridging.c's, as the next */
	struct forwarder_moves moves;
	struct loop_alarm loop_alarm;
	struct loop_probe loop_probe;
	int done_fd; /* eventfd of the fleet: workers write to it. Borrowed. */
};

static inline struct lane *forwarder_lane(const struct forwarder *forwarder, unsigned worker,
					  unsigned port)
{
	return &forwarder->lane[worker * CONF_PORTS_MAX + port];
}

/* Takes a complete plan, which must outlive it; touches nothing. Returns NULL, after a message, without memory. */
struct forwarder *forwarder_new(struct plan_forward *plan, int done_fd);

/*
 * Does all that needs a privilege: programs attached, memory registered, sockets bound. No frame comes yet. Returns 0, -ECANCELED without
 * a message if a signal to end is pending, or another -errno after one.
 */
int forwarder_open(struct forwarder *forwarder);

/* Starts the workers, lets frames come, and says what runs where. Returns as forwarder_open(). */
int forwarder_start(struct forwarder *forwarder);

/*
 * Goes over to a plan that differs only in what a running forwarder can change: wait, batch, CPUs,
 * promiscuous mode. No frame is lost by it. What cannot be had is said, and stays as it was.
 */
void forwarder_apply(struct forwarder *forwarder, struct plan_forward *plan);

/*
 * Goes over to a plan that differs in that, and in ports that come or go (PLAN_CHANGE_PORTS): those that stay
 * lose nothing, those that go give their frames back. Returns 0; or -errno after a message: then what
 * goes may be gone, and what comes half there, until forwarder_change_ports() goes back to the plan before, or
 * the forwarder is stopped.
 */
int forwarder_change_ports(struct forwarder *forwarder, struct plan_forward *plan);

/*
 * Closes what is open of a port, whose device is gone or is not to be served any more, while the others run
 * on: it keeps its place and its counts. From then on the plan has no device for it. Returns how many frames
 * came back, by the ledger. Of a port that was not served it closes what may be half open.
 */
uint32_t forwarder_lose_port(struct forwarder *forwarder, unsigned number);

/*
 * Of a port that was lost because its device left: frames that came between the kernel's taking the sockets off
 * the device and our taking the program off it went to nobody, and are booked as departed, so that they
 * are taken for no fault of the map. What was missing before that stays missing.
 */
void forwarder_book_departed(struct forwarder *forwarder, unsigned number);

/*
 * Serves a port again, whose netdev is what there is now; queues of the plan that the device does not have
 * are left out. Returns 0; or -errno after messages, and then it is not served.
 */
int forwarder_raise_port(struct forwarder *forwarder, unsigned number);

/* True if the kernel has unbound a socket of the port, which it does when the device goes; told once. */
bool forwarder_port_unbound(const struct forwarder *forwarder, unsigned port);

/* The port's device has another MAC address than before: generated frames that have it as their source have
 * the new one from now on, and a bridge takes it for its own. */
void forwarder_new_mac(struct forwarder *forwarder, unsigned port);

/* Lanes of the port that the plan has and that are not open, for the device lacks their queues. */
unsigned forwarder_lanes_missing(const struct forwarder *forwarder, unsigned port);

/* Makes a port promiscuous, or no longer. Returns 0, or -errno; what the opener does not grant it says. */
int forwarder_set_promiscuous(struct port *port, bool on);

/* Frames that the ledger gave back when ports were closed. */
uint64_t forwarder_reclaimed(const struct forwarder *forwarder);

/* True if every worker has done a finite job. */
bool forwarder_done(const struct forwarder *forwarder);

/* No frame comes any more, those under way go out, the workers end, no program is left. */
void forwarder_stop(struct forwarder *forwarder);

/*
 * Every frame back from every socket, by the ledger, before the sockets go; says what is missing. Counts
 * and statistics can still be read. Returns 0; -ETIMEDOUT if a finite job gave up on its completions;
 * -EUCLEAN if frames are not where the ledger has them.
 */
int forwarder_close_lanes(struct forwarder *forwarder);

/* What was changed on the devices is put back now, and not only at the end of the process. */
void forwarder_restore(struct forwarder *forwarder);

/* Frees it with what is left. NULL is fine. */
void forwarder_free(struct forwarder *forwarder);
