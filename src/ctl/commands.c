/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "ctl/commands.h"

#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <string.h>

#include "base/number.h"
#include "base/spelling.h"

static const struct command_argument set_arguments[] = {
	{ "port", "port", "NAME", COMMAND_NAME },
	{ "promiscuous", "promiscuous", "on|off", COMMAND_SWITCH },
	{ 0 },
};

#define VLAN_ARGUMENT                                                 \
	{                                                             \
		"vlan", "vlan", "N", COMMAND_NUMBER, .optional = true \
	}
#define FORWARD_ARGUMENT                                                     \
	{                                                                    \
		"forward", "forward", "NAME", COMMAND_NAME, .optional = true \
	}
#define ANY_PORT_ARGUMENT                                              \
	{                                                              \
		"port", "port", "NAME", COMMAND_NAME, .optional = true \
	}
#define STATION_ARGUMENT                         \
	{                                        \
		"mac", NULL, "MAC", COMMAND_NAME \
	}

static const struct command_argument fdb_arguments[] = {
	ANY_PORT_ARGUMENT,
	VLAN_ARGUMENT,
	FORWARD_ARGUMENT,
	{ "after", NULL, NULL, COMMAND_NAME, .unsaid = true },
	{ 0 },
};

static const struct command_argument fdb_count_arguments[] = { FORWARD_ARGUMENT, { 0 } };

static const struct command_argument fdb_add_arguments[] = {
	STATION_ARGUMENT,
	{ "port", "port", "NAME", COMMAND_NAME, .or_next = true },
	{ "blocked", "blocked", NULL, COMMAND_FLAG },
	VLAN_ARGUMENT,
	FORWARD_ARGUMENT,
	{ 0 },
};

static const struct command_argument fdb_del_arguments[] = {
	STATION_ARGUMENT,
	VLAN_ARGUMENT,
	FORWARD_ARGUMENT,
	{ 0 },
};

static const struct command_argument fdb_flush_arguments[] = {
	ANY_PORT_ARGUMENT,
	VLAN_ARGUMENT,
	FORWARD_ARGUMENT,
	{ 0 },
};

static const struct command_row command_rows[COMMANDS] = {
	[COMMAND_STATUS] = { "status", "", "what runs where: ports, queues and workers", true },
	[COMMAND_STATS] = { "stats", "[-i SEC] [-n N]",
			    "what was counted: totals, rates and every drop by its reason", true,
			    true },
	[COMMAND_PORTS] = { "ports", "", "the ports, their devices and links", true },
	[COMMAND_RULES] = { "rules", "",
			    "which frames the host gets of each port, and how many it got", true },
	[COMMAND_PLAN] = { "plan", "", "which worker serves which queue, on which core", true },
	[COMMAND_METRICS] = { "metrics", "", "the counters as OpenMetrics text", true },
	[COMMAND_FDB] = { "fdb", "", "the stations that bridges know, where, and for how long",
			  true, .pages = "entries", .arguments = fdb_arguments },
	[COMMAND_FDB_COUNT] = { "fdb count", "", "how many stations each port of a bridge has",
				true, .arguments = fdb_count_arguments },
	[COMMAND_FDB_ADD] = { "fdb add", "",
			      "a station is behind a port, or blocked, until removed", false,
			      .arguments = fdb_add_arguments },
	[COMMAND_FDB_DEL] = { "fdb del", "", "remove a station, learned or not", false,
			      .arguments = fdb_del_arguments },
	[COMMAND_FDB_FLUSH] = { "fdb flush", "", "remove the stations that were learned", false,
				.arguments = fdb_flush_arguments },
	[COMMAND_RELOAD] = { "reload", "", "read the configuration file again and act on it",
			     false },
	[COMMAND_SET] = { "set", "", "change a port until the next reload", false,
			  .arguments = set_arguments },
	[COMMAND_CONFIRM] = { "confirm", "", "keep forwarding: end the wait of millraced --confirm",
			      false },
	[COMMAND_VERSION] = { "version", "", "the versions of the daemon and of the protocol",
			      true },
};

/* NOLINTBEGIN(bugprone-macro-parentheses): it declares the argument */
#define for_each_argument(row, argument)                                 \
	for (const struct command_argument *argument = (row)->arguments; \
	     argument && argument->member; argument++)
/* NOLINTEND(bugprone-macro-parentheses) */

const struct command_row *command_row(enum command command)
{
	return &command_rows[command];
}

enum command command_find(const char *name)
{
	unsigned i = 0;

