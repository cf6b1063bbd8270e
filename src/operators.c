/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "operators.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "bridging.h"
#include "ctl/report_json.h"
#include "stations.h"
#include "steering.h"
#include "version.h"
#include "xdp/opener.h"

/* How old an answer may be. Each collecting asks every worker for a snapshot, which costs it some
 * microseconds: by this, twenty times a second at most, however many clients ask. Longer, and somebody
 * who asks twice to see a rate would see the same counts; the counts say of what moment they are. */
#define FRESH_NS (50 * NSEC_PER_MSEC)

static void facts(void *context, struct control_facts *facts)
{
	const struct operators *operators = context;
	uint64_t now_ns = clock_now_ns();

	*facts = (struct control_facts){
		.state = "running",
		.version = MILLRACE_VERSION,
		.configuration = operators->path,
		.uptime_ns = now_ns - operators->opened_ns,
		.generation = operators->generation,
		.reloaded = operators->reloaded_ns,
		.reload_age_ns = now_ns - operators->reloaded_ns,
		.reload_taken = operators->reload_taken,
		.reload_errors = operators->reload_errors,
		.confirm_asked = confirm_asked(operators->confirm),
		.confirmed = operators->confirm->given_ns,
		.confirm_left_ns = confirm_left_ns(operators->confirm),
	};
}

static void describe_port(const struct port *port, struct report_port *report)
{
	struct netdev_event now = { .gone = true };

	/* What cannot be told now is what was told last. */
	if (port->netdev.present && netdev_look(port->netdev.ifindex, &now))
		now = (struct netdev_event){
			.gone = port->states.link == PORT_STATE_GONE,
			.set_up = port->states.link == PORT_STATE_UP,
			.carrier = port->states.link == PORT_STATE_UP,
		};
	*report = (struct report_port){
		.port = port->conf->name,
		.device = port->netdev.name,
		.driver = port->netdev.driver,
		.ifindex = port->netdev.ifindex,
		.link = now.gone	      ? REPORT_LINK_ABSENT :
			netdev_event_up(&now) ? REPORT_LINK_UP :
						REPORT_LINK_DOWN,
		.states = &port->states,
		.now_ns = clock_now_ns(),
		.served = port->served,
		.mtu = now.mtu ? now.mtu : port->netdev.mtu,
		.rx_queues = port->netdev.rx_queues,
		.tx_queues = port->netdev.tx_queues,
		.native = port->prog.native,
		.promiscuous = port->promiscuous,
		.prog_id = port->prog.id,
		.prog_name = port->prog.name,
		.prog_tag = port->prog.tag,
	};
}

static void describe_next(const struct port *port, void *context)
{
	struct operators *operators = context;

	struct report_port *report = &operators->port[operators->report->ports++];

	describe_port(port, report);
	report->copies = mirrors_counts(operators->mirrors, port, &report->copy);
	report->bridged = bridging_counts(operators->fleet, port, &report->fdb);
}

static const struct report *collect(void *context)
{
	struct operators *operators = context;

	if (operators->collected_ns && clock_now_ns() - operators->collected_ns < FRESH_NS)
		return operators->report;
	operators->report = monitor_collect(&operators->monitor, false);
	operators->report->port = operators->port;
	operators->report->ports = 0;
	fleet_each_port(operators->fleet, describe_next, operators);
	operators->collected_ns = clock_now_ns();
	return operators->report;
}

static void append_rule(const struct port *port, const struct steering_count *count, void *context)
{
	json_t *rule = json_object();
	char text[PASS_RULE_SIZE] = "default";

	json_object_set_new(rule, "port", json_text(port->conf->name));
	json_object_set_new(rule, "rule",
			    json_string(count->rule ? pass_rule_print(count->rule, text) : text));
	json_object_set_new(rule, "class", count->rule ? json_null() : json_string(count->class));
	json_object_set_new(rule, "both", json_boolean(count->both));
	json_object_set_new(rule, "frames", json_integer((json_int_t)count->frames));
	json_array_append_new(context, rule);
}

static void append_rules(const struct port *port, void *context)
{
	steering_each_count(port, append_rule, context);
}

static json_t *show_rules(void *context)
{
	const struct operators *operators = context;
	json_t *rules = json_array();

	if (rules)
		fleet_each_port(operators->fleet, append_rules, rules);
	return rules;
}

static char *show_plan(const struct operators *operators,
		       int (*show)(FILE *out, const struct plan *plan))
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	int err;

	if (!out)
		return NULL;
	err = show(out, operators->fleet->plan);
	if (!fclose(out) && !err)
		return text;
	free(text);
	return NULL;
}

