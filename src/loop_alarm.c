/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "loop_alarm.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "bridging.h"
#include "fleet.h"
#include "fwd/bridge.h"
#include "loop_probe.h"

/* The two ports that most stations moved to within the second. */
static void find_busiest(const uint64_t *within, unsigned ports, unsigned *first, unsigned *second)
{
	*first = 0;
	*second = 1;
	if (within[1] > within[0]) {
		*first = 1;
		*second = 0;
	}
	for (unsigned i = 2; i < ports; i++) {
		if (within[i] > within[*first]) {
			*second = *first;
			*first = i;
		} else if (within[i] > within[*second]) {
			*second = i;
		}
	}
}

/* Notes a loop if there is one. */
static bool find_loop(struct loop_alarm *alarm, const uint64_t *moves, unsigned ports)
{
	/* Before there were so many looks the oldest is none: nothing had moved yet. */
	const uint64_t *before = alarm->moves[alarm->looks % LOOP_LOOKS];
	uint64_t within[CONF_PORTS_MAX] = { 0 };
	unsigned one, other;

	for (unsigned i = 0; i < ports; i++)
		within[i] = moves[i] - before[i];
	memcpy(alarm->moves[alarm->looks++ % LOOP_LOOKS], moves, ports * sizeof(*moves));
	find_busiest(within, ports, &one, &other);
	if (within[other] < LOOP_MOVES)
		return false;
	alarm->port[0] = one < other ? one : other;
	alarm->port[1] = one < other ? other : one;
	alarm->count = within[one] + within[other];
	return true;
}

enum loop_event loop_alarm_look(struct loop_alarm *alarm, const uint64_t *moves, unsigned ports,
				uint64_t now_ns)
{
	if (alarm->blocked) {
		/* What has moved until now is of before. */
		for (unsigned i = 0; i < LOOP_LOOKS; i++)
			memcpy(alarm->moves[i], moves, ports * sizeof(*moves));
		alarm->seen_ns = now_ns;
		if (now_ns < alarm->blocked_until_ns)
			return LOOP_NOTHING;
		if (alarm->back_ns && now_ns - alarm->back_ns < 2 * alarm->probe_ns)
			return LOOP_STAYS;
		alarm->blocked = false;
		return LOOP_AGAIN;
	}
	if (find_loop(alarm, moves, ports)) {
		alarm->probed = false;
		alarm->seen_ns = now_ns;
		return LOOP_SEEN;
	}
	if (!alarm->suspected || now_ns - alarm->seen_ns < loop_alarm_quiet_ns(alarm))
		return LOOP_NOTHING;
	alarm->suspected = false;
	return LOOP_OVER;
}

enum loop_event loop_alarm_back(struct loop_alarm *alarm, unsigned out, unsigned in,
				uint64_t now_ns)
{
	if (alarm->blocked) {
		alarm->back_ns = now_ns;
		return LOOP_NOTHING;
	}
	alarm->probed = true;
	alarm->port[0] = out < in ? out : in;
	alarm->port[1] = out < in ? in : out;
	alarm->seen_ns = now_ns;
	return LOOP_SEEN;
}

void loop_alarm_block(struct loop_alarm *alarm, uint64_t until_ns)
{
	alarm->blocked = true;
	alarm->back_ns = 0;
	alarm->blocked_until_ns = until_ns;
}

void loop_alarm_bound(struct loop_alarm *alarm, uint64_t block_ns, uint64_t now_ns)
{
	if (alarm->blocked_until_ns > now_ns + block_ns)
		alarm->blocked_until_ns = now_ns + block_ns;
	if (!block_ns)
		alarm->back_ns = 0;
}

static struct port *port_of(struct forwarder *forwarder, unsigned index)
{
	return &forwarder->port[forwarder->loop_alarm.port[index]];
}

static const char *name_of(struct forwarder *forwarder, unsigned index)
{
	return port_of(forwarder, index)->conf->name;
}

/* By what it is suspected, and between which ports. */
static void print_cause(struct forwarder *forwarder, char *text, size_t size)
{
	const struct loop_alarm *alarm = &forwarder->loop_alarm;

	if (!alarm->probed)
		snprintf(text, size, "stations flap between ports %.*s and %.*s", CONF_NAME_MAX,
			 name_of(forwarder, 0), CONF_NAME_MAX, name_of(forwarder, 1));
	else if (alarm->port[0] != alarm->port[1])
		snprintf(text, size, "a probe out of port %.*s or %.*s came back on the other",
			 CONF_NAME_MAX, name_of(forwarder, 0), CONF_NAME_MAX,
			 name_of(forwarder, 1));
	else
		snprintf(text, size, "a probe out of port %.*s came back on it", CONF_NAME_MAX,
			 name_of(forwarder, 0));
}

static void show(struct forwarder *forwarder, uint64_t now_ns)
{
	const struct loop_alarm *alarm = &forwarder->loop_alarm;
	char blocked[64 + CONF_NAME_SIZE] = "", cause[64 + 2 * CONF_NAME_SIZE];
	char reason[PORT_REASON_SIZE];

	if (alarm->blocked)
		snprintf(blocked, sizeof(blocked), "; %.*s is blocked for %u s", CONF_NAME_MAX,
			 name_of(forwarder, 1), forwarder->conf->loop_block_s);
	print_cause(forwarder, cause, sizeof(cause));
	snprintf(reason, sizeof(reason), "loop-suspected: %s%s", cause, blocked);
	for (unsigned i = 0; i < 2; i++)
		port_state_fault(&port_of(forwarder, i)->states, PORT_FAULT_LOOP,
				 alarm->suspected ? reason : NULL, now_ns);
}