	while (i < COMMANDS && strcmp(command_rows[i].name, name) != 0)
		i++;
	return (enum command)i;
}

const char *command_nearest(const char *name)
{
	/* More than half of the letters wrong is no slip of the finger. */
	unsigned least = (unsigned)strlen(name) / 2 + 1;
	const char *nearest = NULL;

	for (unsigned i = 0; i < COMMANDS; i++) {
		unsigned distance = spelling_distance(name, command_rows[i].name);

		if (distance >= least)
			continue;
		least = distance;
		nearest = command_rows[i].name;
	}
	return nearest;
}

enum command command_take(char *const **words)
{
	char *const *word = *words;
	enum command command = COMMANDS;
	char both[64];

	if (!word[0])
		return COMMANDS;
	if (word[1]) {
		snprintf(both, sizeof(both), "%s %s", word[0], word[1]);
		command = command_find(both);
	}
	*words += command == COMMANDS ? 1 : 2;
	return command == COMMANDS ? command_find(word[0]) : command;
}

/* --- what is typed --- */

/* "port NAME", of one argument. */
static size_t print_argument(const struct command_argument *argument, char *text, size_t size)
{
	const char *word = argument->word ? argument->word : "";
	const char *value = argument->value ? argument->value : "";

	return (size_t)snprintf(text, size, "%s%s%s", word, *word && *value ? " " : "", value);
}

static char *print_synopsis(const struct command_row *row, char *text, size_t size)
{
	const char *between = " ";
	size_t len = (size_t)snprintf(text, size, "%s%s%s", row->name, row->options[0] ? " " : "",
				      row->options);

	for_each_argument(row, argument)
	{
		if (argument->unsaid || len >= size)
			continue;
		len += (size_t)snprintf(text + len, size - len, "%s%s", between,
					argument->optional ? "[" : "");
		if (len < size)
			len += print_argument(argument, text + len, size - len);
		if (argument->optional && len < size)
			len += (size_t)snprintf(text + len, size - len, "]");
		between = argument->or_next ? " | " : " ";
	}
	return text;
}

char *command_synopsis(enum command command, char *text)
{
	return print_synopsis(&command_rows[command], text, COMMAND_SYNOPSIS_SIZE);
}

/* The value that a word stands for, a new reference; NULL: it is none. */
static json_t *read_value(const struct command_argument *argument, const char *word)
{
	unsigned long number;

	switch (argument->kind) {
	case COMMAND_NUMBER:
		return number_parse(word, 0, UINT32_MAX, &number) ?
			       NULL :
			       json_integer((json_int_t)number);
	case COMMAND_SWITCH:
		return !strcmp(word, "on")  ? json_true() :
		       !strcmp(word, "off") ? json_false() :
					      NULL;
	case COMMAND_FLAG:
		return json_true();
	default:
		return json_string(word);
	}
}

/* The argument that a word begins: by its own word, or the next value that stands alone. */
static const struct command_argument *argument_at(const struct command_row *row, const char *word,
						  const json_t *object)
{
	const struct command_argument *alone = NULL;

	for_each_argument(row, argument)
	{
		if (argument->unsaid || json_object_get(object, argument->member))
			continue;
		if (argument->word && !strcmp(argument->word, word))
			return argument;
		if (!argument->word && !alone)
			alone = argument;
	}
	return alone;
}

static int read_words(const struct command_row *row, char *const *words, json_t *object)
{
	while (*words) {
		const struct command_argument *argument = argument_at(row, *words, object);

		if (!argument)
			return -EINVAL;
		if (argument->word && argument->value)
			words++;
		if (!*words ||
		    json_object_set_new(object, argument->member, read_value(argument, *words)))
			return -EINVAL;
		words++;
	}
	return 0;
}

/* True if what must be given is, and of two that exclude each other one. */
static bool is_complete(const struct command_row *row, const json_t *object)
{
	bool before = false, or_before = false;

	for_each_argument(row, argument)
	{
		bool given = json_object_get(object, argument->member);

		if (or_before && given == before)
			return false;
		if (!or_before && !argument->or_next && !given && !argument->optional &&
		    !argument->unsaid)
			return false;
		before = given;
		or_before = argument->or_next;
	}
	return true;
}

static int read_arguments(const struct command_row *row, char *const *words, json_t **arguments)
{
	int err;

	*arguments = json_object();
	if (!*arguments)
		return -ENOMEM;
	err = read_words(row, words, *arguments);
	if (!err && !is_complete(row, *arguments))
		err = -EINVAL;
	if (err)
		json_decref(*arguments);
	return err;
}

