/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/fwd/mode_bridge.c"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fwd/rig.h"

#define BROADCAST 0xff

/* A bridge of three ports, or as the test has it. */
static struct bridge_opts opts;

static void default_opts(void)
{
	opts = (struct bridge_opts){ .ports = 3,
				     .workers = 1,
				     .stations_max = 1024,
				     .ageing_s = 300,
				     .reserved = BRIDGE_RESERVED_STP };
	for (unsigned i = 0; i < CONF_PORTS_MAX; i++)
		opts.port[i].learn_limit = UINT32_MAX;
}

static struct rig *bridge_rig(void)
{
	struct rig *rig = rig_open(3);

	assert_int_equal(bridge_new(&rig->worker->bridge, &opts), 0);
	rig->worker->fdb_view = fdb_view(rig->worker->bridge->fdb, 0);
	rig->worker->storm = rig->worker->bridge->storm;
	rig->worker->probes = rig->worker->bridge->probes;
	for (unsigned i = 0; i < 3; i++)
		bridge_set_mac(rig->worker->bridge, i,
			       (const uint8_t[]){ 2, 0, 0, 0, 0xee, (uint8_t)i });
	return rig;
}

static uint64_t drops(const struct rig *rig, enum drop_reason reason)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < 3; i++)
		sum += rig->worker->queue[i].drops[reason];
	return sum;
}

static uint64_t sent(const struct rig *rig)
{
	return rig->socket[0]->sent + rig->socket[1]->sent + rig->socket[2]->sent;
}

/* For every packet: received + copies + probes = sent + dropped. */
static void bridge_close(struct rig *rig)
{
	struct bridge *bridge = rig->worker->bridge;
	uint64_t in = 0, out = 0;

	for (unsigned i = 0; i < 3; i++) {
		const struct queue *queue = &rig->worker->queue[i];

		in += queue->rx.own - queue->rx_continued + queue->copies + queue->probes;
		out += queue->tx.own - queue->tx_continued;
	}
	for (int i = 0; i < DROP_REASONS; i++)
		out += drops(rig, (enum drop_reason)i);
	assert_int_equal(in, out);
	rig_close(rig);
	bridge_free(bridge);
}

static uint32_t pass(struct rig *rig)
{
	return worker_pass(rig->worker, bridge_burst, rig->worker->chunks.plain);
}

/* The station of that number, 0 to 254; BROADCAST: all. */
static void put_mac(uint8_t *bytes, unsigned station)
{
	memset(bytes, station == BROADCAST ? 0xff : 0, MAC_LEN);
	if (station != BROADCAST) {
		bytes[0] = 2;
		bytes[5] = (uint8_t)station;
	}
}

static void make_frame(uint8_t *bytes, uint32_t len, unsigned from, unsigned to)
{
	rig_frame(bytes, len, from + to);
	put_mac(bytes, to);
	put_mac(bytes + MAC_LEN, from);
	bytes[12] = 0x08;
	bytes[13] = 0;
}

static void receive(struct rig *rig, unsigned port, unsigned from, unsigned to, uint32_t len)
{
	uint8_t bytes[9014];

	make_frame(bytes, len, from, to);
	assert_true(fake_receive(rig->socket[port], bytes, len));
}

static void assert_sent(struct rig *rig, unsigned port, unsigned from, unsigned to, uint32_t len)
{
	const struct fake_frame *frame = fake_sent(rig->socket[port], 0);
	uint8_t bytes[9014];

	make_frame(bytes, len, from, to);
	assert_int_equal(frame->len, len);
	assert_memory_equal(frame->bytes, bytes, len);
}

/* What the ports have sent since the last call. */
static void assert_moved(struct rig *rig, unsigned first, unsigned second, unsigned third)
{
	static uint64_t before[3];
	const unsigned want[3] = { first, second, third };

	for (unsigned i = 0; i < 3; i++) {
		if (rig->socket[i]->sent < before[i])
			before[i] = 0; /* another rig */
	}
	for (unsigned i = 0; i < 3; i++) {
		uint64_t moved = rig->socket[i]->sent - before[i];

		before[i] = rig->socket[i]->sent;
		assert_int_equal(moved, want[i]);
	}
}

/* Begins that count. */
static struct rig *bridge_open(void)
{
	struct rig *rig = bridge_rig();

	for (unsigned i = 0; i < 3; i++)
		rig->socket[i]->sent = 0;
	assert_moved(rig, 0, 0, 0);
	return rig;
}

static void an_unknown_destination_gets_to_all_others_and_a_known_one_alone(void **state)
{
	struct rig *rig = bridge_open();

	(void)state;
	for (uint32_t len = 14; len < 1500; len += 33) {
		unsigned a = len % 200, b = a + 1;

		fdb_flush(rig->worker->bridge->fdb,
			  &(struct fdb_filter){ .port = -1, .vlan = -1, .learned = true });
		receive(rig, 0, a, b, len);
		pass(rig);
		assert_moved(rig, 0, 1, 1);
		assert_sent(rig, 1, a, b, len);
		assert_sent(rig, 2, a, b, len);
		receive(rig, 2, b, a, len);
		pass(rig);
		assert_moved(rig, 1, 0, 0);
		assert_sent(rig, 0, b, a, len);
		receive(rig, 0, a, b, len);
		pass(rig);
		assert_moved(rig, 0, 0, 1);
		rig_balance(rig);
	}
	assert_int_equal(rig->worker->queue[0].flooded, rig->worker->queue[0].copies);
	bridge_close(rig);
}

