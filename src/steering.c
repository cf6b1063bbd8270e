/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "steering.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/log.h"
#include "fleet.h"
#include "plan/plan.h"
#include "xdp/addresses.h"

_Static_assert(PASS_RULES_MAX == MILLRACE_RULES_MAX, "the program has room for every rule");

/* --- rules --- */

static struct steer_rule rule_of(const struct pass_rule *pass)
{
	static const enum millrace_kind kinds[] = {
		[PASS_MAC] = MILLRACE_KIND_MAC,
		[PASS_VLAN] = MILLRACE_KIND_VLAN,
		[PASS_ETHERTYPE] = MILLRACE_KIND_ETHERTYPE,
		[PASS_HOST] = MILLRACE_KIND_HOST,
		[PASS_PROTO] = MILLRACE_KIND_PROTO,
		[PASS_TCP_PORT] = MILLRACE_KIND_TCP_PORT,
		[PASS_UDP_PORT] = MILLRACE_KIND_UDP_PORT,
	};
	struct steer_rule rule = { .kind = kinds[pass->kind], .both = pass->both };
	uint16_t number = htons((uint16_t)pass->number);

	if (pass->kind == PASS_MAC)
		rule.bits = pass->number;
	if (pass->kind == PASS_MAC || pass->kind == PASS_HOST)
		memcpy(rule.value, pass->address, sizeof(rule.value));
	else if (pass->kind == PASS_PROTO)
		rule.value[0] = (uint8_t)pass->number;
	else
		memcpy(rule.value, &number, sizeof(number));
	return rule;
}

static int set_rules(const struct port *port, enum conf_mode mode)
{
	const struct pass *pass = &port->conf->pass;
	struct steer_rule *rules = calloc(pass->rules + 1U, sizeof(*rules));
	int err;

	if (!rules)
		return -ENOMEM;
	for (unsigned i = 0; i < pass->rules; i++)
		rules[i] = rule_of(&pass->rule[i]);
	err = steer_set_rules(port->steer, pass->standard && plan_mode_of(mode)->shares, rules,
			      pass->rules);
	free(rules);
	return err;
}

/* --- the host's addresses --- */

static int set_own(const struct port *port, const struct addresses *all)
{
	struct millrace_own_key *keys = calloc(MILLRACE_OWN_MAX, sizeof(*keys));
	struct steer_own own = { .address = keys };
	unsigned count;
	int err;

	if (!keys)
		return -ENOMEM;
	count = addresses_of(all, port->netdev.ifindex, own.mac, keys, MILLRACE_OWN_MAX);
	if (count > MILLRACE_OWN_MAX)
		log_warning("%s: the host has %u addresses on it; ARP and neighbour discovery for "
			    "those beyond the first %d are forwarded and not the host's",
			    port->netdev.name, count, MILLRACE_OWN_MAX);
	own.addresses = count < MILLRACE_OWN_MAX ? count : MILLRACE_OWN_MAX;
	err = steer_set_own(port->steer, &own);
	free(keys);
	return err;
}

static void tell_failed(const struct port *port, int err)
{
	log_error("%s: which frames the host gets cannot be set: " ERR_FORMAT, port->netdev.name,
		  ERR_SANDBOX_ARGS(err));
}

int steering_open(struct port *port, enum conf_mode mode)
{
	struct addresses *all = NULL;
	int err;

	if (port->prog.steer.fd[STEER_POLICY] <= 0)
		return 0;     /* attach-method = external: the program is not ours */
	steering_close(port); /* of a program that it had before */
	err = steer_new(&port->steer, &port->prog.steer);
	if (!err)
		err = addresses_read(&all);
	if (!err)
		err = set_own(port, all);
	if (!err)
		err = set_rules(port, mode);
	addresses_free(all);
	if (err)
		tell_failed(port, err);
	return err;
}

void steering_apply(const struct port *port, enum conf_mode mode)
{
	int err = port->steer ? set_rules(port, mode) : 0;

	if (err)
		tell_failed(port, err);
}

