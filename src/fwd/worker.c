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
#include "fwd/inlet.h"
#include "fwd/probe.h"
#include "fwd/worker_loop.h"

/* A drain ends when nothing is left and nothing came for this long: NAPI polls that had looked up
 * the socket before its slot was cleared have ended by then. */
#define DRAIN_QUIET_NS (5 * NSEC_PER_MSEC)

/* ... or when frames are left but nothing has moved for this long: the device is down, or holds
 * them. In copy mode a frame is completed within microseconds of being taken. */
#define DRAIN_STUCK_NS (300 * NSEC_PER_MSEC)

/* What a timer may be late, ns: the slack that the kernel gives every thread. To spin for longer takes most of a
 * CPU at some thousand frames a second; and where that CPU has others, who spends so much of it is not woken in
 * time any more. */
#define DUE_SPIN_NS 50000

/* The shortest nap that is worth its system call, ns. */
#define DUE_NAP_NS 10000

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
	worker->wait = (uint8_t)opts->wait;
	worker->waiting = waiting_new();
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
	for (unsigned i = 0; i < worker->inlets; i++)
		handover_free(worker->inlet[i].handover);
	free(worker->inlet);
	free(worker->pool.frame);
	tx_job_free(worker->tx_job);
	free(worker);
}

/* The sending half of a hand-over, which is no socket's, in a queue made anew. */
static void keep_hand_over(struct queue *queue, const struct queue *before)
{
	queue->tx = before->tx;
	queue->completion = before->completion;
	queue->tx_tag = before->tx_tag;
	queue->tx_bytes = before->tx_bytes;
	queue->tx_continued = before->tx_continued;
	queue->hands_over = true;
	queue->bell_fd = before->bell_fd;
	queue->unsent = before->unsent;
}

/* What was counted while there was no socket. */
static void count_past(struct worker *worker, const struct queue *queue)
{
	struct queue_counts counts;

	queue_count(queue, &counts);
	queue_counts_add(&worker->past[queue->port], &counts);
}

void worker_plug_absent(struct worker *worker, unsigned port)
{
	(void)worker_plug(worker, port, NULL, false);
	worker->queue[port] = queue_lost(port);
}

struct queue *worker_plug(struct worker *worker, unsigned port, const struct xsk *xsk,
			  bool receives)
{
	struct queue *queue = &worker->queue[port];
	const struct queue before = *queue;

	assert(port <= worker->queues && port < CONF_PORTS_MAX);
	if (port == worker->queues)
		worker->queues++;
	if (!xsk) {
		*queue = queue_idle(port);
		worker->pollfd[1 + port] = (struct pollfd){ .fd = -1 };
		return queue;
	}
	if (before.lost_device)
		count_past(worker, &before);
	*queue = (struct queue){
		.rx = xsk->ring[XSK_RING_RX],
		.fill = xsk->ring[XSK_RING_FILL],
		.tx = xsk->ring[XSK_RING_TX],
		.completion = xsk->ring[XSK_RING_COMPLETION],
		.fd = xsk->fd,
		/* What fills the RX ring, and one batch so that the RX ring is what a slow poller
		 * is seen to overrun. worker_bound() may know better. */
		.stock = receives ? ring_size(&xsk->ring[XSK_RING_RX]) + worker->batch : 0,
		.port = (uint16_t)port,
		.tx_tag = ledger_pack(LEDGER_TX, port, 0),
		.tx_left = before.lost_device ? before.tx_left : UINT64_MAX,
		.busy_poll = worker->busy_poll,
	};
	if (before.hands_over)
		keep_hand_over(queue, &before);
	worker->pollfd[1 + port] = (struct pollfd){ .fd = xsk->fd };
	worker_refill(worker, queue, false);
	return queue;
}

