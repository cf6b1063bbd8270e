/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A token bucket: how many of something may be done now, at a rate, after a pause some at once. One word: the
 * time at which the bucket will be as full as it is now if nothing is taken (the "virtual scheduling" of
 * ITU-T I.371). Pure; owner: whoever has it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct bucket {
	uint64_t interval_ns; /* between two tokens */
	unsigned burst;	      /* tokens that it holds, at least 1 */
	uint64_t next_ns;     /* when the next one may be taken; 0: it is full */
};

/* True if there is a token now. The clock must not go backwards. */
static inline bool bucket_ready(const struct bucket *bucket, uint64_t now_ns)
{
	return bucket->next_ns <= now_ns;
}

/* Takes one, which must be there. */
static inline void bucket_take(struct bucket *bucket, uint64_t now_ns)
{
	uint64_t saved_ns = (bucket->burst - 1) * bucket->interval_ns;
	uint64_t least_ns = now_ns > saved_ns ? now_ns - saved_ns : 0;

	if (bucket->next_ns < least_ns)
		bucket->next_ns = least_ns;
	bucket->next_ns += bucket->interval_ns;
}
