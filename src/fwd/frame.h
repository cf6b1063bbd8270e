/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The frames that txpush generates. Pure. */
#pragma once

#include <stdint.h>

#include "base/mac.h"

/* The largest frame a template holds, without FCS: what fits a 4096-byte chunk behind the kernel's
 * 256 bytes. */
#define FRAME_BYTES_MAX 3840

/* Ethernet, IPv4 and UDP headers together; also the smallest frame with all of them. */
#define FRAME_HEADERS_LEN 42

struct frame_template {
	uint32_t len; /* bytes, without FCS */
	uint8_t bytes[FRAME_BYTES_MAX];
};

struct frame_opts {
	uint32_t len; /* bytes without FCS, FRAME_HEADERS_LEN to FRAME_BYTES_MAX */
	uint8_t dst[MAC_LEN];
	uint8_t src[MAC_LEN];
	uint32_t pattern; /* fills the payload, most significant byte first */
};

/*
 * Builds an Ethernet/IPv4/UDP frame whose lengths and checksums are right, UDP's included: from
 * 192.0.2.1 to 192.0.2.2 (RFC 5737: documentation, routed nowhere), ports 4096, TTL 64.
 */
void frame_build(struct frame_template *frame, const struct frame_opts *opts);

/* The Internet checksum (RFC 1071) of bytes in network order, starting from a sum of 16-bit words;
 * the result is in host order and complemented. */
uint16_t frame_checksum(const uint8_t *bytes, uint32_t len, uint32_t sum);
