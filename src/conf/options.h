/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The command line, by the table of options. */
#pragma once

#include <stdio.h>

#include "base/diag.h"
#include "conf/conf.h"

enum options_result {
	OPTIONS_RUN,	     /* do what options.action says, with the conf */
	OPTIONS_HELP,	     /* --help was asked for */
	OPTIONS_HELP_CONFIG, /* --help-config was asked for */
	OPTIONS_VERSION,     /* --version was asked for */
	OPTIONS_WRONG,	     /* error holds one line without a newline */
};

/* What is done with the conf. */
enum options_action {
	ACTION_RUN,
	ACTION_CHECK,	  /* --check: parse and plan, touch nothing */
	ACTION_PRINT,	  /* --print-config */
	ACTION_PLAN,	  /* --plan */
	ACTION_PLAN_JSON, /* --plan=json */
};

/* Rows of the table, at most; an assertion below it holds that. */
#define OPTIONS_ROWS_MAX 100

struct options {
	enum options_action action;
	const char *
		file; /* of --config or --check, in argv; NULL: flags alone, and conf is complete */
	const char *given
		[OPTIONS_ROWS_MAX]; /* by row, the value, in argv; "": no value; NULL: not given */
	char error[512];
};

/*
 * Parses the arguments into *options and *conf, which are overwritten; conf is the caller's to
 * conf_fini() whatever comes of it. With options->file set, conf has only what flags said of the run;
 * options_load() makes it whole. Touches nothing else but getopt's own state: may be called again, by
 * one thread at a time. argv may be permuted, and must live as long as *options. On OPTIONS_WRONG,
 * options->error names the option, the value, the limit and what to type.
 */
enum options_result options_parse(int argc, char **argv, struct options *options,
				  struct conf *conf);

/*
 * Reads options->file, which is not NULL, into *conf, which is overwritten and the caller's to
 * conf_fini(), and applies on top what flags said of the run. May be called again, to reload. Returns
 * 0, or -errno with all errors in diag; warnings may be there in any case. Any thread.
 */
int options_load(const struct options *options, struct conf *conf, struct diag *diag);

/* Prints the help text, made from the table. */
void options_help(FILE *out);

/* Prints the keys of a configuration file, a line each, made from the table. */
void options_help_config(FILE *out);
