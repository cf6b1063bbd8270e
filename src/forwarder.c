/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "forwarder.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "advice.h"
#include "base/log.h"
#include "base/signals.h"
#include "xdp/opener.h"

int forwarder_survey(struct forwarder *forwarder, const struct conf_forward *conf)
{
	int err;

	*forwarder = (struct forwarder){ .conf = conf, .mode = mode_of(conf->mode) };
	err = survey_host(&forwarder->survey, conf, forwarder->mode);
	if (err)
		return err;
	forwarder->ports = forwarder->survey.ports;
	for (unsigned i = 0; i < forwarder->ports; i++) {
		forwarder->port[i].conf = conf->port[i];
		forwarder->port[i].netdev = forwarder->survey.netdev[i];
	}
	return 0;
}

/* --- opening --- */

/* The most frames that one UMEM is asked to have: their numbers are 32 bits, and so are its sizes in
 * structs of the kernel's that count chunks. */
#define UMEM_FRAMES_MAX (1U << 28)

static uint32_t frames_of_worker(const struct forwarder *forwarder)
{
	return forwarder->conf->frames_per_queue * forwarder->ports;
}

static struct umem *umem_of(const struct forwarder *forwarder, unsigned worker)
{
	return &forwarder->umem[forwarder->conf->shared_umem ? 0 : worker];
}

/* Asked between any two steps that take time or change something: a signal to end is no reason to
 * first open everything. */
static int go_on(void)
{
	return signals_end_asked() ? -ECANCELED : 0;
}

static struct umem_opts umem_opts_of(const struct forwarder *forwarder)
{
	const struct conf_forward *conf = forwarder->conf;

	return (struct umem_opts){
		.frames = frames_of_worker(forwarder) *
			  (conf->shared_umem ? forwarder->survey.queues.count : 1),
		.frame_size = conf->frame_size,
		.unaligned = conf->unaligned,
		.ring_size = conf->ring_size,
		.fill_size = 2 * conf->ring_size,
		.numa_node = forwarder->port[0].netdev.numa_node,
		.huge_pages = conf->huge_pages,
		.shortage_said =
			forwarder->workers && forwarder->umem[forwarder->workers - 1].shortage_said,
	};
}

static int allocate(struct forwarder *forwarder)
{
	unsigned lanes = forwarder->survey.queues.count * forwarder->ports;

	assert(lanes); /* the survey refuses no queues and no ports */
	forwarder->umem = calloc(forwarder->survey.queues.count, sizeof(*forwarder->umem));
	forwarder->worker = calloc(forwarder->survey.queues.count, sizeof(*forwarder->worker));
	forwarder->lane = calloc(lanes, sizeof(*forwarder->lane));
	return forwarder->umem && forwarder->worker && forwarder->lane ? 0 : -ENOMEM;
}

static int attach_ports(struct forwarder *forwarder)
{
	static const enum prog_attach attach_of[] = {
		[CONF_ATTACH_AUTO] = PROG_ATTACH_AUTO,
		[CONF_ATTACH_NATIVE] = PROG_ATTACH_NATIVE,
		[CONF_ATTACH_SKB] = PROG_ATTACH_SKB,
	};

	for (unsigned i = 0; i < forwarder->ports; i++) {
		struct port *port = &forwarder->port[i];
		struct prog_opts opts = {
			.ifname = port->netdev.name,
			.ifindex = port->netdev.ifindex,
			.queues = port->netdev.rx_queues,
			.attach = attach_of[forwarder->conf->port[i]->attach],
			.replace = forwarder->conf->port[i]->replace,
		};
		int err = go_on();

		if (!err)
			err = opener_attach(&opts, &port->prog);
		if (err)
			return err;
		if (!forwarder->mode->promiscuous)
			continue;
		port->promiscuous_fd = opener_promiscuous(port->netdev.name, port->netdev.ifindex);
		if (port->promiscuous_fd < 0)
			return port->promiscuous_fd;
	}
	return 0;
}

