/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "bridging.h"
#include "conf/print.h"
#include "confirm.h"
#include "fleet.h"
#include "host_ports.h"
#include "links.h"
#include "loop_alarm.h"
#include "mirror.h"
#include "monitor.h"
#include "operators.h"
#include "planner.h"
#include "program_watch.h"
#include "service.h"
#include "slot_watch.h"
#include "steering.h"
#include "xdp/opener.h"

struct daemon {
	struct conf started; /* that of the start, without ports and forwards */
	struct conf *conf;   /* owned, as the next */
	struct plan *plan;
	const struct daemon_file *file; /* borrowed; NULL: flags */
	struct fleet fleet;
	struct monitor monitor;
	struct operators operators;
	struct confirm confirm;
	struct mirrors mirrors;
	struct privileges_user user;
	struct opener_opts opener_opts;
	struct links links;
	struct steering_watch steering;
	struct service service;
	sd_event *loop;
	sd_event_source *report_timer, *program_timer;
	bool output_failed;
	int status; /* exit status */
};

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *info, void *context)
{
	(void)source, (void)info;
	return sd_event_exit(((struct daemon *)context)->loop, 0);
}

static int on_reload(sd_event_source *source, const struct signalfd_siginfo *info, void *context)
{
	struct daemon *daemon = context;

	(void)source, (void)info;
	if (!daemon->file) /* its terminal is gone */
		return sd_event_exit(daemon->loop, 0);
	(void)operators_reload(&daemon->operators);
	return 0;
}

