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

/* sockaddr_xdp.sxdp_flags: packets may take several descriptors (since 6.6). */
#ifndef XDP_USE_SG
#define XDP_USE_SG (1 << 4)
#endif

/* xsk_umem_reg.flags: tx_metadata_len is meant (since 6.8). */
#ifndef XDP_UMEM_TX_METADATA_LEN
#define XDP_UMEM_TX_METADATA_LEN (1 << 2)
#endif

/*
 * struct xdp_umem_reg as of 6.8, under a name of our own. The headers' may lack the last member, whose
 * place was padding before, so that the length is the same and an older kernel does not look at it.
 */
struct xsk_umem_reg {
	uint64_t addr; /* page aligned */
	uint64_t len;
	uint32_t chunk_size;
	uint32_t headroom;
	uint32_t flags;
	uint32_t tx_metadata_len;
};