static void a_group_is_flooded_and_never_to_where_it_came_from(void **state)
{
	struct rig *rig = bridge_open();

	(void)state;
	for (unsigned i = 0; i < 40 * RIG_FRAMES; i++) {
		unsigned port = i % 3;

		receive(rig, port, 10 + port, BROADCAST, 60 + i % 100);
		pass(rig);
		assert_moved(rig, port != 0, port != 1, port != 2);
		assert_sent(rig, (port + 1) % 3, 10 + port, BROADCAST, 60 + i % 100);
		rig_balance(rig);
	}
	for (int reason = 0; reason < DROP_REASONS; reason++)
		assert_int_equal(drops(rig, (enum drop_reason)reason), 0);
	bridge_close(rig);
}

static void a_burst_is_kept_in_order(void **state)
{
	struct rig *rig = bridge_open();

	(void)state;
	receive(rig, 1, 20, BROADCAST, 60);
	pass(rig);
	for (unsigned i = 0; i < RIG_BATCH; i++)
		receive(rig, 0, 10, i % 3 ? 20 : BROADCAST, 60 + i);
	pass(rig);
	for (unsigned i = 0; i < RIG_BATCH; i++) {
		const struct fake_frame *frame = fake_sent(rig->socket[1], RIG_BATCH - 1 - i);

		assert_int_equal(frame->len, 60 + i);
	}
	bridge_close(rig);
}

static void a_station_that_moves_is_found_where_it_is(void **state)
{
	struct rig *rig = bridge_open();
	struct fdb_move move;

	(void)state;
	receive(rig, 0, 10, BROADCAST, 60);
	pass(rig);
	receive(rig, 1, 10, BROADCAST, 60);
	receive(rig, 2, 30, 10, 60);
	pass(rig);
	assert_moved(rig, 1, 2, 2); /* broadcasts to 1 and 2, to 0 and 2; and the one for it */
	assert_true(fdb_last_move(rig->worker->bridge->fdb, &move));
	assert_int_equal(move.from, 0);
	assert_int_equal(move.to, 1);
	bridge_close(rig);
}

static void what_is_for_its_own_side_is_not_sent(void **state)
{
	struct rig *rig = bridge_open();

	(void)state;
	receive(rig, 0, 10, BROADCAST, 60);
	receive(rig, 0, 11, 10, 60);
	pass(rig);
	assert_moved(rig, 0, 1, 1);
	assert_int_equal(rig->worker->queue[0].drops[DROP_SAME_PORT], 1);
	bridge_close(rig);
	opts.port[0].hairpin = true;
	rig = bridge_open();
	receive(rig, 0, 10, BROADCAST, 60);
	receive(rig, 0, 11, 10, 60);
	pass(rig);
	assert_moved(rig, 2, 1, 1);
	assert_sent(rig, 0, 11, 10, 60);
	assert_int_equal(drops(rig, DROP_SAME_PORT), 0);
	bridge_close(rig);
}

static void isolated_ports_reach_the_others_only(void **state)
{
	struct rig *rig;

	(void)state;
	opts.port[0].isolated = opts.port[1].isolated = true;
	rig = bridge_open();
	receive(rig, 0, 10, BROADCAST, 60);
	receive(rig, 1, 20, 10, 60);
	receive(rig, 2, 30, 10, 60);
	receive(rig, 2, 30, BROADCAST, 60);
	pass(rig);
	assert_moved(rig, 2, 1, 1);
	assert_int_equal(rig->worker->queue[1].drops[DROP_ISOLATED], 1);
	bridge_close(rig);
}

static void a_blocked_station_neither_sends_nor_receives(void **state)
{
	struct rig *rig = bridge_open();
	uint8_t mac[MAC_LEN];

	(void)state;
	put_mac(mac, 10);
	assert_int_equal(fdb_add(rig->worker->bridge->fdb, fdb_key(0, mac), FDB_BLOCKED), 0);
	receive(rig, 0, 10, BROADCAST, 60);
	receive(rig, 1, 20, 10, 60);
	pass(rig);
	assert_moved(rig, 0, 0, 0);
	assert_int_equal(drops(rig, DROP_BLOCKED), 2);
	bridge_close(rig);
}

/* Room for one packet less than what is flooded, on one port of two. */
static void a_full_port_loses_its_copies_and_no_others(void **state)
{
	struct rig *rig = bridge_open();

	(void)state;
	rig->socket[2]->hold_completions = true;
	for (unsigned i = 0; i < 2 * RIG_RING; i++) {
		receive(rig, 0, 10, BROADCAST, 60);
		pass(rig);
		rig_balance(rig);
	}
	assert_moved(rig, 0, 2 * RIG_RING, RIG_RING);
	assert_int_equal(rig->worker->queue[2].drops[DROP_TX_FULL], RIG_RING);
	assert_int_equal(drops(rig, DROP_TX_FULL), RIG_RING);
	assert_false(rig->worker->queue[0].held);
	/* And with all of them full. */
	rig->socket[1]->hold_completions = true;
	for (unsigned i = 0; i < 2 * RIG_RING; i++) {
		receive(rig, 0, 10, BROADCAST, 60);
		pass(rig);
	}
	assert_moved(rig, 0, RIG_RING, 0);
	fake_complete(rig->socket[1]);
	fake_complete(rig->socket[2]);
	rig->socket[1]->hold_completions = rig->socket[2]->hold_completions = false;
	pass(rig);
	receive(rig, 0, 10, BROADCAST, 60);
	pass(rig);
	assert_moved(rig, 0, 1, 1);
	bridge_close(rig);
}

