/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/fwd/worker.c"

#include "fwd/mode.h"
#include "fwd/rig.h"

/* A mode that only returns what it receives, for the steps around a burst. */
static always_inline uint32_t return_burst(struct worker *worker, struct queue *queue, bool plain)
{
	uint32_t count = ring_ready(&queue->rx, 1);
	struct ring_cursor rx = ring_peek(&queue->rx);

	(void)plain;
	if (count > worker->batch)
		count = worker->batch;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t addr = cursor_desc(&rx)->addr;

		if (queue_believes(queue, &worker->chunks, addr, LEDGER_FILL))
			worker_return(worker, queue, addr);
	}
	ring_release(&queue->rx, &rx);
	return count;
}

static void a_new_worker_has_full_fill_rings_and_the_rest_in_its_pool(void **state)
{
	struct rig *rig = rig_open(2);

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(rig->socket[i]->producer[XSK_RING_FILL], RIG_STOCK);
	assert_int_equal(rig->worker->pool.count, 2 * RIG_FRAMES - 2 * RIG_STOCK);
	rig_close(rig);
}

static void the_ledger_is_right_before_the_kernel_can_see_an_entry(void **state)
{
	struct rig *rig = rig_open(1);
	struct queue *queue = &rig->worker->queue[0];
	const uint64_t *fill = rig->socket[0]->entries[XSK_RING_FILL];

	(void)state;
	for (uint64_t i = 0; i < RIG_STOCK; i++) {
		ledger_entry entry = rig->umem.ledger[frame_of(rig, fill[i])];

		assert_int_equal(ledger_state(entry), LEDGER_FILL);
		assert_int_equal(ledger_port(entry), 0);
		assert_int_equal(ledger_index(entry), i);
	}
	rig_send(rig, 0, 1);
	assert_true(rig->umem.ledger[frame_of(rig, ring_desc(&queue->tx, 0)->addr)] ==
		    ledger_pack(LEDGER_TX, 0, 0));
	/* A burst that took an entry and was killed before ring_submit(): the ledger tells. */
	rig_send(rig, 0, 1);
	assert_true(ledger_index(rig->umem.ledger[frame_of(rig, ring_desc(&queue->tx, 1)->addr)]) ==
		    1);
	rig_close(rig);
}

static void completions_go_straight_back_to_fill(void **state)
{
	struct rig *rig = rig_open(1);
	struct queue *queue = &rig->worker->queue[0];
	uint32_t pool = rig->worker->pool.count;
	struct ring_cursor rx;
	struct sends sends;
	uint8_t bytes[60] = { 0 };

	(void)state;
	for (unsigned i = 0; i < RIG_BATCH; i++)
		fake_receive(rig->socket[0], bytes, sizeof(bytes));
	/* Forward them by hand, without the refill step, so that fill has room. */
	assert_int_equal(ring_ready(&queue->rx, RIG_BATCH), RIG_BATCH);
	rx = ring_peek(&queue->rx);
	sends = sends_begin(rig->worker, queue, true);
	for (unsigned i = 0; i < RIG_BATCH; i++) {
		struct xdp_desc desc = *cursor_desc(&rx);

		assert_true(queue_believes(queue, &sends.chunks, desc.addr, LEDGER_FILL));
		sends_put(&sends, desc);
	}
	sends_end(queue, &sends);
	ring_release(&queue->rx, &rx);
	queue_kick_tx(queue);
	assert_int_equal(worker_reap(rig->worker, queue, true), RIG_BATCH);
	assert_int_equal(rig->worker->pool.count, pool);
	assert_int_equal(queue->fill.own, RIG_STOCK + RIG_BATCH);
	ring_submit(&queue->fill);
	rig_close(rig);
}

static void a_completed_address_is_checked_before_the_ledger(void **state)
{
	static const uint64_t bad[] = { RIG_FRAMES * 2048ULL, UINT64_MAX, 1ULL << 48 };
	struct rig *rig = rig_open(1);
	struct queue *queue = &rig->worker->queue[0];

	(void)state;
	rig->socket[0]->hold_completions = true;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		rig_send(rig, 0, 1);
		queue_kick_tx(queue);
		fake_complete_address(rig->socket[0], bad[i]);
		assert_int_equal(worker_reap(rig->worker, queue, true), 1);
		assert_int_equal(queue->lost, i + 1);
		rig_balance(rig);
	}
	rig_close(rig);
}

