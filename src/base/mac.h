/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include <stdint.h>
#include <string.h>

#include "base/layout.h"

#define MAC_LEN 6

/* What a frame on the wire has behind its last byte, and AF_XDP does not see. */
#define ETHER_FCS_LEN 4

/* A VLAN tag. */
#define ETHER_VLAN_LEN 4

/* Destination, source, type: what every Ethernet frame has. Shorter ones are runts. */
#define ETHER_HEADER_LEN 14

/* Reads "02:00:00:00:00:02". Returns 0, or -EINVAL with *mac untouched. Pure; any thread. */
int mac_parse(const char *text, uint8_t *mac);

/* "02:00:00:00:00:02" and its end. */
#define MAC_TEXT_SIZE 18

/* Writes it as mac_parse() reads it. Returns text, of MAC_TEXT_SIZE bytes. Pure; any thread. */
char *mac_print(const uint8_t *mac, char *text);

/* Exchanges destination and source address of the frame, in place. The frame has at least a
 * header's 14 bytes; it need not be aligned. */
static always_inline void mac_swap(void *frame)
{
	uint8_t *bytes = frame;
	uint64_t dst, src; /* and the two bytes behind each */
	uint32_t dst_head;
	uint16_t dst_tail;

	memcpy(&dst, bytes, 8);
	memcpy(&src, bytes + 6, 8);
	memcpy(&dst_head, &dst, 4);
	memcpy(&dst_tail, (const uint8_t *)&dst + 4, 2);
	memcpy(bytes, &src, 8); /* the last two are overwritten by the next */
	memcpy(bytes + 6, &dst_head, 4);
	memcpy(bytes + 10, &dst_tail, 2);
}
