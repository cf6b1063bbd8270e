/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/base/diag.c"

#include "unit.h"

static void findings_come_in_the_files_order(void **state)
{
	struct diag diag = { .file = "a.conf" };
	char text[64];

	(void)state;
	diag_error(&diag, 7, "seven");
	diag_warning(&diag, 3, "three %d", 1);
	diag_error(&diag, 3, "three 2");
	diag_error(&diag, 0, "whole");
	assert_int_equal(diag.errors, 3);
	assert_int_equal(diag.warnings, 1);
	diag_sort(&diag);
	assert_string_equal(diag_print(&diag, 0, text, sizeof(text)), "a.conf: whole");
	assert_string_equal(diag_print(&diag, 1, text, sizeof(text)), "a.conf:3: three 1");
	assert_true(diag.lines[1].warning);
	assert_string_equal(diag_print(&diag, 2, text, sizeof(text)), "a.conf:3: three 2");
	assert_string_equal(diag_print(&diag, 3, text, sizeof(text)), "a.conf:7: seven");
	assert_string_equal(diag_print(&diag, 3, text, 9), "a.conf:7");
	diag_fini(&diag);
	diag_fini(&diag);
	assert_int_equal(diag.count, 0);
	assert_string_equal(diag.file, "a.conf");
}

static void a_finding_is_one_printable_line(void **state)
{
	struct diag diag = { 0 };
	char text[64];

	(void)state;
	diag_error(&diag, 1, "a\nb\x1b[31m\x7f");
	assert_string_equal(diag_print(&diag, 0, text, sizeof(text)), "configuration:1: a?b?[31m?");
	diag_fini(&diag);
}

static void what_is_too_much_is_counted(void **state)
{
	struct diag diag = { 0 };

	(void)state;
	for (unsigned i = 0; i < DIAG_LINES_MAX + 5; i++)
		diag_error(&diag, i, "%u", i);
	assert_int_equal(diag.count, DIAG_LINES_MAX);
	assert_int_equal(diag_more(&diag), 5);
	diag_fini(&diag);
	assert_int_equal(diag_more(&diag), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(findings_come_in_the_files_order),
		cmocka_unit_test(a_finding_is_one_printable_line),
		cmocka_unit_test(what_is_too_much_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