static void one_pass_reaps_at_most_two_batches(void **state)
{
	struct rig *rig = rig_open(1);
	struct queue *queue = &rig->worker->queue[0];

	(void)state;
	rig_send(rig, 0, RIG_RING);
	queue_kick_tx(queue);
	assert_int_equal(worker_reap(rig->worker, queue, true), 2 * RIG_BATCH);
	assert_int_equal(worker_reap(rig->worker, queue, true), 2 * RIG_BATCH);
	assert_int_equal(worker_reap(rig->worker, queue, true), 0);
	ring_submit(&queue->fill);
	rig_close(rig);
}

static void frames_left_anywhere_come_back_at_close(void **state)
{
	struct rig *rig = rig_open(2);
	uint8_t bytes[60] = { 0 };
	struct worker_counts counts;

	(void)state;
	rig->socket[1]->hold_completions = true;
	for (unsigned i = 0; i < 5; i++)
		fake_receive(rig->socket[0], bytes, sizeof(bytes)); /* left on RX */
	rig_send(rig, 1, 7);
	queue_kick_tx(&rig->worker->queue[1]); /* in the kernel */
	rig_send(rig, 1, 3);		       /* left on TX */
	rig_send(rig, 0, 2);
	queue_kick_tx(&rig->worker->queue[0]); /* left on completion */
	worker_close_port(rig->worker, 1);
	worker_count(rig->worker, &counts);
	assert_int_equal(worker_counts_balance(&counts), 0);
	/* Port 1 gives back exactly its own. */
	assert_int_equal(counts.reclaimed, RIG_STOCK + 10);
	assert_int_equal(counts.queue[1].tx_pending, 10);
	worker_close_port(rig->worker, 0);
	worker_count(rig->worker, &counts);
	assert_int_equal(counts.queue[0].drops[DROP_STOPPING], 5);
	assert_int_equal(counts.queue[0].rx_packets, 5);
	assert_int_equal(counts.queue[0].rx_bytes, 5 * 60);
	assert_int_equal(counts.queue[0].tx_packets, 2);
	assert_int_equal(counts.reclaimed, 2 * RIG_STOCK + 10 + 2);
	rig_close(rig);
}

static void a_frame_in_two_places_fails_the_audit(void **state)
{
	struct rig *rig = rig_open(1);
	uint32_t saved;

	(void)state;
	worker_close_port(rig->worker, 0);
	assert_int_equal(worker_audit(rig->worker), 0);
	saved = rig->worker->pool.frame[3];
	rig->worker->pool.frame[3] = rig->worker->pool.frame[4];
	assert_int_equal(worker_audit(rig->worker), 2); /* one twice, one nowhere */
	rig->worker->pool.frame[3] = saved;
	rig->umem.ledger[7] = ledger_pack(LEDGER_FILL, 0, 1);
	assert_int_equal(worker_audit(rig->worker), 1);
	rig->umem.ledger[7] = ledger_pack(LEDGER_POOL, 0, 0);
	rig_close(rig);
}

static void a_frame_that_is_forgotten_fails_the_audit_though_the_ledger_finds_it(void **state)
{
	struct rig *rig = rig_open(1);
	struct queue *queue = &rig->worker->queue[0];
	uint8_t bytes[60] = { 0 };
	struct worker_counts counts;
	struct ring_cursor rx;

	(void)state;
	fake_receive(rig->socket[0], bytes, sizeof(bytes));
	assert_int_equal(ring_ready(&queue->rx, 1), 1);
	rx = ring_peek(&queue->rx);
	(void)cursor_desc(&rx); /* and given to nobody */
	ring_release(&queue->rx, &rx);
	worker_close_port(rig->worker, 0);
	worker_count(rig->worker, &counts);
	assert_int_equal(counts.pool, counts.total);
	assert_int_equal(worker_audit(rig->worker), 1);
	rig->worker->unbalanced = 0;
	rig_close(rig);
}

static void a_leaked_frame_shows_in_the_balance(void **state)
{
	struct rig *rig = rig_open(1);
	struct worker_counts counts;
	uint32_t frame = pool_get(&rig->worker->pool);

	(void)state;
	worker_count(rig->worker, &counts);
	assert_int_equal(worker_counts_balance(&counts), 1);
	pool_put(&rig->worker->pool, frame);
	rig_close(rig);
}

