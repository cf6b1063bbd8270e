/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Plans for hosts that nobody here has: 64 CPUs, several nodes, several cards. */
#include "plan/plan.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "fwd/mode.h"
#include "plan/mtu.h"
#include "unit.h"

#define CPUS	 64
#define PORTS	 8
#define FORWARDS 4

struct world {
	struct conf conf;
	struct conf_port port[PORTS];
	struct conf_forward forward[FORWARDS];
	struct host_facts host;
	struct netdev device[PORTS];
	struct cpu_facts cpu[CPUS];
	struct plan *plan;
};

static struct world world;

/* CPUs in equal blocks, one a node, each a core of its own; -1 nodes: not told. */
static void make_host(unsigned cpus, int nodes)
{
	plan_free(world.plan);
	memset(&world, 0, sizeof(world));
	world.conf.port = world.port;
	world.conf.forward = world.forward;
	world.host = (struct host_facts){ .device = world.device, .cpus = cpus, .cpu = world.cpu };
	for (unsigned i = 0; i < cpus; i++)
		world.cpu[i] =
			(struct cpu_facts){ i, nodes < 0 ? -1 : (int)(i / (cpus / (unsigned)nodes)),
					    i };
}

/* Two hardware threads a core: the neighbour, or the CPU half of them further on, as hosts have it. */
static void make_threads(bool neighbours)
{
	unsigned cores = world.host.cpus / 2;

	for (unsigned i = 0; i < world.host.cpus; i++)
		world.cpu[i].core = neighbours ? i & ~1U : i % cores;
}

/* A port named as the test says, of a device "eth0", "eth1", ... */
static struct conf_port *add_port(const char *name, unsigned rx, unsigned tx, int node)
{
	unsigned index = world.conf.ports++;
	struct conf_port *port = &world.port[index];
	struct netdev *device = &world.device[index];

	*port = (struct conf_port){ .all_queues = true, .line = 10 + index };
	snprintf(port->name, sizeof(port->name), "%s", name);
	snprintf(port->device, sizeof(port->device), "eth%u", index);
	*device = (struct netdev){
		.present = true,
		.driver = "ice",
		.ifindex = 100 + (int)index,
		.numa_node = node,
		.mtu = 1500,
		.rx_queues = rx,
		.tx_queues = tx,
		.ethernet = true,
		.link_up = true,
	};
	snprintf(device->name, sizeof(device->name), "eth%u", index);
	world.host.devices = world.conf.ports;
	return port;
}

/* Of the `ports` last ports. */
static struct conf_forward *add_forward(const char *name, enum conf_mode mode, unsigned ports)
{
	struct conf_forward *forward = &world.forward[world.conf.forwards++];

	*forward = (struct conf_forward){ .mode = mode,
					  .ports = ports,
					  .batch = 64,
					  .frame_size = 4096,
					  .ring_size = 2048,
					  .frames_per_queue = 10240,
					  .line = 50 };
	forward->tx.size_min = forward->tx.size_max = 64;
	snprintf(forward->name, sizeof(forward->name), "%s", name);
	for (unsigned i = 0; i < ports; i++)
		forward->port[i] = &world.port[world.conf.ports - ports + i];
	return forward;
}

static void list(struct number_list *numbers, const char *text)
{
	assert_int_equal(number_list_parse(text, 4095, numbers), 0);
}

static void ask_queues(struct conf_port *port, const char *text)
{
	port->all_queues = false;
	list(&port->queues, text);
}

static struct plan *make(void)
{
	plan_free(world.plan);
	assert_int_equal(plan_make(&world.conf, &world.host, &world.plan), 0);
	return world.plan;
}

static int drop_plan(void **state)
{
	(void)state;
	plan_free(world.plan);
	world.plan = NULL;
	return 0;
}

/* Makes the plan, which must say just this at this level. */
static void assert_says(enum plan_level level, const char *text)
{
	const struct plan *plan = make();
	unsigned found = 0;

	for (unsigned i = 0; i < plan->messages; i++) {
		if (plan->message[i].level != level)
			continue;
		assert_string_equal(plan->message[i].text, text);
		found++;
	}
	assert_int_equal(found, 1);
}

static void assert_error(const char *text)
{
	assert_says(PLAN_ERROR, text);
	assert_false(world.plan->forward[0].complete);
	assert_int_equal(world.plan->forward[0].workers, 0);
	assert_int_equal(world.plan->forward[0].umems, 0);
}

static void assert_silent(void)
{
	const struct plan *plan = make();

	for (unsigned i = 0; i < plan->messages; i++)
		print_message("%s: %s\n", plan_level_name(plan->message[i].level),
			      plan->message[i].text);
	assert_int_equal(plan->messages, 0);
}

static const struct plan_worker *worker(unsigned forward, unsigned index)
{
	assert_true(index < world.plan->forward[forward].workers);
	return &world.plan->forward[forward].worker[index];
}

/* A pair of cards with as many queues each, in a patch. */
static struct conf_forward *make_pair(unsigned queues)
{
	make_host(CPUS, 2);
	add_port("wan", queues, queues, 0);
	add_port("lan", queues, queues, 0);
	return add_forward("main", CONF_MODE_PATCH, 2);
}

/* --- workers and lanes --- */

static void the_modes_are_those_of_the_forwarder(void **state)
{
	(void)state;
	for (int i = CONF_MODE_RXDROP; i <= CONF_MODE_PATCH; i++) {
		const struct mode *mode = mode_of((enum conf_mode)i);
		const struct plan_mode *row = plan_mode_of((enum conf_mode)i);

		assert_string_equal(row->name, mode->name);
		assert_int_equal(row->receives, mode->receives);
		assert_int_equal(row->sends, mode->sends);
	}
}

static void a_worker_a_queue_number_serves_both_ports(void **state)
{
	const struct plan_forward *forward;

	(void)state;
	make_pair(16);
	assert_silent();
	forward = &world.plan->forward[0];
	assert_true(forward->complete);
	assert_int_equal(forward->workers, 16);
	assert_int_equal(forward->umems, 16);
	assert_int_equal(forward->locked_bytes, 16ULL * 2 * 10240 * 4096);
	for (unsigned i = 0; i < 16; i++) {
		assert_int_equal(worker(0, i)->queue, i);
		assert_int_equal(worker(0, i)->cpu, i);
		assert_int_equal(worker(0, i)->lanes, 2);
		assert_int_equal(worker(0, i)->umem, i);
		assert_int_equal(worker(0, i)->frames, 20480);
		for (unsigned j = 0; j < 2; j++) {
			assert_true(worker(0, i)->lane[j].rx && worker(0, i)->lane[j].tx);
			assert_int_equal(worker(0, i)->lane[j].hand_to, PLAN_NOBODY);
		}
	}
}

