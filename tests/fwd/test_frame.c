/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/fwd/frame.c"

#include "unit.h"

/* An independent check: the sum of all 16-bit words of a right header, checksum included, is ffff. */
static uint32_t folded_sum(const uint8_t *bytes, uint32_t len, uint32_t sum)
{
	for (uint32_t i = 0; i < len; i++)
		sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
	while (sum > 0xffff)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static void checksum_of_rfc_1071s_example(void **state)
{
	static const uint8_t bytes[] = { 0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7 };

	(void)state;
	assert_int_equal(frame_checksum(bytes, sizeof(bytes), 0), (uint16_t)~0xddf2);
	assert_int_equal(frame_checksum(bytes, 7, 0), (uint16_t)~0xdcfb); /* last byte padded */
	assert_int_equal(frame_checksum(bytes, 0, 0), 0xffff);
}

/* One combination of what the options add. */
static const struct frame_opts variants[] = {
	{ .dst = { 2, 0, 0, 0, 0, 2 }, .src = { 2, 0, 0, 0, 0, 1 }, .pattern = 0x12345678 },
	{ .dst = { 2, 0, 0, 0, 0, 2 }, .pattern = 0xffffffff, .vlan = true, .vlan_tci = 0xe001 },
	{ .src = { 2, 0, 0, 0, 0, 1 }, .pattern = 0, .timestamp = true },
	{ .pattern = 0xdeadbeef, .vlan = true, .vlan_tci = 0x0fff, .timestamp = true },
};

static uint32_t word(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] << 8 | bytes[1];
}

/* Everything that can be wrong about a frame, checked on its own. */
static void check_frame(const uint8_t *bytes, uint32_t len, const struct frame_opts *opts)
{
	uint32_t ip = opts->vlan ? 18 : 14, udp = ip + 20, udp_len = len - udp, pseudo;

	assert_memory_equal(bytes, opts->dst, 6);
	assert_memory_equal(bytes + 6, opts->src, 6);
	assert_int_equal(word(bytes + 12), opts->vlan ? 0x8100 : 0x0800);
	if (opts->vlan) {
		assert_int_equal(word(bytes + 14), opts->vlan_tci);
		assert_int_equal(word(bytes + 16), 0x0800);
	}
	assert_int_equal(bytes[ip], 0x45);
	assert_int_equal(word(bytes + ip + 2), len - ip);
	assert_int_equal(bytes[ip + 9], 17);
	assert_int_equal(folded_sum(bytes + ip, 20, 0), 0xffff);
	assert_int_equal(word(bytes + udp + 4), udp_len);
	assert_true(word(bytes + udp + 6)); /* 0 would mean "none" */
	pseudo = folded_sum(bytes + ip + 12, 8, 17 + udp_len);
	assert_int_equal(folded_sum(bytes + udp, udp_len, pseudo), 0xffff);
	if (opts->timestamp)
		assert_memory_equal(bytes + udp + 8, "\xbe\x9b\xe9\x55", 4);
}

static void frames_of_every_size_are_valid(void **state)
{
	static uint8_t bytes[FRAME_BYTES_MAX + 16];

	(void)state;
	for (size_t v = 0; v < ARRAY_SIZE(variants); v++) {
		const struct frame_opts *opts = &variants[v];

		/* Every size up to an Ethernet frame's, then some. */
		for (uint32_t len = frame_headers_len(opts); len <= FRAME_BYTES_MAX;
		     len += len < 1530 ? 1 : 59) {
			memset(bytes, 0xee, sizeof(bytes));
			frame_build(bytes, len, opts);
			check_frame(bytes, len, opts);
			for (uint32_t i = 0; i < 16; i++) /* nothing is written behind it */
				assert_int_equal(bytes[len + i], 0xee);
			assert_int_equal(frame_l4_checksum(bytes, len), FRAME_L4_WHOLE);
		}
	}
}

static void a_stamped_frame_stays_valid(void **state)
{
	uint8_t bytes[200];

	(void)state;
	for (size_t v = 2; v < ARRAY_SIZE(variants); v++) {
		const struct frame_opts *opts = &variants[v];
		uint32_t stamp = frame_headers_len(opts) - 12;

		for (uint32_t i = 0; i < 70000; i++) {
			uint64_t time_ns = i * 1234567890123ULL;

			frame_build(bytes, sizeof(bytes), opts);
			frame_stamp(bytes, opts, i, time_ns);
			check_frame(bytes, sizeof(bytes), opts);
			assert_int_equal(word(bytes + stamp) << 16 | word(bytes + stamp + 2), i);
			assert_int_equal(word(bytes + stamp + 8) << 16 | word(bytes + stamp + 10),
					 time_ns % 1000000000 / 1000);
		}
	}
}

static void the_payload_is_the_pattern_in_network_order(void **state)
{
	struct frame_opts opts = { .pattern = 0x12345678 };
	uint8_t bytes[51];

	(void)state;
	frame_build(bytes, sizeof(bytes), &opts);
	assert_memory_equal(bytes + 42, "\x12\x34\x56\x78\x12\x34\x56\x78\x12", 9);
}

