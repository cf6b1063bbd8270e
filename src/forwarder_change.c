/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What of a forwarder is changed while it runs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "bridging.h"
#include "forwarder.h"
#include "forwarder_steps.h"
#include "plan/change.h"
#include "steering.h"
#include "xdp/opener.h"

void forwarder_free_params(struct params *params)
{
	while (params) {
		struct params *before = params->before;

		free(params);
		params = before;
	}
}

/* The kernel's side of it, for every socket. Returns 0, or -errno after a message. */
static int set_busy_poll(const struct forwarder *forwarder, bool on)
{
	for (unsigned i = 0; i < forwarder->workers; i++) {
		for (unsigned j = 0; j < forwarder->ports; j++) {
			const struct lane *lane = forwarder_lane(forwarder, i, j);
			const struct netdev *netdev = &forwarder->port[j].netdev;
			int err;

			if (lane->xsk.fd <= 0)
				continue;
			if (on)
				err = opener_busy_poll(lane->xsk.fd, netdev->name, netdev->ifindex,
						       forwarder->worker[i]->number,
						       forwarder->conf->batch);
			else
				err = xsk_no_busy_poll(&lane->xsk);
			if (err)
				return err;
		}
	}
	return 0;
}

/* How long a worker may take to come to the end of a pass: one that is off its CPU, tens of ms. What it
 * still uses is kept until then in any case. */
#define PARAMS_WAIT_NS NSEC_PER_SEC

static void hand_out_params(struct forwarder *forwarder, const struct worker_params *wanted)
{
	struct params *params = calloc(1, sizeof(*params));
	uint64_t deadline_ns = clock_now_ns() + PARAMS_WAIT_NS;
	bool taken = true;

	if (!params) {
		log_error(
			"forward %s: no memory for other parameters; it goes on with those it has",
			forwarder->conf->name);
		return;
	}
	*params = (struct params){ *wanted, forwarder->params };
	forwarder->params = params;
	for (unsigned i = 0; i < forwarder->workers; i++)
		worker_set_params(forwarder->worker[i], &params->worker);
	for (unsigned i = 0; i < forwarder->workers; i++)
		taken = !worker_await(forwarder->worker[i], deadline_ns) && taken;
	if (!taken)
		return;
	forwarder_free_params(params->before);
	params->before = NULL;
}

static void apply_params(struct forwarder *forwarder, const struct conf_forward *before)
{
	const struct conf_forward *conf = forwarder->conf;
	struct worker_params wanted = {
		.batch = conf->batch,
		.wait = conf->wait,
		.busy_poll = conf->busy_poll,
	};

	if (before->batch == conf->batch && before->wait == conf->wait &&
	    before->busy_poll == conf->busy_poll)
		return;
	if (before->busy_poll != conf->busy_poll && set_busy_poll(forwarder, conf->busy_poll))
		wanted.busy_poll = before->busy_poll;
	hand_out_params(forwarder, &wanted);
}

void forwarder_apply(struct forwarder *forwarder, struct plan_forward *plan)
{
	const struct plan_forward *before = forwarder->plan;

	forwarder->plan = plan;
	forwarder->conf = plan->conf;
	for (unsigned i = 0; i < forwarder->ports; i++) {
		struct port *port = &forwarder->port[i];

		port->conf = plan->port[i].conf;
		if (port->prog.xsks_fd <= 0)
			continue; /* it is still to come */
		(void)forwarder_set_promiscuous(port, forwarder_wants_promiscuous(forwarder, port));
		steering_apply(port, forwarder->conf->mode);
	}
	bridging_apply(forwarder, before->conf);
	apply_params(forwarder, before->conf);
	for (unsigned i = 0; i < forwarder->workers; i++) {
		int err = worker_move(forwarder->worker[i], plan->worker[i].cpu);

		if (err)
			log_error("forward %s: worker %u stays on CPU %u: " ERR_FORMAT,
				  forwarder->conf->name, i, forwarder->worker[i]->cpu,
				  ERR_ARGS(err));
	}
}

/* --- ports that come and go --- */

