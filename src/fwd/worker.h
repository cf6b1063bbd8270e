/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One pinned poller thread: one queue number, on every port of its forward, and all the frames of
 * one UMEM.
 *
 *	             +--------- fill <---------+-------------- refill <-- pool
 *	             v                         |                           ^
 *	  NIC -> kernel -> rx -> mode's burst -+-> drop ------------------>+
 *	  NIC <- kernel <- tx <------+                                     |
 *	             |                                                     |
 *	             +--> completion -> reap (straight to fill if it has room)
 *
 * A pass: reap, receive a burst, refill, kick; then wait if nothing moved. worker_loop.h has it.
 *
 * A single frame is forwarded at once: nothing waits for a full burst. Nothing waits on a ring:
 * each step does what there is room for and leaves the rest to the next pass.
 *
 * Egress full, hold back or drop? A patch or l2fwd port whose TX ring has no room holds RX back: a
 * frame that cannot leave is better not taken than taken and thrown away, the kernel then drops at
 * the earliest point, where it is cheapest, and counts it (rx_ring_full). But where the egress
 * device is *down* the frame would wait for a link that may never come and arrive seconds late: then
 * it is dropped and counted (link_down), so that the ingress keeps flowing and its poller can sleep.
 * What was put on the TX ring before that was known stays there, and leaves when the link is back.
 */
#pragma once

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/layout.h"
#include "base/seqlock.h"
#include "fwd/chunks.h"
#include "fwd/queue.h"
#include "fwd/stats.h"
#include "fwd/tx_job.h"
#include "fwd/waiting.h"
#include "xdp/pool.h"
#include "xdp/umem.h"
#include "xdp/xsk.h"

/* Longest sleep, ms: the bound within which a worker notices what no fd tells it, such as a link
 * that came back. Longer risks a slow recovery; shorter costs wake-ups while idle (10 a second cost
 * under 0.1 % of a core here). */
#define WORKER_SLEEP_MS 100

/* Sleep, ms, while frames are with the kernel that only another call or a completion moves on, and
 * no fd tells of either. */
#define WORKER_NAP_MS 1

/* How long a descriptor must be outstanding, with nothing else moving, before the kernel's count of
 * refused ones is taken to mean it, ms. A copy mode frame is completed within microseconds; taken too
 * early, it only says "lost" for a moment. */
#define WORKER_STUCK_MS 20

struct bridge;
struct fdb_view;
struct inlet;
struct probes;
struct storm;

struct worker {
	/* Set before the thread starts; written afterwards by the worker's thread when it takes up new
	 * parameters, and by the main thread while it is parked. */
	GROUP_BEGIN(setup);
	struct chunks chunks; /* of that umem, or a slice of it */
	uint32_t batch;	      /* packets a port and pass */
	uint16_t queues;      /* used entries of queue[] */
	uint16_t inlets;      /* used entries of inlet[] */
	uint8_t wait;	      /* enum conf_wait: what it does when idle */
	bool busy_poll;	      /* its sockets run the driver's NAPI */
	bool timed;	      /* its frames are due at times */
	bool finite;	      /* ends by itself: txpush with a count */
	bool receives;	      /* its mode does; else fill rings keep what they have */
	/* Of a bridge; else NULL. Borrowed from the forwarder, and shared with its other workers. */
	struct bridge *bridge;
	struct fdb_view *fdb_view; /* this worker's own part of the bridge's stations */
	struct storm *storm;	   /* likewise of its storm limits */
	struct probes *probes;	   /* likewise of its probes for loops */
	GROUP_END(setup);

	/* Owner: the worker's thread. */
	GROUP_BEGIN(own);
	struct pool pool;
	uint64_t reclaimed; /* Owner: the main thread, while it is parked or has ended. */
	uint64_t answered;  /* the last request that a snapshot answered */
	bool done;	    /* done_fd was written */
	GROUP_END(own);

