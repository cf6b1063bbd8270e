/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 *	test_fdb [SEED]		the seed of the random operations, which each run prints
 */
#include "base/atomic.h"

/* What another thread does between two accesses to shared memory, where a test says: all interleavings
 * of two threads of which one is not interrupted can be had in turn, and by one thread. */
static _Thread_local unsigned interrupt_after; /* accesses; 0: never */
static _Thread_local void (*interrupt_by)(void);

static void shared_access(void)
{
	if (interrupt_after && !--interrupt_after)
		interrupt_by();
}

#undef load_relaxed
#undef store_relaxed
#undef store_release
#define load_relaxed(p)	    (shared_access(), __atomic_load_n((p), __ATOMIC_RELAXED))
#define store_relaxed(p, v) (__atomic_store_n((p), (v), __ATOMIC_RELAXED), shared_access())
#define store_release(p, v) (__atomic_store_n((p), (v), __ATOMIC_RELEASE), shared_access())

#include "../../src/fwd/fdb.c"

#include "base/clock.h"
#include <pthread.h>
#include <stdio.h>

#include "unit.h"

static uint64_t seed;

/* splitmix64: each state gives another number, none of them is bad. */
static uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static uint32_t random_below(uint64_t *state, uint32_t limit)
{
	return (uint32_t)((random_next(state) >> 32) * limit >> 32);
}

static uint64_t key_of(uint16_t vlan, uint64_t address)
{
	uint8_t mac[MAC_LEN] = { 0 };

	for (int i = 0; i < MAC_LEN; i++)
		mac[i] = (uint8_t)(address >> (40 - 8 * i));
	return fdb_key(vlan, mac);
}

/* Station number i of many, each another one: 02:00 and the number. */
static uint64_t station(uint32_t i)
{
	return key_of(0, 0x020000000000ULL + i);
}

static struct fdb *table(uint32_t stations_max, uint32_t ageing)
{
	struct fdb_params params = {
		.stations_max = stations_max,
		.ports = 4,
		.workers = 2,
		.ageing = ageing,
		.secret = { seed, seed + 0x1234567890abcdefULL, ~seed,
			    seed ^ 0xfedcba9876543211ULL },
	};
	struct fdb *fdb = NULL;

	assert_int_equal(fdb_new(&fdb, &params), 0);
	return fdb;
}

static uint64_t ticks_ns(uint64_t ticks)
{
	return ticks * FDB_TICK_NS;
}

static const struct fdb_filter all = { .port = -1, .vlan = -1, .learned = true, .fixed = true };
static const struct fdb_filter learned_ones = { .port = -1, .vlan = -1, .learned = true };

/* What fits, in order, as it stands in the table of which nobody learns now: *count of them, for free(3). */
static struct fdb_entry *entries_of(const struct fdb *fdb, const struct fdb_filter *filter,
				    uint32_t *count)
{
	struct fdb_entry *entries = calloc((fdb->mask + 1) * FDB_SLOTS, sizeof(*entries));
	struct fdb_found at;

	assert_non_null(entries);
	*count = 0;
	for_each_entry(fdb, at) *count += entry_take(fdb, filter, at, &entries[*count]);
	qsort(entries, *count, sizeof(*entries), entry_order);
	return entries;
}

/* Pages of any size have all of them, and what is wanted again is the same again. */
static void pages_have_all(struct fdb *fdb, const struct fdb_filter *filter, uint32_t room)
{
	uint32_t count, got = 0, now;
	struct fdb_entry *entries = entries_of(fdb, filter, &count);
	struct fdb_entry *page = calloc(room + 1, sizeof(*page));
	uint64_t after = 0;

	assert_non_null(page);
	do {
		page[room].key = 7; /* behind the room nothing is written */
		now = fdb_page(fdb, filter, after, page, room);
		assert_int_equal(page[room].key, 7);
		assert_true(got + now <= count);
		for (uint32_t i = 0; i < now; i++, got++) {
			assert_true(page[i].key == entries[got].key);
			assert_int_equal(page[i].port, entries[got].port);
			assert_int_equal(page[i].age, entries[got].age);
			assert_int_equal(page[i].fixed, entries[got].fixed);
			after = page[i].key;
		}
	} while (now == room);
	assert_int_equal(got, count);
	free(entries);
	free(page);
}

/* What the table counts is what is in it; nothing is in it twice; nothing is where it is not found. */
static void audit(struct fdb *fdb)
{
	uint32_t count, stations[FDB_PORTS_MAX + 1] = { 0 }, fixed[FDB_PORTS_MAX + 1] = { 0 };
	struct fdb_entry *entries = entries_of(fdb, &all, &count);
	uint32_t learned = 0;

	for (uint32_t i = 0; i < count; i++) {
		assert_true(!i || entries[i].key > entries[i - 1].key);
		assert_int_equal(fdb_lookup(fdb, entries[i].key), entries[i].port);
		(entries[i].fixed ? fixed : stations)[entries[i].port]++;
		learned += !entries[i].fixed;
	}
	free(entries);
	assert_int_equal(fdb_stations(fdb), learned);
	for (unsigned port = 0; port <= FDB_PORTS_MAX; port++) {
		assert_int_equal(fdb->port[port].stations, stations[port]);
		assert_int_equal(fdb->port[port].fixed, fixed[port]);
	}
	for (unsigned i = 0; i < FDB_LOCKS; i++)
		assert_int_equal(fdb->locks[i].held, 0);
	assert_int_equal(fdb->relocating, 0);
	for (uint32_t bucket = 0; bucket <= fdb->mask; bucket++) {
		for (unsigned slot = 0; slot < FDB_SLOTS; slot++) {
			struct fdb_found at = { .bucket = bucket, .slot = slot };

			assert_int_equal(!*word_at(fdb, at), *stamp_at(fdb, at) == FDB_STAMP_NONE);
		}
	}
}

