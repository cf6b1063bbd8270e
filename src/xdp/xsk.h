/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One AF_XDP socket on the kernel's plain interface: its four rings, its bind, its statistics, its
 * wake-ups. The fd comes from the opener (making it needs CAP_NET_RAW); everything here works
 * without a capability.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "xdp/ring.h"

enum xsk_ring {
	XSK_RING_FILL,
	XSK_RING_RX,
	XSK_RING_TX,
	XSK_RING_COMPLETION,
	XSK_RINGS,
};

struct xsk_mapping {
	void *base;
	uint64_t bytes;
};

struct xsk {
	int fd;		  /* 0 or -1: closed. Owned. */
	bool zero_copy;	  /* as bound, read back from the kernel */
	bool need_wakeup; /* as the bind accepted it */
	struct ring ring[XSK_RINGS];
	struct xsk_mapping mapping[XSK_RINGS];
};

struct xsk_bind_opts {
	int ifindex;
	uint32_t queue;
	bool zero_copy; /* this or -EOPNOTSUPP; false: copy */
	bool frags;	/* packets may take several descriptors; a kernel before 6.6 says -EINVAL */
	bool no_need_wakeup;
	int shared_fd; /* a bound socket whose UMEM this one shares; -1: it registered its own */
};

/* XDP_STATISTICS, all of it counted since the socket was made. */
struct xsk_stats {
	uint64_t rx_dropped;
	uint64_t rx_invalid_descs;
	uint64_t tx_invalid_descs;
	uint64_t rx_ring_full;
	uint64_t rx_fill_ring_empty_descs;
	uint64_t tx_ring_empty_descs;
};

/*
 * Takes over the socket `fd`, sets its ring sizes (entries, powers of two) and maps its rings. Comes
 * before xsk_bind(), which needs the sizes, and lets the caller stock fill in between. Main thread.
 * Returns 0 or -errno (-ENOMEM), without a message; the fd belongs to *xsk in both cases.
 */
int xsk_map(struct xsk *xsk, int fd, uint32_t ring_size, uint32_t fill_size);

/*
 * Binds a socket to one queue of a device. Fill should be stocked before: some drivers look at it only once.
 * Returns 0; -EOPNOTSUPP where zero-copy cannot be had; -EBUSY if the queue has a socket (or had one until just
 * now: the kernel frees it a little later); -EINVAL for a queue that is not active; or another -errno. No
 * message. Any process that has the fd, without a capability: see opener_bind().
 */
int xsk_bind(int fd, const struct xsk_bind_opts *opts);

/* Reads back what a bind with these gave. Returns 0 or -errno, without a message. Main thread. */
int xsk_read_back(struct xsk *xsk, const struct xsk_bind_opts *opts);

/* Reads the socket's statistics; those of a dead device stay readable. Main thread. Returns 0, or
 * -errno with *stats untouched. */
int xsk_stats(const struct xsk *xsk, struct xsk_stats *stats);

/* True once the socket has received from a NAPI that busy polling can run: it is told by the first frame,
 * and never in skb mode on a device without one. Main thread. */
bool xsk_has_napi(const struct xsk *xsk);

/* True if the socket's device went: the kernel has unbound it, and it will never carry a frame again. Told
 * once. Main thread. */
bool xsk_is_unbound(const struct xsk *xsk);

/* Ends busy polling of the socket, which needs no privilege. Returns 0 or -errno. Main thread. */
int xsk_no_busy_poll(const struct xsk *xsk);

/* Unmaps and closes; a zeroed or half-open socket is fine. What it was (zero_copy, need_wakeup) can
 * still be read. The UMEM's frames are the caller's. Main thread. */
void xsk_close(struct xsk *xsk);

/*
 * Asks the kernel to send what is on the TX ring. One system call, never blocks. The poller's thread.
 * Returns 0, or -errno: -EAGAIN its batch is used up or memory short, -EBUSY or -ENOBUFS a frame was
 * not taken by the device, -ENETDOWN the device is down, -ENXIO it is gone.
 */
int xsk_wake_tx(int fd);

/* Tells the driver that the fill ring has frames again. One system call, never blocks. The poller's
 * thread. */
void xsk_wake_rx(int fd);
