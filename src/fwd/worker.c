/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "fwd/worker.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "fwd/worker_loop.h"

/* A drain ends when nothing is left and nothing came for this long: NAPI polls that had looked up
 * the socket before its slot was cleared have ended by then. */
#define DRAIN_QUIET_NS (5 * NSEC_PER_MSEC)

/* ... or when frames are left but nothing has moved for this long: the device is down, or holds
 * them. In copy mode a frame is completed within microseconds of being taken. */
#define DRAIN_STUCK_NS (300 * NSEC_PER_MSEC)

/* Between two looks at whether a worker has answered. */
#define ANSWER_NAP_US 200

int worker_new(struct worker **result, const struct worker_opts *opts, struct umem *umem)
{
	uint32_t frames = opts->frames ? opts->frames : umem->header->frames - opts->first_frame;
	struct worker *worker = aligned_alloc(_Alignof(struct worker), sizeof(*worker));
	uint32_t *pool = calloc(frames, sizeof(*pool));
	int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int err = wake_fd < 0 ? -errno : 0;

	assert(opts->first_frame + frames <= umem->header->frames);
	if (!worker || !pool)
		err = -ENOMEM;
	if (err) {
		free(worker);
		free(pool);
		if (wake_fd >= 0)
			close(wake_fd);
		return err;
	}
	memset(worker, 0, sizeof(*worker));
	worker->umem = umem;
	worker->first_frame = opts->first_frame;
	worker->chunks = (struct chunks){
		.frames = umem->frames,
		.ledger = umem->ledger,
		.first_byte = (uint64_t)opts->first_frame * umem->header->frame_size,
		.bytes = (uint64_t)frames * umem->header->frame_size,
		.size = umem->header->frame_size,
		.shift = umem->frame_shift,
		.unaligned = umem->header->unaligned,
		.plain = !opts->frags && !umem->header->unaligned &&
			 frames == umem->header->frames && (!opts->tx_job || opts->tx_job->plain),
	};
	worker->number = opts->number;
	worker->cpu = opts->cpu;
	worker->batch = opts->batch;
	worker->poll = opts->poll;
	worker->finite = opts->finite;
	worker->retries = opts->retries;
	worker->busy_poll = opts->busy_poll;
	worker->timed = opts->tx_job && (opts->tx_job->paced || opts->tx_job->cycle.period_ns);
	worker->done_fd = opts->done_fd;
	worker->wake_fd = wake_fd;
	worker->tx_job = opts->tx_job;
	worker->receives = true; /* until worker_start(): every fill ring is stocked */
	pool_init(&worker->pool, pool, frames);
	for (uint32_t i = frames; i-- > 0;)
		pool_put(&worker->pool, opts->first_frame + i); /* the first one on top */
	worker->pollfd[0] = (struct pollfd){ .fd = wake_fd, .events = POLLIN };
	*result = worker;
	return 0;
}

void worker_free(struct worker *worker)
{
	if (!worker)
		return;
	close(worker->wake_fd);
	free(worker->pool.frame);
	tx_job_free(worker->tx_job);
	free(worker);
}

struct queue *worker_add(struct worker *worker, const struct xsk *xsk)
{
	unsigned port = worker->queues++;
	struct queue *queue = &worker->queue[port];

	assert(port < CONF_PORTS_MAX);
	*queue = (struct queue){
		.rx = xsk->ring[XSK_RING_RX],
		.fill = xsk->ring[XSK_RING_FILL],
		.tx = xsk->ring[XSK_RING_TX],
		.completion = xsk->ring[XSK_RING_COMPLETION],
		.fd = xsk->fd,
		/* What fills the RX ring, and one batch so that the RX ring is what a slow poller
		 * is seen to overrun. worker_bound() may know better. */
		.stock = ring_size(&xsk->ring[XSK_RING_RX]) + worker->batch,
		.port = (uint16_t)port,
		.tx_left = UINT64_MAX,
		.busy_poll = worker->busy_poll,
	};
	worker->pollfd[1 + port] = (struct pollfd){ .fd = xsk->fd };
	worker_refill(worker, queue, false);
	return queue;
}

static void *worker_thread(void *context)
{
	struct worker *worker = context;

	store_relaxed(&worker->tid, gettid()); /* carries nothing but itself */
	worker->run(worker);
	return NULL;
}