static void a_key_is_the_station_and_sorts_as_people_write_it(void **state)
{
	static const struct {
		uint16_t vlan;
		uint64_t mac;
	} ascending[] = {
		{ 0, 0x000000000001 },	  { 0, 0x00ffffffffff },    { 0, 0x020000000000 },
		{ 0, 0xfeffffffffff },	  { 1, 0x000000000001 },    { 1, 0x020000000001 },
		{ 4094, 0x00000000ff00 }, { 4094, 0xfeffffffffff },
	};
	uint64_t last = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ascending); i++) {
		uint64_t key = key_of(ascending[i].vlan, ascending[i].mac), back = 0;
		uint8_t mac[MAC_LEN] = { 0 };

		assert_true(key > last);
		assert_int_equal(key & FDB_PORT_MASK, 0);
		assert_int_equal(fdb_key_vlan(key), ascending[i].vlan);
		fdb_key_mac(key, mac);
		for (int j = 0; j < MAC_LEN; j++)
			back = back << 8 | mac[j];
		assert_true(back == ascending[i].mac);
		last = key;
	}
	assert_int_equal(key_of(0, 0), FDB_NO_STATION);
	assert_int_equal(key_of(7, 0), FDB_NO_STATION);
	assert_int_equal(key_of(7, 0x010000000000), FDB_NO_STATION);
	assert_int_equal(key_of(7, 0xffffffffffff), FDB_NO_STATION);
}

static void parameters_out_of_their_range_are_refused(void **state)
{
	const struct fdb_params good = { .stations_max = 1, .ports = 1, .workers = 1 };
	struct fdb_params bad[] = { good, good, good, good, good, good };
	struct fdb *fdb = NULL;

	(void)state;
	bad[0].stations_max = 0;
	bad[1].stations_max = FDB_STATIONS_MAX + 1;
	bad[2].ports = 0;
	bad[3].ports = FDB_PORTS_MAX + 1;
	bad[4].workers = 0;
	bad[5].ageing = FDB_AGEING_MAX + 1;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(fdb_new(&fdb, &bad[i]), -EINVAL);
	assert_int_equal(fdb_new(&fdb, &good), 0);
	assert_true(fdb->secret[0] && fdb->secret[2]); /* nobody gave one */
	fdb_free(fdb);
	fdb_free(NULL);
}

static void a_station_is_learned_found_and_moves(void **state)
{
	struct fdb *fdb = table(100, 300);
	struct fdb_view *view = fdb_view(fdb, 1);
	struct fdb_move move = { 0 };
	struct fdb_counts counts;

	(void)state;
	assert_int_equal(fdb_lookup(fdb, station(1)), FDB_UNKNOWN);
	assert_false(fdb_last_move(fdb, &move));
	assert_int_equal(fdb_learn(fdb, view, station(1), 3), FDB_NEW);
	assert_int_equal(fdb_learn(fdb, view, station(1), 3), FDB_UNCHANGED);
	assert_int_equal(fdb_lookup(fdb, station(1)), 3);
	assert_int_equal(fdb_lookup(fdb, key_of(1, 0x020000000001)),
			 FDB_UNKNOWN); /* another VLAN */
	assert_int_equal(fdb_learn(fdb, view, station(1), 0), FDB_MOVED);
	assert_int_equal(fdb_lookup(fdb, station(1)), 0);
	assert_true(fdb_last_move(fdb, &move));
	assert_true(move.key == station(1) && move.from == 3 && move.to == 0);
	assert_int_equal(fdb_learn(fdb, view, FDB_NO_STATION, 0), FDB_INVALID);
	assert_int_equal(fdb_lookup(fdb, FDB_NO_STATION), FDB_UNKNOWN);
	counts = fdb_count(fdb, 0);
	assert_int_equal(counts.stations, 1);
	assert_int_equal(counts.events[FDB_MOVED], 1);
	assert_int_equal(counts.events[FDB_INVALID], 0);
	assert_int_equal(fdb_count(fdb, 3).stations, 0);
	assert_int_equal(fdb_count(fdb, 3).events[FDB_NEW], 1);
	assert_int_equal(fdb_remove(fdb, station(1)), 0);
	assert_int_equal(fdb_remove(fdb, station(1)), -ENOENT);
	assert_int_equal(fdb_count(fdb, 0).removed, 1);
	audit(fdb);
	fdb_free(fdb);
}

static void the_last_move_is_the_newest_of_all_workers(void **state)
{
	struct fdb *fdb = table(100, 300);
	struct fdb_move move = { 0 };

	(void)state;
	fdb_learn(fdb, fdb_view(fdb, 0), station(1), 0);
	for (uint32_t i = 1; i <= 9; i++) {
		/* Each moves one a few times in a row, in turns of three. */
		assert_int_equal(fdb_learn(fdb, fdb_view(fdb, i / 3 % 2), station(1), i % 4),
				 FDB_MOVED);
		assert_true(fdb_last_move(fdb, &move));
		assert_int_equal(move.from, (i - 1) % 4);
		assert_int_equal(move.to, i % 4);
	}
	audit(fdb);
	fdb_free(fdb);
}

