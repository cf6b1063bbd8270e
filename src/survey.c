/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "survey.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "advice.h"
#include "base/log.h"
#include "base/spelling.h"
#include "xdp/opener.h"

struct guess {
	const char *meant;
	unsigned distance;
	char name[CONF_IFNAME_SIZE];
};

static void guess_name(const char *name, void *context)
{
	struct guess *guess = context;
	unsigned distance = spelling_distance(guess->meant, name);

	if (distance >= guess->distance || !strcmp(name, "lo"))
		return;
	guess->distance = distance;
	snprintf(guess->name, sizeof(guess->name), "%s", name);
}

static void no_such_interface(const char *name)
{
	/* More than half of the letters wrong is no slip of the finger. */
	struct guess guess = { .meant = name, .distance = (unsigned)strlen(name) / 2 + 1 };

	(void)netdev_names(guess_name, &guess);
	if (guess.name[0])
		log_error("%s: no such interface; did you mean %s? `ip link` lists those of this "
			  "network namespace",
			  name, guess.name);
	else
		log_error("%s: no such interface; `ip link` lists those of this network namespace",
			  name);
}

static int query_port(struct survey *survey, unsigned index)
{
	struct netdev *netdev = &survey->netdev[index];
	const char *name = survey->conf->port[index]->device;
	int err = netdev_query(name, netdev);

	if (err == -ENODEV)
		no_such_interface(name);
	else if (err)
		log_error("%s: cannot be looked up: " ERR_FORMAT, name, ERR_SANDBOX_ARGS(err));
	/* In another namespace, where this process may not ask. */
	if (!err && !strcmp(netdev->kind, "veth") && !netdev->peer[0])
		(void)opener_peer_name(netdev->name, netdev->ifindex, netdev->peer,
				       sizeof(netdev->peer));
	for (unsigned i = 0; !err && i < index; i++) {
		if (survey->netdev[i].ifindex != netdev->ifindex)
			continue;
		log_error("%s and %s are the same interface; name it once", name,
			  survey->conf->port[i]->device);
		err = -EEXIST;
	}
	if (!err && strcmp(name, netdev->name) != 0)
		log_info("%s is an alternative name of %s", name, netdev->name);
	return err;
}

/* Devices that live by every frame of their ports. Others, such as a VRF, do with what is left. */
static const struct {
	const char *kind;
	const char *role;
} masters[] = {
	{ "bridge", "a port of bridge" },
	{ "bond", "a member of bond" },
	{ "team", "a member of team" },
	{ "openvswitch", "a port of Open vSwitch" },
};

static int check_role(const struct survey *survey, const struct netdev *netdev)
{
	if (netdev->loopback) {
		log_error("%s: the loopback interface gets back whatever it sends, so nothing can "
			  "be forwarded; name another, or make a pair with `ip link add v0 type "
			  "veth peer name v1`",
			  netdev->name);
		return -EINVAL;
	}
	if (!netdev->ethernet && survey->mode->sends) {
		log_error("%s: not an Ethernet interface; `ip link` shows link/ether for those",
			  netdev->name);
		return -EINVAL;
	}
	for (size_t i = 0; i < sizeof(masters) / sizeof(masters[0]); i++) {
		if (strcmp(netdev->master_kind, masters[i].kind) != 0)
			continue;
		log_error("%s: is %s %s, which would %s; `ip link set dev %s nomaster` takes it "
			  "out",
			  netdev->name, masters[i].role, netdev->master_name,
			  survey->mode->receives ? "get no frame from it any more" :
						   "send on it at the same time",
			  netdev->name);
		return -EINVAL;
	}
	return 0;
}

/* "-q all": the active RX queues. A worker serves its queue on every port, so they must be as many. */
static int list_all_queues(struct survey *survey)
{
	const struct netdev *first = &survey->netdev[0];

	for (unsigned i = 1; i < survey->ports; i++) {
		const struct netdev *other = &survey->netdev[i];

		if (other->rx_queues == first->rx_queues)
			continue;
		log_error("-q all: %s has %u active RX queues and %s has %u; make them equal with "
			  "ethtool -L, or list queues that both have",
			  first->name, first->rx_queues, other->name, other->rx_queues);
		return -EINVAL;
	}
	if (first->rx_queues > NUMBER_LIST_MAX) {
		log_error(
			"-q all: %s has %u active RX queues, more than the %d that one run serves; list "
			"some with -q",
			first->name, first->rx_queues, NUMBER_LIST_MAX);
		return -E2BIG;
	}
	for (unsigned i = 0; i < first->rx_queues; i++)
		survey->queues.value[survey->queues.count++] = i;
	return 0;
}

static int check_queue(const struct survey *survey, const struct netdev *netdev, unsigned queue)
{
	if (queue >= netdev->rx_queues) {
		char active[32] = "RX queue 0 is";

		if (netdev->rx_queues > 1)
			snprintf(active, sizeof(active), "RX queues 0-%u are",
				 netdev->rx_queues - 1);
		log_error("%s q%u: only %s active; choose with -q, or add some with `ethtool -L %s "
			  "combined %u` (or rx)",
			  netdev->name, queue, active, netdev->name, queue + 1);
		return -EINVAL;
	}
	if (survey->mode->sends && queue >= netdev->tx_queues) {
		log_error(
			"%s q%u: no TX queue of this number (%u active), so %s could not send; choose "
			"another with -q, or see `ethtool -L %s`",
			netdev->name, queue, netdev->tx_queues, survey->mode->name, netdev->name);
		return -EINVAL;
	}
	return 0;
}

