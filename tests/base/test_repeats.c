/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/base/repeats.c"

#include "unit.h"

#define START_NS (5 * NSEC_PER_SEC)

static struct repeats repeats;

static int begin(void **state)
{
	(void)state;
	repeats = (struct repeats){ 0 };
	return 0;
}

static unsigned passed_of(unsigned lines, const char *format, uint64_t now_ns)
{
	unsigned passed = 0;

	for (unsigned i = 0; i < lines; i++) {
		char text[64];

		snprintf(text, sizeof(text), format, i);
		passed += repeats_pass(&repeats, 4, text, now_ns);
	}
	return passed;
}

static void what_is_of_one_kind(void **state)
{
	static const struct {
		const char *one, *other;
		int other_level;
		bool same;
	} rows[] = {
		{ "d0: 12 frames vanished", "d0: 7 frames vanished", 4, true },
		{ "d0: 12 frames vanished", "d1: 12 frames vanished", 4, false },
		{ "d0: 12 frames vanished", "d0: 12 frames vanished", 3, false },
		{ "port lan: gone", "port lan: up", 4, false },
		{ "configuration read again 1", "configuration read again 2", 4, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		begin(NULL);
		for (unsigned j = 0; j < REPEATS_LINES; j++)
			assert_true(repeats_pass(&repeats, 4, rows[i].one, START_NS));
		assert_int_equal(repeats_pass(&repeats, rows[i].other_level, rows[i].other,
					      START_NS),
				 !rows[i].same);
	}
}

static void the_rest_of_a_window_is_told_in_one_line(void **state)
{
	struct repeats_kind ended;

	(void)state;
	assert_int_equal(passed_of(REPEATS_LINES + 25, "d0: %u frames", START_NS), REPEATS_LINES);
	assert_false(repeats_end(&repeats, START_NS + REPEATS_WINDOW_NS - 1, &ended));
	assert_true(repeats_end(&repeats, START_NS + REPEATS_WINDOW_NS, &ended));
	assert_int_equal(ended.held, 25);
	assert_int_equal(ended.level, 4);
	assert_string_equal(ended.text, "d0: 34 frames");
	assert_false(repeats_end(&repeats, START_NS + REPEATS_WINDOW_NS, &ended));
	/* And then it begins again. */
	assert_int_equal(passed_of(REPEATS_LINES + 1, "d0: %u frames", 2 * REPEATS_WINDOW_NS),
			 REPEATS_LINES);
}

static void few_lines_leave_nothing_to_tell(void **state)
{
	struct repeats_kind ended;

	(void)state;
	assert_int_equal(passed_of(REPEATS_LINES, "d0: %u frames", START_NS), REPEATS_LINES);
	assert_false(repeats_end(&repeats, UINT64_MAX, &ended));
}

static void kinds_beyond_the_table_are_written(void **state)
{
	struct repeats_kind ended;

	(void)state;
	assert_int_equal(passed_of(REPEATS_KINDS, "d%u: frames", START_NS), REPEATS_KINDS);
	for (unsigned i = 0; i < 2 * REPEATS_LINES; i++)
		assert_true(repeats_pass(&repeats, 4, "another: frames", START_NS));
	/* Until a place is free. */
	assert_false(repeats_end(&repeats, START_NS + REPEATS_WINDOW_NS, &ended));
	assert_int_equal(passed_of(2 * REPEATS_LINES, "another: frames", START_NS), REPEATS_LINES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_is_of_one_kind, begin),
		cmocka_unit_test_setup(the_rest_of_a_window_is_told_in_one_line, begin),
		cmocka_unit_test_setup(few_lines_leave_nothing_to_tell, begin),
		cmocka_unit_test_setup(kinds_beyond_the_table_are_written, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
