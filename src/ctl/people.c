/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "ctl/people.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "ctl/table.h"

/* --- members --- */

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static json_int_t count_of(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static const char *plural_of(const json_t *object, const char *key)
{
	return count_of(object, key) == 1 ? "" : "s";
}

static bool is_true(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

static double seconds_of(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

/* --- ports --- */

static void cell_seconds(struct table *table, double seconds)
{
	char text[TABLE_CELL_SIZE];

	snprintf(text, sizeof(text), "%.0f s", seconds);
	table_text(table, text);
}

static void port_cells(struct table *table, const json_t *port)
{
	const json_t *program = json_object_get(port, "program");
	char queues[TABLE_CELL_SIZE];

	snprintf(queues, sizeof(queues), "%" JSON_INTEGER_FORMAT "/%" JSON_INTEGER_FORMAT,
		 count_of(port, "rx_queues"), count_of(port, "tx_queues"));
	table_text(table, text_of(port, "port"));
	table_text(table, text_of(port, "device"));
	table_count(table, count_of(port, "ifindex"));
	table_text(table, text_of(port, "state"));
	cell_seconds(table, seconds_of(port, "state_seconds"));
	table_count(table, count_of(port, "mtu"));
	table_text(table, text_of(port, "driver"));
	table_text(table, queues);
	table_text(table, text_of(port, "attach"));
	if (json_is_object(program))
		table_count(table, count_of(program, "id"));
	else
		table_text(table, "");
	table_text(table, text_of(program, "name"));
	table_text(table, text_of(program, "tag"));
	table_text(table, is_true(port, "promiscuous") ? "on" : "off");
}

static int print_ports(FILE *out, const json_t *result)
{
	struct table table;
	json_t *port;
	size_t i;

	table_init(&table, "PORT DEVICE IFINDEX STATE FOR MTU DRIVER RX/TX-QUEUES ATTACH PROGRAM "
			   "NAME TAG PROMISCUOUS");
	json_array_foreach(json_object_get(result, "ports"), i, port)
	{
		port_cells(&table, port);
	}
	return table_print(&table, out);
}

/* Of ports that are not, and have not always been, as they should be. */
static int print_history(FILE *out, const json_t *result)
{
	struct table table;
	json_t *port, *change;
	size_t i, j;

	table_init(&table, "PORT AGO STATE REASON");
	json_array_foreach(json_object_get(result, "ports"), i, port)
	{
		const json_t *history = json_object_get(port, "history");

		if (json_array_size(history) == 1 && !strcmp(text_of(port, "state"), "up"))
			continue;
		json_array_foreach(history, j, change)
		{
			table_text(&table, text_of(port, "port"));
			cell_seconds(&table, seconds_of(change, "age_seconds"));
			table_text(&table, text_of(change, "state"));
			table_text(&table, text_of(change, "reason"));
		}
	}
	if (table.cells > table.columns)
		fputc('\n', out);
	return table_print(&table, out);
}

/* --- rules --- */

static int print_rules(FILE *out, const json_t *result, const json_t *before)
{
	struct table table;
	json_t *rule;
	size_t i;

	(void)before;
	table_init(&table, "PORT RULE FRAMES");
	json_array_foreach(json_object_get(result, "rules"), i, rule)
	{
		char text[TABLE_CELL_SIZE];
		const char *class = text_of(rule, "class");

		snprintf(text, sizeof(text), "%s%s%s%s", text_of(rule, "rule"), *class ? ": " : "",
			 class, *class && is_true(rule, "both") ? " (both)" : "");
		table_text(&table, text_of(rule, "port"));
		table_text(&table, text);
		table_count(&table, count_of(rule, "frames"));
	}
	return table_print(&table, out);
}

/* --- forwarding databases --- */

/* A page: columns are as wide as on the one before, but for long names. */
static int print_fdb(FILE *out, const json_t *result, const json_t *before)
{
	static const int widths[] = { 4, 17, 7, 7, 15 };
	struct table table;
	json_t *entry;
	size_t i;

	table_init(&table, "VLAN MAC KIND AGE PORT FORWARD");
	table.headless = before;
	memcpy(table.at_least, widths, sizeof(widths));
	json_array_foreach(json_object_get(result, "entries"), i, entry)
	{
		if (json_is_integer(json_object_get(entry, "vlan")))
			table_count(&table, count_of(entry, "vlan"));
		else
			table_text(&table, "");
		table_text(&table, text_of(entry, "mac"));
		table_text(&table, text_of(entry, "kind"));
		if (json_is_integer(json_object_get(entry, "age_seconds")))
			cell_seconds(&table, seconds_of(entry, "age_seconds"));
		else
			table_text(&table, "");
		table_text(&table, text_of(entry, "port"));
		table_text(&table, text_of(entry, "forward"));
	}
	return table_print(&table, out);
}

static void count_row(struct table *table, const char *forward, const char *port,
		      const json_t *counts, const char *limit)
{
	table_text(table, forward);
	table_text(table, port);
	table_count(table, count_of(counts, "learned"));
	table_count(table, count_of(counts, "static"));
	if (json_is_integer(json_object_get(counts, limit)))
		table_count(table, count_of(counts, limit));
	else
		table_text(table, "");
}

static int print_fdb_count(FILE *out, const json_t *result, const json_t *before)
{
	struct table table;
	json_t *forward, *port;
	size_t i, j;

	(void)before;
	table_init(&table, "FORWARD PORT LEARNED STATIC AT-MOST");
	json_array_foreach(json_object_get(result, "forwards"), i, forward)
	{
		const char *name = text_of(forward, "forward");

		json_array_foreach(json_object_get(forward, "ports"), j, port)
		{
			count_row(&table, name, text_of(port, "port"), port, "limit");
		}
		table_text(&table, name);
		table_text(&table, "(blocked)");
		table_text(&table, "");
		table_count(&table, count_of(forward, "blocked"));
		table_text(&table, "");
		count_row(&table, name, "(all)", forward, "size");
	}
	return table_print(&table, out);
}

static int print_fdb_added(FILE *out, const json_t *result, const json_t *before)
{
	const json_t *vlan = json_object_get(result, "vlan");

	(void)before;
	fprintf(out, "forward %s: station %s", text_of(result, "forward"), text_of(result, "mac"));
	if (json_is_integer(vlan))
		fprintf(out, " in VLAN %" JSON_INTEGER_FORMAT, json_integer_value(vlan));
	if (text_of(result, "port")[0])
		fprintf(out, " is behind port %s\n", text_of(result, "port"));
	else
		fprintf(out, " is blocked\n");
	return 0;
}

static int print_fdb_removed(FILE *out, const json_t *result, const json_t *before)
{
	json_int_t removed = count_of(result, "removed");

	(void)before;
	fprintf(out, "%" JSON_INTEGER_FORMAT " %s removed\n", removed,
		removed == 1 ? "entry" : "entries");
	return 0;
}

/* --- status --- */

static void print_duration(FILE *out, double seconds)
{
	unsigned long long whole = (unsigned long long)seconds;

	if (whole >= 86400)
		fprintf(out, "%llu d ", whole / 86400);
	if (whole >= 3600)
		fprintf(out, "%llu h ", whole / 3600 % 24);
	if (whole >= 60)
		fprintf(out, "%llu min ", whole / 60 % 60);
	fprintf(out, "%llu s", whole % 60);
}

static void print_reload(FILE *out, const json_t *result)
{
	const json_t *reload = json_object_get(result, "last_reload");

	if (!json_is_object(reload))
		return;
	fprintf(out, "last reload ");
	print_duration(out, seconds_of(reload, "age_seconds"));
	if (is_true(reload, "ok"))
		fprintf(out, " ago, taken over");
	else
		fprintf(out, " ago, refused");
	if (count_of(reload, "errors"))
		fprintf(out, ": %" JSON_INTEGER_FORMAT " error%s", count_of(reload, "errors"),
			plural_of(reload, "errors"));
	fputc('\n', out);
}

/* What an operator must know at once: it may all be over soon. */
static void print_confirm(FILE *out, const json_t *result)
{
	const json_t *confirm = json_object_get(result, "confirm");

	if (!json_is_object(confirm))
		return;
	if (is_true(confirm, "confirmed")) {
		fprintf(out, "confirmed\n");
		return;
	}
	fprintf(out, "not confirmed: everything is detached in ");
	print_duration(out, seconds_of(confirm, "left_seconds"));
	fprintf(out, "; keep it with millracectl confirm\n");
}

static int print_queues(FILE *out, const json_t *result)
{
	struct table table;
	json_t *port, *queue;
	size_t i, j;

	table_init(&table, "PORT QUEUE FORWARD MODE WORKER CPU COPY NEED-WAKEUP BUSY-POLL FILL RX "
			   "TX COMPLETION KERNEL");
	json_array_foreach(json_object_get(result, "ports"), i, port)
	{
		json_array_foreach(json_object_get(port, "queues"), j, queue)
		{
			table_text(&table, text_of(port, "port"));
			table_count(&table, count_of(queue, "queue"));
			table_text(&table, text_of(queue, "forward"));
			table_text(&table, text_of(queue, "mode"));
			table_count(&table, count_of(queue, "worker"));
			table_count(&table, count_of(queue, "cpu"));
			table_text(&table, is_true(queue, "zero_copy") ? "zero-copy" : "copy");
			table_text(&table, is_true(queue, "need_wakeup") ? "yes" : "no");
			table_text(&table, text_of(queue, "busy_poll"));
			table_count(&table, count_of(queue, "fill"));
			table_count(&table, count_of(queue, "rx"));
			table_count(&table, count_of(queue, "tx"));
			table_count(&table, count_of(queue, "completion"));
			table_count(&table, count_of(queue, "kernel"));
		}
	}
	return table_print(&table, out);
}

static int print_workers(FILE *out, const json_t *result)
{
	struct table table;
	json_t *worker;
	size_t i;

	table_init(&table, "WORKER FORWARD MODE CPU WAIT SOCKETS TOTAL POOL HAND-OVER LOST "
			   "RECLAIMED BALANCE");
	json_array_foreach(json_object_get(result, "workers"), i, worker)
	{
		table_count(&table, count_of(worker, "worker"));
		table_text(&table, text_of(worker, "forward"));
		table_text(&table, text_of(worker, "mode"));
		table_count(&table, count_of(worker, "cpu"));
		table_text(&table, text_of(worker, "wait"));
		table_count(&table, (long long)json_array_size(json_object_get(worker, "sockets")));
		table_count(&table, count_of(worker, "total"));
		table_count(&table, count_of(worker, "pool"));
		table_count(&table, count_of(worker, "hand_over"));
		table_count(&table, count_of(worker, "lost"));
		table_count(&table, count_of(worker, "reclaimed"));
		table_count(&table, count_of(worker, "balance"));
	}
	return table_print(&table, out);
}

static int print_status(FILE *out, const json_t *result, const json_t *before)
{
	const char *path = text_of(result, "configuration");
	int err;

	(void)before;
	fprintf(out, "millraced %s, pid %" JSON_INTEGER_FORMAT ", %s for ",
		text_of(result, "version"), count_of(result, "pid"), text_of(result, "state"));
	print_duration(out, seconds_of(result, "uptime_seconds"));
	if (path[0])
		fprintf(out, "\nconfiguration %s, reloaded %" JSON_INTEGER_FORMAT " time%s\n", path,
			count_of(result, "generation"), plural_of(result, "generation"));
	else
		fprintf(out, "\nconfigured by flags\n");
	print_reload(out, result);
	print_confirm(out, result);
	fputc('\n', out);
	err = print_ports(out, result);
	if (!err)
		err = print_history(out, result);
	fputc('\n', out);
	if (!err)
		err = print_queues(out, result);
	fputc('\n', out);
	return err ? err : print_workers(out, result);
}

static int print_only_ports(FILE *out, const json_t *result, const json_t *before)
{
	int err = print_ports(out, result);

	(void)before;
	return err ? err : print_history(out, result);
}

/* --- stats --- */

/* Two results, and the time between them; 0: there is no earlier one. */
struct span {
	const json_t *result, *before;
	double seconds;
};

static double rate_of(const struct span *span, const json_t *now, const json_t *before,
		      const char *key)
{
	json_int_t more = count_of(now, key) - count_of(before, key);

	/* A total can be corrected downwards when it is learnt what the kernel refused. */
	return before && span->seconds > 0 && more > 0 ? (double)more / span->seconds : 0;
}

/* The same socket in the earlier result, or NULL: a reload may have made it in between. */
static const json_t *socket_before(const struct span *span, const json_t *socket)
{
	const json_t *sockets = json_object_get(span->before, "sockets");
	json_t *one;
	size_t i;

	json_array_foreach(sockets, i, one)
	{
		if (!strcmp(text_of(one, "port"), text_of(socket, "port")) &&
		    count_of(one, "queue") == count_of(socket, "queue"))
			return one;
	}
	return NULL;
}

static void rate_cells(struct table *table, const struct span *span, const json_t *now,
		       const json_t *before)
{
	if (span->seconds > 0) {
		table_rate(table, rate_of(span, now, before, "rx_packets"));
		table_rate(table, 8 * rate_of(span, now, before, "rx_bytes"));
		table_rate(table, rate_of(span, now, before, "tx_packets"));
		table_rate(table, 8 * rate_of(span, now, before, "tx_bytes"));
	}
	table_count(table, count_of(now, "rx_packets"));
	table_count(table, count_of(now, "rx_bytes"));
	table_count(table, count_of(now, "tx_packets"));
	table_count(table, count_of(now, "tx_bytes"));
}

static int print_traffic(FILE *out, const struct span *span)
{
	const json_t *sockets = json_object_get(span->result, "sockets");
	struct table table;
	json_t *socket;
	size_t i;

	if (span->seconds > 0)
		table_init(&table, "PORT QUEUE RX-PPS RX-BIT/S TX-PPS TX-BIT/S RX-PACKETS RX-BYTES "
				   "TX-PACKETS TX-BYTES");
	else
		table_init(&table, "PORT QUEUE RX-PACKETS RX-BYTES TX-PACKETS TX-BYTES");
	json_array_foreach(sockets, i, socket)
	{
		table_text(&table, text_of(socket, "port"));
		table_count(&table, count_of(socket, "queue"));
		rate_cells(&table, span, socket, socket_before(span, socket));
	}
	table_text(&table, "total");
	table_text(&table, "");
	rate_cells(&table, span, json_object_get(span->result, "totals"),
		   json_object_get(span->before, "totals"));
	return table_print(&table, out);
}

/* Whatever became of frames but being forwarded, and what the kernel says of why; all but the first two
 * explain and are not frames of their own. */
static const struct {
	const char *key, *name;
} kernel_counts[] = {
	{ "rx_dropped", "kernel: rx_dropped" },
	{ "rx_ring_full", "kernel: rx_ring_full" },
	{ "rx_fill_ring_empty_descs", "kernel: fill ring empty" },
	{ "rx_invalid_descs", "kernel: rx_invalid" },
	{ "tx_invalid_descs", "kernel: tx_invalid" },
	{ "oversize", "kernel: oversize" },
};

static void loss_row(struct table *table, const struct span *span, const json_t *socket,
		     const char *name, double per_second)
{
	table_text(table, text_of(socket, "port"));
	table_count(table, count_of(socket, "queue"));
	table_text(table, name);
	if (span->seconds > 0)
		table_rate(table, per_second);
}

static void loss_rows(struct table *table, const struct span *span, const json_t *socket)
{
	const json_t *before = socket_before(span, socket);
	const json_t *drops = json_object_get(socket, "drops");
	const json_t *drops_before = json_object_get(before, "drops");
	const char *reason;
	json_t *count;

	json_object_foreach((json_t *)drops, reason, count)
	{
		if (!json_integer_value(count))
			continue;
		loss_row(table, span, socket, reason, rate_of(span, drops, drops_before, reason));
		table_count(table, json_integer_value(count));
	}
	for (size_t i = 0; i < sizeof(kernel_counts) / sizeof(kernel_counts[0]); i++) {
		const char *key = kernel_counts[i].key;

		if (!count_of(socket, key))
			continue;
		loss_row(table, span, socket, kernel_counts[i].name,
			 rate_of(span, socket, before, key));
		table_count(table, count_of(socket, key));
	}
}

static int print_losses(FILE *out, const struct span *span)
{
	struct table table;
	json_t *socket;
	size_t i;

	table_init(&table, span->seconds > 0 ? "PORT QUEUE DROPPED PER-SECOND TOTAL" :
					       "PORT QUEUE DROPPED TOTAL");
	json_array_foreach(json_object_get(span->result, "sockets"), i, socket)
	{
		loss_rows(&table, span, socket);
	}
	return table_print(&table, out);
}

/* Of ports with frames that the host and the wire both needed. */
static int print_copies(FILE *out, const json_t *result)
{
	struct table table;
	json_t *port;
	bool any = false;
	size_t i;

	table_init(&table, "PORT COPIED TOO-MANY NOT-SENT");
	json_array_foreach(json_object_get(result, "copies"), i, port)
	{
		if (!count_of(port, "copied") && !count_of(port, "dropped") &&
		    !count_of(port, "failed"))
			continue;
		any = true;
		table_text(&table, text_of(port, "port"));
		table_count(&table, count_of(port, "copied"));
		table_count(&table, count_of(port, "dropped"));
		table_count(&table, count_of(port, "failed"));
	}
	if (any)
		fputc('\n', out);
	return table_print(&table, out);
}

static void print_unexplained(FILE *out, const json_t *result)
{
	json_t *program;
	size_t i;

	json_array_foreach(json_object_get(result, "programs"), i, program)
	{
		if (count_of(program, "unexplained"))
			fprintf(out, "%s: %" JSON_INTEGER_FORMAT " frames unexplained\n",
				text_of(program, "interface"), count_of(program, "unexplained"));
	}
}

static int print_stats(FILE *out, const json_t *result, const json_t *before)
{
	struct span span = { .result = result, .before = before };
	int err;

	if (before)
		span.seconds = seconds_of(result, "seconds") - seconds_of(before, "seconds");
	fprintf(out, "%.3f s%s\n", seconds_of(result, "seconds"),
		is_true(result, "current") ? "" :
					     "; not all workers have answered in time, counts of "
					     "theirs are older");
	err = print_traffic(out, &span);
	if (!err)
		err = print_losses(out, &span);
	if (!err)
		err = print_copies(out, result);
	print_unexplained(out, result);
	return err;
}

/* --- what comes as text --- */

static int print_text(FILE *out, const json_t *result, const json_t *before)
{
	(void)before;
	fputs(text_of(result, "text"), out);
	return 0;
}

static int print_reloaded(FILE *out, const json_t *result, const json_t *before)
{
	(void)before;
	fprintf(out, "reloaded; generation %" JSON_INTEGER_FORMAT "\n",
		count_of(result, "generation"));
	return 0;
}

static int print_set(FILE *out, const json_t *result, const json_t *before)
{
	(void)before;
	fprintf(out, "%s: promiscuous %s\n", text_of(result, "port"),
		is_true(result, "promiscuous") ? "on" : "off");
	return 0;
}

static int print_confirmed(FILE *out, const json_t *result, const json_t *before)
{
	(void)before;
	fprintf(out, "confirmed%s; it goes on\n", is_true(result, "already") ? " already" : "");
	return 0;
}

static int print_version(FILE *out, const json_t *result, const json_t *before)
{
	(void)before;
	fprintf(out, "millraced %s, protocol %" JSON_INTEGER_FORMAT "\n",
		text_of(result, "version"), count_of(result, "protocol"));
	return 0;
}

int people_print(FILE *out, enum command command, const json_t *result, const json_t *before)
{
	static int (*const prints[COMMANDS])(FILE *, const json_t *, const json_t *) = {
		[COMMAND_STATUS] = print_status,
		[COMMAND_STATS] = print_stats,
		[COMMAND_PORTS] = print_only_ports,
		[COMMAND_PLAN] = print_text,
		[COMMAND_METRICS] = print_text,
		[COMMAND_RELOAD] = print_reloaded,
		[COMMAND_FDB] = print_fdb,
		[COMMAND_FDB_COUNT] = print_fdb_count,
		[COMMAND_FDB_ADD] = print_fdb_added,
		[COMMAND_FDB_DEL] = print_fdb_removed,
		[COMMAND_FDB_FLUSH] = print_fdb_removed,
		[COMMAND_RULES] = print_rules,
		[COMMAND_SET] = print_set,
		[COMMAND_CONFIRM] = print_confirmed,
		[COMMAND_VERSION] = print_version,
	};

	return prints[command](out, result, before);
}
