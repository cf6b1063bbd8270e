/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * txpush: send copies of the port's template. A frame keeps what was written into it while it goes
 * round, so a template is copied only when the frame last held another port's, or none.
 */
#include <linux/bpf.h>
#include <string.h>

#include "fwd/mode.h"
#include "fwd/worker_loop.h"

static always_inline uint32_t txpush_burst(struct worker *worker, struct queue *queue)
{
	struct tx_job *job = worker->tx_job;
	const struct frame_template *template = &job->template[queue->port];
	uint32_t count = queue_tx_room(queue);
	uint16_t mark = (uint16_t)(queue->port + 1);
	struct sends sends;

	if (count > worker->batch)
		count = worker->batch;
	if (count > queue->tx_left)
		count = (uint32_t)queue->tx_left;
	if (count > worker->pool.count)
		count = worker->pool.count;
	if (!count)
		return 0;
	sends = sends_begin(worker, queue);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t frame = pool_get(&worker->pool);
		uint64_t addr = ((uint64_t)frame << worker->frame_shift) + XDP_PACKET_HEADROOM;

		if (unlikely(job->written[frame] != mark)) {
			memcpy(worker->frames + addr, template->bytes, template->len);
			job->written[frame] = mark;
		}
		sends_put(&sends, (struct xdp_desc){ .addr = addr, .len = template->len });
	}
	if (queue->tx_left != UINT64_MAX)
		queue->tx_left -= count;
	sends_end(queue, &sends);
	return count;
}

void mode_txpush_run(struct worker *worker)
{
	worker_loop(worker, txpush_burst);
}
