/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "xdp/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "xdp/uapi.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
	__has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define ARGS_MAX 2

/* A call that is allowed, if its arguments are these. */
struct rule {
	int call;
	unsigned args;
	struct scmp_arg_cmp arg[ARGS_MAX];
};

/* An int: the kernel does not look at the upper half of its register, and so neither does a rule. */
#define INT_MASK 0xffffffffU

/* clang-format off */
#define CALL(name) { .call = SCMP_SYS(name) }
#define WITH(name, one) { .call = SCMP_SYS(name), .args = 1, .arg = { one } }
#define WITH2(name, one, two) { .call = SCMP_SYS(name), .args = 2, .arg = { one, two } }
/* Argument n is this; has none of these bits; has all of them. */
#define IS(n, value)   SCMP_CMP64(n, SCMP_CMP_MASKED_EQ, INT_MASK, (uint32_t)(value))
#define HASNT(n, bits) SCMP_CMP64(n, SCMP_CMP_MASKED_EQ, (uint32_t)(bits), 0)
#define HAS(n, bits)   SCMP_CMP64(n, SCMP_CMP_MASKED_EQ, (uint32_t)(bits), (uint32_t)(bits))
#define NULL_IS(n)     SCMP_CMP64(n, SCMP_CMP_EQ, 0)

#define SOCKET_OPTION(level, name) WITH2(setsockopt, IS(1, level), IS(2, name))

/* Files are read and never written, made, cut or changed. O_TMPFILE comes with O_WRONLY or O_RDWR. */
#define WRITES (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)

/* --- both --- */

/* What the C library, the log and reading a file take. */
static const struct rule common_rules[] = {
	/* files that are open */
	CALL(read), CALL(readv), CALL(pread64), CALL(write), CALL(writev), CALL(close), CALL(fstat),
	CALL(lseek), CALL(fcntl), CALL(dup), CALL(dup2), CALL(dup3), CALL(poll), CALL(ppoll),
	CALL(fstatfs), CALL(getdents64), WITH(ioctl, IS(1, TCGETS)),
	/* files by name */
	WITH(open, HASNT(1, WRITES)), WITH(openat, HASNT(2, WRITES)), CALL(stat), CALL(lstat),
	CALL(newfstatat), CALL(statx), CALL(statfs), CALL(access), CALL(faccessat), CALL(faccessat2),
	CALL(readlink), CALL(readlinkat), CALL(getcwd),
	/* memory, but nothing to be executed */
	CALL(brk), CALL(munmap), CALL(mremap), CALL(madvise), WITH(mmap, HASNT(2, PROT_EXEC)),
	WITH(mprotect, HASNT(2, PROT_EXEC)),
	/* signals, time, itself */
	CALL(rt_sigaction), CALL(rt_sigprocmask), CALL(rt_sigreturn), CALL(rt_sigtimedwait),
	CALL(rt_sigpending), CALL(sigaltstack), CALL(restart_syscall), CALL(nanosleep),
	CALL(clock_nanosleep), CALL(clock_gettime), CALL(clock_getres), CALL(gettimeofday),
	CALL(time), CALL(getpid), CALL(gettid), CALL(getppid), CALL(getuid), CALL(geteuid),
	CALL(getgid), CALL(getegid), CALL(getresuid), CALL(getresgid), CALL(getgroups),
	CALL(capget), CALL(uname), CALL(sysinfo), CALL(getrusage), CALL(getrlimit),
	CALL(getrandom), CALL(sched_getaffinity), CALL(sched_yield), CALL(futex), CALL(rseq),
	CALL(set_robust_list), CALL(exit), CALL(exit_group), WITH(prctl, IS(0, PR_SET_NAME)),
	WITH(prctl, IS(0, PR_CAPBSET_READ)), WITH(prctl, IS(0, PR_GET_NO_NEW_PRIVS)),
	/* a netlink socket, which carries what ethtool(8) asks as well */
	WITH(socket, IS(0, AF_NETLINK)), CALL(getsockopt), CALL(getsockname), CALL(recvfrom),
	CALL(recvmsg), CALL(shutdown), WITH(ioctl, IS(1, SIOCETHTOOL)),
};

/* --- frames --- */

/*
 * bind(2), connect(2) and sockets but of netlink are not there: what is bound to a device is the opener's to bind,
 * and everything else was opened before. sendto(2) with an address is for netlink, whose addresses are shorter than
 * those that would make a packet socket send on any interface.
 */
