/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "monitor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "advice.h"
#include "base/clock.h"
#include "base/log.h"

static void free_reports(struct monitor *monitor)
{
	for (int i = 0; i < 2; i++) {
		free(monitor->report[i].socket);
		free(monitor->report[i].program);
		free(monitor->report[i].worker);
		monitor->report[i] = (struct report){ 0 };
	}
}

/* As large as the fleet is. */
static int make_reports(struct monitor *monitor)
{
	for (int i = 0; i < 2; i++) {
		struct report *report = &monitor->report[i];

		report->socket = calloc(fleet_lanes(monitor->fleet) + 1U, sizeof(*report->socket));
		report->program =
			calloc(fleet_ports(monitor->fleet) + 1U, sizeof(*report->program));
		report->worker =
			calloc(fleet_workers(monitor->fleet) + 1U, sizeof(*report->worker));
		if (report->socket && report->program && report->worker)
			continue;
		free_reports(monitor);
		log_error("no memory for reports: " ERR_FORMAT, ERR_ARGS(ENOMEM));
		return -ENOMEM;
	}
	return 0;
}

int monitor_open(struct monitor *monitor, struct fleet *fleet, const struct conf *conf)
{
	int err;

	*monitor = (struct monitor){
		.conf = conf,
		.fleet = fleet,
		.output.fd = STDOUT_FILENO,
	};
	err = irq_find(&monitor->irq, conf->irq_string);
	return err ? err : make_reports(monitor);
}

int monitor_change(struct monitor *monitor, const struct conf *conf)
{
	int err;

	monitor->conf = conf;
	free_reports(monitor);
	err = make_reports(monitor);
	if (!err) /* so that the one before the next is of what runs now */
		(void)monitor_collect(monitor, false);
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
	struct xsk_stats socket;

	if (lane->xsk.fd <= 0)
		return;
	if (!lane_read_stats(lane, &socket))
		worker_refused(forwarder->worker[worker], port, socket.tx_invalid_descs);
	/* The kernel learns the NAPI by the first frame: before that nothing can be said. */
	lane->no_napi = forwarder->conf->busy_poll && (counts->rx_packets || counts->tx_packets) &&
			!xsk_has_napi(&lane->xsk);
}

/* `first`: where the forwarder's workers begin in the report. */
static void collect_sockets(struct forwarder *forwarder, struct report *report, unsigned first,
			    unsigned index)
{
	struct report_worker *worker = &report->worker[first + index];

	for (unsigned i = 0; i < worker->counts.queues; i++) {
		struct lane *lane = forwarder_lane(forwarder, index, i);
		struct queue_counts *queue = &worker->counts.queue[i];
		const struct port *port = &forwarder->port[i];
		enum report_busy_poll busy_poll = REPORT_BUSY_POLL_OFF;

		if (!lane->made)
			continue;
		read_socket(forwarder, lane, index, i, queue);
		if (worker->fresh)
			queue_counts_refused(queue);
		if (forwarder->conf->busy_poll)
			busy_poll = lane->no_napi ? REPORT_BUSY_POLL_NOT_EFFECTIVE :
						    REPORT_BUSY_POLL_ON;
		report->socket[report->sockets++] = (struct report_socket){
			.interface = port->netdev.name,
			.port = port->conf->name,
			.forward = forwarder->conf->name,
			.mode = forwarder->mode,
			.queue = forwarder->worker[index]->number,
			.worker = first + index,
			.worker_number = index,
			.native = port->prog.native,
			.zero_copy = lane->xsk.zero_copy,
			.need_wakeup = lane->xsk.need_wakeup,
			.poll = forwarder->conf->wait == CONF_WAIT_POLL,
			.frags = forwarder->conf->frags,
			.busy_poll = busy_poll,
			.counts = queue,
			.stats = lane->stats,
		};
	}
}

/* What the program has seen is in a worker's counts a moment later, or, on a busy host, when the NAPI poll
 * and the worker have got a CPU again: so it is held against counts of this much later. An alarm is wanted
 * within 3 s of reports a second. */
#define SETTLE_NS (500 * NSEC_PER_MSEC)

/* `judge`: the counts are good to tell what was seen the last time from what vanished. */
static void collect_program(struct report *report, const struct report *before,
			    const struct port *port, bool final, bool judge)
{
	struct report_program *program = &report->program[report->programs];
	const struct report_program *last = &before->program[report->programs];
	struct prog_counts counts = { 0 };

	report->programs++;
	if (port->prog.count_fd > 0 && prog_counts(&port->prog, &counts))
		counts = (struct prog_counts){ last->seen - port->past.seen,
					       last->passed - port->past.passed };
	counts.seen += port->past.seen;
	counts.passed += port->past.passed;
	program->interface = port->netdev.name;
	program->external = port->prog.external;
	program->seen = counts.seen;
	program->passed = counts.passed;
	program->departed = port->departed;
	program->seen_settled = judge ? counts.seen : last->seen_settled;
	program->unexplained = last->unexplained;
	if (judge && !program->external)
		program->unexplained = report_unexplained(report, program,
							  final ? counts.seen : last->seen_settled);
}

/* Frames that came through for so long, none missing among them, show that it is over. */
#define VANISHED_NS (10 * NSEC_PER_SEC)

