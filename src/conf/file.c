/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "conf/file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/spelling.h"
#include "conf/ini.h"
#include "conf/table.h"

/* Of a name or value in a message; more says nothing. */
#define SHOWN "%.60s"

/* name = value */
struct item {
	unsigned line;
	unsigned more_line; /* of the first line that continues it, else 0 */
	char *name, *value; /* owned */
};

struct section {
	enum option_section kind;
	char name[CONF_NAME_MAX + 1]; /* "" of [millrace] */
	char title[64];		      /* "[port wan]: ", before messages */
	unsigned line;
	unsigned count, room;
	struct item *item; /* owned */
};

/* A file as it was read: the sections that are some, in their order. */
struct file {
	struct diag *diag;
	unsigned count, room;
	struct section *section; /* owned */
	bool nowhere;		 /* what comes now is in a section that is none */
	bool out_of_memory;
	unsigned stations; /* of the conf, so far */
	struct conf *conf;
	struct conf_forward defaults;  /* of forwards: what [millrace] says */
	bool wrong[OPTIONS_ROWS_MAX];  /* of these */
	const struct section **server; /* by port of the conf: the forward that serves it; owned */
};

static const struct {
	const char *word;
	enum option_section kind;
	bool named;
} kinds[] = {
	{ "millrace", IN_MILLRACE, false },
	{ "port", IN_PORT, true },
	{ "forward", IN_FORWARD, true },
	{ "fdb", IN_FDB, true },
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* The nearest of some words to what somebody wrote. */
struct guess {
	const char *meant, *nearest;
	unsigned distance;
};

/* More than half of the letters wrong is no slip of the finger. */
static struct guess guess_begin(const char *meant)
{
	return (struct guess){ .meant = meant, .distance = (unsigned)strlen(meant) / 2 + 1 };
}

static void guess_try(struct guess *guess, const char *word)
{
	unsigned distance = spelling_distance(guess->meant, word);

	if (distance < guess->distance) {
		guess->distance = distance;
		guess->nearest = word;
	}
}

/* For one message: " did you mean X?", or nothing. */
#define GUESSED(guess)                                                                    \
	(guess).nearest ? "; did you mean " : "", (guess).nearest ? (guess).nearest : "", \
		(guess).nearest ? "?" : ""

/* Room for one more element in an array of `count`, of which there is memory for *room. */
static void *array_grow(void *array, unsigned count, unsigned *room, size_t size)
{
	unsigned more = count ? 2 * count : 8;

	if (count < *room)
		return array;
	array = reallocarray(array, more, size);
	if (array)
		*room = more;
	return array;
}

static void add_section(struct file *file, struct section section)
{
	struct section *grown =
		array_grow(file->section, file->count, &file->room, sizeof(*file->section));

	if (!grown) {
		file->out_of_memory = true;
		return;
	}
	file->section = grown;
	file->section[file->count++] = section;
}

static const struct section *find_section(const struct file *file, const struct section *like)
{
	for (unsigned i = 0; i < file->count; i++) {
		if (file->section[i].kind == like->kind &&
		    !strcmp(file->section[i].name, like->name))
			return &file->section[i];
	}
	return NULL;
}

/* Reads a name behind the kind of a section. Returns false after a message. */
static bool read_name(struct file *file, unsigned line, const char *text, const char *name,
		      bool named)
{
	if (named && !*name)
		diag_error(file->diag, line, "[" SHOWN "]: has no name; type [%s NAME]", text,
			   text);
	else if (named && !conf_name_valid(name, CONF_NAME_MAX))
		diag_error(file->diag, line,
			   "[" SHOWN "]: a name has 1 to %d letters, digits, . _ or -", text,
			   CONF_NAME_MAX);
	else if (!named && *name)
		diag_error(file->diag, line, "[" SHOWN "]: has no name; type [millrace]", text);
	else
		return true;
	return false;
}

static void on_section(void *context, unsigned line, const char *text)
{
	struct file *file = context;
	char word[INI_NAME_MAX + 1] = "", *name = word, *kind;
	struct section section = { .line = line };
	const struct section *before;
	struct guess guess;

	file->nowhere = true;
	if (!text)
		return;
	snprintf(word, sizeof(word), "%s", text + strspn(text, " \t"));
	kind = strsep(&name, " \t");
	name = name ? name + strspn(name, " \t") : "";
	for (size_t len = strlen(name); len && isspace((unsigned char)name[len - 1]); len--)
		name[len - 1] = '\0';
	guess = guess_begin(kind);
	for (size_t i = 0; i < KINDS; i++) {
		guess_try(&guess, kinds[i].word);
		if (strcmp(kinds[i].word, kind) != 0)
			continue;
		if (!read_name(file, line, text, name, kinds[i].named))
			return;
		section.kind = kinds[i].kind;
	}
	if (!section.kind) {
		diag_error(file->diag, line, "[" SHOWN "]: no such section%s%s%s%s", text,
			   GUESSED(guess),
			   guess.nearest ?
				   "" :
				   "; there are [millrace], [port NAME], [forward NAME] and "
				   "[fdb NAME]");
		return;
	}
	snprintf(section.name, sizeof(section.name), "%s", name);
	snprintf(section.title, sizeof(section.title), "[%s%s%s]: ", kind, *name ? " " : "",
		 section.name);
	before = find_section(file, &section);
	if (before)
		diag_error(file->diag, line, "%sis there already, in line %u; put them together",
			   section.title, before->line);
	file->nowhere = false;
	add_section(file, section);
}

static void add_item(struct file *file, struct section *section, struct item item)
{
	struct item *grown =
		array_grow(section->item, section->count, &section->room, sizeof(*section->item));

	item.name = strdup(item.name);
	item.value = strdup(item.value);
	if (grown)
		section->item = grown;
	if (!grown || !item.name || !item.value) {
		free(item.name);
		free(item.value);
		file->out_of_memory = true;
		return;
	}
	section->item[section->count++] = item;
}

static void item_continue(struct file *file, struct item *item, unsigned line, const char *value)
{
	char *whole;

	if (asprintf(&whole, "%s %s", item->value, value) < 0) {
		file->out_of_memory = true;
		return;
	}
	free(item->value);
	item->value = whole;
	if (!item->more_line)
		item->more_line = line;
}

static void on_value(void *context, unsigned line, const char *name, const char *value, bool more)
{
	struct file *file = context;
	struct section *section;

	if (file->out_of_memory || (file->nowhere && file->count))
		return;
	if (!file->count) {
		if (!more && !file->nowhere)
			diag_error(file->diag, line,
				   SHOWN ": stands before the first section, such as [millrace]",
				   name);
		return;
	}
	section = &file->section[file->count - 1];
	if (more && section->count)
		item_continue(file, &section->item[section->count - 1], line, value);
	else if (!more)
		add_item(file, section,
			 (struct item){
				 .line = line, .name = (char *)name, .value = (char *)value });
}

static void file_fini(struct file *file)
{
	for (unsigned i = 0; i < file->count; i++) {
		for (unsigned j = 0; j < file->section[i].count; j++) {
			free(file->section[i].item[j].name);
			free(file->section[i].item[j].value);
		}
		free(file->section[i].item);
	}
	free(file->section);
	free(file->server);
}

/* "[port NAME]", or two such, from bits. */
static void sections_print(unsigned bits, char *text, size_t size)
{
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < KINDS; i++) {
		if (bits & kinds[i].kind)
			len += (size_t)snprintf(text + len, size - len, "%s[%s%s]",
						len ? " or " : "", kinds[i].word,
						kinds[i].named ? " NAME" : "");
	}
}

