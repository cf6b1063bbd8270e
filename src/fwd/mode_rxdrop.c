/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* rxdrop: receive, count, give back. */
#include "fwd/mode.h"
#include "fwd/worker_loop.h"

static always_inline uint32_t rxdrop_burst(struct worker *worker, struct queue *queue, bool plain)
{
	uint32_t count = ring_ready(&queue->rx, worker->batch);
	struct ring_cursor rx = ring_peek(&queue->rx);
	uint64_t bytes = 0, continued = 0;
	struct returns returns;
	uint32_t straight;

	if (!count) {
		queue->calls[CALL_RX_EMPTY]++;
		return 0;
	}
	if (count > worker->batch)
		count = worker->batch;
	returns = returns_begin(worker, queue, count, plain);
	if (unlikely(returns.room < count))
		queue->calls[CALL_FILL_FAIL]++;
	straight = plain ? run_worth(count) : 0;
	if (straight) {
		struct return_run run = { &returns.chunks, queue, LEDGER_FILL, .descs = true };

		bytes = returns_straight(worker, &returns, &run, &rx, count);
	}
	for (uint32_t i = straight; i < count; i++) {
		const struct xdp_desc *desc = cursor_desc(&rx);

		bytes += desc->len;
		if (!plain)
			continued += desc->options & XDP_PKT_CONTD;
		if (likely(queue_believes(queue, &returns.chunks, desc->addr, LEDGER_FILL)))
			returns_put(worker, &returns, desc->addr);
	}
	returns_end(queue, &returns);
	ring_release(&queue->rx, &rx);
	queue->rx_bytes += bytes;
	if (!plain)
		queue->rx_continued += continued;
	return count;
}

void mode_rxdrop_run(struct worker *worker)
{
	worker_loop(worker, rxdrop_burst);
}
