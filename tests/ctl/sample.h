/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A daemon that is none: two ports of one forward, two workers, every number another one. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "ctl/answer.h"
#include "fwd/mode.h"
#include "xdp/prog.h"

static const struct mode sample_mode = { .name = "patch" };

struct sample {
	struct report report;
	struct report_socket socket[2];
	struct report_program program[2];
	struct report_worker worker[2];
	struct report_port port[2];
	struct port_states states[2]; /* up for 3 s; gone for 2 s, up 3 s ago */
	struct control_facts facts;
	unsigned collected;   /* calls */
	unsigned reloads;     /* ... */
	unsigned set;	      /* ... */
	char set_port[64];    /* what the last one was */
	bool set_on;	      /* ... */
	unsigned errors;      /* that a reload finds */
	int confirm;	      /* what an operator who confirms is told */
	const char *plan;     /* text */
	size_t plan_is_large; /* bytes of it, if not 0 */
};

/* Fills every 64-bit word with a number that is nowhere else. */
static inline void sample_fill(void *words, size_t bytes, uint64_t first)
{
	for (size_t i = 0; i < bytes / sizeof(uint64_t); i++)
		((uint64_t *)words)[i] = first + i;
}

static inline void sample_port(struct sample *sample, unsigned i, const uint8_t *tag)
{
	sample->port[i] = (struct report_port){
		.port = i ? "lan" : "wan",
		.device = i ? "d1" : "d0",
		.driver = i ? "" : "veth",
		.ifindex = 7 + (int)i,
		.link = (enum report_link)i,
		.states = &sample->states[i],
		.now_ns = 10 * NSEC_PER_SEC,
		.served = !i,
		.mtu = 1500 + i,
		.rx_queues = 2 + i,
		.tx_queues = 4 + i,
		.native = true,
		.promiscuous = !i,
		.prog_id = 100 + i,
		.prog_name = "millrace",
		.prog_tag = tag,
		.copies = !i,
		.copy = { 31, 32, 33 },
		.bridged = !i,
		.fdb = { .stations = 41,
			 .fixed = 42,
			 .events = { [FDB_NEW] = 43, [FDB_MOVED] = 44, [FDB_FULL] = 45 },
			 .expired = 46,
			 .removed = 47 },
	};
}

static inline void sample_init(struct sample *sample)
{
	static const uint8_t tag[PROG_TAG_BYTES] = { 0xde, 0xca, 0xe0, 0x8c, 1, 0x45, 0x57, 7 };

	memset(sample, 0, sizeof(*sample));
	for (unsigned i = 0; i < 2; i++) {
		const char *name = i ? "lan" : "wan", *device = i ? "d1" : "d0";
		struct worker_counts *counts = &sample->worker[i].counts;

		sample->worker[i] = (struct report_worker){ .forward = "main",
							    .number = i,
							    .mode = &sample_mode,
							    .cpu = 4 + i,
							    .wait = (enum conf_wait)(1 + i),
							    .fresh = !i };
		*counts = (struct worker_counts){
			.total = 10000 + i, .pool = 5000, .reclaimed = 3 + i, .queues = 1
		};
		sample_fill(&counts->queue[0], sizeof(counts->queue[0]), 1000 * (i + 1));
		counts->queue[0].handed = 70 + i;
		counts->queue[0].hand_over = 60 + i;
		sample->socket[i] = (struct report_socket){ .interface = device,
							    .port = name,
							    .forward = "main",
							    .mode = &sample_mode,
							    .queue = i,
							    .worker = i,
							    .worker_number = i,
							    .native = true,
							    .zero_copy = i,
							    .need_wakeup = !i,
							    .busy_poll = (enum report_busy_poll)i,
							    .counts = &counts->queue[0] };
		sample_fill(&sample->socket[i].stats, sizeof(sample->socket[i].stats),
			    500 + 10 * i);
		sample->program[i] = (struct report_program){
			.interface = device,
			.seen = 70 + i,
			.passed = 80 + i,
			.departed = 85 + i,
			.unexplained = 90 + i,
		};
		sample->states[i] = (struct port_states){ 0 };
		(void)port_state_link(&sample->states[i], PORT_STATE_UP, "", 7 * NSEC_PER_SEC);
		if (i)
			(void)port_state_link(&sample->states[i], PORT_STATE_GONE, "deleted",
					      8 * NSEC_PER_SEC);
		sample_port(sample, i, tag);
	}
	sample->report = (struct report){ .elapsed_ns = 2500000000ULL,
					  .current = true,
					  .sockets = 2,
					  .programs = 2,
					  .workers = 2,
					  .ports = 2,
					  .socket = sample->socket,
					  .program = sample->program,
					  .worker = sample->worker,
					  .port = sample->port };
	sample->facts = (struct control_facts){ .state = "running",
						.version = "1.2",
						.uptime_ns = 12345 * NSEC_PER_MSEC,
						.generation = 5 };
	sample->plan = "worker 0: d0\n";
}

static void sample_facts(void *context, struct control_facts *facts)
{
	*facts = ((struct sample *)context)->facts;
}

static const struct report *sample_collect(void *context)
{
	((struct sample *)context)->collected++;
	return &((struct sample *)context)->report;
}

static json_t *sample_rules_json(void *context)
{
	(void)context;
	return json_pack("[{s:s,s:s,s:n,s:b,s:i}]", "port", "wan", "rule", "tcp dport 22", "class",
			 "both", 0, "frames", 7);
}

static json_t *sample_plan_json(void *context)
{
	(void)context;
	return json_object();
}

static char *sample_plan_text(void *context)
{
	const struct sample *sample = context;
	char *text = sample->plan_is_large ? malloc(sample->plan_is_large + 1) : NULL;

	if (!sample->plan_is_large)
		return strdup(sample->plan);
	memset(text, 'x', sample->plan_is_large);
	text[sample->plan_is_large] = '\0';
	return text;
}

static int sample_reload(void *context, json_t *errors)
{
	struct sample *sample = context;

	sample->reloads++;
	for (unsigned i = 0; i < sample->errors; i++)
		json_array_append_new(errors, json_string("a.conf:3: port wan: no such key"));
	sample->facts.generation += !sample->errors;
	return sample->errors ? -22 : 0;
}

static int sample_set(void *context, const char *port, bool on, char *error, size_t error_size)
{
	struct sample *sample = context;

	sample->set++;
	sample->set_on = on;
	snprintf(sample->set_port, sizeof(sample->set_port), "%s", port);
	if (strcmp(port, "wan") == 0)
		return 0;
	snprintf(error, error_size, "port '%s': there is none of that name", port);
	return -2;
}

static json_t *sample_fdb(void *context, enum command command, const json_t *arguments, char *error,
			  size_t error_size)
{
	const char *port = json_string_value(json_object_get(arguments, "port"));

	(void)context;
	if (!port || strcmp(port, "none") != 0)
		return json_pack("{s:s}", "asked", command_row(command)->name);
	snprintf(error, error_size, "port 'none': there is none of that name");
	return NULL;
}

static int sample_confirm(void *context)
{
	struct sample *sample = context;

	sample->facts.confirmed |= !sample->confirm;
	return sample->confirm;
}

static const struct control_ops sample_ops = {
	sample_facts,  sample_collect, sample_rules_json, sample_plan_json, sample_plan_text,
	sample_reload, sample_set,     sample_fdb,	  sample_confirm
};
