/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A bridge that has VLANs: the matrix of port modes and tags, byte for byte. */
#include "../../src/fwd/mode_bridge.c"

#include "fwd/rig.h"

#define BROADCAST 0xff
#define NOTHING	  "nothing"

static const char *const port_modes[3][3] = {
	{ "access 10", "access 10", "trunk 10,20" },
	{ "trunk 10,20", "access 20", "trunk 1-10,20 native 10" },
	{ "trunk 10,20 native 10", "trunk 20,30 native 20", "trunk 10,30" },
};

/* Tags as they stand in the frame: TPID and TCI in hexadecimal, outermost first; "": none. */
static const struct {
	unsigned ports; /* row of port_modes; the frame comes in on its first */
	const char *name, *tags;
	const char *out[2]; /* of the other two */
	enum drop_reason drop;
} matrix[] = {
	/* An access port in 10, to an access port and a trunk. */
	{ 0, "none", "", { "", "8100000a" }, DROP_REASONS },
	{ 0, "priority", "8100e000", { "", "8100e00a" }, DROP_REASONS },
	{ 0, "its own", "8100a00a", { "", "8100a00a" }, DROP_REASONS },
	{ 0, "another", "81000014", { NOTHING, NOTHING }, DROP_TAGGED_ACCESS },
	{ 0, "S-tag", "88a80014", { "88a80014", "8100000a88a80014" }, DROP_REASONS },
	{ 0,
	  "QinQ",
	  "88a8001481000005",
	  { "88a8001481000005", "8100000a88a8001481000005" },
	  DROP_REASONS },
	{ 0, "two C-tags", "8100000a81000005", { "81000005", "8100000a81000005" }, DROP_REASONS },
	{ 0, "4095", "81000fff", { NOTHING, NOTHING }, DROP_VLAN_RESERVED },
	/* A trunk without a native VLAN, to an access port and a trunk with one. */
	{ 1, "none", "", { NOTHING, NOTHING }, DROP_NO_NATIVE },
	{ 1, "priority", "8100e000", { NOTHING, NOTHING }, DROP_NO_NATIVE },
	{ 1, "member", "8100b014", { "", "8100b014" }, DROP_REASONS },
	{ 1, "the other's native", "8100b00a", { NOTHING, "" }, DROP_REASONS },
	{ 1, "non-member", "81000001", { NOTHING, NOTHING }, DROP_VLAN_INGRESS },
	{ 1, "S-tag", "88a80014", { NOTHING, NOTHING }, DROP_NO_NATIVE },
	{ 1, "QinQ within", "8100001488a80001", { "88a80001", "8100001488a80001" }, DROP_REASONS },
	{ 1, "4095", "8100ffff", { NOTHING, NOTHING }, DROP_VLAN_RESERVED },
	/* A trunk with a native VLAN, to two trunks. */
	{ 2, "none", "", { NOTHING, "8100000a" }, DROP_REASONS },
	{ 2, "priority", "8100f000", { NOTHING, "8100f00a" }, DROP_REASONS },
	{ 2, "member", "8100a014", { "", NOTHING }, DROP_REASONS },
	{ 2, "native, tagged", "8100a00a", { NOTHING, "8100a00a" }, DROP_REASONS },
	{ 2, "non-member", "8100001e", { NOTHING, NOTHING }, DROP_VLAN_INGRESS },
	{ 2, "S-tag", "88a80014", { NOTHING, "8100000a88a80014" }, DROP_REASONS },
	{ 2, "4095", "8100efff", { NOTHING, NOTHING }, DROP_VLAN_RESERVED },
};

/* broadcasts: that the first port takes a second; 0: any number. */
static struct rig *vlan_open_limited(const char *const *modes, uint32_t broadcasts,
				     unsigned workers)
{
	static struct vlan_mode mode[3];
	struct bridge_opts opts = { .ports = 3,
				    .workers = workers,
				    .stations_max = 1024,
				    .ageing_s = 300,
				    .reserved = BRIDGE_RESERVED_STP };
	struct rig *rig = rig_open(3);

	opts.port[0].storm_limit[STORM_BROADCAST] = broadcasts;

	for (unsigned i = 0; i < 3; i++) {
		struct vlan_wrong wrong;

		assert_int_equal(vlan_mode_parse(modes[i], &mode[i], &wrong), 0);
		opts.port[i].learn_limit = UINT32_MAX;
		opts.port[i].vlan = &mode[i];
	}
	assert_int_equal(bridge_new(&rig->worker->bridge, &opts), 0);
	rig->worker->fdb_view = fdb_view(rig->worker->bridge->fdb, 0);
	rig->worker->storm = rig->worker->bridge->storm;
	rig->worker->probes = rig->worker->bridge->probes;
	return rig;
}

