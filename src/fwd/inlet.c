/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "fwd/inlet.h"

#include <string.h>

#include "fwd/forward.h"

/* One descriptor's bytes into a frame from the pool, which is not empty, and that on the way out. */
static void copy_piece(struct worker *worker, const struct inlet *inlet, struct sends *sends,
		       const struct xdp_desc *from)
{
	uint32_t frame = pool_get(&worker->pool);
	struct xdp_desc desc = {
		.addr = chunks_copy_addr(&sends->chunks, frame, from->len),
		.len = from->len,
		.options = from->options,
	};

	chunks_take(&sends->chunks, frame);
	memcpy(chunks_bytes(&sends->chunks, desc.addr), chunks_bytes(&inlet->chunks, from->addr),
	       from->len);
	sends_put(sends, desc);
}

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
				copy_piece(worker, inlet, &sends, desc);
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
