/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "xdp/opener_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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
#include "xdp/offload.h"
#include "xdp/opener_acts.h"
#include "xdp/opener_proto.h"
#include "xdp/packet.h"
#include "xdp/privileges.h"
#include "xdp/uapi.h"

/* The socket to the client in this process; what is above it is closed. */
#define SOCKET_FD (STDERR_FILENO + 1)

/* How many programs in dispatchers are waited for between two requests, which is all that two forwards of the
 * most ports can have; any more are looked at with the next request. */
#define DISPATCHED_WATCHED (2 * CONF_PORTS_MAX)

/* Devices that are remembered, those of an earlier time making room: more than are ever served. One that is made
 * anew each hour has another number each time. */
#define DEVICES_KNOWN 256
#define CHANGES_AWAY  64

/* Devices that went away with a program of ours are remembered, for some are moved back: so many, or one that is
 * made anew each hour would fill the memory with programs. */
#define DISPATCHED_GONE 16

/* Slots that an XSKMAP is made with: more than any card has queues. */
#define QUEUES_MAX 65536

/* The kernel's ALTIFNAMSIZ. */
#define DEVICE_NAME_SIZE 128

/* Queues that a permit can name: as many as a socket can be bound to. Beyond are none. */
#define QUEUES_PERMITTED 4096
#define WORD_BITS	 64

/* What may be done with a device. */
struct allowed {
	bool any_queue;
	uint64_t queue[QUEUES_PERMITTED / WORD_BITS];
	bool program;	 /* ours may be attached by a link */
	bool dispatcher; /* ours may be put beside others */
	bool xskmap;	 /* the one that was asked for may be filled */
	bool replace, vlan_offload, busy_poll;
};

struct permit {
	char device[DEVICE_NAME_SIZE];
	char xskmap[PROG_PATH_SIZE]; /* "": our own program */
	struct allowed allowed;
};

struct opener_permits {
	struct permit *permit;
	unsigned count;
	unsigned realtime; /* the highest priority; 0: none */
};

/* A device of which something was changed that the kernel does not undo by itself, nor when it is moved to another
 * network namespace. */
struct change {
	int ifindex;
	unsigned vlan; /* enum offload_vlan */
	bool away;     /* it is in no namespace of ours; should it come back, it has these: */
	char ifname[NETDEV_NAME_SIZE];
	uint8_t mac[MAC_LEN];
};

/* A device that the configuration named when it was first asked for: it stays the same one when it is renamed. */
struct known {
	int ifindex;
	char device[DEVICE_NAME_SIZE]; /* the name it was known by */
};

/* A program of ours in a dispatcher, where it stays until it is taken out: as long as the client keeps the other
 * end of a pipe open, which stands for a bpf_link's fd. */
struct dispatched {
	int ifindex;
	char ifname[NETDEV_NAME_SIZE];
	uint32_t prog_id;
	int fd; /* our end of the pipe; -1: let go of when its device was not there to be looked at */
};

/* A host port that is to be removed at the end, unless it is to be kept. */
struct host_port {
	char name[NETDEV_NAME_SIZE];
	bool keep;
};

struct helper {
	int fd;
	pid_t client;
	const struct opener_opts *opts;
	struct opener_permits permits;
	struct change *change;
	unsigned changes;
	struct known known[DEVICES_KNOWN];
	unsigned knowns; /* those before are kept at their number modulo the room */
	struct dispatched *dispatched;
	unsigned dispatches;
	bool begun;
	struct host_port *host_port;
	unsigned host_ports;
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

static void permit_queues(struct allowed *allowed, const struct number_list *queues)
{
	allowed->any_queue = !queues;
	for (unsigned i = 0; queues && i < queues->count; i++) {
		unsigned queue = queues->value[i];

		if (queue < QUEUES_PERMITTED)
			allowed->queue[queue / WORD_BITS] |= 1ULL << queue % WORD_BITS;
	}
}

int opener_permit_device(struct opener_permits *permits, const struct opener_permit *permit)
{
	struct permit added;
	void *grown;

	memset(&added, 0, sizeof(added));
	added.allowed.program = !permit->xskmap && !permit->dispatcher;
	added.allowed.dispatcher = permit->dispatcher;
	added.allowed.xskmap = permit->xskmap;
	added.allowed.replace = permit->replace;
	added.allowed.vlan_offload = permit->vlan_offload;
	added.allowed.busy_poll = permit->busy_poll;
	snprintf(added.device, sizeof(added.device), "%s", permit->device);
	snprintf(added.xskmap, sizeof(added.xskmap), "%s", permit->xskmap ? permit->xskmap : "");
	permit_queues(&added.allowed, permit->queues);
	for (unsigned i = 0; i < permits->count; i++) {
		/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): zeroed as a whole */
		if (!memcmp(&permits->permit[i], &added, sizeof(added)))
			return 0;
	}
	grown = reallocarray(permits->permit, permits->count + 1, sizeof(*permits->permit));
	if (!grown)
		return -ENOMEM;
	permits->permit = grown;
	permits->permit[permits->count++] = added;
	return 0;
}

