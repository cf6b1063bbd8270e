/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <linux/bpf.h>
#include <linux/in.h>
#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "flood.h"

/*
 * The headers as the words that are stored: a packed structure would be copied byte by byte. The
 * last two bytes, the UDP checksum, are 0 (none): the payload differs in every frame.
 */
#define HEADER_WORDS (sizeof(struct flood_headers) / 8)
_Static_assert(HEADER_WORDS * 8 + sizeof(__u16) == sizeof(struct flood_headers), "checksum left");
_Static_assert(sizeof(struct flood_headers) == FLOOD_SEQ_AT, "the sequence number comes next");

/* Set before the load, constant afterwards: the verifier removes what is switched off. */
const volatile __u64 header[HEADER_WORDS];
const volatile __u32 header_end; /* the last bytes of a header with a tag */
const volatile __u32 tag_len;	 /* FLOOD_TAG_LEN, or 0 */
const volatile __u32 flows = 1;
const volatile bool check;
const volatile __u8 fill[FLOOD_SIZE_MAX + 8];

/* Owner: the one task that sits in BPF_PROG_TEST_RUN. Only frames handed to the device count. */
__u64 produced;
__u64 refused; /* by the map: the device was unregistered */
__u32 flow;

/* slot[seq % FLOOD_WINDOW] = the last sequence number seen there, plus 1 */
__u64 slot[FLOOD_WINDOW];

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} port SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct flood_counts);
} counts SEC(".maps");

static __always_inline void *packet_pointer(__u32 field)
{
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): the verifier makes it a pointer */
	return (void *)(long)field;
}

/*
 * The pages of a live-frame run are recycled as the last receiver left them (a reflector swaps
 * addresses in place), so every header byte is written each time, not the varying ones alone. The
 * fill stays from the first use of the page: who damages it is found by the sink.
 */
SEC("xdp")
int flood_gen(struct xdp_md *ctx)
{
	void *data = packet_pointer(ctx->data);
	void *data_end = packet_pointer(ctx->data_end);
	__u64 *word = data;
	long action;

	if (data + FLOOD_FILL_AT + FLOOD_TAG_LEN > data_end)
		return XDP_ABORTED;
#pragma unroll
	for (unsigned int i = 0; i < HEADER_WORDS; i++)
		word[i] = header[i];
	if (tag_len)
		*(__u32 *)(word + HEADER_WORDS) = header_end;
	data += tag_len;
	*(__u16 *)(data + FLOOD_SEQ_AT - sizeof(__u16)) = 0;
	*(__be16 *)(data + offsetof(struct flood_headers, udp)) = bpf_htons(FLOOD_SPORT + flow);
	*(__be64 *)(data + FLOOD_SEQ_AT) = bpf_cpu_to_be64(produced);

	action = bpf_redirect_map(&port, 0, XDP_ABORTED);
	if (action == XDP_REDIRECT) {
		produced++;
		flow = flow + 1 < flows ? flow + 1 : 0;
	} else {
		refused++;
	}
	return (int)action;
}

static __always_inline bool ip_checksum_ok(const void *ip)
{
	const __u16 *word = ip;
	__u32 sum = 0;

#pragma unroll
	for (int i = 0; i < 10; i++)
		sum += word[i];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

static __always_inline bool fill_ok(const void *data, const void *data_end)
{
	__u32 at;

	for (at = FLOOD_FILL_AT; at + 8 <= FLOOD_SIZE_MAX; at += 8) {
		if (data + at + 8 > data_end)
			break;
		if (*(const __u64 *)(data + at) != *(const volatile __u64 *)(fill + at))
			return false;
	}
	for (int i = 0; i < 8; i++, at++) {
		if (data + at + 1 > data_end)
			break;
		if (*(const __u8 *)(data + at) != fill[at])
			return false;
	}
	return true;
}

/*
 * Two CPUs race here only if they receive the same sequence number, or two that lie a multiple of
 * the window apart, in the same instant.
 */
static __always_inline void seq_note(struct flood_counts *c, __u64 seq)
{
	__u64 *seen = &slot[seq & (FLOOD_WINDOW - 1)];

	if (*seen == seq + 1) {
		c->duplicate++;
	} else if (*seen > seq + 1) {
		c->late++;
	} else {
		c->fresh++;
		*seen = seq + 1;
	}
	if (c->next < seq + 1)
		c->next = seq + 1;
}

static __always_inline void frame_check(struct flood_counts *c, void *data, void *data_end,
					__u32 len)
{
	const struct flood_headers *frame = data;

	if (data + FLOOD_FILL_AT > data_end || frame->eth.h_proto != bpf_htons(ETH_P_IP) ||
	    frame->ip.protocol != IPPROTO_UDP || frame->ip.saddr != bpf_htonl(FLOOD_SADDR) ||
	    frame->ip.daddr != bpf_htonl(FLOOD_DADDR) ||
	    frame->udp.dest != bpf_htons(FLOOD_DPORT)) {
		c->foreign++;
		return;
	}
	if (bpf_ntohs(frame->ip.tot_len) + sizeof(frame->eth) != len ||
	    bpf_ntohs(frame->udp.len) + sizeof(frame->eth) + sizeof(frame->ip) != len ||
	    !ip_checksum_ok(data + sizeof(frame->eth)) || !fill_ok(data, data_end)) {
		c->corrupt++;
		return;
	}
	seq_note(c, bpf_be64_to_cpu(*(const __be64 *)(data + FLOOD_SEQ_AT)));
}

SEC("xdp.frags")
int flood_sink(struct xdp_md *ctx)
{
	void *data = packet_pointer(ctx->data);
	void *data_end = packet_pointer(ctx->data_end);
	__u32 len = bpf_xdp_get_buff_len(ctx);
	__u32 key = 0;
	struct flood_counts *c = bpf_map_lookup_elem(&counts, &key);

	if (!c)
		return XDP_ABORTED;
	c->frames++;
	c->bytes += len;
	if (check)
		frame_check(c, data, data_end, len);
	return XDP_DROP;
}

SEC("xdp.frags")
int flood_pass(struct xdp_md *ctx __attribute__((unused)))
{
	return XDP_PASS;
}

/* What a forwarder does that leaves all to the kernel: no copy into user space and back. */
SEC("xdp.frags")
int flood_redirect(struct xdp_md *ctx __attribute__((unused)))
{
	return (int)bpf_redirect_map(&port, 0, XDP_ABORTED);
}

char program_license[] SEC("license") = "Dual BSD/GPL";
