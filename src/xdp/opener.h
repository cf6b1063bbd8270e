/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every act that needs a privilege, and nothing else: each is asked of a helper process, which keeps the
 * capabilities, and whose answers are file descriptors that work without any. So this process can drop
 * all of them before it touches a frame, and still open ports and sockets later.
 *
 *	this process                     helper, forked by opener_start()
 *	opener.c  --- opener_proto.h --> opener_helper.c --> opener_acts.c, prog.c, opener_traces.c
 *	                                       |
 *	                                 opener_permits.c: what the configuration has
 *
 * The helper does only what the configuration has: it touches the devices and queues that are named there, as
 * is said there, whatever its client asks. It ends with this process, however
 * that ends, and first undoes what the kernel does not undo by itself. What an act logs is logged by
 * this process. Main thread; one helper a process.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/number.h"
#include "xdp/privileges.h"
#include "xdp/prog.h"
#include "xdp/umem.h"
#include "xdp/xsk.h"

struct opener_permits;

/* What may be done with one device, as the configuration has it. */
struct opener_permit {
	const char *device; /* its name, or an alternative one */
	const char *xskmap; /* pinned, to be filled in the place of our program's; NULL: ours */
	const struct number_list *queues; /* that get sockets; NULL: any */
	bool dispatcher;		  /* ours goes beside others, and gets no link */
	bool replace;			  /* take another program off */
	bool vlan_offload;		  /* switch it off */
	bool busy_poll;
};

/* Permits it, besides all that was permitted before. Nothing of *permit must stay. Returns 0 or -ENOMEM. */
int opener_permit_device(struct opener_permits *permits, const struct opener_permit *permit);

/* Permits real-time priorities up to this one. */
void opener_permit_realtime(struct opener_permits *permits, unsigned priority);

struct opener_opts {
	/* Permits what the configuration has. Runs in the helper: once for the one that is in memory, then, as at
	 * each opener_refresh(), for the one that is read afresh. It believes nothing that the client says.
	 * Returns 0, or -errno after a message. */
	int (*permit)(void *context, bool afresh, struct opener_permits *permits);
	void *context;
	/* The helper gives up what the configuration does not need, and is confined (confine.h). */
	bool confined;
	const struct privileges_user *user; /* if confined: whom both processes run as */
	/* An operator at a terminal is told by name whose program is in the way, which takes more capabilities. */
	bool by_hand;
};

/*
 * Forks the helper. Before the first other thread. *opts must stay. Returns 0, or -errno after a message:
 * -EMFILE, -EAGAIN, or what `permit` says. opener_stop() follows in any case.
 */
int opener_start(const struct opener_opts *opts);

/*
 * The helper puts back what it changed on the host, and ends; 0.8 s are waited for that. Never started,
 * gone or already stopped is fine.
 */
void opener_stop(void);

/* Becomes readable when the helper is gone, and never else; then opener_lost() says so. -1: not started, or
 * that was said. */
int opener_fd(void);

/* Reaps the helper that is gone, and says once what nobody does any more, with what to type instead. */
void opener_lost(void);

/*
 * All that follow return what the act does, or -EPIPE after a message if the helper is gone, or -EMFILE
 * after one if an answer's fds find no room. Those that wait for something return -ECANCELED,
 * without a message, when a signal to end is pending. What the configuration does not have is
 * refused with -EACCES, a device that is no more with -ENODEV; both after a message.
 */

/* The helper reads the configuration again, and may do what is new there as well as what was there before: a
 * reload that fails goes back to that. */
int opener_refresh(void);

/* Says which capabilities are missing, all of them in one message, and whether this kernel and sandbox
 * have AF_XDP. -EPERM, -EAFNOSUPPORT or another -errno after a message. */
int opener_check(void);

/* Makes sure, as far as can be told, that `bytes` can be registered as UMEM: -ENOBUFS, after a message that
 * names the bytes needed and allowed, where RLIMIT_MEMLOCK is too small and cannot be raised. */
