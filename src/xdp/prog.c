/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "xdp/prog.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/membarrier.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/signals.h"
#include "millrace_shared.h"
#include "xdp/attached.h"
#include "xdp/dispatcher.h"

/* Said again outside a system header, or clang's analyser holds that it keeps what it frees. */
void bpf_object__destroy_skeleton(struct bpf_object_skeleton *s);

#include "millrace.skel.h"

_Static_assert(PROG_NAME_SIZE == BPF_OBJ_NAME_LEN && PROG_TAG_BYTES == BPF_TAG_SIZE,
	       "the kernel's sizes");

/* How long a program of that name may take to leave. */
#define LEAVING_NS     NSEC_PER_SEC
#define LEAVING_NAP_US 5000

/* The first warning of libbpf since this was emptied, without its newline: later ones only say what
 * failed because of it. Where it goes on without is not what anything failed of. */
static char libbpf_reason[256];

/* What the verifier says last of the program it refused; "": it refused none. */
static char verifier_reason[160];

/* The log ends with the complaint, and a line of what was looked at for it. */
static void note_verifier_log(char *log)
{
	char *rest, *line;

	for (line = strtok_r(log, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (!strncmp(line, "processed ", 10) || strstr(line, "-- END PROG LOAD LOG"))
			return;
		if (strstr(line, "-- BEGIN PROG LOAD LOG"))
			continue;
		snprintf(verifier_reason, sizeof(verifier_reason), "%s", line);
	}
}

static bool is_verifier_log(const char *format, va_list args)
{
	va_list again;
	char *text;
	int len;

	va_copy(again, args);
	len = strstr(format, "PROG LOAD LOG") ? vasprintf(&text, format, again) : -1;
	va_end(again);
	if (len < 0)
		return false;
	note_verifier_log(text);
	free(text);
	return true;
}

static int libbpf_print(enum libbpf_print_level level, const char *format, va_list args)
{
	char line[sizeof(libbpf_reason)];
	char *start = line;

	if (is_verifier_log(format, args))
		return 0;
	vsnprintf(line, sizeof(line), format, args);
	line[strcspn(line, "\n")] = '\0';
	if (!strncmp(line, "libbpf: ", 8))
		start += 8;
	if (level == LIBBPF_WARN && !libbpf_reason[0] && !strstr(start, "BTF") &&
	    !strstr(start, "bump RLIMIT_MEMLOCK"))
		snprintf(libbpf_reason, sizeof(libbpf_reason), "%s", start);
	return 0;
}

static int dup_cloexec(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	return copy < 0 ? -errno : copy;
}

/*
 * bpf_link_create() gives an errno and no words. The older netlink way gives the driver's words, so
 * ask it for the same refusal. Should it succeed after all, undo it: this is only a question.
 */
static void ask_kernel_reason(int prog_fd, int ifindex, int err, char *text, size_t size)
{
	__u32 flags = XDP_FLAGS_DRV_MODE | XDP_FLAGS_UPDATE_IF_NOEXIST;
	static const char lead[] = "Kernel error message: ";
	const char *reason = NULL;

	libbpf_reason[0] = '\0';
	if (!bpf_xdp_attach(ifindex, prog_fd, flags, NULL))
		bpf_xdp_detach(ifindex, XDP_FLAGS_DRV_MODE, NULL);
	else if (!strncmp(libbpf_reason, lead, sizeof(lead) - 1))
		reason = libbpf_reason + sizeof(lead) - 1;
	if (reason)
		snprintf(text, size, "%s, %s", err_name(err), reason);
	else
		snprintf(text, size, ERR_FORMAT, ERR_ARGS(err));
}

static int link_create_once(int prog_fd, int ifindex, bool native)
{
	DECLARE_LIBBPF_OPTS(bpf_link_create_opts, opts,
			    .flags = native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE);
	int fd = bpf_link_create(prog_fd, ifindex, BPF_XDP, &opts);

	return fd < 0 ? -errno : fd;
}

/* A millraced that was killed a moment ago holds its link until the kernel has taken it apart, which
 * takes longer than starting the next one. A program whose name is not told may be of one. */
static int link_create(int prog_fd, int ifindex, bool native)
{
	uint64_t start_ns = clock_now_ns();

	for (;;) {
		int fd = link_create_once(prog_fd, ifindex, native);
		struct attached other;

		if (fd != -EBUSY && fd != -EEXIST)
			return fd;
		if (!attached_find(ifindex, &other) && other.name[0] &&
		    strcmp(other.name, PROG_NAME) != 0)
			return fd;
		if (signals_end_asked())
			return -ECANCELED;
		if (clock_now_ns() - start_ns > LEAVING_NS)
			return fd;
		usleep(LEAVING_NAP_US);
	}
}

/* Refusals that skb mode would meet as well, so that falling back would only hide them. */
static bool refused_in_any_mode(int err)
{
	return err == -EBUSY || err == -EEXIST || err == -EPERM || err == -EACCES ||
	       err == -ENODEV || err == -EMFILE || err == -ENFILE || err == -ENOSYS ||
	       err == -ECANCELED;
}

/* A running one holds its program by a link, and nobody but its end takes that away. */
static bool is_millraced(const struct attached *other)
{
	return other->link_id &&
	       (!strcmp(other->name, PROG_NAME) || !strcmp(other->holder_name, "millraced"));
}

static bool is_dispatcher(const struct attached *other)
{
	return !strcmp(other->name, DISPATCHER_NAME);
}

/* What helps against the other program, besides --replace. */
static void describe_way_out(const char *ifname, const struct attached *other, char *text,
			     size_t size)
{
	if (is_dispatcher(other))
		snprintf(text, size,
			 "share it by attach-method = dispatcher (as a flag "
			 "--attach-method=dispatcher)");
	else if (other->holder_has_link)
		snprintf(text, size, "end pid %d", (int)other->holder);
	else if (other->link_id)
		snprintf(text, size, "end its owner (`bpftool link show id %u`)", other->link_id);
	else
		snprintf(text, size, "`ip link set dev %s %s off`", ifname,
			 attached_ip_word(other));
}

static void occupied(const struct prog_opts *opts)
{
	struct attached other;
	char text[160], way_out[112];

	if (attached_find(opts->ifindex, &other)) {
		log_error("%s: another XDP program is attached; see `bpftool net`", opts->ifname);
		return;
	}
	attached_find_holder(&other);
	attached_describe(&other, text, sizeof(text));
	describe_way_out(opts->ifname, &other, way_out, sizeof(way_out));
	if (is_millraced(&other))
		log_error("%s: another millraced serves it, whose %s is attached; %s first%s",
			  opts->ifname, text, way_out, opts->replace ? ", --replace does not" : "");
	else
		log_error("%s: %s is attached and is left alone; %s%s", opts->ifname, text, way_out,
			  opts->replace ? "" : ", or start with --replace");
}

#define NO_BPF_ADVICE "the kernel needs CONFIG_BPF_SYSCALL, a systemd unit bpf in SystemCallFilter="

/* The capabilities were there, see opener_check(). */
#define SANDBOX_ADVICE                                                                           \
	"a seccomp filter (systemd: SystemCallFilter= without bpf), an LSM, lockdown or a user " \
	"namespace forbids bpf() in spite of the capabilities"

static void attach_failed(const struct prog_opts *opts, const char *mode, int err,
			  const char *reason)
{
	const char *ifname = opts->ifname;

	if (err == -ECANCELED)
		return; /* asked to end, nothing wrong */
	if (err == -EBUSY || err == -EEXIST)
		occupied(opts);
	else if (err == -EPERM || err == -EACCES)
		log_error("%s: not allowed to attach an XDP program: " ERR_FORMAT
			  "; " SANDBOX_ADVICE,
			  ifname, ERR_ARGS(err));
	else if (err == -ENOSYS)
		log_error("%s: no XDP program can be attached: " ERR_FORMAT "; " NO_BPF_ADVICE,
			  ifname, ERR_ARGS(err));
	else if (refused_in_any_mode(err))
		log_error("%s: no XDP program can be attached: " ERR_FORMAT, ifname, ERR_ARGS(err));
	else
		log_error("%s: no XDP in %s mode: %s%s%s", ifname, mode, reason,
			  err == -EINVAL ? "; attaching by bpf_link needs Linux 5.9" : "",
			  strcmp(mode, "native") ?
				  "" :
				  "; without -N, in a file attach = native, skb mode is tried too");
}

/* Programs that a dispatcher runs go with it, and so do their pins, if we see them. */
static int take_off(const struct attached *other)
{
	int err = is_dispatcher(other) ? dispatcher_take_off(other->ifindex) : -ENOENT;

	return err == -ENOENT ? attached_take_off(other) : err;
}

/* For --replace: an empty device before we attach, which the kernel does not do in one step for a link. */
static int take_off_other(const struct prog_opts *opts)
{
	struct attached other;
	char text[160];
	int err = attached_find(opts->ifindex, &other);

	if (err)
		return 0; /* nothing there, or attaching tells what is wrong */
	attached_find_holder(&other);
	if (is_millraced(&other) || !strcmp(other.name, PROG_NAME))
		return 0; /* attaching waits for it if it is about to leave, and else refuses */
	if (opts->dispatcher && is_dispatcher(&other))
		return 0; /* there is room in it */
	attached_describe(&other, text, sizeof(text));
	err = take_off(&other);
	if (!err)
		log_warning("%s: %s was taken off for --replace and will not be put back",
			    opts->ifname, text);
	else if (err == -EPERM || err == -EACCES)
		log_error("%s: %s is held by a bpf_link, and only CAP_SYS_ADMIN can take it off "
			  "for --replace: " ERR_FORMAT "; run as root, or end its owner",
			  opts->ifname, text, ERR_ARGS(err));
	else
		log_error("%s: %s cannot be taken off for --replace: " ERR_FORMAT
			  "; end its owner, see `bpftool link` and `bpftool net`",
			  opts->ifname, text, ERR_ARGS(err));
	return err;
}

static int attach_as(struct prog *prog, int prog_fd, int ifindex, bool native)
{
	int fd = link_create(prog_fd, ifindex, native);

	if (fd < 0)
		return fd;
	prog->link_fd = fd;
	prog->native = native;
	return 0;
}

static int attach(struct prog *prog, int prog_fd, const struct prog_opts *opts)
{
	char native_reason[320], reason[320];
	int native_err = 0, err;

	if (opts->attach != PROG_ATTACH_SKB) {
		native_err = attach_as(prog, prog_fd, opts->ifindex, true);
		if (!native_err)
			return 0;
		snprintf(native_reason, sizeof(native_reason), ERR_FORMAT, ERR_ARGS(native_err));
		if (!refused_in_any_mode(native_err))
			ask_kernel_reason(prog_fd, opts->ifindex, native_err, native_reason,
					  sizeof(native_reason));
		if (opts->attach == PROG_ATTACH_NATIVE || refused_in_any_mode(native_err)) {
			attach_failed(opts, "native", native_err, native_reason);
			return native_err;
		}
	}
	err = attach_as(prog, prog_fd, opts->ifindex, false);
	if (err) {
		snprintf(reason, sizeof(reason), ERR_FORMAT, ERR_ARGS(err));
		attach_failed(opts, "skb", err, reason);
	} else if (native_err) {
		log_warning(
			"%s: no native XDP (%s): attached in skb mode, which is several times slower",
			opts->ifname, native_reason);
	}
	return err;
}

static void load_failed(const char *ifname, int err)
{
	if (verifier_reason[0])
		log_error(
			"%s: the verifier of this kernel refuses our XDP program (%s): %s; please "
			"report it with what `uname -r` says",
			ifname, err_name(err), verifier_reason);
	else if (err == -EPERM || err == -EACCES)
		log_error("%s: not allowed to load the XDP program: " ERR_FORMAT
			  "; " SANDBOX_ADVICE,
			  ifname, ERR_ARGS(err));
	else if (err == -ENOSYS)
		log_error("%s: no BPF: " ERR_FORMAT "; " NO_BPF_ADVICE, ifname, ERR_ARGS(err));
	else if (refused_in_any_mode(err) || err == -ENOMEM)
		log_error("%s: the XDP program cannot be loaded: " ERR_FORMAT, ifname,
			  ERR_ARGS(err));
	else
		log_error("%s: the kernel refuses the XDP program: " ERR_FORMAT "%s%s", ifname,
			  ERR_ARGS(err), libbpf_reason[0] ? "; " : "", libbpf_reason);
}

void prog_maps(const struct prog *prog, int fd[PROG_MAPS])
{
	fd[0] = prog->xsks_fd;
	fd[1] = prog->count_fd;
	memcpy(&fd[2], prog->steer.fd, sizeof(prog->steer.fd));
}

void prog_set_maps(struct prog *prog, const int fd[PROG_MAPS])
{
	prog->xsks_fd = fd[0];
	prog->count_fd = fd[1];
	memcpy(prog->steer.fd, &fd[2], sizeof(prog->steer.fd));
}

/* In the order of prog_maps(). */
static void list_maps(const struct millrace_bpf *skeleton, struct bpf_map *map[PROG_MAPS])
{
	map[0] = skeleton->maps.millrace_xsks;
	map[1] = skeleton->maps.millrace_count;
	map[2 + STEER_POLICY] = skeleton->maps.millrace_policy;
	map[2 + STEER_OWN] = skeleton->maps.millrace_own;
	map[2 + STEER_RULES] = skeleton->maps.millrace_rules;
	map[2 + STEER_MACS] = skeleton->maps.millrace_macs;
	map[2 + STEER_HITS] = skeleton->maps.millrace_hits;
}

/* Before it is loaded. */
static int use_maps_of(const struct millrace_bpf *skeleton, const struct prog *other)
{
	struct bpf_map *map[PROG_MAPS];
	int fd[PROG_MAPS], err = 0;

	list_maps(skeleton, map);
	prog_maps(other, fd);
	for (int i = 0; !err && i < PROG_MAPS; i++)
		err = bpf_map__reuse_fd(map[i], fd[i]);
	return err;
}

/* Takes what outlives the skeleton: the program and its maps. */
static int keep_fds(struct prog *prog, const struct millrace_bpf *skeleton)
{
	struct bpf_map *map[PROG_MAPS];
	int fd[PROG_MAPS] = { 0 };
	struct bpf_prog_info info = { 0 };
	__u32 len = sizeof(info);
	int err = 0;

	list_maps(skeleton, map);
	for (int i = 0; !err && i < PROG_MAPS; i++) {
		fd[i] = dup_cloexec(bpf_map__fd(map[i]));
		err = fd[i] < 0 ? fd[i] : 0;
	}
	prog_set_maps(prog, fd);
	if (err)
		return err;
	prog->prog_fd = dup_cloexec(bpf_program__fd(skeleton->progs.millrace));
	if (prog->prog_fd < 0)
		return prog->prog_fd;
	if (bpf_obj_get_info_by_fd(bpf_program__fd(skeleton->progs.millrace), &info, &len))
		return 0;
	prog->id = info.id;
	snprintf(prog->name, sizeof(prog->name), "%s", info.name);
	memcpy(prog->tag, info.tag, sizeof(prog->tag));
	return 0;
}

/* The truth about the mode is the kernel's list of what is attached where, not what we asked for. */
static void read_back_mode(struct prog *prog, int ifindex)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);

	if (!bpf_xdp_query(ifindex, 0, &query) && prog->id)
		prog->native = query.drv_prog_id == prog->id;
}

