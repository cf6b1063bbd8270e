/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The poller's loop, for the modes to include: each mode compiles its own copy with its burst
 * function inlined, so that no pointer is called per packet. Worker's thread only.
 */
#pragma once

#include <string.h>

#include "base/clock.h"
#include "fwd/worker.h"

/*
 * A mode's part of a pass on one port: takes up to a batch of packets from the port's RX ring (or
 * makes them) and gives each away: to a TX ring, or back by worker_return(). Returns how many
 * descriptors. `plain` is the worker's, as a constant: the usual case, where a packet is one
 * descriptor and a chunk is found by a shift, is compiled apart from the general one.
 */
typedef uint32_t burst_fn(struct worker *worker, struct queue *queue, bool plain);

/* Sleeps and reports are calls: they happen once a pass at most. */

/* Publishes, then sleeps until a port has something to do, worker_stop(), or timeout_ms at most. */
void worker_sleep(struct worker *worker, int timeout_ms);

/* As worker_wait(), for wait = adaptive: looks out for a frame where waiting.h says so, else sleeps. */
void worker_wait_adaptive(struct worker *worker);

/* As worker_wait(), for a worker whose frames are due at times. */
void worker_wait_due(struct worker *worker);

/* Looks for descriptors that will never be completed. Does something at most once in WORKER_STUCK_MS. */
void worker_find_lost(struct worker *worker);

/* Sends what other workers hand over. Returns the descriptors. */
uint32_t worker_take_over(struct worker *worker);

/* Takes up new parameters, publishes a snapshot of now, and thereby answers every request made so far;
 * parks if that was one. */
void worker_attend(struct worker *worker);

/* Writes done_fd, once, when every port has sent its share and all of it is completed, or nothing more
 * of it has been for `retries` seconds. */
void worker_check_done(struct worker *worker);

/*
 * True when there is nothing left to drain, or no use in going on; else it may have slept a little.
 * `moved`: whether the last pass moved a frame. The two times, in ns of the monotonic clock, are its
 * own memory between calls: 0 before the first.
 */
bool worker_drained(struct worker *worker, bool moved, uint64_t *started_ns, uint64_t *quiet_ns);

/* Notes that the kernel named an address that it may not. Some frame of the queue will then not be seen again
 * until the ledger gives it back at close: it is counted as lost. */
static inline COLD void queue_disbelieve(struct queue *queue, enum drop_reason doubt)
{
	queue->lost++;
	queue->drops[doubt]++;
}

/* True if the kernel may name this address; else that is noted. */
static always_inline bool queue_believes(struct queue *queue, const struct chunks *chunks,
					 uint64_t addr, enum ledger_state state)
{
	enum drop_reason doubt = chunks_doubt(chunks, addr, state, queue->port);

	if (likely(doubt == DROP_REASONS)) {
		chunks_take(chunks, chunks_frame(chunks, addr));
		return true;
	}
	queue_disbelieve(queue, doubt);
	return false;
}

/*
 * Frames on their way back to the kernel, for the length of a burst: straight to a fill ring while it
 * has room, then to the pool. The fill entries are published by the refill step of this pass. A mode
 * that does not receive gives all to the pool: its fill ring was stocked at start, and a driver with a
 * large ring of its own would take every frame there is and leave none to send.
 */
struct returns {
	struct ring_cursor fill;
	struct chunks chunks;
	ledger_entry tag; /* FILL and the port, without the index */
	uint32_t room;
	uint32_t violations; /* frames that were not in hand; builds that check owners only */
};

static always_inline struct returns returns_begin(const struct worker *worker, struct queue *queue,
						  uint32_t count, bool plain)
{
	return (struct returns){
		.fill = ring_take(&queue->fill),
		.chunks = chunks_of(&worker->chunks, plain),
		.tag = ledger_pack(LEDGER_FILL, queue->port, 0),
		.room = worker->receives ? ring_room(&queue->fill, count) : 0,
	};
}

