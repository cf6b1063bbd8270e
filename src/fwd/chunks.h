/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How the addresses that the kernel and we exchange map to a worker's frames. Copied into a local
 * variable for the length of a burst, so that it stays in registers whatever is stored in between.
 * Worker's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/layout.h"
#include "fwd/stats.h"
#include "xdp/ledger.h"
#include "xdp/uapi.h"

/* What is in front of a frame that we make, as of one that the kernel gives us (XDP_PACKET_HEADROOM). */
#define CHUNKS_HEADROOM 256

struct chunks {
	uint8_t *frames;      /* where the UMEM begins */
	ledger_entry *ledger; /* of the UMEM */
	uint64_t first_byte;  /* of the worker's own frames, which may be a slice of the UMEM */
	uint64_t bytes;	      /* of the worker's own frames */
	uint32_t size;	      /* of a chunk, bytes */
	uint32_t shift;	      /* log2 of it, if it is a power of two */
	bool unaligned;	      /* an address carries an offset in its upper bits */
	bool plain;	      /* none of that: aligned chunks, all of the UMEM, one a packet */
};

/* The copy for a burst. `plain` is the worker's, as a constant of the caller: the usual case is then
 * compiled without a trace of the others. */
static always_inline struct chunks chunks_of(const struct chunks *chunks, bool plain)
{
	struct chunks copy = *chunks;

	copy.plain = plain;
	return copy;
}

/* An address without its offset. */
static always_inline uint64_t chunks_base(const struct chunks *chunks, uint64_t addr)
{
	return chunks->unaligned ? addr & XSK_UNALIGNED_BUF_ADDR_MASK : addr;
}

/* The number of the frame that an address lies in. */
static always_inline uint64_t chunks_frame(const struct chunks *chunks, uint64_t addr)
{
	if (chunks->plain || !chunks->unaligned)
		return addr >> chunks->shift;
	/* A division, 25 cycles or so: who asks for unaligned chunks asks for that. */
	return chunks_base(chunks, addr) / chunks->size;
}

/* The address of a frame's chunk. */
static always_inline uint64_t chunks_addr(const struct chunks *chunks, uint64_t frame)
{
	return chunks->plain ? frame << chunks->shift : frame * chunks->size;
}

/*
 * An address with its offset added. Sent frames go out by it, because Linux 6.18 clears the lowest bit of
 * an address that it completes (docs/kernel-notes.md): of an odd chunk's own address it would make one in
 * the chunk before.
 */
static always_inline uint64_t chunks_flat(const struct chunks *chunks, uint64_t addr)
{
	if (chunks->plain || !chunks->unaligned)
		return addr;
	return chunks_base(chunks, addr) + (addr >> XSK_UNALIGNED_BUF_OFFSET_SHIFT);
}

/* The address `at` bytes into the chunk that begins at the address `chunk`. */
static always_inline uint64_t chunks_at(const struct chunks *chunks, uint64_t chunk, uint64_t at)
{
	return chunks->unaligned ? chunk | at << XSK_UNALIGNED_BUF_OFFSET_SHIFT : chunk + at;
}

/*
 * Where the copy of `len` bytes, up to a chunk's, goes in a frame: behind as much headroom as there is
 * room for. One that was given a tag, or begins where a foreign program put its head, may be longer than
 * what the kernel receives into a chunk.
 */
static always_inline uint64_t chunks_copy_addr(const struct chunks *chunks, uint64_t frame,
					       uint32_t len)
{
	uint32_t room = chunks->size > len ? chunks->size - len : 0;

	return chunks_addr(chunks, frame) + (room < CHUNKS_HEADROOM ? room : CHUNKS_HEADROOM);
}

/* Where the bytes at an address are. */
static always_inline uint8_t *chunks_bytes(const struct chunks *chunks, uint64_t addr)
{
	return chunks->frames + chunks_flat(chunks, addr);
}

/*
 * Builds that check owners note who has a frame between two rings as well: chunks_take() where one is
 * taken from the pool or from the kernel, chunks_give() before it is given to either. False: the caller
 * has not got it, for it gave it away before. Other builds compile to nothing.
 */
static always_inline void chunks_take(const struct chunks *chunks, uint64_t frame)
{
#ifdef CHECK_OWNERS
	ledger_write(&chunks->ledger[frame], ledger_pack(LEDGER_HAND, 0, 0));
#else
	(void)chunks, (void)frame;
#endif
}

static always_inline bool chunks_give(const struct chunks *chunks, uint64_t frame)
{
#ifdef CHECK_OWNERS
	return ledger_state(chunks->ledger[frame]) == LEDGER_HAND;
#else
	(void)chunks, (void)frame;
	return true;
#endif
}

/*
 * What is wrong with an address that the kernel named on a port's RX ring (state FILL) or completion
 * ring (TX); DROP_REASONS: nothing. Builds that check ownership also ask the ledger whether the kernel
 * had that frame, from there.
 */
static always_inline enum drop_reason chunks_doubt(const struct chunks *chunks, uint64_t addr,
						   enum ledger_state state, unsigned port)
{
	uint64_t at = chunks->plain ? addr : chunks_base(chunks, addr) - chunks->first_byte;

	if (unlikely(at >= chunks->bytes))
		return DROP_BAD_DESCRIPTOR;
#ifdef CHECK_OWNERS
	ledger_entry entry = chunks->ledger[chunks_frame(chunks, addr)];

	if (ledger_state(entry) != state || ledger_port(entry) != port)
		return DROP_RING_VIOLATION;
#else
	(void)state, (void)port;
#endif
	return DROP_REASONS;
}
