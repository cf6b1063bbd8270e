/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "conf/table.h"

/* The row of a flag that is short for the key with this value, or NULL. */
static const struct option_row *find_short(const char *key, const char *value)
{
	for_each_row(row)
	{
		if (row->sets && row->says && value && !strcmp(row->sets, key) &&
		    !strcmp(row->says, value))
			return row;
	}
	return NULL;
}

char *option_word(bool file, const char *key, const char *value, char *text)
{
	const struct option_row *row = file ? NULL : find_short(key, value);

	if (file) {
		snprintf(text, OPTION_WORD_SIZE, "%s%s%s", key, value ? " = " : "",
			 value ? value : "");
		return text;
	}
	if (!row)
		row = option_find(key);
	if (!row->value)
		value = NULL;
	if (row->letter)
		snprintf(text, OPTION_WORD_SIZE, "-%c%s%s", row->letter, value ? " " : "",
			 value ? value : "");
	else
		snprintf(text, OPTION_WORD_SIZE, "--%s%s%s", row->name, value ? "=" : "",
			 value ? value : "");
	return text;
}

/* For one expression: the option, and its value or NULL. */
#define WORD(check, key, value) \
	option_word((check)->file, key, value, (char[OPTION_WORD_SIZE]){ 0 })
#define NUMBER(number) number_word(number, (char[24]){ 0 }, 24)

static const char *number_word(unsigned number, char *text, size_t size)
{
	snprintf(text, size, "%u", number);
	return text;
}

/* The option by its long name. */
static const char *long_name(const struct option_check *check, const char *key)
{
	return check->file ? key : option_find(key)->name;
}

static bool is_wrong(const struct option_check *check, const char *key)
{
	return check->wrong[option_index(option_find(key))];
}

bool option_given(const struct option_check *check, const char *key)
{
	return check->line[option_index(option_find(key))];
}

/* Reports at the key's line, or where it was not given at the section's. */
__attribute__((format(printf, 3, 4))) static void complain(struct option_check *check,
							   const char *key, const char *format, ...)
{
	unsigned line = check->line[option_index(option_find(key))];
	char text[DIAG_TEXT_SIZE];
	va_list arguments;

	if (!check->file && check->diag->errors)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	diag_error(check->diag, line ? line : check->section_line, "%s%s", check->section, text);
}

/* At the start of a message: "--frame-size=3000", "frame-size = 3000". */
#define complain_value(check, key, number, format, ...)                      \
	complain(check, key, "%s%s%s%u: " format, (check)->file ? "" : "--", \
		 long_name(check, key), (check)->file ? " = " : "=", number, __VA_ARGS__)

static void check_chunks(struct option_check *check, const struct conf_forward *conf)
{
	if (is_wrong(check, "frame-size") || is_wrong(check, "unaligned"))
		return;
	if (!conf->unaligned && !number_is_power_of_two(conf->frame_size))
		complain_value(check, "frame-size", conf->frame_size,
			       "must be a power of two, %u or %u; with %s any size between",
			       CONF_FRAME_SIZE_MIN, CONF_FRAME_SIZE_MAX,
			       WORD(check, "unaligned", "yes"));
}

static void check_rings(struct option_check *check, const struct conf_forward *conf)
{
	unsigned need = conf_ring_frames(conf);

	if (is_wrong(check, "ring-size") || is_wrong(check, "frames-per-queue") ||
	    is_wrong(check, "batch") || is_wrong(check, "frags"))
		return;
	if (conf->frags && conf->ring_size < FRAGS_RING_MIN)
		complain_value(check, "ring-size", conf->ring_size,
			       "with %s at least %u, for all the pieces of a packet",
			       WORD(check, "frags", "yes"), FRAGS_RING_MIN);
	if (conf->frames_per_queue < need)
		complain_value(check, "frames-per-queue", conf->frames_per_queue,
			       "the rings need at least %u (fill %u + RX %u + TX %u + completion "
			       "%u); raise it or lower %s",
			       need, 2 * conf->ring_size, conf->ring_size, conf->ring_size,
			       conf->ring_size, WORD(check, "ring-size", NULL));
	if (conf->batch > conf->ring_size)
		complain_value(check, "batch", conf->batch,
			       "more than the rings hold (%u); lower it or raise %s",
			       conf->ring_size, WORD(check, "ring-size", NULL));
}

