/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "links.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "advice.h"
#include "base/clock.h"
#include "base/log.h"
#include "plan/mtu.h"
#include "planner.h"
#include "xdp/netdev.h"

/* What can fail for a moment is over within tens of ms, such as the kernel's hold on the queue of a socket that
 * was just closed. A device that a driver or an agent is still setting up may take seconds. */
#define RETRY_FIRST_NS (20 * NSEC_PER_MSEC)
#define RETRY_MOST_NS  NSEC_PER_SEC
#define RETRIES	       12 /* 7 s in all */
/* What takes longer may end without an event: another process closes the queue it holds, or somebody's XDP program
 * goes with its bpf_link. */
#define RETRY_SLOWLY_NS (10 * NSEC_PER_SEC)

/* A port and where it belongs. */
struct place {
	struct links *links;
	struct forwarder *forwarder;
	unsigned number;
	struct port *port;
};

typedef void place_fn(const struct place *place);

static void each_place(struct links *links, place_fn *each)
{
	for (unsigned i = 0; i < links->fleet->forwards; i++) {
		struct forwarder *forwarder = links->fleet->forward[i];

		for (unsigned j = 0; j < forwarder->ports; j++) {
			const struct place place = { links, forwarder, j, &forwarder->port[j] };

			each(&place);
		}
	}
}

/* --- states --- */

static void tell_state(const struct port *port)
{
	const struct port_change *now = port_state_past(&port->states, 0);
	bool grave = now->state == PORT_STATE_GONE || now->state == PORT_STATE_DEGRADED;
	/* What an attempt complained of was said in full. */
	bool said = now->state == PORT_STATE_DEGRADED && port->states.fault[PORT_FAULT_DEVICE][0];
	const char *reason = said ? "" : now->reason;

	if (port->states.changes == 1 && now->state == PORT_STATE_UP)
		return; /* as it should be */
	log_write(grave ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "port %s: %s%s%s", port->conf->name,
		  port_state_word(now->state), reason[0] ? ": " : "", reason);
}

static void set_link(struct port *port, enum port_state link, const char *reason)
{
	if (port_state_link(&port->states, link, reason, clock_now_ns()))
		tell_state(port);
}

static void set_fault(struct port *port, enum port_fault fault, const char *reason)
{
	if (port_state_fault(&port->states, fault, reason, clock_now_ns()))
		tell_state(port);
}

static void set_link_of(struct port *port, const struct netdev_event *event)
{
	if (!event->set_up)
		set_link(port, PORT_STATE_DOWN, "the device is set down");
	else if (!event->carrier)
		set_link(port, PORT_STATE_NO_CARRIER, "the other end is down, or not connected");
	else
		set_link(port, PORT_STATE_UP, "");
}

/* A port without a device has no faults either. */
static void set_gone(struct port *port, const char *reason)
{
	for (int i = 0; i < PORT_FAULTS; i++)
		port->states.fault[i][0] = '\0';
	set_link(port, PORT_STATE_GONE, reason);
}

/* --- what a port's device is like --- */

static bool mtu_too_large(const struct place *place)
{
	return place->forwarder->mode->receives &&
	       place->port->netdev.mtu > mtu_limit(place->forwarder->conf);
}

static void judge_mtu(const struct place *place)
{
	const struct conf_forward *conf = place->forwarder->conf;
	char reason[PORT_REASON_SIZE];

	snprintf(reason, sizeof(reason),
		 "MTU %u is above the %u that frames of %u bytes take: larger packets are dropped",
		 place->port->netdev.mtu, mtu_limit_of(conf, conf->frame_size), conf->frame_size);
	set_fault(place->port, PORT_FAULT_MTU, mtu_too_large(place) ? reason : NULL);
}

static unsigned lanes_receiving(const struct place *place)
{
	unsigned lanes = 0;

	for (unsigned i = 0; i < place->forwarder->workers; i++)
		lanes += place->forwarder->plan->worker[i].lane[place->number].rx;
	return lanes;
}

static void judge_queues(const struct place *place)
{
	const struct netdev *netdev = &place->port->netdev;
	unsigned missing = forwarder_lanes_missing(place->forwarder, place->number);
	unsigned lanes = lanes_receiving(place);
	char reason[PORT_REASON_SIZE] = "";

	if (missing)
		snprintf(reason, sizeof(reason),
			 "%u of the planned queues are not there (it has %u RX, %u TX): "
			 "`millracectl reload` plans anew",
			 missing, netdev->rx_queues, netdev->tx_queues);
	else if (place->port->conf->all_queues && lanes && netdev->rx_queues > lanes)
		snprintf(reason, sizeof(reason),
			 "%u of %u RX queues are not served: `millracectl reload` plans anew",
			 netdev->rx_queues - lanes, netdev->rx_queues);
	set_fault(place->port, PORT_FAULT_QUEUES, reason[0] ? reason : NULL);
}

