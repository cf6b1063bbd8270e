/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What this host has, for a configuration: read only, and without any capability. Main thread. */
#pragma once

#include "conf/conf.h"
#include "plan/facts.h"

/*
 * Looks up every port's device, and the CPUs that this process may run on. A device that is not there is
 * no failure: it is not `present`. Returns 0 with *host for facts_fini(), or -errno after a message.
 */
int facts_read(struct host_facts *host, const struct conf *conf);

/* Frees. A zeroed one is fine. */
void facts_fini(struct host_facts *host);
