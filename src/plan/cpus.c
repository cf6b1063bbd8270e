/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which worker runs on which CPU. */
#include <stdlib.h>

#include "base/number.h"
#include "plan/build.h"

static void place(struct plan_worker *worker, const struct cpu_facts *cpu)
{
	worker->cpu = cpu->cpu;
	worker->cpu_node = cpu->node;
}

/* The CPUs that were listed, in turn; each of them is allowed (build_checks()). */
static void place_listed(const struct build *build, struct plan_forward *forward, unsigned *uses)
{
	const struct number_list *cpus = &forward->conf->cpus;

	for (unsigned i = 0; i < forward->workers; i++) {
		for (unsigned j = 0; j < build->host->cpus; j++) {
			if (build->host->cpu[j].cpu != cpus->value[i % cpus->count])
				continue;
			place(&forward->worker[i], &build->host->cpu[j]);
			uses[j]++;
		}
	}
}

/* Workers on all hardware threads of a core. */
static unsigned core_uses(const struct host_facts *host, unsigned core, const unsigned *uses)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < host->cpus; i++) {
		if (host->cpu[i].core == core)
			sum += uses[i];
	}
	return sum;
}

/* Whether a worker does better on one CPU than on another: on that with fewer workers; else on that of
 * the NIC's node; else on that whose core has fewer, for two threads of a core share its speed. */
static bool better(const struct build *build, unsigned one, unsigned other, int node,
		   const unsigned *uses)
{
	const struct cpu_facts *cpu = build->host->cpu;

	if (uses[one] != uses[other])
		return uses[one] < uses[other];
	if (node >= 0 && (cpu[one].node == node) != (cpu[other].node == node))
		return cpu[one].node == node;
	return core_uses(build->host, cpu[one].core, uses) <
	       core_uses(build->host, cpu[other].core, uses);
}

/* The best CPU; of equal ones the first. */
static void place_one(const struct build *build, struct plan_forward *forward,
		      struct plan_worker *worker, unsigned *uses)
{
	int node = build_node(forward);
	unsigned best = 0;

	for (unsigned i = 1; i < build->host->cpus; i++) {
		if (better(build, i, best, node, uses))
			best = i;
	}
	place(worker, &build->host->cpu[best]);
	uses[best]++;
}

/* All the others, one worker of each forward in turn: where there are too few, none gets all the good ones. */
static void place_others(const struct build *build, unsigned *uses)
{
	bool more = true;

	for (unsigned round = 0; more; round++) {
		more = false;
		for (unsigned i = 0; i < build->plan->forwards; i++) {
			struct plan_forward *forward = &build->plan->forward[i];

			if (forward->conf->cpus.count || round >= forward->workers)
				continue;
			place_one(build, forward, &forward->worker[round], uses);
			more = true;
		}
	}
}

static bool runs_on(const struct plan_forward *forward, unsigned cpu)
{
	for (unsigned i = 0; i < forward->workers; i++) {
		if (forward->worker[i].cpu == cpu)
			return true;
	}
	return false;
}

/* A list is full of them long before it matters which are left out. */
static void add(struct number_list *list, unsigned value)
{
	if (list->count < NUMBER_LIST_MAX)
		list->value[list->count++] = value;
}

static void tell_shared(struct build *build, struct plan_forward *forward)
{
	const char *cpus_word = build_word(forward, "--cpus", "cpus");
	struct number_list used = { 0 };

	for (unsigned i = 0; i < build->host->cpus; i++) {
		if (runs_on(forward, build->host->cpu[i].cpu))
			add(&used, i);
	}
	if (used.count < forward->workers)
		build_say(build, PLAN_WARNING, forward, NULL,
			  "%u workers share %u CPU%s; give each its own with %s", forward->workers,
			  used.count, used.count == 1 ? "" : "s", cpus_word);
}

static void tell_shared_with(struct build *build, struct plan_forward *forward,
			     const struct plan_forward *other)
{
	struct number_list both = { 0 };
	char numbers[128];

	for (unsigned i = 0; i < build->host->cpus; i++) {
		unsigned cpu = build->host->cpu[i].cpu;

		if (runs_on(forward, cpu) && runs_on(other, cpu))
			add(&both, cpu);
	}
	if (!both.count)
		return;
	number_list_print(&both, numbers, sizeof(numbers));
	build_say(build, PLAN_WARNING, forward, NULL,
		  "workers of %s and of %s share CPU%s %s; give each its own with cpus",
		  other->conf->name, forward->conf->name, both.count == 1 ? "" : "s", numbers);
}

