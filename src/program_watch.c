/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "program_watch.h"

#include <stdio.h>

#include "base/log.h"
#include "xdp/external.h"
#include "xdp/opener.h"

/* The longest pause between two attempts: whoever makes room waits no longer. */
#define RETRY_MAX_NS (16 * NSEC_PER_SEC)

/* A program that stayed for so long is not being fought over: the next loss is mended at once. */
#define SETTLED_NS (60 * NSEC_PER_SEC)

struct look {
	uint64_t now_ns;
	bool ends;
};

/* What of an attempt was said before is not said again. */
static bool drop_line(enum log_level level, const char *text, void *context)
{
	(void)level, (void)text, (void)context;
	return true;
}

static int attach_again(struct port *port, char *rival)
{
	const struct prog_opts opts = {
		.ifname = port->netdev.name,
		.ifindex = port->netdev.ifindex,
		.queues = port->netdev.rx_queues,
		.attach = port->prog.native ? PROG_ATTACH_NATIVE : PROG_ATTACH_SKB,
		.replace = port->conf->replace,
	};
	int err;

	if (port->loss.said)
		log_capture(drop_line, NULL);
	err = opener_attach_again(&opts, &port->prog, rival);
	if (port->loss.said)
		log_capture(NULL, NULL);
	return err;
}

static const char *what_happened(enum prog_fate fate)
{
	return fate == PROG_REPLACED ? "replaced by another one" : "taken off the interface";
}

/* The first look that finds it lost. */
static void note_loss(struct port *port, enum prog_fate fate, uint64_t now_ns)
{
	struct port_loss *loss = &port->loss;
	bool fought_over = loss->back_ns && now_ns - loss->back_ns < SETTLED_NS;

	if (!fought_over)
		loss->wait_ns = 0;
	loss->since_ns = now_ns;
	loss->retry_ns = now_ns + loss->wait_ns;
	loss->said = false;
	port_state_fault(&port->states, PORT_FAULT_PROGRAM,
			 fate == PROG_REPLACED ?
				 "another XDP program was put in the place of ours" :
				 "the XDP program was taken off the interface",
			 now_ns);
}

static void put_off(struct port_loss *loss, uint64_t now_ns)
{
	loss->wait_ns = loss->wait_ns ? 2 * loss->wait_ns : PROGRAM_WATCH_NS;
	if (loss->wait_ns > RETRY_MAX_NS)
		loss->wait_ns = RETRY_MAX_NS;
	loss->retry_ns = now_ns + loss->wait_ns;
}

/* What is wrong, and why it cannot be mended now: the state tells it as long as it lasts, the log once. */
static void say_lost(struct port *port, int err, const char *rival, uint64_t now_ns)
{
	char reason[PORT_REASON_SIZE];
	char error[128];

	snprintf(error, sizeof(error), ERR_FORMAT, ERR_ARGS(err));
	snprintf(reason, sizeof(reason), "program lost: %.100s", rival[0] ? rival : error);
	port_state_fault(&port->states, PORT_FAULT_PROGRAM, reason, now_ns);
	if (!port->loss.said)
		log_error(
			"%s: program lost: our XDP program was taken off the interface, and frames go to the "
			"host; it is attached again as soon as that can be had: %s%s",
			port->netdev.name, rival[0] ? rival : error,
			rival[0] && !port->conf->replace && !port->prog.dispatched ?
				port->conf->line ? ", or set replace = yes" :
						   ", or start with --replace" :
				"");
	port->loss.said = true;
}

static void back(struct port *port, uint64_t now_ns)
{
	struct port_loss *loss = &port->loss;

	if (loss->said)
		log_info("%s: our XDP program is attached again, after %llu s", port->netdev.name,
			 (unsigned long long)((now_ns - loss->since_ns) / NSEC_PER_SEC));
	loss->since_ns = 0;
	loss->back_ns = now_ns;
	port_state_fault(&port->states, PORT_FAULT_PROGRAM, NULL, now_ns);
}