int command_arguments(enum command command, char *const *words, json_t **arguments)
{
	return read_arguments(&command_rows[command], words, arguments);
}

/* --- what is in a request --- */

static bool has_kind(const struct command_argument *argument, const json_t *value)
{
	switch (argument->kind) {
	case COMMAND_NUMBER:
		return json_is_integer(value) && json_integer_value(value) >= 0;
	case COMMAND_SWITCH:
		return json_is_boolean(value);
	case COMMAND_FLAG:
		return json_is_true(value);
	default:
		return json_is_string(value);
	}
}

static const struct command_argument *find_member(const struct command_row *row, const char *member)
{
	for_each_argument(row, argument)
	{
		if (!strcmp(argument->member, member))
			return argument;
	}
	return NULL;
}

/* "the arguments are "port", a name, and ..." */
static void print_members(const struct command_row *row, char *text, size_t size)
{
	static const char *const kinds[] = {
		[COMMAND_NAME] = "a text",
		[COMMAND_NUMBER] = "a number",
		[COMMAND_SWITCH] = "true or false",
		[COMMAND_FLAG] = "true",
	};
	const char *between = "the arguments are ";
	size_t len = 0;

	for_each_argument(row, argument)
	{
		if (len >= size)
			break;
		len += (size_t)snprintf(text + len, size - len, "%s\"%s\", %s%s", between,
					argument->member, kinds[argument->kind],
					argument->optional || argument->unsaid ? " (or without)" :
										 "");
		between = argument->or_next ? "; or " : "; ";
	}
}

static int check_members(const struct command_row *row, const json_t *arguments, char *wrong)
{
	char members[COMMAND_WRONG_SIZE / 2 + 100] = "";
	const char *bad = NULL, *key;
	json_t *value;

	json_object_foreach((json_t *)arguments, key, value)
	{
		const struct command_argument *argument = find_member(row, key);

		if (!argument || !has_kind(argument, value))
			bad = key;
	}
	if (!bad && is_complete(row, arguments))
		return 0;
	if (!row->arguments) {
		snprintf(wrong, COMMAND_WRONG_SIZE, "%s: takes no arguments", row->name);
		return -EINVAL;
	}
	print_members(row, members, sizeof(members));
	snprintf(wrong, COMMAND_WRONG_SIZE, "%s: %s%.32s%s%s", row->name, bad ? "'" : "",
		 bad ? bad : "", bad ? "' is none of them, or of another kind: " : "", members);
	return -EINVAL;
}

int command_check(enum command command, const json_t *arguments, char *wrong)
{
	return check_members(&command_rows[command], arguments, wrong);
}

void commands_help(FILE *out)
{
	for (unsigned i = 0; i < COMMANDS; i++) {
		char text[COMMAND_SYNOPSIS_SIZE];

		fprintf(out, "  %-32s  %s\n", command_synopsis((enum command)i, text),
			command_rows[i].help);
	}
}

/* --- completion --- */

static void completion_of_options(FILE *out, const struct command_option *options, unsigned count,
				  bool repeats)
{
	for (unsigned i = 0; i < count; i++) {
		if (options[i].repeats != repeats)
			continue;
		if (options[i].letter)
			fprintf(out, "-%c ", options[i].letter);
		fprintf(out, "--%s%s ", options[i].name, options[i].value ? "=" : "");
	}
}

/* The shell's patterns of options that take a value: "-s|--socket". */
static void completion_of_valued(FILE *out, const struct command_option *options, unsigned count,
				 bool files)
{
	const char *bar = "";

	for (unsigned i = 0; i < count; i++) {
		if (!options[i].value || (strcmp(options[i].value, "PATH") == 0) != files)
			continue;
		if (options[i].letter)
			fprintf(out, "%s-%c", bar, options[i].letter);
		fprintf(out, "%s--%s", options[i].letter ? "|" : bar, options[i].name);
		bar = "|";
	}
}

/* What may follow the words so far: "set:port) words=... ;;" behind an argument's word, and
 * "set:*) words=... ;;" elsewhere, of which those that were typed are left out. */