static void listed_queues_are_served_in_their_order(void **state)
{
	(void)state;
	make_host(CPUS, 2);
	ask_queues(add_port("wan", 4, 4, 0), "3,0-2");
	add_forward("main", CONF_MODE_RXDROP, 1);
	assert_silent();
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(worker(0, i)->queue, (i + 3) % 4);
		assert_true(worker(0, i)->lane[0].rx);
		assert_false(worker(0, i)->lane[0].tx);
	}
}

static void four_against_one_hands_over_evenly(void **state)
{
	(void)state;
	make_host(CPUS, 2);
	add_port("wan", 4, 4, 0);
	add_port("lan", 1, 1, 0);
	add_forward("main", CONF_MODE_PATCH, 2);
	assert_says(PLAN_NOTE,
		    "eth1: too few TX queues (1 active), so workers hand over what they would send "
		    "there: queue 1 to 0, queue 2 to 0, queue 3 to 0");
	assert_int_equal(world.plan->forward[0].workers, 4);
	assert_int_equal(worker(0, 0)->lanes, 2);
	assert_int_equal(worker(0, 0)->lane[1].hand_to, PLAN_NOBODY);
	for (unsigned i = 1; i < 4; i++) {
		assert_int_equal(worker(0, i)->lanes, 1);
		assert_int_equal(worker(0, i)->frames, 10240);
		assert_false(worker(0, i)->lane[1].rx || worker(0, i)->lane[1].tx);
		assert_int_equal(worker(0, i)->lane[1].hand_to, 0);
		assert_int_equal(worker(0, i)->lane[0].hand_to, PLAN_NOBODY);
	}
}

static void eight_against_three_tx_queues_takes_turns(void **state)
{
	static const int to[] = { PLAN_NOBODY, PLAN_NOBODY, PLAN_NOBODY, 0, 1, 2, 0, 1 };

	(void)state;
	make_host(CPUS, 2);
	add_port("wan", 8, 8, 0);
	add_port("lan", 8, 3, 0);
	add_forward("main", CONF_MODE_PATCH, 2);
	make();
	for (unsigned i = 0; i < ARRAY_SIZE(to); i++) {
		assert_int_equal(worker(0, i)->lane[1].hand_to, to[i]);
		assert_true(worker(0, i)->lane[1].rx);
	}
}

static void where_there_is_no_rx_queue_a_lane_only_sends(void **state)
{
	(void)state;
	make_host(CPUS, 2);
	add_port("wan", 4, 4, 0);
	add_port("lan", 1, 4, 0);
	add_forward("main", CONF_MODE_PATCH, 2);
	assert_silent();
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(worker(0, i)->lane[1].rx, i == 0);
		assert_true(worker(0, i)->lane[1].tx);
		assert_int_equal(worker(0, i)->lanes, 2);
	}
}

static void who_receives_nothing_for_a_port_hands_nothing(void **state)
{
	(void)state;
	make_host(CPUS, 2);
	add_port("wan", 4, 1, 0); /* nothing goes out there but what comes in on lan's only queue */
	add_port("lan", 1, 4, 0);
	add_forward("main", CONF_MODE_PATCH, 2);
	assert_silent();
	for (unsigned i = 1; i < 4; i++)
		assert_int_equal(worker(0, i)->lane[0].hand_to, PLAN_NOBODY);
}

static void ports_with_different_lists_meet_in_tx_lanes(void **state)
{
	(void)state;
	make_host(CPUS, 2);
	ask_queues(add_port("wan", 4, 4, 0), "0-1");
	ask_queues(add_port("lan", 4, 4, 0), "2-3");
	add_forward("main", CONF_MODE_PATCH, 2);
	assert_says(PLAN_WARNING, "eth0: queues 2-3, eth1: queues 0-1: not served, their frames go "
				  "to the host; queues = auto serves them");
	assert_int_equal(world.plan->forward[0].workers, 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(worker(0, i)->lane[0].rx, i < 2);
		assert_int_equal(worker(0, i)->lane[1].rx, i >= 2);
		assert_true(worker(0, i)->lane[0].tx && worker(0, i)->lane[1].tx);
	}
}

static void l2fwd_hands_over_on_its_own_port(void **state)
{
	(void)state;
	make_host(CPUS, 2);
	add_port("wan", 4, 2, 0);
	add_forward("main", CONF_MODE_L2FWD, 1);
	assert_says(PLAN_NOTE,
		    "eth0: too few TX queues (2 active), so workers hand over what they would send "
		    "there: queue 2 to 0, queue 3 to 1");
	assert_int_equal(worker(0, 2)->lane[0].hand_to, 0);
	assert_int_equal(worker(0, 3)->lane[0].hand_to, 1);
	assert_int_equal(worker(0, 1)->lane[0].hand_to, PLAN_NOBODY);
}

static void txpush_has_lanes_where_it_was_told_to_send(void **state)
{
	(void)state;
	make_host(CPUS, 2);
	ask_queues(add_port("wan", 4, 4, 0), "0");
	ask_queues(add_port("lan", 4, 4, 0), "1");
	add_forward("main", CONF_MODE_TXPUSH, 2);
	assert_silent();
	assert_int_equal(world.plan->forward[0].workers, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(worker(0, i)->lanes, 1);
		assert_true(worker(0, i)->lane[i].tx);
		assert_false(worker(0, i)->lane[!i].tx || worker(0, i)->lane[i].rx);
	}
}

/* --- errors --- */

static void an_absent_device_leaves_the_others_planned(void **state)
{
	const struct plan *plan;

	(void)state;
	make_host(CPUS, 2);
	add_port("gone", 1, 1, 0);
	add_forward("first", CONF_MODE_RXDROP, 1);
	add_port("wan", 4, 4, 0);
	add_forward("second", CONF_MODE_RXDROP, 1);
	memset(&world.device[0], 0, sizeof(world.device[0]));
	assert_says(PLAN_ABSENT, "eth0: no such interface; `ip link` lists those of this network "
				 "namespace");
	plan = world.plan;
	assert_int_equal(plan_count(plan, PLAN_ERROR), 0);
	assert_false(plan->forward[0].complete);
	assert_int_equal(plan->forward[0].workers, 0);
	assert_true(plan->forward[1].complete);
	assert_int_equal(plan->forward[1].workers, 4);
	assert_ptr_equal(plan->message[0].port, &world.port[0]);
	assert_ptr_equal(plan->message[0].forward, &world.forward[0]);
}

static void an_awaited_device_is_planned_for(void **state)
{
	const struct plan_lane *lane;

	(void)state;
	make_pair(1);
	world.device[1] = (struct netdev){
		.awaited = true,
		.numa_node = -1,
		.rx_queues = 1,
		.tx_queues = 1,
		.ifindex = world.device[0].ifindex, /* means nothing */
	};
	assert_says(PLAN_NOTE,
		    "eth1: no such interface yet; planned for 1 queue, and its port comes "
		    "up when it appears");
	assert_int_equal(world.plan->messages, 1);
	assert_true(world.plan->forward[0].complete);
	assert_int_equal(world.plan->forward[0].workers, 1);
	lane = &world.plan->forward[0].worker[0].lane[1];
	assert_true(lane->rx && lane->tx);
}