/* --- trying --- */

static uint64_t retry_delay_ns(unsigned tries)
{
	uint64_t delay_ns = RETRY_FIRST_NS;

	for (; tries && delay_ns < RETRY_MOST_NS; tries--)
		delay_ns *= 2;
	return delay_ns < RETRY_MOST_NS ? delay_ns : RETRY_MOST_NS;
}

static void set_timer(struct links *links, uint64_t due_ns)
{
	uint64_t now_set_us;

	if (sd_event_source_get_enabled(links->timer, NULL) > 0 &&
	    sd_event_source_get_time(links->timer, &now_set_us) >= 0 && now_set_us <= due_ns / 1000)
		return;
	sd_event_source_set_time(links->timer, due_ns / 1000);
	sd_event_source_set_enabled(links->timer, SD_EVENT_ONESHOT);
}

static void try_in(const struct place *place, uint64_t delay_ns)
{
	struct port *port = place->port;
	uint64_t due_ns = clock_now_ns() + delay_ns;

	if (port->served || (port->retry_ns && port->retry_ns <= due_ns))
		return;
	port->retry_ns = due_ns;
	set_timer(place->links, due_ns);
}

/* Something happened to the device. Not at once but from the loop: a reload may be under way, and what else
 * happened is looked at first. */
static void try_soon(const struct place *place)
{
	/* An attempt in vain may itself be what happened to the device: it is not to go round and round. */
	try_in(place, place->port->tries ? retry_delay_ns(place->port->tries - 1) : 0);
}

/* How the port's device is now. False: it cannot be told at the moment, and every port is looked at again. */
static bool look(const struct place *place, struct netdev_event *event)
{
	if (!netdev_look(place->port->netdev.ifindex, event))
		return true;
	place->links->unseen = true;
	set_timer(place->links, clock_now_ns() + RETRY_MOST_NS);
	return false;
}

/* What an attempt complains of: said the first time, and kept. */
struct attempt {
	struct port *port;
	char complaint[256]; /* the first error; "": none yet */
	bool again;	     /* the same as the time before, as far as is known */
	bool absent;	     /* there is nothing to be served, and the kernel tells when there is */
	bool refused;	     /* by the plan, for a reason that does not pass by itself */
};

static bool note_complaint(enum log_level level, const char *text, void *context)
{
	struct attempt *attempt = context;

	if (level == LOG_LEVEL_ERROR && !attempt->complaint[0]) {
		snprintf(attempt->complaint, sizeof(attempt->complaint), "%s", text);
		attempt->again = !strcmp(attempt->complaint, attempt->port->complaint);
	}
	return attempt->again;
}

/* Says what stands against it, as at a start. Returns 0 if it can be served; -EINVAL; -ENODEV if it has gone; or
 * the -errno of what was needed to judge it, then *device is left as it is. */
static int plan_judges(const struct place *place, struct netdev *device)
{
	const struct conf_port *conf = place->port->conf;
	struct plan *plan;
	bool agrees = true;
	int err;

	place->port->judged = true;
	err = planner_make(place->links->fleet->conf, place->links->fleet, &plan);
	place->port->judged = false;
	if (err)
		return err;
	for (unsigned i = 0; i < plan->messages; i++) {
		const struct plan_message *message = &plan->message[i];

		if (message->port != conf || message->level == PLAN_NOTE)
			continue;
		agrees = agrees && message->level == PLAN_WARNING;
		log_write(message->level == PLAN_WARNING ? LOG_LEVEL_WARNING : LOG_LEVEL_ERROR,
			  "%s", message->text);
	}
	for (unsigned i = 0; i < plan->forwards; i++) {
		for (unsigned j = 0; j < plan->forward[i].ports; j++) {
			if (plan->forward[i].port[j].conf == conf)
				*device = plan->forward[i].port[j].device;
		}
	}
	plan_free(plan);
	if (!device->present)
		return -ENODEV;
	return agrees ? 0 : -EINVAL;
}

/* Two of its names may be those of two ports. */
static bool has_it(const struct place *place, const struct netdev *device)
{
	struct forwarder *forwarder;
	const struct port *port = fleet_find(place->links->fleet, device->ifindex, &forwarder);

	return port && port != place->port;
}

static int serve(const struct place *place, struct attempt *attempt)
{
	struct netdev device = { 0 };
	struct netdev_queues queues;
	int err = plan_judges(place, &device);

	attempt->refused = err == -EINVAL;
	attempt->absent = err == -ENODEV;
	if (err && !attempt->refused)
		return err;
	attempt->absent = has_it(place, &device);
	if (attempt->absent)
		return -ENODEV;
	/* The plan took it to have what it is planned for. */
	if (!netdev_query_queues(device.name, &queues)) {
		device.rx_queues = queues.rx;
		device.tx_queues = queues.tx;
	}
	place->port->netdev = device;
	return err ? err : forwarder_raise_port(place->forwarder, place->number);
}