static int on_report(sd_event_source *source, uint64_t due_us, void *context)
{
	struct daemon *daemon = context;
	uint64_t interval_us = daemon->conf->interval_s * 1000000ULL;
	uint64_t now_us = clock_now_ns() / 1000;

	if (monitor_report(&daemon->monitor, false)) {
		daemon->output_failed = true;
		daemon->status = 1;
		return sd_event_exit(daemon->loop, 0);
	}
	service_count(&daemon->service, &daemon->monitor.report[daemon->monitor.newest]);
	/* The next one a whole number of intervals after this one was due: reports do not drift, and
	 * after a stop those that were missed do not all come at once. */
	due_us += interval_us;
	if (due_us <= now_us)
		due_us += (now_us - due_us) / interval_us * interval_us + interval_us;
	sd_event_source_set_time(source, due_us);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int on_program_timer(sd_event_source *source, uint64_t due_us, void *context)
{
	struct daemon *daemon = context;

	(void)due_us;
	log_repeats(false);
	service_renew(&daemon->service);
	slot_watch_look(&daemon->fleet);
	bridging_tick(&daemon->fleet);
	if (program_watch_look(&daemon->fleet)) {
		daemon->status = 1;
		return sd_event_exit(daemon->loop, 0);
	}
	sd_event_source_set_time(source, (clock_now_ns() + PROGRAM_WATCH_NS) / 1000);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int on_loop_timer(sd_event_source *source, uint64_t due_us, void *context)
{
	struct daemon *daemon = context;
	uint64_t next_ns = loop_alarm_watch(&daemon->fleet) ? LOOP_LOOK_NS : PROGRAM_WATCH_NS;

	(void)due_us;
	sd_event_source_set_time(source, (clock_now_ns() + next_ns) / 1000);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int on_duration(sd_event_source *source, uint64_t due_us, void *context)
{
	(void)source, (void)due_us;
	return sd_event_exit(((struct daemon *)context)->loop, 0);
}

/* Whoever is to confirm may be cut off by what we do: take it all back. */
static void on_unconfirmed(void *context)
{
	struct daemon *daemon = context;

	log_error("not confirmed within %u s (--confirm=%u): everything is detached",
		  daemon->started.confirm_s, daemon->started.confirm_s);
	daemon->status = 1;
	sd_event_exit(daemon->loop, 0);
}

static int on_done(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct daemon *daemon = context;
	uint64_t count;

	(void)source, (void)events;
	/* Read, so that it is empty again; who wrote is seen below. */
	if (read(fd, &count, sizeof(count)) < 0)
		return 0;
	loop_alarm_news(&daemon->fleet);
	if (!fleet_done(&daemon->fleet))
		return 0;
	return sd_event_exit(daemon->loop, 0);
}

/* Readable only because the helper is gone. What it opened goes on. */
static int on_opener(sd_event_source *source, int fd, uint32_t events, void *context)
{
	(void)fd, (void)events, (void)context;
	opener_lost();
	return sd_event_source_set_enabled(source, SD_EVENT_OFF);
}

static int open_loop(struct daemon *daemon)
{
	const struct conf *conf = daemon->conf;
	/* 1 us: reports are compared with each other, so they had better be on time. */
	const uint64_t accuracy_us = 1;
	uint64_t now_us;
	int err;

	err = sd_event_new(&daemon->loop);
	if (err >= 0)
		err = sd_event_now(daemon->loop, CLOCK_MONOTONIC, &now_us);
	if (err >= 0)
		err = sd_event_add_signal(daemon->loop, NULL, SIGINT, on_signal, daemon);
	if (err >= 0)
		err = sd_event_add_signal(daemon->loop, NULL, SIGTERM, on_signal, daemon);
	if (err >= 0)
		err = sd_event_add_signal(daemon->loop, NULL, SIGHUP, on_reload, daemon);
	if (err >= 0)
		err = sd_event_add_io(daemon->loop, NULL, opener_fd(), EPOLLIN, on_opener, daemon);
	if (err >= 0)
		err = sd_event_add_io(daemon->loop, NULL, daemon->fleet.done_fd, EPOLLIN, on_done,
				      daemon);
	if (err >= 0)
		err = sd_event_add_time(daemon->loop, &daemon->report_timer, CLOCK_MONOTONIC,
					now_us + conf->interval_s * 1000000ULL, accuracy_us,
					on_report, daemon);
	if (err >= 0) /* with as few wake-ups of its own as can be: 0 is the library's 250 ms */
		err = sd_event_add_time(daemon->loop, &daemon->program_timer, CLOCK_MONOTONIC,
					now_us + PROGRAM_WATCH_NS / 1000, 0, on_program_timer,
					daemon);
	if (err >= 0) /* likewise: a look that is late by that is in time */
		err = sd_event_add_time(daemon->loop, NULL, CLOCK_MONOTONIC,
					now_us + LOOP_LOOK_NS / 1000, 0, on_loop_timer, daemon);
	if (err >= 0)
		err = steering_watch_start(&daemon->steering, &daemon->fleet, daemon->loop);
	if (err >= 0 && conf->duration_s)
		err = sd_event_add_time(daemon->loop, NULL, CLOCK_MONOTONIC,
					now_us + conf->duration_s * 1000000ULL, accuracy_us,
					on_duration, daemon);
	return err < 0 ? err : 0;
}

static int start_confirm(struct daemon *daemon)
{
	const struct conf *conf = &daemon->started;
	int err;

	if (!conf->confirm_s)
		return 0;
	err = confirm_start(&daemon->confirm, daemon->loop, conf->confirm_s);
	if (err) {
		log_error("no timer for --confirm=%u: " ERR_FORMAT, conf->confirm_s, ERR_ARGS(err));
		return err;
	}
	log_info("everything is detached in %u s unless this comes: millracectl -s %s confirm",
		 conf->confirm_s, conf->control_socket);
	return 0;
}

static int run(struct daemon *daemon)
{
	int err = open_loop(daemon);

	if (err) {
		log_error("no event loop: " ERR_FORMAT, ERR_SANDBOX_ARGS(err));
		return err;
	}
	err = fleet_start(&daemon->fleet);
	if (err)
		return err;
	err = mirrors_start(&daemon->mirrors, &daemon->fleet, daemon->loop);
	if (err) {
		log_error("what the host and the wire both need cannot be copied: " ERR_FORMAT,
			  ERR_ARGS(err));
		return err;
	}
	log_info("forwarding");
	monitor_start(&daemon->monitor);
	err = links_start(&daemon->links, &daemon->fleet, daemon->loop);
	if (err) {
		log_error("no event loop: " ERR_FORMAT, ERR_SANDBOX_ARGS(err));
		return err;
	}
	err = operators_start(&daemon->operators, &daemon->fleet, daemon->loop);
	if (!err)
		err = start_confirm(daemon);
	if (err)
		return err;
	err = service_start(&daemon->service, &daemon->fleet, daemon->loop);
	if (err) {
		log_error("no event loop: " ERR_FORMAT, ERR_SANDBOX_ARGS(err));
		return err;
	}
	err = sd_event_loop(daemon->loop);
	if (err < 0)
		log_error("event loop: " ERR_FORMAT, ERR_ARGS(err));
	if (daemon->links.ended)
		daemon->status = 1;
	return err < 0 ? err : 0;
}

/* The queues of any port of the forward: workers of another port's queues send here. */
static int permit_port(const struct conf_forward *forward, const struct conf_port *port,
		       struct opener_permits *permits)
{
	struct opener_permit permit = {
		.device = port->device,
		.xskmap = port->xskmap[0] ? port->xskmap : NULL,
		.dispatcher = port->attach_method == CONF_ATTACH_METHOD_DISPATCHER,
		.replace = port->replace,
		.vlan_offload = !port->keep_vlan_offload,
		.busy_poll = forward->busy_poll,
	};
	int err = 0;

	for (unsigned i = 0; !err && i < forward->ports; i++) {
		permit.queues = forward->port[i]->all_queues ? NULL : &forward->port[i]->queues;
		err = opener_permit_device(permits, &permit);
	}
	return err;
}

static int permit_conf(const struct conf *conf, struct opener_permits *permits)
{
	const struct number_list none = { 0 };
	int err = 0;

	/* Of one that no forward has, no more than what it is. */
	for (unsigned i = 0; !err && i < conf->ports; i++)
		err = opener_permit_device(permits,
					   &(struct opener_permit){ .device = conf->port[i].device,
								    .xskmap = "",
								    .queues = &none });
	for (unsigned i = 0; !err && i < conf->forwards; i++) {
		const struct conf_forward *forward = &conf->forward[i];

		if (forward->realtime)
			opener_permit_realtime(permits, forward->priority);
		for (unsigned j = 0; !err && j < forward->ports; j++)
			err = permit_port(forward, forward->port[j], permits);
	}
	if (err)
		log_error("no memory for what the helper process may do: " ERR_FORMAT,
			  ERR_ARGS(err));
	return err;
}

/* In the helper: what it may do. It reads the file for itself, and believes nobody else. */
static int permit(void *context, bool afresh, struct opener_permits *permits)
{
	const struct daemon *daemon = context;
	struct conf fresh = { 0 };
	int err;

	if (!afresh || !daemon->file)
		return permit_conf(daemon->conf, permits);
	err = daemon->file->load(daemon->file->context, &fresh, false);
	if (err)
		log_error("%s: is not read by the helper process, user %u: " ERR_FORMAT
			  "; the file and its folders must be open to that user, as to its group "
			  "by `chgrp` and `chmod g+r`",
			  daemon->file->path, (unsigned)geteuid(), ERR_ARGS(err));
	else
		err = permit_conf(&fresh, permits);
	conf_fini(&fresh);
	return err;
}

/* Reports are of what runs, and rates of nothing that has ended. */
static void renew_reports(struct daemon *daemon, const struct conf *conf)
{
	if (!operators_change(&daemon->operators, conf) && !monitor_change(&daemon->monitor, conf))
		return;
	daemon->output_failed = true;
	daemon->status = 1;
	sd_event_exit(daemon->loop, 0);
}

/* What was set up once and holds to the end: what the file says of it now is not what there is. */
static void tell_fixed(const struct daemon *daemon, const struct conf *conf)
{
	char keys[256];
	unsigned count = conf_run_different(&daemon->started, conf, keys, sizeof(keys));

	if (count)
		log_warning("%s: stay%s as at the start until a restart", keys,
			    count == 1 ? "s" : "");
}

/* Everything in the new configuration, or nothing of it. */
static int adopt(struct daemon *daemon, struct conf *conf, struct plan *plan)
{
	int err = fleet_change(&daemon->fleet, conf, plan);

	/* Also if it failed: a forward may have been ended, and started again. */
	renew_reports(daemon, err ? daemon->conf : conf);
	if (err)
		return err;
	tell_fixed(daemon, conf);
	if (opener_fd() >= 0)
		host_ports_remove(daemon->conf, conf);
	plan_free(daemon->plan);
	conf_fini(daemon->conf);
	free(daemon->conf);
	daemon->conf = conf;
	daemon->plan = plan;
	log_info("configuration read again: %u forward%s", conf->forwards,
		 conf->forwards == 1 ? "" : "s");
	return 0;
}

/* Without the helper parameters can still change: what cannot be opened says so. */
static int refresh_opener(void)
{
	int err = opener_fd() < 0 ? 0 : opener_refresh();

	return err == -EPIPE ? 0 : err;
}

/* Without the helper those that there are will do: else their ports say that there is no device. */
static int make_host_ports(const struct conf *conf)
{
	return opener_fd() < 0 ? 0 : host_ports_make(conf);
}

/* Reads the configuration again and goes over to it; on any error everything stays. Returns 0, or -errno
 * after messages. */
static int change_over(struct daemon *daemon)
{
	struct conf *conf;
	struct plan *plan = NULL;
	int err;

	if (!daemon->file) {
		log_error("millraced runs from flags: there is no configuration file to read "
			  "again; start it anew");
		return -EINVAL;
	}
	conf = calloc(1, sizeof(*conf));
	if (!conf) {
		log_error("out of memory");
		return -ENOMEM;
	}
	links_catch_up(&daemon->links);
	err = daemon->file->load(daemon->file->context, conf, true);
	if (!err)
		err = refresh_opener();
	if (!err)
		err = make_host_ports(conf);
	if (!err)
		err = planner_make(conf, &daemon->fleet, &plan);
	if (!err)
		err = planner_judge(plan);
	if (!err)
		err = adopt(daemon, conf, plan);
	links_renew(&daemon->links);
	if (!err)
		return 0;
	plan_free(plan);
	if (opener_fd() >= 0)
		host_ports_remove(conf, daemon->conf);
	conf_fini(conf);
	free(conf);
	log_warning("the configuration is not taken over; what %s goes on",
		    daemon->fleet.forwards < daemon->conf->forwards ? "is left of the old one" :
								      "ran before");
	return err;
}

static int reload(void *context)
{
	struct daemon *daemon = context;
	int err;

	service_reloading(&daemon->service);
	err = change_over(daemon);
	service_reloaded(&daemon->service, !err);
	return err;
}

static int open_all(struct daemon *daemon)
{
	int err = privileges_find_user(daemon->conf->user, daemon->file ? PRIVILEGES_USER : NULL,
				       &daemon->user);

	if (!err)
		err = opener_start(&daemon->opener_opts);
	if (err)
		return err;
	err = links_open(&daemon->links);
	if (!err)
		err = steering_watch_open(&daemon->steering);
	if (!err)
		err = opener_check();
	/* While its group can be given to it, and before a device is touched. */
	if (!err)
		err = operators_open(&daemon->operators, daemon->conf, daemon->file);
	if (!err)
		err = service_open(&daemon->service);
	if (!err && !daemon->conf->keep_privileges)
		err = opener_drop_privileges(&daemon->user);
	if (!err)
		err = host_ports_make(daemon->conf);
	if (!err)
		err = planner_make(daemon->conf, NULL, &daemon->plan);
	if (!err)
		err = planner_judge(daemon->plan);
	if (!err)
		err = fleet_init(&daemon->fleet, daemon->conf, daemon->plan);
	if (!err)
		err = monitor_open(&daemon->monitor, &daemon->fleet, daemon->conf);
	return err ? err : fleet_open(&daemon->fleet);
}

static void close_all(struct daemon *daemon)
{
	service_stopping(&daemon->service);
	operators_close(&daemon->operators);
	mirrors_close(&daemon->mirrors);
	fleet_stop(&daemon->fleet);
	if (fleet_close_lanes(&daemon->fleet))
		daemon->status = 1;
	/* If standard output failed before, that was said. */
	if (daemon->monitor.start_ns && !daemon->output_failed &&
	    monitor_report(&daemon->monitor, true))
		daemon->status = 1;
	monitor_close(&daemon->monitor);
	fleet_close(&daemon->fleet);
	plan_free(daemon->plan);
	confirm_close(&daemon->confirm);
	steering_watch_close(&daemon->steering);
	sd_event_source_unref(daemon->report_timer);
	sd_event_source_unref(daemon->program_timer);
	service_close(&daemon->service);
	sd_event_unref(daemon->loop);
	links_close(&daemon->links);
	opener_stop();
	log_repeats(true);
}

int daemon_run(struct conf *conf, const struct daemon_file *file)
{
	struct daemon *daemon = calloc(1, sizeof(*daemon));
	int err, status;

	if (daemon)
		daemon->conf = calloc(1, sizeof(*daemon->conf));
	if (!daemon || !daemon->conf) {
		log_error("out of memory");
		free(daemon);
		return 1;
	}
	*daemon->conf = *conf;
	*conf = (struct conf){ 0 };
	daemon->started = *daemon->conf;
	daemon->started.ports = daemon->started.forwards = 0;
	daemon->started.port = NULL;
	daemon->started.forward = NULL;
	daemon->file = file;
	daemon->links.ports_wait = file;
	daemon->operators.reload = reload;
	daemon->operators.daemon = daemon;
	daemon->operators.mirrors = &daemon->mirrors;
	daemon->operators.confirm = &daemon->confirm;
	daemon->confirm.expired = on_unconfirmed;
	daemon->confirm.context = daemon;
	daemon->opener_opts = (struct opener_opts){
		.permit = permit,
		.context = daemon,
		.confined = !daemon->conf->keep_privileges,
		.user = &daemon->user,
		.by_hand = !file,
	};
	err = open_all(daemon);
	if (!err)
		err = run(daemon);
	/* A signal while opening: that is an end as asked, if an early one. */
	if (err == -ECANCELED)
		log_info("ended before forwarding began");
	else if (err)
		daemon->status = 1;
	close_all(daemon);
	status = daemon->status;
	conf_fini(daemon->conf);
	free(daemon->conf);
	free(daemon);
	return status;
}
