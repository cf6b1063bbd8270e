/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* How long a reader of standard error may take for a line before it goes without. */
#define READER_MS 50

static const char *const level_prefix[] = {
	[LOG_LEVEL_ERROR] = "error: ",
	[LOG_LEVEL_WARNING] = "warning: ",
	[LOG_LEVEL_INFO] = "",
};

static log_capture_fn *capture_fn;
static void *capture_context;

void log_capture(log_capture_fn *capture, void *context)
{
	capture_fn = capture;
	capture_context = context;
}

void log_write(enum log_level level, const char *format, ...)
{
	struct pollfd standard_error = { .fd = STDERR_FILENO, .events = POLLOUT };
	char line[1024];
	va_list args;
	int head, body;
	size_t len;

	head = snprintf(line, sizeof(line), "millraced: %s", level_prefix[level]);
	va_start(args, format);
	body = vsnprintf(line + head, sizeof(line) - (size_t)head, format, args);
	va_end(args);
	if (body < 0)
		return;
	if (capture_fn && capture_fn(level, line + head, capture_context))
		return;
	len = (size_t)head + (size_t)body;
	if (len > sizeof(line) - 1)
		len = sizeof(line) - 1;
	line[len++] = '\n';
	/* A closed or full standard error must neither end nor stop a forwarder: there is nobody to tell.
	 * Where there is room at all, a pipe takes a line of this length (below PIPE_BUF) at once. */
	if (poll(&standard_error, 1, READER_MS) <= 0 || write(STDERR_FILENO, line, len) < 0)
		return;
}

const char *err_name(int err)
{
	const char *name = strerrorname_np(abs(err));

	return name ? name : "unknown error";
}

const char *err_text(int err)
{
	const char *text = strerrordesc_np(abs(err));

	return text ? text : "no description";
}

/* The present limit and one to try: twice as much, and 64 where nothing of ours fits. */
static const char *nofile_advice(void)
{
	static _Thread_local char text[96];
	struct rlimit limit = { 0 };
	unsigned long long now;

	getrlimit(RLIMIT_NOFILE, &limit);
	now = limit.rlim_cur;
	snprintf(text, sizeof(text),
		 "; RLIMIT_NOFILE is %llu: raise it (`ulimit -n %llu`, LimitNOFILE=)", now,
		 now < 32 ? 64 : 2 * now);
	return text;
}

/* Memory may lack because there is none, or because no more is allowed. */
static const char *memory_advice(void)
{
	static _Thread_local char text[96];
	struct rlimit limit = { 0 };

	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return "";
	snprintf(text, sizeof(text), "; RLIMIT_AS is %llu KiB: raise it (`ulimit -v`, LimitAS=)",
		 (unsigned long long)limit.rlim_cur / 1024);
	return text;
}

const char *err_advice(int err)
{
	switch (abs(err)) {
	case EMFILE:
		return nofile_advice();
	case ENOMEM:
		return memory_advice();
	case ENFILE:
		return "; raise the host's limit on open files (fs.file-max)";
	default:
		return "";
	}
}

const char *err_sandbox_advice(int err)
{
	switch (abs(err)) {
	case EPERM:
	case EACCES:
	case ENOSYS:
		return "; a seccomp filter (systemd: SystemCallFilter=) or an LSM forbids it in spite "
		       "of the capabilities";
	case EAFNOSUPPORT:
		return "; the kernel lacks this kind of socket, or a systemd unit it in "
		       "RestrictAddressFamilies= (AF_NETLINK AF_PACKET AF_XDP)";
	default:
		return err_advice(err);
	}
}
