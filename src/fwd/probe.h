/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Probes for loops: small frames of a bridge's own that it sends out of each of its ports. Whatever brings one
 * back to it is a loop.
 *
 *	bytes
 *	 0- 5	ff:ff:ff:ff:ff:ff: what every switch on the way sends on to all its ports
 *	 6-11	MAC address of the port's device. So what is in doubt of each frame already, a source that is
 *		ours, finds them, at no cost to the others
 *	12-15	81 00, VLAN: only out of a trunk without a native VLAN, where other frames are not taken
 *	12-13	88 b5: the first Local Experimental Ethertype of IEEE 802, which no product may have for its own
 *	14-21	"millrace", for whoever else experiments
 *	22	version of what follows: 1
 *	23	the port's number in its forward, from 0
 *	24-27	sequence, most significant byte first: one more with each round of all ports
 *	28-43	random number, of the bridge and the run: other bridges' probes are ordinary frames to it
 *	44-59	0: the least that a frame may have
 *
 * Those of others are forwarded like any frame, or a loop through two bridges would be found by neither.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/layout.h"
#include "base/mac.h"
#include "conf/conf.h"

#define PROBE_TYPE    0x88b5
#define PROBE_ID_LEN  16
#define PROBE_LEN     60
#define PROBE_LEN_MAX (PROBE_LEN + ETHER_VLAN_LEN)

struct worker;

/* One round of probes. */
struct probe_round {
	uint8_t id[PROBE_ID_LEN];
	uint32_t sequence;
};

/* One that came back: where it went out, and in which round. */
struct probe {
	uint8_t port;
	uint32_t sequence;
};

/* Writes the probe of a port, up to PROBE_LEN_MAX bytes; vlan 0: without a tag. Returns its length. Pure. */
uint32_t probe_build(uint8_t *bytes, const struct probe_round *round, const uint8_t *mac,
		     unsigned port, uint16_t vlan);

/* True if that is a probe with this id, tagged or not; then *probe is filled in. Pure. */
bool probe_read(const uint8_t *bytes, uint32_t len, const uint8_t *id, struct probe *probe);

/* One worker's: what it is to send, and what it has seen. */
struct probes {
	/* Owner: the main thread. Not written while an order has no answer. */
	GROUP_BEGIN_APART(order);
	uint8_t id[PROBE_ID_LEN]; /* of the bridge */
	uint32_t ordered;	  /* number of the newest order */
	uint16_t ports;		  /* whose probes are to be sent, as bits */
	uint8_t len[CONF_PORTS_MAX];
	uint8_t frame[CONF_PORTS_MAX][PROBE_LEN_MAX];
	GROUP_END(order);

	/* Owner: the worker's thread. */
	GROUP_BEGIN_APART(answer);
	uint32_t done;		       /* number of the last order that it has carried out */
	uint64_t back[CONF_PORTS_MAX]; /* by the port where it came in: see probes_back() */
	GROUP_END(answer);
};

/* Makes those of `workers` workers, with an id of the system's randomness. Main thread. Returns 0 with *result
 * for free(), or -errno without a message. */
int probes_new(struct probes **result, unsigned workers);

/* Begins an order; false if the last one has not been carried out yet. Main thread, as the next three. */
bool probes_begin(struct probes *probes);

/* Has the probe of the port sent; until probes_order() it is only written down. */
void probes_put(struct probes *probes, const struct probe_round *round, const uint8_t *mac,
		unsigned port, uint16_t vlan);
void probes_order(struct probes *probes);

/* The newest probe that this worker saw come in on the port; false if there was none. */
bool probes_back(const struct probes *probes, unsigned port, struct probe *probe);

/*
 * Sends what was ordered, each out of a TX queue of the worker's own and in a frame of its pool. A port without
 * room, or that is down, sends none this time: probes that wait would only tell of what was. Worker's thread,
 * between two passes.
 */
void probes_send(struct worker *worker);

/* True if what came in on the port is one of the bridge's probes, of a worker that has them. It is noted if it is
 * newer than what was there, and then the worker's done_fd is written: once a round and port, however often it
 * comes back. Worker's thread. */
bool probes_take(const struct worker *worker, unsigned port, const uint8_t *bytes, uint32_t len);
