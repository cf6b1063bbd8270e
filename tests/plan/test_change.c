/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a reload takes: plans of two configurations that differ in one thing. */
#include "../../src/plan/change.c"

#include <stdlib.h>

#include "unit.h"

#define PORTS 3 /* there are; a forward has two of them, but for those that add one */

/* One forward of two ports, with a plan of it, and a port to spare. */
struct side {
	struct conf conf;
	struct conf_port port[PORTS];
	struct conf_forward forward;
	struct host_facts host;
	struct netdev device[PORTS];
	struct cpu_facts cpu[8];
	struct plan *plan;
};

static void make_side(struct side *side)
{
	*side = (struct side){ .conf = { .ports = PORTS, .forwards = 1 } };
	side->conf.port = side->port;
	side->conf.forward = &side->forward;
	side->host = (struct host_facts){
		.devices = PORTS, .device = side->device, .cpus = 8, .cpu = side->cpu
	};
	for (unsigned i = 0; i < 8; i++)
		side->cpu[i] = (struct cpu_facts){ i, 0, i };
	side->forward = (struct conf_forward){
		.name = "main",
		.mode = CONF_MODE_PATCH,
		.ports = 2,
		.port = { &side->port[0], &side->port[1] },
		.wait = CONF_WAIT_POLL,
		.batch = 64,
		.frame_size = 4096,
		.ring_size = 2048,
		.frames_per_queue = 10240,
		.line = 50,
	};
	side->forward.tx.size_min = side->forward.tx.size_max = 64;
	for (unsigned i = 0; i < PORTS; i++) {
		side->port[i] = (struct conf_port){ .all_queues = true, .line = 10 + i };
		snprintf(side->port[i].name, sizeof(side->port[i].name), "port%u", i);
		snprintf(side->port[i].device, sizeof(side->port[i].device), "eth%u", i);
		side->device[i] = (struct netdev){
			.present = true,
			.driver = "ice",
			.ifindex = 100 + (int)i,
			.mtu = 1500,
			.rx_queues = 2,
			.tx_queues = 2,
			.ethernet = true,
			.link_up = true,
		};
		snprintf(side->device[i].name, sizeof(side->device[i].name), "eth%u", i);
	}
}

static const struct plan_forward *plan_of(struct side *side)
{
	assert_int_equal(plan_make(&side->conf, &side->host, &side->plan), 0);
	assert_true(side->plan->forward[0].complete);
	return &side->plan->forward[0];
}

/* What it takes from the usual one in a mode to one that `edit` has changed; the same the other way round. */
static enum plan_change change_of(enum conf_mode mode, void (*edit)(struct side *side))
{
	struct side before, after;
	enum plan_change change;

	make_side(&before);
	make_side(&after);
	before.forward.mode = after.forward.mode = mode;
	edit(&after);
	change = plan_compare(plan_of(&before), plan_of(&after));
	assert_int_equal(plan_compare(&after.plan->forward[0], &before.plan->forward[0]), change);
	plan_free(before.plan);
	plan_free(after.plan);
	return change;
}

/* --- the edits --- */

static void nothing(struct side *side)
{
	(void)side;
}

static void other_lines(struct side *side)
{
	side->forward.line = 7;
	side->port[0].line = 1;
}

static void other_name_of_the_device(struct side *side)
{
	snprintf(side->port[0].device, sizeof(side->port[0].device), "uplink");
}

static void same_queues_by_number(struct side *side)
{
	side->port[0].all_queues = false;
	assert_int_equal(number_list_parse("0-1", 4095, &side->port[0].queues), 0);
}

static void spin(struct side *side)
{
	side->forward.wait = CONF_WAIT_SPIN;
}

static void busy_poll(struct side *side)
{
	side->forward.busy_poll = true;
}

static void batch(struct side *side)
{
	side->forward.batch = 16;
}

static void what_becomes_of_links(struct side *side)
{
	side->port[0].wait_for_device = true;
	side->port[1].mtu_stops = true;
}

static void cpus(struct side *side)
{
	assert_int_equal(number_list_parse("5,6", 4095, &side->forward.cpus), 0);
}

static void promiscuous(struct side *side)
{
	side->port[1].promiscuous = CONF_PROMISCUOUS_OFF;
}

static void on_program_lost(struct side *side)
{
	side->port[1].on_program_lost = CONF_PROGRAM_LOST_EXIT;
}

