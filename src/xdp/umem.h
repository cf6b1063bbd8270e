/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The memory of one worker: a memfd with a versioned header, the owner ledger and the frames.
 *
 *	| header, 1 page | ledger, 8 bytes a frame | frames (the only part the kernel is given) |
 *
 * It is a memfd so that a later process can map it and carry on with the same sockets.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xdp/ledger.h"

#define UMEM_MAGIC   0x6d696c6c72616365ULL /* "millrace" */
#define UMEM_VERSION 1

struct umem_opts {
	uint32_t frames;
	uint32_t frame_size; /* bytes, 2048 to the page size; a power of two unless unaligned */
	bool unaligned;	     /* the kernel shall take chunks at any address */
	uint32_t headroom;   /* bytes between the kernel's 256 and a received frame; with
				   * them less than the frame size */
	uint32_t tx_metadata_len; /* bytes of TX metadata before a sent frame, a multiple of
				   * 8 below 256 (since Linux 6.8); 0: none */
	uint32_t ring_size;	  /* RX, TX and completion entries of each of its sockets */
	uint32_t fill_size;
	int numa_node;	 /* the NIC's, where the pages go if there is room; -1: anywhere */
	bool huge_pages; /* asked for: a warning if there are too few; they are used in any case */
	bool shortage_said; /* of an earlier one: once is enough */
};

/* At offset 0 of the memfd. Written once by umem_open(), before anything else can see it. */
struct umem_header {
	uint64_t magic;
	uint32_t version;
	uint32_t header_bytes;
	uint64_t ledger_offset; /* bytes from the start of the memfd */
	uint64_t frames_offset;
	uint64_t total_bytes;
	uint32_t frames;
	uint32_t frame_size;
	uint32_t headroom;
	uint32_t tx_metadata_len;
	uint32_t ring_size; /* the kernel does not tell the size of a bound socket's rings */
	uint32_t fill_size;
	uint32_t unaligned; /* 1: registered with XDP_UMEM_UNALIGNED_CHUNK_FLAG */
};

struct umem {
	int fd; /* the memfd; -1 or 0-initialised: closed */
	struct umem_header *header;
	ledger_entry *ledger;
	uint8_t *frames;
	uint64_t frames_bytes;
	uint32_t frame_shift; /* log2 of the frame size, if that is a power of two */
	bool huge_pages;      /* its pages are */
	bool shortage_said;   /* that there are too few huge pages */
};

/* Bytes that registering such a UMEM once counts against RLIMIT_MEMLOCK: its frames. Any thread. */
uint64_t umem_locked_bytes(const struct umem_opts *opts);

/*
 * Makes and maps the memory, all pages present; every ledger entry says POOL. The pages are huge ones
 * where enough of them are free; where some are reserved but too few, or they were asked for, that is
 * said. Main thread. Returns 0, or -errno after a message: -ENOMEM where the host has less than that
 * available, -EMFILE, and whatever memfd_create(2), ftruncate(2), mmap(2) and madvise(2) say;
 * -ECANCELED, without one, if a signal to end is pending.
 */
int umem_open(struct umem *umem, const struct umem_opts *opts);

/* Unmaps and closes. A zeroed, half-open or closed umem is fine. The kernel keeps registered pages
 * until the sockets are closed too. */
void umem_close(struct umem *umem);
