/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The addresses that this host has on its devices, and the news that they changed. Needs no capability. */
#pragma once

#include <stdint.h>

#include "base/mac.h"
#include "xdp/steer.h"

/* Those of every device of a network namespace, at one moment. */
struct addresses;

/* Asks the kernel for them; blocks only for its answer. Any thread. Returns 0 with *addresses for
 * addresses_free(), or -errno of the netlink request, or -ENOMEM. */
int addresses_read(struct addresses **addresses);

/*
 * The MAC of a device, and the IP addresses that it, or a VLAN device on it, or one on that, has: those of
 * VLAN devices with the tags that their frames have. Returns how many they are, and writes `max` of them at most; for a
 * device that is not there none, and a MAC of zeros.
 */
unsigned addresses_of(const struct addresses *addresses, int ifindex, uint8_t mac[MAC_LEN],
		      struct millrace_own_key *keys, unsigned max);

/* NULL is fine. */
void addresses_free(struct addresses *addresses);

/* Opens a socket that becomes readable when a device or an address of this namespace changes. Returns the fd,
 * which the caller closes, or -errno. */
int addresses_watch_open(void);

/* Takes all the news that is there, without blocking: whoever gets one reads everything again. */
void addresses_watch_drain(int fd);