static uint32_t id_of(int prog_fd)
{
	struct bpf_prog_info info = { 0 };
	__u32 len = sizeof(info);

	return bpf_obj_get_info_by_fd(prog_fd, &info, &len) ? 0 : info.id;
}

/* Loading is a part of attaching there. Returns 0, or -errno after a message. */
static int open_dispatched(struct prog *prog, const struct millrace_bpf *skeleton,
			   const struct prog_opts *opts)
{
	int err = dispatcher_check(opts);

	if (!err && opts->replace)
		err = take_off_other(opts);
	if (!err && opts->maps_of) {
		err = use_maps_of(skeleton, opts->maps_of);
		if (err)
			load_failed(opts->ifname, err);
	}
	if (!err)
		err = dispatcher_attach(skeleton->obj, opts, &prog->native);
	if (err)
		return err;
	prog->dispatched = true;
	err = keep_fds(prog, skeleton);
	if (!err)
		return 0;
	load_failed(opts->ifname, err);
	/* By the skeleton's: what we have of it may be half. */
	(void)dispatcher_leave(opts->ifname, opts->ifindex,
			       id_of(bpf_program__fd(skeleton->progs.millrace)));
	return err;
}

int prog_open(struct prog *prog, const struct prog_opts *opts)
{
	struct millrace_bpf *skeleton;
	int err;

	*prog = (struct prog){ 0 };
	libbpf_set_print(libbpf_print);
	libbpf_reason[0] = verifier_reason[0] = '\0';
	skeleton = millrace_bpf__open();
	if (!skeleton) {
		err = -errno;
		load_failed(opts->ifname, err);
		return err;
	}
	bpf_map__set_max_entries(skeleton->maps.millrace_xsks, opts->queues);
	if (opts->dispatcher) {
		err = open_dispatched(prog, skeleton, opts);
		goto out;
	}
	err = millrace_bpf__load(skeleton);
	if (!err)
		err = keep_fds(prog, skeleton);
	if (err) {
		load_failed(opts->ifname, err);
		goto out;
	}
	if (opts->replace)
		err = take_off_other(opts);
	if (!err)
		err = attach(prog, prog->prog_fd, opts);
	if (!err)
		read_back_mode(prog, opts->ifindex);
out:
	millrace_bpf__destroy(skeleton);
	if (err)
		prog_close(prog);
	return err;
}

