/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tables of families, and a walk over each: a family's samples must stand together, so families are the
 * outer loop and what they are counted of the inner one.
 */
#include "ctl/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "ctl/report.h"

struct family {
	const char *name; /* without _total; ends with the unit if there is one */
	const char *unit; /* "": frames, calls and what else is just counted */
	const char *help;
	bool gauge; /* goes down too; else a counter */
};

struct socket_family {
	struct family family;
	bool kernel;	   /* of struct xsk_stats, else of struct queue_counts */
	size_t offset;	   /* of a uint64_t there, */
	const char *label; /* ... or of `count` of them, told apart by this label; NULL: of one */
	unsigned count;
	const char *(*value)(unsigned index); /* of the label */
};

static const char *drop_value(unsigned index)
{
	return drop_name((enum drop_reason)index);
}

static const char *call_value(unsigned index)
{
	return report_call_name((enum call_count)index);
}

static const char *kick_value(unsigned index)
{
	return kick_name((enum kick_result)index);
}

static const char *ring_value(unsigned index)
{
	static const char *const names[] = { "fill", "rx", "tx", "completion" };

	return names[index];
}

_Static_assert(offsetof(struct queue_counts, completion) - offsetof(struct queue_counts, fill) ==
		       3 * sizeof(uint64_t),
	       "the rings' occupancies stand together, in the order of their names");

/* clang-format off */
#define COUNTED(member) false, offsetof(struct queue_counts, member), NULL, 1, NULL
#define KERNEL(member)	true, offsetof(struct xsk_stats, member), NULL, 1, NULL

static const struct socket_family socket_families[] = {
	{ { "millrace_rx_packets", "", "Frames taken from the RX ring.", false }, COUNTED(rx_packets) },
	{ { "millrace_rx_bytes", "bytes", "Bytes of these, without FCS.", false }, COUNTED(rx_bytes) },
	{ { "millrace_rx_descriptors", "", "Chunks that these took.", false }, COUNTED(rx_descriptors) },
	{ { "millrace_tx_packets", "", "Frames sent, as the kernel completed them.", false },
	  COUNTED(tx_packets) },
	{ { "millrace_tx_bytes", "bytes", "Bytes of these, without FCS.", false }, COUNTED(tx_bytes) },
	{ { "millrace_tx_descriptors", "", "Chunks that these took.", false }, COUNTED(tx_descriptors) },
	{ { "millrace_flooded_packets", "", "Frames received that a bridge sent to all ports.", false },
	  COUNTED(flooded) },
	{ { "millrace_flood_copies", "", "Copies made of frames received, for further ports.", false },
	  COUNTED(copies) },
	{ { "millrace_loop_probes", "", "Probes for loops sent, of our own.", false },
	  COUNTED(probes) },
	{ { "millrace_partial_checksums", "",
	    "Sampled frames whose checksum was left to their sender's device.", false },
	  COUNTED(partial_checksums) },
	{ { "millrace_dropped_packets", "", "Frames received and discarded.", false },
	  false, offsetof(struct queue_counts, drops), "reason", DROP_REASONS, drop_value },
	{ { "millrace_kernel_rx_dropped_packets", "",
	    "Frames the kernel dropped: no fill entry, or longer than a chunk.", false },
	  KERNEL(rx_dropped) },
	{ { "millrace_kernel_rx_ring_full_packets", "",
	    "Frames the kernel dropped: the RX ring was full.", false }, KERNEL(rx_ring_full) },
	{ { "millrace_kernel_fill_ring_empty", "",
	    "Times the kernel found the fill ring empty; explains rx_dropped.", false },
	  KERNEL(rx_fill_ring_empty_descs) },
	{ { "millrace_kernel_rx_invalid_descriptors", "", "Fill entries that the kernel refused.", false },
	  KERNEL(rx_invalid_descs) },
	{ { "millrace_kernel_tx_invalid_descriptors", "", "TX descriptors that the kernel refused.", false },
	  KERNEL(tx_invalid_descs) },
	{ { "millrace_kernel_tx_ring_empty", "", "Times the kernel found nothing to send.", false },
	  KERNEL(tx_ring_empty_descs) },
	{ { "millrace_calls", "", "What a poller did in vain or called the kernel for.", false },
	  false, offsetof(struct queue_counts, calls), "call", CALL_COUNTS, call_value },
	{ { "millrace_send_calls", "", "Calls to send, and how many gave which error.", false },
	  false, offsetof(struct queue_counts, kicks), "result", KICK_RESULTS, kick_value },
	{ { "millrace_ring_frames", "", "Entries on a ring now.", true },
	  false, offsetof(struct queue_counts, fill), "ring", 4, ring_value },
};
/* clang-format on */

