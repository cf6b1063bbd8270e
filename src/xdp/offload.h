/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The offloads by which a device takes VLAN tags out of the frames it receives: rx-vlan-offload (of
 * 802.1Q tags) and rx-vlan-stag-hw-parse (of 802.1ad ones); and those by which a host port's far end would
 * leave to a device what has to be in its frames. Needs CAP_NET_ADMIN to change them. One
 * thread.
 */
#pragma once

#include <stddef.h>

enum offload_vlan {
	OFFLOAD_VLAN_CTAG = 1U << 0,
	OFFLOAD_VLAN_STAG = 1U << 1,
	/* Only of host ports. What is segmented goes without, where checksums do. */
	OFFLOAD_TX_CHECKSUM = 1U << 2,
	OFFLOAD_TX_SCTP = 1U << 3,
	OFFLOAD_TX_VLAN_CTAG = 1U << 4,
	OFFLOAD_TX_VLAN_STAG = 1U << 5,
};

/*
 * Switches off those that are on, all or none, and reads that back; *changed gets which they were (enum
 * offload_vlan), also where reading back tells that they are on still. Returns 0; -EOPNOTSUPP where
 * the device cannot; or another -errno; both after a message that names the device and what to type.
 */
int offload_vlan_off(const char *ifname, unsigned *changed);

/* Switches on again what offload_vlan_off() changed. Returns 0, -ENODEV or another -errno. No message. */
int offload_vlan_on(const char *ifname, unsigned changed);

/* Frames that the host sends by this veth have whole checksums, and their tags in them, from now on. Returns
 * 0; -EOPNOTSUPP where that cannot be; or another -errno. No message. */
int offload_host_port_off(const char *ifname);

/* "`ethtool -K d0 rxvlan on`": what an operator types for offload_vlan_on(). */
void offload_vlan_command(const char *ifname, unsigned changed, char *text, size_t size);
