/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "fwd/storm.h"

#include "base/clock.h"

void storm_set(struct storm *storm, unsigned port, enum storm_kind kind, uint32_t limit,
	       unsigned workers)
{
	struct bucket *bucket = &storm->bucket[port][kind];
	unsigned burst = limit / workers / STORM_BURST_PART;

	/* Relaxed: each carries nothing but itself, see storm_take(). */
	store_relaxed(&bucket->burst, burst ? burst : 1);
	/* Rounded up, or all of them together would exceed it. */
	store_relaxed(&bucket->interval_ns,
		      limit ? (NSEC_PER_SEC * workers + limit - 1) / limit : 0);
}