static void without_frames_the_last_port_still_gets_the_packet(void **state)
{
	struct rig *rig = bridge_open();
	struct pool *pool = &rig->worker->pool;
	uint32_t left = pool->count;

	(void)state;
	pool->count = 0;
	receive(rig, 0, 10, BROADCAST, 60);
	bridge_burst(rig->worker, &rig->worker->queue[0], rig->worker->chunks.plain);
	assert_int_equal(pool->count, 0);
	pool->count = left;
	pass(rig);
	assert_moved(rig, 0, 0, 1);
	assert_int_equal(rig->worker->queue[1].drops[DROP_NO_FRAME], 1);
	bridge_close(rig);
}

static void a_port_that_is_down_costs_the_others_nothing(void **state)
{
	struct rig *rig = bridge_open();

	(void)state;
	rig->worker->queue[2].down = true;
	receive(rig, 0, 10, BROADCAST, 60);
	bridge_burst(rig->worker, &rig->worker->queue[0], rig->worker->chunks.plain);
	assert_int_equal(rig->worker->queue[0].copies, 0);
	rig->worker->queue[1].down = true;
	receive(rig, 0, 10, BROADCAST, 60);
	bridge_burst(rig->worker, &rig->worker->queue[0], rig->worker->chunks.plain);
	rig->worker->queue[1].down = rig->worker->queue[2].down = false;
	pass(rig);
	assert_moved(rig, 0, 1, 0);
	assert_int_equal(rig->worker->queue[0].drops[DROP_LINK_DOWN], 1);
	bridge_close(rig);
}

static void bad_frames_have_a_counter_each(void **state)
{
	static const struct {
		const char *name;
		uint8_t bytes[20];
		uint32_t len;
		enum drop_reason want; /* DROP_REASONS: it is flooded */
	} cases[] = {
		{ "nothing", { 0 }, 0, DROP_RUNT },
		{ "13 bytes", { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8 }, 13, DROP_RUNT },
		{ "14 bytes", { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0 }, 14, DROP_REASONS },
		{ "from a group",
		  { 2, 0, 0, 0, 0, 1, 3, 0, 0, 0, 0, 2, 8, 0 },
		  14,
		  DROP_SOURCE_GROUP },
		{ "from all",
		  { 2, 0, 0, 0, 0, 1, 255, 255, 255, 255, 255, 255, 8, 0 },
		  14,
		  DROP_SOURCE_GROUP },
		{ "from nobody",
		  { 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 8, 0 },
		  14,
		  DROP_SOURCE_ZERO },
		{ "from us", { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0xee, 2, 8, 0 }, 14, DROP_SOURCE_OWN },
		{ "to us", { 2, 0, 0, 0, 0xee, 2, 2, 0, 0, 0, 0, 2, 8, 0 }, 14, DROP_REASONS },
		{ "tag cut off",
		  { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0, 5, 8 },
		  17,
		  DROP_TAG_CUT },
		{ "tagged",
		  { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0, 5, 8, 0 },
		  18,
		  DROP_REASONS },
		{ "priority tag",
		  { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0xe0, 0, 8, 0 },
		  18,
		  DROP_REASONS },
		{ "VLAN 4095",
		  { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0xef, 0xff, 8, 0 },
		  18,
		  DROP_VLAN_RESERVED },
		{ "QinQ, cut off in the inner tag",
		  { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xa8, 0, 5, 0x81, 0 },
		  18,
		  DROP_REASONS },
		{ "STP", { 1, 0x80, 0xc2, 0, 0, 0, 2, 0, 0, 0, 0, 2, 0, 4 }, 14, DROP_REASONS },
		{ "PAUSE",
		  { 1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 8 },
		  14,
		  DROP_RESERVED },
		{ "LLDP",
		  { 1, 0x80, 0xc2, 0, 0, 0x0e, 2, 0, 0, 0, 0, 2, 0x88, 0xcc },
		  14,
		  DROP_RESERVED },
		{ "GVRP", { 1, 0x80, 0xc2, 0, 0, 0x21, 2, 0, 0, 0, 0, 2, 0, 4 }, 14, DROP_REASONS },
		{ "to nobody", { 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2, 8, 0 }, 14, DROP_REASONS },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rig *rig = bridge_open();

		print_message("%s\n", cases[i].name);
		assert_true(fake_receive(rig->socket[0], cases[i].bytes, cases[i].len));
		pass(rig);
		for (int reason = 0; reason < DROP_REASONS; reason++)
			assert_int_equal(rig->worker->queue[0].drops[reason],
					 (enum drop_reason)reason == cases[i].want);
		if (cases[i].want == DROP_REASONS) {
			assert_moved(rig, 0, 1, 1);
			assert_int_equal(fake_sent(rig->socket[1], 0)->len, cases[i].len);
			assert_memory_equal(fake_sent(rig->socket[2], 0)->bytes, cases[i].bytes,
					    cases[i].len);
		} else {
			assert_int_equal(sent(rig), 0);
			assert_int_equal(fdb_stations(rig->worker->bridge->fdb), 0);
		}
		bridge_close(rig);
	}
}