enum prog_fate prog_fate(const struct prog *prog)
{
	struct bpf_link_info info = { 0 };
	__u32 len = sizeof(info);

	if (prog->link_fd <= 0)
		return prog->prog_fd > 0 ? PROG_DETACHED : PROG_ATTACHED;
	if (bpf_obj_get_info_by_fd(prog->link_fd, &info, &len))
		return PROG_ATTACHED;
	if (!info.xdp.ifindex)
		return PROG_DETACHED;
	return prog->id && info.prog_id != prog->id ? PROG_REPLACED : PROG_ATTACHED;
}

int prog_attach_again(int prog_fd, const struct prog_opts *opts, char *rival)
{
	char text[160], way_out[112];
	struct attached other;
	int fd;

	rival[0] = '\0';
	libbpf_set_print(libbpf_print);
	if (opts->replace)
		(void)take_off_other(opts);
	fd = link_create_once(prog_fd, opts->ifindex, opts->attach == PROG_ATTACH_NATIVE);
	if (fd >= 0 || attached_find(opts->ifindex, &other))
		return fd;
	attached_find_holder(&other);
	attached_describe(&other, text, sizeof(text));
	describe_way_out(opts->ifname, &other, way_out, sizeof(way_out));
	snprintf(rival, PROG_RIVAL_SIZE, "%s is in its place; %s", text, way_out);
	return fd;
}