/* Its program was closed. */
static void forget(struct port *port, uint64_t now_ns)
{
	if (port->loss.since_ns)
		port_state_fault(&port->states, PORT_FAULT_PROGRAM, NULL, now_ns);
	port->loss = (struct port_loss){ 0 };
}

static void mend(struct port *port, enum prog_fate fate, uint64_t now_ns)
{
	struct port_loss *loss = &port->loss;
	char rival[PROG_RIVAL_SIZE];
	int err;

	if (now_ns < loss->retry_ns)
		return;
	err = attach_again(port, rival);
	put_off(loss, now_ns);
	if (err) {
		say_lost(port, err, rival, now_ns);
		return;
	}
	if (!loss->said)
		log_warning(
			"%s: program lost: our XDP program was %s, and is attached again; `bpftool net` and "
			"`bpftool link` show what else is there, on-program-lost = exit would end here",
			port->netdev.name, what_happened(fate));
	back(port, now_ns);
}

/* Somebody else's program is theirs to attach; without one nothing comes. */
static void look_at_external(struct port *port, uint64_t now_ns)
{
	struct port_loss *loss = &port->loss;
	bool there = external_there(port->netdev.ifindex);

	if (there && loss->since_ns) {
		log_info("%s: an XDP program is attached, after %llu s without", port->netdev.name,
			 (unsigned long long)((now_ns - loss->since_ns) / NSEC_PER_SEC));
		forget(port, now_ns);
		loss->back_ns = now_ns;
	} else if (!there && !loss->since_ns && !netdev_gone(port->netdev.ifindex)) {
		if (port->prog.id || loss->back_ns) /* else that was said when the map was opened */
			log_warning(
				"%s: program lost: no XDP program is attached, and with "
				"attach-method = external that is not ours to do; nothing comes "
				"to our sockets until yours is",
				port->netdev.name);
		loss->since_ns = now_ns;
		port_state_fault(&port->states, PORT_FAULT_PROGRAM,
				 "no XDP program is attached; load yours", now_ns);
	}
}

/* A dispatcher is another one when programs joined or left it: only then it is looked into, for which it takes
 * the helper. */
static enum prog_fate fate_in_dispatcher(struct port *port)
{
	uint32_t top;

	if (netdev_program_id(port->netdev.ifindex, &top) || (top && top == port->loss.top))
		return PROG_ATTACHED;
	port->loss.top = 0;
	if (!top)
		return PROG_DETACHED;
	if (opener_fd() < 0)
		return PROG_ATTACHED;
	if (opener_dispatched(port->netdev.name, port->netdev.ifindex, port->prog.id))
		return PROG_REPLACED;
	port->loss.top = top;
	return PROG_ATTACHED;
}

static void look_at(struct port *port, struct look *look)
{
	enum prog_fate fate =
		port->prog.dispatched ? fate_in_dispatcher(port) : prog_fate(&port->prog);
	bool lost = port->loss.since_ns;

	if (port->prog.external) {
		look_at_external(port, look->now_ns);
		return;
	}
	if (port->prog.prog_fd <= 0) { /* nothing of ours is there, or is to be now */
		forget(port, look->now_ns);
		return;
	}
	if (fate == PROG_ATTACHED) {
		if (lost)
			back(port, look->now_ns);
		return;
	}
	/* A device that goes takes its program along: that is told elsewhere. */
	if (netdev_gone(port->netdev.ifindex))
		return;
	if (!lost)
		note_loss(port, fate, look->now_ns);
	if (port->conf->on_program_lost == CONF_PROGRAM_LOST_REATTACH) {
		mend(port, fate, look->now_ns);
		return;
	}
	log_error("%s: program lost: our XDP program was %s; ending, for on-program-lost is exit",
		  port->netdev.name, what_happened(fate));
	look->ends = true;
}

bool program_watch_look(struct fleet *fleet)
{
	struct look look = { .now_ns = clock_now_ns() };

	for (unsigned i = 0; i < fleet->forwards; i++) {
		for (unsigned j = 0; j < fleet->forward[i]->ports; j++)
			look_at(&fleet->forward[i]->port[j], &look);
	}
	return look.ends;
}
