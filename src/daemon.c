/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "advice.h"
#include "base/clock.h"
#include "base/log.h"
#include "forwarder.h"
#include "monitor.h"
#include "operators.h"
#include "plan/mtu.h"
#include "planner.h"
#include "xdp/netdev.h"
#include "xdp/opener.h"

struct daemon {
	const struct conf *conf; /* borrowed */
	struct plan *plan;
	struct forwarder forwarder;
	struct monitor monitor;
	struct operators operators;
	struct opener_opts opener_opts;
	unsigned done; /* workers whose finite job is over */
	int watch_fd;  /* link events */
	sd_event *loop;
	sd_event_source *report_timer;
	bool output_failed;
	int status; /* exit status */
};

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *info, void *context)
{
	(void)source, (void)info;
	return sd_event_exit(((struct daemon *)context)->loop, 0);
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
	/* The next one a whole number of intervals after this one was due: reports do not drift, and
	 * after a stop those that were missed do not all come at once. */
	due_us += interval_us;
	if (due_us <= now_us)
		due_us += (now_us - due_us) / interval_us * interval_us + interval_us;
	sd_event_source_set_time(source, due_us);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int on_duration(sd_event_source *source, uint64_t due_us, void *context)
{
	(void)source, (void)due_us;
	return sd_event_exit(((struct daemon *)context)->loop, 0);
}

static int on_done(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct daemon *daemon = context;
	uint64_t count;

	(void)source, (void)events;
	if (read(fd, &count, sizeof(count)) == sizeof(count))
		daemon->done += (unsigned)count;
	return daemon->done >= daemon->forwarder.workers ? sd_event_exit(daemon->loop, 0) : 0;
}

static void on_gone(struct daemon *daemon, const struct netdev *netdev)
{
	log_error("%s: the device is gone (deleted, or moved to another network namespace)",
		  netdev->name);
	daemon->status = 1;
	sd_event_exit(daemon->loop, 0);
}

/* One warning a change: an interface's every change is an event, most of them not of its MTU. */
static void on_mtu(const struct daemon *daemon, struct netdev *netdev, uint32_t mtu)
{
	if (netdev->mtu == mtu)
		return;
	netdev->mtu = mtu;
	if (daemon->forwarder.mode->receives && mtu > mtu_limit(daemon->forwarder.conf))
		advice_mtu(daemon->forwarder.conf, netdev);
}

static void on_netdev(const struct netdev_event *event, void *context)
{
	struct daemon *daemon = context;

	for (unsigned i = 0; i < daemon->forwarder.ports; i++) {
		struct netdev *netdev = &daemon->forwarder.port[i].netdev;

		if (netdev->ifindex != event->ifindex)
			continue;
		if (event->gone)
			on_gone(daemon, netdev);
		else if (event->mtu)
			on_mtu(daemon, netdev, event->mtu);
	}
}

static int on_link_event(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct daemon *daemon = context;

	(void)source, (void)events;
	if (netdev_watch_read(fd, on_netdev, context) != -ENOBUFS)
		return 0;
	for (unsigned i = 0; i < daemon->forwarder.ports; i++) {
		struct netdev_event event = netdev_look(daemon->forwarder.port[i].netdev.ifindex);

		on_netdev(&event, context);
	}
	return 0;
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
		err = sd_event_add_io(daemon->loop, NULL, daemon->watch_fd, EPOLLIN, on_link_event,
				      daemon);
	if (err >= 0)
		err = sd_event_add_io(daemon->loop, NULL, opener_fd(), EPOLLIN, on_opener, daemon);
	if (err >= 0)
		err = sd_event_add_io(daemon->loop, NULL, daemon->forwarder.done_fd, EPOLLIN,
				      on_done, daemon);
	if (err >= 0)
		err = sd_event_add_time(daemon->loop, &daemon->report_timer, CLOCK_MONOTONIC,
					now_us + conf->interval_s * 1000000ULL, accuracy_us,
					on_report, daemon);
	if (err >= 0 && conf->duration_s)
		err = sd_event_add_time(daemon->loop, NULL, CLOCK_MONOTONIC,
					now_us + conf->duration_s * 1000000ULL, accuracy_us,
					on_duration, daemon);
	return err < 0 ? err : 0;
}

static int run(struct daemon *daemon)
{
	int err = open_loop(daemon);

	if (err) {
		log_error("no event loop: " ERR_FORMAT, ERR_SANDBOX_ARGS(err));
		return err;
	}
	err = forwarder_start(&daemon->forwarder);
	if (err)
		return err;
	log_info("forwarding");
	monitor_start(&daemon->monitor);
	err = operators_start(&daemon->operators, daemon->loop);
	if (err)
		return err;
	err = sd_event_loop(daemon->loop);
	if (err < 0)
		log_error("event loop: " ERR_FORMAT, ERR_ARGS(err));
	return err < 0 ? err : 0;
}

/* In the helper: what it may touch. */
static int list_devices(void *context, struct opener_devices *devices)
{
	const struct conf *conf = ((const struct daemon *)context)->conf;
	int err = 0;

	for (unsigned i = 0; !err && i < conf->ports; i++)
		err = opener_devices_add(devices, conf->port[i].device);
	if (err)
		log_error("no memory for the list of devices: " ERR_FORMAT, ERR_ARGS(err));
	return err;
}

static int open_all(struct daemon *daemon)
{
	int err = opener_start(&daemon->opener_opts);

	if (err)
		return err;
	/* Before the first look at a device, so that none can go unnoticed. */
	daemon->watch_fd = netdev_watch_open();
	if (daemon->watch_fd < 0) {
		err = daemon->watch_fd;
		log_error("link events cannot be watched: " ERR_FORMAT, ERR_SANDBOX_ARGS(err));
		return err;
	}
	err = opener_check();
	if (!err && !daemon->conf->keep_privileges)
		err = opener_drop_privileges();
	if (!err)
		err = planner_make(daemon->conf, &daemon->plan);
	if (!err)
		err = planner_judge(daemon->plan);
	if (!err)
		forwarder_init(&daemon->forwarder, &daemon->plan->forward[0]);
	if (!err)
		err = monitor_open(&daemon->monitor, &daemon->forwarder, daemon->conf);
	if (!err)
		err = operators_open(&daemon->operators, &daemon->forwarder, daemon->conf,
				     daemon->plan);
	if (!err)
		err = forwarder_open(&daemon->forwarder);
	return err;
}

static void close_all(struct daemon *daemon)
{
	operators_close(&daemon->operators);
	forwarder_stop(&daemon->forwarder);
	if (forwarder_close_lanes(&daemon->forwarder))
		daemon->status = 1;
	/* If standard output failed before, that was said. */
	if (daemon->monitor.start_ns && !daemon->output_failed &&
	    monitor_report(&daemon->monitor, true))
		daemon->status = 1;
	monitor_close(&daemon->monitor);
	forwarder_close(&daemon->forwarder);
	plan_free(daemon->plan);
	sd_event_source_unref(daemon->report_timer);
	sd_event_unref(daemon->loop);
	if (daemon->watch_fd > 0)
		close(daemon->watch_fd);
	opener_stop();
}

int daemon_run(const struct conf *conf)
{
	struct daemon *daemon = calloc(1, sizeof(*daemon));
	int err, status;

	if (!daemon) {
		log_error("out of memory");
		return 1;
	}
	daemon->conf = conf;
	daemon->opener_opts = (struct opener_opts){ list_devices, daemon };
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
	free(daemon);
	return status;
}
