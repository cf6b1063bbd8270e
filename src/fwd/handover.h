/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a worker without a TX queue on the egress port gives frames to one that has it.
 *
 *	sender		tx --- descriptors of the sender's frames --> in		receiver
 *		completion <-- their addresses, once copied ---------- back
 *
 * Two rings of the shape that the kernel's have (xdp/ring.h), each with one producing and one consuming
 * thread. To the sender they are the TX and completion rings of a queue, and the receiver stands where
 * the kernel does otherwise: it copies each frame into one of its own, sends that, and gives the address
 * back. So a frame never leaves the worker that it belongs to, and a sender that closes the queue finds
 * by its ledger what is still out.
 *
 * Full: the sender drops and counts (DROP_HAND_OVER_FULL). It does not hold its RX back, as it would for a
 * TX ring: a receiver may serve many senders, and would then hold back all of them.
 *
 * Sleep: the receiver stores the flag of `in`, full fence, looks at every input again, polls; the sender
 * publishes, full fence, looks at the flag, writes the receiver's eventfd. Whatever comes first in the one
 * order of the two fences, either the receiver sees the frames or the sender sees the flag.
 */
#pragma once

#include <stdint.h>

#include "xdp/ring.h"

struct handover;

/*
 * Makes a pair of rings of `size` entries (a power of two), empty. Main thread. Returns 0 with *result
 * for handover_free(), or -ENOMEM.
 */
int handover_new(struct handover **result, uint32_t size);

/* Frees it; no thread may use it any more. NULL is fine. */
void handover_free(struct handover *handover);

/* The sender's sides, once only: indices start at 0. Main thread. */
void handover_sender(struct handover *handover, struct ring *tx, struct ring *completion);

/* The receiver's sides, likewise. */
void handover_receiver(struct handover *handover, struct ring *in, struct ring *back);

/* Receiver: asks to be woken, or not any more. The caller puts the fence behind it. */
static inline void handover_ask_wakeup(const struct ring *in, bool wanted)
{
	store_relaxed(in->flags, wanted ? XDP_RING_NEED_WAKEUP : 0);
}
