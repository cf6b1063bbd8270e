/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/bucket.h"

#include "unit.h"

#define MS 1000000ULL

/* Takes as many as there are. */
static unsigned take_all(struct bucket *bucket, uint64_t now_ns)
{
	unsigned count = 0;

	for (; bucket_ready(bucket, now_ns); count++)
		bucket_take(bucket, now_ns);
	return count;
}

static void it_is_full_at_first_and_fills_at_its_rate(void **state)
{
	struct bucket bucket = { .interval_ns = MS, .burst = 128 };
	uint64_t now_ns = 5000 * MS;

	(void)state;
	assert_int_equal(take_all(&bucket, now_ns), 128);
	assert_int_equal(take_all(&bucket, now_ns), 0);
	assert_int_equal(take_all(&bucket, now_ns + MS - 1), 0);
	assert_int_equal(bucket.next_ns, now_ns + MS);
	assert_int_equal(take_all(&bucket, now_ns + MS), 1);
	assert_int_equal(take_all(&bucket, now_ns + 51 * MS + MS / 2), 50);
	/* The half is not lost. */
	assert_int_equal(take_all(&bucket, now_ns + 52 * MS), 1);
}

static void a_pause_saves_no_more_than_a_burst(void **state)
{
	struct bucket bucket = { .interval_ns = MS, .burst = 128 };

	(void)state;
	take_all(&bucket, 1000 * MS);
	assert_int_equal(take_all(&bucket, 1127 * MS), 127);
	assert_int_equal(take_all(&bucket, 1255 * MS), 128);
	assert_int_equal(take_all(&bucket, 90000 * MS), 128);
}

static void over_a_long_time_it_is_the_rate_and_one_burst(void **state)
{
	struct bucket bucket = { .interval_ns = MS, .burst = 128 };
	uint64_t now_ns = 1000 * MS, end_ns = 11000 * MS;
	unsigned count = 0;

	(void)state;
	for (; now_ns < end_ns; now_ns += 777777)
		count += take_all(&bucket, now_ns);
	assert_in_range(count, 10000 + 126, 10000 + 128);
}

static void it_works_when_the_clock_has_just_begun(void **state)
{
	struct bucket bucket = { .interval_ns = MS, .burst = 1 };
	struct bucket large = { .interval_ns = MS, .burst = 10 };

	(void)state;
	assert_int_equal(take_all(&bucket, 0), 1);
	assert_int_equal(take_all(&bucket, MS), 1);
	assert_int_equal(take_all(&large, 1), 1); /* it never was 0 long enough to save more */
	assert_int_equal(take_all(&large, 20 * MS), 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_full_at_first_and_fills_at_its_rate),
		cmocka_unit_test(a_pause_saves_no_more_than_a_burst),
		cmocka_unit_test(over_a_long_time_it_is_the_rate_and_one_burst),
		cmocka_unit_test(it_works_when_the_clock_has_just_begun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