	/* Owner: the main thread. */
	GROUP_BEGIN_APART(control);
	uint64_t asked;			    /* number of the newest request for a snapshot */
	uint32_t stop;			    /* 1: drain and end */
	uint32_t park;			    /* 1: stay between two passes */
	const struct worker_params *params; /* the newest; NULL: those of the start */
	uint32_t refused; /* TX descriptors that the kernel refused, over all ports */
	uint32_t refused_of[CONF_PORTS_MAX];
	GROUP_END(control);

	/* Owner: the worker's thread; readers elsewhere. */
	GROUP_BEGIN_APART(published);
	struct seqlock seqlock;
	uint32_t parked;		/* 1: it stays there */
	uint32_t asleep;		/* the published snapshot still holds: the worker sleeps */
	uint64_t published_answer;	/* `answered` of the snapshot below */
	struct worker_counts published; /* under seqlock */
	GROUP_END(published);

	/* Owner: the worker's thread. Cold, or large. */
	GROUP_BEGIN_APART(cold);
	struct umem *umem;   /* borrowed from the daemon */
	struct inlet *inlet; /* what other workers hand over. Owned. */
	struct worker_counts scratch;
	struct pollfd pollfd[CONF_PORTS_MAX + 1];
	struct tx_job *tx_job;	/* txpush only. Owned. */
	struct waiting waiting; /* of wait = adaptive */
	uint64_t polls;		/* calls of poll() */
	uint64_t done_ns;	/* since when only completions are missing; 0: frames are */
	uint64_t done_pending;	/* ... and how many were, then */
	unsigned retries;	/* seconds to wait for them */
	bool gave_up;		/* they did not come. Read by the daemon after the end. */
	uint64_t unbalanced;  /* frames that were in no ring or in two when its ports were closed */
	uint32_t first_frame; /* of its own, in the umem */
	unsigned number;      /* the queue number it serves */
	unsigned cpu;	      /* it is pinned to */
	int tid;	      /* the kernel's number of its thread; 0: not running yet */
	int wake_fd;	      /* eventfd; written to end a sleep. Owned. */
	int done_fd; /* eventfd of the daemon; written once a finite job is done or given up, and for a probe that came back */
	/* Of sockets that ports had before their devices went. Owner: the main thread, while it is parked. */
	struct queue_counts past[CONF_PORTS_MAX];
	GROUP_END(cold);

	/* Owner: the main thread. */
	GROUP_BEGIN_APART(thread);
	pthread_t thread;
	void (*run)(struct worker *worker); /* its mode's */
	uint64_t round;			    /* the request that worker_came_round() waits for */
	bool running;
	GROUP_END(thread);

	/* Owner: the worker's thread; the largest part of what it touches. */
	GROUP_BEGIN_APART(rings);
	struct queue queue[CONF_PORTS_MAX];
	GROUP_END(rings);
};

ASSERT_GROUP(worker, setup, 2);
ASSERT_GROUP(worker, own, 1);
ASSERT_GROUP(worker, control, 2);
ASSERT_GROUP(worker, thread, 1);

/* What may change while a worker runs. Never edited once it was given to one. */
struct worker_params {
	unsigned batch; /* packets a port and pass, 1 to the ring size */
	enum conf_wait wait;
	bool busy_poll; /* its sockets are set to it */
};

struct worker_opts {
	unsigned number; /* the queue number it serves */
	unsigned cpu;
	unsigned batch; /* 1 to the ring size */
	enum conf_wait wait;
	bool busy_poll; /* its sockets are set to it */
	bool finite;
	bool frags;	       /* its sockets are bound so: packets of several descriptors */
	unsigned retries;      /* of a finite job: seconds to wait for completions */
	struct tx_job *tx_job; /* of a mode that generates; the worker's from then on. Else NULL. */
	uint32_t first_frame;  /* of the umem */
	uint32_t frames;       /* 0: all from there on */
	int done_fd;
};