static void one_device_by_two_names_is_an_error(void **state)
{
	(void)state;
	make_pair(4);
	world.device[1] = world.device[0];
	snprintf(world.port[1].device, sizeof(world.port[1].device), "upstream0");
	assert_error("upstream0 and eth0 are the same interface; name it once");
}

static void one_map_for_two_interfaces_is_an_error(void **state)
{
	(void)state;
	make_pair(4);
	for (unsigned i = 0; i < 2; i++)
		snprintf(world.port[i].xskmap, sizeof(world.port[i].xskmap), "/sys/fs/bpf/m");
	assert_error(
		"eth0 and eth1 have the same xskmap /sys/fs/bpf/m, whose slots are the queues of "
		"one interface; give each its own");
}

/* A blocked one keeps what is sent to the port's own address from all ports, which may be wanted. */
static void an_address_of_a_port_is_no_stations_behind_one(void **state)
{
	struct conf_station station = { { 2, 0, 0, 0, 0, 7 }, .port = 0, .line = 77 };

	(void)state;
	make_pair(4);
	world.forward[0].mode = CONF_MODE_BRIDGE;
	world.forward[0].station = &station;
	world.forward[0].stations = 1;
	memcpy(world.device[1].mac, (uint8_t[]){ 2, 0, 0, 0, 0, 8 }, MAC_LEN);
	assert_true(make()->forward[0].complete);
	memcpy(world.device[1].mac, station.mac, MAC_LEN);
	assert_error(
		"eth1: its own address is 02:00:00:00:00:07, and no station's behind a port of "
		"the same bridge; remove `static = 02:00:00:00:00:07 ...`, line 77 of the file");
	station.port = STATION_BLOCKED;
	assert_true(make()->forward[0].complete);
}

static void one_device_in_two_forwards_is_an_error_of_the_second(void **state)
{
	(void)state;
	make_host(CPUS, 2);
	add_port("wan", 4, 4, 0);
	add_forward("first", CONF_MODE_RXDROP, 1);
	add_port("lan", 4, 4, 0);
	add_forward("second", CONF_MODE_RXDROP, 1);
	world.device[1].ifindex = world.device[0].ifindex;
	assert_says(PLAN_ERROR, "eth1 and eth0 are the same interface; name it once");
	assert_true(world.plan->forward[0].complete);
	assert_false(world.plan->forward[1].complete);
}

static void absent_devices_are_not_all_the_same(void **state)
{
	(void)state;
	make_pair(4);
	memset(world.device, 0, sizeof(world.device));
	make();
	assert_int_equal(plan_count(world.plan, PLAN_ABSENT), 2);
	assert_int_equal(world.plan->messages, 2);
	make_pair(4);
	world.device[0].present = false; /* then its number means nothing */
	world.device[0].ifindex = world.device[1].ifindex;
	make();
	assert_int_equal(world.plan->messages, 1);
}

static void the_loopback_interface_is_refused(void **state)
{
	(void)state;
	make_pair(4);
	world.device[0].loopback = true;
	world.device[0].ethernet = false;
	snprintf(world.device[0].name, NETDEV_NAME_SIZE, "lo");
	assert_error("lo: the loopback interface gets back whatever it sends, so nothing can be "
		     "forwarded; name another, or make a pair with `ip link add v0 type veth peer "
		     "name v1`");
}

static void who_sends_needs_ethernet(void **state)
{
	(void)state;
	make_pair(4);
	world.device[1].ethernet = false;
	assert_error("eth1: not an Ethernet interface; `ip link` shows link/ether for those");
	world.forward[0].mode = CONF_MODE_RXDROP;
	assert_silent();
}

