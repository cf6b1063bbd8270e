/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The frames that txpush generates, and what tells a half-finished checksum from a whole one. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/mac.h"

/* The largest frame that is generated, without FCS: xdpsock's 9728 with it. */
#define FRAME_BYTES_MAX 9724

/* Ethernet, IPv4 and UDP headers together; also the smallest frame with all of them. */
#define FRAME_HEADERS_LEN 42

/* What a timestamp adds to them. */
#define FRAME_TIMESTAMP_LEN 16

/* The most bytes before the payload. */
#define FRAME_HEADERS_MAX (FRAME_HEADERS_LEN + ETHER_VLAN_LEN + FRAME_TIMESTAMP_LEN)

struct frame_opts {
	uint8_t dst[MAC_LEN];
	uint8_t src[MAC_LEN];
	uint32_t pattern; /* fills the payload, most significant byte first */
	bool vlan;
	uint16_t vlan_tci; /* priority << 13 | VLAN id */
	bool timestamp;	   /* the payload begins with room for frame_stamp() */
};

/* Bytes before the payload of such frames: all that depends on the frame's length lies in them. */
uint32_t frame_headers_len(const struct frame_opts *opts);

/*
 * Builds an Ethernet/IPv4/UDP frame of `len` bytes without FCS, frame_headers_len() to
 * FRAME_BYTES_MAX, whose lengths and checksums are right, UDP's included: from 192.0.2.1 to 192.0.2.2
 * (RFC 5737: documentation, routed nowhere), ports 4096, TTL 64. The payload is the same for every
 * length, as far as it goes.
 */
void frame_build(uint8_t *bytes, uint32_t len, const struct frame_opts *opts);

/*
 * Writes sequence number and time into a frame that was built with opts->timestamp and not stamped
 * since, and mends its checksum. `headers` are its first frame_headers_len() bytes. The format is that
 * of the kernel's pktgen: magic, sequence, seconds, microseconds, each 32 bits in network order.
 */
void frame_stamp(uint8_t *headers, const struct frame_opts *opts, uint32_t sequence,
		 uint64_t time_ns);

/* The Internet checksum (RFC 1071) of bytes in network order, starting from a sum of 16-bit words;
 * the result is in host order and complemented. */
uint16_t frame_checksum(const uint8_t *bytes, uint32_t len, uint32_t sum);

/* What a TCP or UDP checksum says of itself. */
enum frame_l4 {
	FRAME_L4_OTHER, /* not TCP or UDP over IP, a fragment, or cut off before its checksum */
	FRAME_L4_WHOLE, /* not a pseudo-header sum */
	FRAME_L4_PARTIAL, /* the field holds the sum of the pseudo-header only: the sender left the rest
			   * to a network card, and no receiver will take the frame as it is */
};

/*
 * Looks at a frame, tagged or not, of `len` bytes. A whole checksum that happens to equal the
 * pseudo-header sum (1 in 65,536) is told apart by verifying it where all of the packet is there.
 */
enum frame_l4 frame_l4_checksum(const uint8_t *bytes, uint32_t len);