static void stations_age_and_what_sends_or_is_touched_does_not(void **state)
{
	struct fdb *fdb = table(100, 5);
	struct fdb_view *view = fdb_view(fdb, 0);

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		fdb_learn(fdb, view, station(i), 1);
	assert_int_equal(fdb_add(fdb, station(9), 2), 0);
	for (uint64_t now = 1; now <= 5; now++) {
		assert_int_equal(fdb_age(fdb, ticks_ns(now)), 0);
		assert_int_equal(fdb_learn(fdb, view, station(0), 1), FDB_REFRESHED);
		assert_int_equal(fdb_learn(fdb, view, station(0), 1), FDB_UNCHANGED);
		assert_true(fdb_touch(fdb, station(1)));
		assert_int_equal(fdb_age(fdb, ticks_ns(now) + FDB_TICK_NS - 1), 0);
	}
	assert_int_equal(fdb_age(fdb, ticks_ns(6)),
			 2); /* seen at 0, 5 allowed, and up to one more */
	assert_int_equal(fdb_lookup(fdb, station(0)), 1);
	assert_int_equal(fdb_lookup(fdb, station(1)), 1);
	assert_int_equal(fdb_lookup(fdb, station(2)), FDB_UNKNOWN);
	assert_false(fdb_touch(fdb, station(3)));
	assert_int_equal(fdb_count(fdb, 1).expired, 2);
	assert_int_equal(fdb_count(fdb, 1).events[FDB_REFRESHED], 5);
	fdb_set_ageing(fdb, 0);
	assert_int_equal(fdb_age(fdb, ticks_ns(1000)), 0);
	assert_int_equal(fdb_lookup(fdb, station(0)), 1);
	fdb_set_ageing(fdb, 10);
	assert_int_equal(fdb_age(fdb, ticks_ns(1001)), 2);
	assert_int_equal(fdb_lookup(fdb, station(9)), 2); /* static */
	audit(fdb);
	fdb_free(fdb);
}

static void stamps_that_begin_again_do_not_end_a_station(void **state)
{
	struct fdb *fdb = table(100, FDB_AGEING_MAX);
	struct fdb_view *view = fdb_view(fdb, 0);

	(void)state;
	/* Every stamp there is, twice: one station sends in each tick, others were seen once. */
	fdb_learn(fdb, view, station(1), 1);
	for (uint64_t now = 1; now < 2 * STAMPS + 10; now++) {
		uint32_t expired = fdb_age(fdb, ticks_ns(now));

		assert_int_equal(expired, now == 7 + FDB_AGEING_MAX + 1 ||
						  now == 60007 + FDB_AGEING_MAX + 1);
		if (now == 7 || now == 60007)
			fdb_learn(fdb, view, station((uint32_t)now), 2);
		assert_int_equal(fdb_learn(fdb, view, station(1), 1), FDB_REFRESHED);
	}
	assert_int_equal(fdb_stations(fdb), 1);
	fdb_free(fdb);
}

static void what_is_static_is_not_learned_elsewhere(void **state)
{
	struct fdb *fdb = table(100, 1);
	struct fdb_view *view = fdb_view(fdb, 0);

	(void)state;
	fdb_learn(fdb, view, station(1), 3);
	assert_int_equal(fdb_add(fdb, station(1), 0), 0); /* in the place of the learned one */
	assert_int_equal(fdb_stations(fdb), 0);
	assert_int_equal(fdb_learn(fdb, view, station(1), 3), FDB_PINNED);
	assert_int_equal(fdb_learn(fdb, view, station(1), 0), FDB_UNCHANGED);
	assert_int_equal(fdb_lookup(fdb, station(1)), 0);
	assert_int_equal(fdb_add(fdb, station(2), FDB_BLOCKED), 0);
	assert_int_equal(fdb_learn(fdb, view, station(2), 0), FDB_DENIED);
	assert_int_equal(fdb_lookup(fdb, station(2)), FDB_BLOCKED);
	assert_int_equal(fdb_count(fdb, FDB_BLOCKED).fixed, 1);
	assert_int_equal(fdb_add(fdb, station(1), FDB_BLOCKED), 0); /* and again otherwise */
	assert_int_equal(fdb_count(fdb, 0).fixed, 0);
	assert_int_equal(fdb_add(fdb, station(3), 4), -EINVAL); /* there are ports 0 to 3 */
	assert_int_equal(fdb_add(fdb, FDB_NO_STATION, 0), -EINVAL);
	assert_int_equal(fdb_age(fdb, ticks_ns(100)), 0);
	assert_int_equal(fdb_flush(fdb, &learned_ones), 0);
	audit(fdb);
	assert_int_equal(fdb_flush(fdb, &all), 2);
	assert_int_equal(fdb_lookup(fdb, station(1)), FDB_UNKNOWN);
	assert_int_equal(fdb_learn(fdb, view, station(1), 3), FDB_NEW);
	audit(fdb);
	fdb_free(fdb);
}

static void a_port_learns_no_more_than_it_may(void **state)
{
	struct fdb *fdb = table(100, 300);
	struct fdb_view *view = fdb_view(fdb, 0);

	(void)state;
	fdb_set_limit(fdb, 1, 2);
	assert_int_equal(fdb_learn(fdb, view, station(1), 1), FDB_NEW);
	assert_int_equal(fdb_learn(fdb, view, station(2), 1), FDB_NEW);
	assert_int_equal(fdb_learn(fdb, view, station(3), 1), FDB_LIMITED);
	assert_int_equal(fdb_learn(fdb, view, station(3), 0), FDB_NEW);
	assert_int_equal(fdb_learn(fdb, view, station(3), 1),
			 FDB_LIMITED); /* nor takes it one away */
	assert_int_equal(fdb_lookup(fdb, station(3)), 0);
	assert_int_equal(fdb_learn(fdb, view, station(2), 0), FDB_MOVED);
	assert_int_equal(fdb_learn(fdb, view, station(3), 1), FDB_MOVED);
	fdb_set_limit(fdb, 1, 0);
	assert_int_equal(fdb_lookup(fdb, station(1)), 1); /* stays */
	assert_int_equal(fdb_count(fdb, 1).events[FDB_LIMITED], 2);
	assert_int_equal(fdb_count(fdb, 1).limit, 0);
	audit(fdb);
	fdb_free(fdb);
}