void opener_permit_realtime(struct opener_permits *permits, unsigned priority)
{
	if (priority > permits->realtime)
		permits->realtime = priority;
}

/* Adds what one permit allows; of maps the one that is asked for. */
static void allow(struct allowed *all, const struct permit *permit, const char *xskmap)
{
	const struct allowed *more = &permit->allowed;

	all->any_queue |= more->any_queue;
	for (size_t i = 0; i < sizeof(all->queue) / sizeof(all->queue[0]); i++)
		all->queue[i] |= more->queue[i];
	all->program |= more->program;
	all->dispatcher |= more->dispatcher;
	all->xskmap |= more->xskmap && !strcmp(permit->xskmap, xskmap);
	all->replace |= more->replace;
	all->vlan_offload |= more->vlan_offload;
	all->busy_poll |= more->busy_poll;
}

struct match {
	const struct opener_permits *permits;
	const char *xskmap;
	char first[NETDEV_NAME_SIZE]; /* the kernel's own name */
	char as[DEVICE_NAME_SIZE];    /* the name that the configuration has */
	struct allowed allowed;
	bool found;
};

static void match_name(const char *name, void *context)
{
	struct match *match = context;

	if (!match->first[0])
		snprintf(match->first, sizeof(match->first), "%s", name);
	for (unsigned i = 0; i < match->permits->count; i++) {
		const struct permit *permit = &match->permits->permit[i];

		if (strcmp(permit->device, name) != 0)
			continue;
		match->found = true;
		snprintf(match->as, sizeof(match->as), "%s", name);
		allow(&match->allowed, permit, match->xskmap);
	}
}

static struct known *known_of(struct helper *helper, int ifindex)
{
	for (unsigned i = 0; i < DEVICES_KNOWN; i++) {
		if (helper->known[i].ifindex == ifindex)
			return &helper->known[i];
	}
	return NULL;
}

static void forget_known(struct helper *helper, int ifindex)
{
	struct known *known = known_of(helper, ifindex);

	if (known)
		*known = (struct known){ 0 };
}

/* Also by the name that it had. */
static void match_known(struct helper *helper, int ifindex, struct match *match)
{
	struct known *known = known_of(helper, ifindex);

	if (!match->found) {
		if (known)
			match_name(known->device, match);
		return;
	}
	if (!known)
		known = &helper->known[helper->knowns++ % DEVICES_KNOWN];
	known->ifindex = ifindex;
	memcpy(known->device, match->as, sizeof(known->device));
}

/* After a message. */
static int refuse(struct serving *serving, int err)
{
	serving->refused = true;
	return err;
}

/* Whether the configuration names the device, by what the kernel says and not the client, and with what. */
static int check_device(struct serving *serving)
{
	struct match match = { .permits = &serving->helper->permits, .xskmap = "" };
	char xskmap[PROG_PATH_SIZE];
	int err;

	if (serving->request->op == OPENER_ATTACH) {
		snprintf(xskmap, sizeof(xskmap), "%.*s", PROG_PATH_SIZE - 1,
			 serving->request->attach.xskmap);
		match.xskmap = xskmap;
	}
	err = netdev_names_of(serving->request->ifindex, match_name, &match);
	if (err == -ENODEV)
		log_error("%s: the device went away: " ERR_FORMAT "; `ip link` shows what there is",
			  serving->ifname, ERR_ARGS(err));
	else if (err)
		log_error("%s: cannot be looked up: " ERR_FORMAT, serving->ifname,
			  ERR_SANDBOX_ARGS(err));
	if (err == -ENODEV)
		forget_known(serving->helper, serving->request->ifindex);
	if (err)
		return err;
	match_known(serving->helper, serving->request->ifindex, &match);
	memcpy(serving->ifname, match.first, sizeof(serving->ifname));
	serving->allowed = match.allowed;
	if (match.found)
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
	const struct allowed *allowed = &serving->allowed;
	char what[32];

	snprintf(what, sizeof(what), "queue %u", queue);
	return check_allowed(serving,
			     queue < QUEUES_PERMITTED &&
				     (allowed->any_queue || allowed->queue[queue / WORD_BITS] &
								    1ULL << queue % WORD_BITS),
			     what);
}