int worker_connect(struct worker *sender, unsigned port, struct worker *receiver, uint32_t size)
{
	struct inlet *inlets = calloc(receiver->inlets + 1U, sizeof(*inlets));
	struct inlet *inlet = inlets ? &inlets[receiver->inlets] : NULL;

	if (!inlets || handover_new(&inlet->handover, size)) {
		free(inlets);
		return -ENOMEM;
	}
	if (receiver->inlets)
		memcpy(inlets, receiver->inlet, receiver->inlets * sizeof(*inlets));
	free(receiver->inlet);
	receiver->inlet = inlets;
	receiver->inlets++;
	inlet->port = (uint16_t)port;
	inlet->chunks = chunks_of(&sender->chunks, false);
	handover_receiver(inlet->handover, &inlet->in, &inlet->back);
	queue_hand_over(&sender->queue[port], inlet->handover, receiver->wake_fd);
	return 0;
}

static void wake(const struct worker *worker)
{
	uint64_t one = 1;

	/* It can only fail when the counter is full, and then the worker is awake anyway. */
	if (write(worker->wake_fd, &one, sizeof(one)) < 0)
		return;
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
		queue_counts_add(&counts->queue[i], &worker->past[i]);
		counts->queue[i].calls[CALL_POLL] = worker->polls;
		counts->queue[i].tx_refused = load_relaxed(&worker->refused_of[i]);
	}
}

static void publish(struct worker *worker)
{
	worker_count(worker, &worker->scratch);
	seqlock_write(&worker->seqlock, (uint64_t *)&worker->published,
		      (const uint64_t *)&worker->scratch, worker_counts_words(worker->queues));
	/* Pairs with load_acquire() in answered(): whoever sees the answer sees its snapshot. */
	store_release(&worker->published_answer, worker->answered);
}

