/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The probes of a bridge (fwd/probe.h): when they are sent, by which workers, and which came back. Main thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "conf/conf.h"

/* How many rounds ago one may have gone out that comes back: the one before, if it did just before the next.
 * What is older did not go round a loop, but was recorded and sent again. */
#define LOOP_PROBE_ROUNDS 2

struct loop_probe {
	uint64_t next_ns;  /* the next round; 0: the first */
	uint32_t sequence; /* of the newest round; 0: there was none */
	uint32_t told
		[CONF_PORTS_MAX]; /* by the port where it came in: of the last one that was told of */
};

struct forwarder;

/* Has a probe sent out of every port that is up, if it is time. A port that is blocked too: that is how one knows
 * whether there still is a loop. Nothing while the configuration wants none; how often may change at any time. */
void loop_probe_send(struct forwarder *forwarder, uint64_t now_ns);

/* True if a probe came back that was not told of yet, with the ports where it went out and where it came in. */
bool loop_probe_back(struct forwarder *forwarder, unsigned *out, unsigned *in);

/* Those that have gone out so far are not told of any more. */
void loop_probe_forget(struct forwarder *forwarder);
