/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/fwd/queue.c"

#include <unistd.h>

#include "fwd/rig.h"

/* Field case 35: one kick is not enough, EAGAIN comes after 32 descriptors. */
static void a_kick_goes_on_until_the_ring_is_empty(void **state)
{
	struct rig *rig = rig_open(1);

	(void)state;
	rig_send(rig, 0, RIG_RING);
	queue_kick_tx(&rig->worker->queue[0]);
	assert_int_equal(rig->socket[0]->sent, RIG_RING);
	assert_int_equal(rig->socket[0]->sendto_calls, RIG_RING / FAKE_TX_BATCH);
	assert_false(rig->worker->queue[0].unsent);
	assert_int_equal(rig->worker->queue[0].kicks[KICK_CALLS], RIG_RING / FAKE_TX_BATCH);
	assert_int_equal(rig->worker->queue[0].kicks[KICK_AGAIN], 1);
	worker_reap(rig->worker, &rig->worker->queue[0], true);
	rig_close(rig);
}

static void transient_errors_are_counted_and_never_fatal(void **state)
{
	static const struct {
		int err;
		bool progress;
		enum kick_result counter;
	} rows[] = {
		{ EAGAIN, false, KICK_AGAIN },	 { EBUSY, true, KICK_BUSY },
		{ ENOBUFS, false, KICK_NOBUFS }, { ENOBUFS, true, KICK_NOBUFS },
		{ EIO, false, KICK_OTHER },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct rig *rig = rig_open(1);
		struct queue *queue = &rig->worker->queue[0];

		rig->socket[0]->fail_with = rows[i].err;
		rig->socket[0]->fails = 3;
		rig->socket[0]->fail_progress = rows[i].progress;
		rig_send(rig, 0, 10);
		/* Without progress one call a pass: no spinning in the kernel. */
		for (unsigned pass = 0; pass < 4; pass++)
			queue_kick_tx(queue);
		assert_int_equal(rig->socket[0]->sent, 10);
		assert_int_equal(queue->kicks[rows[i].counter], 3);
		assert_false(queue->unsent);
		assert_false(queue->down);
		rig_close(rig);
	}
}

static void kicks_in_one_pass_are_bounded(void **state)
{
	struct rig *rig = rig_open(1);

	(void)state;
	/* A device that takes one frame a call and always complains. */
	rig->socket[0]->fail_with = EBUSY;
	rig->socket[0]->fails = UINT32_MAX;
	rig->socket[0]->fail_progress = true;
	rig_send(rig, 0, RIG_RING);
	queue_kick_tx(&rig->worker->queue[0]);
	assert_int_equal(rig->socket[0]->sendto_calls, KICKS_PER_PASS);
	assert_true(rig->worker->queue[0].unsent);
	queue_kick_tx(&rig->worker->queue[0]);
	assert_int_equal(rig->socket[0]->sent, RIG_RING);
	rig_close(rig);
}

static void a_dead_device_is_told_apart(void **state)
{
	static const struct {
		int err;
		enum kick_result counter;
	} rows[] = { { ENETDOWN, KICK_DOWN }, { ENXIO, KICK_GONE } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct rig *rig = rig_open(1);
		struct queue *queue = &rig->worker->queue[0];

		rig->socket[0]->fail_with = rows[i].err;
		rig->socket[0]->fails = 1;
		rig_send(rig, 0, 5);
		queue_kick_tx(queue);
		assert_true(queue->down);
		assert_true(queue->unsent);
		assert_int_equal(queue->kicks[rows[i].counter], 1);
		assert_int_equal(rig->socket[0]->sendto_calls, 1);
		queue_kick_tx(queue);
		assert_false(queue->down);
		assert_false(queue->unsent);
		rig_close(rig);
	}
}

/* Seen as an egress that dropped everything as link_down until a restart: ENETDOWN with nothing left on
 * the ring, so that no later kick could find the device up again. */
static void down_does_not_stick_to_an_empty_ring(void **state)
{
	struct rig *rig = rig_open(1);
	struct queue *queue = &rig->worker->queue[0];

	(void)state;
	rig->socket[0]->fail_with = ENETDOWN;
	rig->socket[0]->fails = 1;
	rig->socket[0]->fail_progress = true; /* poll() or the driver took it meanwhile */
	rig_send(rig, 0, 1);
	queue_kick_tx(queue);
	assert_false(queue->unsent);
	assert_false(queue->down);
	rig_close(rig);
}

static void a_burst_of_nothing_leaves_nothing_to_kick(void **state)
{
	struct rig *rig = rig_open(1);

	(void)state;
	rig_send(rig, 0, 0);
	assert_false(rig->worker->queue[0].unsent);
	rig_close(rig);
}

