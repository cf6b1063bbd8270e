/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "ctl/report.h"

#include <string.h>

uint64_t report_unexplained(const struct report *report, const struct report_program *program,
			    uint64_t seen_before)
{
	uint64_t explained = program->passed;

	for (unsigned i = 0; i < report->sockets; i++) {
		const struct report_socket *socket = &report->socket[i];

		if (strcmp(socket->interface, program->interface) != 0)
			continue;
		explained += socket->counts->rx_packets + socket->counts->rx;
		explained += socket->stats.rx_dropped + socket->stats.rx_ring_full;
	}
	return seen_before > explained ? seen_before - explained : 0;
}
