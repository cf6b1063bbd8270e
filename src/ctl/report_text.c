/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rows that xdpsock prints, to the character: scripts parse them (see XDPSOCK.md's table). */
#include <errno.h>

#include "base/clock.h"
#include "ctl/report.h"

static void row(FILE *out, const char *name, uint64_t now, uint64_t before, uint64_t interval_ns)
{
	double rate = 0;

	if (interval_ns)
		rate = (double)(now - before) * (double)NSEC_PER_SEC / (double)interval_ns;
	fprintf(out, "%-18s %'-14.0f %'-14lu\n", name, rate, (unsigned long)now);
}

int report_text(FILE *out, const struct report *report, const struct report *before)
{
	static const struct queue_counts nothing;

	for (unsigned i = 0; i < report->sockets; i++) {
		const struct report_socket *socket = &report->socket[i];
		const struct queue_counts *old = before ? before->socket[i].counts : &nothing;

		fprintf(out, "\n sock%u@%s:%u %s %s%s\n", i, socket->interface, socket->queue,
			report->mode->row_name, socket->native ? "xdp-drv " : "xdp-skb ",
			socket->poll ? "poll() " : "");
		fprintf(out, "%-18s %-14s %-14s %-14.2f\n", "", "pps", "pkts",
			(double)report->interval_ns / (double)NSEC_PER_SEC);
		row(out, "rx", socket->counts->rx_packets, old->rx_packets, report->interval_ns);
		row(out, "tx", socket->counts->tx_packets, old->tx_packets, report->interval_ns);
	}
	if (fflush(out) || ferror(out))
		return errno ? -errno : -EIO;
	return 0;
}
