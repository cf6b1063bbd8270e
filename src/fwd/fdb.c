/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "fwd/fdb.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

/* Stamps are 1 to 65,534: 0 and 65,535 have a meaning of their own. */
#define STAMPS 65534U

/* What a huge page holds: a table of that size and more lies on some, for with pages of 4 KiB a random
 * bucket of 16 MiB costs a walk of the page tables as well as its line. */
#define HUGE_PAGE_BYTES (2U << 20)

/* A waiting main thread lets others run after that many looks (some 10 us): the worker that holds the
 * lock may be waiting for this CPU. */
#define SPINS 1000

static const char *const learned_names[FDB_RESULTS] = {
	[FDB_UNCHANGED] = "unchanged", [FDB_REFRESHED] = "refreshed", [FDB_NEW] = "new",
	[FDB_MOVED] = "moved",	       [FDB_PINNED] = "pinned",	      [FDB_DENIED] = "denied",
	[FDB_LIMITED] = "limited",     [FDB_FULL] = "full",	      [FDB_BUSY] = "busy",
	[FDB_INVALID] = "invalid",
};

const char *fdb_learned_name(enum fdb_learned result)
{
	return learned_names[result];
}

static uint16_t stamp_of(uint64_t ticks)
{
	return (uint16_t)(1 + ticks % STAMPS);
}

static uint32_t stamp_age(uint32_t now, uint32_t stamp)
{
	return now >= stamp ? now - stamp : now + STAMPS - stamp;
}

/* Buckets for so many stations: a power of two, and two at least. */
static uint64_t buckets_for(uint32_t stations)
{
	uint64_t slots = ((uint64_t)stations * 100 + FDB_LOAD_PERCENT - 1) / FDB_LOAD_PERCENT;
	uint64_t buckets = 2;

	while (buckets * FDB_SLOTS < slots)
		buckets *= 2;
	return buckets;
}

/* Zeroed and touched; NULL if there is not so much. */
static void *table_alloc(uint64_t bytes)
{
	uint64_t unit = bytes < HUGE_PAGE_BYTES ? CACHE_PAIR : HUGE_PAGE_BYTES;
	uint64_t size = (bytes + unit - 1) / unit * unit;
	void *table = aligned_alloc(unit, size);

	if (!table)
		return NULL;
	if (unit == HUGE_PAGE_BYTES)
		madvise(table, size, MADV_HUGEPAGE); /* without them it only is slower */
	memset(table, 0, size);
	return table;
}

static int secret_init(uint64_t *secret, const uint64_t *given)
{
	memcpy(secret, given, sizeof(uint64_t[4]));
	if (!(given[0] | given[1] | given[2] | given[3]) &&
	    getrandom(secret, sizeof(uint64_t[4]), 0) != sizeof(uint64_t[4]))
		return errno ? -errno : -EIO;
	secret[1] |= 1; /* factors: never 0 */
	secret[3] |= 1;
	return 0;
}

static bool params_valid(const struct fdb_params *params)
{
	return params->stations_max && params->stations_max <= FDB_STATIONS_MAX && params->ports &&
	       params->ports <= FDB_PORTS_MAX && params->workers &&
	       params->ageing <= FDB_AGEING_MAX;
}

static void *zeroed(size_t alignment, size_t size)
{
	void *memory = aligned_alloc(alignment, size);

	return memory ? memset(memory, 0, size) : NULL;
}

