/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The XDP program of one port: loading, attaching, its maps. Main thread only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "xdp/steer.h"

enum prog_attach {
	PROG_ATTACH_AUTO, /* native, or skb with one warning that says why */
	PROG_ATTACH_NATIVE,
	PROG_ATTACH_SKB,
};

/* The program's name in millrace.bpf.c, and how `bpftool prog` shows it. */
#define PROG_NAME "millrace"

/* Its map of sockets, as the kernel has that name. */
#define PROG_XSKMAP_NAME "millrace_xsks"

#define PROG_NAME_SIZE 16 /* BPF_OBJ_NAME_LEN */
#define PROG_TAG_BYTES 8  /* BPF_TAG_SIZE */

/* All fds are owned; 0 or less: none. */
struct prog {
	int link_fd;  /* the program is detached when the last holder of this is gone */
	int prog_fd;  /* the program itself, to attach it once more */
	int xsks_fd;  /* XSKMAP: queue -> socket */
	int count_fd; /* per-CPU struct millrace_counts */
	struct steer_maps steer;
	uint32_t id;
	char name[PROG_NAME_SIZE];   /* as the kernel has it; "" if it was not told */
	uint8_t tag[PROG_TAG_BYTES]; /* the kernel's digest of its instructions */
	bool native;		     /* as attached */
	/* It is one of a dispatcher's, and link_fd is a pipe: who has the other end takes it out. */
	bool dispatched;
	/* Of somebody else's program we have the XSKMAP, and nothing else of the above. */
	bool external;
	uint64_t *filled; /* bit n of PROG_FILLED_SLOTS: slot n is ours; owned */
};

/* Slots of an external map that can be filled: more than any card has queues that are served. */
#define PROG_FILLED_SLOTS 4096

/* Room for the path of a pinned map. */
#define PROG_PATH_SIZE 128

struct prog_counts {
	uint64_t seen;	 /* frames the program was run on */
	uint64_t passed; /* of these, given to the host's stack */
};

struct prog_opts {
	const char *ifname; /* for messages */
	int ifindex;
	uint32_t queues; /* active RX queues: slots of the XSKMAP */
	enum prog_attach attach;
	bool replace;	    /* take a program off that is not a millraced's, with a warning */
	bool dispatcher;    /* beside other programs, see dispatcher.h */
	const char *xskmap; /* pinned: fill that instead, see external_open(); NULL: no */
	/* In a dispatcher: a program whose maps are this one's too, `queues` being theirs; NULL: new ones. */
	const struct prog *maps_of;
};

/* The fds of its maps, in an order that prog_set_maps() takes as well. */
#define PROG_MAPS (2 + STEER_MAPS)
void prog_maps(const struct prog *prog, int fd[PROG_MAPS]);
void prog_set_maps(struct prog *prog, const int fd[PROG_MAPS]);

/*
 * Loads one instance and attaches it to the device by a bpf_link; with opts->dispatcher among others, and then
 * it has no link_fd and stays until dispatcher_leave(). Never replaces a program unless told
 * to, and never that of a running millraced; one of a millraced that is just ending is waited for, up to
 * a second. Needs CAP_BPF and CAP_NET_ADMIN. Returns 0, or -errno after a message that names the device
 * and what to do: -EBUSY another program is there, -EPERM a capability lacks or a sandbox refuses,
 * -EOPNOTSUPP and others where PROG_ATTACH_NATIVE cannot be had; -ECANCELED, without one, if a signal to
 * end is pending.
 */
int prog_open(struct prog *prog, const struct prog_opts *opts);

/* What has become of a program that was attached. */
enum prog_fate {
	PROG_ATTACHED,
	PROG_DETACHED, /* the link holds nothing: detached by somebody, or the device is gone */
	PROG_REPLACED, /* the link holds another program */
};

/* Asks the link, which needs no capability: detaching it is no event that anybody is told of. Where the
 * kernel does not answer, and where nothing was attached, it is PROG_ATTACHED. */
enum prog_fate prog_fate(const struct prog *prog);

/* Room for who has the place that a program is to have, and what to type against it. */
#define PROG_RIVAL_SIZE 304

/*
 * Attaches a program that was detached from its link once more: opts->attach says in which of the two modes, replace as
 * for prog_open(), queues is not used; its maps stay what they are. Waits for nobody. Returns the link's fd,
 * which the caller owns; or -errno, with `rival`, of PROG_RIVAL_SIZE, telling who is in its place, "" if
 * nobody is. Logs only what became of another program for opts->replace.
 */
int prog_attach_again(int prog_fd, const struct prog_opts *opts, char *rival);

/* Puts the socket into the queue's slot: frames come from then on. What was there is replaced, but in an
 * external map. Returns 0, or -errno: -E2BIG for a queue beyond those of prog_open(), -EINVAL for a socket
 * that is not bound, -EEXIST for a slot of an external map that has another socket. */
int prog_slot_set(const struct prog *prog, uint32_t queue, int xsk_fd);

/* What was found in a slot that had been set. */
enum prog_slot {
	PROG_SLOT_OURS,
	PROG_SLOT_EMPTIED, /* and is ours again */
	PROG_SLOT_STOLEN,  /* another socket is in it, and stays */
};

/*
 * Looks whether the socket is in the slot still, and puts it into an empty one. The kernel tells nobody what is in
 * an XSKMAP, but whether a slot has room for another socket: `probe_fd`, one that is bound to another queue or device,
 * is in an empty slot for a moment, and what comes just then is dropped. Without one (-1) an emptied slot is filled
 * and shows as ours. Returns enum prog_slot or -errno.
 */
int prog_slot_keep(const struct prog *prog, uint32_t queue, int xsk_fd, int probe_fd);

/* Empties the slot: frames go to the host's stack from then on, or where an external program sends them. An
 * empty slot is fine, and one of an external map that is not ours is left alone. */
void prog_slot_clear(const struct prog *prog, uint32_t queue);

/*
 * Waits until every run of a program that began before has ended, and what it redirected has reached its
 * socket: some 10 ms. Where membarrier(2) is not to be had it returns at once. Any program, any thread.
 */
void prog_settle(void);

/* Sums the counts of all CPUs. Returns 0, or -errno with *counts untouched: -ENOMEM, -EBADF; an external
 * program's are not known. */
int prog_counts(const struct prog *prog, struct prog_counts *counts);

/* Detaches the program; its maps stay readable. A native driver runs it no more when this returns, in
 * skb mode a frame or two may still be under way. Device deleted, program not attached or already
 * detached: fine. */
void prog_detach(struct prog *prog);

/* Detaches and closes everything; a zeroed, half-open or closed prog is fine. */
void prog_close(struct prog *prog);
