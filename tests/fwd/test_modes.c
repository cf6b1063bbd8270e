/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/fwd/mode_l2fwd.c"
#include "../../src/fwd/mode_patch.c"
#include "../../src/fwd/mode_rxdrop.c"
#include "../../src/fwd/mode_txpush.c"

#include <errno.h>

#include "fwd/rig.h"

static const struct {
	const char *name;
	burst_fn *burst;
	unsigned ports;
} forwarders[] = {
	{ "l2fwd", l2fwd_burst, 1 },
	{ "patch", patch_burst, 2 },
};

static uint32_t pass(struct rig *rig, burst_fn *burst)
{
	return worker_pass(rig->worker, burst, rig->worker->chunks.plain);
}

/* The socket that frames received on the first one leave by. */
static struct fake_socket *egress_of(struct rig *rig)
{
	return rig->socket[rig->ports - 1];
}

static void rxdrop_counts_and_gives_every_frame_back(void **state)
{
	struct rig *rig = rig_open(1);
	uint8_t bytes[100];

	(void)state;
	for (unsigned i = 0; i < 10000; i++) {
		rig_frame(bytes, 100, i);
		assert_true(fake_receive(rig->socket[0], bytes, 100));
		if (i % 7 == 0)
			pass(rig, rxdrop_burst);
		rig_balance(rig);
	}
	while (pass(rig, rxdrop_burst))
		;
	assert_int_equal(rig->worker->queue[0].rx.own, 10000);
	assert_int_equal(rig->worker->queue[0].rx_bytes, 1000000);
	assert_int_equal(rig->socket[0]->rx_dropped + rig->socket[0]->rx_ring_full, 0);
	rig_close(rig);
}

/* Field case 28: receives exactly ring-size frames, then silence. */
static void stops_after_ring_size_frames_never(void **state)
{
	(void)state;
	for (size_t f = 0; f < ARRAY_SIZE(forwarders); f++) {
		/* Start below 2^32 so that every index wraps on the way. */
		struct rig *rig = rig_open_at(forwarders[f].ports, 0xffffff80ULL);
		uint8_t bytes[60];

		for (unsigned i = 0; i < 40 * RIG_FRAMES; i++) {
			rig_frame(bytes, sizeof(bytes), i);
			assert_true(fake_receive(rig->socket[0], bytes, sizeof(bytes)));
			pass(rig, forwarders[f].burst);
			assert_int_equal(egress_of(rig)->sent, i + 1);
		}
		rig_close(rig);
	}
}

static void l2fwd_swaps_macs_and_nothing_else(void **state)
{
	struct rig *rig = rig_open(1);
	uint8_t bytes[1514];
	const struct fake_frame *frame;

	(void)state;
	for (uint32_t len = 14; len <= 1514; len++) {
		rig_frame(bytes, len, len);
		assert_true(fake_receive(rig->socket[0], bytes, len));
		assert_true(pass(rig, l2fwd_burst) > 0);
		frame = fake_sent(rig->socket[0], 0);
		assert_int_equal(frame->len, len);
		assert_memory_equal(frame->bytes, bytes + 6, 6);
		assert_memory_equal(frame->bytes + 6, bytes, 6);
		assert_memory_equal(frame->bytes + 12, bytes + 12, len - 12);
	}
	rig_close(rig);
}

static void patch_changes_nothing_both_ways(void **state)
{
	struct rig *rig = rig_open(2);
	uint8_t bytes[1514];

	(void)state;
	for (uint32_t len = 14; len <= 1514; len++) {
		for (unsigned from = 0; from < 2; from++) {
			const struct fake_frame *frame;

			rig_frame(bytes, len, len + from);
			assert_true(fake_receive(rig->socket[from], bytes, len));
			pass(rig, patch_burst);
			frame = fake_sent(rig->socket[1 - from], 0);
			assert_int_equal(frame->len, len);
			assert_memory_equal(frame->bytes, bytes, len);
		}
	}
	assert_int_equal(rig->socket[0]->sent, rig->socket[1]->sent);
	rig_close(rig);
}

static void frames_without_a_whole_header_are_dropped_and_counted(void **state)
{
	(void)state;
	for (size_t f = 0; f < ARRAY_SIZE(forwarders); f++) {
		struct rig *rig = rig_open(forwarders[f].ports);
		uint8_t bytes[14];

		for (uint32_t len = 0; len <= 14; len++) {
			rig_frame(bytes, len, len);
			assert_true(fake_receive(rig->socket[0], bytes, len));
		}
		pass(rig, forwarders[f].burst);
		assert_int_equal(egress_of(rig)->sent, 1);
		assert_int_equal(fake_sent(egress_of(rig), 0)->len, 14);
		assert_int_equal(rig->worker->queue[0].drops[DROP_RUNT], 14);
		assert_int_equal(rig->worker->queue[0].rx.own, 15);
		assert_int_equal(rig->worker->queue[0].rx_bytes, 14 * 15 / 2);
		rig_close(rig);
	}
}

