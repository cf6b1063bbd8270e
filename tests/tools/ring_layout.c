/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What it takes to hand descriptors from one thread to another, for `scripts/bench layout`: the ring of
 * src/xdp/ring.h as fwd/handover.c uses it, with its indices, flags and entries at the places that are asked for.
 * Arguments: the CPU of the producing and that of the consuming thread. Reads lines from standard
 * input and answers each by one:
 *
 *	PRODUCER CONSUMER FLAGS ENTRIES CACHED KIND MS
 *					where each begins, in bytes from a pair of lines; about so long;
 *					a line "NS WALL": wall time a descriptor in ns, and wall time by
 *					the CPU time of the thread that had less of it
 *
 * CACHED: 1	a thread looks at the other one's index when the one it remembers does not suffice
 *	   0	before each burst
 * KIND:   N	bursts of N descriptors, as fast as both can
 *	   0	one descriptor, and the next when that one is taken
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/layout.h"
#include "timed.h"
#include "xdp/ring.h"

#define ENTRIES	   2048
#define INDICES	   1024 /* bytes: all that is before the entries, and more */
#define LOOK_EVERY 256	/* bursts between two looks at the clock, which takes as long as some */

struct side {
	struct ring ring;
	pthread_t thread;
	int cpu;
	uint64_t cpu_ns;
};

static struct {
	/* What the threads share: their indices, flags and entries. */
	_Alignas(CACHE_PAIR) uint8_t area[INDICES + ENTRIES * sizeof(struct xdp_desc)];
	_Alignas(CACHE_PAIR) struct side producer;
	_Alignas(CACHE_PAIR) struct side consumer;
	/* Written before the threads start, or by the one that ends first. */
	_Alignas(CACHE_PAIR) uint32_t burst; /* 0: one at a time */
	uint32_t
		want; /* entries that a thread asks for: more than there are, and it always looks */
	uint64_t ns;
	uint64_t total; /* descriptors that the producer has sent; UINT64_MAX: it still sends */
	uint64_t start, end; /* wall time in ns */
	pthread_barrier_t ready;
	uint64_t sum; /* where results go that nothing else is done with */
} test;

static void pin_and_hurry(int cpu)
{
	if (timed_pin(cpu))
		abort();
	timed_hurry(1);
}

static uint32_t wait_for_room(struct ring *ring, uint32_t burst)
{
	while (ring_room(ring, test.want ? test.want : burst) < burst)
		cpu_relax();
	return burst;
}

static void push(struct ring *ring, uint32_t count)
{
	struct ring_cursor tx = ring_take(ring);

	for (uint32_t i = 0; i < count; i++) {
		struct xdp_desc *desc = cursor_desc(&tx);

		desc->addr = tx.index;
		desc->len = 60;
		desc->options = 0;
	}
	ring_stage(ring, &tx);
	ring_submit(ring);
	fence_full(); /* as in a worker: published before it is seen whether the other one sleeps */
	if (ring_needs_wakeup(ring))
		abort();
}

static void *produce(void *context)
{
	struct side *side = context;
	struct ring *ring = &side->ring;
	uint32_t burst = test.burst ? test.burst : 1;
	uint64_t cpu;

	pin_and_hurry(side->cpu);
	pthread_barrier_wait(&test.ready);
	cpu = timed_ns();
	test.start = clock_now_ns();
	do {
		for (unsigned i = 0; i < LOOK_EVERY; i++) {
			wait_for_room(ring, test.burst ? burst : ENTRIES);
			push(ring, burst);
		}
	} while (clock_now_ns() - test.start < test.ns);
	side->cpu_ns = timed_ns() - cpu;
	store_release(&test.total, ring->own); /* pairs with load_acquire() in consume() */
	return NULL;
}

static void *consume(void *context)
{
	struct side *side = context;
	struct ring *ring = &side->ring;
	uint64_t cpu, sum = 0;

	pin_and_hurry(side->cpu);
	pthread_barrier_wait(&test.ready);
	cpu = timed_ns();
	for (;;) {
		uint32_t count = ring_ready(ring, test.want ? test.want : 1);
		struct ring_cursor rx = ring_peek(ring);

		if (!count) {
			if (load_acquire(&test.total) ==
			    ring->own) /* pairs with produce()'s store */
				break;
			cpu_relax();
			continue;
		}
		if (test.burst && count > test.burst)
			count = test.burst;
		for (uint32_t i = 0; i < count; i++) {
			const struct xdp_desc *desc = cursor_desc(&rx);

			sum += desc->addr + desc->len;
		}
		ring_release(ring, &rx);
	}
	test.end = clock_now_ns();
	side->cpu_ns = timed_ns() - cpu;
	test.sum = sum;
	return NULL;
}

/* Every descriptor has come once, with what was written to it. */
static void check(void)
{
	uint64_t sent = test.total;

	if (test.sum != sent * (sent + 1) / 2 + sent * 60)
		abort();
}

static void run(struct ring ring)
{
	uint64_t wall, cpu;

	memset(test.area, 0, sizeof(test.area));
	test.producer.ring = test.consumer.ring = ring;
	test.total = UINT64_MAX;
	pthread_barrier_init(&test.ready, NULL, 2);
	if (pthread_create(&test.consumer.thread, NULL, consume, &test.consumer) ||
	    pthread_create(&test.producer.thread, NULL, produce, &test.producer))
		abort();
	pthread_join(test.producer.thread, NULL);
	pthread_join(test.consumer.thread, NULL);
	pthread_barrier_destroy(&test.ready);
	check();
	wall = test.end - test.start;
	cpu = test.producer.cpu_ns < test.consumer.cpu_ns ? test.producer.cpu_ns :
							    test.consumer.cpu_ns;
	printf("%.3f %.3f\n", (double)wall / (double)test.total, (double)wall / (double)cpu);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	unsigned producer, consumer, flags, entries, cached, burst, ms;

	if (argc != 3)
		return 2;
	test.producer.cpu = atoi(argv[1]); /* NOLINT(cert-err34-c): a script writes it */
	test.consumer.cpu = atoi(argv[2]); /* NOLINT(cert-err34-c) */
	if (test.producer.cpu == test.consumer.cpu)
		return 2; /* each would wait for the other for ever */
	/* NOLINTNEXTLINE(cert-err34-c): a script writes it */
	while (scanf("%u %u %u %u %u %u %u", &producer, &consumer, &flags, &entries, &cached,
		     &burst, &ms) == 7) {
		if (producer >= INDICES || consumer >= INDICES || flags >= INDICES ||
		    entries > INDICES || burst > ENTRIES)
			return 2;
		test.burst = burst;
		test.want = cached ? 0 : UINT32_MAX;
		test.ns = ms * NSEC_PER_MSEC;
		run((struct ring){
			.mask = ENTRIES - 1,
			.producer = (uint32_t *)&test.area[producer],
			.consumer = (uint32_t *)&test.area[consumer],
			.flags = (uint32_t *)&test.area[flags],
			.entries = &test.area[entries],
		});
	}
	return 0;
}