int fdb_new(struct fdb **result, const struct fdb_params *params)
{
	uint64_t buckets = buckets_for(params->stations_max);
	struct fdb *fdb;
	int err = -ENOMEM;

	if (!params_valid(params))
		return -EINVAL;
	fdb = zeroed(_Alignof(struct fdb), sizeof(*fdb));
	if (!fdb)
		return -ENOMEM;
	fdb->buckets = table_alloc(fdb_buckets_bytes(buckets));
	fdb->stamps = table_alloc(fdb_stamps_bytes(buckets));
	fdb->locks = zeroed(CACHE_PAIR, FDB_LOCKS * sizeof(struct fdb_lock));
	fdb->port = zeroed(CACHE_PAIR, (FDB_PORTS_MAX + 1) * sizeof(struct fdb_port));
	fdb->views = zeroed(CACHE_PAIR, params->workers * sizeof(struct fdb_view));
	if (!fdb->buckets || !fdb->stamps || !fdb->locks || !fdb->port || !fdb->views)
		goto fail;
	err = secret_init(fdb->secret, params->secret);
	if (err)
		goto fail;
	fdb->mask = (uint32_t)(buckets - 1);
	fdb->stations_max = params->stations_max;
	fdb->ageing = params->ageing;
	fdb->ports = params->ports;
	fdb->workers = params->workers;
	fdb->start_ns = params->now_ns;
	fdb->tick = stamp_of(0);
	for (unsigned i = 0; i <= FDB_PORTS_MAX; i++)
		fdb->port[i].limit = UINT32_MAX;
	*result = fdb;
	return 0;
fail:
	fdb_free(fdb);
	return err;
}

void fdb_free(struct fdb *fdb)
{
	if (!fdb)
		return;
	free(fdb->buckets);
	free(fdb->stamps);
	free(fdb->locks);
	free(fdb->port);
	free(fdb->views);
	free(fdb);
}

struct fdb_view *fdb_view(struct fdb *fdb, unsigned worker)
{
	assert(worker < fdb->workers);
	return &fdb->views[worker];
}

void fdb_key_mac(uint64_t key, uint8_t *mac)
{
	uint64_t packed = key >> FDB_PORT_BITS & ((1ULL << 47) - 1);
	uint64_t address = packed >> 40 << 41 | (packed & 0xffffffffffULL);

	for (int i = 0; i < MAC_LEN; i++)
		mac[i] = (uint8_t)(address >> (40 - 8 * i));
}

/* Locks. */

static bool lock_try(uint32_t *held)
{
	/* Looks first: a store to a lock that is held would take its line from who holds it. Acquire
	 * pairs with lock_release(). */
	return !load_relaxed(held) && !__atomic_exchange_n(held, 1, __ATOMIC_ACQUIRE);
}

static void lock_wait(uint32_t *held)
{
	for (unsigned i = 1; !lock_try(held); i++) {
		if (i % SPINS)
			cpu_relax();
		else
			sched_yield();
	}
}

static void lock_release(uint32_t *held)
{
	store_release(held, 0); /* pairs with lock_try() */
}

static uint32_t *lock_of(const struct fdb *fdb, uint32_t bucket)
{
	return &fdb->locks[bucket % FDB_LOCKS].held;
}

/* The locks of both buckets, which may be the same one. */
static bool place_try(const struct fdb *fdb, struct fdb_place place)
{
	uint32_t *first = lock_of(fdb, place.bucket[0]), *second = lock_of(fdb, place.bucket[1]);

	if (!lock_try(first))
		return false;
	if (first == second || lock_try(second))
		return true;
	lock_release(first);
	return false;
}

/* Main thread: the only one that waits, and so never for one that waits for it. */
static void place_wait(const struct fdb *fdb, struct fdb_place place)
{
	uint32_t *first = lock_of(fdb, place.bucket[0]), *second = lock_of(fdb, place.bucket[1]);

	lock_wait(first);
	if (first != second)
		lock_wait(second);
}

static void place_release(const struct fdb *fdb, struct fdb_place place)
{
	uint32_t *first = lock_of(fdb, place.bucket[0]), *second = lock_of(fdb, place.bucket[1]);

	if (first != second)
		lock_release(second);
	lock_release(first);
}

/* Slots. */

/* An entry and where it was found. */
struct fdb_found {
	uint64_t word; /* 0: there is none */
	uint32_t bucket;
	unsigned slot;
};

