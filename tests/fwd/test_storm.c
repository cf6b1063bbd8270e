/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/fwd/storm.c"

#include "unit.h"

static struct storm fresh(void)
{
	struct storm storm;

	memset(&storm, 0, sizeof(storm));
	return storm;
}

/* How many of `offered` frames a second go on, over so many seconds, evenly spread. */
static unsigned passed(struct storm *storm, unsigned offered, unsigned seconds)
{
	const uint64_t start_ns = 1000 * NSEC_PER_SEC;
	unsigned count = 0;

	for (uint64_t i = 0; i < (uint64_t)offered * seconds; i++)
		count += storm_take(storm, 3, STORM_BROADCAST,
				    start_ns + i * NSEC_PER_SEC / offered);
	return count;
}

static void a_limit_is_kept_and_reached(void **state)
{
	static const unsigned limits[] = { 1, 7, 100, 12345, 1000000 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		struct storm storm = fresh();
		unsigned burst = limits[i] / STORM_BURST_PART;
		unsigned count;

		storm_set(&storm, 3, STORM_BROADCAST, limits[i], 1);
		/* So small a limit saves nothing up: what comes seldom comes too late. */
		count = passed(&storm, limits[i] < 1000 ? 1000 * limits[i] : 3 * limits[i], 3);
		assert_in_range(count, 3 * limits[i] * 99 / 100, 3 * limits[i] + burst + 1);
	}
}

static void what_stays_below_it_goes_on(void **state)
{
	struct storm storm = fresh();

	(void)state;
	storm_set(&storm, 3, STORM_BROADCAST, 1000, 1);
	assert_int_equal(passed(&storm, 999, 3), 3 * 999);
	storm = fresh();
	assert_int_equal(passed(&storm, 100000, 1), 100000); /* no limit */
}

static void workers_share_a_limit_and_nothing_else(void **state)
{
	struct storm storm[4];
	unsigned sum = 0;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		storm[i] = fresh();
		storm_set(&storm[i], 3, STORM_BROADCAST, 1000, 4);
		sum += passed(&storm[i], 5000, 2);
	}
	assert_in_range(sum, 1990, 2000 + 1000 / STORM_BURST_PART + 4);
	/* A limit below the number of workers is kept, too. */
	sum = 0;
	for (unsigned i = 0; i < 4; i++) {
		storm[i] = fresh();
		storm_set(&storm[i], 3, STORM_BROADCAST, 2, 4);
		sum += passed(&storm[i], 5000, 10);
	}
	assert_in_range(sum, 20, 2 * 10 + 4);
}

static void after_a_pause_a_burst_goes_on_at_once(void **state)
{
	const uint64_t now_ns = 5000 * NSEC_PER_SEC;
	struct storm storm = fresh();
	unsigned count = 0;

	(void)state;
	storm_set(&storm, 3, STORM_BROADCAST, 500, 1);
	for (unsigned i = 0; i < 1000; i++)
		count += storm_take(&storm, 3, STORM_BROADCAST, now_ns);
	assert_int_equal(count, 500 / STORM_BURST_PART);
	for (unsigned i = 0; i < 1000; i++)
		count += storm_take(&storm, 3, STORM_BROADCAST, now_ns + 100 * NSEC_PER_SEC);
	assert_int_equal(count, 2 * 500 / STORM_BURST_PART);
}

static void kinds_and_ports_have_limits_of_their_own(void **state)
{
	const uint64_t now_ns = 5000 * NSEC_PER_SEC;
	struct storm storm = fresh();

	(void)state;
	storm_set(&storm, 3, STORM_BROADCAST, 1, 1);
	storm_set(&storm, 3, STORM_UNKNOWN, 1, 1);
	assert_true(storm_take(&storm, 3, STORM_BROADCAST, now_ns));
	assert_false(storm_take(&storm, 3, STORM_BROADCAST, now_ns));
	assert_true(storm_take(&storm, 3, STORM_UNKNOWN, now_ns));
	assert_false(storm_take(&storm, 3, STORM_UNKNOWN, now_ns));
	for (unsigned i = 0; i < 100; i++) {
		assert_true(storm_take(&storm, 3, STORM_MULTICAST, now_ns));
		assert_true(storm_take(&storm, 4, STORM_BROADCAST, now_ns));
	}
}

/* Frames come all the time, and the limit is another one in the middle: no more than it saves up goes on at
 * once, and no time passes for what the other one has let through. */
static void a_limit_may_change(void **state)
{
	static const struct {
		unsigned before, after;
	} cases[] = { { 1, 1000 }, { 1000, 1 }, { 1000, 0 }, { 0, 1000 }, { 1000, 1000 } };
	const uint64_t start_ns = 5000 * NSEC_PER_SEC, millisecond_ns = NSEC_PER_SEC / 1000;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned before = 0, after = 0, burst = cases[i].after / STORM_BURST_PART;
		struct storm storm = fresh();

		storm_set(&storm, 3, STORM_BROADCAST, cases[i].before, 1);
		for (unsigned j = 0; j < 4000; j++)
			before += storm_take(&storm, 3, STORM_BROADCAST,
					     start_ns + j * millisecond_ns / 4);
		storm_set(&storm, 3, STORM_BROADCAST, cases[i].after, 1);
		for (unsigned j = 4000; j < 8000; j++)
			after += storm_take(&storm, 3, STORM_BROADCAST,
					    start_ns + j * millisecond_ns / 4);
		print_message("%u to %u: %u, %u\n", cases[i].before, cases[i].after, before, after);
		if (cases[i].after)
			assert_in_range(after, cases[i].after * 99 / 100,
					cases[i].after + (cases[i].before ? 1 : burst + 1));
		else
			assert_int_equal(after, 4000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_limit_is_kept_and_reached),
		cmocka_unit_test(what_stays_below_it_goes_on),
		cmocka_unit_test(workers_share_a_limit_and_nothing_else),
		cmocka_unit_test(after_a_pause_a_burst_goes_on_at_once),
		cmocka_unit_test(kinds_and_ports_have_limits_of_their_own),
		cmocka_unit_test(a_limit_may_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