static struct rig *vlan_open(const char *const *modes)
{
	return vlan_open_limited(modes, 0, 1);
}

static uint64_t drops(const struct rig *rig, enum drop_reason reason)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < 3; i++)
		sum += rig->worker->queue[i].drops[reason];
	return sum;
}

/* For every packet: received + copies = sent + dropped. */
static void vlan_close(struct rig *rig)
{
	struct bridge *bridge = rig->worker->bridge;
	uint64_t in = 0, out = 0;

	for (unsigned i = 0; i < 3; i++) {
		const struct queue *queue = &rig->worker->queue[i];

		in += queue->rx.own - queue->rx_continued + queue->copies;
		out += queue->tx.own - queue->tx_continued;
	}
	for (int i = 0; i < DROP_REASONS; i++)
		out += drops(rig, (enum drop_reason)i);
	assert_int_equal(in, out);
	rig_close(rig);
	bridge_free(bridge);
}

static void pass(struct rig *rig)
{
	worker_pass(rig->worker, bridge_vlan_burst, rig->worker->chunks.plain);
}

static void put_mac(uint8_t *bytes, unsigned station)
{
	memset(bytes, station == BROADCAST ? 0xff : 0, MAC_LEN);
	if (station != BROADCAST) {
		bytes[0] = 2;
		bytes[5] = (uint8_t)station;
	}
}

/* A frame of two stations. */
struct sample {
	unsigned from, to;
	const char *tags;
	uint32_t payload; /* bytes behind the type */
};

/* Returns its length. */
static uint32_t make_frame(uint8_t *bytes, struct sample sample)
{
	const char *tags = sample.tags;
	uint32_t len = 2 * MAC_LEN;

	put_mac(bytes, sample.to);
	put_mac(bytes + MAC_LEN, sample.from);
	for (; *tags; tags += 2) {
		const char digits[] = { tags[0], tags[1], '\0' };
		unsigned long byte;

		assert_int_equal(number_hex_parse(digits, 0xff, &byte), 0);
		bytes[len++] = (uint8_t)byte;
	}
	bytes[len++] = 0x08;
	bytes[len++] = 0;
	rig_frame(bytes + len, sample.payload, sample.from + sample.to);
	return len + sample.payload;
}

static void receive(struct rig *rig, unsigned port, struct sample sample)
{
	uint8_t bytes[9100];
	uint32_t len = make_frame(bytes, sample);

	assert_true(fake_receive(rig->socket[port], bytes, len));
}

static void assert_sent(struct rig *rig, unsigned port, struct sample sample)
{
	const struct fake_frame *frame = fake_sent(rig->socket[port], 0);
	uint8_t bytes[9100];
	uint32_t len = make_frame(bytes, sample);

	assert_int_equal(frame->len, len);
	assert_memory_equal(frame->bytes, bytes, len);
}

static void the_matrix(void **state)
{
	/* Up to all that a chunk of 2048 takes of a frame without a tag. */
	static const uint32_t payloads[] = { 0, 46, 1500, 1760 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(matrix) * ARRAY_SIZE(payloads); i++) {
		size_t row = i / ARRAY_SIZE(payloads);
		uint32_t payload = payloads[i % ARRAY_SIZE(payloads)];
		struct rig *rig = vlan_open(port_modes[matrix[row].ports]);

		if (!payload)
			print_message("%s: %s\n", port_modes[matrix[row].ports][0],
				      matrix[row].name);
		receive(rig, 0, (struct sample){ 10, BROADCAST, matrix[row].tags, payload });
		pass(rig);
		for (int reason = 0; reason < DROP_REASONS; reason++)
			assert_int_equal(drops(rig, (enum drop_reason)reason),
					 (enum drop_reason)reason == matrix[row].drop);
		for (unsigned out = 0; out < 2; out++) {
			bool nothing = !strcmp(matrix[row].out[out], NOTHING);

			assert_int_equal(rig->socket[out + 1]->sent, !nothing);
			if (!nothing)
				assert_sent(rig, out + 1,
					    (struct sample){ 10, BROADCAST, matrix[row].out[out],
							     payload });
		}
		assert_int_equal(rig->socket[0]->sent, 0);
		assert_int_equal(fdb_stations(rig->worker->bridge->fdb),
				 matrix[row].drop == DROP_REASONS);
		vlan_close(rig);
	}
}