/* The entry of a station and where it is: as fdb_find(), for what is rarer. */
static struct fdb_found locate(const struct fdb *fdb, uint64_t key, struct fdb_place place)
{
	for (unsigned i = 0; i < FDB_TRIES; i++) {
		uint32_t before = load_acquire(&fdb->relocations); /* pairs as in fdb_find() */

		for (unsigned j = 0; j < 2 * FDB_SLOTS; j++) {
			struct fdb_found at = { .bucket = place.bucket[j / FDB_SLOTS],
						.slot = j % FDB_SLOTS };

			at.word = load_relaxed(&fdb->buckets[at.bucket].word[at.slot]);
			if (at.word && (at.word ^ key) <= FDB_PORT_MASK)
				return at;
		}
		fence_acquire(); /* likewise */
		if (likely(load_relaxed(&fdb->relocations) == before))
			break;
	}
	return (struct fdb_found){ 0 };
}

static uint64_t *word_at(const struct fdb *fdb, struct fdb_found at)
{
	return &fdb->buckets[at.bucket].word[at.slot];
}

static uint16_t *stamp_at(const struct fdb *fdb, struct fdb_found at)
{
	return fdb_stamp(fdb->buckets, fdb->stamps, at.bucket, at.slot);
}

static bool is_fixed(const struct fdb *fdb, struct fdb_found at)
{
	return load_relaxed(stamp_at(fdb, at)) == FDB_STAMP_STATIC;
}

static struct fdb_port *port_of(const struct fdb *fdb, uint64_t word)
{
	return &fdb->port[fdb_word_port(word)];
}

static bool slot_free(const struct fdb *fdb, uint32_t bucket, struct fdb_found *at)
{
	at->bucket = bucket;
	for (at->slot = 0; at->slot < FDB_SLOTS; at->slot++) {
		if (!load_relaxed(word_at(fdb, *at)))
			return true;
	}
	return false;
}

/* The stamp is there before the entry. */
static void slot_fill(const struct fdb *fdb, struct fdb_found at, uint64_t word, uint16_t stamp)
{
	fdb_stamp_set(stamp_at(fdb, at), stamp);
	fdb_word_set(word_at(fdb, at), word);
}

static void slot_clear(const struct fdb *fdb, struct fdb_found at)
{
	fdb_word_set(word_at(fdb, at), 0);
	fdb_stamp_set(stamp_at(fdb, at), FDB_STAMP_NONE);
}

/* Counts. Any number of threads, with different locks, add to them. */

static void add(uint32_t *count, int32_t more)
{
	__atomic_fetch_add(count, (uint32_t)more, __ATOMIC_RELAXED);
}

/* One more, if there are fewer than `limit`. */
static bool add_below(uint32_t *count, uint32_t limit)
{
	if (load_relaxed(count) >= limit)
		return false;
	if (__atomic_fetch_add(count, 1, __ATOMIC_RELAXED) < limit)
		return true;
	add(count, -1);
	return false;
}

/* Takes an entry out, with its bucket's lock. */
static void entry_remove(struct fdb *fdb, struct fdb_found at)
{
	struct fdb_port *port = port_of(fdb, at.word);

	if (is_fixed(fdb, at)) {
		store_relaxed(&port->fixed, port->fixed - 1);
	} else {
		add(&port->stations, -1);
		add(&fdb->stations, -1);
	}
	slot_clear(fdb, at);
}

/* Places. */

/* Locks that a thread has while it looks for a place: of the station's two buckets, and of one more for
 * each step. */
struct held {
	uint32_t *lock[2 + FDB_STEPS];
	unsigned count;
};

static bool held_has(const struct held *held, const uint32_t *lock)
{
	for (unsigned i = 0; i < held->count; i++) {
		if (held->lock[i] == lock)
			return true;
	}
	return false;
}

static bool relocate(struct fdb *fdb, struct held *held, struct fdb_found from, unsigned steps);

/* Empties a slot of a full bucket, whose lock is held, in at most so many steps; false: none can be. */
static bool bucket_relieve(struct fdb *fdb, struct held *held, uint32_t bucket, unsigned steps,
			   struct fdb_found *at)
{
	at->bucket = bucket;
	for (at->slot = 0; at->slot < FDB_SLOTS; at->slot++) {
		if (relocate(fdb, held, *at, steps))
			return true;
	}
	return false;
}

