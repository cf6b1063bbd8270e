/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "lane.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/signals.h"
#include "fwd/mode.h"
#include "xdp/opener.h"

/* The kernel frees a closed socket's hold on its queue in deferred work: 10 to 50 ms here, more on
 * a busy host. Retrying for longer would only delay the message that somebody else has it. */
#define BUSY_RETRY_NS (2 * NSEC_PER_SEC)
#define BUSY_NAP_US   5000

static int bind_patiently(struct xsk *xsk, const char *ifname, const struct xsk_bind_opts *opts)
{
	uint64_t start_ns = clock_now_ns();

	for (;;) {
		int err = opener_bind(xsk->fd, ifname, opts);

		if (!err)
			return xsk_read_back(xsk, opts);
		if (err != -EBUSY || clock_now_ns() - start_ns > BUSY_RETRY_NS)
			return err;
		if (signals_end_asked())
			return -ECANCELED;
		usleep(BUSY_NAP_US);
	}
}

/* A bound socket of this worker and kind, whose UMEM registration a new one can share; -1: none. */
static int shared_fd(const struct lane_opts *opts, bool zero_copy)
{
	for (unsigned i = 0; i < opts->peer_count; i++) {
		if (opts->peers[i].xsk.fd > 0 && opts->peers[i].xsk.zero_copy == zero_copy)
			return opts->peers[i].xsk.fd;
	}
	return -1;
}

bool lane_fits(const struct plan_lane *plan, const struct netdev *netdev, unsigned queue)
{
	return netdev->present && (!plan->rx || queue < netdev->rx_queues) &&
	       (!plan->tx || queue < netdev->tx_queues);
}

static void add_stats(struct xsk_stats *to, const struct xsk_stats *from)
{
	to->rx_dropped += from->rx_dropped;
	to->rx_invalid_descs += from->rx_invalid_descs;
	to->tx_invalid_descs += from->tx_invalid_descs;
	to->rx_ring_full += from->rx_ring_full;
	to->rx_fill_ring_empty_descs += from->rx_fill_ring_empty_descs;
	to->tx_ring_empty_descs += from->tx_ring_empty_descs;
}

int lane_read_stats(struct lane *lane, struct xsk_stats *socket)
{
	int err = lane->xsk.fd > 0 ? xsk_stats(&lane->xsk, socket) : -EBADF;

	if (err)
		return err;
	lane->stats = lane->past;
	add_stats(&lane->stats, socket);
	return 0;
}

uint32_t lane_lose(struct lane *lane, struct worker *worker, unsigned port)
{
	struct xsk_stats socket;
	uint32_t taken;

	if (lane->xsk.fd <= 0)
		return 0;
	if (!lane_read_stats(lane, &socket))
		worker_refused(worker, port, socket.tx_invalid_descs);
	worker_wait_parked(worker);
	worker_lose(worker, port);
	worker_resume(worker);
	(void)lane_read_stats(lane, &socket); /* what it dropped until now */
	lane->past = lane->stats;
	xsk_close(&lane->xsk); /* the kernel has none of its frames any more */
	worker_wait_parked(worker);
	taken = worker_reclaim(worker, port);
	worker->reclaimed += taken;
	worker_resume(worker);
	return taken;
}

/* How long a worker that runs may take to come to the end of a pass: one that is off its CPU, tens of ms. */
#define PARK_NS NSEC_PER_SEC

/* Gives the worker the rings, which are not bound yet. Returns 0, or -errno after a message. */
static int plug(const struct lane *lane, const struct lane_opts *opts)
{
	int err = worker_park(opts->worker, clock_now_ns() + PARK_NS);

	if (err) {
		log_error("%s q%u: worker on CPU %u does not come to the end of a pass: " ERR_FORMAT
			  "; see what else runs there (`top -H`)",
			  opts->port->netdev.name, opts->worker->number, opts->worker->cpu,
			  ERR_ARGS(err));
		return err;
	}
	worker_plug(opts->worker, opts->index, &lane->xsk,
		    opts->plan->rx || !mode_of(opts->conf->mode)->receives);
	worker_resume(opts->worker);
	return 0;
}