/* --- what was changed --- */

static struct change *change_of(struct helper *helper, int ifindex)
{
	for (unsigned i = 0; i < helper->changes; i++) {
		if (helper->change[i].ifindex == ifindex && !helper->change[i].away)
			return &helper->change[i];
	}
	return NULL;
}

/* The device is away, and what was changed of it is with it. */
static void keep_away(struct helper *helper, struct change *change)
{
	unsigned away = 0, first = 0;

	change->away = true;
	for (unsigned i = helper->changes; i--;) {
		if (helper->change[i].away) {
			away++;
			first = i;
		}
	}
	if (away <= CHANGES_AWAY)
		return;
	helper->changes--;
	memmove(&helper->change[first], &helper->change[first + 1],
		(helper->changes - first) * sizeof(*helper->change));
}

/* It may be one that was away, also if it has another number now. */
static void come_back(struct helper *helper, const struct netdev_event *device)
{
	for (unsigned i = 0; i < helper->changes; i++) {
		struct change *change = &helper->change[i];

		if (!change->away || strcmp(change->ifname, device->name) != 0 ||
		    memcmp(change->mac, device->mac, MAC_LEN) != 0)
			continue;
		change->away = false;
		change->ifindex = device->ifindex;
		return;
	}
}

/* The device's entry, a new one if it has none. Made before the change, so that none goes unremembered. Returns
 * 0, or -errno without a message. */
