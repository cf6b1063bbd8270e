/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "daemon.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "advice.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/signals.h"
#include "ctl/irq.h"
#include "ctl/output.h"
#include "ctl/report.h"
#include "fwd/mode.h"
#include "fwd/worker.h"
#include "lane.h"
#include "survey.h"
#include "xdp/netdev.h"
#include "xdp/opener.h"
#include "xdp/umem.h"

struct daemon {
	const struct conf *conf;
	const struct mode *mode;
	struct survey survey;
	unsigned ports, workers;
	struct port port[CONF_PORTS_MAX];
	struct umem *umem; /* one a worker, or the first for all of them */
	struct worker **worker;
	struct lane *lane; /* lane[worker * ports + port] */
	int done_fd;	   /* eventfd: workers with a finite job write to it */
	unsigned done;	   /* how many have */
	int watch_fd;	   /* link events */
	sd_event *loop;
	sd_event_source *report_timer;
	struct report report[2]; /* the newest and the one before */
	unsigned newest;
	struct output output; /* standard output */
	struct irq irq;	      /* -I */
	uint64_t start_ns, reported_ns;
	int status; /* exit status */
};

static struct lane *lane_of(struct daemon *daemon, unsigned worker, unsigned port)
{
	return &daemon->lane[worker * daemon->ports + port];
}

/* --- opening --- */

static uint32_t frames_of_worker(const struct daemon *daemon)
{
	return daemon->conf->frames_per_queue * daemon->ports;
}

static struct umem *umem_of(const struct daemon *daemon, unsigned worker)
{
	return &daemon->umem[daemon->conf->shared_umem ? 0 : worker];
}

/* Asked between any two steps that take time or change something: a signal to end is no reason to
 * first open everything. */
static int go_on(void)
{
	return signals_end_asked() ? -ECANCELED : 0;
}

static struct umem_opts umem_opts_of(const struct daemon *daemon)
{
	const struct conf *conf = daemon->conf;

	return (struct umem_opts){
		.frames = frames_of_worker(daemon) *
			  (conf->shared_umem ? daemon->survey.queues.count : 1),
		.frame_size = conf->frame_size,
		.unaligned = conf->unaligned,
		.ring_size = conf->ring_size,
		.fill_size = 2 * conf->ring_size,
		.numa_node = daemon->port[0].netdev.numa_node,
		.huge_pages = conf->huge_pages,
		.shortage_said = daemon->workers && daemon->umem[daemon->workers - 1].shortage_said,
	};
}

static int allocate(struct daemon *daemon)
{
	unsigned lanes = daemon->survey.queues.count * daemon->ports;

	assert(lanes); /* the survey refuses no queues and no ports */
	daemon->umem = calloc(daemon->survey.queues.count, sizeof(*daemon->umem));
	daemon->worker = calloc(daemon->survey.queues.count, sizeof(*daemon->worker));
	daemon->lane = calloc(lanes, sizeof(*daemon->lane));
	for (int i = 0; i < 2; i++) {
		struct report *report = &daemon->report[i];

		report->socket = calloc(lanes, sizeof(*report->socket));
		report->program = calloc(daemon->ports, sizeof(*report->program));
		report->worker = calloc(daemon->survey.queues.count, sizeof(*report->worker));
		if (!report->socket || !report->program || !report->worker)
			return -ENOMEM;
	}
	return daemon->umem && daemon->worker && daemon->lane ? 0 : -ENOMEM;
}

static int attach_ports(struct daemon *daemon)
{
	static const enum prog_attach attach_of[] = {
		[CONF_ATTACH_AUTO] = PROG_ATTACH_AUTO,
		[CONF_ATTACH_NATIVE] = PROG_ATTACH_NATIVE,
		[CONF_ATTACH_SKB] = PROG_ATTACH_SKB,
	};

	for (unsigned i = 0; i < daemon->ports; i++) {
		struct port *port = &daemon->port[i];
		struct prog_opts opts = {
			.ifname = port->netdev.name,
			.ifindex = port->netdev.ifindex,
			.queues = port->netdev.rx_queues,
			.attach = attach_of[daemon->conf->attach],
			.replace = daemon->conf->replace,
		};
		int err = go_on();

		if (!err)
			err = opener_attach(&opts, &port->prog);
		if (err)
			return err;
		if (!daemon->mode->promiscuous)
			continue;
		port->promiscuous_fd = opener_promiscuous(port->netdev.name, port->netdev.ifindex);
		if (port->promiscuous_fd < 0)
			return port->promiscuous_fd;
	}
	return 0;
}

