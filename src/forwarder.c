/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "forwarder.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "advice.h"
#include "base/log.h"
#include "base/signals.h"
#include "bridging.h"
#include "forwarder_steps.h"
#include "steering.h"
#include "xdp/opener.h"

struct forwarder *forwarder_new(struct plan_forward *plan, int done_fd)
{
	struct forwarder *forwarder = calloc(1, sizeof(*forwarder));

	if (!forwarder) {
		log_error("forward %s: out of memory", plan->conf->name);
		return NULL;
	}
	*forwarder = (struct forwarder){
		.plan = plan,
		.conf = plan->conf,
		.mode = mode_of(plan->conf->mode),
		.ports = plan->ports,
		.done_fd = done_fd,
	};
	for (unsigned i = 0; i < forwarder->ports; i++) {
		forwarder->port[i].conf = plan->port[i].conf;
		forwarder->port[i].netdev = plan->port[i].device;
	}
	return forwarder;
}

/* --- opening --- */

/* That the next worker will have. */
static const struct plan_worker *next_worker(const struct forwarder *forwarder)
{
	return &forwarder->plan->worker[forwarder->workers];
}

/* Asked between any two steps that take time or change something: a signal to end is no reason to
 * first open everything. */
static int go_on(void)
{
	return signals_end_asked() ? -ECANCELED : 0;
}

static struct umem_opts umem_opts_of(const struct forwarder *forwarder,
				     const struct plan_umem *umem)
{
	const struct conf_forward *conf = forwarder->conf;

	return (struct umem_opts){
		.frames = umem->frames,
		.frame_size = umem->frame_size,
		.unaligned = conf->unaligned,
		.ring_size = conf->ring_size,
		.fill_size = 2 * conf->ring_size,
		.numa_node = umem->numa_node,
		.huge_pages = conf->huge_pages,
		.shortage_said =
			forwarder->workers && forwarder->umem[forwarder->workers - 1].shortage_said,
	};
}

static int allocate(struct forwarder *forwarder)
{
	const struct plan_forward *plan = forwarder->plan;

	assert(plan->workers); /* no plan without errors has none */
	forwarder->umem = calloc(plan->workers, sizeof(*forwarder->umem));
	forwarder->worker = calloc(plan->workers, sizeof(*forwarder->worker));
	forwarder->lane = calloc((size_t)plan->workers * CONF_PORTS_MAX, sizeof(*forwarder->lane));
	return forwarder->umem && forwarder->worker && forwarder->lane ? 0 : -ENOMEM;
}

bool forwarder_wants_promiscuous(const struct forwarder *forwarder, const struct port *port)
{
	switch (port->conf->promiscuous) {
	case CONF_PROMISCUOUS_ON:
		return true;
	case CONF_PROMISCUOUS_OFF:
		return false;
	default:
		return forwarder->mode->promiscuous;
	}
}

/* A port that was promiscuous once keeps its socket, with which it can be so again without privilege. */
int forwarder_set_promiscuous(struct port *port, bool on)
{
	int err = 0;

	if (port->promiscuous == on)
		return 0;
	if (port->promiscuous_fd > 0) {
		err = netdev_promiscuous(port->promiscuous_fd, port->netdev.ifindex, on);
	} else {
		port->promiscuous_fd = opener_promiscuous(port->netdev.name, port->netdev.ifindex);
		err = port->promiscuous_fd < 0 ? port->promiscuous_fd : 0;
	}
	if (!err)
		port->promiscuous = on;
	return err;
}

/* Slots that a port's map must have: those of the queues that are served. */
static uint32_t slots_of(const struct forwarder *forwarder, const struct port *port)
{
	const struct plan_forward *plan = forwarder->plan;
	uint32_t slots = 1;

	for (unsigned i = 0; i < plan->workers; i++) {
		if (plan->worker[i].lane[port - forwarder->port].rx &&
		    plan->worker[i].queue >= slots)
			slots = plan->worker[i].queue + 1;
	}
	return slots;
}

