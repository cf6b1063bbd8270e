/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/number.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads digits at *cursor and moves it behind them. */
static int read_digits(const char **cursor, unsigned long max, unsigned long *value)
{
	char *end;

	if (!isdigit((unsigned char)**cursor))
		return -EINVAL;
	errno = 0;
	*value = strtoul(*cursor, &end, 10);
	if (errno == ERANGE || *value > max)
		return -ERANGE;
	*cursor = end;
	return 0;
}

int number_parse(const char *text, unsigned long min, unsigned long max, unsigned long *value)
{
	int err = read_digits(&text, max, value);

	if (err)
		return err;
	if (*text)
		return -EINVAL;
	return *value < min ? -ERANGE : 0;
}

bool number_list_has(const struct number_list *list, unsigned value)
{
	for (unsigned i = 0; i < list->count; i++) {
		if (list->value[i] == value)
			return true;
	}
	return false;
}

static int list_add_range(struct number_list *list, unsigned first, unsigned last)
{
	for (unsigned value = first; value <= last; value++) {
		if (number_list_has(list, value))
			return -EEXIST;
		if (list->count == NUMBER_LIST_MAX)
			return -ERANGE;
		list->value[list->count++] = value;
	}
	return 0;
}

int number_hex_parse(const char *text, unsigned long max, unsigned long *value)
{
	const char *digits = text;

	if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X'))
		digits += 2;
	/* strtoul() would take a sign, blanks and a second "0x". */
	if (!*digits || digits[strspn(digits, "0123456789abcdefABCDEF")])
		return -EINVAL;
	errno = 0;
	*value = strtoul(digits, NULL, 16);
	return errno == ERANGE || *value > max ? -ERANGE : 0;
}

int number_list_parse(const char *text, unsigned max, struct number_list *list)
{
	list->count = 0;
	for (;;) {
		unsigned long first, last;
		int err = read_digits(&text, max, &first);

		if (err)
			return err;
		last = first;
		if (*text == '-') {
			text++;
			err = read_digits(&text, max, &last);
			if (err)
				return err;
		}
		if (last < first)
			return -EINVAL;
		err = list_add_range(list, (unsigned)first, (unsigned)last);
		if (err)
			return err;
		if (!*text)
			return 0;
		if (*text++ != ',')
			return -EINVAL;
	}
}

void number_list_print(const struct number_list *list, char *text, size_t size)
{
	size_t len = 0;

	text[0] = '\0';
	for (unsigned i = 0, last; i < list->count && len < size; i = last + 1) {
		int more;

		last = i;
		while (last + 1 < list->count && list->value[last + 1] == list->value[last] + 1)
			last++;
		if (last == i)
			more = snprintf(text + len, size - len, "%s%u", i ? "," : "",
					list->value[i]);
		else
			more = snprintf(text + len, size - len, "%s%u-%u", i ? "," : "",
					list->value[i], list->value[last]);
		len += (size_t)more;
	}
}