static const struct rule frames_rules[] = {
	/* rings and maps */
	WITH(sendto, NULL_IS(4)), WITH(sendto, IS(5, sizeof(struct sockaddr_nl))),
	SOCKET_OPTION(SOL_XDP, XDP_RX_RING), SOCKET_OPTION(SOL_XDP, XDP_TX_RING),
	SOCKET_OPTION(SOL_XDP, XDP_UMEM_FILL_RING), SOCKET_OPTION(SOL_XDP, XDP_UMEM_COMPLETION_RING),
	SOCKET_OPTION(SOL_SOCKET, SO_PREFER_BUSY_POLL), SOCKET_OPTION(SOL_SOCKET, SO_BUSY_POLL),
	SOCKET_OPTION(SOL_PACKET, PACKET_ADD_MEMBERSHIP),
	SOCKET_OPTION(SOL_PACKET, PACKET_DROP_MEMBERSHIP),
	SOCKET_OPTION(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP),
	WITH(bpf, IS(0, BPF_MAP_LOOKUP_ELEM)), WITH(bpf, IS(0, BPF_MAP_UPDATE_ELEM)),
	WITH(bpf, IS(0, BPF_MAP_DELETE_ELEM)), WITH(bpf, IS(0, BPF_MAP_GET_NEXT_KEY)),
	WITH(bpf, IS(0, BPF_OBJ_GET_INFO_BY_FD)), WITH(bpf, IS(0, BPF_LINK_DETACH)),
	CALL(membarrier),
	/* memory of frames */
	CALL(memfd_create), CALL(ftruncate), CALL(mbind),
	/* threads, of this process alone */
	WITH(clone, HAS(0, CLONE_THREAD)), CALL(sched_setaffinity),
	/* the event loop */
	CALL(epoll_create1), CALL(epoll_ctl), CALL(epoll_wait), CALL(epoll_pwait), CALL(epoll_pwait2),
	CALL(eventfd2), CALL(timerfd_create), CALL(timerfd_settime), CALL(timerfd_gettime),
	CALL(signalfd4),
	/* operators, and the socket's file at the end */
	CALL(accept4), CALL(flock), CALL(unlink),
	/* the helper that has ended */
	CALL(wait4),
};

/* --- the opener's helper --- */

static const struct rule opener_rules[] = {
	/* sockets, and what they are for */
	WITH(socket, IS(0, AF_XDP)), WITH(socket, IS(0, AF_PACKET)), CALL(bind), CALL(sendto),
	CALL(sendmsg), WITH(setsockopt, IS(1, SOL_XDP)), WITH(setsockopt, IS(1, SOL_SOCKET)),
	WITH(setsockopt, IS(1, SOL_PACKET)), WITH(setsockopt, IS(1, SOL_NETLINK)),
	/* the program, and who else has one */
	WITH(bpf, IS(0, BPF_MAP_CREATE)), WITH(bpf, IS(0, BPF_MAP_LOOKUP_ELEM)),
	WITH(bpf, IS(0, BPF_MAP_UPDATE_ELEM)), WITH(bpf, IS(0, BPF_MAP_FREEZE)),
	WITH(bpf, IS(0, BPF_BTF_LOAD)), WITH(bpf, IS(0, BPF_PROG_LOAD)),
	WITH(bpf, IS(0, BPF_PROG_BIND_MAP)), WITH(bpf, IS(0, BPF_LINK_CREATE)),
	WITH(bpf, IS(0, BPF_LINK_DETACH)), WITH(bpf, IS(0, BPF_OBJ_GET)),
	WITH(bpf, IS(0, BPF_OBJ_GET_INFO_BY_FD)), WITH(bpf, IS(0, BPF_PROG_GET_FD_BY_ID)),
	WITH(bpf, IS(0, BPF_LINK_GET_FD_BY_ID)), WITH(bpf, IS(0, BPF_LINK_GET_NEXT_ID)),
	/* limits and priorities */
	CALL(prlimit64), CALL(setrlimit), CALL(sched_setscheduler),
};

/* --- the helper where there may be dispatchers --- */

/* libxdp links programs to its dispatcher and pins them, under a lock. The pipe is a program's in the place of a link. */
static const struct rule dispatcher_rules[] = {
	CALL(flock), CALL(mkdir), CALL(mkdirat), CALL(unlink), CALL(unlinkat), CALL(rmdir),
	CALL(pipe), CALL(pipe2), WITH(bpf, IS(0, BPF_OBJ_PIN)),
	WITH(bpf, IS(0, BPF_RAW_TRACEPOINT_OPEN)), WITH(bpf, IS(0, BPF_BTF_GET_FD_BY_ID)),
	WITH(bpf, IS(0, BPF_MAP_GET_FD_BY_ID)),
};

/* --- a build with a sanitizer --- */

