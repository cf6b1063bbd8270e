/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which worker serves which queue of which port, and who sends for whom. */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "plan/build.h"

static bool serves(const struct plan_port *port, unsigned queue)
{
	if (port->conf->all_queues)
		return queue < port->device.rx_queues;
	return number_list_has(&port->conf->queues, queue);
}

static void say_no_tx(struct build *build, struct plan_forward *forward,
		      const struct plan_port *port, unsigned queue)
{
	const struct netdev *device = &port->device;

	build_say(build, PLAN_ERROR, forward, port,
		  "%s q%u: no TX queue of this number (%u active), so %s could not send; choose "
		  "another with %s, or see `ethtool -L %s`",
		  device->name, queue, device->tx_queues, plan_mode_of(forward->conf->mode)->name,
		  build_word(forward, "-q", "queues"), device->name);
}

/* The queues that were asked for by number must be there. One message a port: the first of them. */
static void check_listed(struct build *build, struct plan_forward *forward,
			 const struct plan_port *port)
{
	const struct netdev *device = &port->device;

	for (unsigned i = 0; i < port->conf->queues.count; i++) {
		unsigned queue = port->conf->queues.value[i];
		char active[32] = "RX queue 0 is";

		if (queue < device->rx_queues)
			continue;
		if (device->rx_queues > 1)
			snprintf(active, sizeof(active), "RX queues 0-%u are",
				 device->rx_queues - 1);
		build_say(build, PLAN_ERROR, forward, port,
			  "%s q%u: only %s active; choose with %s, or add some with `ethtool -L %s "
			  "combined %u` (or rx)",
			  device->name, queue, active, build_word(forward, "-q", "queues"),
			  device->name, queue + 1);
		return;
	}
}

/* A mode that only sends has no use for a queue that it cannot send on. */
static void check_senders(struct build *build, struct plan_forward *forward,
			  const struct plan_port *port)
{
	const struct netdev *device = &port->device;

	if (port->conf->all_queues && device->rx_queues > device->tx_queues) {
		say_no_tx(build, forward, port, device->tx_queues);
		return;
	}
	for (unsigned i = 0; i < port->conf->queues.count; i++) {
		if (port->conf->queues.value[i] < device->tx_queues)
			continue;
		say_no_tx(build, forward, port, port->conf->queues.value[i]);
		return;
	}
}

static void check_queues(struct build *build, struct plan_forward *forward)
{
	for (unsigned i = 0; i < forward->ports; i++) {
		const struct plan_port *port = &forward->port[i];

		if (port->conf->all_queues && port->device.rx_queues > NUMBER_LIST_MAX)
			build_say(build, PLAN_ERROR, forward, port,
				  "%s: %s has %u active RX queues, more than the %d that one run "
				  "serves; list some with %s",
				  build_word(forward, "-q all", "queues"), port->device.name,
				  port->device.rx_queues, NUMBER_LIST_MAX,
				  build_word(forward, "-q", "queues"));
		else
			check_listed(build, forward, port);
		if (forward->complete && !plan_mode_of(forward->conf->mode)->receives)
			check_senders(build, forward, port);
	}
}

static bool has_worker(const struct plan_forward *forward, unsigned queue)
{
	for (unsigned i = 0; i < forward->workers; i++) {
		if (forward->worker[i].queue == queue)
			return true;
	}
	return false;
}

static void add_worker(struct build *build, struct plan_forward *forward, unsigned queue)
{
	struct plan_worker *grown;

	if (has_worker(forward, queue))
		return;
	grown = reallocarray(forward->worker, forward->workers + 1, sizeof(*grown));
	if (!grown) {
		build->no_memory = true;
		return;
	}
	forward->worker = grown;
	forward->worker[forward->workers++] = (struct plan_worker){ .queue = queue };
}

/* One a queue number that any port has, in the order they are first named. */
static void add_workers(struct build *build, struct plan_forward *forward)
{
	for (unsigned i = 0; i < forward->ports; i++) {
		const struct plan_port *port = &forward->port[i];

		for (unsigned j = 0; port->conf->all_queues && j < port->device.rx_queues; j++)
			add_worker(build, forward, j);
		for (unsigned j = 0; j < port->conf->queues.count; j++)
			add_worker(build, forward, port->conf->queues.value[j]);
	}
}

/*
 * The kernel binds a socket to any queue number below the larger of the RX and TX counts. So where there
 * is no RX queue there can still be a lane that sends.
 */
