/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One JSON object a line. Its fields are documented in docs/report-json.md. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "ctl/report_json.h"

json_t *json_text(const char *text)
{
	json_t *string = json_string(text);
	char *copy = string ? NULL : strdup(text);

	for (char *at = copy; at && *at; at++) {
		if ((unsigned char)*at >= 0x80)
			*at = '?';
	}
	if (copy)
		string = json_string(copy);
	free(copy);
	return string;
}

static json_t *drops_json(const struct queue_counts *counts)
{
	json_t *object = json_object();

	for (int i = 0; i < DROP_REASONS; i++)
		json_object_set_new(object, drop_name((enum drop_reason)i),
				    json_count(counts->drops[i]));
	return object;
}

static json_t *calls_json(const struct queue_counts *counts)
{
	json_t *object = json_object();

	for (int i = 0; i < CALL_COUNTS; i++)
		json_object_set_new(object, report_call_name((enum call_count)i),
				    json_count(counts->calls[i]));
	return object;
}

static json_t *cycle_json(const struct cycle_counts *cycle)
{
	json_t *object = json_object();

	json_object_set_new(object, "period_ns", json_count(cycle->period_ns));
	json_object_set_new(object, "min_ns", json_count(cycle->cycles ? cycle->min_ns : 0));
	json_object_set_new(object, "average_ns", json_count(report_cycle_average_ns(cycle)));
	json_object_set_new(object, "max_ns", json_count(cycle->max_ns));
	json_object_set_new(object, "cycles", json_count(cycle->cycles));
	return object;
}

json_t *report_socket_json(const struct report_socket *socket)
{
	const struct queue_counts *counts = socket->counts;
	const struct xsk_stats *stats = &socket->stats;
	json_t *object = json_object();

	json_object_set_new(object, "interface", json_text(socket->interface));
	json_object_set_new(object, "queue", json_count(socket->queue));
	json_object_set_new(object, "mode", json_text(socket->mode->name));
	json_object_set_new(object, "attach", json_text(socket->native ? "native" : "skb"));
	json_object_set_new(object, "zero_copy", json_boolean(socket->zero_copy));
	json_object_set_new(object, "need_wakeup", json_boolean(socket->need_wakeup));
	json_object_set_new(object, "busy_poll",
			    json_text(report_busy_poll_name(socket->busy_poll)));
	json_object_set_new(object, "rx_packets", json_count(counts->rx_packets));
	json_object_set_new(object, "rx_bytes", json_count(counts->rx_bytes));
	json_object_set_new(object, "tx_packets", json_count(counts->tx_packets));
	json_object_set_new(object, "tx_bytes", json_count(counts->tx_bytes));
	json_object_set_new(object, "rx_descriptors", json_count(counts->rx_descriptors));
	json_object_set_new(object, "tx_descriptors", json_count(counts->tx_descriptors));
	json_object_set_new(object, "flooded", json_count(counts->flooded));
	json_object_set_new(object, "copies", json_count(counts->copies));
	json_object_set_new(object, "probes", json_count(counts->probes));
	json_object_set_new(object, "partial_checksums", json_count(counts->partial_checksums));
	json_object_set_new(object, "drops", drops_json(counts));
	json_object_set_new(object, "rx_dropped", json_count(stats->rx_dropped));
	json_object_set_new(object, "rx_invalid_descs", json_count(stats->rx_invalid_descs));
	json_object_set_new(object, "tx_invalid_descs", json_count(stats->tx_invalid_descs));
	json_object_set_new(object, "rx_ring_full", json_count(stats->rx_ring_full));
	json_object_set_new(object, "rx_fill_ring_empty_descs",
			    json_count(stats->rx_fill_ring_empty_descs));
	json_object_set_new(object, "tx_ring_empty_descs", json_count(stats->tx_ring_empty_descs));
	json_object_set_new(object, "oversize", json_count(report_oversize(socket)));
	json_object_set_new(object, "calls", calls_json(counts));
	json_object_set_new(object, "fill", json_count(counts->fill));
	json_object_set_new(object, "rx", json_count(counts->rx));
	json_object_set_new(object, "tx", json_count(counts->tx));
	json_object_set_new(object, "completion", json_count(counts->completion));
	return object;
}

/* null where it is not known: 0 would be a count. */
static void set_count(json_t *object, const char *name, bool known, uint64_t count)
{
	json_object_set_new(object, name, known ? json_count(count) : json_null());
}

json_t *report_program_json(const struct report_program *program)
{
	json_t *object = json_object();

	json_object_set_new(object, "interface", json_text(program->interface));
	set_count(object, "seen", !program->external, program->seen);
	set_count(object, "passed", !program->external, program->passed);
	set_count(object, "departed", !program->external, program->departed);
	set_count(object, "unexplained", !program->external, program->unexplained);
	return object;
}

json_t *report_worker_json(const struct report_worker *worker)
{
	const struct worker_counts *counts = &worker->counts;
	json_t *object = json_object();

	json_object_set_new(object, "cpu", json_count(worker->cpu));
	json_object_set_new(object, "total", json_count(counts->total));
	json_object_set_new(object, "pool", json_count(counts->pool));
	json_object_set_new(object, "kernel", json_integer(worker_counts_kernel(counts)));
	json_object_set_new(object, "lost", json_count(worker_counts_lost(counts)));
	json_object_set_new(object, "hand_over", json_count(worker_counts_hand_over(counts)));
	json_object_set_new(object, "handed", json_count(worker_counts_handed(counts)));
	json_object_set_new(object, "reclaimed", json_count(counts->reclaimed));
	json_object_set_new(object, "balance", json_integer(worker_counts_balance(counts)));
	if (counts->cycle.period_ns)
		json_object_set_new(object, "cycle", cycle_json(&counts->cycle));
	return object;
}

int report_json(FILE *out, const struct report *report)
{
	json_t *root = json_object();
	json_t *sockets = json_array(), *programs = json_array(), *workers = json_array();
	int err = 0;

	json_object_set_new(root, "seconds",
			    json_real((double)report->elapsed_ns / (double)NSEC_PER_SEC));
	for (unsigned i = 0; i < report->sockets; i++)
		json_array_append_new(sockets, report_socket_json(&report->socket[i]));
	for (unsigned i = 0; i < report->programs; i++)
		json_array_append_new(programs, report_program_json(&report->program[i]));
	for (unsigned i = 0; i < report->workers; i++)
		json_array_append_new(workers, report_worker_json(&report->worker[i]));
	json_object_set_new(root, "sockets", sockets);
	json_object_set_new(root, "programs", programs);
	json_object_set_new(root, "workers", workers);
	if (report->irq)
		json_object_set_new(root, "irqs", json_count(report->irqs));
	/* jansson hands every failed allocation down as NULL, to the root at last. */
	if (!root ||
	    json_dumpf(root, out, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9)))
		err = !root ? -ENOMEM : errno ? -errno : -EIO;
	json_decref(root);
	if (err)
		return err;
	fputc('\n', out);
	if (fflush(out) || ferror(out))
		return errno ? -errno : -EIO;
	return 0;
}