/* How often a thread that does not run yet is looked for, us. */
#define TID_NAP_US 100

int worker_tid(const struct worker *worker)
{
	int tid;

	while (!(tid = load_relaxed(&worker->tid)))
		usleep(TID_NAP_US);
	return tid;
}

int worker_start(struct worker *worker, void (*run)(struct worker *worker), bool receives)
{
	pthread_attr_t attr;
	cpu_set_t cpus;
	char name[16];
	int err;

	worker->run = run;
	worker->receives = receives;
	worker_publish(worker); /* so that there is something true to read before its first pass */
	CPU_ZERO(&cpus);
	CPU_SET(worker->cpu, &cpus);
	err = pthread_attr_init(&attr);
	if (err)
		return -err;
	err = pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	if (!err)
		err = pthread_create(&worker->thread, &attr, worker_thread, worker);
	pthread_attr_destroy(&attr);
	if (err)
		return -err;
	worker->running = true;
	snprintf(name, sizeof(name), "poller-q%u", worker->number);
	pthread_setname_np(worker->thread, name);
	return 0;
}

static void wake(const struct worker *worker)
{
	uint64_t one = 1;

	/* It can only fail when the counter is full, and then the worker is awake anyway. */
	if (write(worker->wake_fd, &one, sizeof(one)) < 0)
		return;
}

void worker_stop(struct worker *worker)
{
	store_relaxed(&worker->stop, 1); /* carries nothing but itself */
	wake(worker);
}

void worker_join(struct worker *worker)
{
	if (worker->running)
		pthread_join(worker->thread, NULL);
	worker->running = false;
}

void worker_count(const struct worker *worker, struct worker_counts *counts)
{
	counts->total = worker->pool.size;
	counts->pool = worker->pool.count;
	counts->reclaimed = worker->reclaimed;
	counts->queues = worker->queues;
	counts->cycle = worker->tx_job ? worker->tx_job->cycle : (struct cycle_counts){ 0 };
	for (unsigned i = 0; i < worker->queues; i++) {
		queue_count(&worker->queue[i], &counts->queue[i]);
		counts->queue[i].calls[CALL_POLL] = worker->polls;
		counts->queue[i].tx_refused = load_relaxed(&worker->refused_of[i]);
	}
}

void worker_publish(struct worker *worker)
{
	worker->answered = load_relaxed(&worker->asked);
	worker_count(worker, &worker->scratch);
	seqlock_write(&worker->seqlock, (uint64_t *)&worker->published,
		      (const uint64_t *)&worker->scratch, worker_counts_words(worker->queues));
	/* Pairs with load_acquire() in answered(): whoever sees the answer sees its snapshot. */
	store_release(&worker->published_answer, worker->answered);
}

void worker_ask(struct worker *worker)
{
	store_relaxed(&worker->asked, worker->asked + 1);
}

static bool answered(const struct worker *worker)
{
	/* Both pair with the store_release()s after a publication. */
	return load_acquire(&worker->published_answer) == worker->asked ||
	       load_acquire(&worker->asleep);
}

int worker_read(struct worker *worker, struct worker_counts *counts, uint64_t deadline_ns)
{
	bool fresh;

	if (!worker->running) {
		worker_count(worker, counts);
		return 0;
	}
	while (!answered(worker) && clock_now_ns() < deadline_ns)
		usleep(ANSWER_NAP_US);
	fresh = answered(worker);
	/* A write takes under a microsecond: only one that was taken off its CPU in the middle is
	 * still under way after so many tries. */
	while (seqlock_read(&worker->seqlock, (uint64_t *)counts,
			    (const uint64_t *)&worker->published,
			    worker_counts_words(worker->queues), 1000)) {
		if (clock_now_ns() >= deadline_ns)
			return -EBUSY;
		usleep(ANSWER_NAP_US);
	}
	return fresh ? 0 : -EAGAIN;
}

/*
 * What poll() shall report for a port: frames, unless they could not go on anyway; room for sending,
 * only where the lack of it holds frames back, and only where the kernel would not say at once that
 * there is room, which it does while its TX ring is at most half full (xsk_tx_writeable()).
 */
