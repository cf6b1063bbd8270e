/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * txpush: send generated frames. A chunk keeps what was written into it while it goes round, so a frame
 * is copied only where the chunk last held another one, or none.
 */
#include <linux/bpf.h>
#include <string.h>

#include "fwd/mode.h"
#include "fwd/worker_loop.h"

/* Packets that may leave now: a batch, what is left, what is due. */
static always_inline uint32_t packets_wanted(const struct worker *worker, const struct queue *queue,
					     uint32_t due)
{
	uint32_t count = worker->batch;

	if (count > queue->tx_left)
		count = (uint32_t)queue->tx_left;
	return count < due ? count : due;
}

static always_inline void packets_taken(struct queue *queue, uint32_t count)
{
	if (queue->tx_left != UINT64_MAX)
		queue->tx_left -= count;
}

/* One size, one chunk a packet, as fast as it goes. */
static always_inline uint32_t push_same(struct worker *worker, struct queue *queue)
{
	struct tx_job *job = worker->tx_job;
	uint32_t count = packets_wanted(worker, queue, UINT32_MAX);
	uint32_t room = queue_tx_room(queue);
	struct sends sends;

	if (count > room)
		count = room;
	if (count > worker->pool.count)
		count = worker->pool.count;
	if (!count)
		return 0;
	sends = sends_begin(worker, queue, true);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t frame = pool_get(&worker->pool);
		uint64_t addr = chunks_addr(&sends.chunks, frame) + XDP_PACKET_HEADROOM;

		chunks_take(&sends.chunks, frame);
		if (unlikely(job->written[frame] != 1U + queue->port))
			tx_job_write(job, (struct tx_piece){ .port = queue->port },
				     sends.chunks.frames + addr, &job->written[frame]);
		sends_put(&sends, (struct xdp_desc){ .addr = addr, .len = job->len[0] });
	}
	packets_taken(queue, count);
	sends_end(queue, &sends);
	return count;
}

/* One packet of `size`, all of whose chunks are there. */
static always_inline void push_packet(struct worker *worker, struct queue *queue,
				      struct sends *sends, uint32_t size, uint32_t pieces)
{
	struct tx_job *job = worker->tx_job;

	for (uint32_t piece = 0; piece < pieces; piece++) {
		uint32_t frame = pool_get(&worker->pool);
		struct xdp_desc desc = {
			.addr = chunks_addr(&sends->chunks, frame) + XDP_PACKET_HEADROOM,
			.options = piece + 1 < pieces ? XDP_PKT_CONTD : 0,
		};

		chunks_take(&sends->chunks, frame);
		desc.len = tx_job_write(job, (struct tx_piece){ queue->port, size, piece },
					sends->chunks.frames + desc.addr,
					&job->written[frame - worker->first_frame]);
		sends_put(sends, desc);
	}
}

/* True for the first queue of a pass that has something left to send: it looks at the clock for all. */
static bool first_of_pass(const struct worker *worker, const struct queue *queue)
{
	for (unsigned i = 0; i < queue->port; i++) {
		if (worker->queue[i].tx_left)
			return false;
	}
	return queue->tx_left;
}

/* Sizes in turn, one or more chunks a packet, when they are due. */
static uint32_t push_varied(struct worker *worker, struct queue *queue)
{
	struct tx_job *job = worker->tx_job;
	struct tx_port *port = &job->port[queue->port];
	uint32_t room = queue_tx_room(queue), count, sent, descs = 0;
	struct sends sends = sends_begin(worker, queue, false);

	if (first_of_pass(worker, queue))
		tx_job_tick(job);
	count = packets_wanted(worker, queue, port->due);
	for (sent = 0; sent < count; sent++) {
		uint32_t size = job->order[port->step];
		uint32_t pieces = (job->len[size] + job->piece_len - 1) / job->piece_len;

		if (pieces > room - descs || pieces > worker->pool.count)
			break;
		push_packet(worker, queue, &sends, size, pieces);
		descs += pieces;
		if (++port->step == job->orders)
			port->step = 0;
	}
	packets_taken(queue, sent);
	port->finished = !queue->tx_left;
	if (port->due != UINT32_MAX)
		port->due -= sent;
	if (job->paced)
		pacer_sent(&port->pacer, sent);
	sends_end(queue, &sends);
	return descs;
}

static always_inline uint32_t txpush_burst(struct worker *worker, struct queue *queue, bool plain)
{
	return plain ? push_same(worker, queue) : push_varied(worker, queue);
}

void mode_txpush_run(struct worker *worker)
{
	worker_loop(worker, txpush_burst);
}
