/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "fwd/inlet.h"

#include <string.h>

#include "fwd/forward.h"

uint32_t inlet_burst(struct worker *worker, struct inlet *inlet)
{
	struct queue *egress = &worker->queue[inlet->port];
	uint32_t ready = ring_ready(&inlet->in, ring_size(&inlet->in));
	uint32_t room = queue_tx_room(egress), taken = 0;
	struct ring_cursor in = ring_peek(&inlet->in), back = ring_take(&inlet->back);
	struct sends sends;

	inlet->held = false;
	if (!ready)
		return 0;
	if (room > worker->pool.count)
		room = worker->pool.count;
	sends = sends_begin(worker, egress, false);
	for (uint32_t i = 0; i < worker->batch && taken < ready; i++) {
		uint32_t descs = packet_descs(&in, ready - taken);

		if (descs > room && !egress->down) {
			inlet->held = true;
			break;
		}
		egress->drops[DROP_LINK_DOWN] += egress->down;
		for (uint32_t j = 0; j < descs; j++) {
			const struct xdp_desc *desc = cursor_desc(&in);

			if (!egress->down)
				sends_copy(&sends, worker, desc,
					   chunks_bytes(&inlet->chunks, desc->addr));
			/* There is always room: a sender has no more out than the ring holds. */
			*cursor_addr(&back) = desc->addr;
		}
		room -= egress->down ? 0 : descs;
		taken += descs;
	}
	sends_end(egress, &sends);
	ring_release(&inlet->in, &in);
	ring_stage(&inlet->back, &back);
	ring_submit(&inlet->back);
	return taken;
}