static void a_refused_bind_leaves_no_trace(void **state)
{
	struct rig *rig = rig_open(1);
	struct fake_socket *refused = fake_open(&rig->umem, RIG_RING, 2 * RIG_RING, 0);
	struct queue gone;

	(void)state;
	worker_plug(rig->worker, rig->worker->queues, &refused->xsk, true);
	worker_unplug(rig->worker, 1, &gone);
	assert_int_equal(worker_reclaim(rig->worker, 1), RIG_STOCK);
	fake_close(refused);
	/* What is left of it neither receives nor sends, and keeps nobody from sleeping. */
	assert_int_equal(queue_tx_room(&rig->worker->queue[1]), 0);
	assert_int_equal(queue_tx_pending(&rig->worker->queue[1]), 0);
	assert_int_equal(queue_short(&rig->worker->queue[1]), 0);
	assert_int_equal(worker_pass(rig->worker, return_burst, false), 0);
	assert_int_equal(wanted_events(rig->worker, &rig->worker->queue[1]), POLLIN);
	rig_close(rig);
}

/* A device that goes takes with it what was still to leave; the port's counts go on with the next socket. */
static void a_port_that_lost_its_device_keeps_its_counts(void **state)
{
	struct rig *rig = rig_open(2);
	struct worker *worker = rig->worker;
	struct worker_counts counts;
	uint8_t bytes[60] = { 0 };

	(void)state;
	worker->queue[1].tx_left = 1000;
	for (unsigned round = 1; round <= 3; round++) {
		for (unsigned i = 0; i < 5; i++)
			fake_receive(rig->socket[1], bytes, sizeof(bytes));
		rig_send(rig, 1, 4);
		queue_kick_tx(&worker->queue[1]); /* completed */
		rig_send(rig, 1, 3);		  /* and these are left on TX */
		worker_refused(worker, 1, 0);
		worker_lose(worker, 1);
		assert_int_equal(worker_reclaim(worker, 1), RIG_STOCK + 7);
		fake_close(rig->socket[1]);
		rig_balance(rig);
		worker_count(worker, &counts);
		assert_int_equal(counts.queue[1].rx_packets, 5 * round);
		assert_int_equal(counts.queue[1].rx_bytes, 5 * 60 * round);
		assert_int_equal(counts.queue[1].drops[DROP_STOPPING], 5 * round);
		assert_int_equal(counts.queue[1].tx_packets, 4 * round);
		assert_int_equal(counts.queue[1].tx_pending, 0);
		assert_int_equal(counts.queue[1].drops[DROP_LINK_DOWN], 4 * round - 1);
		assert_int_equal(worker->queue[1].tx_left, 1000);
		/* What is to leave there is dropped, and nobody waits for it. */
		assert_true(worker->queue[1].down);
		assert_int_equal(queue_tx_room(&worker->queue[1]), 0);
		assert_int_equal(wanted_events(worker, &worker->queue[1]), POLLIN);
		worker->queue[1].drops[DROP_LINK_DOWN]++; /* counted meanwhile */
		rig->socket[1] = fake_open(&rig->umem, RIG_RING, 2 * RIG_RING, 0);
		worker_plug(worker, 1, &rig->socket[1]->xsk, true);
		assert_int_equal(worker->queue[1].tx_left, 1000);
		assert_false(worker->queue[1].down);
		rig_balance(rig);
	}
	worker_count(worker, &counts);
	assert_int_equal(counts.queue[1].rx_packets, 15);
	assert_int_equal(counts.queue[1].drops[DROP_LINK_DOWN], 12);
	rig_close(rig);
}

static void a_refused_frame_is_not_sent_by_a_device_that_goes(void **state)
{
	struct rig *rig = rig_open(2);
	struct worker_counts counts;

	(void)state;
	rig_send(rig, 1, 4);
	queue_kick_tx(&rig->worker->queue[1]);
	worker_refused(rig->worker, 1, 1); /* of the four, and completed all the same */
	worker_lose(rig->worker, 1);
	(void)worker_reclaim(rig->worker, 1);
	worker_count(rig->worker, &counts);
	queue_counts_refused(&counts.queue[1]);
	assert_int_equal(counts.queue[1].tx_packets, 3);
	assert_int_equal(rig->worker->refused_of[1], 0);
	rig_close(rig);
}

