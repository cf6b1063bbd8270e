/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "fwd/handover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/layout.h"

/* What the two threads share of one ring, each word a pair of lines from the next, for each has another
 * writer. */
struct indices {
	GROUP_BEGIN_APART(producer);
	uint32_t producer; /* Owner: the producing thread */
	GROUP_END(producer);

	GROUP_BEGIN_APART(consumer);
	uint32_t consumer; /* Owner: the consuming thread, as of the next */
	GROUP_END(consumer);

	GROUP_BEGIN_APART(flags);
	uint32_t flags; /* XDP_RING_NEED_WAKEUP while the consumer sleeps */
	GROUP_END(flags);
};

struct handover {
	struct indices there, back;
	uint32_t size;
	struct xdp_desc *desc; /* of there; `size` of them, pairs of lines apart from all else */
	uint64_t *addr;	       /* of back, likewise */
};

_Static_assert(sizeof(struct indices) == 3 * CACHE_PAIR, "a pair of lines for each word");

static void *entries_new(uint32_t count, size_t bytes)
{
	size_t size = (count * bytes + CACHE_PAIR - 1) / CACHE_PAIR * CACHE_PAIR;
	void *entries = aligned_alloc(CACHE_PAIR, size);

	if (entries)
		memset(entries, 0, size);
	return entries;
}

int handover_new(struct handover **result, uint32_t size)
{
	struct handover *handover = aligned_alloc(_Alignof(struct handover), sizeof(*handover));

	if (!handover)
		return -ENOMEM;
	memset(handover, 0, sizeof(*handover));
	handover->size = size;
	handover->desc = entries_new(size, sizeof(*handover->desc));
	handover->addr = entries_new(size, sizeof(*handover->addr));
	if (!handover->desc || !handover->addr) {
		handover_free(handover);
		return -ENOMEM;
	}
	*result = handover;
	return 0;
}

void handover_free(struct handover *handover)
{
	if (!handover)
		return;
	free(handover->desc);
	free(handover->addr);
	free(handover);
}

static struct ring ring_of(struct indices *indices, uint32_t size, void *entries)
{
	return (struct ring){
		.mask = size - 1,
		.producer = &indices->producer,
		.consumer = &indices->consumer,
		.flags = &indices->flags,
		.entries = entries,
	};
}

void handover_sender(struct handover *handover, struct ring *tx, struct ring *completion)
{
	*tx = ring_of(&handover->there, handover->size, handover->desc);
	*completion = ring_of(&handover->back, handover->size, handover->addr);
}

void handover_receiver(struct handover *handover, struct ring *in, struct ring *back)
{
	handover_sender(handover, in, back);
}
