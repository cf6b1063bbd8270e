/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "fleet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"

unsigned fleet_workers(const struct fleet *fleet)
{
	unsigned workers = 0;

	for (unsigned i = 0; i < fleet->forwards; i++)
		workers += fleet->forward[i]->plan->workers;
	return workers;
}

unsigned fleet_ports(const struct fleet *fleet)
{
	unsigned ports = 0;

	for (unsigned i = 0; i < fleet->forwards; i++)
		ports += fleet->forward[i]->ports;
	return ports;
}

unsigned fleet_lanes(const struct fleet *fleet)
{
	unsigned lanes = 0;

	for (unsigned i = 0; i < fleet->forwards; i++)
		lanes += fleet->forward[i]->plan->workers * fleet->forward[i]->ports;
	return lanes;
}

struct port *fleet_port(const struct fleet *fleet, const char *name, struct forwarder **forwarder)
{
	for (unsigned i = 0; i < fleet->forwards; i++) {
		*forwarder = fleet->forward[i];
		for (unsigned j = 0; j < (*forwarder)->ports; j++) {
			if (!strcmp((*forwarder)->port[j].conf->name, name))
				return &(*forwarder)->port[j];
		}
	}
	return NULL;
}

bool fleet_done(const struct fleet *fleet)
{
	for (unsigned i = 0; i < fleet->forwards; i++) {
		if (!forwarder_done(fleet->forward[i]))
			return false;
	}
	return true;
}

struct port *fleet_find(const struct fleet *fleet, int ifindex, struct forwarder **forwarder)
{
	for (unsigned i = 0; i < fleet->forwards; i++) {
		*forwarder = fleet->forward[i];
		for (unsigned j = 0; j < (*forwarder)->ports; j++) {
			if ((*forwarder)->port[j].netdev.ifindex == ifindex)
				return &(*forwarder)->port[j];
		}
	}
	return NULL;
}

void fleet_each_port(const struct fleet *fleet, fleet_port_fn *each, void *context)
{
	for (unsigned i = 0; i < fleet->forwards; i++) {
		for (unsigned j = 0; j < fleet->forward[i]->ports; j++)
			each(&fleet->forward[i]->port[j], context);
	}
}

/* --- all of it --- */

int fleet_init(struct fleet *fleet, const struct conf *conf, struct plan *plan)
{
	*fleet = (struct fleet){ .conf = conf, .plan = plan };
	fleet->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fleet->done_fd < 0) {
		int err = -errno;

		log_error("no file to start with: " ERR_FORMAT, ERR_SANDBOX_ARGS(err));
		return err;
	}
	fleet->forward = calloc(plan->forwards, sizeof(struct forwarder *));
	for (unsigned i = 0; fleet->forward && i < plan->forwards; i++) {
		fleet->forward[i] = forwarder_new(&plan->forward[i], fleet->done_fd);
		if (!fleet->forward[i])
			return -ENOMEM;
		fleet->forwards++;
	}
	if (fleet->forward)
		return 0;
	log_error("out of memory");
	return -ENOMEM;
}

int fleet_open(struct fleet *fleet)
{
	int err = 0;

	for (unsigned i = 0; !err && i < fleet->forwards; i++)
		err = forwarder_open(fleet->forward[i]);
	return err;
}

int fleet_start(struct fleet *fleet)
{
	int err = 0;

	for (unsigned i = 0; !err && i < fleet->forwards; i++)
		err = forwarder_start(fleet->forward[i]);
	return err;
}

void fleet_stop(struct fleet *fleet)
{
	for (unsigned i = 0; i < fleet->forwards; i++)
		forwarder_stop(fleet->forward[i]);
}

int fleet_close_lanes(struct fleet *fleet)
{
	int err = 0;

	for (unsigned i = 0; i < fleet->forwards; i++) {
		int one = forwarder_close_lanes(fleet->forward[i]);

		err = err ? err : one;
	}
	return err;
}

void fleet_close(struct fleet *fleet)
{
	for (unsigned i = 0; i < fleet->forwards; i++)
		forwarder_free(fleet->forward[i]);
	free(fleet->forward);
	if (fleet->done_fd > 0)
		close(fleet->done_fd);
	*fleet = (struct fleet){ 0 };
}