/* The forward's ports before and after: where each comes from, and which go. */
struct ports_change {
	struct plan_forward *plan;
	int before[CONF_PORTS_MAX];	/* by number after; PLAN_NOBODY: it comes */
	bool stays[CONF_PORTS_MAX];	/* by number before */
	uint32_t taken[CONF_PORTS_MAX]; /* frames that came back from it, likewise */
	bool going;			/* some do not stay */
};

static struct ports_change ports_change_of(const struct forwarder *forwarder,
					   struct plan_forward *plan)
{
	struct ports_change change = { .plan = plan };

	for (unsigned i = 0; i < plan->ports; i++) {
		change.before[i] = plan_port_before(forwarder->plan, plan, i);
		if (change.before[i] != PLAN_NOBODY)
			change.stays[change.before[i]] = true;
	}
	for (unsigned i = 0; i < forwarder->ports; i++)
		change.going = change.going || !change.stays[i];
	return change;
}

static void resume_all(const struct forwarder *forwarder, unsigned workers)
{
	for (unsigned i = 0; i < workers; i++)
		worker_resume(forwarder->worker[i]);
}

/* All of them, or none. Returns 0, or -errno after a message. */
static int park_all(const struct forwarder *forwarder, uint64_t deadline_ns)
{
	for (unsigned i = 0; i < forwarder->workers; i++) {
		int err = worker_park(forwarder->worker[i], deadline_ns);

		if (!err)
			continue;
		log_error(
			"forward %s: worker %u on CPU %u does not come to the end of a pass: " ERR_FORMAT
			"; see what else runs there (`top -H`)",
			forwarder->conf->name, i, forwarder->worker[i]->cpu, ERR_ARGS(err));
		resume_all(forwarder, i);
		return err;
	}
	return 0;
}

/* After slots were cleared: frames that were under way to their sockets are with the workers, who have had a
 * pass to take them. */
static void take_what_came(const struct forwarder *forwarder)
{
	uint64_t deadline_ns = clock_now_ns() + WORKER_ANSWER_MS * NSEC_PER_MSEC;

	prog_settle();
	for (unsigned i = 0; i < forwarder->workers; i++)
		worker_ask(forwarder->worker[i]);
	for (unsigned i = 0; i < forwarder->workers; i++)
		(void)worker_await(forwarder->worker[i],
				   deadline_ns); /* else `stopping` counts them */
}

/* No frame comes to these ports any more, and those that came are with their workers, who have had a pass
 * to take them. */
static void quieten(const struct forwarder *forwarder, const struct ports_change *change)
{
	for (unsigned i = 0; i < forwarder->ports; i++) {
		for (unsigned j = 0; !change->stays[i] && j < forwarder->workers; j++)
			prog_slot_clear(&forwarder->port[i].prog, forwarder->worker[j]->number);
	}
	take_what_came(forwarder);
}

/* Takes the rings from the workers, which are parked. */
static void unplug(struct forwarder *forwarder, unsigned port)
{
	for (unsigned i = 0; i < forwarder->workers; i++) {
		struct lane *lane = forwarder_lane(forwarder, i, port);
		struct xsk_stats socket;
		struct queue gone;

		if (!lane->made)
			continue;
		(void)lane_read_stats(lane, &socket);
		worker_unplug(forwarder->worker[i], port, &gone);
		forwarder_tell_lane(forwarder, i, port, &gone);
	}
}

/* Without its sockets the kernel has none of its frames any more. */
static void close_port(struct forwarder *forwarder, unsigned port)
{
	int ifindex = forwarder->port[port].netdev.ifindex;

	forwarder_detach(&forwarder->port[port]);
	for (unsigned i = 0; i < forwarder->workers; i++) {
		struct lane *lane = forwarder_lane(forwarder, i, port);

		xsk_close(&lane->xsk);
		*lane = (struct lane){ 0 };
	}
	forwarder_close_port(&forwarder->port[port]);
	opener_port_restore(ifindex);
}

