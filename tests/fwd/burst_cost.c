/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a forwarded frame costs in instructions: passes of one mode over the fake kernel, to be run
 * under valgrind --tool=callgrind --toggle-collect=measured_pass, with the fake system calls toggled
 * off again. Prints how many frames the measured passes moved.
 *
 *	burst_cost rxdrop|l2fwd|patch FRAMES BATCH
 */
#include "../../src/fwd/mode_l2fwd.c"
#include "../../src/fwd/mode_patch.c"
#include "../../src/fwd/mode_rxdrop.c"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fwd/fake_kernel.h"

#define RING 2048

/* Not inlined, so that callgrind finds them by name. */
uint32_t measured_pass_rxdrop(struct worker *worker);
uint32_t measured_pass_l2fwd(struct worker *worker);
uint32_t measured_pass_patch(struct worker *worker);

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

static const struct {
	const char *name;
	uint32_t (*pass)(struct worker *worker);
	unsigned ports;
} modes[] = {
	{ "rxdrop", measured_pass_rxdrop, 1 },
	{ "l2fwd", measured_pass_l2fwd, 1 },
	{ "patch", measured_pass_patch, 2 },
};

static int measure(unsigned mode, unsigned frames, unsigned batch)
{
	struct umem_opts umem_opts = { .frames = 5 * RING * modes[mode].ports,
				       .frame_size = 2048,
				       .ring_size = RING,
				       .fill_size = 2 * RING };
	struct worker_opts opts = { .batch = batch, .done_fd = -1 };
	struct fake_socket *socket[2] = { NULL };
	uint8_t bytes[60] = { 0 };
	struct worker *worker;
	struct umem umem;
	unsigned done = 0;

	if (umem_open(&umem, &umem_opts) || worker_new(&worker, &opts, &umem))
		return EXIT_FAILURE;
	for (unsigned i = 0; i < modes[mode].ports; i++) {
		socket[i] = fake_open(&umem, RING, 2 * RING, 0);
		worker_plug(worker, worker->queues, &socket[i]->xsk, true);
	}
	while (done < frames) {
		for (unsigned i = 0; i < batch; i++, done++) {
			if (!fake_receive(socket[0], bytes, sizeof(bytes)))
				return EXIT_FAILURE;
		}
		modes[mode].pass(worker);
	}
	printf("%u\n", done);
	for (unsigned i = 0; i < modes[mode].ports; i++)
		fake_close(socket[i]);
	worker_free(worker);
	umem_close(&umem);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	unsigned frames = argc == 4 ? (unsigned)atoi(argv[2]) : 0; /* NOLINT(cert-err34-c) */
	unsigned batch = argc == 4 ? (unsigned)atoi(argv[3]) : 0;  /* NOLINT(cert-err34-c) */

	for (unsigned i = 0; frames && batch && i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (!strcmp(argv[1], modes[i].name))
			return measure(i, frames, batch);
	}
	fputs("usage: burst_cost rxdrop|l2fwd|patch FRAMES BATCH\n", stderr);
	return 2;
}
