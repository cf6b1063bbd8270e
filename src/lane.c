/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "lane.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "xdp/opener.h"

/* The kernel frees a closed socket's hold on its queue in deferred work: 10 to 50 ms here, more on
 * a busy host. Retrying for longer would only delay the message that somebody else has it. */
#define BUSY_RETRY_NS (2 * NSEC_PER_SEC)
#define BUSY_NAP_US   5000

static bool end_asked(void)
{
	sigset_t pending;

	if (sigpending(&pending))
		return false;
	return sigismember(&pending, SIGTERM) || sigismember(&pending, SIGINT);
}

static int bind_patiently(struct xsk *xsk, const struct xsk_bind_opts *opts)
{
	uint64_t start_ns = clock_now_ns();

	for (;;) {
		int err = xsk_bind(xsk, opts);

		if (err != -EBUSY || clock_now_ns() - start_ns > BUSY_RETRY_NS)
			return err;
		if (end_asked())
			return -EINTR;
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
		.shared_fd = shared_fd(opts, zero_copy),
	};
	struct queue *queue;
	int fd, err;

	*bind_err = 0;
	fd = opener_socket(netdev->name, opts->worker->number,
			   bind_opts.shared_fd < 0 ? opts->worker->umem : NULL);
	if (fd < 0)
		return fd;
	err = xsk_map(&lane->xsk, fd, opts->ring_size, 2 * opts->ring_size);
	if (err) {
		log_error("%s q%u: no rings of %u entries: " ERR_FORMAT "; lower --ring-size",
			  netdev->name, opts->worker->number, opts->ring_size, ERR_ARGS(err));
		xsk_close(&lane->xsk);
		return err;
	}
	queue = worker_add(opts->worker, &lane->xsk);
	*bind_err = bind_patiently(&lane->xsk, &bind_opts);
	if (*bind_err) {
		xsk_close(&lane->xsk);
		worker_remove_last(opts->worker);
		return 0;
	}
	worker_bound(queue, &lane->xsk);
	return 0;
}

static void bind_failed(const struct lane_opts *opts, int err)
{
	const struct netdev *netdev = &opts->port->netdev;
	unsigned queue = opts->worker->number;

	if (err == -EINTR)
		return; /* asked to end, nothing wrong */
	if (err == -EBUSY)
		log_error(
			"%s q%u: already bound by another AF_XDP socket (EBUSY); end its owner or "
			"choose another queue with -q",
			netdev->name, queue);
	else if (err == -EINVAL)
		log_error(
			"%s q%u: the kernel refuses the queue (EINVAL); see `ethtool -l %s` for the "
			"active ones",
			netdev->name, queue, netdev->name);
	else
		log_error("%s q%u: bind: " ERR_FORMAT, netdev->name, queue, ERR_ARGS(err));
}

static void zero_copy_refused(const struct lane_opts *opts, int err)
{
	const struct netdev *netdev = &opts->port->netdev;

	if (opts->zero_copy == CONF_ZERO_COPY_REQUIRE)
		log_error("%s q%u: no zero-copy (driver %s): " ERR_FORMAT "; leave out -z",
			  netdev->name, opts->worker->number,
			  netdev->driver[0] ? netdev->driver : "unknown", ERR_ARGS(err));
	else if (err != -EOPNOTSUPP)
		log_warning("%s q%u: zero-copy refused: " ERR_FORMAT "; using copy", netdev->name,
			    opts->worker->number, ERR_ARGS(err));
}

int lane_open(struct lane *lane, const struct lane_opts *opts)
{
	/* In skb mode the kernel copies, whatever the driver can. */
	bool zero_copy = opts->zero_copy == CONF_ZERO_COPY_REQUIRE ||
			 (opts->zero_copy == CONF_ZERO_COPY_AUTO && opts->port->prog.native);
	int bind_err, err;

	if (zero_copy) {
		err = try_open(lane, opts, true, &bind_err);
		if (err || !bind_err)
			return err;
		if (bind_err == -EBUSY || bind_err == -EINTR) {
			bind_failed(opts, bind_err);
			return bind_err;
		}
		zero_copy_refused(opts, bind_err);
		if (opts->zero_copy == CONF_ZERO_COPY_REQUIRE)
			return bind_err;
	}
	err = try_open(lane, opts, false, &bind_err);
	if (err || !bind_err)
		return err;
	bind_failed(opts, bind_err);
	return bind_err;
}