/* Puts the entry in `from`, whose bucket's lock is held, into its other bucket, which is relieved for it
 * if there are more steps. With fdb->relocating. */
static bool relocate(struct fdb *fdb, struct held *held, struct fdb_found from, unsigned steps)
{
	uint64_t word = load_relaxed(word_at(fdb, from));
	struct fdb_place own = fdb_place(fdb, word & ~(uint64_t)FDB_PORT_MASK);
	uint32_t other = own.bucket[own.bucket[0] == from.bucket];
	uint32_t *lock = lock_of(fdb, other);
	bool mine = held_has(held, lock);
	struct fdb_found to;
	bool room;

	if (steps == 1 && !slot_free(fdb, other, &to))
		return false; /* seen without its lock */
	if (!mine && !lock_try(lock))
		return false;
	held->lock[held->count++] = lock;
	room = slot_free(fdb, other, &to) ||
	       (steps > 1 && bucket_relieve(fdb, held, other, steps - 1, &to));
	if (room) {
		slot_fill(fdb, to, word, load_relaxed(stamp_at(fdb, from)));
		/* Pairs with load_acquire() in fdb_find(). */
		store_release(&fdb->relocations, fdb->relocations + 1);
		slot_clear(fdb, from);
	}
	held->count--;
	if (!mine)
		lock_release(lock);
	return room;
}

/* A free slot for a station that has none, with the locks of its place. FDB_NEW with *at; FDB_FULL; or
 * FDB_BUSY. */
static enum fdb_learned slot_find(struct fdb *fdb, struct fdb_place place, struct fdb_found *at)
{
	struct held held = { { lock_of(fdb, place.bucket[0]), lock_of(fdb, place.bucket[1]) }, 2 };
	enum fdb_learned result = FDB_FULL;

	/* The first one first, not the emptier one: most stations are then found in the line that is
	 * read first. */
	if (slot_free(fdb, place.bucket[0], at) || slot_free(fdb, place.bucket[1], at))
		return FDB_NEW;
	if (!lock_try(&fdb->relocating))
		return FDB_BUSY;
	for (unsigned steps = 1; steps <= FDB_STEPS && result == FDB_FULL; steps++) {
		if (bucket_relieve(fdb, &held, place.bucket[0], steps, at) ||
		    bucket_relieve(fdb, &held, place.bucket[1], steps, at))
			result = FDB_NEW;
	}
	lock_release(&fdb->relocating);
	return result;
}

/* Learning. */

static enum fdb_learned station_new(struct fdb *fdb, uint64_t word, struct fdb_place place)
{
	struct fdb_port *port = port_of(fdb, word);
	enum fdb_learned result = FDB_LIMITED;
	struct fdb_found at;

	if (!add_below(&port->stations, load_relaxed(&port->limit)))
		return result;
	result = FDB_FULL;
	if (add_below(&fdb->stations, fdb->stations_max)) {
		result = slot_find(fdb, place, &at);
		if (result == FDB_NEW) {
			slot_fill(fdb, at, word, load_relaxed(&fdb->tick));
			return result;
		}
		add(&fdb->stations, -1);
	}
	add(&port->stations, -1);
	return result;
}

static enum fdb_learned station_move(struct fdb *fdb, struct fdb_view *view, struct fdb_found from,
				     uint64_t word)
{
	struct fdb_port *port = port_of(fdb, word);

	if (!add_below(&port->stations, load_relaxed(&port->limit)))
		return FDB_LIMITED;
	add(&port_of(fdb, from.word)->stations, -1);
	slot_fill(fdb, from, word, load_relaxed(&fdb->tick));
	store_relaxed(&view->moved_from, from.word);
	store_relaxed(&view->moved_to, word);
	store_relaxed(&view->moved, __atomic_add_fetch(&fdb->moves, 1, __ATOMIC_RELAXED));
	return FDB_MOVED;
}

