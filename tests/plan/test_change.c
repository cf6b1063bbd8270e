/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/plan/change.c"

#include <stdlib.h>

#include "conf/file.h"
#include "unit.h"

/* A configuration and its plan on a host of two cards with four queues each, and four CPUs. */
struct world {
	struct conf conf;
	struct plan *plan;
	struct netdev device[4];
};

static void world_open(struct world *world, const char *text)
{
	struct cpu_facts cpus[4] = { { 0, 0 }, { 1, 0 }, { 2, 0 }, { 3, 0 } };
	struct host_facts host = { .device = world->device, .cpus = 4, .cpu = cpus };
	struct diag diag = { 0 };
	FILE *in = fmemopen((void *)text, strlen(text), "r");

	memset(world, 0, sizeof(*world));
	assert_non_null(in);
	assert_int_equal(conf_parse(in, &world->conf, &diag), 0);
	fclose(in);
	diag_fini(&diag);
	for (unsigned i = 0; i < world->conf.ports; i++) {
		struct netdev *device = &world->device[i];

		*device = (struct netdev){
			.present = true,
			.ifindex = 10 + world->conf.port[i].device[1] - '0',
			.mtu = 1500,
			.rx_queues = 4,
			.tx_queues = 4,
			.ethernet = true,
			.numa_node = -1,
		};
		snprintf(device->name, sizeof(device->name), "%.15s", world->conf.port[i].device);
	}
	host.devices = world->conf.ports;
	assert_int_equal(plan_make(&world->conf, &host, &world->plan), 0);
	assert_true(world->plan->forward[0].complete);
}

static void world_close(struct world *world)
{
	plan_free(world->plan);
	conf_fini(&world->conf);
}

#define PORTS "[port wan]\ndevice = d0\n[port lan]\ndevice = d1\n"
#define MAIN  "[forward main]\nmode = patch\nports = wan lan\n"

static void a_change_costs_what_it_must(void **state)
{
	static const struct {
		const char *what, *before, *after;
		enum plan_change want;
	} rows[] = {
		{ "nothing", PORTS MAIN, PORTS MAIN, PLAN_CHANGE_NONE },
		{ "lines and blanks", PORTS MAIN, "\n\n" PORTS "\n; new\n" MAIN "\n",
		  PLAN_CHANGE_NONE },
		{ "a default that is said", PORTS MAIN, PORTS MAIN "batch = 64\nwait = poll\n",
		  PLAN_CHANGE_NONE },
		{ "wait", PORTS MAIN, PORTS MAIN "wait = spin\n", PLAN_CHANGE_PARAMS },
		{ "wait", PORTS MAIN "wait = spin\n", PORTS MAIN "wait = busy-poll\n",
		  PLAN_CHANGE_PARAMS },
		{ "batch", PORTS MAIN, PORTS MAIN "batch = 32\n", PLAN_CHANGE_PARAMS },
		{ "cpus", PORTS MAIN, PORTS MAIN "cpus = 3,2,1,0\n", PLAN_CHANGE_PARAMS },
		{ "promiscuous", PORTS MAIN,
		  "[port wan]\ndevice = d0\npromiscuous = off\n"
		  "[port lan]\ndevice = d1\n" MAIN,
		  PLAN_CHANGE_PARAMS },
		{ "another forward, with which the CPUs are shared anew", PORTS MAIN,
		  PORTS MAIN
		  "[port dmz]\ndevice = d2\n[forward more]\nmode = rxdrop\nports = dmz\n",
		  PLAN_CHANGE_PARAMS },
		{ "a CPU that another forward asks for", PORTS MAIN,
		  PORTS MAIN "[port dmz]\ndevice = d2\n[forward more]\nmode = rxdrop\nports = dmz\n"
			     "cpus = 0\n",
		  PLAN_CHANGE_PARAMS },
		{ "mode", PORTS MAIN, PORTS "[forward main]\nmode = rxdrop\nports = wan lan\n",
		  PLAN_CHANGE_REBUILD },
		{ "ring size", PORTS MAIN, PORTS MAIN "ring-size = 1024\n", PLAN_CHANGE_REBUILD },
		{ "frame size", PORTS MAIN, PORTS MAIN "frame-size = 2048\n", PLAN_CHANGE_REBUILD },
		{ "multi-buffer", PORTS MAIN, PORTS MAIN "frags = yes\n", PLAN_CHANGE_REBUILD },
		{ "device", PORTS MAIN, "[port wan]\ndevice = d0\n[port lan]\ndevice = d3\n" MAIN,
		  PLAN_CHANGE_REBUILD },
		{ "queues", PORTS MAIN,
		  "[port wan]\ndevice = d0\nqueues = 0\n[port lan]\ndevice = d1\n" MAIN,
		  PLAN_CHANGE_REBUILD },
		{ "attach", PORTS MAIN,
		  "[port wan]\ndevice = d0\nattach = skb\n[port lan]\ndevice = d1\n" MAIN,
		  PLAN_CHANGE_REBUILD },
		{ "order of ports", PORTS MAIN,
		  PORTS "[forward main]\nmode = patch\nports = lan wan\n", PLAN_CHANGE_REBUILD },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct world before, after;
		enum plan_change change;

		world_open(&before, rows[i].before);
		world_open(&after, rows[i].after);
		change = plan_compare(&before.plan->forward[0], &after.plan->forward[0]);
		if (change != rows[i].want)
			print_error("%s: %d\n", rows[i].what, (int)change);
		assert_int_equal(change, rows[i].want);
		world_close(&before);
		world_close(&after);
	}
}

static void other_queues_of_the_device_are_another_topology(void **state)
{
	struct world before, after;

	(void)state;
	world_open(&before, PORTS MAIN);
	world_open(&after, PORTS MAIN);
	after.plan->forward[0].port[1].device.tx_queues = 2;
	assert_int_equal(plan_compare(&before.plan->forward[0], &after.plan->forward[0]),
			 PLAN_CHANGE_REBUILD);
	world_close(&before);
	world_close(&after);
}

static void devices_are_shared_by_what_they_are_and_not_by_their_names(void **state)
{
	struct world one, other;

	(void)state;
	world_open(&one, PORTS MAIN);
	world_open(&other, "[port a]\ndevice = d1\n[port b]\ndevice = d3\n"
			   "[forward x]\nmode = patch\nports = a b\n");
	assert_true(plan_shares_device(&one.plan->forward[0], &other.plan->forward[0]));
	other.plan->forward[0].port[0].device.ifindex = 99;
	assert_false(plan_shares_device(&one.plan->forward[0], &other.plan->forward[0]));
	world_close(&one);
	world_close(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_change_costs_what_it_must),
		cmocka_unit_test(other_queues_of_the_device_are_another_topology),
		cmocka_unit_test(devices_are_shared_by_what_they_are_and_not_by_their_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
