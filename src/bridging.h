/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What makes a forward whose ports are those of a bridge one: the stations, and their time. Main thread. */
#pragma once

#include <stdbool.h>

#include "fleet.h"
#include "fwd/fdb.h"

/* Makes the bridge of a forwarder whose plan wants one; of others nothing. Before its workers. Returns 0, or
 * -errno after a message. */
int bridging_open(struct forwarder *forwarder);

/* The worker forwards by it. Before its thread starts. */
void bridging_give(const struct forwarder *forwarder, struct worker *worker, unsigned index);

/* The forwarder's conf is another one, whose bridge has the same ports: what can change in a running bridge is
 * taken from it. Entries that the one before had, and it has not, go. */
void bridging_apply(const struct forwarder *forwarder, const struct conf_forward *before);

/* The port's device is there, with its address now; or is gone, and nothing is behind it any more. */
void bridging_port_came(const struct forwarder *forwarder, unsigned port);
void bridging_port_left(const struct forwarder *forwarder, unsigned port);

/* The port is blocked, and nothing that was learned is behind it any more; or it is not. */
void bridging_block(const struct forwarder *forwarder, unsigned port, bool block);

/* What the bridge that a port of the fleet belongs to has learned there. False, and nothing is written, if it
 * belongs to none. */
bool bridging_counts(const struct fleet *fleet, const struct port *port, struct fdb_counts *counts);

/* For every bridge: stations that are silent for too long are forgotten, those that move are told of. Once a
 * second. */
void bridging_tick(const struct fleet *fleet);
