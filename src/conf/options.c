/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "conf/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "conf/file.h"
#include "conf/table.h"

/* What the flags said, before it is known whether they fit together. */
struct parse {
	struct options *options;
	struct conf *conf;
	struct conf_forward *forward; /* the one that flags make */
	struct conf_port port;	      /* what they say of every interface */
	struct option_check check;
	struct diag diag;
	bool help, help_config, version;
};

/* Notes the one line that tells what is wrong, and is the error to return. */
#define fail(parse, ...) (diag_error(&(parse)->diag, 0, __VA_ARGS__), -EINVAL)

static bool given_row(const struct parse *parse, const struct option_row *row)
{
	return parse->options->given[option_index(row)];
}

/* getopt_long() returns LONG_BASE + row for a long option, so that one switch serves both. */
#define LONG_BASE 256

static void getopt_tables(char *letters, struct option *longs)
{
	*letters++ = ':'; /* tell a missing value from an unknown option */
	for_each_row(row)
	{
		int has_value = !row->value   ? no_argument :
				row->optional ? optional_argument :
						required_argument;
		int code = LONG_BASE + (int)option_index(row);

		if (!row->name)
			continue;
		if (row->letter) {
			*letters++ = row->letter;
			if (row->value)
				*letters++ = ':';
		}
		*longs++ = (struct option){ row->name, has_value, NULL, code };
		if (row->alias)
			*longs++ = (struct option){ row->alias, has_value, NULL, code };
	}
	*letters = '\0';
	*longs = (struct option){ NULL, 0, NULL, 0 };
}

static const struct option_row *row_of(int code)
{
	if (code >= LONG_BASE)
		return &option_rows[code - LONG_BASE];
	for_each_row(row)
	{
		if (row->letter == code)
			return row;
	}
	return NULL;
}

static bool given(const struct parse *parse, char letter)
{
	return given_row(parse, row_of(letter));
}

/* Flags of a row that says the same of something else. */
static bool given_otherwise(const struct parse *parse, const struct option_row *row)
{
	for_each_row(other)
	{
		if (other != row && other->sets && !strcmp(other->sets, row->sets) &&
		    given_row(parse, other))
			return true;
	}
	return false;
}

static int apply_interface(struct parse *parse, const char *value)
{
	struct conf *conf = parse->conf;
	struct conf_port port = { 0 };
	struct option_wrong wrong;

	if (kind_device.parse(NULL, value, &(struct option_place){ .port = &port }, &wrong))
		return fail(parse, "-i '%s': %s", value, wrong.text);
	for (unsigned i = 0; i < conf->ports; i++) {
		if (!strcmp(conf->port[i].device, value))
			return fail(parse, "-i %s: given twice; name each interface once", value);
	}
	if (conf->ports == CONF_PORTS_MAX)
		return fail(parse, "-i %s: more than %d interfaces", value, CONF_PORTS_MAX);
	conf->port[conf->ports++] = port;
	return 0;
}

static int set_action(struct parse *parse, enum options_action action)
{
	if (parse->options->action != ACTION_RUN && parse->options->action != action)
		return fail(parse,
			    "--check, --print-config and --plan exclude each other: give one");
	parse->options->action = action;
	return 0;
}

static int apply_plan(struct parse *parse, const char *value)
{
	if (*value && strcmp(value, "json") != 0)
		return fail(parse, "--plan=%s: must be --plan or --plan=json", value);
	return set_action(parse, *value ? ACTION_PLAN_JSON : ACTION_PLAN);
}

static int set_file(struct parse *parse, const struct option_row *row, const char *value)
{
	if (!*value)
		return fail(parse, "--%s='': name a file", row->name);
	if (parse->options->file)
		return fail(parse, "--%s=%s: one file, and once; --check names its own", row->name,
			    value);
	parse->options->file = value;
	return 0;
}

/* What is about the command line itself. */
static int apply_act(struct parse *parse, const struct option_row *row, const char *value)
{
	switch (row->act) {
	case ACT_INTERFACE:
		return apply_interface(parse, value);
	case ACT_HELP:
		parse->help = true;
		return 0;
	case ACT_HELP_CONFIG:
		parse->help_config = true;
		return 0;
	case ACT_VERSION:
		parse->version = true;
		return 0;
	case ACT_CONFIG:
		return set_file(parse, row, value);
	case ACT_CHECK:
		if (set_action(parse, ACTION_CHECK))
			return -EINVAL;
		return set_file(parse, row, value);
	case ACT_PRINT:
		return set_action(parse, ACTION_PRINT);
	case ACT_PLAN:
		return apply_plan(parse, value);
	case ACT_NONE: /* what an older tool needed said, and here is always so */
		break;
	}
	return 0;
}

