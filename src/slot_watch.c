/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "slot_watch.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"

/* Who empties a slot each second is worth a line a minute. */
#define SAY_AGAIN_NS (60 * NSEC_PER_SEC)

/* What is looked at. */
struct look {
	const struct forwarder *forwarder;
	struct port *port;
	unsigned number; /* of the port */
	uint64_t now_ns;
	char reason[PORT_REASON_SIZE]; /* "": nothing is wrong so far */
};

/* A socket of another queue or device; -1: there is none. */
static int probe_of(const struct forwarder *forwarder, const struct lane *lane)
{
	for (unsigned i = 0; i < forwarder->workers; i++) {
		for (unsigned j = 0; j < forwarder->ports; j++) {
			const struct lane *other = forwarder_lane(forwarder, i, j);

			if (other != lane && other->xsk.fd > 0)
				return other->xsk.fd;
		}
	}
	return -1;
}

static void note_emptied(struct look *look, struct lane *lane, unsigned queue)
{
	struct lane_slot *slot = &lane->slot;

	slot->emptied++;
	snprintf(
		look->reason, sizeof(look->reason),
		"somebody emptied the XSKMAP slot of q%u, which is filled again; %llu times so far",
		queue, (unsigned long long)slot->emptied);
	if (slot->said_ns && look->now_ns - slot->said_ns < SAY_AGAIN_NS)
		return;
	slot->said_ns = look->now_ns;
	log_warning("%s q%u: somebody emptied its slot in our XSKMAP, so that frames went to the "
		    "host; it is filled again, %llu times so far; `bpftool map` shows the map",
		    look->port->netdev.name, queue, (unsigned long long)slot->emptied);
}

static void note_stolen(struct look *look, struct lane *lane, unsigned queue)
{
	snprintf(look->reason, sizeof(look->reason),
		 "somebody else's socket is in the XSKMAP slot of q%u, whose frames it gets",
		 queue);
	if (!lane->slot.stolen)
		log_error("%s q%u: somebody else's socket is in its slot of our XSKMAP, so that "
			  "frames do not come to us; it is left alone: end its owner, and ours "
			  "is put back",
			  look->port->netdev.name, queue);
	lane->slot.stolen = true;
}

static void look_at_lane(struct look *look, unsigned worker)
{
	const struct forwarder *forwarder = look->forwarder;
	struct lane *lane = forwarder_lane(forwarder, worker, look->number);
	unsigned queue = forwarder->worker[worker]->number;
	int found;

	if (!forwarder->plan->worker[worker].lane[look->number].rx || lane->xsk.fd <= 0)
		return;
	found = prog_slot_keep(&look->port->prog, queue, lane->xsk.fd, probe_of(forwarder, lane));
	if (found == PROG_SLOT_EMPTIED)
		note_emptied(look, lane, queue);
	else if (found == PROG_SLOT_STOLEN)
		note_stolen(look, lane, queue);
	if (found != PROG_SLOT_OURS && found != PROG_SLOT_EMPTIED)
		return;
	if (lane->slot.stolen)
		log_info("%s q%u: our socket is in its slot of the XSKMAP again",
			 look->port->netdev.name, queue);
	lane->slot.stolen = false;
}

static void look_at_port(struct forwarder *forwarder, unsigned number, uint64_t now_ns)
{
	struct look look = { forwarder, &forwarder->port[number], number, now_ns, "" };

	if (!look.port->served || look.port->prog.xsks_fd <= 0)
		return;
	for (unsigned i = 0; i < forwarder->workers; i++)
		look_at_lane(&look, i);
	if (look.reason[0] || look.port->slots_wrong)
		port_state_fault(&look.port->states, PORT_FAULT_SLOTS,
				 look.reason[0] ? look.reason : NULL, now_ns);
	look.port->slots_wrong = look.reason[0];
}

void slot_watch_look(struct fleet *fleet)
{
	uint64_t now_ns = clock_now_ns();

	for (unsigned i = 0; i < fleet->forwards; i++) {
		for (unsigned j = 0; j < fleet->forward[i]->ports; j++)
			look_at_port(fleet->forward[i], j, now_ns);
	}
}
