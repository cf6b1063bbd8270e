/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "stations.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "conf/station.h"
#include "ctl/report_json.h"
#include "fwd/bridge.h"

/* Entries of a page: 100 KB of text, which take 4 ms; more would hold up the main thread, fewer would read large
 * tables more often. */
#define PAGE_ENTRIES 1024

/* What an operator has asked for. */
struct asked {
	const struct fleet *fleet;
	const json_t *arguments;
	const char *forward, *port; /* by name; NULL: not said */
	long long vlan;		    /* -1: not said */
	char *error;
	size_t error_size;
};

/* Notes what is wrong, and is the error to return. */
#define fail(asked, ...) (snprintf((asked)->error, (asked)->error_size, __VA_ARGS__), -EINVAL)

static const char *text_of(const struct asked *asked, const char *member)
{
	return json_string_value(json_object_get(asked->arguments, member));
}

/* --- which bridge --- */

/* The first bridge from there on; NULL: there is none. */
static struct forwarder *bridge_from(const struct fleet *fleet, unsigned first)
{
	for (unsigned i = first; i < fleet->forwards; i++) {
		if (fleet->forward[i]->bridge)
			return fleet->forward[i];
	}
	return NULL;
}

static unsigned index_of(const struct fleet *fleet, const struct forwarder *forwarder)
{
	unsigned i = 0;

	while (fleet->forward[i] != forwarder)
		i++;
	return i;
}

static struct forwarder *bridge_after(const struct fleet *fleet, const struct forwarder *forwarder)
{
	return bridge_from(fleet, index_of(fleet, forwarder) + 1);
}

/* Of what find_bridge() has found, `one` or all of them, the first; and the next, NULL at the end. */
static struct forwarder *meant_first(const struct fleet *fleet, struct forwarder *one)
{
	return one ? one : bridge_from(fleet, 0);
}

static struct forwarder *meant_next(const struct fleet *fleet, const struct forwarder *one,
				    const struct forwarder *forwarder)
{
	return one ? NULL : bridge_after(fleet, forwarder);
}

static struct forwarder *forward_named(const struct asked *asked, const char *name)
{
	for (unsigned i = 0; i < asked->fleet->forwards; i++) {
		if (!strcmp(asked->fleet->forward[i]->conf->name, name))
			return asked->fleet->forward[i];
	}
	(void)fail(asked,
		   "forward '%.64s': there is none of that name; `millracectl status` lists them",
		   name);
	return NULL;
}

/* The number of the port in the forward; -1: it is none of its ports. */
static int port_in(const struct forwarder *forwarder, const char *name)
{
	for (unsigned i = 0; i < forwarder->ports; i++) {
		if (!strcmp(forwarder->port[i].conf->name, name))
			return (int)i;
	}
	return -1;
}

/* The forward that has the port. */
static struct forwarder *forward_of_port(const struct asked *asked, const char *name)
{
	struct forwarder *forwarder;

	if (fleet_port(asked->fleet, name, &forwarder))
		return forwarder;
	(void)fail(asked,
		   "port '%.64s': there is none of that name; `millracectl ports` lists them",
		   name);
	return NULL;
}

/*
 * Finds the one bridge that is meant, by its name or its port's. Returns 0 with it; NULL: all of them are; or
 * -EINVAL with an error.
 */
static int find_bridge(const struct asked *asked, struct forwarder **result)
{
	struct forwarder *forwarder = NULL;

	*result = NULL;
	if (!bridge_from(asked->fleet, 0))
		return fail(asked, "no bridge runs here: none of the forwards has mode = bridge");
	if (asked->forward) {
		forwarder = forward_named(asked, asked->forward);
		if (!forwarder)
			return -EINVAL;
	}
	if (asked->port && !forwarder) {
		forwarder = forward_of_port(asked, asked->port);
		if (!forwarder)
			return -EINVAL;
	}
	if (!forwarder)
		return 0;
	if (!forwarder->bridge)
		return fail(asked, "forward %s: is no bridge, and learns no stations",
			    forwarder->conf->name);
	if (asked->port && port_in(forwarder, asked->port) < 0)
		return fail(
			asked,
			"port '%.64s': is none of forward %s; `millracectl fdb count` lists them",
			asked->port, forwarder->conf->name);
	*result = forwarder;
	return 0;
}

