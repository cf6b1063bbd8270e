/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "ctl/report.h"

#include <string.h>

const char *report_link_name(enum report_link link)
{
	static const char *const names[] = {
		[REPORT_LINK_UP] = "up",
		[REPORT_LINK_DOWN] = "down",
		[REPORT_LINK_ABSENT] = "absent",
	};

	return names[link];
}

const char *report_wait_name(enum conf_wait wait)
{
	static const char *const names[] = {
		[CONF_WAIT_ADAPTIVE] = "adaptive",
		[CONF_WAIT_SPIN] = "spin",
		[CONF_WAIT_POLL] = "poll",
	};

	return names[wait];
}

const char *report_busy_poll_name(enum report_busy_poll busy_poll)
{
	static const char *const names[] = {
		[REPORT_BUSY_POLL_OFF] = "off",
		[REPORT_BUSY_POLL_ON] = "on",
		[REPORT_BUSY_POLL_NOT_EFFECTIVE] = "not effective",
	};

	return names[busy_poll];
}

const char *report_call_name(enum call_count call)
{
	static const char *const names[CALL_COUNTS] = {
		[CALL_RX_EMPTY] = "rx_empty", [CALL_FILL_FAIL] = "fill_fail",
		[CALL_COPY_TX] = "copy_tx",   [CALL_WAKE_TX] = "wake_tx",
		[CALL_POLL] = "poll",
	};

	return names[call];
}

uint64_t report_unexplained(const struct report *report, const struct report_program *program,
			    uint64_t seen_before)
{
	uint64_t explained = program->passed + program->departed;

	for (unsigned i = 0; i < report->sockets; i++) {
		const struct report_socket *socket = &report->socket[i];

		if (strcmp(socket->interface, program->interface) != 0)
			continue;
		explained += socket->counts->rx_packets + socket->counts->rx;
		explained += socket->stats.rx_dropped + socket->stats.rx_ring_full;
	}
	return seen_before > explained ? seen_before - explained : 0;
}

uint64_t report_oversize(const struct report_socket *socket)
{
	const struct xsk_stats *stats = &socket->stats;

	if (socket->zero_copy || socket->frags ||
	    stats->rx_dropped < stats->rx_fill_ring_empty_descs)
		return 0;
	return stats->rx_dropped - stats->rx_fill_ring_empty_descs;
}

struct cycle_counts report_cycle(const struct report *report)
{
	struct cycle_counts all = { .min_ns = UINT64_MAX };

	for (unsigned i = 0; i < report->workers; i++) {
		const struct cycle_counts *one = &report->worker[i].counts.cycle;

		if (one->period_ns)
			all.period_ns = one->period_ns;
		if (!one->cycles)
			continue;
		if (one->min_ns < all.min_ns)
			all.min_ns = one->min_ns;
		if (one->max_ns > all.max_ns)
			all.max_ns = one->max_ns;
		all.sum_ns += one->sum_ns;
		all.cycles += one->cycles;
	}
	return all;
}

uint64_t report_cycle_average_ns(const struct cycle_counts *cycle)
{
	return cycle->cycles ? cycle->sum_ns / cycle->cycles : 0;
}
