/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/xdp/port_state.c"

#include "unit.h"

#define MS 1000000ULL

static void test_states_and_words(void **state)
{
	static const struct {
		const char *name;
		enum port_state link;
		const char *fault;
		enum port_state want;
		const char *word;
	} rows[] = {
		{ "in order", PORT_STATE_UP, NULL, PORT_STATE_UP, "up" },
		{ "nothing plugged in", PORT_STATE_NO_CARRIER, NULL, PORT_STATE_NO_CARRIER,
		  "no-carrier" },
		{ "set down", PORT_STATE_DOWN, NULL, PORT_STATE_DOWN, "down" },
		{ "deleted", PORT_STATE_GONE, NULL, PORT_STATE_GONE, "gone" },
		{ "something is wrong", PORT_STATE_UP, "why", PORT_STATE_DEGRADED, "degraded" },
		{ "wrong, but down", PORT_STATE_DOWN, "why", PORT_STATE_DOWN, "down" },
		{ "wrong, but gone", PORT_STATE_GONE, "why", PORT_STATE_GONE, "gone" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct port_states states = { 0 };

		print_message("%s\n", rows[i].name);
		port_state_fault(&states, PORT_FAULT_PROGRAM, rows[i].fault, 1);
		port_state_link(&states, rows[i].link, "the link's", 2);
		assert_int_equal(port_state_now(&states), rows[i].want);
		assert_string_equal(port_state_word(port_state_now(&states)), rows[i].word);
	}
}

static void test_a_change_is_told_once(void **state)
{
	struct port_states states = { 0 };

	(void)state;
	assert_int_equal(port_state_now(&states), PORT_STATE_UP);
	assert_null(port_state_past(&states, 0));
	assert_true(port_state_link(&states, PORT_STATE_UP, "", 5 * MS));
	assert_false(port_state_link(&states, PORT_STATE_UP, "", 6 * MS));
	assert_true(port_state_link(&states, PORT_STATE_DOWN, "it was set down", 7 * MS));
	assert_false(port_state_link(&states, PORT_STATE_DOWN, "still", 8 * MS));
	/* Since when it is down does not change, the newest reason is shown. */
	assert_int_equal(port_state_past(&states, 0)->at_ns, 7 * MS);
	assert_string_equal(port_state_past(&states, 0)->reason, "still");
	assert_int_equal(port_state_past(&states, 1)->at_ns, 5 * MS);
	assert_null(port_state_past(&states, 2));
}

static void test_a_fault_shows_once_the_link_is_up(void **state)
{
	struct port_states states = { 0 };

	(void)state;
	port_state_link(&states, PORT_STATE_DOWN, "set down", 1);
	assert_false(port_state_fault(&states, PORT_FAULT_MTU, "MTU 9000", 2));
	assert_string_equal(port_state_past(&states, 0)->reason, "set down");
	assert_true(port_state_link(&states, PORT_STATE_UP, "", 3));
	assert_int_equal(port_state_now(&states), PORT_STATE_DEGRADED);
	assert_string_equal(port_state_past(&states, 0)->reason, "MTU 9000");
	/* The first in order of two that are wrong. */
	assert_false(port_state_fault(&states, PORT_FAULT_PROGRAM, "no program", 4));
	assert_string_equal(port_state_past(&states, 0)->reason, "no program");
	assert_false(port_state_fault(&states, PORT_FAULT_PROGRAM, NULL, 5));
	assert_string_equal(port_state_past(&states, 0)->reason, "MTU 9000");
	assert_true(port_state_fault(&states, PORT_FAULT_MTU, NULL, 6));
	assert_int_equal(port_state_now(&states), PORT_STATE_UP);
	assert_string_equal(port_state_past(&states, 0)->reason, "");
}

static void test_history_keeps_the_last_ones(void **state)
{
	struct port_states states = { 0 };
	char reason[32];

	(void)state;
	for (unsigned i = 0; i < 3 * PORT_HISTORY + 5; i++) {
		snprintf(reason, sizeof(reason), "number %u", i);
		assert_true(port_state_link(&states, i % 2 ? PORT_STATE_DOWN : PORT_STATE_UP,
					    reason, i * MS));
	}
	for (unsigned back = 0; back < PORT_HISTORY; back++) {
		const struct port_change *change = port_state_past(&states, back);
		unsigned i = 3 * PORT_HISTORY + 4 - back;

		snprintf(reason, sizeof(reason), "number %u", i);
		assert_non_null(change);
		assert_int_equal(change->at_ns, i * MS);
		assert_int_equal(change->state, i % 2 ? PORT_STATE_DOWN : PORT_STATE_UP);
		assert_string_equal(change->reason, reason);
	}
	assert_null(port_state_past(&states, PORT_HISTORY));
}

static void test_a_long_reason_is_cut(void **state)
{
	struct port_states states = { 0 };
	char reason[3 * PORT_REASON_SIZE];

	(void)state;
	memset(reason, 'x', sizeof(reason));
	reason[sizeof(reason) - 1] = '\0';
	port_state_fault(&states, PORT_FAULT_QUEUES, reason, 1);
	reason[PORT_REASON_SIZE - 1] = '\0';
	assert_string_equal(port_state_past(&states, 0)->reason, reason);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states_and_words),
		cmocka_unit_test(test_a_change_is_told_once),
		cmocka_unit_test(test_a_fault_shows_once_the_link_is_up),
		cmocka_unit_test(test_history_keeps_the_last_ones),
		cmocka_unit_test(test_a_long_reason_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
