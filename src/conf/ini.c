/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "conf/ini.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define BYTE_ORDER_MARK "\xef\xbb\xbf"

/* What kind of line inih was given last. */
enum given {
	GIVEN_NOTHING,
	GIVEN_VALUE, /* the next may continue it */
	GIVEN_MORE,
};

struct ini_reader {
	FILE *in;
	const struct ini_sink *sink;
	void *context;
	struct diag *diag;
	unsigned line;
	char *text; /* of getline() */
	size_t size;
	enum given given;
	bool refused; /* the last line that was not blank: what continues it is not told of again */
	int err;
};

static char *skip_blanks(char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	return text;
}

static void cut_blanks(char *text)
{
	size_t len = strlen(text);

	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	text[len] = '\0';
}

/* Cuts a comment off, which is what is behind " ;". */
static void cut_comment(char *text)
{
	for (char *at = text; (at = strchr(at, ';')); at++) {
		if (at > text && isspace((unsigned char)at[-1])) {
			*at = '\0';
			break;
		}
	}
	cut_blanks(text);
}

/* Notes an error of the current line, which inih then does not see. Returns what it sees instead. */
#define refuse(reader, ...) \
	(diag_error((reader)->diag, (reader)->line, __VA_ARGS__), (reader)->refused = true, "")

/* A header: inih would not look behind its bracket. */
static const char *read_header(struct ini_reader *reader, char *line)
{
	char *end, *behind;

	reader->given = GIVEN_NOTHING;
	reader->refused = false;
	cut_comment(line);
	end = strchr(line, ']');
	behind = end ? skip_blanks(end + 1) : NULL;
	if (end && (!*behind || *behind == ';' || *behind == '#')) {
		end[1] = '\0';
		if (end - line - 1 <= INI_NAME_MAX) {
			*end = '\0';
			reader->sink->section(reader->context, reader->line, line + 1);
			*end = ']';
			return line;
		}
	}
	reader->sink->section(reader->context, reader->line, NULL);
	if (!end)
		return refuse(reader, "%s: a section has no ']'; type for example [port wan]",
			      line);
	if (end[1])
		return refuse(reader, "%.*s: '%s' behind it; a header has its line for itself",
			      (int)(end - line) + 1, line, behind);
	return refuse(reader, "%.20s...: a header has up to %d characters", line, INI_NAME_MAX);
}

/* The line is indented and has no '='. */
static const char *read_continuation(struct ini_reader *reader, char *line)
{
	/* inih would leave the comment in. */
	cut_comment(line);
	if (reader->given != GIVEN_NOTHING) {
		reader->given = GIVEN_MORE;
		/* What tells inih that it is one; the reader's buffer has the blank that was here. */
		line[-1] = ' ';
		return line - 1;
	}
	if (reader->refused)
		return "";
	return refuse(reader, "'%s': continues no value; type name = value", line);
}

static const char *read_value(struct ini_reader *reader, char *line, bool indented)
{
	size_t name = strcspn(line, "=");

	if (!line[name] && indented)
		return read_continuation(reader, line);
	reader->given = GIVEN_NOTHING;
	if (!line[name])
		return refuse(reader, "'%s': is neither a [section] nor name = value", line);
	while (name && isspace((unsigned char)line[name - 1]))
		name--;
	if (!name)
		return refuse(reader, "'%s': has no name before the '='", line);
	/* inih would split at a colon too, and end the line at a semicolon. */
	if (memchr(line, ':', name) || memchr(line, ';', name))
		return refuse(reader, "'%.*s': no name has a ':' or ';'; type name = value",
			      (int)name, line);
	if (name > INI_NAME_MAX)
		return refuse(reader, "'%.20s...': a name has up to %d characters", line,
			      INI_NAME_MAX);
	reader->given = GIVEN_VALUE;
	reader->refused = false;
	return line;
}

/* A byte that is no part of a line of text, or -1. */
static int odd_byte(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (((unsigned char)text[i] < ' ' && text[i] != '\t') || text[i] == 0x7f)
			return (unsigned char)text[i];
	}
	return -1;
}

/* What inih shall see of the line that is in reader->text. */
static const char *read_line(struct ini_reader *reader, size_t len)
{
	char *text = reader->text, *line;
	int odd;

	while (len && (text[len - 1] == '\n' || text[len - 1] == '\r'))
		len--;
	text[len] = '\0';
	if (reader->line == 1 && !strncmp(text, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK))) {
		text += strlen(BYTE_ORDER_MARK);
		len -= strlen(BYTE_ORDER_MARK);
	}
	odd = odd_byte(text, len);
	if (odd >= 0) {
		reader->given = GIVEN_NOTHING;
		return refuse(reader, "has a byte 0x%02x; a configuration file is text", odd);
	}
	line = skip_blanks(text);
	cut_blanks(line);
	if (!*line || *line == ';' || *line == '#')
		return "";
	if (*line == '[')
		return read_header(reader, line);
	return read_value(reader, line, line > text);
}

/* An ini_reader, as fgets(): a line into text, or NULL at the end. */
static char *next_line(char *text, int size, void *stream)
{
	struct ini_reader *reader = stream;
	const char *line;
	ssize_t len;

	errno = 0;
	len = getline(&reader->text, &reader->size, reader->in);
	if (len < 0) {
		if (!feof(reader->in) || ferror(reader->in))
			reader->err = errno ? -errno : -EIO;
		return NULL;
	}
	reader->line++;
	line = read_line(reader, (size_t)len);
	if (strlen(line) >= (size_t)size) {
		reader->given = GIVEN_NOTHING;
		line = refuse(
			reader,
			"a line of %zu characters: it has up to %d; a longer value goes on in "
			"the next line, indented",
			strlen(line), size - 1);
	}
	memcpy(text, line, strlen(line) + 1);
	return text;
}

static int on_value(void *context, const char *section, const char *name, const char *value)
{
	struct ini_reader *reader = context;

	(void)section; /* the sink was told of it */
	reader->sink->value(reader->context, reader->line, name, value,
			    reader->given == GIVEN_MORE);
	return 1;
}

int ini_read(FILE *in, const struct ini_sink *sink, void *context, struct diag *diag)
{
	struct ini_reader reader = {
		.in = in,
		.sink = sink,
		.context = context,
		.diag = diag,
	};
	int line = ini_parse_stream(next_line, &reader, on_value, &reader);

	free(reader.text);
	if (line < 0)
		reader.err = -ENOMEM;
	if (reader.err)
		diag_error(diag, 0, "cannot be read: " ERR_FORMAT, ERR_ARGS(reader.err));
	else if (line > 0) /* ours and inih's idea of a line differ */
		diag_error(diag, (unsigned)line, "is not understood");
	return reader.err;
}
