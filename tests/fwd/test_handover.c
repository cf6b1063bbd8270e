/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two workers of a patch whose second port has one queue only: the sender receives on port 0 and hands
 * over; the receiver has both ports and sends on port 1.
 */
#include "../../src/fwd/mode_patch.c"
#include "../../src/fwd/worker.c"

#include <fcntl.h>
#include <sched.h>

#include "fwd/handover.h"
#include "fwd/rig.h"

#define HAND_OVER_SIZE 32

struct pair {
	struct rig *sender, *receiver;
};

static uint32_t pass(struct rig *rig)
{
	return worker_pass(rig->worker, patch_burst, rig->worker->chunks.plain);
}

static struct pair pair_open(void)
{
	struct pair pair = { rig_open(1), rig_open(2) };

	worker_plug(pair.sender->worker, pair.sender->worker->queues, NULL, false);
	assert_int_equal(
		worker_connect(pair.sender->worker, 1, pair.receiver->worker, HAND_OVER_SIZE), 0);
	return pair;
}

static struct inlet *inlet_of(struct pair *pair)
{
	return &pair->receiver->worker->inlet[0];
}

static struct fake_socket *egress_of(struct pair *pair)
{
	return pair->receiver->socket[1];
}

static uint64_t drops(const struct rig *rig, enum drop_reason reason)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < rig->worker->queues; i++)
		sum += rig->worker->queue[i].drops[reason];
	return sum;
}

/* Every packet that came in went out or was counted, and every frame is where the ledger has it. */
static void pair_close(struct pair *pair, uint64_t received)
{
	struct worker_counts counts;
	uint64_t dropped = 0;

	rig_balance(pair->sender);
	rig_balance(pair->receiver);
	worker_close_port(pair->sender->worker, 1);
	for (int i = 0; i < DROP_REASONS; i++)
		dropped += drops(pair->sender, (enum drop_reason)i) +
			   drops(pair->receiver, (enum drop_reason)i);
	worker_count(pair->sender->worker, &counts);
	assert_int_equal(received, egress_of(pair)->sent + dropped);
	assert_int_equal(counts.queue[1].handed,
			 egress_of(pair)->sent + drops(pair->receiver, DROP_LINK_DOWN));
	assert_int_equal(counts.queue[1].tx_packets, 0);
	rig_close(pair->sender);
	rig_close(pair->receiver);
}

static void receive(struct pair *pair, unsigned number, uint32_t len)
{
	uint8_t bytes[4096];

	rig_frame(bytes, len, number);
	assert_true(fake_receive(pair->sender->socket[0], bytes, len));
}

static void assert_sent(struct pair *pair, unsigned nth_last, unsigned number, uint32_t len)
{
	const struct fake_frame *frame = fake_sent(egress_of(pair), nth_last);
	uint8_t bytes[4096];

	rig_frame(bytes, len, number);
	assert_int_equal(frame->len, len);
	assert_memory_equal(frame->bytes, bytes, len);
}

static void a_lone_frame_crosses_at_once(void **state)
{
	struct pair pair = pair_open();

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		uint32_t len = 14 + i % 1500;

		receive(&pair, i, len);
		pass(pair.sender);
		pass(pair.receiver);
		assert_int_equal(egress_of(&pair)->sent, i + 1);
		assert_sent(&pair, 0, i, len);
		rig_balance(pair.sender);
		rig_balance(pair.receiver);
	}
	pass(pair.sender); /* the last address comes home */
	assert_int_equal(queue_tx_pending(&pair.sender->worker->queue[1]), 0);
	pair_close(&pair, 1000);
}

static void bursts_keep_their_order(void **state)
{
	struct pair pair = pair_open();
	unsigned received = 0;

	(void)state;
	for (unsigned round = 0; round < 200; round++) {
		for (unsigned i = 0; i < 1 + round % HAND_OVER_SIZE; i++)
			receive(&pair, received++, 60);
		while (pass(pair.sender) || pass(pair.receiver))
			;
		assert_int_equal(egress_of(&pair)->sent, received);
		for (unsigned i = 0; i < 1 + round % HAND_OVER_SIZE; i++)
			assert_sent(&pair, i, received - 1 - i, 60);
	}
	pair_close(&pair, received);
}

