/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "xdp/opener_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/signals.h"
#include "conf/conf.h"
#include "xdp/confine.h"
#include "xdp/dispatcher.h"
#include "xdp/external.h"
#include "xdp/host_port.h"
#include "xdp/opener_acts.h"
#include "xdp/opener_permits.h"
#include "xdp/opener_proto.h"
#include "xdp/opener_traces.h"
#include "xdp/packet.h"
#include "xdp/privileges.h"
#include "xdp/uapi.h"

/* The socket to the client in this process; what is above it is closed. */
#define SOCKET_FD (STDERR_FILENO + 1)

/* How many programs in dispatchers are waited for between two requests, which is all that two forwards of the
 * most ports can have; any more are looked at with the next request. */
#define DISPATCHED_WATCHED (2 * CONF_PORTS_MAX)

/* Slots that an XSKMAP is made with: more than any card has queues. */
#define QUEUES_MAX 65536

struct helper {
	int fd;
	pid_t client;
	const struct opener_opts *opts;
	struct opener_permits permits;
	struct traces traces;
	bool begun;
};

/* One request while it is served. */
struct serving {
	struct helper *helper;
	const struct opener_request *request;
	const struct opener_fds *given;
	char ifname[NETDEV_NAME_SIZE]; /* the kernel's, or as the client has it */
	struct allowed allowed;	       /* of acts that are about a device */
	bool refused;		       /* it is not in the configuration, or no request of ours */
	struct opener_answer answer;
	struct opener_fds fds; /* to be sent with it */
};

/* --- what is permitted --- */

/* After a message. */
static int refuse(struct serving *serving, int err)
{
	serving->refused = true;
	return err;
}

/* Whether the configuration names the device, by what the kernel says and not the client, and with what. */
static int check_device(struct serving *serving)
{
	const struct opener_request *request = serving->request;
	char xskmap[PROG_PATH_SIZE] = "";
	int err;

	if (request->op == OPENER_ATTACH)
		snprintf(xskmap, sizeof(xskmap), "%.*s", PROG_PATH_SIZE - 1,
			 request->attach.xskmap);
	err = permits_device(&serving->helper->permits, request->ifindex, xskmap, serving->ifname,
			     &serving->allowed);
	if (err == -ENODEV)
		log_error("%s: the device went away: " ERR_FORMAT "; `ip link` shows what there is",
			  serving->ifname, ERR_ARGS(err));
	else if (err)
		log_error("%s: cannot be looked up: " ERR_FORMAT, serving->ifname,
			  ERR_SANDBOX_ARGS(err));
	if (err)
		return err;
	if (serving->allowed.named)
		return 0;
	log_error("%s: is not in the configuration, so it is not touched; name it there first",
		  serving->ifname);
	return refuse(serving, -EACCES);
}

/* Returns 0, or -EACCES after a message that names what the configuration does not have. */
static int check_allowed(struct serving *serving, bool allowed, const char *what)
{
	if (allowed)
		return 0;
	log_error("%s: the configuration does not have %s, so it is not done; say it there first",
		  serving->ifname, what);
	return refuse(serving, -EACCES);
}

static int check_queue(struct serving *serving, uint32_t queue)
{
	char what[32];

	snprintf(what, sizeof(what), "queue %u", queue);
	return check_allowed(serving, allowed_queue(&serving->allowed, queue), what);
}

/* --- its own rights --- */

/* SIGINT and SIGTERM are blocked since main(), SIGPIPE is ignored: as those, the rest of what a terminal
 * or a service manager sends to all of a group is the client's to end by. */
static void stay_alive(void)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };

	sigaction(SIGHUP, &ignore, NULL);
	sigaction(SIGQUIT, &ignore, NULL);
	/* Its end cuts an act short as its signal would. */
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
}

