/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "plan/change.h"

#include <string.h>

#include "conf/print.h"

/* What a running worker takes up, or another name of the same device: the ports themselves are compared one
 * by one. */
static const char *const forward_params[] = { "wait", "batch", "cpus", "ports", NULL };
static const char *const port_params[] = { "device", "promiscuous", NULL };

static bool same_port(const struct plan_port *before, const struct plan_port *after)
{
	return !strcmp(before->conf->name, after->conf->name) &&
	       before->device.ifindex == after->device.ifindex &&
	       before->device.rx_queues == after->device.rx_queues &&
	       before->device.tx_queues == after->device.tx_queues &&
	       conf_port_same(before->conf, after->conf, port_params);
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
	if (!conf_forward_same(before->conf, after->conf, forward_params))
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