static void zero_copy_is_woken_only_where_it_asks(void **state)
{
	struct rig *rig = rig_open(1);
	struct queue *queue = &rig->worker->queue[0];

	(void)state;
	worker_bound(queue, &(struct xsk){ .zero_copy = true, .need_wakeup = true });
	rig_send(rig, 0, 5);
	queue_kick_tx(queue);
	queue_kick_rx(queue);
	assert_int_equal(rig->socket[0]->sendto_calls, 0);
	assert_int_equal(rig->socket[0]->recvfrom_calls, 0);
	assert_true(queue->unsent); /* looked at again in the next pass */
	rig->socket[0]->flags[XSK_RING_TX] = XDP_RING_NEED_WAKEUP;
	rig->socket[0]->flags[XSK_RING_FILL] = XDP_RING_NEED_WAKEUP;
	queue_kick_tx(queue);
	queue_kick_rx(queue);
	assert_int_equal(rig->socket[0]->sent, 5);
	assert_int_equal(rig->socket[0]->recvfrom_calls, 1);
	rig_close(rig);
}

/* Puts a descriptor that no kernel accepts on the TX ring: of no length. */
static void send_bad(struct rig *rig)
{
	struct queue *queue = &rig->worker->queue[0];
	struct sends sends = sends_begin(rig->worker, queue, false);
	uint32_t frame = pool_get(&rig->worker->pool);

	chunks_take(&sends.chunks, frame);
	sends_put(&sends, (struct xdp_desc){ .addr = chunks_addr(&sends.chunks, frame) });
	sends_end(queue, &sends);
}

/* Idle passes until what is outstanding has been so for long enough. */
static void idle(struct rig *rig)
{
	for (unsigned i = 0; i < WORKER_STUCK_MS + 10; i++) {
		worker_find_lost(rig->worker);
		usleep(1000);
	}
}

static void a_refused_descriptor_that_is_not_returned_is_lost(void **state)
{
	struct rig *rig = rig_open(1);
	struct queue *queue = &rig->worker->queue[0];
	struct queue_counts counts;

	(void)state;
	for (unsigned round = 1; round <= 5; round++) {
		rig_send(rig, 0, 3);
		send_bad(rig);
		rig_send(rig, 0, 3);
		queue_kick_tx(queue);
		while (worker_reap(rig->worker, queue, true))
			;
		assert_int_equal(queue_tx_pending(queue), 1);
		rig_balance(rig);
		worker_refused(rig->worker, 0, rig->socket[0]->refused);
		idle(rig);
		queue_count(queue, &counts);
		assert_int_equal(counts.lost, round);
		assert_int_equal(counts.kernel + counts.fill, RIG_STOCK);
		assert_int_equal(counts.tx_pending, 0);
		assert_int_equal(counts.tx_packets, 6 * round);
		assert_int_equal(queue_tx_pending(queue), 0); /* nothing to wait for at the end */
		assert_int_equal(queue_tx_room(queue), RIG_RING);
		rig_balance(rig);
		ring_submit(&queue->fill);
	}
	rig_close(rig); /* finds them by the ledger */
}

static void a_refused_descriptor_that_is_returned_is_not_lost(void **state)
{
	struct rig *rig = rig_open(1);
	struct queue *queue = &rig->worker->queue[0];
	struct queue_counts counts;

	(void)state;
	rig->socket[0]->complete_refused = true;
	rig_send(rig, 0, 3);
	send_bad(rig);
	queue_kick_tx(queue);
	while (worker_reap(rig->worker, queue, true))
		;
	worker_refused(rig->worker, 0, rig->socket[0]->refused);
	idle(rig);
	assert_int_equal(queue->tx_lost, 0);
	assert_int_equal(queue_tx_pending(queue), 0);
	queue_count(queue, &counts);
	counts.tx_refused = rig->socket[0]->refused;
	queue_counts_refused(&counts);
	assert_int_equal(counts.tx_packets, 3); /* what came back was not sent */
	ring_submit(&queue->fill);
	rig_close(rig);
}

/* Frames that the device holds on to, after refused ones were returned: never taken for lost. */
static void what_is_held_after_refused_ones_came_back_is_not_lost(void **state)
{
	struct rig *rig = rig_open(1);
	struct queue *queue = &rig->worker->queue[0];

	(void)state;
	rig->socket[0]->complete_refused = true;
	for (unsigned i = 0; i < 5; i++)
		send_bad(rig);
	queue_kick_tx(queue);
	while (worker_reap(rig->worker, queue, true))
		;
	worker_refused(rig->worker, 0, rig->socket[0]->refused);
	idle(rig); /* nothing outstanding: all five have come back */
	rig->socket[0]->hold_completions = true;
	rig_send(rig, 0, 3);
	queue_kick_tx(queue);
	idle(rig);
	assert_int_equal(queue->tx_lost, 0);
	fake_complete(rig->socket[0]);
	while (worker_reap(rig->worker, queue, true))
		;
	ring_submit(&queue->fill);
	rig_close(rig);
}