static void a_port_whose_device_is_awaited_drops(void **state)
{
	struct rig *rig = rig_open(1);
	struct worker *worker = rig->worker;

	(void)state;
	worker_plug_absent(worker, 1);
	assert_int_equal(worker->queues, 2);
	assert_true(worker->queue[1].down);
	assert_true(worker->queue[1].tx_left == UINT64_MAX);
	rig->socket[1] = fake_open(&rig->umem, RIG_RING, 2 * RIG_RING, 0);
	worker_plug(worker, 1, &rig->socket[1]->xsk, true);
	rig_balance(rig);
	assert_false(worker->queue[1].down);
	worker_close_port(worker, 1);
	fake_close(rig->socket[1]);
	rig_close(rig);
}

/* --- waiting --- */

static uint64_t soon(void)
{
	return clock_now_ns() + WORKER_ANSWER_MS * NSEC_PER_MSEC;
}

struct slept {
	unsigned calls;
	int timeout_ms;
	short events;
};

static int note_sleep(struct pollfd *fds, unsigned long count, int timeout_ms, void *context)
{
	struct slept *slept = context;

	slept->calls++;
	slept->timeout_ms = timeout_ms;
	slept->events = fds[count - 1].events;
	assert_int_equal(fds[0].events, POLLIN);
	return 0;
}

static struct slept sleep_once(struct rig *rig)
{
	struct slept slept = { 0 };

	fake_on_poll(note_sleep, &slept);
	worker_sleep(rig->worker, WORKER_SLEEP_MS);
	assert_int_equal(slept.calls, 1);
	return slept;
}

static void an_idle_worker_sleeps_long_and_asks_for_input_only(void **state)
{
	struct rig *rig = rig_open(1);
	struct slept slept = sleep_once(rig);

	(void)state;
	assert_int_equal(slept.timeout_ms, 100);
	assert_int_equal(slept.events, POLLIN);
	rig_close(rig);
}

static void pollout_is_asked_for_only_while_tx_is_blocked(void **state)
{
	struct rig *rig = rig_open(1);
	struct queue *queue = &rig->worker->queue[0];
	struct slept slept;

	(void)state;
	/* A few frames that the kernel did not take: a nap, for only a call moves them. */
	rig->socket[0]->fail_with = EAGAIN;
	rig->socket[0]->fails = UINT32_MAX;
	rig_send(rig, 0, 3);
	queue_kick_tx(queue);
	slept = sleep_once(rig);
	assert_int_equal(slept.events, POLLIN);
	assert_int_equal(slept.timeout_ms, WORKER_NAP_MS);
	/* No room for a batch: the kernel tells when there is. */
	rig_send(rig, 0, RIG_RING - 3);
	queue_kick_tx(queue);
	slept = sleep_once(rig);
	assert_int_equal(slept.events, POLLIN | POLLOUT);
	assert_int_equal(slept.timeout_ms, WORKER_SLEEP_MS);
	/* Still no room for a batch, but the kernel would say at once that there is: a nap. */
	store_relaxed(queue->tx.consumer, RIG_RING / 2);
	slept = sleep_once(rig);
	assert_int_equal(slept.events, POLLIN);
	assert_int_equal(slept.timeout_ms, WORKER_NAP_MS);
	store_relaxed(queue->tx.consumer, 0);
	/* RX held back: frames that wait there must not end the sleep at once. */
	queue->held = true;
	slept = sleep_once(rig);
	assert_int_equal(slept.events, POLLOUT);
	/* The device is down: no event will come, and no hurry. */
	queue->held = false;
	rig->socket[0]->fail_with = ENETDOWN;
	queue_kick_tx(queue);
	slept = sleep_once(rig);
	assert_int_equal(slept.events, POLLIN);
	assert_int_equal(slept.timeout_ms, WORKER_SLEEP_MS);
	rig_close(rig);
}

static void completions_that_hold_everything_up_are_napped_for(void **state)
{
	struct rig *rig = rig_open(1);
	struct slept slept;

	(void)state;
	rig->socket[0]->hold_completions = true;
	rig_send(rig, 0, RIG_RING);
	queue_kick_tx(&rig->worker->queue[0]);
	slept = sleep_once(rig);
	assert_int_equal(slept.events,
			 POLLIN); /* the ring is empty: POLLOUT would be true at once */
	assert_int_equal(slept.timeout_ms, WORKER_NAP_MS);
	rig_close(rig);
}

