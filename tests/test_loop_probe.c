/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../src/loop_probe.c"

#include "unit.h"

#define PORTS	4
#define WORKERS 2
#define START	(1000 * NSEC_PER_SEC)

static struct conf_forward conf;
static struct conf_port ports[PORTS];
static struct plan_worker workers[WORKERS];
static struct plan_forward plan = { .worker = workers };
static struct bridge bridge;
static struct worker *worker[WORKERS];
static struct lane lane[WORKERS * CONF_PORTS_MAX];
static struct forwarder forwarder;

/* Ports 0 to 2 are worker 0's to send on, port 3 is worker 1's. No worker runs. */
static int setup(void **state)
{
	(void)state;
	conf.loop_probe_s = 2;
	memset(ports, 0, sizeof(ports));
	memset(workers, 0, sizeof(workers));
	memset(lane, 0, sizeof(lane));
	assert_int_equal(probes_new(&bridge.probes, WORKERS), 0);
	forwarder = (struct forwarder){ .conf = &conf,
					.plan = &plan,
					.ports = PORTS,
					.workers = WORKERS,
					.worker = worker,
					.lane = lane,
					.bridge = &bridge };
	for (unsigned i = 0; i < WORKERS; i++) {
		worker[i] = aligned_alloc(_Alignof(struct worker), sizeof(struct worker));
		assert_non_null(worker[i]);
		memset(worker[i], 0, sizeof(struct worker));
		worker[i]->probes = &bridge.probes[i];
		worker[i]->done_fd = -1;
	}
	for (unsigned i = 0; i < PORTS; i++) {
		forwarder.port[i].conf = &ports[i];
		forwarder.port[i].served = true;
		forwarder.port[i].states.link = PORT_STATE_UP;
		forwarder.port[i].netdev.mac[5] = (uint8_t)(i + 1);
		for (unsigned j = 0; j < WORKERS; j++) {
			workers[j].lane[i].tx = (i == 3) == (j == 1);
			forwarder_lane(&forwarder, j, i)->xsk.fd = 7;
		}
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(bridge.probes);
	for (unsigned i = 0; i < WORKERS; i++)
		free(worker[i]);
	return 0;
}

/* The ports that the worker is to send on, as bits, and that it has done so; 0: it was not asked. */
static unsigned carry_out(unsigned index)
{
	struct probes *probes = &bridge.probes[index];
	bool asked = probes->done != probes->ordered;

	probes->done = probes->ordered;
	return asked ? probes->ports : 0;
}

static void assert_round(unsigned first, unsigned second)
{
	assert_int_equal(carry_out(0), first);
	assert_int_equal(carry_out(1), second);
}

/* As the worker of port 3 sees it. */
static void come_back(unsigned out, unsigned in, uint32_t sequence)
{
	struct probe_round round = { .sequence = sequence };
	uint8_t bytes[PROBE_LEN_MAX];
	uint32_t len;

	memcpy(round.id, bridge.probes->id, PROBE_ID_LEN);
	len = probe_build(bytes, &round, forwarder.port[0].netdev.mac, out, 0);
	assert_true(probes_take(worker[1], in, bytes, len));
}

static void a_round_goes_out_of_every_port_when_it_is_time(void **state)
{
	struct probe probe;

	(void)state;
	for (unsigned i = 1; i < 5; i++) {
		uint64_t now_ns = START + 2 * i * NSEC_PER_SEC;

		loop_probe_send(&forwarder, now_ns);
		assert_int_equal(worker[0]->asked, i);
		assert_round(7, 8);
		assert_true(probe_read(bridge.probes[1].frame[3], bridge.probes[1].len[3],
				       bridge.probes->id, &probe));
		assert_int_equal(probe.port, 3);
		assert_int_equal(probe.sequence, i);
		assert_memory_equal(bridge.probes[1].frame[3] + MAC_LEN,
				    forwarder.port[3].netdev.mac, MAC_LEN);
		loop_probe_send(&forwarder, now_ns + 2 * NSEC_PER_SEC - 1);
		assert_round(0, 0);
	}
}

static void only_ports_that_can_send_do(void **state)
{
	(void)state;
	forwarder.port[0].states.link = PORT_STATE_NO_CARRIER;
	forwarder.port[1].served = false;
	forwarder_lane(&forwarder, 1, 3)->xsk.fd = 0;
	loop_probe_send(&forwarder, START);
	assert_round(4, 0);
	assert_int_equal(worker[1]->asked, 0);
	/* Another worker has a queue of that port as well. */
	workers[0].lane[3].tx = true;
	loop_probe_send(&forwarder, START + 2 * NSEC_PER_SEC);
	assert_round(12, 0);
	/* It has not come round since: its frames are not touched. */
	forwarder.port[0].states.link = PORT_STATE_UP;
	bridge.probes[0].done--;
	loop_probe_send(&forwarder, START + 4 * NSEC_PER_SEC);
	assert_round(12, 0);
}

static void a_trunk_that_wants_tags_gets_its_first_vlan(void **state)
{
	static const struct {
		const char *mode;
		unsigned vlan;
	} cases[PORTS] = {
		{ "trunk 20-30,4094", 20 },
		{ "trunk 4094", 4094 },
		{ "trunk 20 native 30", 0 },
		{ "access 7", 0 },
	};
	struct vlan_wrong wrong;

	(void)state;
	for (unsigned i = 0; i < PORTS; i++)
		assert_int_equal(vlan_mode_parse(cases[i].mode, &ports[i].vlan, &wrong), 0);
	loop_probe_send(&forwarder, START);
	for (unsigned i = 0; i < PORTS; i++) {
		const struct probes *probes = &bridge.probes[i == 3];
		const uint8_t *tag = &probes->frame[i][2 * MAC_LEN];
		bool tagged = tag[0] == 0x81 && tag[1] == 0;

		assert_int_equal(tagged, cases[i].vlan != 0);
		assert_int_equal(probes->len[i], tagged ? PROBE_LEN_MAX : PROBE_LEN);
		if (tagged)
			assert_int_equal(tag[2] << 8 | tag[3], cases[i].vlan);
	}
}

static void one_that_came_back_is_told_of_once(void **state)
{
	unsigned out = 0, in = 0;

	(void)state;
	loop_probe_send(&forwarder, START);
	assert_false(loop_probe_back(&forwarder, &out, &in));
	come_back(0, 3, 1);
	come_back(3, 0, 1);
	come_back(1, 1, 1);
	assert_true(loop_probe_back(&forwarder, &out, &in));
	assert_int_equal(out, 3);
	assert_int_equal(in, 0);
	assert_true(loop_probe_back(&forwarder, &out, &in));
	assert_int_equal(out, 1);
	assert_int_equal(in, 1);
	come_back(3, 0, 1); /* it goes round and round */
	assert_true(loop_probe_back(&forwarder, &out, &in));
	assert_int_equal(out, 0);
	assert_int_equal(in, 3);
	assert_false(loop_probe_back(&forwarder, &out, &in));
	/* Of the next round, what has gone out is as good as seen. */
	loop_probe_send(&forwarder, START + 2 * NSEC_PER_SEC);
	loop_probe_forget(&forwarder);
	come_back(0, 3, 2);
	assert_false(loop_probe_back(&forwarder, &out, &in));
}

/* Recorded and sent again; or nonsense that nobody but us could have made. */
static void what_is_old_is_no_loop(void **state)
{
	unsigned out, in;

	(void)state;
	for (unsigned i = 0; i < 5; i++)
		loop_probe_send(&forwarder, START + 2 * i * NSEC_PER_SEC);
	come_back(0, 1, 3);
	come_back(0, 2, 6);
	come_back(PORTS, 3, 5);
	assert_false(loop_probe_back(&forwarder, &out, &in));
	come_back(0, 1, 4);
	assert_true(loop_probe_back(&forwarder, &out, &in));
	/* The sequence begins anew after 2^32. */
	forwarder.loop_probe.sequence = UINT32_MAX;
	loop_probe_forget(&forwarder);
	loop_probe_send(&forwarder, START + 10 * NSEC_PER_SEC);
	come_back(1, 0, UINT32_MAX); /* before it was forgotten */
	assert_false(loop_probe_back(&forwarder, &out, &in));
	come_back(1, 0, 0);
	assert_true(loop_probe_back(&forwarder, &out, &in));
}

/* By a reload: the next round is not as far away as it was, nor does one follow the other at once. */
static void how_often_they_are_sent_may_change(void **state)
{
	uint64_t now_ns = START;

	(void)state;
	conf.loop_probe_s = 0;
	loop_probe_send(&forwarder, now_ns);
	assert_round(0, 0);
	conf.loop_probe_s = 3600;
	loop_probe_send(&forwarder, now_ns);
	assert_round(7, 8);
	conf.loop_probe_s = 2;
	loop_probe_send(&forwarder, now_ns += NSEC_PER_SEC / 4);
	assert_round(7, 8);
	loop_probe_send(&forwarder, now_ns + 2 * NSEC_PER_SEC - 1);
	assert_round(0, 0);
	loop_probe_send(&forwarder, now_ns += 2 * NSEC_PER_SEC);
	assert_round(7, 8);
	conf.loop_probe_s = 3600; /* the one that was due comes, and they are apart from then on */
	loop_probe_send(&forwarder, now_ns += 2 * NSEC_PER_SEC);
	assert_round(7, 8);
	loop_probe_send(&forwarder, now_ns + 3600 * NSEC_PER_SEC - 1);
	assert_round(0, 0);
	conf.loop_probe_s = 0;
	loop_probe_send(&forwarder, now_ns + 3600 * NSEC_PER_SEC);
	assert_round(0, 0);
}

#define test_of(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_of(a_round_goes_out_of_every_port_when_it_is_time),
		test_of(only_ports_that_can_send_do),
		test_of(a_trunk_that_wants_tags_gets_its_first_vlan),
		test_of(one_that_came_back_is_told_of_once),
		test_of(what_is_old_is_no_loop),
		test_of(how_often_they_are_sent_may_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
