/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The owner ledger: for every frame of a worker, who has it. It lies in the worker's memfd, beside
 * the frames, and says after any crash or close which frames are where: no frame is ever inferred
 * to be free because it is in no ring.
 *
 * An entry is written before the ring index that hands the frame over is published, and before the
 * consumer index of the ring it came from is released. So, for a frame of state FILL or TX at
 * index i of its port's ring: i >= ring.producer means it was never handed over; i >= ring.consumer
 * it waits in the ring; else the kernel has it, or has put it into RX or completion.
 *
 * Owner of all entries: the worker's thread; after it has ended, whoever closes the worker.
 */
#pragma once

#include <stdint.h>

#include "base/layout.h"

enum ledger_state {
	LEDGER_POOL,	  /* in the worker's pool; port and index are 0 */
	LEDGER_FILL,	  /* put on a fill ring: free for the kernel to receive into */
	LEDGER_TX,	  /* put on a TX ring: the kernel reads it until it is completed */
	LEDGER_HAND_OVER, /* lent to another worker, which copies it: see fwd/handover.h */
	LEDGER_HAND, /* taken from one, not given to another yet; only builds that check owners note it */
	LEDGER_STATES,
};

/*
 * state: 4 bits, port: 12 bits (4,096 ports a worker, far over CONF_PORTS_MAX), index: 48 bits.
 * 2^48 frames at 100 M frames/s last 32 days before an index repeats; to mistake one for another
 * it would have to repeat within one ring's length.
 */
typedef uint64_t ledger_entry;

#define LEDGER_INDEX_BITS 48
#define LEDGER_PORT_BITS  12
#define LEDGER_INDEX_MASK ((1ULL << LEDGER_INDEX_BITS) - 1)

/* port is below 4,096; of index the low 48 bits are kept. */
static always_inline ledger_entry ledger_pack(enum ledger_state state, unsigned port,
					      uint64_t index)
{
	return (uint64_t)state << (LEDGER_INDEX_BITS + LEDGER_PORT_BITS) |
	       (uint64_t)port << LEDGER_INDEX_BITS | (index & LEDGER_INDEX_MASK);
}

static always_inline enum ledger_state ledger_state(ledger_entry entry)
{
	return (enum ledger_state)(entry >> (LEDGER_INDEX_BITS + LEDGER_PORT_BITS));
}

static always_inline unsigned ledger_port(ledger_entry entry)
{
	return entry >> LEDGER_INDEX_BITS & ((1U << LEDGER_PORT_BITS) - 1);
}

static always_inline uint64_t ledger_index(ledger_entry entry)
{
	return entry & LEDGER_INDEX_MASK;
}

/*
 * Two stores a frame are the ledger's cost on the straight path. A build with
 * -DMEASURE_WITHOUT_LEDGER leaves them out so that `scripts/ledger-cost` can weigh them; such a
 * build finds no frame at close, and its last balance is wrong.
 */
static always_inline void ledger_write(ledger_entry *entry, ledger_entry value)
{
#ifndef MEASURE_WITHOUT_LEDGER
	*entry = value;
#else
	(void)entry, (void)value;
#endif
}
