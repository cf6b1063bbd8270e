/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "ctl/answer_json.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "ctl/report_json.h"
#include "xdp/prog.h"

/* Times are seconds wherever people may read them. */
static json_t *seconds_json(uint64_t ns)
{
	return json_real((double)ns / (double)NSEC_PER_SEC);
}

static json_t *program_json(const struct report_port *port)
{
	json_t *object = json_object();
	char tag[2 * PROG_TAG_BYTES + 1] = "";

	for (int i = 0; i < PROG_TAG_BYTES; i++)
		snprintf(tag + 2 * i, 3, "%02x", port->prog_tag[i]);
	json_object_set_new(object, "id", json_count(port->prog_id));
	json_object_set_new(object, "name", json_text(port->prog_name));
	json_object_set_new(object, "tag", json_text(tag));
	return object;
}

/* The newest first. */
static json_t *history_json(const struct report_port *port)
{
	json_t *history = json_array();
	const struct port_change *change;

	for (unsigned i = 0; (change = port_state_past(port->states, i)); i++) {
		json_t *object = json_object();

		json_object_set_new(object, "age_seconds",
				    seconds_json(port->now_ns - change->at_ns));
		json_object_set_new(object, "state", json_text(port_state_word(change->state)));
		json_object_set_new(object, "reason", json_text(change->reason));
		json_array_append_new(history, object);
	}
	return history;
}

static void set_state(json_t *object, const struct report_port *port)
{
	const struct port_change *now = port_state_past(port->states, 0);

	json_object_set_new(object, "state",
			    json_text(port_state_word(port_state_now(port->states))));
	json_object_set_new(object, "state_seconds",
			    seconds_json(now ? port->now_ns - now->at_ns : 0));
	json_object_set_new(object, "reason", json_text(now ? now->reason : ""));
	json_object_set_new(object, "history", history_json(port));
}

static json_t *copies_json(const struct report_copies *copies)
{
	json_t *object = json_object();

	json_object_set_new(object, "copied", json_count(copies->copied));
	json_object_set_new(object, "dropped", json_count(copies->dropped));
	json_object_set_new(object, "failed", json_count(copies->failed));
	return object;
}

static json_t *port_json(const struct report_port *port)
{
	json_t *object = json_object();

	json_object_set_new(object, "port", json_text(port->port));
	json_object_set_new(object, "device", json_text(port->device));
	json_object_set_new(object, "ifindex", json_integer(port->ifindex));
	json_object_set_new(object, "link", json_text(report_link_name(port->link)));
	set_state(object, port);
	json_object_set_new(object, "mtu", json_count(port->mtu));
	json_object_set_new(object, "driver", json_text(port->driver));
	json_object_set_new(object, "rx_queues", json_count(port->rx_queues));
	json_object_set_new(object, "tx_queues", json_count(port->tx_queues));
	json_object_set_new(object, "attach",
			    port->served ? json_text(port->native ? "native" : "skb") :
					   json_null());
	json_object_set_new(object, "program", port->served ? program_json(port) : json_null());
	json_object_set_new(object, "promiscuous", json_boolean(port->promiscuous));
	json_object_set_new(object, "copies",
			    port->copies ? copies_json(&port->copy) : json_null());
	return object;
}

json_t *answer_ports_json(const struct report *report)
{
	json_t *ports = json_array();

	for (unsigned i = 0; i < report->ports; i++)
		json_array_append_new(ports, port_json(&report->port[i]));
	return ports;
}