static void reserved_addresses_cross_where_they_may(void **state)
{
	static const uint16_t masks[] = { BRIDGE_RESERVED_STP, BRIDGE_RESERVED_MOST,
					  BRIDGE_RESERVED_ALL };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(masks); i++) {
		struct rig *rig;

		opts.reserved = masks[i];
		rig = bridge_open();
		for (unsigned last = 0; last < 16; last++) {
			const uint8_t bytes[14] = { 1, 0x80, 0xc2, 0, 0, (uint8_t)last, 2, 0, 0,
						    0, 0,    9,	   8, 0 };

			assert_true(fake_receive(rig->socket[0], bytes, sizeof(bytes)));
		}
		pass(rig);
		assert_int_equal(rig->worker->queue[0].drops[DROP_RESERVED],
				 16 - __builtin_popcount(masks[i]));
		assert_int_equal(rig->socket[1]->sent, __builtin_popcount(masks[i]));
		bridge_close(rig);
	}
}

static void vlans_have_stations_of_their_own(void **state)
{
	struct rig *rig = bridge_open();
	uint8_t tagged[18];

	(void)state;
	make_frame(tagged, sizeof(tagged), 10, BROADCAST);
	memcpy(tagged + 12, (const uint8_t[]){ 0x81, 0, 0, 7, 8, 0 }, 6);
	assert_true(fake_receive(rig->socket[0], tagged, sizeof(tagged)));
	receive(rig, 1, 20, 10, 60);
	pass(rig);
	assert_moved(rig, 1, 1, 2); /* 10 is known in VLAN 7 only */
	put_mac(tagged, 10);
	put_mac(tagged + MAC_LEN, 20);
	assert_true(fake_receive(rig->socket[1], tagged, sizeof(tagged)));
	pass(rig);
	assert_moved(rig, 1, 0, 0);
	bridge_close(rig);
}

static void a_limit_leaves_stations_unknown_and_forwards_them(void **state)
{
	struct rig *rig;

	(void)state;
	opts.port[0].learn_limit = 5;
	rig = bridge_open();
	for (unsigned i = 0; i < 10; i++)
		receive(rig, 0, 10 + i, BROADCAST, 60);
	pass(rig);
	for (unsigned i = 0; i < 10; i++)
		receive(rig, 1, 50, 10 + i, 60);
	pass(rig);
	assert_moved(rig, 10, 10, 15);
	assert_int_equal(fdb_count(rig->worker->bridge->fdb, 0).stations, 5);
	assert_int_equal(fdb_count(rig->worker->bridge->fdb, 0).events[FDB_LIMITED], 5);
	bridge_close(rig);
}

static void a_storm_is_cut_off_at_its_port_and_its_senders_are_learned(void **state)
{
	static const uint8_t group[MAC_LEN] = { 1, 0, 0x5e, 0, 0, 1 };
	uint8_t bytes[60];
	struct rig *rig;

	(void)state;
	opts.port[0].storm_limit[STORM_BROADCAST] = 10;
	opts.port[0].storm_limit[STORM_UNKNOWN] = 20;
	rig = bridge_open();
	for (unsigned i = 0; i < 5; i++) {
		receive(rig, 0, 10 + i, BROADCAST, 60);
		receive(rig, 0, 20, 200, 60);
		receive(rig, 1, 30, BROADCAST, 60);
		make_frame(bytes, sizeof(bytes), 21, 0);
		memcpy(bytes, group, MAC_LEN);
		assert_true(fake_receive(rig->socket[0], bytes, sizeof(bytes)));
		pass(rig);
	}
	/* One broadcast and two unknown at once; all groups, and all of the other port. */
	assert_moved(rig, 5, 5 + 1 + 2, 10 + 1 + 2);
	assert_int_equal(rig->worker->queue[0].drops[DROP_STORM_BROADCAST], 4);
	assert_int_equal(rig->worker->queue[0].drops[DROP_STORM_UNKNOWN], 3);
	assert_int_equal(drops(rig, DROP_STORM_MULTICAST), 0);
	assert_int_equal(rig->worker->queue[0].flooded, 1 + 2 + 5);
	for (unsigned i = 0; i < 5; i++)
		receive(rig, 2, 30, 10 + i, 60);
	pass(rig);
	assert_moved(rig, 5, 0, 0);
	bridge_close(rig);
}