static void a_flood_fills_the_table_and_no_more(void **state)
{
	struct fdb *fdb = table(1000, 300);
	struct fdb_view *view = fdb_view(fdb, 0);
	uint32_t learned = 0;

	(void)state;
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(fdb_add(fdb, station(1000000 + i), 2), 0);
	for (uint32_t i = 0; i < 100000; i++)
		learned += fdb_learn(fdb, view, station(i), 1) == FDB_NEW;
	assert_int_equal(learned, 1000);
	assert_int_equal(fdb_count(fdb, 1).events[FDB_FULL], 100000 - 1000);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(fdb_lookup(fdb, station(1000000 + i)), 2);
	audit(fdb);
	/* More static ones than there is room for beside them: learned stations make it. */
	for (uint32_t i = 10; i < fdb_slots(fdb) / 2; i++)
		assert_int_equal(fdb_add(fdb, station(1000000 + i), 2), 0);
	for (uint32_t i = 0; i < fdb_slots(fdb) / 2; i++)
		assert_int_equal(fdb_lookup(fdb, station(1000000 + i)), 2);
	assert_int_equal(fdb_stations(fdb) + fdb_count(fdb, 1).removed, 1000);
	audit(fdb);
	fdb_free(fdb);
}

static void only_static_entries_leave_no_place_for_another(void **state)
{
	struct fdb *fdb = table(14, 300); /* two buckets: every station has the same place */
	uint32_t i = 0;

	(void)state;
	assert_int_equal(fdb_slots(fdb), 16);
	for (; i < 16; i++)
		assert_int_equal(fdb_add(fdb, station(i), 1), 0);
	assert_int_equal(fdb_add(fdb, station(i), 1), -ENOSPC);
	assert_int_equal(fdb_learn(fdb, fdb_view(fdb, 0), station(i), 1), FDB_FULL);
	assert_int_equal(fdb_remove(fdb, station(3)), 0);
	assert_int_equal(fdb_learn(fdb, fdb_view(fdb, 0), station(i), 1), FDB_NEW);
	audit(fdb);
	fdb_free(fdb);
}

/* The most that come together in one of 512 buckets, of 4,096 addresses so far apart. */
static unsigned fullest_of(const struct fdb *fdb, uint64_t step)
{
	unsigned filled[2][512] = { { 0 } }, most = 0;

	for (uint64_t i = 0; i < 4096; i++) {
		struct fdb_place place = fdb_place(fdb, i * step << FDB_PORT_BITS);

		for (int j = 0; j < 2; j++) {
			unsigned now = ++filled[j][place.bucket[j]];

			most = now > most ? now : most;
		}
	}
	return most;
}

/*
 * Addresses in a row, in steps, of all makers, of one address in all VLANs: with every secret they spread as
 * random numbers do, of which the fullest of 512 buckets with 8 each had 28 in 3,000 tries. One fold alone
 * puts up to 819 into one for some secrets, a multiplication without a fold all of them (docs/fdb.md).
 */
static void whatever_the_addresses_no_bucket_is_fuller_than_by_chance(void **state)
{
	static const uint64_t steps[] = { 1, 1ULL << 8, 1ULL << 24, 1ULL << 47, 65537 };
	uint64_t random = seed;
	unsigned fullest = 0;

	(void)state;
	for (int secrets = 0; secrets < 100; secrets++) {
		struct fdb fdb = { .mask = 511 };

		for (int i = 0; i < 4; i++)
			fdb.secret[i] = random_next(&random) | 1;
		for (size_t set = 0; set < ARRAY_SIZE(steps); set++) {
			unsigned most = fullest_of(&fdb, steps[set]);

			fullest = most > fullest ? most : fullest;
		}
	}
	print_message("the fullest bucket has %u\n", fullest);
	assert_in_range(fullest, 9, 40);
}

/* Fills tables to FDB_LOAD_PERCENT of their slots; returns how many stations found no place. */
static uint32_t filled(struct fdb *fdb, uint32_t count, uint64_t *state)
{
	struct fdb_view *view = fdb_view(fdb, 0);
	uint32_t full = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t key = key_of((uint16_t)random_below(state, 4095),
				      (random_next(state) & 0xfeffffffffffULL) | 2);

		full += fdb_learn(fdb, view, key, i % 4) == FDB_FULL;
	}
	return full;
}

static void at_its_highest_load_every_station_finds_a_place(void **state)
{
	uint32_t slots = 65536, count = slots * FDB_LOAD_PERCENT / 100;
	uint64_t random = seed;

	(void)state;
	for (int i = 0; i < 10; i++) {
		struct fdb *fdb = table(count, 300);

		assert_int_equal(fdb_slots(fdb), slots);
		assert_int_equal(filled(fdb, count, &random), 0);
		if (!i)
			print_message("%u stations in %u slots: %u relocations\n", count, slots,
				      fdb->relocations);
		assert_true(fdb->relocations > 0);
		audit(fdb);
		fdb_free(fdb);
	}
}

