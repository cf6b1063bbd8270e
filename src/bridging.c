/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "bridging.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "fwd/bridge.h"
#include "fwd/probe.h"

_Static_assert(CONF_STATIONS_MAX == FDB_STATIONS_MAX, "as many as the table takes");
_Static_assert(CONF_AGEING_MAX == FDB_AGEING_MAX, "as long as the table counts");
_Static_assert(CONF_PORTS_MAX <= FDB_PORTS_MAX && CONF_PORTS_MAX <= 16, "an entry names any port");

static uint32_t learn_limit(const struct conf_port *port)
{
	return port->learn_limit ? port->learn_limit : UINT32_MAX;
}

static void storm_limits(const struct conf_port *port, uint32_t *limit)
{
	limit[STORM_BROADCAST] = port->storm_broadcast;
	limit[STORM_MULTICAST] = port->storm_multicast;
	limit[STORM_UNKNOWN] = port->storm_unknown;
}

static struct bridge_opts opts_of(const struct forwarder *forwarder)
{
	const struct conf_forward *conf = forwarder->conf;
	struct bridge_opts opts = {
		.ports = forwarder->ports,
		.workers = forwarder->plan->workers,
		.stations_max = conf->stations_max,
		.ageing_s = conf->ageing_s,
		.reserved = conf->forward_reserved ? BRIDGE_RESERVED_MOST : BRIDGE_RESERVED_STP,
	};

	if (conf->mode == CONF_MODE_PATCH)
		opts.reserved = BRIDGE_RESERVED_ALL;
	for (unsigned i = 0; i < forwarder->ports; i++) {
		const struct conf_port *port = forwarder->port[i].conf;

		opts.port[i] = (struct bridge_port_opts){
			.hairpin = port->hairpin,
			.isolated = port->isolated,
			.learn_limit = learn_limit(port),
			.vlan = port->vlan.kind == VLAN_MODE_TRANSPARENT ? NULL : &port->vlan,
		};
		storm_limits(port, opts.port[i].storm_limit);
	}
	return opts;
}

/* Makes the entries of the configuration, in the place of what is known of those stations. Returns 0, or -ENOSPC
 * after a message. */
static int add_stations(const struct forwarder *forwarder)
{
	const struct conf_forward *conf = forwarder->conf;
	char text[STATION_TEXT_SIZE];
	int err = 0;

	for (unsigned i = 0; i < conf->stations; i++) {
		const struct conf_station *station = &conf->station[i];
		unsigned port =
			station->port == STATION_BLOCKED ? FDB_BLOCKED : (unsigned)station->port;

		if (!fdb_add(forwarder->bridge->fdb, fdb_key(station->vlan, station->mac), port))
			continue;
		log_error(
			"forward %s: no place for the static entry %s, line %u of its file; raise fdb-size",
			conf->name, station_print(station, conf, text), station->line);
		err = -ENOSPC;
	}
	return err;
}

/* Removes the entries of `before` that `now` has not; both are sorted. */
static void remove_stations(struct fdb *fdb, const struct conf_forward *before,
			    const struct conf_forward *now)
{
	unsigned j = 0;

	for (unsigned i = 0; i < before->stations; i++) {
		const struct conf_station *station = &before->station[i];

		while (j < now->stations && station_order(&now->station[j], station) < 0)
			j++;
		if (j == now->stations || station_order(&now->station[j], station) > 0)
			(void)fdb_remove(fdb, fdb_key(station->vlan, station->mac));
	}
}

int bridging_open(struct forwarder *forwarder)
{
	struct bridge_opts opts;
	int err;

	if (!conf_is_bridge(forwarder->conf))
		return 0;
	opts = opts_of(forwarder);
	err = bridge_new(&forwarder->bridge, &opts);
	if (err) {
		log_error("forward %s: no table for %u stations: " ERR_FORMAT "; lower fdb-size",
			  forwarder->conf->name, opts.stations_max, ERR_SANDBOX_ARGS(err));
		return err;
	}
	for (unsigned i = 0; i < forwarder->ports; i++)
		bridging_port_came(forwarder, i);
	return add_stations(forwarder);
}