/* What is known of a station forbids to learn that it is on another port; FDB_MOVED: nothing. */
static enum fdb_learned verdict(const struct fdb *fdb, struct fdb_found found, uint64_t word)
{
	if (found.word == word)
		return FDB_UNCHANGED; /* another thread has learned it meanwhile */
	if (fdb_word_port(found.word) == FDB_BLOCKED)
		return FDB_DENIED;
	return is_fixed(fdb, found) ? FDB_PINNED : FDB_MOVED;
}

static enum fdb_learned learn_locked(struct fdb *fdb, struct fdb_view *view, uint64_t word,
				     struct fdb_place place)
{
	struct fdb_found found = locate(fdb, word & ~(uint64_t)FDB_PORT_MASK, place);
	enum fdb_learned result;

	if (!found.word)
		return station_new(fdb, word, place);
	result = verdict(fdb, found, word);
	return result == FDB_MOVED ? station_move(fdb, view, found, word) : result;
}

/* What can be told without a lock, so that a flood of addresses that are not to be learned writes
 * nothing that others use; FDB_NEW, FDB_MOVED: it is to be tried. */
static enum fdb_learned learn_foresee(const struct fdb *fdb, uint64_t word, struct fdb_place place)
{
	uint64_t key = word & ~(uint64_t)FDB_PORT_MASK;
	const struct fdb_port *port = port_of(fdb, word);
	enum fdb_learned result = FDB_NEW;

	if (fdb_find(fdb, key, place)) {
		struct fdb_found found = locate(fdb, key, place);

		result = found.word ? verdict(fdb, found, word) : FDB_NEW; /* removed just now */
	}
	if (result != FDB_NEW && result != FDB_MOVED)
		return result;
	if (load_relaxed(&port->stations) >= load_relaxed(&port->limit))
		return FDB_LIMITED;
	if (result == FDB_NEW && load_relaxed(&fdb->stations) >= fdb->stations_max)
		return FDB_FULL;
	return result;
}

enum fdb_learned fdb_learn_change(struct fdb *fdb, struct fdb_view *view, uint64_t key,
				  struct fdb_place place, unsigned port)
{
	uint64_t word = key | (port + 1);
	enum fdb_learned result;

	if (key == FDB_NO_STATION)
		return FDB_INVALID;
	result = learn_foresee(fdb, word, place);
	if (result == FDB_NEW || result == FDB_MOVED) {
		result = FDB_BUSY;
		if (place_try(fdb, place)) {
			result = learn_locked(fdb, view, word, place);
			place_release(fdb, place);
		}
	}
	if (result != FDB_UNCHANGED)
		fdb_view_count(view, port, result);
	return result;
}

bool fdb_touch(struct fdb *fdb, uint64_t key)
{
	struct fdb_found found = locate(fdb, key, fdb_place(fdb, key));
	uint16_t tick = load_relaxed(&fdb->tick);
	uint16_t *stamp, seen;

	if (!found.word)
		return false;
	stamp = stamp_at(fdb, found);
	seen = load_relaxed(stamp);
	if (fdb_stamp_old(seen, tick))
		fdb_stamp_renew(stamp, seen, tick);
	return true;
}

/* Bursts. */

void fdb_burst(struct fdb *fdb, struct fdb_view *view, struct fdb_frames *frames, unsigned count,
	       unsigned port)
{
	struct fdb_place source[FDB_BURST], destination[FDB_BURST];

	for (unsigned i = 0; i < count; i++) {
		source[i] = fdb_place(fdb, frames->source[i]);
		fdb_prefetch(fdb, source[i]);
		/* In its second bucket is 1 station in 100 at half load, 1 in 8 at the highest. */
		__builtin_prefetch(fdb_stamp(fdb->buckets, fdb->stamps, source[i].bucket[0], 0));
		destination[i] = fdb_place(fdb, frames->destination[i]);
		fdb_prefetch(fdb, destination[i]);
	}
	for (unsigned i = 0; i < count; i++)
		frames->learned[i] =
			(uint8_t)fdb_learn_at(fdb, view, frames->source[i], source[i], port);
	for (unsigned i = 0; i < count; i++)
		frames->port[i] =
			fdb_word_port(fdb_find(fdb, frames->destination[i], destination[i]));
}

