/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "xdp/opener_permits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct permit {
	char device[DEVICE_NAME_SIZE];
	char xskmap[PROG_PATH_SIZE]; /* "": our own program */
	struct allowed allowed;
};

/* --- what the configuration has --- */

static void permit_queues(struct allowed *allowed, const struct number_list *queues)
{
	allowed->any_queue = !queues;
	for (unsigned i = 0; queues && i < queues->count; i++) {
		unsigned queue = queues->value[i];

		if (queue < QUEUES_PERMITTED)
			allowed->queue[queue / QUEUE_WORD_BITS] |= 1ULL << queue % QUEUE_WORD_BITS;
	}
}

int opener_permit_device(struct opener_permits *permits, const struct opener_permit *permit)
{
	struct permit added;
	void *grown;

	memset(&added, 0, sizeof(added));
	added.allowed.named = true;
	added.allowed.program = !permit->xskmap && !permit->dispatcher;
	added.allowed.dispatcher = permit->dispatcher;
	added.allowed.xskmap = permit->xskmap;
	added.allowed.replace = permit->replace;
	added.allowed.vlan_offload = permit->vlan_offload;
	added.allowed.busy_poll = permit->busy_poll;
	snprintf(added.device, sizeof(added.device), "%s", permit->device);
	snprintf(added.xskmap, sizeof(added.xskmap), "%s", permit->xskmap ? permit->xskmap : "");
	permit_queues(&added.allowed, permit->queues);
	for (unsigned i = 0; i < permits->count; i++) {
		/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): zeroed as a whole */
		if (!memcmp(&permits->permit[i], &added, sizeof(added)))
			return 0;
	}
	grown = reallocarray(permits->permit, permits->count + 1, sizeof(*permits->permit));
	if (!grown)
		return -ENOMEM;
	permits->permit = grown;
	permits->permit[permits->count++] = added;
	return 0;
}

void opener_permit_realtime(struct opener_permits *permits, unsigned priority)
{
	if (priority > permits->realtime)
		permits->realtime = priority;
}

/* Adds what one permit allows; of maps the one that is asked for. */
static void allow(struct allowed *all, const struct permit *permit, const char *xskmap)
{
	const struct allowed *more = &permit->allowed;

	all->named |= more->named;
	all->any_queue |= more->any_queue;
	for (size_t i = 0; i < sizeof(all->queue) / sizeof(all->queue[0]); i++)
		all->queue[i] |= more->queue[i];
	all->program |= more->program;
	all->dispatcher |= more->dispatcher;
	all->xskmap |= more->xskmap && !strcmp(permit->xskmap, xskmap);
	all->replace |= more->replace;
	all->vlan_offload |= more->vlan_offload;
	all->busy_poll |= more->busy_poll;
}

struct allowed permits_all(const struct opener_permits *permits)
{
	struct allowed all = { 0 };

	for (unsigned i = 0; i < permits->count; i++)
		allow(&all, &permits->permit[i], permits->permit[i].xskmap);
	return all;
}

bool permits_name(const struct opener_permits *permits, const char *device)
{
	for (unsigned i = 0; i < permits->count; i++) {
		if (!strcmp(permits->permit[i].device, device))
			return true;
	}
	return false;
}

bool allowed_queue(const struct allowed *allowed, uint32_t queue)
{
	return queue < QUEUES_PERMITTED &&
	       (allowed->any_queue ||
		allowed->queue[queue / QUEUE_WORD_BITS] & 1ULL << queue % QUEUE_WORD_BITS);
}

/* --- which device it is --- */

struct match {
	const struct opener_permits *permits;
	const char *xskmap;
	char first[NETDEV_NAME_SIZE]; /* the kernel's own name */
	char as[DEVICE_NAME_SIZE];    /* the name that the configuration has */
	struct allowed allowed;
};

static void match_name(const char *name, void *context)
{
	struct match *match = context;

	if (!match->first[0])
		snprintf(match->first, sizeof(match->first), "%s", name);
	for (unsigned i = 0; i < match->permits->count; i++) {
		const struct permit *permit = &match->permits->permit[i];

		if (strcmp(permit->device, name) != 0)
			continue;
		snprintf(match->as, sizeof(match->as), "%s", name);
		allow(&match->allowed, permit, match->xskmap);
	}
}

static struct known *known_of(struct opener_permits *permits, int ifindex)
{
	for (unsigned i = 0; i < DEVICES_KNOWN; i++) {
		if (permits->known[i].ifindex == ifindex)
			return &permits->known[i];
	}
	return NULL;
}

static void forget_known(struct opener_permits *permits, int ifindex)
{
	struct known *known = known_of(permits, ifindex);

	if (known)
		*known = (struct known){ 0 };
}

/* Also by the name that it had. */
static void match_known(struct opener_permits *permits, int ifindex, struct match *match)
{
	struct known *known = known_of(permits, ifindex);

	if (!match->allowed.named) {
		if (known)
			match_name(known->device, match);
		return;
	}
	if (!known)
		known = &permits->known[permits->knowns++ % DEVICES_KNOWN];
	known->ifindex = ifindex;
	memcpy(known->device, match->as, sizeof(known->device));
}

int permits_device(struct opener_permits *permits, int ifindex, const char *xskmap,
		   char ifname[NETDEV_NAME_SIZE], struct allowed *allowed)
{
	struct match match = { .permits = permits, .xskmap = xskmap };
	int err = netdev_names_of(ifindex, match_name, &match);

	if (err == -ENODEV)
		forget_known(permits, ifindex);
	if (err)
		return err;
	match_known(permits, ifindex, &match);
	memcpy(ifname, match.first, sizeof(match.first));
	*allowed = match.allowed;
	return 0;
}