static json_t *show_plan_json(void *context)
{
	char *text = show_plan(context, plan_json);
	json_t *root = text ? json_loads(text, 0, NULL) : NULL;

	free(text);
	return root;
}

static char *show_plan_text(void *context)
{
	return show_plan(context, plan_text);
}

/* What a reload says, for who asked for it. */
struct complaints {
	json_t *errors; /* NULL: nobody asks */
	unsigned count;
};

static bool note_complaint(enum log_level level, const char *text, void *context)
{
	struct complaints *complaints = context;

	if (level != LOG_LEVEL_ERROR)
		return false;
	complaints->count++;
	if (complaints->errors)
		json_array_append_new(complaints->errors, json_text(text));
	return false; /* it goes to the log as well */
}

static int try_reload(struct operators *operators, json_t *errors)
{
	struct complaints complaints = { .errors = errors };
	int err;

	log_capture(note_complaint, &complaints);
	err = operators->reload(operators->daemon);
	log_capture(NULL, NULL);
	operators->reloaded_ns = clock_now_ns();
	operators->reload_taken = !err;
	operators->reload_errors = complaints.count;
	operators->generation += !err;
	return err;
}

static int reload(void *context, json_t *errors)
{
	return try_reload(context, errors);
}

int operators_reload(struct operators *operators)
{
	return try_reload(operators, NULL);
}

static int set_promiscuous(void *context, const char *name, bool on, char *error, size_t error_size)
{
	struct operators *operators = context;
	struct forwarder *forwarder;
	struct port *port = fleet_port(operators->fleet, name, &forwarder);
	int err = 0;

	if (!port) {
		snprintf(error, error_size,
			 "port '%.64s': there is none of that name; `millracectl ports` lists them",
			 name);
		return -ENOENT;
	}
	if (port->promiscuous != on)
		err = forwarder_set_promiscuous(port, on);
	if (err) {
		snprintf(error, error_size,
			 "port %s: promiscuous mode cannot be switched %s: " ERR_FORMAT, name,
			 on ? "on" : "off", ERR_ARGS(err));
		return err;
	}
	log_info("%s: promiscuous mode is %s, an operator wants it so", port->netdev.name,
		 on ? "on" : "off");
	operators->collected_ns = 0;
	return 0;
}

static json_t *ask_stations(void *context, enum command command, const json_t *arguments,
			    char *error, size_t error_size)
{
	const struct operators *operators = context;

	return stations_answer(operators->fleet, command, arguments, error, error_size);
}

static int confirm(void *context)
{
	const struct operators *operators = context;
	int err = confirm_give(operators->confirm);

	if (!err)
		log_info("an operator has confirmed it; forwarding goes on");
	return err;
}

static const struct control_ops ops = {
	.facts = facts,
	.collect = collect,
	.rules_json = show_rules,
	.plan_json = show_plan_json,
	.plan_text = show_plan_text,
	.reload = reload,
	.set_promiscuous = set_promiscuous,
	.fdb = ask_stations,
	.confirm = confirm,
};

int operators_open(struct operators *operators, const struct conf *conf,
		   const struct daemon_file *file)
{
	const struct control_opts opts = {
		.path = conf->control_socket,
		.group = conf->control_group,
		.answerer = { &ops, operators },
	};

	operators->opened_ns = clock_now_ns();
	operators->path = file ? file->path : NULL;
	return opts.path[0] ? control_open(&operators->control, &opts) : 0;
}

static int make_ports(struct operators *operators)
{
	free(operators->port);
	operators->port = calloc(fleet_ports(operators->fleet) + 1U, sizeof(*operators->port));
	if (operators->port)
		return 0;
	log_error("no memory to answer operators with");
	return -ENOMEM;
}

int operators_start(struct operators *operators, struct fleet *fleet, sd_event *loop)
{
	int err;

	operators->fleet = fleet;
	if (!operators->control)
		return 0;
	err = monitor_open(&operators->monitor, fleet, fleet->conf);
	if (!err)
		err = make_ports(operators);
	if (err)
		return err;
	monitor_start(&operators->monitor);
	return control_start(operators->control, loop);
}

int operators_change(struct operators *operators, const struct conf *conf)
{
	int err;

	operators->collected_ns = 0;
	if (!operators->control)
		return 0;
	err = monitor_change(&operators->monitor, conf);
	return err ? err : make_ports(operators);
}

void operators_close(struct operators *operators)
{
	control_close(operators->control);
	operators->control = NULL;
	monitor_close(&operators->monitor);
	operators->monitor = (struct monitor){ 0 };
	free(operators->port);
	operators->port = NULL;
}
