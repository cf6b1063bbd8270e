/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Copies of the frames that the host and the wire both need: XDP can give a frame to one of them only, so
 * the program gives it to the host, and here it is read from a packet socket and sent on.
 *
 *	NIC -> XDP program -> host's stack          (MILLRACE_BOTH)
 *	                        `-> packet socket -> mirror -> packet socket of the other port -> NIC
 *
 * Of patches only: elsewhere there is no port where a copy would go, or several; a bridge forwards such frames
 * and its host is to be behind a port of it. Each port has one socket, read in the
 * daemon's loop in the order in which the frames came. They leave through the other port's queueing discipline,
 * which waits where its card is busy, and may let frames of one flow overtake those of another; a card whose
 * transmit queues are chosen by CPU (XPS) keeps the order as long as the main thread stays on one. At most
 * MIRROR_RATE a second; what comes faster finds no room in the socket and is dropped there, uncopied: the main
 * thread does no work for it. Main thread.
 */
#pragma once

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "ctl/report.h"
#include "fleet.h"

/*
 * Copies a second and port, and how many at once after a pause. Routers advertise, hosts solicit and answer
 * queries some times a second; ARP of a network of a thousand hosts is a few hundred a second, after a power
 * cut in bursts. A copy costs the main thread 25 to 45 us between veths on a virtual machine, the far end's
 * receiving in it, so at this rate up to a twentieth of a core; ten times as many would keep it from answering
 * operators, ten times fewer would delay such a network's ARP.
 */
#define MIRROR_RATE  1000
#define MIRROR_BURST 128

struct mirror;

struct mirrors {
	struct fleet *fleet; /* borrowed */
	sd_event *loop;	     /* borrowed; NULL: not started */
	sd_event_source *look;
	struct mirror **mirror; /* owned, as each of them */
	unsigned count;
	struct packet *packet; /* the one in hand; owned */
};

/*
 * Opens sockets for the ports that there are, and from then on for those that come, go or change what they
 * pass, whoever made them so: it looks after each turn of the loop in which something happened. A port whose
 * socket cannot be had, which is said, forwards such frames and does not give them to the host. Returns 0, or
 * -errno.
 */
int mirrors_start(struct mirrors *mirrors, struct fleet *fleet, sd_event *loop);

/* What was copied of the frames of a port. False: of this one none ever is. */
bool mirrors_counts(struct mirrors *mirrors, const struct port *port, struct report_copies *copies);

/* What was taken goes out, then the sockets are closed. Right before the fleet is stopped, and after this its
 * ports forward nothing that both need. A zeroed one is fine. */
void mirrors_close(struct mirrors *mirrors);
