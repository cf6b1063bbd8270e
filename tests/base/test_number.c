/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/base/number.c"

#include <stdio.h>

#include "unit.h"

static void numbers_are_read_whole_or_refused(void **state)
{
	static const struct {
		const char *text;
		unsigned long min, max;
		int want;
		unsigned long value;
	} rows[] = {
		{ "0", 0, 10, 0, 0 },	      { "10", 0, 10, 0, 10 },
		{ "007", 0, 10, 0, 7 },	      { "11", 0, 10, -ERANGE, 0 },
		{ "1", 2, 10, -ERANGE, 0 },   { "", 0, 10, -EINVAL, 0 },
		{ "-1", 0, 10, -EINVAL, 0 },  { "+1", 0, 10, -EINVAL, 0 },
		{ " 1", 0, 10, -EINVAL, 0 },  { "1 ", 0, 10, -EINVAL, 0 },
		{ "1k", 0, 10, -EINVAL, 0 },  { "0x5", 0, 10, -EINVAL, 0 },
		{ "1.5", 0, 10, -EINVAL, 0 }, { "99999999999999999999999", 0, ~0UL, -ERANGE, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		unsigned long value = 0;
		int err = number_parse(rows[i].text, rows[i].min, rows[i].max, &value);

		if (err != rows[i].want)
			print_error("'%s'\n", rows[i].text);
		assert_int_equal(err, rows[i].want);
		if (!err)
			assert_int_equal(value, rows[i].value);
	}
}

static void hexadecimal_numbers_are_read_whole_or_refused(void **state)
{
	static const struct {
		const char *text;
		int want;
		unsigned long value;
	} rows[] = {
		{ "0", 0, 0 },
		{ "ffffFFFF", 0, 0xffffffff },
		{ "0x12345678", 0, 0x12345678 },
		{ "0Xab", 0, 0xab },
		{ "100000000", -ERANGE, 0 },
		{ "fffffffffffffffffffff", -ERANGE, 0 },
		{ "", -EINVAL, 0 },
		{ "0x", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "+1", -EINVAL, 0 },
		{ " 1", -EINVAL, 0 },
		{ "1 ", -EINVAL, 0 },
		{ "0x0x1", -EINVAL, 0 },
		{ "g", -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		unsigned long value = 0;
		int err = number_hex_parse(rows[i].text, 0xffffffff, &value);

		if (err != rows[i].want)
			print_error("'%s'\n", rows[i].text);
		assert_int_equal(err, rows[i].want);
		if (!err)
			assert_int_equal(value, rows[i].value);
	}
}

static void lists_are_read_whole_or_refused(void **state)
{
	static const struct {
		const char *text;
		int want;
		unsigned count;
		unsigned value[4];
	} rows[] = {
		{ "0", 0, 1, { 0 } },
		{ "0,2-3", 0, 3, { 0, 2, 3 } },
		{ "3,1", 0, 2, { 3, 1 } }, /* the order is the user's */
		{ "2-2", 0, 1, { 2 } },
		{ "", -EINVAL, 0, { 0 } },
		{ ",", -EINVAL, 0, { 0 } },
		{ "1,", -EINVAL, 0, { 0 } },
		{ "1,,2", -EINVAL, 0, { 0 } },
		{ "3-1", -EINVAL, 0, { 0 } },
		{ "1-", -EINVAL, 0, { 0 } },
		{ "-1", -EINVAL, 0, { 0 } },
		{ "1;2", -EINVAL, 0, { 0 } },
		{ "all", -EINVAL, 0, { 0 } },
		{ "1,1", -EEXIST, 0, { 0 } },
		{ "1-3,2", -EEXIST, 0, { 0 } },
		{ "64", -ERANGE, 0, { 0 } },
		{ "0-64", -ERANGE, 0, { 0 } },
		{ "0-4294967295", -ERANGE, 0, { 0 } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct number_list list;
		int err = number_list_parse(rows[i].text, 63, &list);

		if (err != rows[i].want)
			print_error("'%s'\n", rows[i].text);
		assert_int_equal(err, rows[i].want);
		if (err)
			continue;
		assert_int_equal(list.count, rows[i].count);
		for (unsigned j = 0; j < list.count; j++)
			assert_int_equal(list.value[j], rows[i].value[j]);
	}
}

static void a_list_that_would_overflow_is_refused(void **state)
{
	struct number_list list;

	(void)state;
	assert_int_equal(number_list_parse("0-1023", 4095, &list), 0);
	assert_int_equal(list.count, NUMBER_LIST_MAX);
	assert_int_equal(number_list_parse("0-1024", 4095, &list), -ERANGE);
}

static void powers_of_two(void **state)
{
	(void)state;
	assert_false(number_is_power_of_two(0));
	assert_true(number_is_power_of_two(1));
	assert_true(number_is_power_of_two(2048));
	assert_false(number_is_power_of_two(1000));
}

static void lists_are_printed_as_they_are_read(void **state)
{
	static const char *const rows[] = { "0", "0,2-3", "1-3", "0,2,4", "0-1023" };
	static struct number_list list;
	char text[32];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(number_list_parse(rows[i], 4095, &list), 0);
		number_list_print(&list, text, sizeof(text));
		assert_string_equal(text, rows[i]);
	}
	list.count = 0;
	number_list_print(&list, text, sizeof(text));
	assert_string_equal(text, "");
	assert_int_equal(number_list_parse("0,2,4,6", 4095, &list), 0);
	number_list_print(&list, text, 5);
	assert_string_equal(text, "0,2,");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_read_whole_or_refused),
		cmocka_unit_test(hexadecimal_numbers_are_read_whole_or_refused),
		cmocka_unit_test(lists_are_read_whole_or_refused),
		cmocka_unit_test(a_list_that_would_overflow_is_refused),
		cmocka_unit_test(powers_of_two),
		cmocka_unit_test(lists_are_printed_as_they_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
