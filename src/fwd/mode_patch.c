/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* patch: two ports, each one's frames out of the other, unchanged. */
#include "fwd/forward.h"
#include "fwd/mode.h"

static always_inline uint32_t patch_burst(struct worker *worker, struct queue *queue, bool plain)
{
	return forward_burst(worker, queue, &worker->queue[1 - queue->port], false, plain);
}

void mode_patch_run(struct worker *worker)
{
	worker_loop(worker, patch_burst);
}
