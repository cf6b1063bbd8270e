/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The receiving end of a hand-over: see handover.h. Owner: the receiving worker's thread; the main thread
 * fills it in before that starts. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fwd/chunks.h"
#include "fwd/handover.h"

struct worker;

struct inlet {
	struct ring in;		   /* descriptors of the sender's frames */
	struct ring back;	   /* their addresses, on their way home */
	struct chunks chunks;	   /* the sender's: where its frames are. Only read. */
	uint16_t port;		   /* whose TX ring they go to */
	bool held;		   /* some wait for room on it */
	struct handover *handover; /* owned */
};

/*
 * Copies up to a batch of packets into frames of the worker's own and puts them on the port's TX ring,
 * whole or not at all; where there is no room they stay, and where the device is down they are dropped
 * and counted there (link_down). Worker's thread, in every pass. Returns the descriptors.
 */
uint32_t inlet_burst(struct worker *worker, struct inlet *inlet);