static void a_receiver_that_does_not_run_costs_counted_frames_and_holds_nothing_up(void **state)
{
	struct pair pair = pair_open();

	(void)state;
	for (unsigned i = 0; i < 300; i++) {
		receive(&pair, i, 60);
		pass(pair.sender);
		assert_false(pair.sender->worker->queue[0].held);
	}
	assert_int_equal(drops(pair.sender, DROP_HAND_OVER_FULL), 300 - HAND_OVER_SIZE);
	while (pass(pair.receiver))
		;
	assert_int_equal(egress_of(&pair)->sent, HAND_OVER_SIZE);
	assert_sent(&pair, 0, HAND_OVER_SIZE - 1, 60);
	pair_close(&pair, 300);
}

/* The kernel takes no more: what is handed over waits, and the receiver naps instead of spinning. */
static void without_room_on_tx_frames_wait(void **state)
{
	struct pair pair = pair_open();
	struct queue *queue = &pair.receiver->worker->queue[1];

	(void)state;
	egress_of(&pair)->hold_completions = true;
	for (unsigned i = 0; i < RIG_RING + 8; i++) {
		receive(&pair, i, 60);
		pass(pair.sender);
		pass(pair.receiver);
	}
	assert_int_equal(queue_tx_room(queue), 0);
	assert_int_equal(egress_of(&pair)->sent, RIG_RING);
	assert_true(inlet_of(&pair)->held);
	assert_true(inlets_settle(pair.receiver->worker));
	inlets_wake(pair.receiver->worker);
	egress_of(&pair)->hold_completions = false;
	fake_complete(egress_of(&pair));
	while (pass(pair.sender) || pass(pair.receiver))
		;
	assert_int_equal(egress_of(&pair)->sent, RIG_RING + 8);
	assert_sent(&pair, 0, RIG_RING + 7, 60);
	pair_close(&pair, RIG_RING + 8);
}

static void frames_for_a_device_that_is_down_are_counted(void **state)
{
	struct pair pair = pair_open();

	(void)state;
	egress_of(&pair)->fail_with = ENETDOWN;
	egress_of(&pair)->fails = UINT32_MAX;
	for (unsigned i = 0; i < 50; i++) {
		receive(&pair, i, 60);
		pass(pair.sender);
		pass(pair.receiver);
	}
	/* The first was on the TX ring when that was found out. */
	assert_int_equal(drops(pair.receiver, DROP_LINK_DOWN), 49);
	egress_of(&pair)->fails = 0;
	while (pass(pair.sender) || pass(pair.receiver))
		;
	pass(pair.receiver);
	receive(&pair, 50, 60);
	while (pass(pair.sender) || pass(pair.receiver))
		;
	assert_int_equal(egress_of(&pair)->sent, 2);
	pair_close(&pair, 51);
}

static bool bell_rung(const struct rig *rig)
{
	uint64_t count;

	fcntl(rig->worker->wake_fd, F_SETFL, O_NONBLOCK);
	return read(rig->worker->wake_fd, &count, sizeof(count)) == sizeof(count);
}

static int count_polls(struct pollfd *fds, unsigned long count, int timeout_ms, void *context)
{
	(void)fds, (void)count, (void)timeout_ms;
	++*(unsigned *)context;
	return 0;
}