/* txpush: what each port of the next worker sends, and when. Returns 0 or -ENOMEM. */
static int prepare_tx(struct daemon *daemon, struct tx_job **job)
{
	const struct conf *conf = daemon->conf;
	int err = tx_job_new(job, conf, daemon->ports, frames_of_worker(daemon));

	for (unsigned i = 0; !err && i < daemon->ports; i++) {
		struct tx_port *port = &(*job)->port[i];

		if (!conf->tx.source_given)
			memcpy(port->opts.src, daemon->port[i].netdev.mac, MAC_LEN);
		port->pacer = (struct pacer){
			.pps = conf->tx.pps,
			.queues = (uint64_t)daemon->survey.queues.count * daemon->ports,
			.phase = (uint64_t)daemon->workers * daemon->ports + i,
		};
		err = tx_job_build(*job, i);
	}
	return err;
}

/* Frames a queue that are looked at for a checksum left to a network card: over a veth no card will
 * finish it. Enough to see it even if most senders are not to blame. */
#define CHECKSUM_SAMPLES 64

static void sample_checksums(const struct daemon *daemon, struct worker *worker)
{
	for (unsigned i = 0; i < daemon->ports; i++) {
		if (daemon->mode->receives && daemon->mode->sends &&
		    !strcmp(daemon->port[i].netdev.kind, "veth"))
			worker->queue[i].samples = CHECKSUM_SAMPLES;
	}
}

/* txpush: each queue's share of the frames. */
static void share_count(const struct daemon *daemon, struct worker *worker)
{
	uint64_t count = daemon->conf->tx.count;
	uint64_t shares = (uint64_t)daemon->survey.queues.count * daemon->ports;
	uint64_t share = (uint64_t)daemon->workers * daemon->ports;

	for (unsigned i = 0; count && i < daemon->ports; i++, share++)
		worker->queue[i].tx_left = count / shares + (share < count % shares ? 1 : 0);
}

static int open_lanes(struct daemon *daemon, struct worker *worker)
{
	bool shared = daemon->conf->shared_umem;

	for (unsigned i = 0; i < daemon->ports; i++) {
		struct lane_opts opts = {
			.port = &daemon->port[i],
			.worker = worker,
			.conf = daemon->conf,
			.peers = shared ? daemon->lane : lane_of(daemon, daemon->workers, 0),
			.peer_count = shared ? daemon->workers * daemon->ports + i : i,
		};
		int err = go_on();

		if (!err)
			err = lane_open(lane_of(daemon, daemon->workers, i), &opts);
		if (err)
			return err;
	}
	return 0;
}

/* The next worker, over its memory. Returns 0, or -errno after a message. */
static int make_worker(struct daemon *daemon)
{
	const struct conf *conf = daemon->conf;
	unsigned index = daemon->workers;
	struct worker_opts opts = {
		.number = daemon->survey.queues.value[index],
		.cpu = daemon->survey.cpus.value[index % daemon->survey.cpus.count],
		.batch = conf->batch,
		.poll = conf->poll,
		.busy_poll = conf->busy_poll,
		.finite = conf->tx.count > 0,
		.frags = conf->frags,
		.retries = conf->tx.retries,
		.first_frame = conf->shared_umem ? index * frames_of_worker(daemon) : 0,
		.frames = frames_of_worker(daemon),
		.done_fd = daemon->done_fd,
	};
	int err = daemon->mode->receives ? 0 : prepare_tx(daemon, &opts.tx_job);

	if (!err)
		err = worker_new(&daemon->worker[index], &opts, umem_of(daemon, index));
	if (!err)
		return 0;
	log_error("queue %u: no worker: " ERR_FORMAT, opts.number, ERR_ARGS(err));
	tx_job_free(opts.tx_job);
	return err;
}