static void members_of_masters_are_refused(void **state)
{
	static const char *const kinds[][2] = {
		{ "bridge", "a port of bridge" },
		{ "bond", "a member of bond" },
		{ "team", "a member of team" },
		{ "openvswitch", "a port of Open vSwitch" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		char text[200];

		make_pair(4);
		snprintf(world.device[0].master_kind, NETDEV_KIND_SIZE, "%s", kinds[i][0]);
		snprintf(world.device[0].master_name, NETDEV_NAME_SIZE, "m0");
		snprintf(text, sizeof(text),
			 "eth0: is %s m0, which would get no frame from it any more; `ip link set "
			 "dev eth0 nomaster` takes it out",
			 kinds[i][1]);
		assert_error(text);
		world.forward[0].mode = CONF_MODE_TXPUSH;
		snprintf(text, sizeof(text),
			 "eth0: is %s m0, which would send on it at the same time; `ip link set "
			 "dev eth0 nomaster` takes it out",
			 kinds[i][1]);
		assert_error(text);
	}
	make_pair(4);
	snprintf(world.device[0].master_kind, NETDEV_KIND_SIZE, "vrf");
	assert_silent();
}

static void bonds_and_teams_are_refused_where_frames_come_in(void **state)
{
	static const char *const kinds[] = { "bond", "team" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		char text[200];

		make_pair(4);
		snprintf(world.device[1].kind, NETDEV_KIND_SIZE, "%s", kinds[i]);
		snprintf(text, sizeof(text),
			 "eth1: a %s receives through its members, and no socket of its own gets "
			 "their frames; name the member ports instead, taken out of it with `ip "
			 "link set dev MEMBER nomaster`",
			 kinds[i]);
		assert_error(text);
		world.forward[0].mode = CONF_MODE_TXPUSH;
		assert_int_equal(plan_count(make(), PLAN_ERROR), 0);
	}
}

static void what_stands_on_a_port_is_named(void **state)
{
	(void)state;
	make_pair(4);
	snprintf(world.device[0].upper, NETDEV_NAME_SIZE, "eth0.100");
	assert_says(PLAN_WARNING,
		    "eth0: eth0.100 stands on it, and gets no frame of the queues that "
		    "are served");
	world.forward[0].mode = CONF_MODE_TXPUSH;
	assert_int_equal(plan_count(make(), PLAN_WARNING), 0);
}

static void the_mtu_limit_follows_the_chunk(void **state)
{
	struct conf_forward conf = { .frame_size = 4096 };

	(void)state;
	assert_int_equal(mtu_limit(&conf), 3818);
	conf.frame_size = 2048;
	assert_int_equal(mtu_limit(&conf), 1770);
	conf.frame_size = 3000; /* unaligned */
	assert_int_equal(mtu_limit(&conf), 2722);
	conf.frags = true;
	assert_true(mtu_limit(&conf) == UINT32_MAX);
}

static void the_mtu_must_fit_a_chunk(void **state)
{
	struct conf_forward *forward;

	(void)state;
	forward = make_pair(4);
	world.device[1].mtu = 3818;
	assert_silent();
	world.device[1].mtu = 3819;
	assert_error("eth1: MTU 3819 does not fit frames of 4096 bytes, which take up to 3818; "
		     "start with frags = yes (any MTU), or `ip link set dev eth1 mtu 3818`");
	world.device[1].served = true; /* raised while it runs */
	assert_says(PLAN_WARNING,
		    "eth1: MTU 3819 does not fit frames of 4096 bytes, which take up to 3818; "
		    "start with frags = yes (any MTU), or `ip link set dev eth1 mtu 3818`");
	assert_true(world.plan->forward[0].complete);
	world.device[1].served = false;
	forward->line = 0; /* from flags */
	assert_error("eth1: MTU 3819 does not fit frames of 4096 bytes, which take up to 3818; "
		     "start with -F (any MTU), or `ip link set dev eth1 mtu 3818`");
	forward->frame_size = 2048;
	world.device[1].mtu = 1771;
	assert_error("eth1: MTU 1771 does not fit frames of 2048 bytes, which take up to 1770; "
		     "start with -F (any MTU), with -f 4096 (up to 3818), or `ip link set dev eth1 "
		     "mtu 1770`");
	forward->frags = true;
	assert_silent();
}

static void vlan_mode(unsigned port, const char *text)
{
	struct vlan_wrong wrong;

	assert_int_equal(vlan_mode_parse(text, &world.port[port].vlan, &wrong), 0);
}

static void ports_of_a_vlan_have_one_mtu(void **state)
{
	(void)state;
	make_host(CPUS, 2);
	add_port("a", 1, 1, 0);
	add_port("b", 1, 1, 0);
	add_port("c", 1, 1, 0);
	add_forward("main", CONF_MODE_BRIDGE, 3);
	world.device[1].mtu = 1600;
	world.device[2].mtu = 3000;
	assert_silent(); /* tags are data */
	vlan_mode(0, "access 10");
	vlan_mode(1, "trunk 20,30 native 40");
	vlan_mode(2, "trunk 20,40");
	assert_says(PLAN_WARNING,
		    "eth1: MTU 1600 is less than that of eth2 (3000), with which it has a VLAN in "
		    "common: longer frames from there are lost where they leave; `ip link set dev "
		    "eth1 mtu 3000`");
	assert_true(world.plan->forward[0].complete);
	vlan_mode(1, "trunk 10");
	assert_says(PLAN_WARNING,
		    "eth0: MTU 1500 is less than that of eth1 (1600), with which it has a VLAN in "
		    "common: longer frames from there are lost where they leave; `ip link set dev "
		    "eth0 mtu 1600`");
	world.device[0].mtu = 1600;
	assert_silent();
}

static void generated_frames_must_fit_the_mtu(void **state)
{
	struct conf_forward *forward;

	(void)state;
	forward = make_pair(4);
	forward->mode = CONF_MODE_TXPUSH;
	world.device[0].mtu = 9000;
	forward->tx.size_max = 1518;
	assert_silent();
	forward->tx.size_max = 1519;
	assert_error("eth1: frames of 1519 bytes (-s, --sizes) are more than MTU 1500 allows "
		     "(1518); send smaller ones, or `ip link set dev eth1 mtu 1501`");
	forward->tx.vlan = true;
	assert_silent();
}

static void queues_beyond_the_active_ones_are_named_once_a_port(void **state)
{
	(void)state;
	make_pair(1);
	ask_queues(&world.port[0], "0-3");
	assert_error("eth0 q1: only RX queue 0 is active; choose with queues, or add some with "
		     "`ethtool -L eth0 combined 2` (or rx)");
	world.forward[0].line = 0;
	world.device[0].rx_queues = 2;
	assert_error("eth0 q2: only RX queues 0-1 are active; choose with -q, or add some with "
		     "`ethtool -L eth0 combined 3` (or rx)");
}

static void without_any_tx_queue_nothing_can_be_handed(void **state)
{
	(void)state;
	make_host(CPUS, 2);
	ask_queues(add_port("wan", 4, 1, 0), "2-3");
	add_forward("main", CONF_MODE_L2FWD, 1)->line = 0;
	assert_error("eth0 q2: no TX queue of this number (1 active), so l2fwd could not send; "
		     "choose another with -q, or see `ethtool -L eth0`");
	world.forward[0].mode = CONF_MODE_TXPUSH;
	assert_error("eth0 q2: no TX queue of this number (1 active), so txpush could not send; "
		     "choose another with -q, or see `ethtool -L eth0`");
	world.port[0].all_queues = true;
	world.port[0].queues.count = 0;
	assert_error("eth0 q1: no TX queue of this number (1 active), so txpush could not send; "
		     "choose another with -q, or see `ethtool -L eth0`");
}

static void more_queues_than_one_run_serves(void **state)
{
	(void)state;
	make_host(CPUS, 2);
	add_port("wan", 1025, 1025, 0);
	add_forward("main", CONF_MODE_RXDROP, 1)->line = 0;
	assert_error("-q all: eth0 has 1025 active RX queues, more than the 1024 that one run "
		     "serves; list some with -q");
}

static void cpus_that_are_not_allowed(void **state)
{
	(void)state;
	list(&make_pair(4)->cpus, "62-65");
	assert_error("cpus: CPU 64 does not exist or is not allowed here; `taskset -cp $$` lists "
		     "those that are");
	world.forward[0].line = 0;
	assert_error("--cpus: CPU 64 does not exist or is not allowed here; `taskset -cp $$` lists "
		     "those that are");
}

static void one_umem_has_its_limit(void **state)
{
	struct conf_forward *forward = make_pair(16);

	(void)state;
	forward->line = 0;
	forward->frames_per_queue = 1U << 24;
	make();
	assert_int_equal(plan_count(world.plan, PLAN_ERROR), 0);
	forward->shared_umem = true;
	assert_error("-M: 536870912 frames are more than one UMEM takes (268435456); lower "
		     "--frames-per-queue, or leave out -M");
}

static void stripped_vlan_tags(void **state)
{
	(void)state;
	make_pair(4);
	world.device[0].rx_vlan_offload = true;
	assert_says(PLAN_NOTE, "eth0: rx-vlan-offload will be switched off, for frames leave with "
			       "the tags they came with; and on again at the end");
	assert_true(world.plan->forward[0].complete);
	world.device[0].rx_vlan_offload_fixed = true;
	assert_error("eth0: takes the VLAN tags out of received frames, which would leave without "
		     "them, and its driver (ice) does not let that be switched off; name another, "
		     "or accept it with vlan-offload = keep");
	world.port[0].keep_vlan_offload = true;
	assert_silent();
	world.port[0].keep_vlan_offload = false;
	world.forward[0].mode = CONF_MODE_RXDROP;
	assert_silent();
}

static void all_errors_are_told_at_once(void **state)
{
	(void)state;
	make_pair(1);
	ask_queues(&world.port[0], "1");
	ask_queues(&world.port[1], "2");
	make();
	assert_int_equal(plan_count(world.plan, PLAN_ERROR), 2);
	world.device[0].mtu = world.device[1].mtu = 9000;
	list(&world.forward[0].cpus, "99");
	make();
	assert_int_equal(plan_count(world.plan, PLAN_ERROR), 3);
}

/* --- warnings --- */

static void queues_without_a_worker(void **state)
{
	(void)state;
	make_host(CPUS, 2);
	ask_queues(add_port("wan", 4, 4, 0), "1,3");
	add_forward("main", CONF_MODE_RXDROP, 1)->line = 0;
	assert_says(PLAN_WARNING, "eth0: queues 0,2: not served, their frames go to the host; -q "
				  "all serves them");
	ask_queues(&world.port[0], "0-2");
	assert_says(PLAN_WARNING, "eth0: queue 3: not served, their frames go to the host; -q all "
				  "serves them");
	world.forward[0].mode = CONF_MODE_TXPUSH;
	assert_silent();
}

static void copy_beside_zero_copy(void **state)
{
	(void)state;
	make_pair(4);
	world.port[1].attach = CONF_ATTACH_SKB;
	assert_says(PLAN_WARNING,
		    "eth1: attach = skb makes the kernel copy its frames, and eth0 "
		    "may go without: the copy sets the pace of both, and their memory "
		    "is registered twice; let them do the same");
	world.port[1].attach = CONF_ATTACH_AUTO;
	world.port[1].zero_copy = CONF_ZERO_COPY_NEVER;
	assert_says(PLAN_WARNING, "eth1: zero-copy = never makes the kernel copy its frames, and "
				  "eth0 may go without: the copy sets the pace of both, and their "
				  "memory is registered twice; let them do the same");
	world.port[0].zero_copy = CONF_ZERO_COPY_NEVER;
	assert_silent();
	world.port[0].zero_copy = world.port[1].zero_copy = CONF_ZERO_COPY_AUTO;
	snprintf(world.device[0].driver, sizeof(world.device[0].driver), "veth");
	assert_says(PLAN_NOTE, "eth0: its driver (veth) has no zero-copy, so the kernel copies its "
			       "frames, and the copy sets the pace of eth1 too; if that goes "
			       "zero-copy, their memory is registered twice");
	snprintf(world.device[1].driver, sizeof(world.device[1].driver), "e1000e");
	assert_silent();
}

/* --- CPUs --- */

static void the_cards_node_comes_first(void **state)
{
	(void)state;
	make_host(CPUS, 4);
	add_port("wan", 16, 16, 2);
	add_forward("main", CONF_MODE_RXDROP, 1);
	assert_silent();
	for (unsigned i = 0; i < 16; i++) {
		assert_int_equal(worker(0, i)->cpu, 32 + i);
		assert_int_equal(worker(0, i)->cpu_node, 2);
	}
	assert_int_equal(world.plan->forward[0].umem[0].numa_node, 2);
}

static void four_cards_on_four_nodes_keep_apart(void **state)
{
	(void)state;
	make_host(CPUS, 4);
	for (int i = 0; i < 4; i++) {
		add_port("port", 16, 16, 3 - i);
		add_forward("forward", CONF_MODE_RXDROP, 1);
	}
	assert_silent();
	for (unsigned i = 0; i < 4; i++) {
		for (unsigned j = 0; j < 16; j++)
			assert_int_equal(worker(i, j)->cpu, (3 - i) * 16 + j);
	}
}

static void a_free_core_off_the_node_before_a_shared_one_on_it(void **state)
{
	(void)state;
	make_host(CPUS, 4);
	add_port("wan", 20, 20, 1);
	add_forward("main", CONF_MODE_RXDROP, 1);
	assert_says(PLAN_WARNING, "eth0: the device is on node 1 and CPUs 0-3 on node 0, so every "
				  "frame crosses between them; choose others with cpus");
	assert_int_equal(worker(0, 15)->cpu, 31);
	assert_int_equal(worker(0, 16)->cpu, 0);
}

static void listed_cpus_are_taken_in_turn_and_left_to_their_forward(void **state)
{
	(void)state;
	make_host(CPUS, 2);
	add_port("wan", 4, 4, 0);
	add_forward("auto", CONF_MODE_RXDROP, 1);
	add_port("lan", 4, 4, 0);
	list(&add_forward("listed", CONF_MODE_RXDROP, 1)->cpus, "2,0,1,3");
	assert_silent();
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(worker(0, i)->cpu, 4 + i);
		assert_int_equal(worker(1, i)->cpu, world.forward[1].cpus.value[i]);
	}
}

