/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The listening UNIX socket and its file. Main thread. */
#pragma once

#include <sys/types.h>

#define SOCKET_FILE_PATH_SIZE 108 /* of a sockaddr_un */

struct socket_file {
	int fd; /* listening, does not block; 0 or -1: none. Owned. */
	char path[SOCKET_FILE_PATH_SIZE];
	dev_t device; /* what the file was when it was made, to know it again */
	ino_t inode;
};

/*
 * Makes the file and listens on it: for its owner alone, or for this group too if `group` is not
 * (gid_t)-1. The file of a socket on which nobody answers any more is replaced; whatever else is there
 * stays. Processes that do this in the same folder wait for each other, so that none takes the other's.
 * Returns 0, or -errno after a message: -EADDRINUSE a daemon answers there, -EEXIST it is no socket,
 * -ENOENT there is no such folder, -ENAMETOOLONG, -EACCES, -EPERM the group cannot be given.
 */
int socket_file_open(struct socket_file *file, const char *path, gid_t group);

/*
 * Whether the host has what socket_file_open() needs, without touching it; who asks need not be the user
 * who will start the daemon, so what only that one's rights decide is not judged. A daemon that answers
 * there is nothing against it. Returns 0, or -errno after a message: -ENOENT, -ENOTDIR, -EROFS of the
 * folder, -EEXIST.
 */
int socket_file_check(const char *path);

/* Closes it, and takes the file away if it is still the one that was made. A zeroed one is fine. */
void socket_file_close(struct socket_file *file);
