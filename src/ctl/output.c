/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "ctl/output.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"

/* Writes until the text is gone or the reader has taken nothing until the deadline. The fd may be
 * shared with a shell, so it is left blocking; but where poll() says that there is room, a pipe takes
 * PIPE_BUF bytes without waiting. */
static int write_on(struct output *output, uint64_t deadline_ns)
{
	while (output->done < output->len) {
		struct pollfd pollfd = { .fd = output->fd, .events = POLLOUT };
		uint64_t now_ns = clock_now_ns();
		size_t piece = output->len - output->done;
		int wait_ms = 0;
		ssize_t written;

		if (now_ns < deadline_ns)
			wait_ms = (int)((deadline_ns - now_ns) / NSEC_PER_MSEC);
		if (poll(&pollfd, 1, wait_ms) <= 0)
			return 0;
		if (piece > PIPE_BUF)
			piece = PIPE_BUF;
		written = write(output->fd, output->text + output->done, piece);
		if (written < 0)
			return errno == EINTR || errno == EAGAIN ? 0 : -errno;
		output->done += (size_t)written;
	}
	return 0;
}

int output_put(struct output *output, char *text, size_t len, int timeout_ms)
{
	uint64_t deadline_ns = clock_now_ns() + (uint64_t)timeout_ms * NSEC_PER_MSEC;
	int err = write_on(output, deadline_ns);

	if (err || output->done < output->len) {
		output->skipped++;
		free(text);
		return err;
	}
	free(output->text);
	output->text = text;
	output->len = len;
	output->done = 0;
	return write_on(output, deadline_ns);
}

void output_fini(struct output *output)
{
	free(output->text);
	*output = (struct output){ .fd = -1 };
}