/* Takes them from the worker again, with their frames, and closes the socket. */
static void pull(struct lane *lane, const struct lane_opts *opts)
{
	worker_wait_parked(opts->worker);
	worker_lose(opts->worker, opts->index);
	worker_resume(opts->worker);
	xsk_close(&lane->xsk);
	worker_wait_parked(opts->worker);
	(void)worker_reclaim(opts->worker, opts->index);
	worker_resume(opts->worker);
}

/*
 * One attempt with a socket of its own: a refused bind leaves a socket that hides the true error of
 * the next one. Returns 0, or -errno after a message; *bind_err tells what the bind said, without
 * a message: what that means is the caller's to know. Unless both are 0 the lane is closed.
 */
static int try_open(struct lane *lane, const struct lane_opts *opts, bool zero_copy, int *bind_err)
{
	const struct netdev *netdev = &opts->port->netdev;
	struct xsk_bind_opts bind_opts = {
		.ifindex = netdev->ifindex,
		.queue = opts->worker->number,
		.zero_copy = zero_copy,
		.frags = opts->conf->frags,
		.no_need_wakeup = opts->conf->no_need_wakeup,
		.shared_fd = shared_fd(opts, zero_copy),
	};
	int fd, err;

	*bind_err = 0;
	fd = opener_socket(netdev->name, netdev->ifindex, opts->worker->number,
			   bind_opts.shared_fd < 0 ? opts->worker->umem : NULL);
	if (fd < 0)
		return fd;
	if (opts->conf->busy_poll) {
		err = opener_busy_poll(fd, netdev->name, netdev->ifindex, opts->worker->number,
				       opts->conf->batch);
		if (err) {
			close(fd);
			return err;
		}
	}
	err = xsk_map(&lane->xsk, fd, opts->conf->ring_size, 2 * opts->conf->ring_size);
	if (err) {
		log_error("%s q%u: no rings of %u entries: " ERR_FORMAT "%s", netdev->name,
			  opts->worker->number, opts->conf->ring_size, ERR_SANDBOX_ARGS(err),
			  err == -ENOMEM ? "; lower --ring-size" : "");
		xsk_close(&lane->xsk);
		return err;
	}
	err = plug(lane, opts);
	if (err) {
		xsk_close(&lane->xsk);
		return err;
	}
	*bind_err = bind_patiently(&lane->xsk, netdev->name, &bind_opts);
	if (*bind_err) {
		pull(lane, opts);
		return 0;
	}
	worker_wait_parked(opts->worker);
	worker_bound(&opts->worker->queue[opts->index], &lane->xsk);
	worker_resume(opts->worker);
	lane->made = true;
	if (lane->xsk.zero_copy && opts->conf->unaligned && !opts->worker->umem->huge_pages)
		log_warning("%s q%u: in zero-copy no chunk may lie across two small pages, so some "
			    "will not be used; reserve huge ones (`sysctl vm.nr_hugepages=N`)",
			    netdev->name, opts->worker->number);
	return 0;
}

/* For what to type, as the operator says it: a flag, or a key of the file. */
static const char *word(const struct lane_opts *opts, const char *flag, const char *key)
{
	return opts->conf->line ? key : flag;
}

