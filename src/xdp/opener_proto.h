/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the opener's two halves say to each other, over a SOCK_SEQPACKET pair: one struct a message,
 * file descriptors beside it. A request is answered by any number of log lines and then one result.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "xdp/netdev.h"
#include "xdp/prog.h"

#define OPENER_MAP_FDS	 2 /* of attach's: after link and program come the maps */
#define OPENER_FDS_MAX	 (OPENER_MAP_FDS + PROG_MAPS)
#define OPENER_TEXT_SIZE 1024 /* log.h cuts there too */

enum opener_op {
	OPENER_CHECK,
	OPENER_REFRESH,
	OPENER_MEMLOCK,
	OPENER_ATTACH,
	OPENER_ATTACH_AGAIN,
	OPENER_DISPATCHED,
	OPENER_LEAVE,
	OPENER_SOCKET,
	OPENER_BIND,
	OPENER_BUSY_POLL,
	OPENER_REALTIME,
	OPENER_PROMISCUOUS,
	OPENER_PACKET, /* with the maps of the policy */
	OPENER_VLAN_OFFLOAD,
	OPENER_PORT_RESTORE,
	OPENER_PEER_NAME,
	OPENER_HOST_PORT,
	OPENER_HOST_PORT_REMOVE,
	OPENER_OPS,
};

struct opener_request {
	uint32_t op; /* enum opener_op */
	int32_t ifindex;
	char ifname[NETDEV_NAME_SIZE]; /* for messages: what counts is the number */
	union {
		uint64_t bytes;	  /* memlock */
		uint32_t prog_id; /* dispatched */
		struct {
			uint32_t queues;
			uint32_t mode; /* enum prog_attach */
			uint32_t replace;
			uint32_t dispatcher;
			char xskmap[PROG_PATH_SIZE]; /* "": our own program */
		} attach;
		struct {
			uint32_t queue;
			uint32_t budget; /* busy_poll */
		} socket;
		struct {
			uint32_t queue;
			uint32_t zero_copy;
			uint32_t frags;
			uint32_t no_need_wakeup;
		} bind;
		struct {
			int32_t tid;
			uint32_t priority;
		} realtime;
		struct {
			uint32_t mtu;
			uint32_t keep;
		} host_port; /* ifname is the far end's */
	};
};

enum opener_kind {
	OPENER_RESULT,
	OPENER_LOG,
};

struct opener_answer {
	uint32_t kind;	/* enum opener_kind */
	int32_t result; /* 0 or -errno; of a log line: enum log_level */
	union {
		struct {
			uint32_t id;
			uint32_t native;
			char name[PROG_NAME_SIZE];
			uint8_t tag[PROG_TAG_BYTES];
		} prog;		  /* attach */
		uint32_t changed; /* vlan_offload: enum offload_vlan, all that is changed now */
		char name[NETDEV_NAME_SIZE]; /* peer_name */
		char rival[PROG_RIVAL_SIZE]; /* attach_again */
		char text[OPENER_TEXT_SIZE]; /* log line */
	};
};

/* File descriptors of one message; owned by whoever received them. */
struct opener_fds {
	int fd[OPENER_FDS_MAX];
	unsigned count;
};

/* Sends one message, with copies of the fds if that is not NULL; waits for room. Returns 0 or -errno:
 * -EPIPE if nobody is at the other end. */
int opener_send(int socket, void *message, size_t size, const struct opener_fds *fds);

/*
 * Waits for one message of exactly `size` bytes. Returns 0; -EPIPE if the other end is closed; -EBADMSG
 * for a message of another size, and -EMFILE for one with fds that there was no room for, either without
 * any fd left open; or another -errno.
 */
int opener_receive(int socket, void *message, size_t size, struct opener_fds *fds);

/* Closes them; none is fine. */
void opener_fds_close(struct opener_fds *fds);
