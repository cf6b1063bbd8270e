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

static void frames_of_every_size_are_valid(void **state)
{
	static struct frame_template frame;

	(void)state;
	for (uint32_t len = FRAME_HEADERS_LEN; len <= FRAME_BYTES_MAX; len++) {
		struct frame_opts opts = { .len = len,
					   .dst = { 2, 0, 0, 0, 0, 2 },
					   .src = { 2, 0, 0, 0, 0, 1 },
					   .pattern = 0x12345678 };
		uint32_t udp_len = len - 34, pseudo;

		memset(&frame, 0xee, sizeof(frame));
		frame_build(&frame, &opts);
		assert_int_equal(frame.len, len);
		assert_memory_equal(frame.bytes, opts.dst, 6);
		assert_memory_equal(frame.bytes + 6, opts.src, 6);
		assert_int_equal(frame.bytes[12] << 8 | frame.bytes[13], 0x0800);
		assert_int_equal(frame.bytes[14], 0x45);
		assert_int_equal(frame.bytes[16] << 8 | frame.bytes[17], len - 14);
		assert_int_equal(frame.bytes[23], 17);
		assert_int_equal(folded_sum(frame.bytes + 14, 20, 0), 0xffff);
		assert_int_equal(frame.bytes[38] << 8 | frame.bytes[39], udp_len);
		assert_true(frame.bytes[40] || frame.bytes[41]); /* 0 would mean "none" */
		pseudo = folded_sum(frame.bytes + 26, 8, 17 + udp_len);
		assert_int_equal(folded_sum(frame.bytes + 34, udp_len, pseudo), 0xffff);
		/* Nothing is written behind the frame. */
		for (uint32_t i = len; i < FRAME_BYTES_MAX && i < len + 16; i++)
			assert_int_equal(frame.bytes[i], 0xee);
	}
}

static void the_payload_is_the_pattern_in_network_order(void **state)
{
	static struct frame_template frame;
	struct frame_opts opts = { .len = 51, .pattern = 0x12345678 };

	(void)state;
	frame_build(&frame, &opts);
	assert_memory_equal(frame.bytes + 42, "\x12\x34\x56\x78\x12\x34\x56\x78\x12", 9);
}

static void a_udp_checksum_of_zero_is_sent_as_ffff(void **state)
{
	static struct frame_template frame;
	struct frame_opts opts = { .len = 46 };

	(void)state;
	/* With 4 bytes of payload one of the 65,536 patterns of the low half gives 0. */
	for (uint32_t pattern = 0; pattern <= 0xffff; pattern++) {
		opts.pattern = pattern;
		frame_build(&frame, &opts);
		assert_true(frame.bytes[40] || frame.bytes[41]);
		if (frame.bytes[40] == 0xff && frame.bytes[41] == 0xff)
			return;
	}
	fail_msg("no pattern gave a checksum of 0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checksum_of_rfc_1071s_example),
		cmocka_unit_test(frames_of_every_size_are_valid),
		cmocka_unit_test(the_payload_is_the_pattern_in_network_order),
		cmocka_unit_test(a_udp_checksum_of_zero_is_sent_as_ffff),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
