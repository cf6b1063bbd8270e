/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The signals that ask for the end. They are blocked from start on and taken by the event loop. */
#pragma once

#include <signal.h>
#include <stdbool.h>

static inline void signals_end_set(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
}

/* Blocks SIGINT, SIGTERM and SIGHUP for this thread and those it starts. */
static inline void signals_block(void)
{
	sigset_t set;

	signals_end_set(&set);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* True if one of them waits: whoever retries something for longer asks this in between. */
static inline bool signals_end_asked(void)
{
	sigset_t pending;

	if (sigpending(&pending))
		return false;
	return sigismember(&pending, SIGTERM) || sigismember(&pending, SIGINT);
}