/* Also from none at all and back, as a reload does. */
static void storm_limits_of_a_running_bridge_change(void **state)
{
	static const uint32_t limits[][STORM_KINDS] = {
		{ 0 }, { [STORM_BROADCAST] = 10 }, { 0 }, { [STORM_UNKNOWN] = 10 }
	};
	struct rig *rig = bridge_open();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		struct queue_counts before, after;

		bridge_limit(rig->worker->bridge, 0, limits[i]);
		queue_count(&rig->worker->queue[0], &before);
		for (unsigned j = 0; j < 5; j++) {
			receive(rig, 0, 10, BROADCAST, 60);
			receive(rig, 0, 10, 200, 60);
			receive(rig, 1, 20, BROADCAST, 60);
			pass(rig);
		}
		queue_count(&rig->worker->queue[0], &after);
		for (unsigned kind = 0; kind < STORM_KINDS; kind++) {
			unsigned reason = DROP_STORM_BROADCAST + kind;

			assert_int_equal(after.drops[reason] - before.drops[reason],
					 limits[i][kind] ? 4 : 0);
		}
	}
	assert_int_equal(drops(rig, DROP_STORM_BROADCAST), 4);
	assert_int_equal(drops(rig, DROP_STORM_UNKNOWN), 4);
	bridge_close(rig);
}

static void a_blocked_port_takes_gives_and_learns_nothing(void **state)
{
	struct rig *rig = bridge_open();

	(void)state;
	fdb_add(rig->worker->bridge->fdb, fdb_key(0, (const uint8_t[]){ 2, 0, 0, 0, 0, 40 }), 1);
	bridge_block(rig->worker->bridge, 1, true);
	receive(rig, 0, 10, BROADCAST, 60);
	receive(rig, 0, 10, 40, 60);
	receive(rig, 1, 30, BROADCAST, 60);
	receive(rig, 1, 30, 10, 60);
	pass(rig);
	assert_moved(rig, 0, 0, 1);
	assert_int_equal(rig->worker->queue[0].drops[DROP_LOOP_BLOCKED], 1);
	assert_int_equal(rig->worker->queue[1].drops[DROP_LOOP_BLOCKED], 2);
	assert_int_equal(fdb_count(rig->worker->bridge->fdb, 1).stations, 0);
	bridge_block(rig->worker->bridge, 2, true);
	receive(rig, 0, 10, BROADCAST, 60);
	pass(rig);
	assert_moved(rig, 0, 0, 0);
	assert_int_equal(rig->worker->queue[0].drops[DROP_LOOP_BLOCKED], 2);
	bridge_block(rig->worker->bridge, 1, false);
	receive(rig, 1, 30, 10, 60);
	receive(rig, 0, 10, 40, 60);
	pass(rig);
	assert_moved(rig, 1, 1, 0);
	bridge_close(rig);
}

static void a_batch_larger_than_a_lookup_is_taken_at_once(void **state)
{
	struct rig *rig = bridge_open();

	(void)state;
	rig->worker->batch = RIG_RING;
	receive(rig, 1, 20, BROADCAST, 60);
	pass(rig);
	for (unsigned i = 0; i < RIG_RING; i++)
		receive(rig, 0, 100 + i, 20, 60);
	assert_int_equal(pass(rig) >= RIG_RING, true);
	assert_moved(rig, 1, RIG_RING, 1);
	bridge_close(rig);
}

static void a_packet_of_several_descriptors_is_flooded_whole(void **state)
{
	struct rig *rig = bridge_open();
	struct pool *pool = &rig->worker->pool;
	uint32_t left;

	(void)state;
	for (uint32_t len = 14; len < 9014; len += 500) {
		receive(rig, 0, 10, BROADCAST, len);
		pass(rig);
		assert_moved(rig, 0, 1, 1);
		assert_sent(rig, 1, 10, BROADCAST, len);
		assert_sent(rig, 2, 10, BROADCAST, len);
		rig_balance(rig);
	}
	/* Room for a part of it only. */
	rig->socket[2]->hold_completions = true;
	for (unsigned i = 0; i < RIG_RING; i++) {
		receive(rig, 0, 10, BROADCAST, 9014);
		pass(rig);
	}
	assert_int_equal(rig->socket[2]->partial.len, 0);
	assert_true(rig->worker->queue[2].drops[DROP_TX_FULL] > 0);
	assert_int_equal(rig->worker->queue[1].drops[DROP_TX_FULL], 0);
	fake_complete(rig->socket[2]);
	rig->socket[2]->hold_completions = false;
	pass(rig);
	/* Frames for a part of it only. */
	left = pool->count;
	pool->count = 2;
	receive(rig, 0, 10, BROADCAST, 9014);
	bridge_burst(rig->worker, &rig->worker->queue[0], rig->worker->chunks.plain);
	assert_int_equal(pool->count, 2);
	pool->count = left;
	pass(rig);
	assert_int_equal(rig->worker->queue[1].drops[DROP_NO_FRAME], 1);
	assert_sent(rig, 2, 10, BROADCAST, 9014);
	bridge_close(rig);
}

static void a_packet_without_an_end_is_dropped_whole(void **state)
{
	struct rig *rig = bridge_open();
	uint8_t byte[20] = { 0 };

	(void)state;
	for (unsigned i = 0; i < RIG_RING; i++)
		fake_receive_piece(rig->socket[0], byte, sizeof(byte), true);
	pass(rig);
	assert_int_equal(rig->worker->queue[0].drops[DROP_TOO_LONG], 1);
	assert_int_equal(sent(rig), 0);
	bridge_close(rig);
}