/*
 * Makes a worker over a umem that it borrows, with every frame of its slice in its pool. Main thread.
 * Returns 0 with *result to be given to worker_free(), or -errno without a message; opts->tx_job is
 * then still the caller's.
 */
int worker_new(struct worker **result, const struct worker_opts *opts, struct umem *umem);

/* Frees a worker whose thread has ended or was never started; NULL is fine. */
void worker_free(struct worker *worker);

/*
 * Parks a running thread between two passes, with nothing in hand: until worker_resume() all of the worker
 * is the main thread's, which calls this. Frames wait on the rings meanwhile, so it had better be short. A
 * worker without a thread is parked already. Returns 0, or -ETIMEDOUT, without a message, if it has not
 * come to that by the deadline (ns of the monotonic clock): then it goes on as if not asked.
 */
int worker_park(struct worker *worker, uint64_t deadline_ns);

/* As worker_park(), however long it takes: for what cannot be left half done. */
static inline void worker_wait_parked(struct worker *worker)
{
	(void)worker_park(worker, UINT64_MAX);
}

/* Lets it go on. */
void worker_resume(struct worker *worker);

/*
 * Gives the worker a mapped socket for a port, the next one or one that was unplugged (CONF_PORTS_MAX in
 * all), and stocks its fill ring; NULL: the worker has no queue of that port, or not yet. Of a socket whose device has
 * no RX queue of its number, `receives` is false: it gets no frame for one.
 * The worker then owns the user side of the rings; the socket stays the daemon's. Main thread, the worker
 * being parked. Returns the queue, for the mode's own settings.
 */
struct queue *worker_plug(struct worker *worker, unsigned port, const struct xsk *xsk,
			  bool receives);

/* Where there is to be a queue of the port, whose device is not there yet. */
void worker_plug_absent(struct worker *worker, unsigned port);

/*
 * Takes a port's queue from the worker, with its counts final in gone->final, what was still on RX having
 * been dropped (stopping). Its frames stay where they are until the socket is closed; then
 * worker_reclaim() takes them back, and says how many they were. Main thread, the worker being parked for
 * both.
 */
void worker_unplug(struct worker *worker, unsigned port, struct queue *gone);
uint32_t worker_reclaim(struct worker *worker, unsigned port);

/*
 * As worker_unplug(), of a port that stays while its device is gone: it keeps its number, its counts and its
 * part in a hand-over. What is to leave there is dropped (link_down), and so is what was on its TX ring and
 * not completed. worker_reclaim() follows once the socket is closed, and worker_plug() when there is another
 * one. Main thread, the worker being parked.
 */
void worker_lose(struct worker *worker, unsigned port);

/*
 * Gives the ports other numbers: port i from now on is the one that was before[i], or, where that is negative, a
 * new one without a queue. `ports` of them in all, at least one. A port that is in no entry has been unplugged
 * and its frames reclaimed. Looks at every frame of the worker, 1 ns each. Main thread, the worker being parked,
 * and no part in a hand-over.
 */
void worker_renumber(struct worker *worker, unsigned ports, const int *before);

/*
 * Makes the sender's queue of this port, on which nothing was sent yet, one that hands over to the receiver,
 * who has the port under the same number and a TX queue of it. Rings of `size` entries. They are the
 * receiver's, which must not be freed before the sender has closed the port. Main thread, before either's
 * worker_start(). Returns 0 or -ENOMEM, without a message.
 */
int worker_connect(struct worker *sender, unsigned port, struct worker *receiver, uint32_t size);

/* What worker_plug() could not know before the bind. Main thread, the worker being parked. */
static inline void worker_bound(struct queue *queue, const struct xsk *xsk)
{
	queue->zero_copy = xsk->zero_copy;
	if (xsk->zero_copy && queue->stock) /* its driver stocks a ring of its own besides */
		queue->stock = ring_size(&queue->fill);
	queue->flag_wakes = xsk->zero_copy && xsk->need_wakeup;
}