static void a_lone_frame_does_not_wait_for_a_burst(void **state)
{
	(void)state;
	for (size_t f = 0; f < ARRAY_SIZE(forwarders); f++) {
		struct rig *rig = rig_open(forwarders[f].ports);
		uint8_t bytes[60] = { 0 };

		assert_int_equal(pass(rig, forwarders[f].burst), 0);
		fake_receive(rig->socket[0], bytes, sizeof(bytes));
		assert_int_equal(pass(rig, forwarders[f].burst), 1);
		assert_int_equal(egress_of(rig)->sent, 1);
		rig_close(rig);
	}
}

/* Field case 41: one direction only must not starve the receiver's fill ring. */
static void one_way_traffic_keeps_the_ingress_filled(void **state)
{
	struct rig *rig = rig_open(2);
	uint8_t bytes[60] = { 0 };

	(void)state;
	for (unsigned from = 0; from < 2; from++) {
		for (unsigned i = 0; i < 100 * RIG_FRAMES; i++) {
			assert_true(fake_receive(rig->socket[from], bytes, sizeof(bytes)));
			if (i % RIG_BATCH == 0)
				pass(rig, patch_burst);
		}
		while (pass(rig, patch_burst))
			;
		assert_int_equal(rig->socket[from]->producer[XSK_RING_FILL] -
					 rig->socket[from]->consumer[XSK_RING_FILL],
				 RIG_STOCK);
	}
	rig_close(rig);
}

static void a_full_egress_holds_rx_back_and_loses_nothing(void **state)
{
	(void)state;
	for (size_t f = 0; f < ARRAY_SIZE(forwarders); f++) {
		struct rig *rig = rig_open(forwarders[f].ports);
		struct fake_socket *egress = egress_of(rig);
		uint8_t bytes[60];

		egress->hold_completions = true;
		for (unsigned i = 0; i < 2 * RIG_RING; i++) {
			rig_frame(bytes, sizeof(bytes), i);
			assert_true(fake_receive(rig->socket[0], bytes, sizeof(bytes)));
			pass(rig, forwarders[f].burst);
			rig_balance(rig);
		}
		assert_int_equal(egress->sent, RIG_RING); /* not more than can be completed */
		assert_true(rig->worker->queue[0].held);
		assert_int_equal(pass(rig, forwarders[f].burst), 0);
		fake_complete(egress);
		egress->hold_completions = false;
		while (pass(rig, forwarders[f].burst))
			;
		assert_int_equal(egress->sent, 2 * RIG_RING);
		assert_false(rig->worker->queue[0].held);
		for (int reason = 0; reason < DROP_REASONS; reason++)
			assert_int_equal(rig->worker->queue[0].drops[reason], 0);
		rig_close(rig);
	}
}

static void a_down_egress_drops_with_a_reason_and_recovers(void **state)
{
	(void)state;
	for (size_t f = 0; f < ARRAY_SIZE(forwarders); f++) {
		struct rig *rig = rig_open(forwarders[f].ports);
		struct fake_socket *egress = egress_of(rig);
		uint8_t bytes[60] = { 0 };

		egress->fail_with = ENETDOWN;
		egress->fails = UINT32_MAX;
		for (unsigned i = 0; i < 10; i++) {
			assert_true(fake_receive(rig->socket[0], bytes, sizeof(bytes)));
			pass(rig, forwarders[f].burst);
		}
		/* The first was queued before anybody knew; it stays queued. */
		assert_int_equal(rig->worker->queue[0].drops[DROP_LINK_DOWN], 9);
		assert_true(rig->worker->queue[rig->ports - 1].down);
		rig_balance(rig);
		egress->fails = 0;
		pass(rig, forwarders[f].burst);
		assert_int_equal(egress->sent, 1);
		assert_true(fake_receive(rig->socket[0], bytes, sizeof(bytes)));
		pass(rig, forwarders[f].burst);
		assert_int_equal(egress->sent, 2);
		rig_close(rig);
	}
}

