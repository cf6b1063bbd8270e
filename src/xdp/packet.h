/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A packet socket on one port, for the frames that the host and the wire both need: what the XDP program gives
 * to the host is read here once more, and sent out of the socket of another port, as it came. Only
 * packet_open() needs a capability. Main thread.
 */
#pragma once

#include <linux/virtio_net.h>
#include <stddef.h>
#include <stdint.h>

#include "xdp/steer.h"

#define PACKET_TAG_BYTES 4

/* Largest frame: one that the kernel put together from others, or left to a card to cut into pieces, has up
 * to 64 KiB behind its header. Larger ones ("BIG TCP") are refused by packet_receive(). */
#define PACKET_FRAME_MAX (65536 + 64)

/* One frame, with its VLAN tag where it was on the wire. */
struct packet {
	/* What of its checksum and of its cutting into pieces is still to be done, as for virtio. */
	struct virtio_net_hdr head;
	uint8_t *frame; /* in room */
	size_t len;
	uint8_t room[PACKET_TAG_BYTES + PACKET_FRAME_MAX];
};

/*
 * Makes the socket of a port, whose policy is in these maps. It takes nothing but frames that are
 * MILLRACE_BOTH, not one before its filter stands, and none that goes out. Needs CAP_NET_RAW, CAP_NET_ADMIN
 * and CAP_BPF. Returns the fd, which does not block and which the caller owns, or -errno after a message that
 * names the device.
 */
int packet_open(const char *ifname, int ifindex, const struct steer_maps *maps);

/*
 * Takes the next frame. Returns 0; -EAGAIN: there is none. Other errors, -EMSGSIZE and -EINVAL, are of one
 * frame that is lost by it; -ENETDOWN is of none: the device went down or away, said once.
 */
int packet_receive(int fd, struct packet *packet);

/* Sends it out of the socket's port. Returns 0, or -errno and it is lost: -EMSGSIZE it exceeds the MTU,
 * -ENETDOWN, -ENXIO the device is down or away, -ENOBUFS, -EAGAIN there is no room. */
int packet_send(int fd, const struct packet *packet);

/* Frames for which the socket had no room since this was asked before. */
uint32_t packet_overflow(int fd);