/* What the acts of this configuration take. */
static uint64_t needed_capabilities(const struct helper *helper)
{
	uint64_t needed = CAPABILITY(CAP_NET_ADMIN) | CAPABILITY(CAP_NET_RAW) |
			  CAPABILITY(CAP_BPF) | CAPABILITY(CAP_IPC_LOCK);
	const struct allowed all = permits_all(&helper->permits);

	if (helper->opts->by_hand ||
	    all.replace) /* at other programs, their links and who holds them; and takes them off */
		needed |= CAPABILITY(CAP_SYS_ADMIN) | CAPABILITY(CAP_SYS_PTRACE);
	if (all.dispatcher) /* pins of everybody, in a folder that is root's, and who has them open */
		needed |= CAPABILITY(CAP_SYS_ADMIN) | CAPABILITY(CAP_SYS_PTRACE) |
			  CAPABILITY(CAP_DAC_OVERRIDE);
	if (helper->opts->by_hand) /* in everybody's folders of /proc */
		needed |= CAPABILITY(CAP_DAC_READ_SEARCH);
	if (helper->permits.realtime)
		needed |= CAPABILITY(CAP_SYS_NICE);
	/* What does as well. */
	if (!privileges_have(CAP_BPF))
		needed |= CAPABILITY(CAP_SYS_ADMIN);
	if (!privileges_have(CAP_IPC_LOCK))
		needed |= CAPABILITY(CAP_SYS_RESOURCE);
	return needed;
}

/* Whether there may be a dispatcher to be joined, or to be taken off with what it has pinned. */
static bool may_touch_dispatchers(const struct helper *helper)
{
	const struct allowed all = permits_all(&helper->permits);

	return all.dispatcher || all.replace;
}

/* Once, before a file is read: as who can read it later as well. A reload does not bring back what was given up. */
static int begin(struct helper *helper)
{
	const struct opener_opts *opts = helper->opts;
	int err = opts->permit(opts->context, false, &helper->permits);

	if (!err && opts->confined) {
		err = privileges_become(opts->user);
		stay_alive();
		if (!err)
			err = privileges_keep(needed_capabilities(helper));
		if (!err)
			err = confine_opener(helper->client, may_touch_dispatchers(helper));
	}
	helper->begun = !err;
	return err;
}

/* --- what it says --- */

/* What an act says is the client's to say. */
static bool pass_on(enum log_level level, const char *text, void *context)
{
	const struct helper *helper = context;
	struct opener_answer answer = { .kind = OPENER_LOG, .result = (int)level };

	snprintf(answer.text, sizeof(answer.text), "%s", text);
	return !opener_send(helper->fd, &answer, sizeof(answer), NULL);
}

/* What is to be said of it goes to standard error: the client has asked for nothing, and would take it for our
 * end. */
static void leave_programs(struct helper *helper)
{
	log_capture(NULL, NULL);
	traces_leave_programs(&helper->traces);
	log_capture(pass_on, helper);
}

/* --- the acts --- */

static int serve_check(struct serving *serving)
{
	(void)serving;
	return act_check();
}

static int serve_refresh(struct serving *serving)
{
	struct helper *helper = serving->helper;
	int err = helper->begun ? 0 : begin(helper);

	/* What was permitted before stays: a reload that fails goes back to it. */
	return err ? err : helper->opts->permit(helper->opts->context, true, &helper->permits);
}

static int serve_memlock(struct serving *serving)
{
	return act_memlock(serving->request->bytes);
}

/* No pin but one of the configuration: whoever has the map can send its frames elsewhere. */
static int serve_external(struct serving *serving, struct prog *prog, const struct prog_opts *opts)
{
	if (serving->allowed.xskmap)
		return external_open(prog, opts);
	log_error("%s: xskmap %s: is not in the configuration, so it is not opened; name it there "
		  "first",
		  serving->ifname, opts->xskmap);
	return refuse(serving, -EACCES);
}

static int check_attach(struct serving *serving, const struct prog_opts *opts)
{
	int err = 0;

	if (opts->dispatcher)
		err = check_allowed(serving, serving->allowed.dispatcher,
				    "attach-method = dispatcher");
	else if (!opts->xskmap)
		err = check_allowed(serving, serving->allowed.program,
				    "an XDP program of ours there");
	if (!err && serving->request->attach.replace)
		err = check_allowed(serving, serving->allowed.replace, "replace = yes");
	return err;
}