static void fewer_cpus_than_workers(void **state)
{
	(void)state;
	list(&make_pair(4)->cpus, "5,3");
	assert_says(PLAN_WARNING, "4 workers share 2 CPUs; give each its own with cpus");
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(worker(0, i)->cpu, i % 2 ? 3 : 5);
	world.forward[0].line = 0;
	list(&world.forward[0].cpus, "7");
	assert_says(PLAN_WARNING, "4 workers share 1 CPU; give each its own with --cpus");
	make_host(2, 1);
	add_port("wan", 3, 3, -1);
	add_forward("main", CONF_MODE_RXDROP, 1)->line = 0;
	assert_says(PLAN_WARNING, "3 workers share 2 CPUs; give each its own with --cpus");
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(worker(0, i)->cpu, i % 2);
}

static void forwards_that_share_cores_are_named(void **state)
{
	(void)state;
	make_host(CPUS, 2);
	add_port("wan", 4, 4, 0);
	list(&add_forward("one", CONF_MODE_RXDROP, 1)->cpus, "0-3");
	add_port("lan", 4, 4, 0);
	list(&add_forward("two", CONF_MODE_RXDROP, 1)->cpus, "2-5");
	assert_says(PLAN_WARNING,
		    "workers of one and of two share CPUs 2-3; give each its own with cpus");
}

static void forwards_take_turns_where_cores_are_few(void **state)
{
	(void)state;
	make_host(4, 1);
	add_port("wan", 4, 4, 0);
	add_forward("one", CONF_MODE_RXDROP, 1);
	add_port("lan", 2, 2, 0);
	add_forward("two", CONF_MODE_RXDROP, 1);
	assert_int_equal(plan_count(make(), PLAN_ERROR), 0);
	assert_int_equal(worker(0, 0)->cpu, 0);
	assert_int_equal(worker(1, 0)->cpu, 1);
	assert_int_equal(worker(0, 1)->cpu, 2);
	assert_int_equal(worker(1, 1)->cpu, 3);
	assert_int_equal(worker(0, 2)->cpu, 0);
	assert_int_equal(worker(0, 3)->cpu, 1);
}

static void threads_of_a_core_come_after_cores_without_a_worker(void **state)
{
	(void)state;
	make_host(8, 1);
	make_threads(true);
	add_port("wan", 6, 6, -1);
	add_forward("main", CONF_MODE_RXDROP, 1);
	assert_silent();
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(worker(0, i)->cpu, i < 4 ? 2 * i : 2 * (i - 4) + 1);
	make_threads(false);
	assert_silent();
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(worker(0, i)->cpu, i);
}

