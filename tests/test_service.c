/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../src/service.c"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "unit.h"

/* The manager's socket, a fleet of two forwards with a port each, and the first's worker, which has no thread
 * and is said to have one. */
static int manager;
static sd_event *loop;
static struct service service;
static struct conf_port conf_port[2] = { { .name = "wan", .device = "enp1" },
					 { .name = "lan", .device = "enp2" } };
static struct conf_forward conf_forward = { .name = "main" };
static struct forwarder forwarder[2];
static struct forwarder *forwards[2] = { &forwarder[0], &forwarder[1] };
static struct worker *workers[1];
static struct fleet fleet = { .forwards = 2, .forward = forwards };

/* NOLINTBEGIN(concurrency-mt-unsafe): one thread */
static int setup(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t size = sizeof(sa_family_t);

	(void)state;
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(manager, (struct sockaddr *)&address, size), 0);
	size = sizeof(address);
	assert_int_equal(getsockname(manager, (struct sockaddr *)&address, &size), 0);
	address.sun_path[0] = '@'; /* the kernel chose an abstract name of 5 digits */
	setenv("NOTIFY_SOCKET", address.sun_path, 1);
	assert_int_equal(service_open(&service), 0);
	assert_true(sd_event_new(&loop) >= 0);
	workers[0] = calloc(1, sizeof(struct worker));
	for (unsigned i = 0; i < 2; i++) {
		forwarder[i] = (struct forwarder){ .conf = &conf_forward, .ports = 1 };
		forwarder[i].port[0] =
			(struct port){ .conf = &conf_port[i],
				       .served = true,
				       .netdev = { .present = true, .link_up = true } };
	}
	forwarder[0].worker = workers;
	forwarder[0].workers = 1;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	service_close(&service);
	sd_event_unref(loop);
	free(workers[0]);
	close(manager);
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	return 0;
}

static void watchdog_of(const char *usec)
{
	setenv("WATCHDOG_USEC", usec, 1);
}
/* NOLINTEND(concurrency-mt-unsafe) */

/* The next that the manager was told; "" if nothing more. */
static const char *told(void)
{
	static char text[2 * SERVICE_STATUS_SIZE];
	ssize_t len = recv(manager, text, sizeof(text) - 1, 0);

	text[len < 0 ? 0 : len] = '\0';
	return text;
}

static void run_for(uint64_t wait_us)
{
	uint64_t end_ns = clock_now_ns() + wait_us * 1000;

	do {
		assert_true(sd_event_run(loop, 1000) >= 0);
	} while (clock_now_ns() < end_ns);
}

static void started(void)
{
	assert_int_equal(service_start(&service, &fleet, loop), 0);
	run_for(0);
}

static void link_of(unsigned number, enum port_state state, const char *reason)
{
	port_state_link(&forwarder[number].port[0].states, state, reason, clock_now_ns());
}

#define HELPER "; the helper process is gone, so nothing more can be opened: restart"

static void ready_says_what_runs(void **state)
{
	(void)state;
	started();
	assert_string_equal(told(), "READY=1\nSTATUS=2 of 2 ports up" HELPER);
	assert_string_equal(told(), "");
}

static void awaited_ports_are_named_and_hold_up_nothing(void **state)
{
	(void)state;
	forwarder[1].port[0].served = forwarder[1].port[0].netdev.present = false;
	link_of(1, PORT_STATE_GONE, "waiting for the device");
	started();
	assert_string_equal(told(), "READY=1\nSTATUS=1 of 2 ports up" HELPER
				    "; lan: awaited, there is no device enp2");
}

static void a_link_that_attaching_took_down_is_waited_for(void **state)
{
	(void)state;
	link_of(0, PORT_STATE_NO_CARRIER, "");
	started();
	run_for(100000);
	assert_string_equal(told(), "");
	link_of(0, PORT_STATE_UP, "");
	run_for(100000);
	assert_string_equal(told(), "READY=1\nSTATUS=2 of 2 ports up" HELPER);
}

static void a_link_that_was_down_before_is_not(void **state)
{
	(void)state;
	forwarder[0].port[0].netdev.link_up = false;
	link_of(0, PORT_STATE_NO_CARRIER, "not connected");
	started();
	assert_string_equal(told(), "READY=1\nSTATUS=1 of 2 ports up" HELPER
				    "; wan: no-carrier, not connected");
}

static void a_link_that_stays_away_is_not_waited_for_any_longer(void **state)
{
	(void)state;
	link_of(0, PORT_STATE_NO_CARRIER, "");
	started();
	service.started_ns -= SERVICE_SETTLE_NS;
	run_for(100000);
	assert_string_equal(told(), "READY=1\nSTATUS=1 of 2 ports up" HELPER "; wan: no-carrier");
}