/* Into a dispatcher: the client's end of a pipe for a link, and maps that it has, where it sends them. */
static int serve_dispatcher(struct serving *serving, struct prog *prog, struct prog_opts *opts)
{
	struct prog before = { 0 };
	int err;

	prog_set_maps(&before, serving->given->fd);
	if (serving->given->count)
		opts->maps_of = &before;
	traces_leave_from_before(&serving->helper->traces, opts->ifindex);
	err = prog_open(prog, opts);
	opts->maps_of = NULL;
	if (err)
		return err;
	prog->link_fd = traces_hold_program(&serving->helper->traces, serving->ifname,
					    opts->ifindex, prog->id);
	if (prog->link_fd >= 0)
		return 0;
	err = prog->link_fd;
	prog_close(prog);
	return err;
}

static int attach_as_asked(struct serving *serving, struct prog *prog, struct prog_opts *opts)
{
	if (opts->dispatcher)
		return serve_dispatcher(serving, prog, opts);
	return opts->xskmap ? serve_external(serving, prog, opts) : prog_open(prog, opts);
}

static int serve_attach(struct serving *serving)
{
	const struct opener_request *request = serving->request;
	struct prog_opts opts = {
		.ifname = serving->ifname,
		.ifindex = request->ifindex,
		.queues = request->attach.queues,
		.attach = (enum prog_attach)request->attach.mode,
		.replace = request->attach.replace,
		.dispatcher = request->attach.dispatcher,
	};
	char xskmap[PROG_PATH_SIZE];
	struct prog prog;
	int err;

	snprintf(xskmap, sizeof(xskmap), "%.*s", PROG_PATH_SIZE - 1, request->attach.xskmap);
	if (request->attach.mode > PROG_ATTACH_SKB || !opts.queues || opts.queues > QUEUES_MAX ||
	    (opts.dispatcher && xskmap[0]) ||
	    (serving->given->count && (serving->given->count != PROG_MAPS || !opts.dispatcher)))
		return refuse(serving, -EPROTO);
	opts.xskmap = xskmap[0] ? xskmap : NULL;
	err = check_attach(serving, &opts);
	if (err)
		return err;
	err = attach_as_asked(serving, &prog, &opts);
	if (err)
		return err;
	/* As opener_attach() takes them. */
	if (opts.xskmap) {
		serving->fds = (struct opener_fds){ { prog.xsks_fd }, 1 };
	} else {
		serving->fds =
			(struct opener_fds){ { prog.link_fd, prog.prog_fd }, OPENER_FDS_MAX };
		prog_maps(&prog, &serving->fds.fd[OPENER_MAP_FDS]);
	}
	serving->answer.prog.id = prog.id;
	serving->answer.prog.native = prog.native;
	memcpy(serving->answer.prog.name, prog.name, sizeof(prog.name));
	memcpy(serving->answer.prog.tag, prog.tag, sizeof(prog.tag));
	return 0;
}

/* Whose program it is makes no difference: who has one that was loaded needs no privilege to attach it. */
static int serve_attach_again(struct serving *serving)
{
	const struct opener_request *request = serving->request;
	struct prog_opts opts = {
		.ifname = serving->ifname,
		.ifindex = request->ifindex,
		.attach = (enum prog_attach)request->attach.mode,
		.replace = request->attach.replace,
	};
	int fd = check_attach(serving, &opts);

	if (!fd)
		fd = prog_attach_again(serving->given->fd[0], &opts, serving->answer.rival);
	if (fd < 0)
		return fd;
	serving->fds = (struct opener_fds){ { fd }, 1 };
	return 0;
}

static int serve_dispatched(struct serving *serving)
{
	return dispatcher_has(serving->request->ifindex, serving->request->prog_id) ? 0 : -ENOENT;
}