static void the_cards_node_comes_before_a_core_without_a_worker(void **state)
{
	static const unsigned cpus[] = { 4, 6, 5, 7, 0, 2 };

	(void)state;
	make_host(8, 2);
	make_threads(true);
	add_port("wan", 6, 6, 1);
	add_forward("main", CONF_MODE_RXDROP, 1);
	assert_says(PLAN_WARNING, "eth0: the device is on node 1 and CPUs 0,2 on node 0, so every "
				  "frame crosses between them; choose others with cpus");
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(worker(0, i)->cpu, cpus[i]);
}

static void a_list_with_threads_of_a_core_beside_an_idle_one(void **state)
{
	(void)state;
	make_host(8, 2);
	make_threads(true);
	add_port("wan", 2, 2, 1);
	list(&add_forward("main", CONF_MODE_RXDROP, 1)->cpus, "4,5");
	assert_says(PLAN_WARNING,
		    "CPUs 4-5: another thread of the core has a worker too, and they "
		    "share its speed, while the core of CPU 6 has none; choose others "
		    "with cpus");
	world.forward[0].line = 0;
	assert_says(PLAN_WARNING,
		    "CPUs 4-5: another thread of the core has a worker too, and they "
		    "share its speed, while the core of CPU 6 has none; choose others "
		    "with --cpus");
	list(&world.forward[0].cpus, "4,6");
	assert_silent();
	/* An idle core that this process may not use, or of the other node, is none. */
	list(&world.forward[0].cpus, "4,5");
	world.host.cpus = 6;
	assert_silent();
}

static void a_host_that_tells_no_nodes_is_no_matter(void **state)
{
	(void)state;
	make_host(CPUS, -1);
	add_port("wan", 4, 4, 1);
	add_forward("main", CONF_MODE_RXDROP, 1);
	assert_silent();
	assert_int_equal(worker(0, 3)->cpu, 3);
	assert_int_equal(worker(0, 3)->cpu_node, -1);
}

static void ports_of_two_nodes_cannot_both_be_near(void **state)
{
	(void)state;
	make_host(CPUS, 2);
	add_port("wan", 2, 2, -1);
	add_port("lan", 2, 2, 1);
	add_forward("main", CONF_MODE_PATCH, 2);
	assert_silent();
	assert_int_equal(worker(0, 0)->cpu, 32); /* the first port that has a node */
	world.device[0].numa_node = 0;
	assert_says(PLAN_WARNING, "eth1: the device is on node 1 and CPUs 0-1 on node 0, so every "
				  "frame crosses between them; choose others with cpus");
}

/* --- memory --- */

static void slices_of_one_umem_follow_the_lanes(void **state)
{
	const struct plan_forward *forward;

	(void)state;
	make_host(CPUS, 2);
	add_port("wan", 4, 4, 1);
	add_port("lan", 1, 1, 1);
	add_forward("main", CONF_MODE_PATCH, 2)->shared_umem = true;
	make();
	forward = &world.plan->forward[0];
	assert_int_equal(forward->umems, 1);
	assert_int_equal(forward->umem[0].frames, 5 * 10240);
	assert_int_equal(forward->umem[0].numa_node, 1);
	assert_int_equal(forward->locked_bytes, 5ULL * 10240 * 4096);
	assert_int_equal(worker(0, 0)->first_frame, 0);
	assert_int_equal(worker(0, 1)->first_frame, 20480);
	assert_int_equal(worker(0, 3)->first_frame, 40960);
}

/* --- what holds for every plan --- */

static uint32_t seed = 20240601;

static unsigned random_below(unsigned limit)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % limit;
}

static void ask_some_queues(struct conf_port *port, unsigned rx)
{
	unsigned bits = 1 + random_below((1U << rx) - 1);

	port->all_queues = false;
	for (unsigned i = 0; i < rx; i++) {
		if (bits & 1U << i)
			port->queues.value[port->queues.count++] = i;
	}
}

static void make_random_world(void)
{
	static const unsigned cpus[] = { 1, 2, 8, 64 };
	unsigned forwards = 1 + random_below(3);

	make_host(cpus[random_below(4)], 1);
	for (unsigned i = 0; i < world.host.cpus; i++)
		world.cpu[i].node = (int)random_below(3) - 1;
	for (unsigned i = 0; i < forwards; i++) {
		enum conf_mode mode = (enum conf_mode)random_below(4);
		unsigned ports = mode == CONF_MODE_PATCH ? 2 :
				 mode == CONF_MODE_L2FWD ? 1 :
							   1 + random_below(2);
		struct conf_forward *forward;

		for (unsigned j = 0; j < ports; j++) {
			unsigned rx = 1 + random_below(16);
			struct conf_port *port = add_port("port", rx, 1 + random_below(16),
							  (int)random_below(3) - 1);

			if (random_below(2))
				ask_some_queues(port, rx);
		}
		forward = add_forward("forward", mode, ports);
		forward->shared_umem = random_below(2);
		forward->frames_per_queue = 1 + random_below(1U << 24);
		for (unsigned j = random_below(4); j-- > 0;)
			forward->cpus.value[forward->cpus.count++] =
				random_below(world.host.cpus + 1);
	}
}

static bool has_rx_from(const struct plan_forward *forward, const struct plan_worker *one,
			unsigned to)
{
	for (unsigned i = 0; i < forward->ports; i++) {
		if (one->lane[i].rx && plan_sends(forward->conf->mode, i, to))
			return true;
	}
	return false;
}

static void check_worker(const struct plan_forward *forward, const struct plan_worker *one)
{
	bool allowed = false;

	assert_true(one->lanes > 0);
	for (unsigned i = 0; i < world.host.cpus; i++)
		allowed |= world.cpu[i].cpu == one->cpu && world.cpu[i].node == one->cpu_node;
	assert_true(allowed);
	for (unsigned i = 0; i < forward->ports; i++) {
		const struct plan_lane *lane = &one->lane[i];
		const struct netdev *device = &forward->port[i].device;

		assert_true(!lane->rx || one->queue < device->rx_queues);
		assert_true(!lane->tx || one->queue < device->tx_queues);
		if (has_rx_from(forward, one, i))
			assert_true(lane->tx != (lane->hand_to >= 0));
		else
			assert_int_equal(lane->hand_to, PLAN_NOBODY);
		if (lane->hand_to >= 0) {
			assert_true((unsigned)lane->hand_to < forward->workers);
			assert_true(forward->worker[lane->hand_to].lane[i].tx);
		}
	}
}

