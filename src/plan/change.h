/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What it takes to go from one plan to another. Pure; any thread. */
#pragma once

#include "plan/plan.h"

enum plan_change {
	PLAN_CHANGE_NONE,
	/* wait, batch, CPUs, promiscuous, pass, on-program-lost; of a bridge ageing, loop-probe, loop-block,
	 * learn-limit, storm limits, [fdb]: the workers run on */
	PLAN_CHANGE_PARAMS,
	PLAN_CHANGE_PORTS, /* ports come or go beside others that receive on; perhaps parameters */
	PLAN_CHANGE_REBUILD, /* other queues, devices, memory: stop and start anew */
};

/*
 * How far two forwards of one name are apart. Both are complete. Single ports come and go where no port sends
 * what another receives (rxdrop), one of them stays, the queue numbers stay the same over all ports, and
 * the workers' memory is enough for the ports to come.
 */
enum plan_change plan_compare(const struct plan_forward *before, const struct plan_forward *after);

/* Of PLAN_CHANGE_PORTS: the number that the new forward's port has in the old one; PLAN_NOBODY: it comes. */
int plan_port_before(const struct plan_forward *before, const struct plan_forward *after,
		     unsigned port);

/* The workers of `before` run on as those of `after`, with the memory they have: this is noted there. */
void plan_keep_memory(struct plan_forward *after, const struct plan_forward *before);

/*
 * With our program on it a driver may have more queues, which it sends XDP frames on and shows like the
 * others (virtio). They are no change of the device: if it has *now just what it had once the program was
 * `attached`, it is made to have what it had `before`.
 */
void plan_leave_out_ours(struct netdev *now, const struct netdev *before,
			 const struct netdev_queues *attached);

/* True if a device is a port of both. */
bool plan_shares_device(const struct plan_forward *one, const struct plan_forward *other);
