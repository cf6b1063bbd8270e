/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "xdp/dispatcher.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cap-ng.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include <xdp/libxdp.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/signals.h"
#include "xdp/attached.h"
#include "xdp/netdev.h"

/* How long a millraced that is just ending may take to leave, as for a link. */
#define LEAVING_NS     NSEC_PER_SEC
#define LEAVING_NAP_US 20000

/* libxdp has room for so many programs in a dispatcher (MAX_DISPATCHER_ACTIONS). */
#define PROGRAMS_MAX 10

#define WAY_OUT "use attach-method = link (as a flag --attach-method=link)"

/* --- what the library says --- */

/* Its first warning since this was emptied, or else its first remark: later ones say what failed because of
 * that. */
static char reason[256];
static bool reason_is_warning;

static int print(enum libxdp_print_level level, const char *format, va_list args)
{
	char line[sizeof(reason)];

	if (level == LIBXDP_DEBUG || reason_is_warning || (level == LIBXDP_INFO && reason[0]))
		return 0;
	vsnprintf(line, sizeof(line), format, args);
	line[strcspn(line, "\n")] = '\0';
	snprintf(reason, sizeof(reason), "%s", strncmp(line, "libxdp: ", 8) ? line : line + 8);
	reason_is_warning = level == LIBXDP_WARN;
	return 0;
}

static void listen_to_library(void)
{
	libxdp_set_print(print);
	reason[0] = '\0';
	reason_is_warning = false;
}

/* --- what is there --- */

/* NULL: no program is there, or one that stands alone, for all that can be told. The caller closes it. */
static struct xdp_multiprog *dispatcher_of(int ifindex)
{
	struct xdp_multiprog *found = xdp_multiprog__get_from_ifindex(ifindex);

	if (libxdp_get_error(found))
		return NULL;
	/* Where it may not look at it closely, it is neither. */
	if (!xdp_multiprog__is_legacy(found) && xdp_multiprog__main_prog(found))
		return found;
	xdp_multiprog__close(found);
	return NULL;
}

/* Its member of that id; NULL: none. */
static struct xdp_program *member_of(const struct xdp_multiprog *dispatcher, uint32_t prog_id)
{
	struct xdp_program *one = NULL;

	while (dispatcher && (one = xdp_multiprog__next_prog(one, dispatcher))) {
		if (xdp_program__id(one) == prog_id)
			return one;
	}
	return NULL;
}

bool dispatcher_has(int ifindex, uint32_t prog_id)
{
	struct xdp_multiprog *dispatcher;
	bool found;

	listen_to_library();
	dispatcher = dispatcher_of(ifindex);
	found = member_of(dispatcher, prog_id);
	xdp_multiprog__close(dispatcher);
	return found;
}

/* --- leaving --- */

static int take_out(const struct xdp_multiprog *dispatcher, struct xdp_program *one, int ifindex)
{
	int err = xdp_program__detach(one, ifindex, xdp_multiprog__attach_mode(dispatcher), 0);

	return err == -ENOENT ? 0 : err; /* by somebody else in the meantime */
}

/* The folder of libxdp's pins, locked as the library does that. Returns its fd, or -errno. */
static int lock_pins(void)
{
	const char *mount = secure_getenv("LIBXDP_BPFFS");
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/xdp", mount ? mount : "/sys/fs/bpf");
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || !flock(fd, LOCK_EX))
		return fd < 0 ? -errno : fd;
	close(fd);
	return -errno;
}

static bool is_pin_of(int pins, const char *name, uint32_t prog_id)
{
	struct bpf_prog_info info = { 0 };
	__u32 len = sizeof(info);
	char path[512];
	bool same;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", pins, name);
	fd = bpf_obj_get(path);
	if (fd < 0)
		return false;
	same = !bpf_obj_get_info_by_fd(fd, &info, &len) && info.id == prog_id;
	close(fd);
	return same;
}

/* Of one dispatcher: its first program, if that is this one and the only one. */
static void forget_lone(int pins, const char *folder, uint32_t prog_id)
{
	char program[320], link[320], second[320];

	snprintf(program, sizeof(program), "%s/prog0-prog", folder);
	snprintf(link, sizeof(link), "%s/prog0-link", folder);
	snprintf(second, sizeof(second), "%s/prog1-prog", folder);
	if (!faccessat(pins, second, F_OK, 0) || !is_pin_of(pins, program, prog_id))
		return;
	(void)unlinkat(pins, link, 0);
	(void)unlinkat(pins, program, 0);
	(void)unlinkat(pins, folder, AT_REMOVEDIR);
}

