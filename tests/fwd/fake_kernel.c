/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "fwd/fake_kernel.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Far above any real fd, so that a call that slips through to the kernel fails. */
#define FD_BASE	    100000
#define SOCKETS_MAX 8

static struct fake_socket *sockets[SOCKETS_MAX];
static fake_poll_fn *poll_hook;
static void *poll_context;

struct fake_socket *fake_open(struct umem *umem, uint32_t ring_size, uint32_t fill_size,
			      uint64_t start)
{
	struct fake_socket *socket = calloc(1, sizeof(*socket));
	unsigned slot = 0;

	while (sockets[slot])
		slot++;
	assert(slot < SOCKETS_MAX);
	socket->umem = umem;
	socket->last = calloc(FAKE_LAST, sizeof(*socket->last));
	socket->xsk.fd = FD_BASE + (int)slot;
	socket->xsk.need_wakeup = true;
	for (int i = 0; i < XSK_RINGS; i++) {
		bool addresses = i == XSK_RING_FILL || i == XSK_RING_COMPLETION;

		socket->size[i] = i == XSK_RING_FILL ? fill_size : ring_size;
		socket->entries[i] = calloc(socket->size[i],
					    addresses ? sizeof(uint64_t) : sizeof(struct xdp_desc));
		socket->producer[i] = socket->consumer[i] = (uint32_t)start;
		socket->xsk.ring[i] = (struct ring){
			.own = start,
			.peer = (uint32_t)start,
			.mask = socket->size[i] - 1,
			.producer = &socket->producer[i],
			.consumer = &socket->consumer[i],
			.flags = &socket->flags[i],
			.entries = socket->entries[i],
		};
	}
	sockets[slot] = socket;
	return socket;
}

void fake_close(struct fake_socket *socket)
{
	sockets[socket->xsk.fd - FD_BASE] = NULL;
	for (int i = 0; i < XSK_RINGS; i++)
		free(socket->entries[i]);
	free(socket->last);
	free(socket);
}

static struct fake_socket *socket_of(int fd)
{
	assert(fd >= FD_BASE && fd < FD_BASE + SOCKETS_MAX && sockets[fd - FD_BASE]);
	return sockets[fd - FD_BASE];
}

static uint32_t occupied(const struct fake_socket *socket, enum xsk_ring ring)
{
	return load_acquire(&socket->producer[ring]) - load_acquire(&socket->consumer[ring]);
}

static bool take_chunk(struct fake_socket *socket, uint64_t *addr)
{
	const uint64_t *fill = socket->entries[XSK_RING_FILL];
	uint32_t index = socket->consumer[XSK_RING_FILL];

	if (socket->spares) {
		*addr = socket->spare[--socket->spares];
		return true;
	}
	if (!occupied(socket, XSK_RING_FILL))
		return false;
	*addr = fill[index & (socket->size[XSK_RING_FILL] - 1)];
	/* The kernel takes any address of a chunk and rounds it down; ours are round. */
	assert(*addr % socket->umem->header->frame_size == 0);
	assert(*addr < socket->umem->frames_bytes);
	store_release(&socket->consumer[XSK_RING_FILL], index + 1);
	return true;
}

void fake_swallow(struct fake_socket *socket)
{
	uint64_t addr;

	if (!take_chunk(socket, &addr))
		abort();
}

/* Where an address of the rings points to. */
static uint64_t offset_of(const struct fake_socket *socket, uint64_t addr)
{
	if (!socket->umem->header->unaligned)
		return addr;
	return (addr & XSK_UNALIGNED_BUF_ADDR_MASK) + (addr >> XSK_UNALIGNED_BUF_OFFSET_SHIFT);
}

static void put_rx(struct fake_socket *socket, struct xdp_desc desc)
{
	struct xdp_desc *rx = socket->entries[XSK_RING_RX];
	uint32_t index = socket->producer[XSK_RING_RX];

	rx[index & (socket->size[XSK_RING_RX] - 1)] = desc;
	store_release(&socket->producer[XSK_RING_RX], index + 1);
}

void fake_receive_address(struct fake_socket *socket, uint64_t addr, uint32_t len)
{
	put_rx(socket, (struct xdp_desc){ .addr = addr, .len = len });
}

void fake_receive_piece(struct fake_socket *socket, const void *bytes, uint32_t len, bool more)
{
	uint64_t headroom = XDP_PACKET_HEADROOM + socket->umem->header->headroom;
	struct xdp_desc desc = { .len = len, .options = more ? XDP_PKT_CONTD : 0 };
	uint64_t addr;

	if (!take_chunk(socket, &addr))
		abort();
	desc.addr = addr;
	/* An unaligned chunk's address keeps its base; the offset stands in the upper bits. */
	if (socket->umem->header->unaligned)
		desc.addr |= headroom << XSK_UNALIGNED_BUF_OFFSET_SHIFT;
	else
		desc.addr += headroom;
	memcpy(socket->umem->frames + offset_of(socket, desc.addr), bytes, len);
	put_rx(socket, desc);
}

bool fake_receive(struct fake_socket *socket, const void *bytes, uint32_t len)
{
	uint32_t room = socket->umem->header->frame_size - XDP_PACKET_HEADROOM -
			socket->umem->header->headroom;
	uint32_t pieces = len ? (len + room - 1) / room : 1, at = 0;
	uint64_t addr;

	if (occupied(socket, XSK_RING_FILL) + socket->spares < pieces) {
		socket->rx_dropped++;
		return false;
	}
	if (occupied(socket, XSK_RING_RX) + pieces > socket->size[XSK_RING_RX]) {
		if (!take_chunk(socket, &addr))
			abort();
		socket->rx_ring_full++;
		socket->spare[socket->spares++] = addr;
		return false;
	}
	for (; pieces; pieces--, at += room)
		fake_receive_piece(socket, (const uint8_t *)bytes + at,
				   pieces > 1 ? room : len - at, pieces > 1);
	return true;
}