static int open_worker(struct daemon *daemon)
{
	struct umem_opts umem_opts = umem_opts_of(daemon);
	struct umem *umem = umem_of(daemon, daemon->workers);
	int err = 0;

	if (!umem->header)
		err = umem_open(umem, &umem_opts);
	if (!err)
		err = make_worker(daemon);
	if (err)
		return err;
	err = open_lanes(daemon, daemon->worker[daemon->workers]);
	if (!err)
		sample_checksums(daemon, daemon->worker[daemon->workers]);
	if (!err)
		share_count(daemon, daemon->worker[daemon->workers]);
	daemon->workers++; /* also if a lane failed: closing must find the others */
	return err;
}

static int open_all(struct daemon *daemon)
{
	struct umem_opts umem_opts = umem_opts_of(daemon);
	int err;

	daemon->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = daemon->done_fd < 0 ? -errno : allocate(daemon);
	if (err) {
		log_error("no memory or files to start with: " ERR_FORMAT, ERR_SANDBOX_ARGS(err));
		return err;
	}
	err = go_on();
	if (!err)
		err = opener_memlock(umem_locked_bytes(&umem_opts) *
				     (daemon->conf->shared_umem ? 1 : daemon->survey.queues.count));
	if (!err)
		err = attach_ports(daemon);
	while (!err && daemon->workers < daemon->survey.queues.count)
		err = open_worker(daemon);
	if (!err)
		err = go_on();
	if (!err && daemon->conf->realtime)
		err = opener_realtime(daemon->conf->priority);
	if (!err && !daemon->conf->keep_privileges)
		err = opener_drop_privileges();
	return err;
}

/* --- reports --- */

/* Reads what the kernel says of a socket, while there is one. */
static void read_socket(struct daemon *daemon, struct lane *lane, unsigned worker, unsigned port,
			const struct queue_counts *counts)
{
	if (lane->xsk.fd <= 0)
		return;
	if (!xsk_stats(&lane->xsk, &lane->stats))
		worker_refused(daemon->worker[worker], port, lane->stats.tx_invalid_descs);
	/* The kernel learns the NAPI by the first frame: before that nothing can be said. */
	lane->no_napi = daemon->conf->busy_poll && (counts->rx_packets || counts->tx_packets) &&
			!xsk_has_napi(&lane->xsk);
}

static void collect_sockets(struct daemon *daemon, struct report *report, unsigned worker)
{
	const struct worker_counts *counts = &report->worker[worker].counts;

	for (unsigned i = 0; i < counts->queues; i++) {
		struct lane *lane = lane_of(daemon, worker, i);
		const struct port *port = &daemon->port[i];
		enum report_busy_poll busy_poll = REPORT_BUSY_POLL_OFF;

		read_socket(daemon, lane, worker, i, &counts->queue[i]);
		if (daemon->conf->busy_poll)
			busy_poll = lane->no_napi ? REPORT_BUSY_POLL_NOT_EFFECTIVE :
						    REPORT_BUSY_POLL_ON;
		report->socket[report->sockets++] = (struct report_socket){
			.interface = port->netdev.name,
			.queue = daemon->worker[worker]->number,
			.native = port->prog.native,
			.zero_copy = lane->xsk.zero_copy,
			.need_wakeup = lane->xsk.need_wakeup,
			.poll = daemon->worker[worker]->poll,
			.busy_poll = busy_poll,
			.counts = &counts->queue[i],
			.stats = lane->stats,
		};
	}
}

static void collect_programs(struct daemon *daemon, struct report *report, bool final)
{
	const struct report *before = &daemon->report[!daemon->newest];

	for (unsigned i = 0; i < daemon->ports; i++) {
		struct report_program *program = &report->program[i];
		struct prog_counts counts = { before->program[i].seen, before->program[i].passed };

		(void)prog_counts(&daemon->port[i].prog, &counts);
		program->interface = daemon->port[i].netdev.name;
		program->seen = counts.seen;
		program->passed = counts.passed;
		program->unexplained = report_unexplained(
			report, program, final ? counts.seen : before->program[i].seen);
		/* What a worker that is kept off its CPU has received is not known: judge next time. */
		if (!report->current)
			program->unexplained = before->program[i].unexplained;
	}
	report->programs = daemon->ports;
}