void dispatcher_forget(int ifindex, uint32_t prog_id)
{
	int pins = lock_pins();
	int copy = pins < 0 ? -1 : fcntl(pins, F_DUPFD_CLOEXEC, 3);
	DIR *folder = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;
	char lead[32];

	snprintf(lead, sizeof(lead), "dispatch-%d-", ifindex);
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream has one reader */
	while (folder && (entry = readdir(folder))) {
		if (!strncmp(entry->d_name, lead, strlen(lead)))
			forget_lone(pins, entry->d_name, prog_id);
	}
	if (folder)
		closedir(folder);
	else if (copy >= 0)
		close(copy);
	if (pins >= 0)
		close(pins); /* the lock goes with it */
}

bool dispatcher_leave(const char *ifname, int ifindex, uint32_t prog_id)
{
	struct xdp_multiprog *dispatcher;
	struct xdp_program *one;
	int err = 0;

	if (netdev_gone(ifindex))
		return false;
	listen_to_library();
	dispatcher = dispatcher_of(ifindex);
	one = member_of(dispatcher, prog_id);
	if (one)
		err = take_out(dispatcher, one, ifindex);
	else /* its dispatcher was taken off, and what that had pinned is nobody's */
		dispatcher_forget(ifindex, prog_id);
	xdp_multiprog__close(dispatcher);
	if (err)
		log_warning("%s: our XDP program cannot be taken out of the dispatcher: " ERR_FORMAT
			    "%s%s; `xdp-loader unload %s -i %u` does that",
			    ifname, ERR_ARGS(err), reason[0] ? ", " : "", reason, ifname, prog_id);
	return true;
}

/* --- of other millraceds --- */

/* Somebody else's may have that name, and has not that map. */
static bool has_our_map(uint32_t prog_id)
{
	uint32_t ids[64];
	struct bpf_prog_info info = { .nr_map_ids = 64, .map_ids = (uintptr_t)ids };
	__u32 len = sizeof(info);
	int fd = bpf_prog_get_fd_by_id(prog_id);
	bool found = false;

	if (fd < 0)
		return false;
	if (bpf_obj_get_info_by_fd(fd, &info, &len))
		info.nr_map_ids = 0;
	close(fd);
	for (uint32_t i = 0; !found && i < info.nr_map_ids && i < sizeof(ids) / sizeof(ids[0]);
	     i++) {
		struct bpf_map_info map = { 0 };
		__u32 map_len = sizeof(map);

		fd = bpf_map_get_fd_by_id(ids[i]);
		found = fd >= 0 && !bpf_obj_get_info_by_fd(fd, &map, &map_len) &&
			map.type == BPF_MAP_TYPE_XSKMAP && !strcmp(map.name, PROG_XSKMAP_NAME);
		if (fd >= 0)
			close(fd);
	}
	return found;
}

static struct xdp_program *millraceds(const struct xdp_multiprog *dispatcher)
{
	struct xdp_program *one = NULL;

	while (dispatcher && (one = xdp_multiprog__next_prog(one, dispatcher))) {
		if (!strcmp(xdp_program__name(one), PROG_NAME) && has_our_map(xdp_program__id(one)))
			return one;
	}
	return NULL;
}

/* Who runs has it open. */
static bool is_in_use(int ifindex, const struct xdp_program *one, struct attached *found)
{
	*found = (struct attached){ .ifindex = ifindex, .prog_id = xdp_program__id(one) };
	attached_find_holder(found);
	return found->holder;
}

/*
 * Programs of a dispatcher outlive their millraced, if that and its helper are killed. Returns 0 when none is
 * there any more, -EAGAIN if one is that somebody has open, in *found, or another -errno.
 */
static int take_out_left_over(const struct prog_opts *opts, struct attached *found)
{
	struct xdp_multiprog *dispatcher = dispatcher_of(opts->ifindex);
	struct xdp_program *one = millraceds(dispatcher);
	int err = 0;

	if (one && is_in_use(opts->ifindex, one, found)) {
		err = -EAGAIN;
	} else if (one) {
		log_warning("%s: XDP program %u '%s', which a millraced that was killed left in "
			    "the dispatcher, is taken out",
			    opts->ifname, xdp_program__id(one), PROG_NAME);
		err = take_out(dispatcher, one, opts->ifindex);
	}
	xdp_multiprog__close(dispatcher);
	return err;
}

