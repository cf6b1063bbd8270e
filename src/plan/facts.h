/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a plan is made from besides the configuration: what this host has. Plain data. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/mac.h"

#define NETDEV_NAME_SIZE 16 /* IFNAMSIZ */
#define NETDEV_KIND_SIZE 16 /* the longest known is "openvswitch" */

/* Queues of a device that are active. */
struct netdev_queues {
	uint32_t rx, tx;
};

/* A network device, as it was when it was looked at. */
struct netdev {
	bool present;		     /* else nothing below is known, but for the next */
	bool awaited;		     /* not present, and to be planned for: with the queues below */
	bool served;		     /* a running port has it, and keeps it */
	char name[NETDEV_NAME_SIZE]; /* the kernel's own name for it */
	char driver[32];	     /* as ethtool -i says; "" if it says nothing */
	int ifindex;
	int numa_node; /* -1: none, or not told */
	uint32_t mtu;
	uint8_t mac[MAC_LEN];
	uint32_t rx_queues;	    /* active ones, at least 1 */
	uint32_t tx_queues;	    /* likewise; may differ */
	bool loopback;		    /* lo */
	bool ethernet;		    /* its frames begin with an Ethernet header */
	bool link_up;		    /* up, and something is connected */
	bool rx_vlan_offload;	    /* takes VLAN tags out of received frames */
	bool rx_vlan_offload_fixed; /* ... which its driver does not let anyone change */
	int master; /* ifindex of the device that it is a port or member of, 0: of none */
	char master_kind[NETDEV_KIND_SIZE]; /* "bridge", "bond", "team", ...; "" if not told */
	char master_name[NETDEV_NAME_SIZE]; /* likewise */
	char kind[NETDEV_KIND_SIZE];	    /* "veth", "vlan", ...; "" for a network card */
	char peer[NETDEV_NAME_SIZE];	    /* of a veth: the other end; "" if not known */
	char upper[NETDEV_NAME_SIZE]; /* a VLAN device, macvlan or the like that stands on it; "" */
};

/* A CPU that the workers may run on. */
struct cpu_facts {
	unsigned cpu;
	int node;      /* -1: not told */
	unsigned core; /* the lowest CPU that is a hardware thread of the same core */
};

struct host_facts {
	unsigned devices;
	struct netdev *device; /* one a port of the configuration, in its order */
	unsigned cpus;	       /* at least 1 */
	struct cpu_facts *cpu; /* the allowed ones, ascending */
};