static void *worker_thread(void *context)
{
	struct worker *worker = context;
	char name[16];

	/* By itself: of another thread it would be a file to be written, which the main thread may not. */
	snprintf(name, sizeof(name), "poller-q%u", worker->number);
	pthread_setname_np(pthread_self(), name);
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
	int err;

	worker->run = run;
	worker->receives = receives;
	publish(worker); /* so that there is something true to read before its first pass */
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
	return 0;
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

static void take_up_params(struct worker *worker)
{
	/* Pairs with store_release() in worker_set_params(). */
	const struct worker_params *params = load_acquire(&worker->params);

	if (!params)
		return;
	worker->batch = params->batch;
	worker->wait = (uint8_t)params->wait;
	worker->busy_poll = params->busy_poll;
	for (unsigned i = 0; i < worker->queues; i++)
		worker->queue[i].busy_poll = params->busy_poll;
}

void worker_attend(struct worker *worker)
{
	uint64_t count;

	/* Pairs with store_release() in worker_ask(): what was set before it is seen. */
	worker->answered = load_acquire(&worker->asked);
	take_up_params(worker);
	if (worker->probes)
		probes_send(worker);
	publish(worker);
	if (!load_relaxed(&worker->park))
		return;
	store_release(&worker->parked, 1);    /* pairs with load_acquire() in worker_park() */
	while (load_acquire(&worker->park)) { /* pairs with store_release() in worker_resume() */
		if (poll(worker->pollfd, 1, WORKER_SLEEP_MS) > 0 &&
		    read(worker->wake_fd, &count, sizeof(count)) < 0)
			continue; /* it was a moment's */
	}
	store_relaxed(&worker->parked, 0);
}

void worker_ask(struct worker *worker)
{
	store_release(&worker->asked, worker->asked + 1); /* pairs with worker_attend() */
}

int worker_await(const struct worker *worker, uint64_t deadline_ns)
{
	/* Pairs with the store_release() after a publication, like answered(). */
	while (worker->running && load_acquire(&worker->published_answer) != worker->asked) {
		if (clock_now_ns() >= deadline_ns)
			return -EAGAIN;
		usleep(ANSWER_NAP_US);
	}
	return 0;
}

bool worker_came_round(struct worker *worker)
{
	/* Asleep is no answer here: so it stands there also when somebody holds it. Pairs with the
	 * store_release() after a publication. */
	if (worker->running && load_acquire(&worker->published_answer) < worker->round)
		return false;
	worker_ask(worker);
	worker->round = worker->asked;
	return true;
}

void worker_set_params(struct worker *worker, const struct worker_params *params)
{
	store_release(&worker->params, params); /* pairs with take_up_params() */
	worker_ask(worker);
	if (worker->running)
		wake(worker);
	else
		take_up_params(worker);
}

void worker_rouse(struct worker *worker)
{
	worker_ask(worker);
	if (worker->running)
		wake(worker);
}

int worker_move(struct worker *worker, unsigned cpu)
{
	cpu_set_t cpus;
	int err;

	if (worker->cpu == cpu)
		return 0;
	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	err = worker->running ? pthread_setaffinity_np(worker->thread, sizeof(cpus), &cpus) : 0;
	if (!err)
		worker->cpu = cpu;
	return -err;
}

int worker_park(struct worker *worker, uint64_t deadline_ns)
{
	if (!worker->running)
		return 0;
	store_relaxed(&worker->park, 1);
	worker_ask(worker);
	wake(worker);
	/* Pairs with store_release() in worker_attend(): its pass is over. */
	while (!load_acquire(&worker->parked)) {
		if (clock_now_ns() >= deadline_ns) {
			worker_resume(worker);
			return -ETIMEDOUT;
		}
		usleep(ANSWER_NAP_US);
	}
	return 0;
}

void worker_resume(struct worker *worker)
{
	if (!worker->running)
		return;
	store_release(&worker->park, 0); /* pairs with load_acquire() in worker_attend() */
	wake(worker);
	/* Or the next worker_park() would take the parking of now for its own. */
	while (load_relaxed(&worker->parked))
		usleep(ANSWER_NAP_US);
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
	/* Asked once a turn: a worker seen asleep has answered, even if it wakes right after. */
	while (!(fresh = answered(worker)) && clock_now_ns() < deadline_ns)
		usleep(ANSWER_NAP_US);
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

uint32_t worker_take_over(struct worker *worker)
{
	uint32_t taken = 0;

	for (unsigned i = 0; i < worker->inlets; i++)
		taken += inlet_burst(worker, &worker->inlet[i]);
	return taken;
}

/* Asks the senders to wake it, and looks once more: true if there is nothing to take over. */
static bool inlets_settle(struct worker *worker)
{
	bool settled = true;

	for (unsigned i = 0; i < worker->inlets; i++)
		handover_ask_wakeup(&worker->inlet[i].in, true);
	fence_full(); /* pairs with that of ring_bell(): see handover.h */
	for (unsigned i = 0; i < worker->inlets; i++) {
		struct inlet *inlet = &worker->inlet[i];

		if (!inlet->held && ring_ready(&inlet->in, 1))
			settled = false;
	}
	return settled;
}

static void inlets_wake(struct worker *worker)
{
	for (unsigned i = 0; i < worker->inlets; i++)
		handover_ask_wakeup(&worker->inlet[i].in, false);
}

/* Room for a hand-over comes with completions, which wake nobody. */
static bool any_inlet_held(const struct worker *worker)
{
	for (unsigned i = 0; i < worker->inlets; i++) {
		if (worker->inlet[i].held)
			return true;
	}
	return false;
}

void worker_sleep(struct worker *worker, int timeout_ms)
{
	uint64_t count;

	worker_attend(worker);
	for (unsigned i = 0; i < worker->queues; i++) {
		const struct queue *queue = &worker->queue[i];
		short events = wanted_events(worker, queue);

		worker->pollfd[1 + i].events = events;
		/* Frames on a copy mode TX ring leave only when we call again; completions that a
		 * full ring waits for wake nobody. A device that is down gets the long sleep. */
		if (!(events & POLLOUT) && !queue->down &&
		    (queue->unsent ||
		     (queue_tx_pending(queue) && queue_tx_room(queue) < worker->batch)))
			timeout_ms = WORKER_NAP_MS < timeout_ms ? WORKER_NAP_MS : timeout_ms;
	}
	if (any_inlet_held(worker) && WORKER_NAP_MS < timeout_ms)
		timeout_ms = WORKER_NAP_MS;
	if (worker->wait != CONF_WAIT_SPIN)
		worker->polls++;
	store_release(&worker->asleep, 1); /* pairs with answered() */
	if (inlets_settle(worker) && poll(worker->pollfd, 1 + worker->queues, timeout_ms) > 0 &&
	    worker->pollfd[0].revents && read(worker->wake_fd, &count, sizeof(count)) < 0)
		worker->pollfd[0].revents = 0; /* somebody else's read: awake is all we wanted */
	inlets_wake(worker);
	store_release(&worker->asleep, 0);
}

/* --- wait = adaptive --- */

/* Grows with every frame that comes in or back. */
static uint64_t count_moved(const struct worker *worker)
{
	uint64_t moved = 0;

	for (unsigned i = 0; i < worker->queues; i++)
		moved += worker->queue[i].rx.own + worker->queue[i].completion.own +
			 worker->queue[i].tx.own;
	for (unsigned i = 0; i < worker->inlets; i++)
		moved += worker->inlet[i].in.own;
	return moved;
}

/* A look at rings whose entries the next pass reads, with acquire: relaxed does here. */
static bool frames_wait(const struct worker *worker)
{
	for (unsigned i = 0; i < worker->queues; i++) {
		const struct queue *queue = &worker->queue[i];

		if (worker->receives && !queue->held &&
		    load_relaxed(queue->rx.producer) != (uint32_t)queue->rx.own)
			return true;
		if (load_relaxed(queue->completion.producer) != (uint32_t)queue->completion.own)
			return true;
	}
	for (unsigned i = 0; i < worker->inlets; i++) {
		const struct ring *in = &worker->inlet[i].in;

		if (!worker->inlet[i].held && load_relaxed(in->producer) != (uint32_t)in->own)
			return true;
	}
	return false;
}

/* The calls that a pass makes where nothing comes. */
static void kick_again(struct worker *worker)
{
	for (unsigned i = 0; i < worker->queues; i++) {
		if (worker->queue[i].unsent)
			queue_kick_tx(&worker->queue[i]);
		if (worker->queue[i].flag_wakes || worker->queue[i].busy_poll)
			queue_kick_rx(&worker->queue[i]);
	}
}

/* True if there is something to do: a frame, or what the main thread wants. */
static bool spin(struct worker *worker, uint32_t spin_ns)
{
	struct waiting *waiting = &worker->waiting;
	uint64_t start_ns = waiting->since_ns, look_ns = start_ns, now_ns;
	bool hole;

	do {
		cpu_relax();
		kick_again(worker);
		now_ns = clock_now_ns();
		if (frames_wait(worker)) {
			waiting_spun(waiting, spin_ns, now_ns - start_ns, true);
			return true;
		}
		/* Relaxed: they carry nothing but themselves. */
		if (load_relaxed(&worker->asked) != worker->answered || load_relaxed(&worker->stop))
			return true;
		hole = now_ns - look_ns > WAITING_HOLE_NS;
		look_ns = now_ns;
	} while (!hole && now_ns - start_ns < spin_ns);
	waiting_spun(waiting, spin_ns, now_ns - start_ns, false);
	return false;
}

void worker_wait_adaptive(struct worker *worker)
{
	struct waiting *waiting = &worker->waiting;
	uint64_t moved = count_moved(worker);

	if (moved != waiting->moved) { /* else it is still the same silence */
		uint32_t spin_ns = waiting_spin_ns(waiting);

		waiting->moved = moved;
		waiting->since_ns = clock_now_ns();
		if (spin_ns && spin(worker, spin_ns))
			return;
	}
	worker_sleep(worker, WORKER_SLEEP_MS);
	if (frames_wait(worker))
		waiting_slept(waiting, clock_now_ns() - waiting->since_ns);
}

/* --- the end of a job --- */

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
	store_relaxed(&worker->done, true); /* what it did is read after its end */
	if (write(worker->done_fd, &one, sizeof(one)) < 0)
		return; /* others' writes have filled it: somebody is told */
}

static void nap(uint64_t ns)
{
	const struct timespec left = { .tv_nsec = (long)ns };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &left, NULL);
}

