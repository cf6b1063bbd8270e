/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What learning and looking up takes, for `scripts/bench fdb`, which runs several of these programs: the
 * table of src/fwd (which is compiled into this file), the same with other layouts (fdb_layout/), and
 * liburcu's hash table (-DWITH_URCU). Reads lines from standard input and answers each by one:
 *
 *	STATIONS THREADS KIND MS	about so long; a line "NS WALL LOOKUP REFRESH":
 *					CPU time a frame and thread in ns, wall time by CPU time, and of the
 *					counted builds the stores a million frames, to lines that lookups
 *					read and to others
 *
 * KIND: hit	both addresses of a frame are known
 *	 miss	its destination is not
 *	 full	its source is not, and can not be learned: the table is full
 *	 tick	as hit, and a tick begins with it, so that every station's stamp is renewed once
 *
 * Frames come in bursts of 32, each from one port, with random stations of that port as sources and any as
 * destinations. What is timed begins at the 12 bytes of the addresses.
 */
#ifdef WITH_URCU
/* First: base/layout.h has a macro of a name that it uses. */
#include <urcu-qsbr.h>

#include <urcu/rculfhash.h>
#endif

#include "../../src/fwd/fdb.c"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "timed.h"

#define BURST	32
#define PORTS	4
#define THREADS 2
#define SIZES	16 /* tables that are kept */

/* Frames of a stream: as many as stations, but enough not to be learned by heart by the branch predictor,
 * and so few that they stay in L2 beside a small table; and no more than take 10 ms or so: of 1,000,000
 * stations these touch 4 of 5 buckets. */
#define STREAM_MIN 16384
#define STREAM_MAX 262144

/* Of the stations' addresses; unknown ones have another first byte. */
#define KNOWN	0x02
#define UNKNOWN 0x06

struct header {
	uint8_t destination[MAC_LEN], source[MAC_LEN];
};

struct table {
	uint32_t stations;
	uint32_t frames; /* of each stream */
	struct header *stream[THREADS];
	struct fdb *fdb;
#ifdef WITH_URCU
	struct cds_lfht *urcu;
#endif
};

enum kind {
	HIT,
	MISS,
	FULL,
	TICK,
};

static const char *const kinds[] = { "hit", "miss", "full", "tick" };

struct task {
	pthread_t thread;
	struct table *table;
	unsigned number;
	enum kind kind;
	uint64_t ns; /* about so long */
	pthread_barrier_t *start;
	uint64_t frames, cpu_ns, wall_ns, lookup, refresh;
};

/* Where results go that nothing else is done with. */
static struct {
	_Alignas(CACHE_PAIR) uint64_t value;
} sink[THREADS];

static uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

/* Addresses as they are in the field: few makers, any numbers. */
static void address(uint8_t *mac, uint8_t first, uint32_t station)
{
	uint64_t state = station;
	uint64_t some = random_next(&state);

	mac[0] = first;
	mac[1] = some & 3;
	mac[2] = (uint8_t)(station >> 24);
	mac[3] = (uint8_t)(station >> 16);
	mac[4] = (uint8_t)(station >> 8);
	mac[5] = (uint8_t)station;
}

#ifdef WITH_URCU

struct node {
	struct cds_lfht_node node;
	uint64_t word; /* as the table's */
	uint16_t tick;
	struct rcu_head head;
};

static int match(struct cds_lfht_node *node, const void *key)
{
	return (caa_container_of(node, struct node, node)->word ^ *(const uint64_t *)key) <=
	       FDB_PORT_MASK;
}

/* The hash that the table has. */
static unsigned long hash(const struct fdb *fdb, uint64_t key)
{
	return fdb_fold(fdb_fold(key ^ fdb->secret[0], fdb->secret[1]) ^ fdb->secret[2],
			fdb->secret[3]);
}

static struct node *urcu_find(struct table *table, uint64_t key)
{
	struct cds_lfht_iter iter;
	struct cds_lfht_node *found;

	cds_lfht_lookup(table->urcu, hash(table->fdb, key), match, &key, &iter);
	found = cds_lfht_iter_get_node(&iter);
	return found ? caa_container_of(found, struct node, node) : NULL;
}