static void print_family(FILE *out, const struct family *family)
{
	fprintf(out, "# TYPE %s %s\n", family->name, family->gauge ? "gauge" : "counter");
	if (family->unit[0])
		fprintf(out, "# UNIT %s %s\n", family->name, family->unit);
	fprintf(out, "# HELP %s %s\n", family->name, family->help);
}

/* The name of one sample. */
static void print_name(FILE *out, const struct family *family)
{
	fprintf(out, "%s%s", family->name, family->gauge ? "" : "_total");
}

/* name="value", escaped. */
static void print_label(FILE *out, const char *name, const char *value)
{
	fprintf(out, "%s=\"", name);
	for (; *value; value++) {
		if (*value == '\n')
			fputs("\\n", out);
		else if (*value == '"' || *value == '\\')
			fprintf(out, "\\%c", *value);
		else
			fputc(*value, out);
	}
	fputc('"', out);
}

static void print_socket_labels(FILE *out, const struct report_socket *socket)
{
	print_label(out, "forward", socket->forward);
	fputc(',', out);
	print_label(out, "port", socket->port);
	fprintf(out, ",queue=\"%u\",worker=\"%u\"", socket->queue, socket->worker_number);
}

static void print_socket_family(FILE *out, const struct socket_family *row,
				const struct report *report)
{
	print_family(out, &row->family);
	for (unsigned i = 0; i < report->sockets; i++) {
		const struct report_socket *socket = &report->socket[i];
		const char *base =
			row->kernel ? (const char *)&socket->stats : (const char *)socket->counts;
		const uint64_t *values = (const uint64_t *)(base + row->offset);

		for (unsigned j = 0; j < row->count; j++) {
			print_name(out, &row->family);
			fputc('{', out);
			print_socket_labels(out, socket);
			if (row->label) {
				fputc(',', out);
				print_label(out, row->label, row->value(j));
			}
			fprintf(out, "} %" PRIu64 "\n", values[j]);
		}
	}
}

/* What a table cannot say: signed, or computed. */
static void print_computed(FILE *out, const struct report *report)
{
	static const struct family kernel = { "millrace_kernel_frames", "",
					      "Frames the kernel has now; briefly below 0.", true };
	/* The difference of two counts that do not move in the same instant. */
	static const struct family oversize = { "millrace_oversize_packets", "",
						"Of rx_dropped: larger than a chunk.", true };

	print_family(out, &kernel);
	for (unsigned i = 0; i < report->sockets; i++) {
		fprintf(out, "%s{", kernel.name);
		print_socket_labels(out, &report->socket[i]);
		fprintf(out, "} %" PRId64 "\n", report->socket[i].counts->kernel);
	}
	print_family(out, &oversize);
	for (unsigned i = 0; i < report->sockets; i++) {
		fprintf(out, "%s{", oversize.name);
		print_socket_labels(out, &report->socket[i]);
		fprintf(out, "} %" PRIu64 "\n", report_oversize(&report->socket[i]));
	}
}

/* --- programs --- */

static uint64_t seen_of(const struct report_program *program)
{
	return program->seen;
}

static uint64_t passed_of(const struct report_program *program)
{
	return program->passed;
}

static uint64_t departed_of(const struct report_program *program)
{
	return program->departed;
}

static uint64_t unexplained_of(const struct report_program *program)
{
	return program->unexplained;
}

