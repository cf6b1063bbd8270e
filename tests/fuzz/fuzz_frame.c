/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Generated frames from any options: what a receiver checks is checked here, by other means. */
#include "../../src/fwd/frame.c"

#include "fuzz.h"

/* The input's bytes one after the other, 0 behind its end. */
struct input {
	const uint8_t *data;
	size_t left;
};

static uint32_t take(struct input *input, unsigned bytes)
{
	uint32_t value = 0;

	while (bytes--) {
		value = value << 8 | (input->left ? *input->data : 0);
		input->data += input->left > 0;
		input->left -= input->left > 0;
	}
	return value;
}

static uint64_t be(const uint8_t *bytes, unsigned count)
{
	uint64_t value = 0;

	while (count--)
		value = value << 8 | *bytes++;
	return value;
}

/* Ones' complement arithmetic is arithmetic modulo 65,535: 0 for a right checksum. */
static uint64_t remainder_of(const uint8_t *bytes, uint32_t len, uint64_t sum)
{
	for (uint32_t i = 0; i < len; i++)
		sum += i % 2 ? bytes[i] : 256ULL * bytes[i];
	return sum % 65535;
}

static void check_frame(const uint8_t *bytes, const struct frame_opts *opts)
{
	const uint8_t *ip = bytes + 14, *udp = ip + 20, *payload = udp + 8;
	uint32_t udp_len = opts->len - 34;

	must(!memcmp(bytes, opts->dst, 6) && !memcmp(bytes + 6, opts->src, 6));
	must(be(bytes + 12, 2) == 0x0800);
	must(ip[0] == 0x45 && be(ip + 2, 2) == opts->len - 14 && ip[9] == 17);
	must(be(ip + 6, 2) == 0 && ip[8] == 64);
	must(be(ip + 12, 4) == 0xc0000201 && be(ip + 16, 4) == 0xc0000202);
	must(remainder_of(ip, 20, 0) == 0);
	must(be(udp, 4) == 0x10001000 && be(udp + 4, 2) == udp_len);
	must(be(udp + 6, 2) != 0);
	must(remainder_of(udp, udp_len, remainder_of(ip + 12, 8, 17 + udp_len)) == 0);
	for (uint32_t i = 0; i < udp_len - 8; i++)
		must(payload[i] == (opts->pattern >> (24 - 8 * (i % 4)) & 0xff));
}

/* NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's word */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct frame_template frame;
	struct input input = { data, size };
	struct frame_opts opts = {
		.len = FRAME_HEADERS_LEN +
		       take(&input, 2) % (FRAME_BYTES_MAX - FRAME_HEADERS_LEN + 1),
		.pattern = take(&input, 4),
	};

	for (int i = 0; i < MAC_LEN; i++) {
		opts.dst[i] = (uint8_t)take(&input, 1);
		opts.src[i] = (uint8_t)take(&input, 1);
	}
	memset(&frame, 0xee, sizeof(frame));
	frame_build(&frame, &opts);
	must(frame.len == opts.len);
	check_frame(frame.bytes, &opts);
	for (uint32_t i = opts.len; i < FRAME_BYTES_MAX; i++)
		must(frame.bytes[i] == 0xee);
	return 0;
}