static void a_tag_that_is_cut_off_is_no_vlan(void **state)
{
	struct rig *rig;
	uint8_t bytes[64];

	(void)state;
	for (uint32_t len = 14; len < 18; len++) {
		rig = vlan_open(port_modes[0]);
		make_frame(bytes, (struct sample){ 10, BROADCAST, "8100000a", 0 });
		assert_true(fake_receive(rig->socket[0], bytes, len));
		pass(rig);
		assert_int_equal(drops(rig, DROP_TAG_CUT), 1);
		assert_int_equal(rig->socket[1]->sent + rig->socket[2]->sent, 0);
		vlan_close(rig);
	}
}

/* The same address in two VLANs is two stations; one that is known may be where its VLAN does not reach. */
static void stations_are_learned_in_the_vlan_of_the_port(void **state)
{
	struct rig *rig = vlan_open(port_modes[0]);

	(void)state;
	receive(rig, 1, (struct sample){ 20, BROADCAST, "", 46 });
	pass(rig);
	receive(rig, 2, (struct sample){ 30, 20, "8100000a", 46 });
	pass(rig);
	assert_int_equal(rig->socket[1]->sent, 1);
	assert_sent(rig, 1, (struct sample){ 30, 20, "", 46 });
	assert_int_equal(rig->socket[0]->sent, 1);		    /* the broadcast alone */
	receive(rig, 2, (struct sample){ 30, 20, "81000014", 46 }); /* in 20 nobody else is */
	pass(rig);
	assert_int_equal(drops(rig, DROP_VLAN_EGRESS), 1);
	/* A static entry for a port that is not in the VLAN. */
	assert_int_equal(fdb_add(rig->worker->bridge->fdb,
				 fdb_key(20, (const uint8_t[]){ 2, 0, 0, 0, 0, 40 }), 1),
			 0);
	receive(rig, 2, (struct sample){ 30, 40, "81000014", 46 });
	pass(rig);
	assert_int_equal(drops(rig, DROP_VLAN_EGRESS), 2);
	assert_int_equal(rig->socket[1]->sent, 1);
	vlan_close(rig);
}

/* A frame in a VLAN that no other port is in reaches none: it is not flooded, and the limit is for those that
 * are. */
static void what_no_port_gets_takes_nothing_of_a_storm_limit(void **state)
{
	static const char *const modes[] = { "trunk 10,20", "access 10", "access 10" };
	struct rig *rig = vlan_open_limited(modes, 10, 1);

	(void)state;
	for (unsigned i = 0; i < 5; i++)
		receive(rig, 0, (struct sample){ 10, BROADCAST, "81000014", 46 });
	receive(rig, 0, (struct sample){ 10, 99, "81000014", 46 });
	pass(rig);
	assert_int_equal(drops(rig, DROP_VLAN_EGRESS), 6);
	assert_int_equal(drops(rig, DROP_STORM_BROADCAST), 0);
	assert_int_equal(rig->worker->queue[0].flooded, 0);
	for (unsigned i = 0; i < 2; i++)
		receive(rig, 0, (struct sample){ 10, BROADCAST, "8100000a", 46 });
	pass(rig);
	assert_int_equal(drops(rig, DROP_VLAN_EGRESS), 6);
	assert_int_equal(drops(rig, DROP_STORM_BROADCAST), 1);
	assert_int_equal(rig->worker->queue[0].flooded, 1);
	assert_int_equal(rig->socket[1]->sent, 1);
	/* Likewise where every other port is blocked. */
	bridge_block(rig->worker->bridge, 1, true);
	bridge_block(rig->worker->bridge, 2, true);
	receive(rig, 0, (struct sample){ 10, BROADCAST, "8100000a", 46 });
	pass(rig);
	assert_int_equal(drops(rig, DROP_LOOP_BLOCKED), 1);
	assert_int_equal(rig->worker->queue[0].flooded, 1);
	vlan_close(rig);
}

/* IEEE 802.3 has the MAC pad what it sends to 60 bytes, and so devices do: here it is as long as it is. */
static void a_frame_that_loses_its_tag_is_not_padded(void **state)
{
	struct rig *rig = vlan_open(port_modes[0]);

	(void)state;
	receive(rig, 2, (struct sample){ 10, BROADCAST, "8100000a", 42 }); /* 60 bytes */
	pass(rig);
	assert_int_equal(fake_sent(rig->socket[0], 0)->len, 56);
	assert_sent(rig, 1, (struct sample){ 10, BROADCAST, "", 42 });
	vlan_close(rig);
}

/* The second worker's third port is another one's to send on: the copy that it hands over has its tag, and its
 * own frame another. */