static void a_burst_does_what_one_by_one_does(void **state)
{
	struct fdb *fdb = table(1000, 300), *other = table(1000, 300);
	struct fdb_frames frames;
	uint64_t random = seed;

	(void)state;
	for (int round = 0; round < 1000; round++) {
		unsigned count = random_below(&random, FDB_BURST + 1),
			 port = random_below(&random, 4);
		uint8_t ports[FDB_BURST];

		for (unsigned i = 0; i < count; i++) {
			frames.source[i] = station(random_below(&random, 500));
			frames.destination[i] = station(random_below(&random, 500));
			if (i % 8 == 0)
				frames.destination[i] = FDB_NO_STATION;
			if (i % 8 == 1)
				frames.source[i] = FDB_NO_STATION;
		}
		fdb_burst(fdb, fdb_view(fdb, 0), &frames, count, port);
		for (unsigned i = 0; i < count; i++)
			assert_int_equal(frames.learned[i], fdb_learn(other, fdb_view(other, 0),
								      frames.source[i], port));
		fdb_lookup_burst(other, frames.destination, count, ports);
		for (unsigned i = 0; i < count; i++) {
			assert_int_equal(frames.port[i], fdb_lookup(other, frames.destination[i]));
			assert_int_equal(frames.port[i], ports[i]);
		}
	}
	audit(fdb);
	fdb_free(fdb);
	fdb_free(other);
}

