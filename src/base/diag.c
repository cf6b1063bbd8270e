/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void diag_make_printable(char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
	}
}

static void keep(struct diag *diag, struct diag_line line)
{
	if (diag->count == DIAG_LINES_MAX)
		return;
	if (!diag->lines)
		diag->lines = calloc(DIAG_LINES_MAX, sizeof(*diag->lines));
	line.text = diag->lines ? strdup(line.text) : NULL;
	if (line.text) /* else it is one of those that are counted only */
		diag->lines[diag->count++] = line;
}

static void add(struct diag *diag, struct diag_line line, const char *format, va_list arguments)
{
	char text[DIAG_TEXT_SIZE];

	vsnprintf(text, sizeof(text), format, arguments);
	diag_make_printable(text);
	line.text = text;
	keep(diag, line);
}

void diag_error(struct diag *diag, unsigned line, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	add(diag, (struct diag_line){ .line = line }, format, arguments);
	va_end(arguments);
	diag->errors++;
}

void diag_warning(struct diag *diag, unsigned line, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	add(diag, (struct diag_line){ .line = line, .warning = true }, format, arguments);
	va_end(arguments);
	diag->warnings++;
}

/* By insertion: there are few, they are nearly in order, and equal lines stay as they are. */
void diag_sort(struct diag *diag)
{
	for (unsigned i = 1; i < diag->count; i++) {
		struct diag_line moved = diag->lines[i];
		unsigned at = i;

		for (; at && diag->lines[at - 1].line > moved.line; at--)
			diag->lines[at] = diag->lines[at - 1];
		diag->lines[at] = moved;
	}
}

const char *diag_print(const struct diag *diag, unsigned index, char *text, size_t size)
{
	const struct diag_line *line = &diag->lines[index];
	const char *file = diag->file ? diag->file : "configuration";

	if (line->line)
		snprintf(text, size, "%s:%u: %s", file, line->line, line->text);
	else
		snprintf(text, size, "%s: %s", file, line->text);
	return text;
}

void diag_fini(struct diag *diag)
{
	for (unsigned i = 0; i < diag->count; i++)
		free(diag->lines[i].text);
	free(diag->lines);
	*diag = (struct diag){ .file = diag->file };
}
