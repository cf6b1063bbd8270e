/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The command line: one table feeds the parser and --help. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "conf/conf.h"

enum options_result {
	OPTIONS_RUN,	 /* conf is complete and consistent */
	OPTIONS_HELP,	 /* --help was asked for */
	OPTIONS_VERSION, /* --version was asked for */
	OPTIONS_WRONG,	 /* error holds one line without a newline */
};

/*
 * Parses the arguments into *conf, which is overwritten, and the caller's to conf_fini() whatever comes of it. Touches nothing else but getopt's own
 * state: may be called again, by one thread at a time. argv may be permuted. On OPTIONS_WRONG,
 * error (of error_size bytes) names the option, the value, the limit and what to type.
 */
enum options_result options_parse(int argc, char **argv, struct conf *conf, char *error,
				  size_t error_size);

/* Prints the help text, made from the table. */
void options_help(FILE *out);