/* txpush: what each port of the next worker sends, and when. Returns 0 or -ENOMEM. */
static int prepare_tx(struct forwarder *forwarder, struct tx_job **job)
{
	const struct conf_forward *conf = forwarder->conf;
	int err = tx_job_new(job, conf, forwarder->ports, frames_of_worker(forwarder));

	for (unsigned i = 0; !err && i < forwarder->ports; i++) {
		struct tx_port *port = &(*job)->port[i];

		if (!conf->tx.source_given)
			memcpy(port->opts.src, forwarder->port[i].netdev.mac, MAC_LEN);
		port->pacer = (struct pacer){
			.pps = conf->tx.pps,
			.queues = (uint64_t)forwarder->survey.queues.count * forwarder->ports,
			.phase = (uint64_t)forwarder->workers * forwarder->ports + i,
		};
		err = tx_job_build(*job, i);
	}
	return err;
}

/* Frames a queue that are looked at for a checksum left to a network card: over a veth no card will
 * finish it. Enough to see it even if most senders are not to blame. */
#define CHECKSUM_SAMPLES 64

static void sample_checksums(const struct forwarder *forwarder, struct worker *worker)
{
	for (unsigned i = 0; i < forwarder->ports; i++) {
		if (forwarder->mode->receives && forwarder->mode->sends &&
		    !strcmp(forwarder->port[i].netdev.kind, "veth"))
			worker->queue[i].samples = CHECKSUM_SAMPLES;
	}
}

/* txpush: each queue's share of the frames. */
static void share_count(const struct forwarder *forwarder, struct worker *worker)
{
	uint64_t count = forwarder->conf->tx.count;
	uint64_t shares = (uint64_t)forwarder->survey.queues.count * forwarder->ports;
	uint64_t share = (uint64_t)forwarder->workers * forwarder->ports;

	for (unsigned i = 0; count && i < forwarder->ports; i++, share++)
		worker->queue[i].tx_left = count / shares + (share < count % shares ? 1 : 0);
}

static int open_lanes(struct forwarder *forwarder, struct worker *worker)
{
	bool shared = forwarder->conf->shared_umem;

	for (unsigned i = 0; i < forwarder->ports; i++) {
		struct lane_opts opts = {
			.port = &forwarder->port[i],
			.worker = worker,
			.conf = forwarder->conf,
			.peers = shared ? forwarder->lane :
					  forwarder_lane(forwarder, forwarder->workers, 0),
			.peer_count = shared ? forwarder->workers * forwarder->ports + i : i,
		};
		int err = go_on();

		if (!err)
			err = lane_open(forwarder_lane(forwarder, forwarder->workers, i), &opts);
		if (err)
			return err;
	}
	return 0;
}

/* The next worker, over its memory. Returns 0, or -errno after a message. */
static int make_worker(struct forwarder *forwarder)
{
	const struct conf_forward *conf = forwarder->conf;
	unsigned index = forwarder->workers;
	struct worker_opts opts = {
		.number = forwarder->survey.queues.value[index],
		.cpu = forwarder->survey.cpus.value[index % forwarder->survey.cpus.count],
		.batch = conf->batch,
		.poll = conf->poll,
		.busy_poll = conf->busy_poll,
		.finite = conf->tx.count > 0,
		.frags = conf->frags,
		.retries = conf->tx.retries,
		.first_frame = conf->shared_umem ? index * frames_of_worker(forwarder) : 0,
		.frames = frames_of_worker(forwarder),
		.done_fd = forwarder->done_fd,
	};
	int err = forwarder->mode->receives ? 0 : prepare_tx(forwarder, &opts.tx_job);

	if (!err)
		err = worker_new(&forwarder->worker[index], &opts, umem_of(forwarder, index));
	if (!err)
		return 0;
	log_error("queue %u: no worker: " ERR_FORMAT, opts.number, ERR_ARGS(err));
	tx_job_free(opts.tx_job);
	return err;
}

static int open_worker(struct forwarder *forwarder)
{
	struct umem_opts umem_opts = umem_opts_of(forwarder);
	struct umem *umem = umem_of(forwarder, forwarder->workers);
	int err = 0;

	if (!umem->header)
		err = umem_open(umem, &umem_opts);
	if (!err)
		err = make_worker(forwarder);
	if (err)
		return err;
	err = open_lanes(forwarder, forwarder->worker[forwarder->workers]);
	if (!err)
		sample_checksums(forwarder, forwarder->worker[forwarder->workers]);
	if (!err)
		share_count(forwarder, forwarder->worker[forwarder->workers]);
	forwarder->workers++; /* also if a lane failed: closing must find the others */
	return err;
}