static void an_address_outside_the_frames_is_lost_not_followed(void **state)
{
	static const struct {
		burst_fn *burst;
		unsigned ports;
	} rows[] = { { rxdrop_burst, 1 }, { l2fwd_burst, 1 }, { patch_burst, 2 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct rig *rig = rig_open(rows[i].ports);
		fake_swallow(rig->socket[0]);
		fake_receive_address(
			rig->socket[0],
			rig->worker->chunks.first_byte + rig->worker->chunks.bytes + 256, 60);
		pass(rig, rows[i].burst);
		assert_int_equal(rig->worker->queue[0].lost, 1);
		assert_int_equal(rig->worker->queue[0].drops[DROP_BAD_DESCRIPTOR], 1);
		rig_balance(rig);
		/* The ledger still knows the frame in whose place this came: rig_close() finds it. */
		rig_close(rig);
	}
}

/* A burst of which one frame is wrong, and what all of them have come to. */
enum { ODD_BURST = RIG_BATCH - 3, ODD_ROUNDS = 10 * ODD_BURST };

struct odd_counts {
	uint64_t sent, sent_bytes, rx_bytes, runts, lost;
};

/* Its address is none of ours in the first rounds, and it is too short in the others. */
static void receive_odd(struct rig *rig, struct odd_counts *counts, unsigned round)
{
	unsigned wrong = round % ODD_BURST;
	uint8_t bytes[60 + ODD_BURST];

	for (unsigned i = 0; i < ODD_BURST; i++) {
		uint32_t len = i == wrong && round >= ODD_BURST ? wrong : 60 + i;

		counts->rx_bytes += len;
		if (i == wrong && round < ODD_BURST) {
			fake_swallow(rig->socket[0]);
			fake_receive_address(
				rig->socket[0],
				rig->worker->chunks.first_byte + rig->worker->chunks.bytes, len);
			counts->lost++;
			continue;
		}
		counts->runts += i == wrong;
		counts->sent += i != wrong;
		counts->sent_bytes += i != wrong ? len : 0;
		rig_frame(bytes, len, round + i);
		assert_true(fake_receive(rig->socket[0], bytes, len));
	}
}

static void others_left_whole(struct rig *rig, unsigned round)
{
	uint8_t bytes[60 + ODD_BURST];

	for (unsigned i = ODD_BURST, nth = 0; i-- > 0;) {
		const struct fake_frame *frame;

		if (i == round % ODD_BURST)
			continue;
		frame = fake_sent(egress_of(rig), nth++);
		rig_frame(bytes, 60 + i, round + i);
		if (rig->ports == 1)
			mac_swap(bytes);
		assert_int_equal(frame->len, 60 + i);
		assert_memory_equal(frame->bytes, bytes, 60 + i);
	}
}

/* At every place of a burst, and of the rings, which end within some of them. */
static void what_is_wrong_with_one_frame_touches_no_other_of_its_burst(void **state)
{
	(void)state;
	for (size_t f = 0; f < ARRAY_SIZE(forwarders); f++) {
		struct rig *rig = rig_open_at(forwarders[f].ports, 0xffffff80ULL);
		const struct queue *queue = &rig->worker->queue[0];
		struct odd_counts counts = { 0 };

		for (unsigned round = 0; round < ODD_ROUNDS; round++) {
			receive_odd(rig, &counts, round);
			pass(rig, forwarders[f].burst);
			assert_int_equal(egress_of(rig)->sent, counts.sent);
			others_left_whole(rig, round);
			rig_balance(rig);
		}
		assert_int_equal(queue->rx_bytes, counts.rx_bytes);
		assert_int_equal(rig->worker->queue[rig->ports - 1].tx_bytes, counts.sent_bytes);
		assert_int_equal(queue->drops[DROP_RUNT], counts.runts);
		assert_int_equal(queue->drops[DROP_BAD_DESCRIPTOR], counts.lost);
		assert_int_equal(queue->lost, counts.lost);
		rig_close(rig);
	}
}

/* Bytes of a frame that a chunk of the rig has room for. */
static uint32_t chunk_room(const struct rig *rig)
{
	return rig->umem.header->frame_size - XDP_PACKET_HEADROOM;
}

/* Field case 18: with multi-buffer a 9,000-byte frame leaves whole and byte-identical. */
static void a_packet_of_several_descriptors_leaves_whole(void **state)
{
	static uint8_t bytes[9014];

	(void)state;
	for (size_t f = 0; f < ARRAY_SIZE(forwarders); f++) {
		struct rig *rig = rig_open(forwarders[f].ports);

		for (unsigned i = 0; i < 2000; i++) {
			uint32_t len = 14 + i * 331 % 9001;
			const struct fake_frame *frame;

			rig_frame(bytes, len, i);
			assert_true(fake_receive(rig->socket[0], bytes, len));
			pass(rig, forwarders[f].burst);
			assert_int_equal(egress_of(rig)->sent, i + 1);
			frame = fake_sent(egress_of(rig), 0);
			assert_int_equal(frame->len, len);
			if (rig->ports == 1)
				mac_swap(bytes);
			assert_memory_equal(frame->bytes, bytes, len);
			rig_balance(rig);
		}
		rig_close(rig);
	}
}

static void packets_and_descriptors_are_counted_apart(void **state)
{
	static uint8_t bytes[9014];
	struct rig *rig = rig_open(2);
	uint32_t pieces = (9014 + chunk_room(rig) - 1) / chunk_room(rig);
	struct worker_counts counts;

	(void)state;
	rig->socket[1]->hold_completions = true;
	for (unsigned i = 0; i < 4; i++)
		fake_receive(rig->socket[0], bytes, sizeof(bytes));
	pass(rig, patch_burst);
	worker_count(rig->worker, &counts);
	assert_int_equal(counts.queue[0].rx_packets, 4);
	assert_int_equal(counts.queue[0].rx_descriptors, 4 * pieces);
	assert_int_equal(counts.queue[0].rx_bytes, 4 * sizeof(bytes));
	assert_int_equal(counts.queue[1].tx_packets, 0); /* sent is what is completed */
	assert_int_equal(counts.queue[1].tx_pending, 4 * pieces);
	assert_int_equal(counts.queue[1].tx_bytes, 0);
	fake_complete(rig->socket[1]);
	worker_count(rig->worker, &counts);
	assert_int_equal(counts.queue[1].tx_packets, 4);
	assert_int_equal(counts.queue[1].tx_descriptors, 4 * pieces);
	assert_int_equal(counts.queue[1].tx_bytes, 4 * sizeof(bytes));
	rig_close(rig);
}

/* Continuation descriptors are never forwarded half. */
static void a_packet_whose_end_is_missing_waits_for_it(void **state)
{
	uint8_t bytes[300];

	(void)state;
	for (size_t f = 0; f < ARRAY_SIZE(forwarders); f++) {
		struct rig *rig = rig_open(forwarders[f].ports);

		rig_frame(bytes, sizeof(bytes), 1);
		fake_receive(rig->socket[0], bytes, 60);
		fake_receive_piece(rig->socket[0], bytes, 100, true);
		fake_receive_piece(rig->socket[0], bytes + 100, 100, true);
		pass(rig, forwarders[f].burst);
		pass(rig, forwarders[f].burst);
		assert_int_equal(egress_of(rig)->sent, 1);
		rig_balance(rig);
		fake_receive_piece(rig->socket[0], bytes + 200, 100, false);
		pass(rig, forwarders[f].burst);
		assert_int_equal(egress_of(rig)->sent, 2);
		assert_int_equal(fake_sent(egress_of(rig), 0)->len, 300);
		assert_memory_equal(fake_sent(egress_of(rig), 0)->bytes + 12, bytes + 12, 288);
		rig_close(rig);
	}
}

static void a_packet_that_has_no_room_waits_whole(void **state)
{
	static uint8_t bytes[9014];
	struct rig *rig = rig_open(2);
	unsigned received = 0;

	(void)state;
	rig->socket[1]->hold_completions = true;
	while (received < 1000 && rig->socket[1]->helds + 8 < RIG_RING) {
		received += fake_receive(rig->socket[0], bytes, sizeof(bytes));
		pass(rig, patch_burst);
	}
	for (unsigned i = 0; i < 4; i++)
		received += fake_receive(rig->socket[0], bytes, sizeof(bytes));
	for (unsigned i = 0; i < 5; i++)
		pass(rig, patch_burst);
	assert_true(rig->socket[1]->sent < received);
	assert_int_equal(rig->socket[1]->partial.len, 0); /* none began and did not end */
	rig_balance(rig);
	fake_complete(rig->socket[1]);
	rig->socket[1]->hold_completions = false;
	for (unsigned i = 0; i < 5; i++)
		pass(rig, patch_burst);
	assert_int_equal(rig->socket[1]->sent, received);
	rig_close(rig);
}

static void a_packet_without_an_end_is_dropped_whole(void **state)
{
	uint8_t byte[20] = { 0 };

	(void)state;
	for (size_t f = 0; f < ARRAY_SIZE(forwarders); f++) {
		struct rig *rig = rig_open(forwarders[f].ports);

		/* Only a kernel gone mad does that. */
		for (unsigned i = 0; i < RIG_RING; i++)
			fake_receive_piece(rig->socket[0], byte, sizeof(byte), true);
		pass(rig, forwarders[f].burst);
		fake_receive(rig->socket[0], byte, sizeof(byte));
		pass(rig, forwarders[f].burst);
		assert_int_equal(rig->worker->queue[0].drops[DROP_TOO_LONG], 1);
		assert_int_equal(egress_of(rig)->sent, 1);
		assert_int_equal(fake_sent(egress_of(rig), 0)->len, sizeof(byte));
		rig_balance(rig);
		rig_close(rig);
	}
}

static void a_packet_with_one_bad_address_is_dropped_whole(void **state)
{
	uint8_t bytes[300];

	(void)state;
	for (size_t f = 0; f < ARRAY_SIZE(forwarders); f++) {
		struct rig *rig = rig_open(forwarders[f].ports);
		uint64_t beyond = rig->worker->chunks.first_byte + rig->worker->chunks.bytes;

		rig_frame(bytes, sizeof(bytes), 1);
		fake_receive_piece(rig->socket[0], bytes, 100, true);
		fake_swallow(rig->socket[0]);
		fake_receive_address(rig->socket[0], beyond + 256, 100);
		fake_receive(rig->socket[0], bytes, 60);
		pass(rig, forwarders[f].burst);
		assert_int_equal(egress_of(rig)->sent, 1);
		assert_int_equal(fake_sent(egress_of(rig), 0)->len, 60);
		assert_int_equal(rig->worker->queue[0].drops[DROP_BAD_DESCRIPTOR], 1);
		assert_int_equal(rig->worker->queue[0].drops[DROP_RUNT], 0);
		assert_int_equal(rig->worker->queue[0].lost, 1);
		rig_balance(rig);
		rig_close(rig);
	}
}

/* Field case 42: the same address delivered twice. */
static void a_frame_that_the_kernel_did_not_have_is_a_ring_violation(void **state)
{
	(void)state;
#ifndef CHECK_OWNERS
	print_message("only debug and sanitizer builds check owners\n");
	skip();
#endif
	for (size_t f = 0; f < ARRAY_SIZE(forwarders); f++) {
		struct rig *rig = rig_open(forwarders[f].ports);
		struct queue *queue = &rig->worker->queue[0], *egress;
		uint8_t bytes[60];
		uint64_t addr;

		egress = &rig->worker->queue[rig->ports - 1];
		rig_frame(bytes, sizeof(bytes), 1);
		egress_of(rig)->hold_completions = true;
		fake_receive(rig->socket[0], bytes, sizeof(bytes));
		addr = ring_desc(&queue->rx, queue->rx.own)->addr;
		pass(rig, forwarders[f].burst);
		/* It is on its way out, and comes in again. */
		fake_swallow(rig->socket[0]);
		fake_receive_address(rig->socket[0], addr, sizeof(bytes));
		pass(rig, forwarders[f].burst);
		assert_int_equal(queue->drops[DROP_RING_VIOLATION], 1);
		assert_int_equal(egress_of(rig)->sent, 1);
		rig_balance(rig);
		/* It is completed, and then once more in the place of another one. */
		egress_of(rig)->hold_completions = false;
		fake_complete(egress_of(rig));
		fake_receive(rig->socket[0], bytes, sizeof(bytes));
		egress_of(rig)->hold_completions = true;
		pass(rig, forwarders[f].burst);
		fake_complete_address(egress_of(rig), addr);
		pass(rig, forwarders[f].burst);
		assert_int_equal(egress->drops[DROP_RING_VIOLATION], rig->ports == 1 ? 2 : 1);
		rig_balance(rig);
		rig_close(rig);
	}
}

/* Our own mistake: the same frame sent twice, and given back while it is on its way out. */
static void a_frame_that_is_not_in_hand_is_not_given_away(void **state)
{
	struct rig *rig = rig_open(1);
	struct queue *queue = &rig->worker->queue[0];
	struct sends sends = sends_begin(rig->worker, queue, false);
	uint32_t frame = pool_get(&rig->worker->pool);
	struct xdp_desc desc = { .len = 60 };

	(void)state;
	desc.addr = chunks_addr(&sends.chunks, frame);
	chunks_take(&sends.chunks, frame);
	sends_put(&sends, desc);
#ifdef CHECK_OWNERS
	sends_put(&sends, desc);
	worker_return(rig->worker, queue, desc.addr);
#endif
	sends_end(queue, &sends);
	queue_kick_tx(queue);
	assert_int_equal(rig->socket[0]->sent, 1);
#ifdef CHECK_OWNERS
	assert_int_equal(queue->drops[DROP_RING_VIOLATION], 2);
#else
	assert_int_equal(queue->drops[DROP_RING_VIOLATION], 0);
#endif
	rig_balance(rig);
	rig_close(rig);
}

static void the_first_frames_are_sampled_for_checksums(void **state)
{
	uint8_t partial[60] = { 0 }, other[60] = { 0 };

	(void)state;
	/* UDP over IPv4 whose checksum is that of the pseudo-header: 17 + 26, addresses 0. */
	partial[12] = 0x08;
	partial[14] = 0x45;
	partial[17] = 46;
	partial[23] = 17;
	partial[41] = 17 + 26;
	partial[59] = 1;
	for (size_t f = 0; f < ARRAY_SIZE(forwarders); f++) {
		struct rig *rig = rig_open(forwarders[f].ports);
		struct queue *queue = &rig->worker->queue[0];

		queue->samples = 10;
		for (unsigned i = 0; i < 30; i++) {
			fake_receive(rig->socket[0], i % 2 ? partial : other, 60);
			pass(rig, forwarders[f].burst);
		}
		assert_int_equal(queue->samples, 0);
		assert_int_equal(queue->partial_checksums, 10);
		assert_int_equal(egress_of(rig)->sent, 30);
		rig_close(rig);
	}
}

/* What generates frames of one size, FCS included. */
static struct conf_forward tx_conf(unsigned size)
{
	return (struct conf_forward){
		.frame_size = rig_shape.frame_size ? rig_shape.frame_size : 2048,
		.batch = RIG_BATCH,
		.frags = true,
		.tx = { .size_min = size, .size_max = size, .clock = CLOCK_MONOTONIC },
	};
}

static void txpush_sends_exactly_what_is_left(void **state)
{
	static const unsigned counts[] = { 1, RIG_BATCH - 1, RIG_BATCH, 179, 5000 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		struct conf_forward conf = tx_conf(64);
		struct rig *rig = rig_open_for(2, 0, &conf);

		rig->worker->receives = false;
		for (unsigned port = 0; port < 2; port++)
			rig->worker->queue[port].tx_left = counts[i];
		while (pass(rig, txpush_burst))
			rig_balance(rig);
		for (unsigned port = 0; port < 2; port++) {
			assert_int_equal(rig->socket[port]->sent, counts[i]);
			/* Frames go round between the ports; each sends its own template. */
			assert_memory_equal(fake_sent(rig->socket[port], 0)->bytes,
					    rig->worker->tx_job->port[port].body, 60);
			assert_int_equal(rig->worker->queue[port].tx_bytes, counts[i] * 60);
		}
		rig_close(rig);
	}
}

/* Sizes in turn, each frame whole, valid and in its place, whatever chunks it lies in. */
static void txpush_sends_every_size_in_turn(void **state)
{
	struct conf_forward conf = tx_conf(64);
	struct rig *rig;
	unsigned sent = 0;

	(void)state;
	conf.tx.size_min = 60 + 4;
	conf.tx.size_max = 4000;
	conf.tx.timestamp = true;
	rig = rig_open_for(1, 0, &conf);
	rig->worker->receives = false;
	while (sent < 3 * 3937) {
		pass(rig, txpush_burst);
		for (; sent < rig->socket[0]->sent; sent++) {
			const struct fake_frame *frame = fake_sent(
				rig->socket[0], (unsigned)(rig->socket[0]->sent - 1 - sent));
			uint32_t len = 60 + sent % 3937;

			assert_int_equal(frame->len, len);
			assert_int_equal(frame_l4_checksum(frame->bytes, len), FRAME_L4_WHOLE);
			/* The checksum over the UDP packet: valid, sequence number included. */
			assert_int_equal(
				frame_checksum(frame->bytes + 34, len - 34,
					       0xc000 + 0x0201 + 0xc000 + 0x0202 + 17 + (len - 34)),
				0);
			assert_int_equal(frame->bytes[46] << 24 | frame->bytes[47] << 16 |
						 frame->bytes[48] << 8 | frame->bytes[49],
					 sent);
		}
	}
	rig_close(rig);
}

static void an_imix_has_seven_four_one(void **state)
{
	struct conf_forward conf = tx_conf(64);
	unsigned small = 0, middle = 0, large = 0;
	struct rig *rig;

	(void)state;
	conf.tx.sizes = CONF_SIZES_IMIX;
	conf.tx.size_max = 1518;
	rig = rig_open_for(1, 0, &conf);
	rig->worker->receives = false;
	rig->worker->queue[0].tx_left = 48;
	while (pass(rig, txpush_burst))
		;
	assert_int_equal(rig->socket[0]->sent, 48);
	for (unsigned i = 0; i < 48; i++) {
		uint32_t len = fake_sent(rig->socket[0], i)->len;

		small += len == 60;
		middle += len == 590;
		large += len == 1514;
	}
	assert_int_equal(small, 28);
	assert_int_equal(middle, 16);
	assert_int_equal(large, 4);
	rig_close(rig);
}

/* Sends at 20,000 a second for 50 ms. True if no other program kept us from it for long: what is missed in
 * such a time is not made up for. */
static bool never_too_fast(void)
{
	struct conf_forward conf = tx_conf(64);
	uint64_t start_ns, before_ns, end_ns, longest_ns = 0, sent, due;
	struct rig *rig;

	conf.tx.pps = 20000;
	rig = rig_open_for(2, 0, &conf);
	rig->worker->receives = false;
	start_ns = end_ns = clock_now_ns();
	do {
		before_ns = end_ns;
		pass(rig, txpush_burst);
		end_ns = clock_now_ns();
		if (end_ns - before_ns > longest_ns)
			longest_ns = end_ns - before_ns;
	} while (end_ns - start_ns < 50 * NSEC_PER_MSEC);
	sent = rig->socket[0]->sent + rig->socket[1]->sent;
	due = (end_ns - start_ns) * 20000 / NSEC_PER_SEC;
	assert_true(sent <= due);
	if (longest_ns < NSEC_PER_MSEC) {
		assert_true(sent >= due / 2);
		assert_in_range(rig->socket[0]->sent, rig->socket[1]->sent - 1,
				rig->socket[1]->sent + 1);
	}
	rig_close(rig);
	return longest_ns < NSEC_PER_MSEC;
}

static void a_given_rate_is_not_exceeded(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {
		if (never_too_fast())
			return;
	}
	skip(); /* a host on which no 50 ms pass undisturbed */
}

static void a_cycle_sends_one_batch_a_queue(void **state)
{
	struct conf_forward conf = tx_conf(64);
	struct worker_counts counts;
	uint64_t start_ns;
	struct rig *rig;

	(void)state;
	conf.tx.cycle_us = 5000;
	rig = rig_open_for(2, 0, &conf);
	rig->worker->receives = false;
	assert_true(rig->worker->timed);
	start_ns = clock_now_ns();
	while (clock_now_ns() - start_ns < 28 * NSEC_PER_MSEC) {
		if (!pass(rig, txpush_burst))
			worker_wait_due(rig->worker);
	}
	worker_count(rig->worker, &counts);
	assert_in_range(counts.cycle.cycles, 1, 6);
	assert_int_equal(counts.cycle.period_ns, 5000000);
	assert_true(counts.cycle.min_ns <= counts.cycle.max_ns);
	for (unsigned i = 0; i < 2; i++)
		assert_in_range(rig->socket[i]->sent, (counts.cycle.cycles - 1) * RIG_BATCH,
				counts.cycle.cycles * RIG_BATCH);
	rig_close(rig);
}

/* One port that sends frames of 60 bytes without end, as worker_start() leaves it for txpush. */
static struct rig *txpush_rig(void)
{
	struct conf_forward conf = tx_conf(64);
	struct rig *rig = rig_open_for(1, 0, &conf);

	rig->worker->receives = false;
	return rig;
}

/* Some drivers misbehave with an empty fill ring, even where nobody receives. */
static void txpush_keeps_its_fill_ring_stocked(void **state)
{
	struct rig *rig = txpush_rig();

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		pass(rig, txpush_burst);
		assert_int_equal(rig->socket[0]->producer[XSK_RING_FILL], RIG_STOCK);
	}
	assert_int_equal(rig->socket[0]->sent, 100 * RIG_BATCH);
	rig_close(rig);
}

