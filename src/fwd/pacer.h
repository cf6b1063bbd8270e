/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How many frames are due when a queue sends at a given rate. Pure: the caller brings the time.
 *
 * Frames are due by a schedule, not by gaps, so that the average is exact however unevenly the poller
 * is run. A poller that was off its CPU catches up, but as a faster stream and not in one clump: if
 * more than the frames of PACER_CLUMP_NS are late, the schedule moves on by that much at most, and
 * then a quarter faster than time. While due frames cannot be sent it does not move on at all.
 */
#pragma once

#include <stdint.h>

#include "base/clock.h"

/* The most time whose frames are released in one go. Half of the 10 ms that we promise: two looks may
 * follow each other closely. */
#define PACER_CLUMP_NS (5 * NSEC_PER_MSEC)

/* A debt beyond this is forgotten: to catch up on a link that was down for an hour helps nobody. */
#define PACER_DEBT_NS NSEC_PER_SEC

/* Owner: the worker's thread. */
struct pacer {
	uint64_t pps;	    /* frames a second of all queues together */
	uint64_t queues;    /* how many share them */
	uint64_t phase;	    /* 0 to queues - 1: which turn in a round is this queue's */
	uint64_t last_ns;   /* when it was looked at last; 0: never */
	uint64_t behind_ns; /* how far the schedule is behind the clock */
	uint64_t moment_ns; /* of the schedule, since its start */
	uint64_t sent;	    /* frames, as told by pacer_sent() */
};

/* Moves the schedule on to now_ns, which never runs backwards, and tells how many frames are due. */
uint32_t pacer_due(struct pacer *pacer, uint64_t now_ns);

/* So many of the due frames were sent. */
static inline void pacer_sent(struct pacer *pacer, uint32_t count)
{
	pacer->sent += count;
}

/* Nanoseconds until the next frame is due, as seen at the last pacer_due(); 0: now. */
uint64_t pacer_wait_ns(const struct pacer *pacer);
