/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../src/loop_alarm.c"

#include "unit.h"

#define PORTS 4
#define START (1000 * NSEC_PER_SEC)

/* What bridging.c would do is tests/net/test_bridge.py's to see. */
void bridging_block(const struct forwarder *forwarder, unsigned port, bool block)
{
	(void)forwarder, (void)port, (void)block;
}

/* What loop_probe.c would do is test_loop_probe.c's. */
void loop_probe_send(struct forwarder *forwarder, uint64_t now)
{
	(void)forwarder, (void)now;
}

bool loop_probe_back(struct forwarder *forwarder, unsigned *out, unsigned *in)
{
	(void)forwarder, (void)out, (void)in;
	return false;
}

void loop_probe_forget(struct forwarder *forwarder)
{
	(void)forwarder;
}

static struct loop_alarm alarm_of;
static uint64_t moves[PORTS], now_ns;

static int reset(void **state)
{
	(void)state;
	alarm_of = (struct loop_alarm){ 0 };
	memset(moves, 0, sizeof(moves));
	now_ns = START;
	return 0;
}

/* A look a quarter of a second later, after so many moves to ports 1 and 3. As the daemon: what was seen is
 * suspected from then on. */
static enum loop_event look(unsigned first, unsigned second)
{
	enum loop_event event;

	now_ns += LOOP_LOOK_NS;
	moves[1] += first;
	moves[3] += second;
	event = loop_alarm_look(&alarm_of, moves, PORTS, now_ns);
	alarm_of.suspected |= event == LOOP_SEEN;
	return event;
}

static void a_loop_is_seen_at_the_first_look(void **state)
{
	(void)state;
	assert_int_equal(look(100000, 100000), LOOP_SEEN);
	assert_int_equal(alarm_of.port[0], 1);
	assert_int_equal(alarm_of.port[1], 3);
	assert_int_equal(alarm_of.count, 200000);
}

static void a_slow_one_within_a_second(void **state)
{
	(void)state;
	look(0, 0);
	assert_int_equal(look(3, 3), LOOP_NOTHING);
	assert_int_equal(look(3, 3), LOOP_NOTHING);
	assert_int_equal(look(3, 3), LOOP_NOTHING);
	assert_int_equal(look(3, 3), LOOP_SEEN);
	assert_int_equal(alarm_of.count, 24);
}

static void what_people_do_is_no_loop(void **state)
{
	(void)state;
	/* All stations of a switch whose cable is moved, and moved back 2 s later. */
	assert_int_equal(look(5000, 0), LOOP_NOTHING);
	for (int i = 0; i < 7; i++)
		assert_int_equal(look(0, 0), LOOP_NOTHING);
	assert_int_equal(look(0, 5000), LOOP_NOTHING);
	for (int i = 0; i < 7; i++)
		assert_int_equal(look(0, 0), LOOP_NOTHING);
	/* One station to and fro, at every look. */
	for (int i = 0; i < 40; i++)
		assert_int_equal(look(2, 2), LOOP_NOTHING);
}

static void the_two_busiest_ports_are_named(void **state)
{
	(void)state;
	moves[0] = 5;
	moves[2] = 900;
	assert_int_equal(look(30, 800), LOOP_SEEN);
	assert_int_equal(alarm_of.port[0], 2);
	assert_int_equal(alarm_of.port[1], 3);
	moves[0] += 950;
	moves[2] += 20;
	assert_int_equal(look(990, 0), LOOP_SEEN);
	assert_int_equal(alarm_of.port[0], 0);
	assert_int_equal(alarm_of.port[1], 1);
}

static void it_is_over_after_the_time_of_quiet(void **state)
{
	unsigned looks = 0;

	(void)state;
	assert_int_equal(look(0, 0), LOOP_NOTHING);
	assert_int_equal(look(50, 50), LOOP_SEEN);
	/* It stays within the second for three more. */
	for (int i = 0; i < 3; i++)
		assert_int_equal(look(0, 0), LOOP_SEEN);
	while (look(0, 0) == LOOP_NOTHING)
		looks++;
	assert_int_equal(looks + 1, LOOP_QUIET_NS / LOOP_LOOK_NS);
	assert_false(alarm_of.suspected);
	assert_int_equal(look(0, 0), LOOP_NOTHING);
}

static void a_blocked_port_comes_back_and_what_was_before_does_not_count(void **state)
{
	(void)state;
	assert_int_equal(look(50, 50), LOOP_SEEN);
	loop_alarm_block(&alarm_of, now_ns + 2 * NSEC_PER_SEC);
	for (int i = 0; i < 7; i++)
		assert_int_equal(look(20, 20), LOOP_NOTHING);
	assert_int_equal(look(0, 0), LOOP_AGAIN);
	assert_false(alarm_of.blocked);
	assert_true(alarm_of.suspected);
	assert_int_equal(look(0, 0), LOOP_NOTHING);
	/* There still is one. */
	assert_int_equal(look(50, 50), LOOP_SEEN);
}