/* As find_bridge(), where it has to be one. */
static int find_one_bridge(const struct asked *asked, struct forwarder **result)
{
	int err = find_bridge(asked, result);
	const struct forwarder *first;

	if (err || *result)
		return err;
	*result = bridge_from(asked->fleet, 0);
	first = *result;
	if (bridge_after(asked->fleet, first))
		return fail(asked,
			    "there are several bridges: add forward NAME, such as forward %s",
			    first->conf->name);
	return 0;
}

static int check_vlan(const struct asked *asked)
{
	if (asked->vlan == -1 || (asked->vlan >= 1 && asked->vlan <= VLAN_MODE_MAX))
		return 0;
	return fail(asked, "vlan %lld: must be 1 to %d", asked->vlan, VLAN_MODE_MAX);
}

/* What the arguments choose in this bridge. */
static struct fdb_filter filter_of(const struct asked *asked, const struct forwarder *forwarder)
{
	return (struct fdb_filter){
		.port = asked->port ? port_in(forwarder, asked->port) : -1,
		.vlan = (int)asked->vlan,
		.learned = true,
	};
}

/* --- entries --- */

static json_t *vlan_json(unsigned vlan)
{
	return vlan ? json_integer(vlan) : json_null();
}

static json_t *entry_json(const struct forwarder *forwarder, const struct fdb_entry *entry)
{
	char text[MAC_TEXT_SIZE];
	uint8_t mac[MAC_LEN];
	json_t *object = json_object();
	bool blocked = entry->port == FDB_BLOCKED;

	fdb_key_mac(entry->key, mac);
	json_object_set_new(object, "forward", json_text(forwarder->conf->name));
	json_object_set_new(object, "vlan", vlan_json(fdb_key_vlan(entry->key)));
	json_object_set_new(object, "mac", json_string(mac_print(mac, text)));
	json_object_set_new(object, "kind",
			    json_string(blocked	     ? "blocked" :
					entry->fixed ? "static" :
						       "learned"));
	json_object_set_new(object, "port",
			    blocked ? json_null() :
				      json_text(forwarder->port[entry->port].conf->name));
	json_object_set_new(object, "age_seconds",
			    entry->fixed ? json_null() : json_integer(entry->age));
	return object;
}

/* Where the next page begins: "FORWARD", or behind an entry of it "FORWARD VLAN MAC". */
static json_t *next_json(const struct forwarder *forwarder, const struct fdb_entry *last)
{
	char text[MAC_TEXT_SIZE];
	uint8_t mac[MAC_LEN];

	if (!forwarder)
		return json_null();
	if (!last)
		return json_text(forwarder->conf->name);
	fdb_key_mac(last->key, mac);
	return json_sprintf("%s %u %s", forwarder->conf->name, fdb_key_vlan(last->key),
			    mac_print(mac, text));
}

/* Reads that: *forwarder and *after change only where it was said. */
static int read_after(const struct asked *asked, struct forwarder **forwarder, uint64_t *after)
{
	const char *text = text_of(asked, "after");
	char name[CONF_NAME_SIZE] = "", address[MAC_TEXT_SIZE] = "";
	unsigned vlan = 0;
	uint8_t mac[MAC_LEN];
	int words;

	if (!text)
		return 0;
	/* NOLINTNEXTLINE(cert-err34-c): what is too large fails below */
	words = sscanf(text, "%32s %5u %17s", name, &vlan, address);
	if ((words != 1 && words != 3) || vlan > VLAN_MODE_MAX ||
	    (words == 3 && mac_parse(address, mac)))
		return fail(asked, "after '%.64s': must be `next` of the page before", text);
	*forwarder = forward_named(asked, name);
	if (!*forwarder)
		return -EINVAL;
	if (!(*forwarder)->bridge)
		return fail(asked, "forward %s: is no bridge any more; ask again", name);
	if (words == 3)
		*after = fdb_key((uint16_t)vlan, mac);
	return 0;
}

static json_t *show(const struct asked *asked)
{
	struct fdb_entry page[PAGE_ENTRIES];
	struct forwarder *one, *forwarder;
	json_t *entries, *result;
	struct fdb_filter filter;
	uint64_t after = 0;
	uint32_t count;
	bool more;

	if (check_vlan(asked) || find_bridge(asked, &one))
		return NULL;
	forwarder = meant_first(asked->fleet, one);
	if (read_after(asked, &forwarder, &after))
		return NULL;
	filter = filter_of(asked, forwarder);
	filter.fixed = true;
	count = fdb_page(forwarder->bridge->fdb, &filter, after, page, PAGE_ENTRIES);
	more = count == PAGE_ENTRIES;
	entries = json_array();
	for (uint32_t i = 0; i < count; i++)
		json_array_append_new(entries, entry_json(forwarder, &page[i]));
	result = json_object();
	json_object_set_new(result, "entries", entries);
	/* A page is of one bridge, so that its time is bounded however many there are. */
	if (!more)
		forwarder = meant_next(asked->fleet, one, forwarder);
	json_object_set_new(result, "next", next_json(forwarder, more ? &page[count - 1] : NULL));
	return result;
}

