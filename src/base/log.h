/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One line a message on standard error, written by one write(2) so that lines of several threads
 * or processes do not mix. Never called from a poller thread's data path.
 */
#pragma once

enum log_level {
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARNING,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG,
};

/* Messages above this level are dropped. Call before the first thread starts. */
void log_set_level(enum log_level level);
enum log_level log_level(void);

/* Writes "millraced: <level>: <text>\n" (no level word for info). Longer than 1 KiB is cut.
 * Any thread. */
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)	 log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)	 log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)	 log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* "EBUSY (Device or resource busy)" for a positive or negative errno; thread-safe, static text for
 * the known ones. */
#define ERR_FORMAT    "%s (%s)"
#define ERR_ARGS(err) err_name(err), err_text(err)
const char *err_name(int err);
const char *err_text(int err);
