/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/spelling.h"

#include <string.h>

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

struct spelling_row {
	unsigned distance[SPELLING_MAX + 1];
};

/* In turns; row i is the distances of the first i letters of one word from every beginning of the other,
 * and needs the two before it. */
#define ROWS 3

static void fill_row(struct spelling_row *rows, unsigned i, const char *one, const char *other)
{
	const unsigned *older = rows[(i + 1) % ROWS].distance,
		       *before = rows[(i + 2) % ROWS].distance;
	size_t len = strnlen(other, SPELLING_MAX);
	unsigned *row = rows[i % ROWS].distance;

	row[0] = i;
	for (size_t j = 1; j <= len; j++) {
		unsigned replaced = before[j - 1] + (one[i - 1] != other[j - 1]);

		row[j] = least(replaced, least(before[j], row[j - 1]) + 1);
		if (i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1])
			row[j] = least(row[j], older[j - 2] + 1);
	}
}

unsigned spelling_distance(const char *one, const char *other)
{
	size_t len = strnlen(one, SPELLING_MAX), other_len = strnlen(other, SPELLING_MAX);
	struct spelling_row rows[ROWS] = { 0 };

	for (size_t j = 0; j <= other_len; j++)
		rows[0].distance[j] = (unsigned)j;
	for (unsigned i = 1; i <= len; i++)
		fill_row(rows, i, one, other);
	return rows[len % ROWS].distance[other_len];
}
