/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One port's queue as its poller works it: the four rings of one socket and what is counted there.
 * Owner of every field: the worker's thread, except where said; the daemon fills it in before the
 * thread starts and reads it after the thread has ended.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/layout.h"
#include "fwd/stats.h"
#include "xdp/ring.h"

struct queue {
	/* Read and written in every pass. */
	GROUP_BEGIN(rings);
	struct ring rx;
	struct ring fill;
	struct ring tx;
	struct ring completion;
	GROUP_END(rings);

	/* Written in every pass that moves a frame; the constants among them share the line because
	 * the same passes read them. */
	GROUP_BEGIN(burst);
	uint64_t rx_bytes;
	uint64_t tx_bytes; /* put on the TX ring, completed or not */
	uint64_t tx_left;  /* txpush: frames still to generate; UINT64_MAX: no end */
	int fd;		   /* the socket, for wake-ups; owned by the daemon */
	uint16_t port;	   /* number in the worker's forward; the ledger's port */
	bool zero_copy;	   /* wake-ups are needed only where the ring's flag says so */
	bool unsent;	   /* the kernel has not taken all of the TX ring, as far as we know */
	bool down;	   /* the last wake-up said ENETDOWN or ENXIO */
	bool held;	   /* frames wait on RX because the egress has no room */
	bool closed;	   /* its counts are final and stand in `final` */
	GROUP_END(burst);

	/* Rare events, and what a closed queue leaves behind. */
	GROUP_BEGIN(rare);
	uint64_t drops[DROP_REASONS];
	uint64_t kicks[KICK_RESULTS];
	uint64_t lost; /* frames in whose place the kernel gave back something else */
	struct queue_counts final;
	GROUP_END(rare);
};

ASSERT_GROUP(queue, rings, 3);
ASSERT_GROUP(queue, burst, 1);

/*
 * Frames that may still be put on the TX ring. Not the ring's own room: what is queued and what
 * the kernel has not completed together never exceed the completion ring (as large as TX), so that
 * the kernel always has a slot to complete into, and a TX entry is not overwritten before its frame
 * is completed. It costs no load of a shared index.
 */
static always_inline uint32_t queue_tx_room(const struct queue *queue)
{
	return ring_size(&queue->completion) - (uint32_t)(queue->tx.own - queue->completion.own);
}

/* Frames put on the TX ring whose completion was not read yet. */
static always_inline uint32_t queue_tx_pending(const struct queue *queue)
{
	return (uint32_t)(queue->tx.own - queue->completion.own);
}

/*
 * Wakes the kernel until it has taken all of the TX ring, at most a bounded number of times: a copy
 * mode socket sends nothing by itself, 32 frames a call. Never fails: what went wrong is counted,
 * what is left is tried again in the next pass. Worker's thread.
 */
void queue_kick_tx(struct queue *queue);

/* Wakes the driver for the fill ring where it asks for it. Worker's thread. */
void queue_kick_rx(struct queue *queue);

/* Fills in *counts from one set of loads of the rings' indices. Worker's thread, or any after it
 * has ended. */
void queue_count(const struct queue *queue, struct queue_counts *counts);