/* A probe came back, just after the last look. */
static enum loop_event back(unsigned out, unsigned in)
{
	enum loop_event event = loop_alarm_back(&alarm_of, out, in, now_ns);

	alarm_of.suspected |= event == LOOP_SEEN;
	return event;
}

static void a_probe_tells_at_once_and_names_its_ports(void **state)
{
	(void)state;
	assert_int_equal(back(3, 1), LOOP_SEEN);
	assert_int_equal(alarm_of.port[0], 1);
	assert_int_equal(alarm_of.port[1], 3);
	assert_true(alarm_of.probed);
	assert_int_equal(back(2, 2), LOOP_SEEN);
	assert_int_equal(alarm_of.port[0], 2);
	assert_int_equal(alarm_of.port[1], 2);
	look(0, 0);
	assert_int_equal(look(50, 50), LOOP_SEEN);
	assert_false(alarm_of.probed);
}

/* With rounds further apart than the time of quiet it would be over before each. */
static void it_is_not_over_before_another_round(void **state)
{
	unsigned looks = 0;

	(void)state;
	alarm_of.probe_ns = 60 * NSEC_PER_SEC;
	assert_int_equal(back(0, 1), LOOP_SEEN);
	while (look(0, 0) == LOOP_NOTHING)
		looks++;
	assert_int_equal(looks + 1, (LOOP_QUIET_NS + alarm_of.probe_ns) / LOOP_LOOK_NS);
	assert_false(alarm_of.suspected);
}

static void a_port_stays_blocked_while_probes_come_back(void **state)
{
	(void)state;
	alarm_of.probe_ns = NSEC_PER_SEC;
	for (int turn = 0; turn < 2; turn++) {
		assert_int_equal(back(0, 1), LOOP_SEEN);
		loop_alarm_block(&alarm_of, now_ns + 2 * NSEC_PER_SEC);
		for (int i = 0; i < 7; i++)
			assert_int_equal(look(0, 0), LOOP_NOTHING);
		assert_int_equal(back(1, 0), LOOP_NOTHING);
		assert_int_equal(look(0, 0), LOOP_STAYS);
		assert_true(alarm_of.blocked);
		loop_alarm_block(&alarm_of, now_ns + 2 * NSEC_PER_SEC);
		/* One early in the time is not enough. */
		assert_int_equal(back(1, 0), LOOP_NOTHING);
		for (int i = 0; i < 7; i++)
			assert_int_equal(look(0, 0), LOOP_NOTHING);
		assert_int_equal(look(0, 0), LOOP_AGAIN);
		assert_false(alarm_of.blocked);
	}
}

static void a_port_is_blocked_for_no_longer_than_it_may_be_now(void **state)
{
	(void)state;
	alarm_of.probe_ns = NSEC_PER_SEC;
	for (uint64_t block_s = 0; block_s < 2; block_s++) {
		assert_int_equal(back(0, 1), LOOP_SEEN);
		loop_alarm_block(&alarm_of, now_ns + 3600 * NSEC_PER_SEC);
		loop_alarm_bound(&alarm_of, 7200 * NSEC_PER_SEC, now_ns);
		for (int i = 0; i < 100; i++)
			assert_int_equal(look(0, 0), LOOP_NOTHING);
		assert_int_equal(back(1, 0), LOOP_NOTHING);
		loop_alarm_bound(&alarm_of, block_s * NSEC_PER_SEC, now_ns);
		for (uint64_t i = 1; i < block_s * LOOP_LOOKS; i++)
			assert_int_equal(look(0, 0), LOOP_NOTHING);
		/* With none at all the probe that came back does not matter. */
		assert_int_equal(look(0, 0), block_s ? LOOP_STAYS : LOOP_AGAIN);
	}
}

#define test_of(name) cmocka_unit_test_setup(name, reset)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_of(a_loop_is_seen_at_the_first_look),
		test_of(a_slow_one_within_a_second),
		test_of(what_people_do_is_no_loop),
		test_of(the_two_busiest_ports_are_named),
		test_of(it_is_over_after_the_time_of_quiet),
		test_of(a_blocked_port_comes_back_and_what_was_before_does_not_count),
		test_of(a_probe_tells_at_once_and_names_its_ports),
		test_of(it_is_not_over_before_another_round),
		test_of(a_port_stays_blocked_while_probes_come_back),
		test_of(a_port_is_blocked_for_no_longer_than_it_may_be_now),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
