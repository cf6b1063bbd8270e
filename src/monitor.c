/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "monitor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "advice.h"
#include "base/clock.h"
#include "base/log.h"

int monitor_open(struct monitor *monitor, struct forwarder *forwarder, const struct conf *conf)
{
	unsigned workers = forwarder->plan->workers;
	int err;

	*monitor = (struct monitor){
		.conf = conf,
		.forwarder = forwarder,
		.output.fd = STDOUT_FILENO,
	};
	err = irq_find(&monitor->irq, conf->irq_string);
	for (int i = 0; !err && i < 2; i++) {
		struct report *report = &monitor->report[i];

		report->socket =
			calloc((size_t)workers * forwarder->ports, sizeof(*report->socket));
		report->program = calloc(forwarder->ports, sizeof(*report->program));
		report->worker = calloc(workers, sizeof(*report->worker));
		if (report->socket && report->program && report->worker)
			continue;
		err = -ENOMEM;
		log_error("no memory for reports: " ERR_FORMAT, ERR_ARGS(err));
	}
	return err;
}

void monitor_start(struct monitor *monitor)
{
	monitor->start_ns = monitor->reported_ns = clock_now_ns();
}

/* Reads what the kernel says of a socket, while there is one. */
static void read_socket(struct forwarder *forwarder, struct lane *lane, unsigned worker,
			unsigned port, const struct queue_counts *counts)
{
	if (lane->xsk.fd <= 0)
		return;
	if (!xsk_stats(&lane->xsk, &lane->stats))
		worker_refused(forwarder->worker[worker], port, lane->stats.tx_invalid_descs);
	/* The kernel learns the NAPI by the first frame: before that nothing can be said. */
	lane->no_napi = forwarder->conf->busy_poll && (counts->rx_packets || counts->tx_packets) &&
			!xsk_has_napi(&lane->xsk);
}

static void collect_sockets(struct forwarder *forwarder, struct report *report, unsigned worker)
{
	const struct worker_counts *counts = &report->worker[worker].counts;

	for (unsigned i = 0; i < counts->queues; i++) {
		struct lane *lane = forwarder_lane(forwarder, worker, i);
		struct queue_counts *queue = &report->worker[worker].counts.queue[i];
		const struct port *port = &forwarder->port[i];
		enum report_busy_poll busy_poll = REPORT_BUSY_POLL_OFF;

		if (!lane->made)
			continue;
		read_socket(forwarder, lane, worker, i, queue);
		if (report->worker[worker].fresh)
			queue_counts_refused(queue);
		if (forwarder->conf->busy_poll)
			busy_poll = lane->no_napi ? REPORT_BUSY_POLL_NOT_EFFECTIVE :
						    REPORT_BUSY_POLL_ON;
		report->socket[report->sockets++] = (struct report_socket){
			.interface = port->netdev.name,
			.port = port->conf->name,
			.forward = forwarder->conf->name,
			.mode = forwarder->mode,
			.queue = forwarder->worker[worker]->number,
			.worker = worker,
			.native = port->prog.native,
			.zero_copy = lane->xsk.zero_copy,
			.need_wakeup = lane->xsk.need_wakeup,
			.poll = forwarder->worker[worker]->poll,
			.busy_poll = busy_poll,
			.counts = queue,
			.stats = lane->stats,
		};
	}
}

static void collect_programs(struct monitor *monitor, struct report *report, bool final)
{
	struct forwarder *forwarder = monitor->forwarder;
	const struct report *before = &monitor->report[!monitor->newest];

	for (unsigned i = 0; i < forwarder->ports; i++) {
		struct report_program *program = &report->program[i];
		struct prog_counts counts = { before->program[i].seen, before->program[i].passed };

		(void)prog_counts(&forwarder->port[i].prog, &counts);
		program->interface = forwarder->port[i].netdev.name;
		program->seen = counts.seen;
		program->passed = counts.passed;
		program->unexplained = report_unexplained(
			report, program, final ? counts.seen : before->program[i].seen);
		/* What a worker that is kept off its CPU has received is not known: judge next time. */
		if (!report->current)
			program->unexplained = before->program[i].unexplained;
	}
	report->programs = forwarder->ports;
}

