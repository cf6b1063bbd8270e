/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A plan while it is made: what the files of plan/ share, and nobody else needs. */
#pragma once

#include "plan/plan.h"

struct build {
	const struct host_facts *host;
	struct plan *plan;
	bool no_memory; /* something could not be allocated: the plan is of no use */
};

/* Adds a message about a forward and, unless NULL, one of its ports; an error, or an absent device, means
 * that the forward will have no workers. */
void build_say(struct build *build, enum plan_level level, struct plan_forward *forward,
	       const struct plan_port *port, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* How this user spells a setting: as a flag, or as a key of the file that the forward stands in. */
static inline const char *build_word(const struct plan_forward *forward, const char *flag,
				     const char *key)
{
	return forward->conf->line ? key : flag;
}

/* NUMA node of the first port that has one; -1: none. */
int build_node(const struct plan_forward *forward);

/* Whether the ports can do what the forward asks of them. Only messages. */
void build_checks(struct build *build, struct plan_forward *forward);

/* Workers and their lanes; messages about queues. */
void build_workers(struct build *build, struct plan_forward *forward);

/* A CPU for each worker of every forward. */
void build_cpus(struct build *build);

/* UMEMs, and each worker's slice. */
void build_memory(struct build *build, struct plan_forward *forward);