/* A key that is none of this section. */
static void report_key(struct file *file, const struct section *section, const struct item *item)
{
	const struct option_row *elsewhere = option_find(item->name);
	struct guess guess = guess_begin(item->name);
	char places[48];

	if (elsewhere) {
		sections_print(elsewhere->in, places, sizeof(places));
		diag_error(file->diag, item->line, "%s%s: does not belong here; it is a key of %s",
			   section->title, item->name, places);
		return;
	}
	for_each_row(row)
	{
		const char *key = row->sets ? row->sets : option_key(row);

		if (row->name && key && strcmp(row->name, item->name) == 0) {
			diag_error(file->diag, item->line,
				   "%s%s: is a flag; in a file it is %s%s%s", section->title,
				   item->name, key, row->says ? " = " : "",
				   row->says ? row->says : "");
			return;
		}
		if (row->in & section->kind)
			guess_try(&guess, option_key(row));
	}
	diag_error(file->diag, item->line, "%s" SHOWN ": no such key%s%s%s%s", section->title,
		   item->name, GUESSED(guess),
		   guess.nearest ? "" : "; `millraced --help-config` lists them");
}

static bool is_list(const struct option_row *row)
{
	return row->kind == &kind_ports || row->kind == &kind_queues || row->kind == &kind_cpus ||
	       row->kind == &kind_pass || row->kind == &kind_vlan_mode;
}

