/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets that leave by one port or several: each port but the last gets a copy, in frames of the worker's
 * pool, and the last the frames themselves.
 *
 * A port without room does not hold the others up, nor RX: its copy is dropped and counted there. One that
 * is down costs nothing and gets nothing. For every packet that was received, over all ports,
 *
 *	received + copies = sent + handed over + dropped
 *
 * where `copies` counts with the port that received it. Worker's thread.
 */
#pragma once

#include <string.h>

#include "fwd/forward.h"

/* One port that packets of this burst leave by. */
struct outlet {
	struct sends sends;
	uint32_t room; /* descriptors */
};

/* Those of a burst from one port. A local variable. */
struct outlets {
	struct worker *worker;
	struct queue *ingress;
	uint32_t open; /* those that were begun, as bits */
	struct outlet port[CONF_PORTS_MAX];
};

static always_inline void outlets_begin(struct outlets *outlets, struct worker *worker,
					struct queue *ingress)
{
	outlets->worker = worker;
	outlets->ingress = ingress;
	outlets->open = 0; /* the others are begun when they are needed */
}

/* The port's outlet, which is begun when it is first needed. */
static always_inline struct outlet *outlet_of(struct outlets *outlets, unsigned port, bool plain)
{
	struct outlet *outlet = &outlets->port[port];

	if (!(outlets->open & 1U << port)) {
		const struct queue *queue = &outlets->worker->queue[port];

		outlets->open |= 1U << port;
		outlet->sends = sends_begin(outlets->worker, queue, plain);
		outlet->room = queue_tx_room(queue);
	}
	outlet->sends.chunks.plain = plain; /* so that the compiler knows as well */
	return outlet;
}

/* Announces what was put, on every port. */
static always_inline void outlets_end(const struct outlets *outlets)
{
	for (uint32_t left = outlets->open; left; left &= left - 1) {
		unsigned port = (unsigned)__builtin_ctz(left);

		sends_end(&outlets->worker->queue[port], &outlets->port[port].sends);
	}
}

/* The packet of `descs` descriptors at the cursor, which stays, into as many frames of the pool, which has
 * them, and these on their way out. */
static inline void outlet_copy(struct outlet *outlet, struct worker *worker,
			       const struct ring_cursor *rx, uint32_t descs)
{
	struct sends *sends = &outlet->sends;

	for (uint32_t i = 0; i < descs; i++) {
		const struct xdp_desc *from = cursor_ahead(rx, i);

		sends_copy(sends, worker, from, chunks_bytes(&sends->chunks, from->addr));
	}
	outlet->room -= descs;
}

/* The packet itself, whose frames the kernel may name; the cursor moves behind it. */
static always_inline void outlet_move(struct outlet *outlet, struct ring_cursor *rx, uint32_t descs)
{
	struct sends *sends = &outlet->sends;

	for (uint32_t i = 0; i < descs; i++) {
		chunks_take(&sends->chunks,
			    chunks_frame(&sends->chunks, cursor_ahead(rx, 0)->addr));
		sends_put(sends, *cursor_desc(rx));
	}
	outlet->room -= descs;
}

/* Gives the packet's frames back, what became of it having been counted; the cursor moves behind it. */
static inline COLD void packet_return(struct worker *worker, struct queue *ingress,
				      struct ring_cursor *rx, uint32_t descs)
{
	struct chunks chunks = chunks_of(&worker->chunks, false);

	for (uint32_t i = 0; i < descs; i++) {
		uint64_t addr = cursor_desc(rx)->addr;

		chunks_take(&chunks, chunks_frame(&chunks, addr));
		worker_return(worker, ingress, addr);
	}
}

/* Of some ports, as bits: those that are not down. */
static always_inline uint32_t ports_up(const struct worker *worker, uint32_t ports)
{
	uint32_t up = ports;

	for (uint32_t left = ports; left; left &= left - 1) {
		if (unlikely(worker->queue[__builtin_ctz(left)].down))
			up &= ~(left & -left);
	}
	return up;
}

/* Of some ports, as bits: those that have room for the packet. For the others it is dropped there. */
static always_inline uint32_t ports_with_room(struct outlets *outlets, uint32_t ports,
					      uint32_t descs, bool plain)
{
	uint32_t able = ports;

	for (uint32_t left = ports; left; left &= left - 1) {
		unsigned port = (unsigned)__builtin_ctz(left);
		struct queue *queue = &outlets->worker->queue[port];

		if (likely(outlet_of(outlets, port, plain)->room >= descs))
			continue;
		queue->drops[queue->hands_over ? DROP_HAND_OVER_FULL : DROP_TX_FULL]++;
		able &= ~(1U << port);
	}
	return able;
}

/*
 * Which of these ports, at least one, given as bits, take the packet of `descs` descriptors at the cursor,
 * whose frames the kernel may name, as bits; the other ones are accounted for. 0: none, and then it is
 * dropped and the cursor moves behind it.
 */
static always_inline uint32_t flood_begin(struct outlets *outlets, struct ring_cursor *rx,
					  uint32_t descs, uint32_t ports, bool plain)
{
	struct worker *worker = outlets->worker;
	struct queue *ingress = outlets->ingress;
	uint32_t able = ports_up(worker, ports);

	if (unlikely(!able)) {
		forward_drop(worker, ingress, rx, descs, DROP_LINK_DOWN);
		return 0;
	}
	if (able & (able - 1))
		ingress->copies += (uint32_t)__builtin_popcount(able) - 1;
	able = ports_with_room(outlets, able, descs, plain);
	if (!plain)
		ingress->rx_continued += descs - 1;
	if (unlikely(!able))
		packet_return(worker, ingress, rx, descs);
	return able;
}

/* Sends the packet out of each of these ports; the cursor moves behind it. As flood_begin() has it. */
static always_inline void flood_packet(struct outlets *outlets, struct ring_cursor *rx,
				       uint32_t descs, uint32_t ports, bool plain)
{
	struct worker *worker = outlets->worker;
	uint32_t able = flood_begin(outlets, rx, descs, ports, plain);

	if (unlikely(!able))
		return;
	for (; able & (able - 1); able &= able - 1) {
		unsigned port = (unsigned)__builtin_ctz(able);

		if (worker->pool.count < descs)
			worker->queue[port].drops[DROP_NO_FRAME]++;
		else
			outlet_copy(outlet_of(outlets, port, plain), worker, rx, descs);
	}
	outlet_move(outlet_of(outlets, (unsigned)__builtin_ctz(able), plain), rx, descs);
}