static void served_again(const struct place *place)
{
	struct port *port = place->port;
	struct netdev_event event;

	port->tries = 0;
	port->complaint[0] = '\0';
	port->said_unexplained = port->said_no_napi = false;
	if (strcmp(port->conf->device, port->netdev.name) != 0)
		log_info("%s is an alternative name of %s", port->conf->device, port->netdev.name);
	if (place->forwarder->mode->receives && place->forwarder->mode->sends)
		advice_at_start(port, 1);
	port->states.fault[PORT_FAULT_DEVICE][0] = '\0';
	judge_mtu(place);
	judge_queues(place);
	if (look(place, &event))
		set_link_of(port, &event);
}

static void not_served(const struct place *place, const struct attempt *attempt, int err)
{
	struct port *port = place->port;
	struct netdev_event event;

	snprintf(port->complaint, sizeof(port->complaint), "%s", attempt->complaint);
	if (port->netdev.present) {
		set_fault(port, PORT_FAULT_DEVICE,
			  attempt->complaint[0] ? attempt->complaint : err_name(err));
		if (look(place, &event))
			set_link_of(port, &event);
	}
	port->tries++;
	try_in(place, attempt->refused || port->tries > RETRIES ? RETRY_SLOWLY_NS :
								  retry_delay_ns(port->tries - 1));
}

static void try_now(const struct place *place)
{
	struct port *port = place->port;
	struct attempt attempt = { .port = port, .again = port->complaint[0] };
	struct netdev device;
	int err;

	if (port->served || !port->retry_ns || port->retry_ns > clock_now_ns())
		return;
	port->retry_ns = 0;
	if (netdev_query(port->conf->device, &device) == -ENODEV)
		return; /* it is told when it comes */
	log_capture(note_complaint, &attempt);
	err = serve(place, &attempt);
	log_capture(NULL, NULL);
	if (!err)
		served_again(place);
	else if (!attempt.absent)
		not_served(place, &attempt, err);
}

/* --- events --- */

static void lose(const struct place *place, const char *what)
{
	struct port *port = place->port;
	bool served = port->served;
	uint32_t taken = forwarder_lose_port(place->forwarder, place->number);

	if (served)
		log_info("forward %s: port %s: %s is not served any more; %u frames reclaimed",
			 place->forwarder->conf->name, port->conf->name, port->netdev.name, taken);
	port->tries = 0;
	if (!what)
		return;
	if (served)
		forwarder_book_departed(place->forwarder, place->number);
	port->complaint[0] = '\0';
	port->netdev.present = false;
	port->netdev.ifindex = 0;
	set_gone(port, what);
}

static void on_gone(const struct place *place)
{
	static const char what[] = "deleted, or moved to another network namespace";

	if (!place->links->ports_wait) {
		log_error("%s: the device is gone (%s)", place->port->netdev.name, what);
		place->links->ended = true;
		sd_event_exit(place->links->loop, 0);
		return;
	}
	lose(place, what);
	try_soon(place); /* one of its name may be there already */
}

static void on_name(const struct place *place, const char *name)
{
	struct netdev *netdev = &place->port->netdev;

	if (!name[0] || !strcmp(name, netdev->name))
		return;
	log_info("port %s: %s is called %s now", place->port->conf->name, netdev->name, name);
	snprintf(netdev->name, sizeof(netdev->name), "%s", name);
}

static void on_mac(const struct place *place, const struct netdev_event *event)
{
	struct netdev *netdev = &place->port->netdev;
	char mac[MAC_TEXT_SIZE];

	if (!event->mac_told || !memcmp(event->mac, netdev->mac, MAC_LEN))
		return;
	memcpy(netdev->mac, event->mac, MAC_LEN);
	log_info("port %s: the MAC address of %s is %s now", place->port->conf->name, netdev->name,
		 mac_print(event->mac, mac));
	forwarder_new_mac(place->forwarder, place->number);
}

/* One warning a change: an interface's every change is an event, most of them not of its MTU. */
static void on_mtu(const struct place *place, uint32_t mtu)
{
	struct port *port = place->port;

	if (!mtu || port->netdev.mtu == mtu)
		return;
	port->netdev.mtu = mtu;
	if (!port->served)
		return;
	if (mtu_too_large(place) && port->conf->mtu_stops) {
		lose(place, NULL);
		return;
	}
	if (mtu_too_large(place))
		advice_mtu(place->forwarder->conf, &port->netdev);
	judge_mtu(place);
}