static void pass(struct side *side)
{
	struct pass_wrong wrong;

	assert_int_equal(pass_parse("tcp dport 22", &side->port[1].pass, &wrong), 0);
}

static void ageing(struct side *side)
{
	side->forward.ageing_s = 60;
}

static void learn_limit(struct side *side)
{
	side->port[1].learn_limit = 100;
}

static void loop_probe(struct side *side)
{
	side->forward.loop_probe_s = 5;
}

static void loop_block(struct side *side)
{
	side->forward.loop_block_s = 30;
}

static void storm_broadcast(struct side *side)
{
	side->port[0].storm_broadcast = 100;
}

static void storm_multicast(struct side *side)
{
	side->port[1].storm_multicast = 100;
}

static void storm_unknown(struct side *side)
{
	side->port[1].storm_unknown = 100;
}

static void stations(struct side *side)
{
	static const struct conf_station station = { .mac = { 2, 0, 0, 0, 0, 1 }, .line = 9 };

	side->forward.station = &station;
	side->forward.stations = 1;
}

static void another_device(struct side *side)
{
	side->device[1].ifindex = 200;
}

static void another_port_name(struct side *side)
{
	snprintf(side->port[1].name, sizeof(side->port[1].name), "lan");
}

static void ports_exchanged(struct side *side)
{
	side->forward.port[0] = &side->port[1];
	side->forward.port[1] = &side->port[0];
}

static void fewer_queues_asked(struct side *side)
{
	side->port[0].all_queues = false;
	assert_int_equal(number_list_parse("0", 4095, &side->port[0].queues), 0);
}

static void fewer_queues_there(struct side *side)
{
	side->device[1].rx_queues = side->device[1].tx_queues = 1;
}

static void skb(struct side *side)
{
	side->port[0].attach = CONF_ATTACH_SKB;
}

static void never_zero_copy(struct side *side)
{
	side->port[0].zero_copy = CONF_ZERO_COPY_NEVER;
}

static void vlan_offload(struct side *side)
{
	side->port[0].keep_vlan_offload = true;
}

static void mode(struct side *side)
{
	side->forward.mode = CONF_MODE_L2FWD;
}

static void one_more(struct side *side)
{
	side->forward.ports = 3;
	side->forward.port[2] = &side->port[2];
}

static void one_more_in_front(struct side *side)
{
	side->forward.ports = 3;
	side->forward.port[2] = side->forward.port[1];
	side->forward.port[1] = side->forward.port[0];
	side->forward.port[0] = &side->port[2];
}

static void one_more_and_spin(struct side *side)
{
	one_more(side);
	spin(side);
}

static void one_for_another(struct side *side)
{
	side->forward.port[0] = &side->port[2];
}

static void one_less(struct side *side)
{
	side->forward.ports = 1;
}

/* The worker of queue 2 would be new. */
static void one_more_that_is_wider(struct side *side)
{
	one_more(side);
	side->device[2].rx_queues = side->device[2].tx_queues = 3;
}

static void all_others(struct side *side)
{
	side->device[0].ifindex = 200;
	side->device[1].ifindex = 201;
}

static void ring_size(struct side *side)
{
	side->forward.ring_size = 1024;
}

static void frames(struct side *side)
{
	side->forward.frames_per_queue = 20480;
}

static void frags(struct side *side)
{
	side->forward.frags = true;
}

static void shared_umem(struct side *side)
{
	side->forward.shared_umem = true;
}

static void realtime(struct side *side)
{
	side->forward.realtime = true;
	side->forward.priority = 10;
}

static void spin_and_ring_size(struct side *side)
{
	spin(side);
	ring_size(side);
}