/* Sleeps for less than poll()'s milliseconds as well; only for the last part, which no timer meets, it spins. */
static void wait_due_adaptive(struct worker *worker, uint64_t wait_ns)
{
	if (!wait_ns) /* due, and cannot leave: as where nothing is timed */
		worker_wait_adaptive(worker);
	else if (wait_ns >= 2 * NSEC_PER_MSEC)
		worker_sleep(worker, wait_ns / NSEC_PER_MSEC > WORKER_SLEEP_MS ?
					     WORKER_SLEEP_MS :
					     (int)(wait_ns / NSEC_PER_MSEC) - 1);
	else if (wait_ns > DUE_SPIN_NS + DUE_NAP_NS)
		nap(wait_ns - DUE_SPIN_NS);
	else
		cpu_relax();
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
	} else if (worker->wait == CONF_WAIT_ADAPTIVE) {
		wait_due_adaptive(worker, wait_ns);
	} else if (worker->wait == CONF_WAIT_POLL) {
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
	const struct queue *queue = &worker->queue[port];
	bool lends = queue->hands_over && !queue->closed; /* these come home by themselves */

	for (uint32_t frame = worker->first_frame; frame < end; frame++) {
		enum ledger_state state = ledger_state(worker->chunks.ledger[frame]);

		if (state != LEDGER_FILL && state != LEDGER_TX && state != LEDGER_HAND_OVER)
			continue;
		if (state == LEDGER_HAND_OVER && lends)
			continue;
		if (ledger_port(worker->chunks.ledger[frame]) != port)
			continue;
		ledger_write(&worker->chunks.ledger[frame], ledger_pack(LEDGER_POOL, 0, 0));
		pool_put(&worker->pool, frame);
		taken++;
	}
	return taken;
}

