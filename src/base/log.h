/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One line a message on standard error, written by one write(2) so that lines of several threads
 * or processes do not mix. Never called from a poller thread's data path.
 *
 * Where standard error is the journal's, lines begin with their priority, "<3>" to "<6>", in the place of
 * the program's name, which is kept beside them there; and of lines that repeat themselves only some are
 * written, see base/repeats.h.
 */
#pragma once

#include <stdbool.h>

enum log_level {
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARNING,
	LOG_LEVEL_INFO,
};

/* Finds out whether standard error is the journal's: systemd says so in $JOURNAL_STREAM. At start. */
void log_open(void);

/* Writes "millraced: <level>: <text>\n" (no level word for info). Longer than 1 KiB is cut; control characters
 * become '?'; where nobody empties standard error it is dropped after 50 ms. Any thread. */
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Shows every message to `capture` first, as its text without program name, level and newline; true:
 * it has taken the message, which then does not go to standard error. NULL ends that. For the main
 * thread's messages: no other thread may log while there is one.
 */
typedef bool log_capture_fn(enum log_level level, const char *text, void *context);
void log_capture(log_capture_fn *capture, void *context);

/* Tells of lines that were not written for repeating others, once their time is over; at_end: all of them. The
 * main thread, about once a second. */
void log_repeats(bool at_end);

#define log_error(...)	 log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)	 log_write(LOG_LEVEL_INFO, __VA_ARGS__)

/* For a positive or negative errno, as "EMFILE (Too many open files)" and, where there is something to
 * type against it whatever was tried, "; RLIMIT_NOFILE is 16: raise it (`ulimit -n 64`, LimitNOFILE=)".
 * Any thread; the advice is valid until that thread asks for the next. */
#define ERR_FORMAT    "%s (%s)%s"
#define ERR_ARGS(err) err_name(err), err_text(err), err_advice(err)
const char *err_name(int err);
const char *err_text(int err);
const char *err_advice(int err);

/* The same for a call that, once the capabilities are there, only a sandbox refuses: names that. */
#define ERR_SANDBOX_ARGS(err) err_name(err), err_text(err), err_sandbox_advice(err)
const char *err_sandbox_advice(int err);
