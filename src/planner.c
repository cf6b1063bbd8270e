/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "planner.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/spelling.h"
#include "facts.h"
#include "plan/change.h"
#include "xdp/netdev.h"

static void leave_out_ours(struct host_facts *host, const struct fleet *running)
{
	for (unsigned i = 0; i < host->devices; i++) {
		struct netdev *device = &host->device[i];
		struct forwarder *forwarder;
		const struct port *port = fleet_find(running, device->ifindex, &forwarder);

		if (device->present && port)
			plan_leave_out_ours(device, &port->netdev, &port->attached);
	}
}

int planner_make(const struct conf *conf, const struct fleet *running, struct plan **plan)
{
	struct host_facts host;
	int err = facts_read(&host, conf);

	if (err)
		return err;
	if (running)
		leave_out_ours(&host, running);
	err = plan_make(conf, &host, plan);
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

		if (strcmp(port->conf->device, port->device.name) != 0)
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