static void an_address_outside_the_frames_is_lost_not_followed(void **state)
{
	struct rig *rig = bridge_open();
	uint64_t beyond = rig->worker->chunks.first_byte + rig->worker->chunks.bytes;

	(void)state;
	fake_swallow(rig->socket[0]);
	fake_receive_address(rig->socket[0], beyond + 256, 100);
	receive(rig, 0, 10, BROADCAST, 60);
	pass(rig);
	assert_moved(rig, 0, 1, 1);
	assert_int_equal(rig->worker->queue[0].drops[DROP_BAD_DESCRIPTOR], 1);
	assert_int_equal(rig->worker->queue[0].lost, 1);
	bridge_close(rig);
}

/* --- probes for loops --- */

static const struct probe_round first_round = {
	.id = { 0xa0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xaf },
	.sequence = 0x01020304,
};

static struct rig *probing_open(void)
{
	struct rig *rig;

	rig = bridge_open();
	memcpy(rig->worker->probes->id, first_round.id, PROBE_ID_LEN);
	return rig;
}

static void own_mac(uint8_t *mac, unsigned port)
{
	memcpy(mac, (const uint8_t[]){ 2, 0, 0, 0, 0xee, (uint8_t)port }, MAC_LEN);
}

/* As the main thread, for these ports, and the worker in the two passes after. */
static void order_probes(struct rig *rig, unsigned ports)
{
	struct probes *probes = rig->worker->probes;
	uint8_t mac[MAC_LEN];

	assert_true(probes_begin(probes));
	for (unsigned i = 0; i < 3; i++) {
		own_mac(mac, i);
		if (ports & 1U << i)
			probes_put(probes, &first_round, mac, i, i == 2 ? 0x123 : 0);
	}
	probes_order(probes);
	assert_false(probes_begin(probes));
	worker_ask(rig->worker);
	pass(rig);
	pass(rig);
}

static void a_probe_goes_out_of_each_port_as_it_is_documented(void **state)
{
	static const uint8_t want[PROBE_LEN] = {
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2,	 0, 0,	0,  0xee, 1,  0x88, 0xb5, 'm',
		'i',  'l',  'l',  'r',	'a',  'c',  'e', 1, 1,	1,  2,	  3,  4,    0xa0, 1,
		2,    3,    4,	  5,	6,    7,    8,	 9, 10, 11, 12,	  13, 14,   0xaf,
	};
	static const uint8_t tag[] = { 0x81, 0, 0x01, 0x23, 0x88, 0xb5 };
	struct rig *rig = probing_open();
	const struct fake_frame *frame;

	(void)state;
	order_probes(rig, 7);
	assert_moved(rig, 1, 1, 1);
	frame = fake_sent(rig->socket[1], 0);
	assert_int_equal(frame->len, PROBE_LEN);
	assert_memory_equal(frame->bytes, want, PROBE_LEN);
	frame = fake_sent(rig->socket[2], 0);
	assert_int_equal(frame->len, PROBE_LEN_MAX);
	assert_int_equal(frame->bytes[2 * MAC_LEN - 1], 2);
	assert_memory_equal(frame->bytes + 2 * MAC_LEN, tag, sizeof(tag));
	assert_int_equal(frame->bytes[14 + 13], 2);
	assert_memory_equal(frame->bytes + 14 + 14, want + 24, PROBE_LEN - 24);
	assert_int_equal(rig->worker->queue[2].probes, 1);
	/* An order is carried out once, and by the ports that it names. */
	worker_ask(rig->worker);
	pass(rig);
	assert_moved(rig, 0, 0, 0);
	for (unsigned i = 0; i < 2 * RIG_FRAMES; i++)
		order_probes(rig, 5);
	assert_moved(rig, 2 * RIG_FRAMES, 0, 2 * RIG_FRAMES);
	bridge_close(rig);
}

static void who_cannot_send_a_probe_leaves_it_out(void **state)
{
	struct rig *rig = probing_open();
	struct pool *pool = &rig->worker->pool;
	uint32_t left;

	(void)state;
	rig->worker->queue[0].down = true;
	order_probes(rig, 3);
	rig->worker->queue[0].down = false;
	assert_moved(rig, 0, 1, 0);
	/* The TX ring is full. */
	rig->socket[2]->hold_completions = true;
	for (unsigned i = 0; i < RIG_RING + 10; i++)
		order_probes(rig, 4);
	assert_moved(rig, 0, 0, RIG_RING);
	fake_complete(rig->socket[2]);
	rig->socket[2]->hold_completions = false;
	pass(rig);
	/* Every frame is in use. */
	left = pool->count;
	pool->count = 0;
	assert_true(probes_begin(rig->worker->probes));
	probes_put(rig->worker->probes, &first_round, (const uint8_t[]){ 2, 0, 0, 0, 0, 9 }, 1, 0);
	probes_order(rig->worker->probes);
	probes_send(rig->worker);
	pool->count = left;
	/* It is draining. */
	rig->worker->stop = 1;
	order_probes(rig, 7);
	assert_moved(rig, 0, 0, 0);
	rig->worker->stop = 0;
	assert_int_equal(rig->worker->queue[0].probes, 0);
	assert_int_equal(rig->worker->queue[1].probes, 1);
	bridge_close(rig);
}

