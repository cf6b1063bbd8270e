/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "loop_probe.h"

#include <string.h>

#include "base/clock.h"
#include "forwarder.h"
#include "fwd/probe.h"

/* The VLAN of a port's probe; 0: it has no tag. A trunk that takes no frame without one shows a loop in its
 * first VLAN. */
static uint16_t vlan_of(const struct vlan_mode *mode)
{
	unsigned vlan = 1;

	if (mode->kind != VLAN_MODE_TRUNK || mode->untagged)
		return 0;
	while (vlan < VLAN_MODE_MAX && !vlan_mode_has(mode, vlan))
		vlan++;
	return (uint16_t)vlan;
}

/* The first worker with a TX queue of the port's; their number if there is none now. */
static unsigned sender_of(const struct forwarder *forwarder, unsigned port)
{
	unsigned worker = 0;

	while (worker < forwarder->workers &&
	       (!forwarder->plan->worker[worker].lane[port].tx ||
		forwarder_lane(forwarder, worker, port)->xsk.fd <= 0))
		worker++;
	return worker;
}

/* What the worker is to send of this round. */
static void order(struct forwarder *forwarder, unsigned worker, const struct probe_round *round)
{
	struct probes *probes = &forwarder->bridge->probes[worker];
	bool any = false;

	if (!probes_begin(probes))
		return; /* it does not come round; others tell of that */
	for (unsigned i = 0; i < forwarder->ports; i++) {
		const struct port *port = &forwarder->port[i];

		/* Without a link they would wait on the ring, and all leave at once some time. */
		if (!port->served || port->states.link != PORT_STATE_UP ||
		    sender_of(forwarder, i) != worker)
			continue;
		probes_put(probes, round, port->netdev.mac, i, vlan_of(&port->conf->vlan));
		any = true;
	}
	if (!any)
		return;
	probes_order(probes);
	worker_rouse(forwarder->worker[worker]);
}

void loop_probe_send(struct forwarder *forwarder, uint64_t now_ns)
{
	struct loop_probe *probe = &forwarder->loop_probe;
	const uint64_t every_ns = forwarder->conf->loop_probe_s * NSEC_PER_SEC;
	struct probe_round round;

	/* Further away than that it was due when they were to be sent more seldom. */
	if (!every_ns || (now_ns < probe->next_ns && probe->next_ns - now_ns <= every_ns))
		return;
	/* A whole number of times after the last was due: looks that are late do not add up. */
	probe->next_ns += every_ns;
	if (probe->next_ns <= now_ns || probe->next_ns - now_ns > every_ns)
		probe->next_ns = now_ns + every_ns;
	round.sequence = ++probe->sequence;
	memcpy(round.id, forwarder->bridge->probes->id, PROBE_ID_LEN);
	for (unsigned i = 0; i < forwarder->workers; i++)
		order(forwarder, i, &round);
}

bool loop_probe_back(struct forwarder *forwarder, unsigned *out, unsigned *in)
{
	struct loop_probe *probe = &forwarder->loop_probe;

	for (unsigned i = 0; i < forwarder->workers; i++) {
		for (unsigned port = 0; port < forwarder->ports; port++) {
			struct probe seen;

			if (!probes_back(&forwarder->bridge->probes[i], port, &seen) ||
			    seen.port >= forwarder->ports ||
			    (int32_t)(seen.sequence - probe->told[port]) <= 0 ||
			    probe->sequence - seen.sequence >= LOOP_PROBE_ROUNDS)
				continue;
			probe->told[port] = seen.sequence;
			*out = seen.port;
			*in = port;
			return true;
		}
	}
	return false;
}

void loop_probe_forget(struct forwarder *forwarder)
{
	struct loop_probe *probe = &forwarder->loop_probe;

	for (unsigned i = 0; i < CONF_PORTS_MAX; i++)
		probe->told[i] = probe->sequence;
}