/* Reads one value, unless it is of ports, which are not all known yet. */
static void read_item(struct section *section, const struct item *item,
		      const struct option_place *place, struct option_check *check)
{
	const struct option_row *row = option_find(item->name);
	unsigned index = option_index(row);
	struct option_wrong wrong;

	if (check->line[index]) {
		diag_error(check->diag, item->line, "%s%s: is there already, in line %u",
			   section->title, item->name, check->line[index]);
		return;
	}
	check->line[index] = item->line;
	if (item->more_line && !is_list(row)) {
		diag_error(check->diag, item->more_line,
			   "%s%s: goes on in this line; only lists do, write name = value",
			   section->title, item->name);
		check->wrong[index] = true;
	} else if (row->kind->parse && row->kind->parse(row, item->value, place, &wrong)) {
		diag_error(check->diag, item->line, "%s%s = " SHOWN ": %s%s", section->title,
			   item->name, item->value, wrong.text,
			   strstr(item->value, " #") ? "; a comment behind a value begins with ;" :
						       "");
		check->wrong[index] = true;
	}
}

/* Reads the section's values, and tells which of those it must have are not there. */
static void read_items(struct file *file, struct section *section, const struct option_place *place,
		       struct option_check *check)
{
	*check = (struct option_check){
		.file = true,
		.diag = file->diag,
		.section = section->title,
		.section_line = section->line,
	};
	for (unsigned i = 0; i < section->count; i++) {
		const struct option_row *row = option_find(section->item[i].name);

		if (row && row->in & section->kind)
			read_item(section, &section->item[i], place, check);
		else
			report_key(file, section, &section->item[i]);
	}
	for_each_row(row)
	{
		struct option_wrong wrong;

		if (!row->must || !(row->in & section->kind) || check->line[option_index(row)])
			continue;
		check->wrong[option_index(row)] = true;
		if (row->words && row->kind->parse(row, "", place, &wrong))
			diag_error(file->diag, section->line, "%shas no %s; it %s", section->title,
				   option_key(row), wrong.text);
		else
			diag_error(file->diag, section->line, "%shas no %s; add %s = %s",
				   section->title, option_key(row), option_key(row), row->value);
	}
}

static void read_millrace(struct file *file, struct section *section)
{
	const struct option_place place = { .conf = file->conf, .forward = &file->defaults };
	struct option_check check;

	read_items(file, section, &place, &check);
	option_check_run(&check, file->conf);
	memcpy(file->wrong, check.wrong, sizeof(check.wrong));
}