static void a_probe_that_comes_back_is_noted_and_goes_nowhere(void **state)
{
	static const struct {
		const char *name;
		unsigned tag, len; /* of the tag 0: none */
		unsigned at, byte; /* changed */
		enum drop_reason want;
	} cases[] = {
		{ "as it was sent", 0, 60, 59, 0, DROP_LOOP_PROBE },
		{ "without its end", 0, 44, 43, 0xaf, DROP_LOOP_PROBE },
		{ "with a tag", 0x8100, 64, 63, 0, DROP_LOOP_PROBE },
		{ "with an S-tag", 0x88a8, 64, 63, 0, DROP_LOOP_PROBE },
		{ "with a tag, without its end", 0x8100, 48, 47, 0xaf, DROP_LOOP_PROBE },
		{ "cut off", 0, 43, 42, 14, DROP_SOURCE_OWN },
		{ "with a tag, cut off", 0x8100, 47, 46, 14, DROP_SOURCE_OWN },
		{ "its header alone", 0, 14, 13, 0xb5, DROP_SOURCE_OWN },
		{ "its tag cut off", 0x8100, 15, 14, 0, DROP_SOURCE_OWN },
		{ "of another type", 0, 60, 13, 0xb6, DROP_SOURCE_OWN },
		{ "of somebody else's", 0, 60, 14, 'M', DROP_SOURCE_OWN },
		{ "of another version", 0, 60, 22, 2, DROP_SOURCE_OWN },
		{ "of another bridge", 0, 60, 43, 0xae, DROP_SOURCE_OWN },
	};
	struct rig *rig = probing_open();
	struct probe probe;
	uint8_t bytes[PROBE_LEN_MAX], mac[MAC_LEN];
	uint64_t news;

	(void)state;
	assert_false(probes_back(rig->worker->probes, 2, &probe));
	rig->worker->done_fd = eventfd(0, EFD_NONBLOCK);
	own_mac(mac, 1);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct probe_round round = first_round;
		uint64_t before = drops(rig, cases[i].want);
		bool noted = cases[i].want == DROP_LOOP_PROBE;

		print_message("%s\n", cases[i].name);
		round.sequence += i;
		probe_build(bytes, &round, mac, 1, cases[i].tag ? 7 : 0);
		if (cases[i].tag) {
			bytes[12] = (uint8_t)(cases[i].tag >> 8);
			bytes[13] = (uint8_t)cases[i].tag;
		}
		bytes[cases[i].at] = (uint8_t)cases[i].byte;
		assert_true(fake_receive(rig->socket[2], bytes, cases[i].len));
		pass(rig);
		assert_int_equal(drops(rig, cases[i].want), before + 1);
		assert_true(probes_back(rig->worker->probes, 2, &probe));
		assert_int_equal(probe.port, 1);
		assert_int_equal(probe.sequence == round.sequence, noted);
		assert_int_equal(read(rig->worker->done_fd, &news, sizeof(news)) > 0, noted);
	}
	/* Again and again the same, or an older one: it is dropped, and nobody is told. */
	for (unsigned i = 0; i < 3; i++) {
		struct probe_round round = first_round;

		round.sequence += 4 - i;
		probe_build(bytes, &round, mac, 1, 0);
		assert_true(fake_receive(rig->socket[2], bytes, PROBE_LEN));
		pass(rig);
		assert_int_equal(drops(rig, DROP_LOOP_PROBE), 6 + i);
		assert_int_equal(read(rig->worker->done_fd, &news, sizeof(news)), -1);
	}
	close(rig->worker->done_fd);
	assert_int_equal(sent(rig), 0);
	assert_int_equal(fdb_stations(rig->worker->bridge->fdb), 0);
	assert_false(probes_back(rig->worker->probes, 1, &probe));
	/* Those of other bridges are frames like others. */
	own_mac(mac, 9);
	probe_build(bytes, &first_round, mac, 1, 0);
	assert_true(fake_receive(rig->socket[2], bytes, PROBE_LEN));
	pass(rig);
	assert_moved(rig, 1, 1, 0);
	bridge_close(rig);
}

static void a_blocked_port_still_tells_of_probes(void **state)
{
	struct rig *rig = probing_open();
	uint8_t bytes[PROBE_LEN_MAX], mac[MAC_LEN];
	struct probe probe;

	(void)state;
	bridge_block(rig->worker->bridge, 2, true);
	own_mac(mac, 2);
	probe_build(bytes, &first_round, mac, 2, 0);
	receive(rig, 2, 10, BROADCAST, 60);
	receive(rig, 2, 10, BROADCAST, 13);
	assert_true(fake_receive(rig->socket[2], bytes, PROBE_LEN));
	pass(rig);
	assert_int_equal(rig->worker->queue[2].drops[DROP_LOOP_BLOCKED], 3);
	assert_true(probes_back(rig->worker->probes, 2, &probe));
	assert_int_equal(probe.port, 2);
	/* And it goes out there. */
	order_probes(rig, 4);
	assert_moved(rig, 0, 0, 1);
	bridge_close(rig);
}

