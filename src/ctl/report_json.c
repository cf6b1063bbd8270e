/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One JSON object a line. Its fields are documented in docs/report-json.md. */
#include <errno.h>
#include <jansson.h>

#include "base/clock.h"
#include "ctl/report.h"

static json_t *integer(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *drops_json(const struct queue_counts *counts)
{
	json_t *object = json_object();

	for (int i = 0; i < DROP_REASONS; i++)
		json_object_set_new(object, drop_name((enum drop_reason)i),
				    integer(counts->drops[i]));
	return object;
}

static json_t *calls_json(const struct queue_counts *counts)
{
	static const char *const names[CALL_COUNTS] = {
		[CALL_RX_EMPTY] = "rx_empty", [CALL_FILL_FAIL] = "fill_fail",
		[CALL_COPY_TX] = "copy_tx",   [CALL_WAKE_TX] = "wake_tx",
		[CALL_POLL] = "poll",
	};
	json_t *object = json_object();

	for (int i = 0; i < CALL_COUNTS; i++)
		json_object_set_new(object, names[i], integer(counts->calls[i]));
	return object;
}

static const char *busy_poll_name(enum report_busy_poll busy_poll)
{
	switch (busy_poll) {
	case REPORT_BUSY_POLL_ON:
		return "on";
	case REPORT_BUSY_POLL_NOT_EFFECTIVE:
		return "not effective";
	default:
		return "off";
	}
}

static json_t *cycle_json(const struct cycle_counts *cycle)
{
	json_t *object = json_object();

	json_object_set_new(object, "period_ns", integer(cycle->period_ns));
	json_object_set_new(object, "min_ns", integer(cycle->cycles ? cycle->min_ns : 0));
	json_object_set_new(object, "average_ns", integer(report_cycle_average_ns(cycle)));
	json_object_set_new(object, "max_ns", integer(cycle->max_ns));
	json_object_set_new(object, "cycles", integer(cycle->cycles));
	return object;
}

static json_t *socket_json(const struct report *report, const struct report_socket *socket)
{
	const struct queue_counts *counts = socket->counts;
	const struct xsk_stats *stats = &socket->stats;
	json_t *object = json_object();

	json_object_set_new(object, "interface", json_string(socket->interface));
	json_object_set_new(object, "queue", integer(socket->queue));
	json_object_set_new(object, "mode", json_string(report->mode->name));
	json_object_set_new(object, "attach", json_string(socket->native ? "native" : "skb"));
	json_object_set_new(object, "zero_copy", json_boolean(socket->zero_copy));
	json_object_set_new(object, "need_wakeup", json_boolean(socket->need_wakeup));
	json_object_set_new(object, "busy_poll", json_string(busy_poll_name(socket->busy_poll)));
	json_object_set_new(object, "rx_packets", integer(counts->rx_packets));
	json_object_set_new(object, "rx_bytes", integer(counts->rx_bytes));
	json_object_set_new(object, "tx_packets", integer(counts->tx_packets));
	json_object_set_new(object, "tx_bytes", integer(counts->tx_bytes));
	json_object_set_new(object, "rx_descriptors", integer(counts->rx_descriptors));
	json_object_set_new(object, "tx_descriptors", integer(counts->tx_descriptors));
	json_object_set_new(object, "partial_checksums", integer(counts->partial_checksums));
	json_object_set_new(object, "drops", drops_json(counts));
	json_object_set_new(object, "rx_dropped", integer(stats->rx_dropped));
	json_object_set_new(object, "rx_invalid_descs", integer(stats->rx_invalid_descs));
	json_object_set_new(object, "tx_invalid_descs", integer(stats->tx_invalid_descs));
	json_object_set_new(object, "rx_ring_full", integer(stats->rx_ring_full));
	json_object_set_new(object, "rx_fill_ring_empty_descs",
			    integer(stats->rx_fill_ring_empty_descs));
	json_object_set_new(object, "tx_ring_empty_descs", integer(stats->tx_ring_empty_descs));
	json_object_set_new(object, "oversize", integer(report_oversize(report, socket)));
	json_object_set_new(object, "calls", calls_json(counts));
	json_object_set_new(object, "fill", integer(counts->fill));
	json_object_set_new(object, "rx", integer(counts->rx));
	json_object_set_new(object, "tx", integer(counts->tx));
	json_object_set_new(object, "completion", integer(counts->completion));
	return object;
}

static json_t *program_json(const struct report_program *program)
{
	json_t *object = json_object();

	json_object_set_new(object, "interface", json_string(program->interface));
	json_object_set_new(object, "seen", integer(program->seen));
	json_object_set_new(object, "passed", integer(program->passed));
	json_object_set_new(object, "unexplained", integer(program->unexplained));
	return object;
}

static json_t *worker_json(const struct report_worker *worker)
{
	const struct worker_counts *counts = &worker->counts;
	json_t *object = json_object();

	json_object_set_new(object, "cpu", integer(worker->cpu));
	json_object_set_new(object, "total", integer(counts->total));
	json_object_set_new(object, "pool", integer(counts->pool));
	json_object_set_new(object, "kernel", json_integer(worker_counts_kernel(counts)));
	json_object_set_new(object, "lost", integer(worker_counts_lost(counts)));
	json_object_set_new(object, "reclaimed", integer(counts->reclaimed));
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
		json_array_append_new(sockets, socket_json(report, &report->socket[i]));
	for (unsigned i = 0; i < report->programs; i++)
		json_array_append_new(programs, program_json(&report->program[i]));
	for (unsigned i = 0; i < report->workers; i++)
		json_array_append_new(workers, worker_json(&report->worker[i]));
	json_object_set_new(root, "sockets", sockets);
	json_object_set_new(root, "programs", programs);
	json_object_set_new(root, "workers", workers);
	if (report->irq)
		json_object_set_new(root, "irqs", integer(report->irqs));
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
