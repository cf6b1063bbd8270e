/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "xdp/opener.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/signals.h"
#include "xdp/confine.h"
#include "xdp/offload.h"
#include "xdp/opener_helper.h"
#include "xdp/opener_proto.h"
#include "xdp/privileges.h"

/* How long the helper may take to put everything back and end. An end may take 2 s, of which draining
 * has 1; switching an offload takes a network card milliseconds. */
#define STOP_MS 800

/* What the helper has changed on a device. */
struct change {
	int ifindex;
	char ifname[NETDEV_NAME_SIZE];
	unsigned vlan; /* enum offload_vlan */
};

/* The one helper of this process. Owner: the main thread. */
static struct opener {
	int fd;	       /* to the helper; 0: not started */
	int signal_fd; /* readable while a signal to end is pending */
	pid_t pid;     /* 0: reaped */
	bool lost;
	struct change *change;
	unsigned changes;
} opener;

/* --- its life --- */

static int open_signal_fd(void)
{
	sigset_t set;
	int fd;

	signals_end_set(&set);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int start(const struct opener_opts *opts)
{
	pid_t self = getpid(), pid;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	opener.fd = pair[0];
	pid = fork();
	if (!pid)
		opener_helper_run(pair[1], self, opts);
	if (pid < 0) {
		int err = -errno;

		close(pair[1]);
		return err;
	}
	close(pair[1]);
	opener.pid = pid;
	opener.signal_fd = open_signal_fd();
	return opener.signal_fd < 0 ? opener.signal_fd : 0;
}

int opener_start(const struct opener_opts *opts)
{
	int err = start(opts);

	if (!err)
		return opener_refresh();
	log_error("no helper process for what needs privileges: " ERR_FORMAT "%s",
		  ERR_SANDBOX_ARGS(err),
		  err == -EAGAIN ? "; raise RLIMIT_NPROC (`ulimit -u`) or TasksMax=" : "");
	return err;
}

/* Waits for the socket's other end to be closed, which the helper's exit does. */
static bool wait_end(void)
{
	struct pollfd end = { .fd = opener.fd, .events = POLLIN };
	uint64_t start_ns = clock_now_ns();
	uint64_t left_ms = STOP_MS;

	for (;;) {
		uint64_t took_ms;

		if (poll(&end, 1, (int)left_ms) > 0)
			return true;
		took_ms = (clock_now_ns() - start_ns) / (NSEC_PER_SEC / 1000);
		if (took_ms >= STOP_MS)
			return false;
		left_ms = STOP_MS - took_ms;
	}
}

void opener_stop(void)
{
	if (opener.pid) {
		shutdown(opener.fd, SHUT_WR);
		if (wait_end())
			waitpid(opener.pid, NULL, 0);
		else
			log_warning(
				"the helper process, pid %d, takes longer than %d ms to put back "
				"what was changed on the host, and is left to itself",
				(int)opener.pid, STOP_MS);
	}
	if (opener.signal_fd > 0)
		close(opener.signal_fd);
	if (opener.fd > 0)
		close(opener.fd);
	free(opener.change);
	opener = (struct opener){ 0 };
}

int opener_fd(void)
{
	return opener.fd > 0 && !opener.lost ? opener.fd : -1;
}

/* "; `ethtool -K d0 rxvlan on`, ... put back what it changed", or nothing. */
static void describe_changes(char *text, size_t size)
{
	size_t len;

	text[0] = '\0';
	for (unsigned i = 0; i < opener.changes; i++) {
		char command[96];

		offload_vlan_command(opener.change[i].ifname, opener.change[i].vlan, command,
				     sizeof(command));
		len = strlen(text);
		snprintf(text + len, size - len, "%s%s",
			 i ? ", " : "; rx-vlan-offload stays off: ", command);
	}
	len = strlen(text);
	if (opener.changes)
		snprintf(text + len, size - len, " at the end");
}

void opener_lost(void)
{
	char how[64] = "ended", changes[640];
	int status = 0;

	if (opener.lost || !opener.pid)
		return;
	opener.lost = true;
	if (waitpid(opener.pid, &status, 0) == opener.pid && WIFSIGNALED(status))
		snprintf(how, sizeof(how), "was killed by signal %d", WTERMSIG(status));
	describe_changes(changes, sizeof(changes));
	log_error("the helper process, pid %d, %s: what is open goes on, but no port or socket can "
		  "be opened any more; restart millraced for that%s",
		  (int)opener.pid, how, changes);
	opener.pid = 0;
}

/* --- asking --- */

/* One request, and what came of it. */
struct call {
	struct opener_request request;
	struct opener_fds given; /* borrowed */
	struct opener_answer answer;
	struct opener_fds fds; /* of the answer */
};

static struct call call_of(enum opener_op op, const char *ifname, int ifindex)
{
	struct call call = { .request = { .op = op, .ifindex = ifindex } };

	snprintf(call.request.ifname, sizeof(call.request.ifname), "%s", ifname);
	return call;
}

/* A signal to end is passed on once, so that the helper stops waiting for whatever it waits for. */
static void wait_answer(bool *passed_on)
{
	while (!*passed_on) {
		struct pollfd fds[] = {
			{ .fd = opener.fd, .events = POLLIN },
			{ .fd = opener.signal_fd, .events = POLLIN },
		};

		if (poll(fds, 2, -1) <= 0)
			continue;
		if (fds[0].revents)
			return;
		kill(opener.pid, SIGTERM);
		*passed_on = true;
	}
}

static int receive_result(struct call *call)
{
	bool passed_on = false;

	for (;;) {
		int err;

		wait_answer(&passed_on);
		err = opener_receive(opener.fd, &call->answer, sizeof(call->answer), &call->fds);
		if (err)
			return err;
		if (call->answer.kind != OPENER_LOG)
			return call->answer.result;
		call->answer.text[sizeof(call->answer.text) - 1] = '\0';
		log_write((enum log_level)call->answer.result, "%s", call->answer.text);
	}
}

static int ask_once(struct call *call)
{
	int err = opener_send(opener.fd, &call->request, sizeof(call->request), &call->given);

	return err ? err : receive_result(call);
}

/* Returns the act's result, with `fds` of them in call->fds if that is 0. */
static int ask(struct call *call, unsigned fds)
{
	int err;

	if (opener.lost || !opener.pid) {
		log_error(
			"%s%sthis needs a privilege that only the helper process had, which is gone; "
			"restart millraced",
			call->request.ifname, call->request.ifname[0] ? ": " : "");
		return -EPIPE;
	}
	do { /* again if a signal was for the helper alone, which takes it for the end of one act */
		err = ask_once(call);
	} while (err == -ECANCELED && !signals_end_asked());
	if (!err && call->fds.count != fds) {
		opener_fds_close(&call->fds);
		err = -EBADMSG;
	}
	if (err == -EPIPE)
		opener_lost();
	else if (err == -EMFILE && call->answer.kind == OPENER_RESULT && !call->answer.result)
		log_error("%s%sno room for what the helper process opened: " ERR_FORMAT,
			  call->request.ifname, call->request.ifname[0] ? ": " : "", ERR_ARGS(err));
	return err;
}

int opener_refresh(void)
{
	struct call call = call_of(OPENER_REFRESH, "", 0);

	return ask(&call, 0);
}

int opener_check(void)
{
	struct call call = call_of(OPENER_CHECK, "", 0);

	return ask(&call, 0);
}

int opener_memlock(uint64_t bytes)
{
	struct call call = call_of(OPENER_MEMLOCK, "", 0);

	call.request.bytes = bytes;
	return ask(&call, 0);
}

/* What is told of the program. */
static void take_description(const struct call *call, struct prog *prog)
{
	prog->id = call->answer.prog.id;
	prog->native = call->answer.prog.native;
	snprintf(prog->name, sizeof(prog->name), "%.*s", PROG_NAME_SIZE - 1,
		 call->answer.prog.name);
	memcpy(prog->tag, call->answer.prog.tag, sizeof(prog->tag));
}

static int ask_external(struct call *call, struct prog *prog)
{
	int err = ask(call, 1);

	if (err)
		return err;
	*prog = (struct prog){
		.xsks_fd = call->fds.fd[0],
		.external = true,
		.filled = calloc(PROG_FILLED_SLOTS / 64, sizeof(*prog->filled)),
	};
	take_description(call, prog);
	if (prog->filled)
		return 0;
	prog_close(prog);
	log_error("out of memory");
	return -ENOMEM;
}

/* A program of ours. `call` is begun. */
static int ask_attach(struct call *call, const struct prog_opts *opts, struct prog *prog)
{
	int err = ask(call, OPENER_FDS_MAX);

	if (err)
		return err;
	*prog = (struct prog){
		.link_fd = call->fds.fd[0],
		.prog_fd = call->fds.fd[1],
		.dispatched = opts->dispatcher,
	};
	prog_set_maps(prog, &call->fds.fd[OPENER_MAP_FDS]);
	take_description(call, prog);
	return 0;
}

int opener_attach(const struct prog_opts *opts, struct prog *prog)
{
	struct call call = call_of(OPENER_ATTACH, opts->ifname, opts->ifindex);

	call.request.attach.queues = opts->queues;
	call.request.attach.mode = opts->attach;
	call.request.attach.replace = opts->replace;
	call.request.attach.dispatcher = opts->dispatcher;
	if (opts->xskmap) {
		snprintf(call.request.attach.xskmap, PROG_PATH_SIZE, "%s", opts->xskmap);
		return ask_external(&call, prog);
	}
	if (opts->maps_of) {
		prog_maps(opts->maps_of, call.given.fd);
		call.given.count = PROG_MAPS;
	}
	return ask_attach(&call, opts, prog);
}

static int ask_attach_again(const struct prog_opts *opts, int prog_fd, char *rival)
{
	struct call call = call_of(OPENER_ATTACH_AGAIN, opts->ifname, opts->ifindex);
	int err;

	call.request.attach.mode = opts->attach;
	call.request.attach.replace = opts->replace;
	call.given = (struct opener_fds){ { prog_fd }, 1 };
	err = ask(&call, 1);
	snprintf(rival, PROG_RIVAL_SIZE, "%.*s", err == -EPIPE ? 0 : PROG_RIVAL_SIZE - 1,
		 call.answer.rival);
	return err ? err : call.fds.fd[0];
}

/* An instance more of the program, whose maps go on: libxdp knows of one that is loaded no more than that it is
 * built for packets in several buffers, and would make a dispatcher that takes none. */
static int join_again(const struct prog_opts *opts, struct prog *prog)
{
	struct prog_opts again = *opts;
	struct prog added;
	int err;

	prog_detach(prog); /* should it be half there */
	again.maps_of = prog;
	err = opener_attach(&again, &added);
	if (err)
		return err;
	prog_close(prog);
	*prog = added;
	return 0;
}

/* What stands in the way is what an error line says, behind the device's name. */
struct rival {
	const char *ifname;
	char *text;
};

static bool take_rival(enum log_level level, const char *text, void *context)
{
	const struct rival *rival = context;
	size_t len = strlen(rival->ifname);

	if (level != LOG_LEVEL_ERROR)
		return false;
	if (!strncmp(text, rival->ifname, len) && !strncmp(text + len, ": ", 2))
		text += len + 2;
	if (!rival->text[0])
		snprintf(rival->text, PROG_RIVAL_SIZE, "%s", text);
	return true;
}

static int dispatch_again(const struct prog_opts *opts, struct prog *prog, char *rival)
{
	struct rival told = { opts->ifname, rival };
	struct prog_opts again = *opts;
	int err;

	rival[0] = '\0';
	again.dispatcher = true;
	log_capture(take_rival, &told);
	err = join_again(&again, prog);
	log_capture(NULL, NULL);
	return err;
}

int opener_attach_again(const struct prog_opts *opts, struct prog *prog, char *rival)
{
	struct prog_opts again = *opts;
	int fd;

	if (prog->dispatched)
		return dispatch_again(opts, prog, rival);

	again.attach = prog->native ? PROG_ATTACH_NATIVE : PROG_ATTACH_SKB;
	/* If the link holds another program, we are its holder, and the program goes with it. */
	if (opts->replace)
		prog_detach(prog);
	fd = ask_attach_again(&again, prog->prog_fd, rival);
	if (fd < 0)
		return fd;
	prog_detach(prog);
	prog->link_fd = fd;
	return 0;
}

int opener_dispatched(const char *ifname, int ifindex, uint32_t prog_id)
{
	struct call call = call_of(OPENER_DISPATCHED, ifname, ifindex);

	call.request.prog_id = prog_id;
	return ask(&call, 0);
}

void opener_detach(const char *ifname, int ifindex, struct prog *prog)
{
	struct call call = call_of(OPENER_LEAVE, ifname, ifindex);
	bool dispatched = prog->dispatched && prog->link_fd > 0;

	prog_detach(prog);
	if (!dispatched || !ask(&call, 0))
		return;
	log_warning("%s: our XDP program %u stays in the dispatcher and passes everything to the "
		    "host, since the helper process is gone; the next start takes it out, or "
		    "`xdp-loader unload %s -i %u`",
		    ifname, prog->id, ifname, prog->id);
}

int opener_socket(const char *ifname, int ifindex, uint32_t queue, const struct umem *umem)
{
	struct call call = call_of(OPENER_SOCKET, ifname, ifindex);
	int err;

	call.request.socket.queue = queue;
	if (umem)
		call.given = (struct opener_fds){ { umem->fd }, 1 };
	err = ask(&call, 1);
	return err ? err : call.fds.fd[0];
}

int opener_bind(int fd, const char *ifname, const struct xsk_bind_opts *opts)
{
	struct call call = call_of(OPENER_BIND, ifname, opts->ifindex);

	call.request.bind.queue = opts->queue;
	call.request.bind.zero_copy = opts->zero_copy;
	call.request.bind.frags = opts->frags;
	call.request.bind.no_need_wakeup = opts->no_need_wakeup;
	call.given = (struct opener_fds){ { fd, opts->shared_fd }, opts->shared_fd < 0 ? 1 : 2 };
	return ask(&call, 0);
}

int opener_busy_poll(int fd, const char *ifname, int ifindex, uint32_t queue, unsigned budget)
{
	struct call call = call_of(OPENER_BUSY_POLL, ifname, ifindex);

	call.request.socket.queue = queue;
	call.request.socket.budget = budget;
	call.given = (struct opener_fds){ { fd }, 1 };
	return ask(&call, 0);
}

int opener_realtime(pid_t tid, unsigned priority)
{
	struct call call = call_of(OPENER_REALTIME, "", 0);

	call.request.realtime.tid = tid;
	call.request.realtime.priority = priority;
	return ask(&call, 0);
}

int opener_promiscuous(const char *ifname, int ifindex)
{
	struct call call = call_of(OPENER_PROMISCUOUS, ifname, ifindex);
	int err = ask(&call, 1);

	return err ? err : call.fds.fd[0];
}

int opener_packet(const char *ifname, int ifindex, const struct steer_maps *maps)
{
	struct call call = call_of(OPENER_PACKET, ifname, ifindex);
	int err;

	call.given.count = STEER_MAPS;
	memcpy(call.given.fd, maps->fd, sizeof(maps->fd));
	err = ask(&call, 1);
	return err ? err : call.fds.fd[0];
}

/* Remembers what the helper has changed on a device, to be told should it die. */
static struct change *change_of(int ifindex)
{
	for (unsigned i = 0; i < opener.changes; i++) {
		if (opener.change[i].ifindex == ifindex)
			return &opener.change[i];
	}
	return NULL;
}

static struct change *change_new(const char *ifname, int ifindex)
{
	struct change *grown = reallocarray(opener.change, opener.changes + 1, sizeof(*grown));
	struct change *added;

	if (!grown)
		return NULL;
	opener.change = grown;
	added = &opener.change[opener.changes++];
	*added = (struct change){ .ifindex = ifindex };
	snprintf(added->ifname, sizeof(added->ifname), "%s", ifname);
	return added;
}

static void change_remove(struct change *change)
{
	*change = opener.change[--opener.changes];
}

int opener_vlan_offload(const char *ifname, int ifindex)
{
	struct call call = call_of(OPENER_VLAN_OFFLOAD, ifname, ifindex);
	struct change *change = change_of(ifindex);
	int err;

	if (!change)
		change = change_new(ifname, ifindex);
	if (!change) {
		log_error("out of memory");
		return -ENOMEM;
	}
	err = ask(&call, 0);
	if (err != -EPIPE && call.answer.kind == OPENER_RESULT)
		change->vlan = call.answer.changed;
	if (!change->vlan)
		change_remove(change);
	return err;
}

void opener_port_restore(int ifindex)
{
	struct change *change = change_of(ifindex);
	struct call call;

	if (!change || opener.lost)
		return;
	call = call_of(OPENER_PORT_RESTORE, change->ifname, ifindex);
	if (!ask(&call, 0))
		change_remove(change);
}

int opener_host_port(const char *name, uint32_t mtu, bool keep)
{
	struct call call = call_of(OPENER_HOST_PORT, name, 0);

	call.request.host_port.mtu = mtu;
	call.request.host_port.keep = keep;
	return ask(&call, 0);
}

int opener_host_port_remove(const char *name)
{
	struct call call = call_of(OPENER_HOST_PORT_REMOVE, name, 0);

	return ask(&call, 0);
}

int opener_peer_name(const char *ifname, int ifindex, char *name, size_t size)
{
	struct call call = call_of(OPENER_PEER_NAME, ifname, ifindex);
	int err = ask(&call, 0);

	snprintf(name, size, "%.*s", err ? 0 : (int)sizeof(call.answer.name), call.answer.name);
	return err;
}

/* --- without the helper --- */

int opener_drop_privileges(const struct privileges_user *user)
{
	int err = privileges_become(user);

	if (!err)
		err = privileges_keep(0);
	return err ? err : confine_frames(opener.fd, opener.pid);
}
