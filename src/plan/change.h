/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What it takes to go from one plan to another. Pure; any thread. */
#pragma once

#include "plan/plan.h"

enum plan_change {
	PLAN_CHANGE_NONE,
	PLAN_CHANGE_PARAMS,  /* wait, batch, CPUs, promiscuous: the workers run on */
	PLAN_CHANGE_REBUILD, /* other queues, devices, memory: stop and start anew */
};

/* How far two forwards of one name are apart. Both are complete. */
enum plan_change plan_compare(const struct plan_forward *before, const struct plan_forward *after);

/* True if a device is a port of both. */
bool plan_shares_device(const struct plan_forward *one, const struct plan_forward *other);