static int change_new(struct helper *helper, int ifindex, struct change **change)
{
	struct netdev_event device;
	struct change *grown;
	int err = netdev_look(ifindex, &device);

	if (err)
		return err;
	come_back(helper, &device);
	*change = change_of(helper, ifindex);
	if (*change)
		return 0;
	grown = reallocarray(helper->change, helper->changes + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	helper->change = grown;
	*change = &helper->change[helper->changes++];
	**change = (struct change){ .ifindex = ifindex };
	memcpy((*change)->ifname, device.name, sizeof((*change)->ifname));
	memcpy((*change)->mac, device.mac, sizeof((*change)->mac));
	return 0;
}

/* A device that is gone has nothing to be put back. */
static void put_back(const struct change *change)
{
	const struct opener_permits none = { 0 };
	struct match match = { .permits = &none };
	char command[96];
	int err;

	if (!change->vlan || change->away || netdev_names_of(change->ifindex, match_name, &match))
		return;
	err = offload_vlan_on(match.first, change->vlan);
	if (!err || err == -ENODEV)
		return;
	offload_vlan_command(match.first, change->vlan, command, sizeof(command));
	log_warning("%s: rx-vlan-offload was on before and cannot be switched on again: " ERR_FORMAT
		    "; try %s",
		    match.first, ERR_ARGS(err), command);
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
	bool looks = helper->opts->by_hand, shares = false;

	for (unsigned i = 0; i < helper->permits.count; i++) {
		looks |= helper->permits.permit[i].allowed.replace;
		shares |= helper->permits.permit[i].allowed.dispatcher;
	}
	if (looks) /* at other programs, their links and who holds them; and takes them off */
		needed |= CAPABILITY(CAP_SYS_ADMIN) | CAPABILITY(CAP_SYS_PTRACE);
	if (shares) /* pins of everybody, in a folder that is root's, and who has them open */
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
	for (unsigned i = 0; i < helper->permits.count; i++) {
		const struct allowed *allowed = &helper->permits.permit[i].allowed;

		if (allowed->dispatcher || allowed->replace)
			return true;
	}
	return false;
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

/* --- programs in dispatchers --- */

static void remove_dispatched(struct helper *helper, unsigned index)
{
	if (helper->dispatched[index].fd >= 0)
		close(helper->dispatched[index].fd);
	helper->dispatched[index] = helper->dispatched[--helper->dispatches];
}

/* Its device being away: the program stays there and passes everything, until the device comes back, others take
 * its place in the list, or the end. */
static void keep_gone(struct helper *helper, unsigned index)
{
	unsigned gone = 0, first = index;

	if (helper->dispatched[index].fd >= 0)
		close(helper->dispatched[index].fd);
	helper->dispatched[index].fd = -1;
	for (unsigned i = helper->dispatches; i--;) {
		if (helper->dispatched[i].fd < 0) {
			gone++;
			first = i;
		}
	}
	if (gone <= DISPATCHED_GONE)
		return;
	dispatcher_forget(helper->dispatched[first].ifindex, helper->dispatched[first].prog_id);
	remove_dispatched(helper, first);
}

static void leave_dispatcher(struct helper *helper, unsigned index)
{
	const struct dispatched *one = &helper->dispatched[index];

	if (dispatcher_leave(one->ifname, one->ifindex, one->prog_id))
		remove_dispatched(helper, index);
	else
		keep_gone(helper, index);
}

/* A device that was moved away and back still has what it had. */
static void leave_from_before(struct helper *helper, int ifindex)
{
	for (unsigned i = helper->dispatches; i--;) {
		if (helper->dispatched[i].fd < 0 && helper->dispatched[i].ifindex == ifindex)
			leave_dispatcher(helper, i);
	}
}

/* At the end. */
static void leave_for_good(struct helper *helper)
{
	for (unsigned i = 0; i < helper->dispatches; i++) {
		const struct dispatched *one = &helper->dispatched[i];

		if (!dispatcher_leave(one->ifname, one->ifindex, one->prog_id))
			dispatcher_forget(one->ifindex, one->prog_id);
	}
}

/* Takes out the programs that nobody holds any more. What is to be said of it goes to standard error: the client
 * has asked for nothing, and would take it for our end. */
static void leave_dispatchers(struct helper *helper)
{
	log_capture(NULL, NULL);
	for (unsigned i = helper->dispatches; i--;) {
		struct pollfd end = { .fd = helper->dispatched[i].fd };

		if (poll(&end, 1, 0) > 0)
			leave_dispatcher(helper, i);
	}
	log_capture(pass_on, helper);
}

/* Remembers a program that is in a dispatcher. Returns the client's end of the pipe, or -errno after a message;
 * then it is not in it any more. */
static int hold_dispatched(struct serving *serving, uint32_t prog_id)
{
	struct helper *helper = serving->helper;
	struct dispatched *grown;
	int ends[2], err = 0;

	grown = reallocarray(helper->dispatched, helper->dispatches + 1, sizeof(*grown));
	if (grown)
		helper->dispatched = grown;
	if (!grown || pipe2(ends, O_CLOEXEC)) {
		err = grown ? -errno : -ENOMEM;
		log_error("%s: the XDP program cannot be held: " ERR_FORMAT, serving->ifname,
			  ERR_ARGS(err));
		(void)dispatcher_leave(serving->ifname, serving->request->ifindex, prog_id);
		return err;
	}
	grown = &helper->dispatched[helper->dispatches++];
	*grown = (struct dispatched){
		.ifindex = serving->request->ifindex,
		.prog_id = prog_id,
		.fd = ends[0],
	};
	memcpy(grown->ifname, serving->ifname, sizeof(grown->ifname));
	return ends[1];
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
	leave_from_before(serving->helper, opts->ifindex);
	err = prog_open(prog, opts);
	opts->maps_of = NULL;
	if (err)
		return err;
	prog->link_fd = hold_dispatched(serving, prog->id);
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
	struct change *change;
	unsigned changed;
	int err = check_allowed(serving, serving->allowed.vlan_offload, "vlan-offload = off");

	if (err)
		return err;
	err = change_new(serving->helper, serving->request->ifindex, &change);
	if (err) {
		log_error("%s: cannot be looked up: " ERR_FORMAT, serving->ifname,
			  ERR_SANDBOX_ARGS(err));
		return err;
	}
	err = offload_vlan_off(serving->ifname, &changed);
	change->vlan |= changed;
	serving->answer.changed = change->vlan;
	return err;
}

static int serve_port_restore(struct serving *serving)
{
	struct helper *helper = serving->helper;
	struct change *change = change_of(helper, serving->request->ifindex);

	if (!change)
		return 0;
	if (change->vlan && netdev_gone(change->ifindex)) {
		keep_away(helper, change);
		return 0;
	}
	put_back(change);
	*change = helper->change[--helper->changes];
	return 0;
}

static int serve_peer_name(struct serving *serving)
{
	return netdev_peer_name(serving->request->ifindex, serving->answer.name,
				sizeof(serving->answer.name));
}

static struct host_port *host_port_of(const struct helper *helper, const char *name)
{
	for (unsigned i = 0; i < helper->host_ports; i++) {
		if (!strcmp(helper->host_port[i].name, name))
			return &helper->host_port[i];
	}
	return NULL;
}

/* Its entry, which had better be there before it is. NULL: no memory. */
static struct host_port *host_port_new(struct helper *helper, const char *name)
{
	struct host_port *grown =
		reallocarray(helper->host_port, helper->host_ports + 1, sizeof(*grown));

	if (!grown)
		return NULL;
	helper->host_port = grown;
	grown += helper->host_ports++;
	*grown = (struct host_port){ 0 };
	snprintf(grown->name, sizeof(grown->name), "%s", name);
	return grown;
}

static void host_port_forget(struct helper *helper, struct host_port *port)
{
	*port = helper->host_port[--helper->host_ports];
}

/* True if it is still there. */
static bool host_port_stands(const char *name)
{
	struct netdev netdev;
	char near[NETDEV_NAME_SIZE];

	host_port_near(name, near);
	return netdev_query(near, &netdev) != -ENODEV;
}

static bool is_permitted(const struct opener_permits *permits, const char *device)
{
	for (unsigned i = 0; i < permits->count; i++) {
		if (!strcmp(permits->permit[i].device, device))
			return true;
	}
	return false;
}

static int serve_host_port(struct serving *serving)
{
	const struct opener_request *request = serving->request;
	char near[NETDEV_NAME_SIZE];
	struct host_port *port;
	int err;

	/* Both ends' names must be some. */
	if (!serving->ifname[0] ||
	    strlen(serving->ifname) + sizeof(HOST_PORT_NEAR) > NETDEV_NAME_SIZE)
		return refuse(serving, -EPROTO);
	host_port_near(serving->ifname, near);
	if (!is_permitted(&serving->helper->permits, near)) {
		log_error("host-port %s: is not in the configuration, so it is not made; name it "
			  "there first",
			  serving->ifname);
		return refuse(serving, -EACCES);
	}
	port = host_port_of(serving->helper, serving->ifname);
	if (port && host_port_stands(serving->ifname)) {
		port->keep = request->host_port.keep;
		return 0;
	}
	if (!port)
		port = host_port_new(serving->helper, serving->ifname);
	if (!port) {
		log_error("out of memory");
		return -ENOMEM;
	}
	err = host_port_make(port->name, request->host_port.mtu);
	port->keep = request->host_port.keep;
	if (err)
		host_port_forget(serving->helper, port);
	return err;
}

/* Only what was made here. */
static int serve_host_port_remove(struct serving *serving)
{
	struct host_port *port = host_port_of(serving->helper, serving->ifname);
	int err = 0;

	if (!port)
		return 0;
	if (!port->keep)
		err = host_port_remove(port->name);
	host_port_forget(serving->helper, port);
	return err;
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
		unsigned count = 0;

		leave_dispatchers(helper);
		fds[count++] = (struct pollfd){ .fd = helper->fd, .events = POLLIN };
		for (unsigned i = 0; i < helper->dispatches && count < sizeof(fds) / sizeof(fds[0]);
		     i++)
			fds[count++] = (struct pollfd){ .fd = helper->dispatched[i].fd };
		if (poll(fds, count, -1) > 0 && fds[0].revents) {
			leave_dispatchers(helper);
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
	leave_for_good(&helper);
	for (unsigned i = 0; i < helper.changes; i++)
		put_back(&helper.change[i]);
	for (unsigned i = 0; i < helper.host_ports; i++) {
		if (!helper.host_port[i].keep)
			(void)host_port_remove(helper.host_port[i].name);
	}
	/* Not exit(): buffers and what is to be done at the end are the parent's. */
	_exit(EXIT_SUCCESS);
}
