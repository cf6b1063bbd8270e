/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Generated frames from any options: what a receiver checks is checked here, by other means. And any
 * bytes as a received frame: what is said of its checksum holds, and nothing behind it is read.
 */
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

/* Where IPv4 begins in a generated frame. */
static uint32_t ip_at(const struct frame_opts *opts)
{
	return opts->vlan ? 18 : 14;
}

static void check_headers(const uint8_t *bytes, uint32_t len, const struct frame_opts *opts)
{
	const uint8_t *ip = bytes + ip_at(opts), *udp = ip + 20;
	uint32_t udp_len = len - ip_at(opts) - 20;

	must(!memcmp(bytes, opts->dst, 6) && !memcmp(bytes + 6, opts->src, 6));
	must(!opts->vlan || be(bytes + 12, 4) == (0x81000000U | opts->vlan_tci));
	must(be(ip - 2, 2) == 0x0800);
	must(ip[0] == 0x45 && be(ip + 2, 2) == 20 + udp_len);
	must(be(ip + 6, 2) == 0 && ip[8] == 64 && ip[9] == 17);
	must(be(ip + 12, 4) == 0xc0000201 && be(ip + 16, 4) == 0xc0000202);
	must(remainder_of(ip, 20, 0) == 0);
	must(be(udp, 4) == 0x10001000 && be(udp + 4, 2) == udp_len);
	must(be(udp + 6, 2) != 0);
	must(remainder_of(udp, udp_len, remainder_of(ip + 12, 8, 17 + udp_len)) == 0);
}

static void check_payload(const uint8_t *bytes, uint32_t len, const struct frame_opts *opts)
{
	uint32_t at = ip_at(opts) + 28;

	if (opts->timestamp) {
		must(be(bytes + at, 4) == 0xbe9be955);
		at += 16;
	}
	must(frame_headers_len(opts) == at);
	for (uint32_t i = 0; i < len - at; i++)
		must(bytes[at + i] == (opts->pattern >> (24 - 8 * (i % 4)) & 0xff));
}

static void check_stamp(uint8_t *bytes, uint32_t len, const struct frame_opts *opts,
			struct input *input)
{
	const uint8_t *stamp = bytes + ip_at(opts) + 32;
	uint32_t sequence = take(input, 4);
	uint64_t time_ns = (uint64_t)take(input, 4) << 32 | take(input, 4);

	must(be(stamp, 4) == 0 && be(stamp + 4, 8) == 0);
	frame_stamp(bytes, opts, sequence, time_ns);
	must(be(stamp, 4) == sequence);
	must(be(stamp + 4, 4) == (time_ns / 1000000000 & 0xffffffff));
	must(be(stamp + 8, 4) == time_ns % 1000000000 / 1000);
	check_headers(bytes, len, opts);
	check_payload(bytes, len, opts);
}

/* The sender left the checksum to its card: only the pseudo-header is in it. The remainder of such a
 * frame is that of its UDP header and payload, and a whole one only where that is 0 too. */
static void check_partial(uint8_t *bytes, uint32_t len, const struct frame_opts *opts)
{
	uint8_t *ip = bytes + ip_at(opts), *udp = ip + 20;
	uint32_t udp_len = len - ip_at(opts) - 20;
	uint64_t pseudo = remainder_of(ip + 12, 8, 17 + udp_len);
	bool whole;

	must(frame_l4_checksum(bytes, len) == FRAME_L4_WHOLE);
	udp[6] = (uint8_t)(pseudo >> 8);
	udp[7] = (uint8_t)pseudo;
	whole = remainder_of(udp, udp_len, pseudo) == 0;
	must(frame_l4_checksum(bytes, len) == (whole ? FRAME_L4_WHOLE : FRAME_L4_PARTIAL));
}

static void generate(struct input *input)
{
	uint32_t bits = take(input, 1), len;
	struct frame_opts opts = {
		.vlan = bits & 1,
		.timestamp = bits & 2,
		.vlan_tci = (uint16_t)take(input, 2),
	};
	uint8_t *bytes;

	len = frame_headers_len(&opts);
	len += take(input, 2) % (FRAME_BYTES_MAX - len + 1);
	opts.pattern = take(input, 4);
	for (int i = 0; i < MAC_LEN; i++) {
		opts.dst[i] = (uint8_t)take(input, 1);
		opts.src[i] = (uint8_t)take(input, 1);
	}
	bytes = malloc(len); /* its very length: a byte written behind it is seen */
	must(bytes);
	memset(bytes, 0xee, len);
	frame_build(bytes, len, &opts);
	check_headers(bytes, len, &opts);
	check_payload(bytes, len, &opts);
	if (opts.timestamp)
		check_stamp(bytes, len, &opts, input);
	check_partial(bytes, len, &opts);
	free(bytes);
}

static void receive(const struct input *input)
{
	uint32_t len = (uint32_t)input->left;
	uint8_t *bytes = malloc(len ? len : 1);
	enum frame_l4 found;

	must(bytes);
	memcpy(bytes, input->data, len);
	found = frame_l4_checksum(bytes, len);
	must(found == FRAME_L4_OTHER || found == FRAME_L4_WHOLE || found == FRAME_L4_PARTIAL);
	must(len >= 14 + 20 + 8 || found == FRAME_L4_OTHER);
	free(bytes);
}

/* NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's word */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size };

	if (take(&input, 1) & 1)
		receive(&input);
	else
		generate(&input);
	return 0;
}
