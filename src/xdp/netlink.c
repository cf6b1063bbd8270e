/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "xdp/netlink.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

int netlink_ask(const struct nlmsghdr *request, mnl_cb_t parse, void *context)
{
	char buffer[NETLINK_ANSWER_BYTES] __attribute__((aligned(8)));
	struct mnl_socket *socket;
	int err = 0, more = MNL_CB_OK;

	socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	if (!socket)
		return -errno;
	if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0 ||
	    mnl_socket_sendto(socket, request, request->nlmsg_len) < 0)
		err = -errno;
	while (!err && more == MNL_CB_OK) {
		ssize_t len = mnl_socket_recvfrom(socket, buffer, sizeof(buffer));

		if (len >= 0)
			more = mnl_cb_run(buffer, (size_t)len, 0, 0, parse, context);
		if (len < 0 || more < 0)
			err = -errno;
	}
	mnl_socket_close(socket);
	return err;
}

int netlink_watch_open(uint32_t groups)
{
	const struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = groups };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address))) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}