/* Gives back a frame that the worker has in hand, by the address the kernel named. */
static always_inline void returns_put(struct worker *worker, struct returns *returns, uint64_t addr)
{
	const struct chunks *chunks = &returns->chunks;
	uint64_t frame = chunks_frame(chunks, addr);

	if (unlikely(!chunks_give(chunks, frame))) {
		returns->violations++;
		return;
	}
	if (likely(returns->room)) {
		returns->room--;
		ledger_write(&chunks->ledger[frame],
			     returns->tag | (returns->fill.index & LEDGER_INDEX_MASK));
		*cursor_addr(&returns->fill) = chunks_addr(chunks, frame);
	} else {
		ledger_write(&chunks->ledger[frame], ledger_pack(LEDGER_POOL, 0, 0));
		pool_put(&worker->pool, (uint32_t)frame);
	}
}

/*
 * The straight path of a plain worker. Entries are worked in runs: as many as lie one behind the other on both
 * rings, up to the first that is not as usual. Within a run nothing but the entries, the ledger and, for a mode
 * that looks into frames, these are touched, and neither ring ends in it. So the ledger's index does not either,
 * whose range is a multiple of every ring's size: one more is the next entry's.
 */

/* Frames that are worked in one turn of a run's loop, so that the loop itself costs little. */
#define RUN_BLOCK 4

/* How many of a burst's `count` frames are worked in runs: to begin one costs more than it saves a few. */
static always_inline uint32_t run_worth(uint32_t count)
{
	return count >= RUN_BLOCK ? count : 0;
}

/* One run of frames that the kernel gives back. A local variable, which moves on with each of them. */
struct return_run {
	const struct chunks *chunks; /* plain ones */
	struct queue *queue;	     /* the one that they were on */
	enum ledger_state state;     /* in which they were until now */
	bool descs;		     /* they are on RX, not on completion; a constant */
	const void *from;	     /* entries there */
	uint64_t *fill;		     /* where they go, or */
	uint32_t *pool;
	ledger_entry entry; /* of the next one on fill; in any case one more after each frame */
	uint64_t bytes;	    /* of what was on RX */
};

/* The nth frame of a block, to fill or to the pool. False: the kernel may not name that address; nothing was
 * done. */
static always_inline bool run_return(struct return_run *run, bool to_fill, unsigned nth)
{
	const struct chunks *chunks = run->chunks;
	const struct xdp_desc *desc = (const struct xdp_desc *)run->from + nth;
	uint64_t addr = run->descs ? desc->addr : ((const uint64_t *)run->from)[nth];

	if (unlikely(chunks_doubt(chunks, addr, run->state, run->queue->port) != DROP_REASONS))
		return false;
	if (run->descs)
		run->bytes += desc->len;
	if (to_fill) {
		addr &= -(uint64_t)chunks->size; /* first, so that one copy of it does */
		run->fill[nth] = addr;
		ledger_write(&chunks->ledger[addr >> chunks->shift], run->entry);
	} else {
		addr >>= chunks->shift;
		run->pool[nth] = (uint32_t)addr;
		ledger_write(&chunks->ledger[addr], ledger_pack(LEDGER_POOL, 0, 0));
	}
	run->entry++;
	return true;
}

static always_inline void return_run_advance(struct return_run *run, bool to_fill, unsigned count)
{
	run->from = (const uint8_t *)run->from +
		    count * (run->descs ? sizeof(struct xdp_desc) : sizeof(uint64_t));
	if (to_fill)
		run->fill += count;
	else
		run->pool += count;
}

