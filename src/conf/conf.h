/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the user asked for: plain data, filled in once by a parser and never edited afterwards. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "base/mac.h"
#include "base/number.h"
#include "conf/pass.h"
#include "conf/station.h"
#include "conf/vlan_mode.h"

/* Ports of one forward. A bridge of 16 is the largest the design foresees. */
#define CONF_PORTS_MAX 16

/* Names of forwards, of the group that may use the control socket, and of the user. */
#define CONF_NAME_SIZE 33

/* Characters of a name that a configuration file gives to a port or forward. */
#define CONF_NAME_MAX 31

/* Path of a UNIX socket (sun_path). */
#define CONF_PATH_SIZE 108

/* Path of a pinned map, with its NUL. */
#define CONF_MAP_PATH_SIZE 128

/* Interface names: 15 characters and NUL, or an alternative name of up to 127 (ALTIFNAMSIZ). */
#define CONF_IFNAME_SIZE 128

/* The name of a host port: with CONF_HOST_NEAR before it, it is an interface's of 15 characters. */
#define CONF_HOST_NAME_MAX 12
#define CONF_HOST_NEAR	   "mr-"

/* Storm limits, frames a second: more than 64-byte frames of a 10 Gbit/s line, and so no limit there; the
 * buckets count with whole ns, which above this would be some per cent off. */
#define CONF_STORM_MAX 20000000

/* Stations of a bridge, and seconds until one that is silent is forgotten: what the table holds. */
#define CONF_STATIONS_MAX 4194304U
#define CONF_AGEING_MAX	  60000

