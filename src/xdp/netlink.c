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
	/* The kernel binds it when it sends; bind(2) is not for the process that asks. */
	if (mnl_socket_sendto(socket, request, request->nlmsg_len) < 0)
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

/* News reach only a socket that has an address, which the kernel gives it when it sends something. */
static int get_address(int fd)
{
	const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct nlmsghdr nothing = { .nlmsg_len = sizeof(nothing), .nlmsg_type = NLMSG_NOOP };

	return sendto(fd, &nothing, sizeof(nothing), 0, (const struct sockaddr *)&kernel,
		      sizeof(kernel)) < 0 ?
		       -errno :
		       0;
}

int netlink_watch_open(uint32_t groups)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	int err = fd < 0 ? -errno : get_address(fd);

	/* Group 1 is bit 0. */
	for (int group = 1; !err && groups; group++, groups >>= 1) {
		if (groups & 1 &&
		    setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)))
			err = -errno;
	}
	if (!err)
		return fd;
	if (fd >= 0)
		close(fd);
	return err;
}
