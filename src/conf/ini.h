/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * INI text, read through inih behind a reader of ours. inih alone tells no line numbers, is silent
 * about empty and repeated sections, cuts what is longer than its buffers, takes the rest of a header
 * line for nothing, stays in the old section after a broken header, and appends an indented line to
 * the value above it whatever it says. The reader sees every line first, reports what is no INI, and
 * gives inih only lines that both understand alike.
 *
 * A line is blank, a comment (; or # as its first character), a header [text], or name = value with a
 * comment behind " ;". An indented line without '=' continues the value above it. Blanks around names
 * and values do not count, CR before LF neither, nor a UTF-8 byte order mark at the start.
 */
#pragma once

#include <stdio.h>

#include "base/diag.h"

/* Longest text of a header and longest name: what inih keeps (its MAX_SECTION and MAX_NAME, 50). */
#define INI_NAME_MAX 49

/* What is told to the reader of the text; the strings are valid until the call returns. */
struct ini_sink {
	/* A header; text is NULL if it is none, which was reported: what follows belongs nowhere. */
	void (*section)(void *context, unsigned line, const char *text);
	/* A value; `more` if it continues that of the call before, whose name it has. */
	void (*value)(void *context, unsigned line, const char *name, const char *value, bool more);
};

/*
 * Reads to the end and tells sink everything in order. Lines that are no INI are errors in diag, each
 * of them. Returns 0, whatever diag has, or -errno after an error in diag if reading failed.
 */
int ini_read(FILE *in, const struct ini_sink *sink, void *context, struct diag *diag);
