/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "ctl/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

static int look_at_groups(int fd, gid_t group, struct peer *peer)
{
	socklen_t bytes = 0;
	gid_t *groups;
	int err = 0;

	/* Without room it says how much it needs; they are those of the time of connecting. */
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &bytes))
		return 0;
	if (errno != ERANGE)
		return -errno;
	groups = malloc(bytes);
	if (!groups)
		return -ENOMEM;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes))
		err = -errno;
	for (size_t i = 0; !err && i < bytes / sizeof(*groups); i++)
		peer->in_group |= groups[i] == group;
	free(groups);
	return err;
}

int peer_look(int fd, gid_t group, struct peer *peer)
{
	struct ucred credentials;
	socklen_t bytes = sizeof(credentials);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes))
		return -errno;
	*peer = (struct peer){ .uid = credentials.uid, .in_group = credentials.gid == group };
	return look_at_groups(fd, group, peer);
}