/* A zero-copy driver with a large ring of its own takes all of fill: it must not get every frame. */
static void a_greedy_driver_does_not_starve_txpush(void **state)
{
	struct rig *rig = txpush_rig();

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		while (rig->socket[0]->consumer[XSK_RING_FILL] !=
		       rig->socket[0]->producer[XSK_RING_FILL])
			fake_swallow(rig->socket[0]);
		assert_int_equal(pass(rig, txpush_burst) >= RIG_BATCH, true);
	}
	assert_int_equal(rig->socket[0]->sent, 100 * RIG_BATCH);
	rig_close(rig);
}

/* Field case 29: after a stall the fill ring comes back by itself. */
static void an_empty_fill_ring_recovers_in_one_pass(void **state)
{
	struct rig *rig = rig_open(1);
	uint8_t bytes[60] = { 0 };
	unsigned received = 0;

	(void)state;
	for (unsigned i = 0; i < 10 * RIG_FRAMES; i++)
		received += fake_receive(rig->socket[0], bytes, sizeof(bytes));
	assert_int_equal(received, RIG_RING);
	rig_balance(rig);
	while (pass(rig, rxdrop_burst))
		;
	/* All but the one frame that the kernel keeps since RX was full. */
	assert_int_equal(rig->socket[0]->producer[XSK_RING_FILL] -
				 rig->socket[0]->consumer[XSK_RING_FILL],
			 RIG_STOCK - 1);
	rig_close(rig);
}