/* Lent frames that nobody took over any more. Which port they came in on is not known; it is counted with
 * the first that receives. The receiver has ended. */
static void count_unreceived(struct worker *worker, const struct queue *queue)
{
	uint64_t left = (uint32_t)queue->tx.own - load_relaxed(queue->tx.consumer);
	unsigned first = 0;

	while (first + 1U < worker->queues && worker->queue[first].fd < 0)
		first++;
	for (uint64_t i = queue->tx.own - left; i != queue->tx.own; i++) {
		if (!(ring_desc(&queue->tx, i)->options & XDP_PKT_CONTD))
			worker->queue[first].drops[DROP_STOPPING]++;
	}
}

/* Received, but too late: they are counted as such, and the ledger has them as FILL. */
static void count_untaken(struct queue *queue)
{
	struct ring_cursor rx = ring_peek(&queue->rx);
	uint32_t left;

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
}

/* Final counts, with nothing on its rings any more. */
static void finish_counts(struct worker *worker, struct queue *queue)
{
	count_untaken(queue);
	if (queue->hands_over)
		count_unreceived(worker, queue);
	queue_count(queue, &queue->final);
	queue->final.hand_over = 0;
	queue->final.fill = queue->final.rx = queue->final.tx = queue->final.completion = 0;
	queue->final.kernel = 0;
	queue->final.lost = 0; /* the ledger knows them, and the kernel lets them go now */
	queue->closed = true;
}

/* Before the ledger finds them: a frame that was forgotten still stands there as on a ring. */
static void note_unbalanced(struct worker *worker)
{
	int64_t balance;

	worker_count(worker, &worker->scratch);
	balance = worker_counts_balance(&worker->scratch);
	if (balance && !worker->unbalanced)
		worker->unbalanced = (uint64_t)(balance < 0 ? -balance : balance);
}

void worker_close_port(struct worker *worker, unsigned port)
{
	if (worker->queue[port].closed)
		return;
	note_unbalanced(worker);
	finish_counts(worker, &worker->queue[port]);
	worker->reclaimed += take_back(worker, port);
}

