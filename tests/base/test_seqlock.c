/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/seqlock.h"

#include <pthread.h>

#include "unit.h"

#define WORDS 40
/* Whole reads, each against a writer that never pauses: enough to meet every word of a write. */
#define READS 5000

static struct seqlock lock;
static uint64_t shared[WORDS];
static uint32_t reader_ended;
static uint64_t writes;

static void *write_all(void *unused)
{
	uint64_t mine[WORDS];

	for (uint64_t round = 1; !load_relaxed(&reader_ended); round++) {
		for (int i = 0; i < WORDS; i++)
			mine[i] = round * 1000 + (uint64_t)i;
		seqlock_write(&lock, shared, mine, WORDS);
		writes = round;
	}
	return unused;
}

static void a_reader_never_sees_words_of_two_writes(void **state)
{
	uint64_t seen[WORDS], last = 0;
	pthread_t writer;
	unsigned reads = 0, refused = 0;

	(void)state;
	assert_int_equal(pthread_create(&writer, NULL, write_all, NULL), 0);
	while (reads < READS) {
		if (seqlock_read(&lock, seen, shared, WORDS, 100)) {
			refused++;
			continue;
		}
		if (!seen[0])
			continue; /* before the first write */
		for (int i = 0; i < WORDS; i++)
			assert_int_equal(seen[i], seen[0] + (uint64_t)i);
		assert_true(seen[0] >= last); /* nor does it go back */
		last = seen[0];
		reads++;
	}
	store_relaxed(&reader_ended, 1);
	pthread_join(writer, NULL);
	assert_int_equal(seqlock_read(&lock, seen, shared, WORDS, 1), 0);
	assert_int_equal(seen[0], writes * 1000);
	print_message("%u whole reads and %u refused during %llu writes\n", reads, refused,
		      (unsigned long long)writes);
}

static void a_write_under_way_is_not_waited_for(void **state)
{
	struct seqlock half = { .seq = 1 };
	uint64_t word = 5, seen = 0;

	(void)state;
	assert_int_equal(seqlock_read(&half, &seen, &word, 1, 3), -EAGAIN);
	half.seq = 2;
	assert_int_equal(seqlock_read(&half, &seen, &word, 1, 3), 0);
	assert_int_equal(seen, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reader_never_sees_words_of_two_writes),
		cmocka_unit_test(a_write_under_way_is_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
