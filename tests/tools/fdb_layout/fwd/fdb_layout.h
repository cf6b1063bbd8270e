/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of src/fwd as it is not, found by the compiler in the place of src/fwd/fdb_layout.h when it
 * builds the programs of `scripts/bench fdb`:
 *
 *	STAMPS_NEAR	stamps are on the line that lookups read, which then has six entries and not eight
 *	RENEW_ALWAYS	every frame renews its station's stamp, and not the first one in a tick
 *	COUNT_WRITES	stores to either kind of line are counted: this machine has no hardware events to
 *			count them by
 */
#pragma once

#define fdb_stamp_old	product_stamp_old
#define fdb_stamp_renew product_stamp_renew
#define fdb_stamp_set	product_stamp_set
#define fdb_word_set	product_word_set
#ifdef STAMPS_NEAR
#define fdb_bucket product_bucket
#define fdb_stamp  product_stamp
#endif
#include "../../../../src/fwd/fdb_layout.h"
#undef fdb_stamp_old
#undef fdb_stamp_renew
#undef fdb_stamp_set
#undef fdb_word_set

#ifdef STAMPS_NEAR
#undef fdb_bucket
#undef fdb_stamp
#undef FDB_SLOTS
#define FDB_SLOTS 6

struct fdb_bucket {
	uint64_t word[FDB_SLOTS];
	uint16_t tick[FDB_SLOTS];
} __attribute__((aligned(CACHE_LINE)));

_Static_assert(sizeof(struct fdb_bucket) == CACHE_LINE, "one line, as the product's");

static always_inline uint16_t *fdb_stamp(struct fdb_bucket *buckets, struct fdb_stamps *stamps,
					 uint32_t bucket, unsigned slot)
{
	(void)stamps;
	return &buckets[bucket].tick[slot];
}
#endif

/* Stores of this thread to lines that lookups read, and to others. */
static _Thread_local uint64_t lookup_writes __attribute__((unused));
static _Thread_local uint64_t refresh_writes __attribute__((unused));

static always_inline void count_stamp_write(void)
{
#ifdef COUNT_WRITES
#ifdef STAMPS_NEAR
	lookup_writes++;
#else
	refresh_writes++;
#endif
#endif
}

static always_inline bool fdb_stamp_old(uint16_t stamp, uint16_t tick)
{
#ifdef RENEW_ALWAYS
	(void)tick;
	return stamp != FDB_STAMP_STATIC && stamp != FDB_STAMP_NONE;
#else
	return product_stamp_old(stamp, tick);
#endif
}

static always_inline void fdb_stamp_renew(uint16_t *stamp, uint16_t old, uint16_t tick)
{
	count_stamp_write();
#ifdef RENEW_ALWAYS
	(void)old;
	store_relaxed(stamp, tick); /* as one writes it who does not look first */
#else
	product_stamp_renew(stamp, old, tick);
#endif
}

static always_inline void fdb_stamp_set(uint16_t *stamp, uint16_t value)
{
	count_stamp_write();
	product_stamp_set(stamp, value);
}

static always_inline void fdb_word_set(uint64_t *word, uint64_t value)
{
#ifdef COUNT_WRITES
	lookup_writes++;
#endif
	product_word_set(word, value);
}
