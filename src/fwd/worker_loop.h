/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The poller's loop, for the modes to include: each mode compiles its own copy with its burst
 * function inlined, so that no pointer is called per packet. Worker's thread only.
 */
#pragma once

#include "base/clock.h"
#include "fwd/worker.h"

/*
 * A mode's part of a pass on one port: takes up to a batch of frames from the port's RX ring (or
 * makes them) and gives each away: to a TX ring, or back by worker_return(). Returns how many.
 */
typedef uint32_t burst_fn(struct worker *worker, struct queue *queue);

/* Wakes, sleeps and reports are calls: they happen once a pass at most. */
void worker_sleep(struct worker *worker, int timeout_ms);
void worker_publish(struct worker *worker);
void worker_check_done(struct worker *worker);
bool worker_drained(struct worker *worker, bool moved, uint64_t *started_ns, uint64_t *quiet_ns);

/*
 * Gives back a frame that the worker has in hand, by the address the kernel named: straight to the
 * queue's fill ring, or to the pool if that is full. The fill entry is published by the refill step
 * of this pass.
 */
static always_inline void worker_return(struct worker *worker, struct queue *queue, uint64_t addr)
{
	uint32_t frame = (uint32_t)(addr >> worker->frame_shift);

	if (likely(ring_room(&queue->fill, 1))) {
		uint64_t index = ring_take(&queue->fill, 1);

		ledger_write(&worker->ledger[frame], ledger_pack(LEDGER_FILL, queue->port, index));
		*ring_addr(&queue->fill, index) = (uint64_t)frame << worker->frame_shift;
	} else {
		ledger_write(&worker->ledger[frame], ledger_pack(LEDGER_POOL, 0, 0));
		pool_put(&worker->pool, frame);
	}
}

/* True if the kernel may name this address on the queue's rings. If not, some frame of the queue
 * will not be seen again until the ledger gives it back at close: it is counted as lost. */
static always_inline bool worker_knows(const struct worker *worker, struct queue *queue,
				       uint64_t addr)
{
	if (likely(addr < worker->frames_bytes))
		return true;
	queue->lost++;
	queue->drops[DROP_BAD_DESCRIPTOR]++;
	return false;
}

/* Puts a frame on a TX ring that queue_tx_room() says has room. */
static always_inline void worker_send(struct worker *worker, struct queue *egress,
				      const struct xdp_desc *desc)
{
	uint64_t index = ring_take(&egress->tx, 1);
	struct xdp_desc *entry = ring_desc(&egress->tx, index);

	ledger_write(&worker->ledger[desc->addr >> worker->frame_shift],
		     ledger_pack(LEDGER_TX, egress->port, index));
	entry->addr = desc->addr;
	entry->len = desc->len;
	entry->options = desc->options & XDP_PKT_CONTD;
}

/* Whose fill ring the completions of `queue` go to: one that has room for them. On a patch that
 * carries one direction only, the sender's own is full and the receiver's has just been used. */
static always_inline struct queue *worker_fill_target(struct worker *worker, struct queue *queue,
						      uint32_t count)
{
	for (unsigned i = 0; i < worker->queues; i++) {
		if (ring_room(&worker->queue[i].fill, count) >= count)
			return &worker->queue[i];
	}
	return queue;
}

/* Completed frames back to a fill ring. At most two batches: a pass sends one a port, so this
 * catches up after a stall, and a pass stays short. */
static always_inline uint32_t worker_reap(struct worker *worker, struct queue *queue)
{
	uint32_t count = ring_ready(&queue->completion, 2 * worker->batch);
	uint64_t first = ring_peek(&queue->completion);
	struct queue *target;

	if (!count)
		return 0;
	if (count > 2 * worker->batch)
		count = 2 * worker->batch;
	target = worker_fill_target(worker, queue, count);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t addr = *ring_addr(&queue->completion, first + i);

		if (likely(worker_knows(worker, queue, addr)))
			worker_return(worker, target, addr);
	}
	ring_release(&queue->completion, count);
	return count;
}

/* Tops the fill ring up from the pool, and publishes all that this pass put there. */
static always_inline uint32_t worker_refill(struct worker *worker, struct queue *queue)
{
	uint32_t count = worker->pool.count;

	if (count) {
		uint32_t room = ring_room(&queue->fill, ring_size(&queue->fill));

		if (count > room)
			count = room;
		for (uint32_t i = 0; i < count; i++) {
			uint32_t frame = pool_get(&worker->pool);
			uint64_t index = ring_take(&queue->fill, 1);

			ledger_write(&worker->ledger[frame],
				     ledger_pack(LEDGER_FILL, queue->port, index));
			*ring_addr(&queue->fill, index) = (uint64_t)frame << worker->frame_shift;
		}
	}
	ring_submit(&queue->fill);
	return count;
}

static always_inline uint32_t worker_pass(struct worker *worker, burst_fn *burst)
{
	uint32_t moved = 0;

	for (unsigned i = 0; i < worker->queues; i++)
		moved += worker_reap(worker, &worker->queue[i]);
	for (unsigned i = 0; i < worker->queues; i++)
		moved += burst(worker, &worker->queue[i]);
	for (unsigned i = 0; i < worker->queues; i++)
		worker_refill(worker, &worker->queue[i]);
	for (unsigned i = 0; i < worker->queues; i++) {
		if (worker->queue[i].unsent)
			queue_kick_tx(&worker->queue[i]);
		if (worker->queue[i].zero_copy)
			queue_kick_rx(&worker->queue[i]);
	}
	worker->passes++;
	/* Relaxed: the request carries nothing but its number. */
	if (unlikely(load_relaxed(&worker->asked) != worker->answered))
		worker_publish(worker);
	return moved;
}

static always_inline void worker_wait(struct worker *worker)
{
	if (worker->finite)
		worker_check_done(worker);
	if (worker->poll)
		worker_sleep(worker, WORKER_SLEEP_MS);
	else
		cpu_relax();
}

/* Runs passes until worker_stop(), then drains: what was received goes out, what was sent is waited
 * for, as long as that gets anywhere. */
static always_inline void worker_loop(struct worker *worker, burst_fn *burst)
{
	uint64_t started_ns = 0, quiet_ns = 0;
	bool moved;

	while (!load_relaxed(&worker->stop)) {
		if (!worker_pass(worker, burst))
			worker_wait(worker);
	}
	for (unsigned i = 0; i < worker->queues; i++)
		worker->queue[i].tx_left = 0;
	do {
		moved = worker_pass(worker, burst);
	} while (!worker_drained(worker, moved, &started_ns, &quiet_ns));
	worker_publish(worker);
}
