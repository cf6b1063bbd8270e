/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Results of the control socket as text for people. They come from a daemon that may be of another
 * version: a member that is missing is printed as nothing. Any thread.
 */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "ctl/commands.h"

/*
 * Prints the result of a command. `before` is the result of the same command an interval ago, for rates;
 * NULL: none. Of one
 * that comes in pages it is the page before, NULL: this is the first. Returns 0, or -ENOMEM. Whether the stream took it is for the caller to ask.
 */
int people_print(FILE *out, enum command command, const json_t *result, const json_t *before);