static void a_sleeping_worker_has_published_what_it_knows(void **state)
{
	struct rig *rig = rig_open(1);
	struct worker_counts counts;
	uint8_t bytes[60] = { 0 };

	(void)state;
	for (unsigned i = 0; i < 5; i++)
		fake_receive(rig->socket[0], bytes, sizeof(bytes));
	worker_pass(rig->worker, return_burst, true);
	sleep_once(rig);
	rig->worker->running = true; /* as if its thread were asleep: only the snapshot is read */
	rig->worker->asleep = 1;
	worker_ask(rig->worker);
	assert_int_equal(worker_read(rig->worker, &counts, soon()), 0);
	rig->worker->running = false;
	assert_int_equal(counts.queue[0].rx_packets, 5);
	assert_int_equal(worker_counts_balance(&counts), 0);
	rig_close(rig);
}

static void end_at_once(struct worker *worker)
{
	(void)worker;
}

static void a_snapshot_is_made_only_when_asked(void **state)
{
	struct rig *rig = rig_open(1);

	(void)state;
	worker_pass(rig->worker, return_burst, true);
	worker_pass(rig->worker, return_burst, true);
	assert_int_equal(rig->worker->seqlock.seq, 0);
	worker_ask(rig->worker);
	worker_pass(rig->worker, return_burst, true);
	assert_int_equal(rig->worker->seqlock.seq, 2);
	worker_pass(rig->worker, return_burst, true);
	assert_int_equal(rig->worker->seqlock.seq, 2);
	rig_close(rig);
}

/* Seen as a report without sockets: its CPU busy, the worker had not yet run when it was asked. */
static void a_worker_that_never_ran_is_reported_as_it_was_made(void **state)
{
	struct rig *rig = rig_open(2);
	struct worker_counts counts;

	(void)state;
	assert_int_equal(worker_start(rig->worker, end_at_once, true), 0);
	worker_ask(rig->worker);
	assert_int_equal(worker_read(rig->worker, &counts, soon()), -EAGAIN);
	assert_int_equal(counts.queues, 2);
	assert_int_equal(counts.total, 2 * RIG_FRAMES);
	assert_int_equal(counts.queue[1].fill, RIG_STOCK);
	assert_int_equal(worker_counts_balance(&counts), 0);
	worker_join(rig->worker);
	rig_close(rig);
}

/* --- ending --- */

static void an_answer_that_never_comes_is_not_waited_for(void **state)
{
	struct rig *rig = rig_open(1);
	struct worker_counts counts = { .total = 77 };

	(void)state;
	rig->worker->running = true;
	worker_ask(rig->worker);
	rig->worker->seqlock.seq = 1; /* taken off its CPU in the middle of a write */
	assert_int_equal(worker_read(rig->worker, &counts, clock_now_ns()), -EBUSY);
	rig->worker->seqlock.seq = 0; /* or not at all since it was asked */
	assert_int_equal(worker_read(rig->worker, &counts, clock_now_ns()), -EAGAIN);
	rig->worker->running = false;
	rig->worker->seqlock.seq = 0;
	rig_close(rig);
}

static int no_sleep(struct pollfd *fds, unsigned long count, int timeout_ms, void *context)
{
	(void)fds, (void)count, (void)context;
	usleep((unsigned)timeout_ms * 1000);
	return 0;
}

static uint64_t drain_ms(struct rig *rig)
{
	uint64_t start_ns = clock_now_ns();

	fake_on_poll(no_sleep, NULL);
	worker_stop(rig->worker);
	worker_loop(rig->worker, return_burst);
	return (clock_now_ns() - start_ns) / NSEC_PER_MSEC;
}

static void draining_takes_what_was_received(void **state)
{
	struct rig *rig = rig_open(1);
	uint8_t bytes[60] = { 0 };

	(void)state;
	for (unsigned i = 0; i < RIG_RING; i++)
		fake_receive(rig->socket[0], bytes, sizeof(bytes));
	rig_send(rig, 0, 5);
	drain_ms(rig);
	assert_int_equal(rig->worker->queue[0].rx.own, RIG_RING);
	assert_int_equal(rig->socket[0]->sent, 5);
	assert_int_equal(queue_tx_pending(&rig->worker->queue[0]), 0);
	rig_close(rig);
}