static void each_bridge_has_an_id_of_its_own(void **state)
{
	struct probes *one, *other;

	(void)state;
	assert_int_equal(probes_new(&one, 2), 0);
	assert_int_equal(probes_new(&other, 1), 0);
	assert_memory_equal(one[0].id, one[1].id, PROBE_ID_LEN);
	assert_memory_not_equal(one->id, other->id, PROBE_ID_LEN);
	free(one);
	free(other);
}

/* --- several workers --- */

/* The second worker's third port is another one's to send on. */
static void a_worker_without_the_queue_hands_its_copy_over(void **state)
{
	struct rig *sender = rig_open(2), *receiver;
	struct bridge *bridge;

	(void)state;
	opts.workers = 2;
	receiver = bridge_open();
	sender->worker->bridge = receiver->worker->bridge;
	sender->worker->fdb_view = fdb_view(sender->worker->bridge->fdb, 1);
	worker_plug(sender->worker, 2, NULL, false);
	assert_int_equal(worker_connect(sender->worker, 2, receiver->worker, RIG_RING), 0);
	for (unsigned i = 0; i < 10 * RIG_FRAMES; i++) {
		receive(sender, 0, 10, BROADCAST, 60 + i % 100);
		pass(sender);
		pass(receiver);
		assert_int_equal(sender->socket[1]->sent, i + 1);
		assert_moved(receiver, 0, 0, 1);
		assert_sent(receiver, 2, 10, BROADCAST, 60 + i % 100);
		rig_balance(sender);
		rig_balance(receiver);
	}
	/* Who receives learns for both. */
	receive(receiver, 2, 30, 10, 60);
	pass(receiver);
	assert_moved(receiver, 1, 0, 0);
	/* The other one does not keep up: its copies are lost, and no others. */
	for (unsigned i = 0; i < 2 * RIG_RING; i++) {
		receive(sender, 0, 10, BROADCAST, 60);
		pass(sender);
	}
	assert_int_equal(sender->worker->queue[2].drops[DROP_HAND_OVER_FULL] +
				 sender->worker->queue[2].tx.own,
			 10 * RIG_FRAMES + 2 * RIG_RING);
	assert_true(sender->worker->queue[2].drops[DROP_HAND_OVER_FULL] > 0);
	assert_int_equal(sender->socket[1]->sent, 10 * RIG_FRAMES + 2 * RIG_RING);
	for (unsigned i = 0; i < 10; i++) {
		pass(receiver);
		pass(sender);
	}
	rig_balance(sender);
	worker_close_port(sender->worker, 2);
	rig_close(sender);
	bridge = receiver->worker->bridge;
	rig_close(receiver);
	bridge_free(bridge);
}

static int reset(void **state)
{
	(void)state;
	default_opts();
	return 0;
}

#define test_of(name) cmocka_unit_test_setup(name, reset)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_of(an_unknown_destination_gets_to_all_others_and_a_known_one_alone),
		test_of(a_group_is_flooded_and_never_to_where_it_came_from),
		test_of(a_burst_is_kept_in_order),
		test_of(a_station_that_moves_is_found_where_it_is),
		test_of(what_is_for_its_own_side_is_not_sent),
		test_of(isolated_ports_reach_the_others_only),
		test_of(a_blocked_station_neither_sends_nor_receives),
		test_of(a_full_port_loses_its_copies_and_no_others),
		test_of(without_frames_the_last_port_still_gets_the_packet),
		test_of(a_port_that_is_down_costs_the_others_nothing),
		test_of(bad_frames_have_a_counter_each),
		test_of(reserved_addresses_cross_where_they_may),
		test_of(vlans_have_stations_of_their_own),
		test_of(a_limit_leaves_stations_unknown_and_forwards_them),
		test_of(a_storm_is_cut_off_at_its_port_and_its_senders_are_learned),
		test_of(storm_limits_of_a_running_bridge_change),
		test_of(a_blocked_port_takes_gives_and_learns_nothing),
		test_of(a_batch_larger_than_a_lookup_is_taken_at_once),
		test_of(an_address_outside_the_frames_is_lost_not_followed),
		test_of(a_probe_goes_out_of_each_port_as_it_is_documented),
		test_of(who_cannot_send_a_probe_leaves_it_out),
		test_of(a_probe_that_comes_back_is_noted_and_goes_nowhere),
		test_of(a_blocked_port_still_tells_of_probes),
		test_of(each_bridge_has_an_id_of_its_own),
		test_of(a_worker_without_the_queue_hands_its_copy_over),
	};
	/* Where a packet may take several descriptors. */
	const struct CMUnitTest general_tests[] = {
		test_of(a_packet_of_several_descriptors_is_flooded_whole),
		test_of(a_packet_without_an_end_is_dropped_whole),
	};
	static const struct rig_shape shapes[] = {
		{ "plain", false, 0, false },
		{ "general", true, 0, false },
		{ "unaligned", true, 3000, false },
		{ "slice", true, 0, true },
	};
	int failed = 0;

	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		rig_shape = shapes[i];
		print_message("--- %s ---\n", rig_shape.name);
		failed += cmocka_run_group_tests(tests, NULL, NULL);
		if (rig_shape.frags)
			failed += cmocka_run_group_tests(general_tests, NULL, NULL);
	}
	return failed;
}