/* Every queue that was asked for has one worker, and every other queue none. */
static void check_rx(const struct plan_forward *forward)
{
	for (unsigned i = 0; i < forward->ports; i++) {
		const struct plan_port *port = &forward->port[i];

		for (unsigned queue = 0; queue < port->device.rx_queues; queue++) {
			bool asked = port->conf->all_queues ||
				     number_list_has(&port->conf->queues, queue);
			unsigned served = 0;

			for (unsigned j = 0; j < forward->workers; j++)
				served += forward->worker[j].queue == queue &&
					  (forward->worker[j].lane[i].rx ||
					   forward->conf->mode == CONF_MODE_TXPUSH) &&
					  (forward->worker[j].lane[i].rx ||
					   forward->worker[j].lane[i].tx);
			assert_int_equal(served, asked);
		}
	}
}

static void check_hand_over_is_even(const struct plan_forward *forward, unsigned port)
{
	unsigned least = UINT32_MAX, most = 0;

	for (unsigned i = 0; i < forward->workers; i++) {
		unsigned given = 0;

		for (unsigned j = 0; j < forward->workers; j++)
			given += forward->worker[j].lane[port].hand_to == (int)i;
		if (!forward->worker[i].lane[port].tx) {
			assert_int_equal(given, 0);
			continue;
		}
		least = given < least ? given : least;
		most = given > most ? given : most;
	}
	assert_true(!most || most - least <= 1);
}

static void check_memory(const struct plan_forward *forward)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < forward->umems; i++) {
		assert_true(forward->umem[i].frames <= PLAN_UMEM_FRAMES_MAX);
		bytes += forward->umem[i].bytes;
	}
	assert_true(bytes == forward->locked_bytes);
	for (unsigned i = 0; i < forward->workers; i++) {
		const struct plan_worker *one = &forward->worker[i];

		assert_true(one->umem < forward->umems);
		assert_int_equal(one->frames, forward->conf->frames_per_queue * one->lanes);
		assert_true((uint64_t)one->first_frame + one->frames <=
			    forward->umem[one->umem].frames);
		for (unsigned j = 0; j < i; j++) {
			const struct plan_worker *other = &forward->worker[j];

			assert_true(other->umem != one->umem ||
				    other->first_frame + other->frames <= one->first_frame ||
				    one->first_frame + one->frames <= other->first_frame);
			assert_true(other->queue != one->queue);
		}
	}
}

static unsigned wrong_of(const struct plan *plan, const struct plan_forward *forward)
{
	unsigned wrong = 0;

	for (unsigned i = 0; i < plan->messages; i++)
		wrong += plan->message[i].forward == forward->conf &&
			 plan->message[i].level <= PLAN_ABSENT;
	return wrong;
}

static void every_plan_is_sound(void **state)
{
	unsigned complete = 0, handed = 0;

	(void)state;
	for (int i = 0; i < 5000; i++) {
		const struct plan *plan;

		make_random_world();
		plan = make();
		for (unsigned j = 0; j < plan->forwards; j++) {
			const struct plan_forward *forward = &plan->forward[j];

			assert_int_equal(forward->complete, !wrong_of(plan, forward));
			assert_int_equal(forward->complete, forward->workers > 0);
			if (!forward->complete)
				continue;
			complete++;
			for (unsigned k = 0; k < forward->workers; k++)
				check_worker(forward, &forward->worker[k]);
			check_rx(forward);
			check_memory(forward);
			for (unsigned k = 0; k < forward->ports; k++)
				check_hand_over_is_even(forward, k);
			for (unsigned k = 0; k < forward->workers; k++)
				handed += forward->worker[k].lane[0].hand_to >= 0;
		}
	}
	assert_true(complete > 2000 && handed > 2000); /* else the loop tried nothing */
}

/* --- printing --- */

static char *printed(int (*print)(FILE *, const struct plan *))
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(print(out, world.plan), 0);
	fclose(out);
	return text;
}

static void make_printed_world(void)
{
	struct pass_wrong wrong;

	make_host(CPUS, 2);
	add_port("wan", 4, 4, 0);
	add_port("lan0", 1, 1, 0);
	snprintf(world.port[1].device, sizeof(world.port[1].device), "upstream0");
	(void)pass_parse("tcp dport 22, default", &world.port[0].pass, &wrong);
	(void)pass_parse("default", &world.port[1].pass, &wrong);
	add_forward("main", CONF_MODE_PATCH, 2);
	ask_queues(add_port("tap", 12, 12, -1), "0,11");
	world.device[2].driver[0] = '\0';
	world.device[2].mtu = 900;
	(void)pass_parse("default", &world.port[2].pass, &wrong);
	add_forward("count", CONF_MODE_RXDROP, 1)->shared_umem = true;
	list(&world.forward[1].cpus, "0,62");
	add_port("old", 1, 1, 0);
	world.device[3].present = false;
	add_forward("later", CONF_MODE_L2FWD, 1);
	make();
}

static void text_for_people(void **state)
{
	char *text;

	(void)state;
	make_printed_world();
	text = printed(plan_text);
	assert_string_equal(
		text,
		"forward main: patch, 4 workers, 200 MiB locked\n"
		"  port wan   eth0              ice  4 RX, 4 TX  MTU 1500  node 0\n"
		"  port lan0  upstream0 (eth1)  ice  1 RX, 1 TX  MTU 1500  node 0\n"
		"  pass wan   default, tcp dport 22\n"
		"  pass lan0  default\n"
		"  worker 0  cpu 1 (node 0)  umem 0 (20480 frames, 80 MiB)  wan q0 rx+tx, lan0 q0 rx+tx\n"
		"  worker 1  cpu 2 (node 0)  umem 1 (10240 frames, 40 MiB)  wan q1 rx+tx, hands wan->lan0 to worker 0\n"
		"  worker 2  cpu 3 (node 0)  umem 2 (10240 frames, 40 MiB)  wan q2 rx+tx, hands wan->lan0 to worker 0\n"
		"  worker 3  cpu 4 (node 0)  umem 3 (10240 frames, 40 MiB)  wan q3 rx+tx, hands wan->lan0 to worker 0\n"
		"forward count: rxdrop, 2 workers, 80 MiB locked\n"
		"  port tap  eth2  no driver  12 RX, 12 TX  MTU 900  no node\n"
		"  worker 0  cpu 0 (node 0)   umem 0 (frames 0 to 10239, 40 MiB)      tap q0 rx\n"
		"  worker 1  cpu 62 (node 1)  umem 0 (frames 10240 to 20479, 40 MiB)  tap q11 rx\n"
		"forward later: l2fwd, cannot run\n"
		"  port old  eth3  absent\n"
		"absent: eth3: no such interface; `ip link` lists those of this network namespace\n"
		"warning: eth2: queues 1-10: not served, their frames go to the host; queues = auto "
		"serves them\n"
		"note: eth1: too few TX queues (1 active), so workers hand over what they would send "
		"there: queue 1 to 0, queue 2 to 0, queue 3 to 0\n");
	free(text);
}

