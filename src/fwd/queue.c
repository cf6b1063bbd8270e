/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "fwd/queue.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "fwd/handover.h"
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

/* The two indices and the flags of every idle ring. Nothing is ever written there: an idle ring has no
 * entry to announce or to release. */
static uint32_t idle_word;

static struct ring ring_idle(void)
{
	return (struct ring){
		.mask = UINT32_MAX, /* its size is 0 */
		.producer = &idle_word,
		.consumer = &idle_word,
		.flags = &idle_word,
	};
}

struct queue queue_idle(unsigned port)
{
	return (struct queue){
		.rx = ring_idle(),
		.fill = ring_idle(),
		.tx = ring_idle(),
		.completion = ring_idle(),
		.fd = -1,
		.port = (uint16_t)port,
		.tx_tag = ledger_pack(LEDGER_TX, port, 0),
	};
}

struct queue queue_lost(unsigned port)
{
	struct queue queue = queue_idle(port);

	queue.down = queue.lost_device = true;
	queue.tx_left = UINT64_MAX;
	return queue;
}

void queue_hand_over(struct queue *queue, struct handover *handover, int bell_fd)
{
	handover_sender(handover, &queue->tx, &queue->completion);
	queue->tx_tag = ledger_pack(LEDGER_HAND_OVER, queue->port, 0);
	queue->hands_over = true;
	queue->bell_fd = bell_fd;
}

/* What was handed over is announced already. */
static void ring_bell(struct queue *queue)
{
	uint64_t one = 1;

	queue->unsent = false;
	fence_full(); /* pairs with that of worker_sleep(): see handover.h */
	if (ring_needs_wakeup(&queue->tx) && write(queue->bell_fd, &one, sizeof(one)) < 0)
		return; /* the eventfd is full of bells: it is awake */
}

void queue_kick_tx(struct queue *queue)
{
	uint32_t before;

	if (queue->hands_over) {
		ring_bell(queue);
		return;
	}
	before = load_relaxed(queue->tx.consumer);
	for (unsigned i = 0; i < KICKS_PER_PASS; i++) {
		uint32_t after;
		int err;

		if (queue->flag_wakes && !ring_needs_wakeup(&queue->tx))
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
	if (queue->busy_poll || ring_needs_wakeup(&queue->fill))
		xsk_wake_rx(queue->fd);
}

/* Descriptors that the kernel took from the TX ring and has not completed. */
static uint32_t taken_by_kernel(const struct queue *queue)
{
	/* Acquire, so that the other index is no older: what is completed in between counts once. */
	uint32_t completed = load_acquire(queue->completion.producer);

	return load_relaxed(queue->tx.consumer) - completed;
}

void queue_find_lost(struct queue *queue, uint32_t refused)
{
	uint32_t taken = taken_by_kernel(queue);

	if (!taken)
		queue->refused_settled = refused;
	refused -= queue->refused_settled;
	queue->tx_lost = taken < refused ? taken : refused;
}

/*
 * tx_bytes counts what was put on the ring. What is completed lacks the pending frames, whose
 * entries still stand there, since queue_tx_room() lets none be overwritten before. Completions come
 * in the order of the entries; where a driver reorders, the sum is right again once they are all in.
 */
static void count_sent(const struct queue *queue, struct queue_counts *counts, uint64_t pending)
{
	uint64_t known = pending;

	/* Where some are lost, these are not the ones that are missing; only their sizes are wrong then. */
	if (known > ring_size(&queue->tx))
		known = ring_size(&queue->tx);
	counts->tx_descriptors = queue->tx.own - pending;
	counts->tx_packets = queue->tx.own - queue->tx_continued - pending;
	counts->tx_bytes = queue->tx_bytes;
	for (uint64_t i = queue->tx.own - known; i != queue->tx.own; i++) {
		const struct xdp_desc *desc = ring_desc(&queue->tx, i);

		counts->tx_bytes -= desc->len;
		counts->tx_packets += desc->options & XDP_PKT_CONTD;
	}
}

/* The other worker is no part of the kernel, and what it took over is its to count as sent. */
static void count_handed(const struct queue *queue, struct queue_counts *counts)
{
	uint64_t out = queue->tx.own - queue->completion.own;

	counts->handed = counts->tx_packets;
	counts->hand_over = out;
	counts->tx_packets = counts->tx_descriptors = counts->tx_bytes = 0;
	counts->kernel -= (int64_t)out - (int64_t)counts->tx - (int64_t)counts->completion;
	counts->tx = counts->completion = counts->tx_pending = 0;
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

	counts->rx_packets = queue->rx.own - queue->rx_continued;
	counts->rx_descriptors = queue->rx.own;
	counts->rx_bytes = queue->rx_bytes;
	counts->fill = (uint32_t)queue->fill.own - fill_consumer;
	counts->rx = rx_producer - (uint32_t)queue->rx.own;
	counts->tx = (uint32_t)queue->tx.own - tx_consumer;
	counts->completion = completion_producer - (uint32_t)queue->completion.own;
	counts->kernel = (int64_t)(int32_t)(fill_consumer - rx_producer) +
			 (int64_t)(int32_t)(tx_consumer - completion_producer) - queue->tx_lost;
	counts->tx_pending = (uint32_t)queue->tx.own - completion_producer;
	count_sent(queue, counts, counts->tx_pending);
	counts->tx_pending -= queue->tx_lost;
	counts->tx_lost = queue->tx_lost;
	counts->lost = queue->lost + queue->tx_lost;
	counts->handed = counts->hand_over = 0;
	if (queue->hands_over)
		count_handed(queue, counts);
	counts->flooded = queue->flooded;
	counts->copies = queue->copies;
	counts->probes = queue->probes;
	counts->partial_checksums = queue->partial_checksums;
	memcpy(counts->calls, queue->calls, sizeof(counts->calls));
	counts->calls[queue->zero_copy ? CALL_WAKE_TX : CALL_COPY_TX] = queue->kicks[KICK_CALLS];
	memcpy(counts->drops, queue->drops, sizeof(counts->drops));
	memcpy(counts->kicks, queue->kicks, sizeof(counts->kicks));
}
