/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is remembered of devices that are not there. Nothing here needs a privilege. */
#include "../../src/xdp/opener_traces.c"

#include "unit.h"

/* What was changed on a device that goes is put back when it is there again, whatever its number. */
static void changes_go_with_their_device_and_come_back(void **state)
{
	struct traces traces = { 0 };
	struct netdev_event other = { .ifindex = 7, .name = "d0", .mac = { 2, 0, 0, 0, 0, 1 } };

	(void)state;
	for (unsigned i = 0; i < CHANGES_AWAY + 3; i++) {
		struct change *change = NULL;

		if (change_new(&traces, INT32_MAX, &change) || !change)
			abort(); /* clang-tidy takes an assertion for one that may return */
		assert_int_equal(change->vlan, 0);
		*change = (struct change){ .ifindex = INT32_MAX, .vlan = i + 1, .ifname = "d0" };
		change->mac[5] = (uint8_t)i;
		traces_vlan_restore(&traces, INT32_MAX);
		assert_null(change_of(&traces, INT32_MAX));
	}
	assert_int_equal(traces.changes, CHANGES_AWAY);
	come_back(&traces, &other);
	assert_null(change_of(&traces, 7));
	other.mac[0] = 0;
	other.mac[5] = CHANGES_AWAY;
	come_back(&traces, &other);
	assert_int_equal(change_of(&traces, 7)->vlan, CHANGES_AWAY + 1);
	other.mac[5] = 2; /* the oldest made room */
	other.ifindex = 8;
	come_back(&traces, &other);
	assert_null(change_of(&traces, 8));
	traces_undo(&traces);
}

/* What nobody holds any more is let go of; on a device that is not there it is remembered, up to a limit. */
static void programs_in_dispatchers_are_held_by_a_pipe(void **state)
{
	enum { HELD = DISPATCHED_GONE + 3 };
	struct traces traces = { 0 };
	int end[HELD];

	(void)state;
	for (uint32_t i = 0; i < HELD; i++) {
		end[i] = traces_hold_program(&traces, "d0", INT32_MAX, i + 1);
		assert_true(end[i] > 0);
	}
	traces_leave_programs(&traces);
	assert_int_equal(traces.dispatches, HELD);
	for (unsigned i = 0; i < HELD; i++)
		assert_true(traces.dispatched[i].fd > 0);
	close(end[0]);
	traces_leave_programs(&traces);
	assert_int_equal(traces.dispatches, HELD);
	for (unsigned i = 0; i < HELD; i++)
		assert_int_equal(traces.dispatched[i].fd < 0, traces.dispatched[i].prog_id == 1);
	for (unsigned i = 1; i < HELD; i++)
		close(end[i]);
	traces_leave_programs(&traces);
	assert_int_equal(traces.dispatches, DISPATCHED_GONE);
	traces_undo(&traces);
	assert_int_equal(traces.dispatches, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changes_go_with_their_device_and_come_back),
		cmocka_unit_test(programs_in_dispatchers_are_held_by_a_pipe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