/* Field case 32: completions stop, and both the loop and the drain wait for ever. */
static void completions_that_never_come_do_not_hold_up_the_end(void **state)
{
	struct rig *rig = rig_open(1);

	(void)state;
	rig->socket[0]->fail_with = ENETDOWN;
	rig->socket[0]->fails = UINT32_MAX;
	rig_send(rig, 0, 5);
	assert_true(drain_ms(rig) <= WORKER_DRAIN_MS + 200);
	assert_int_equal(queue_tx_pending(&rig->worker->queue[0]), 5);
	rig_close(rig);
}

static void a_finished_job_is_told_once_and_only_when_all_is_completed(void **state)
{
	struct rig *rig = rig_open(1);
	struct queue *queue = &rig->worker->queue[0];
	uint64_t count = 0;

	(void)state;
	rig->worker->done_fd = eventfd(0, EFD_NONBLOCK);
	rig->socket[0]->hold_completions = true;
	queue->tx_left = 0;
	rig_send(rig, 0, 1);
	queue_kick_tx(queue);
	worker_check_done(rig->worker);
	assert_int_equal(read(rig->worker->done_fd, &count, sizeof(count)), -1);
	fake_complete(rig->socket[0]);
	worker_reap(rig->worker, queue, true);
	worker_check_done(rig->worker);
	worker_check_done(rig->worker);
	assert_int_equal(read(rig->worker->done_fd, &count, sizeof(count)), sizeof(count));
	assert_int_equal(count, 1);
	close(rig->worker->done_fd);
	ring_submit(&queue->fill);
	rig_close(rig);
}

static void a_thread_runs_its_mode_and_ends_when_told(void **state)
{
	struct rig *rig = rig_open(1);
	struct worker_counts counts;

	(void)state;
	assert_int_equal(worker_start(rig->worker, mode_of(CONF_MODE_RXDROP)->run, true), 0);
	for (unsigned i = 0; i < 100; i++) {
		worker_ask(rig->worker);
		assert_int_equal(worker_read(rig->worker, &counts, soon()), 0);
		assert_int_equal(worker_counts_balance(&counts), 0);
	}
	worker_stop(rig->worker);
	worker_join(rig->worker);
	assert_false(rig->worker->running);
	rig_close(rig);
}

/* --- changes while it runs --- */

static uint64_t in_seconds(void)
{
	return clock_now_ns() + 10 * NSEC_PER_SEC;
}

/* The worker's thread is between two passes until it is told to go on, whichever way it waits. */
static void a_parked_thread_does_nothing(void **state)
{
	uint8_t bytes[60];

	(void)state;
	for (unsigned wait = 0; wait < 3; wait++) {
		struct rig *rig = rig_open(1);
		struct worker *worker = rig->worker;

		worker->wait = (uint8_t)wait;
		assert_int_equal(worker_start(worker, mode_of(CONF_MODE_RXDROP)->run, true), 0);
		for (unsigned i = 0; i < 200; i++) {
			uint64_t before;

			assert_int_equal(worker_park(worker, in_seconds()), 0);
			before = worker->queue[0].rx.own;
			rig_frame(bytes, 60, i);
			/* The fake kernel is no thread's but ours now. */
			assert_true(fake_receive(rig->socket[0], bytes, 60));
			assert_int_equal(worker->queue[0].rx.own, before);
			rig_balance(rig);
			worker_resume(worker);
		}
		worker_stop(worker);
		worker_join(worker);
		assert_int_equal(worker->queue[0].rx.own, 200);
		rig_close(rig);
	}
}

static void a_thread_that_does_not_come_is_not_waited_for(void **state)
{
	struct rig *rig = rig_open(1);

	(void)state;
	rig->worker->running = true; /* but there is no thread */
	assert_int_equal(worker_park(rig->worker, clock_now_ns() + NSEC_PER_MSEC), -ETIMEDOUT);
	assert_int_equal(rig->worker->park, 0);
	rig->worker->running = false;
	rig_close(rig);
}

