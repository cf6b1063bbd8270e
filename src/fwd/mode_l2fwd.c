/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* l2fwd: swap source and destination MAC, send the frame out of the port it came in on. */
#include "fwd/forward.h"
#include "fwd/mode.h"

static always_inline uint32_t l2fwd_burst(struct worker *worker, struct queue *queue, bool plain)
{
	return forward_burst(worker, queue, queue, true, plain);
}

void mode_l2fwd_run(struct worker *worker)
{
	worker_loop(worker, l2fwd_burst);
}
