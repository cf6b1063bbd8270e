/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A conf as text. Pure; any thread. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "conf/conf.h"

/*
 * Prints conf as a configuration file in its canonical form: sections and keys in the table's order,
 * of each key only what is not the default. conf_parse() makes the same conf of it, but for members of
 * which only flags can speak (the reports and the duration).
 */
void conf_print(FILE *out, const struct conf *conf);

/* True if two forwards, or two ports, say the same, but for these keys (the last one is NULL), their names and
 * where they stand in a file. */
bool conf_forward_same(const struct conf_forward *one, const struct conf_forward *other,
		       const char *const *except);
bool conf_port_same(const struct conf_port *one, const struct conf_port *other,
		    const char *const *except);

/* How many keys there are that are about neither a forward nor a port and differ; and which, by their names in
 * `keys`, as far as there is room. */
unsigned conf_run_different(const struct conf *one, const struct conf *other, char *keys,
			    size_t size);

/*
 * Prints the arguments of millraced, on one line without a newline, that do the same. Returns false,
 * with nothing printed, if there are none: flags know one forward, whose ports are all alike.
 */
bool conf_print_flags(FILE *out, const struct conf *conf);
