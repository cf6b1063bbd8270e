/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "planner.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/spelling.h"
#include "facts.h"
#include "plan/change.h"
#include "xdp/netdev.h"

/* As many as are asked for by number, or one: an awaited device has them, if nothing else is known of it. */
static unsigned queues_asked(const struct conf_port *conf)
{
	unsigned queues = 1;

	for (unsigned i = 0; i < conf->queues.count; i++) {
		if (conf->queues.value[i] >= queues)
			queues = conf->queues.value[i] + 1;
	}
	return queues;
}

/* `planned`: as it was planned so far; NULL: it was not. */
static void await_device(struct netdev *device, const struct conf_port *conf,
			 const struct netdev *planned)
{
	uint32_t asked = queues_asked(conf);

	*device = (struct netdev){
		.awaited = true,
		.numa_node = -1,
		.rx_queues = planned && planned->rx_queues > asked ? planned->rx_queues : asked,
		.tx_queues = planned && planned->tx_queues > asked ? planned->tx_queues : asked,
	};
	snprintf(device->name, sizeof(device->name), "%.*s", (int)sizeof(device->name) - 1,
		 conf->device);
}

/* The running port that is this one, and what is planned for it; NULL: none. */
static const struct port *running_port(const struct fleet *running, const struct conf_port *conf,
				       const struct netdev **planned)
{
	for (unsigned i = 0; running && i < running->forwards; i++) {
		const struct forwarder *forwarder = running->forward[i];

		for (unsigned j = 0; j < forwarder->ports; j++) {
			const struct conf_port *other = forwarder->port[j].conf;

			if (strcmp(other->name, conf->name) != 0 ||
			    strcmp(other->device, conf->device) != 0)
				continue;
			*planned = &forwarder->plan->port[j].device;
			return &forwarder->port[j];
		}
	}
	return NULL;
}

/* A device that a running port waits for, or cannot serve as it is, is planned for as one that will come: or
 * nothing else could be changed until it does. */
static void regard_unserved(struct netdev *device, const struct conf_port *conf,
			    const struct fleet *running)
{
	const struct netdev *planned = NULL;
	const struct port *port = running_port(running, conf, &planned);

	if (!port && !device->present && (conf->wait_for_device || conf->host))
		await_device(device, conf, NULL);
	if (!port || port->served)
		return;
	if (!port->judged) {
		await_device(device, conf, planned);
	} else if (device->present) {
		/* An MTU that is only warned of while it is served does not keep it from being served again. */
		device->served = !conf->mtu_stops;
		/* Whether there are others is no reason not to serve those that it has. */
		device->rx_queues = planned->rx_queues;
		device->tx_queues = planned->tx_queues;
	}
}

static void regard_running(struct host_facts *host, const struct conf *conf,
			   const struct fleet *running)
{
	for (unsigned i = 0; i < host->devices; i++) {
		struct netdev *device = &host->device[i];
		struct forwarder *forwarder;
		const struct port *port = running && device->present ?
						  fleet_find(running, device->ifindex, &forwarder) :
						  NULL;

		if (port && port->served) {
			plan_leave_out_ours(device, &port->netdev, &port->attached);
			device->served = true;
		}
		regard_unserved(device, &conf->port[i], running);
	}
}

/* True if the forward goes on in the running one of its name. */
static bool runs_on(const struct fleet *running, const struct plan_forward *forward)
{
	for (unsigned i = 0; i < running->forwards; i++) {
		const struct plan_forward *before = running->forward[i]->plan;

		if (!strcmp(before->conf->name, forward->conf->name))
			return !forward->complete ||
			       plan_compare(before, forward) != PLAN_CHANGE_REBUILD;
	}
	return false;
}

/* What is started anew is judged as at a start: it could not be had, and what ran before not either. Returns
 * true if that is to be. */
static bool judge_anew(struct host_facts *host, const struct conf *conf, const struct plan *plan,
		       const struct fleet *running)
{
	bool any = false;

	for (unsigned i = 0; i < plan->forwards; i++) {
		const struct plan_forward *forward = &plan->forward[i];

		if (runs_on(running, forward))
			continue;
		for (unsigned j = 0; j < forward->ports; j++) {
			struct netdev *device = &host->device[forward->port[j].conf - conf->port];

			any = any || device->served;
			device->served = false;
		}
	}
	return any;
}

/* One port is asked about, and nothing is to be started anew. */
static bool judging(const struct fleet *running)
{
	for (unsigned i = 0; i < running->forwards; i++) {
		const struct forwarder *forwarder = running->forward[i];

		for (unsigned j = 0; j < forwarder->ports; j++) {
			if (forwarder->port[j].judged)
				return true;
		}
	}
	return false;
}