static void cut(struct forwarder *forwarder, uint64_t now_ns)
{
	struct loop_alarm *alarm = &forwarder->loop_alarm;
	unsigned block_s = forwarder->conf->loop_block_s;

	if (!block_s)
		return;
	loop_alarm_block(alarm, now_ns + block_s * NSEC_PER_SEC);
	loop_probe_forget(forwarder);
	bridging_block(forwarder, alarm->port[1], true);
	log_warning("forward %s: port %s is blocked for %u s (loop-block)", forwarder->conf->name,
		    name_of(forwarder, 1), block_s);
}

static void tell(struct forwarder *forwarder)
{
	const struct loop_alarm *alarm = &forwarder->loop_alarm;
	bool one = alarm->port[0] == alarm->port[1];
	char cause[64 + 2 * CONF_NAME_SIZE], moves[64] = "";

	print_cause(forwarder, cause, sizeof(cause));
	if (!alarm->probed)
		snprintf(moves, sizeof(moves), ", %llu moves within a second",
			 (unsigned long long)alarm->count);
	log_warning("forward %s: loop-suspected: %s%s; look for a cable %s, and unplug it%s",
		    forwarder->conf->name, cause, moves,
		    one ? "that has both ends behind it" :
			  "or a bridge that joins what is behind them",
		    one || forwarder->conf->loop_block_s ?
			    "" :
			    " (loop-block = 30s would block one of them meanwhile)");
}

/* `before`: the ports that were suspected until now, and are not to stay so if these are others. */
static void raise_alarm(struct forwarder *forwarder, const unsigned *before, uint64_t now_ns)
{
	struct loop_alarm *alarm = &forwarder->loop_alarm;
	bool told = alarm->suspected && before[0] == alarm->port[0] && before[1] == alarm->port[1];

	for (unsigned i = 0; alarm->suspected && i < 2; i++)
		port_state_fault(&forwarder->port[before[i]].states, PORT_FAULT_LOOP, NULL, now_ns);
	alarm->suspected = true;
	if (!told)
		tell(forwarder);
	cut(forwarder, now_ns);
	show(forwarder, now_ns);
}

/* `before`: as of raise_alarm(). */
static void follow(struct forwarder *forwarder, enum loop_event event, const unsigned *before,
		   uint64_t now_ns)
{
	struct loop_alarm *alarm = &forwarder->loop_alarm;

	switch (event) {
	case LOOP_SEEN:
		raise_alarm(forwarder, before, now_ns);
		break;
	case LOOP_AGAIN:
		bridging_block(forwarder, alarm->port[1], false);
		log_info("forward %s: port %s is not blocked any more", forwarder->conf->name,
			 name_of(forwarder, 1));
		show(forwarder, now_ns);
		break;
	case LOOP_STAYS:
		loop_probe_forget(forwarder);
		loop_alarm_block(alarm, now_ns + forwarder->conf->loop_block_s * NSEC_PER_SEC);
		log_info("forward %s: port %s is blocked for another %u s, for probes still come "
			 "back",
			 forwarder->conf->name, name_of(forwarder, 1),
			 forwarder->conf->loop_block_s);
		break;
	case LOOP_OVER:
		log_info("forward %s: no loop between ports %s and %s for %llu s",
			 forwarder->conf->name, name_of(forwarder, 0), name_of(forwarder, 1),
			 loop_alarm_quiet_ns(alarm) / NSEC_PER_SEC);
		show(forwarder, now_ns);
		break;
	case LOOP_NOTHING:
		break;
	}
}

/* Probes that came back. */
static void take_backs(struct forwarder *forwarder, uint64_t now_ns)
{
	struct loop_alarm *alarm = &forwarder->loop_alarm;
	unsigned out, in;

	while (loop_probe_back(forwarder, &out, &in)) {
		const unsigned before[2] = { alarm->port[0], alarm->port[1] };

		follow(forwarder, loop_alarm_back(alarm, out, in, now_ns), before, now_ns);
	}
}

static void watch_bridge(struct forwarder *forwarder, uint64_t now_ns)
{
	struct loop_alarm *alarm = &forwarder->loop_alarm;
	uint64_t moves[CONF_PORTS_MAX];
	unsigned before[2];

	/* They may be others since a reload. */
	alarm->probe_ns = forwarder->conf->loop_probe_s * NSEC_PER_SEC;
	take_backs(forwarder, now_ns);
	loop_alarm_bound(alarm, forwarder->conf->loop_block_s * NSEC_PER_SEC, now_ns);
	memcpy(before, alarm->port, sizeof(before));
	for (unsigned i = 0; i < forwarder->ports; i++)
		moves[i] = fdb_count(forwarder->bridge->fdb, i).events[FDB_MOVED];
	follow(forwarder, loop_alarm_look(alarm, moves, forwarder->ports, now_ns), before, now_ns);
	loop_probe_send(forwarder, now_ns);
}

bool loop_alarm_watch(const struct fleet *fleet)
{
	uint64_t now_ns = clock_now_ns();
	bool any = false;

	for (unsigned i = 0; i < fleet->forwards; i++) {
		if (!fleet->forward[i]->bridge)
			continue;
		watch_bridge(fleet->forward[i], now_ns);
		any = true;
	}
	return any;
}

void loop_alarm_news(const struct fleet *fleet)
{
	uint64_t now_ns = clock_now_ns();

	for (unsigned i = 0; i < fleet->forwards; i++) {
		if (fleet->forward[i]->bridge)
			take_backs(fleet->forward[i], now_ns);
	}
}