static const struct {
	struct family family;
	uint64_t (*value)(const struct report_program *program);
} program_families[] = {
	{ { "millrace_program_seen_packets", "", "Frames the XDP program was run on.", false },
	  seen_of },
	{ { "millrace_program_passed_packets", "", "Of these, given to the host.", false },
	  passed_of },
	{ { "millrace_program_departed_packets", "",
	    "Of these, come when the device had left and its sockets with it.", false },
	  departed_of },
	{ { "millrace_unexplained_packets", "", "Of these, in nobody's hands; 0 is right.", true },
	  unexplained_of },
};

static void print_programs(FILE *out, const struct report *report)
{
	for (size_t i = 0; i < sizeof(program_families) / sizeof(program_families[0]); i++) {
		print_family(out, &program_families[i].family);
		for (unsigned j = 0; j < report->programs; j++) {
			if (report->program[j].external)
				continue; /* not known is no number */
			print_name(out, &program_families[i].family);
			fputc('{', out);
			print_label(out, "device", report->program[j].interface);
			fprintf(out, "} %" PRIu64 "\n",
				program_families[i].value(&report->program[j]));
		}
	}
}

/* --- workers --- */

static int64_t total_of(const struct report_worker *worker)
{
	return (int64_t)worker->counts.total;
}

static int64_t pool_of(const struct report_worker *worker)
{
	return (int64_t)worker->counts.pool;
}

static int64_t hand_over_of(const struct report_worker *worker)
{
	return (int64_t)worker_counts_hand_over(&worker->counts);
}

static int64_t handed_of(const struct report_worker *worker)
{
	return (int64_t)worker_counts_handed(&worker->counts);
}

static int64_t lost_of(const struct report_worker *worker)
{
	return (int64_t)worker_counts_lost(&worker->counts);
}

static int64_t reclaimed_of(const struct report_worker *worker)
{
	return (int64_t)worker->counts.reclaimed;
}

static int64_t balance_of(const struct report_worker *worker)
{
	return worker_counts_balance(&worker->counts);
}

static const struct {
	struct family family;
	int64_t (*value)(const struct report_worker *worker);
} worker_families[] = {
	{ { "millrace_worker_frames", "", "Frames there are.", true }, total_of },
	{ { "millrace_worker_pool_frames", "", "Frames in no ring.", true }, pool_of },
	{ { "millrace_worker_hand_over_frames", "", "Frames on their way to another worker.",
	    true },
	  hand_over_of },
	{ { "millrace_worker_handed_packets", "", "Packets that another worker took over.", false },
	  handed_of },
	{ { "millrace_worker_lost_frames", "", "Frames the kernel does not give back.", true },
	  lost_of },
	{ { "millrace_worker_reclaimed_frames", "", "Frames taken back when ports were closed.",
	    false },
	  reclaimed_of },
	{ { "millrace_worker_balance_frames", "", "Frames leaked, or doubled if below 0.", true },
	  balance_of },
};

static void print_workers(FILE *out, const struct report *report)
{
	for (size_t i = 0; i < sizeof(worker_families) / sizeof(worker_families[0]); i++) {
		print_family(out, &worker_families[i].family);
		for (unsigned j = 0; j < report->workers; j++) {
			const struct report_worker *worker = &report->worker[j];

			print_name(out, &worker_families[i].family);
			fputc('{', out);
			print_label(out, "forward", worker->forward);
			fprintf(out, ",worker=\"%u\",cpu=\"%u\"} %" PRId64 "\n", worker->number,
				worker->cpu, worker_families[i].value(worker));
		}
	}
}

/* --- ports --- */

static uint64_t up_of(const struct report_port *port)
{
	return port->link == REPORT_LINK_UP;
}

static uint64_t promiscuous_of(const struct report_port *port)
{
	return port->promiscuous;
}

static uint64_t changes_of(const struct report_port *port)
{
	return port->states->changes;
}

static uint64_t loop_of(const struct report_port *port)
{
	return port->states->fault[PORT_FAULT_LOOP][0] != '\0';
}

