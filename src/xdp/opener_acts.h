/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The acts that need a privilege, besides those that have a module of their own (prog, offload): what
 * the opener's helper process does when asked. Each works in whatever process calls it. One thread.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "xdp/umem_view.h"

/* Says which capabilities are missing, all of them in one message, and whether this kernel and sandbox
 * have AF_XDP. Returns 0, or -EPERM, -EAFNOSUPPORT or another -errno after a message. */
int act_check(void);

/*
 * Makes sure that this process can register `bytes` as UMEM: by CAP_IPC_LOCK, by the present
 * RLIMIT_MEMLOCK, or by raising it. Returns 0, or -ENOBUFS after a message that names the bytes
 * needed and allowed. Only where this is neither surely enough nor surely too little (another
 * process of this user may have locked memory) can act_socket() still say -ENOBUFS.
 */
int act_memlock(uint64_t bytes);

/*
 * Makes an AF_XDP socket and, if `view` is not NULL, registers its frames with it; the mapping may go
 * afterwards. Returns the fd, which the caller owns, or -errno after a message that names ifname and
 * queue: -EAFNOSUPPORT, -EPERM (CAP_NET_RAW), -ENOBUFS (memlock), -ENOMEM, -EMFILE. Memory of a socket
 * that was closed a moment ago still counts against memlock: that is waited for, up to half a second;
 * -ECANCELED, without a message, if meanwhile a signal to end is pending.
 */
int act_socket(const char *ifname, uint32_t queue, const struct umem_view *view);

/*
 * Lets the socket run the driver's NAPI from its owner's calls (SO_PREFER_BUSY_POLL), for up to
 * ACT_BUSY_POLL_US and `budget` frames a call; over 64 needs CAP_NET_ADMIN. Returns 0, or -errno after
 * a message: -ENOPROTOOPT from a kernel before 5.11 or without CONFIG_NET_RX_BUSY_POLL.
 */
int act_busy_poll(int fd, const char *ifname, uint32_t queue, unsigned budget);

#define ACT_BUSY_POLL_US 20 /* xdpsock's */

/* Puts the thread under SCHED_FIFO at this priority, 1 to 99. Returns 0, or -EPERM (CAP_SYS_NICE, or a
 * control group without real-time share) after a message. */
int act_realtime(pid_t tid, unsigned priority);

/*
 * Turns on promiscuous mode, counted by the kernel: it ends when the last copy of the returned fd is
 * closed, and leaves other users' promiscuity alone. Returns the fd, which the caller owns, or -errno
 * after a message: -EPERM (CAP_NET_RAW), -ENODEV, -EMFILE.
 */
int act_promiscuous(const char *ifname, int ifindex);
