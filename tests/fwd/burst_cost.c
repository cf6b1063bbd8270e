/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a forwarded frame costs in instructions: passes of one mode over the fake kernel, to be run
 * under valgrind --tool=callgrind with --toggle-collect= each measured_pass_ function that shall
 * count, and the fake system calls toggled off again. Prints how many frames the passes moved.
 *
 *	burst_cost rxdrop|txpush|l2fwd|patch|bridge|flood|access|trunk|push|pop|hand-over FRAMES BATCH
 *	burst_cost compiler
 *
 * bridge has two ports and two stations, which it knows; frames go one way. flood: three ports, and all is for
 * a station that it does not know. The next four are bridges that have VLANs: two access ports, two trunks, and
 * from one to the other, where frames get a tag or lose it. hand-over is a patch where the worker that receives
 * (sender) has no TX queue and gives its frames to one that has (receiver).
 * The second form prints by what, and for what, this was compiled: the counts depend on it.
 */
#include "../../src/fwd/mode_bridge.c"
#include "../../src/fwd/mode_l2fwd.c"
#include "../../src/fwd/mode_patch.c"
#include "../../src/fwd/mode_rxdrop.c"
#include "../../src/fwd/mode_txpush.c"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "fwd/fake_kernel.h"

#define RING 2048

#define PORTS_MAX 3

#define FRAME_BYTES 60

#if defined(__clang__)
#define COMPILER "clang " EXPANDED(__clang_major__)
#else
#define COMPILER "gcc " EXPANDED(__GNUC__)
#endif
#define EXPANDED(macro) TEXT(macro)
#define TEXT(token)	#token

/* Not inlined, so that callgrind finds them by name. */
uint32_t measured_pass_rxdrop(struct worker *worker);
uint32_t measured_pass_txpush(struct worker *worker);
uint32_t measured_pass_l2fwd(struct worker *worker);
uint32_t measured_pass_patch(struct worker *worker);
uint32_t measured_pass_bridge(struct worker *worker);
uint32_t measured_pass_vlans(struct worker *worker);
uint32_t measured_pass_sender(struct worker *worker);
uint32_t measured_pass_receiver(struct worker *worker);

__attribute__((noinline)) uint32_t measured_pass_rxdrop(struct worker *worker)
{
	return worker_pass(worker, rxdrop_burst, true);
}

__attribute__((noinline)) uint32_t measured_pass_txpush(struct worker *worker)
{
	return worker_pass(worker, txpush_burst, true);
}

__attribute__((noinline)) uint32_t measured_pass_l2fwd(struct worker *worker)
{
	return worker_pass(worker, l2fwd_burst, true);
}

__attribute__((noinline)) uint32_t measured_pass_patch(struct worker *worker)
{
	return worker_pass(worker, patch_burst, true);
}

__attribute__((noinline)) uint32_t measured_pass_bridge(struct worker *worker)
{
	return worker_pass(worker, bridge_burst, true);
}

__attribute__((noinline)) uint32_t measured_pass_vlans(struct worker *worker)
{
	return worker_pass(worker, bridge_vlan_burst, true);
}

__attribute__((noinline)) uint32_t measured_pass_sender(struct worker *worker)
{
	return worker_pass(worker, patch_burst, true);
}

__attribute__((noinline)) uint32_t measured_pass_receiver(struct worker *worker)
{
	return worker_pass(worker, patch_burst, true);
}

typedef uint32_t pass_fn(struct worker *worker);