static void the_mode_table_is_whole(void **state)
{
	(void)state;
	for (int i = CONF_MODE_RXDROP; i <= CONF_MODE_PATCH; i++) {
		const struct mode *mode = mode_of((enum conf_mode)i);

		assert_non_null(mode->name);
		assert_non_null(mode->row_name);
		assert_non_null(mode->run);
	}
	assert_string_equal(mode_of(CONF_MODE_TXPUSH)->row_name, "txonly");
	assert_false(mode_of(CONF_MODE_TXPUSH)->receives);
	assert_true(mode_of(CONF_MODE_PATCH)->promiscuous);
}

int main(void)
{
	/* Over chunks and a worker of every kind. */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rxdrop_counts_and_gives_every_frame_back),
		cmocka_unit_test(stops_after_ring_size_frames_never),
		cmocka_unit_test(l2fwd_swaps_macs_and_nothing_else),
		cmocka_unit_test(patch_changes_nothing_both_ways),
		cmocka_unit_test(frames_without_a_whole_header_are_dropped_and_counted),
		cmocka_unit_test(a_lone_frame_does_not_wait_for_a_burst),
		cmocka_unit_test(one_way_traffic_keeps_the_ingress_filled),
		cmocka_unit_test(a_full_egress_holds_rx_back_and_loses_nothing),
		cmocka_unit_test(a_down_egress_drops_with_a_reason_and_recovers),
		cmocka_unit_test(an_address_outside_the_frames_is_lost_not_followed),
		cmocka_unit_test(what_is_wrong_with_one_frame_touches_no_other_of_its_burst),
		cmocka_unit_test(txpush_sends_exactly_what_is_left),
		cmocka_unit_test(txpush_keeps_its_fill_ring_stocked),
		cmocka_unit_test(a_greedy_driver_does_not_starve_txpush),
		cmocka_unit_test(an_empty_fill_ring_recovers_in_one_pass),
		cmocka_unit_test(the_mode_table_is_whole),
		cmocka_unit_test(a_frame_that_the_kernel_did_not_have_is_a_ring_violation),
		cmocka_unit_test(a_frame_that_is_not_in_hand_is_not_given_away),
		cmocka_unit_test(the_first_frames_are_sampled_for_checksums),
	};
	/* Where a packet may take several descriptors. */
	const struct CMUnitTest general_tests[] = {
		cmocka_unit_test(a_packet_of_several_descriptors_leaves_whole),
		cmocka_unit_test(packets_and_descriptors_are_counted_apart),
		cmocka_unit_test(a_packet_whose_end_is_missing_waits_for_it),
		cmocka_unit_test(a_packet_that_has_no_room_waits_whole),
		cmocka_unit_test(a_packet_without_an_end_is_dropped_whole),
		cmocka_unit_test(a_packet_with_one_bad_address_is_dropped_whole),
		cmocka_unit_test(txpush_sends_every_size_in_turn),
		cmocka_unit_test(an_imix_has_seven_four_one),
		cmocka_unit_test(a_given_rate_is_not_exceeded),
		cmocka_unit_test(a_cycle_sends_one_batch_a_queue),
	};

	static const struct rig_shape shapes[] = {
		{ "plain", false, 0, false },
		{ "general", true, 0, false },
		{ "unaligned", true, 3000, false },
		{ "slice", true, 0, true },
		{ "unaligned slice", false, 2049, true },
	};
	int failed = 0;

	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		rig_shape = shapes[i];
		failed += cmocka_run_group_tests_name(shapes[i].name, tests, NULL, NULL);
		if (i)
			failed += cmocka_run_group_tests_name(shapes[i].name, general_tests, NULL,
							      NULL);
	}
	return failed;
}