static uint64_t mtu_of(const struct report_port *port)
{
	return port->mtu;
}

static const struct {
	struct family family;
	uint64_t (*value)(const struct report_port *port);
} port_families[] = {
	{ { "millrace_port_up", "", "1: the link can carry frames.", true }, up_of },
	{ { "millrace_port_promiscuous", "", "1: made promiscuous by millraced.", true },
	  promiscuous_of },
	{ { "millrace_port_loop_suspected", "",
	    "1: stations flap between it and another port of its bridge.", true },
	  loop_of },
	{ { "millrace_port_mtu_bytes", "bytes", "MTU of the device.", true }, mtu_of },
	{ { "millrace_port_state_changes", "", "Changes of its state, its first one included.",
	    false },
	  changes_of },
};

static uint64_t copied_of(const struct report_copies *copies)
{
	return copies->copied;
}

static uint64_t copies_dropped_of(const struct report_copies *copies)
{
	return copies->dropped;
}

static uint64_t copies_failed_of(const struct report_copies *copies)
{
	return copies->failed;
}

static const struct {
	struct family family;
	uint64_t (*value)(const struct report_copies *copies);
} copy_families[] = {
	{ { "millrace_copied_packets", "", "Frames given to the host, and sent on as copies.",
	    false },
	  copied_of },
	{ { "millrace_copies_dropped_packets", "", "Given to the host alone: too many came.",
	    false },
	  copies_dropped_of },
	{ { "millrace_copies_failed_packets", "", "Given to the host alone: not sent.", false },
	  copies_failed_of },
};

static void print_port_name(FILE *out, const struct family *family, const struct report_port *port)
{
	print_name(out, family);
	fputc('{', out);
	print_label(out, "port", port->port);
	fputc(',', out);
	print_label(out, "device", port->device);
	fputs("} ", out);
}

/* Of the ports that may have such frames. */
static void print_copies(FILE *out, const struct report *report)
{
	for (size_t i = 0; i < sizeof(copy_families) / sizeof(copy_families[0]); i++) {
		print_family(out, &copy_families[i].family);
		for (unsigned j = 0; j < report->ports; j++) {
			const struct report_port *port = &report->port[j];

			if (!port->copies)
				continue;
			print_port_name(out, &copy_families[i].family, port);
			fprintf(out, "%" PRIu64 "\n", copy_families[i].value(&port->copy));
		}
	}
}

/* --- what bridges have learned --- */

static uint64_t stations_of(const struct fdb_counts *counts)
{
	return counts->stations;
}

static uint64_t fixed_of(const struct fdb_counts *counts)
{
	return counts->fixed;
}

static uint64_t expired_of(const struct fdb_counts *counts)
{
	return counts->expired;
}

static uint64_t removed_of(const struct fdb_counts *counts)
{
	return counts->removed;
}

static const struct {
	struct family family;
	uint64_t (*value)(const struct fdb_counts *counts);
} fdb_families[] = {
	{ { "millrace_bridge_stations", "", "Stations learned, and known now.", true },
	  stations_of },
	{ { "millrace_bridge_static_entries", "", "Static entries that name the port.", true },
	  fixed_of },
	{ { "millrace_bridge_expired_stations", "", "Forgotten: silent for the ageing time.",
	    false },
	  expired_of },
	{ { "millrace_bridge_removed_stations", "", "Forgotten: the port went, or an operator's.",
	    false },
	  removed_of },
};

static void print_fdb_name(FILE *out, const struct family *family, const struct report_port *port)
{
	print_name(out, family);
	fputc('{', out);
	print_label(out, "port", port->port);
	fputc(',', out);
	print_label(out, "device", port->device);
}