static void check_tx_sizes(struct option_check *check, const struct conf_forward *conf)
{
	const struct conf_tx *tx = &conf->tx;
	unsigned need = conf_tx_size_needed(tx), room = conf_chunk_room(conf) + ETHER_FCS_LEN;
	const char *key = option_given(check, "tx-pkt-size") ? "tx-pkt-size" : "sizes";

	if (option_given(check, "tx-pkt-size") && option_given(check, "sizes"))
		complain(check, "sizes", "%s and %s exclude each other: give one",
			 WORD(check, "tx-pkt-size", NULL), WORD(check, "sizes", NULL));
	else if (tx->size_min < need)
		complain(
			check, "sizes",
			"%ssizes%simix: its 64-byte frames have no room for %s with %s (%u); leave "
			"out one",
			check->file ? "" : "--", check->file ? " = " : "=",
			WORD(check, "tx-vlan", "yes"), WORD(check, "tstamp", "yes"), need);
	else if (tx->size_max > room && !conf->frags)
		complain(check, key,
			 "%s%s: a frame of %u bytes, FCS included, does not fit a chunk of %u (at "
			 "most %u); lower it%s%s, or use %s",
			 check->file ? "" : "--", long_name(check, key), tx->size_max,
			 conf->frame_size, room,
			 conf->frame_size < CONF_FRAME_SIZE_MAX ? ", use " : "",
			 conf->frame_size < CONF_FRAME_SIZE_MAX ?
				 WORD(check, "frame-size", NUMBER(CONF_FRAME_SIZE_MAX)) :
				 "",
			 WORD(check, "frags", "yes"));
}

/* What is about generated frames where none are. */
static void check_no_tx(struct option_check *check)
{
	for_each_row(row)
	{
		if (!row->generates || !check->line[option_index(row)])
			continue;
		if (check->file || !row->letter)
			complain(check, option_key(row),
				 "%s%s: is about generated frames; it needs %s",
				 check->file ? "" : "--", long_name(check, option_key(row)),
				 WORD(check, "mode", "txpush"));
		else
			complain(check, option_key(row),
				 "-%c, --%s: is about generated frames; it needs -t", row->letter,
				 row->name);
	}
}

/* What is about a bridge where there is none. */
static void check_no_bridge(struct option_check *check)
{
	for_each_row(row)
	{
		if (row->bridges && row->scope == SCOPE_FORWARD && check->line[option_index(row)])
			complain(check, option_key(row), "%s: is about a bridge; it needs %s",
				 option_key(row), WORD(check, "mode", "bridge"));
	}
}

void option_check_no_bridge(struct option_check *check, const struct conf_port *port)
{
	static const struct conf_port plain;
	const struct conf_port *const ports[] = { port, &plain };

	for_each_row(row)
	{
		char text[2][OPTION_TEXT_SIZE];

		if (!row->bridges || row->scope != SCOPE_PORT)
			continue;
		for (int i = 0; i < 2; i++) {
			/* The cast: what a place leads to is only read here. */
			const struct option_place place = { .port = (struct conf_port *)ports[i] };

			row->kind->print(row, &place, text[i], OPTION_TEXT_SIZE);
		}
		if (strcmp(text[0], text[1]) != 0)
			diag_error(check->diag, port->line,
				   "[port %s]: %s = %.60s: is about a bridge, and it is a port of "
				   "one only with mode = bridge",
				   port->name, option_key(row), text[0]);
	}
}

static void check_host_port(struct option_check *check, const struct conf_forward *conf)
{
	if (is_wrong(check, "host-port"))
		return;
	if (conf->host_port[0] && conf->mode != CONF_MODE_PATCH && conf->mode != CONF_MODE_BRIDGE)
		complain(check, "host-port",
			 "%s: the host can be behind a port of a patch or a bridge only; it needs "
			 "%s or %s",
			 WORD(check, "host-port", conf->host_port), WORD(check, "mode", "patch"),
			 WORD(check, "mode", "bridge"));
	if (conf->keep_host_port && !conf->host_port[0])
		complain(check, "keep-host-port", "%s: there is none to keep without %s",
			 WORD(check, "keep-host-port", "yes"), "host-port");
	if (conf->host_vlan.kind != VLAN_MODE_TRANSPARENT && !conf->host_port[0])
		complain(check, "host-vlan-mode",
			 "host-vlan-mode: is about the port of %s, which is not there",
			 "host-port");
}

static void check_tx(struct option_check *check, const struct conf_forward *conf)
{
	const struct conf_tx *tx = &conf->tx;

	for_each_row(row)
	{
		if (row->generates && check->wrong[option_index(row)])
			return;
	}
	if (option_given(check, "tx-vlan-id") && !tx->vlan)
		complain(check, "tx-vlan-id", "%s: there is no tag without %s",
			 WORD(check, "tx-vlan-id", NUMBER(tx->vlan_id)),
			 WORD(check, "tx-vlan", "yes"));
	if (option_given(check, "tx-vlan-pri") && !tx->vlan)
		complain(check, "tx-vlan-pri", "%s: there is no tag without %s",
			 WORD(check, "tx-vlan-pri", NUMBER(tx->vlan_priority)),
			 WORD(check, "tx-vlan", "yes"));
	if (option_given(check, "retries") && !tx->count)
		complain(check, "retries", "%s: there is no last frame to wait for without %s",
			 WORD(check, "retries", NUMBER(tx->retries)),
			 WORD(check, "tx-pkt-count", NULL));
	if (option_given(check, "clock") && !tx->cycle_us && !tx->timestamp)
		complain(check, "clock", "%s: nothing is timed without %s or %s",
			 WORD(check, "clock", NULL), WORD(check, "tx-cycle", NULL),
			 WORD(check, "tstamp", "yes"));
	if (tx->pps && tx->cycle_us)
		complain(check, "tx-cycle", "%s and %s exclude each other: give one",
			 WORD(check, "pps", NULL), WORD(check, "tx-cycle", NULL));
	check_tx_sizes(check, conf);
}

