/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How many of the frames that go to all ports a bridge takes from one: a token bucket for each kind of them, a
 * worker and port. Workers share none: of N workers each lets an Nth of a port's limit through, so that all
 * of them together never exceed it, and one alone does not reach it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bucket.h"
#include "base/layout.h"
#include "conf/conf.h"

enum storm_kind {
	STORM_BROADCAST,
	STORM_MULTICAST,
	STORM_UNKNOWN, /* unicast to a station that is not known */
	STORM_KINDS,
};

/* What may come at once after a pause, as a part of a second: hosts that start, or are asked all at once,
 * answer within some 10 ms. A whole second's would let a loop have that much at once again after each pause; a
 * hundredth would cut such answers off below limits of 1,000. */
#define STORM_BURST_PART 10

/* Of one worker and all ports. Owner: the worker's thread; of interval_ns (0: no limit) and burst the main
 * thread, once in a reload. */
struct storm {
	GROUP_BEGIN_APART(buckets);
	struct bucket bucket[CONF_PORTS_MAX][STORM_KINDS];
	GROUP_END(buckets);
};

ASSERT_GROUP(storm, buckets, 18);

/* Sets a limit of a port in frames a second over all workers, of which this is one; 0: none. What of it is
 * used up stays so. Main thread, also while the worker runs. */
void storm_set(struct storm *storm, unsigned port, enum storm_kind kind, uint32_t limit,
	       unsigned workers);

/* True if one more may go on, which is then taken. now_ns: of the monotonic clock. */
static inline bool storm_take(struct storm *storm, unsigned port, enum storm_kind kind,
			      uint64_t now_ns)
{
	struct bucket *own = &storm->bucket[port][kind];
	/* Both pair with storm_set(); one frame may see the one of before and the other of after. */
	struct bucket bucket = { .interval_ns = load_relaxed(&own->interval_ns),
				 .burst = load_relaxed(&own->burst),
				 .next_ns = own->next_ns };

	if (!bucket.interval_ns)
		return true;
	/* Farther away than one interval it is of a limit that was lower until now. */
	if (bucket.next_ns > now_ns + bucket.interval_ns)
		bucket.next_ns = now_ns;
	if (!bucket_ready(&bucket, now_ns))
		return false;
	bucket_take(&bucket, now_ns);
	own->next_ns = bucket.next_ns;
	return true;
}