void fdb_lookup_burst(const struct fdb *fdb, const uint64_t *key, unsigned count, uint8_t *port)
{
	struct fdb_place place[FDB_BURST];

	while (count) {
		unsigned now = count < FDB_BURST ? count : FDB_BURST;

		for (unsigned i = 0; i < now; i++) {
			place[i] = fdb_place(fdb, key[i]);
			fdb_prefetch(fdb, place[i]);
		}
		for (unsigned i = 0; i < now; i++)
			port[i] = fdb_word_port(fdb_find(fdb, key[i], place[i]));
		key += now;
		port += now;
		count -= now;
	}
}

/* The main thread's. */

/* Every entry, as it is without a lock. */
#define for_each_entry(fdb, at)                                                         \
	for ((at) = (struct fdb_found){ 0 }; (at).bucket <= (fdb)->mask; (at).bucket++) \
		for ((at).slot = 0; (at).slot < FDB_SLOTS; (at).slot++)                 \
			if (((at).word = load_relaxed(word_at((fdb), (at)))))

static bool outlived(const struct fdb *fdb, struct fdb_found at)
{
	uint16_t stamp = load_relaxed(stamp_at(fdb, at));

	return stamp != FDB_STAMP_NONE && stamp != FDB_STAMP_STATIC &&
	       stamp_age(fdb->tick, stamp) > fdb->ageing;
}

/* Removes the entry of a slot that has outlived its time, if it still has with the lock. */
static bool expire(struct fdb *fdb, struct fdb_found at)
{
	uint32_t *lock = lock_of(fdb, at.bucket);
	bool due;

	lock_wait(lock);
	at.word = load_relaxed(word_at(fdb, at));
	due = at.word && outlived(fdb, at);
	if (due) {
		struct fdb_port *port = port_of(fdb, at.word);

		entry_remove(fdb, at);
		port->expired++;
	}
	lock_release(lock);
	return due;
}

uint32_t fdb_age(struct fdb *fdb, uint64_t now_ns)
{
	uint64_t ticks = (now_ns - fdb->start_ns) / FDB_TICK_NS;
	struct fdb_found at = { 0 };
	uint32_t expired = 0;

	if (ticks == fdb->ticks)
		return 0;
	fdb->ticks = ticks;
	store_relaxed(&fdb->tick, stamp_of(ticks));
	if (!fdb->ageing)
		return 0;
	/* By the stamps alone: they are the smaller array. */
	for (; at.bucket <= fdb->mask; at.bucket++) {
		for (at.slot = 0; at.slot < FDB_SLOTS; at.slot++) {
			if (unlikely(outlived(fdb, at)))
				expired += expire(fdb, at);
		}
	}
	return expired;
}

void fdb_set_ageing(struct fdb *fdb, uint32_t ageing)
{
	assert(ageing <= FDB_AGEING_MAX);
	fdb->ageing = ageing;
}

void fdb_set_limit(struct fdb *fdb, unsigned port, uint32_t limit)
{
	assert(port < fdb->ports);
	store_relaxed(&fdb->port[port].limit, limit);
}

/* The learned station of a place that was seen the longest ago. */
static bool oldest(const struct fdb *fdb, struct fdb_place place, struct fdb_found *result)
{
	uint32_t age = 0;
	bool found = false;

	for (unsigned i = 0; i < 2 * FDB_SLOTS; i++) {
		struct fdb_found at = { .bucket = place.bucket[i / FDB_SLOTS],
					.slot = i % FDB_SLOTS };
		uint32_t its = stamp_age(fdb->tick, load_relaxed(stamp_at(fdb, at)));

		at.word = load_relaxed(word_at(fdb, at));
		if (!at.word || is_fixed(fdb, at) || (found && its <= age))
			continue;
		*result = at;
		age = its;
		found = true;
	}
	return found;
}

static void count_removed(struct fdb *fdb, uint64_t word)
{
	port_of(fdb, word)->removed++;
}

