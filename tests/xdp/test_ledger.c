/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "xdp/ledger.h"
#include "xdp/pool.h"

#include "unit.h"

static void an_entry_gives_back_what_was_packed(void **state)
{
	static const uint64_t index[] = { 0, 1, 0xffffffffULL, 0x100000000ULL, LEDGER_INDEX_MASK };
	static const unsigned port[] = { 0, 1, 15, 4095 };

	(void)state;
	for (int kind = 0; kind < LEDGER_STATES; kind++) {
		for (size_t i = 0; i < ARRAY_SIZE(index); i++) {
			for (size_t j = 0; j < ARRAY_SIZE(port); j++) {
				ledger_entry entry =
					ledger_pack((enum ledger_state)kind, port[j], index[i]);

				assert_int_equal(ledger_state(entry), kind);
				assert_int_equal(ledger_port(entry), port[j]);
				assert_int_equal(ledger_index(entry), index[i]);
			}
		}
	}
}

static void an_index_over_48_bits_does_not_spill_into_the_port(void **state)
{
	ledger_entry entry = ledger_pack(LEDGER_TX, 7, LEDGER_INDEX_MASK + 5);

	(void)state;
	assert_int_equal(ledger_port(entry), 7);
	assert_int_equal(ledger_state(entry), LEDGER_TX);
	assert_int_equal(ledger_index(entry), 4);
}

static void the_pool_gives_the_last_frame_first(void **state)
{
	uint32_t frame[4];
	struct pool pool;

	(void)state;
	pool_init(&pool, frame, 4);
	assert_int_equal(pool.count, 0);
	for (uint32_t i = 0; i < 4; i++)
		pool_put(&pool, 10 + i);
	for (uint32_t i = 4; i-- > 0;)
		assert_int_equal(pool_get(&pool), 10 + i);
	assert_int_equal(pool.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_entry_gives_back_what_was_packed),
		cmocka_unit_test(an_index_over_48_bits_does_not_spill_into_the_port),
		cmocka_unit_test(the_pool_gives_the_last_frame_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