int opener_memlock(uint64_t bytes);

/* Loads and attaches the XDP program of a port into *prog, which the caller closes; returns and messages
 * are prog_open()'s. */
int opener_attach(const struct prog_opts *opts, struct prog *prog);

/* Attaches a program that was detached once more, in the mode that it had, and takes over the new link in the
 * place of the old one. Of one in a dispatcher another instance is attached, as opts->attach and opts->queues say,
 * with the same maps. Returns and `rival` are prog_attach_again()'s, 0 being good. */
int opener_attach_again(const struct prog_opts *opts, struct prog *prog, char *rival);

/* Whether a program is among those of the device's dispatcher: 0 or -ENOENT. */
int opener_dispatched(const char *ifname, int ifindex, uint32_t prog_id);

/* prog_detach(), and waits until a program in a dispatcher is taken out. Without the helper it stays there, and
 * that is said. */
void opener_detach(const char *ifname, int ifindex, struct prog *prog);

/*
 * Makes an AF_XDP socket for a device and queue and, if `umem` is not NULL, registers its frames with
 * it. Returns the fd, which the caller owns, or -errno after a message that names ifname and queue:
 * -EAFNOSUPPORT, -EPERM (CAP_NET_RAW), -ENOBUFS (memlock), -ENOMEM, -EMFILE.
 */
int opener_socket(const char *ifname, int ifindex, uint32_t queue, const struct umem *umem);

/*
 * Binds such a socket, whose rings have their sizes, with opts->shared_fd if that is one: as xsk_bind(). This
 * process could, but does not: a socket goes to a device and queue of the configuration and nowhere else.
 * -EACCES after a message for another.
 */
int opener_bind(int fd, const char *ifname, const struct xsk_bind_opts *opts);

/* Lets such a socket run the driver's NAPI from its owner's calls, `budget` frames a call. -ENOPROTOOPT,
 * after a message, from a kernel before 5.11 or without CONFIG_NET_RX_BUSY_POLL. */
int opener_busy_poll(int fd, const char *ifname, int ifindex, uint32_t queue, unsigned budget);

/* Puts a thread of this process under SCHED_FIFO at this priority, 1 to 99. -EPERM, after a message,
 * without CAP_SYS_NICE or in a control group without real-time share. */
int opener_realtime(pid_t tid, unsigned priority);

/* Turns on promiscuous mode for as long as the returned fd, which the caller owns, is open. */
int opener_promiscuous(const char *ifname, int ifindex);

/* Makes a packet socket for copies, of a port with this policy. Returns the fd, which the caller owns, or
 * -errno after a message; it is packet_open()'s. */
int opener_packet(const char *ifname, int ifindex, const struct steer_maps *maps);

/*
 * Makes the device leave VLAN tags in the frames that it receives, which lasts until
 * opener_port_restore(), opener_stop() or this process's death. Returns 0, also if it did so before, in
 * which case nothing is ever put back; or -EOPNOTSUPP after a message if the driver cannot.
 */
int opener_vlan_offload(const char *ifname, int ifindex);

/* Puts back what was changed on a device. If nothing was, or the device is gone: fine. */
void opener_port_restore(int ifindex);

/*
 * Makes a host port, or keeps the one there is: host_port_make(). The helper removes it at its end, unless
 * `keep`, which may be said anew each time. The configuration must name its near end.
 */
int opener_host_port(const char *name, uint32_t mtu, bool keep);

/* Removes one that opener_host_port() made, unless it is to be kept. Others: nothing. */
int opener_host_port_remove(const char *name);

/* netdev_peer_name() with the helper's privileges: also of another network namespace. */
int opener_peer_name(const char *ifname, int ifindex, char *name, size_t size);

/*
 * Runs as that user, gives up every capability of this process, as privileges_keep(), and confines it to what its part takes, as
 * confine_frames(). After opener_start(), and before the first other thread. Returns 0, or -errno after a message.
 */
int opener_drop_privileges(const struct privileges_user *user);