void bridging_apply(const struct forwarder *forwarder, const struct conf_forward *before)
{
	const struct conf_forward *conf = forwarder->conf;
	uint32_t limit[STORM_KINDS];
	struct fdb *fdb;

	if (!forwarder->bridge)
		return;
	fdb = forwarder->bridge->fdb;
	fdb_set_ageing(fdb, conf->ageing_s);
	for (unsigned i = 0; i < forwarder->ports; i++) {
		fdb_set_limit(fdb, i, learn_limit(forwarder->port[i].conf));
		storm_limits(forwarder->port[i].conf, limit);
		bridge_limit(forwarder->bridge, i, limit);
	}
	remove_stations(fdb, before, conf);
	(void)add_stations(forwarder);
}

void bridging_give(const struct forwarder *forwarder, struct worker *worker, unsigned index)
{
	if (!forwarder->bridge)
		return;
	worker->bridge = forwarder->bridge;
	worker->fdb_view = fdb_view(forwarder->bridge->fdb, index);
	worker->probes = &forwarder->bridge->probes[index];
	worker->storm = &forwarder->bridge->storm[index];
}

void bridging_port_came(const struct forwarder *forwarder, unsigned port)
{
	if (forwarder->bridge)
		bridge_set_mac(forwarder->bridge, port, forwarder->port[port].netdev.mac);
}

void bridging_port_left(const struct forwarder *forwarder, unsigned port)
{
	const struct fdb_filter learned = { .port = (int)port, .vlan = -1, .learned = true };

	if (forwarder->bridge)
		(void)fdb_flush(forwarder->bridge->fdb, &learned);
}

void bridging_block(const struct forwarder *forwarder, unsigned port, bool block)
{
	bridge_block(forwarder->bridge, port, block);
	if (block)
		bridging_port_left(forwarder, port);
}

bool bridging_counts(const struct fleet *fleet, const struct port *port, struct fdb_counts *counts)
{
	for (unsigned i = 0; i < fleet->forwards; i++) {
		const struct forwarder *forwarder = fleet->forward[i];

		for (unsigned j = 0; forwarder->bridge && j < forwarder->ports; j++) {
			if (&forwarder->port[j] != port)
				continue;
			*counts = fdb_count(forwarder->bridge->fdb, j);
			return true;
		}
	}
	return false;
}

/* --- the time --- */

/* A loop moves stations a million times a second: it is to be seen, and not to fill the disk. */
#define MOVES_NS (10 * NSEC_PER_SEC)

static uint64_t count_moves(const struct forwarder *forwarder)
{
	uint64_t moves = 0;

	for (unsigned i = 0; i < forwarder->ports; i++)
		moves += fdb_count(forwarder->bridge->fdb, i).events[FDB_MOVED];
	return moves;
}

static void tell_moves(struct forwarder *forwarder, uint64_t now_ns)
{
	struct forwarder_moves *moves = &forwarder->moves;
	uint64_t now = count_moves(forwarder);
	char more[64] = "", text[MAC_TEXT_SIZE];
	struct fdb_move move;
	uint8_t mac[MAC_LEN];
	uint16_t vlan;

	if (now == moves->told || (moves->said_ns && now_ns - moves->said_ns < MOVES_NS) ||
	    !fdb_last_move(forwarder->bridge->fdb, &move))
		return;
	if (now - moves->told > 1)
		snprintf(more, sizeof(more), "; %llu moves since the last such line",
			 (unsigned long long)(now - moves->told));
	*moves = (struct forwarder_moves){ now, now_ns };
	fdb_key_mac(move.key, mac);
	vlan = fdb_key_vlan(move.key);
	log_info("forward %s: station %s%s%.0u moved from port %s to %s%s", forwarder->conf->name,
		 mac_print(mac, text), vlan ? " in VLAN " : "", vlan,
		 forwarder->port[move.from].conf->name, forwarder->port[move.to].conf->name, more);
}

void bridging_tick(const struct fleet *fleet)
{
	uint64_t now_ns = clock_now_ns();

	for (unsigned i = 0; i < fleet->forwards; i++) {
		struct forwarder *forwarder = fleet->forward[i];

		if (!forwarder->bridge)
			continue;
		(void)fdb_age(forwarder->bridge->fdb, now_ns);
		tell_moves(forwarder, now_ns);
	}
}