void fake_complete_address(struct fake_socket *socket, uint64_t addr)
{
	uint64_t *completion = socket->entries[XSK_RING_COMPLETION];
	uint32_t index = socket->producer[XSK_RING_COMPLETION];

	/* The kernel reserves the slot before it sends; ours must never let it run out. */
	assert(occupied(socket, XSK_RING_COMPLETION) < socket->size[XSK_RING_COMPLETION]);
	completion[index & (socket->size[XSK_RING_COMPLETION] - 1)] = addr;
	store_release(&socket->producer[XSK_RING_COMPLETION], index + 1);
}

void fake_complete(struct fake_socket *socket)
{
	for (unsigned i = 0; i < socket->helds; i++)
		fake_complete_address(socket, socket->held[i]);
	socket->helds = 0;
}

/* What the kernel's xskq_cons_is_valid_desc() checks. */
static bool acceptable(const struct fake_socket *socket, struct xdp_desc desc)
{
	uint64_t at = offset_of(socket, desc.addr), size = socket->umem->header->frame_size;

	if (!desc.len || desc.len > size || desc.options & ~(uint32_t)XDP_PKT_CONTD)
		return false;
	if (at >= socket->umem->frames_bytes || desc.len > socket->umem->frames_bytes - at)
		return false;
	return socket->umem->header->unaligned || at % size + desc.len <= size;
}

static void complete(struct fake_socket *socket, uint64_t addr)
{
	if (socket->hold_completions)
		socket->held[socket->helds++] = addr;
	else
		fake_complete_address(socket, addr);
}

static void send_one(struct fake_socket *socket)
{
	const struct xdp_desc *tx = socket->entries[XSK_RING_TX];
	uint32_t index = socket->consumer[XSK_RING_TX];
	struct xdp_desc desc = tx[index & (socket->size[XSK_RING_TX] - 1)];
	struct fake_frame *partial = &socket->partial;
	bool good = acceptable(socket, desc);

	if (good) {
		assert(partial->len + desc.len <= FAKE_FRAME_MAX);
		memcpy(partial->bytes + partial->len,
		       socket->umem->frames + offset_of(socket, desc.addr), desc.len);
		partial->len += desc.len;
	} else {
		socket->refused++;
		partial->len = 0;
	}
	if (good && !(desc.options & XDP_PKT_CONTD)) {
		socket->last[socket->sent++ % FAKE_LAST] = *partial;
		partial->len = 0;
	}
	store_release(&socket->consumer[XSK_RING_TX], index + 1);
	if (good || socket->complete_refused)
		complete(socket, desc.addr);
}

const struct fake_frame *fake_sent(const struct fake_socket *socket, unsigned nth)
{
	assert(nth < socket->sent && nth < FAKE_LAST);
	return &socket->last[(socket->sent - 1 - nth) % FAKE_LAST];
}

void fake_on_poll(fake_poll_fn *hook, void *context)
{
	poll_hook = hook;
	poll_context = context;
}

/* NOLINTBEGIN(readability-identifier-naming, readability-function-size): the linker's names, the
 * system calls' parameters. */
/* Declarations of the linker's making: --wrap=NAME routes calls of NAME to __wrap_NAME. */
ssize_t __wrap_sendto(int fd, const void *buffer, size_t len, int flags,
		      const struct sockaddr *address, socklen_t address_len);
ssize_t __wrap_recvfrom(int fd, void *buffer, size_t len, int flags, struct sockaddr *address,
			socklen_t *address_len);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
/* By these names the C library is called where _FORTIFY_SOURCE is on, as in a Debian package. */
ssize_t __wrap___recvfrom_chk(int fd, void *buffer, size_t len, size_t room, int flags,
			      struct sockaddr *address, socklen_t *address_len);
int __wrap___poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t room);

ssize_t __wrap_sendto(int fd, const void *buffer, size_t len, int flags,
		      const struct sockaddr *address, socklen_t address_len)
{
	struct fake_socket *socket = socket_of(fd);

	assert(!buffer && !len && flags == MSG_DONTWAIT && !address && !address_len);
	socket->sendto_calls++;
	if (socket->fail_with && socket->fails) {
		socket->fails--;
		if (socket->fail_progress && occupied(socket, XSK_RING_TX))
			send_one(socket);
		errno = socket->fail_with;
		return -1;
	}
	for (unsigned i = 0; i < FAKE_TX_BATCH && occupied(socket, XSK_RING_TX); i++)
		send_one(socket);
	if (!occupied(socket, XSK_RING_TX))
		return 0;
	errno = EAGAIN;
	return -1;
}

ssize_t __wrap_recvfrom(int fd, void *buffer, size_t len, int flags, struct sockaddr *address,
			socklen_t *address_len)
{
	(void)buffer, (void)len, (void)flags, (void)address, (void)address_len;
	socket_of(fd)->recvfrom_calls++;
	return 0;
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	return poll_hook ? poll_hook(fds, count, timeout_ms, poll_context) : 0;
}

ssize_t __wrap___recvfrom_chk(int fd, void *buffer, size_t len, size_t room, int flags,
			      struct sockaddr *address, socklen_t *address_len)
{
	(void)room;
	return __wrap_recvfrom(fd, buffer, len, flags, address, address_len);
}

int __wrap___poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t room)
{
	(void)room;
	return __wrap_poll(fds, count, timeout_ms);
}
/* NOLINTEND(readability-identifier-naming, readability-function-size) */
