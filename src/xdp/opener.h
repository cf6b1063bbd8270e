/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every act that needs a privilege, and nothing else. Each returns file descriptors that work
 * without any privilege afterwards, so that the caller can drop all of them before it touches a
 * frame. Called in this process; nothing it is given but the umem's mapping ties it to that. Main
 * thread, before the first other thread starts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "xdp/prog.h"
#include "xdp/umem.h"

/* Says which capabilities are missing, all of them in one message, and whether this kernel and sandbox
 * have AF_XDP. Returns 0, or -EPERM, -EAFNOSUPPORT or another -errno after a message. */
int opener_check(void);

/*
 * Makes sure that `bytes` can be registered as UMEM: by CAP_IPC_LOCK, by the present
 * RLIMIT_MEMLOCK, or by raising it. Returns 0, or -ENOBUFS after a message that names the bytes
 * needed and allowed. Only where this is neither surely enough nor surely too little (another
 * process of this user may have locked memory) can opener_socket() still say -ENOBUFS.
 */
int opener_memlock(uint64_t bytes);

/* Loads and attaches the XDP program of a port into *prog, which the caller closes; returns and messages
 * are prog_open()'s. */
int opener_attach(const struct prog_opts *opts, struct prog *prog);

/*
 * Makes an AF_XDP socket and, if `umem` is not NULL, registers its frames with it. Returns the fd,
 * which the caller owns, or -errno after a message that names ifname and queue: -EAFNOSUPPORT,
 * -EPERM (CAP_NET_RAW), -ENOBUFS (memlock), -ENOMEM, -EMFILE. Memory of a socket that was closed a
 * moment ago still counts against memlock: that is waited for, up to half a second; -ECANCELED, without
 * a message, if meanwhile a signal to end is pending.
 */
int opener_socket(const char *ifname, uint32_t queue, const struct umem *umem);

/*
 * Lets the socket run the driver's NAPI from its owner's calls (SO_PREFER_BUSY_POLL), for up to
 * OPENER_BUSY_POLL_US and `budget` frames a call; over 64 needs CAP_NET_ADMIN. Returns 0, or -errno after
 * a message: -ENOPROTOOPT from a kernel before 5.11 or without CONFIG_NET_RX_BUSY_POLL.
 */
int opener_busy_poll(int fd, const char *ifname, uint32_t queue, unsigned budget);

#define OPENER_BUSY_POLL_US 20 /* xdpsock's */

/*
 * Puts the calling thread under SCHED_FIFO at this priority, 1 to 99, for the threads that it starts to
 * inherit; opener_not_realtime() takes only itself out again, which needs no privilege. Returns 0, or
 * -EPERM (CAP_SYS_NICE, or a control group without real-time share) after a message.
 */
int opener_realtime(unsigned priority);
void opener_not_realtime(void);

/*
 * Turns on promiscuous mode, counted by the kernel: it ends when the returned fd is closed, by us or
 * by our death, and leaves other users' promiscuity alone. Returns the fd, which the caller owns, or
 * -errno after a message: -EPERM (CAP_NET_RAW), -ENODEV, -EMFILE.
 */
int opener_promiscuous(const char *ifname, int ifindex);

/*
 * Gives up every capability, the bounding set too, and all ways to regain one (no_new_privs), for
 * this thread and those it starts. Returns 0, or -EPERM or another -errno after a message.
 */
int opener_drop_privileges(void);
