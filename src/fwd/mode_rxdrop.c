/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* rxdrop: receive, count, give back. */
#include "fwd/mode.h"
#include "fwd/worker_loop.h"

static always_inline uint32_t rxdrop_burst(struct worker *worker, struct queue *queue)
{
	uint32_t count = ring_ready(&queue->rx, worker->batch);
	uint64_t first = ring_peek(&queue->rx);
	uint64_t bytes = 0;

	if (!count)
		return 0;
	if (count > worker->batch)
		count = worker->batch;
	for (uint32_t i = 0; i < count; i++) {
		const struct xdp_desc *desc = ring_desc(&queue->rx, first + i);

		bytes += desc->len;
		if (likely(worker_knows(worker, queue, desc->addr)))
			worker_return(worker, queue, desc->addr);
	}
	ring_release(&queue->rx, count);
	queue->rx_bytes += bytes;
	return count;
}

void mode_rxdrop_run(struct worker *worker)
{
	worker_loop(worker, rxdrop_burst);
}