/* --- counts --- */

static json_t *port_counts(const struct forwarder *forwarder, unsigned port)
{
	struct fdb_counts counts = fdb_count(forwarder->bridge->fdb, port);
	json_t *object = json_object();

	json_object_set_new(object, "port", json_text(forwarder->port[port].conf->name));
	json_object_set_new(object, "learned", json_count(counts.stations));
	json_object_set_new(object, "static", json_count(counts.fixed));
	json_object_set_new(object, "limit",
			    counts.limit == UINT32_MAX ? json_null() : json_count(counts.limit));
	return object;
}

static json_t *bridge_counts(const struct forwarder *forwarder)
{
	const struct fdb *fdb = forwarder->bridge->fdb;
	json_t *object = json_object(), *ports = json_array();
	uint64_t fixed = 0;

	for (unsigned i = 0; i < forwarder->ports; i++) {
		fixed += fdb_count(fdb, i).fixed;
		json_array_append_new(ports, port_counts(forwarder, i));
	}
	json_object_set_new(object, "forward", json_text(forwarder->conf->name));
	json_object_set_new(object, "learned", json_count(fdb_stations(fdb)));
	json_object_set_new(object, "static", json_count(fixed));
	json_object_set_new(object, "blocked", json_count(fdb_count(fdb, FDB_BLOCKED).fixed));
	json_object_set_new(object, "size", json_count(fdb->stations_max));
	json_object_set_new(object, "ageing_seconds", json_count(fdb->ageing));
	json_object_set_new(object, "ports", ports);
	return object;
}

static json_t *count(const struct asked *asked)
{
	struct forwarder *one, *forwarder;
	json_t *result, *forwards;

	if (find_bridge(asked, &one))
		return NULL;
	result = json_object();
	forwards = json_array();
	for (forwarder = meant_first(asked->fleet, one); forwarder;
	     forwarder = meant_next(asked->fleet, one, forwarder))
		json_array_append_new(forwards, bridge_counts(forwarder));
	json_object_set_new(result, "forwards", forwards);
	return result;
}

/* --- changes --- */

/* For one message: " in VLAN 7", or nothing. */
#define IN_VLAN(vlan) (vlan) ? " in VLAN " : "", (vlan)

static int read_mac(const struct asked *asked, uint8_t *mac)
{
	const char *text = text_of(asked, "mac");
	struct station_wrong wrong;

	if (station_mac_parse(text, mac, &wrong))
		return fail(asked, "%.64s: %s", text, wrong.text);
	return 0;
}

/* The port whose device has this address itself; NULL: none. */
static const struct port *port_of_mac(const struct forwarder *forwarder, const uint8_t *mac)
{
	for (unsigned i = 0; i < forwarder->ports; i++) {
		/* Of the main thread's own. */
		if (forwarder->bridge->own[i] == bridge_mac(mac))
			return &forwarder->port[i];
	}
	return NULL;
}

/* As for those of the file, plan/check.c. */
static int check_not_own(const struct asked *asked, const struct forwarder *forwarder,
			 const uint8_t *mac)
{
	const struct port *own = port_of_mac(forwarder, mac);
	char text[MAC_TEXT_SIZE];

	if (!asked->port || !own)
		return 0;
	return fail(
		asked,
		"%s: is the address of port %s itself, and no station's behind a port of the same "
		"bridge; `blocked` instead of a port would drop what is sent to it",
		mac_print(mac, text), own->conf->name);
}

static int add_station(const struct asked *asked, const struct forwarder *forwarder,
		       const uint8_t *mac, uint16_t vlan)
{
	int port = asked->port ? port_in(forwarder, asked->port) : FDB_BLOCKED;
	char text[MAC_TEXT_SIZE];
	int err = fdb_add(forwarder->bridge->fdb, fdb_key(vlan, mac), (unsigned)port);

	(void)mac_print(mac, text);
	if (err)
		return fail(asked,
			    "%s: no place: the table of forward %s is full of static entries; "
			    "remove some with `millracectl fdb del`, or raise fdb-size",
			    text, forwarder->conf->name);
	log_info(
		"forward %s: station %s%s%.0u is %s%s until it is removed, an operator wants it so",
		forwarder->conf->name, text, IN_VLAN(vlan),
		asked->port ? "behind port " : "blocked", asked->port ? asked->port : "");
	return 0;
}