/* Up to `count` frames of a run. Returns how many. */
static always_inline uint32_t run_returns(struct return_run *run, bool to_fill, uint32_t count)
{
	const ledger_entry first = run->entry;
	const ledger_entry blocks = first + count / RUN_BLOCK * RUN_BLOCK, end = first + count;

	while (run->entry != blocks) {
		if (!run_return(run, to_fill, 0) || !run_return(run, to_fill, 1) ||
		    !run_return(run, to_fill, 2) || !run_return(run, to_fill, 3))
			return (uint32_t)(run->entry - first);
		return_run_advance(run, to_fill, RUN_BLOCK);
	}
	while (run->entry != end && run_return(run, to_fill, 0))
		return_run_advance(run, to_fill, 1);
	return (uint32_t)(run->entry - first);
}

/* One frame that the straight path has left, in the general way: its address is read and asked about once more,
 * so that what is believed is what is used. The cursor moves behind it. */
static always_inline void returns_closely(struct worker *worker, struct returns *returns,
					  struct return_run *run, struct ring_cursor *from)
{
	uint64_t addr;

	if (run->descs) {
		const struct xdp_desc desc = *cursor_desc(from);

		run->bytes += desc.len;
		addr = desc.addr;
	} else {
		addr = *cursor_addr(from);
	}
	if (queue_believes(run->queue, run->chunks, addr, run->state))
		returns_put(worker, returns, addr);
}

/* One run of up to `count` frames, to fill as long as there is room. Returns how many it was to be, and in *done how
 * many it was. */
static always_inline uint32_t returns_run(struct pool *pool, struct returns *returns,
					  struct return_run *run, uint32_t count, uint32_t *done)
{
	if (likely(returns->room)) {
		count = cursor_run(&returns->fill, count);
		count = count < returns->room ? count : returns->room;
		run->fill = cursor_addrs(&returns->fill);
		run->entry = returns->tag | (returns->fill.index & LEDGER_INDEX_MASK);
		*done = run_returns(run, true, count);
		returns->fill.index += *done;
		returns->room -= *done;
	} else {
		count = count < pool->size - pool->count ? count : pool->size - pool->count;
		assert(count);
		run->pool = &pool->frame[pool->count];
		*done = run_returns(run, false, count);
		pool->count += *done;
	}
	return count;
}

/* Gives back the `count` frames at the cursor, which moves behind them: those of `run`, of which chunks, queue,
 * state and descs are set. Returns the bytes of what was on RX. */
static always_inline uint64_t returns_straight(struct worker *worker, struct returns *returns,
					       struct return_run *run, struct ring_cursor *from,
					       uint32_t count)
{
	while (count) {
		uint32_t most, done;

		run->from = run->descs ? (const void *)cursor_descs(from) :
					 (const void *)cursor_addrs(from);
		most = returns_run(&worker->pool, returns, run, cursor_run(from, count), &done);
		from->index += done;
		count -= done;
		if (unlikely(done < most)) {
			returns_closely(worker, returns, run, from);
			count--;
		}
	}
	return run->bytes;
}

/* What was given back is kept; `queue` is the one of returns_begin(). */
static always_inline void returns_end(struct queue *queue, const struct returns *returns)
{
	ring_stage(&queue->fill, &returns->fill);
#ifdef CHECK_OWNERS
	queue->drops[DROP_RING_VIOLATION] += returns->violations;
#endif
}

/* Gives back one frame, where that is rare. */
static inline COLD void worker_return(struct worker *worker, struct queue *queue, uint64_t addr)
{
	struct returns returns = returns_begin(worker, queue, 1, false);

	returns_put(worker, &returns, addr);
	returns_end(queue, &returns);
}

/*
 * Frames on their way out of a port, for the length of a burst. queue_tx_room() says how many there
 * may be. The TX entries are the kernel's only after sends_end().
 */
struct sends {
	struct ring_cursor tx;
	struct chunks chunks;
	ledger_entry tag; /* TX and the port, without the index */
	uint64_t bytes;
	uint64_t continued;  /* descriptors that another one of the packet follows */
	uint32_t violations; /* frames that were not in hand; builds that check owners only */
};

