/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * wait = adaptive: whether a poller that has run out of frames looks out for the next one for a moment
 * (spins), or goes to sleep in poll() at once. Both are decided by what was measured before, of each time
 * that the rings were empty:
 *
 *  - How long they were. To spin pays where the next frame comes sooner than going to sleep and waking up
 *    takes; so a poller spins while the mean is below WAITING_SPIN_MAX_NS, and no longer than a few times
 *    the mean.
 *  - Whether frames come while the poller holds the CPU. Where the kernel's side needs this CPU, as that of
 *    a sender or of ksoftirqd which was put there, none do: a spin then ends in vain, or by a
 *    hole, a time between two looks in which somebody else had the CPU. Either ends it at once, and the next
 *    1, 3, 7, ... 1023 times go straight to sleep, until a spin has found a frame.
 *
 * Nothing else tells: need_wakeup says what the driver waits for and not where, and a poll() that returns
 * soon says nothing of a spin, for it gave the CPU away. Pure: what was measured comes from the caller.
 * Owner: the worker's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * The longest spin, and the longest mean gap for which there is one, ns. A sleep and its waking take 5 to
 * 50 us, the sender's share included (a core of this kind): what comes later than that is as well slept
 * for. Longer burns the CPU at low rates: 20,000 frames a second would take all of it.
 */
#define WAITING_SPIN_MAX_NS 50000

/* The shortest spin, ns: some looks at the rings, however short the gaps were. */
#define WAITING_SPIN_MIN_NS 5000

/* A spin takes so many mean gaps: where frames come at random, 98 of 100 come within them. */
#define WAITING_SPIN_GAPS 4

/* Somebody else had the CPU if two looks, which take 0.1 us, are so far apart, ns. An interrupt that brings
 * a few frames is done sooner; a thread that was put in our place is not. */
#define WAITING_HOLE_NS 20000

/* The longest gap that counts as such, ns: silence is forgotten after some ten frames that come close together. */
#define WAITING_GAP_MAX_NS (8 * WAITING_SPIN_MAX_NS)

/* Spins in vain in a row that still make the next one wait longer: for up to 2 to their number sleeps. */
#define WAITING_VAIN_MAX 10

struct waiting {
	uint64_t since_ns; /* the rings are empty since then, by the monotonic clock */
	uint64_t moved;	   /* frames that the worker had moved by then */
	uint32_t gap_ns;   /* mean time that they were empty */
	uint16_t vain;	   /* spins in a row that found nothing */
	uint16_t sleeps;   /* still to come before the next spin */
};

/* One of a worker that has seen nothing yet: it sleeps until frames come close together. */
struct waiting waiting_new(void);

/* The rings have just run empty: how long to look out for the next frame, ns; 0: not at all. */
uint32_t waiting_spin_ns(struct waiting *waiting);

/* A spin of spin_ns is over after took_ns: a frame came, or none. */
void waiting_spun(struct waiting *waiting, uint32_t spin_ns, uint64_t took_ns, bool came);

/* A frame came in a sleep, gap_ns after the rings had run empty. */
void waiting_slept(struct waiting *waiting, uint64_t gap_ns);
