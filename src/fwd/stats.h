/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a worker counts, as its readers see it. Every member of these structs is a 64-bit word: they
 * travel through a seqlock word by word.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "conf/conf.h"

/* Why a worker discarded a frame. One line a reason: here and in drop_names (stats.c). */
enum drop_reason {
	DROP_RUNT,	/* under 14 bytes: no Ethernet header, and the kernel would choke on it */
	DROP_LINK_DOWN, /* the egress device is down or gone */
	DROP_BAD_DESCRIPTOR, /* the kernel named an address outside the frames, received or completed */
	DROP_STOPPING,	     /* still on the RX ring, or lent, when the time to drain was over */
	DROP_HAND_OVER_FULL,  /* the worker that sends for this one does not keep up */
	DROP_TOO_LONG,	      /* a packet that fills the RX ring and has no end */
	DROP_TX_FULL,	      /* a bridge's port does not take as much as is sent to it */
	DROP_NO_FRAME,	      /* no frame was left for the copy that this port was to get */
	DROP_SOURCE_GROUP,    /* to a bridge, from a group address */
	DROP_SOURCE_ZERO,     /* ... from 00:00:00:00:00:00 */
	DROP_LOOP_PROBE,      /* a probe of ours for loops, come back */
	DROP_SOURCE_OWN,      /* ... from the address of a port's own device: a loop, or a forger */
	DROP_TAG_CUT,	      /* it ends within its VLAN tag */
	DROP_VLAN_RESERVED,   /* VLAN 4095 */
	DROP_NO_NATIVE,	      /* without a VLAN, on a port that has none for it */
	DROP_TAGGED_ACCESS,   /* tagged with another VLAN than its access port's */
	DROP_VLAN_INGRESS,    /* tagged with a VLAN that its trunk port is not in */
	DROP_VLAN_EGRESS,     /* its destination's port, or every other one, is not in its VLAN */
	DROP_NO_ROOM,	      /* its chunk has no room for the tag that it is to get */
	DROP_RESERVED,	      /* to 01:80:c2:00:00:0X, which crosses no bridge */
	DROP_SAME_PORT,	      /* its destination is where it came from */
	DROP_ISOLATED,	      /* its destination is behind a port that it may not go to */
	DROP_BLOCKED,	      /* from or to a station that is blocked */
	DROP_STORM_BROADCAST, /* more than its port may send to all others in a second */
	DROP_STORM_MULTICAST, /* likewise */
	DROP_STORM_UNKNOWN,   /* likewise, to stations that are not known */
	DROP_LOOP_BLOCKED,    /* its port, or the one it is for, is blocked: there was a loop */
	DROP_RING_VIOLATION, /* the kernel named a frame that it did not have; builds with checks only */
	DROP_REASONS,
};

/* The reason as reports spell it, "link_down"; reason is below DROP_REASONS. Static text. */
const char *drop_name(enum drop_reason reason);

/* What became of the wake-ups for sending: calls, and how many of them gave which error. */
enum kick_result {
	KICK_CALLS, /* all of them */
	KICK_AGAIN, /* EAGAIN: the kernel's batch was used up or its memory short; repeated */
	KICK_BUSY,  /* EBUSY: the device dropped a frame (a veth whose peer is down or full) */
	KICK_NOBUFS,
	KICK_DOWN,  /* ENETDOWN */
	KICK_GONE,  /* ENXIO: the device was deleted or moved away */
	KICK_OTHER, /* anything else */
	KICK_RESULTS,
};

/* The result as messages spell it, "EAGAIN"; result is below KICK_RESULTS. Static text. */
const char *kick_name(enum kick_result result);

/* Calls and vain looks, as xdpsock counts them. */
enum call_count {
	CALL_RX_EMPTY,	/* passes that found RX empty */
	CALL_FILL_FAIL, /* passes whose frames the fill ring had no room for */
	CALL_COPY_TX,	/* sendto() calls of a copy mode socket */
	CALL_WAKE_TX,	/* sendto() calls of a zero-copy socket */
	CALL_POLL,	/* poll() calls of its worker */
	CALL_COUNTS,
};

