/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's AF_XDP interface. Debian 12 ships the headers of 6.1; what they lack and we use is
 * defined here with the values of Linux 6.18's include/uapi/linux/if_xdp.h.
 */
#pragma once

#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <sys/socket.h>

#ifndef AF_XDP
#define AF_XDP 44
#endif
#ifndef SOL_XDP
#define SOL_XDP 283
#endif

/* struct xdp_desc.options: the packet continues in the next descriptor (since 6.6). */
#ifndef XDP_PKT_CONTD
#define XDP_PKT_CONTD (1 << 0)
#endif

/* Room the kernel leaves before a received frame (include/uapi/linux/bpf.h names it only for
 * programs: XDP_PACKET_HEADROOM). */
#define XSK_HEADROOM 256

/*
 * struct xdp_umem_reg as of 6.8, under a name of our own: the headers' struct may be older and
 * shorter. The kernel tells the versions apart by the length given to setsockopt().
 */
struct xsk_umem_reg {
	uint64_t addr; /* page aligned */
	uint64_t len;
	uint32_t chunk_size;
	uint32_t headroom;
	uint32_t flags;
	uint32_t tx_metadata_len;
};