/* First order of the race: published before the flag is stored, or at least seen after it. */
static void a_frame_published_before_the_last_look_is_not_slept_over(void **state)
{
	struct pair pair = pair_open();
	unsigned polls = 0;

	(void)state;
	fake_on_poll(count_polls, &polls);
	pass(pair.receiver);
	receive(&pair, 0, 60);
	pass(pair.sender);
	assert_false(bell_rung(pair.receiver)); /* nobody slept */
	worker_sleep(pair.receiver->worker, 1000);
	assert_int_equal(polls, 0);
	assert_int_equal(pass(pair.receiver), 1);
	worker_sleep(pair.receiver->worker, 1000);
	assert_int_equal(polls, 1);
	while (pass(pair.sender) || pass(pair.receiver))
		;
	pair_close(&pair, 1);
}

static int hand_over_now(struct pollfd *fds, unsigned long count, int timeout_ms, void *context)
{
	struct pair *pair = context;

	(void)count, (void)timeout_ms;
	receive(pair, 0, 60);
	pass(pair->sender);
	assert_true(bell_rung(pair->receiver)); /* poll() would return at once */
	fds[0].revents = 0;
	return 0;
}

/* The other order: published after the receiver looked for the last time. The sender sees the flag. */
static void a_frame_published_after_the_last_look_rings_the_bell(void **state)
{
	struct pair pair = pair_open();

	(void)state;
	fake_on_poll(hand_over_now, &pair);
	worker_sleep(pair.receiver->worker, 1000);
	assert_int_equal(pass(pair.receiver), 1);
	while (pass(pair.sender) || pass(pair.receiver))
		;
	assert_int_equal(egress_of(&pair)->sent, 1);
	pair_close(&pair, 1);
}

static void a_receiver_that_is_awake_is_not_woken(void **state)
{
	struct pair pair = pair_open();

	(void)state;
	worker_sleep(pair.receiver->worker, 0);
	for (unsigned i = 0; i < 10; i++) {
		receive(&pair, i, 60);
		pass(pair.sender);
		assert_false(bell_rung(pair.receiver));
	}
	while (pass(pair.sender) || pass(pair.receiver))
		;
	pair_close(&pair, 10);
}

/* That is a line which the receiver writes in every burst. */
static void a_sender_does_not_look_how_far_the_receiver_is(void **state)
{
	struct pair pair = pair_open();
	struct ring *tx = &pair.sender->worker->queue[1].tx;
	uint32_t *consumer = tx->consumer;

	(void)state;
	tx->consumer = NULL; /* whoever looks ends here */
	for (unsigned i = 0; i < 10; i++) {
		receive(&pair, i, 60);
		pass(pair.sender);
		pass(pair.receiver);
	}
	tx->consumer = consumer;
	assert_int_equal(egress_of(&pair)->sent, 10);
	pass(pair.sender);
	pair_close(&pair, 10);
}

static void frames_lent_at_the_end_are_counted_and_come_back(void **state)
{
	struct pair pair = pair_open();

	(void)state;
	for (unsigned i = 0; i < 20; i++)
		receive(&pair, i, 60);
	pass(pair.sender);
	pass(pair.receiver);
	pass(pair.sender);
	/* 16 of 20 went with the first burst, 4 with the second, which nobody takes. */
	rig_balance(pair.sender);
	worker_close_port(pair.sender->worker, 1);
	assert_int_equal(drops(pair.sender, DROP_STOPPING), 4);
	assert_int_equal(pair.sender->worker->reclaimed, 4);
	pair_close(&pair, 20);
}

/* The receiver's port loses its device with frames lent: they are dropped there and come home, and with the
 * next socket the hand-over goes on. */