static void read_port(struct file *file, struct section *section)
{
	struct conf_port *port = &file->conf->port[file->conf->ports];
	const struct option_place place = { .port = port };
	struct option_check check;

	conf_port_defaults(port, true);
	snprintf(port->name, sizeof(port->name), "%s", section->name);
	port->line = section->line;
	read_items(file, section, &place, &check);
	option_check_port(&check, port);
	for (unsigned i = 0; i < file->conf->ports && port->device[0]; i++) {
		const struct conf_port *other = &file->conf->port[i];

		if (strcmp(other->device, port->device) == 0) {
			diag_error(file->diag, check.line[option_index(option_find("device"))],
				   "%sdevice = %s: is the device of [port %s] already, in line %u",
				   section->title, port->device, other->name, other->line);
			break;
		}
	}
	file->conf->ports++;
}

static const struct conf_port *find_port(const struct file *file, const struct section *section,
					 const char *name, unsigned line)
{
	struct guess guess = guess_begin(name);

	for (unsigned i = 0; i < file->conf->ports; i++) {
		if (strcmp(file->conf->port[i].name, name) == 0)
			return &file->conf->port[i];
		guess_try(&guess, file->conf->port[i].name);
	}
	diag_error(file->diag, line, "%sports: there is no [port " SHOWN "]%s%s%s", section->title,
		   name, GUESSED(guess));
	return NULL;
}

/* One of the names of `ports`. Returns false after a message. */
static bool add_port(struct file *file, const struct section *section, const char *name,
		     unsigned line)
{
	struct conf_forward *forward = &file->conf->forward[file->conf->forwards];
	const struct conf_port *port = find_port(file, section, name, line);
	const struct section **server;

	if (!port)
		return false;
	server = &file->server[port - file->conf->port];
	if (*server == section)
		diag_error(file->diag, line, "%sports: %s is there twice", section->title, name);
	else if (*server)
		diag_error(file->diag, line,
			   "%sports: %s is a port of [forward %s] already, in line %u; a port has "
			   "one forward",
			   section->title, name, (*server)->name, (*server)->line);
	else if (forward->ports == CONF_PORTS_MAX)
		diag_error(file->diag, line, "%sports: a forward has up to %d", section->title,
			   CONF_PORTS_MAX);
	else {
		*server = section;
		forward->port[forward->ports++] = port;
		return true;
	}
	return false;
}

/* Returns false after a message. */
static bool add_ports(struct file *file, const struct section *section, const char *value,
		      unsigned line)
{
	char *copy = strdup(value), *rest = copy, *name;
	bool good = true;

	file->out_of_memory |= !copy;
	while (copy && (name = strsep(&rest, " \t,"))) {
		if (*name && !add_port(file, section, name, line))
			good = false;
	}
	free(copy);
	return good;
}

/* A mode that knows how many ports it serves. */
static void check_ports(const struct conf_forward *forward, const struct option_check *check)
{
	unsigned line = check->line[option_index(option_find("ports"))];

	if (!forward->ports)
		diag_error(check->diag, line,
			   "%sports: names none; type for example ports = wan lan", check->section);
	else if (check->wrong[option_index(option_find("mode"))])
		return;
	else if (forward->mode == CONF_MODE_BRIDGE && forward->ports < 2 && !forward->host_port[0])
		diag_error(check->diag, line,
			   "%smode = bridge: takes 2 to %d ports, not %u; a host-port counts",
			   check->section, CONF_PORTS_MAX, forward->ports);
	else if (forward->mode == CONF_MODE_PATCH && forward->ports != 2)
		diag_error(check->diag, line, "%smode = patch: takes two ports, not %u",
			   check->section, forward->ports);
	else if (forward->mode == CONF_MODE_L2FWD && forward->ports != 1)
		diag_error(check->diag, line,
			   "%smode = l2fwd: takes one port, not %u; two are mode = patch",
			   check->section, forward->ports);
}

/* What an interface is the device of already, or the name of; NULL: nothing. */
static const struct conf_port *port_taking(const struct conf *conf, const char *name)
{
	for (unsigned i = 0; i < conf->ports; i++) {
		if (!strcmp(conf->port[i].device, name) || !strcmp(conf->port[i].name, name))
			return &conf->port[i];
	}
	return NULL;
}

