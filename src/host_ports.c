/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "host_ports.h"

#include <string.h>

#include "xdp/host_port.h"
#include "xdp/netdev.h"
#include "xdp/opener.h"

_Static_assert(CONF_HOST_NAME_MAX + sizeof(HOST_PORT_NEAR) == NETDEV_NAME_SIZE, "a whole name");

/* As the kernel's bridge has it: what the host sends fits every port. 0: none of them is there. */
static uint32_t least_mtu(const struct conf_forward *forward)
{
	uint32_t least = 0;

	for (unsigned i = 0; i < forward->ports; i++) {
		const struct conf_port *port = forward->port[i];
		struct netdev netdev;

		if (!port->host && !netdev_query(port->device, &netdev) &&
		    (!least || netdev.mtu < least))
			least = netdev.mtu;
	}
	return least;
}

int host_ports_make(const struct conf *conf)
{
	int err = 0;

	for (unsigned i = 0; !err && i < conf->forwards; i++) {
		const struct conf_forward *forward = &conf->forward[i];

		if (forward->host_port[0])
			err = opener_host_port(forward->host_port, least_mtu(forward),
					       forward->keep_host_port);
	}
	return err;
}

static bool names(const struct conf *conf, const char *name)
{
	for (unsigned i = 0; i < conf->forwards; i++) {
		if (!strcmp(conf->forward[i].host_port, name))
			return true;
	}
	return false;
}

void host_ports_remove(const struct conf *gone, const struct conf *conf)
{
	for (unsigned i = 0; i < gone->forwards; i++) {
		const char *name = gone->forward[i].host_port;

		if (name[0] && !names(conf, name))
			(void)opener_host_port_remove(name);
	}
}
