/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a forwarded frame costs in instructions: passes of one mode over the fake kernel, to be run
 * under valgrind --tool=callgrind with --toggle-collect= each measured_pass_ function that shall
 * count, and the fake system calls toggled off again. Prints how many frames the passes moved.
 *
 *	burst_cost rxdrop|l2fwd|patch|hand-over FRAMES BATCH
 *
 * hand-over is a patch where the worker that receives (sender) has no TX queue and gives its frames
 * to one that has (receiver).
 */
#include "../../src/fwd/mode_l2fwd.c"
#include "../../src/fwd/mode_patch.c"
#include "../../src/fwd/mode_rxdrop.c"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fwd/fake_kernel.h"

#define RING 2048

#define PORTS_MAX 2

/* Not inlined, so that callgrind finds them by name. */
uint32_t measured_pass_rxdrop(struct worker *worker);
uint32_t measured_pass_l2fwd(struct worker *worker);
uint32_t measured_pass_patch(struct worker *worker);
uint32_t measured_pass_sender(struct worker *worker);
uint32_t measured_pass_receiver(struct worker *worker);

__attribute__((noinline)) uint32_t measured_pass_rxdrop(struct worker *worker)
{
	return worker_pass(worker, rxdrop_burst, true);
}

__attribute__((noinline)) uint32_t measured_pass_l2fwd(struct worker *worker)
{
	return worker_pass(worker, l2fwd_burst, true);
}

__attribute__((noinline)) uint32_t measured_pass_patch(struct worker *worker)
{
	return worker_pass(worker, patch_burst, true);
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
} ways[] = {
	{ "rxdrop", measured_pass_rxdrop, 1, NULL },
	{ "l2fwd", measured_pass_l2fwd, 1, NULL },
	{ "patch", measured_pass_patch, 2, NULL },
	{ "hand-over", measured_pass_sender, 2, measured_pass_receiver },
};

/* A worker with its memory, and its ports on the fake kernel. */
struct bench {
	struct umem umem;
	struct worker *worker;
	struct fake_socket *socket[PORTS_MAX]; /* NULL: a port without a queue */
};

static int bench_open(struct bench *bench, unsigned ports, unsigned sockets, unsigned batch)
{
	struct umem_opts umem_opts = { .frames = 5 * RING * ports,
				       .frame_size = 2048,
				       .ring_size = RING,
				       .fill_size = 2 * RING };
	struct worker_opts opts = { .batch = batch, .done_fd = -1 };
	int err;

	err = umem_open(&bench->umem, &umem_opts);
	if (err)
		return err;
	err = worker_new(&bench->worker, &opts, &bench->umem);
	if (err)
		return err;
	for (unsigned i = 0; i < ports; i++) {
		bool bound = i < sockets;

		if (bound)
			bench->socket[i] = fake_open(&bench->umem, RING, 2 * RING, 0);
		worker_plug(bench->worker, bench->worker->queues,
			    bound ? &bench->socket[i]->xsk : NULL, bound);
	}
	return 0;
}

static void bench_close(struct bench *bench)
{
	for (unsigned i = 0; i < PORTS_MAX; i++) {
		if (bench->socket[i])
			fake_close(bench->socket[i]);
	}
	worker_free(bench->worker);
	umem_close(&bench->umem);
}

/* Returns how many frames were moved, 0 if not all that should. */
static unsigned measure(const struct way *way, unsigned frames, unsigned batch)
{
	struct bench first = { 0 }, second = { 0 };
	const struct fake_socket *last;
	uint8_t bytes[60] = { 0 };
	unsigned done = 0;
	int err;

	err = bench_open(&first, way->ports, way->ports - (way->receive ? 1 : 0), batch);
	if (!err && way->receive) {
		err = bench_open(&second, way->ports, way->ports, batch);
		if (!err)
			err = worker_connect(first.worker, way->ports - 1, second.worker, RING);
	}
	while (!err && done < frames) {
		for (unsigned i = 0; i < batch; i++, done++) {
			if (!fake_receive(first.socket[0], bytes, sizeof(bytes)))
				err = -ENOBUFS;
		}
		way->pass(first.worker);
		if (way->receive)
			way->receive(second.worker);
	}
	last = (way->receive ? &second : &first)->socket[way->ports - 1];
	if (!err && way->pass != measured_pass_rxdrop && last->sent != done)
		err = -EIO;
	bench_close(&first);
	bench_close(&second);
	return err ? 0 : done;
}

int main(int argc, char **argv)
{
	unsigned frames = argc == 4 ? (unsigned)atoi(argv[2]) : 0; /* NOLINT(cert-err34-c) */
	unsigned batch = argc == 4 ? (unsigned)atoi(argv[3]) : 0;  /* NOLINT(cert-err34-c) */

	for (unsigned i = 0; frames && batch && i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (!strcmp(argv[1], ways[i].name)) {
			unsigned moved = measure(&ways[i], frames, batch);

			printf("%u\n", moved);
			return moved ? EXIT_SUCCESS : EXIT_FAILURE;
		}
	}
	fputs("usage: burst_cost rxdrop|l2fwd|patch|hand-over FRAMES BATCH\n", stderr);
	return 2;
}
