/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/spelling.h"

#include <string.h>

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* row[j] becomes the distance of one[0..i] from other[0..j]; `before` and `older` are the rows of i - 1
 * and i - 2. */
static void fill_row(unsigned *row, const unsigned *before, const unsigned *older, const char *one,
		     unsigned i, const char *other)
{
	size_t len = strnlen(other, SPELLING_MAX);

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
	unsigned rows[3][SPELLING_MAX + 1];
	size_t len = strnlen(one, SPELLING_MAX), other_len = strnlen(other, SPELLING_MAX);

	for (size_t j = 0; j <= other_len; j++)
		rows[0][j] = (unsigned)j;
	for (unsigned i = 1; i <= len; i++)
		fill_row(rows[i % 3], rows[(i + 2) % 3], rows[(i + 1) % 3], one, i, other);
	return rows[len % 3][other_len];
}
