/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rows that xdpsock prints, to the character: scripts parse them (see XDPSOCK.md's table). */
#include <errno.h>
#include <stddef.h>

#include "base/clock.h"
#include "ctl/report.h"

/* Where rows go, and what their rates are over. */
struct rows {
	FILE *out;
	uint64_t interval_ns;
};

static const struct report_socket nothing = { .counts = &(const struct queue_counts){ 0 } };

static double rate(const struct rows *rows, uint64_t now, uint64_t before)
{
	/* A total can be corrected downwards when it is learnt what the kernel refused. */
	if (!rows->interval_ns || now < before)
		return 0;
	return (double)(now - before) * (double)NSEC_PER_SEC / (double)rows->interval_ns;
}

static void row(const struct rows *rows, const char *name, uint64_t now, uint64_t before)
{
	fprintf(rows->out, "%-18s %'-14.0f %'-14lu\n", name, rate(rows, now, before),
		(unsigned long)now);
}

static void packet_rows(const struct rows *rows, const struct queue_counts *now,
			const struct queue_counts *before)
{
	fprintf(rows->out, "%-18s %-14s %-14s %-14.2f\n", "", "pps", "pkts",
		(double)rows->interval_ns / (double)NSEC_PER_SEC);
	row(rows, "rx", now->rx_packets, before->rx_packets);
	row(rows, "tx", now->tx_packets, before->tx_packets);
}

/* Multi-buffer: descriptors beside packets. */
static void frag_rows(const struct rows *rows, const struct queue_counts *now,
		      const struct queue_counts *before)
{
	static const char format[] = "%-18s %'-14.0f %'-14lu %'-14.0f %'-14lu\n";

	fprintf(rows->out, "%-18s %-14s %-14s %-14s %-14s %-14.2f\n", "", "pps", "pkts", "fps",
		"frags", (double)rows->interval_ns / (double)NSEC_PER_SEC);
	fprintf(rows->out, format, "rx", rate(rows, now->rx_packets, before->rx_packets),
		(unsigned long)now->rx_packets,
		rate(rows, now->rx_descriptors, before->rx_descriptors),
		(unsigned long)now->rx_descriptors);
	fprintf(rows->out, format, "tx", rate(rows, now->tx_packets, before->tx_packets),
		(unsigned long)now->tx_packets,
		rate(rows, now->tx_descriptors, before->tx_descriptors),
		(unsigned long)now->tx_descriptors);
}

static void extra_rows(const struct rows *rows, const struct xsk_stats *now,
		       const struct xsk_stats *before)
{
	row(rows, "rx dropped", now->rx_dropped, before->rx_dropped);
	row(rows, "rx invalid", now->rx_invalid_descs, before->rx_invalid_descs);
	row(rows, "tx invalid", now->tx_invalid_descs, before->tx_invalid_descs);
	row(rows, "rx queue full", now->rx_ring_full, before->rx_ring_full);
	row(rows, "fill ring empty", now->rx_fill_ring_empty_descs,
	    before->rx_fill_ring_empty_descs);
	row(rows, "tx ring empty", now->tx_ring_empty_descs, before->tx_ring_empty_descs);
}

static void call_rows(const struct rows *rows, const struct queue_counts *now,
		      const struct queue_counts *before)
{
	static const char *const names[CALL_COUNTS] = {
		[CALL_RX_EMPTY] = "rx empty polls", [CALL_FILL_FAIL] = "fill fail polls",
		[CALL_COPY_TX] = "copy tx sendtos", [CALL_WAKE_TX] = "tx wakeup sendtos",
		[CALL_POLL] = "opt polls",
	};

	fprintf(rows->out, "\n%-18s %-14s %-14s\n", "", "calls/s", "count");
	for (int i = 0; i < CALL_COUNTS; i++)
		row(rows, names[i], now->calls[i], before->calls[i]);
}

static void cycle_row(FILE *out, const struct cycle_counts *cycle)
{
	if (!cycle->period_ns)
		return;
	fprintf(out, "\n%-18s %-10s %-10s %-10s %-10s %-10s\n", "", "period", "min", "ave", "max",
		"cycle");
	fprintf(out, "%-18s %-10lu %-10lu %-10lu %-10lu %-10lu\n", "Cyclic TX",
		(unsigned long)cycle->period_ns, (unsigned long)(cycle->cycles ? cycle->min_ns : 0),
		(unsigned long)report_cycle_average_ns(cycle), (unsigned long)cycle->max_ns,
		(unsigned long)cycle->cycles);
}

static void socket_rows(const struct rows *rows, const struct report *report, unsigned i,
			const struct report_socket *before)
{
	const struct report_socket *now = &report->socket[i];

	fprintf(rows->out, "\n sock%u@%s:%u %s %s%s\n", i, now->interface, now->queue,
		now->mode->row_name, now->native ? "xdp-drv " : "xdp-skb ",
		now->poll ? "poll() " : "");
	if (now->frags)
		frag_rows(rows, now->counts, before->counts);
	else
		packet_rows(rows, now->counts, before->counts);
	if (report->extra_stats)
		extra_rows(rows, &now->stats, &before->stats);
}

/* The same socket in the report before; one that was not there then began at nothing. */
static const struct report_socket *socket_before(const struct report *before, unsigned index)
{
	return before && index < before->sockets ? &before->socket[index] : &nothing;
}

int report_text(FILE *out, const struct report *report, const struct report *before)
{
	const struct rows rows = { out, report->interval_ns };
	const struct cycle_counts cycle = report_cycle(report);

	for (unsigned i = 0; i < report->sockets; i++)
		socket_rows(&rows, report, i, socket_before(before, i));
	for (unsigned i = 0; report->app_stats && i < report->sockets; i++)
		call_rows(&rows, report->socket[i].counts, socket_before(before, i)->counts);
	if (report->app_stats)
		cycle_row(out, &cycle);
	if (report->irq) {
		fprintf(out, "\n%-18s %-14s %-14s\n", "", "intrs/s", "count");
		row(&rows, "irqs", report->irqs, before ? before->irqs : 0);
	}
	if (fflush(out) || ferror(out))
		return errno ? -errno : -EIO;
	return 0;
}