/* Nobody has its pipe any more, so that it was taken out before this. */
static int serve_leave(struct serving *serving)
{
	(void)serving;
	return 0;
}

static void view_failed(const struct serving *serving, int err)
{
	log_error("%s q%u: the frames cannot be mapped to be registered: " ERR_FORMAT "%s",
		  serving->ifname, serving->request->socket.queue, ERR_SANDBOX_ARGS(err),
		  err == -ENOMEM ? "; lower --frames-per-queue or --ring-size" : "");
}

static int serve_socket(struct serving *serving)
{
	struct umem_view view = { 0 };
	int fd = check_queue(serving, serving->request->socket.queue);

	if (fd)
		return fd;
	if (serving->given->count) {
		int err = umem_view_open(&view, serving->given->fd[0]);

		if (err) {
			view_failed(serving, err);
			return err;
		}
	}
	fd = act_socket(serving->ifname, serving->request->socket.queue,
			view.frames ? &view : NULL);
	umem_view_close(&view);
	if (fd < 0)
		return fd;
	serving->fds = (struct opener_fds){ { fd }, 1 };
	return 0;
}

static bool is_xsk(int fd)
{
	int domain = 0;
	socklen_t len = sizeof(domain);

	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) && domain == AF_XDP;
}

/* What became of it is the client's to say, but for what the configuration does not have. */
static int serve_bind(struct serving *serving)
{
	const struct opener_request *request = serving->request;
	const struct opener_fds *given = serving->given;
	const struct xsk_bind_opts opts = {
		.ifindex = request->ifindex,
		.queue = request->bind.queue,
		.zero_copy = request->bind.zero_copy,
		.frags = request->bind.frags,
		.no_need_wakeup = request->bind.no_need_wakeup,
		.shared_fd = given->count > 1 ? given->fd[1] : -1,
	};
	int err = check_queue(serving, opts.queue);

	for (unsigned i = 0; !err && i < given->count; i++)
		err = is_xsk(given->fd[i]) ? 0 : refuse(serving, -EPROTO);
	return err ? err : xsk_bind(given->fd[0], &opts);
}

static int serve_busy_poll(struct serving *serving)
{
	const struct opener_request *request = serving->request;
	int err;

	/* No socket but of this kind. */
	if (!is_xsk(serving->given->fd[0]) || request->socket.budget > INT_MAX)
		return refuse(serving, -EPROTO);
	err = check_queue(serving, request->socket.queue);
	if (!err)
		err = check_allowed(serving, serving->allowed.busy_poll, "wait = busy-poll");
	return err ? err :
		     act_busy_poll(serving->given->fd[0], serving->ifname, request->socket.queue,
				   request->socket.budget);
}

static int serve_realtime(struct serving *serving)
{
	pid_t tid = serving->request->realtime.tid;
	unsigned priority = serving->request->realtime.priority;

	if (priority > serving->helper->permits.realtime) {
		log_error("-W FIFO -U %u: the configuration has no priority so high, so it is not "
			  "given; say it there first",
			  priority);
		return refuse(serving, -EACCES);
	}
	/* No thread but of the client. */
	if (syscall(SYS_tgkill, serving->helper->client, tid, 0))
		return -errno;
	return act_realtime(tid, priority);
}

static int serve_promiscuous(struct serving *serving)
{
	int fd = act_promiscuous(serving->ifname, serving->request->ifindex);

	if (fd < 0)
		return fd;
	serving->fds = (struct opener_fds){ { fd }, 1 };
	return 0;
}

static int serve_packet(struct serving *serving)
{
	struct steer_maps maps;
	int fd;

	memcpy(maps.fd, serving->given->fd, sizeof(maps.fd));
	fd = packet_open(serving->ifname, serving->request->ifindex, &maps);
	if (fd < 0)
		return fd;
	serving->fds = (struct opener_fds){ { fd }, 1 };
	return 0;
}

