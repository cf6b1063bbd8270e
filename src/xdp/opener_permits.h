/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the configuration permits the opener's helper, by device: opener.h has how it gets there. A device is
 * looked up by what the kernel says of its number, never by what a client calls it. Helper process only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "xdp/netdev.h"
#include "xdp/opener.h"

/* Queues that a permit can name: as many as a socket can be bound to. Beyond are none. */
#define QUEUES_PERMITTED 4096
#define QUEUE_WORD_BITS	 64

/* Devices that are remembered, those of an earlier time making room: more than are ever served. One that is made
 * anew each hour has another number each time. */
#define DEVICES_KNOWN 256

/* The kernel's ALTIFNAMSIZ. */
#define DEVICE_NAME_SIZE 128

/* What may be done with a device. */
struct allowed {
	bool named; /* the configuration has the device; if not, nothing */
	bool any_queue;
	uint64_t queue[QUEUES_PERMITTED / QUEUE_WORD_BITS];
	bool program;	 /* ours may be attached by a link */
	bool dispatcher; /* ours may be put beside others */
	bool xskmap;	 /* the one that was asked for may be filled */
	bool replace, vlan_offload, busy_poll;
};

/* A device that the configuration named when it was first asked for: it stays the same one when it is renamed. */
struct known {
	int ifindex;
	char device[DEVICE_NAME_SIZE]; /* the name it was known by */
};

struct permit;

/* Zeroed it permits nothing. */
struct opener_permits {
	struct permit *permit;
	unsigned count;
	unsigned realtime; /* the highest priority; 0: none */
	struct known known[DEVICES_KNOWN];
	unsigned knowns; /* those before are kept at their number modulo the room */
};

/* What is permitted of any device, all together: whether there is one of which it is. */
struct allowed permits_all(const struct opener_permits *permits);

/*
 * Looks the device up. Returns 0 with the kernel's name for it and what the configuration has of it, by whichever
 * of its names, and of maps with the pin `xskmap` ("": none); -ENODEV if there is no such device; or another
 * -errno of the netlink request. Logs nothing.
 */
int permits_device(struct opener_permits *permits, int ifindex, const char *xskmap,
		   char ifname[NETDEV_NAME_SIZE], struct allowed *allowed);

/* Whether the configuration names a device so, which need not be there. */
bool permits_name(const struct opener_permits *permits, const char *device);

bool allowed_queue(const struct allowed *allowed, uint32_t queue);