/* Returns 0, or -errno after a message. */
static int make_way(const struct prog_opts *opts)
{
	uint64_t start_ns = clock_now_ns();
	struct attached found;

	for (;;) {
		int err = take_out_left_over(opts, &found);

		if (err != -EAGAIN) {
			if (err)
				log_error("%s: the XDP program that a millraced left in the "
					  "dispatcher cannot be taken out: " ERR_FORMAT "%s%s",
					  opts->ifname, ERR_ARGS(err), reason[0] ? ", " : "",
					  reason);
			return err;
		}
		if (signals_end_asked())
			return -ECANCELED;
		if (clock_now_ns() - start_ns > LEAVING_NS)
			break;
		usleep(LEAVING_NAP_US);
	}
	log_error("%s: another millraced serves it, whose XDP program %u is in the dispatcher and "
		  "which pid %d (%s) has open; end that first",
		  opts->ifname, found.prog_id, (int)found.holder, found.holder_name);
	return -EBUSY;
}

int dispatcher_take_off(int ifindex)
{
	struct xdp_multiprog *dispatcher;
	struct xdp_program *one;
	struct attached found;
	int err = -ENOENT;

	listen_to_library();
	dispatcher = dispatcher_of(ifindex);
	one = millraceds(dispatcher);
	if (one && is_in_use(ifindex, one, &found))
		err = -EBUSY;
	else if (dispatcher)
		err = xdp_multiprog__detach(dispatcher);
	xdp_multiprog__close(dispatcher);
	return err;
}

/* --- attaching --- */

static void unavailable(const struct prog_opts *opts, int err, const char *why)
{
	log_error("%s: dispatcher unavailable: %s: " ERR_FORMAT "; " WAY_OUT, opts->ifname, why,
		  ERR_ARGS(err));
}

/* A kernel that forbids programs of this type, to everybody, does so before it looks at anything else; any
 * other one misses what is to be replaced (-EINVAL). */