static int make(const struct conf *conf, struct host_facts *host, const struct fleet *running,
		struct plan **plan)
{
	int err;

	regard_running(host, conf, running);
	err = plan_make(conf, host, plan);
	if (err || !running || judging(running) || !judge_anew(host, conf, *plan, running))
		return err;
	plan_free(*plan);
	return plan_make(conf, host, plan);
}

int planner_make(const struct conf *conf, const struct fleet *running, struct plan **plan)
{
	struct host_facts host;
	int err = facts_read(&host, conf);

	if (err)
		return err;
	err = make(conf, &host, running, plan);
	if (err)
		log_error("no plan: " ERR_FORMAT, ERR_ARGS(err));
	facts_fini(&host);
	return err;
}

/* --- what is said of it --- */

struct guess {
	const char *meant;
	unsigned distance;
	char name[CONF_IFNAME_SIZE];
};

static void guess_name(const char *name, void *context)
{
	struct guess *guess = context;
	unsigned distance = spelling_distance(guess->meant, name);

	if (distance >= guess->distance || !strcmp(name, "lo"))
		return;
	guess->distance = distance;
	snprintf(guess->name, sizeof(guess->name), "%s", name);
}

static void log_absent(enum log_level level, const struct plan_message *message)
{
	const char *name = message->port->device;
	/* More than half of the letters wrong is no slip of the finger. */
	struct guess guess = { .meant = name, .distance = (unsigned)strlen(name) / 2 + 1 };

	(void)netdev_names(guess_name, &guess);
	if (guess.name[0])
		log_write(level,
			  "%s: no such interface; did you mean %s? `ip link` lists those of this "
			  "network namespace",
			  name, guess.name);
	else
		log_write(level, "%s", message->text);
}

static void log_message(enum log_level level, const struct plan_message *message)
{
	if (message->level == PLAN_ABSENT)
		log_absent(level, message);
	else
		log_write(level, "%s", message->text);
}

static void log_level_of(const struct plan *plan, enum plan_level wanted, enum log_level level)
{
	for (unsigned i = 0; i < plan->messages; i++) {
		if (plan->message[i].level == wanted)
			log_message(level, &plan->message[i]);
	}
}

/* All of them for a file. Flags hold for every interface, and so would the same error: one is said. */
static int log_errors(const struct plan *plan)
{
	int err = 0;

	for (unsigned i = 0; i < plan->messages; i++) {
		const struct plan_message *message = &plan->message[i];

		if (message->level != PLAN_ERROR && message->level != PLAN_ABSENT)
			continue;
		if (!err || message->forward->line)
			log_message(LOG_LEVEL_ERROR, message);
		if (!err)
			err = message->level == PLAN_ABSENT ? -ENODEV : -EINVAL;
	}
	return err;
}

/* Who asked for one name must find it again where reports have the kernel's own. */
static void log_names(const struct plan_forward *forward)
{
	for (unsigned i = 0; i < forward->ports; i++) {
		const struct plan_port *port = &forward->port[i];

		if (port->device.present && strcmp(port->conf->device, port->device.name) != 0)
			log_info("%s is an alternative name of %s", port->conf->device,
				 port->device.name);
	}
}

int planner_judge(const struct plan *plan)
{
	int err = log_errors(plan);

	if (err)
		return err;
	for (unsigned i = 0; i < plan->forwards; i++)
		log_names(&plan->forward[i]);
	log_level_of(plan, PLAN_WARNING, LOG_LEVEL_WARNING);
	return 0;
}

int planner_check(const struct plan *plan)
{
	log_level_of(plan, PLAN_ERROR, LOG_LEVEL_ERROR);
	log_level_of(plan, PLAN_ABSENT, LOG_LEVEL_WARNING);
	log_level_of(plan, PLAN_WARNING, LOG_LEVEL_WARNING);
	log_level_of(plan, PLAN_NOTE, LOG_LEVEL_INFO);
	return plan_count(plan, PLAN_ERROR) ? -EINVAL : 0;
}

int planner_show(const struct conf *conf, FILE *out, bool json)
{
	struct plan *plan;
	int err, status = 1;

	if (planner_make(conf, NULL, &plan))
		return status;
	err = json ? plan_json(out, plan) : plan_text(out, plan);
	if (err)
		log_error("standard output takes no plan: " ERR_FORMAT, ERR_ARGS(err));
	else if (!plan_count(plan, PLAN_ERROR))
		status = 0;
	plan_free(plan);
	return status;
}
