/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The commands of the control socket: one table feeds the daemon, millracectl, its --help and its bash
 * completion. Pure; any thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The socket where nobody names another; as docs/millracectl.8 says. */
#define COMMANDS_SOCKET "/run/millrace/control.sock"

/* Of the protocol: requests of another one are refused. */
#define COMMANDS_VERSION 1

enum command {
	COMMAND_STATUS,
	COMMAND_STATS,
	COMMAND_PORTS,
	COMMAND_RULES,
	COMMAND_PLAN,
	COMMAND_METRICS,
	COMMAND_FDB,
	COMMAND_FDB_COUNT,
	COMMAND_FDB_ADD,
	COMMAND_FDB_DEL,
	COMMAND_FDB_FLUSH,
	COMMAND_RELOAD,
	COMMAND_SET,
	COMMAND_CONFIRM,
	COMMAND_VERSION,
	COMMANDS,
};

/* What the value of an argument is, in a request. */
enum command_value {
	COMMAND_NAME,	/* text; a name that is no UTF-8 cannot be said in JSON */
	COMMAND_NUMBER, /* an integer from 0 */
	COMMAND_SWITCH, /* true or false; typed as on or off */
	COMMAND_FLAG,	/* true: its word alone is typed */
};

/* One argument of a command. Those with a word before them may be typed in any order. */
struct command_argument {
	const char *member; /* what it is called in a request */
	const char *word;   /* typed before the value; NULL: the value stands alone */
	const char *value;  /* as a synopsis has it, such as "NAME"; NULL: only its word is typed */
	enum command_value kind;
	bool optional;
	bool or_next; /* one of this and the next is given, and not both */
	bool unsaid;  /* only in requests: nobody types it. Optional. */
};

struct command_row {
	const char *name;    /* as it is typed, in one word or two; and in a request */
	const char *options; /* of millracectl that only it takes, such as "[-i SEC]"; "": none */
	const char *help;
	bool read_only; /* members of the control group may use it */
	bool repeats;	/* millracectl asks it again and again with -i and -n */
	/* The array of its result that comes in pages: where `next` of the result is a text, it is to be
	 * `after` of the request for the next one. NULL: it is answered at once. */
	const char *pages;
	/* Ends with one that has no member; NULL: it has none. */
	const struct command_argument *arguments;
};

/* The row of a command below COMMANDS. */
const struct command_row *command_row(enum command command);

/* The command of that name, or COMMANDS. */
enum command command_find(const char *name);

/* The name of a command that somebody who typed this may have meant, or NULL. Static. */
const char *command_nearest(const char *name);

/* The command that is typed as the first word, or the first two; COMMANDS: none. Moves *words, which end with
 * a NULL, behind it. */
enum command command_take(char *const **words);

/* Room for the longest synopsis; an assertion in the tests holds it. */
#define COMMAND_SYNOPSIS_SIZE 96

/* Writes what is typed: "set port NAME promiscuous on|off". Returns text, of COMMAND_SYNOPSIS_SIZE bytes. */
char *command_synopsis(enum command command, char *text);

/*
 * Makes an object of the words typed for the command's arguments, which end with a NULL. Returns 0 with a
 * new reference in *arguments; -EINVAL if they are not as the synopsis says; or -ENOMEM.
 */
int command_arguments(enum command command, char *const *words, json_t **arguments);

/* Room for what is wrong with the arguments of a request. */
#define COMMAND_WRONG_SIZE 400

/* Tells if the arguments of a request, an object or NULL, are those of the command. Returns 0, or -EINVAL
 * with what is wrong, and which there are, in `wrong` of COMMAND_WRONG_SIZE bytes. */
int command_check(enum command command, const json_t *arguments, char *wrong);

/* Prints a line a command, as millracectl --help has them. */
void commands_help(FILE *out);

/* An option of the program the completion is for. */
struct command_option {
	char letter;	   /* 0: none */
	const char *name;  /* long form */
	const char *value; /* what follows: "PATH" is a file; NULL: a switch */
	const char *help;
	bool repeats; /* only with commands that repeat */
};

/* Prints a completion of millracectl for bash: `count` options, and the commands. */
void commands_completion(FILE *out, const struct command_option *options, unsigned count);
