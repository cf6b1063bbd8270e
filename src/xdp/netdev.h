/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Network devices: facts read once, and events. Needs no capability. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/mac.h"

#define NETDEV_NAME_SIZE 16 /* IFNAMSIZ */

struct netdev {
	char name[NETDEV_NAME_SIZE]; /* the kernel's own name for it */
	char driver[32];	     /* as ethtool -i says; "" if it says nothing */
	int ifindex;
	int numa_node; /* -1: none, or not told */
	uint32_t mtu;
	uint8_t mac[MAC_LEN];
	uint32_t rx_queues; /* active ones, at least 1 */
	uint32_t tx_queues; /* likewise; may differ */
};

/*
 * Finds a device by name or alternative name in the caller's network namespace and fills in
 * *netdev. Any thread; blocks only for the kernel's answer. Returns 0, -ENODEV if there is none of
 * that name, or another -errno of the netlink request. Logs nothing.
 */
int netdev_query(const char *name, struct netdev *netdev);

/*
 * Opens a socket that becomes readable when a link of this namespace changes. Returns the fd, which
 * the caller closes, or -errno (-EMFILE). Any thread, as the next two.
 */
int netdev_watch_open(void);

/* Called for each device that was deleted or left this network namespace. */
typedef void netdev_gone_fn(int ifindex, void *context);

/*
 * Reads what is pending on a watch, without blocking. Returns 0; -ENOBUFS if the kernel dropped
 * events, then the caller must look for itself; or another -errno.
 */
int netdev_watch_read(int fd, netdev_gone_fn *gone, void *context);

/* True if a device with this index is in the caller's namespace, or if that cannot be told. */
bool netdev_exists(int ifindex);
