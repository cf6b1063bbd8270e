/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "plan/plan.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "plan/build.h"

const struct plan_mode *plan_mode_of(enum conf_mode mode)
{
	static const struct plan_mode modes[] = {
		/*		     name      receives sends back across shares */
		[CONF_MODE_RXDROP] = { "rxdrop", true, false, false, false, false },
		[CONF_MODE_TXPUSH] = { "txpush", false, true, false, false, false },
		[CONF_MODE_L2FWD] = { "l2fwd", true, true, true, false, false },
		[CONF_MODE_PATCH] = { "patch", true, true, false, true, true },
		/* A port with hairpin sends what it receives. */
		[CONF_MODE_BRIDGE] = { "bridge", true, true, true, true, true },
	};

	return &modes[mode];
}

bool plan_sends(enum conf_mode mode, unsigned from, unsigned to)
{
	const struct plan_mode *row = plan_mode_of(mode);

	return from == to ? row->back : row->across;
}

const char *plan_level_name(enum plan_level level)
{
	static const char *const names[] = {
		[PLAN_ERROR] = "error",
		[PLAN_ABSENT] = "absent",
		[PLAN_WARNING] = "warning",
		[PLAN_NOTE] = "note",
	};

	return names[level];
}

unsigned plan_count(const struct plan *plan, enum plan_level level)
{
	unsigned count = 0;

	for (unsigned i = 0; i < plan->messages; i++)
		count += plan->message[i].level == level;
	return count;
}

void build_say(struct build *build, enum plan_level level, struct plan_forward *forward,
	       const struct plan_port *port, const char *format, ...)
{
	struct plan *plan = build->plan;
	struct plan_message *grown =
		reallocarray(plan->message, plan->messages + 1, sizeof(*plan->message));
	struct plan_message message = {
		.level = level,
		.forward = forward->conf,
		.port = port ? port->conf : NULL,
	};
	va_list args;
	int len;

	if (level == PLAN_ERROR || level == PLAN_ABSENT)
		forward->complete = false;
	if (grown)
		plan->message = grown;
	va_start(args, format);
	len = grown ? vasprintf(&message.text, format, args) : -1;
	va_end(args);
	if (len < 0)
		build->no_memory = true;
	else
		plan->message[plan->messages++] = message;
}

int build_node(const struct plan_forward *forward)
{
	for (unsigned i = 0; i < forward->ports; i++) {
		if (forward->port[i].device.numa_node >= 0)
			return forward->port[i].device.numa_node;
	}
	return -1;
}

static void slice(struct plan_worker *worker, unsigned umem, uint32_t first)
{
	worker->umem = umem;
	worker->first_frame = first;
}

void build_memory(struct build *build, struct plan_forward *forward)
{
	const struct conf_forward *conf = forward->conf;
	uint64_t frames = 0;

	assert(forward->workers); /* a forward has ports, and a port has queues */
	for (unsigned i = 0; i < forward->workers; i++) {
		struct plan_worker *worker = &forward->worker[i];

		worker->frames = conf->frames_per_queue * worker->lanes;
		slice(worker, conf->shared_umem ? 0 : i, conf->shared_umem ? (uint32_t)frames : 0);
		frames += worker->frames;
	}
	if (conf->shared_umem && frames > PLAN_UMEM_FRAMES_MAX) {
		build_say(build, PLAN_ERROR, forward, NULL,
			  "%s: %llu frames are more than one UMEM takes (%u); lower %s, or leave "
			  "out %s",
			  build_word(forward, "-M", "shared-umem"), (unsigned long long)frames,
			  PLAN_UMEM_FRAMES_MAX,
			  build_word(forward, "--frames-per-queue", "frames-per-queue"),
			  build_word(forward, "-M", "shared-umem"));
		return;
	}
	forward->umems = conf->shared_umem ? 1 : forward->workers;
	forward->umem = calloc(forward->umems, sizeof(*forward->umem));
	if (!forward->umem) {
		build->no_memory = true;
		return;
	}
	for (unsigned i = 0; i < forward->umems; i++) {
		struct plan_umem *umem = &forward->umem[i];

		umem->frames = conf->shared_umem ? (uint32_t)frames : forward->worker[i].frames;
		umem->frame_size = conf->frame_size;
		umem->numa_node = build_node(forward);
		umem->bytes = (uint64_t)umem->frames * umem->frame_size;
		forward->locked_bytes += umem->bytes;
	}
}

static void take_forward(struct build *build, const struct conf *conf, unsigned index)
{
	struct plan_forward *forward = &build->plan->forward[index];

	forward->conf = &conf->forward[index];
	forward->complete = true;
	forward->ports = forward->conf->ports;
	for (unsigned i = 0; i < forward->ports; i++) {
		forward->port[i].conf = forward->conf->port[i];
		forward->port[i].device = build->host->device[forward->port[i].conf - conf->port];
	}
}

/* What was begun for a forward before something was found to be wrong with it. */
static void drop_workers(struct plan_forward *forward)
{
	free(forward->worker);
	free(forward->umem);
	forward->worker = NULL;
	forward->umem = NULL;
	forward->workers = forward->umems = 0;
	forward->locked_bytes = 0;
}

int plan_make(const struct conf *conf, const struct host_facts *host, struct plan **result)
{
	struct plan *plan = calloc(1, sizeof(*plan));
	struct build build = { .host = host, .plan = plan };

	*result = NULL;
	if (plan)
		plan->forward = calloc(conf->forwards, sizeof(*plan->forward));
	if (!plan || !plan->forward) {
		plan_free(plan);
		return -ENOMEM;
	}
	plan->forwards = conf->forwards;
	for (unsigned i = 0; i < plan->forwards; i++)
		take_forward(&build, conf, i);
	for (unsigned i = 0; i < plan->forwards; i++)
		build_checks(&build, &plan->forward[i]);
	for (unsigned i = 0; i < plan->forwards; i++) {
		struct plan_forward *forward = &plan->forward[i];

		if (forward->complete)
			build_workers(&build, forward);
		if (forward->complete && !build.no_memory)
			build_memory(&build, forward);
		if (!forward->complete)
			drop_workers(forward);
	}
	if (!build.no_memory)
		build_cpus(&build);
	if (build.no_memory) {
		plan_free(plan);
		return -ENOMEM;
	}
	*result = plan;
	return 0;
}

void plan_free(struct plan *plan)
{
	if (!plan)
		return;
	for (unsigned i = 0; i < plan->forwards; i++)
		drop_workers(&plan->forward[i]);
	for (unsigned i = 0; i < plan->messages; i++)
		free(plan->message[i].text);
	free(plan->message);
	free(plan->forward);
	free(plan);
}