static void new_parameters_are_taken_up_and_the_old_ones_let_go(void **state)
{
	struct rig *rig = rig_open(1);
	struct worker *worker = rig->worker;

	(void)state;
	assert_int_equal(worker_start(worker, mode_of(CONF_MODE_RXDROP)->run, true), 0);
	for (unsigned i = 0; i < 200; i++) {
		struct worker_params *params = malloc(sizeof(*params));
		struct worker_counts counts;

		assert_non_null(params);
		*params = (struct worker_params){ .batch = 1 + i % RIG_RING,
						  .wait = (uint8_t)(i % 3) };
		worker_set_params(worker, params);
		assert_int_equal(worker_await(worker, in_seconds()), 0);
		assert_int_equal(worker_park(worker, in_seconds()), 0);
		assert_int_equal(worker->batch, 1 + i % RIG_RING);
		assert_int_equal(worker->wait, i % 3);
		worker->params = NULL; /* whoever looks there once more would be seen by ASan */
		free(params);
		worker_resume(worker);
		worker_ask(worker);
		assert_int_equal(worker_read(worker, &counts, in_seconds()), 0);
		assert_int_equal(worker_counts_balance(&counts), 0);
	}
	worker_stop(worker);
	worker_join(worker);
	rig_close(rig);
}

/* One port goes and comes back under the number, while the other one's frames are counted on. */
static void a_port_is_unplugged_and_plugged_while_the_other_runs(void **state)
{
	struct rig *rig = rig_open(2);
	struct worker *worker = rig->worker;
	uint64_t received = 0;
	uint8_t bytes[60];

	(void)state;
	assert_int_equal(worker_start(worker, mode_of(CONF_MODE_RXDROP)->run, true), 0);
	for (unsigned i = 0; i < 200; i++) {
		struct queue gone;
		uint32_t taken;

		assert_int_equal(worker_park(worker, in_seconds()), 0);
		rig_frame(bytes, 60, i);
		received += fake_receive(rig->socket[0], bytes, 60);
		assert_true(fake_receive(rig->socket[1], bytes, 60));
		worker_unplug(worker, 1, &gone);
		assert_int_equal(gone.final.rx_packets, 1);
		assert_int_equal(gone.final.drops[DROP_STOPPING], 1);
		worker_resume(worker);

		fake_close(rig->socket[1]);
		assert_int_equal(worker_park(worker, in_seconds()), 0);
		received += fake_receive(rig->socket[0], bytes, 60);
		taken = worker_reclaim(worker, 1);
		assert_int_equal(taken, RIG_STOCK);
		rig->socket[1] = fake_open(&rig->umem, RIG_RING, 2 * RIG_RING, 0);
		worker_plug(worker, 1, &rig->socket[1]->xsk, true);
		rig_balance(rig);
		worker_resume(worker);
	}
	worker_stop(worker);
	worker_join(worker);
	assert_int_equal(worker->queue[0].rx.own, received);
	assert_int_equal(received, 400);
	rig_close(rig);
}

/* Of three ports the first goes, the last becomes the first, and one comes between them, all while the
 * two that stay have frames on every ring. */
static void ports_get_other_numbers_with_their_frames(void **state)
{
	struct rig *rig = rig_open(3);
	struct worker *worker = rig->worker;
	const int before[] = { 2, -1, 1 };
	struct fake_socket *first, *last;
	struct worker_counts counts;
	struct queue gone;
	uint8_t bytes[60];

	(void)state;
	assert_int_equal(worker_start(worker, mode_of(CONF_MODE_RXDROP)->run, true), 0);
	assert_int_equal(worker_park(worker, in_seconds()), 0);
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned j = 0; j < 10 * (i + 1); j++) {
			rig_frame(bytes, 60, j);
			assert_true(fake_receive(rig->socket[i], bytes, 60));
		}
	}
	rig_send(rig, 1, 3);
	worker_refused(worker, 2, 7);
	worker_unplug(worker, 0, &gone);
	assert_int_equal(gone.final.rx_packets, 10);
	fake_close(rig->socket[0]);
	assert_int_equal(worker_reclaim(worker, 0), RIG_STOCK);
	worker_renumber(worker, 3, before);
	rig_balance(rig);
	first = rig->socket[2], last = rig->socket[1];
	rig->socket[0] = first;
	rig->socket[1] = fake_open(&rig->umem, RIG_RING, 2 * RIG_RING, 0);
	rig->socket[2] = last;
	worker_plug(worker, 1, &rig->socket[1]->xsk, true);
	rig_balance(rig);
	assert_int_equal(worker->refused_of[0], 7);
	assert_int_equal(worker->queue[2].rx.own, 0);
	assert_int_equal(ring_ready(&worker->queue[2].rx, 1), 20);
	assert_int_equal(ledger_port(worker->umem->ledger[frame_of(
				 rig, ring_desc(&worker->queue[2].tx, 0)->addr)]),
			 2);
	assert_int_equal(fake_receive(rig->socket[1], bytes, 60), true);
	worker_resume(worker);
	worker_ask(worker);
	assert_int_equal(worker_read(worker, &counts, in_seconds()), 0);
	assert_int_equal(worker_counts_balance(&counts), 0);
	worker_stop(worker);
	worker_join(worker);
	assert_int_equal(worker->queue[0].rx.own, 30);
	assert_int_equal(worker->queue[1].rx.own, 1);
	assert_int_equal(worker->queue[2].rx.own, 20);
	rig_close(rig);
}

