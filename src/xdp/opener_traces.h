/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the opener's helper does to the host that the kernel does not undo by itself when somebody's last file is
 * closed: VLAN offloads that are switched off, programs in dispatchers, host ports. Each is done here, or told as
 * soon as it is, and remembered until it is undone. Helper process only.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/mac.h"
#include "xdp/netdev.h"

/* Devices that are away with a change of ours are remembered, those of an earlier time making room. */
#define CHANGES_AWAY 64

/* Devices that went away with a program of ours are remembered, for some are moved back: so many, or one that is
 * made anew each hour would fill the memory with programs. */
#define DISPATCHED_GONE 16

/* A device of which something was changed that the kernel does not undo by itself, nor when it is moved to another
 * network namespace. */
struct change {
	int ifindex;
	unsigned vlan; /* enum offload_vlan */
	bool away;     /* it is in no namespace of ours; should it come back, it has these: */
	char ifname[NETDEV_NAME_SIZE];
	uint8_t mac[MAC_LEN];
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

/* Zeroed there are none. traces_undo() frees what there is. */
struct traces {
	struct change *change;
	unsigned changes;
	struct dispatched *dispatched;
	unsigned dispatches;
	struct host_port *host_port;
	unsigned host_ports;
};

/* offload_vlan_off(), remembered. *changed gets all that is changed of the device now. Returns 0, or -errno
 * after a message; what could not be remembered is not done. */
int traces_vlan_off(struct traces *traces, const char *ifname, int ifindex, unsigned *changed);

/* Puts back what was changed of the device; if that is away, when it is here again. Nothing changed is fine. */
void traces_vlan_restore(struct traces *traces, int ifindex);

/*
 * Remembers a program that is in the device's dispatcher. Returns the client's end of a pipe, which is as a link's
 * fd to the program: the caller passes it on and closes it; or -errno after a message, and then it has been taken
 * out.
 */
int traces_hold_program(struct traces *traces, const char *ifname, int ifindex, uint32_t prog_id);

/* Our ends of the pipes, up to `room`: without an event asked for, they have one when a program is let go of.
 * Returns their count. */
unsigned traces_watch_programs(const struct traces *traces, struct pollfd *fds, unsigned room);

/* Takes out of their dispatchers the programs that nobody holds any more. */
void traces_leave_programs(struct traces *traces);

/* Takes out what was let go of while the device was away: one that was moved away and back still has it. */
void traces_leave_from_before(struct traces *traces, int ifindex);

/* host_port_make() unless it stands, remembered, to be kept at the end or not. */
int traces_host_port(struct traces *traces, const char *name, uint32_t mtu, bool keep);

/* host_port_remove() of one that was made here and is not to be kept. Others: nothing, and 0. */
int traces_host_port_remove(struct traces *traces, const char *name);

/* At the end: undoes all of it. What cannot be undone is said, with what to type. */
void traces_undo(struct traces *traces);