static int serve_vlan_offload(struct serving *serving)
{
	unsigned changed = 0;
	int err = check_allowed(serving, serving->allowed.vlan_offload, "vlan-offload = off");

	if (err)
		return err;
	err = traces_vlan_off(&serving->helper->traces, serving->ifname, serving->request->ifindex,
			      &changed);
	serving->answer.changed = changed;
	return err;
}

static int serve_port_restore(struct serving *serving)
{
	traces_vlan_restore(&serving->helper->traces, serving->request->ifindex);
	return 0;
}

static int serve_peer_name(struct serving *serving)
{
	return netdev_peer_name(serving->request->ifindex, serving->answer.name,
				sizeof(serving->answer.name));
}

static int serve_host_port(struct serving *serving)
{
	const struct opener_request *request = serving->request;
	char near[NETDEV_NAME_SIZE];

	/* Both ends' names must be some. */
	if (!serving->ifname[0] ||
	    strlen(serving->ifname) + sizeof(HOST_PORT_NEAR) > NETDEV_NAME_SIZE)
		return refuse(serving, -EPROTO);
	host_port_near(serving->ifname, near);
	if (!permits_name(&serving->helper->permits, near)) {
		log_error("host-port %s: is not in the configuration, so it is not made; name it "
			  "there first",
			  serving->ifname);
		return refuse(serving, -EACCES);
	}
	return traces_host_port(&serving->helper->traces, serving->ifname, request->host_port.mtu,
				request->host_port.keep);
}

/* Only what was made here. */
static int serve_host_port_remove(struct serving *serving)
{
	return traces_host_port_remove(&serving->helper->traces, serving->ifname);
}

/* A request that comes with other fds than these, or is about a device that is not configured, does not
 * reach its act. */
static const struct {
	int (*serve)(struct serving *serving);
	unsigned fds_min, fds_max; /* that come with it */
	bool device;
} acts[OPENER_OPS] = {
	[OPENER_CHECK] = { serve_check },
	[OPENER_REFRESH] = { serve_refresh },
	[OPENER_MEMLOCK] = { serve_memlock },
	[OPENER_ATTACH] = { serve_attach, .fds_max = PROG_MAPS, .device = true },
	[OPENER_ATTACH_AGAIN] = { serve_attach_again, .fds_min = 1, .fds_max = 1, .device = true },
	[OPENER_DISPATCHED] = { serve_dispatched, .device = true },
	[OPENER_LEAVE] = { serve_leave },
	[OPENER_SOCKET] = { serve_socket, .fds_max = 1, .device = true },
	[OPENER_BIND] = { serve_bind, .fds_min = 1, .fds_max = 2, .device = true },
	[OPENER_BUSY_POLL] = { serve_busy_poll, .fds_min = 1, .fds_max = 1, .device = true },
	[OPENER_REALTIME] = { serve_realtime },
	[OPENER_PROMISCUOUS] = { serve_promiscuous, .device = true },
	[OPENER_PACKET] = { serve_packet, .fds_min = STEER_MAPS, .fds_max = STEER_MAPS,
			    .device = true },
	[OPENER_VLAN_OFFLOAD] = { serve_vlan_offload, .device = true },
	/* Only what was changed before, of a device that the configuration may name no more. */
	[OPENER_PORT_RESTORE] = { serve_port_restore },
	[OPENER_PEER_NAME] = { serve_peer_name, .device = true },
	/* These are about a device that there is not yet, and look at its name themselves. */
	[OPENER_HOST_PORT] = { serve_host_port },
	[OPENER_HOST_PORT_REMOVE] = { serve_host_port_remove },
};

static int serve(struct serving *serving)
{
	uint32_t op = serving->request->op;
	int err;

	if (op >= OPENER_OPS || serving->given->count < acts[op].fds_min ||
	    serving->given->count > acts[op].fds_max)
		return refuse(serving, -EPROTO);
	err = acts[op].device ? check_device(serving) : 0;
	if (!err)
		err = acts[op].serve(serving);
	return err == -EPIPE ? -EIO : err; /* that one means that we are gone */
}

