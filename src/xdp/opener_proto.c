/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "xdp/opener_proto.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

union control {
	struct cmsghdr head; /* for its alignment */
	char bytes[CMSG_SPACE(OPENER_FDS_MAX * sizeof(int))];
};

int opener_send(int socket, void *message, size_t size, const struct opener_fds *fds)
{
	union control control = { 0 };
	struct iovec part = { message, size };
	struct msghdr packet = { .msg_iov = &part, .msg_iovlen = 1 };

	if (fds && fds->count) {
		struct cmsghdr *head;

		packet.msg_control = control.bytes;
		packet.msg_controllen = CMSG_SPACE(fds->count * sizeof(int));
		head = CMSG_FIRSTHDR(&packet);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(fds->count * sizeof(int));
		memcpy(CMSG_DATA(head), fds->fd, fds->count * sizeof(int));
	}
	while (sendmsg(socket, &packet, MSG_NOSIGNAL) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

/* The control buffer has room for OPENER_FDS_MAX: the kernel installs no more. */
static void take_fds(struct msghdr *packet, struct opener_fds *fds)
{
	for (struct cmsghdr *head = CMSG_FIRSTHDR(packet); head; head = CMSG_NXTHDR(packet, head)) {
		if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
			continue;
		fds->count = (unsigned)((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds->fd, CMSG_DATA(head), fds->count * sizeof(int));
	}
}

int opener_receive(int socket, void *message, size_t size, struct opener_fds *fds)
{
	union control control = { 0 };
	struct iovec part = { message, size };
	struct msghdr packet = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	ssize_t len;
	int err = 0;

	fds->count = 0;
	do {
		len = recvmsg(socket, &packet, MSG_CMSG_CLOEXEC);
	} while (len < 0 && errno == EINTR);
	if (len < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	take_fds(&packet, fds);
	if (!len)
		err = -EPIPE;
	else if ((size_t)len != size || (packet.msg_flags & MSG_TRUNC))
		err = -EBADMSG;
	else if (packet.msg_flags & MSG_CTRUNC)
		err = -EMFILE;
	if (err)
		opener_fds_close(fds);
	return err;
}

void opener_fds_close(struct opener_fds *fds)
{
	for (unsigned i = 0; i < fds->count; i++)
		close(fds->fd[i]);
	fds->count = 0;
}