static const struct way {
	const char *name;
	pass_fn *pass;
	unsigned ports;
	pass_fn *receive; /* by another worker, to which the last port hands over; or NULL */
	bool bridge;
	bool generates; /* or else receives */
	bool sends;
	bool unknown;	     /* what it receives is for a station that is not known */
	bool tagged;	     /* what it receives has a tag */
	const char *vlan[2]; /* vlan-mode of each port; NULL: tags are data */
} ways[] = {
	{ "rxdrop", measured_pass_rxdrop, 1 },
	{ "txpush", measured_pass_txpush, 1, .generates = true, .sends = true },
	{ "l2fwd", measured_pass_l2fwd, 1, .sends = true },
	{ "patch", measured_pass_patch, 2, .sends = true },
	{ "bridge", measured_pass_bridge, 2, .bridge = true, .sends = true },
	{ "flood", measured_pass_bridge, 3, .bridge = true, .sends = true, .unknown = true },
	{ "access", measured_pass_vlans, 2, .bridge = true, .sends = true,
	  .vlan = { "access 10", "access 10" } },
	{ "trunk", measured_pass_vlans, 2, .bridge = true, .sends = true, .tagged = true,
	  .vlan = { "trunk 10", "trunk 10" } },
	{ "push", measured_pass_vlans, 2, .bridge = true, .sends = true,
	  .vlan = { "access 10", "trunk 10" } },
	{ "pop", measured_pass_vlans, 2, .bridge = true, .sends = true, .tagged = true,
	  .vlan = { "trunk 10", "access 10" } },
	{ "hand-over", measured_pass_sender, 2, measured_pass_receiver, .sends = true },
};

/* A worker with its memory, and its ports on the fake kernel. */
struct bench {
	struct umem umem;
	struct worker *worker;
	struct bridge *bridge;
	struct fake_socket *socket[PORTS_MAX]; /* NULL: a port without a queue */
};

static int job_new(struct tx_job **job, unsigned ports, uint32_t frames)
{
	const unsigned size = FRAME_BYTES + ETHER_FCS_LEN;
	const struct conf_forward conf = {
		.frame_size = 2048,
		.tx = { .size_min = size, .size_max = size, .clock = CLOCK_MONOTONIC },
	};
	int err = tx_job_new(job, &conf, ports, frames);

	for (unsigned i = 0; !err && i < ports; i++)
		err = tx_job_build(*job, i);
	return err;
}

static int make_bridge(struct bench *bench, const struct way *way)
{
	struct bridge_opts opts = { .ports = way->ports, .workers = 1, .stations_max = 1024 };
	struct vlan_mode mode[PORTS_MAX];
	struct vlan_wrong wrong;
	int err = 0;

	for (unsigned i = 0; i < way->ports; i++) {
		opts.port[i].learn_limit = UINT32_MAX;
		if (!way->vlan[0])
			continue;
		if (!err)
			err = vlan_mode_parse(way->vlan[i], &mode[i], &wrong);
		opts.port[i].vlan = &mode[i];
	}
	if (!err)
		err = bridge_new(&bench->bridge, &opts);
	if (err)
		return err;
	bench->worker->bridge = bench->bridge;
	bench->worker->fdb_view = fdb_view(bench->bridge->fdb, 0);
	return 0;
}

/* The first `sockets` ports have a queue. */
static int bench_open(struct bench *bench, const struct way *way, unsigned sockets, unsigned batch)
{
	struct umem_opts umem_opts = { .frames = 5 * RING * way->ports,
				       .frame_size = 2048,
				       .ring_size = RING,
				       .fill_size = 2 * RING };
	struct worker_opts opts = { .batch = batch, .done_fd = -1 };
	int err;

	err = umem_open(&bench->umem, &umem_opts);
	if (!err && way->generates)
		err = job_new(&opts.tx_job, way->ports, umem_opts.frames);
	if (!err)
		err = worker_new(&bench->worker, &opts, &bench->umem);
	if (!err && way->bridge)
		err = make_bridge(bench, way);
	for (unsigned i = 0; !err && i < way->ports; i++) {
		bool bound = i < sockets;

		if (bound)
			bench->socket[i] = fake_open(&bench->umem, RING, 2 * RING, 0);
		worker_plug(bench->worker, bench->worker->queues,
			    bound ? &bench->socket[i]->xsk : NULL, bound);
	}
	if (!err)
		bench->worker->receives = !way->generates; /* as worker_start() has it */
	return err;
}