int forwarder_attach(const struct forwarder *forwarder, struct port *port)
{
	static const enum prog_attach attach_of[] = {
		[CONF_ATTACH_AUTO] = PROG_ATTACH_AUTO,
		[CONF_ATTACH_NATIVE] = PROG_ATTACH_NATIVE,
		[CONF_ATTACH_SKB] = PROG_ATTACH_SKB,
	};
	struct prog_opts opts = {
		.ifname = port->netdev.name,
		.ifindex = port->netdev.ifindex,
		.queues = port->netdev.rx_queues,
		.attach = attach_of[port->conf->attach],
		.replace = port->conf->replace,
		.dispatcher = port->conf->attach_method == CONF_ATTACH_METHOD_DISPATCHER,
	};
	int err = go_on();

	if (port->conf->attach_method == CONF_ATTACH_METHOD_EXTERNAL) {
		opts.xskmap = port->conf->xskmap;
		opts.queues = slots_of(forwarder, port);
	}
	if (!err && forwarder->mode->receives && forwarder->mode->sends &&
	    !port->conf->keep_vlan_offload)
		err = opener_vlan_offload(port->netdev.name, port->netdev.ifindex);
	if (!err)
		err = opener_attach(&opts, &port->prog);
	if (!err)
		err = steering_open(port, forwarder->conf->mode);
	if (!err)
		(void)netdev_query_queues(port->netdev.name, &port->attached);
	if (!err)
		err = forwarder_set_promiscuous(port, forwarder_wants_promiscuous(forwarder, port));
	return err;
}

static int attach_ports(struct forwarder *forwarder)
{
	int err = 0;

	for (unsigned i = 0; !err && i < forwarder->ports; i++) {
		if (forwarder->port[i].netdev.present) /* else it is awaited */
			err = forwarder_attach(forwarder, &forwarder->port[i]);
	}
	return err;
}