int dispatcher_check(const struct prog_opts *opts)
{
	const struct bpf_insn nothing[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd;

	capng_get_caps_process();
	if (!capng_have_capability(CAPNG_EFFECTIVE, CAP_SYS_ADMIN)) {
		unavailable(opts, -EPERM,
			    "CAP_SYS_ADMIN is missing, which libxdp needs, or was given up, "
			    "for the file at the start had no such port");
		return -EPERM;
	}
	fd = bpf_prog_load(BPF_PROG_TYPE_EXT, "probe", "GPL", nothing, 2, NULL);
	if (fd >= 0)
		close(fd);
	if (fd != -EPERM && fd != -EACCES)
		return 0;
	unavailable(opts, fd, "this kernel refuses BPF programs of type EXT");
	return fd;
}

/* It is in the way, and what to type. */
static void stands_alone(const struct prog_opts *opts, struct attached *other)
{
	char text[160];

	attached_find_holder(other);
	attached_describe(other, text, sizeof(text));
	if (!strcmp(other->name, DISPATCHER_NAME))
		log_error(
			"%s: %s is attached, but what it runs is pinned in no bpf file system that we "
			"see, and it is left alone; mount that (LIBXDP_BPFFS names another one "
			"than /sys/fs/bpf), or `ip link set dev %s %s off`",
			opts->ifname, text, opts->ifname, attached_ip_word(other));
	else
		log_error("%s: %s is attached by itself, not through a dispatcher, and is left "
			  "alone; end its owner, or `ip link set dev %s %s off`%s",
			  opts->ifname, text, opts->ifname, attached_ip_word(other),
			  opts->replace ? "" : ", or start with --replace");
}

static void attach_failed(const struct prog_opts *opts, int err, bool shared)
{
	struct attached other;

	if (err == -ECANCELED)
		return;
	if (err == -ENOSYS)
		unavailable(opts, err, reason[0] ? reason : "libxdp cannot make one here");
	else if (shared)
		log_error(
			"%s: our XDP program cannot be added to the dispatcher that is there: " ERR_FORMAT
			"%s%s; if a program there is not built for fragments (xdp.frags), an MTU "
			"that needs them is refused for all: lower the MTU, or take it out "
			"(`xdp-loader status %s`)",
			opts->ifname, ERR_ARGS(err), reason[0] ? ", " : "", reason, opts->ifname);
	else if (!attached_find(opts->ifindex, &other))
		stands_alone(opts, &other);
	else
		log_error("%s: no XDP through a dispatcher: " ERR_FORMAT "%s%s; " WAY_OUT,
			  opts->ifname, ERR_ARGS(err), reason[0] ? ", " : "", reason);
}

/*
 * Returns 0, or -errno: -ENOSYS if the library found that it can do no more than attach our program alone,
 * which it takes for success, and which is undone.
 */
static int attach_once(struct xdp_program *program, int ifindex, enum xdp_attach_mode mode)
{
	struct xdp_multiprog *found;
	int err = xdp_program__attach(program, ifindex, mode, 0);

	if (err)
		return err;
	found = xdp_multiprog__get_from_ifindex(ifindex);
	if (!libxdp_get_error(found) && xdp_multiprog__is_legacy(found)) {
		const struct xdp_program *top = xdp_multiprog__main_prog(found);

		if (top && xdp_program__id(top) == xdp_program__id(program)) {
			(void)xdp_multiprog__detach(found);
			err = -ENOSYS;
		}
	}
	if (!libxdp_get_error(found))
		xdp_multiprog__close(found);
	return err;
}

/* Refusals that skb mode would meet as well. */
static bool refused_in_any_mode(int err)
{
	return err == -EPERM || err == -EACCES || err == -EBUSY || err == -EEXIST ||
	       err == -ENODEV || err == -ENOSYS || err == -ENOMEM;
}

static int attach_as_asked(struct xdp_program *program, const struct prog_opts *opts,
			   const struct xdp_multiprog *shared, bool *native)
{
	enum xdp_attach_mode mode =
		opts->attach == PROG_ATTACH_SKB ? XDP_MODE_SKB : XDP_MODE_NATIVE;
	int err, native_err;

	if (shared)
		mode = xdp_multiprog__attach_mode(shared);
	err = native_err = attach_once(program, opts->ifindex, mode);
	if (err && !refused_in_any_mode(err) && !shared && opts->attach == PROG_ATTACH_AUTO) {
		mode = XDP_MODE_SKB;
		err = attach_once(program, opts->ifindex, mode);
		if (!err)
			log_warning("%s: no native XDP (" ERR_FORMAT
				    "): attached in skb mode, which is several times slower",
				    opts->ifname, ERR_ARGS(native_err));
	}
	*native = mode == XDP_MODE_NATIVE;
	return err;
}

/* A dispatcher has one mode for all. */
static int check_mode(const struct xdp_multiprog *shared, const struct prog_opts *opts)
{
	bool native = xdp_multiprog__attach_mode(shared) == XDP_MODE_NATIVE;

	if (opts->attach == PROG_ATTACH_AUTO || native == (opts->attach == PROG_ATTACH_NATIVE))
		return 0;
	log_error("%s: the dispatcher that is there is attached in %s mode, for all its programs; "
		  "ask for attach = %s (as a flag %s), or leave it to be told",
		  opts->ifname, native ? "native" : "skb", native ? "native" : "skb",
		  native ? "-N" : "-S");
	return -EINVAL;
}

/* Ours is built for packets in several buffers, and is run on them only if all of them are. */
static void tell_fragments(const struct prog_opts *opts)
{
	struct xdp_multiprog *dispatcher = dispatcher_of(opts->ifindex);

	if (dispatcher && !xdp_multiprog__xdp_frags_support(dispatcher))
		log_info("%s: the dispatcher takes no packets of several buffers, for not all "
			 "programs in it are built for them (xdp.frags; `xdp-loader status %s`): "
			 "an MTU that needs them will be refused",
			 opts->ifname, opts->ifname);
	xdp_multiprog__close(dispatcher);
}

static int attach(struct xdp_program *program, const struct prog_opts *opts, bool *native)
{
	struct xdp_multiprog *shared;
	int err = make_way(opts);

	if (err)
		return err;
	shared = dispatcher_of(opts->ifindex);
	err = shared ? check_mode(shared, opts) : 0;
	if (!err) {
		listen_to_library();
		err = attach_as_asked(program, opts, shared, native);
		if (err)
			attach_failed(opts, err, shared);
		else
			tell_fragments(opts);
	}
	xdp_multiprog__close(shared);
	return err;
}

int dispatcher_attach(struct bpf_object *object, const struct prog_opts *opts, bool *native)
{
	struct xdp_program *program;
	int err;

	listen_to_library();
	program = xdp_program__from_bpf_obj(object, NULL);
	err = (int)libxdp_get_error(program);
	if (!err) /* the library does not see it in the name of the section */
		err = xdp_program__set_xdp_frags_support(program, true);
	if (err)
		unavailable(opts, err, reason[0] ? reason : "libxdp does not take our program");
	else
		err = attach(program, opts, native);
	if (!libxdp_get_error(program))
		xdp_program__close(program);
	return err;
}
