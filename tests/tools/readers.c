/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What it takes to read a record of 32 bytes that another thread replaces ten times a second, for
 * `scripts/bench readers`. The record converts a clock's cycles to ns, which is done once a frame: the case of
 * the mlx4 driver's time stamps. Arguments: the CPU of the first reader and that of the second. Reads
 * lines from standard input and answers each by one:
 *
 *	HOW READERS MS	about so long; a line "NS WALL WRITES RETRIES": CPU time a reading and thread in
 *			ns, wall time by CPU time, how often the record was replaced meanwhile, and how often a
 *			reader had to begin again, of a million readings
 *
 * HOW: none	nothing keeps reader and writer apart: each reader has a copy of its own, never replaced
 *	rwlock	pthread_rwlock_t
 *	seqlock	src/base/seqlock.h
 *	pointer	records are never changed; a pointer says which one counts
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/layout.h"
#include "base/seqlock.h"
#include "timed.h"

#define READERS	    2
#define WORDS	    4
#define WRITE_EVERY (NSEC_PER_SEC / 10)
#define LOOK_EVERY  1024 /* readings between two looks at the clock */
#define SNAPSHOTS   64	 /* one is written again after 6.4 s: no reading takes so long */
#define TRIES	    1	 /* so that each that failed is counted */
#define MULT	    3579139
#define SHIFT	    22

/* Cycles of a clock to ns: (cycles - cycles0) * mult >> shift, and ns0. */
struct conversion {
	uint64_t cycles0, ns0, mult, shift;
};

_Static_assert(sizeof(struct conversion) == WORDS * sizeof(uint64_t), "32 bytes, all words");

/* What readers read is on lines of its own, and what they write, too. */
static struct {
	_Alignas(CACHE_PAIR) struct conversion
		plain[READERS][CACHE_PAIR / sizeof(struct conversion)];
	_Alignas(CACHE_PAIR) pthread_rwlock_t rwlock;
	struct conversion of_rwlock;
	_Alignas(CACHE_PAIR) struct seqlock seqlock;
	uint64_t of_seqlock[WORDS];
	_Alignas(CACHE_PAIR) struct conversion *current;
	_Alignas(CACHE_PAIR) struct conversion snapshot[SNAPSHOTS];
	_Alignas(CACHE_PAIR) uint64_t writes;
	bool stop;
} shared;

struct task {
	_Alignas(CACHE_PAIR) pthread_t thread;
	unsigned number;
	int cpu;
	uint64_t ns;
	void *(*run)(void *);
	pthread_barrier_t *start;
	uint64_t readings, retries, cpu_ns, wall_ns, sum;
};

static always_inline uint64_t convert(const struct conversion *by, uint64_t cycles)
{
	return by->ns0 + ((cycles - by->cycles0) * by->mult >> by->shift);
}

/* Of a reading that saw one record in part and another one in part. */
static void torn(const struct conversion *by)
{
	if (by->ns0 != by->cycles0 + 1)
		abort();
}

static always_inline struct conversion read_none(struct task *task)
{
	return *(volatile struct conversion *)&shared.plain[task->number][0];
}

static always_inline struct conversion read_rwlock(struct task *task)
{
	struct conversion read;

	(void)task;
	pthread_rwlock_rdlock(&shared.rwlock);
	read = shared.of_rwlock;
	pthread_rwlock_unlock(&shared.rwlock);
	return read;
}

static always_inline struct conversion read_seqlock(struct task *task)
{
	uint64_t words[WORDS];
	struct conversion read;

	while (seqlock_read(&shared.seqlock, words, shared.of_seqlock, WORDS, TRIES))
		task->retries++;
	memcpy(&read, words, sizeof(read));
	return read;
}

static always_inline struct conversion read_pointer(struct task *task)
{
	(void)task;
	return *load_acquire(&shared.current); /* pairs with store_release() in replace() */
}

