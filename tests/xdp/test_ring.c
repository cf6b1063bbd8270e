/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "xdp/ring.h"

#include "unit.h"

#define SIZE 8

static uint32_t producer, consumer, flags;
static uint64_t entries[SIZE];
static struct xdp_desc descs[SIZE];

static struct ring ring_at(uint64_t start, void *at)
{
	producer = consumer = (uint32_t)start;
	flags = 0;
	return (struct ring){ .own = start,
			      .peer = (uint32_t)start,
			      .mask = SIZE - 1,
			      .producer = &producer,
			      .consumer = &consumer,
			      .flags = &flags,
			      .entries = at };
}

/* Where the shared indices start: 0, just before they wrap, and after own has left 32 bits. */
static const uint64_t starts[] = { 0, 0xfffffffcULL, 0xffffffffULL, 0x1fffffffdULL };

static void a_producer_sees_full_and_the_kernels_progress(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
		struct ring ring = ring_at(starts[i], entries);
		struct ring_cursor cursor;

		assert_int_equal(ring_room(&ring, 1), SIZE);
		cursor = ring_take(&ring);
		assert_int_equal(cursor.index, starts[i]);
		for (uint64_t j = 0; j < SIZE; j++)
			assert_ptr_equal(cursor_addr(&cursor), &entries[(starts[i] + j) % SIZE]);
		ring_stage(&ring, &cursor);
		assert_int_equal(ring_room(&ring, 1), 0);
		/* Staged is not announced. */
		assert_int_equal(producer, (uint32_t)starts[i]);
		ring_submit(&ring);
		assert_int_equal(producer, (uint32_t)(starts[i] + SIZE));
		consumer += 3;
		assert_int_equal(ring_room(&ring, 1), 3);
		consumer += 5;
		assert_int_equal(ring_room(&ring, 3), 3); /* enough is known: nothing is loaded */
		assert_int_equal(ring_room(&ring, 4), SIZE);
	}
}

static void a_consumer_sees_empty_and_the_kernels_progress(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
		struct ring ring = ring_at(starts[i], descs);
		struct ring_cursor cursor;

		assert_int_equal(ring_ready(&ring, 1), 0);
		producer += 5;
		assert_int_equal(ring_ready(&ring, 1), 5);
		cursor = ring_peek(&ring);
		assert_ptr_equal(cursor_desc(&cursor), &descs[starts[i] % SIZE]);
		assert_ptr_equal(cursor_desc(&cursor), &descs[(starts[i] + 1) % SIZE]);
		/* Read is not released. */
		assert_int_equal(consumer, (uint32_t)starts[i]);
		ring_release(&ring, &cursor);
		assert_int_equal(consumer, (uint32_t)(starts[i] + 2));
		assert_int_equal(ring_peek(&ring).index, starts[i] + 2);
		producer += 5;
		assert_int_equal(ring_ready(&ring, SIZE), SIZE);
		cursor = ring_peek(&ring);
		cursor.index += SIZE;
		ring_release(&ring, &cursor);
		assert_int_equal(ring_ready(&ring, 1), 0);
	}
}

static void entries_wrap_with_the_ring(void **state)
{
	struct ring ring = ring_at(0xfffffffeULL, entries);

	(void)state;
	for (uint64_t round = 0; round < 5; round++) {
		struct ring_cursor cursor = ring_take(&ring);

		assert_true(ring_room(&ring, SIZE) == SIZE);
		for (uint64_t i = 0; i < SIZE; i++)
			*cursor_addr(&cursor) = round * 100 + i;
		ring_stage(&ring, &cursor);
		ring_submit(&ring);
		for (uint32_t i = 0; i < SIZE; i++, consumer++)
			assert_int_equal(entries[consumer & (SIZE - 1)], round * 100 + i);
	}
	assert_int_equal(ring.own, 0xfffffffeULL + 5 * SIZE);
}

static void the_wakeup_flag_is_read(void **state)
{
	struct ring ring = ring_at(0, entries);

	(void)state;
	assert_false(ring_needs_wakeup(&ring));
	flags = XDP_RING_NEED_WAKEUP;
	assert_true(ring_needs_wakeup(&ring));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_producer_sees_full_and_the_kernels_progress),
		cmocka_unit_test(a_consumer_sees_empty_and_the_kernels_progress),
		cmocka_unit_test(entries_wrap_with_the_ring),
		cmocka_unit_test(the_wakeup_flag_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