static void filters_choose_what_is_flushed_and_listed(void **state)
{
	static const struct {
		struct fdb_filter filter;
		uint32_t want;
	} cases[] = {
		{ { .port = -1, .vlan = -1, .learned = true, .fixed = true }, 25 },
		{ { .port = -1, .vlan = -1, .learned = true }, 20 },
		{ { .port = -1, .vlan = -1, .fixed = true }, 5 },
		{ { .port = 1, .vlan = -1, .learned = true, .fixed = true }, 5 },
		{ { .port = -1, .vlan = 3, .learned = true, .fixed = true }, 5 },
		{ { .port = 1, .vlan = 3, .learned = true }, 1 },
		{ { .port = FDB_BLOCKED, .vlan = -1, .learned = true, .fixed = true }, 5 },
		{ { .port = 1, .vlan = 3 }, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fdb *fdb = table(100, 300);
		uint32_t count;

		for (uint16_t vlan = 0; vlan < 5; vlan++) {
			for (unsigned port = 0; port < 4; port++)
				fdb_learn(fdb, fdb_view(fdb, 0),
					  key_of(vlan, 0x020000000000 + port), port);
			assert_int_equal(fdb_add(fdb, key_of(vlan, 0x02000000ff00), FDB_BLOCKED),
					 0);
		}
		free(entries_of(fdb, &cases[i].filter, &count));
		assert_int_equal(count, cases[i].want);
		for (uint32_t room = 1; room < 30; room++)
			pages_have_all(fdb, &cases[i].filter, room);
		assert_int_equal(fdb_page(fdb, &cases[i].filter, 0, NULL, 0), 0);
		assert_int_equal(fdb_flush(fdb, &cases[i].filter), cases[i].want);
		assert_int_equal(fdb_stations(fdb) + fdb_count(fdb, FDB_BLOCKED).fixed,
				 25 - cases[i].want);
		audit(fdb);
		fdb_free(fdb);
	}
}

static void who_does_not_get_a_lock_does_not_wait(void **state)
{
	struct fdb *fdb = table(1000, 300);
	struct fdb_view *view = fdb_view(fdb, 0);
	struct fdb_place place = fdb_place(fdb, station(1));

	(void)state;
	for (int i = 0; i < 2; i++) {
		uint32_t *lock = lock_of(fdb, place.bucket[i]);

		assert_true(lock_try(lock));
		assert_int_equal(fdb_learn(fdb, view, station(1), 1), FDB_BUSY);
		lock_release(lock);
	}
	assert_int_equal(fdb_count(fdb, 1).events[FDB_BUSY], 2);
	assert_int_equal(fdb_learn(fdb, view, station(1), 1), FDB_NEW);
	audit(fdb);
	fdb_free(fdb);
}

/* The model: arrays. */

#define MODEL_STATIONS	 1200
#define MODEL_OPERATIONS 3000000

struct model {
	struct fdb *fdb;
	uint64_t now, random;
	uint32_t ageing, learned, limit[4], stations[4];
	struct {
		bool there, fixed;
		uint8_t port;
		uint64_t seen;
	} station[MODEL_STATIONS];
};

static uint64_t model_key(uint32_t i)
{
	return key_of((uint16_t)(i % 3), 0x020000000000ULL + i / 3 * 0x10001ULL);
}

static void model_forget(struct model *model, uint32_t i)
{
	if (model->station[i].there && !model->station[i].fixed) {
		model->learned--;
		model->stations[model->station[i].port]--;
	}
	model->station[i].there = model->station[i].fixed = false;
}

static enum fdb_learned model_learn(struct model *model, uint32_t i, unsigned port)
{
	bool there = model->station[i].there;

	if (there && model->station[i].port == port) {
		bool old = model->station[i].seen != model->now && !model->station[i].fixed;

		model->station[i].seen = model->now;
		return old ? FDB_REFRESHED : FDB_UNCHANGED;
	}
	if (there && model->station[i].fixed)
		return model->station[i].port == FDB_BLOCKED ? FDB_DENIED : FDB_PINNED;
	if (model->stations[port] >= model->limit[port])
		return FDB_LIMITED;
	if (!there && model->learned >= model->fdb->stations_max)
		return FDB_FULL;
	model_forget(model, i);
	model->station[i].there = true;
	model->station[i].port = (uint8_t)port;
	model->station[i].seen = model->now;
	model->stations[port]++;
	model->learned++;
	return there ? FDB_MOVED : FDB_NEW;
}

static uint32_t model_age(struct model *model)
{
	uint32_t expired = 0;

	for (uint32_t i = 0; i < MODEL_STATIONS && model->ageing; i++) {
		if (model->station[i].there && !model->station[i].fixed &&
		    model->now - model->station[i].seen > model->ageing) {
			model_forget(model, i);
			expired++;
		}
	}
	return expired;
}

static uint32_t model_flush(struct model *model, const struct fdb_filter *filter)
{
	uint32_t removed = 0;

	for (uint32_t i = 0; i < MODEL_STATIONS; i++) {
		bool fixed = model->station[i].fixed;

		if (!model->station[i].there || !(fixed ? filter->fixed : filter->learned) ||
		    (filter->port >= 0 && filter->port != model->station[i].port) ||
		    (filter->vlan >= 0 && (uint32_t)filter->vlan != i % 3))
			continue;
		model_forget(model, i);
		removed++;
	}
	return removed;
}

static void model_add(struct model *model, uint32_t i, unsigned port)
{
	model_forget(model, i);
	model->station[i].there = model->station[i].fixed = true;
	model->station[i].port = (uint8_t)port;
}

static uint8_t model_lookup(const struct model *model, uint32_t i)
{
	return model->station[i].there ? model->station[i].port : FDB_UNKNOWN;
}

static void model_check_entries(struct model *model)
{
	uint32_t count, there = 0;
	struct fdb_entry *entries = entries_of(model->fdb, &all, &count);

	for (uint32_t i = 0; i < MODEL_STATIONS; i++) {
		struct fdb_entry want = { .key = model_key(i) }, *found;

		there += model->station[i].there;
		found = bsearch(&want, entries, count, sizeof(want), entry_order);
		assert_int_equal(!!found, model->station[i].there);
		if (!found)
			continue;
		assert_int_equal(found->port, model->station[i].port);
		assert_int_equal(found->fixed, model->station[i].fixed);
		assert_int_equal(found->age,
				 found->fixed ? 0 : model->now - model->station[i].seen);
	}
	assert_int_equal(count, there);
	free(entries);
	pages_have_all(model->fdb, &all, 1 + random_below(&model->random, 300));
	audit(model->fdb);
}

/* What changes a setting or much at once, once in a while. */
static void model_rare(struct model *model)
{
	uint64_t *random = &model->random;
	struct fdb_filter filter = { .port = (int)random_below(random, 5) - 1,
				     .vlan = (int)random_below(random, 4) - 1,
				     .learned = random_below(random, 4) > 0,
				     .fixed = random_below(random, 4) == 0 };
	unsigned port = random_below(random, 4);

	switch (random_below(random, 5)) {
	case 0:
		assert_int_equal(fdb_flush(model->fdb, &filter), model_flush(model, &filter));
		break;
	case 1:
		model->limit[port] =
			random_below(random, 2) ? UINT32_MAX : random_below(random, 400);
		fdb_set_limit(model->fdb, port, model->limit[port]);
		break;
	case 2:
		model->ageing = random_below(random, 40);
		fdb_set_ageing(model->fdb, model->ageing);
		break;
	case 3:
		model_check_entries(model);
		pages_have_all(model->fdb, &filter, 1 + random_below(random, 100));
		break;
	default:
		for (port = 0; port < 4; port++)
			assert_int_equal(fdb_count(model->fdb, port).stations,
					 model->stations[port]);
	}
}

static void model_step(struct model *model)
{
	uint64_t *random = &model->random;
	uint32_t what = random_below(random, 1000), i = random_below(random, MODEL_STATIONS);
	uint64_t key = model_key(i);
	unsigned port = random_below(random, 4);

	if (what < 500) {
		/* Mostly where it belongs, sometimes it moves. */
		port = random_below(random, 10) ? i % 4 : port;
		assert_int_equal(fdb_learn(model->fdb, fdb_view(model->fdb, what % 2), key, port),
				 model_learn(model, i, port));
	} else if (what < 950) {
		assert_int_equal(fdb_lookup(model->fdb, key), model_lookup(model, i));
	} else if (what < 960) {
		assert_int_equal(fdb_touch(model->fdb, key), model->station[i].there);
		model->station[i].seen = model->now;
	} else if (what == 960 && !random_below(random, 4)) {
		port = random_below(random, 3) ? port : FDB_BLOCKED;
		assert_int_equal(fdb_add(model->fdb, key, port), 0);
		model_add(model, i, port);
	} else if (what < 980) {
		assert_int_equal(fdb_remove(model->fdb, key),
				 model->station[i].there ? 0 : -ENOENT);
		model_forget(model, i);
	} else if (what < 982) {
		model->now += 1 + random_below(random, 2);
		assert_int_equal(fdb_age(model->fdb, ticks_ns(model->now)), model_age(model));
	} else if (what == 999 && !random_below(random, 10)) {
		model_rare(model);
	}
}

/*
 * 1200 stations of which the table learns 880, in 1024 slots of 128 buckets, and some 20 static ones:
 * many buckets are full and entries are relocated, and yet every one finds a place.
 */
static void the_table_does_what_plain_arrays_do(void **state)
{
	static struct model model;

	(void)state;
	model.fdb = table(880, 20);
	model.ageing = 20;
	model.random = seed;
	memset(model.limit, 0xff, sizeof(model.limit));
	for (int i = 0; i < MODEL_OPERATIONS; i++)
		model_step(&model);
	model_check_entries(&model);
	print_message("%u operations, %u relocations, seed %llu\n", MODEL_OPERATIONS,
		      model.fdb->relocations, (unsigned long long)seed);
	fdb_free(model.fdb);
}

/*
 * Several threads at once: two learn and look up, the main one ages, lists, adds and removes. Each of the
 * stations below TORTURE_STILL sends all the time and never moves: it may not be missing from any lookup
 * once it is known, nor from any listing, while all the others come, move and go around it and entries are
 * relocated. A word that is half of one and half of another would be an entry that nobody has made.
 */
#define TORTURE_STILL	 300
#define TORTURE_STATIONS 1800 /* in 2048 slots */
#define TORTURE_NS	 (NSEC_PER_SEC)

struct torture {
	struct fdb *fdb;
	unsigned number;
	uint64_t seed, learned[FDB_RESULTS], lookups;
	uint32_t *end;
};

/* Station i may be on ports i % 4 and (i + 1) % 4 only. */
static bool torture_allowed(uint32_t i, uint8_t port)
{
	return port == i % 4 || (i >= TORTURE_STILL && port == (i + 1) % 4);
}

static void torture_burst(struct torture *torture, uint64_t *random)
{
	struct fdb_frames frames;
	unsigned port = random_below(random, 4);
	uint32_t station_of[FDB_BURST], destination_of[FDB_BURST];

	for (unsigned i = 0; i < FDB_BURST; i++) {
		uint32_t some = random_below(random, TORTURE_STATIONS) / 4 * 4;

		/* The port's own, or one that comes over from the port before. */
		station_of[i] =
			some +
			(random_below(random, 8) || some < TORTURE_STILL ? port : (port + 3) % 4);
		destination_of[i] = random_below(random, TORTURE_STATIONS);
		frames.source[i] = model_key(station_of[i]);
		frames.destination[i] = model_key(destination_of[i]);
	}
	fdb_burst(torture->fdb, fdb_view(torture->fdb, torture->number), &frames, FDB_BURST, port);
	for (unsigned i = 0; i < FDB_BURST; i++) {
		uint32_t its = destination_of[i];

		torture->learned[frames.learned[i]]++;
		if (its < TORTURE_STILL ?
			    frames.port[i] != its % 4 :
			    frames.port[i] != FDB_UNKNOWN && !torture_allowed(its, frames.port[i]))
			abort(); /* cmocka's assertions are for its own thread */
	}
	torture->lookups += FDB_BURST;
}

static void *torture_run(void *context)
{
	struct torture *torture = context;
	uint64_t random = torture->seed;

	while (!load_relaxed(torture->end))
		torture_burst(torture, &random);
	return NULL;
}

static uint32_t torture_number(uint64_t key)
{
	uint8_t mac[MAC_LEN];

	fdb_key_mac(key, mac);
	return (uint32_t)(mac[4] << 8 | mac[5]) * 3 + fdb_key_vlan(key);
}

/* Of some entries in their order, the first of them behind that key, how many are of still stations. */
static uint32_t torture_look(const struct fdb_entry *entries, uint32_t count, uint64_t after)
{
	uint32_t still = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t its = torture_number(entries[i].key);

		assert_true(entries[i].key > (i ? entries[i - 1].key : after));
		assert_true(its < TORTURE_STATIONS && entries[i].key == model_key(its));
		assert_true(torture_allowed(its, entries[i].port));
		still += its < TORTURE_STILL;
	}
	return still;
}

