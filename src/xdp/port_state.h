/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a port is fit for, since when, and how it came to that. Two things make it: what the link is like, as
 * the kernel tells it, and what is wrong with a port whose link is in order. The link comes first: a port
 * that is down shows as down, and as degraded only once it is up again. Pure; main thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum port_state {
	PORT_STATE_UP,
	PORT_STATE_NO_CARRIER, /* set up, and nothing at the other end */
	PORT_STATE_DOWN,       /* `ip link set down` */
	PORT_STATE_GONE,       /* there is no such device in this network namespace */
	PORT_STATE_DEGRADED,   /* the link is up, and something is wrong with the port */
	PORT_STATES,
};

/* What can be wrong with a port, each by its own owner. The first that is decides what is shown. */
enum port_fault {
	PORT_FAULT_DEVICE,  /* it cannot be served as it is; the reason says why */
	PORT_FAULT_PROGRAM, /* our program is not on the device, or another one is */
	PORT_FAULT_FRAMES,  /* frames vanish: the map or a queue is not what we made it */
	PORT_FAULT_SLOTS,   /* somebody empties slots of our map, or has put another socket there */
	PORT_FAULT_QUEUES,  /* not every queue that the plan has can be served */
	PORT_FAULT_LOOP,    /* stations flap between it and another port of its bridge */
	PORT_FAULT_MTU,	    /* packets may come that no chunk has room for */
	PORT_FAULTS,
};

/* A longer reason is cut. */
#define PORT_REASON_SIZE 192

/* How many changes are kept. */
#define PORT_HISTORY 16

struct port_change {
	uint64_t at_ns; /* monotonic clock */
	enum port_state state;
	char reason[PORT_REASON_SIZE];
};

struct port_states {
	/* What the two say, each by itself. */
	enum port_state link; /* never DEGRADED */
	char link_reason[PORT_REASON_SIZE];
	char fault[PORT_FAULTS][PORT_REASON_SIZE]; /* "": nothing is wrong */
	/* What comes of it: change number i stands at i % PORT_HISTORY. */
	uint64_t changes;
	struct port_change change[PORT_HISTORY];
};

/*
 * Notes what the link is like, or that something is wrong with the port (reason NULL: not any more). now_ns
 * is of the monotonic clock. Returns true if another state comes of it than was shown, and the first time;
 * then it is a change of the history. Another reason for the same state is taken over there, and is none.
 */
bool port_state_link(struct port_states *states, enum port_state link, const char *reason,
		     uint64_t now_ns);
bool port_state_fault(struct port_states *states, enum port_fault fault, const char *reason,
		      uint64_t now_ns);

/* A change of the history, 0 being the newest, whose state holds; NULL: there were not so many, or they are
 * not kept any more. Valid until the next change. */
const struct port_change *port_state_past(const struct port_states *states, unsigned back);

/* The state that holds; before the first call it is up. */
enum port_state port_state_now(const struct port_states *states);

/* Its word: "up", "no-carrier", "down", "gone", "degraded". Static. */
const char *port_state_word(enum port_state state);
