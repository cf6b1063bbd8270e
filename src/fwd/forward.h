/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What l2fwd and patch share: a burst from one port's RX ring to a TX ring, without a copy. */
#pragma once

#include "base/mac.h"
#include "fwd/worker_loop.h"

/*
 * Descriptors of the packet at the cursor, of `ready` that can be read: 1 unless it is continued, 0 if
 * its end is not there yet. A ring full of it and still without an end can only be a kernel gone mad:
 * then all of it is one packet, or nothing would ever move again.
 */
static always_inline uint32_t packet_descs(const struct ring_cursor *rx, uint32_t ready)
{
	for (uint32_t i = 0; i < ready; i++) {
		if (!(cursor_ahead(rx, i)->options & XDP_PKT_CONTD))
			return i + 1;
	}
	return ready > rx->mask ? ready : 0;
}

/* Descriptors that can be read; never more than there are, whatever the kernel says. */
static always_inline uint32_t descs_ready(struct queue *queue)
{
	uint32_t ready = ring_ready(&queue->rx, ring_size(&queue->rx));

	return ready < ring_size(&queue->rx) ? ready : ring_size(&queue->rx);
}

/* Gives back the packet of `descs` descriptors at the cursor, which moves behind it, and counts why.
 * Not counted: a packet of which an address was not believed, for that was counted. */
static inline COLD void forward_drop(struct worker *worker, struct queue *queue,
				     struct ring_cursor *rx, uint32_t descs,
				     enum drop_reason reason)
{
	struct chunks chunks = chunks_of(&worker->chunks, false);
	bool believed = true;

	for (uint32_t i = 0; i < descs; i++) {
		uint64_t addr = cursor_desc(rx)->addr;

		if (queue_believes(queue, &chunks, addr, LEDGER_FILL))
			worker_return(worker, queue, addr);
		else
			believed = false;
	}
	if (believed)
		queue->drops[reason]++;
	queue->rx_continued += descs - 1;
}

/* Bytes of the packet at the cursor. */
static always_inline uint64_t packet_bytes(const struct ring_cursor *rx, uint32_t descs)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < descs; i++)
		bytes += cursor_ahead(rx, i)->len;
	return bytes;
}

/* Takes up to a batch off RX that cannot go on: see worker.h and handover.h for why they are not kept. */
static inline COLD uint32_t forward_discard(struct worker *worker, struct queue *ingress,
					    enum drop_reason reason)
{
	uint32_t ready = descs_ready(ingress), taken = 0;
	struct ring_cursor rx = ring_peek(&ingress->rx);

	for (uint32_t i = 0; i < worker->batch; i++) {
		uint32_t descs = packet_descs(&rx, ready - taken);

		if (!descs)
			break;
		ingress->rx_bytes += packet_bytes(&rx, descs);
		forward_drop(worker, ingress, &rx, descs, reason);
		taken += descs;
	}
	ring_release(&ingress->rx, &rx);
	return taken;
}

/* Looks at the first `count` descriptors, each the beginning of a packet that is about to leave, for a
 * checksum that the sender left to a network card. */
static inline COLD void forward_sample(struct worker *worker, struct queue *ingress,
				       struct ring_cursor rx, uint32_t count)
{
	struct chunks chunks = chunks_of(&worker->chunks, false);

	for (uint32_t i = 0; i < count && ingress->samples; i++) {
		const struct xdp_desc *desc = cursor_desc(&rx);
		enum frame_l4 found;

		if (chunks_doubt(&chunks, desc->addr, LEDGER_FILL, ingress->port) != DROP_REASONS)
			continue; /* it is counted where it is taken */
		found = frame_l4_checksum(chunks_bytes(&chunks, desc->addr), desc->len);
		ingress->samples -= found != FRAME_L4_OTHER;
		ingress->partial_checksums += found == FRAME_L4_PARTIAL;
	}
}

/* True if the kernel may name all of the packet's addresses. What it may not is counted when the packet
 * is dropped. */
static inline bool packet_believable(const struct queue *ingress, const struct chunks *chunks,
				     const struct ring_cursor *rx, uint32_t descs)
{
	for (uint32_t i = 0; i < descs; i++) {
		uint64_t addr = cursor_ahead(rx, i)->addr;

		if (chunks_doubt(chunks, addr, LEDGER_FILL, ingress->port) != DROP_REASONS)
			return false;
	}
	return true;
}

