/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/fwd/pacer.c"

#include "unit.h"

#define START_NS (5 * NSEC_PER_SEC)

static struct pacer pacer_of(uint64_t pps)
{
	return (struct pacer){ .pps = pps, .queues = 1 };
}

/* Looks every step_ns for duration_ns and sends all that is due; returns the largest clump. */
static uint32_t run(struct pacer *pacer, uint64_t *now_ns, uint64_t step_ns, uint64_t duration_ns)
{
	uint64_t end_ns = *now_ns + duration_ns;
	uint32_t largest = 0;

	for (; *now_ns < end_ns; *now_ns += step_ns) {
		uint32_t due = pacer_due(pacer, *now_ns);

		pacer_sent(pacer, due);
		largest = due > largest ? due : largest;
	}
	return largest;
}

static void the_average_is_exact_however_often_it_is_looked_at(void **state)
{
	static const uint64_t rates[] = { 1, 3, 1000, 14881, 1000000, 14880952, 1000000000 };
	static const uint64_t steps_us[] = { 3, 100, 1000, 4999 };

	(void)state;
	for (size_t r = 0; r < ARRAY_SIZE(rates); r++) {
		for (size_t s = 0; s < ARRAY_SIZE(steps_us); s++) {
			struct pacer pacer = pacer_of(rates[r]);
			uint64_t now_ns = START_NS;

			run(&pacer, &now_ns, steps_us[s] * 1000, 10 * NSEC_PER_SEC);
			assert_in_range(pacer.sent,
					10 * rates[r] - rates[r] * steps_us[s] / 1000000 - 1,
					10 * rates[r]);
		}
	}
}

static void a_poller_that_sleeps_until_it_is_time_keeps_the_rate(void **state)
{
	static const uint64_t rates[] = { 1, 7, 300, 5000 };

	(void)state;
	for (size_t r = 0; r < ARRAY_SIZE(rates); r++) {
		struct pacer pacer = pacer_of(rates[r]);
		uint64_t now_ns = START_NS;

		while (now_ns < START_NS + 10 * NSEC_PER_SEC) {
			uint32_t due = pacer_due(&pacer, now_ns);

			assert_in_range(due, 0, rates[r] / 500 + 1); /* 1 ms naps */
			pacer_sent(&pacer, due);
			now_ns += pacer_wait_ns(&pacer) + 1000000; /* overslept */
		}
		assert_in_range(pacer.sent, 10 * rates[r] - rates[r] / 100 - 2, 10 * rates[r]);
	}
}

/* "no clump over 10 ms": whatever held the poller up. */
static void a_stall_is_made_up_for_without_a_clump(void **state)
{
	static const uint64_t rates[] = { 1000, 100000, 10000000 };

	(void)state;
	for (size_t r = 0; r < ARRAY_SIZE(rates); r++) {
		struct pacer pacer = pacer_of(rates[r]);
		uint64_t now_ns = START_NS;
		uint32_t most = (uint32_t)(rates[r] / 200 + 1); /* 5 ms' worth */

		run(&pacer, &now_ns, 20000, NSEC_PER_SEC);
		now_ns += 80 * NSEC_PER_MSEC;
		assert_in_range(run(&pacer, &now_ns, 20000, 10 * NSEC_PER_MSEC), 0, most);
		/* A quarter faster than time: 80 ms are made good within 400 ms. */
		assert_in_range(run(&pacer, &now_ns, 20000, 400 * NSEC_PER_MSEC), 0, most);
		assert_in_range(pacer.sent, (now_ns - START_NS) * rates[r] / NSEC_PER_SEC - most,
				(now_ns - START_NS) * rates[r] / NSEC_PER_SEC);
	}
}

static void an_hour_of_silence_is_forgotten(void **state)
{
	struct pacer pacer = pacer_of(1000);
	uint64_t now_ns = START_NS;

	(void)state;
	run(&pacer, &now_ns, 100000, NSEC_PER_SEC);
	now_ns += 3600 * NSEC_PER_SEC;
	run(&pacer, &now_ns, 100000, 10 * NSEC_PER_SEC);
	assert_in_range(pacer.sent, 11900, 12010); /* 1 + 1 + 10 s */
}

/* A link that is down, a ring that is full: it is looked at all the time, and nothing can be sent. */
static void what_could_not_be_sent_does_not_leave_in_a_clump(void **state)
{
	static const uint64_t rates[] = { 10, 1000, 100000 };

	(void)state;
	for (size_t r = 0; r < ARRAY_SIZE(rates); r++) {
		struct pacer pacer = pacer_of(rates[r]);
		uint64_t now_ns = START_NS, before;
		uint32_t most = (uint32_t)(rates[r] / 100 + 1); /* 10 ms' worth */

		run(&pacer, &now_ns, 100000, NSEC_PER_SEC);
		for (unsigned i = 0; i < 3600000; i++, now_ns += 1000000)
			assert_in_range(pacer_due(&pacer, now_ns), 0, most);
		before = pacer.sent;
		assert_in_range(run(&pacer, &now_ns, 100000, 10 * NSEC_PER_SEC), 0, most);
		/* 10 s of its own, and the last second before. */
		assert_in_range(pacer.sent - before, 10 * rates[r] - most, 11 * rates[r] + most);
	}
}

static void queues_share_the_rate_and_take_turns(void **state)
{
	struct pacer pacer[3];
	unsigned next = 0;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		pacer[i] = (struct pacer){ .pps = 3000, .queues = 3, .phase = i };
	for (uint64_t now_ns = START_NS; now_ns < START_NS + NSEC_PER_SEC; now_ns += 10000) {
		for (unsigned i = 0; i < 3; i++) {
			if (!pacer_due(&pacer[i], now_ns))
				continue;
			assert_int_equal(i, next);
			next = (next + 1) % 3;
			pacer_sent(&pacer[i], 1);
		}
	}
	for (unsigned i = 0; i < 3; i++)
		assert_in_range(pacer[i].sent, 999, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_average_is_exact_however_often_it_is_looked_at),
		cmocka_unit_test(a_poller_that_sleeps_until_it_is_time_keeps_the_rate),
		cmocka_unit_test(a_stall_is_made_up_for_without_a_clump),
		cmocka_unit_test(an_hour_of_silence_is_forgotten),
		cmocka_unit_test(what_could_not_be_sent_does_not_leave_in_a_clump),
		cmocka_unit_test(queues_share_the_rate_and_take_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
