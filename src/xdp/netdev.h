/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Network devices: facts read once, and events. Needs no capability, but for a peer's name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/facts.h"

/*
 * Finds a device by name or alternative name in the caller's network namespace and fills in
 * *netdev. Any thread; blocks only for the kernel's answer. Returns 0, -ENODEV if there is none of
 * that name, or another -errno of the netlink request; *netdev is then not `present`. Logs nothing.
 */
int netdev_query(const char *name, struct netdev *netdev);

/* How many queues a device has now, by the kernel's own name for it; as netdev_query(). */
int netdev_query_queues(const char *name, struct netdev_queues *queues);

/*
 * Writes the name of a veth's other end, in whichever network namespace that is: one of another than
 * the caller's is told only to who has CAP_NET_ADMIN there. Any thread. Returns 0; -ENOENT for a device
 * that has no other end; or another -errno, then and now name is "". Logs nothing.
 */
int netdev_peer_name(int ifindex, char *name, size_t size);

/* Called with a name or an alternative name of a device. */
typedef void netdev_name_fn(const char *name, void *context);

/* Calls `each` for every name in the caller's network namespace, in the kernel's order. Any thread.
 * Returns 0 or the -errno of the netlink request; some may have been told before it. */
int netdev_names(netdev_name_fn *each, void *context);

/* The same for the names of one device, its own first. -ENODEV: there is none of that number. */
int netdev_names_of(int ifindex, netdev_name_fn *each, void *context);

/* What happened to a device, or what it is like now. */
struct netdev_event {
	int ifindex;
	bool gone;    /* deleted, or left this network namespace: the rest is not told */
	bool set_up;  /* `ip link set up` */
	bool carrier; /* something is at the other end */
	uint32_t mtu; /* 0: not told */
	char name[NETDEV_NAME_SIZE]; /* "": not told */
	uint8_t mac[MAC_LEN];
	bool mac_told; /* a device that has one tells it */
};

/* It can carry frames. */
static inline bool netdev_event_up(const struct netdev_event *event)
{
	return event->set_up && event->carrier;
}

typedef void netdev_event_fn(const struct netdev_event *event, void *context);

/*
 * Opens a socket that becomes readable when a link of this namespace changes. Returns the fd, which
 * the caller closes, or -errno (-EMFILE). Any thread, as the next two.
 */
int netdev_watch_open(void);

/*
 * Reads what is pending on a watch, without blocking, and calls `tell` for each event. Returns 0;
 * -ENOBUFS if the kernel dropped events, then the caller must look for itself; or another -errno.
 */
int netdev_watch_read(int fd, netdev_event_fn *tell, void *context);

/*
 * Makes a device promiscuous, or no longer, through a packet socket that opener_promiscuous() gave:
 * that needs no privilege any more. The kernel counts; each socket counts once. Any thread. Returns 0,
 * or -errno: -EADDRNOTAVAIL if it is not, -ENODEV.
 */
int netdev_promiscuous(int fd, int ifindex, bool on);

/* Whether an XDP program is attached to the device, in any mode: 1 or 0, or -errno of the netlink request. */
int netdev_has_program(int ifindex);

/* The id of that program, 0 if there is none. Returns 0 or -errno. */
int netdev_program_id(int ifindex, uint32_t *id);

/* How a device of the caller's namespace is now: one that is not there is `gone`, and that is told. Any thread.
 * Returns 0, or -errno if it cannot be told (-EMFILE, -ENOBUFS): then *event has no more than the number. */
int netdev_look(int ifindex, struct netdev_event *event);

/* True if it is certain that there is no such device in the caller's namespace. Any thread. */
bool netdev_gone(int ifindex);