void worker_unplug(struct worker *worker, unsigned port, struct queue *gone)
{
	finish_counts(worker, &worker->queue[port]);
	*gone = worker->queue[port];
	queue_counts_add(&gone->final, &worker->past[port]);
	worker->past[port] = (struct queue_counts){ 0 };
	worker->queue[port] = queue_idle(port);
	worker->pollfd[1 + port] = (struct pollfd){ .fd = -1 };
}

/* Packets on the TX ring, or taken by the kernel, that it has not completed; but for the lost ones. */
static uint64_t packets_left(const struct queue *queue, const struct queue_counts *counts)
{
	uint64_t left = queue->tx.own - queue->tx_continued - counts->tx_packets;

	return left > queue->tx_lost ? left - queue->tx_lost : 0;
}

void worker_lose(struct worker *worker, unsigned port)
{
	struct queue *queue = &worker->queue[port];
	const struct queue before = *queue;
	struct queue_counts counts;

	count_untaken(queue);
	queue_count(queue, &counts);
	counts.tx_refused = load_relaxed(&worker->refused_of[port]);
	if (!queue->hands_over)
		counts.drops[DROP_LINK_DOWN] += packets_left(queue, &counts);
	queue_counts_refused(&counts);
	queue_counts_add(&worker->past[port], &counts);
	worker_refused(worker, port, 0);
	*queue = queue_lost(port);
	queue->tx_left = before.tx_left;
	if (before.hands_over) {
		keep_hand_over(queue, &before);
		queue->down = false; /* that is the receiver's to say */
	}
	worker->pollfd[1 + port] = (struct pollfd){ .fd = -1 };
}

uint32_t worker_reclaim(struct worker *worker, unsigned port)
{
	uint32_t taken = take_back(worker, port);

	publish(worker); /* in the newest snapshot they are in no place */
	return taken;
}

/* The frames that are out for a port, or lost to it, are known by another number. */
static void renumber_frames(struct worker *worker, const unsigned *number)
{
	ledger_entry *entry = &worker->chunks.ledger[worker->first_frame];

	for (uint32_t i = 0; i < worker->pool.size; i++) {
		enum ledger_state state = ledger_state(entry[i]);

		if (state != LEDGER_POOL)
			ledger_write(&entry[i], ledger_pack(state, number[ledger_port(entry[i])],
							    ledger_index(entry[i])));
	}
}

void worker_renumber(struct worker *worker, unsigned ports, const int *before)
{
	struct queue queue[CONF_PORTS_MAX];
	struct pollfd pollfd[CONF_PORTS_MAX];
	uint32_t refused_of[CONF_PORTS_MAX];
	struct queue_counts past[CONF_PORTS_MAX];
	unsigned number[CONF_PORTS_MAX] = { 0 };

	assert(!worker->inlets);
	memcpy(queue, worker->queue, sizeof(queue));
	memcpy(pollfd, &worker->pollfd[1], sizeof(pollfd));
	memcpy(refused_of, worker->refused_of, sizeof(refused_of));
	memcpy(past, worker->past, sizeof(past));
	for (unsigned i = 0; i < ports; i++) {
		worker->queue[i] = queue_idle(i);
		worker->pollfd[1 + i] = (struct pollfd){ .fd = -1 };
		worker->refused_of[i] = 0;
		worker->past[i] = (struct queue_counts){ 0 };
		if (before[i] < 0)
			continue;
		number[before[i]] = i;
		worker->queue[i] = queue[before[i]];
		worker->queue[i].port = (uint16_t)i;
		worker->queue[i].tx_tag = ledger_pack(LEDGER_TX, i, 0);
		worker->pollfd[1 + i] = pollfd[before[i]];
		worker->refused_of[i] = refused_of[before[i]];
		worker->past[i] = past[before[i]];
	}
	worker->queues = (uint16_t)ports;
	renumber_frames(worker, number);
	publish(worker); /* the newest snapshot is in the old order */
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
	return wrong > worker->unbalanced ? wrong : worker->unbalanced;
}
