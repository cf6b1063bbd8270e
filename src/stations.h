/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What operators ask of and tell the forwarding databases of the bridges that run: the commands fdb, fdb count,
 * fdb add, fdb del and fdb flush, as docs/control-protocol.md has them. Main thread, at no cost to the workers.
 */
#pragma once

#include <jansson.h>

#include "ctl/commands.h"
#include "fleet.h"

/*
 * Answers one of them, whose arguments are those of the command (command_check()). Entries come in pages, so
 * that the main thread is not held up: 4 ms for their text, and 2 for a table of 1,000,000. Returns the
 * result, a new reference; or NULL with one line in error, of error_size bytes: what is wrong and what to type.
 */
json_t *stations_answer(const struct fleet *fleet, enum command command, const json_t *arguments,
			char *error, size_t error_size);