/*
 * Starts the thread, pinned to its CPU, in `run`: a mode's, which returns when worker_stop() was called
 * and the frames are drained. receives: whether the mode does. Main thread. Returns 0 or -errno:
 * -EINVAL for a CPU that is none of ours, -EAGAIN for too many threads. No message.
 */
int worker_start(struct worker *worker, void (*run)(struct worker *worker), bool receives);

/* The kernel's number of a started worker's thread, once that runs. Main thread. */
int worker_tid(const struct worker *worker);

/* Tells the worker how many TX descriptors of a port the kernel has refused so far (XDP_STATISTICS), for
 * it to find out which of them will never come back. Main thread. */
void worker_refused(struct worker *worker, unsigned port, uint64_t refused);

/*
 * Lets the worker go over to other parameters, which it borrows, after its present pass. worker_await()
 * waits until it has: what was set before may be freed then. Main thread. worker_await() returns 0, or
 * -EAGAIN if it has not by the deadline (ns of the monotonic clock).
 */
void worker_set_params(struct worker *worker, const struct worker_params *params);
int worker_await(const struct worker *worker, uint64_t deadline_ns);

/* Has it attend to what it was given, after its present pass, also if it sleeps. Main thread. */
void worker_rouse(struct worker *worker);

/* Pins the thread to another CPU. Main thread. Returns 0 or -errno: -EINVAL for one that is none of ours. */
int worker_move(struct worker *worker, unsigned cpu);

/* True once a finite job was sent and completed, or given up. Any thread. */
static inline bool worker_is_done(const struct worker *worker)
{
	return load_relaxed(&worker->done);
}

/* Tells the thread to drain and end, without waiting for it. Main thread. */
void worker_stop(struct worker *worker);

/* Waits until the thread has ended: WORKER_DRAIN_MS and a pass after worker_stop() at most. Main
 * thread. A worker that was never started is fine. */
void worker_join(struct worker *worker);

/* The most time a worker takes to drain, ms. What has not been completed by then is reported, not
 * waited for; with detaching and closing it stays within the 2 s that a stop may take. */
#define WORKER_DRAIN_MS 1000

/*
 * Asks the worker for a snapshot of now. Main thread. worker_read() gives it and returns 0. A worker
 * that has not answered by the deadline (ns of the monotonic clock) gives the newest there is, one
 * consistent set all the same: -EAGAIN. One that was caught in the middle of writing until then gives
 * nothing of use: -EBUSY.
 */
void worker_ask(struct worker *worker);
int worker_read(struct worker *worker, struct worker_counts *counts, uint64_t deadline_ns);

/*
 * True if the worker has completed a pass since the last call that returned true, and then asks it for
 * another one; a sleeping one does that within WORKER_SLEEP_MS. True also at the first call, and of one that
 * has no thread. Main thread.
 */
bool worker_came_round(struct worker *worker);

/* How long to wait for the answers of all workers together, ms. A pass takes about 1 ms at most, but a
 * poller that shares its CPU with other spinning threads may be off it for tens. */
#define WORKER_ANSWER_MS 100

/*
 * Takes back every frame that the ledger says the port has, lost ones too, and freezes its counts,
 * with nothing on its rings any more. Main thread,
 * after the thread has ended and the port's program is detached, before its socket is closed; the
 * frames must not be used before it is closed.
 */
void worker_close_port(struct worker *worker, unsigned port);

/* Walks the ledger of a worker whose ports are all closed: how many frames are not exactly once in
 * the pool, or were missing (doubled) on the rings before, which closing puts right. 0 is right. All of
 * them if there is no memory for the walk. Main thread. */
uint64_t worker_audit(const struct worker *worker);

/* The counts of a worker whose thread has ended, taken now. Main thread. */
void worker_count(const struct worker *worker, struct worker_counts *counts);