/* Not by the client, which may have been taken over, and tells nobody then. */
static void tell_refusal(const struct serving *serving)
{
	struct helper *helper = serving->helper;

	log_capture(NULL, NULL);
	log_error("the helper process, pid %d, has refused what pid %d asked of it (request %u, "
		  "device %d): " ERR_FORMAT
		  "; unless the configuration has just changed, it may have been taken over: end "
		  "it, and find out by whom",
		  (int)getpid(), (int)helper->client, serving->request->op,
		  serving->request->ifindex, ERR_ARGS(serving->answer.result));
	log_capture(pass_on, helper);
}

/* --- the loop --- */

/* A signal to end cuts one act short. We end when our client does. */
static void forget_signals(void)
{
	const struct timespec at_once = { 0 };
	sigset_t set;

	signals_end_set(&set);
	while (sigtimedwait(&set, NULL, &at_once) > 0)
		;
}

static void name_device(struct serving *serving)
{
	memcpy(serving->ifname, serving->request->ifname, sizeof(serving->ifname));
	serving->ifname[sizeof(serving->ifname) - 1] = '\0';
}

/* Waits for one. What the client let go of before it asked is done with first. */
static void wait_request(struct helper *helper)
{
	for (;;) {
		struct pollfd fds[1 + DISPATCHED_WATCHED];
		unsigned count;

		leave_programs(helper);
		fds[0] = (struct pollfd){ .fd = helper->fd, .events = POLLIN };
		count = 1 + traces_watch_programs(&helper->traces, &fds[1], DISPATCHED_WATCHED);
		if (poll(fds, count, -1) > 0 && fds[0].revents) {
			leave_programs(helper);
			return;
		}
	}
}

/* Serves one request. False: there is nobody to serve any more. */
static bool serve_next(struct helper *helper)
{
	struct opener_request request = { 0 };
	struct opener_fds given;
	struct serving serving = { .helper = helper, .request = &request, .given = &given };
	int err = opener_receive(helper->fd, &request, sizeof(request), &given);

	if (err == -EBADMSG || err == -EMFILE) {
		if (err == -EMFILE)
			log_error("no room in the helper process for what it is given: " ERR_FORMAT,
				  ERR_ARGS(err));
		serving.answer.result = err;
		serving.refused = err == -EBADMSG;
	} else if (err) {
		return false;
	} else {
		name_device(&serving);
		serving.answer.result = serve(&serving);
	}
	if (serving.refused)
		tell_refusal(&serving);
	forget_signals();
	err = opener_send(helper->fd, &serving.answer, sizeof(serving.answer), &serving.fds);
	/* What they hold, a program or a promiscuous mode, is the client's to end from now on. */
	opener_fds_close(&serving.fds);
	opener_fds_close(&given);
	return !err;
}

/* Nothing of the parent's but standard error, which stands in for the other two: so that what the parent
 * closes is closed, and no fd of ours gets their number. */
static int keep_only(int socket)
{
	if (socket != SOCKET_FD && dup2(socket, SOCKET_FD) < 0)
		return -errno;
	(void)close_range(SOCKET_FD + 1, ~0U, 0);
	(void)dup2(STDERR_FILENO, STDIN_FILENO);
	(void)dup2(STDERR_FILENO, STDOUT_FILENO);
	return 0;
}

void opener_helper_run(int socket, pid_t client, const struct opener_opts *opts)
{
	struct helper helper = { .fd = SOCKET_FD, .client = client, .opts = opts };

	(void)prctl(PR_SET_NAME, "millrace-opener");
	stay_alive();
	if (keep_only(socket))
		_exit(EXIT_FAILURE);
	log_capture(pass_on, &helper);
	do
		wait_request(&helper);
	while (serve_next(&helper));
	log_capture(NULL, NULL);
	traces_undo(&helper.traces);
	/* Not exit(): buffers and what is to be done at the end are the parent's. */
	_exit(EXIT_SUCCESS);
}
