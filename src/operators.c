/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "operators.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "ctl/report_json.h"
#include "version.h"
#include "xdp/opener.h"

/* How old an answer may be. Each collecting asks every worker for a snapshot, which costs it some
 * microseconds: by this, twenty times a second at most, however many clients ask. Longer, and somebody
 * who asks twice to see a rate would see the same counts; the counts say of what moment they are. */
#define FRESH_NS (50 * NSEC_PER_MSEC)

static void facts(void *context, struct control_facts *facts)
{
	const struct operators *operators = context;

	*facts = (struct control_facts){
		.state = "running",
		.version = MILLRACE_VERSION,
		.uptime_ns = clock_now_ns() - operators->opened_ns,
	};
}

static void describe_port(const struct port *port, struct report_port *report)
{
	struct netdev_event now = netdev_look(port->netdev.ifindex);

	*report = (struct report_port){
		.port = port->conf->name,
		.device = port->netdev.name,
		.driver = port->netdev.driver,
		.ifindex = port->netdev.ifindex,
		.link = now.gone ? REPORT_LINK_ABSENT :
			now.up	 ? REPORT_LINK_UP :
				   REPORT_LINK_DOWN,
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

static const struct report *collect(void *context)
{
	struct operators *operators = context;
	const struct forwarder *forwarder = operators->forwarder;

	if (operators->collected_ns && clock_now_ns() - operators->collected_ns < FRESH_NS)
		return operators->report;
	operators->report = monitor_collect(&operators->monitor, false);
	for (unsigned i = 0; i < forwarder->ports; i++)
		describe_port(&forwarder->port[i], &operators->port[i]);
	operators->report->port = operators->port;
	operators->report->ports = forwarder->ports;
	operators->collected_ns = clock_now_ns();
	return operators->report;
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
	err = show(out, operators->plan);
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

static int reload(void *context, json_t *errors)
{
	(void)context;
	json_array_append_new(
		errors, json_string("millraced runs from flags: there is no configuration file to "
				    "read again; start it anew"));
	return -EINVAL;
}

static struct port *find_port(const struct operators *operators, const char *name)
{
	struct forwarder *forwarder = operators->forwarder;

	for (unsigned i = 0; i < forwarder->ports; i++) {
		if (!strcmp(forwarder->port[i].conf->name, name))
			return &forwarder->port[i];
	}
	return NULL;
}

/* A port that was promiscuous once keeps its socket, with which it can be so again without privilege. */
static int make_promiscuous(struct port *port, bool on)
{
	int err;

	if (port->promiscuous_fd > 0) {
		err = netdev_promiscuous(port->promiscuous_fd, port->netdev.ifindex, on);
	} else {
		port->promiscuous_fd = opener_promiscuous(port->netdev.name, port->netdev.ifindex);
		err = port->promiscuous_fd < 0 ? port->promiscuous_fd : 0;
	}
	if (!err)
		port->promiscuous = on;
	return err;
}

static int set_promiscuous(void *context, const char *name, bool on, char *error, size_t error_size)
{
	struct operators *operators = context;
	struct port *port = find_port(operators, name);
	int err = 0;

	if (!port) {
		snprintf(error, error_size,
			 "port '%.64s': there is none of that name; `millracectl ports` lists them",
			 name);
		return -ENOENT;
	}
	if (port->promiscuous != on)
		err = make_promiscuous(port, on);
	if (err) {
		snprintf(error, error_size,
			 "port %s: promiscuous mode cannot be switched %s: " ERR_FORMAT "%s", name,
			 on ? "on" : "off", ERR_ARGS(err),
			 err == -EPERM ? "; the daemon has given up its privileges "
					 "(--keep-privileges)" :
					 "");
		return err;
	}
	log_info("%s: promiscuous mode is %s, an operator wants it so", port->netdev.name,
		 on ? "on" : "off");
	operators->collected_ns = 0;
	return 0;
}

static const struct control_ops ops = {
	.facts = facts,
	.collect = collect,
	.plan_json = show_plan_json,
	.plan_text = show_plan_text,
	.reload = reload,
	.set_promiscuous = set_promiscuous,
};

int operators_open(struct operators *operators, struct forwarder *forwarder,
		   const struct conf *conf, const struct plan *plan)
{
	const struct control_opts opts = {
		.path = conf->control_socket,
		.group = conf->control_group,
		.answerer = { &ops, operators },
	};
	int err;

	*operators = (struct operators){ .forwarder = forwarder,
					 .plan = plan,
					 .opened_ns = clock_now_ns() };
	if (!opts.path[0])
		return 0;
	err = monitor_open(&operators->monitor, forwarder, conf);
	return err ? err : control_open(&operators->control, &opts);
}

int operators_start(struct operators *operators, sd_event *loop)
{
	if (!operators->control)
		return 0;
	monitor_start(&operators->monitor);
	return control_start(operators->control, loop);
}

void operators_close(struct operators *operators)
{
	control_close(operators->control);
	operators->control = NULL;
	monitor_close(&operators->monitor);
	operators->monitor = (struct monitor){ 0 };
}
