/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "xdp/xsk.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

struct ring_row {
	int size_option;
	uint64_t page_offset;
	size_t offsets; /* of the ring's struct xdp_ring_offset in struct xdp_mmap_offsets */
	size_t entry_bytes;
	bool consumed; /* by us: the kernel produces */
};

static const struct ring_row ring_rows[XSK_RINGS] = {
	[XSK_RING_FILL] = { XDP_UMEM_FILL_RING, XDP_UMEM_PGOFF_FILL_RING,
			    offsetof(struct xdp_mmap_offsets, fr), sizeof(uint64_t), false },
	[XSK_RING_RX] = { XDP_RX_RING, XDP_PGOFF_RX_RING, offsetof(struct xdp_mmap_offsets, rx),
			  sizeof(struct xdp_desc), true },
	[XSK_RING_TX] = { XDP_TX_RING, XDP_PGOFF_TX_RING, offsetof(struct xdp_mmap_offsets, tx),
			  sizeof(struct xdp_desc), false },
	[XSK_RING_COMPLETION] = { XDP_UMEM_COMPLETION_RING, XDP_UMEM_PGOFF_COMPLETION_RING,
				  offsetof(struct xdp_mmap_offsets, cr), sizeof(uint64_t), true },
};

static int map_ring(struct xsk *xsk, enum xsk_ring which, const struct xdp_mmap_offsets *all,
		    uint32_t size)
{
	const struct ring_row *row = &ring_rows[which];
	const struct xdp_ring_offset *at = (const void *)((const char *)all + row->offsets);
	struct xsk_mapping *mapping = &xsk->mapping[which];
	struct ring *ring = &xsk->ring[which];
	char *base;

	mapping->bytes = at->desc + (uint64_t)size * row->entry_bytes;
	base = mmap(NULL, mapping->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		    xsk->fd, (off_t)row->page_offset);
	if (base == MAP_FAILED)
		return -errno;
	mapping->base = base;
	*ring = (struct ring){
		.mask = size - 1,
		.producer = (uint32_t *)(base + at->producer),
		.consumer = (uint32_t *)(base + at->consumer),
		.flags = (uint32_t *)(base + at->flags),
		.entries = base + at->desc,
	};
	ring->own = load_relaxed(row->consumed ? ring->consumer : ring->producer);
	ring->peer = load_relaxed(row->consumed ? ring->producer : ring->consumer);
	return 0;
}

int xsk_map(struct xsk *xsk, int fd, uint32_t ring_size, uint32_t fill_size)
{
	struct xdp_mmap_offsets offsets;
	socklen_t len = sizeof(offsets);

	*xsk = (struct xsk){ .fd = fd };
	for (int i = 0; i < XSK_RINGS; i++) {
		uint32_t size = i == XSK_RING_FILL ? fill_size : ring_size;

		if (setsockopt(fd, SOL_XDP, ring_rows[i].size_option, &size, sizeof(size)))
			return -errno;
	}
	if (getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &len))
		return -errno;
	for (int i = 0; i < XSK_RINGS; i++) {
		int err = map_ring(xsk, (enum xsk_ring)i, &offsets,
				   i == XSK_RING_FILL ? fill_size : ring_size);

		if (err)
			return err;
	}
	return 0;
}

int xsk_bind(int fd, const struct xsk_bind_opts *opts)
{
	struct sockaddr_xdp address = {
		.sxdp_family = AF_XDP,
		.sxdp_ifindex = (uint32_t)opts->ifindex,
		.sxdp_queue_id = opts->queue,
	};

	if (opts->shared_fd >= 0) {
		/* Any other flag is refused: copy, need_wakeup and SG are those of the shared socket. */
		address.sxdp_flags = XDP_SHARED_UMEM;
		address.sxdp_shared_umem_fd = (uint32_t)opts->shared_fd;
	} else {
		address.sxdp_flags = opts->zero_copy ? XDP_ZEROCOPY : XDP_COPY;
		if (!opts->no_need_wakeup)
			address.sxdp_flags |= XDP_USE_NEED_WAKEUP;
		if (opts->frags)
			address.sxdp_flags |= XDP_USE_SG;
	}
	return bind(fd, (struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
}

int xsk_read_back(struct xsk *xsk, const struct xsk_bind_opts *opts)
{
	struct xdp_options options = { 0 };
	socklen_t len = sizeof(options);

	if (getsockopt(xsk->fd, SOL_XDP, XDP_OPTIONS, &options, &len))
		return -errno;
	xsk->zero_copy = options.flags & XDP_OPTIONS_ZEROCOPY;
	/* XDP_OPTIONS does not tell this one, and the TX ring's flag is set whether it was asked for or
	 * not. A bind that carries the flag, or shares with one that did, honours it or fails. */
	xsk->need_wakeup = !opts->no_need_wakeup;
	return 0;
}

int xsk_stats(const struct xsk *xsk, struct xsk_stats *stats)
{
	struct xdp_statistics kernel = { 0 };
	socklen_t len = sizeof(kernel);

	if (getsockopt(xsk->fd, SOL_XDP, XDP_STATISTICS, &kernel, &len))
		return -errno;
	*stats = (struct xsk_stats){
		.rx_dropped = kernel.rx_dropped,
		.rx_invalid_descs = kernel.rx_invalid_descs,
		.tx_invalid_descs = kernel.tx_invalid_descs,
		.rx_ring_full = kernel.rx_ring_full,
		.rx_fill_ring_empty_descs = kernel.rx_fill_ring_empty_descs,
		.tx_ring_empty_descs = kernel.tx_ring_empty_descs,
	};
	return 0;
}

bool xsk_has_napi(const struct xsk *xsk)
{
	unsigned id = 0;
	socklen_t len = sizeof(id);

	return !getsockopt(xsk->fd, SOL_SOCKET, SO_INCOMING_NAPI_ID, &id, &len) && id;
}

bool xsk_is_unbound(const struct xsk *xsk)
{
	int err = 0;
	socklen_t len = sizeof(err);

	return !getsockopt(xsk->fd, SOL_SOCKET, SO_ERROR, &err, &len) && err == ENETDOWN;
}

int xsk_no_busy_poll(const struct xsk *xsk)
{
	const int off = 0;

	if (setsockopt(xsk->fd, SOL_SOCKET, SO_PREFER_BUSY_POLL, &off, sizeof(off)) ||
	    setsockopt(xsk->fd, SOL_SOCKET, SO_BUSY_POLL, &off, sizeof(off)))
		return -errno;
	return 0;
}

void xsk_close(struct xsk *xsk)
{
	for (int i = 0; i < XSK_RINGS; i++) {
		if (xsk->mapping[i].base)
			munmap(xsk->mapping[i].base, xsk->mapping[i].bytes);
		xsk->mapping[i] = (struct xsk_mapping){ 0 };
		xsk->ring[i] = (struct ring){ 0 };
	}
	if (xsk->fd > 0)
		close(xsk->fd);
	xsk->fd = -1;
}

int xsk_wake_tx(int fd)
{
	return sendto(fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0 ? -errno : 0;
}

void xsk_wake_rx(int fd)
{
	/* The answer does not matter: a driver that could not be woken is asked again next pass. */
	(void)recvfrom(fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
}
