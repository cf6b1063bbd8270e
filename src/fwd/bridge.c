/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "fwd/bridge.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "fwd/probe.h"
#include "fwd/vlan.h"

/* Where frames of a port may go, as bits. */
static uint16_t reach(const struct bridge_opts *opts, unsigned from)
{
	uint16_t ports = 0;

	for (unsigned i = 0; i < opts->ports; i++) {
		bool apart = opts->port[from].isolated && opts->port[i].isolated;

		if (i == from ? opts->port[from].hairpin : !apart)
			ports |= (uint16_t)(1U << i);
	}
	return ports;
}

void bridge_limit(struct bridge *bridge, unsigned port, const uint32_t *limit)
{
	uint16_t bit = (uint16_t)(1U << port), any = 0;

	for (unsigned kind = 0; kind < STORM_KINDS; kind++) {
		if (limit[kind])
			any = bit;
		for (unsigned i = 0; i < bridge->workers; i++)
			storm_set(&bridge->storm[i], port, (enum storm_kind)kind, limit[kind],
				  bridge->workers);
	}
	/* Relaxed: a frame that still sees none of them, or no limit, goes on. */
	store_relaxed(&bridge->limited, (uint16_t)((bridge->limited & ~bit) | any));
}

static int make_storm_limits(struct bridge *bridge, const struct bridge_opts *opts)
{
	size_t bytes = opts->workers * sizeof(*bridge->storm);

	bridge->storm = aligned_alloc(_Alignof(struct storm), bytes);
	if (!bridge->storm)
		return -ENOMEM;
	memset(bridge->storm, 0, bytes);
	for (unsigned i = 0; i < opts->ports; i++)
		bridge_limit(bridge, i, opts->port[i].storm_limit);
	return 0;
}

/* The VLANs of a bridge whose ports have them. */
static int make_vlans(struct bridge *bridge, const struct bridge_opts *opts)
{
	const struct vlan_mode *mode[CONF_PORTS_MAX];

	if (!opts->port[0].vlan)
		return 0;
	for (unsigned i = 0; i < opts->ports; i++)
		mode[i] = opts->port[i].vlan;
	return vlan_table_new(&bridge->vlans, mode, opts->ports);
}

int bridge_new(struct bridge **result, const struct bridge_opts *opts)
{
	const struct fdb_params params = {
		.stations_max = opts->stations_max,
		.ports = opts->ports,
		.workers = opts->workers,
		.ageing = opts->ageing_s,
		.now_ns = clock_now_ns(),
	};
	struct bridge *bridge = aligned_alloc(_Alignof(struct bridge), sizeof(*bridge));
	int err;

	if (!bridge)
		return -ENOMEM;
	memset(bridge, 0, sizeof(*bridge));
	bridge->ports = (uint16_t)opts->ports;
	bridge->workers = (uint16_t)opts->workers;
	bridge->reserved = opts->reserved;
	err = make_storm_limits(bridge, opts);
	if (!err)
		err = make_vlans(bridge, opts);
	if (!err)
		err = probes_new(&bridge->probes, opts->workers);
	if (!err)
		err = fdb_new(&bridge->fdb, &params);
	if (err) {
		bridge_free(bridge);
		return err;
	}
	for (unsigned i = 0; i < opts->ports; i++) {
		bridge->to[i] = bridge->reach[i] = reach(opts, i);
		fdb_set_limit(bridge->fdb, i, opts->port[i].learn_limit);
	}
	*result = bridge;
	return 0;
}

void bridge_block(struct bridge *bridge, unsigned port, bool block)
{
	uint16_t bit = (uint16_t)(1U << port);
	uint16_t blocked = block ? bridge->blocked | bit : bridge->blocked & (uint16_t)~bit;

	/* Relaxed, like the next: the order does not matter, each only keeps frames from going on. */
	store_relaxed(&bridge->blocked, blocked);
	for (unsigned i = 0; i < bridge->ports; i++)
		store_relaxed(&bridge->to[i], (uint16_t)(bridge->reach[i] & ~blocked));
}

void bridge_free(struct bridge *bridge)
{
	if (bridge) {
		fdb_free(bridge->fdb);
		free(bridge->storm);
		free(bridge->probes);
		vlan_table_free(bridge->vlans);
	}
	free(bridge);
}
