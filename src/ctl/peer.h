/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who is at the other end of a UNIX socket, as the kernel knows it. Any thread. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct peer {
	uid_t uid;     /* effective, when it connected */
	bool in_group; /* its effective group, or one of its supplementary ones */
};

/* Looks who connected, and whether the group is among theirs. Returns 0, or -errno without a message. */
int peer_look(int fd, gid_t group, struct peer *peer);