static void what_an_edit_takes(void **state)
{
	static const struct {
		const char *name;
		void (*edit)(struct side *side);
		enum plan_change want;
	} cases[] = {
		{ "nothing", nothing, PLAN_CHANGE_NONE },
		{ "other lines", other_lines, PLAN_CHANGE_NONE },
		{ "other name of the device", other_name_of_the_device, PLAN_CHANGE_NONE },
		{ "what becomes of links", what_becomes_of_links, PLAN_CHANGE_NONE },
		{ "wait = spin", spin, PLAN_CHANGE_PARAMS },
		{ "wait = busy-poll", busy_poll, PLAN_CHANGE_PARAMS },
		{ "batch", batch, PLAN_CHANGE_PARAMS },
		{ "cpus", cpus, PLAN_CHANGE_PARAMS },
		{ "promiscuous", promiscuous, PLAN_CHANGE_PARAMS },
		{ "on-program-lost", on_program_lost, PLAN_CHANGE_PARAMS },
		{ "pass", pass, PLAN_CHANGE_PARAMS },
		{ "ageing", ageing, PLAN_CHANGE_PARAMS },
		{ "learn-limit", learn_limit, PLAN_CHANGE_PARAMS },
		{ "loop-probe", loop_probe, PLAN_CHANGE_PARAMS },
		{ "loop-block", loop_block, PLAN_CHANGE_PARAMS },
		{ "storm-broadcast", storm_broadcast, PLAN_CHANGE_PARAMS },
		{ "storm-multicast", storm_multicast, PLAN_CHANGE_PARAMS },
		{ "storm-unknown", storm_unknown, PLAN_CHANGE_PARAMS },
		{ "[fdb]", stations, PLAN_CHANGE_PARAMS },
		{ "another device", another_device, PLAN_CHANGE_REBUILD },
		{ "another port name", another_port_name, PLAN_CHANGE_REBUILD },
		{ "ports exchanged", ports_exchanged, PLAN_CHANGE_REBUILD },
		{ "same queues by number", same_queues_by_number, PLAN_CHANGE_REBUILD },
		{ "fewer queues asked", fewer_queues_asked, PLAN_CHANGE_REBUILD },
		{ "fewer queues there", fewer_queues_there, PLAN_CHANGE_REBUILD },
		{ "attach", skb, PLAN_CHANGE_REBUILD },
		{ "zero-copy", never_zero_copy, PLAN_CHANGE_REBUILD },
		{ "vlan-offload", vlan_offload, PLAN_CHANGE_REBUILD },
		{ "mode", mode, PLAN_CHANGE_REBUILD },
		{ "ring-size", ring_size, PLAN_CHANGE_REBUILD },
		{ "frames-per-queue", frames, PLAN_CHANGE_REBUILD },
		{ "frags", frags, PLAN_CHANGE_REBUILD },
		{ "shared-umem", shared_umem, PLAN_CHANGE_REBUILD },
		{ "policy", realtime, PLAN_CHANGE_REBUILD },
		{ "wait and ring-size", spin_and_ring_size, PLAN_CHANGE_REBUILD },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum plan_change got = change_of(CONF_MODE_PATCH, cases[i].edit);

		if (got != cases[i].want)
			fail_msg("%s: %d, want %d", cases[i].name, got, cases[i].want);
	}
}

static void ports_that_only_receive_come_and_go(void **state)
{
	static const struct {
		const char *name;
		void (*edit)(struct side *side);
		enum plan_change want;
	} cases[] = {
		{ "nothing", nothing, PLAN_CHANGE_NONE },
		{ "wait = spin", spin, PLAN_CHANGE_PARAMS },
		{ "one more", one_more, PLAN_CHANGE_PORTS },
		{ "one more, in front", one_more_in_front, PLAN_CHANGE_PORTS },
		{ "one more, and wait", one_more_and_spin, PLAN_CHANGE_PORTS },
		{ "one for another", one_for_another, PLAN_CHANGE_PORTS },
		{ "one less", one_less, PLAN_CHANGE_PORTS },
		{ "exchanged", ports_exchanged, PLAN_CHANGE_PORTS },
		{ "another device", another_device, PLAN_CHANGE_PORTS },
		{ "attach", skb, PLAN_CHANGE_PORTS },
		{ "one more with another queue", one_more_that_is_wider, PLAN_CHANGE_REBUILD },
		{ "all others", all_others, PLAN_CHANGE_REBUILD },
		{ "ring-size", ring_size, PLAN_CHANGE_REBUILD },
		{ "frames-per-queue", frames, PLAN_CHANGE_REBUILD },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum plan_change got = change_of(CONF_MODE_RXDROP, cases[i].edit);

		if (got != cases[i].want)
			fail_msg("%s: %d, want %d", cases[i].name, got, cases[i].want);
	}
}

static void ports_that_send_do_not_come_and_go(void **state)
{
	(void)state;
	assert_int_equal(change_of(CONF_MODE_TXPUSH, one_more), PLAN_CHANGE_REBUILD);
	assert_int_equal(change_of(CONF_MODE_L2FWD, one_more), PLAN_CHANGE_REBUILD);
}

