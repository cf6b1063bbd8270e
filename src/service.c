/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "service.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "xdp/opener.h"

/* Workers are looked at so many times in the time that the watchdog has. Twice would do where every look finds
 * every worker done with a pass; a host that is busy for a moment may fail one or two. */
#define LOOKS 4

/* A sleeping worker looks around every WORKER_SLEEP_MS: a watchdog that wants to hear of it more often would
 * bite one that is in order. */
#define WATCHDOG_MIN_US (LOOKS * 2 * WORKER_SLEEP_MS * 1000ULL)

/* How long until a link is looked at again that attaching has taken down, us. */
#define SETTLE_LOOK_US 50000

/* --- the manager --- */

/* Returns the fd, 0 without a manager, or -errno. */
static int connect_manager(void)
{
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes the environment */
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t len = path ? strlen(path) : 0;
	int fd, err;

	if (!len)
		return 0;
	if (len >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, len);
	if (path[0] == '@') /* of the abstract namespace */
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (!connect(fd, (const struct sockaddr *)&address,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int service_open(struct service *service)
{
	int fd = connect_manager();

	if (fd < 0) {
		log_error("$NOTIFY_SOCKET: systemd cannot be told how we are: " ERR_FORMAT
			  "; `Type=notify` of the unit makes that socket",
			  ERR_SANDBOX_ARGS(fd));
		return fd;
	}
	service->fd = fd;
	return 0;
}

/* A manager that does not listen for once holds up no forwarder. */
static void say(const struct service *service, const char *text)
{
	if (service->fd > 0)
		(void)send(service->fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* --- the status --- */

struct text {
	char *at;
	size_t size;
};

static void __attribute__((format(printf, 2, 3))) add(struct text *text, const char *format, ...)
{
	va_list args;
	size_t len = strlen(text->at);

	va_start(args, format);
	vsnprintf(text->at + len, text->size - len, format, args);
	va_end(args);
}

/* "; lan: gone, waiting for the device enp1s0f1", of a port that is not as it should be. */
static void add_port(struct text *text, const struct port *port)
{
	enum port_state state = port_state_now(&port->states);
	const struct port_change *now = port_state_past(&port->states, 0);

	if (state == PORT_STATE_UP)
		return;
	if (state == PORT_STATE_GONE)
		add(text, "; %s: awaited, there is no device %s", port->conf->name,
		    port->conf->device);
	else
		add(text, "; %s: %s%s%s", port->conf->name, port_state_word(state),
		    now && now->reason[0] ? ", " : "", now ? now->reason : "");
}

static void write_status(const struct service *service, char *status, size_t size)
{
	const struct fleet *fleet = service->fleet;
	struct text text = { status, size };
	unsigned ports = 0, up = 0;

	status[0] = '\0';
	for (unsigned i = 0; i < fleet->forwards; i++) {
		for (unsigned j = 0; j < fleet->forward[i]->ports; j++) {
			ports++;
			up += port_state_now(&fleet->forward[i]->port[j].states) == PORT_STATE_UP;
		}
	}
	add(&text, "%u of %u ports up%s", up, ports, service->rates);
	if (service->held)
		add(&text, "; a worker stands still");
	if (opener_fd() < 0)
		add(&text, "; the helper process is gone, so nothing more can be opened: restart");
	if (service->reload_failed)
		add(&text, "; the last reload was not taken over, see the log");
	for (unsigned i = 0; i < fleet->forwards; i++) {
		for (unsigned j = 0; j < fleet->forward[i]->ports; j++)
			add_port(&text, &fleet->forward[i]->port[j]);
	}
}

/* Whatever there is to be told, and the status with it. */
static void tell(struct service *service, const char *what)
{
	char text[SERVICE_STATUS_SIZE + 32];

	write_status(service, service->status, sizeof(service->status));
	snprintf(text, sizeof(text), "%sSTATUS=%s", what, service->status);
	say(service, text);
}

void service_renew(struct service *service)
{
	char status[SERVICE_STATUS_SIZE];

	if (!service->ready)
		return;
	write_status(service, status, sizeof(status));
	if (strcmp(status, service->status) != 0)
		tell(service, "");
}

void service_count(struct service *service, const struct report *report)
{
	uint64_t now_ns = clock_now_ns(), rx_packets = 0, tx_packets = 0;
	double seconds = (double)(now_ns - service->counted_ns) / (double)NSEC_PER_SEC;

	for (unsigned i = 0; i < report->sockets; i++) {
		rx_packets += report->socket[i].counts->rx_packets;
		tx_packets += report->socket[i].counts->tx_packets;
	}
	/* After a reload counts may begin anew. */
	service->rates[0] = '\0';
	if (service->counted_ns && rx_packets >= service->rx_packets &&
	    tx_packets >= service->tx_packets)
		snprintf(service->rates, sizeof(service->rates), ", %.0f frames/s in, %.0f out",
			 (double)(rx_packets - service->rx_packets) / seconds,
			 (double)(tx_packets - service->tx_packets) / seconds);
	service->counted_ns = now_ns;
	service->rx_packets = rx_packets;
	service->tx_packets = tx_packets;
}

/* --- the watchdog --- */

/* A look that comes soon after another one may find a worker asleep that is in order. */
static void tell_held(struct service *service, const struct forwarder *forwarder,
		      const struct worker *worker)
{
	uint64_t waited_us = (clock_now_ns() - service->fed_ns) / 1000;

	if (service->held || waited_us < service->watchdog_us / 2)
		return;
	service->held = true;
	log_error("forward %s: worker %u on CPU %u has not come round for %" PRIu64
		  " ms; after %" PRIu64 " ms (WatchdogSec=) systemd ends us and starts us again",
		  forwarder->conf->name, worker->number, worker->cpu, waited_us / 1000,
		  service->watchdog_us / 1000);
}

/* Feeds it if every worker has come round since it was asked to at an earlier look. */
static void look_at_workers(struct service *service)
{
	const struct fleet *fleet = service->fleet;
	bool all = true;

	for (unsigned i = 0; i < fleet->forwards; i++) {
		struct forwarder *forwarder = fleet->forward[i];

		for (unsigned j = 0; j < forwarder->workers; j++) {
			if (worker_came_round(forwarder->worker[j]))
				continue;
			tell_held(service, forwarder, forwarder->worker[j]);
			all = false;
		}
	}
	if (!all)
		return;
	if (service->held)
		log_info("every worker comes round again");
	service->held = false;
	service->fed_ns = clock_now_ns();
	say(service, "WATCHDOG=1");
}

static int on_watchdog(sd_event_source *source, uint64_t due_us, void *context)
{
	struct service *service = context;

	(void)due_us;
	look_at_workers(service);
	sd_event_source_set_time(source, clock_now_ns() / 1000 + service->watchdog_us / LOOKS);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int start_watchdog(struct service *service, sd_event *loop)
{
	int err = sd_watchdog_enabled(0, &service->watchdog_us);
	char text[64];

	if (err <= 0)
		return 0;
	if (service->watchdog_us < WATCHDOG_MIN_US) {
		log_warning("WatchdogSec= is %" PRIu64
			    " ms, and workers that sleep come round every "
			    "%d ms: taken as if it were %llu ms; set it to 1s or more",
			    service->watchdog_us / 1000, WORKER_SLEEP_MS, WATCHDOG_MIN_US / 1000);
		service->watchdog_us = WATCHDOG_MIN_US;
		snprintf(text, sizeof(text), "WATCHDOG_USEC=%" PRIu64, service->watchdog_us);
		say(service, text);
	}
	service->fed_ns = clock_now_ns(); /* systemd counts from READY */
	err = sd_event_add_time(loop, &service->watchdog, CLOCK_MONOTONIC,
				clock_now_ns() / 1000 + service->watchdog_us / LOOKS, 0,
				on_watchdog, service);
	return err < 0 ? err : 0;
}

/* --- from start to end --- */

/* True while a link is down that was up before our program came. */
static bool link_bounces(const struct service *service)
{
	const struct fleet *fleet = service->fleet;

	for (unsigned i = 0; i < fleet->forwards; i++) {
		for (unsigned j = 0; j < fleet->forward[i]->ports; j++) {
			const struct port *port = &fleet->forward[i]->port[j];

			if (port->served && port->netdev.link_up &&
			    port_state_now(&port->states) == PORT_STATE_NO_CARRIER)
				return true;
		}
	}
	return false;
}

static int on_settle(sd_event_source *source, uint64_t due_us, void *context)
{
	struct service *service = context;
	uint64_t now_ns = clock_now_ns();

	(void)due_us;
	if (link_bounces(service) && now_ns - service->started_ns < SERVICE_SETTLE_NS) {
		sd_event_source_set_time(source, now_ns / 1000 + SETTLE_LOOK_US);
		return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
	}
	service->ready = true;
	tell(service, "READY=1\n");
	return 0;
}

int service_start(struct service *service, const struct fleet *fleet, sd_event *loop)
{
	int err;

	service->fleet = fleet;
	service->started_ns = clock_now_ns();
	err = start_watchdog(service, loop);
	if (err >= 0)
		err = sd_event_add_time(loop, &service->settle, CLOCK_MONOTONIC,
					service->started_ns / 1000, 1, on_settle, service);
	return err < 0 ? err : 0;
}

void service_reloading(struct service *service)
{
	if (service->ready)
		tell(service, "RELOADING=1\n");
}

void service_reloaded(struct service *service, bool taken)
{
	service->reload_failed = !taken;
	service->counted_ns = 0;
	service->rates[0] = '\0';
	if (!service->ready)
		return;
	tell(service, "READY=1\n");
	if (service->watchdog) /* drivers may have taken their time */
		look_at_workers(service);
}

void service_stopping(struct service *service)
{
	say(service, "STOPPING=1\nSTATUS=Ending");
}

void service_close(struct service *service)
{
	sd_event_source_unref(service->watchdog);
	sd_event_source_unref(service->settle);
	if (service->fd > 0)
		close(service->fd);
	*service = (struct service){ 0 };
}
