/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is wrong with a file, line by line: collected first, so that all of it can be said at once.
 * One thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Findings kept; the rest are counted. More than anybody reads before the first is mended. */
#define DIAG_LINES_MAX 100

/* Longest text of a finding, with its NUL. */
#define DIAG_TEXT_SIZE 512

struct diag_line {
	unsigned line; /* from 1; 0: of the file as a whole */
	bool warning;
	char *text; /* without file and line; printable */
};

/* A zeroed one is empty. */
struct diag {
	const char *file;	   /* borrowed, for messages; may be NULL */
	unsigned errors, warnings; /* found */
	unsigned count;		   /* kept */
	struct diag_line *lines;   /* owned */
};

/* Notes an error or a warning. Bytes of the text that are no text become '?'. */
void diag_error(struct diag *diag, unsigned line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void diag_warning(struct diag *diag, unsigned line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts what is kept into the order of the file; of one line, as it was found. */
void diag_sort(struct diag *diag);

/* Writes finding `index`, below count, as "file:line: text" (without a line: "file: text"), cut to
 * the room there is. Returns text. */
const char *diag_print(const struct diag *diag, unsigned index, char *text, size_t size);

/* Findings that were not kept: "and N more". */
static inline unsigned diag_more(const struct diag *diag)
{
	return diag->errors + diag->warnings - diag->count;
}

/* Replaces the control characters of text by '?'. */
void diag_make_printable(char *text);

/* Frees what it owns and empties it; file stays. */
void diag_fini(struct diag *diag);