static short wanted_events(const struct worker *worker, const struct queue *queue)
{
	short events = queue->held ? 0 : POLLIN;
	uint32_t untaken = (uint32_t)queue->tx.own - load_relaxed(queue->tx.consumer);

	if (queue->unsent && !queue->down && queue_tx_room(queue) < worker->batch &&
	    untaken > ring_size(&queue->tx) / 2)
		events |= POLLOUT;
	return events;
}

void worker_sleep(struct worker *worker, int timeout_ms)
{
	uint64_t count;

	for (unsigned i = 0; i < worker->queues; i++) {
		const struct queue *queue = &worker->queue[i];
		short events = wanted_events(worker, queue);

		worker->pollfd[1 + i].events = events;
		/* Frames on a copy mode TX ring leave only when we call again; completions that a
		 * full ring waits for wake nobody. A device that is down gets the long sleep. */
		if (!(events & POLLOUT) && !queue->down &&
		    (queue->unsent || queue_tx_room(queue) < worker->batch))
			timeout_ms = WORKER_NAP_MS < timeout_ms ? WORKER_NAP_MS : timeout_ms;
	}
	worker_publish(worker);
	if (worker->poll)
		worker->polls++;
	store_release(&worker->asleep, 1); /* pairs with answered() */
	if (poll(worker->pollfd, 1 + worker->queues, timeout_ms) > 0 && worker->pollfd[0].revents &&
	    read(worker->wake_fd, &count, sizeof(count)) < 0)
		worker->pollfd[0].revents = 0; /* somebody else's read: awake is all we wanted */
	store_release(&worker->asleep, 0);
}

static uint64_t count_pending(const struct worker *worker)
{
	uint64_t pending = 0;

	for (unsigned i = 0; i < worker->queues; i++)
		pending += queue_tx_pending(&worker->queue[i]);
	return pending;
}

/* True if frames are still to be completed and there is hope: some were, not long ago. */
static bool completions_may_come(struct worker *worker)
{
	uint64_t pending = count_pending(worker), now_ns;

	if (!pending)
		return false;
	now_ns = clock_now_ns();
	if (!worker->done_ns || pending != worker->done_pending) {
		worker->done_ns = now_ns;
		worker->done_pending = pending;
	}
	worker->gave_up = now_ns - worker->done_ns >= worker->retries * NSEC_PER_SEC;
	return !worker->gave_up;
}

void worker_check_done(struct worker *worker)
{
	uint64_t one = 1;

	if (worker->done)
		return;
	for (unsigned i = 0; i < worker->queues; i++) {
		if (worker->queue[i].tx_left)
			return;
	}
	if (completions_may_come(worker))
		return;
	worker->done = write(worker->done_fd, &one, sizeof(one)) == sizeof(one);
}

void worker_wait_due(struct worker *worker)
{
	const struct tx_job *job = worker->tx_job;
	uint64_t wait_ns = tx_job_wait_ns(job), wait_ms = wait_ns / NSEC_PER_MSEC;

	/* A cycle is met by sleeping, as in xdpsock, whatever the strategy; for its last part by a timer
	 * that is more exact than poll()'s milliseconds. */
	if (job->cycle.period_ns && wait_ms < 2) {
		tx_job_sleep(job);
	} else if (job->cycle.period_ns) {
		worker_sleep(worker,
			     wait_ms > WORKER_SLEEP_MS ? WORKER_SLEEP_MS : (int)wait_ms - 1);
	} else if (worker->poll) {
		if (!wait_ns) /* due, and cannot leave: as where nothing is timed */
			wait_ms = WORKER_SLEEP_MS;
		else if (!wait_ms) /* less cannot be slept; what gets due meanwhile goes together */
			wait_ms = 1;
		worker_sleep(worker, wait_ms > WORKER_SLEEP_MS ? WORKER_SLEEP_MS : (int)wait_ms);
	} else {
		cpu_relax();
	}
}