static void vlans_of_a_bridge(void **state)
{
	char *text;

	(void)state;
	make_host(CPUS, 2);
	add_port("wan", 1, 1, 0);
	add_port("lan0", 1, 1, 0);
	add_forward("main", CONF_MODE_BRIDGE, 2);
	vlan_mode(0, "trunk 1-10, 20 native 5");
	vlan_mode(1, "access 20");
	make();
	text = printed(plan_text);
	assert_non_null(strstr(text, "\n  vlan wan   trunk 1-10,20 native 5\n"
				     "  vlan lan0  access 20\n  worker 0 "));
	free(text);
	text = printed(plan_json);
	assert_non_null(strstr(text, "\"vlan_mode\":\"access 20\""));
	free(text);
}

/* The object has these keys and no other, in this order. */
static void assert_keys(json_t *object, const char *keys)
{
	char text[512] = "";
	const char *key;
	json_t *value;

	assert_true(json_is_object(object));
	json_object_foreach(object, key, value)
	{
		size_t len = strlen(text);

		snprintf(text + len, sizeof(text) - len, "%s%s", len ? " " : "", key);
	}
	assert_string_equal(text, keys);
}

static json_t *at(json_t *object, const char *key, size_t index)
{
	return json_array_get(json_object_get(object, key), index);
}

static void json_for_programs(void **state)
{
	char *text;
	json_t *root, *forward, *one;

	(void)state;
	make_printed_world();
	text = printed(plan_json);
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	root = json_loads(text, 0, NULL);
	assert_keys(root, "version forwards messages");
	assert_int_equal(json_integer_value(json_object_get(root, "version")), 1);
	assert_int_equal(json_array_size(json_object_get(root, "forwards")), 3);
	forward = at(root, "forwards", 0);
	assert_keys(forward, "forward mode complete locked_bytes ports workers umems");
	assert_true(json_is_true(json_object_get(forward, "complete")));
	assert_keys(
		at(forward, "ports", 0),
		"port device attach_method pass vlan_mode present interface ifindex driver link_up mtu rx_queues "
		"tx_queues numa_node rx_vlan_offload rx_vlan_offload_fixed");
	assert_keys(at(forward, "umems", 0), "frames frame_size bytes numa_node");
	one = at(forward, "workers", 2);
	assert_keys(one, "worker queue cpu cpu_node umem first_frame frames lanes");
	assert_int_equal(json_integer_value(json_object_get(one, "cpu")), 3);
	assert_int_equal(json_array_size(json_object_get(one, "lanes")), 2);
	assert_keys(at(one, "lanes", 1), "port rx tx hand_to");
	assert_int_equal(json_integer_value(json_object_get(at(one, "lanes", 1), "hand_to")), 0);
	assert_true(json_is_null(json_object_get(at(one, "lanes", 0), "hand_to")));
	assert_keys(at(at(root, "forwards", 2), "ports", 0),
		    "port device attach_method pass vlan_mode present");
	assert_true(json_is_false(json_object_get(at(root, "forwards", 2), "complete")));
	assert_keys(at(root, "messages", 0), "level forward port text");
	assert_string_equal(json_string_value(json_object_get(at(root, "messages", 0), "level")),
			    "absent");
	json_decref(root);
	free(text);
}

static void an_output_that_takes_nothing_is_an_error(void **state)
{
	FILE *full = fopen("/dev/full", "w");

	(void)state;
	make_printed_world();
	assert_int_equal(plan_text(full, world.plan), -ENOSPC);
	clearerr(full);
	assert_true(plan_json(full, world.plan) < 0);
	fclose(full);
}

#define PLANNED(test) cmocka_unit_test_teardown(test, drop_plan)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLANNED(the_modes_are_those_of_the_forwarder),
		PLANNED(a_worker_a_queue_number_serves_both_ports),
		PLANNED(listed_queues_are_served_in_their_order),
		PLANNED(four_against_one_hands_over_evenly),
		PLANNED(eight_against_three_tx_queues_takes_turns),
		PLANNED(where_there_is_no_rx_queue_a_lane_only_sends),
		PLANNED(who_receives_nothing_for_a_port_hands_nothing),
		PLANNED(ports_with_different_lists_meet_in_tx_lanes),
		PLANNED(l2fwd_hands_over_on_its_own_port),
		PLANNED(txpush_has_lanes_where_it_was_told_to_send),
		PLANNED(an_absent_device_leaves_the_others_planned),
		PLANNED(an_awaited_device_is_planned_for),
		PLANNED(one_device_by_two_names_is_an_error),
		PLANNED(one_map_for_two_interfaces_is_an_error),
		PLANNED(an_address_of_a_port_is_no_stations_behind_one),
		PLANNED(one_device_in_two_forwards_is_an_error_of_the_second),
		PLANNED(absent_devices_are_not_all_the_same),
		PLANNED(the_loopback_interface_is_refused),
		PLANNED(who_sends_needs_ethernet),
		PLANNED(members_of_masters_are_refused),
		PLANNED(bonds_and_teams_are_refused_where_frames_come_in),
		PLANNED(what_stands_on_a_port_is_named),
		PLANNED(the_mtu_limit_follows_the_chunk),
		PLANNED(the_mtu_must_fit_a_chunk),
		PLANNED(ports_of_a_vlan_have_one_mtu),
		PLANNED(generated_frames_must_fit_the_mtu),
		PLANNED(queues_beyond_the_active_ones_are_named_once_a_port),
		PLANNED(without_any_tx_queue_nothing_can_be_handed),
		PLANNED(more_queues_than_one_run_serves),
		PLANNED(cpus_that_are_not_allowed),
		PLANNED(one_umem_has_its_limit),
		PLANNED(stripped_vlan_tags),
		PLANNED(all_errors_are_told_at_once),
		PLANNED(queues_without_a_worker),
		PLANNED(copy_beside_zero_copy),
		PLANNED(the_cards_node_comes_first),
		PLANNED(four_cards_on_four_nodes_keep_apart),
		PLANNED(a_free_core_off_the_node_before_a_shared_one_on_it),
		PLANNED(listed_cpus_are_taken_in_turn_and_left_to_their_forward),
		PLANNED(fewer_cpus_than_workers),
		PLANNED(forwards_that_share_cores_are_named),
		PLANNED(forwards_take_turns_where_cores_are_few),
		PLANNED(threads_of_a_core_come_after_cores_without_a_worker),
		PLANNED(the_cards_node_comes_before_a_core_without_a_worker),
		PLANNED(a_list_with_threads_of_a_core_beside_an_idle_one),
		PLANNED(a_host_that_tells_no_nodes_is_no_matter),
		PLANNED(ports_of_two_nodes_cannot_both_be_near),
		PLANNED(slices_of_one_umem_follow_the_lanes),
		PLANNED(every_plan_is_sound),
		PLANNED(text_for_people),
		PLANNED(vlans_of_a_bridge),
		PLANNED(json_for_programs),
		PLANNED(an_output_that_takes_nothing_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