/* Its own threads, its maps of the address space, its search for leaks from a process of its own, and its
 * symbolizer: what is confined in such a build is confined less, and it is for tests alone. */
static const struct rule sanitizer_rules[] = {
	CALL(clone), CALL(wait4), CALL(getdents), CALL(tkill), CALL(pipe), CALL(mincore),
	CALL(ptrace), CALL(prctl), CALL(mmap), CALL(mprotect), CALL(open), CALL(openat), CALL(pipe2), CALL(execve), CALL(personality), CALL(prlimit64), CALL(setrlimit),
	CALL(arch_prctl), CALL(set_tid_address), CALL(process_vm_readv), CALL(kill), CALL(tgkill),
	CALL(sched_getscheduler), CALL(sched_getparam), CALL(mlock), CALL(munlock), CALL(unlink),
};

/* clang-format on */

/* --- installing --- */

#define COUNT(rules) (sizeof(rules) / sizeof((rules)[0]))

static int add(scmp_filter_ctx filter, const struct rule *rules, size_t count)
{
	int err = 0;

	for (size_t i = 0; !err && i < count; i++)
		err = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, rules[i].call, rules[i].args,
					     rules[i].arg);
	return err;
}

static int set_attributes(scmp_filter_ctx filter, bool log)
{
	int err = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);

	if (!err)
		err = seccomp_attr_set(filter, SCMP_FLTATR_CTL_LOG, log);
	/* The kernel's own error in the place of one for all. */
	if (!err)
		err = seccomp_attr_set(filter, SCMP_FLTATR_API_SYSRAWRC, 1);
	/* A tree: a call whose arguments are looked at, such as the wake-up to send, is near its root. */
	if (!err)
		err = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	return err;
}

/* Hands the filter over to the kernel unless `err` says that it is not complete, and frees it. */
static int load(scmp_filter_ctx filter, int err)
{
	if (!err)
		err = seccomp_load(filter);
	if (filter)
		seccomp_release(filter);
	return err;
}

/* Rules of one purpose. */
struct rules {
	const struct rule *rule;
	size_t count;
};

/*
 * What clone3(2) is given cannot be looked at: it fails as where the kernel has none, and the library falls back to
 * clone(2), whose flags can be. A filter of its own, which the other one lets decide: this one leaves no line in
 * the kernel's log, where one for each thread that is made would look like an attack.
 */
static int refuse_clone3(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int err = filter ? set_attributes(filter, false) : -ENOMEM;

	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	return load(filter, err);
}

static int allow_only(struct rules own, struct rules more, struct rules special)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int err = filter ? set_attributes(filter, true) : -ENOMEM;

	if (!err)
		err = add(filter, common_rules, COUNT(common_rules));
	if (!err)
		err = add(filter, own.rule, own.count);
	if (!err)
		err = add(filter, more.rule, more.count);
	if (!err)
		err = add(filter, special.rule, special.count);
	if (!err && SANITIZED)
		err = add(filter, sanitizer_rules, COUNT(sanitizer_rules));
	if (!err) /* refuse_clone3() decides */
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone3), 0);
	return load(filter, err);
}

static int install(struct rules own, struct rules more, struct rules special)
{
	int err = refuse_clone3();

	if (!err)
		err = allow_only(own, more, special);
	if (err)
		log_error("no seccomp filter can be set: " ERR_FORMAT
			  "; the kernel needs CONFIG_SECCOMP_FILTER, a systemd unit seccomp in "
			  "SystemCallFilter=; --keep-privileges goes on without",
			  ERR_ARGS(err));
	return err;
}

int confine_frames(int opener_fd, pid_t opener)
{
	const struct rule special[] = {
		WITH(sendmsg, IS(0, opener_fd)),
		WITH(kill, IS(0, opener)),
		WITH(tgkill, IS(0, getpid())),
		/* Limits are asked for, and not set. */
		WITH(prlimit64, NULL_IS(2)),
	};

	return install((struct rules){ frames_rules, COUNT(frames_rules) }, (struct rules){ 0 },
		       (struct rules){ special, COUNT(special) });
}

int confine_opener(pid_t client, bool dispatchers)
{
	const struct rule special[] = {
		/* No signal: whether a thread is the client's. */
		WITH2(tgkill, IS(0, client), IS(2, 0)),
		WITH(tgkill, IS(0, getpid())),
	};

	return install((struct rules){ opener_rules, COUNT(opener_rules) },
		       (struct rules){ dispatcher_rules,
				       dispatchers ? COUNT(dispatcher_rules) : 0 },
		       (struct rules){ special, COUNT(special) });
}