static void a_hand_over_outlives_the_device(void **state)
{
	struct pair pair = pair_open();
	struct worker *receiver = pair.receiver->worker;
	uint64_t sent;

	(void)state;
	for (unsigned i = 0; i < 10; i++)
		receive(&pair, i, 60);
	pass(pair.sender); /* lent */
	worker_lose(receiver, 1);
	(void)worker_reclaim(receiver, 1);
	pass(pair.receiver);
	assert_int_equal(drops(pair.receiver, DROP_LINK_DOWN), 10);
	pass(pair.sender);
	assert_int_equal(queue_tx_pending(&pair.sender->worker->queue[1]), 0);
	rig_balance(pair.sender);
	rig_balance(pair.receiver);
	sent = egress_of(&pair)->sent;
	assert_int_equal(sent, 0);
	fake_close(pair.receiver->socket[1]);
	pair.receiver->socket[1] = fake_open(&pair.receiver->umem, RIG_RING, 2 * RIG_RING, 0);
	worker_plug(receiver, 1, &pair.receiver->socket[1]->xsk, true);
	for (unsigned i = 0; i < 10; i++)
		receive(&pair, i, 60);
	pass(pair.sender);
	pass(pair.receiver);
	pass(pair.sender);
	assert_int_equal(egress_of(&pair)->sent, 10);
	receiver->queue[1].drops[DROP_LINK_DOWN] += 10; /* they are in the past */
	pair_close(&pair, 20);
}

/* A sender that has a socket of the port too, for receiving, loses that and not its part in the hand-over. */
static void a_sender_that_loses_its_socket_hands_over_on(void **state)
{
	struct rig *sender = rig_open(2), *receiver = rig_open(2);
	struct worker_counts counts;
	uint8_t bytes[60];

	(void)state;
	assert_int_equal(worker_connect(sender->worker, 1, receiver->worker, HAND_OVER_SIZE), 0);
	rig_frame(bytes, 60, 0);
	for (unsigned i = 0; i < 7; i++)
		assert_true(fake_receive(sender->socket[0], bytes, 60));
	pass(sender); /* lent */
	worker_lose(sender->worker, 1);
	assert_int_equal(worker_reclaim(sender->worker, 1), RIG_STOCK);
	rig_balance(sender);
	worker_count(sender->worker, &counts);
	assert_int_equal(counts.queue[1].hand_over, 7);
	assert_int_equal(counts.queue[1].drops[DROP_LINK_DOWN], 0);
	assert_false(sender->worker->queue[1].down);
	pass(receiver);
	pass(sender);
	worker_count(sender->worker, &counts);
	assert_int_equal(counts.queue[1].hand_over, 0);
	assert_int_equal(receiver->socket[1]->sent, 7);
	fake_close(sender->socket[1]);
	sender->socket[1] = fake_open(&sender->umem, RIG_RING, 2 * RIG_RING, 0);
	worker_plug(sender->worker, 1, &sender->socket[1]->xsk, true);
	assert_true(fake_receive(sender->socket[0], bytes, 60));
	pass(sender);
	pass(receiver);
	pass(sender);
	assert_int_equal(receiver->socket[1]->sent, 8);
	worker_count(sender->worker, &counts);
	assert_int_equal(counts.queue[1].handed, 8);
	rig_close(sender);
	rig_close(receiver);
}

static void a_packet_of_several_pieces_crosses_whole(void **state)
{
	struct rig_shape before = rig_shape;
	uint8_t bytes[6000];
	struct pair pair;

	(void)state;
	rig_shape = (struct rig_shape){ "frags", true, 0, false };
	pair = pair_open();
	for (unsigned i = 0; i < 100; i++) {
		const struct fake_frame *frame;

		rig_frame(bytes, sizeof(bytes), i);
		assert_true(fake_receive(pair.sender->socket[0], bytes, sizeof(bytes)));
		receive(&pair, i, 100);
		while (pass(pair.sender) || pass(pair.receiver))
			;
		assert_int_equal(egress_of(&pair)->sent, 2 * i + 2);
		assert_sent(&pair, 0, i, 100);
		frame = fake_sent(egress_of(&pair), 1);
		assert_int_equal(frame->len, sizeof(bytes));
		assert_memory_equal(frame->bytes, bytes, sizeof(bytes));
	}
	pair_close(&pair, 200);
	rig_shape = before;
}