static void the_status_is_told_when_it_changes(void **state)
{
	(void)state;
	started();
	told();
	service_renew(&service);
	assert_string_equal(told(), "");
	link_of(0, PORT_STATE_DOWN, "the device is set down");
	service_renew(&service);
	assert_string_equal(told(),
			    "STATUS=1 of 2 ports up" HELPER "; wan: down, the device is set down");
	service_renew(&service);
	assert_string_equal(told(), "");
}

static void rates_are_of_the_time_between_two_reports(void **state)
{
	struct queue_counts counts[2] = { { .rx_packets = 100 }, { .tx_packets = 50 } };
	struct report_socket socket[2] = { { .counts = &counts[0] }, { .counts = &counts[1] } };
	const struct report report = { .sockets = 2, .socket = socket };

	(void)state;
	started();
	told();
	service_count(&service, &report);
	service_renew(&service);
	assert_string_equal(told(), "");
	counts[0].rx_packets += 2000;
	counts[1].tx_packets += 1000;
	service.counted_ns -= 1000 * NSEC_PER_SEC;
	service_count(&service, &report);
	service_renew(&service);
	assert_string_equal(told(), "STATUS=2 of 2 ports up, 2 frames/s in, 1 out" HELPER);
	/* Counts that begin anew say nothing of a rate. */
	counts[0].rx_packets = 0;
	service_count(&service, &report);
	service_renew(&service);
	assert_string_equal(told(), "STATUS=2 of 2 ports up" HELPER);
}

static void a_reload_is_told_from_beginning_to_end(void **state)
{
	(void)state;
	started();
	told();
	service_reloading(&service);
	assert_string_equal(told(), "RELOADING=1\nSTATUS=2 of 2 ports up" HELPER);
	service_reloaded(&service, false);
	assert_string_equal(told(), "READY=1\nSTATUS=2 of 2 ports up" HELPER
				    "; the last reload was not taken over, see the log");
	service_reloading(&service);
	told();
	service_reloaded(&service, true);
	assert_string_equal(told(), "READY=1\nSTATUS=2 of 2 ports up" HELPER);
	service_stopping(&service);
	assert_string_equal(told(), "STOPPING=1\nSTATUS=Ending");
}

/* How often the watchdog was fed in so many of its periods. */
static unsigned fed_in(unsigned periods)
{
	unsigned fed = 0;

	while (*told())
		;
	run_for(periods * service.watchdog_us);
	for (const char *text = told(); *text; text = told())
		fed += !strcmp(text, "WATCHDOG=1");
	return fed;
}

static void the_watchdog_is_fed_while_every_worker_comes_round(void **state)
{
	(void)state;
	watchdog_of("800000");
	started();
	assert_int_equal(service.watchdog_us, 800000);
	/* Without a thread: nothing to wait for. */
	assert_in_range(fed_in(1), 2, LOOKS);
	/* With one that stands still, though asleep. */
	workers[0]->running = true;
	workers[0]->asleep = 1;
	assert_int_equal(fed_in(2), 0);
	assert_true(service.held);
	write_status(&service, service.status, sizeof(service.status));
	assert_non_null(strstr(service.status, "; a worker stands still"));
	/* And when that goes on. */
	workers[0]->published_answer = workers[0]->asked;
	assert_int_equal(fed_in(1), 1);
}

static void a_watchdog_shorter_than_a_sleep_is_lengthened(void **state)
{
	(void)state;
	watchdog_of("100000");
	started();
	assert_string_equal(told(), "WATCHDOG_USEC=800000");
	assert_int_equal(service.watchdog_us, WATCHDOG_MIN_US);
}

static void without_a_manager_nothing_is_told(void **state)
{
	(void)state;
	service_close(&service);
	unsetenv("NOTIFY_SOCKET"); /* NOLINT(concurrency-mt-unsafe) */
	assert_int_equal(service_open(&service), 0);
	started();
	service_stopping(&service);
	assert_string_equal(told(), "");
}

static void a_manager_that_is_not_there_is_an_error(void **state)
{
	(void)state;
	service_close(&service);
	setenv("NOTIFY_SOCKET", "/nowhere/notify", 1); /* NOLINT(concurrency-mt-unsafe) */
	assert_int_equal(service_open(&service), -ENOENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(ready_says_what_runs),
		TEST(awaited_ports_are_named_and_hold_up_nothing),
		TEST(a_link_that_attaching_took_down_is_waited_for),
		TEST(a_link_that_was_down_before_is_not),
		TEST(a_link_that_stays_away_is_not_waited_for_any_longer),
		TEST(the_status_is_told_when_it_changes),
		TEST(rates_are_of_the_time_between_two_reports),
		TEST(a_reload_is_told_from_beginning_to_end),
		TEST(the_watchdog_is_fed_while_every_worker_comes_round),
		TEST(a_watchdog_shorter_than_a_sleep_is_lengthened),
		TEST(without_a_manager_nothing_is_told),
		TEST(a_manager_that_is_not_there_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
