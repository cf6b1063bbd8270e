/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From a configuration to a plan for this host, and what people are told of it. Changes nothing on the host
 * and needs no capability. Main thread. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "conf/conf.h"
#include "fleet.h"
#include "plan/plan.h"

/* Looks at the host and makes a plan; *conf must outlive it. What `running` (NULL: nothing) has done to its
 * devices is left out of account. Says nothing of what is in it. Returns 0 with *plan for plan_free(), or
 * -errno after a message. */
int planner_make(const struct conf *conf, const struct fleet *running, struct plan **plan);

/*
 * Logs what stands against the plan, for a run: errors, absent devices among them, if there are any (for
 * flags the first of them); else warnings, and names that stand for others. No notes: what they announce is
 * logged where it is done. Returns 0 if the plan can be carried out, else -ENODEV or -EINVAL.
 */
int planner_judge(const struct plan *plan);

/* The same for a check: everything is logged, notes too, and an absent device is a warning only. Returns 0
 * or -EINVAL. */
int planner_check(const struct plan *plan);

/* Makes a plan, prints it for people or as JSON, and returns the exit status: 0, or 1 if it has errors or
 * nothing could be printed. An absent device is no error here. */
int planner_show(const struct conf *conf, FILE *out, bool json);