/* The workers being parked: frames back, and every port to its place. */
static void rearrange_worker(struct forwarder *forwarder, struct ports_change *change,
			     unsigned index)
{
	struct worker *worker = forwarder->worker[index];
	struct lane lane[CONF_PORTS_MAX];

	for (unsigned i = 0; i < forwarder->ports; i++) {
		uint32_t taken = change->stays[i] ? 0 : worker_reclaim(worker, i);

		worker->reclaimed += taken;
		change->taken[i] += taken;
	}
	worker_renumber(worker, change->plan->ports, change->before);
	memcpy(lane, forwarder_lane(forwarder, index, 0), sizeof(lane));
	for (unsigned i = 0; i < CONF_PORTS_MAX; i++) {
		bool stays = i < change->plan->ports && change->before[i] != PLAN_NOBODY;

		*forwarder_lane(forwarder, index, i) =
			stays ? lane[change->before[i]] : (struct lane){ 0 };
	}
}

static void rearrange_ports(struct forwarder *forwarder, const struct ports_change *change)
{
	struct port port[CONF_PORTS_MAX];

	memcpy(port, forwarder->port, sizeof(port));
	forwarder->ports = change->plan->ports;
	for (unsigned i = 0; i < forwarder->ports; i++) {
		if (change->before[i] != PLAN_NOBODY)
			forwarder->port[i] = port[change->before[i]];
		else
			forwarder->port[i] = (struct port){
				.conf = change->plan->port[i].conf,
				.netdev = change->plan->port[i].device,
			};
	}
}

/* Those that go go, and the others have the numbers of the new plan. Returns 0; or -errno after a
 * message, and then all is as it was. */
static int lower_ports(struct forwarder *forwarder, struct ports_change *change)
{
	int err;

	if (change->going)
		quieten(forwarder, change);
	err = park_all(forwarder, clock_now_ns() + PARAMS_WAIT_NS);
	for (unsigned i = 0; err && i < forwarder->ports; i++) {
		if (!change->stays[i])
			(void)forwarder_open_slots(forwarder, i);
	}
	if (err)
		return err;
	for (unsigned i = 0; i < forwarder->ports; i++) {
		if (!change->stays[i])
			unplug(forwarder, i);
	}
	/* Closing takes the kernel tens of ms: the ports that stay do not wait for it. */
	resume_all(forwarder, forwarder->workers);
	for (unsigned i = 0; i < forwarder->ports; i++) {
		if (!change->stays[i])
			close_port(forwarder, i);
	}
	(void)park_all(forwarder, UINT64_MAX);
	for (unsigned i = 0; i < forwarder->workers; i++)
		rearrange_worker(forwarder, change, i);
	resume_all(forwarder, forwarder->workers);
	for (unsigned i = 0; i < forwarder->ports; i++) {
		if (!change->stays[i])
			log_info("forward %s: port %s ended; %u frames reclaimed",
				 forwarder->conf->name, forwarder->plan->port[i].conf->name,
				 change->taken[i]);
	}
	rearrange_ports(forwarder, change);
	return 0;
}

static int open_lanes_of(struct forwarder *forwarder, unsigned port)
{
	int err = 0;

	for (unsigned i = 0; !err && i < forwarder->workers; i++)
		err = forwarder_open_lane(forwarder, forwarder->plan, i, port);
	return err;
}

/* A port that comes, from its program to its first frame. Returns 0, or -errno after a message. */
static int raise_port(struct forwarder *forwarder, unsigned port)
{
	int err;

	/* Awaited: only the workers must know. */
	if (!forwarder->port[port].netdev.present)
		return open_lanes_of(forwarder, port);
	err = forwarder_attach(forwarder, &forwarder->port[port]);

	if (!err)
		err = open_lanes_of(forwarder, port);
	if (!err)
		err = forwarder_open_slots(forwarder, port);
	if (err)
		return err;
	forwarder->port[port].served = true;
	for (unsigned i = 0; i < forwarder->workers; i++)
		forwarder_announce(forwarder, i, port);
	return 0;
}