/* Where the values of flags go. */
static struct option_place place_of(struct parse *parse)
{
	return (struct option_place){ parse->conf, parse->forward, &parse->port };
}

static int apply_value(struct parse *parse, const struct option_row *row, const char *value)
{
	const struct option_place place = place_of(parse);
	const struct option_row *set = row->kind ? row : option_find(row->sets);
	struct option_wrong wrong;

	if (row->sets && !strcmp(row->sets, "mode") && given_otherwise(parse, row))
		return fail(parse, "two modes: give one of -r, -t and -l");
	parse->check.line[option_index(set)] = 1;
	if (!row->value)
		return set->kind->parse(set, row->kind ? "yes" : row->says, &place, &wrong);
	if (set->kind->parse(set, value, &place, &wrong))
		return fail(parse, "--%s=%s: %s", row->name, value, wrong.text);
	return 0;
}

/* What holds for flags alone; the rest is option_check_forward()'s and option_check_port()'s. */
static int check_flags(struct parse *parse)
{
	struct conf_forward *conf = parse->forward;

	if (!conf->ports)
		return fail(parse, "no interface: give one with -i%s",
			    parse->options->action == ACTION_RUN ? "" :
								   ", or a file with --config");
	if (conf->mode == CONF_MODE_L2FWD && conf->ports == 2)
		conf->mode = CONF_MODE_PATCH;
	if (conf->mode == CONF_MODE_L2FWD && conf->ports > 2)
		return fail(parse,
			    "-l takes one interface (swap and send back) or two (patch), not %u",
			    conf->ports);
	if (given(parse, 'S') && given(parse, 'N'))
		return fail(parse, "-S and -N exclude each other: give one");
	if (given(parse, 'p') && parse->options->given[option_index(option_find("wait"))] &&
	    conf->wait != CONF_WAIT_POLL)
		return fail(parse, "-p and --wait exclude each other: give one");
	if (given(parse, 'z') && given(parse, 'c'))
		return fail(parse, "-z and -c exclude each other: give one");
	option_check_run(&parse->check, parse->conf);
	option_check_port(&parse->check, &parse->port);
	option_check_forward(&parse->check, conf);
	return parse->diag.errors ? -EINVAL : 0;
}

/* One forward, of all the interfaces that will be named. */
static int conf_of_flags(struct conf *conf)
{
	memset(conf, 0, sizeof(*conf));
	conf->forwards = 1;
	conf->forward = calloc(1, sizeof(*conf->forward));
	conf->port = calloc(CONF_PORTS_MAX, sizeof(*conf->port));
	conf->interval_s = 1;
	if (!conf->forward || !conf->port)
		return -ENOMEM;
	conf_forward_defaults(conf->forward);
	snprintf(conf->forward->name, sizeof(conf->forward->name), "main");
	return 0;
}

static bool port_named(const struct conf *conf, const char *name)
{
	for (unsigned i = 0; i < conf->ports; i++) {
		if (!strcmp(conf->port[i].name, name))
			return true;
	}
	return false;
}

/* As the device, where a file could say so. */
static void name_ports(struct conf *conf)
{
	for (unsigned i = 0; i < conf->ports; i++) {
		if (conf_name_valid(conf->port[i].device, CONF_NAME_MAX))
			memcpy(conf->port[i].name, conf->port[i].device, CONF_NAME_MAX + 1);
	}
	for (unsigned i = 0, number = 1; i < conf->ports; i++) {
		char name[CONF_NAME_MAX + 1] = "";

		while (!conf->port[i].name[0]) {
			snprintf(name, sizeof(name), "port%u", number++);
			if (!port_named(conf, name))
				memcpy(conf->port[i].name, name, sizeof(name));
		}
	}
}