static uint64_t *filled_word(const struct prog *prog, uint32_t queue)
{
	return &prog->filled[queue / 64];
}

int prog_slot_set(const struct prog *prog, uint32_t queue, int xsk_fd)
{
	if (prog->external && (!prog->filled || queue >= PROG_FILLED_SLOTS))
		return -E2BIG;
	if (bpf_map_update_elem(prog->xsks_fd, &queue, &xsk_fd,
				prog->external ? BPF_NOEXIST : BPF_ANY))
		return -errno;
	if (prog->external)
		*filled_word(prog, queue) |= 1ULL << queue % 64;
	return 0;
}

static int slot_update(const struct prog *prog, uint32_t queue, int fd, uint64_t flags)
{
	return bpf_map_update_elem(prog->xsks_fd, &queue, &fd, flags) ? -errno : 0;
}

int prog_slot_keep(const struct prog *prog, uint32_t queue, int xsk_fd, int probe_fd)
{
	bool emptied;
	int err;

	if (prog->external && (!prog->filled || queue >= PROG_FILLED_SLOTS ||
			       !(*filled_word(prog, queue) & 1ULL << queue % 64)))
		return PROG_SLOT_OURS; /* it was not set */
	emptied = probe_fd >= 0 && !slot_update(prog, queue, probe_fd, BPF_NOEXIST);
	/* The kernel takes the socket that is there already for no change. */
	err = slot_update(prog, queue, xsk_fd, emptied ? BPF_ANY : BPF_NOEXIST);
	if (err == -EEXIST)
		return PROG_SLOT_STOLEN;
	return err ? err : emptied ? PROG_SLOT_EMPTIED : PROG_SLOT_OURS;
}