static void a_copy_is_handed_over_with_its_tag(void **state)
{
	struct rig *receiver = vlan_open_limited(port_modes[0], 0, 2), *sender = rig_open(2);
	struct bridge *bridge = receiver->worker->bridge;

	(void)state;
	sender->worker->bridge = bridge;
	sender->worker->fdb_view = fdb_view(bridge->fdb, 1);
	worker_plug(sender->worker, 2, NULL, false);
	assert_int_equal(worker_connect(sender->worker, 2, receiver->worker, RIG_RING), 0);
	for (unsigned i = 0; i < 10 * RIG_FRAMES; i++) {
		uint32_t payload = 46 + i % 100;

		/* To the access port without a tag, to the trunk with one. */
		receive(sender, 0, (struct sample){ 10, BROADCAST, "8100a000", payload });
		pass(sender);
		pass(receiver);
		assert_sent(sender, 1, (struct sample){ 10, BROADCAST, "", payload });
		assert_int_equal(receiver->socket[2]->sent, i + 1);
		assert_sent(receiver, 2, (struct sample){ 10, BROADCAST, "8100a00a", payload });
		rig_balance(sender);
		rig_balance(receiver);
	}
	/* What is for the trunk alone is lent itself, grown at its front, and comes home. */
	receive(receiver, 2, (struct sample){ 30, BROADCAST, "8100000a", 46 });
	pass(receiver);
	for (unsigned i = 0; i < 10 * RIG_FRAMES; i++) {
		receive(sender, 0, (struct sample){ 10, 30, "", 46 });
		pass(sender);
		pass(receiver);
		assert_sent(receiver, 2, (struct sample){ 10, 30, "8100000a", 46 });
		rig_balance(sender);
	}
	assert_int_equal(receiver->socket[2]->sent, 20 * RIG_FRAMES);
	assert_int_equal(sender->worker->queue[2].drops[DROP_HAND_OVER_FULL], 0);
	pass(sender);
	worker_close_port(sender->worker, 2);
	rig_close(sender);
	rig_close(receiver);
	bridge_free(bridge);
}

/* As where somebody else's program has moved a frame's beginning. */
static void a_frame_grows_wherever_it_is_in_its_chunk(void **state)
{
	(void)state;
	for (unsigned at = 0; at < 8; at++) {
		struct rig *rig = vlan_open(port_modes[2]);
		const struct chunks *chunks = &rig->worker->chunks;
		uint32_t size = chunks->size;
		/* With nothing in front of it and nothing behind. */
		uint32_t payload = at == 7 ? size - ETHER_HEADER_LEN : 100;
		struct xdp_desc desc = { .addr = chunks_at(chunks, chunks_addr(chunks, 0),
							   at == 7 ? 0 : at) };
		struct vlan_frame frame = { .vlan = 10, .descs = 1 };
		uint8_t want[9100];
		bool fits = at != 7;

		desc.len = make_frame(chunks_bytes(chunks, desc.addr),
				      (struct sample){ 10, 20, "", payload });
		assert_int_equal(vlan_edit(chunks, &desc, &frame, true), fits);
		if (fits) {
			uint32_t len =
				make_frame(want, (struct sample){ 10, 20, "8100000a", payload });

			assert_int_equal(desc.len, len);
			assert_memory_equal(chunks_bytes(chunks, desc.addr), want, len);
			assert_int_equal(chunks_frame(chunks, desc.addr), 0);
		}
		vlan_close(rig);
	}
}

static void a_packet_of_several_descriptors_has_one_tag(void **state)
{
	struct rig *rig = vlan_open(port_modes[0]);

	(void)state;
	receive(rig, 0, (struct sample){ 10, BROADCAST, "8100e000", 8000 });
	pass(rig);
	assert_sent(rig, 1, (struct sample){ 10, BROADCAST, "", 8000 });
	assert_sent(rig, 2, (struct sample){ 10, BROADCAST, "8100e00a", 8000 });
	receive(rig, 0, (struct sample){ 11, BROADCAST, "", 8000 });
	pass(rig);
	assert_sent(rig, 1, (struct sample){ 11, BROADCAST, "", 8000 });
	assert_sent(rig, 2, (struct sample){ 11, BROADCAST, "8100000a", 8000 });
	vlan_close(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_matrix),
		cmocka_unit_test(a_tag_that_is_cut_off_is_no_vlan),
		cmocka_unit_test(stations_are_learned_in_the_vlan_of_the_port),
		cmocka_unit_test(what_no_port_gets_takes_nothing_of_a_storm_limit),
		cmocka_unit_test(a_frame_that_loses_its_tag_is_not_padded),
		cmocka_unit_test(a_copy_is_handed_over_with_its_tag),
		cmocka_unit_test(a_frame_grows_wherever_it_is_in_its_chunk),
	};
	const struct CMUnitTest general_tests[] = {
		cmocka_unit_test(a_packet_of_several_descriptors_has_one_tag),
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