/* What was said of the interfaces holds for each of them. */
static void spread_port(struct parse *parse)
{
	struct conf *conf = parse->conf;

	for (unsigned i = 0; i < conf->ports; i++) {
		struct conf_port *port = &conf->port[i];

		memcpy(parse->port.device, port->device, sizeof(port->device));
		*port = parse->port;
		parse->forward->port[i] = port;
	}
	parse->forward->ports = conf->ports;
	name_ports(conf);
}

/* With a file, flags may not speak of what it speaks of. */
static int check_file_alone(struct parse *parse)
{
	for_each_row(row)
	{
		const char *value = parse->options->given[option_index(row)];
		char both[OPTION_WORD_SIZE], word[OPTION_WORD_SIZE];
		bool run = row->scope == SCOPE_RUN || row->scope == SCOPE_LINE;

		if (!value || (run && row->act != ACT_INTERFACE))
			continue;
		if (!row->value)
			value = row->says ? row->says : "yes";
		if (row->letter)
			snprintf(both, sizeof(both), "-%c, --%s", row->letter, row->name);
		else
			snprintf(both, sizeof(both), "--%s", row->name);
		return fail(parse, "%s: is the file's to say; write %s in its [%s NAME]", both,
			    option_word(true, row->sets ? row->sets : option_key(row), value, word),
			    row->scope == SCOPE_FORWARD ? "forward" : "port");
	}
	return 0;
}

/* getopt_long() takes "--frame" for --frame-size only if nothing else begins so. */
static bool ambiguous(const char *word)
{
	size_t len = strcspn(word, "=");
	unsigned found = 0;

	if (strncmp(word, "--", 2) != 0)
		return false;
	for_each_row(row) found += row->name && !strncmp(word + 2, row->name, len - 2);
	return found > 1;
}

/* The option as the user typed it, for messages; getopt has moved past it. */
static int fail_unknown(struct parse *parse, char **argv)
{
	const char *word = argv[optind - 1];

	if (optopt >= LONG_BASE)
		return fail(parse, "--%s takes no value", option_rows[optopt - LONG_BASE].name);
	if (optopt > 0)
		return fail(parse, "-%c: unknown option; see millraced --help", optopt);
	if (optopt < 0) /* a letter beyond ASCII, in the middle of a word */
		return fail(parse, "an option letter that is none; see millraced --help");
	if (ambiguous(word))
		return fail(parse, "%s: several options begin so; see millraced --help", word);
	return fail(parse, "%s: unknown option; see millraced --help", word);
}

static int fail_valueless(struct parse *parse)
{
	const struct option_row *row = row_of(optopt);

	return fail(parse, "--%s needs a value: --%s=%s", row->name, row->name, row->value);
}

static int parse_all(struct parse *parse, int argc, char **argv)
{
	struct option longs[2 * OPTIONS_ROWS_MAX + 1];
	char letters[2 * OPTIONS_ROWS_MAX + 2];
	int code, err = 0;

	getopt_tables(letters, longs);
	opterr = 0;
	optind = 0; /* glibc: start afresh */
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): before the first thread, see options.h */
	while (!err && (code = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		const struct option_row *row;
		const char *value;

		if (code == '?')
			return fail_unknown(parse, argv);
		if (code == ':')
			return fail_valueless(parse);
		row = row_of(code);
		value = optarg ? optarg : "";
		err = row->scope == SCOPE_LINE ? apply_act(parse, row, value) :
						 apply_value(parse, row, value);
		parse->options->given[option_index(row)] = value;
	}
	if (!err && optind < argc)
		return fail(parse, "'%s': not an option; name interfaces with -i", argv[optind]);
	return err;
}

/* Of the conf there is then only what flags say of the run. */
static int keep_run(struct parse *parse)
{
	struct conf *conf = parse->conf;

	free(conf->port);
	free(conf->forward);
	conf->port = NULL;
	conf->forward = NULL;
	conf->ports = conf->forwards = 0;
	return check_file_alone(parse);
}

static enum options_result parse_flags(struct parse *parse, int argc, char **argv)
{
	if (conf_of_flags(parse->conf)) {
		(void)fail(parse, "out of memory");
		return OPTIONS_WRONG;
	}
	parse->forward = parse->conf->forward;
	if (parse_all(parse, argc, argv))
		return OPTIONS_WRONG;
	if (parse->help)
		return OPTIONS_HELP;
	if (parse->help_config)
		return OPTIONS_HELP_CONFIG;
	if (parse->version)
		return OPTIONS_VERSION;
	if (parse->options->file)
		return keep_run(parse) ? OPTIONS_WRONG : OPTIONS_RUN;
	spread_port(parse);
	return check_flags(parse) ? OPTIONS_WRONG : OPTIONS_RUN;
}

