/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "fwd/stats.h"

static const char *const drop_names[DROP_REASONS] = {
	[DROP_RUNT] = "runt",
	[DROP_LINK_DOWN] = "link_down",
	[DROP_BAD_DESCRIPTOR] = "bad_descriptor",
	[DROP_STOPPING] = "stopping",
	[DROP_HAND_OVER_FULL] = "hand_over_full",
	[DROP_TOO_LONG] = "too_long",
	[DROP_TX_FULL] = "tx_full",
	[DROP_NO_FRAME] = "no_frame",
	[DROP_SOURCE_GROUP] = "source_group",
	[DROP_SOURCE_ZERO] = "source_zero",
	[DROP_LOOP_PROBE] = "loop_probe",
	[DROP_SOURCE_OWN] = "source_own",
	[DROP_TAG_CUT] = "tag_cut",
	[DROP_VLAN_RESERVED] = "vlan_reserved",
	[DROP_NO_NATIVE] = "no_native_vlan",
	[DROP_TAGGED_ACCESS] = "tagged_on_access",
	[DROP_VLAN_INGRESS] = "vlan_not_member",
	[DROP_VLAN_EGRESS] = "vlan_filtered",
	[DROP_NO_ROOM] = "no_tag_room",
	[DROP_RESERVED] = "reserved",
	[DROP_SAME_PORT] = "same_port",
	[DROP_ISOLATED] = "isolated",
	[DROP_BLOCKED] = "blocked",
	[DROP_STORM_BROADCAST] = "storm_broadcast",
	[DROP_STORM_MULTICAST] = "storm_multicast",
	[DROP_STORM_UNKNOWN] = "storm_unknown",
	[DROP_LOOP_BLOCKED] = "loop_blocked",
	[DROP_RING_VIOLATION] = "ring_violation",
};

static const char *const kick_names[KICK_RESULTS] = {
	[KICK_CALLS] = "calls",	   [KICK_AGAIN] = "EAGAIN",  [KICK_BUSY] = "EBUSY",
	[KICK_NOBUFS] = "ENOBUFS", [KICK_DOWN] = "ENETDOWN", [KICK_GONE] = "ENXIO",
	[KICK_OTHER] = "other",
};

const char *kick_name(enum kick_result result)
{
	return kick_names[result];
}

const char *drop_name(enum drop_reason reason)
{
	return drop_names[reason];
}

static void take_off(uint64_t *from, uint64_t count)
{
	*from -= count < *from ? count : *from;
}

void queue_counts_refused(struct queue_counts *counts)
{
	uint64_t returned = 0;

	if (counts->tx_refused > counts->tx_lost)
		returned = counts->tx_refused - counts->tx_lost;
	take_off(&counts->tx_packets, returned);
	take_off(&counts->tx_descriptors, returned);
}

static void add_each(uint64_t *to, const uint64_t *from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		to[i] += from[i];
}

void queue_counts_add(struct queue_counts *counts, const struct queue_counts *past)
{
	counts->rx_packets += past->rx_packets;
	counts->rx_descriptors += past->rx_descriptors;
	counts->rx_bytes += past->rx_bytes;
	counts->tx_packets += past->tx_packets;
	counts->tx_descriptors += past->tx_descriptors;
	counts->tx_bytes += past->tx_bytes;
	counts->flooded += past->flooded;
	counts->copies += past->copies;
	counts->probes += past->probes;
	counts->partial_checksums += past->partial_checksums;
	add_each(counts->drops, past->drops, DROP_REASONS);
	add_each(counts->kicks, past->kicks, KICK_RESULTS);
	add_each(counts->calls, past->calls, CALL_COUNTS);
}

int64_t worker_counts_kernel(const struct worker_counts *counts)
{
	int64_t kernel = 0;

	for (unsigned i = 0; i < counts->queues; i++)
		kernel += counts->queue[i].kernel;
	return kernel;
}

/* Of the 64-bit member at `offset`, over all queues. */
static uint64_t sum_queues(const struct worker_counts *counts, size_t offset)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < counts->queues; i++)
		sum += *(const uint64_t *)((const char *)&counts->queue[i] + offset);
	return sum;
}

uint64_t worker_counts_lost(const struct worker_counts *counts)
{
	return sum_queues(counts, offsetof(struct queue_counts, lost));
}

uint64_t worker_counts_hand_over(const struct worker_counts *counts)
{
	return sum_queues(counts, offsetof(struct queue_counts, hand_over));
}

uint64_t worker_counts_handed(const struct worker_counts *counts)
{
	return sum_queues(counts, offsetof(struct queue_counts, handed));
}

int64_t worker_counts_balance(const struct worker_counts *counts)
{
	uint64_t found =
		counts->pool + worker_counts_lost(counts) + worker_counts_hand_over(counts);

	for (unsigned i = 0; i < counts->queues; i++) {
		const struct queue_counts *queue = &counts->queue[i];

		found += queue->fill + queue->rx + queue->tx + queue->completion;
	}
	return (int64_t)(counts->total - found) - worker_counts_kernel(counts);
}
