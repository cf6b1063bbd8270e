/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What programs that measure by themselves do with a thread. */
#pragma once

#include <sched.h>
#include <stdint.h>
#include <time.h>

#include "base/clock.h"

/* CPU time of the calling thread. */
static inline uint64_t timed_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

/* The calling thread runs on that CPU. Returns 0, or -1: there is none of that number. */
static inline int timed_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

/* What is timed runs before everything else: others on this CPU would not only take time, which is not
 * counted, but leave a cold cache, and of two threads one would often run alone. Where it may not, it is
 * without that. `priority`: of SCHED_FIFO; 0: as all others again. */
static inline void timed_hurry(int priority)
{
	struct sched_param param = { .sched_priority = priority };

	sched_setscheduler(0, priority ? SCHED_FIFO : SCHED_OTHER, &param);
}