/* With -M the frames of all queues stand in one UMEM. */
static int check_frames(const struct forwarder *forwarder)
{
	uint64_t frames = (uint64_t)frames_of_worker(forwarder) * forwarder->survey.queues.count;

	if (!forwarder->conf->shared_umem || frames <= UMEM_FRAMES_MAX)
		return 0;
	log_error("-M: %llu frames are more than one UMEM takes (%u); lower --frames-per-queue, or "
		  "leave out -M",
		  (unsigned long long)frames, UMEM_FRAMES_MAX);
	return -E2BIG;
}

int forwarder_open(struct forwarder *forwarder)
{
	struct umem_opts umem_opts = umem_opts_of(forwarder);
	int err;

	forwarder->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = forwarder->done_fd < 0 ? -errno : allocate(forwarder);
	if (err) {
		log_error("no memory or files to start with: " ERR_FORMAT, ERR_SANDBOX_ARGS(err));
		return err;
	}
	err = check_frames(forwarder);
	if (!err)
		err = go_on();
	if (!err)
		err = opener_memlock(
			umem_locked_bytes(&umem_opts) *
			(forwarder->conf->shared_umem ? 1 : forwarder->survey.queues.count));
	if (!err)
		err = attach_ports(forwarder);
	while (!err && forwarder->workers < forwarder->survey.queues.count)
		err = open_worker(forwarder);
	if (!err)
		err = go_on();
	if (!err && forwarder->conf->realtime)
		err = opener_realtime(forwarder->conf->priority);
	return err;
}

/* --- starting --- */

static int start_workers(struct forwarder *forwarder)
{
	for (unsigned i = 0; i < forwarder->workers; i++) {
		int err = worker_start(forwarder->worker[i], forwarder->mode->run,
				       forwarder->mode->receives);

		if (!err)
			continue;
		log_error("queue %u: no thread on CPU %u: " ERR_FORMAT "%s",
			  forwarder->worker[i]->number, forwarder->worker[i]->cpu,
			  ERR_SANDBOX_ARGS(err),
			  err == -EAGAIN ? "; raise RLIMIT_NPROC (`ulimit -u`), RLIMIT_AS "
					   "(`ulimit -v`) or TasksMax=" :
					   "");
		return err;
	}
	return 0;
}

/* Frames come from here on. */
static int open_slots(struct forwarder *forwarder)
{
	for (unsigned i = 0; i < forwarder->workers; i++) {
		for (unsigned j = 0; forwarder->mode->receives && j < forwarder->ports; j++) {
			int err = prog_slot_set(&forwarder->port[j].prog,
						forwarder->worker[i]->number,
						forwarder_lane(forwarder, i, j)->xsk.fd);

			if (!err)
				continue;
			log_error("%s q%u: the socket is not taken into the XSKMAP: " ERR_FORMAT,
				  forwarder->port[j].netdev.name, forwarder->worker[i]->number,
				  ERR_SANDBOX_ARGS(err));
			return err;
		}
	}
	return 0;
}

/* --- running --- */

static void announce(struct forwarder *forwarder)
{
	for (unsigned i = 0; i < forwarder->workers; i++) {
		for (unsigned j = 0; j < forwarder->ports; j++) {
			const struct lane *lane = forwarder_lane(forwarder, i, j);

			log_info("%s q%u: %s, %s, %s, cpu %u, worker %u",
				 forwarder->port[j].netdev.name, forwarder->worker[i]->number,
				 forwarder->port[j].prog.native ? "native" : "skb",
				 lane->xsk.zero_copy ? "zero-copy" : "copy",
				 lane->xsk.need_wakeup ? "need_wakeup" : "no need_wakeup",
				 forwarder->worker[i]->cpu, i);
		}
	}
}

/* What an operator should know of how it runs, before the lines a queue. */
static void advise(const struct forwarder *forwarder)
{
	const struct conf_tx *tx = &forwarder->conf->tx;

	if (tx->size_asked)
		log_warning("frames are sent with %u bytes, FCS included, for no less holds their "
			    "headers",
			    tx->size_min);
	if (forwarder->mode->receives && forwarder->mode->sends)
		advice_at_start(forwarder->port, forwarder->ports);
}

