/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A worker of ours on a real device that now and then puts a descriptor on its TX ring that no kernel
 * accepts: what becomes of those is this kernel's business, and the accounting must follow it.
 *
 *	refused INTERFACE FRAMES EVERY
 *
 * Sends FRAMES frames out of queue 0, with a bad descriptor before every EVERYth. Prints one JSON object
 * when all is quiet, and one after everything is closed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "fwd/worker_loop.h"
#include "xdp/netdev.h"
#include "xdp/opener_acts.h"

#define RING	 256
#define FRAMES	 (5 * RING)
#define BATCH	 32
#define FRAME	 2048
#define QUIET_MS 300

static unsigned every;
static uint64_t put; /* good ones; the worker's thread */

/* Of no length, beyond its chunk, longer than one, with an option that nobody knows, beyond the UMEM: in
 * turn. The last is not the frame that the ledger has. */
static struct xdp_desc bad_desc(uint64_t addr, uint64_t number, uint64_t end)
{
	switch (number % 5) {
	case 0:
		return (struct xdp_desc){ .addr = addr };
	case 1:
		return (struct xdp_desc){ .addr = addr + FRAME - 10, .len = 60 };
	case 2:
		return (struct xdp_desc){ .addr = addr, .len = FRAME + 1 };
	case 3:
		return (struct xdp_desc){ .addr = addr, .len = 60, .options = 1U << 31 };
	default:
		return (struct xdp_desc){ .addr = end + FRAME, .len = 60 };
	}
}

static uint64_t take(struct worker *worker, const struct sends *sends)
{
	uint32_t frame = pool_get(&worker->pool);

	chunks_take(&sends->chunks, frame);
	return chunks_addr(&sends->chunks, frame);
}

static uint32_t refused_burst(struct worker *worker, struct queue *queue, bool plain)
{
	struct sends sends = sends_begin(worker, queue, plain);
	uint32_t room = queue_tx_room(queue), count = 0;

	while (queue->tx_left && count < BATCH && count + 2 <= room && worker->pool.count >= 2) {
		uint64_t addr = take(worker, &sends);

		if (put++ % every == 0) {
			uint64_t number = put / every;
			struct xdp_desc bad = bad_desc(addr, number, sends.chunks.bytes);

			/* The ledger is told of the frame that is meant, whatever the entry says. */
			sends_put(&sends, (struct xdp_desc){ .addr = addr, .len = 60 });
			*ring_desc(&queue->tx, sends.tx.index - 1) = bad;
			sends.bytes -= 60;
			addr = take(worker, &sends);
			count++;
		}
		memset(sends.chunks.frames + addr, 2, 60);
		sends_put(&sends, (struct xdp_desc){ .addr = addr, .len = 60 });
		queue->tx_left--;
		count++;
	}
	sends_end(queue, &sends);
	return count;
}

static void run(struct worker *worker)
{
	worker_loop(worker, refused_burst);
}

static void print(const struct worker_counts *counts, uint64_t refused)
{
	const struct queue_counts *queue = &counts->queue[0];

	printf("{\"tx_packets\": %llu, \"tx_pending\": %llu, \"tx_invalid_descs\": %llu, "
	       "\"lost\": %llu, \"kernel\": %lld, \"reclaimed\": %llu, \"bad\": %llu, "
	       "\"violations\": %llu, \"balance\": %lld, \"pool\": %llu, \"total\": %llu}\n",
	       (unsigned long long)queue->tx_packets, (unsigned long long)queue->tx_pending,
	       (unsigned long long)refused, (unsigned long long)worker_counts_lost(counts),
	       (long long)worker_counts_kernel(counts), (unsigned long long)counts->reclaimed,
	       (unsigned long long)queue->drops[DROP_BAD_DESCRIPTOR],
	       (unsigned long long)queue->drops[DROP_RING_VIOLATION],
	       (long long)worker_counts_balance(counts), (unsigned long long)counts->pool,
	       (unsigned long long)counts->total);
	fflush(stdout);
}

