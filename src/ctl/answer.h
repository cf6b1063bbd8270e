/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the control socket answers: one line of JSON to each line of a request. Knows no socket. The
 * protocol and every field are documented in docs/control-protocol.md. Main thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/commands.h"
#include "ctl/report.h"

/* The state of the daemon as a whole. Text is borrowed until the next call into the ops. */
struct control_facts {
	const char *state;	   /* "running" */
	const char *version;	   /* of millraced */
	const char *configuration; /* path of the file; NULL: it runs from flags */
	uint64_t uptime_ns;
	uint64_t generation;	/* reloads that succeeded */
	bool reloaded;		/* a reload was tried, and the rest here is about the last one: */
	uint64_t reload_age_ns; /* how long ago it was */
	bool reload_taken;	/* it succeeded */
	unsigned reload_errors; /* what it complained of, which it may also if it succeeded */
	bool confirm_asked;	/* --confirm was given, and the rest here is about it: */
	bool confirmed;
	uint64_t confirm_left_ns; /* until everything is detached; confirmed: that were left then */
};

/* What the daemon does for those who ask. All are there; all are called with the context, in the main
 * thread. */
struct control_ops {
	void (*facts)(void *context, struct control_facts *facts);

	/* Counts of now, or of a moment ago: many may ask, and a worker is asked once. With ports. Valid until
	 * the next call into the ops. */
	const struct report *(*collect)(void *context);

	/* What gives frames of ports to the host, as the array of `rules`: a new reference, NULL without
	 * memory. */
	json_t *(*rules_json)(void *context);

	/* The plan as JSON, a new reference, NULL without memory; and as text of several lines for people,
	 * malloc()ed, likewise. */
	json_t *(*plan_json)(void *context);
	char *(*plan_text)(void *context);

	/* Reads the configuration again and acts on it. Returns 0; or -errno with one string or more
	 * appended to *errors, each a line that says what is wrong, and nothing changed. */
	int (*reload)(void *context, json_t *errors);

	/* Makes the port of that name promiscuous, or no longer. Returns 0; or -errno with one line in
	 * error (of error_size bytes): -ENOENT if there is no such port. */
	int (*set_promiscuous)(void *context, const char *port, bool on, char *error,
			       size_t error_size);

	/* Answers a command about forwarding databases, with arguments that command_check() lets through.
	 * Returns the result, a new reference; or NULL with one line in error (of error_size bytes). */
	json_t *(*fdb)(void *context, enum command command, const json_t *arguments, char *error,
		       size_t error_size);

	/* Ends the wait of --confirm. Returns 0; -EALREADY if an operator did so before; -ENOENT if nothing
	 * waits for it. */
	int (*confirm)(void *context);
};

struct answerer {
	const struct control_ops *ops;
	void *context; /* of the ops */
};

/* What somebody who asks may do. */
enum rights {
	RIGHTS_NONE,
	RIGHTS_READ, /* the read-only commands */
	RIGHTS_ALL,
};

/* Why nothing was done, as the "code" of an error. */
enum answer_error {
	ANSWER_BAD_REQUEST,
	ANSWER_UNSUPPORTED_VERSION,
	ANSWER_UNKNOWN_COMMAND,
	ANSWER_BAD_ARGUMENTS,
	ANSWER_DENIED,
	ANSWER_FAILED,
	ANSWER_LINE_TOO_LONG,
	ANSWER_TOO_MANY_CLIENTS,
	ANSWER_ERRORS,
};

/*
 * Does what a request asks, if its rights allow that. The line is `len` bytes, with or without a newline
 * at its end. Returns the answer, malloc()ed, with a newline; NULL if there is no memory for one.
 */
char *answer_request(const struct answerer *answerer, enum rights rights, const char *line,
		     size_t len);

/* The answer to something that is no request. Returns as answer_request(). */
char *answer_error(enum answer_error code, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