static void set_lanes(const struct plan_forward *forward, struct plan_worker *worker)
{
	const struct plan_mode *mode = plan_mode_of(forward->conf->mode);

	for (unsigned i = 0; i < forward->ports; i++) {
		const struct plan_port *port = &forward->port[i];
		struct plan_lane *lane = &worker->lane[i];
		bool served = serves(port, worker->queue);

		lane->rx = mode->receives && served;
		lane->tx = mode->sends && worker->queue < port->device.tx_queues &&
			   (mode->receives || served);
		lane->hand_to = PLAN_NOBODY;
		worker->lanes += lane->rx || lane->tx;
	}
}

/* Whether the worker has frames to send on the port. */
static bool sends_on(const struct plan_forward *forward, const struct plan_worker *worker,
		     unsigned port)
{
	for (unsigned i = 0; i < forward->ports; i++) {
		if (worker->lane[i].rx && plan_sends(forward->conf->mode, i, port))
			return true;
	}
	return false;
}

/* The n-th worker with a TX queue on the port. There is one. */
static int nth_sender(const struct plan_forward *forward, unsigned port, unsigned n)
{
	unsigned i = 0;

	for (; !forward->worker[i].lane[port].tx || n-- > 0; i++)
		;
	return (int)i;
}

/*
 * Workers without a TX queue on a port, each for good with one of those that have it, evenly: what one
 * worker receives keeps its order.
 */
static void set_hand_over(struct build *build, struct plan_forward *forward, unsigned port)
{
	unsigned senders = 0, others = 0;
	char text[512] = "";

	for (unsigned i = 0; i < forward->workers; i++)
		senders += forward->worker[i].lane[port].tx;
	for (unsigned i = 0; i < forward->workers; i++) {
		struct plan_worker *worker = &forward->worker[i];
		size_t len = strlen(text);

		if (worker->lane[port].tx || !sends_on(forward, worker, port))
			continue;
		if (!senders) {
			say_no_tx(build, forward, &forward->port[port], worker->queue);
			return;
		}
		worker->lane[port].hand_to = nth_sender(forward, port, others++ % senders);
		snprintf(text + len, sizeof(text) - len, "%squeue %u to %u", len ? ", " : "",
			 worker->queue, forward->worker[worker->lane[port].hand_to].queue);
	}
	if (others)
		build_say(build, PLAN_NOTE, forward, &forward->port[port],
			  "%s: too few TX queues (%u active), so workers hand over what they would "
			  "send there: %s",
			  forward->port[port].device.name, forward->port[port].device.tx_queues,
			  text);
}

/* Frames of a queue without a worker are not lost, but they are not forwarded either: nobody would
 * guess it from counters. */
static void tell_unserved(struct build *build, struct plan_forward *forward)
{
	const struct plan_port *only = NULL;
	unsigned ports = 0;
	char text[512] = "";

	for (unsigned i = 0; i < forward->ports; i++) {
		const struct plan_port *port = &forward->port[i];
		struct number_list left = { 0 };
		size_t len = strlen(text);
		char numbers[128];

		for (unsigned queue = 0; queue < port->device.rx_queues; queue++) {
			if (!serves(port, queue) && left.count < NUMBER_LIST_MAX)
				left.value[left.count++] = queue;
		}
		if (!left.count)
			continue;
		only = ports++ ? NULL : port;
		number_list_print(&left, numbers, sizeof(numbers));
		snprintf(text + len, sizeof(text) - len, "%s%s: queue%s %s", len ? ", " : "",
			 port->device.name, left.count == 1 ? "" : "s", numbers);
	}
	if (text[0])
		build_say(build, PLAN_WARNING, forward, only,
			  "%s: not served, their frames go to the host; %s serves them", text,
			  build_word(forward, "-q all", "queues = auto"));
}

void build_workers(struct build *build, struct plan_forward *forward)
{
	const struct plan_mode *mode = plan_mode_of(forward->conf->mode);

	check_queues(build, forward);
	if (!forward->complete)
		return;
	add_workers(build, forward);
	for (unsigned i = 0; i < forward->workers; i++)
		set_lanes(forward, &forward->worker[i]);
	for (unsigned i = 0; mode->receives && mode->sends && i < forward->ports; i++)
		set_hand_over(build, forward, i);
	if (forward->complete && mode->receives)
		tell_unserved(build, forward);
}
