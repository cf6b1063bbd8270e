/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wait for an operator who confirms that he can still reach this host (--confirm). One timer of the
 * daemon's loop; nothing but confirm_give() ends the wait well, a reload does not. Main thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

struct confirm {
	sd_event_source *timer; /* owned; NULL: nothing was asked for */
	uint64_t due_ns;	/* CLOCK_MONOTONIC */
	uint64_t given_ns;	/* when it was confirmed; 0: not yet */
	/* Called once, when the time is over without a confirmation. */
	void (*expired)(void *context);
	void *context;
};

/* Begins the wait: `seconds` from now. `expired` and its context are set before. Returns 0, or -errno. */
int confirm_start(struct confirm *confirm, sd_event *loop, unsigned seconds);

/* An operator confirms. Returns 0; -EALREADY if that was done before; -ENOENT if nothing waits for it. */
int confirm_give(struct confirm *confirm);

/* True if a confirmation was asked for at start, given or not. */
bool confirm_asked(const struct confirm *confirm);

/* How much time is left, and once it is confirmed how much was left then, in ns. */
uint64_t confirm_left_ns(const struct confirm *confirm);

/* Ends the wait, without a call of `expired`. A zeroed one is fine. */
void confirm_close(struct confirm *confirm);