static void warn_of_port(struct daemon *daemon, const struct report *report, unsigned index)
{
	struct port *port = &daemon->port[index];
	uint64_t unexplained = report->program[index].unexplained, partial = 0, oversize = 0;
	bool no_napi = false;

	for (unsigned i = index; i < report->sockets; i += daemon->ports) {
		const struct report_socket *socket = &report->socket[i];

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
		advice_oversize(port, oversize, conf_chunk_room(daemon->conf));
	if (no_napi && !port->said_no_napi)
		log_warning("%s: busy-poll not effective: the socket has no NAPI to poll (%s); -B "
			    "only costs calls here",
			    port->netdev.name,
			    !daemon->mode->receives ? "it receives nothing" :
			    port->prog.native	    ? "the driver tells none" :
						      "skb mode");
	port->said_unexplained |= unexplained;
	port->said_partial |= partial;
	port->said_oversize |= oversize;
	port->said_no_napi |= no_napi;
}

/* Fills the older of the two reports with what is now, and makes it the newest. */
static const struct report *collect(struct daemon *daemon, bool final)
{
	struct report *report = &daemon->report[!daemon->newest];
	const struct report *before = &daemon->report[daemon->newest];
	uint64_t now_ns, deadline_ns;

	daemon->newest = !daemon->newest;
	report->current = true;
	for (unsigned i = 0; i < daemon->workers; i++)
		worker_ask(daemon->worker[i]);
	report->sockets = 0;
	deadline_ns = clock_now_ns() + WORKER_ANSWER_MS * NSEC_PER_MSEC;
	for (unsigned i = 0; i < daemon->workers; i++) {
		int err = worker_read(daemon->worker[i], &report->worker[i].counts, deadline_ns);

		if (err == -EBUSY)
			report->worker[i].counts = before->worker[i].counts;
		if (err)
			report->current = false;
		report->worker[i].cpu = daemon->worker[i]->cpu;
	}
	for (unsigned i = 0; i < daemon->workers; i++)
		collect_sockets(daemon, report, i);
	report->workers = daemon->workers;
	report->mode = daemon->mode;
	report->frags = daemon->conf->frags;
	collect_programs(daemon, report, final);
	for (unsigned i = 0; i < daemon->ports; i++)
		warn_of_port(daemon, report, i);
	report->extra_stats = daemon->conf->extra_stats;
	report->app_stats = daemon->conf->app_stats;
	report->irq = daemon->conf->irq_string[0];
	report->irqs = irq_read(&daemon->irq);
	now_ns = clock_now_ns();
	report->elapsed_ns = now_ns - daemon->start_ns;
	report->interval_ns = now_ns - daemon->reported_ns;
	daemon->reported_ns = now_ns;
	return report;
}

/* How long a reader of standard output may take, ms: for a report while it runs, so that the event loop
 * is not held up; and for the last one, which is all that some readers want. */
#define REPORT_WAIT_MS 10
#define FINAL_WAIT_MS  300

/* Puts a report on standard output. One that takes no more ends the daemon. Quiet, it is collected all
 * the same: frames that nobody has are a warning, not a report. */
static void report_now(struct daemon *daemon, bool final)
{
	const struct report *report = collect(daemon, final);
	const struct report *before = &daemon->report[!daemon->newest];
	char *text = NULL;
	size_t len = 0;
	FILE *memory;
	int err;

	if (daemon->conf->quiet)
		return;
	memory = open_memstream(&text, &len);
	err = memory ? 0 : -errno;
	if (memory) {
		if (daemon->conf->json)
			err = report_json(memory, report);
		else
			err = report_text(memory, report, before->sockets ? before : NULL);
		fclose(memory);
	}
	if (err)
		free(text);
	else
		err = output_put(&daemon->output, text, len,
				 final ? FINAL_WAIT_MS : REPORT_WAIT_MS);
	if (!err || (final && err == -EPIPE)) /* a pipe's reader that got the same Ctrl-C */
		return;
	if (!daemon->status)
		log_error("standard output takes no report: " ERR_FORMAT, ERR_ARGS(err));
	daemon->status = 1;
	if (!final)
		sd_event_exit(daemon->loop, 0);
}

/* --- running --- */

static void announce(struct daemon *daemon)
{
	for (unsigned i = 0; i < daemon->workers; i++) {
		for (unsigned j = 0; j < daemon->ports; j++) {
			const struct lane *lane = lane_of(daemon, i, j);

			log_info("%s q%u: %s, %s, %s, cpu %u, worker %u",
				 daemon->port[j].netdev.name, daemon->worker[i]->number,
				 daemon->port[j].prog.native ? "native" : "skb",
				 lane->xsk.zero_copy ? "zero-copy" : "copy",
				 lane->xsk.need_wakeup ? "need_wakeup" : "no need_wakeup",
				 daemon->worker[i]->cpu, i);
		}
	}
}

/* Frames come from here on. */
static int open_slots(struct daemon *daemon)
{
	for (unsigned i = 0; i < daemon->workers; i++) {
		for (unsigned j = 0; daemon->mode->receives && j < daemon->ports; j++) {
			int err = prog_slot_set(&daemon->port[j].prog, daemon->worker[i]->number,
						lane_of(daemon, i, j)->xsk.fd);

			if (!err)
				continue;
			log_error("%s q%u: the socket is not taken into the XSKMAP: " ERR_FORMAT,
				  daemon->port[j].netdev.name, daemon->worker[i]->number,
				  ERR_SANDBOX_ARGS(err));
			return err;
		}
	}
	return 0;
}

static int start_workers(struct daemon *daemon)
{
	for (unsigned i = 0; i < daemon->workers; i++) {
		int err =
			worker_start(daemon->worker[i], daemon->mode->run, daemon->mode->receives);

		if (!err)
			continue;
		log_error("queue %u: no thread on CPU %u: " ERR_FORMAT "%s",
			  daemon->worker[i]->number, daemon->worker[i]->cpu, ERR_SANDBOX_ARGS(err),
			  err == -EAGAIN ? "; raise RLIMIT_NPROC (`ulimit -u`), RLIMIT_AS "
					   "(`ulimit -v`) or TasksMax=" :
					   "");
		return err;
	}
	return 0;
}

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *info, void *context)
{
	(void)source, (void)info;
	return sd_event_exit(((struct daemon *)context)->loop, 0);
}