/* A parked worker's newest snapshot has as many ports as it is read with. */
static void fewer_ports_are_in_the_snapshot_at_once(void **state)
{
	struct rig *rig = rig_open(2);
	struct worker *worker = rig->worker;
	const int before[] = { 1 }, after[] = { 0, -1 };
	struct worker_counts counts = { 0 };
	struct queue gone;

	(void)state;
	assert_int_equal(worker_start(worker, mode_of(CONF_MODE_RXDROP)->run, true), 0);
	assert_int_equal(worker_park(worker, in_seconds()), 0);
	worker_unplug(worker, 0, &gone);
	fake_close(rig->socket[0]);
	(void)worker_reclaim(worker, 0);
	worker_renumber(worker, 1, before);
	worker_ask(worker);
	assert_int_equal(worker_read(worker, &counts, clock_now_ns() + NSEC_PER_MSEC), -EAGAIN);
	assert_int_equal(counts.queues, 1);
	assert_int_equal(worker_counts_balance(&counts), 0);
	worker_resume(worker);
	worker_stop(worker);
	worker_join(worker);
	rig->socket[0] = rig->socket[1];
	worker_renumber(worker, 2, after);
	rig->socket[1] = fake_open(&rig->umem, RIG_RING, 2 * RIG_RING, 0);
	worker_plug(worker, 1, &rig->socket[1]->xsk, true);
	rig_close(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_worker_has_full_fill_rings_and_the_rest_in_its_pool),
		cmocka_unit_test(the_ledger_is_right_before_the_kernel_can_see_an_entry),
		cmocka_unit_test(completions_go_straight_back_to_fill),
		cmocka_unit_test(a_completed_address_is_checked_before_the_ledger),
		cmocka_unit_test(one_pass_reaps_at_most_two_batches),
		cmocka_unit_test(frames_left_anywhere_come_back_at_close),
		cmocka_unit_test(a_frame_in_two_places_fails_the_audit),
		cmocka_unit_test(
			a_frame_that_is_forgotten_fails_the_audit_though_the_ledger_finds_it),
		cmocka_unit_test(a_leaked_frame_shows_in_the_balance),
		cmocka_unit_test(a_refused_bind_leaves_no_trace),
		cmocka_unit_test(a_port_that_lost_its_device_keeps_its_counts),
		cmocka_unit_test(a_refused_frame_is_not_sent_by_a_device_that_goes),
		cmocka_unit_test(a_port_whose_device_is_awaited_drops),
		cmocka_unit_test(an_idle_worker_sleeps_long_and_asks_for_input_only),
		cmocka_unit_test(pollout_is_asked_for_only_while_tx_is_blocked),
		cmocka_unit_test(completions_that_hold_everything_up_are_napped_for),
		cmocka_unit_test(a_sleeping_worker_has_published_what_it_knows),
		cmocka_unit_test(a_snapshot_is_made_only_when_asked),
		cmocka_unit_test(a_worker_that_never_ran_is_reported_as_it_was_made),
		cmocka_unit_test(an_answer_that_never_comes_is_not_waited_for),
		cmocka_unit_test(draining_takes_what_was_received),
		cmocka_unit_test(completions_that_never_come_do_not_hold_up_the_end),
		cmocka_unit_test(a_finished_job_is_told_once_and_only_when_all_is_completed),
		cmocka_unit_test(a_thread_runs_its_mode_and_ends_when_told),
		cmocka_unit_test(a_parked_thread_does_nothing),
		cmocka_unit_test(a_thread_that_does_not_come_is_not_waited_for),
		cmocka_unit_test(new_parameters_are_taken_up_and_the_old_ones_let_go),
		cmocka_unit_test(a_port_is_unplugged_and_plugged_while_the_other_runs),
		cmocka_unit_test(ports_get_other_numbers_with_their_frames),
		cmocka_unit_test(fewer_ports_are_in_the_snapshot_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