/* Worker's thread, as the next two: the burst's frames go out of `queue`. */
static always_inline struct sends sends_begin(const struct worker *worker,
					      const struct queue *queue, bool plain)
{
	return (struct sends){
		.tx = ring_take(&queue->tx),
		.chunks = chunks_of(&worker->chunks, plain),
		.tag = queue->tx_tag,
	};
}

/* One descriptor of a packet, by the address the kernel named; the caller has the frame in hand. */
static always_inline void sends_put(struct sends *sends, struct xdp_desc desc)
{
	const struct chunks *chunks = &sends->chunks;

	if (unlikely(!chunks_give(chunks, chunks_frame(chunks, desc.addr)))) {
		sends->violations++;
		return;
	}
	ledger_write(&chunks->ledger[chunks_frame(chunks, desc.addr)],
		     sends->tag | (sends->tx.index & LEDGER_INDEX_MASK));
	sends->bytes += desc.len;
	desc.options &= XDP_PKT_CONTD;
	if (!chunks->plain) {
		sends->continued += desc.options;
		desc.addr = chunks_flat(chunks, desc.addr);
	}
	*cursor_desc(&sends->tx) = desc;
}

/* The same of a copy of one descriptor's bytes, which are at `bytes`, in a frame of the pool, which has one. */
static always_inline void sends_copy(struct sends *sends, struct worker *worker,
				     const struct xdp_desc *from, const uint8_t *bytes)
{
	uint32_t frame = pool_get(&worker->pool);
	struct xdp_desc desc = {
		.addr = chunks_copy_addr(&sends->chunks, frame, from->len),
		.len = from->len,
		.options = from->options,
	};

	chunks_take(&sends->chunks, frame);
	memcpy(chunks_bytes(&sends->chunks, desc.addr), bytes, from->len);
	sends_put(sends, desc);
}

/* Announces what was put; nothing put is fine. */
static always_inline void sends_end(struct queue *queue, const struct sends *sends)
{
#ifdef CHECK_OWNERS
	queue->drops[DROP_RING_VIOLATION] += sends->violations;
#endif
	if (sends->tx.index == queue->tx.own)
		return;
	queue->tx_bytes += sends->bytes;
	if (unlikely(sends->continued))
		queue->tx_continued += sends->continued;
	queue->unsent = true;
	ring_stage(&queue->tx, &sends->tx);
	ring_submit(&queue->tx);
}

/* Whose fill ring the completions of `queue` go to: one that is short of them. On a patch that
 * carries one direction only, the sender's own is stocked and the receiver's has just been used. */
static always_inline struct queue *worker_fill_target(struct worker *worker, struct queue *queue,
						      uint32_t count)
{
	for (unsigned i = 0; i < worker->queues; i++) {
		if (queue_short(&worker->queue[i]) >= count)
			return &worker->queue[i];
	}
	return queue;
}

/* Completed frames back to a fill ring. At most two batches: a pass sends one a port, so this
 * catches up after a stall, and a pass stays short. */
static always_inline uint32_t worker_reap(struct worker *worker, struct queue *queue, bool plain)
{
	uint32_t count = ring_ready(&queue->completion, 2 * worker->batch);
	struct ring_cursor completion = ring_peek(&queue->completion);
	struct returns returns;
	struct queue *target;
	uint32_t straight;

	if (!count)
		return 0;
	if (count > 2 * worker->batch)
		count = 2 * worker->batch;
	target = worker_fill_target(worker, queue, count);
	returns = returns_begin(worker, target, count, plain);
	if (returns.room > queue_short(target))
		returns.room = queue_short(target);
	straight = plain ? run_worth(count) : 0;
	if (straight) {
		struct return_run run = { &returns.chunks, queue, ledger_state(queue->tx_tag),
					  .descs = false };

		returns_straight(worker, &returns, &run, &completion, count);
	}
	for (uint32_t i = straight; i < count; i++) {
		uint64_t addr = *cursor_addr(&completion);

		if (likely(queue_believes(queue, &returns.chunks, addr,
					  ledger_state(queue->tx_tag))))
			returns_put(worker, &returns, addr);
	}
	returns_end(target, &returns);
	ring_release(&queue->completion, &completion);
	if (unlikely(queue->tx_lost)) /* one that was given up may have come */
		queue_find_lost(queue, queue->refused_settled + queue->tx_lost);
	return count;
}