static int choose_queues(struct survey *survey)
{
	int err = 0;

	if (survey->conf->port[0]->all_queues)
		err = list_all_queues(survey);
	else
		survey->queues = survey->conf->port[0]->queues;
	for (unsigned i = 0; !err && i < survey->queues.count; i++) {
		for (unsigned j = 0; !err && j < survey->ports; j++)
			err = check_queue(survey, &survey->netdev[j], survey->queues.value[i]);
	}
	return err;
}

/* What -s counts beyond the MTU. */
#define FRAME_OVERHEAD (ETHER_HEADER_LEN + ETHER_FCS_LEN)

/* A frame that does not fit one chunk is dropped by the kernel, which only rx_dropped tells. The
 * program attaches at any MTU, so the check is ours. A generated one that the peer does not take is
 * completed all the same. */
static int check_mtu(const struct survey *survey, const struct netdev *netdev)
{
	const struct conf_forward *conf = survey->conf;
	unsigned overhead = FRAME_OVERHEAD + (conf->tx.vlan ? ETHER_VLAN_LEN : 0);

	if (survey->mode->receives && netdev->mtu > advice_mtu_limit(conf)) {
		advice_mtu(conf, netdev, true);
		return -EINVAL;
	}
	if (!survey->mode->receives && conf->tx.size_max > netdev->mtu + overhead) {
		log_error(
			"%s: frames of %u bytes (-s, --sizes) are more than MTU %u allows (%u); send "
			"smaller ones, or `ip link set dev %s mtu %u`",
			netdev->name, conf->tx.size_max, netdev->mtu, netdev->mtu + overhead,
			netdev->name, conf->tx.size_max - overhead);
		return -EINVAL;
	}
	return 0;
}

/* Frames of a queue without a worker are not lost, but they are not forwarded either: nobody would
 * guess it from counters. */
static void tell_unserved(const struct survey *survey)
{
	char text[512] = "";

	for (unsigned i = 0; i < survey->ports; i++) {
		const struct netdev *netdev = &survey->netdev[i];
		struct number_list left = { 0 };
		size_t len = strlen(text);
		char numbers[128];

		for (unsigned queue = 0; queue < netdev->rx_queues; queue++) {
			if (!number_list_has(&survey->queues, queue) &&
			    left.count < NUMBER_LIST_MAX)
				left.value[left.count++] = queue;
		}
		if (!left.count)
			continue;
		number_list_print(&left, numbers, sizeof(numbers));
		snprintf(text + len, sizeof(text) - len, "%s%s: queue%s %s", len ? ", " : "",
			 netdev->name, left.count == 1 ? "" : "s", numbers);
	}
	if (text[0])
		log_warning("%s: not served, their frames go to the host; -q all serves them",
			    text);
}

/* CPUs of the workers: those asked for, each of which must be ours to use, or all of ours. */
static int choose_cpus(struct survey *survey)
{
	const struct number_list *wanted = &survey->conf->cpus;
	struct number_list *cpus = &survey->cpus;
	cpu_set_t allowed;

	if (sched_getaffinity(0, sizeof(allowed), &allowed)) {
		int err = -errno;

		log_error("the allowed CPUs cannot be read: " ERR_FORMAT, ERR_ARGS(err));
		return err;
	}
	for (unsigned i = 0; i < wanted->count; i++) {
		unsigned cpu = wanted->value[i];

		if (cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &allowed)) {
			log_error("--cpus: CPU %u does not exist or is not allowed here; "
				  "`taskset -cp $$` lists those that are",
				  cpu);
			return -EINVAL;
		}
	}
	*cpus = *wanted;
	for (unsigned cpu = 0; !wanted->count && cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &allowed) && cpus->count < NUMBER_LIST_MAX)
			cpus->value[cpus->count++] = cpu;
	}
	if (cpus->count < survey->queues.count)
		log_warning("%u workers share %u CPU%s; give each its own with --cpus",
			    survey->queues.count, cpus->count, cpus->count == 1 ? "" : "s");
	return 0;
}

int survey_host(struct survey *survey, const struct conf_forward *conf, const struct mode *mode)
{
	int err = 0;

	*survey = (struct survey){ .conf = conf, .mode = mode };
	for (unsigned i = 0; !err && i < conf->ports; i++) {
		err = query_port(survey, i);
		if (!err)
			err = check_role(survey, &survey->netdev[i]);
		if (!err)
			err = check_mtu(survey, &survey->netdev[i]);
		survey->ports++;
	}
	if (!err)
		err = choose_queues(survey);
	if (!err)
		err = choose_cpus(survey);
	if (!err && survey->mode->receives)
		tell_unserved(survey);
	return err;
}
