/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A sequence lock over an array of 64-bit words: one writer that never waits, any number of
 * readers that never write. A reader gets words of one single write, or is told to try again.
 */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"

struct seqlock {
	uint32_t seq; /* Owner: the writer. Odd while a write is under way. */
};

/*
 * Replaces `words` words at dst by those at src. Only the one writing thread may call it; it takes
 * no lock and never fails. dst is what the readers read, src is the writer's own.
 */
static inline void seqlock_write(struct seqlock *lock, uint64_t *dst, const uint64_t *src,
				 size_t words)
{
	uint32_t seq = lock->seq;

	store_relaxed(&lock->seq, seq + 1);
	fence_release(); /* pairs with fence_acquire() in seqlock_read(): odd before any new word */
	for (size_t i = 0; i < words; i++)
		store_relaxed(&dst[i], src[i]);
	store_release(&lock->seq, seq + 2); /* pairs with load_acquire() in seqlock_read() */
}

/*
 * Copies `words` words from src to dst; any thread. Returns 0, or -EAGAIN if each of `tries` tries
 * met a write under way: dst then holds nothing useful.
 */
static inline int seqlock_read(const struct seqlock *lock, uint64_t *dst, const uint64_t *src,
			       size_t words, unsigned tries)
{
	while (tries--) {
		uint32_t seq = load_acquire(&lock->seq); /* pairs with the last store of a write */

		if (seq & 1) {
			cpu_relax();
			continue;
		}
		for (size_t i = 0; i < words; i++)
			dst[i] = load_relaxed(&src[i]);
		fence_acquire(); /* pairs with fence_release() in seqlock_write() */
		if (load_relaxed(&lock->seq) == seq)
			return 0;
	}
	return -EAGAIN;
}