/* -EAGAIN: other threads are at work there. */
static int add_locked(struct fdb *fdb, uint64_t word, struct fdb_place place)
{
	struct fdb_found at = locate(fdb, word & ~(uint64_t)FDB_PORT_MASK, place);
	struct fdb_port *port = port_of(fdb, word);
	enum fdb_learned room;

	if (at.word) {
		struct fdb_port *before = port_of(fdb, at.word);

		if (is_fixed(fdb, at)) {
			before->fixed--;
		} else {
			add(&before->stations, -1);
			add(&fdb->stations, -1);
		}
	} else {
		room = slot_find(fdb, place, &at);
		if (room == FDB_BUSY)
			return -EAGAIN;
		if (room == FDB_FULL) {
			if (!oldest(fdb, place, &at))
				return -ENOSPC;
			entry_remove(fdb, at);
			count_removed(fdb, at.word);
		}
	}
	slot_fill(fdb, at, word, FDB_STAMP_STATIC);
	port->fixed++;
	return 0;
}

int fdb_add(struct fdb *fdb, uint64_t key, unsigned port)
{
	struct fdb_place place = fdb_place(fdb, key);
	int err;

	if (key == FDB_NO_STATION || (port >= fdb->ports && port != FDB_BLOCKED))
		return -EINVAL;
	do {
		place_wait(fdb, place);
		err = add_locked(fdb, key | (port + 1), place);
		place_release(fdb, place);
	} while (err == -EAGAIN);
	return err;
}

int fdb_remove(struct fdb *fdb, uint64_t key)
{
	struct fdb_place place = fdb_place(fdb, key);
	struct fdb_found found;

	place_wait(fdb, place);
	found = locate(fdb, key, place);
	if (found.word) {
		entry_remove(fdb, found);
		count_removed(fdb, found.word);
	}
	place_release(fdb, place);
	return found.word ? 0 : -ENOENT;
}

static bool fits(const struct fdb_filter *filter, uint64_t word, bool fixed)
{
	return (fixed ? filter->fixed : filter->learned) &&
	       (filter->port < 0 || filter->port == fdb_word_port(word)) &&
	       (filter->vlan < 0 || filter->vlan == fdb_key_vlan(word));
}

uint32_t fdb_flush(struct fdb *fdb, const struct fdb_filter *filter)
{
	struct fdb_found at;
	uint32_t removed = 0;

	lock_wait(
		&fdb->relocating); /* so that none goes from a bucket to come to one that is done */
	for_each_entry(fdb, at)
	{
		uint32_t *lock = lock_of(fdb, at.bucket);

		if (!fits(filter, at.word, is_fixed(fdb, at)))
			continue;
		lock_wait(lock);
		at.word = load_relaxed(word_at(fdb, at));
		if (at.word && fits(filter, at.word, is_fixed(fdb, at))) {
			entry_remove(fdb, at);
			count_removed(fdb, at.word);
			removed++;
		}
		lock_release(lock);
	}
	lock_release(&fdb->relocating);
	return removed;
}

/* An entry as people see it; its stamp is read once. False if the filter does not let it through. */
static bool entry_take(const struct fdb *fdb, const struct fdb_filter *filter, struct fdb_found at,
		       struct fdb_entry *entry)
{
	uint16_t stamp = load_relaxed(stamp_at(fdb, at));
	bool fixed = stamp == FDB_STAMP_STATIC;
	bool timed = !fixed && stamp != FDB_STAMP_NONE; /* else it just comes */

	if (!fits(filter, at.word, fixed))
		return false;
	*entry = (struct fdb_entry){
		.key = at.word & ~(uint64_t)FDB_PORT_MASK,
		.age = timed ? stamp_age(fdb->tick, stamp) : 0,
		.port = fdb_word_port(at.word),
		.fixed = fixed,
	};
	return true;
}

static int entry_order(const void *one, const void *other)
{
	const struct fdb_entry *a = one, *b = other;

	return a->key < b->key ? -1 : a->key > b->key;
}

/* In a heap no entry has a larger key than the one at (its index - 1) / 2. Puts the one at `i`, which may be
 * smaller than those below it, where it belongs. */