int forwarder_change_ports(struct forwarder *forwarder, struct plan_forward *plan)
{
	struct ports_change change = ports_change_of(forwarder, plan);
	int err = lower_ports(forwarder, &change);

	if (err)
		return err;
	forwarder_apply(forwarder, plan);
	for (unsigned i = 0; !err && i < forwarder->ports; i++) {
		if (change.before[i] == PLAN_NOBODY)
			err = raise_port(forwarder, i);
	}
	return err;
}

/* --- ports whose devices come and go --- */

void forwarder_new_mac(struct forwarder *forwarder, unsigned port)
{
	bridging_port_came(forwarder, port);
	if (forwarder->mode->receives || forwarder->conf->tx.source_given)
		return;
	for (unsigned i = 0; i < forwarder->workers; i++) {
		worker_wait_parked(forwarder->worker[i]);
		tx_job_set_source(forwarder->worker[i]->tx_job, port,
				  forwarder->port[port].netdev.mac);
		worker_resume(forwarder->worker[i]);
	}
}

uint32_t forwarder_lose_port(struct forwarder *forwarder, unsigned number)
{
	struct port *port = &forwarder->port[number];
	struct netdev *planned = &forwarder->plan->port[number].device;
	struct prog_counts counts;
	uint32_t taken = 0;

	/* What came before it went is taken: a port that still receives is to lose nothing. */
	for (unsigned i = 0; i < forwarder->workers; i++)
		prog_slot_clear(&port->prog, forwarder->worker[i]->number);
	forwarder_detach(port);
	take_what_came(forwarder);
	for (unsigned i = 0; i < forwarder->workers; i++)
		taken += lane_lose(forwarder_lane(forwarder, i, number), forwarder->worker[i],
				   number);
	bridging_port_left(forwarder, number);
	if (port->prog.count_fd > 0 && !prog_counts(&port->prog, &counts)) {
		port->past.seen += counts.seen;
		port->past.passed += counts.passed;
	}
	forwarder_release_device(port);
	opener_port_restore(port->netdev.ifindex);
	/* The next plan has it awaited as well, so this one had better say the same. */
	planned->present = planned->served = false;
	planned->awaited = true;
	planned->ifindex = 0;
	return taken;
}

void forwarder_book_departed(struct forwarder *forwarder, unsigned number)
{
	struct port *port = &forwarder->port[number];
	uint64_t known = port->past.passed + port->departed + port->vanished.frames;

	/* The rings are closed: what came stands in what the workers and the lanes keep of the past. */
	for (unsigned i = 0; i < forwarder->workers; i++) {
		const struct xsk_stats *past = &forwarder_lane(forwarder, i, number)->past;

		known += forwarder->worker[i]->past[number].rx_packets;
		known += past->rx_dropped + past->rx_ring_full;
	}
	if (!port->prog.external && port->past.seen > known)
		port->departed += port->past.seen - known;
}

int forwarder_raise_port(struct forwarder *forwarder, unsigned number)
{
	struct port *port = &forwarder->port[number];
	int err;

	forwarder_new_mac(forwarder, number);
	err = raise_port(forwarder, number);
	if (err) {
		(void)forwarder_lose_port(forwarder, number);
		return err;
	}
	forwarder->plan->port[number].device = port->netdev;
	return 0;
}

bool forwarder_port_unbound(const struct forwarder *forwarder, unsigned port)
{
	bool unbound = false;

	for (unsigned i = 0; i < forwarder->workers; i++) {
		const struct lane *lane = forwarder_lane(forwarder, i, port);

		if (lane->xsk.fd > 0 && xsk_is_unbound(&lane->xsk))
			unbound = true;
	}
	return unbound;
}

unsigned forwarder_lanes_missing(const struct forwarder *forwarder, unsigned port)
{
	unsigned missing = 0;

	for (unsigned i = 0; i < forwarder->workers; i++) {
		const struct plan_lane *lane = &forwarder->plan->worker[i].lane[port];

		missing += (lane->rx || lane->tx) && !lane_fits(lane, &forwarder->port[port].netdev,
								forwarder->worker[i]->number);
	}
	return missing;
}
