/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "ctl/commands.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/spelling.h"

/* Longest synopsis; an assertion in the tests holds it. */
#define SYNOPSIS_SIZE 96

/* "port NAME promiscuous on|off" */
static int arguments_of_set(char *const *words, json_t *object)
{
	bool on = !strcmp(words[3], "on");

	if (strcmp(words[0], "port") != 0 || strcmp(words[2], "promiscuous") != 0)
		return -EINVAL;
	if (!on && strcmp(words[3], "off") != 0)
		return -EINVAL;
	/* A name that is no UTF-8 cannot be said in JSON. */
	if (json_object_set_new(object, "port", json_string(words[1])) ||
	    json_object_set_new(object, "promiscuous", json_boolean(on)))
		return -EINVAL;
	return 0;
}

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
	[COMMAND_RELOAD] = { "reload", "", "read the configuration file again and act on it",
			     false },
	[COMMAND_SET] = { "set", "port NAME promiscuous on|off",
			  "change a port until the next reload", false, false, arguments_of_set },
	[COMMAND_CONFIRM] = { "confirm", "", "keep forwarding: end the wait of millraced --confirm",
			      false },
	[COMMAND_VERSION] = { "version", "", "the versions of the daemon and of the protocol",
			      true },
};

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

/* The synopsis without what is in brackets. */
static const char *synopsis_words(enum command command)
{
	const char *closed = strrchr(command_rows[command].synopsis, ']');

	return closed ? closed + 1 : command_rows[command].synopsis;
}

unsigned command_words(enum command command)
{
	const char *at = synopsis_words(command);
	unsigned count = 0;

	for (at += strspn(at, " "); *at; at += strspn(at, " ")) {
		count++;
		at += strcspn(at, " ");
	}
	return count;
}

int command_arguments(enum command command, char *const *words, json_t **arguments)
{
	const struct command_row *row = &command_rows[command];
	unsigned count = 0;
	int err = 0;

	while (words[count])
		count++;
	if (count != command_words(command))
		return -EINVAL;
	*arguments = json_object();
	if (!*arguments)
		return -ENOMEM;
	if (row->arguments)
		err = row->arguments(words, *arguments);
	if (err)
		json_decref(*arguments);
	return err;
}

void commands_help(FILE *out)
{
	for (unsigned i = 0; i < COMMANDS; i++) {
		char text[SYNOPSIS_SIZE];

		snprintf(text, sizeof(text), "%s%s%s", command_rows[i].name,
			 command_rows[i].synopsis[0] ? " " : "", command_rows[i].synopsis);
		fprintf(out, "  %-32s  %s\n", text, command_rows[i].help);
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

/* One line a place of an argument: "set:1) words=port ;;". */
static void completion_of_arguments(FILE *out, enum command command)
{
	char text[SYNOPSIS_SIZE], *rest = NULL;
	unsigned place = 0;

	snprintf(text, sizeof(text), "%s", synopsis_words(command));
	for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		fprintf(out, "\t%s:%u) words=", command_rows[command].name, ++place);
		for (char *at = word; *at; at++) {
			if (*at == '|')
				*at = ' ';
		}
		if (isupper((unsigned char)word[0])) /* the only names there are */
			fprintf(out, "$(_millracectl_ports \"$socket\") ;;\n");
		else
			fprintf(out, "\"%s\" ;;\n", word);
	}
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
	"	local command= socket= words= place=0 i\n"
	"\n"
	"	COMPREPLY=()\n"
	"	for ((i = 1; i < COMP_CWORD; i++)); do\n"
	"		case ${COMP_WORDS[i]} in\n";

static const char completion_middle[] =
	"		-*) ;;\n"
	"		*) if [[ $command ]]; then ((place++)); else command=${COMP_WORDS[i]}; fi ;;\n"
	"		esac\n"
	"	done\n"
	"	[[ $cur == = ]] && cur=\n"
	"	[[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
	"	case $prev in\n"
	"	";

void commands_completion(FILE *out, const struct command_option *options, unsigned count)
{
	fputs(completion_head, out);
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
	      "	case $command:$((place + 1)) in\n"
	      "	:*) words=\"",
	      out);
	for (unsigned i = 0; i < COMMANDS; i++)
		fprintf(out, "%s ", command_rows[i].name);
	fputs("\" ;;\n", out);
	for (unsigned i = 0; i < COMMANDS; i++)
		completion_of_arguments(out, (enum command)i);
	fputs("	esac\n"
	      "	if [[ $cur == -* ]]; then\n"
	      "		words=\"",
	      out);
	completion_of_options(out, options, count, false);
	fputs("\"\n", out);
	for (unsigned i = 0; i < COMMANDS; i++) {
		if (!command_rows[i].repeats)
			continue;
		fprintf(out, "\t\t[[ $command == %s ]] && words+=\"", command_rows[i].name);
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
