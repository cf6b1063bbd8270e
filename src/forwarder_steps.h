/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What opening, changing and closing a forwarder have in common; forwarder.c and forwarder_change.c. Main thread. */
#pragma once

#include "forwarder.h"

/* What the configuration says, or the mode where that says nothing. */
bool forwarder_wants_promiscuous(const struct forwarder *forwarder, const struct port *port);

/* Prepares the device and attaches its program, whose slots are empty. Returns 0, or -errno after a message. */
int forwarder_attach(const struct forwarder *forwarder, struct port *port);

/* The worker's socket on the port, where the plan has one. Returns likewise. */
int forwarder_open_lane(struct forwarder *forwarder, const struct plan_forward *plan,
			unsigned worker, unsigned port);

/* From here on frames come to the port's sockets. Returns likewise. */
int forwarder_open_slots(const struct forwarder *forwarder, unsigned port);

/* Says how a lane runs. */
void forwarder_announce(const struct forwarder *forwarder, unsigned worker, unsigned port);

/* Says what was wrong with a lane, of which its queue with the final counts and the socket's statistics tell. */
void forwarder_tell_lane(const struct forwarder *forwarder, unsigned worker, unsigned port,
			 const struct queue *queue);

/* Takes the port's program off its device: none of it runs any more. */
void forwarder_detach(struct port *port);

/* Lets go of what a port without sockets has on its device; it may get another one. A zeroed one is fine, as
 * for the next. */
void forwarder_release_device(struct port *port);

/* What is left of a port without sockets. */
void forwarder_close_port(struct port *port);

/* Frees a set of parameters and those before it. */
void forwarder_free_params(struct params *params);