enum conf_mode {
	CONF_MODE_RXDROP,
	CONF_MODE_TXPUSH,
	CONF_MODE_L2FWD,  /* one port: MACs swapped, back out of it */
	CONF_MODE_PATCH,  /* two ports: unchanged, out of the other */
	CONF_MODE_BRIDGE, /* several ports: each frame to where its destination is */
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

enum conf_promiscuous {
	CONF_PROMISCUOUS_AUTO, /* as the mode needs it */
	CONF_PROMISCUOUS_ON,
	CONF_PROMISCUOUS_OFF,
};

/* How frames come to our sockets. */
enum conf_attach_method {
	CONF_ATTACH_METHOD_LINK,       /* our program, attached by a bpf_link */
	CONF_ATTACH_METHOD_DISPATCHER, /* our program beside others, through libxdp */
	CONF_ATTACH_METHOD_EXTERNAL,   /* somebody else's program, whose XSKMAP we fill */
};

/* What is done where somebody takes our XDP program off an interface. */
enum conf_program_lost {
	CONF_PROGRAM_LOST_REATTACH,
	CONF_PROGRAM_LOST_EXIT,
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

/* What a poller does that has nothing to do. */
enum conf_wait {
	CONF_WAIT_ADAPTIVE, /* spins a moment where that pays, else sleeps in poll(): fwd/waiting.h */
	CONF_WAIT_SPIN,
	CONF_WAIT_POLL, /* sleeps at once */
};

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
	unsigned size_asked; /* the least, where less was asked for than the headers need; else 0 */
	uint32_t pattern;    /* of the payload, most significant byte first */
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

/* One interface, under the name that forwards know it by. */
struct conf_port {
	char name[CONF_IFNAME_SIZE];
	char device[CONF_IFNAME_SIZE]; /* interface, by its name or an alternative one */
	bool all_queues;	       /* every active RX queue, and queues is empty */
	struct number_list queues;
	enum conf_attach attach;
	enum conf_zero_copy zero_copy;
	enum conf_promiscuous promiscuous;
	enum conf_program_lost on_program_lost;
	enum conf_attach_method attach_method;
	char xskmap[CONF_MAP_PATH_SIZE]; /* with CONF_ATTACH_METHOD_EXTERNAL; else "" */
	struct pass pass;		 /* frames that the host gets */
	bool replace;			 /* a foreign XDP program is taken off the interface */
	bool keep_vlan_offload;		 /* the card may strip VLAN tags: frames lose them */
	bool wait_for_device;		 /* it may be absent at the start */
	bool mtu_stops; /* the port is not served while the MTU is above what frames take */
	bool host; /* the near end of its forward's host port, which no section of the file is about */
	bool hairpin;	       /* of a bridge: what it receives may leave by it */
	bool isolated;	       /* of a bridge: sends nothing to others that are */
	unsigned learn_limit;  /* of a bridge: stations that may be learned there; 0: any number */
	struct vlan_mode vlan; /* of a bridge: what is done with tags */
	/* Of a bridge: frames a second that may come in there for all other ports; 0: any number. */
	unsigned storm_broadcast, storm_multicast, storm_unknown;
	unsigned line; /* of the file that it begins at; 0: from flags */
};

/* What is done with the frames of some ports, and by which threads. */
struct conf_forward {
	char name[CONF_NAME_SIZE];
	enum conf_mode mode;
	unsigned ports;
	const struct conf_port *port[CONF_PORTS_MAX]; /* of the same conf */
	struct number_list cpus; /* empty: the CPUs this process may run on, the NIC's node first */
	enum conf_wait wait;	 /* what a poller does that has nothing to do */
	bool busy_poll;		 /* the poller runs the driver's NAPI from its own calls */
	bool no_need_wakeup;	 /* bind without XDP_USE_NEED_WAKEUP */
	bool frags;		 /* a packet may take several descriptors */
	bool unaligned;		 /* chunks of any size, at any address */
	bool shared_umem;	 /* one UMEM for all workers */
	bool realtime;		 /* pollers run under SCHED_FIFO */
	unsigned priority;	 /* ... at this priority, 1 to 99; else 0 */
	unsigned batch;		 /* frames a port and pass */
	unsigned frame_size;	 /* bytes a UMEM chunk; a power of two unless unaligned */
	unsigned ring_size;	 /* RX, TX and completion entries; fill has twice as many */
	unsigned frames_per_queue; /* per port and queue, at least as many as the rings hold */
	bool huge_pages;	   /* a warning if there are none; they are used in any case */
	struct conf_tx tx;
	/* A port that is the host's: the far end of a pair, whose near end is the last of the ports above. */
	char host_port[CONF_HOST_NAME_MAX + 1]; /* "": none */
	bool keep_host_port;			/* it outlives us */
	struct vlan_mode host_vlan;		/* of a bridge: what is done with tags there */
	/* Of a bridge. */
	unsigned stations_max;
	unsigned ageing_s;     /* 0: stations are never forgotten */
	unsigned loop_block_s; /* a port where a loop is suspected is blocked so long; 0: not */
	unsigned loop_probe_s; /* between two probes for loops out of each port; 0: none */
	bool forward_reserved; /* frames to 01:80:c2:00:00:02 to -0f cross it */
	unsigned stations;
	const struct conf_station *station; /* static and blocked ones, sorted; of the same conf */
	unsigned line;			    /* of the file that it begins at; 0: from flags */
};

struct conf {
	unsigned ports, forwards; /* as many as the memory holds */
	struct conf_port *port;	  /* owned, as the next */
	struct conf_forward *forward;
	struct conf_station *station;	     /* of all forwards. Owned. */
	char control_socket[CONF_PATH_SIZE]; /* "": none */
	char control_group[CONF_NAME_SIZE];  /* "": none */
	char user[CONF_NAME_SIZE];	     /* "": as the start decides */
	unsigned interval_s;		     /* seconds between two statistics reports */
	unsigned duration_s;		     /* 0: until a signal */
	unsigned confirm_s;		/* an operator has so long to confirm; 0: nobody has to */
	bool quiet;			/* no reports */
	bool extra_stats;		/* rows of the socket's own statistics */
	bool app_stats;			/* rows of calls and of the transmit cycle */
	char irq_string[CONF_IRQ_SIZE]; /* row of the first interrupt whose line has it; "": none */
	bool json;
	bool keep_privileges;
};

/* What is not said otherwise: of a forward, and of a port. `file`: by a file, where a port has all its
 * queues; flags are xdpsock's, which serves queue 0. */
void conf_forward_defaults(struct conf_forward *forward);
void conf_port_defaults(struct conf_port *port, bool file);

/* Fills in what follows from the rest: frames_per_queue if it is 0, batch if `batch_given` is not, sizes
 * below what a generated frame's headers need. `size_given`: a raised size was asked for. */
void conf_forward_complete(struct conf_forward *forward, bool batch_given, bool size_given);

/* True if its ports are those of a bridge: as mode = bridge, and a patch with a third port has them. */
static inline bool conf_is_bridge(const struct conf_forward *forward)
{
	return forward->mode == CONF_MODE_BRIDGE ||
	       (forward->mode == CONF_MODE_PATCH && forward->host_port[0]);
}

/* True if it is a name of 1 to max letters, digits, . _ - */
bool conf_name_valid(const char *name, size_t max);

/* Frees what it owns; a zeroed or finished conf is fine. */
static inline void conf_fini(struct conf *conf)
{
	free(conf->port);
	free(conf->forward);
	free(conf->station);
	*conf = (struct conf){ 0 };
}

/* Frames that the four rings of one port and queue can hold together: fill, RX, TX, completion. */
static inline unsigned conf_ring_frames(const struct conf_forward *conf)
{
	return 5 * conf->ring_size;
}

/* Bytes that the kernel keeps free before a received frame (XDP_PACKET_HEADROOM). */
#define CONF_HEADROOM 256

/* Bytes of a frame, without FCS, that one chunk has room for. */
static inline unsigned conf_chunk_room(const struct conf_forward *conf)
{
	return conf->frame_size - CONF_HEADROOM;
}