/* The port that the host is behind: the near end of the pair, which no section is about. */
static void add_host_port(struct file *file, const struct section *section,
			  struct option_check *check)
{
	struct conf_forward *forward = &file->conf->forward[file->conf->forwards];
	unsigned line = check->line[option_index(option_find("host-port"))];
	struct conf_port *port = &file->conf->port[file->conf->ports];
	const struct conf_port *other;
	char near[sizeof(port->device)];

	snprintf(near, sizeof(near), CONF_HOST_NEAR "%s", forward->host_port);
	other = port_taking(file->conf, forward->host_port);
	if (!other)
		other = port_taking(file->conf, near);
	if (other)
		diag_error(file->diag, line,
			   "%shost-port = %s: is a name of [port %s] already, in line %u; choose "
			   "another",
			   section->title, forward->host_port, other->name, other->line);
	else if (forward->ports == CONF_PORTS_MAX)
		diag_error(file->diag, line,
			   "%shost-port = %s: is one port more than the %d that a forward has",
			   section->title, forward->host_port, CONF_PORTS_MAX);
	if (other || forward->ports == CONF_PORTS_MAX)
		return;
	conf_port_defaults(port, true);
	snprintf(port->name, sizeof(port->name), "%s", forward->host_port);
	snprintf(port->device, sizeof(port->device), "%s", near);
	port->pass.standard = false; /* what is for the host goes to the far end */
	port->vlan = forward->host_vlan;
	port->host = true;
	port->line = line;
	file->server[file->conf->ports++] = section;
	forward->port[forward->ports++] = port;
}

/* All ports of a bridge look at tags, or none: a transparent one is in no VLAN, and in all. */
static void check_vlan_modes(const struct conf_forward *forward, const struct option_check *check)
{
	const struct conf_port *aware = NULL;

	for (unsigned i = 0; i < forward->ports && !aware; i++) {
		if (forward->port[i]->vlan.kind != VLAN_MODE_TRANSPARENT)
			aware = forward->port[i];
	}
	for (unsigned i = 0; i < forward->ports && aware; i++) {
		const struct conf_port *port = forward->port[i];

		if (port->vlan.kind != VLAN_MODE_TRANSPARENT)
			continue;
		if (port->host)
			diag_error(
				check->diag, port->line,
				"%shost-port = %s: [port %s] has a vlan-mode, so every port of the bridge "
				"needs one; add for example host-vlan-mode = trunk 1-%d",
				check->section, port->name, aware->name, VLAN_MODE_MAX);
		else
			diag_error(
				check->diag, port->line,
				"[port %s]: has no vlan-mode, which every port of the bridge [forward %s] "
				"needs, since %s %s has one; add for example vlan-mode = access 1",
				port->name, forward->name,
				aware->host ? "its host-port" : "its port", aware->name);
	}
}

static void read_forward(struct file *file, struct section *section)
{
	struct conf_forward *forward = &file->conf->forward[file->conf->forwards];
	const struct option_place place = { .forward = forward };
	const struct option_row *ports = option_find("ports");
	struct option_check check;
	unsigned line;

	*forward = file->defaults;
	snprintf(forward->name, sizeof(forward->name), "%s", section->name);
	forward->line = section->line;
	read_items(file, section, &place, &check);
	line = check.line[option_index(ports)];
	for (unsigned i = 0; i < section->count; i++) {
		if (section->item[i].line == line && line &&
		    add_ports(file, section, section->item[i].value, line))
			check_ports(forward, &check);
	}
	for (size_t i = 0; i < OPTIONS_ROWS_MAX; i++)
		check.wrong[i] |= file->wrong[i];
	option_check_forward(&check, forward);
	for (unsigned i = 0; i < forward->ports && forward->mode != CONF_MODE_BRIDGE; i++)
		option_check_no_bridge(&check, forward->port[i]);
	if (forward->host_port[0])
		add_host_port(file, section, &check);
	check_vlan_modes(forward, &check);
	file->conf->forwards++;
}

