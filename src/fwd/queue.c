/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "fwd/queue.h"

#include <errno.h>
#include <string.h>

#include "xdp/xsk.h"

/*
 * Wake-ups in one pass. One call sends up to 32 frames in copy mode, so this is 1,024 of them: the
 * largest batch, and about 1 ms of sending on veth, for which the other ports wait. Too
 * small and a ring filled during a stall drains slowly; too large and one busy port starves another.
 */
#define KICKS_PER_PASS 32

static enum kick_result kick_result(int err)
{
	switch (err) {
	case -EAGAIN:
		return KICK_AGAIN;
	case -EBUSY:
		return KICK_BUSY;
	case -ENOBUFS:
		return KICK_NOBUFS;
	case -ENETDOWN:
		return KICK_DOWN;
	case -ENXIO:
		return KICK_GONE;
	default:
		return KICK_OTHER;
	}
}

void queue_kick_tx(struct queue *queue)
{
	uint32_t before = load_relaxed(queue->tx.consumer);

	for (unsigned i = 0; i < KICKS_PER_PASS; i++) {
		uint32_t after;
		int err;

		if (queue->zero_copy && !ring_needs_wakeup(&queue->tx))
			err = 0; /* the driver is at work on its own */
		else {
			err = xsk_wake_tx(queue->fd);
			queue->kicks[KICK_CALLS]++;
		}
		if (err)
			queue->kicks[kick_result(err)]++;
		/* Relaxed: nothing is read or reused on the strength of it; completions do that. */
		after = load_relaxed(queue->tx.consumer);
		queue->unsent = after != (uint32_t)queue->tx.own;
		/* Only with frames left: they are what makes the next pass kick, and find out that
		 * the device is up again. */
		queue->down = queue->unsent && (err == -ENETDOWN || err == -ENXIO);
		/* No progress: its memory is short or the device is down. Not now, then. */
		if (!queue->unsent || queue->down || after == before)
			return;
		before = after;
	}
}

void queue_kick_rx(struct queue *queue)
{
	if (queue->zero_copy && ring_needs_wakeup(&queue->fill))
		xsk_wake_rx(queue->fd);
}

/*
 * tx_bytes counts what was put on the ring. What is completed lacks the pending frames, whose
 * entries still stand there, since queue_tx_room() lets none be overwritten before. Completions come
 * in the order of the entries; where a driver reorders, the sum is right again once they are all in.
 */
static uint64_t pending_bytes(const struct queue *queue, uint64_t pending)
{
	uint64_t bytes = 0;

	if (pending > ring_size(&queue->tx)) /* only a kernel gone mad; the loop stays bounded */
		pending = ring_size(&queue->tx);
	for (uint64_t i = queue->tx.own - pending; i != queue->tx.own; i++)
		bytes += ring_desc(&queue->tx, i)->len;
	return bytes;
}

void queue_count(const struct queue *queue, struct queue_counts *counts)
{
	uint32_t fill_consumer, rx_producer, tx_consumer, completion_producer;

	if (queue->closed) {
		*counts = queue->final;
		return;
	}
	/* Relaxed: the entries behind these indices are not touched. Occupancies and `kernel` are
	 * made of the same loads, so that they add up whatever the kernel does meanwhile. */
	fill_consumer = load_relaxed(queue->fill.consumer);
	rx_producer = load_relaxed(queue->rx.producer);
	tx_consumer = load_relaxed(queue->tx.consumer);
	completion_producer = load_relaxed(queue->completion.producer);

	counts->rx_packets = queue->rx.own;
	counts->rx_bytes = queue->rx_bytes;
	counts->fill = (uint32_t)queue->fill.own - fill_consumer;
	counts->rx = rx_producer - (uint32_t)queue->rx.own;
	counts->tx = (uint32_t)queue->tx.own - tx_consumer;
	counts->completion = completion_producer - (uint32_t)queue->completion.own;
	counts->kernel = (int64_t)(int32_t)(fill_consumer - rx_producer) +
			 (int64_t)(int32_t)(tx_consumer - completion_producer);
	counts->tx_pending = (uint32_t)queue->tx.own - completion_producer;
	counts->tx_packets = queue->tx.own - counts->tx_pending;
	counts->tx_bytes = queue->tx_bytes - pending_bytes(queue, counts->tx_pending);
	counts->lost = queue->lost;
	memcpy(counts->drops, queue->drops, sizeof(counts->drops));
	memcpy(counts->kicks, queue->kicks, sizeof(counts->kicks));
}
