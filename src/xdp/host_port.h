/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A pair of veth devices by which the host is behind a port: the far end has the operator's name and is the
 * kernel's to use, the near end is forwarded like any other device.
 *
 *	host's stack -- NAME ==== mr-NAME -- a port of a patch or bridge
 *
 * What the kernel sends by the far end must be whole when it comes out of the near one, so the far end leaves
 * neither checksums, nor segmentation, nor VLAN tags to a device. The near end has no addresses. Needs
 * CAP_NET_ADMIN. One thread.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "xdp/netdev.h"

#define HOST_PORT_NEAR "mr-"

/* The near end's name. */
static inline void host_port_near(const char *name, char near[static NETDEV_NAME_SIZE])
{
	snprintf(near, NETDEV_NAME_SIZE, HOST_PORT_NEAR "%s", name);
}

/*
 * Makes the pair, both ends up, or takes one over that an earlier millraced left. mtu 0: the kernel's. Returns
 * 0, or -errno after a message: -EEXIST where there is another interface of one of the names.
 */
int host_port_make(const char *name, uint32_t mtu);

/* Removes the pair, if it is one of these. None is fine. Returns 0, or -errno after a message. */
int host_port_remove(const char *name);