/* The bridge that a section is about. NULL after a message. */
static struct conf_forward *find_bridge(struct file *file, const struct section *section)
{
	struct guess guess = guess_begin(section->name);

	for (unsigned i = 0; i < file->conf->forwards; i++) {
		struct conf_forward *forward = &file->conf->forward[i];

		guess_try(&guess, forward->name);
		if (strcmp(forward->name, section->name) != 0)
			continue;
		if (conf_is_bridge(forward))
			return forward;
		diag_error(
			file->diag, section->line,
			"%s[forward %s] is no bridge, and knows no stations; it needs mode = bridge",
			section->title, forward->name);
		return NULL;
	}
	diag_error(file->diag, section->line, "%sthere is no [forward %s]%s%s%s", section->title,
		   section->name, GUESSED(guess));
	return NULL;
}

/* One line of [fdb NAME], to the end of the stations. */
static void read_station(struct file *file, const struct section *section, const struct item *item,
			 const struct conf_forward *forward)
{
	struct conf_station *station = &file->conf->station[file->stations];
	bool blocked = !strcmp(item->name, "blocked");
	struct station_wrong wrong;

	if (item->more_line) {
		diag_error(file->diag, item->more_line,
			   "%s%s: goes on in this line; write a line for each station",
			   section->title, item->name);
	} else if (station_parse(item->value, forward, blocked, station, &wrong)) {
		diag_error(file->diag, item->line, "%s%s = " SHOWN ": %s", section->title,
			   item->name, item->value, wrong.text);
	} else {
		station->line = item->line;
		file->stations++;
	}
}

static int compare_stations(const void *one, const void *other)
{
	const struct conf_station *a = one, *b = other;
	int order = station_order(a, b);

	return order ? order : (a->line > b->line) - (a->line < b->line);
}

static void check_stations(struct file *file, const struct section *section,
			   const struct conf_forward *forward)
{
	const struct conf_station *station = forward->station;
	char text[MAC_TEXT_SIZE];

	for (unsigned i = 1; i < forward->stations; i++) {
		if (!station_order(&station[i - 1], &station[i]))
			diag_error(file->diag, station[i].line,
				   "%sstation %s%s%.0u is there already, in line %u",
				   section->title, mac_print(station[i].mac, text),
				   station[i].vlan ? " in VLAN " : "", station[i].vlan,
				   station[i - 1].line);
	}
	/* Above that entries may find no place, though there are as many slots again. */
	if (forward->stations > forward->stations_max)
		diag_error(file->diag, section->line,
			   "%s%u stations are more than fdb-size = %u; raise it in [forward %s]",
			   section->title, forward->stations, forward->stations_max, forward->name);
}

static void read_fdb(struct file *file, struct section *section)
{
	struct conf_forward *forward = find_bridge(file, section);
	struct conf_station *first = &file->conf->station[file->stations];

	for (unsigned i = 0; i < section->count; i++) {
		const struct option_row *row = option_find(section->item[i].name);

		if (!row || !(row->in & IN_FDB))
			report_key(file, section, &section->item[i]);
		else if (forward)
			read_station(file, section, &section->item[i], forward);
	}
	if (!forward || forward->stations) /* there is another such section, as was said */
		return;
	forward->station = first;
	forward->stations = (unsigned)(&file->conf->station[file->stations] - first);
	qsort(first, forward->stations, sizeof(*first), compare_stations);
	check_stations(file, section, forward);
}

static unsigned count_items(const struct file *file, enum option_section kind)
{
	unsigned count = 0;

	for (unsigned i = 0; i < file->count; i++)
		count += file->section[i].kind == kind ? file->section[i].count : 0;
	return count;
}

static void read_sections(struct file *file, enum option_section kind,
			  void (*read_section)(struct file *, struct section *))
{
	for (unsigned i = 0; i < file->count; i++) {
		if (file->section[i].kind == kind)
			read_section(file, &file->section[i]);
	}
}

