/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's side of AF_XDP sockets, in plain memory: it consumes fill and TX, produces RX and
 * completion, and answers sendto(), recvfrom() and poll() on its sockets as Linux 6.18's copy mode
 * does, or as a test tells it to. Single-threaded: it moves only when it is called.
 */
#pragma once

#include <linux/bpf.h> /* XDP_PACKET_HEADROOM */
#include <stdbool.h>
#include <stdint.h>

#include "xdp/umem.h"
#include "xdp/xsk.h"

/* Frames one sendto() handles (the kernel's TX_BATCH_SIZE). */
#define FAKE_TX_BATCH 32

#define FAKE_FRAME_MAX 9728

struct fake_frame {
	uint32_t len;
	uint8_t bytes[FAKE_FRAME_MAX];
};

struct fake_socket {
	struct xsk xsk; /* what the code under test is given */
	struct umem *umem;
	uint32_t producer[XSK_RINGS], consumer[XSK_RINGS], flags[XSK_RINGS];
	void *entries[XSK_RINGS];
	uint32_t size[XSK_RINGS];

	/* Frames taken from fill that met a full RX ring: the kernel keeps and reuses them. */
	uint64_t spare[64];
	unsigned spares;
	/* The packet that the entries taken so far began. */
	struct fake_frame partial;
	/* Sent frames that are not yet completed, while `hold_completions`. */
	uint64_t held[4096];
	unsigned helds;

	/* What a test may set. */
	bool hold_completions;
	bool complete_refused; /* as some kernels do; else a refused descriptor is gone */
	int fail_with;	       /* errno of the next sendto() calls, 0: none */
	unsigned fails;	       /* how many of them */
	bool fail_progress;    /* such a call takes one frame all the same (EBUSY does) */

	/* What a test may read. */
	unsigned sendto_calls, recvfrom_calls;
	uint64_t sent;	  /* packets */
	uint64_t refused; /* descriptors: tx_invalid_descs */
	uint64_t rx_dropped, rx_ring_full;
	struct fake_frame *last; /* the frames sent, newest at index (sent - 1) % FAKE_LAST */
};

/* How many of the sent frames are kept. */
#define FAKE_LAST 64

/* A socket over the umem with these ring sizes; its indices start at `start`, as if that many
 * entries had passed. Freed by fake_close(). */
struct fake_socket *fake_open(struct umem *umem, uint32_t ring_size, uint32_t fill_size,
			      uint64_t start);
void fake_close(struct fake_socket *socket);

/* A frame arrives from the wire: true if it reached the RX ring. One that is larger than a chunk takes
 * several descriptors. */
bool fake_receive(struct fake_socket *socket, const void *bytes, uint32_t len);

/* Completes what was held. */
void fake_complete(struct fake_socket *socket);

/* Puts one descriptor of a longer packet on RX, with the bytes that belong there. */
void fake_receive_piece(struct fake_socket *socket, const void *bytes, uint32_t len, bool more);

/* Takes a chunk from fill and forgets it. */
void fake_swallow(struct fake_socket *socket);

/* Puts an address on the completion or RX ring that the kernel should never put there. */
void fake_complete_address(struct fake_socket *socket, uint64_t addr);
void fake_receive_address(struct fake_socket *socket, uint64_t addr, uint32_t len);

/* The nth last frame sent, 0 the newest. */
const struct fake_frame *fake_sent(const struct fake_socket *socket, unsigned nth);

/* What the next poll() shall do: called instead of sleeping. Its result is poll()'s. */
struct pollfd;
typedef int fake_poll_fn(struct pollfd *fds, unsigned long count, int timeout_ms, void *context);
void fake_on_poll(fake_poll_fn *hook, void *context);
