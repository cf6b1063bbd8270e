/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "conf/print.h"

#include <string.h>

#include "conf/table.h"

/* Where a list goes on in the next line, well within what ini_read() takes. */
#define WIDTH 90

/* A part of a conf, and what it would be if nothing were said that need not be. */
struct part {
	struct option_place place, plain;
};

static bool print_differs(const struct option_row *row, const struct part *part, char *text)
{
	char plain[OPTION_TEXT_SIZE];

	row->kind->print(row, &part->place, text, OPTION_TEXT_SIZE);
	row->kind->print(row, &part->plain, plain, sizeof(plain));
	return text[0] && (row->must || strcmp(text, plain) != 0);
}

/* Forwards are the same where what depends on other members is as those have it. */
static struct conf_forward plain_forward(const struct conf_forward *forward)
{
	struct conf_forward plain;

	conf_forward_defaults(&plain);
	plain.ring_size = forward->ring_size;
	plain.tx.vlan = forward->tx.vlan;
	plain.tx.timestamp = forward->tx.timestamp;
	conf_forward_complete(&plain, false, false);
	plain.ring_size = 2048;
	plain.tx.vlan = plain.tx.timestamp = false;
	return plain;
}

/* Breaks a long list behind its commas or blanks; a line that is indented continues the one before. */
static void print_value(FILE *out, const char *key, const char *value)
{
	fprintf(out, "%s = ", key);
	while (strlen(value) > WIDTH) {
		size_t len = WIDTH;

		while (len && value[len - 1] != ',' && value[len - 1] != ' ')
			len--;
		if (!len)
			break; /* one word */
		fprintf(out, "%.*s\n\t", (int)len, value);
		value += len;
	}
	fprintf(out, "%s\n", value);
}

/* The header comes with the first key: a section without one says nothing. */
static void print_section(FILE *out, enum option_section kind, const char *header,
			  const struct part *part, bool *first)
{
	char text[OPTION_TEXT_SIZE];
	bool begun = false;

	for_each_row(row)
	{
		bool here = row->scope == SCOPE_RUN  ? kind == IN_MILLRACE :
			    row->scope == SCOPE_PORT ? kind == IN_PORT :
						       kind == IN_FORWARD;

		if (!here || !(row->in & kind) || !print_differs(row, part, text))
			continue;
		if (!begun)
			fprintf(out, "%s[%s]\n", *first ? "" : "\n", header);
		begun = true;
		*first = false;
		print_value(out, option_key(row), text);
	}
}

/* What the bridge has for ever. */
static void print_stations(FILE *out, const struct conf_forward *forward)
{
	char text[STATION_TEXT_SIZE];

	if (forward->stations)
		fprintf(out, "\n[fdb %s]\n", forward->name);
	for (unsigned i = 0; i < forward->stations; i++)
		fprintf(out, "%s = %s\n",
			forward->station[i].port == STATION_BLOCKED ? "blocked" : "static",
			station_print(&forward->station[i], forward, text));
}

void conf_print(FILE *out, const struct conf *conf)
{
	struct conf plain_run = { 0 };
	struct part part = { .plain.conf = &plain_run };
	char header[CONF_NAME_MAX + 16];
	bool first = true;

	/* The casts: what a place leads to is only read here. */
	part.place.conf = (struct conf *)conf;
	print_section(out, IN_MILLRACE, "millrace", &part, &first);
	for (unsigned i = 0; i < conf->ports; i++) {
		struct conf_port plain;

		if (conf->port[i].host)
			continue; /* its forward says so */
		conf_port_defaults(&plain, true);
		part.plain.port = &plain;
		part.place.port = &conf->port[i];
		snprintf(header, sizeof(header), "port %.*s", CONF_NAME_MAX, conf->port[i].name);
		print_section(out, IN_PORT, header, &part, &first);
	}
	for (unsigned i = 0; i < conf->forwards; i++) {
		struct conf_forward plain = plain_forward(&conf->forward[i]);

		part.plain.forward = &plain;
		part.place.forward = &conf->forward[i];
		snprintf(header, sizeof(header), "forward %.*s", CONF_NAME_MAX,
			 conf->forward[i].name);
		print_section(out, IN_FORWARD, header, &part, &first);
	}
	for (unsigned i = 0; i < conf->forwards; i++)
		print_stations(out, &conf->forward[i]);
}

static bool is_excepted(const struct option_row *row, const char *const *except)
{
	for (; *except; except++) {
		if (row == option_find(*except))
			return true;
	}
	return false;
}

/* By the text of each row: so a row that is added is compared too. */
static bool same_row(const struct option_row *row, const struct option_place *one,
		     const struct option_place *other)
{
	char text[OPTION_TEXT_SIZE], other_text[OPTION_TEXT_SIZE];

	row->kind->print(row, one, text, sizeof(text));
	row->kind->print(row, other, other_text, sizeof(other_text));
	return !strcmp(text, other_text);
}

static bool same_rows(enum option_scope scope, const struct option_place *one,
		      const struct option_place *other, const char *const *except)
{
	for_each_row(row)
	{
		if (row->scope == scope && option_key(row) && !is_excepted(row, except) &&
		    !same_row(row, one, other))
			return false;
	}
	return true;
}