int forwarder_start(struct forwarder *forwarder)
{
	int err = go_on();

	if (!err)
		err = start_workers(forwarder);
	if (forwarder->conf->realtime) /* that was for the workers */
		opener_not_realtime();
	if (!err)
		err = open_slots(forwarder);
	if (err)
		return err;
	advise(forwarder);
	announce(forwarder);
	return 0;
}

/* --- closing --- */

void forwarder_stop(struct forwarder *forwarder)
{
	for (unsigned i = 0; i < forwarder->workers; i++) {
		for (unsigned j = 0; j < forwarder->ports; j++)
			prog_slot_clear(&forwarder->port[j].prog,
					forwarder->survey.queues.value[i]);
	}
	for (unsigned i = 0; i < forwarder->workers; i++)
		worker_stop(forwarder->worker[i]);
	for (unsigned i = 0; i < forwarder->workers; i++)
		worker_join(forwarder->worker[i]);
	for (unsigned i = 0; i < forwarder->ports; i++)
		prog_detach(&forwarder->port[i].prog);
}

/* What the kernel answered to wake-ups for sending, if it was more than the usual "again". */
static void tell_kicks(const char *ifname, unsigned number, const uint64_t *kicks)
{
	char text[160] = "";

	for (int i = KICK_BUSY; i < KICK_RESULTS; i++) {
		size_t len = strlen(text);

		if (kicks[i])
			snprintf(text + len, sizeof(text) - len, "%s%s %llu%s", len ? ", " : "",
				 kick_name((enum kick_result)i), (unsigned long long)kicks[i],
				 i == KICK_BUSY ? " (the device dropped a frame each)" : "");
	}
	if (text[0])
		log_info("%s q%u: of %llu calls to send, the kernel answered: %s", ifname, number,
			 (unsigned long long)kicks[KICK_CALLS], text);
}

/* Descriptors that the kernel did not take for frames. We made them of what it gave us. */
static void tell_refused(const char *ifname, unsigned number, uint64_t refused, uint32_t lost)
{
	if (refused)
		log_warning(
			"%s q%u: the kernel refused %llu TX descriptors (tx_invalid_descs), and "
			"%u of their frames did not come back before the end; please report this",
			ifname, number, (unsigned long long)refused, lost);
}

int forwarder_close_lanes(struct forwarder *forwarder)
{
	uint64_t pending = 0, wrong = 0;
	int err = 0;

	for (unsigned i = 0; i < forwarder->workers; i++) {
		struct worker *worker = forwarder->worker[i];

		for (unsigned j = 0; j < worker->queues; j++) {
			struct lane *lane = forwarder_lane(forwarder, i, j);

			(void)xsk_stats(&lane->xsk, &lane->stats);
			worker_close_port(worker, j);
			pending += worker->queue[j].final.tx_pending;
			tell_refused(forwarder->port[j].netdev.name, worker->number,
				     lane->stats.tx_invalid_descs, worker->queue[j].tx_lost);
			tell_kicks(forwarder->port[j].netdev.name, worker->number,
				   worker->queue[j].final.kicks);
			xsk_close(&lane->xsk);
		}
		wrong += worker_audit(worker);
		if (worker->gave_up && pending)
			err = -ETIMEDOUT;
	}
	if (pending)
		log_warning("%llu frames not completed: the device is down, gone, or holds them",
			    (unsigned long long)pending);
	if (!wrong)
		return err;
	log_error("%llu frames are not where the owner ledger has them; please report this",
		  (unsigned long long)wrong);
	return -EUCLEAN;
}

void forwarder_close(struct forwarder *forwarder)
{
	for (unsigned i = 0; i < forwarder->workers; i++)
		worker_free(forwarder->worker[i]);
	for (unsigned i = 0; forwarder->umem && i < forwarder->survey.queues.count; i++)
		umem_close(&forwarder->umem[i]);
	for (unsigned i = 0; i < forwarder->ports; i++) {
		prog_close(&forwarder->port[i].prog);
		if (forwarder->port[i].promiscuous_fd > 0)
			close(forwarder->port[i].promiscuous_fd);
	}
	free(forwarder->umem);
	free(forwarder->worker);
	free(forwarder->lane);
	if (forwarder->done_fd > 0)
		close(forwarder->done_fd);
}
