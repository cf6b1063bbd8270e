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
	return worker_pass(rig->worker, burst);
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
				 2 * RIG_RING);
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
		fake_receive_address(rig->socket[0], rig->umem.frames_bytes + 256, 60);
		pass(rig, rows[i].burst);
		assert_int_equal(rig->worker->queue[0].lost, 1);
		assert_int_equal(rig->worker->queue[0].drops[DROP_BAD_DESCRIPTOR], 1);
		rig_balance(rig);
		/* The ledger still knows the frame in whose place this came: rig_close() finds it. */
		rig_close(rig);
	}
}

static void txpush_sends_exactly_what_is_left(void **state)
{
	static const unsigned counts[] = { 1, RIG_BATCH - 1, RIG_BATCH, 179, 5000 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		struct rig *rig = rig_open(2);
		struct frame_opts opts = { .len = 60 };

		for (unsigned port = 0; port < 2; port++) {
			opts.src[5] = (uint8_t)(port + 1);
			rig->worker->receives = false;
			frame_build(&rig->worker->tx_job->template[port], &opts);
			rig->worker->queue[port].tx_left = counts[i];
		}
		while (pass(rig, txpush_burst))
			rig_balance(rig);
		for (unsigned port = 0; port < 2; port++) {
			assert_int_equal(rig->socket[port]->sent, counts[i]);
			/* Frames go round between the ports; each sends its own template. */
			assert_memory_equal(fake_sent(rig->socket[port], 0)->bytes,
					    rig->worker->tx_job->template[port].bytes, 60);
			assert_int_equal(rig->worker->queue[port].tx_bytes, counts[i] * 60);
		}
		rig_close(rig);
	}
}

/* One port that sends frames of 60 bytes without end, as worker_start() leaves it for txpush. */
static struct rig *txpush_rig(void)
{
	struct rig *rig = rig_open(1);
	struct frame_opts opts = { .len = 60 };

	rig->worker->receives = false;
	frame_build(&rig->worker->tx_job->template[0], &opts);
	return rig;
}

/* Some drivers misbehave with an empty fill ring, even where nobody receives. */
static void txpush_keeps_its_fill_ring_stocked(void **state)
{
	struct rig *rig = txpush_rig();

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		pass(rig, txpush_burst);
		assert_int_equal(rig->socket[0]->producer[XSK_RING_FILL], 2 * RIG_RING);
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
			 2 * RIG_RING);
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
		cmocka_unit_test(txpush_sends_exactly_what_is_left),
		cmocka_unit_test(txpush_keeps_its_fill_ring_stocked),
		cmocka_unit_test(a_greedy_driver_does_not_starve_txpush),
		cmocka_unit_test(an_empty_fill_ring_recovers_in_one_pass),
		cmocka_unit_test(the_mode_table_is_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