bool conf_forward_same(const struct conf_forward *one, const struct conf_forward *other,
		       const char *const *except)
{
	/* The casts: what a place leads to is only read here. */
	const struct option_place place = { .forward = (struct conf_forward *)one };
	const struct option_place other_place = { .forward = (struct conf_forward *)other };

	return same_rows(SCOPE_FORWARD, &place, &other_place, except);
}

bool conf_port_same(const struct conf_port *one, const struct conf_port *other,
		    const char *const *except)
{
	const struct option_place place = { .port = (struct conf_port *)one };
	const struct option_place other_place = { .port = (struct conf_port *)other };

	return same_rows(SCOPE_PORT, &place, &other_place, except);
}

unsigned conf_run_different(const struct conf *one, const struct conf *other, char *keys,
			    size_t size)
{
	const struct option_place place = { .conf = (struct conf *)one };
	const struct option_place other_place = { .conf = (struct conf *)other };
	unsigned count = 0;
	size_t len = 0;

	keys[0] = '\0';
	for_each_row(row)
	{
		if (row->scope != SCOPE_RUN || !option_key(row) ||
		    same_row(row, &place, &other_place))
			continue;
		len += (size_t)snprintf(keys + len, size - len, "%s%s", count++ ? ", " : "",
					option_key(row));
		if (len >= size)
			break;
	}
	return count;
}

/* True if what a key says can be said by flags too. */
static bool has_flag(const struct option_row *key, const char *text)
{
	if (key->name || key->kind == &kind_device || key->kind == &kind_ports)
		return true;
	if (key->kind == &kind_words && !strcmp(text, "patch"))
		return true; /* -l with two interfaces */
	for_each_row(row)
	{
		if (row->sets && row->says && !strcmp(row->sets, option_key(key)) &&
		    !strcmp(row->says, text))
			return true;
	}
	return false;
}

/* Ports are alike in everything but their name and device. */
static bool same_ports(const struct conf *conf)
{
	static const char *const device[] = { "device", NULL };

	for (unsigned i = 1; i < conf->ports; i++) {
		if (!conf_port_same(&conf->port[0], &conf->port[i], device))
			return false;
	}
	return true;
}

static bool flags_suffice(const struct conf *conf, const struct part *part)
{
	char text[OPTION_TEXT_SIZE];

	if (conf->forwards != 1 || conf->forward[0].ports != conf->ports || !same_ports(conf))
		return false;
	for (unsigned i = 0; i < conf->ports; i++) {
		if (conf->forward[0].port[i] != &conf->port[i])
			return false;
	}
	for_each_row(row)
	{
		if (row->in && print_differs(row, part, text) && !has_flag(row, text))
			return false;
	}
	return true;
}

/* As a shell reads it. */
static void print_quoted(FILE *out, const char *text)
{
	if (text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			      "._-,:/@%+=")] == '\0') {
		fputs(text, out);
		return;
	}
	fputc('\'', out);
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", out);
		else
			fputc(*text, out);
	}
	fputc('\'', out);
}

static void print_flag(FILE *out, const struct option_row *row, const char *value)
{
	if (row->letter)
		fprintf(out, " -%c%s", row->letter, value ? " " : "");
	else
		fprintf(out, " --%s%s", row->name, value ? "=" : "");
	if (value)
		print_quoted(out, value);
}

/* A flag without value that is short for a key. */
static void print_short(FILE *out, const struct option_row *row, const struct part *part)
{
	const struct option_row *key = option_find(row->sets);
	char text[OPTION_TEXT_SIZE];

	if (key->name)
		return; /* that one says it whatever it is */
	key->kind->print(key, &part->place, text, sizeof(text));
	if (!strcmp(text, "patch"))
		snprintf(text, sizeof(text), "l2fwd");
	if (!strcmp(text, row->says))
		print_flag(out, row, NULL);
}

bool conf_print_flags(FILE *out, const struct conf *conf)
{
	struct conf plain_run = { .interval_s = 1 };
	struct part part = { .plain.conf = &plain_run };
	struct conf_port plain_port;
	struct conf_forward plain;
	char text[OPTION_TEXT_SIZE];

	if (!conf->forwards || !conf->ports)
		return false;
	plain = plain_forward(&conf->forward[0]);
	conf_port_defaults(&plain_port, false);
	part.plain.port = &plain_port;
	part.plain.forward = &plain;
	part.place.conf = (struct conf *)conf;
	part.place.port = &conf->port[0];
	part.place.forward = &conf->forward[0];
	if (!flags_suffice(conf, &part))
		return false;
	fputs("millraced", out);
	for_each_row(row)
	{
		if (row->act == ACT_INTERFACE) {
			for (unsigned i = 0; i < conf->ports; i++)
				print_flag(out, row, conf->port[i].device);
		} else if (!row->kind && row->sets) {
			print_short(out, row, &part);
		} else if (row->name && row->kind && print_differs(row, &part, text)) {
			print_flag(out, row, row->value ? text : NULL);
		}
	}
	return true;
}
