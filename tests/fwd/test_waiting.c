/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/fwd/waiting.c"

#include "fwd/mode.h"
#include "fwd/rig.h"

#define US 1000ULL

/* The rings run empty `times` times, and a frame comes gap_ns later, whatever the poller does: it has a CPU of
 * its own. Returns how often it was found in a spin. */
static unsigned arrive(struct waiting *waiting, unsigned times, uint64_t gap_ns)
{
	unsigned found = 0;

	for (unsigned i = 0; i < times; i++) {
		uint32_t spin_ns = waiting_spin_ns(waiting);

		if (!spin_ns) {
			waiting_slept(waiting, gap_ns);
		} else if (gap_ns <= spin_ns) {
			waiting_spun(waiting, spin_ns, gap_ns, true);
			found++;
		} else {
			waiting_spun(waiting, spin_ns, spin_ns, false);
			waiting_slept(waiting, gap_ns);
		}
	}
	return found;
}

/* Likewise, but what brings frames has our CPU only while we sleep. Returns how long was spun. */
static uint64_t arrive_on_our_cpu(struct waiting *waiting, unsigned times, uint64_t gap_ns)
{
	uint64_t spun_ns = 0;

	for (unsigned i = 0; i < times; i++) {
		uint32_t spin_ns = waiting_spin_ns(waiting);

		if (spin_ns)
			waiting_spun(waiting, spin_ns, spin_ns, false);
		spun_ns += spin_ns;
		waiting_slept(waiting, gap_ns + spin_ns);
	}
	return spun_ns;
}

