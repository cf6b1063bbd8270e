/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "ctl/table.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_STEP 32

/* A device may be named with anything; the terminal is left alone. */
static void add(struct table *table, const char *text)
{
	char *cell;

	if (table->cells == table->room) {
		unsigned room = table->room + ROWS_STEP * table->columns;
		void *cells = realloc(table->cell, room * sizeof(*table->cell));

		table->failed |= !cells;
		if (!cells)
			return;
		table->cell = cells;
		table->room = room;
	}
	cell = table->cell[table->cells++];
	snprintf(cell, TABLE_CELL_SIZE, "%s", text);
	for (; *cell; cell++) {
		if ((unsigned char)*cell < ' ' || *cell == 0x7f)
			*cell = '?';
	}
}

void table_init(struct table *table, const char *heads)
{
	*table = (struct table){ .columns = 1 };
	for (const char *at = heads; *at; at++)
		table->columns += *at == ' ';
	while (*heads) {
		size_t len = strcspn(heads, " ");
		char head[TABLE_CELL_SIZE];

		snprintf(head, sizeof(head), "%.*s", (int)len, heads);
		add(table, head);
		heads += len + (heads[len] == ' ');
	}
}

void table_text(struct table *table, const char *text)
{
	add(table, text && text[0] ? text : "-");
}

void table_count(struct table *table, long long number)
{
	char text[TABLE_CELL_SIZE];

	snprintf(text, sizeof(text), "%lld", number);
	add(table, text);
}

void table_rate(struct table *table, double number)
{
	static const char prefixes[] = " kMGTP";
	char text[TABLE_CELL_SIZE];
	unsigned power = 0;

	/* 999.5 would be printed as 1000. */
	while (number >= 999.5 && power < sizeof(prefixes) - 2) {
		number /= 1000;
		power++;
	}
	if (!power)
		snprintf(text, sizeof(text), "%.0f", number);
	else
		snprintf(text, sizeof(text), "%.*f%c",
			 number < 9.995 ? 2 :
			 number < 99.95 ? 1 :
					  0,
			 number, prefixes[power]);
	add(table, text);
}

/* A number, or the lack of one: a column of those is easier to compare from the right. */
static bool is_number(const char *text)
{
	if (strchr(text, ':'))
		return false; /* an address, which may begin with a digit */
	return isdigit((unsigned char)text[0]) || !strcmp(text, "-") ||
	       (text[0] == '-' && isdigit((unsigned char)text[1]));
}

static bool is_numeric(const struct table *table, unsigned column)
{
	bool numeric = false;

	for (unsigned i = table->columns + column; i < table->cells; i += table->columns) {
		if (!is_number(table->cell[i]))
			return false;
		numeric |= strcmp(table->cell[i], "-") != 0;
	}
	return numeric;
}

static int width_of(const struct table *table, unsigned column)
{
	size_t width = (size_t)table->at_least[column];

	for (unsigned i = column; i < table->cells; i += table->columns) {
		size_t len = strlen(table->cell[i]);

		width = len > width ? len : width;
	}
	return (int)width;
}

int table_print(struct table *table, FILE *out)
{
	int width[TABLE_COLUMNS_MAX];
	bool numeric[TABLE_COLUMNS_MAX];

	assert(table->columns && table->columns <= TABLE_COLUMNS_MAX);
	for (unsigned i = 0; i < table->columns; i++) {
		width[i] = width_of(table, i);
		numeric[i] = is_numeric(table, i);
	}
	for (unsigned i = table->headless ? table->columns : 0;
	     !table->failed && table->cells > table->columns && i < table->cells; i++) {
		unsigned column = i % table->columns;
		bool last = column == table->columns - 1;

		if (numeric[column])
			fprintf(out, "%*s", width[column], table->cell[i]);
		else if (last)
			fprintf(out, "%s", table->cell[i]);
		else
			fprintf(out, "%-*s", width[column], table->cell[i]);
		fputs(last ? "\n" : "  ", out);
	}
	free(table->cell);
	return table->failed ? -ENOMEM : 0;
}
