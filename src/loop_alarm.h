/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tells a loop between two ports of a bridge: by the stations, for one frame that goes round makes its sender
 * move from port to port and back at every turn; or by a probe (loop_probe.h) that came back. Main thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "conf/conf.h"

/*
 * A loop is suspected where within a second at least LOOP_MOVES stations moved to one port, and as many to
 * another. People, and machines that fail over, move what is behind a cable one way: one move a station, all
 * to one port; it takes seconds until they move it back. Whoever walks about between two radio cells does it
 * in tens of seconds. A frame in a loop comes round thousands of times a second, or as often as a storm limit on
 * its way lets it. With 1, two machines that change places would be a loop; with 100, one that somebody's storm
 * limit of 100 slows down would be none.
 */
#define LOOP_MOVES 10

/* How often it is looked, and looks that make the second: an alarm is wanted within that. */
#define LOOP_LOOK_NS 250000000ULL
#define LOOP_LOOKS   4

/* So long without such moves, and without a blocked port, it is over, where probes are sent after that and one
 * more round of them. With less, a loop that a spanning tree opens and closes would be told again and again. */
#define LOOP_QUIET_NS 10000000000ULL

struct loop_alarm {
	uint64_t moves[LOOP_LOOKS][CONF_PORTS_MAX]; /* to each port until the last looks */
	uint64_t looks;
	uint64_t probe_ns; /* between two rounds of probes; 0: there are none */
	bool suspected;
	bool probed;	  /* by a probe, not by stations */
	unsigned port[2]; /* between which, the first of the plan first; a probe may know of one */
	uint64_t count;	  /* moves to both within the second */
	uint64_t seen_ns; /* when last */
	uint64_t back_ns; /* when a probe came back while one is blocked; 0: none did */
	bool blocked;	  /* ... and the second is blocked, */
	uint64_t blocked_until_ns; /* until then */
};

enum loop_event {
	LOOP_NOTHING,
	LOOP_SEEN,  /* stations flap, or a probe came back */
	LOOP_OVER,  /* there was nothing of that for long enough */
	LOOP_AGAIN, /* the port's time is over: it is not to be blocked any more */
	LOOP_STAYS, /* its time is over, and probes still come back: it is to be blocked on */
};

/* A look at the moves to each of `ports` ports so far. Pure. */
enum loop_event loop_alarm_look(struct loop_alarm *alarm, const uint64_t *moves, unsigned ports,
				uint64_t now_ns);

/* A probe out of one port came back on another, or on the same. Pure. */
enum loop_event loop_alarm_back(struct loop_alarm *alarm, unsigned out, unsigned in,
				uint64_t now_ns);

/* How long it takes until it is over. Pure. */
static inline uint64_t loop_alarm_quiet_ns(const struct loop_alarm *alarm)
{
	return LOOP_QUIET_NS + alarm->probe_ns;
}

/* The second port is blocked from now on. Pure. */
void loop_alarm_block(struct loop_alarm *alarm, uint64_t until_ns);

/* It is to be blocked for so long from now on at most; 0: not at all, probes or not. Pure. */
void loop_alarm_bound(struct loop_alarm *alarm, uint64_t block_ns, uint64_t now_ns);

struct fleet;

/* Looks at every bridge, and does what follows; every LOOP_LOOK_NS. Returns whether there is a bridge. */
bool loop_alarm_watch(const struct fleet *fleet);

/* A worker has written its done_fd: there may be probes that came back, which are told of at once. */
void loop_alarm_news(const struct fleet *fleet);