static void heap_sink(struct fdb_entry *heap, uint32_t count, uint32_t i)
{
	const struct fdb_entry entry = heap[i];
	uint32_t child;

	while ((child = 2 * i + 1) < count) {
		if (child + 1 < count && heap[child + 1].key > heap[child].key)
			child++;
		if (heap[child].key < entry.key)
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = entry;
}

static void heap_make(struct fdb_entry *heap, uint32_t count)
{
	for (uint32_t i = count / 2; i-- > 0;)
		heap_sink(heap, count, i);
}

/* The entries of a page that is being made. */
struct page {
	struct fdb_entry *entry;
	uint32_t count, room;
	uint64_t first; /* the smallest word that may come in, */
	uint64_t span;	/* and how many behind it: of a full page up to its largest key */
};

static void page_put(struct page *page, struct fdb_entry entry)
{
	if (page->count < page->room) {
		page->entry[page->count++] = entry;
		if (page->count < page->room)
			return;
		heap_make(page->entry, page->count);
	} else {
		page->entry[0] = entry;
		heap_sink(page->entry, page->count, 0);
	}
	page->span = page->entry[0].key - page->first;
}

uint32_t fdb_page(struct fdb *fdb, const struct fdb_filter *filter, uint64_t after,
		  struct fdb_entry *entries, uint32_t room)
{
	uint64_t first = (after | FDB_PORT_MASK) + 1;
	struct page page = { entries, 0, room, first, UINT64_MAX - first };
	struct fdb_found at = { 0 };
	struct fdb_entry entry;

	if (!room || first <= after)
		return 0;
	/* Only this thread removes entries, and now nobody puts one elsewhere: what is there stays where it
	 * is, and is met once. */
	lock_wait(&fdb->relocating);
	for (; at.bucket <= fdb->mask; at.bucket++) {
		for (at.slot = 0; at.slot < FDB_SLOTS; at.slot++) {
			at.word = load_relaxed(word_at(fdb, at));
			/* One comparison for three: that there is an entry, which is behind `after`
			 * and before what a full page ends with. It is seldom so, and so one can be
			 * foreseen: three are 3 ns a slot, this one 1. */
			if (unlikely(at.word - page.first < page.span) &&
			    entry_take(fdb, filter, at, &entry))
				page_put(&page, entry);
		}
	}
	lock_release(&fdb->relocating);
	if (page.count)
		qsort(entries, page.count, sizeof(*entries), entry_order);
	return page.count;
}

struct fdb_counts fdb_count(const struct fdb *fdb, unsigned port)
{
	const struct fdb_port *of = &fdb->port[port];
	struct fdb_counts counts = {
		.stations = load_relaxed(&of->stations),
		.fixed = of->fixed,
		.limit = of->limit,
		.expired = of->expired,
		.removed = of->removed,
	};

	assert(port < fdb->ports || port == FDB_BLOCKED);
	for (unsigned i = 0; i < fdb->workers && port < fdb->ports; i++) {
		for (unsigned j = 0; j < FDB_RESULTS; j++)
			counts.events[j] += load_relaxed(&fdb->views[i].events[port][j]);
	}
	return counts;
}

uint64_t fdb_slots(const struct fdb *fdb)
{
	return ((uint64_t)fdb->mask + 1) * FDB_SLOTS;
}

bool fdb_last_move(const struct fdb *fdb, struct fdb_move *move)
{
	uint64_t newest = 0;
	bool found = false;

	for (unsigned i = 0; i < fdb->workers; i++) {
		const struct fdb_view *view = &fdb->views[i];
		uint64_t moved = load_relaxed(&view->moved);
		uint64_t from = load_relaxed(&view->moved_from), to = load_relaxed(&view->moved_to);

		if (moved <= newest || !to || (from ^ to) > FDB_PORT_MASK)
			continue;
		*move = (struct fdb_move){
			.key = to & ~(uint64_t)FDB_PORT_MASK,
			.from = fdb_word_port(from),
			.to = fdb_word_port(to),
		};
		newest = moved;
		found = true;
	}
	return found;
}
