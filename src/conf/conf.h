/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the user asked for: plain data, filled in once by a parser and never edited afterwards. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/mac.h"
#include "base/number.h"

/* Ports of one forward. A bridge of 16 is the largest the design foresees. */
#define CONF_PORTS_MAX 16

/* Interface names: 15 characters and NUL, or an alternative name of up to 127 (ALTIFNAMSIZ). */
#define CONF_IFNAME_SIZE 128

enum conf_mode {
	CONF_MODE_RXDROP,
	CONF_MODE_TXPUSH,
	CONF_MODE_L2FWD, /* one port: MACs swapped, back out of it */
	CONF_MODE_PATCH, /* two ports: unchanged, out of the other */
};

enum conf_attach {
	CONF_ATTACH_AUTO, /* native if the driver can, else skb */
	CONF_ATTACH_NATIVE,
	CONF_ATTACH_SKB,
};

enum conf_zero_copy {
	CONF_ZERO_COPY_AUTO, /* zero-copy if the driver can, else copy */
	CONF_ZERO_COPY_REQUIRE,
	CONF_ZERO_COPY_NEVER,
};

/* The kernel's limits of a chunk: 2048 bytes up to one page (xdp_umem_reg()). */
#define CONF_FRAME_SIZE_MIN 2048
#define CONF_FRAME_SIZE_MAX 4096

/* Sizes of the "simple IMIX", FCS included. */
#define CONF_IMIX_SMALL	 64
#define CONF_IMIX_MIDDLE 594
#define CONF_IMIX_LARGE	 1518

/* Bytes that a frame needs before its payload, FCS included: Ethernet, IPv4, UDP; and the largest. */
#define CONF_TX_HEADERS	  (ETHER_HEADER_LEN + 20 + 8 + ETHER_FCS_LEN)
#define CONF_TX_TIMESTAMP 16
#define CONF_TX_SIZE_MAX  9728 /* xdpsock's */

/* Longest -I text: a line of /proc/interrupts names a driver and an interface in far less. */
#define CONF_IRQ_SIZE 64

/* A path that a UNIX socket can have, and a name of a group (LOGIN_NAME_MAX of useradd), with NUL. */
#define CONF_SOCKET_SIZE 108
#define CONF_GROUP_SIZE	 33

/* Sizes of generated frames, in the order they are sent. */
enum conf_sizes {
	CONF_SIZES_RANGE, /* size_min, size_min + 1, ... size_max, and again; often one size */
	CONF_SIZES_IMIX,  /* the "simple IMIX": 7 of 64, 4 of 594, 1 of 1518 bytes, spread out */
};

/* What txpush sends, and when. Sizes are bytes a frame including the 4 of the FCS. */
struct conf_tx {
	uint64_t count; /* frames in total, 0: no end */
	unsigned
		retries; /* seconds to wait for the last completions when all of `count` are sent */
	enum conf_sizes sizes;
	unsigned size_min, size_max;
	bool size_raised; /* a smaller size was asked for than the headers need */
	uint32_t pattern; /* of the payload, most significant byte first */
	bool vlan;
	unsigned vlan_id, vlan_priority;
	uint8_t destination[MAC_LEN];
	uint8_t source[MAC_LEN];
	bool source_given; /* else each interface's own */
	uint64_t pps;	   /* frames a second over all queues together, 0: as fast as it goes */
	unsigned cycle_us; /* one batch a queue every so often, 0: no cycle */
	bool timestamp;	   /* sequence number and time of sending in the payload */
	clockid_t clock;   /* of the cycle and the timestamps */
};

struct conf {
	enum conf_mode mode;
	unsigned ports;
	char ifname[CONF_PORTS_MAX][CONF_IFNAME_SIZE];
	bool all_queues; /* every active RX queue, and queues is empty */
	struct number_list queues;
	struct number_list cpus; /* empty: the CPUs this process may run on, in their order */
	enum conf_attach attach;
	enum conf_zero_copy zero_copy;
	bool replace;		   /* a foreign XDP program is taken off the interface */
	bool poll;		   /* sleep in poll() instead of spinning */
	bool busy_poll;		   /* the poller runs the driver's NAPI from its own calls */
	bool no_need_wakeup;	   /* bind without XDP_USE_NEED_WAKEUP */
	bool frags;		   /* a packet may take several descriptors */
	bool unaligned;		   /* chunks of any size, at any address */
	bool shared_umem;	   /* one UMEM for all workers */
	bool realtime;		   /* pollers run under SCHED_FIFO */
	unsigned priority;	   /* ... at this priority, 1 to 99; else 0 */
	unsigned batch;		   /* frames a port and pass */
	unsigned frame_size;	   /* bytes a UMEM chunk; a power of two unless unaligned */
	unsigned ring_size;	   /* RX, TX and completion entries; fill has twice as many */
	unsigned frames_per_queue; /* per port and queue; 0: as many as the rings hold */
	bool huge_pages;
	unsigned interval_s; /* seconds between two statistics reports */
	unsigned duration_s; /* 0: until a signal */
	struct conf_tx tx;
	bool quiet;			/* no reports */
	bool extra_stats;		/* rows of the socket's own statistics */
	bool app_stats;			/* rows of calls and of the transmit cycle */
	char irq_string[CONF_IRQ_SIZE]; /* row of the first interrupt whose line has it; "": none */
	bool json;
	bool keep_privileges;
	char control_socket[CONF_SOCKET_SIZE]; /* path; "": none */
	char control_group[CONF_GROUP_SIZE];   /* may use read-only commands; "": none */
};

/* Frames that the four rings of one port and queue can hold together: fill, RX, TX, completion. */
static inline unsigned conf_ring_frames(const struct conf *conf)
{
	return 5 * conf->ring_size;
}

/* Bytes that the kernel keeps free before a received frame (XDP_PACKET_HEADROOM). */
#define CONF_HEADROOM 256

/* Bytes of a frame, without FCS, that one chunk has room for. */
static inline unsigned conf_chunk_room(const struct conf *conf)
{
	return conf->frame_size - CONF_HEADROOM;
}
