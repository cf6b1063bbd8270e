/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Columns of text as wide as what is in them. Any thread. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#define TABLE_COLUMNS_MAX 16
#define TABLE_CELL_SIZE	  192 /* with NUL; longer is cut: the reason of a port's state is not */

struct table {
	unsigned columns;
	unsigned cells, room; /* of cell[], row by row; the first row is the heads */
	char (*cell)[TABLE_CELL_SIZE];
	/* For the caller to set, of a table that goes on from page to page: */
	bool headless;			 /* the heads are not printed: they stand above */
	int at_least[TABLE_COLUMNS_MAX]; /* how wide each column is, if nothing is wider */
	bool failed;			 /* there was no memory: nothing will be printed */
};

/* Begins a table with its heads, separated by single spaces: "PORT QUEUE RX". */
void table_init(struct table *table, const char *heads);

/* Puts a text into the next cell, from left to right and top to bottom; NULL or "": "-". */
void table_text(struct table *table, const char *text);

/* Likewise a number in full, and one for the eye: "1.23M" of a million and more. */
void table_count(struct table *table, long long number);
void table_rate(struct table *table, double number);

/* Prints it, numbers to the right, and frees it. Nothing if there is no row but the heads. Returns 0,
 * or -ENOMEM. */
int table_print(struct table *table, FILE *out);
