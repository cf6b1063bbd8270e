/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Results of the commands status, stats and ports as JSON; docs/control-protocol.md has their fields. Each
 * returns a new reference, or NULL without memory. Main thread.
 */
#pragma once

#include <jansson.h>

#include "ctl/answer.h"

json_t *answer_status_json(const struct control_facts *facts, const struct report *report);
json_t *answer_stats_json(const struct report *report);

/* Of the wait of --confirm; JSON's null if none was asked for. */
json_t *answer_confirm_json(const struct control_facts *facts);

/* The array alone. */
json_t *answer_ports_json(const struct report *report);