static void completion_of_arguments(FILE *out, const struct command_row *row)
{
	const char *name = row->name;

	for_each_argument(row, argument)
	{
		if (!argument->word || !argument->value || argument->unsaid)
			continue;
		fprintf(out, "\t'%s:%s') ", name, argument->word);
		if (!strcmp(argument->member, "port")) /* the only names that can be asked for */
			fprintf(out, "words=$(_millracectl_ports \"$socket\") ;;\n");
		else
			fprintf(out, "words=\"%s\" ;;\n",
				argument->kind == COMMAND_SWITCH ? "on off" : "");
	}
	fprintf(out, "\t'%s:'*) next=\"", name);
	for_each_argument(row, argument)
	{
		if (argument->word && !argument->unsaid)
			fprintf(out, "%s ", argument->word);
	}
	/* The second words of others, right behind the first. */
	fprintf(out, "\"; [[ $typed ]] || next+=\"");
	for (unsigned i = 0; i < COMMANDS; i++) {
		size_t len = strlen(name);

		if (!strncmp(command_rows[i].name, name, len) && command_rows[i].name[len] == ' ')
			fprintf(out, "%s ", command_rows[i].name + len + 1);
	}
	fprintf(out, "\" ;;\n");
}

static const char completion_head[] =
	"# bash completion for millracectl, made by `millracectl --completion bash`.\n"
	"_millracectl_ports()\n"
	"{\n"
	"	millracectl ${1:+-s \"$1\"} ports 2>/dev/null | awk 'NR > 1 { print $1 }'\n"
	"}\n"
	"\n"
	"_millracectl()\n"
	"{\n"
	"	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
	"	local command= socket= words= next= typed= last= word i\n"
	"\n";

static const char completion_words[] = "	COMPREPLY=()\n"
				       "	for ((i = 1; i < COMP_CWORD; i++)); do\n"
				       "		case ${COMP_WORDS[i]} in\n";

static const char completion_middle[] =
	"		-*) ;;\n"
	"		*) word=${COMP_WORDS[i]}\n"
	"			if [[ ! $command ]]; then command=$word\n"
	"			elif [[ ! $typed && $twofold == *\"'$command $word'\"* ]]; then command+=\" $word\"\n"
	"			else typed+=\" $word\" last=$word; fi ;;\n"
	"		esac\n"
	"	done\n"
	"	[[ $cur == = ]] && cur=\n"
	"	[[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
	"	case $prev in\n"
	"	";

/* Commands of two words, each in quotes. */
static void completion_of_twofold(FILE *out)
{
	fputs("	local twofold=\"", out);
	for (unsigned i = 0; i < COMMANDS; i++) {
		if (strchr(command_rows[i].name, ' '))
			fprintf(out, "'%s' ", command_rows[i].name);
	}
	fputs("\"\n", out);
}

void commands_completion(FILE *out, const struct command_option *options, unsigned count)
{
	fputs(completion_head, out);
	completion_of_twofold(out);
	fputs(completion_words, out);
	/* The socket is the only option that is a file. "=" stands between as a word of its own. */
	fputs("		", out);
	completion_of_valued(out, options, count, true);
	fputs(") [[ ${COMP_WORDS[i + 1]} == = ]] && ((i++)); socket=${COMP_WORDS[++i]} ;;\n		",
	      out);
	completion_of_valued(out, options, count, false);
	fputs(") [[ ${COMP_WORDS[i + 1]} == = ]] && ((i++)); ((i++)) ;;\n", out);
	fputs(completion_middle, out);
	completion_of_valued(out, options, count, true);
	fputs(") COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n	", out);
	completion_of_valued(out, options, count, false);
	fputs(") return ;;\n"
	      "	esac\n"
	      "	case $command:$last in\n"
	      "	:) words=\"",
	      out);
	for (unsigned i = 0; i < COMMANDS; i++)
		fprintf(out, "%s ", strchr(command_rows[i].name, ' ') ? "" : command_rows[i].name);
	fputs("\" ;;\n", out);
	for (unsigned i = 0; i < COMMANDS; i++)
		completion_of_arguments(out, &command_rows[i]);
	fputs("	esac\n"
	      "	for word in $next; do [[ \" $typed \" == *\" $word \"* ]] || words+=\" $word\"; done\n"
	      "	if [[ $cur == -* ]]; then\n"
	      "		words=\"",
	      out);
	completion_of_options(out, options, count, false);
	fputs("\"\n", out);
	for (unsigned i = 0; i < COMMANDS; i++) {
		if (!command_rows[i].repeats)
			continue;
		fprintf(out, "\t\t[[ $command == '%s' ]] && words+=\"", command_rows[i].name);
		completion_of_options(out, options, count, true);
		fputs("\"\n", out);
	}
	fputs("	fi\n"
	      "	COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
	      "	[[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null\n"
	      "	return 0\n"
	      "}\n"
	      "complete -F _millracectl millracectl\n",
	      out);
}
