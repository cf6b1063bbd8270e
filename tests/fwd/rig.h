/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A worker with its ports on the fake kernel, for the tests of fwd/. Include after the .c files
 * under test. Every test ends with rig_close(), which audits the frames.
 */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "fwd/fake_kernel.h"
#include "fwd/worker_loop.h"
#include "unit.h"

#define RIG_RING   64
#define RIG_BATCH  16
#define RIG_FRAMES (5 * RIG_RING)

/* What a fill ring is stocked with. */
#define RIG_STOCK (RIG_RING + RIG_BATCH)

/* How its memory is laid out: every test of a mode runs over all of them. */
static struct rig_shape {
	const char *name;
	bool frags;	     /* the general loop, over chunks like those of the plain one */
	uint32_t frame_size; /* 0: 2048; not a power of two: unaligned */
	bool slice;	     /* the middle third of a UMEM */
} rig_shape = { "plain", false, 0, false };

struct rig {
	struct umem umem;
	struct worker *worker;
	unsigned ports;
	struct fake_socket *socket[3];
};

/* A worker of `ports` ports whose rings start at index `start`, for a mode that generates by `tx`. */
static inline struct rig *rig_open_for(unsigned ports, uint64_t start,
				       const struct conf_forward *tx)
{
	uint32_t frame_size = rig_shape.frame_size ? rig_shape.frame_size : 2048;
	struct umem_opts umem_opts = { .frames = RIG_FRAMES * ports * (rig_shape.slice ? 3 : 1),
				       .frame_size = frame_size,
				       .unaligned = frame_size & (frame_size - 1),
				       .ring_size = RIG_RING,
				       .fill_size = 2 * RIG_RING };
	struct worker_opts opts = { .batch = RIG_BATCH,
				    .done_fd = -1,
				    .retries = 3,
				    .frags = rig_shape.frags,
				    .first_frame = rig_shape.slice ? RIG_FRAMES * ports : 0,
				    .frames = RIG_FRAMES * ports };
	struct rig *rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	rig->ports = ports;
	if (tx) {
		assert_int_equal(tx_job_new(&opts.tx_job, tx, ports, RIG_FRAMES * ports), 0);
		for (unsigned i = 0; i < ports; i++) {
			opts.tx_job->port[i].opts.src[5] = (uint8_t)(i + 1);
			opts.tx_job->port[i].pacer =
				(struct pacer){ .pps = tx->tx.pps, .queues = ports, .phase = i };
			assert_int_equal(tx_job_build(opts.tx_job, i), 0);
		}
	}
	assert_int_equal(umem_open(&rig->umem, &umem_opts), 0);
	assert_int_equal(worker_new(&rig->worker, &opts, &rig->umem), 0);
	for (unsigned i = 0; i < ports; i++) {
		rig->socket[i] = fake_open(&rig->umem, RIG_RING, 2 * RIG_RING, start);
		worker_plug(rig->worker, rig->worker->queues, &rig->socket[i]->xsk, true);
	}
	return rig;
}

static inline struct rig *rig_open_at(unsigned ports, uint64_t start)
{
	return rig_open_for(ports, start, NULL);
}

static inline struct rig *rig_open(unsigned ports)
{
	return rig_open_at(ports, 0);
}

static inline void rig_balance(struct rig *rig)
{
	struct worker_counts counts;

	worker_count(rig->worker, &counts);
	assert_int_equal(worker_counts_balance(&counts), 0);
	assert_int_equal(counts.total, RIG_FRAMES * rig->ports);
}

/* Closes every port by the ledger and audits: each frame exactly once in the pool. */
static inline void rig_close(struct rig *rig)
{
	struct worker_counts counts;

	rig_balance(rig);
	for (unsigned i = 0; i < rig->ports; i++)
		worker_close_port(rig->worker, i);
	worker_count(rig->worker, &counts);
	assert_int_equal(worker_counts_balance(&counts), 0);
	assert_int_equal(counts.pool, counts.total);
	assert_int_equal(worker_audit(rig->worker), 0);
	for (unsigned i = 0; i < rig->ports; i++)
		fake_close(rig->socket[i]);
	worker_free(rig->worker);
	umem_close(&rig->umem);
	fake_on_poll(NULL, NULL);
	free(rig);
}

/* A frame whose bytes tell its number. */
static inline void rig_frame(uint8_t *bytes, uint32_t len, unsigned number)
{
	for (uint32_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(number * 7 + i);
}

/* The frame that an address lies in. */
static inline uint32_t frame_of(const struct rig *rig, uint64_t addr)
{
	return (uint32_t)((addr & XSK_UNALIGNED_BUF_ADDR_MASK) / rig->umem.header->frame_size);
}

/* Puts `count` frames from the pool on the port's TX ring, of 60, 61, 62 ... bytes. */
static inline void rig_send(struct rig *rig, unsigned port, unsigned count)
{
	struct queue *queue = &rig->worker->queue[port];
	struct sends sends = sends_begin(rig->worker, queue, false);

	for (unsigned i = 0; i < count; i++) {
		uint32_t frame = pool_get(&rig->worker->pool);
		struct xdp_desc desc = { .addr = chunks_addr(&sends.chunks, frame) +
						 XDP_PACKET_HEADROOM,
					 .len = 60 + i };

		chunks_take(&sends.chunks, frame);
		sends_put(&sends, desc);
	}
	sends_end(queue, &sends);
}
