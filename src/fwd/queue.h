/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One port's queue as its poller works it: the four rings of one socket and what is counted there. Where
 * the poller has no RX or no TX queue of the port these rings are idle ones, which are always empty and
 * full (queue_idle()); or TX and completion are a hand-over's (handover.h).
 * Owner of every field: the worker's thread, except where said; the daemon fills it in before the
 * thread starts and reads it after the thread has ended.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/layout.h"
#include "fwd/stats.h"
#include "xdp/ledger.h"
#include "xdp/ring.h"

struct handover;

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
	uint64_t tx_bytes;   /* put on the TX ring, completed or not */
	uint64_t tx_left;    /* txpush: packets still to generate; UINT64_MAX: no end */
	uint32_t stock;	     /* frames that may be out for receiving; see queue_short() */
	uint32_t tx_lost;    /* TX descriptors that the kernel refused and will not return */
	ledger_entry tx_tag; /* of frames on the TX ring, without the index */
	int fd;		     /* the socket, for wake-ups; owned by the daemon */
	uint16_t port;	     /* number in the worker's forward; the ledger's port */
	uint16_t samples;    /* TCP and UDP frames still to be looked at for a whole checksum */
	bool flag_wakes;     /* wake-ups are needed only where the ring's flag says so: zero-copy */
	bool busy_poll;	     /* a call in every pass, for the driver's NAPI runs in it */
	bool unsent;	     /* the kernel has not taken all of the TX ring, as far as we know */
	bool down;	     /* the last wake-up said ENETDOWN or ENXIO, or there is no device */
	bool held;	     /* frames wait on RX because the egress has no room */
	bool hands_over;     /* TX leads to another worker */
	bool closed;	     /* its counts are final and stand in `final` */
	GROUP_END(burst);

	/* Packets of several descriptors only, and those that a bridge sends out of several ports, or makes. */
	GROUP_BEGIN(pieces);
	uint64_t rx_continued; /* descriptors received that another one of the packet follows */
	uint64_t tx_continued; /* likewise, put on the TX ring */
	uint64_t flooded;      /* packets received here that all other ports were to get */
	uint64_t copies;       /* ports, beyond one each, that packets received here were sent to */
	uint64_t probes;       /* for loops, of our own, put on the TX ring */
	GROUP_END(pieces);

	/* Rare events, and what a closed queue leaves behind. */
	GROUP_BEGIN(rare);
	bool zero_copy;	  /* as bound */
	bool lost_device; /* there is no socket until the device is there again */
	int bell_fd;	  /* wakes the worker that TX leads to; borrowed from it */
	uint64_t partial_checksums;
	uint64_t calls[CALL_COUNTS]; /* those that are not made of kicks */
	uint64_t stuck_since_ns;  /* refused descriptors may be outstanding since then; 0: none */
	uint64_t stuck_at;	  /* completions read by then */
	uint32_t refused_settled; /* refused descriptors that came back */
	uint64_t drops[DROP_REASONS];
	uint64_t kicks[KICK_RESULTS];
	uint64_t lost; /* frames in whose place the kernel gave back something else */
	struct queue_counts final;
	GROUP_END(rare);
};

ASSERT_GROUP(queue, rings, 3);
ASSERT_GROUP(queue, burst, 1);
ASSERT_GROUP(queue, pieces, 1);

/* A port's queue without a socket: nothing comes, and nothing can go. Main thread. */
struct queue queue_idle(unsigned port);

/* The same of a port whose device is gone, or has not come yet: what is to leave there is dropped. */
struct queue queue_lost(unsigned port);

/* TX and completion are a hand-over's from now on, to the worker that bell_fd wakes. Main thread. */
void queue_hand_over(struct queue *queue, struct handover *handover, int bell_fd);

/*
 * Frames that may still be put on the TX ring. Not the ring's own room: what is queued and what
 * the kernel has not completed together never exceed the completion ring (as large as TX), so that
 * the kernel always has a slot to complete into, and a TX entry is not overwritten before its frame
 * is completed. It costs no load of a shared index. A refused descriptor holds no slot.
 */
static always_inline uint32_t queue_tx_room(const struct queue *queue)
{
	uint32_t size = ring_size(&queue->completion);
	uint32_t used = (uint32_t)(queue->tx.own - queue->completion.own) - queue->tx_lost;

	/* More than the size when one that was given up for lost has come after all. */
	return used < size ? size - used : 0;
}

/*
 * Frames that the port's fill ring should still be given: what is out for receiving, on the fill ring, in
 * the kernel or on RX, is kept at `stock` and not at what the fill ring could hold. Every frame that is
 * out is another line, page and descriptor that the kernel touches in its turn, first in first out: with
 * 4,096 of them a frame took 1.6 times as long to receive as with 2,048 (veth, copy mode, 2 cores of this
 * kind; `scripts/bench --ring-size` shows it). It costs no load of a shared index.
 */
static always_inline uint32_t queue_short(const struct queue *queue)
{
	uint32_t out = (uint32_t)(queue->fill.own - queue->rx.own);

	return out < queue->stock ? queue->stock - out : 0;
}

/* Descriptors put on the TX ring whose completion was not read yet and is still to come. */
static always_inline uint32_t queue_tx_pending(const struct queue *queue)
{
	return (uint32_t)(queue->tx.own - queue->completion.own) - queue->tx_lost;
}

/*
 * Works out how many of the descriptors that the kernel took are lost, given how many it has ever
 * refused (its tx_invalid_descs): it took them, they have not been completed, and it says that it did
 * not like so many. Some kernels complete what they refuse; whenever nothing is outstanding, all that was
 * refused until then has come back, and is never lost later. Descriptors under way count as lost too
 * while refused ones are: call it only when the rest can be taken to be done. Worker's thread.
 */
void queue_find_lost(struct queue *queue, uint32_t refused);

/*
 * Wakes who takes from the TX ring. The kernel, until it has taken all of it, at most a bounded number of times: a copy
 * mode socket sends nothing by itself, 32 frames a call. Never fails: what went wrong is counted,
 * what is left is tried again in the next pass. Worker's thread.
 */
void queue_kick_tx(struct queue *queue);

/* Wakes the driver for the fill ring where it asks for it; where it is busy-polled, runs it. Worker's
 * thread. */
void queue_kick_rx(struct queue *queue);

/* Fills in *counts from one set of loads of the rings' indices. Worker's thread, or any after it
 * has ended. */
void queue_count(const struct queue *queue, struct queue_counts *counts);