static json_t *add(const struct asked *asked)
{
	struct forwarder *forwarder;
	struct station_wrong wrong;
	struct fdb_entry entry;
	uint8_t mac[MAC_LEN];
	uint16_t vlan;
	int port;

	if (read_mac(asked, mac) || check_vlan(asked) || find_one_bridge(asked, &forwarder))
		return NULL;
	port = asked->port ? port_in(forwarder, asked->port) : STATION_BLOCKED;
	if (station_vlan(forwarder->conf, port, asked->vlan, &vlan, &wrong)) {
		(void)fail(asked, "forward %s: %s", forwarder->conf->name, wrong.text);
		return NULL;
	}
	if (check_not_own(asked, forwarder, mac) || add_station(asked, forwarder, mac, vlan))
		return NULL;
	entry = (struct fdb_entry){
		.key = fdb_key(vlan, mac),
		.port = port == STATION_BLOCKED ? FDB_BLOCKED : (uint8_t)port,
		.fixed = true,
	};
	return entry_json(forwarder, &entry);
}

static json_t *removed_json(unsigned long long removed)
{
	json_t *result = json_object();

	json_object_set_new(result, "removed", json_count(removed));
	return result;
}

/* Of one bridge, in one VLAN or in all. */
static unsigned remove_station(const struct forwarder *forwarder, const uint8_t *mac,
			       long long vlan)
{
	unsigned first = vlan == -1 ? 0 : (unsigned)vlan;
	unsigned last = vlan == -1 ? VLAN_MODE_MAX : (unsigned)vlan;
	unsigned removed = 0;

	for (unsigned i = first; i <= last; i++)
		removed += !fdb_remove(forwarder->bridge->fdb, fdb_key((uint16_t)i, mac));
	return removed;
}

static json_t *del(const struct asked *asked)
{
	struct forwarder *one, *forwarder;
	char text[MAC_TEXT_SIZE];
	unsigned removed = 0;
	uint8_t mac[MAC_LEN];

	if (read_mac(asked, mac) || check_vlan(asked) || find_bridge(asked, &one))
		return NULL;
	for (forwarder = meant_first(asked->fleet, one); forwarder;
	     forwarder = meant_next(asked->fleet, one, forwarder))
		removed += remove_station(forwarder, mac, asked->vlan);
	if (!removed) {
		(void)fail(asked, "%s: no such station; `millracectl fdb` lists them",
			   mac_print(mac, text));
		return NULL;
	}
	log_info("station %s: %u of its entries removed, an operator wants it so",
		 mac_print(mac, text), removed);
	return removed_json(removed);
}

static json_t *flush(const struct asked *asked)
{
	struct forwarder *one, *forwarder;
	unsigned long long removed = 0;

	if (check_vlan(asked) || find_bridge(asked, &one))
		return NULL;
	for (forwarder = meant_first(asked->fleet, one); forwarder;
	     forwarder = meant_next(asked->fleet, one, forwarder)) {
		struct fdb_filter learned = filter_of(asked, forwarder);

		removed += fdb_flush(forwarder->bridge->fdb, &learned);
	}
	log_info("%llu learned stations removed, an operator wants it so", removed);
	return removed_json(removed);
}

json_t *stations_answer(const struct fleet *fleet, enum command command, const json_t *arguments,
			char *error, size_t error_size)
{
	struct asked asked = {
		.fleet = fleet,
		.arguments = arguments,
		.vlan = -1,
		.error = error,
		.error_size = error_size,
	};
	const json_t *vlan = json_object_get(arguments, "vlan");

	asked.forward = text_of(&asked, "forward");
	asked.port = text_of(&asked, "port");
	if (vlan)
		asked.vlan = json_integer_value(vlan);
	snprintf(error, error_size, "out of memory");
	switch (command) {
	case COMMAND_FDB:
		return show(&asked);
	case COMMAND_FDB_COUNT:
		return count(&asked);
	case COMMAND_FDB_ADD:
		return add(&asked);
	case COMMAND_FDB_DEL:
		return del(&asked);
	default:
		return flush(&asked);
	}
}
