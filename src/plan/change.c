/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "plan/change.h"

#include <string.h>

/*
 * Every conf begins as zeros, padding too, and is filled in member by member: so what is equal is equal
 * byte by byte. Were that ever not so, a forward would be started anew without need.
 */
static bool same_conf(const struct conf_forward *before, const struct conf_forward *after)
{
	struct conf_forward copy;

	memcpy(&copy, before, sizeof(copy));
	copy.line = after->line;
	memcpy((void *)copy.port, (const void *)after->port, sizeof(copy.port));
	/* What a running worker takes up. */
	copy.poll = after->poll;
	copy.busy_poll = after->busy_poll;
	copy.batch = after->batch;
	copy.cpus = after->cpus;
	return !memcmp(&copy, after, sizeof(copy));
}

static bool same_port(const struct plan_port *before, const struct plan_port *after)
{
	struct conf_port copy;

	if (before->device.ifindex != after->device.ifindex ||
	    before->device.rx_queues != after->device.rx_queues ||
	    before->device.tx_queues != after->device.tx_queues)
		return false;
	memcpy(&copy, before->conf, sizeof(copy));
	copy.line = after->conf->line;
	copy.promiscuous = after->conf->promiscuous;
	/* The same device under another of its names is the same. */
	memcpy(copy.device, after->conf->device, sizeof(copy.device));
	return !memcmp(&copy, after->conf, sizeof(copy));
}

static bool same_worker(const struct plan_worker *before, const struct plan_worker *after,
			unsigned ports)
{
	if (before->queue != after->queue || before->umem != after->umem ||
	    before->first_frame != after->first_frame || before->frames != after->frames)
		return false;
	for (unsigned i = 0; i < ports; i++) {
		const struct plan_lane *one = &before->lane[i], *other = &after->lane[i];

		if (one->rx != other->rx || one->tx != other->tx || one->hand_to != other->hand_to)
			return false;
	}
	return true;
}

static bool same_topology(const struct plan_forward *before, const struct plan_forward *after)
{
	if (before->ports != after->ports || before->workers != after->workers)
		return false;
	if (!same_conf(before->conf, after->conf))
		return false;
	for (unsigned i = 0; i < before->ports; i++) {
		if (!same_port(&before->port[i], &after->port[i]))
			return false;
	}
	for (unsigned i = 0; i < before->workers; i++) {
		if (!same_worker(&before->worker[i], &after->worker[i], before->ports))
			return false;
	}
	return true;
}

static bool same_params(const struct plan_forward *before, const struct plan_forward *after)
{
	if (before->conf->poll != after->conf->poll ||
	    before->conf->busy_poll != after->conf->busy_poll ||
	    before->conf->batch != after->conf->batch)
		return false;
	for (unsigned i = 0; i < before->ports; i++) {
		if (before->port[i].conf->promiscuous != after->port[i].conf->promiscuous)
			return false;
	}
	for (unsigned i = 0; i < before->workers; i++) {
		if (before->worker[i].cpu != after->worker[i].cpu)
			return false;
	}
	return true;
}

enum plan_change plan_compare(const struct plan_forward *before, const struct plan_forward *after)
{
	if (!same_topology(before, after))
		return PLAN_CHANGE_REBUILD;
	return same_params(before, after) ? PLAN_CHANGE_NONE : PLAN_CHANGE_PARAMS;
}

bool plan_shares_device(const struct plan_forward *one, const struct plan_forward *other)
{
	for (unsigned i = 0; i < one->ports; i++) {
		for (unsigned j = 0; j < other->ports; j++) {
			if (one->port[i].device.ifindex == other->port[j].device.ifindex)
				return true;
		}
	}
	return false;
}
