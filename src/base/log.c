/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum log_level max_level = LOG_LEVEL_INFO;

static const char *const level_prefix[] = {
	[LOG_LEVEL_ERROR] = "error: ",
	[LOG_LEVEL_WARNING] = "warning: ",
	[LOG_LEVEL_INFO] = "",
	[LOG_LEVEL_DEBUG] = "debug: ",
};

void log_set_level(enum log_level level)
{
	max_level = level;
}

enum log_level log_level(void)
{
	return max_level;
}

void log_write(enum log_level level, const char *format, ...)
{
	char line[1024];
	va_list args;
	int head, body;
	size_t len;

	if (level > max_level)
		return;
	head = snprintf(line, sizeof(line), "millraced: %s", level_prefix[level]);
	va_start(args, format);
	body = vsnprintf(line + head, sizeof(line) - (size_t)head, format, args);
	va_end(args);
	if (body < 0)
		return;
	len = (size_t)head + (size_t)body;
	if (len > sizeof(line) - 1)
		len = sizeof(line) - 1;
	line[len++] = '\n';
	/* A closed or full standard error must not end a forwarder: there is nobody to tell. */
	if (write(STDERR_FILENO, line, len) < 0)
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