static void a_packet_without_room_for_all_of_it_waits_or_is_dropped_whole(void **state)
{
	struct rig_shape before = rig_shape;
	uint8_t bytes[6000];
	struct pair pair;

	(void)state;
	rig_shape = (struct rig_shape){ "frags", true, 0, false };
	pair = pair_open();
	rig_frame(bytes, sizeof(bytes), 1);
	for (unsigned i = 0; i < 20; i++) {
		assert_true(fake_receive(pair.sender->socket[0], bytes, sizeof(bytes)));
		pass(pair.sender);
	}
	/* 4 descriptors each, 32 entries. */
	assert_int_equal(drops(pair.sender, DROP_HAND_OVER_FULL), 12);
	while (pass(pair.receiver))
		;
	assert_int_equal(egress_of(&pair)->sent, 8);
	pair_close(&pair, 20);
	rig_shape = before;
}

#define MANY 100000

static void *receiver_main(void *context)
{
	struct pair *pair = context;

	while (!load_relaxed(&pair->receiver->worker->stop)) {
		if (!pass(pair->receiver))
			sched_yield();
	}
	return NULL;
}

/* Two threads at once; what is seen of each other is for ThreadSanitizer to judge. */
static void two_threads_lose_nothing(void **state)
{
	struct pair pair = pair_open();
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, receiver_main, &pair), 0);
	for (unsigned i = 0; i < MANY; i++) {
		receive(&pair, i, 60);
		/* One that is full drops, which is tested above: wait for room here. */
		while (!queue_tx_room(&pair.sender->worker->queue[1]))
			if (!worker_reap(pair.sender->worker, &pair.sender->worker->queue[1],
					 false))
				sched_yield();
		pass(pair.sender);
	}
	while (queue_tx_pending(&pair.sender->worker->queue[1]))
		if (!pass(pair.sender))
			sched_yield();
	store_relaxed(&pair.receiver->worker->stop, 1);
	pthread_join(thread, NULL);
	while (pass(pair.receiver))
		;
	assert_int_equal(egress_of(&pair)->sent, MANY);
	for (unsigned i = 0; i < FAKE_LAST; i++)
		assert_sent(&pair, i, MANY - 1 - i, 60);
	assert_int_equal(drops(pair.sender, DROP_HAND_OVER_FULL), 0);
	pair_close(&pair, MANY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lone_frame_crosses_at_once),
		cmocka_unit_test(bursts_keep_their_order),
		cmocka_unit_test(
			a_receiver_that_does_not_run_costs_counted_frames_and_holds_nothing_up),
		cmocka_unit_test(without_room_on_tx_frames_wait),
		cmocka_unit_test(frames_for_a_device_that_is_down_are_counted),
		cmocka_unit_test(a_frame_published_before_the_last_look_is_not_slept_over),
		cmocka_unit_test(a_frame_published_after_the_last_look_rings_the_bell),
		cmocka_unit_test(a_receiver_that_is_awake_is_not_woken),
		cmocka_unit_test(a_sender_does_not_look_how_far_the_receiver_is),
		cmocka_unit_test(frames_lent_at_the_end_are_counted_and_come_back),
		cmocka_unit_test(two_threads_lose_nothing),
	};
	const struct CMUnitTest packet_tests[] = {
		cmocka_unit_test(a_hand_over_outlives_the_device),
		cmocka_unit_test(a_sender_that_loses_its_socket_hands_over_on),
		cmocka_unit_test(a_packet_of_several_pieces_crosses_whole),
		cmocka_unit_test(a_packet_without_room_for_all_of_it_waits_or_is_dropped_whole),
	};
	static const struct rig_shape shapes[] = {
		{ "plain", false, 0, false },
		{ "general", true, 0, false },
		{ "unaligned", false, 3001, false },
		{ "slice", false, 0, true },
	};
	int failed = 0;

	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		rig_shape = shapes[i];
		failed += cmocka_run_group_tests_name(shapes[i].name, tests, NULL, NULL);
	}
	return failed + cmocka_run_group_tests(packet_tests, NULL, NULL);
}
