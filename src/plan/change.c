/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "plan/change.h"

#include <assert.h>
#include <string.h>

#include "conf/print.h"

/* What a running worker takes up, or another name of the same device: the ports themselves are compared one
 * by one. */
static const char *const forward_params[] = { "wait",	"batch",      "cpus",	    "ports",
					      "ageing", "loop-probe", "loop-block", NULL };
static const char *const port_params[] = {
	"device", "promiscuous", "wait-for-device", "mtu-too-large",   "on-program-lost",
	"pass",	  "learn-limit", "storm-broadcast", "storm-multicast", "storm-unknown",
	NULL
};

static bool same_port(const struct plan_port *before, const struct plan_port *after)
{
	return !strcmp(before->conf->name, after->conf->name) &&
	       before->device.ifindex == after->device.ifindex &&
	       before->device.rx_queues == after->device.rx_queues &&
	       before->device.tx_queues == after->device.tx_queues &&
	       conf_port_same(before->conf, after->conf, port_params);
}

/* Where no port sends what another one receives, each can come and go by itself. */
static bool ports_apart(const struct plan_forward *forward)
{
	const struct plan_mode *mode = plan_mode_of(forward->conf->mode);

	return mode->receives && !mode->sends;
}

/* True if what the running worker has is right for the other one, or, with ports apart, enough. */
static bool memory_lasts(const struct plan_forward *before, const struct plan_forward *after,
			 unsigned worker)
{
	const struct plan_worker *one = &before->worker[worker], *other = &after->worker[worker];

	if (one->umem != other->umem)
		return false;
	if (one->first_frame == other->first_frame && one->frames == other->frames)
		return true;
	/* A port takes no more for receiving than its fill ring holds, twice ring-size. */
	return ports_apart(after) &&
	       one->frames >= (uint64_t)other->lanes * 2 * after->conf->ring_size;
}

static bool same_lanes(const struct plan_forward *before, unsigned one,
		       const struct plan_forward *after, unsigned other)
{
	for (unsigned i = 0; i < before->workers; i++) {
		const struct plan_lane *was = &before->worker[i].lane[one];
		const struct plan_lane *is = &after->worker[i].lane[other];

		if (was->rx != is->rx || was->tx != is->tx || was->hand_to != is->hand_to)
			return false;
	}
	return true;
}

int plan_port_before(const struct plan_forward *before, const struct plan_forward *after,
		     unsigned port)
{
	for (unsigned i = 0; i < before->ports; i++) {
		if (same_port(&before->port[i], &after->port[port]) &&
		    same_lanes(before, i, after, port))
			return (int)i;
	}
	return PLAN_NOBODY;
}

/* But for ports. */
static bool same_workers(const struct plan_forward *before, const struct plan_forward *after)
{
	if (before->workers != after->workers)
		return false;
	if (!conf_forward_same(before->conf, after->conf, forward_params))
		return false;
	for (unsigned i = 0; i < before->workers; i++) {
		if (before->worker[i].queue != after->worker[i].queue ||
		    !memory_lasts(before, after, i))
			return false;
	}
	return true;
}

/* How far the ports of two forwards with the same workers are apart. */
static enum plan_change compare_ports(const struct plan_forward *before,
				      const struct plan_forward *after)
{
	bool same = before->ports == after->ports;
	unsigned kept = 0;

	for (unsigned i = 0; i < after->ports; i++) {
		int was = plan_port_before(before, after, i);

		kept += was != PLAN_NOBODY;
		same = same && was == (int)i;
	}
	if (same)
		return PLAN_CHANGE_NONE;
	return kept && ports_apart(after) ? PLAN_CHANGE_PORTS : PLAN_CHANGE_REBUILD;
}

static bool same_storm_limits(const struct conf_port *before, const struct conf_port *after)
{
	return before->storm_broadcast == after->storm_broadcast &&
	       before->storm_multicast == after->storm_multicast &&
	       before->storm_unknown == after->storm_unknown;
}

static bool same_params(const struct plan_forward *before, const struct plan_forward *after)
{
	if (before->conf->wait != after->conf->wait ||
	    before->conf->busy_poll != after->conf->busy_poll ||
	    before->conf->batch != after->conf->batch ||
	    before->conf->ageing_s != after->conf->ageing_s ||
	    before->conf->loop_probe_s != after->conf->loop_probe_s ||
	    before->conf->loop_block_s != after->conf->loop_block_s)
		return false;
	if (!stations_same(before->conf->station, before->conf->stations, after->conf->station,
			   after->conf->stations))
		return false;
	for (unsigned i = 0; i < before->ports; i++) {
		if (before->port[i].conf->promiscuous != after->port[i].conf->promiscuous ||
		    before->port[i].conf->learn_limit != after->port[i].conf->learn_limit ||
		    !same_storm_limits(before->port[i].conf, after->port[i].conf) ||
		    before->port[i].conf->on_program_lost != after->port[i].conf->on_program_lost ||
		    !pass_same(&before->port[i].conf->pass, &after->port[i].conf->pass))
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
	enum plan_change ports;

	if (!same_workers(before, after))
		return PLAN_CHANGE_REBUILD;
	ports = compare_ports(before, after);
	if (ports != PLAN_CHANGE_NONE)
		return ports;
	return same_params(before, after) ? PLAN_CHANGE_NONE : PLAN_CHANGE_PARAMS;
}

void plan_keep_memory(struct plan_forward *after, const struct plan_forward *before)
{
	assert(after->workers == before->workers && after->umems == before->umems);
	for (unsigned i = 0; i < after->workers; i++) {
		after->worker[i].first_frame = before->worker[i].first_frame;
		after->worker[i].frames = before->worker[i].frames;
	}
	for (unsigned i = 0; i < after->umems; i++)
		after->umem[i] = before->umem[i];
	after->locked_bytes = before->locked_bytes;
}

void plan_leave_out_ours(struct netdev *now, const struct netdev *before,
			 const struct netdev_queues *attached)
{
	if (now->rx_queues != attached->rx || now->tx_queues != attached->tx)
		return; /* somebody has changed them since, or taken our program off */
	now->rx_queues = before->rx_queues;
	now->tx_queues = before->tx_queues;
}

bool plan_shares_device(const struct plan_forward *one, const struct plan_forward *other)
{
	for (unsigned i = 0; i < one->ports; i++) {
		const struct netdev *device = &one->port[i].device;

		for (unsigned j = 0; device->present && j < other->ports; j++) {
			if (device->ifindex == other->port[j].device.ifindex)
				return true;
		}
	}
	return false;
}
