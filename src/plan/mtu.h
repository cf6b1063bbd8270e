/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* MTU against frame size. A frame that does not fit its chunk is dropped by the kernel, which attaches a
 * program at any MTU, so the check is ours. Pure; any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "conf/conf.h"

/* The largest Ethernet header that can stand before an MTU's worth: two VLAN tags. */
#define MTU_HEADERS_MAX (ETHER_HEADER_LEN + 8)

/* The largest MTU whose frames fit one chunk each; UINT32_MAX where a packet may take several. */
uint32_t mtu_limit(const struct conf_forward *conf);

/* The largest MTU of chunks of that many bytes. */
uint32_t mtu_limit_of(const struct conf_forward *conf, unsigned frame_size);

/* Writes ", with -f 4096 (up to N)" where larger chunks would hold this MTU, else "". */
void mtu_larger_chunks(const struct conf_forward *conf, uint32_t mtu, char *text, size_t size);