static void a_udp_checksum_of_zero_is_sent_as_ffff(void **state)
{
	uint8_t bytes[46];

	(void)state;
	/* With 4 bytes of payload one of the 65,536 patterns of the low half gives 0. */
	for (uint32_t pattern = 0; pattern <= 0xffff; pattern++) {
		struct frame_opts opts = { .pattern = pattern };

		frame_build(bytes, sizeof(bytes), &opts);
		assert_true(bytes[40] || bytes[41]);
		if (bytes[40] == 0xff && bytes[41] == 0xff)
			return;
	}
	fail_msg("no pattern gave a checksum of 0");
}

/* A frame as a sender with TX checksum offload leaves it: `ip` is 4 or 6, tags 0 to 2. */
static uint32_t offloaded(uint8_t *bytes, int ip, uint8_t protocol, int tags)
{
	uint32_t at = 12, l4_len = 60, addr, sum;

	memset(bytes, 0x5a, 200);
	for (int i = 0; i < tags; i++, at += 4)
		wire_put_16(bytes + at, i ? 0x8100 : 0x88a8);
	wire_put_16(bytes + at, ip == 4 ? 0x0800 : 0x86dd);
	at += 2;
	if (ip == 4) {
		bytes[at] = 0x45;
		wire_put_16(bytes + at + 2, 20 + l4_len);
		wire_put_16(bytes + at + 6, 0x4000);
		bytes[at + 9] = protocol;
		addr = at + 12;
		sum = folded_sum(bytes + addr, 8, protocol + l4_len);
		at += 20;
	} else {
		bytes[at] = 0x60;
		wire_put_16(bytes + at + 4, l4_len);
		bytes[at + 6] = protocol;
		addr = at + 8;
		sum = folded_sum(bytes + addr, 32, protocol + l4_len);
		at += 40;
	}
	wire_put_16(bytes + at + (protocol == 6 ? 16 : 6), sum);
	return at;
}

static void a_checksum_left_to_the_card_is_told_from_a_whole_one(void **state)
{
	static const struct {
		int ip;
		uint8_t protocol;
		int tags;
	} rows[] = { { 4, 6, 0 }, { 4, 17, 0 }, { 6, 6, 0 }, { 6, 17, 0 },
		     { 4, 6, 1 }, { 4, 17, 2 }, { 6, 6, 2 }, { 6, 17, 1 } };
	uint8_t bytes[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint32_t at = offloaded(bytes, rows[i].ip, rows[i].protocol, rows[i].tags);
		uint32_t field = at + (rows[i].protocol == 6 ? 16 : 6), sum = word(bytes + field);

		assert_int_equal(frame_l4_checksum(bytes, at + 60), FRAME_L4_PARTIAL);
		/* The rest of a packet of several descriptors is not there to be verified. */
		assert_int_equal(frame_l4_checksum(bytes, at + 30), FRAME_L4_PARTIAL);
		assert_int_equal(frame_l4_checksum(bytes, field + 1), FRAME_L4_OTHER);
		/* What a card would have put there. */
		wire_put_16(bytes + field, (uint16_t)~folded_sum(bytes + at, 60, 0));
		assert_int_equal(frame_l4_checksum(bytes, at + 60), FRAME_L4_WHOLE);
		/* A payload that brings the whole sum to the pseudo-header's. */
		wire_put_16(bytes + field, sum);
		wire_put_16(bytes + at + 58, 0);
		wire_put_16(bytes + at + 58, (uint16_t)~folded_sum(bytes + at, 60, sum));
		assert_int_equal(frame_l4_checksum(bytes, at + 60), FRAME_L4_WHOLE);
	}
}

static void what_is_no_whole_tcp_or_udp_packet_is_not_judged(void **state)
{
	uint8_t bytes[256];
	uint32_t at = offloaded(bytes, 4, 17, 0);

	(void)state;
	for (uint32_t len = 0; len < at + 8; len++)
		assert_int_equal(frame_l4_checksum(bytes, len), FRAME_L4_OTHER);
	wire_put_16(bytes + 20, 0x2000); /* more fragments */
	assert_int_equal(frame_l4_checksum(bytes, at + 60), FRAME_L4_OTHER);
	wire_put_16(bytes + 20, 0x00b9); /* a later fragment */
	assert_int_equal(frame_l4_checksum(bytes, at + 60), FRAME_L4_OTHER);
	offloaded(bytes, 4, 1, 0); /* ICMP */
	assert_int_equal(frame_l4_checksum(bytes, at + 60), FRAME_L4_OTHER);
	wire_put_16(bytes + 12, 0x0806); /* ARP */
	assert_int_equal(frame_l4_checksum(bytes, at + 60), FRAME_L4_OTHER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checksum_of_rfc_1071s_example),
		cmocka_unit_test(frames_of_every_size_are_valid),
		cmocka_unit_test(a_stamped_frame_stays_valid),
		cmocka_unit_test(the_payload_is_the_pattern_in_network_order),
		cmocka_unit_test(a_udp_checksum_of_zero_is_sent_as_ffff),
		cmocka_unit_test(a_checksum_left_to_the_card_is_told_from_a_whole_one),
		cmocka_unit_test(what_is_no_whole_tcp_or_udp_packet_is_not_judged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