static void bind_failed(const struct lane_opts *opts, int err)
{
	const struct netdev *netdev = &opts->port->netdev;
	unsigned queue = opts->worker->number;

	if (err == -ECANCELED || err == -EPIPE)
		return; /* asked to end, nothing wrong; or said by the opener */
	if (err == -EBUSY)
		log_error(
			"%s q%u: already bound by another AF_XDP socket (EBUSY); end its owner or "
			"choose another queue with %s",
			netdev->name, queue, word(opts, "-q", "queues"));
	else if (err == -EINVAL && opts->conf->frags)
		log_error(
			"%s q%u: the kernel refuses multi-buffer or the queue (EINVAL); %s needs Linux 6.6, "
			"`ethtool -l %s` tells the active queues",
			netdev->name, queue, word(opts, "-F", "frags = yes"), netdev->name);
	else if (err == -EINVAL)
		log_error(
			"%s q%u: the kernel refuses the queue (EINVAL); see `ethtool -l %s` for the "
			"active ones",
			netdev->name, queue, netdev->name);
	else if (err == -ENODEV || err == -ENXIO || err == -ENETDOWN)
		log_error("%s q%u: the device went away: " ERR_FORMAT
			  "; `ip link` shows what there is",
			  netdev->name, queue, ERR_ARGS(err));
	else
		log_error("%s q%u: the kernel refuses to bind the socket: " ERR_FORMAT,
			  netdev->name, queue, ERR_SANDBOX_ARGS(err));
}

/* What a driver without zero-copy says; some say EINVAL. */
static bool no_zero_copy(int err)
{
	return err == -EOPNOTSUPP || err == -EINVAL;
}

static int open_zero_copy(struct lane *lane, const struct lane_opts *opts, int *bind_err)
{
	const struct netdev *netdev = &opts->port->netdev;
	int err = try_open(lane, opts, true, bind_err);

	if (err || !*bind_err)
		return err;
	if (opts->port->conf->zero_copy == CONF_ZERO_COPY_REQUIRE && no_zero_copy(*bind_err))
		/* With multi-buffer the refusal may be of this alone, by the driver or by the kernel. */
		log_error("%s q%u: no zero-copy%s (driver %s): " ERR_FORMAT "; leave out %s%s%s",
			  netdev->name, opts->worker->number,
			  opts->conf->frags ? " with multi-buffer" : "",
			  netdev->driver[0] ? netdev->driver : "unknown", ERR_ARGS(*bind_err),
			  opts->conf->frags ? word(opts, "-F", "frags = yes") : "",
			  opts->conf->frags ? " or " : "", word(opts, "-z", "zero-copy = require"));
	else if (opts->port->conf->zero_copy == CONF_ZERO_COPY_REQUIRE || *bind_err == -EBUSY)
		bind_failed(opts, *bind_err);
	else if (*bind_err != -ECANCELED && *bind_err != -EPIPE)
		return 0; /* copy is tried next */
	return *bind_err;
}

int lane_open(struct lane *lane, const struct lane_opts *opts)
{
	const struct netdev *netdev = &opts->port->netdev;
	int zero_copy_err = 0, bind_err, err;

	if (!opts->plan->rx && !opts->plan->tx) {
		if (opts->index == opts->worker->queues) /* else it is one already */
			worker_plug(opts->worker, opts->index, NULL, false);
		return 0;
	}
	if (!lane_fits(opts->plan, netdev, opts->worker->number)) {
		if (opts->index == opts->worker->queues)
			worker_plug_absent(opts->worker, opts->index);
		return 0;
	}
	/* In skb mode the kernel copies, whatever the driver can. */
	if (opts->port->conf->zero_copy == CONF_ZERO_COPY_REQUIRE ||
	    (opts->port->conf->zero_copy == CONF_ZERO_COPY_AUTO && opts->port->prog.native)) {
		err = open_zero_copy(lane, opts, &zero_copy_err);
		if (err || !zero_copy_err)
			return err;
	}
	err = try_open(lane, opts, false, &bind_err);
	if (err)
		return err;
	if (bind_err)
		bind_failed(opts, bind_err);
	else if (zero_copy_err && !no_zero_copy(zero_copy_err))
		log_warning("%s q%u: zero-copy refused: " ERR_FORMAT "; using copy", netdev->name,
			    opts->worker->number, ERR_ARGS(zero_copy_err));
	return bind_err;
}
