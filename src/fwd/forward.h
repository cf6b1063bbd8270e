/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What l2fwd and patch share: a burst from one port's RX ring to a TX ring, without a copy. */
#pragma once

#include "base/mac.h"
#include "fwd/worker_loop.h"

/* Gives a frame that cannot be forwarded back, and counts why. */
static inline COLD void forward_drop(struct worker *worker, struct queue *queue, uint64_t addr,
				     enum drop_reason reason)
{
	queue->drops[reason]++;
	worker_return(worker, queue, addr);
}

/* Takes up to a batch off RX while the egress is down: see worker.h for why they are not kept. */
static inline COLD uint32_t forward_discard(struct worker *worker, struct queue *ingress)
{
	uint32_t count = ring_ready(&ingress->rx, worker->batch);
	struct ring_cursor rx = ring_peek(&ingress->rx);

	if (count > worker->batch)
		count = worker->batch;
	for (uint32_t i = 0; i < count; i++) {
		const struct xdp_desc *desc = cursor_desc(&rx);

		ingress->rx_bytes += desc->len;
		if (worker_knows(ingress, worker->frames_bytes, desc->addr))
			forward_drop(worker, ingress, desc->addr, DROP_LINK_DOWN);
	}
	ring_release(&ingress->rx, &rx);
	return count;
}

/*
 * One burst. `swap` is a constant in each caller. Per frame: one descriptor read, one written, one
 * ledger store; the frame's own bytes are touched only to swap.
 */
static always_inline uint32_t forward_burst(struct worker *worker, struct queue *ingress,
					    struct queue *egress, bool swap)
{
	uint32_t room = queue_tx_room(egress);
	uint32_t count = room < worker->batch ? room : worker->batch;
	uint32_t ready = ring_ready(&ingress->rx, worker->batch);
	struct ring_cursor rx = ring_peek(&ingress->rx);
	struct sends sends = sends_begin(worker, egress);
	uint64_t frames_bytes = worker->frames_bytes, rx_bytes = 0;
	uint8_t *frames = worker->frames;

	ingress->held = false;
	if (!ready)
		return 0;
	if (unlikely(egress->down))
		return forward_discard(worker, ingress);
	if (ready < count)
		count = ready;
	if (unlikely(!count)) {
		ingress->held = true;
		return 0;
	}
	for (uint32_t i = 0; i < count; i++) {
		struct xdp_desc desc = *cursor_desc(&rx);

		rx_bytes += desc.len;
		if (unlikely(!worker_knows(ingress, frames_bytes, desc.addr)))
			continue;
		if (unlikely(desc.len < ETHER_HEADER_LEN)) {
			forward_drop(worker, ingress, desc.addr, DROP_RUNT);
			continue;
		}
		if (swap)
			mac_swap(frames + desc.addr);
		sends_put(&sends, desc);
	}
	ingress->rx_bytes += rx_bytes;
	sends_end(egress, &sends);
	ring_release(&ingress->rx, &rx);
	return count;
}