static void on_queues(const struct place *place)
{
	struct port *port = place->port;
	struct netdev_queues now;

	if (netdev_query_queues(port->netdev.name, &now) ||
	    (now.rx == port->attached.rx && now.tx == port->attached.tx))
		return;
	log_info("port %s: %s has %u RX and %u TX queues now", port->conf->name, port->netdev.name,
		 now.rx, now.tx);
	port->attached = now;
	port->netdev.rx_queues = now.rx;
	port->netdev.tx_queues = now.tx;
	judge_queues(place);
}

static void on_change(const struct place *place, const struct netdev_event *event)
{
	struct port *port = place->port;

	on_name(place, event->name);
	on_mac(place, event);
	on_mtu(place, event->mtu);
	if (port->served)
		on_queues(place);
	set_link_of(port, event);
	if (port->served) /* a reload compares with it */
		place->forwarder->plan->port[place->number].device = port->netdev;
	else
		try_soon(place);
}

static bool find(struct links *links, int ifindex, struct place *place)
{
	*place = (struct place){ .links = links };
	place->port = fleet_find(links->fleet, ifindex, &place->forwarder);
	if (!place->port)
		return false;
	place->number = (unsigned)(place->port - place->forwarder->port);
	return true;
}

/* It may be the one, or have got the name, that a port waits for. */
static void try_if_absent(const struct place *place)
{
	if (!place->port->netdev.present)
		try_soon(place);
}

static void on_event(const struct netdev_event *event, void *context)
{
	struct links *links = context;
	struct place place;
	bool found = find(links, event->ifindex, &place);

	if (found && event->gone)
		on_gone(&place);
	else if (found)
		on_change(&place, event);
	else if (!event->gone)
		each_place(links, try_if_absent);
}

/* Events were lost. A device that went and came back with the number it had looks as if it had stayed, but
 * for its sockets. */
static void look_at(const struct place *place)
{
	struct netdev_event event;

	if (forwarder_port_unbound(place->forwarder, place->number)) {
		on_gone(place);
		return;
	}
	if (!place->port->netdev.present) {
		try_soon(place);
		return;
	}
	if (look(place, &event))
		on_event(&event, place->links);
}

static int on_readable(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct links *links = context;

	(void)source, (void)events;
	if (netdev_watch_read(fd, on_event, links))
		each_place(links, look_at);
	return 0;
}

static void next_timer(const struct place *place)
{
	if (!place->port->served && place->port->retry_ns)
		set_timer(place->links, place->port->retry_ns);
}

static int on_timer(sd_event_source *source, uint64_t due_us, void *context)
{
	struct links *links = context;
	bool unseen = links->unseen;

	(void)source, (void)due_us;
	links->unseen = false;
	links_catch_up(links); /* or what led to here would be told of the device afterwards */
	if (unseen)
		each_place(links, look_at);
	each_place(links, try_now);
	each_place(links, next_timer);
	return 0;
}

/* --- its life --- */

int links_open(struct links *links)
{
	int err;

	links->watch_fd = netdev_watch_open();
	if (links->watch_fd > 0)
		return 0;
	err = links->watch_fd;
	log_error("link events cannot be watched: " ERR_FORMAT, ERR_SANDBOX_ARGS(err));
	return err;
}

static void first_state(const struct place *place)
{
	struct netdev_event event;

	if (place->port->states.changes)
		return;
	if (!place->port->netdev.present) {
		set_link(place->port, PORT_STATE_GONE, "waiting for the device");
		return;
	}
	judge_mtu(place);
	judge_queues(place);
	if (look(place, &event) && !event.gone)
		set_link_of(place->port, &event);
}

int links_start(struct links *links, struct fleet *fleet, sd_event *loop)
{
	int err;

	links->fleet = fleet;
	links->loop = loop;
	err = sd_event_add_time(loop, &links->timer, CLOCK_MONOTONIC, UINT64_MAX, 1, on_timer,
				links);
	if (err >= 0)
		err = sd_event_source_set_enabled(links->timer, SD_EVENT_OFF);
	if (err >= 0)
		err = sd_event_add_io(loop, &links->watch, links->watch_fd, EPOLLIN, on_readable,
				      links);
	/* Of two things that are due at once: who judges a port's frames has to know whether it has left. */
	if (err >= 0)
		err = sd_event_source_set_priority(links->watch, SD_EVENT_PRIORITY_IMPORTANT);
	if (err < 0)
		return err;
	links_renew(links);
	return 0;
}

void links_catch_up(struct links *links)
{
	(void)on_readable(NULL, links->watch_fd, 0, links);
}

void links_renew(struct links *links)
{
	each_place(links, first_state);
	each_place(links, try_soon);
}

void links_close(struct links *links)
{
	sd_event_source_unref(links->timer);
	sd_event_source_unref(links->watch);
	if (links->watch_fd > 0)
		close(links->watch_fd);
	*links = (struct links){ 0 };
}
