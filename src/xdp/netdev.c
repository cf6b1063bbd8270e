/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "xdp/netdev.h"

#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* A link with many virtual functions answers with tens of KiB; the kernel's own limit for one
 * message of a dump is 32 KiB. */
#define ANSWER_BYTES 32768

static int parse_link(const struct nlmsghdr *message, void *context)
{
	struct netdev *netdev = context;
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(message);
	const struct nlattr *attr;

	netdev->ifindex = info->ifi_index;
	mnl_attr_for_each(attr, message, sizeof(*info))
	{
		switch (mnl_attr_get_type(attr)) {
		case IFLA_IFNAME:
			snprintf(netdev->name, sizeof(netdev->name), "%s", mnl_attr_get_str(attr));
			break;
		case IFLA_MTU:
			netdev->mtu = mnl_attr_get_u32(attr);
			break;
		case IFLA_ADDRESS:
			if (mnl_attr_get_payload_len(attr) == MAC_LEN)
				memcpy(netdev->mac, mnl_attr_get_payload(attr), MAC_LEN);
			break;
		default:
			break;
		}
	}
	return MNL_CB_STOP;
}

/* Sends a RTM_GETLINK and lets `parse` read the answer. */
static int link_request(const char *name, int ifindex, mnl_cb_t parse, void *context)
{
	char buffer[ANSWER_BYTES] __attribute__((aligned(8)));
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	struct ifinfomsg *info = mnl_nlmsg_put_extra_header(message, sizeof(*info));
	struct mnl_socket *socket;
	ssize_t len;
	int err = 0;

	message->nlmsg_type = RTM_GETLINK;
	message->nlmsg_flags = NLM_F_REQUEST;
	info->ifi_index = ifindex;
	if (name)
		mnl_attr_put_strz(message, strlen(name) < IFNAMSIZ ? IFLA_IFNAME : IFLA_ALT_IFNAME,
				  name);
	socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	if (!socket)
		return -errno;
	if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0 ||
	    mnl_socket_sendto(socket, message, message->nlmsg_len) < 0) {
		err = -errno;
	} else {
		len = mnl_socket_recvfrom(socket, buffer, sizeof(buffer));
		if (len < 0 || mnl_cb_run(buffer, (size_t)len, 0, 0, parse, context) < 0)
			err = -errno;
	}
	mnl_socket_close(socket);
	return err;
}

static int ethtool_ioctl(int fd, const char *name, void *command)
{
	struct ifreq request = { 0 };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	request.ifr_data = command;
	return ioctl(fd, SIOCETHTOOL, &request) ? -errno : 0;
}

/*
 * The kernel binds a socket to any queue below the *current* real count, which only the channel
 * query tells: IFLA_NUM_RX_QUEUES is how many were allocated. A driver without that query has
 * either one queue or tells its RX rings.
 */
static void query_queues(int fd, struct netdev *netdev)
{
	struct ethtool_channels channels = { .cmd = ETHTOOL_GCHANNELS };
	struct ethtool_rxnfc rings = { .cmd = ETHTOOL_GRXRINGS };

	netdev->rx_queues = netdev->tx_queues = 1;
	if (!ethtool_ioctl(fd, netdev->name, &channels)) {
		netdev->rx_queues = channels.rx_count + channels.combined_count;
		netdev->tx_queues = channels.tx_count + channels.combined_count;
	} else if (!ethtool_ioctl(fd, netdev->name, &rings) && rings.data > 0) {
		netdev->rx_queues = netdev->tx_queues = (uint32_t)rings.data;
	}
	if (!netdev->rx_queues)
		netdev->rx_queues = 1;
	if (!netdev->tx_queues)
		netdev->tx_queues = 1;
}

/* sysfs of the caller's namespace, if it is mounted; a virtual device has no such file. */
static int query_numa_node(const char *name)
{
	char path[64];
	FILE *file;
	int node = -1;

	snprintf(path, sizeof(path), "/sys/class/net/%s/device/numa_node", name);
	file = fopen(path, "re");
	if (!file)
		return -1;
	if (fscanf(file, "%d", &node) != 1) /* NOLINT(cert-err34-c): the kernel's own number */
		node = -1;
	fclose(file);
	return node;
}

int netdev_query(const char *name, struct netdev *netdev)
{
	struct ethtool_drvinfo driver = { .cmd = ETHTOOL_GDRVINFO };
	int err, fd;

	*netdev = (struct netdev){ 0 };
	err = link_request(name, 0, parse_link, netdev);
	if (err)
		return err;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	query_queues(fd, netdev);
	if (!ethtool_ioctl(fd, netdev->name, &driver))
		snprintf(netdev->driver, sizeof(netdev->driver), "%s", driver.driver);
	close(fd);
	netdev->numa_node = query_numa_node(netdev->name);
	return 0;
}

bool netdev_exists(int ifindex)
{
	struct netdev netdev;

	return link_request(NULL, ifindex, parse_link, &netdev) != -ENODEV;
}

int netdev_watch_open(void)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&address, sizeof(address))) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

struct gone_callback {
	netdev_gone_fn *gone;
	void *context;
};

static int watch_message(const struct nlmsghdr *message, void *context)
{
	const struct gone_callback *callback = context;
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(message);

	/* A port that leaves a bridge sends RTM_DELLINK too, of family AF_BRIDGE: it is still here. */
	if (message->nlmsg_type == RTM_DELLINK && info->ifi_family == AF_UNSPEC)
		callback->gone(info->ifi_index, callback->context);
	return MNL_CB_OK;
}

int netdev_watch_read(int fd, netdev_gone_fn *gone, void *context)
{
	struct gone_callback callback = { gone, context };
	char buffer[ANSWER_BYTES] __attribute__((aligned(8)));

	for (;;) {
		ssize_t len = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);

		if (len < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		if (mnl_cb_run(buffer, (size_t)len, 0, 0, watch_message, &callback) < 0)
			return -errno;
	}
}
