/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keeps a log readable when something goes on and on: of the lines of one kind, the first few in a minute
 * are let through, and the others are counted until the minute is over. Two lines are of one kind if
 * they say the same of the same thing: up to the first colon, which is behind the name of an interface
 * or a port, letter by letter; behind it with any numbers. Pure; its owner locks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/* Let through in each window. A port that goes and comes twice says less; fewer, and somebody who
 * tries something out sees only its beginning. */
#define REPEATS_LINES 10

/* The minute: a fault that lasts costs 11 lines of it, some 15,000 a day and kind. */
#define REPEATS_WINDOW_NS (60 * NSEC_PER_SEC)

/* Kinds that are followed at a time: 16 ports with four kinds each. One more is let through uncounted. */
#define REPEATS_KINDS 64

/* A longer line is cut where it is told again. */
#define REPEATS_TEXT_SIZE 512

struct repeats_kind {
	uint64_t hash;	   /* of what makes the kind */
	uint64_t began_ns; /* the window; 0: the place is free */
	unsigned passed;   /* lines let through in it */
	unsigned held;	   /* lines counted instead */
	int level;
	char text[REPEATS_TEXT_SIZE]; /* of the newest that was held */
};

struct repeats {
	struct repeats_kind kind[REPEATS_KINDS];
};

/* True: the line is to be written. False: it was counted. now_ns is of a clock that is never 0. */
bool repeats_pass(struct repeats *repeats, int level, const char *text, uint64_t now_ns);

/*
 * Ends the windows that are over, until one of them has held lines back: that one goes to *ended, for one line
 * that tells of them. Returns false when there is no other. now_ns UINT64_MAX ends all windows.
 */
bool repeats_end(struct repeats *repeats, uint64_t now_ns, struct repeats_kind *ended);
