/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Client and helper together, in two processes, with what needs no privilege. */
#include "../../src/xdp/opener.c"

#include "unit.h"

static char said[1024];
static unsigned lines;

static bool keep(enum log_level level, const char *text, void *context)
{
	(void)context;
	snprintf(said, sizeof(said), "%d %s", (int)level, text);
	lines++;
	return true;
}

/* In the helper, whose messages come to us. */
static int permit(void *context, bool afresh, struct opener_permits *permits)
{
	(void)permits;
	if (!afresh)
		return 0;
	log_warning("listed for %s", (const char *)context);
	return 0;
}

static int setup(void **state)
{
	(void)state;
	signals_block();
	log_capture(keep, NULL);
	lines = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	opener_stop();
	log_capture(NULL, NULL);
	return 0;
}

static const struct opener_opts opts = { permit, "us" };

static void messages_come_over_once_with_their_level(void **state)
{
	(void)state;
	assert_int_equal(opener_start(&opts), 0);
	assert_int_equal(lines, 1);
	assert_string_equal(said, "1 listed for us");
	assert_int_equal(opener_refresh(), 0);
	assert_int_equal(lines, 2);
}

static void a_stop_leaves_no_child(void **state)
{
	(void)state;
	assert_int_equal(opener_fd(), -1);
	assert_int_equal(opener_start(&opts), 0);
	assert_true(opener_fd() >= 0);
	opener_stop();
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(opener_fd(), -1);
	opener_stop();
}

static void a_dead_helper_is_told_once_and_fails_what_is_asked(void **state)
{
	(void)state;
	assert_int_equal(opener_start(&opts), 0);
	kill(opener.pid, SIGKILL);
	lines = 0;
	assert_int_equal(opener_refresh(), -EPIPE);
	assert_int_equal(lines, 1);
	assert_non_null(strstr(said, "was killed by signal 9"));
	opener_lost();
	assert_int_equal(lines, 1);
	assert_int_equal(opener_promiscuous("d0", 1), -EPIPE);
	assert_int_equal(lines, 2);
	assert_non_null(strstr(said, "d0: this needs a privilege"));
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void what_it_leaves_changed_is_told(void **state)
{
	(void)state;
	assert_int_equal(opener_start(&opts), 0);
	assert_non_null(change_new("d0", 7));
	change_of(7)->vlan = OFFLOAD_VLAN_CTAG;
	assert_non_null(change_new("d1", 8));
	change_of(8)->vlan = OFFLOAD_VLAN_CTAG;
	kill(opener.pid, SIGKILL);
	opener_lost();
	assert_non_null(
		strstr(said, "`ethtool -K d0 rxvlan on`, `ethtool -K d1 rxvlan on` at the end"));
	opener_port_restore(7); /* nobody there, and that was said */
	assert_int_equal(lines, 2);
}

static void a_restored_device_is_forgotten(void **state)
{
	(void)state;
	assert_int_equal(opener_start(&opts), 0);
	assert_non_null(change_new("d0", 7));
	assert_non_null(change_new("d1", 8));
	opener_port_restore(7);
	opener_port_restore(9);
	assert_null(change_of(7));
	assert_non_null(change_of(8));
}

static void a_signal_to_the_helper_alone_changes_nothing(void **state)
{
	(void)state;
	assert_int_equal(opener_start(&opts), 0);
	kill(opener.pid, SIGTERM);
	kill(opener.pid, SIGINT);
	kill(opener.pid, SIGHUP);
	assert_int_equal(opener_refresh(), 0);
	assert_int_equal(opener_refresh(), 0);
}

static void a_device_that_was_not_listed_is_refused(void **state)
{
	char name[16] = "x";

	(void)state;
	assert_int_equal(opener_start(&opts), 0);
	assert_int_equal(opener_peer_name("d0", 1, name, sizeof(name)), -EACCES);
	assert_string_equal(name, "");
	assert_string_equal(
		said, "0 lo: is not in the configuration, so it is not touched; name it there "
		      "first");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(messages_come_over_once_with_their_level, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_stop_leaves_no_child, setup, teardown),
		cmocka_unit_test_setup_teardown(a_dead_helper_is_told_once_and_fails_what_is_asked,
						setup, teardown),
		cmocka_unit_test_setup_teardown(what_it_leaves_changed_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(a_restored_device_is_forgotten, setup, teardown),
		cmocka_unit_test_setup_teardown(a_signal_to_the_helper_alone_changes_nothing, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_device_that_was_not_listed_is_refused, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
