/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What this host has, and whether it fits the configuration. Touches nothing. Main thread. */
#pragma once

#include "conf/conf.h"
#include "fwd/mode.h"
#include "xdp/netdev.h"

struct survey {
	const struct conf_forward *conf; /* borrowed */
	const struct mode *mode;
	unsigned ports;
	struct netdev netdev[CONF_PORTS_MAX]; /* as the configuration lists them */
	struct number_list queues;	      /* one worker each */
	struct number_list cpus;	      /* for the workers, in turn; at least one */
};

/*
 * Looks up every interface, and chooses queues and CPUs. *conf must outlive *survey. Returns 0, or
 * -errno after a message that names interface, queue, value, limit and what to type; *survey is then of
 * no use.
 */
int survey_host(struct survey *survey, const struct conf_forward *conf, const struct mode *mode);