static void check_scheduling(struct option_check *check, const struct conf_forward *conf)
{
	if (is_wrong(check, "policy") || is_wrong(check, "priority"))
		return;
	if (conf->realtime && !conf->priority)
		complain(check, "policy", "%s: needs a priority; add %s (to %d)",
			 WORD(check, "policy", "FIFO"), WORD(check, "priority", "1"), PRIORITY_MAX);
	if (!conf->realtime && conf->priority)
		complain(check, "priority", "%s: only FIFO has priorities; add %s",
			 WORD(check, "priority", NUMBER(conf->priority)),
			 WORD(check, "policy", "FIFO"));
}

void option_check_run(struct option_check *check, const struct conf *conf)
{
	if (conf->control_group[0] && !conf->control_socket[0] &&
	    !is_wrong(check, "control-socket"))
		complain(check, "control-group", "%s: there is nothing to ask without %s",
			 WORD(check, "control-group", conf->control_group),
			 check->file ? "control-socket" : "--control-socket");
}

void option_check_forward(struct option_check *check, struct conf_forward *conf)
{
	conf_forward_complete(conf, option_given(check, "batch"),
			      option_given(check, "tx-pkt-size") || option_given(check, "sizes"));
	check_scheduling(check, conf);
	check_chunks(check, conf);
	check_rings(check, conf);
	if (is_wrong(check, "mode") || is_wrong(check, "frame-size"))
		return;
	check_host_port(check, conf);
	if (conf->mode != CONF_MODE_BRIDGE)
		check_no_bridge(check);
	if (conf->mode == CONF_MODE_TXPUSH)
		check_tx(check, conf);
	else
		check_no_tx(check);
}

/* Somebody else's program: what is about ours does not go with it. */
static void check_external(struct option_check *check, const struct conf_port *port)
{
	char rule[PASS_RULE_SIZE] = "";
	const struct {
		const char *key, *value;
		bool given;
	} ours[] = {
		{ "attach", port->attach == CONF_ATTACH_SKB ? "skb" : "native",
		  port->attach != CONF_ATTACH_AUTO },
		{ "replace", "yes", port->replace },
		{ "on-program-lost", "exit", port->on_program_lost != CONF_PROGRAM_LOST_REATTACH },
		{ "pass", rule, port->pass.rules > 0 },
	};

	if (port->pass.rules)
		pass_rule_print(&port->pass.rule[0], rule);
	if (!port->xskmap[0] && !is_wrong(check, "xskmap"))
		complain(check, "attach-method", "%s: needs the map to fill; add %s",
			 WORD(check, "attach-method", "external"),
			 WORD(check, "xskmap", "/sys/fs/bpf/NAME"));
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		if (ours[i].given)
			complain(check, ours[i].key,
				 "%s: is about a program of ours; with %s there is none",
				 WORD(check, ours[i].key, ours[i].value),
				 WORD(check, "attach-method", "external"));
	}
}

void option_check_port(struct option_check *check, const struct conf_port *port)
{
	if (port->attach_method == CONF_ATTACH_METHOD_EXTERNAL)
		check_external(check, port);
	else if (port->xskmap[0] && !is_wrong(check, "attach-method"))
		complain(check, "xskmap", "%s: only a program of yours has one; add %s",
			 WORD(check, "xskmap", port->xskmap),
			 WORD(check, "attach-method", "external"));
	/* Untagged by the card they would be in the VLAN of frames without a tag. */
	if (port->keep_vlan_offload && port->vlan.kind != VLAN_MODE_TRANSPARENT)
		complain(
			check, "vlan-offload",
			"%s: the card would take the tags out of frames, which vlan-mode needs to tell their "
			"VLAN; leave it out, or the vlan-mode",
			WORD(check, "vlan-offload", "keep"));
	if (port->attach == CONF_ATTACH_SKB && port->zero_copy == CONF_ZERO_COPY_REQUIRE)
		complain(check, "zero-copy", "%s and %s exclude each other: skb mode always copies",
			 WORD(check, "attach", "skb"), WORD(check, "zero-copy", "require"));
}