/* txpush: what each port of the next worker sends, and when. Returns 0 or -ENOMEM. */
static int prepare_tx(struct forwarder *forwarder, struct tx_job **job)
{
	const struct conf_forward *conf = forwarder->conf;
	int err = tx_job_new(job, conf, forwarder->ports, next_worker(forwarder)->frames);

	for (unsigned i = 0; !err && i < forwarder->ports; i++) {
		struct tx_port *port = &(*job)->port[i];

		if (!conf->tx.source_given)
			memcpy(port->opts.src, forwarder->port[i].netdev.mac, MAC_LEN);
		port->pacer = (struct pacer){
			.pps = conf->tx.pps,
			.queues = (uint64_t)forwarder->plan->workers * forwarder->ports,
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
	uint64_t shares = (uint64_t)forwarder->plan->workers * forwarder->ports;
	uint64_t share = (uint64_t)forwarder->workers * forwarder->ports;

	for (unsigned i = 0; count && i < forwarder->ports; i++, share++)
		worker->queue[i].tx_left = count / shares + (share < count % shares ? 1 : 0);
}

int forwarder_open_lane(struct forwarder *forwarder, const struct plan_forward *plan,
			unsigned worker, unsigned port)
{
	bool shared = forwarder->conf->shared_umem;
	struct lane_opts opts = {
		.port = &forwarder->port[port],
		.index = port,
		.plan = &plan->worker[worker].lane[port],
		.worker = forwarder->worker[worker],
		.conf = forwarder->conf,
		.peers = shared ? forwarder->lane : forwarder_lane(forwarder, worker, 0),
		.peer_count = (shared ? plan->workers : 1) * CONF_PORTS_MAX,
	};
	int err = go_on();

	return err ? err : lane_open(forwarder_lane(forwarder, worker, port), &opts);
}

static int open_lanes(struct forwarder *forwarder)
{
	int err = 0;

	for (unsigned i = 0; !err && i < forwarder->ports; i++)
		err = forwarder_open_lane(forwarder, forwarder->plan, forwarder->workers, i);
	return err;
}

/* The next worker, over its memory. Returns 0, or -errno after a message. */
static int make_worker(struct forwarder *forwarder)
{
	const struct conf_forward *conf = forwarder->conf;
	const struct plan_worker *plan = next_worker(forwarder);
	struct worker_opts opts = {
		.number = plan->queue,
		.cpu = plan->cpu,
		.batch = conf->batch,
		.wait = conf->wait,
		.busy_poll = conf->busy_poll,
		.finite = conf->tx.count > 0,
		.frags = conf->frags,
		.retries = conf->tx.retries,
		.first_frame = plan->first_frame,
		.frames = plan->frames,
		.done_fd = forwarder->done_fd,
	};
	int err = forwarder->mode->receives ? 0 : prepare_tx(forwarder, &opts.tx_job);

	if (!err)
		err = worker_new(&forwarder->worker[forwarder->workers], &opts,
				 &forwarder->umem[plan->umem]);
	if (!err)
		bridging_give(forwarder, forwarder->worker[forwarder->workers], forwarder->workers);
	if (!err)
		return 0;
	log_error("forward %s: queue %u: no worker: " ERR_FORMAT, forwarder->conf->name,
		  opts.number, ERR_ARGS(err));
	tx_job_free(opts.tx_job);
	return err;
}

static int open_worker(struct forwarder *forwarder)
{
	unsigned index = next_worker(forwarder)->umem;
	struct umem *umem = &forwarder->umem[index];
	struct umem_opts umem_opts = umem_opts_of(forwarder, &forwarder->plan->umem[index]);
	int err = 0;

	if (!umem->header)
		err = umem_open(umem, &umem_opts);
	if (!err)
		err = make_worker(forwarder);
	if (err)
		return err;
	err = open_lanes(forwarder);
	if (!err)
		sample_checksums(forwarder, forwarder->worker[forwarder->workers]);
	if (!err)
		share_count(forwarder, forwarder->worker[forwarder->workers]);
	forwarder->workers++; /* also if a lane failed: closing must find the others */
	return err;
}

/* A worker without a TX queue of a port gives what goes there to one that has it. */
static int connect_workers(struct forwarder *forwarder)
{
	for (unsigned i = 0; i < forwarder->workers; i++) {
		const struct plan_lane *lanes = forwarder->plan->worker[i].lane;

		for (unsigned j = 0; j < forwarder->ports; j++) {
			int err;

			if (lanes[j].hand_to == PLAN_NOBODY)
				continue;
			err = worker_connect(forwarder->worker[i], j,
					     forwarder->worker[lanes[j].hand_to],
					     forwarder->conf->ring_size);
			if (!err)
				continue;
			log_error("%s: no hand-over rings: " ERR_FORMAT,
				  forwarder->port[j].netdev.name, ERR_ARGS(err));
			return err;
		}
	}
	return 0;
}

int forwarder_open(struct forwarder *forwarder)
{
	int err;

	err = allocate(forwarder);
	if (err) {
		log_error("forward %s: no memory to start with: " ERR_FORMAT, forwarder->conf->name,
			  ERR_ARGS(err));
		return err;
	}
	err = go_on();
	if (!err)
		err = bridging_open(forwarder);
	if (!err)
		err = opener_memlock(forwarder->plan->locked_bytes);
	if (!err)
		err = attach_ports(forwarder);
	while (!err && forwarder->workers < forwarder->plan->workers)
		err = open_worker(forwarder);
	if (!err)
		err = connect_workers(forwarder);
	return err ? err : go_on();
}

/* --- starting --- */

static int start_workers(struct forwarder *forwarder)
{
	void (*run)(struct worker * worker) = forwarder->mode->run;

	if (forwarder->bridge) /* a patch with a third port too */
		run = mode_of(CONF_MODE_BRIDGE)->run;
	for (unsigned i = 0; i < forwarder->workers; i++) {
		int err = worker_start(forwarder->worker[i], run, forwarder->mode->receives);

		if (!err)
			continue;
		log_error("forward %s: queue %u: no thread on CPU %u: " ERR_FORMAT "%s",
			  forwarder->conf->name, forwarder->worker[i]->number,
			  forwarder->worker[i]->cpu, ERR_SANDBOX_ARGS(err),
			  err == -EAGAIN ? "; raise RLIMIT_NPROC (`ulimit -u`), RLIMIT_AS "
					   "(`ulimit -v`) or TasksMax=" :
					   "");
		return err;
	}
	for (unsigned i = 0; forwarder->conf->realtime && i < forwarder->workers; i++) {
		int err = opener_realtime(worker_tid(forwarder->worker[i]),
					  forwarder->conf->priority);

		if (err)
			return err;
	}
	return 0;
}

int forwarder_open_slots(const struct forwarder *forwarder, unsigned port)
{
	for (unsigned i = 0; i < forwarder->workers; i++) {
		int err;

		int fd = forwarder_lane(forwarder, i, port)->xsk.fd;

		if (!forwarder->plan->worker[i].lane[port].rx || fd <= 0)
			continue;
		err = prog_slot_set(&forwarder->port[port].prog, forwarder->worker[i]->number, fd);
		if (!err)
			continue;
		log_error("%s q%u: the socket is not taken into the XSKMAP: " ERR_FORMAT "%s",
			  forwarder->port[port].netdev.name, forwarder->worker[i]->number,
			  ERR_SANDBOX_ARGS(err),
			  err == -EEXIST ? "; another program's socket is in this slot of your "
					   "xskmap: end that, or give each its own map" :
					   "");
		return err;
	}
	return 0;
}

/* Frames come from here on. */
static int open_slots(struct forwarder *forwarder)
{
	int err = 0;

	for (unsigned i = 0; !err && i < forwarder->ports; i++) {
		err = forwarder_open_slots(forwarder, i);
		forwarder->port[i].served = !err && forwarder->port[i].netdev.present;
	}
	return err;
}

/* --- running --- */

static void announce_hand_over(const struct forwarder *forwarder, unsigned worker, unsigned port)
{
	int hand_to = forwarder->plan->worker[worker].lane[port].hand_to;

	if (hand_to != PLAN_NOBODY)
		log_info("%s q%u: there is no such TX queue; worker %u hands over to worker %d, "
			 "which sends on q%u",
			 forwarder->port[port].netdev.name, forwarder->worker[worker]->number,
			 worker, hand_to, forwarder->worker[hand_to]->number);
}

void forwarder_announce(const struct forwarder *forwarder, unsigned worker, unsigned port)
{
	const struct lane *lane = forwarder_lane(forwarder, worker, port);

	announce_hand_over(forwarder, worker, port);
	if (lane->xsk.fd <= 0)
		return;
	log_info("%s q%u: %s, %s, %s, cpu %u, worker %u", forwarder->port[port].netdev.name,
		 forwarder->worker[worker]->number,
		 forwarder->port[port].prog.native ? "native" : "skb",
		 lane->xsk.zero_copy ? "zero-copy" : "copy",
		 lane->xsk.need_wakeup ? "need_wakeup" : "no need_wakeup",
		 forwarder->worker[worker]->cpu, worker);
}

static void announce(const struct forwarder *forwarder)
{
	for (unsigned i = 0; i < forwarder->workers; i++) {
		for (unsigned j = 0; j < forwarder->ports; j++)
			forwarder_announce(forwarder, i, j);
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
	if (!err)
		err = open_slots(forwarder);
	if (err)
		return err;
	advise(forwarder);
	announce(forwarder);
	return 0;
}

/* --- asked of a running one --- */

uint64_t forwarder_reclaimed(const struct forwarder *forwarder)
{
	uint64_t frames = 0;

	for (unsigned i = 0; i < forwarder->workers; i++)
		frames += forwarder->worker[i]->reclaimed;
	return frames;
}

bool forwarder_done(const struct forwarder *forwarder)
{
	for (unsigned i = 0; i < forwarder->workers; i++) {
		if (!worker_is_done(forwarder->worker[i]))
			return false;
	}
	return true;
}

void forwarder_restore(struct forwarder *forwarder)
{
	for (unsigned i = 0; i < forwarder->ports; i++)
		opener_port_restore(forwarder->port[i].netdev.ifindex);
}

/* --- closing --- */

static struct worker *highest_running(const struct forwarder *forwarder)
{
	struct worker *highest = NULL;

	for (unsigned i = 0; i < forwarder->workers; i++) {
		struct worker *worker = forwarder->worker[i];

		if (worker->running && (!highest || worker->number > highest->number))
			highest = worker;
	}
	return highest;
}

/*
 * Those that only hand over first: what they still have is then taken over by workers that run. Among those
 * that others hand to it goes from the highest queue number down, for who lacks a TX queue hands to a lower
 * one.
 */
static void stop_workers(struct forwarder *forwarder)
{
	struct worker *worker;

	for (unsigned i = 0; i < forwarder->workers; i++) {
		if (!forwarder->worker[i]->inlets)
			worker_stop(forwarder->worker[i]);
	}
	for (unsigned i = 0; i < forwarder->workers; i++) {
		if (!forwarder->worker[i]->inlets)
			worker_join(forwarder->worker[i]);
	}
	while ((worker = highest_running(forwarder))) {
		worker_stop(worker);
		worker_join(worker);
	}
}

void forwarder_stop(struct forwarder *forwarder)
{
	for (unsigned i = 0; i < forwarder->workers; i++) {
		for (unsigned j = 0; j < forwarder->ports; j++)
			prog_slot_clear(&forwarder->port[j].prog, forwarder->plan->worker[i].queue);
	}
	/* A poll of the driver that had looked up a socket before: its frames come while workers run. */
	if (forwarder->mode->receives)
		prog_settle();
	stop_workers(forwarder);
	for (unsigned i = 0; i < forwarder->ports; i++)
		forwarder_detach(&forwarder->port[i]);
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

void forwarder_tell_lane(const struct forwarder *forwarder, unsigned worker, unsigned port,
			 const struct queue *queue)
{
	const char *ifname = forwarder->port[port].netdev.name;
	unsigned number = forwarder->worker[worker]->number;

	tell_refused(ifname, number,
		     forwarder_lane(forwarder, worker, port)->stats.tx_invalid_descs,
		     queue->tx_lost);
	tell_kicks(ifname, number, queue->final.kicks);
}

int forwarder_close_lanes(struct forwarder *forwarder)
{
	uint64_t pending = 0, wrong = 0;
	int err = 0;

	for (unsigned i = 0; i < forwarder->workers; i++) {
		struct worker *worker = forwarder->worker[i];

		for (unsigned j = 0; j < worker->queues; j++) {
			struct lane *lane = forwarder_lane(forwarder, i, j);
			struct xsk_stats socket;

			(void)lane_read_stats(lane, &socket);
			worker_close_port(worker, j);
			pending += worker->queue[j].final.tx_pending;
			forwarder_tell_lane(forwarder, i, j, &worker->queue[j]);
			xsk_close(&lane->xsk);
		}
		wrong += worker_audit(worker);
		if (worker->gave_up && pending)
			err = -ETIMEDOUT;
	}
	if (pending)
		log_warning(
			"forward %s: %llu frames not completed: the device is down, gone, or holds "
			"them",
			forwarder->conf->name, (unsigned long long)pending);
	if (!wrong)
		return err;
	log_error("forward %s: %llu frames are not where the owner ledger has them; please report "
		  "this",
		  forwarder->conf->name, (unsigned long long)wrong);
	return -EUCLEAN;
}

void forwarder_detach(struct port *port)
{
	opener_detach(port->netdev.name, port->netdev.ifindex, &port->prog);
}

void forwarder_release_device(struct port *port)
{
	steering_close(port);
	forwarder_detach(port);
	prog_close(&port->prog);
	if (port->promiscuous_fd > 0)
		close(port->promiscuous_fd);
	port->promiscuous_fd = 0;
	port->promiscuous = port->served = false;
}

void forwarder_close_port(struct port *port)
{
	forwarder_release_device(port);
	*port = (struct port){ 0 };
}

void forwarder_free(struct forwarder *forwarder)
{
	if (!forwarder)
		return;
	for (unsigned i = 0; i < forwarder->workers; i++)
		worker_free(forwarder->worker[i]);
	for (unsigned i = 0; forwarder->umem && i < forwarder->plan->workers; i++)
		umem_close(&forwarder->umem[i]);
	for (unsigned i = 0; i < forwarder->ports; i++)
		forwarder_close_port(&forwarder->port[i]);
	bridge_free(forwarder->bridge);
	free(forwarder->umem);
	free(forwarder->worker);
	free(forwarder->lane);
	forwarder_free_params(forwarder->params);
	free(forwarder);
}
