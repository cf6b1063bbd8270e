/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "ctl/socket_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

/* How long another process may hold the folder's lock: making a socket takes microseconds, but others
 * lock folders as well (systemd-tmpfiles, while it cleans up). */
#define LOCK_NS	    NSEC_PER_SEC
#define LOCK_NAP_US 5000

/* Clients that the kernel keeps until they are accepted; more are told EAGAIN. As many as may be
 * connected, so that a crowd that comes at once is counted by us and told why it must go. */
#define BACKLOG 64

/* The folder that the path is in. */
static void folder_of(const char *path, char *folder, size_t size)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		snprintf(folder, size, ".");
	else
		snprintf(folder, size, "%.*s", slash == path ? 1 : (int)(slash - path), path);
}

static void log_folder(const char *path, const char *folder, int err)
{
	if (err == -ENOENT)
		log_error("control socket %s: there is no folder %s; make it with `mkdir -p %s`",
			  path, folder, folder);
	else
		log_error("control socket %s: the folder %s: " ERR_FORMAT, path, folder,
			  ERR_ARGS(err));
}

/* Returns the fd of the locked folder, or -errno after a message. */
static int lock_folder(const char *path)
{
	uint64_t start_ns = clock_now_ns();
	char folder[SOCKET_FILE_PATH_SIZE];
	int fd, err;

	folder_of(path, folder, sizeof(folder));
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		log_folder(path, folder, err);
		return err;
	}
	while (flock(fd, LOCK_EX | LOCK_NB)) {
		err = -errno;
		if ((err == -EWOULDBLOCK || err == -EINTR) && clock_now_ns() - start_ns < LOCK_NS) {
			usleep(LOCK_NAP_US);
			continue;
		}
		log_error("control socket %s: the folder is locked by another process: " ERR_FORMAT
			  "; see `lslocks`",
			  path, ERR_ARGS(err));
		close(fd);
		return err;
	}
	return fd;
}

static int make_address(const char *path, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (!path[0] || strlen(path) >= sizeof(address->sun_path)) {
		log_error("control socket '%s': a path of a socket has 1 to %zu characters", path,
			  sizeof(address->sun_path) - 1);
		return -ENAMETOOLONG;
	}
	memcpy(address->sun_path, path, strlen(path) + 1);
	return 0;
}

/* 0: somebody listens there. -EAGAIN is an answer too: so many wait that no more may. */
static int knock(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)))
		err = -errno;
	close(fd);
	return err == -EAGAIN ? 0 : err;
}

/* What stands there already: 1 a socket, 0 nothing, or -errno, -EEXIST after a message: it is none. */
static int look_for_socket(const char *path)
{
	struct stat status;

	if (lstat(path, &status))
		return errno == ENOENT ? 0 : -errno;
	if (S_ISSOCK(status.st_mode))
		return 1;
	log_error("control socket %s: there is a file that is no socket; it stays, choose another "
		  "path with --control-socket",
		  path);
	return -EEXIST;
}

/* Takes away the file of a socket on which nobody answers. Under the folder's lock. */
static int remove_stale(const char *path, const struct sockaddr_un *address)
{
	int err = look_for_socket(path);

	if (err <= 0)
		return err;
	err = knock(address);
	if (!err) {
		log_error("control socket %s: a running daemon answers on it; end that, or choose "
			  "another path with --control-socket",
			  path);
		return -EADDRINUSE;
	}
	if (err != -ECONNREFUSED) {
		log_error("control socket %s: cannot be asked whether it is in use: " ERR_FORMAT,
			  path, ERR_ARGS(err));
		return err;
	}
	if (unlink(path) && errno != ENOENT) {
		err = -errno;
		log_error(
			"control socket %s: left behind by another daemon and cannot be removed: " ERR_FORMAT,
			path, ERR_ARGS(err));
		return err;
	}
	return 0;
}

static int listen_on(struct socket_file *file, const struct sockaddr_un *address)
{
	struct stat status;

	file->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (file->fd < 0)
		return -errno;
	/* The file takes the socket's mode, so that nobody can connect before its group is set. */
	if (fchmod(file->fd, S_IRUSR | S_IWUSR) ||
	    bind(file->fd, (const struct sockaddr *)address, sizeof(*address)))
		return -errno;
	if (lstat(file->path, &status))
		return -errno;
	file->device = status.st_dev;
	file->inode = status.st_ino;
	return listen(file->fd, BACKLOG) ? -errno : 0;
}

static int give_to_group(const struct socket_file *file, gid_t group)
{
	int err = 0;

	if (group == (gid_t)-1)
		return 0;
	if (lchown(file->path, (uid_t)-1, group) ||
	    chmod(file->path, S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP))
		err = -errno;
	if (err)
		log_error("control socket %s: cannot be given to group %u: " ERR_FORMAT
			  "; that takes CAP_CHOWN, or a user who is in the group",
			  file->path, (unsigned)group, ERR_ARGS(err));
	return err;
}

int socket_file_open(struct socket_file *file, const char *path, gid_t group)
{
	struct sockaddr_un address;
	int err, lock;

	*file = (struct socket_file){ .fd = -1 };
	err = make_address(path, &address);
	if (err)
		return err;
	memcpy(file->path, address.sun_path, sizeof(file->path));
	lock = lock_folder(path);
	if (lock < 0)
		return lock;
	err = remove_stale(path, &address);
	if (!err) {
		err = listen_on(file, &address);
		if (err)
			log_error("control socket %s: cannot be made: " ERR_FORMAT, path,
				  ERR_SANDBOX_ARGS(err));
		else
			err = give_to_group(file, group);
	}
	close(lock);
	if (err)
		socket_file_close(file);
	return err;
}

int socket_file_check(const char *path)
{
	char folder[SOCKET_FILE_PATH_SIZE];
	struct stat status;
	int err = 0;

	folder_of(path, folder, sizeof(folder));
	if (stat(folder, &status))
		err = -errno;
	else if (!S_ISDIR(status.st_mode))
		err = -ENOTDIR;
	else if (access(folder, W_OK) && errno == EROFS)
		err = -EROFS;
	if (err == -EACCES) {
		log_warning("control socket %s: whether it can be made is not told: " ERR_FORMAT,
			    path, ERR_ARGS(err));
		return 0;
	}
	if (err) {
		log_folder(path, folder, err);
		return err;
	}
	err = look_for_socket(path);
	return err == -EEXIST ? err : 0;
}

static bool is_ours(const struct socket_file *file)
{
	struct stat status;

	return file->inode && !lstat(file->path, &status) && status.st_dev == file->device &&
	       status.st_ino == file->inode;
}

void socket_file_close(struct socket_file *file)
{
	int lock = -1;

	if (file->fd <= 0)
		return;
	/* Still listening: until the file is gone, nobody takes it for left behind. */
	if (is_ours(file))
		lock = lock_folder(file->path);
	if (lock >= 0) {
		if (is_ours(file) && unlink(file->path))
			log_warning("control socket %s: the file stays behind: " ERR_FORMAT,
				    file->path, ERR_ARGS(errno));
		close(lock);
	}
	close(file->fd);
	*file = (struct socket_file){ .fd = -1 };
}