/* Tops the fill ring up from the pool, and publishes all that this pass put there. */
static always_inline void worker_refill(struct worker *worker, struct queue *queue, bool plain)
{
	uint32_t count = queue_short(queue);

	/* A batch short it leaves to the completions, which go straight there in the next pass: by way of
	 * the pool a frame costs 25 instructions more (scripts/bench instructions). */
	if (count <= worker->batch)
		count = 0;
	if (count > worker->pool.count)
		count = worker->pool.count;
	if (count && worker->receives) {
		struct returns returns = returns_begin(worker, queue, count, plain);

		if (count > returns.room)
			count = returns.room;
		for (uint32_t i = 0; i < count; i++) {
			uint64_t frame = pool_get(&worker->pool);

			chunks_take(&returns.chunks, frame);
			returns_put(worker, &returns, chunks_addr(&returns.chunks, frame));
		}
		returns_end(queue, &returns);
	}
	/* Not without need: the kernel looks at this line, and every store takes it away. */
	if (load_relaxed(queue->fill.producer) != (uint32_t)queue->fill.own)
		ring_submit(&queue->fill);
}

static always_inline uint32_t worker_pass(struct worker *worker, burst_fn *burst, bool plain)
{
	uint32_t moved = 0;

	for (unsigned i = 0; i < worker->queues; i++)
		moved += worker_reap(worker, &worker->queue[i], plain);
	if (worker->inlets)
		moved += worker_take_over(worker);
	for (unsigned i = 0; i < worker->queues; i++)
		moved += burst(worker, &worker->queue[i], plain);
	for (unsigned i = 0; i < worker->queues; i++)
		worker_refill(worker, &worker->queue[i], plain);
	for (unsigned i = 0; i < worker->queues; i++) {
		if (worker->queue[i].unsent)
			queue_kick_tx(&worker->queue[i]);
		if (worker->queue[i].flag_wakes || worker->queue[i].busy_poll)
			queue_kick_rx(&worker->queue[i]);
	}
	/* Relaxed: the request carries nothing but its number. */
	if (unlikely(load_relaxed(&worker->asked) != worker->answered))
		worker_attend(worker);
	return moved;
}

static always_inline void worker_wait(struct worker *worker)
{
	if (worker->finite)
		worker_check_done(worker);
	if (unlikely(load_relaxed(&worker->refused)))
		worker_find_lost(worker);
	if (worker->timed)
		worker_wait_due(worker);
	else if (worker->wait == CONF_WAIT_ADAPTIVE)
		worker_wait_adaptive(worker);
	else if (worker->wait == CONF_WAIT_POLL)
		worker_sleep(worker, WORKER_SLEEP_MS);
	else
		cpu_relax();
}

/* Runs passes until worker_stop(), then drains: what was received goes out, what was sent is waited
 * for, as long as that gets anywhere. */
static always_inline void worker_loop_as(struct worker *worker, burst_fn *burst, bool plain)
{
	uint64_t started_ns = 0, quiet_ns = 0;
	bool moved;

	while (!load_relaxed(&worker->stop)) {
		if (!worker_pass(worker, burst, plain))
			worker_wait(worker);
	}
	for (unsigned i = 0; i < worker->queues; i++)
		worker->queue[i].tx_left = 0;
	do {
		moved = worker_pass(worker, burst, plain);
	} while (!worker_drained(worker, moved, &started_ns, &quiet_ns));
	worker_attend(worker);
}

static always_inline void worker_loop(struct worker *worker, burst_fn *burst)
{
	if (likely(worker->chunks.plain))
		worker_loop_as(worker, burst, true);
	else
		worker_loop_as(worker, burst, false);
}
