/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "fwd/waiting.h"

/* The newest gap is so large a part of the mean: 1 / 8, a mean of the last ten or so. */
#define GAP_SHIFT 3

static void add_gap(struct waiting *waiting, uint64_t gap_ns)
{
	uint32_t gap = gap_ns < WAITING_GAP_MAX_NS ? (uint32_t)gap_ns : WAITING_GAP_MAX_NS;

	waiting->gap_ns -= waiting->gap_ns >> GAP_SHIFT;
	waiting->gap_ns += gap >> GAP_SHIFT;
}

struct waiting waiting_new(void)
{
	return (struct waiting){ .gap_ns = WAITING_GAP_MAX_NS };
}

uint32_t waiting_spin_ns(struct waiting *waiting)
{
	uint32_t spin_ns = waiting->gap_ns * WAITING_SPIN_GAPS;

	if (waiting->gap_ns > WAITING_SPIN_MAX_NS)
		return 0;
	if (waiting->sleeps) {
		waiting->sleeps--;
		return 0;
	}
	if (spin_ns > WAITING_SPIN_MAX_NS)
		return WAITING_SPIN_MAX_NS;
	return spin_ns > WAITING_SPIN_MIN_NS ? spin_ns : WAITING_SPIN_MIN_NS;
}

void waiting_spun(struct waiting *waiting, uint32_t spin_ns, uint64_t took_ns, bool came)
{
	/* Later than that, somebody else had the CPU, and brought it. */
	if (came && took_ns <= (uint64_t)spin_ns + WAITING_HOLE_NS) {
		waiting->vain = 0;
		add_gap(waiting, took_ns);
		return;
	}
	if (waiting->vain < WAITING_VAIN_MAX)
		waiting->vain++;
	waiting->sleeps = (uint16_t)((1U << waiting->vain) - 1);
}

void waiting_slept(struct waiting *waiting, uint64_t gap_ns)
{
	add_gap(waiting, gap_ns);
}