void worker_find_lost(struct worker *worker)
{
	for (unsigned i = 0; i < worker->queues; i++) {
		struct queue *queue = &worker->queue[i];
		uint32_t refused = load_relaxed(&worker->refused_of[i]);
		uint64_t now_ns;

		if (refused == queue->refused_settled + queue->tx_lost) {
			queue->stuck_since_ns = 0;
			continue;
		}
		now_ns = clock_now_ns();
		if (!queue->stuck_since_ns || queue->stuck_at != queue->completion.own) {
			queue->stuck_since_ns = now_ns;
			queue->stuck_at = queue->completion.own;
		} else if (now_ns - queue->stuck_since_ns >= WORKER_STUCK_MS * NSEC_PER_MSEC) {
			queue_find_lost(queue, refused);
		}
	}
}

void worker_refused(struct worker *worker, unsigned port, uint64_t refused)
{
	uint32_t before = worker->refused_of[port];

	/* A worker that sees only one of the two looks again in its next idle pass. */
	store_relaxed(&worker->refused_of[port], (uint32_t)refused);
	store_relaxed(&worker->refused, worker->refused + (uint32_t)refused - before);
}

bool worker_drained(struct worker *worker, bool moved, uint64_t *started_ns, uint64_t *quiet_ns)
{
	uint64_t now_ns = clock_now_ns();
	bool empty;

	if (!*started_ns)
		*started_ns = *quiet_ns = now_ns;
	if (now_ns - *started_ns >= WORKER_DRAIN_MS * NSEC_PER_MSEC)
		return true;
	if (moved) {
		*quiet_ns = now_ns;
		return false;
	}
	empty = !count_pending(worker);
	if (now_ns - *quiet_ns >= (empty ? DRAIN_QUIET_NS : DRAIN_STUCK_NS))
		return true;
	worker_sleep(worker, WORKER_NAP_MS);
	return false;
}

/* Every frame that the ledger says is on or beyond the port's rings, back into the pool. */
static uint32_t take_back(struct worker *worker, unsigned port)
{
	uint32_t taken = 0, end = worker->first_frame + worker->pool.size;

	for (uint32_t frame = worker->first_frame; frame < end; frame++) {
		enum ledger_state state = ledger_state(worker->chunks.ledger[frame]);

		if (state != LEDGER_FILL && state != LEDGER_TX)
			continue;
		if (ledger_port(worker->chunks.ledger[frame]) != port)
			continue;
		ledger_write(&worker->chunks.ledger[frame], ledger_pack(LEDGER_POOL, 0, 0));
		pool_put(&worker->pool, frame);
		taken++;
	}
	return taken;
}

void worker_remove_last(struct worker *worker)
{
	take_back(worker, --worker->queues);
}

void worker_close_port(struct worker *worker, unsigned port)
{
	struct queue *queue = &worker->queue[port];
	struct ring_cursor rx = ring_peek(&queue->rx);
	uint32_t left;

	if (queue->closed)
		return;
	/* Received, but too late: they are counted as such, and the ledger has them as FILL. */
	left = ring_ready(&queue->rx, ring_size(&queue->rx));
	if (left > ring_size(&queue->rx)) /* only a kernel gone mad */
		left = ring_size(&queue->rx);
	for (uint32_t i = 0; i < left; i++) {
		const struct xdp_desc *desc = cursor_desc(&rx);
		uint32_t continued = desc->options & XDP_PKT_CONTD;

		queue->rx_bytes += desc->len;
		queue->rx_continued += continued;
		queue->drops[DROP_STOPPING] += !continued;
	}
	ring_release(&queue->rx, &rx);
	queue_count(queue, &queue->final);
	queue->final.fill = queue->final.rx = queue->final.tx = queue->final.completion = 0;
	queue->final.kernel = 0;
	queue->final.lost = 0; /* the ledger knows them, and the kernel lets them go now */
	queue->closed = true;
	worker->reclaimed += take_back(worker, port);
}

uint64_t worker_audit(const struct worker *worker)
{
	uint8_t *times = calloc(worker->pool.size, 1);
	uint64_t wrong = 0;

	if (!times)
		return worker->pool.size; /* nothing was proven */
	for (uint32_t i = 0; i < worker->pool.count; i++)
		times[worker->pool.frame[i] - worker->first_frame]++;
	for (uint32_t i = 0; i < worker->pool.size; i++) {
		ledger_entry entry = worker->chunks.ledger[worker->first_frame + i];

		if (times[i] != 1 || ledger_state(entry) != LEDGER_POOL)
			wrong++;
	}
	free(times);
	return wrong;
}
