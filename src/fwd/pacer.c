/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "fwd/pacer.h"

/* pps x nanoseconds passes 64 bits after 18 s at the highest rate. */
__extension__ typedef unsigned __int128 wide;

/* The frame before the first turn of this queue: 0 for the first of several queues is due at the start
 * of a round, for the last one at its end. */
static uint64_t due_by(const struct pacer *pacer, uint64_t moment_ns)
{
	wide turns = (wide)moment_ns * pacer->pps / NSEC_PER_SEC;

	return (uint64_t)((turns + pacer->queues - 1 - pacer->phase) / pacer->queues);
}

/* How far the schedule may move on: to the present, unless that would release a clump. */
static uint64_t step_ns(const struct pacer *pacer, uint64_t passed_ns)
{
	uint64_t owed = due_by(pacer, pacer->moment_ns) - pacer->sent;
	uint64_t due = due_by(pacer, pacer->moment_ns + pacer->behind_ns) - pacer->sent;
	uint64_t step = passed_ns + passed_ns / 4;

	/* What is due cannot leave: wait with it, or a clump piles up. */
	if (owed && owed * pacer->queues >= PACER_CLUMP_NS * pacer->pps / NSEC_PER_SEC)
		return 0;
	if (due <= 1 || due * pacer->queues <= PACER_CLUMP_NS * pacer->pps / NSEC_PER_SEC)
		return pacer->behind_ns;
	if (step > PACER_CLUMP_NS)
		step = PACER_CLUMP_NS;
	return step < pacer->behind_ns ? step : pacer->behind_ns;
}

uint32_t pacer_due(struct pacer *pacer, uint64_t now_ns)
{
	uint64_t passed_ns, step, due;

	if (!pacer->last_ns)
		pacer->last_ns = now_ns;
	passed_ns = now_ns - pacer->last_ns;
	pacer->last_ns = now_ns;
	pacer->behind_ns += passed_ns;
	if (pacer->behind_ns > PACER_DEBT_NS)
		pacer->behind_ns = PACER_DEBT_NS;
	step = step_ns(pacer, passed_ns);
	pacer->behind_ns -= step;
	pacer->moment_ns += step;
	due = due_by(pacer, pacer->moment_ns) - pacer->sent;
	return due > UINT32_MAX ? UINT32_MAX : (uint32_t)due;
}

uint64_t pacer_wait_ns(const struct pacer *pacer)
{
	uint64_t at_ns, wait_ns;
	wide turn;

	/* The first moment at which due_by() is sent + 1. */
	turn = (wide)pacer->sent * pacer->queues + pacer->phase + 1;
	at_ns = (uint64_t)((turn * NSEC_PER_SEC + pacer->pps - 1) / pacer->pps);
	if (at_ns <= pacer->moment_ns)
		return 0;
	wait_ns = at_ns - pacer->moment_ns;
	return pacer->behind_ns ? wait_ns / 5 * 4 :
				  wait_ns; /* catching up it is a quarter faster */
}