static void print_learned(FILE *out, const struct report *report)
{
	static const struct family family = { "millrace_bridge_learned_frames", "",
					      "Sources of frames, by what was learned.", false };

	print_family(out, &family);
	for (unsigned i = 0; i < report->ports; i++) {
		const struct report_port *port = &report->port[i];

		/* The first and the last of them are not counted. */
		for (int j = FDB_REFRESHED; port->bridged && j < FDB_INVALID; j++) {
			print_fdb_name(out, &family, port);
			fputc(',', out);
			print_label(out, "result", fdb_learned_name((enum fdb_learned)j));
			fprintf(out, "} %" PRIu64 "\n", port->fdb.events[j]);
		}
	}
}

static void print_fdb(FILE *out, const struct report *report)
{
	for (size_t i = 0; i < sizeof(fdb_families) / sizeof(fdb_families[0]); i++) {
		print_family(out, &fdb_families[i].family);
		for (unsigned j = 0; j < report->ports; j++) {
			const struct report_port *port = &report->port[j];

			if (!port->bridged)
				continue;
			print_fdb_name(out, &fdb_families[i].family, port);
			fprintf(out, "} %" PRIu64 "\n", fdb_families[i].value(&port->fdb));
		}
	}
	print_learned(out, report);
}

static void print_ports(FILE *out, const struct report *report)
{
	for (size_t i = 0; i < sizeof(port_families) / sizeof(port_families[0]); i++) {
		print_family(out, &port_families[i].family);
		for (unsigned j = 0; j < report->ports; j++) {
			const struct report_port *port = &report->port[j];

			print_port_name(out, &port_families[i].family, port);
			fprintf(out, "%" PRIu64 "\n", port_families[i].value(port));
		}
	}
}

static void print_state(FILE *out, const struct report_port *port, enum port_state state)
{
	fprintf(out, "millrace_port_state{");
	print_label(out, "port", port->port);
	fputc(',', out);
	print_label(out, "device", port->device);
	fputc(',', out);
	print_label(out, "state", port_state_word(state));
	fprintf(out, "} %d\n", port_state_now(port->states) == state);
}

/* One of them is 1. */
static void print_states(FILE *out, const struct report *report)
{
	static const struct family family = { "millrace_port_state", "",
					      "1: the state that the port is in.", true };

	print_family(out, &family);
	for (unsigned i = 0; i < report->ports; i++) {
		for (int state = 0; state < PORT_STATES; state++)
			print_state(out, &report->port[i], (enum port_state)state);
	}
}

/* --- the daemon --- */

static void print_daemon(FILE *out, const struct control_facts *facts, const struct report *report)
{
	static const struct family uptime = { "millrace_uptime_seconds", "seconds",
					      "Since the daemon started.", true };
	static const struct family reloads = { "millrace_reloads", "",
					       "Configurations taken over while it ran.", false };
	static const struct family irqs = { "millrace_irqs", "",
					    "Interrupts of the row that -I names.", false };

	fputs("# TYPE millrace_build info\n# HELP millrace_build The daemon.\nmillrace_build_info{",
	      out);
	print_label(out, "version", facts->version);
	fputs("} 1\n", out);
	print_family(out, &uptime);
	/* No %f: its point is the locale's. */
	fprintf(out, "%s %" PRIu64 ".%03u\n", uptime.name,
		(uint64_t)(facts->uptime_ns / NSEC_PER_SEC),
		(unsigned)(facts->uptime_ns % NSEC_PER_SEC / NSEC_PER_MSEC));
	print_family(out, &reloads);
	print_name(out, &reloads);
	fprintf(out, " %" PRIu64 "\n", facts->generation);
	if (!report->irq)
		return;
	print_family(out, &irqs);
	print_name(out, &irqs);
	fprintf(out, " %" PRIu64 "\n", report->irqs);
}

char *metrics_text(const struct control_facts *facts, const struct report *report)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	print_daemon(out, facts, report);
	print_ports(out, report);
	print_states(out, report);
	print_copies(out, report);
	print_fdb(out, report);
	print_programs(out, report);
	for (size_t i = 0; i < sizeof(socket_families) / sizeof(socket_families[0]); i++)
		print_socket_family(out, &socket_families[i], report);
	print_computed(out, report);
	print_workers(out, report);
	fputs("# EOF\n", out);
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}