static unsigned count_sections(const struct file *file, enum option_section kind)
{
	unsigned count = 0;

	for (unsigned i = 0; i < file->count; i++)
		count += file->section[i].kind == kind;
	return count;
}

/* What sections lack, when each is right by itself. */
static void check_whole(const struct file *file)
{
	if (!count_sections(file, IN_FORWARD))
		diag_error(file->diag, 0,
			   "has no forward; add a section [forward NAME] with mode and ports");
	if (file->diag->errors)
		return;
	for (unsigned i = 0; i < file->conf->ports; i++) {
		if (!file->server[i])
			diag_warning(file->diag, file->conf->port[i].line,
				     "[port %s]: no forward serves it", file->conf->port[i].name);
	}
}

/* From sections to the conf. */
static void read_conf(struct file *file)
{
	unsigned ports = count_sections(file, IN_PORT), forwards = count_sections(file, IN_FORWARD);
	struct conf *conf = file->conf;

	/* One more than needed, for calloc(0) may give NULL. */
	conf->port = calloc(ports + forwards + 1, sizeof(*conf->port)); /* host ports too */
	conf->forward = calloc(forwards + 1, sizeof(*conf->forward));
	conf->station = calloc(count_items(file, IN_FDB) + 1U, sizeof(*conf->station));
	file->server = calloc(ports + forwards + 1, sizeof(const struct section *));
	if (!conf->port || !conf->forward || !conf->station || !file->server) {
		file->out_of_memory = true;
		return;
	}
	conf_forward_defaults(&file->defaults);
	read_sections(file, IN_MILLRACE, read_millrace);
	read_sections(file, IN_PORT, read_port);
	read_sections(file, IN_FORWARD, read_forward);
	read_sections(file, IN_FDB, read_fdb);
	check_whole(file);
}

int conf_parse(FILE *in, struct conf *conf, struct diag *diag)
{
	static const struct ini_sink sink = { on_section, on_value };
	struct file file = { .diag = diag, .conf = conf };
	int err;

	*conf = (struct conf){ .interval_s = 1 };
	err = ini_read(in, &sink, &file, diag);
	if (!err && !file.out_of_memory)
		read_conf(&file);
	if (file.out_of_memory) {
		diag_error(diag, 0, "out of memory");
		err = -ENOMEM;
	}
	file_fini(&file);
	diag_sort(diag);
	return err ? err : diag->errors ? -EINVAL : 0;
}

/* Opens what it makes sense to read twice. Returns a file descriptor, or -errno after a message. */
static int open_file(const char *path, struct diag *diag)
{
	/* A pipe that nobody writes to would hold us up. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat stat;
	int err = 0;

	if (fd < 0 || fstat(fd, &stat)) {
		err = -errno;
		diag_error(diag, 0, "cannot be opened: " ERR_FORMAT, ERR_ARGS(err));
	} else if (!S_ISREG(stat.st_mode)) {
		err = -EINVAL;
		diag_error(diag, 0, "is not a file but %s",
			   S_ISDIR(stat.st_mode) ? "a directory" : "a device, pipe or socket");
	} else if (stat.st_size > (off_t)CONF_FILE_MAX) {
		err = -EFBIG;
		diag_error(diag, 0, "has %lld bytes; a configuration has up to %u",
			   (long long)stat.st_size, CONF_FILE_MAX);
	}
	if (!err)
		return fd;
	if (fd >= 0)
		close(fd);
	return err;
}

int conf_parse_file(const char *path, struct conf *conf, struct diag *diag)
{
	FILE *in;
	int fd, err;

	*conf = (struct conf){ 0 };
	diag->file = path;
	fd = open_file(path, diag);
	if (fd < 0)
		return fd;
	in = fdopen(fd, "r");
	if (!in) {
		diag_error(diag, 0, "out of memory");
		close(fd);
		return -ENOMEM;
	}
	err = conf_parse(in, conf, diag);
	(void)fclose(in);
	return err;
}