static void table_fill(struct table *table)
{
	uint64_t buckets = 2;

	while (buckets < table->stations)
		buckets *= 2; /* load 0.5 to 1: chains of one or two */
	table->urcu = cds_lfht_new(buckets, buckets, buckets, 0, NULL);
	if (!table->urcu)
		abort();
	for (uint32_t i = 0; i < table->stations; i++) {
		struct node *node = calloc(1, sizeof(*node));
		uint8_t mac[MAC_LEN];

		if (!node)
			abort();
		address(mac, KNOWN, i);
		cds_lfht_node_init(&node->node);
		node->word = fdb_key(0, mac) | (i % PORTS + 1);
		node->tick = table->fdb->tick;
		cds_lfht_add(table->urcu, hash(table->fdb, fdb_key(0, mac)), &node->node);
	}
}

static uint64_t burst(struct table *table, struct fdb_frames *frames, unsigned number,
		      unsigned port)
{
	uint16_t tick = load_relaxed(&table->fdb->tick);
	uint64_t sum = 0;

	(void)number;
	for (unsigned i = 0; i < BURST; i++) {
		struct node *node = urcu_find(table, frames->source[i]);

		if (node && (node->word & FDB_PORT_MASK) == port + 1 &&
		    load_relaxed(&node->tick) != tick)
			store_relaxed(&node->tick, tick);
		sum += !node;
	}
	for (unsigned i = 0; i < BURST; i++) {
		struct node *node = urcu_find(table, frames->destination[i]);

		frames->port[i] = fdb_word_port(node ? node->word : 0);
		sum += frames->port[i];
	}
	urcu_qsbr_quiescent_state();
	return sum;
}

#else

static void table_fill(struct table *table)
{
	for (uint32_t i = 0; i < table->stations; i++) {
		uint8_t mac[MAC_LEN];

		address(mac, KNOWN, i);
		fdb_learn(table->fdb, fdb_view(table->fdb, 0), fdb_key(0, mac), i % PORTS);
	}
	if (fdb_stations(table->fdb) != table->stations)
		abort();
}

static uint64_t burst(struct table *table, struct fdb_frames *frames, unsigned number,
		      unsigned port)
{
	fdb_burst(table->fdb, fdb_view(table->fdb, number), frames, BURST, port);
	return (uint64_t)frames->learned[0] + frames->port[BURST - 1];
}

#endif

static struct table *table_new(uint32_t stations)
{
	struct table *table = calloc(1, sizeof(*table));
	struct fdb_params params = {
		.stations_max = stations,
		.ports = PORTS,
		.workers = THREADS,
		.secret = { 0x243f6a8885a308d3, 0x13198a2e03707344, 0xa4093822299f31d0,
			    0x082efa98ec4e6c89 },
	};

	if (!table || fdb_new(&table->fdb, &params))
		abort();
	table->stations = stations;
	table->frames = stations < STREAM_MIN ? STREAM_MIN :
			stations > STREAM_MAX ? STREAM_MAX :
						stations / BURST * BURST;
	for (unsigned i = 0; i < THREADS; i++) {
		uint64_t state = i + 1;

		table->stream[i] = calloc(table->frames, sizeof(struct header));
		if (!table->stream[i])
			abort();
		for (uint32_t j = 0; j < table->frames; j++) {
			uint32_t port = j / BURST % PORTS;
			uint32_t of_port = (uint32_t)(random_next(&state) % (stations / PORTS));

			address(table->stream[i][j].source, KNOWN, of_port * PORTS + port);
			address(table->stream[i][j].destination, KNOWN,
				(uint32_t)(random_next(&state) % stations));
		}
	}
	table_fill(table);
	return table;
}

static struct table *table_get(uint32_t stations)
{
	static struct table *tables[SIZES];

	for (unsigned i = 0; i < SIZES; i++) {
		if (!tables[i])
			tables[i] = table_new(stations);
		if (tables[i]->stations == stations)
			return tables[i];
	}
	abort();
}