/* Page by page, while entries come, go and are relocated between two of them. */
static void torture_pages(struct fdb *fdb, uint32_t room)
{
	struct fdb_entry page[TORTURE_STATIONS + 1];
	uint32_t count, still = 0;
	uint64_t after = 0;

	do {
		count = fdb_page(fdb, &all, after, page, room);
		still += torture_look(page, count, after);
		after = count ? page[count - 1].key : 0;
	} while (count == room);
	assert_int_equal(still, TORTURE_STILL);
}

/* What ports have at this moment: a station that moves counts for both for an instant, and never for none. */
static void torture_count(const struct fdb *fdb)
{
	for (unsigned port = 0; port < 4; port++) {
		struct fdb_counts counts = fdb_count(fdb, port);

		assert_in_range(counts.stations, TORTURE_STILL / 4, TORTURE_STATIONS);
		assert_true(counts.fixed <= TORTURE_STATIONS - TORTURE_STILL);
	}
	assert_in_range(fdb_stations(fdb), TORTURE_STILL, TORTURE_STATIONS);
}

/* What the main thread does at once with the workers; the time is as fast as it gets. */
static unsigned torture_main(struct fdb *fdb, uint64_t *random)
{
	uint64_t end = clock_now_ns() + TORTURE_NS, tick = 0;
	unsigned listings = 0;

	while (clock_now_ns() < end) {
		uint32_t i = TORTURE_STILL + random_below(random, TORTURE_STATIONS - TORTURE_STILL);

		/* Still ones that the machine keeps from sending for 50,000 ticks would age. */
		fdb_age(fdb, ticks_ns(++tick));
		if (tick % 16 == 0)
			fdb_add(fdb, model_key(i), i % 4);
		else if (tick % 4 == 0)
			fdb_remove(fdb, model_key(i));
		if (tick % 64 == 0) {
			torture_pages(fdb, TORTURE_STATIONS + 1);
			torture_pages(fdb, 64);
			torture_count(fdb);
			listings++;
		}
		/* Stations from TORTURE_STILL on leave, those below it must not. */
		for (uint32_t j = 0; tick % 128 == 0 && j < 100; j++)
			fdb_remove(fdb, model_key(TORTURE_STILL +
						  (i + j) % (TORTURE_STATIONS - TORTURE_STILL)));
	}
	return listings;
}

