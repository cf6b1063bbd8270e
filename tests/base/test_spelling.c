/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/base/spelling.c"

#include "unit.h"

static void distances(void **state)
{
	static const struct {
		const char *one, *other;
		unsigned want;
	} rows[] = {
		{ "", "", 0 },	       { "", "eth0", 4 },
		{ "eth0", "eth0", 0 }, { "eth0", "eth1", 1 },
		{ "d0x", "d0", 1 },    { "0d", "d0", 1 },
		{ "ehto", "eth0", 2 }, { "enp3s0f0", "enp3s0f1np1", 4 },
		{ "nix0", "d0", 3 },   { "lo", "wlan0", 4 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(spelling_distance(rows[i].one, rows[i].other), rows[i].want);
		assert_int_equal(spelling_distance(rows[i].other, rows[i].one), rows[i].want);
	}
}

static void very_long_words_are_compared_up_to_the_limit(void **state)
{
	char long_word[1000];

	(void)state;
	memset(long_word, 'a', sizeof(long_word) - 1);
	long_word[sizeof(long_word) - 1] = '\0';
	assert_int_equal(spelling_distance(long_word, "a"), SPELLING_MAX - 1);
	assert_int_equal(spelling_distance(long_word, long_word), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(distances),
		cmocka_unit_test(very_long_words_are_compared_up_to_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