/* All of the stream once. The bits by which the kinds differ are added here, so that they share one. */
static void stream_run(struct task *task)
{
	struct table *table = task->table;
	struct fdb_frames frames;
	const struct header *header = table->stream[task->number];
	/* KNOWN to UNKNOWN, in a key. */
	uint64_t flip = (uint64_t)(KNOWN ^ UNKNOWN) << (39 + FDB_PORT_BITS);
	uint64_t source = task->kind == FULL ? flip : 0,
		 destination = task->kind == MISS ? flip : 0;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < table->frames; i += BURST) {
		for (unsigned j = 0; j < BURST; j++) {
			frames.source[j] = fdb_key(0, header[i + j].source) ^ source;
			frames.destination[j] = fdb_key(0, header[i + j].destination) ^ destination;
		}
		sum += burst(table, &frames, task->number, i / BURST % PORTS);
	}
	store_relaxed(&sink[task->number].value, sum);
	task->frames += table->frames;
}

static void *task_run(void *context)
{
	struct task *task = context;
	uint64_t cpu, wall;

	(void)timed_pin((int)task->number); /* where there is one CPU, both are on it */
#ifdef WITH_URCU
	urcu_qsbr_register_thread();
#endif
	if (task->kind != TICK)
		stream_run(task); /* warm: and all stamps are of this tick */
	task->frames = 0;
	timed_hurry(1);
	pthread_barrier_wait(task->start);
#ifdef COUNT_WRITES
	lookup_writes = refresh_writes = 0;
#endif
	cpu = timed_ns();
	wall = clock_now_ns();
	do {
		stream_run(task);
	} while (clock_now_ns() - wall < task->ns);
	task->cpu_ns = timed_ns() - cpu;
	task->wall_ns = clock_now_ns() - wall;
	timed_hurry(0);
#ifdef COUNT_WRITES
	task->lookup = lookup_writes;
	task->refresh = refresh_writes;
#endif
#ifdef WITH_URCU
	urcu_qsbr_unregister_thread();
#endif
	return NULL;
}

static void run(struct table *table, unsigned threads, enum kind kind, uint64_t ns)
{
	struct task task[THREADS] = { 0 };
	double cpu = 0, wall = 0, frames = 0, lookup = 0, refresh = 0;
	pthread_barrier_t start;

	if (kind == TICK)
		fdb_age(table->fdb, (table->fdb->ticks + 1) * FDB_TICK_NS);
	pthread_barrier_init(&start, NULL, threads);
	for (unsigned i = 0; i < threads; i++) {
		task[i] = (struct task){
			.table = table, .number = i, .kind = kind, .ns = ns, .start = &start
		};
		if (pthread_create(&task[i].thread, NULL, task_run, &task[i]))
			abort();
	}
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(task[i].thread, NULL);
		cpu += (double)task[i].cpu_ns;
		wall += (double)task[i].wall_ns;
		frames += (double)task[i].frames;
		lookup += (double)task[i].lookup;
		refresh += (double)task[i].refresh;
	}
	pthread_barrier_destroy(&start);
	printf("%.3f %.3f %.1f %.1f\n", cpu / frames, wall / cpu, lookup * 1e6 / frames,
	       refresh * 1e6 / frames);
	fflush(stdout);
}

int main(void)
{
	unsigned stations, threads, ms;
	char kind[8];

#ifdef WITH_URCU
	urcu_qsbr_register_thread();
#endif
	/* NOLINTNEXTLINE(cert-err34-c): a script writes it */
	while (scanf("%u %u %7s %u", &stations, &threads, kind, &ms) == 4) {
		unsigned i = 0;

		while (i < sizeof(kinds) / sizeof(kinds[0]) && strcmp(kind, kinds[i]) != 0)
			i++;
		if (i > TICK || stations < PORTS || !threads || threads > THREADS)
			return 1;
#ifdef WITH_URCU
		urcu_qsbr_thread_offline();
#endif
		run(table_get(stations), threads, i, ms * NSEC_PER_MSEC);
#ifdef WITH_URCU
		urcu_qsbr_thread_online();
#endif
	}
	return 0;
}
