/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who does what: which worker serves which queue of which port, on which CPU, from which memory; and all
 * that an operator should know before. Made of configuration and host facts alone: no socket, no file, no
 * log. Any thread.
 *
 * One worker serves one queue number on every port of its forward; where they cross is a lane.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "conf/conf.h"
#include "plan/facts.h"

/* The most frames that one UMEM is asked to have: their numbers are 32 bits, and so are its sizes in
 * structs of the kernel's that count chunks. */
#define PLAN_UMEM_FRAMES_MAX (1U << 28)

/* Nobody to hand to. */
#define PLAN_NOBODY (-1)

struct plan_lane {
	bool rx;     /* serves the RX queue of the worker's number */
	bool tx;     /* has the TX queue of that number to itself */
	int hand_to; /* no TX queue, and frames to send here: the worker that sends them; else
		      * PLAN_NOBODY */
};

struct plan_worker {
	unsigned queue; /* number, the same on every port */
	unsigned cpu;
	int cpu_node;	      /* -1: not told */
	unsigned umem;	      /* index into the forward's */
	uint32_t first_frame; /* of its slice of the UMEM */
	uint32_t frames;
	unsigned lanes;			       /* those with rx or tx: at least one */
	struct plan_lane lane[CONF_PORTS_MAX]; /* by port of the forward */
};

struct plan_umem {
	uint32_t frames;
	uint32_t frame_size; /* bytes */
	int numa_node;	     /* where its pages should be; -1: anywhere */
	uint64_t bytes;	     /* that are locked for it */
};

struct plan_port {
	const struct conf_port *conf; /* borrowed */
	struct netdev device;
};

struct plan_forward {
	const struct conf_forward *conf; /* borrowed */
	bool complete; /* nothing absent, no error: there are workers. Else there are none. */
	unsigned ports;
	struct plan_port port[CONF_PORTS_MAX]; /* as the configuration lists them */
	unsigned workers;
	struct plan_worker *worker;
	unsigned umems; /* one a worker, or one */
	struct plan_umem *umem;
	uint64_t locked_bytes; /* of all of them */
};

enum plan_level {
	PLAN_ERROR,   /* cannot be done on this host */
	PLAN_ABSENT,  /* a device is not there: the caller decides whether that is an error */
	PLAN_WARNING, /* can be done, and is likely not what was meant */
	PLAN_NOTE,    /* good to know */
};

struct plan_message {
	enum plan_level level;
	const struct conf_forward *forward; /* that it is about, borrowed */
	const struct conf_port *port;	    /* likewise; NULL: about no single one */
	char *text;			    /* one line; begins with what it is about */
};

struct plan {
	unsigned forwards;
	struct plan_forward *forward; /* as the configuration lists them */
	unsigned messages;
	struct plan_message *message;
};

/*
 * Makes a plan; *conf must outlive it, *host need not. host->device[i] is what conf->port[i] names. Returns
 * 0 with *result for plan_free(), whatever its messages say; or -ENOMEM.
 */
int plan_make(const struct conf *conf, const struct host_facts *host, struct plan **result);

/* NULL is fine. */
void plan_free(struct plan *plan);

/* How many messages of the level there are. */
unsigned plan_count(const struct plan *plan, enum plan_level level);

/* True if the mode sends what comes in on a port `from` out of a port `to` of the same forward. */
bool plan_sends(enum conf_mode mode, unsigned from, unsigned to);

/* What a mode does, and its name as users spell it. Static. */
struct plan_mode {
	const char *name;
	bool receives, sends;
	bool back;   /* what a port receives leaves by that port, */
	bool across; /* by the others */
	bool shares; /* by default the host gets its own frames, and these alone: `pass = default` */
};

const struct plan_mode *plan_mode_of(enum conf_mode mode);

/* "error", "absent", "warning" or "note". Static. */
const char *plan_level_name(enum plan_level level);

/* "link", "dispatcher", "external". Static. */
const char *plan_attach_method(enum conf_attach_method method);

/* Writes a plan for people, in aligned lines. Returns 0, or -errno of what `out` said. */
int plan_text(FILE *out, const struct plan *plan);

/* Writes it as one JSON object and a newline, docs/plan-json.md. Returns likewise, or -ENOMEM. */
int plan_json(FILE *out, const struct plan *plan);