/*
 * A burst of packets of one or more descriptors, each of which leaves whole or is dropped whole. One
 * that is not all there yet, or has no room yet, is left for the next pass. Returns the descriptors.
 */
static always_inline uint32_t forward_packets(struct worker *worker, struct queue *ingress,
					      struct queue *egress, bool swap)
{
	uint32_t room = queue_tx_room(egress);
	uint32_t ready = descs_ready(ingress), taken = 0;
	struct ring_cursor rx = ring_peek(&ingress->rx);
	struct sends sends = sends_begin(worker, egress, false);

	for (uint32_t i = 0; i < worker->batch; i++) {
		uint32_t descs = packet_descs(&rx, ready - taken);
		bool endless;

		if (!descs)
			break;
		endless = cursor_ahead(&rx, descs - 1)->options & XDP_PKT_CONTD;
		if (descs > room && !endless && egress->hands_over) {
			ingress->rx_bytes += packet_bytes(&rx, descs);
			taken += descs;
			forward_drop(worker, ingress, &rx, descs, DROP_HAND_OVER_FULL);
			continue;
		}
		if (descs > room && !endless) {
			ingress->held = !taken;
			break;
		}
		ingress->rx_bytes += packet_bytes(&rx, descs);
		taken += descs;
		if (endless) {
			forward_drop(worker, ingress, &rx, descs, DROP_TOO_LONG);
			continue;
		}
		if (!packet_believable(ingress, &sends.chunks, &rx, descs) ||
		    cursor_ahead(&rx, 0)->len < ETHER_HEADER_LEN) {
			forward_drop(worker, ingress, &rx, descs, DROP_RUNT);
			continue;
		}
		if (unlikely(ingress->samples))
			forward_sample(worker, ingress, rx, 1);
		if (swap)
			mac_swap(chunks_bytes(&sends.chunks, cursor_ahead(&rx, 0)->addr));
		for (uint32_t j = 0; j < descs; j++) {
			chunks_take(&sends.chunks,
				    chunks_frame(&sends.chunks, cursor_ahead(&rx, 0)->addr));
			sends_put(&sends, *cursor_desc(&rx));
		}
		ingress->rx_continued += descs - 1;
		room -= descs;
	}
	sends_end(egress, &sends);
	ring_release(&ingress->rx, &rx);
	return taken;
}

/* The longest frame that the straight path takes, and the longest that there is of one chunk. */
#define FORWARD_LEN_MAX CONF_FRAME_SIZE_MAX

/* One run of frames that go on, of a plain worker: see worker_loop.h. A local variable, which moves on with
 * each of them. */
struct forward_run {
	const struct chunks *chunks;
	const struct xdp_desc *from;
	struct xdp_desc *to;
	ledger_entry entry; /* of the next one */
	uint64_t bytes;
	uint16_t port; /* it comes from */
	bool swap;     /* a constant */
};

/* The nth frame of a block. False: it is not as usual, and nothing was done. */
static always_inline bool run_forward(struct forward_run *run, unsigned nth)
{
	const struct xdp_desc *from = &run->from[nth];
	uint64_t addr = from->addr, len = desc_len_options(from);

	if (unlikely(chunks_doubt(run->chunks, addr, LEDGER_FILL, run->port) != DROP_REASONS))
		return false;
	/* Too short, too long, or with an option. */
	if (unlikely(len - ETHER_HEADER_LEN > FORWARD_LEN_MAX - ETHER_HEADER_LEN))
		return false;
	run->bytes += len;
	run->to[nth].addr = addr;
	desc_set_len_options(&run->to[nth], len);
	if (run->swap)
		mac_swap(chunks_bytes(run->chunks, addr));
	ledger_write(&run->chunks->ledger[chunks_frame(run->chunks, addr)], run->entry++);
	return true;
}

/* Up to `count` frames of a run. Returns how many. */
static always_inline uint32_t run_forwards(struct forward_run *run, uint32_t count)
{
	const ledger_entry first = run->entry;
	const ledger_entry blocks = first + count / RUN_BLOCK * RUN_BLOCK, end = first + count;

	for (; run->entry != blocks; run->from += RUN_BLOCK, run->to += RUN_BLOCK) {
		if (!run_forward(run, 0) || !run_forward(run, 1) || !run_forward(run, 2) ||
		    !run_forward(run, 3))
			return (uint32_t)(run->entry - first);
	}
	for (; run->entry != end && run_forward(run, 0); run->from++)
		run->to++;
	return (uint32_t)(run->entry - first);
}