/* Taken for lost since the kernel told of refused ones late, completed after all, and reaped one by one:
 * the TX ring is full all the time, and never overrun. */
static void what_is_completed_late_is_not_lost_after_all(void **state)
{
	struct rig *rig = rig_open(1);
	struct queue *queue = &rig->worker->queue[0];

	(void)state;
	rig->worker->batch = 1;
	rig->socket[0]->hold_completions = true;
	rig_send(rig, 0, RIG_RING);
	queue_kick_tx(queue);
	worker_refused(rig->worker, 0, 5);
	idle(rig);
	assert_int_equal(queue->tx_lost, 5);
	assert_int_equal(queue_tx_room(queue), 5);
	rig_send(rig, 0, 5);
	queue_kick_tx(queue);
	assert_int_equal(queue_tx_room(queue), 0);
	rig->socket[0]->helds -= 5; /* five of them later, for the ring has no more slots */
	fake_complete(rig->socket[0]);
	for (unsigned i = 0; i < RIG_RING; i++) {
		worker_reap(rig->worker, queue, true);
		assert_in_range(queue_tx_room(queue), 0, RIG_RING);
		assert_in_range(queue_tx_pending(queue) + queue_tx_room(queue), 0, RIG_RING + 5);
		ring_submit(&queue->fill);
	}
	assert_int_equal(queue->tx_lost,
			 5); /* these the kernel has, or has lost: it cannot be told */
	rig_balance(rig);
	rig_close(rig);
}

static void sent_means_completed_in_frames_and_bytes(void **state)
{
	struct rig *rig = rig_open(1);
	struct queue_counts counts;

	(void)state;
	rig->socket[0]->hold_completions = true;
	rig_send(rig, 0, 3); /* 60 + 61 + 62 bytes */
	queue_count(&rig->worker->queue[0], &counts);
	assert_int_equal(counts.tx_packets, 0);
	assert_int_equal(counts.tx_bytes, 0);
	assert_int_equal(counts.tx, 3);
	queue_kick_tx(&rig->worker->queue[0]);
	queue_count(&rig->worker->queue[0], &counts);
	assert_int_equal(counts.tx_packets, 0);
	assert_int_equal(counts.tx, 0);
	assert_int_equal(counts.kernel, 3);
	assert_int_equal(counts.tx_pending, 3);
	fake_complete_address(rig->socket[0], rig->socket[0]->held[0]);
	queue_count(&rig->worker->queue[0], &counts);
	assert_int_equal(counts.tx_packets, 1);
	assert_int_equal(counts.tx_bytes, 60);
	assert_int_equal(counts.completion, 1);
	assert_int_equal(counts.kernel, 2);
	rig_close(rig);
}

/* rx.producer is published before fill.consumer: for a moment the kernel seems to owe itself. */
static void kernel_is_signed_and_the_balance_holds(void **state)
{
	struct rig *rig = rig_open(1);
	struct worker_counts counts;

	(void)state;
	fake_receive_address(rig->socket[0], XDP_PACKET_HEADROOM, 60);
	worker_count(rig->worker, &counts);
	assert_int_equal(counts.queue[0].kernel, -1);
	assert_int_equal(worker_counts_kernel(&counts), -1);
	assert_int_equal(worker_counts_balance(&counts), 0);
	fake_swallow(rig->socket[0]);
	worker_count(rig->worker, &counts);
	assert_int_equal(worker_counts_kernel(&counts), 0);
	rig_close(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kick_goes_on_until_the_ring_is_empty),
		cmocka_unit_test(transient_errors_are_counted_and_never_fatal),
		cmocka_unit_test(kicks_in_one_pass_are_bounded),
		cmocka_unit_test(a_dead_device_is_told_apart),
		cmocka_unit_test(down_does_not_stick_to_an_empty_ring),
		cmocka_unit_test(a_burst_of_nothing_leaves_nothing_to_kick),
		cmocka_unit_test(zero_copy_is_woken_only_where_it_asks),
		cmocka_unit_test(a_refused_descriptor_that_is_not_returned_is_lost),
		cmocka_unit_test(a_refused_descriptor_that_is_returned_is_not_lost),
		cmocka_unit_test(what_is_held_after_refused_ones_came_back_is_not_lost),
		cmocka_unit_test(what_is_completed_late_is_not_lost_after_all),
		cmocka_unit_test(sent_means_completed_in_frames_and_bytes),
		cmocka_unit_test(kernel_is_signed_and_the_balance_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
