/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/repeats.h"

/* How long a reader of standard error may take for a line before it goes without. */
#define READER_MS 50

/* Longest line, and longest message. */
#define LINE_SIZE 1024

static const struct {
	const char *journal, *name, *word;
} level_head[] = {
	[LOG_LEVEL_ERROR] = { "<3>", "millraced: ", "error: " },
	[LOG_LEVEL_WARNING] = { "<4>", "millraced: ", "warning: " },
	[LOG_LEVEL_INFO] = { "<6>", "millraced: ", "" },
};

static log_capture_fn *capture_fn;
static void *capture_context;

/* Where standard error is the journal's. */
static struct journal {
	bool is_it;
	pthread_mutex_t lock;
	struct repeats repeats; /* under it */
} journal = { .lock = PTHREAD_MUTEX_INITIALIZER };

void log_open(void)
{
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): at start */
	const char *stream = getenv("JOURNAL_STREAM");
	char ours[64];
	struct stat stat;

	if (!stream || fstat(STDERR_FILENO, &stat))
		return;
	snprintf(ours, sizeof(ours), "%ju:%ju", (uintmax_t)stat.st_dev, (uintmax_t)stat.st_ino);
	journal.is_it = !strcmp(stream, ours);
}

void log_capture(log_capture_fn *capture, void *context)
{
	capture_fn = capture;
	capture_context = context;
}

/* A message is a line, whatever name or word of others it has in it. */
static void make_single(char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
	}
}

static void put_line(enum log_level level, const char *text, const char *tail)
{
	struct pollfd standard_error = { .fd = STDERR_FILENO, .events = POLLOUT };
	char line[LINE_SIZE];
	int len = snprintf(line, sizeof(line) - 1, "%s%s%s%s",
			   journal.is_it ? level_head[level].journal : level_head[level].name,
			   level_head[level].word, text, tail);

	if (len < 0)
		return;
	if ((size_t)len > sizeof(line) - 2)
		len = sizeof(line) - 2;
	line[len++] = '\n';
	/* A closed or full standard error must neither end nor stop a forwarder: there is nobody to tell.
	 * Where there is room at all, a pipe takes a line of this length (below PIPE_BUF) at once. */
	if (poll(&standard_error, 1, READER_MS) <= 0 || write(STDERR_FILENO, line, (size_t)len) < 0)
		return;
}

static void tell_ended(uint64_t now_ns)
{
	struct repeats_kind ended;
	char tail[64];

	while (repeats_end(&journal.repeats, now_ns, &ended)) {
		snprintf(tail, sizeof(tail), " (the last of %u more like this)", ended.held);
		put_line((enum log_level)ended.level, ended.text, tail);
	}
}

void log_repeats(bool at_end)
{
	if (!journal.is_it)
		return;
	pthread_mutex_lock(&journal.lock);
	tell_ended(at_end ? UINT64_MAX : clock_now_ns());
	pthread_mutex_unlock(&journal.lock);
}

void log_write(enum log_level level, const char *format, ...)
{
	char text[LINE_SIZE];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (len < 0)
		return;
	make_single(text);
	if (capture_fn && capture_fn(level, text, capture_context))
		return;
	if (!journal.is_it) {
		put_line(level, text, "");
		return;
	}
	pthread_mutex_lock(&journal.lock);
	tell_ended(clock_now_ns());
	if (repeats_pass(&journal.repeats, level, text, clock_now_ns()))
		put_line(level, text, "");
	pthread_mutex_unlock(&journal.lock);
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
	case EROFS:
		return "; mount it for writing, or in a systemd unit name it in ReadWritePaths=";
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