/* One socket as it is, without what it counted. */
static json_t *queue_json(const struct report *report, const struct report_socket *socket)
{
	const struct queue_counts *counts = socket->counts;
	json_t *object = json_object();

	json_object_set_new(object, "queue", json_count(socket->queue));
	json_object_set_new(object, "forward", json_text(socket->forward));
	json_object_set_new(object, "mode", json_text(socket->mode->name));
	json_object_set_new(object, "worker", json_count(socket->worker_number));
	json_object_set_new(object, "cpu", json_count(report->worker[socket->worker].cpu));
	json_object_set_new(object, "zero_copy", json_boolean(socket->zero_copy));
	json_object_set_new(object, "need_wakeup", json_boolean(socket->need_wakeup));
	json_object_set_new(object, "busy_poll",
			    json_text(report_busy_poll_name(socket->busy_poll)));
	json_object_set_new(object, "fill", json_count(counts->fill));
	json_object_set_new(object, "rx", json_count(counts->rx));
	json_object_set_new(object, "tx", json_count(counts->tx));
	json_object_set_new(object, "completion", json_count(counts->completion));
	json_object_set_new(object, "kernel", json_integer(counts->kernel));
	return object;
}

/* A port with its queues: its sockets are those of its name. */
static json_t *status_port_json(const struct report *report, const struct report_port *port)
{
	json_t *object = port_json(port), *queues = json_array();

	for (unsigned i = 0; i < report->sockets; i++) {
		if (!strcmp(report->socket[i].port, port->port))
			json_array_append_new(queues, queue_json(report, &report->socket[i]));
	}
	json_object_set_new(object, "queues", queues);
	return object;
}

static json_t *worker_json(const struct report *report, unsigned index)
{
	const struct report_worker *worker = &report->worker[index];
	json_t *object = json_object(), *sockets = json_array(), *counts;

	json_object_set_new(object, "worker", json_count(worker->number));
	json_object_set_new(object, "forward", json_text(worker->forward));
	json_object_set_new(object, "mode", json_text(worker->mode->name));
	json_object_set_new(object, "wait", json_text(report_wait_name(worker->wait)));
	json_object_set_new(object, "fresh", json_boolean(worker->fresh));
	for (unsigned i = 0; i < report->sockets; i++) {
		const struct report_socket *socket = &report->socket[i];
		json_t *one;

		if (socket->worker != index)
			continue;
		one = json_object();
		json_object_set_new(one, "port", json_text(socket->port));
		json_object_set_new(one, "queue", json_count(socket->queue));
		json_array_append_new(sockets, one);
	}
	json_object_set_new(object, "sockets", sockets);
	counts = report_worker_json(worker);
	json_object_update(object, counts);
	json_decref(counts);
	return object;
}

static json_t *workers_json(const struct report *report)
{
	json_t *workers = json_array();

	for (unsigned i = 0; i < report->workers; i++)
		json_array_append_new(workers, worker_json(report, i));
	return workers;
}

static json_t *reload_json(const struct control_facts *facts)
{
	json_t *object;

	if (!facts->reloaded)
		return json_null();
	object = json_object();
	json_object_set_new(object, "ok", json_boolean(facts->reload_taken));
	json_object_set_new(object, "errors", json_count(facts->reload_errors));
	json_object_set_new(object, "age_seconds", seconds_json(facts->reload_age_ns));
	return object;
}

json_t *answer_confirm_json(const struct control_facts *facts)
{
	json_t *object;

	if (!facts->confirm_asked)
		return json_null();
	object = json_object();
	json_object_set_new(object, "confirmed", json_boolean(facts->confirmed));
	json_object_set_new(object, "left_seconds", seconds_json(facts->confirm_left_ns));
	return object;
}

json_t *answer_status_json(const struct control_facts *facts, const struct report *report)
{
	json_t *root = json_object(), *ports = json_array();

	json_object_set_new(root, "state", json_text(facts->state));
	json_object_set_new(root, "pid", json_integer(getpid()));
	json_object_set_new(root, "version", json_text(facts->version));
	json_object_set_new(root, "uptime_seconds", seconds_json(facts->uptime_ns));
	json_object_set_new(root, "configuration",
			    facts->configuration ? json_text(facts->configuration) : json_null());
	json_object_set_new(root, "generation", json_count(facts->generation));
	json_object_set_new(root, "last_reload", reload_json(facts));
	json_object_set_new(root, "confirm", answer_confirm_json(facts));
	for (unsigned i = 0; i < report->ports; i++)
		json_array_append_new(ports, status_port_json(report, &report->port[i]));
	json_object_set_new(root, "ports", ports);
	json_object_set_new(root, "workers", workers_json(report));
	return root;
}