enum options_result options_parse(int argc, char **argv, struct options *options, struct conf *conf)
{
	struct parse parse = {
		.options = options,
		.conf = conf,
		.check.section = "",
	};
	enum options_result result;

	memset(options, 0, sizeof(*options));
	parse.check.diag = &parse.diag;
	conf_port_defaults(&parse.port, false);
	result = parse_flags(&parse, argc, argv);
	if (parse.diag.count)
		snprintf(options->error, sizeof(options->error), "%s", parse.diag.lines[0].text);
	else if (result == OPTIONS_WRONG)
		snprintf(options->error, sizeof(options->error), "out of memory");
	diag_fini(&parse.diag);
	return result;
}

/* Flags of the run once more; they were understood before. */
static void apply_run(const struct options *options, struct conf *conf)
{
	const struct option_place place = { .conf = conf };
	struct option_wrong wrong;

	/* Who reads a daemon's reports asks for them. */
	conf->quiet = true;
	for_each_row(row)
	{
		const char *value = options->given[option_index(row)];

		if (!value || row->scope != SCOPE_RUN)
			continue;
		(void)row->kind->parse(row, row->value ? value : "yes", &place, &wrong);
		if (row->field == offsetof(struct conf, interval_s) ||
		    row->field == offsetof(struct conf, json))
			conf->quiet = false;
	}
	if (options->given[option_index(row_of('Q'))])
		conf->quiet = true;
}

int options_load(const struct options *options, struct conf *conf, struct diag *diag)
{
	int err = conf_parse_file(options->file, conf, diag);

	apply_run(options, conf);
	return err;
}

void options_help(FILE *out)
{
	fputs("Usage: millraced [-r|-t|-l] -i IFACE [-i IFACE] [options]\n"
	      "or:    millraced --config FILE [options]\n"
	      "Moves Ethernet frames in user space over AF_XDP.\n\n",
	      out);
	for_each_row(row)
	{
		char names[64];
		int len = 0;

		if (!row->name)
			continue;
		if (row->letter)
			len = snprintf(names, sizeof(names), "-%c, ", row->letter);
		else
			len = snprintf(names, sizeof(names), "    ");
		len += snprintf(names + len, sizeof(names) - (size_t)len, "--%s%s%s%s%s", row->name,
				row->optional ? "[" : "", row->value ? "=" : "",
				row->value ? row->value : "", row->optional ? "]" : "");
		if (row->alias)
			snprintf(names + len, sizeof(names) - (size_t)len, ", --%s", row->alias);
		fprintf(out, "  %-28s %s\n", names, row->help);
	}
	fputs("\nExit status: 0 ended as asked, 1 this host refused or a device went away, 2 usage.\n",
	      out);
}

/* A key and what stands behind its '='. */
static void help_key(FILE *out, const struct option_row *row)
{
	char text[64];
	size_t len = (size_t)snprintf(text, sizeof(text), "%s = ", option_key(row));
	const struct option_word *word = row->words;

	if (!word)
		snprintf(text + len, sizeof(text) - len, "%s", row->value);
	/* Those behind a word that means what one before it does are other spellings. */
	for (unsigned seen = 0; word && word->word && !(seen & 1U << word->value); word++) {
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", seen ? "|" : "",
					word->word);
		seen |= 1U << word->value;
	}
	fprintf(out, "  %-28s %s\n", text, row->about ? row->about : row->help);
}

void options_help_config(FILE *out)
{
	static const struct {
		unsigned bit;
		const char *header;
	} sections[] = {
		{ IN_MILLRACE, "[millrace]" },
		{ IN_PORT, "[port NAME]" },
		{ IN_FORWARD, "[forward NAME]" },
		{ IN_FDB, "[fdb NAME]" },
	};

	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		fprintf(out, "%s%s\n", i ? "\n" : "", sections[i].header);
		for_each_row(row)
		{
			if (row->in & sections[i].bit)
				help_key(out, row);
		}
	}
}