void prog_slot_clear(const struct prog *prog, uint32_t queue)
{
	if (prog->xsks_fd <= 0)
		return;
	if (prog->external) {
		if (!prog->filled || queue >= PROG_FILLED_SLOTS ||
		    !(*filled_word(prog, queue) & 1ULL << queue % 64))
			return;
		*filled_word(prog, queue) &= ~(1ULL << queue % 64);
	}
	(void)bpf_map_delete_elem(prog->xsks_fd, &queue);
}

void prog_settle(void)
{
	/* Programs, and the flush behind them, run with softirqs off, which the kernel's RCU waits for;
	 * this is its way to ask for that (synchronize_rcu() in kernel/sched/membarrier.c). */
	(void)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
}

int prog_counts(const struct prog *prog, struct prog_counts *counts)
{
	int cpus = libbpf_num_possible_cpus();
	struct millrace_counts *per_cpu;
	struct prog_counts sum = { 0 };
	uint32_t zero = 0;
	int err = 0;

	if (prog->count_fd <= 0)
		return -EBADF;
	if (cpus < 0)
		return cpus;
	per_cpu = calloc((size_t)cpus, sizeof(*per_cpu));
	if (!per_cpu)
		return -ENOMEM;
	if (bpf_map_lookup_elem(prog->count_fd, &zero, per_cpu))
		err = -errno;
	for (int i = 0; !err && i < cpus; i++) {
		sum.seen += per_cpu[i].seen;
		sum.passed += per_cpu[i].passed;
	}
	free(per_cpu);
	if (!err)
		*counts = sum;
	return err;
}

void prog_detach(struct prog *prog)
{
	if (prog->link_fd <= 0)
		return;
	if (!prog->dispatched)
		(void)bpf_link_detach(prog->link_fd);
	close(prog->link_fd);
	prog->link_fd = -1;
}

static void close_fd(int fd)
{
	if (fd > 0)
		close(fd);
}

void prog_close(struct prog *prog)
{
	prog_detach(prog);
	close_fd(prog->prog_fd);
	close_fd(prog->xsks_fd);
	close_fd(prog->count_fd);
	for (int i = 0; i < STEER_MAPS; i++)
		close_fd(prog->steer.fd[i]);
	free(prog->filled);
	*prog = (struct prog){ 0 };
}