/* An allowed CPU of the node whose core has no worker, or NULL. */
static const struct cpu_facts *idle_core(const struct host_facts *host, int node,
					 const unsigned *uses)
{
	for (unsigned i = 0; i < host->cpus; i++) {
		if (host->cpu[i].node == node && !core_uses(host, host->cpu[i].core, uses))
			return &host->cpu[i];
	}
	return NULL;
}

/* Hardware threads of one core at work beside a core without any: only a list brings that about. */
static void tell_threads(struct build *build, struct plan_forward *forward, const unsigned *uses)
{
	const struct host_facts *host = build->host;
	const struct cpu_facts *idle = NULL;
	struct number_list both = { 0 };
	char numbers[128];

	for (unsigned i = 0; i < host->cpus; i++) {
		const struct cpu_facts *cpu = &host->cpu[i];
		const struct cpu_facts *spare = idle_core(host, cpu->node, uses);

		if (!spare || !runs_on(forward, cpu->cpu) ||
		    core_uses(host, cpu->core, uses) == uses[i])
			continue;
		add(&both, cpu->cpu);
		idle = spare;
	}
	if (!idle)
		return;
	number_list_print(&both, numbers, sizeof(numbers));
	build_say(build, PLAN_WARNING, forward, NULL,
		  "CPU%s %s: another thread of the core has a worker too, and they share its "
		  "speed, while the core of CPU %u has none; choose others with %s",
		  both.count == 1 ? "" : "s", numbers, idle->cpu,
		  build_word(forward, "--cpus", "cpus"));
}

/* The CPUs of one node that serve a port of another. */
static void tell_far(struct build *build, struct plan_forward *forward, unsigned index, int node)
{
	const struct plan_port *port = &forward->port[index];
	struct number_list far = { 0 };
	char numbers[128];

	for (unsigned i = 0; i < build->host->cpus; i++) {
		const struct cpu_facts *cpu = &build->host->cpu[i];

		if (cpu->node == node && runs_on(forward, cpu->cpu))
			add(&far, cpu->cpu);
	}
	number_list_print(&far, numbers, sizeof(numbers));
	build_say(build, PLAN_WARNING, forward, port,
		  "%s: the device is on node %d and CPU%s %s on node %d, so every frame crosses "
		  "between them; choose others with %s",
		  port->device.name, port->device.numa_node, far.count == 1 ? "" : "s", numbers,
		  node, build_word(forward, "--cpus", "cpus"));
}

static void tell_nodes(struct build *build, struct plan_forward *forward, unsigned index)
{
	int own = forward->port[index].device.numa_node;

	for (unsigned i = 0; own >= 0 && i < forward->workers; i++) {
		const struct plan_worker *worker = &forward->worker[i];
		bool told = worker->cpu_node < 0 || worker->cpu_node == own;

		for (unsigned j = 0; j < i; j++)
			told |= forward->worker[j].cpu_node == worker->cpu_node;
		if (!told)
			tell_far(build, forward, index, worker->cpu_node);
	}
}

void build_cpus(struct build *build)
{
	struct plan *plan = build->plan;
	unsigned *uses = calloc(build->host->cpus, sizeof(*uses));

	if (!uses) {
		build->no_memory = true;
		return;
	}
	for (unsigned i = 0; i < plan->forwards; i++) {
		if (plan->forward[i].conf->cpus.count)
			place_listed(build, &plan->forward[i], uses);
	}
	place_others(build, uses);
	for (unsigned i = 0; i < plan->forwards; i++) {
		struct plan_forward *forward = &plan->forward[i];

		tell_shared(build, forward);
		for (unsigned j = 0; j < i; j++)
			tell_shared_with(build, forward, &plan->forward[j]);
		tell_threads(build, forward, uses);
		for (unsigned j = 0; j < forward->ports; j++)
			tell_nodes(build, forward, j);
	}
	free(uses);
}