static void bench_close(struct bench *bench)
{
	for (unsigned i = 0; i < PORTS_MAX; i++) {
		if (bench->socket[i])
			fake_close(bench->socket[i]);
	}
	worker_free(bench->worker);
	bridge_free(bench->bridge);
	umem_close(&bench->umem);
}

/* From one station to another; with the tag of VLAN 10 or without. */
static bool receive(struct fake_socket *socket, uint8_t from, uint8_t to, bool tagged)
{
	uint8_t bytes[FRAME_BYTES] = { 2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from };

	(void)wire_put_16(wire_put_16(bytes + VLAN_TAG_AT, tagged ? VLAN_TPID : 0x0800),
			  tagged ? 10 : 0);
	return fake_receive(socket, bytes, sizeof(bytes));
}

/* A bridge hears of station 1. Not counted. */
static __attribute__((noinline)) int introduce(struct bench *bench, const struct way *way)
{
	if (!receive(bench->socket[1], 1, 2, way->vlan[1] && way->vlan[1][0] == 't'))
		return -ENOBUFS;
	if (way->vlan[0])
		worker_pass(bench->worker, bridge_vlan_burst, true);
	else
		worker_pass(bench->worker, bridge_burst, true);
	return 0;
}

/* Of two workers the second takes what is handed over. */
static int open_both(struct bench *first, struct bench *second, const struct way *way,
		     unsigned batch)
{
	int err = bench_open(first, way, way->ports - (way->receive ? 1 : 0), batch);

	if (!err && way->receive)
		err = bench_open(second, way, way->ports, batch);
	if (!err && way->receive)
		err = worker_connect(first->worker, way->ports - 1, second->worker, RING);
	if (!err && way->bridge)
		err = introduce(first, way);
	return err;
}

/* Returns how many frames were moved, 0 if not all that should. */
static unsigned measure(const struct way *way, unsigned frames, unsigned batch)
{
	struct bench first = { 0 }, second = { 0 };
	const struct fake_socket *last;
	unsigned done = 0;
	uint64_t sent;
	int err = open_both(&first, &second, way, batch);

	last = (way->receive ? &second : &first)->socket[way->ports - 1];
	sent = err ? 0 : last->sent; /* what the bridge has heard of is flooded */
	while (!err && done < frames) {
		for (unsigned i = 0; i < batch; i++, done++) {
			if (!way->generates &&
			    !receive(first.socket[0], 2, way->unknown ? 3 : 1, way->tagged))
				err = -ENOBUFS;
		}
		way->pass(first.worker);
		if (way->receive)
			way->receive(second.worker);
	}
	if (!err && way->sends && last->sent - sent != done)
		err = -EIO;
	bench_close(&first);
	bench_close(&second);
	return err ? 0 : done;
}

int main(int argc, char **argv)
{
	unsigned frames = argc == 4 ? (unsigned)atoi(argv[2]) : 0; /* NOLINT(cert-err34-c) */
	unsigned batch = argc == 4 ? (unsigned)atoi(argv[3]) : 0;  /* NOLINT(cert-err34-c) */

	if (argc == 2 && !strcmp(argv[1], "compiler")) {
		struct utsname host;

		return uname(&host) || printf(COMPILER " %s\n", host.machine) < 0;
	}
	for (unsigned i = 0; frames && batch && i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (!strcmp(argv[1], ways[i].name)) {
			unsigned moved = measure(&ways[i], frames, batch);

			printf("%u\n", moved);
			return moved ? EXIT_SUCCESS : EXIT_FAILURE;
		}
	}
	fputs("usage: burst_cost MODE FRAMES BATCH, or burst_cost compiler; MODE:", stderr);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		fprintf(stderr, " %s", ways[i].name);
	fputc('\n', stderr);
	return 2;
}