/* Tells the worker what the kernel refused, as the daemon does, until nothing changes any more. */
static int watch(struct worker *worker, const struct xsk *xsk, struct worker_counts *counts,
		 struct xsk_stats *stats)
{
	uint64_t last = 0, since_ns = clock_now_ns();

	while (clock_now_ns() - since_ns < QUIET_MS * NSEC_PER_MSEC) {
		uint64_t now;

		if (xsk_stats(xsk, stats))
			return EXIT_FAILURE;
		worker_refused(worker, 0, stats->tx_invalid_descs);
		worker_ask(worker);
		if (worker_read(worker, counts, clock_now_ns() + NSEC_PER_SEC) == -EBUSY)
			return EXIT_FAILURE;
		now = counts->queue[0].tx_packets + counts->queue[0].lost;
		if (now != last)
			since_ns = clock_now_ns();
		last = now;
		usleep(10000);
	}
	return EXIT_SUCCESS;
}

static int forward(const struct netdev *netdev, uint64_t frames)
{
	struct umem_opts umem_opts = { .frames = FRAMES,
				       .frame_size = FRAME,
				       .ring_size = RING,
				       .fill_size = 2 * RING,
				       .numa_node = -1 };
	struct worker_opts opts = {
		.batch = BATCH, .wait = CONF_WAIT_POLL, .done_fd = -1, .retries = 3
	};
	struct xsk_bind_opts bind_opts = { .ifindex = netdev->ifindex, .shared_fd = -1 };
	struct worker_counts counts = { 0 };
	struct xsk_stats stats = { 0 };
	struct worker *worker;
	struct umem_view view;
	struct queue *queue;
	struct umem umem;
	struct xsk xsk;
	int fd, status;

	if (umem_open(&umem, &umem_opts) || worker_new(&worker, &opts, &umem))
		return EXIT_FAILURE;
	fd = umem_view_open(&view, umem.fd);
	if (!fd)
		fd = act_socket(netdev->name, 0, &view);
	umem_view_close(&view);
	if (fd < 0 || xsk_map(&xsk, fd, RING, 2 * RING))
		return EXIT_FAILURE;
	queue = worker_plug(worker, worker->queues, &xsk, true);
	if (xsk_bind(xsk.fd, &bind_opts) || xsk_read_back(&xsk, &bind_opts)) {
		perror("bind");
		return EXIT_FAILURE;
	}
	worker_bound(queue, &xsk);
	queue->tx_left = frames;
	if (worker_start(worker, run, false))
		return EXIT_FAILURE;
	status = watch(worker, &xsk, &counts, &stats);
	queue_counts_refused(&counts.queue[0]);
	print(&counts, stats.tx_invalid_descs);
	worker_stop(worker);
	worker_join(worker);
	worker_close_port(worker, 0);
	worker_count(worker, &counts);
	queue_counts_refused(&counts.queue[0]);
	print(&counts, stats.tx_invalid_descs);
	if (worker_audit(worker)) {
		fputs("frames are not where the ledger has them\n", stderr);
		status = EXIT_FAILURE;
	}
	xsk_close(&xsk);
	worker_free(worker);
	umem_close(&umem);
	return status;
}

int main(int argc, char **argv)
{
	struct netdev netdev;

	if (argc != 4 || atoi(argv[3]) < 1) { /* NOLINT(cert-err34-c): a test's own number */
		fputs("usage: refused INTERFACE FRAMES EVERY\n", stderr);
		return 2;
	}
	every = (unsigned)atoi(argv[3]); /* NOLINT(cert-err34-c) */
	if (netdev_query(argv[1], &netdev)) {
		fprintf(stderr, "%s: no such interface\n", argv[1]);
		return EXIT_FAILURE;
	}
	return forward(&netdev, strtoull(argv[2], NULL, 10));
}
