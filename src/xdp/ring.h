/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The user side of the four AF_XDP rings. Each ring has one producer and one consumer, the kernel
 * being one of them; each side of a ring belongs to one thread.
 *
 *	we produce: fill, TX                    we consume: RX, completion
 *	room -> take, write ... -> submit       ready -> peek, read ... -> release
 *
 * take and peek give a cursor, which walks the entries and is what submit and release take back: for
 * the length of a burst index, mask and base stay in registers, whatever is stored in between.
 *
 * The shared indices are free-running 32-bit counters. Our own index is kept in 64 bits: it never
 * wraps, so that it also counts entries since the ring was made and serves as the owner ledger's
 * 48-bit position; its low 32 bits are what the kernel sees.
 *
 * Memory order, from the protocol in the kernel's net/xdp/xsk_queue.h:
 *	producer			consumer
 *	LOAD.acq consumer  (A)		LOAD.acq producer  (C)
 *	STORE entries			LOAD entries
 *	STORE.rel producer (B)		STORE.rel consumer (D)
 * B pairs with C: entries are written before they are announced. D pairs with A: entries are read
 * before their slots are given back.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/layout.h"
#include "xdp/uapi.h"

/* Owner of every field: the thread that works this side of the ring. */
struct ring {
	uint64_t own;	    /* next index we take (producer) or read (consumer) */
	uint32_t peer;	    /* the kernel's index as last loaded */
	uint32_t mask;	    /* entries - 1 */
	uint32_t *producer; /* shared with the kernel, like the next three */
	uint32_t *consumer;
	uint32_t *flags;
	void *entries; /* uint64_t addresses (fill, completion) or struct xdp_desc (RX, TX) */
};

/* Entries it has. */
static always_inline uint32_t ring_size(const struct ring *ring)
{
	return ring->mask + 1;
}

/* The descriptor at any index, of a ring that has them. */
static always_inline struct xdp_desc *ring_desc(const struct ring *ring, uint64_t index)
{
	return (struct xdp_desc *)ring->entries + (index & ring->mask);
}

/* A descriptor's length, and its options above it: one word, so that one comparison is of both. */
static always_inline uint64_t desc_len_options(const struct xdp_desc *desc)
{
	uint64_t word;

	memcpy(&word, (const uint8_t *)desc + offsetof(struct xdp_desc, len), sizeof(word));
	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? word : word << 32 | word >> 32;
}

/* Writes both, as desc_len_options() reads them. */
static always_inline void desc_set_len_options(struct xdp_desc *desc, uint64_t word)
{
	if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
		word = word << 32 | word >> 32;
	memcpy((uint8_t *)desc + offsetof(struct xdp_desc, len), &word, sizeof(word));
}

/* A place on a ring: the next entry to write or to read. A local variable, never stored. */
struct ring_cursor {
	uint64_t index;
	void *entries;
	uint32_t mask;
};

/* The entry at the cursor, which moves on. */
static always_inline uint64_t *cursor_addr(struct ring_cursor *cursor)
{
	return (uint64_t *)cursor->entries + (cursor->index++ & cursor->mask);
}

static always_inline struct xdp_desc *cursor_desc(struct ring_cursor *cursor)
{
	return (struct xdp_desc *)cursor->entries + (cursor->index++ & cursor->mask);
}

/* The descriptor `ahead` entries behind the cursor, which stays. */
static always_inline const struct xdp_desc *cursor_ahead(const struct ring_cursor *cursor,
							 uint32_t ahead)
{
	return (const struct xdp_desc *)cursor->entries + ((cursor->index + ahead) & cursor->mask);
}

/* Of the `count` entries from the cursor on, how many lie one behind the other: up to the ring's end. */
static always_inline uint32_t cursor_run(const struct ring_cursor *cursor, uint32_t count)
{
	uint32_t left = cursor->mask + 1 - ((uint32_t)cursor->index & cursor->mask);

	return count < left ? count : left;
}

/* The entry at the cursor, and behind it those of cursor_run(). */
static always_inline uint64_t *cursor_addrs(const struct ring_cursor *cursor)
{
	return (uint64_t *)cursor->entries + (cursor->index & cursor->mask);
}

static always_inline struct xdp_desc *cursor_descs(const struct ring_cursor *cursor)
{
	return (struct xdp_desc *)cursor->entries + (cursor->index & cursor->mask);
}

/* Producer: free slots, at least `want` of them if the kernel has freed so many. 0 to the size. */
static always_inline uint32_t ring_room(struct ring *ring, uint32_t want)
{
	uint32_t room = ring_size(ring) - ((uint32_t)ring->own - ring->peer);

	if (room >= want)
		return room;
	ring->peer = load_acquire(ring->consumer); /* A: pairs with the kernel's release, D */
	return ring_size(ring) - ((uint32_t)ring->own - ring->peer);
}

/* Producer: the first free slot. As many may be written as ring_room() has promised. */
static always_inline struct ring_cursor ring_take(const struct ring *ring)
{
	return (struct ring_cursor){ ring->own, ring->entries, ring->mask };
}

/* Producer: what was written up to the cursor is to be announced by the next ring_submit(). */
static always_inline void ring_stage(struct ring *ring, const struct ring_cursor *cursor)
{
	ring->own = cursor->index;
}

/* Producer: announces every entry staged so far. */
static always_inline void ring_submit(struct ring *ring)
{
	/* B: pairs with the kernel's acquire, C. Entries and ledger are written before. */
	store_release(ring->producer, (uint32_t)ring->own);
}

/* Consumer: entries that can be read, at least `want` of them if the kernel has written so many. 0 to
 * the size, as long as the kernel keeps its own rules. */
static always_inline uint32_t ring_ready(struct ring *ring, uint32_t want)
{
	uint32_t ready = ring->peer - (uint32_t)ring->own;

	if (ready >= want)
		return ready;
	ring->peer = load_acquire(ring->producer); /* C: pairs with the kernel's release, B */
	return ring->peer - (uint32_t)ring->own;
}

/* Consumer: the first unread entry. As many may be read as ring_ready() has promised, until they are
 * released. */
static always_inline struct ring_cursor ring_peek(const struct ring *ring)
{
	return (struct ring_cursor){ ring->own, ring->entries, ring->mask };
}

/* Consumer: gives the slots of all entries before the cursor back to the kernel. */
static always_inline void ring_release(struct ring *ring, const struct ring_cursor *cursor)
{
	ring->own = cursor->index;
	/* D: pairs with the kernel's acquire, A. Entries and ledger are done with before. */
	store_release(ring->consumer, (uint32_t)ring->own);
}

/* True if the kernel asks to be woken for this ring (XDP_USE_NEED_WAKEUP). Relaxed: a flag that is set
 * just after we looked is seen in the next pass, and poll() wakes the driver by itself. */
static always_inline bool ring_needs_wakeup(const struct ring *ring)
{
	return load_relaxed(ring->flags) & XDP_RING_NEED_WAKEUP;
}