void steering_close(struct port *port)
{
	steer_free(port->steer);
	port->steer = NULL;
}

/* --- counts --- */

void steering_each_count(const struct port *port, steering_count_fn *each, void *context)
{
	static const char *const classes[MILLRACE_CLASSES] = {
		[MILLRACE_OWN_MAC] = "own MAC", [MILLRACE_OWN_ARP] = "own ARP",
		[MILLRACE_OWN_ND] = "own ND",	[MILLRACE_BOTH_ARP] = "ARP for others",
		[MILLRACE_BOTH_DHCP] = "DHCP",	[MILLRACE_BOTH_RA] = "RA",
		[MILLRACE_BOTH_MLD] = "MLD",	[MILLRACE_BOTH_DHCPV6] = "DHCPv6",
	};
	const struct pass *pass = &port->conf->pass;

	if (!port->steer)
		return;
	for (unsigned i = 0; steer_is_standard(port->steer) && i < MILLRACE_CLASSES; i++) {
		struct steering_count count = { .class = classes[i],
						.both = i >= MILLRACE_BOTH_ARP };

		if (!steer_class_frames(port->steer, (enum millrace_class)i, &count.frames))
			each(port, &count, context);
	}
	for (unsigned i = 0; i < pass->rules; i++) {
		struct steering_count count = { .rule = &pass->rule[i],
						.both = pass->rule[i].both };
		struct steer_rule rule = rule_of(&pass->rule[i]);

		if (!steer_rule_frames(port->steer, &rule, &count.frames))
			each(port, &count, context);
	}
}

/* --- following --- */

/* How long news is gathered: a host that starts a hundred containers has as many at once, and each look
 * is one at all its devices. */
#define GATHER_US 50000

static void follow_port(const struct port *port, void *context)
{
	int err = port->steer ? set_own(port, context) : 0;

	if (err)
		tell_failed(port, err);
}

static int on_timer(sd_event_source *source, uint64_t due_us, void *context)
{
	struct steering_watch *watch = context;
	struct addresses *all;
	int err;

	(void)source, (void)due_us;
	err = addresses_read(&all);
	if (err) {
		log_error("the host's addresses cannot be read, and those of before are taken for "
			  "its own: " ERR_FORMAT,
			  ERR_SANDBOX_ARGS(err));
		return 0;
	}
	fleet_each_port(watch->fleet, follow_port, all);
	addresses_free(all);
	return 0;
}

static int on_news(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct steering_watch *watch = context;
	int armed = 0;

	(void)source, (void)events;
	addresses_watch_drain(fd);
	if (sd_event_source_get_enabled(watch->timer, &armed) >= 0 && armed)
		return 0;
	sd_event_source_set_time_relative(watch->timer, GATHER_US);
	return sd_event_source_set_enabled(watch->timer, SD_EVENT_ONESHOT);
}

int steering_watch_open(struct steering_watch *watch)
{
	int fd = addresses_watch_open();

	if (fd < 0) {
		log_error("the host's addresses cannot be watched: " ERR_FORMAT,
			  ERR_SANDBOX_ARGS(fd));
		return fd;
	}
	watch->fd = fd;
	return 0;
}

int steering_watch_start(struct steering_watch *watch, struct fleet *fleet, sd_event *loop)
{
	int err;

	watch->fleet = fleet;
	err = sd_event_add_time_relative(loop, &watch->timer, CLOCK_MONOTONIC, 0, 0, on_timer,
					 watch);
	if (err >= 0)
		err = sd_event_source_set_enabled(watch->timer, SD_EVENT_OFF);
	if (err >= 0)
		err = sd_event_add_io(loop, &watch->news, watch->fd, EPOLLIN, on_news, watch);
	return err < 0 ? err : 0;
}

void steering_watch_close(struct steering_watch *watch)
{
	sd_event_source_unref(watch->news);
	sd_event_source_unref(watch->timer);
	if (watch->fd > 0)
		close(watch->fd);
	*watch = (struct steering_watch){ 0 };
}