/* Where a frame is, and where it goes. */
struct forward_at {
	uint64_t rx, tx; /* indices of these rings */
};

/* One frame that the straight path has left. True: there was nothing wrong with it, and it is on TX. */
static inline COLD bool forward_closely(struct worker *worker, struct queue *ingress,
					struct queue *egress, struct forward_at at, bool swap)
{
	const struct chunks chunks = chunks_of(&worker->chunks, true);
	struct sends sends = sends_begin(worker, egress, true);
	struct xdp_desc desc = *ring_desc(&ingress->rx, at.rx);

	ingress->rx_bytes += desc.len;
	if (!queue_believes(ingress, &chunks, desc.addr, LEDGER_FILL))
		return false;
	if (desc.len < ETHER_HEADER_LEN) {
		ingress->drops[DROP_RUNT]++;
		worker_return(worker, ingress, desc.addr);
		return false;
	}
	if (swap)
		mac_swap(chunks_bytes(&chunks, desc.addr));
	sends.tx.index = at.tx;
	sends_put(&sends, desc);
	egress->tx_bytes += desc.len;
	return true;
}

/* Of packets that are one descriptor each. Per packet: one descriptor read, one written, one ledger
 * store; the frame's own bytes are touched only to swap. */
static always_inline uint32_t forward_frames(struct worker *worker, struct queue *ingress,
					     struct queue *egress, uint32_t ready, bool swap)
{
	uint32_t room = queue_tx_room(egress);
	uint32_t count = room < worker->batch ? room : worker->batch;
	struct ring_cursor rx = ring_peek(&ingress->rx);
	struct sends sends = sends_begin(worker, egress, true);
	uint64_t rx_bytes = 0;
	uint32_t straight;

	if (ready < count)
		count = ready;
	if (unlikely(!count)) {
		if (egress->hands_over)
			return forward_discard(worker, ingress, DROP_HAND_OVER_FULL);
		ingress->held = true;
		return 0;
	}
	if (unlikely(ingress->samples))
		forward_sample(worker, ingress, rx, count);
	straight = run_worth(count);
	for (uint32_t left = straight; left;) {
		struct forward_run run = {
			.chunks = &sends.chunks,
			.from = cursor_descs(&rx),
			.to = cursor_descs(&sends.tx),
			.entry = sends.tag | (sends.tx.index & LEDGER_INDEX_MASK),
			.port = ingress->port,
			.swap = swap,
		};
		uint32_t most = cursor_run(&sends.tx, cursor_run(&rx, left));
		uint32_t done = run_forwards(&run, most);

		rx_bytes += run.bytes;
		rx.index += done;
		sends.tx.index += done;
		left -= done;
		if (unlikely(done < most)) {
			sends.tx.index +=
				forward_closely(worker, ingress, egress,
						(struct forward_at){ rx.index++, sends.tx.index },
						swap);
			left--;
		}
	}
	sends.bytes = rx_bytes;
	for (uint32_t i = straight; i < count; i++) {
		struct xdp_desc desc = *cursor_desc(&rx);

		rx_bytes += desc.len;
		if (unlikely(!queue_believes(ingress, &sends.chunks, desc.addr, LEDGER_FILL)))
			continue;
		if (unlikely(desc.len < ETHER_HEADER_LEN)) {
			ingress->drops[DROP_RUNT]++;
			worker_return(worker, ingress, desc.addr);
			continue;
		}
		if (swap)
			mac_swap(chunks_bytes(&sends.chunks, desc.addr));
		sends_put(&sends, desc);
	}
	ingress->rx_bytes += rx_bytes;
	sends_end(egress, &sends);
	ring_release(&ingress->rx, &rx);
	return count;
}

/* One burst. `swap` and `plain` are constants in each caller. */
static always_inline uint32_t forward_burst(struct worker *worker, struct queue *ingress,
					    struct queue *egress, bool swap, bool plain)
{
	uint32_t ready = ring_ready(&ingress->rx, worker->batch);

	ingress->held = false;
	if (!ready) {
		ingress->calls[CALL_RX_EMPTY]++;
		return 0;
	}
	if (unlikely(egress->down))
		return forward_discard(worker, ingress, DROP_LINK_DOWN);
	return plain ? forward_frames(worker, ingress, egress, ready, swap) :
		       forward_packets(worker, ingress, egress, swap);
}
