/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "confirm.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

#include "base/clock.h"

/* How late it may be, us: left at 0 sd-event would take a quarter of a second. */
#define ACCURACY_US 1000

static int on_due(sd_event_source *source, uint64_t due_us, void *context)
{
	struct confirm *confirm = context;

	(void)source, (void)due_us;
	confirm->expired(confirm->context);
	return 0;
}

int confirm_start(struct confirm *confirm, sd_event *loop, unsigned seconds)
{
	int err;

	confirm->due_ns = clock_now_ns() + seconds * NSEC_PER_SEC;
	err = sd_event_add_time(loop, &confirm->timer, CLOCK_MONOTONIC, confirm->due_ns / 1000,
				ACCURACY_US, on_due, confirm);
	return err < 0 ? err : 0;
}

int confirm_give(struct confirm *confirm)
{
	if (!confirm->timer)
		return -ENOENT;
	if (confirm->given_ns)
		return -EALREADY;
	confirm->given_ns = clock_now_ns();
	return sd_event_source_set_enabled(confirm->timer, SD_EVENT_OFF);
}

bool confirm_asked(const struct confirm *confirm)
{
	return confirm->timer;
}

uint64_t confirm_left_ns(const struct confirm *confirm)
{
	uint64_t now_ns = confirm->given_ns ? confirm->given_ns : clock_now_ns();

	return confirm->due_ns > now_ns ? confirm->due_ns - now_ns : 0;
}

void confirm_close(struct confirm *confirm)
{
	confirm->timer = sd_event_source_unref(confirm->timer);
}