static void nobody_sees_what_is_not_while_all_happens_at_once(void **state)
{
	static const unsigned results[] = { FDB_REFRESHED, FDB_NEW, FDB_MOVED, FDB_PINNED };
	struct fdb *fdb = table(TORTURE_STATIONS, FDB_AGEING_MAX);
	uint64_t random = seed, lookups = 0, learned[FDB_RESULTS] = { 0 };
	struct torture torture[2];
	pthread_t thread[2];
	uint32_t end = 0;
	unsigned listings;

	(void)state;
	for (uint32_t i = 0; i < TORTURE_STILL; i++)
		fdb_learn(fdb, fdb_view(fdb, 0), model_key(i), i % 4);
	for (unsigned i = 0; i < 2; i++) {
		torture[i] =
			(struct torture){ .fdb = fdb, .number = i, .seed = seed + i, .end = &end };
		assert_int_equal(pthread_create(&thread[i], NULL, torture_run, &torture[i]), 0);
	}
	listings = torture_main(fdb, &random);
	store_relaxed(&end, 1);
	for (unsigned i = 0; i < 2; i++) {
		pthread_join(thread[i], NULL);
		lookups += torture[i].lookups;
		for (unsigned j = 0; j < FDB_RESULTS; j++)
			learned[j] += torture[i].learned[j];
	}
	print_message("%llu lookups, %u listings, %u relocations;", (unsigned long long)lookups,
		      listings, fdb->relocations);
	for (unsigned j = 0; j < FDB_RESULTS; j++)
		print_message(" %llu %s", (unsigned long long)learned[j], fdb_learned_name(j));
	print_message("\n");
	for (unsigned i = 0; i < ARRAY_SIZE(results); i++)
		assert_true(learned[results[i]] > 0);
	assert_true(listings > 0);
	audit(fdb);
	fdb_free(fdb);
}

/* One station, and what goes on around it. */
static struct fdb *restless;
static unsigned interrupts;

static void station_relocates(void)
{
	struct fdb_place place = fdb_place(restless, station(1));
	struct held held = {
		{ lock_of(restless, place.bucket[0]), lock_of(restless, place.bucket[1]) }, 2
	};

	interrupts++;
	place_wait(restless, place);
	lock_wait(&restless->relocating);
	assert_true(relocate(restless, &held, locate(restless, station(1), place), 1));
	lock_release(&restless->relocating);
	place_release(restless, place);
}

static void station_is_looked_up(void)
{
	interrupts++;
	assert_int_equal(fdb_lookup(restless, station(1)), 3);
	assert_true(fdb_touch(restless, station(1)));
	assert_int_equal(fdb_learn(restless, fdb_view(restless, 0), station(1), 3), FDB_UNCHANGED);
}

/* More than any of these calls has; those with fewer are not interrupted, and counted. */
#define ACCESSES 120

static void a_station_is_found_while_it_goes_to_its_other_bucket(void **state)
{
	restless = table(1000, 300);
	(void)state;
	fdb_learn(restless, fdb_view(restless, 0), station(1), 3);
	for (unsigned i = 0; i < 4 * ACCESSES; i++) {
		/* From either of its buckets: each time that it is interrupted it is in the other one. */
		if (i % 2)
			station_relocates();
		interrupts = 0;
		interrupt_by = station_relocates;
		interrupt_after = 1 + i / 4;
		if (i / 2 % 2)
			assert_int_equal(fdb_lookup(restless, station(1)), 3);
		else
			assert_true(fdb_touch(restless, station(1)));
		assert_true(i > 4 || interrupts);
		interrupt_by = station_is_looked_up;
		interrupt_after = 1 + i / 4;
		station_relocates();
		interrupt_after = 0;
	}
	assert_true(restless->relocations > 4 * ACCESSES);
	audit(restless);
	fdb_free(restless);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_is_the_station_and_sorts_as_people_write_it),
		cmocka_unit_test(parameters_out_of_their_range_are_refused),
		cmocka_unit_test(a_station_is_learned_found_and_moves),
		cmocka_unit_test(the_last_move_is_the_newest_of_all_workers),
		cmocka_unit_test(stations_age_and_what_sends_or_is_touched_does_not),
		cmocka_unit_test(stamps_that_begin_again_do_not_end_a_station),
		cmocka_unit_test(what_is_static_is_not_learned_elsewhere),
		cmocka_unit_test(a_port_learns_no_more_than_it_may),
		cmocka_unit_test(a_flood_fills_the_table_and_no_more),
		cmocka_unit_test(only_static_entries_leave_no_place_for_another),
		cmocka_unit_test(whatever_the_addresses_no_bucket_is_fuller_than_by_chance),
		cmocka_unit_test(at_its_highest_load_every_station_finds_a_place),
		cmocka_unit_test(a_burst_does_what_one_by_one_does),
		cmocka_unit_test(filters_choose_what_is_flushed_and_listed),
		cmocka_unit_test(who_does_not_get_a_lock_does_not_wait),
		cmocka_unit_test(the_table_does_what_plain_arrays_do),
		cmocka_unit_test(a_station_is_found_while_it_goes_to_its_other_bucket),
		cmocka_unit_test(nobody_sees_what_is_not_while_all_happens_at_once),
	};

	seed = argc > 1 ? strtoull(argv[1], NULL, 10) : clock_now_ns();
	print_message("seed %llu: to repeat this run, test_fdb %llu\n", (unsigned long long)seed,
		      (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
