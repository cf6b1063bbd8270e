/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How the forwarding database lies in memory: what a lookup reads, and what a refresh writes. Only fdb.h
 * and fdb.c include it; all stores to either go through here. `scripts/bench fdb` compiles the table
 * with other layouts in this one's place, to tell what this one is worth.
 *
 *	buckets		| word word word word word word word word |	one line a bucket, read by lookups
 *	stamps		| 16 bit each, in the same order |		a quarter line a bucket, elsewhere
 *
 * A word is a whole entry, in one naturally aligned 64-bit integer, so that nobody ever sees half of one:
 *
 *	63 .. 5		the station: MAC without its group bit (always 0 in a station), and the VLAN
 *	4 .. 0		its port + 1; 31: blocked; 0: no entry, and then all of the word is 0
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/layout.h"

/* Entries of a bucket: what one line holds. */
#define FDB_SLOTS 8

#define FDB_PORT_BITS 5
#define FDB_PORT_MASK ((1U << FDB_PORT_BITS) - 1)

/* Stamps that are no time. */
#define FDB_STAMP_NONE	 0	/* of a slot without an entry */
#define FDB_STAMP_STATIC 0xffff /* of a static or blocked entry, which does not age */

/* Owner: several threads, one at a time by fdb_lock; lookups read it at any time. Written when a station
 * comes, moves or goes, never for a frame of one that is known. */
struct fdb_bucket {
	uint64_t word[FDB_SLOTS];
} __attribute__((aligned(CACHE_LINE)));

/* When each station of a bucket was last seen, in ticks. Owner: every thread; see fdb_stamp_renew(). */
struct fdb_stamps {
	uint16_t tick[FDB_SLOTS];
};

_Static_assert(sizeof(struct fdb_bucket) == CACHE_LINE, "a lookup reads one line a bucket");

/* Bytes of the two arrays for `buckets` buckets. Their beginnings are CACHE_PAIR apart from all else. */
static inline uint64_t fdb_buckets_bytes(uint64_t buckets)
{
	return buckets * sizeof(struct fdb_bucket);
}

static inline uint64_t fdb_stamps_bytes(uint64_t buckets)
{
	return buckets * sizeof(struct fdb_stamps);
}

/* A stamp of a bucket. */
static always_inline uint16_t *fdb_stamp(struct fdb_bucket *buckets, struct fdb_stamps *stamps,
					 uint32_t bucket, unsigned slot)
{
	(void)buckets;
	return &stamps[bucket].tick[slot];
}

/* True if a stamp is to be renewed at this tick: once a tick, not once a frame. */
static always_inline bool fdb_stamp_old(uint16_t stamp, uint16_t tick)
{
	return stamp != tick && stamp != FDB_STAMP_STATIC && stamp != FDB_STAMP_NONE;
}

/* Replaces a stamp, unless it is no longer `old`: an entry that became static or went meanwhile stays
 * so. Any thread; the order against the word does not matter. */
static always_inline void fdb_stamp_renew(uint16_t *stamp, uint16_t old, uint16_t tick)
{
	__atomic_compare_exchange_n(stamp, &old, tick, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Sets a stamp whatever it is. With the bucket's lock. */
static always_inline void fdb_stamp_set(uint16_t *stamp, uint16_t value)
{
	store_relaxed(stamp, value);
}

/* Replaces an entry. With the bucket's lock. The release pairs with fence_acquire() in fdb_find(): who
 * sees an entry gone from here sees that it was put elsewhere before. */
static always_inline void fdb_word_set(uint64_t *word, uint64_t value)
{
	store_release(word, value);
}