static int on_report(sd_event_source *source, uint64_t due_us, void *context)
{
	struct daemon *daemon = context;
	uint64_t interval_us = daemon->conf->interval_s * 1000000ULL;
	uint64_t now_us = clock_now_ns() / 1000;

	report_now(daemon, false);
	/* The next one a whole number of intervals after this one was due: reports do not drift, and
	 * after a stop those that were missed do not all come at once. */
	due_us += interval_us;
	if (due_us <= now_us)
		due_us += (now_us - due_us) / interval_us * interval_us + interval_us;
	sd_event_source_set_time(source, due_us);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int on_duration(sd_event_source *source, uint64_t due_us, void *context)
{
	(void)source, (void)due_us;
	return sd_event_exit(((struct daemon *)context)->loop, 0);
}

static int on_done(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct daemon *daemon = context;
	uint64_t count;

	(void)source, (void)events;
	if (read(fd, &count, sizeof(count)) == sizeof(count))
		daemon->done += (unsigned)count;
	return daemon->done >= daemon->workers ? sd_event_exit(daemon->loop, 0) : 0;
}

static void on_gone(struct daemon *daemon, const struct netdev *netdev)
{
	log_error("%s: the device is gone (deleted, or moved to another network namespace)",
		  netdev->name);
	daemon->status = 1;
	sd_event_exit(daemon->loop, 0);
}

/* One warning a change: an interface's every change is an event, most of them not of its MTU. */
static void on_mtu(const struct daemon *daemon, struct netdev *netdev, uint32_t mtu)
{
	if (netdev->mtu == mtu)
		return;
	netdev->mtu = mtu;
	if (daemon->mode->receives && mtu > advice_mtu_limit(daemon->conf))
		advice_mtu(daemon->conf, netdev, false);
}

static void on_netdev(const struct netdev_event *event, void *context)
{
	struct daemon *daemon = context;

	for (unsigned i = 0; i < daemon->ports; i++) {
		struct netdev *netdev = &daemon->port[i].netdev;

		if (netdev->ifindex != event->ifindex)
			continue;
		if (event->gone)
			on_gone(daemon, netdev);
		else if (event->mtu)
			on_mtu(daemon, netdev, event->mtu);
	}
}

static int on_link_event(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct daemon *daemon = context;

	(void)source, (void)events;
	if (netdev_watch_read(fd, on_netdev, context) != -ENOBUFS)
		return 0;
	for (unsigned i = 0; i < daemon->ports; i++) {
		struct netdev_event event = netdev_look(daemon->port[i].netdev.ifindex);

		on_netdev(&event, context);
	}
	return 0;
}

static int open_loop(struct daemon *daemon)
{
	const struct conf *conf = daemon->conf;
	/* 1 us: reports are compared with each other, so they had better be on time. */
	const uint64_t accuracy_us = 1;
	uint64_t now_us;
	int err;

	err = sd_event_new(&daemon->loop);
	if (err >= 0)
		err = sd_event_now(daemon->loop, CLOCK_MONOTONIC, &now_us);
	if (err >= 0)
		err = sd_event_add_signal(daemon->loop, NULL, SIGINT, on_signal, daemon);
	if (err >= 0)
		err = sd_event_add_signal(daemon->loop, NULL, SIGTERM, on_signal, daemon);
	if (err >= 0)
		err = sd_event_add_io(daemon->loop, NULL, daemon->watch_fd, EPOLLIN, on_link_event,
				      daemon);
	if (err >= 0)
		err = sd_event_add_io(daemon->loop, NULL, daemon->done_fd, EPOLLIN, on_done,
				      daemon);
	if (err >= 0)
		err = sd_event_add_time(daemon->loop, &daemon->report_timer, CLOCK_MONOTONIC,
					now_us + conf->interval_s * 1000000ULL, accuracy_us,
					on_report, daemon);
	if (err >= 0 && conf->duration_s)
		err = sd_event_add_time(daemon->loop, NULL, CLOCK_MONOTONIC,
					now_us + conf->duration_s * 1000000ULL, accuracy_us,
					on_duration, daemon);
	return err < 0 ? err : 0;
}

static int run(struct daemon *daemon)
{
	const struct conf *conf = daemon->conf;
	int err = open_loop(daemon);

	if (err) {
		log_error("no event loop: " ERR_FORMAT, ERR_SANDBOX_ARGS(err));
		return err;
	}
	err = go_on();
	if (!err)
		err = start_workers(daemon);
	if (daemon->conf->realtime) /* that was for the workers */
		opener_not_realtime();
	if (!err)
		err = open_slots(daemon);
	if (err)
		return err;
	if (conf->tx.size_raised)
		log_warning("frames are sent with %u bytes, FCS included, for no less holds their "
			    "headers",
			    conf->tx.size_min);
	if (daemon->mode->receives && daemon->mode->sends)
		advice_at_start(daemon->port, daemon->ports);
	announce(daemon);
	log_info("forwarding");
	daemon->start_ns = daemon->reported_ns = clock_now_ns();
	err = sd_event_loop(daemon->loop);
	if (err < 0)
		log_error("event loop: " ERR_FORMAT, ERR_ARGS(err));
	return err < 0 ? err : 0;
}

/* --- closing --- */

/* No frame comes any more, those under way go out, no program is left. */
static void stop_workers(struct daemon *daemon)
{
	for (unsigned i = 0; i < daemon->workers; i++) {
		for (unsigned j = 0; j < daemon->ports; j++)
			prog_slot_clear(&daemon->port[j].prog, daemon->survey.queues.value[i]);
	}
	for (unsigned i = 0; i < daemon->workers; i++)
		worker_stop(daemon->worker[i]);
	for (unsigned i = 0; i < daemon->workers; i++)
		worker_join(daemon->worker[i]);
	for (unsigned i = 0; i < daemon->ports; i++)
		prog_detach(&daemon->port[i].prog);
}

/* What the kernel answered to wake-ups for sending, if it was more than the usual "again". */
static void tell_kicks(const char *ifname, unsigned number, const uint64_t *kicks)
{
	char text[128] = "";

	for (int i = KICK_BUSY; i < KICK_RESULTS; i++) {
		size_t len = strlen(text);

		if (kicks[i])
			snprintf(text + len, sizeof(text) - len, "%s%s %llu", len ? ", " : "",
				 kick_name((enum kick_result)i), (unsigned long long)kicks[i]);
	}
	if (text[0])
		log_info(
			"%s q%u: of %llu calls to send, the kernel refused: %s; each was tried again",
			ifname, number, (unsigned long long)kicks[KICK_CALLS], text);
}

/* Descriptors that the kernel did not take for frames. We made them of what it gave us. */
static void tell_refused(const char *ifname, unsigned number, uint64_t refused, uint32_t lost)
{
	if (refused)
		log_warning(
			"%s q%u: the kernel refused %llu TX descriptors (tx_invalid_descs), and "
			"%u of their frames did not come back before the end; please report this",
			ifname, number, (unsigned long long)refused, lost);
}

/* Every frame back from every socket, by the ledger, before the sockets go. */
static void close_lanes(struct daemon *daemon)
{
	uint64_t pending = 0, wrong = 0;

	for (unsigned i = 0; i < daemon->workers; i++) {
		struct worker *worker = daemon->worker[i];

		for (unsigned j = 0; j < worker->queues; j++) {
			struct lane *lane = lane_of(daemon, i, j);

			(void)xsk_stats(&lane->xsk, &lane->stats);
			worker_close_port(worker, j);
			pending += worker->queue[j].final.tx_pending;
			tell_refused(daemon->port[j].netdev.name, worker->number,
				     lane->stats.tx_invalid_descs, worker->queue[j].tx_lost);
			tell_kicks(daemon->port[j].netdev.name, worker->number,
				   worker->queue[j].final.kicks);
			xsk_close(&lane->xsk);
		}
		wrong += worker_audit(worker);
		if (worker->gave_up)
			daemon->status = 1;
	}
	if (pending)
		log_warning("%llu frames not completed: the device is down, gone, or holds them",
			    (unsigned long long)pending);
	if (!wrong)
		return;
	log_error("%llu frames are not where the owner ledger has them; please report this",
		  (unsigned long long)wrong);
	daemon->status = 1;
}

static void close_all(struct daemon *daemon)
{
	for (unsigned i = 0; i < daemon->workers; i++)
		worker_free(daemon->worker[i]);
	for (unsigned i = 0; daemon->umem && i < daemon->survey.queues.count; i++)
		umem_close(&daemon->umem[i]);
	for (unsigned i = 0; i < daemon->ports; i++) {
		prog_close(&daemon->port[i].prog);
		if (daemon->port[i].promiscuous_fd > 0)
			close(daemon->port[i].promiscuous_fd);
	}
	for (int i = 0; i < 2; i++) {
		free(daemon->report[i].socket);
		free(daemon->report[i].program);
		free(daemon->report[i].worker);
	}
	free(daemon->umem);
	free(daemon->worker);
	free(daemon->lane);
	output_fini(&daemon->output);
	sd_event_source_unref(daemon->report_timer);
	sd_event_unref(daemon->loop);
	if (daemon->watch_fd > 0)
		close(daemon->watch_fd);
	if (daemon->done_fd > 0)
		close(daemon->done_fd);
}

int daemon_run(const struct conf *conf)
{
	struct daemon *daemon = calloc(1, sizeof(*daemon));
	int err, status;

	if (!daemon) {
		log_error("out of memory");
		return 1;
	}
	daemon->conf = conf;
	daemon->mode = mode_of(conf->mode);
	daemon->output.fd = STDOUT_FILENO;
	/* Before the first look at a device, so that none can go unnoticed. */
	daemon->watch_fd = netdev_watch_open();
	if (daemon->watch_fd < 0) {
		err = daemon->watch_fd;
		log_error("link events cannot be watched: " ERR_FORMAT, ERR_SANDBOX_ARGS(err));
	} else {
		err = opener_check();
	}
	if (!err)
		err = irq_find(&daemon->irq, conf->irq_string);
	if (!err)
		err = go_on();
	if (!err)
		err = survey_host(&daemon->survey, conf, daemon->mode);
	if (!err) {
		daemon->ports = daemon->survey.ports;
		for (unsigned i = 0; i < daemon->ports; i++)
			daemon->port[i].netdev = daemon->survey.netdev[i];
		err = open_all(daemon);
	}
	if (!err)
		err = run(daemon);
	stop_workers(daemon);
	close_lanes(daemon);
	if (daemon->start_ns)
		report_now(daemon, true);
	if (daemon->output.skipped)
		log_warning("%llu reports were skipped: nobody reads standard output",
			    (unsigned long long)daemon->output.skipped);
	/* A signal while opening: that is an end as asked, if an early one. */
	if (err == -ECANCELED)
		log_info("ended before forwarding began");
	status = err && err != -ECANCELED ? 1 : daemon->status;
	close_all(daemon);
	free(daemon);
	return status;
}
