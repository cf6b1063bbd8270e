/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Two confs that a file could have said, whatever lines they stand in. */
#pragma once

#include <string.h>

#include "conf/conf.h"

static inline bool same_list(const struct number_list *one, const struct number_list *other)
{
	return one->count == other->count &&
	       !memcmp(one->value, other->value, one->count * sizeof(one->value[0]));
}

/* Lists and lines apart, padding is zero: both began so. */
static inline bool same_port(struct conf_port one, struct conf_port other)
{
	bool lists = same_list(&one.queues, &other.queues);

	one.line = other.line = 0;
	one.pass.given = other.pass.given = false;
	one.pass.none = other.pass.none = false;
	memset(&one.queues, 0, sizeof(one.queues));
	memset(&other.queues, 0, sizeof(other.queues));
	return lists && !memcmp((const void *)&one, (const void *)&other, sizeof(one));
}

static inline bool same_forward(const struct conf *conf, struct conf_forward one,
				const struct conf *other_conf, struct conf_forward other)
{
	bool same = same_list(&one.cpus, &other.cpus) && one.ports == other.ports &&
		    stations_same(one.station, one.stations, other.station, other.stations);

	for (unsigned i = 0; same && i < one.ports; i++)
		same = one.port[i] - conf->port == other.port[i] - other_conf->port;
	one.line = other.line = 0;
	one.station = other.station = NULL;
	memset(&one.cpus, 0, sizeof(one.cpus));
	memset(&other.cpus, 0, sizeof(other.cpus));
	memset((void *)one.port, 0, sizeof(one.port));
	memset((void *)other.port, 0, sizeof(other.port));
	return same && !memcmp((const void *)&one, (const void *)&other, sizeof(one));
}

static inline bool conf_equal(const struct conf *one, const struct conf *other)
{
	bool same = one->ports == other->ports && one->forwards == other->forwards &&
		    one->keep_privileges == other->keep_privileges &&
		    !strcmp(one->control_socket, other->control_socket) &&
		    !strcmp(one->control_group, other->control_group) &&
		    !strcmp(one->user, other->user);

	for (unsigned i = 0; same && i < one->ports; i++)
		same = same_port(one->port[i], other->port[i]);
	for (unsigned i = 0; same && i < one->forwards; i++)
		same = same_forward(one, one->forward[i], other, other->forward[i]);
	return same;
}
