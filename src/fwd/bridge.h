/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the workers of one bridge have in common: which port may send to which, and the stations.
 *
 * Made and freed by the main thread, while no worker runs; the workers read it. Only the MAC addresses of
 * the ports' devices change meanwhile, which ports are blocked, and storm limits, each in one store.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/layout.h"
#include "conf/conf.h"
#include "fwd/fdb.h"
#include "fwd/storm.h"

struct probes;
struct vlan_table;

/* Of 01:80:c2:00:00:0X, which IEEE 802.1Q keeps from crossing a bridge, as bits X: those that do here. */
#define BRIDGE_RESERVED_STP \
	(1U << 0) /* we run no spanning tree: those that do are to see each other */
#define BRIDGE_RESERVED_MOST 0xfffdU /* all but -01, which is PAUSE and about one cable */
#define BRIDGE_RESERVED_ALL  0xffffU /* a wire */

struct bridge {
	GROUP_BEGIN_APART(setup);
	struct fdb *fdb;	  /* owned, as the next */
	struct storm *storm;	  /* of each worker. Owned */
	struct vlan_table *vlans; /* owned; NULL: tags are data */
	uint16_t reserved;
	uint16_t ports;
	uint16_t limited; /* Owner: main. Ports that have a storm limit, as bits */
	uint16_t blocked; /* Owner: main, as of `to`. What comes in there is dropped, as bits */
	uint16_t to
		[CONF_PORTS_MAX]; /* by the port that receives: where its frames may go, as bits */
	uint64_t own[CONF_PORTS_MAX]; /* MAC addresses of the ports' devices; 0: none */
	GROUP_END(setup);

	/* Owner: main. */
	GROUP_BEGIN(cold);
	uint16_t workers;
	uint16_t reach[CONF_PORTS_MAX]; /* what `to` is while no port is blocked */
	struct probes *probes;		/* of each worker. Owned */
	GROUP_END(cold);
};

ASSERT_GROUP(bridge, setup, 3);
ASSERT_GROUP(bridge, cold, 1);

struct bridge_opts {
	unsigned ports; /* 2 to CONF_PORTS_MAX */
	unsigned workers;
	uint32_t stations_max;
	uint32_t ageing_s; /* 0: stations do not age */
	uint16_t reserved;
	struct bridge_port_opts {
		bool hairpin;			   /* what it receives may leave by it */
		bool isolated;			   /* sends nothing to others that are */
		uint32_t learn_limit;		   /* UINT32_MAX: none */
		uint32_t storm_limit[STORM_KINDS]; /* frames a second; 0: none */
		const struct vlan_mode *vlan; /* of all ports, or of none: NULL, tags are data */
	} port[CONF_PORTS_MAX];
};

/* Main thread. Returns 0 with *result for bridge_free(), or -errno without a message: -ENOMEM, or
 * fdb_new()'s and probes_new()'s. */
int bridge_new(struct bridge **result, const struct bridge_opts *opts);

/* The workers have ended. NULL is fine. */
void bridge_free(struct bridge *bridge);

/* Sets the port's storm limits, in frames a second by kind; 0: none. Main thread, also while workers run. */
void bridge_limit(struct bridge *bridge, unsigned port, const uint32_t *limit);

/* Nothing that comes in on the port goes on or is learned, and nothing leaves by it; or again. Frames under way
 * may still do. Main thread. */
void bridge_block(struct bridge *bridge, unsigned port, bool block);

/* An address as bridge.own has it. */
static always_inline uint64_t bridge_mac(const uint8_t *mac)
{
	uint32_t head;
	uint16_t tail;

	memcpy(&head, mac, sizeof(head));
	memcpy(&tail, mac + sizeof(head), sizeof(tail));
	return (uint64_t)tail << 32 | head;
}

/* The port's device has this address now. Main thread. */
static inline void bridge_set_mac(struct bridge *bridge, unsigned port, const uint8_t *mac)
{
	store_relaxed(&bridge->own[port], bridge_mac(mac)); /* carries nothing but itself */
}