/* A thread for each way, so that nothing is chosen in the loop. */
#define READER(how)                                                      \
	static void *run_##how(void *context)                            \
	{                                                                \
		struct task *task = context;                             \
		uint64_t cpu, wall, sum = 0;                             \
                                                                         \
		if (timed_pin(task->cpu))                                \
			abort();                                         \
		timed_hurry(1);                                          \
		pthread_barrier_wait(task->start);                       \
		cpu = timed_ns();                                        \
		wall = clock_now_ns();                                   \
		do {                                                     \
			for (unsigned i = 0; i < LOOK_EVERY; i++) {      \
				struct conversion by = read_##how(task); \
                                                                         \
				torn(&by);                               \
				sum += convert(&by, by.cycles0 + i);     \
			}                                                \
			task->readings += LOOK_EVERY;                    \
			task->wall_ns = clock_now_ns() - wall;           \
		} while (task->wall_ns < task->ns);                      \
		task->cpu_ns = timed_ns() - cpu;                         \
		task->sum = sum;                                         \
		return NULL;                                             \
	}

READER(none)
READER(rwlock)
READER(seqlock)
READER(pointer)

static const struct way {
	const char *name;
	void *(*run)(void *);
} ways[] = {
	{ "none", run_none },	    { "rwlock", run_rwlock }, { "seqlock", run_seqlock },
	{ "pointer", run_pointer }, { NULL, NULL },
};

/* All records at once, whichever is read. */
static void replace(uint64_t number)
{
	struct conversion next = { number, number + 1, MULT, SHIFT };
	struct conversion *snapshot = &shared.snapshot[number % SNAPSHOTS];
	uint64_t words[WORDS];

	pthread_rwlock_wrlock(&shared.rwlock);
	shared.of_rwlock = next;
	pthread_rwlock_unlock(&shared.rwlock);

	memcpy(words, &next, sizeof(next));
	seqlock_write(&shared.seqlock, shared.of_seqlock, words, WORDS);

	*snapshot = next;
	store_release(&shared.current, snapshot); /* pairs with load_acquire() in read_pointer() */
	store_relaxed(&shared.writes, number + 1);
}

/* Before the readers, or two of them on two CPUs would not let it come. */
static void *write_on(void *context)
{
	struct timespec pause = { .tv_nsec = WRITE_EVERY };
	uint64_t number = 0;

	(void)context;
	timed_hurry(2);
	while (!load_relaxed(&shared.stop)) {
		replace(number++);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static void run(const struct way *way, unsigned readers, const int *cpus, uint64_t ns)
{
	struct task task[READERS] = { 0 };
	double cpu = 0, wall = 0, readings = 0, retries = 0;
	uint64_t writes = load_relaxed(&shared.writes);
	pthread_barrier_t start;

	pthread_barrier_init(&start, NULL, readers);
	for (unsigned i = 0; i < readers; i++) {
		task[i].number = i;
		task[i].cpu = cpus[i];
		task[i].ns = ns;
		task[i].start = &start;
		if (pthread_create(&task[i].thread, NULL, way->run, &task[i]))
			abort();
	}
	for (unsigned i = 0; i < readers; i++) {
		pthread_join(task[i].thread, NULL);
		cpu += (double)task[i].cpu_ns;
		wall += (double)task[i].wall_ns;
		readings += (double)task[i].readings;
		retries += (double)task[i].retries;
	}
	pthread_barrier_destroy(&start);
	printf("%.3f %.3f %llu %.3f\n", cpu / readings, wall / cpu,
	       (unsigned long long)(load_relaxed(&shared.writes) - writes),
	       retries * 1e6 / readings);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	int cpus[READERS];
	unsigned readers, ms;
	pthread_t writer;
	char how[16];

	if (argc != 1 + READERS)
		return 2;
	for (unsigned i = 0; i < READERS; i++)
		cpus[i] = atoi(argv[1 + i]); /* NOLINT(cert-err34-c): a script writes it */
	for (unsigned i = 0; i < READERS; i++)
		shared.plain[i][0] = (struct conversion){ 0, 1, MULT, SHIFT };
	pthread_rwlock_init(&shared.rwlock, NULL);
	replace(0);
	if (pthread_create(&writer, NULL, write_on, NULL))
		return 1;
	/* NOLINTNEXTLINE(cert-err34-c): a script writes it */
	while (scanf("%15s %u %u", how, &readers, &ms) == 3) {
		const struct way *way = ways;

		while (way->name && strcmp(way->name, how) != 0)
			way++;
		if (!way->name || !readers || readers > READERS)
			return 2;
		run(way, readers, cpus, ms * NSEC_PER_MSEC);
	}
	store_relaxed(&shared.stop, true);
	pthread_join(writer, NULL);
	return 0;
}
