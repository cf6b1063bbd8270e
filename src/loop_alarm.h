/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tells a loop between two ports of a bridge by the stations: one frame that goes round makes its sender move
 * from port to port and back at every turn. Main thread.
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

/* So long without such moves, and without a blocked port, it is over. With less, a loop that a spanning tree
 * opens and closes would be told again and again. */
#define LOOP_QUIET_NS 10000000000ULL

struct loop_alarm {
	uint64_t moves[LOOP_LOOKS][CONF_PORTS_MAX]; /* to each port until the last looks */
	uint64_t looks;
	bool suspected;
	unsigned port[2];	   /* between which, the first of the plan first */
	uint64_t count;		   /* moves to both within the second */
	uint64_t seen_ns;	   /* when last */
	bool blocked;		   /* ... and the second is blocked, */
	uint64_t blocked_until_ns; /* until then */
};

enum loop_event {
	LOOP_NOTHING,
	LOOP_SEEN,  /* stations flap */
	LOOP_OVER,  /* they have not for long enough */
	LOOP_AGAIN, /* the port's time is over: it is not to be blocked any more */
};

/* A look at the moves to each of `ports` ports so far. Pure. */
enum loop_event loop_alarm_look(struct loop_alarm *alarm, const uint64_t *moves, unsigned ports,
				uint64_t now_ns);

/* The second port is blocked from now on. Pure. */
void loop_alarm_block(struct loop_alarm *alarm, uint64_t until_ns);

struct fleet;

/* Looks at every bridge, and does what follows; every LOOP_LOOK_NS. Returns whether there is a bridge. */
bool loop_alarm_watch(const struct fleet *fleet);
