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
	COMMAND_RELOAD,
	COMMAND_SET,
	COMMAND_CONFIRM,
	COMMAND_VERSION,
	COMMANDS,
};

struct command_row {
	const char *name;
	/* Its arguments in order: words to be typed as they are, NAMES of what to put there, one|other;
	 * and before them options of millracectl that only it takes, such as "[-i SEC]". */
	const char *synopsis;
	const char *help;
	bool read_only; /* members of the control group may use it */
	bool repeats;	/* millracectl asks it again and again with -i and -n */
	/* Reads the words that stand for the arguments, as many as the synopsis has, into an object that
	 * goes into the request. NULL: it has no arguments. Returns 0, or -EINVAL. */
	int (*arguments)(char *const *words, json_t *object);
};

/* The row of a command below COMMANDS. */
const struct command_row *command_row(enum command command);

/* The command of that name, or COMMANDS. */
enum command command_find(const char *name);

/* The name of a command that somebody who typed this may have meant, or NULL. Static. */
const char *command_nearest(const char *name);

/* How many words its arguments are. */
unsigned command_words(enum command command);

/*
 * Makes an object of the words typed for the command's arguments, which end with a NULL. Returns 0 with a
 * new reference in *arguments; -EINVAL if they are not as the synopsis says; or -ENOMEM.
 */
int command_arguments(enum command command, char *const *words, json_t **arguments);

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