/* A port that loses frames is not in order, however many it forwards. */
static void judge_port(struct port *port, const struct report_program *program, uint64_t now_ns)
{
	struct port_vanished *vanished = &port->vanished;
	char reason[PORT_REASON_SIZE];

	if (program->unexplained > vanished->frames) {
		*vanished = (struct port_vanished){ program->unexplained, now_ns, program->seen };
		snprintf(
			reason, sizeof(reason),
			"%llu frames went to no socket and not to the host: a wrong key in our map, "
			"or a stolen queue",
			(unsigned long long)program->unexplained);
		port_state_fault(&port->states, PORT_FAULT_FRAMES, reason, now_ns);
	} else if (vanished->at_ns && now_ns - vanished->at_ns >= VANISHED_NS &&
		   program->seen_settled > vanished->seen) {
		vanished->at_ns = 0;
		port_state_fault(&port->states, PORT_FAULT_FRAMES, NULL, now_ns);
	}
}

static void warn_of_port(const struct forwarder *forwarder, struct port *port,
			 const struct report *report, uint64_t unexplained)
{
	uint64_t partial = 0, oversize = 0;
	bool no_napi = false;

	for (unsigned i = 0; i < report->sockets; i++) {
		const struct report_socket *socket = &report->socket[i];

		if (socket->interface != port->netdev.name)
			continue;
		partial += socket->counts->partial_checksums;
		oversize += report_oversize(socket);
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
		log_warning("%s: busy-poll not effective: the socket has no NAPI to poll (%s); %s "
			    "only costs calls here",
			    port->netdev.name,
			    !forwarder->mode->receives ? "it receives nothing" :
			    port->prog.native	       ? "in copy mode this kernel tells it none" :
							 "skb mode",
			    forwarder->conf->line ? "busy-poll" : "-B");
	port->said_unexplained |= unexplained;
	port->said_partial |= partial;
	port->said_oversize |= oversize;
	port->said_no_napi |= no_napi;
}

static void describe_worker(const struct forwarder *forwarder, struct report_worker *report,
			    const struct worker *worker)
{
	const struct conf_forward *conf = forwarder->conf;

	report->forward = conf->name;
	report->mode = forwarder->mode;
	report->cpu = worker->cpu;
	report->wait = conf->wait;
}

static void ask_workers(const struct fleet *fleet)
{
	for (unsigned i = 0; i < fleet->forwards; i++) {
		for (unsigned j = 0; j < fleet->forward[i]->workers; j++)
			worker_ask(fleet->forward[i]->worker[j]);
	}
}

static void collect_workers(const struct forwarder *forwarder, struct report *report,
			    const struct report *before, uint64_t deadline_ns)
{
	for (unsigned i = 0; i < forwarder->workers; i++) {
		struct report_worker *worker = &report->worker[report->workers];
		int err = worker_read(forwarder->worker[i], &worker->counts, deadline_ns);

		if (err == -EBUSY)
			worker->counts = before->worker[report->workers].counts;
		worker->fresh = err != -EBUSY;
		if (err)
			report->current = false;
		describe_worker(forwarder, worker, forwarder->worker[i]);
		worker->number = i;
		report->workers++;
	}
}

static void collect_all_sockets(const struct fleet *fleet, struct report *report)
{
	unsigned first = 0;

	for (unsigned i = 0; i < fleet->forwards; i++) {
		for (unsigned j = 0; j < fleet->forward[i]->workers; j++)
			collect_sockets(fleet->forward[i], report, first, j);
		first += fleet->forward[i]->workers;
	}
}

static void collect_programs(const struct monitor *monitor, struct report *report,
			     const struct report *before, bool final, bool judge)
{
	const struct fleet *fleet = monitor->fleet;

	for (unsigned i = 0; i < fleet->forwards; i++) {
		struct forwarder *forwarder = fleet->forward[i];

		for (unsigned j = 0; j < forwarder->ports; j++) {
			const struct report_program *program;
			struct port *port = &forwarder->port[j];

			collect_program(report, before, port, final, judge);
			program = &report->program[report->programs - 1];
			if (judge && !program->external)
				judge_port(port, program, monitor->judged_ns);
			warn_of_port(forwarder, port, report, program->unexplained);
		}
	}
}

struct report *monitor_collect(struct monitor *monitor, bool final)
{
	const struct fleet *fleet = monitor->fleet;
	struct report *report = &monitor->report[!monitor->newest];
	const struct report *before = &monitor->report[monitor->newest];
	uint64_t now_ns, deadline_ns;
	bool judge;

	monitor->newest = !monitor->newest;
	report->current = true;
	report->workers = report->sockets = report->programs = 0;
	ask_workers(fleet);
	deadline_ns = clock_now_ns() + WORKER_ANSWER_MS * NSEC_PER_MSEC;
	for (unsigned i = 0; i < fleet->forwards; i++)
		collect_workers(fleet->forward[i], report, before, deadline_ns);
	collect_all_sockets(fleet, report);
	/* What a worker that is kept off its CPU has received is not known: judge next time. */
	now_ns = clock_now_ns();
	judge = report->current && (final || now_ns - monitor->judged_ns >= SETTLE_NS);
	if (judge)
		monitor->judged_ns = now_ns;
	collect_programs(monitor, report, before, final, judge);
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
	free_reports(monitor);
	output_fini(&monitor->output);
}