static void what_comes_soon_is_looked_out_for_and_the_rest_slept_for(void **state)
{
	/* {gap, how many of 100 are found in a spin, once the gap is known} */
	static const struct {
		uint64_t gap_ns;
		unsigned least, most;
	} rows[] = {
		{ 100, 100, 100 },     { 1 * US, 100, 100 },   { 10 * US, 100, 100 },
		{ 40 * US, 100, 100 }, { 60 * US, 0, 0 },      { 100 * US, 0, 0 },
		{ 1000 * US, 0, 0 },   { 1000000 * US, 0, 0 }, { 10000000 * US, 0, 0 },
		{ UINT64_MAX, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct waiting waiting = waiting_new();
		unsigned found;

		arrive(&waiting, 200, rows[i].gap_ns);
		found = arrive(&waiting, 100, rows[i].gap_ns);
		assert_in_range(found, rows[i].least, rows[i].most);
	}
}

static void a_new_one_sleeps(void **state)
{
	struct waiting waiting = waiting_new();

	(void)state;
	assert_int_equal(waiting_spin_ns(&waiting), 0);
}

/* As traffic begins after silence, and ends. */
static void traffic_is_noticed_within_some_frames(void **state)
{
	struct waiting waiting = waiting_new();

	(void)state;
	for (unsigned round = 0; round < 5; round++) {
		arrive(&waiting, 3, 10000000 * US); /* seconds apart */
		assert_true(arrive(&waiting, 40, 2 * US) >= 15);
		assert_int_equal(arrive(&waiting, 100, 2 * US), 100);
		/* One spin in vain, and only a few more until it is clear that it is over. */
		assert_int_equal(arrive(&waiting, 1, 10000000 * US), 0);
	}
}

static void a_spin_is_as_short_as_the_gaps(void **state)
{
	struct waiting waiting = waiting_new();

	(void)state;
	arrive(&waiting, 200, 100);
	assert_int_equal(waiting_spin_ns(&waiting), WAITING_SPIN_MIN_NS);
	arrive(&waiting, 200, 5 * US);
	assert_in_range(waiting_spin_ns(&waiting), 19 * US, 21 * US);
	arrive(&waiting, 200, 30 * US);
	assert_int_equal(waiting_spin_ns(&waiting), WAITING_SPIN_MAX_NS);
}

/* Frames come close together, but never while we hold the CPU: soon hardly any time is spun away. */
static void a_cpu_that_the_kernel_needs_is_given_up(void **state)
{
	struct waiting waiting = waiting_new();

	(void)state;
	arrive_on_our_cpu(&waiting, 2000, 5 * US);
	/* 10,000 gaps of 5 us: less than 1 % of that time. */
	assert_in_range(arrive_on_our_cpu(&waiting, 10000, 5 * US), 1, 500 * US);
	/* Once it comes from elsewhere, the next spin finds it, and all after that. */
	assert_true(arrive(&waiting, 1024, 5 * US) >= 1);
	assert_int_equal(arrive(&waiting, 100, 5 * US), 100);
}

/* Somebody had the CPU between two looks, and it brought frames: no proof that spinning helps. */
static void a_frame_behind_a_hole_counts_as_in_vain(void **state)
{
	struct waiting waiting = waiting_new();
	uint32_t spin_ns;

	(void)state;
	arrive(&waiting, 200, 5 * US);
	spin_ns = waiting_spin_ns(&waiting);
	waiting_spun(&waiting, spin_ns, 3000 * US, true);
	assert_int_equal(waiting.vain, 1);
	assert_int_equal(waiting_spin_ns(&waiting), 0);
	assert_true(waiting_spin_ns(&waiting) > 0); /* once each the first time */
	waiting_spun(&waiting, spin_ns, spin_ns + 1, true);
	assert_int_equal(waiting.vain, 0);
}

static void the_pause_between_spins_has_an_end(void **state)
{
	struct waiting waiting = waiting_new();
	unsigned sleeps = 0;

	(void)state;
	arrive(&waiting, 200, 5 * US);
	for (unsigned i = 0; i < 50; i++) {
		while (!waiting_spin_ns(&waiting))
			;
		waiting_spun(&waiting, WAITING_SPIN_MIN_NS, WAITING_SPIN_MIN_NS, false);
	}
	while (!waiting_spin_ns(&waiting))
		sleeps++;
	assert_int_equal(sleeps, (1U << WAITING_VAIN_MAX) - 1);
}

/* --- a worker that waits so, on the fake kernel --- */

static struct rig *adaptive_rig(unsigned ports)
{
	struct rig *rig = rig_open(ports);

	rig->worker->wait = CONF_WAIT_ADAPTIVE;
	return rig;
}

/* Back to where it came from. */
static void take(struct rig *rig)
{
	struct queue *queue = &rig->worker->queue[0];
	struct ring_cursor rx;
	uint64_t addr;

	assert_int_equal(ring_ready(&queue->rx, 1), 1);
	rx = ring_peek(&queue->rx);
	addr = cursor_desc(&rx)->addr;
	assert_true(queue_believes(queue, &rig->worker->chunks, addr, LEDGER_FILL));
	worker_return(rig->worker, queue, addr);
	ring_release(&queue->rx, &rx);
	ring_submit(&queue->fill);
}

/* Frames come while it looks out: it finds them, moves them, and never sleeps. */
static void a_spin_ends_with_the_frame(void **state)
{
	struct rig *rig = adaptive_rig(1);
	struct worker *worker = rig->worker;
	uint8_t bytes[60] = { 0 };

	(void)state;
	for (unsigned i = 0; i < 100; i++) { /* dense traffic, as it was measured before */
		worker->waiting.gap_ns = 1000;
		worker->waiting.moved = UINT64_MAX;
		assert_true(fake_receive(rig->socket[0], bytes, sizeof(bytes)));
		worker_wait_adaptive(worker);
		assert_int_equal(worker->polls, 0);
		rig_balance(rig);
		take(rig);
	}
	assert_int_equal(worker->waiting.vain, 0);
	rig_close(rig);
}

/* Nothing comes: one spin a silence, then only sleeps. */
static void a_silence_is_spun_once(void **state)
{
	struct rig *rig = adaptive_rig(1);
	struct worker *worker = rig->worker;

	(void)state;
	worker->waiting.gap_ns = 1000;
	worker->waiting.moved = UINT64_MAX;
	for (unsigned i = 0; i < 3; i++) {
		worker_wait_adaptive(worker);
		assert_int_equal(worker->polls, i + 1);
		assert_int_equal(worker->waiting.vain, 1);
	}
	rig_close(rig);
}

/* What the main thread asks for ends a spin, and is no frame. */
static void a_request_ends_a_spin(void **state)
{
	struct rig *rig = adaptive_rig(1);
	struct worker *worker = rig->worker;

	(void)state;
	worker->waiting.gap_ns = WAITING_SPIN_MAX_NS;
	worker->waiting.moved = UINT64_MAX;
	worker_ask(worker);
	worker_wait_adaptive(worker);
	assert_int_equal(worker->polls, 0);
	assert_int_equal(worker->waiting.vain, 0);
	assert_int_equal(worker->waiting.gap_ns, WAITING_SPIN_MAX_NS);
	rig_close(rig);
}

/* Frames that are never taken, as of a mode that does not receive, keep nobody awake. */
static void frames_that_nobody_takes_are_slept_over(void **state)
{
	struct rig *rig = adaptive_rig(1);
	struct worker *worker = rig->worker;
	uint8_t bytes[60] = { 0 };

	(void)state;
	assert_true(fake_receive(rig->socket[0], bytes, sizeof(bytes)));
	worker->receives = false;
	worker->waiting.gap_ns = 1000;
	worker->waiting.moved = UINT64_MAX;
	worker_wait_adaptive(worker);
	assert_int_equal(worker->polls, 1);
	worker->receives = true;
	rig_close(rig);
}

/* A completion is something to do, and so is what another worker hands over. */
static void completions_end_a_spin(void **state)
{
	struct rig *rig = adaptive_rig(1);
	struct worker *worker = rig->worker;
	struct queue *queue = &worker->queue[0];

	(void)state;
	rig_send(rig, 0, 3);
	queue_kick_tx(queue);
	worker->waiting.gap_ns = 1000;
	worker->waiting.moved = UINT64_MAX;
	worker_wait_adaptive(worker);
	assert_int_equal(worker->polls, 0);
	assert_int_equal(worker->waiting.vain, 0);
	rig_close(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_comes_soon_is_looked_out_for_and_the_rest_slept_for),
		cmocka_unit_test(a_new_one_sleeps),
		cmocka_unit_test(traffic_is_noticed_within_some_frames),
		cmocka_unit_test(a_spin_is_as_short_as_the_gaps),
		cmocka_unit_test(a_cpu_that_the_kernel_needs_is_given_up),
		cmocka_unit_test(a_frame_behind_a_hole_counts_as_in_vain),
		cmocka_unit_test(the_pause_between_spins_has_an_end),
		cmocka_unit_test(a_spin_ends_with_the_frame),
		cmocka_unit_test(a_silence_is_spun_once),
		cmocka_unit_test(a_request_ends_a_spin),
		cmocka_unit_test(frames_that_nobody_takes_are_slept_over),
		cmocka_unit_test(completions_end_a_spin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