/* How late the cycles of -T began. */
struct cycle_counts {
	uint64_t period_ns; /* 0: there is no cycle */
	uint64_t min_ns;    /* UINT64_MAX before the first */
	uint64_t sum_ns;
	uint64_t max_ns;
	uint64_t cycles;
};

/* One port's queue. Totals since start; occupancies in frames, of the moment of the snapshot. */
struct queue_counts {
	uint64_t rx_packets;	 /* taken from the RX ring */
	uint64_t rx_descriptors; /* ... in so many pieces */
	uint64_t rx_bytes;
	uint64_t tx_packets;	 /* completed by the kernel */
	uint64_t tx_descriptors; /* ... in so many pieces */
	uint64_t tx_bytes;
	uint64_t tx_pending;	    /* descriptors put on the TX ring, not refused, not completed */
	uint64_t flooded;	    /* received, and to be sent out of all other ports */
	uint64_t copies;	    /* ports, beyond one each, that received packets were sent to */
	uint64_t probes;	    /* for loops, of our own, put on the TX ring */
	uint64_t partial_checksums; /* of the TCP and UDP frames that were sampled */
	uint64_t drops[DROP_REASONS];
	uint64_t kicks[KICK_RESULTS];
	uint64_t calls[CALL_COUNTS];
	uint64_t fill;
	uint64_t rx;
	uint64_t tx;
	uint64_t completion;
	uint64_t tx_refused; /* TX descriptors that the kernel has refused, as known by then */
	uint64_t tx_lost;    /* of `lost`: refused TX descriptors that did not come back */
	uint64_t lost;	 /* frames in whose place the kernel gave back something else or nothing */
	uint64_t handed; /* packets that another worker took over to send */
	uint64_t hand_over; /* frames lent to it */
	int64_t kernel; /* taken by the kernel and not given back; briefly below 0, see DESIGN.md */
};

/* One worker. */
struct worker_counts {
	uint64_t total;	    /* frames there are */
	uint64_t pool;	    /* frames in no ring */
	uint64_t reclaimed; /* frames taken back by the ledger when their port was closed */
	uint64_t queues;    /* how many of queue[] are used */
	struct cycle_counts cycle;
	struct queue_counts queue[CONF_PORTS_MAX];
};

/* Words of a worker_counts that has `queues` queues. */
static inline size_t worker_counts_words(unsigned queues)
{
	return (offsetof(struct worker_counts, queue) + queues * sizeof(struct queue_counts)) /
	       sizeof(uint64_t);
}

/* Takes the TX descriptors that the kernel refused and completed all the same out of tx_packets and
 * tx_descriptors: they were not sent. (Their bytes are not known, and stay in tx_bytes.) */
void queue_counts_refused(struct queue_counts *counts);

/* Adds the totals of a socket that is closed to those of the one in its place, or of none. Its occupancies
 * are of no moment any more, and stay out. */
void queue_counts_add(struct queue_counts *counts, const struct queue_counts *past);

/* Frames that the kernel has, and frames that are lost until their port is closed, over all queues. */
int64_t worker_counts_kernel(const struct worker_counts *counts);
uint64_t worker_counts_lost(const struct worker_counts *counts);

/* Frames lent to other workers, and packets that these took over, over all queues. */
uint64_t worker_counts_hand_over(const struct worker_counts *counts);
uint64_t worker_counts_handed(const struct worker_counts *counts);

/*
 * total - (pool + fill + rx + tx + completion + kernel + hand_over + lost): 0, or a frame was leaked (positive)
 * or doubled (negative). Frames in hand do not appear: there are none between two passes.
 */
int64_t worker_counts_balance(const struct worker_counts *counts);