/* --- stats --- */

static json_t *kicks_json(const struct queue_counts *counts)
{
	json_t *object = json_object();

	for (int i = 0; i < KICK_RESULTS; i++)
		json_object_set_new(object, kick_name((enum kick_result)i),
				    json_count(counts->kicks[i]));
	return object;
}

/* As a row of the report on standard output, and what tells forwards apart. */
static json_t *socket_json(const struct report_socket *socket)
{
	json_t *object = json_object(), *counts = report_socket_json(socket);

	json_object_set_new(object, "port", json_text(socket->port));
	json_object_set_new(object, "forward", json_text(socket->forward));
	json_object_set_new(object, "worker", json_count(socket->worker_number));
	json_object_update(object, counts);
	json_decref(counts);
	json_object_set_new(object, "send_calls", kicks_json(socket->counts));
	return object;
}

/* What is added up over all sockets: the members of a socket's row that count frames or bytes. */
static const char *const totals[] = {
	"rx_packets", "rx_bytes",     "tx_packets",	  "tx_bytes",
	"rx_dropped", "rx_ring_full", "rx_invalid_descs", "tx_invalid_descs",
};

static void add_to(json_t *sums, const char *key, const json_t *value)
{
	json_int_t sum = json_integer_value(json_object_get(sums, key));

	json_object_set_new(sums, key, json_integer(sum + json_integer_value(value)));
}

static json_t *totals_json(json_t *sockets)
{
	json_t *sums = json_object(), *drops = json_object();
	json_t *socket, *value;
	const char *key;
	size_t at;

	for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++)
		json_object_set_new(sums, totals[i], json_integer(0));
	for (int i = 0; i < DROP_REASONS; i++)
		json_object_set_new(drops, drop_name((enum drop_reason)i), json_integer(0));
	json_array_foreach(sockets, at, socket)
	{
		for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++)
			add_to(sums, totals[i], json_object_get(socket, totals[i]));
		json_object_foreach(json_object_get(socket, "drops"), key, value)
		{
			add_to(drops, key, value);
		}
	}
	json_object_set_new(sums, "drops", drops);
	return sums;
}

/* Of the ports that may have such frames. */
static json_t *all_copies_json(const struct report *report)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < report->ports; i++) {
		const struct report_port *port = &report->port[i];
		json_t *object, *counts;

		if (!port->copies)
			continue;
		object = json_object();
		counts = copies_json(&port->copy);
		json_object_set_new(object, "port", json_text(port->port));
		json_object_update(object, counts);
		json_decref(counts);
		json_array_append_new(all, object);
	}
	return all;
}

json_t *answer_stats_json(const struct report *report)
{
	json_t *root = json_object(), *sockets = json_array(), *programs = json_array();

	for (unsigned i = 0; i < report->sockets; i++)
		json_array_append_new(sockets, socket_json(&report->socket[i]));
	for (unsigned i = 0; i < report->programs; i++)
		json_array_append_new(programs, report_program_json(&report->program[i]));
	json_object_set_new(root, "seconds", seconds_json(report->elapsed_ns));
	json_object_set_new(root, "current", json_boolean(report->current));
	json_object_set_new(root, "totals", totals_json(sockets));
	json_object_set_new(root, "sockets", sockets);
	json_object_set_new(root, "programs", programs);
	json_object_set_new(root, "copies", all_copies_json(report));
	json_object_set_new(root, "workers", workers_json(report));
	if (report->irq)
		json_object_set_new(root, "irqs", json_count(report->irqs));
	return root;
}