static void warn_of_port(struct forwarder *forwarder, const struct report *report, unsigned index)
{
	struct port *port = &forwarder->port[index];
	uint64_t unexplained = report->program[index].unexplained, partial = 0, oversize = 0;
	bool no_napi = false;

	for (unsigned i = 0; i < report->sockets; i++) {
		const struct report_socket *socket = &report->socket[i];

		if (socket->interface != port->netdev.name)
			continue;
		partial += socket->counts->partial_checksums;
		oversize += report_oversize(report, socket);
		no_napi = no_napi || socket->busy_poll == REPORT_BUSY_POLL_NOT_EFFECTIVE;
	}
	if (unexplained && !port->said_unexplained)
		log_warning("%s: %llu frames went to no socket and not to the host: another "
			    "program's map, a wrong key in ours, or a socket on another queue; "
			    "see `bpftool net` and `bpftool map`",
			    port->netdev.name, (unsigned long long)unexplained);
	if (partial && !port->said_partial)
		advice_partial_checksums(port);
	if (oversize && !port->said_oversize)
		advice_oversize(port, oversize, conf_chunk_room(forwarder->conf));
	if (no_napi && !port->said_no_napi)
		log_warning("%s: busy-poll not effective: the socket has no NAPI to poll (%s); -B "
			    "only costs calls here",
			    port->netdev.name,
			    !forwarder->mode->receives ? "it receives nothing" :
			    port->prog.native	       ? "in copy mode this kernel tells it none" :
							 "skb mode");
	port->said_unexplained |= unexplained;
	port->said_partial |= partial;
	port->said_oversize |= oversize;
	port->said_no_napi |= no_napi;
}

static void describe_worker(const struct forwarder *forwarder, struct report_worker *report,
			    const struct worker *worker)
{
	report->forward = forwarder->conf->name;
	report->mode = forwarder->mode;
	report->cpu = worker->cpu;
	report->wait = worker->busy_poll ? REPORT_WAIT_BUSY_POLL :
		       worker->poll	 ? REPORT_WAIT_POLL :
					   REPORT_WAIT_SPIN;
}

struct report *monitor_collect(struct monitor *monitor, bool final)
{
	struct forwarder *forwarder = monitor->forwarder;
	struct report *report = &monitor->report[!monitor->newest];
	const struct report *before = &monitor->report[monitor->newest];
	uint64_t now_ns, deadline_ns;

	monitor->newest = !monitor->newest;
	report->current = true;
	for (unsigned i = 0; i < forwarder->workers; i++)
		worker_ask(forwarder->worker[i]);
	report->sockets = 0;
	deadline_ns = clock_now_ns() + WORKER_ANSWER_MS * NSEC_PER_MSEC;
	for (unsigned i = 0; i < forwarder->workers; i++) {
		int err = worker_read(forwarder->worker[i], &report->worker[i].counts, deadline_ns);

		if (err == -EBUSY)
			report->worker[i].counts = before->worker[i].counts;
		report->worker[i].fresh = err != -EBUSY;
		if (err)
			report->current = false;
		describe_worker(forwarder, &report->worker[i], forwarder->worker[i]);
	}
	for (unsigned i = 0; i < forwarder->workers; i++)
		collect_sockets(forwarder, report, i);
	report->workers = forwarder->workers;
	report->frags = forwarder->conf->frags;
	collect_programs(monitor, report, final);
	for (unsigned i = 0; i < forwarder->ports; i++)
		warn_of_port(forwarder, report, i);
	report->extra_stats = monitor->conf->extra_stats;
	report->app_stats = monitor->conf->app_stats;
	report->irq = monitor->conf->irq_string[0];
	report->irqs = irq_read(&monitor->irq);
	now_ns = clock_now_ns();
	report->elapsed_ns = now_ns - monitor->start_ns;
	report->interval_ns = now_ns - monitor->reported_ns;
	monitor->reported_ns = now_ns;
	return report;
}

/* How long a reader of standard output may take, ms: for a report while it runs, so that the event loop
 * is not held up; and for the last one, which is all that some readers want. */
#define REPORT_WAIT_MS 10
#define FINAL_WAIT_MS  300

int monitor_report(struct monitor *monitor, bool final)
{
	const struct conf *conf = monitor->conf;
	const struct report *report = monitor_collect(monitor, final);
	const struct report *before = &monitor->report[!monitor->newest];
	char *text = NULL;
	size_t len = 0;
	FILE *memory;
	int err;

	if (conf->quiet)
		return 0;
	memory = open_memstream(&text, &len);
	err = memory ? 0 : -errno;
	if (memory) {
		if (conf->json)
			err = report_json(memory, report);
		else
			err = report_text(memory, report, before->sockets ? before : NULL);
		fclose(memory);
	}
	if (err)
		free(text);
	else
		err = output_put(&monitor->output, text, len,
				 final ? FINAL_WAIT_MS : REPORT_WAIT_MS);
	if (final && err == -EPIPE) /* a pipe's reader that got the same Ctrl-C */
		return 0;
	if (err)
		log_error("standard output takes no report: " ERR_FORMAT, ERR_ARGS(err));
	return err;
}

void monitor_close(struct monitor *monitor)
{
	if (monitor->output.skipped)
		log_warning("%llu reports were skipped: nobody reads standard output",
			    (unsigned long long)monitor->output.skipped);
	for (int i = 0; i < 2; i++) {
		free(monitor->report[i].socket);
		free(monitor->report[i].program);
		free(monitor->report[i].worker);
	}
	output_fini(&monitor->output);
}
