/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What flood's programs and its user side agree on. Nobody else includes this.
 *
 * A frame of flood: Ethernet, IPv4 and UDP (42 bytes), the sequence number (8 bytes, big endian,
 * 0 for the first frame of a run), then fill bytes that depend on their offset in the frame only.
 * With --vlan all that is behind the addresses stands 4 bytes later.
 */
#pragma once

#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/types.h>
#include <linux/udp.h>

#define FLOOD_SEQ_AT   42
#define FLOOD_FILL_AT  50
#define FLOOD_SIZE_MIN 60
#define FLOOD_SIZE_MAX 1514

/* Addresses set aside for benchmarks (RFC 2544), port discard: no host answers these. */
#define FLOOD_SADDR 0xc6120001u
#define FLOOD_DADDR 0xc6120002u
#define FLOOD_DPORT 9
#define FLOOD_SPORT 1024

/*
 * How many sequence numbers behind the highest can still be told from a duplicate. 64 Ki is 250
 * times the ring of a veth (256) and 16 times a 4 Ki XDP ring, so no queue here reorders further,
 * and its 512 KiB still fit a second-level cache. Smaller: reordering shows as "late"; larger:
 * the check slows the sink down. A power of two: the program masks with it.
 */
#define FLOOD_WINDOW 65536

#define FLOOD_TAG_LEN 4

struct flood_headers {
	struct ethhdr eth;
	struct iphdr ip;
	struct udphdr udp;
} __attribute__((packed));

/* Owner: the CPU the program runs on; user space reads all of them and adds up. */
struct flood_counts {
	__u64 frames;
	__u64 bytes;
	/* The rest only with --check. */
	__u64 foreign;	 /* not a frame of flood */
	__u64 corrupt;	 /* a frame of flood, but its lengths, IP checksum or fill are wrong */
	__u64 fresh;	 /* a sequence number seen for the first time */
	__u64 duplicate; /* a sequence number seen before */
	__u64 late;	 /* further behind than the window: new or a duplicate, unknown */
	__u64 next;	 /* highest sequence number seen, plus 1 */
};

static inline __u8 flood_fill(unsigned int offset)
{
	/* 7 and 256 have no common factor: 256 offsets in a row give 256 different bytes. */
	return (__u8)(offset * 7 + (offset >> 8) + 3);
}