/* Two ports' worth of it, 20,480 frames; a port may take 4,096. */
static void running_memory_is_kept_while_it_is_enough(void **state)
{
	struct side before, after;
	struct plan_forward *first, *next;

	(void)state;
	make_side(&before);
	make_side(&after);
	before.forward.mode = after.forward.mode = CONF_MODE_RXDROP;
	one_more(&after);
	first = (struct plan_forward *)plan_of(&before);
	next = (struct plan_forward *)plan_of(&after);
	assert_int_equal(first->worker[1].frames, 20480);
	assert_int_equal(next->worker[1].frames, 30720);
	for (unsigned i = 0; i < next->ports; i++)
		assert_int_equal(plan_port_before(first, next, i), i < 2 ? (int)i : PLAN_NOBODY);
	plan_keep_memory(next, first);
	assert_int_equal(next->worker[1].frames, 20480);
	assert_int_equal(next->umem[1].bytes, first->umem[1].bytes);
	assert_int_equal(next->locked_bytes, first->locked_bytes);
	/* The next time, the same file's plan is made as if nothing ran. */
	plan_free(before.plan);
	assert_int_equal(plan_make(&after.conf, &after.host, &before.plan), 0);
	assert_int_equal(plan_compare(next, &before.plan->forward[0]), PLAN_CHANGE_NONE);
	next->worker[0].frames = 3 * 4096 - 1;
	assert_int_equal(plan_compare(next, &before.plan->forward[0]), PLAN_CHANGE_REBUILD);
	plan_free(before.plan);
	plan_free(after.plan);
}

static void a_device_of_both_is_found_by_its_number(void **state)
{
	struct side one, other;
	const struct plan_forward *first;

	(void)state;
	make_side(&one);
	make_side(&other);
	first = plan_of(&one);
	other.device[0].ifindex = 300;
	other.device[1].ifindex = 301;
	assert_false(plan_shares_device(first, plan_of(&other)));
	plan_free(other.plan);
	other.device[1].ifindex = one.device[0].ifindex;
	assert_true(plan_shares_device(first, plan_of(&other)));
	assert_true(plan_shares_device(&other.plan->forward[0], first));
	/* Those that are awaited have no number yet, and are not all the same. */
	for (unsigned i = 0; i < 2; i++) {
		one.plan->forward[0].port[i].device.present = false;
		one.plan->forward[0].port[i].device.ifindex = 0;
		other.plan->forward[0].port[i].device.present = false;
		other.plan->forward[0].port[i].device.ifindex = 0;
	}
	assert_false(plan_shares_device(first, &other.plan->forward[0]));
	plan_free(other.plan);
	plan_free(one.plan);
}

static void queues_that_our_program_brought_are_no_change(void **state)
{
	static const struct {
		struct netdev_queues now, before, attached, want;
	} rows[] = {
		{ { 6, 6 }, { 4, 4 }, { 6, 6 }, { 4, 4 } }, /* virtio with 2 CPUs */
		{ { 4, 4 }, { 4, 4 }, { 4, 4 }, { 4, 4 } }, /* most drivers */
		{ { 4, 4 }, { 4, 4 }, { 6, 6 }, { 4, 4 } }, /* the program was taken off */
		{ { 8, 6 }, { 4, 4 }, { 6, 6 }, { 8, 6 } }, /* changed by hand */
		{ { 4, 4 }, { 2, 2 }, { 0, 0 }, { 4, 4 } }, /* not told */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct netdev now = { .rx_queues = rows[i].now.rx, .tx_queues = rows[i].now.tx };
		const struct netdev before = { .rx_queues = rows[i].before.rx,
					       .tx_queues = rows[i].before.tx };

		plan_leave_out_ours(&now, &before, &rows[i].attached);
		assert_int_equal(now.rx_queues, rows[i].want.rx);
		assert_int_equal(now.tx_queues, rows[i].want.tx);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queues_that_our_program_brought_are_no_change),
		cmocka_unit_test(what_an_edit_takes),
		cmocka_unit_test(ports_that_only_receive_come_and_go),
		cmocka_unit_test(ports_that_send_do_not_come_and_go),
		cmocka_unit_test(running_memory_is_kept_while_it_is_enough),
		cmocka_unit_test(a_device_of_both_is_found_by_its_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
