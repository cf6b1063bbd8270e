/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "xdp/attached.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct mode_row {
	const char *name;
	const char *ip_word;
	uint32_t flag;
};

static const struct mode_row mode_rows[] = {
	[ATTACHED_NATIVE] = { "native", "xdpdrv", XDP_FLAGS_DRV_MODE },
	[ATTACHED_SKB] = { "skb", "xdpgeneric", XDP_FLAGS_SKB_MODE },
	[ATTACHED_OFFLOAD] = { "offload", "xdpoffload", XDP_FLAGS_HW_MODE },
};

const char *attached_ip_word(const struct attached *attached)
{
	return mode_rows[attached->mode].ip_word;
}

int attached_find(int ifindex, struct attached *attached)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	struct bpf_prog_info info = { 0 };
	__u32 len = sizeof(info);
	int err, fd;

	*attached = (struct attached){ .ifindex = ifindex };
	err = bpf_xdp_query(ifindex, 0, &query);
	if (err)
		return err;
	if (query.drv_prog_id) {
		attached->mode = ATTACHED_NATIVE;
		attached->prog_id = query.drv_prog_id;
	} else if (query.skb_prog_id) {
		attached->mode = ATTACHED_SKB;
		attached->prog_id = query.skb_prog_id;
	} else {
		attached->mode = ATTACHED_OFFLOAD;
		attached->prog_id = query.hw_prog_id;
	}
	if (!attached->prog_id)
		return -ENOENT;
	fd = bpf_prog_get_fd_by_id(attached->prog_id);
	if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &len))
		snprintf(attached->name, sizeof(attached->name), "%s", info.name);
	if (fd >= 0)
		close(fd);
	return 0;
}

/* True if the link is one that holds the program on a device of this number; of which namespace, no
 * link tells. */
static bool link_matches(int fd, const struct attached *attached)
{
	struct bpf_link_info info = { 0 };
	__u32 len = sizeof(info);

	return !bpf_obj_get_info_by_fd(fd, &info, &len) && info.type == BPF_LINK_TYPE_XDP &&
	       info.prog_id == attached->prog_id && info.xdp.ifindex == (__u32)attached->ifindex;
}

/* The one link that holds the program there. Returns its fd, or -EPERM, -ENOTUNIQ (none, or several). */
static int open_link(const struct attached *attached, __u32 *link_id)
{
	int found = -ENOTUNIQ;
	__u32 id = 0;

	while (!bpf_link_get_next_id(id, &id)) {
		int fd = bpf_link_get_fd_by_id(id);

		if (fd < 0)
			continue; /* just gone */
		if (!link_matches(fd, attached)) {
			close(fd);
			continue;
		}
		if (found >= 0) {
			close(found);
			close(fd);
			return -ENOTUNIQ;
		}
		found = fd;
		*link_id = id;
	}
	return found < 0 && errno != ENOENT ? -errno : found;
}

/* What a /proc/PID/fdinfo/FD says of a link or a program. */
struct fdinfo {
	uint32_t link_id, prog_id, ifindex;
};

static struct fdinfo read_fdinfo(long pid, long fd)
{
	struct fdinfo info = { 0 };
	char path[64], line[128];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%ld/fdinfo/%ld", pid, fd);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		char *value = strchr(line, ':');

		if (!value)
			continue;
		*value++ = '\0';
		if (!strcmp(line, "link_id"))
			info.link_id = (uint32_t)strtoul(value, NULL, 10);
		else if (!strcmp(line, "prog_id"))
			info.prog_id = (uint32_t)strtoul(value, NULL, 10);
		else if (!strcmp(line, "ifindex"))
			info.ifindex = (uint32_t)strtoul(value, NULL, 10);
	}
	if (file)
		fclose(file);
	return info;
}

/* Most files of most processes are something else, and their fdinfo need not be read. */
static bool is_bpf_file(long pid, long fd)
{
	char path[64], target[64];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%ld/fd/%ld", pid, fd);
	len = readlink(path, target, sizeof(target) - 1);
	target[len < 0 ? 0 : len] = '\0';
	return strstr(target, "bpf");
}

static void note_holder(struct attached *attached, long pid)
{
	char path[64];
	FILE *file;

	attached->holder = (pid_t)pid;
	snprintf(path, sizeof(path), "/proc/%ld/comm", pid);
	file = fopen(path, "re");
	if (!file || !fgets(attached->holder_name, sizeof(attached->holder_name), file))
		attached->holder_name[0] = '\0';
	attached->holder_name[strcspn(attached->holder_name, "\n")] = '\0';
	if (file)
		fclose(file);
}

/* A process that has the link open beats one that has only the program: a loader that keeps what it has
 * loaded, or somebody who looks at it. */
static void look_at_file(struct attached *attached, long pid, long fd)
{
	struct fdinfo info;

	if (attached->holder_has_link || !is_bpf_file(pid, fd))
		return;
	info = read_fdinfo(pid, fd);
	if (info.prog_id != attached->prog_id)
		return;
	if (info.link_id && info.ifindex == (uint32_t)attached->ifindex) {
		attached->link_id = info.link_id;
		attached->holder_has_link = true;
		note_holder(attached, pid);
	} else if (!info.link_id && !attached->holder) {
		note_holder(attached, pid);
	}
}

/* Calls `look` for each entry of the directory whose name is a number. */
static void each_number(const char *path, struct attached *attached, long pid,
			void (*look)(struct attached *attached, long pid, long number))
{
	DIR *directory = opendir(path);
	struct dirent *entry;

	/* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream has one reader */
	while (directory && (entry = readdir(directory))) {
		if (isdigit((unsigned char)entry->d_name[0]))
			look(attached, pid, strtol(entry->d_name, NULL, 10));
	}
	if (directory)
		closedir(directory);
}

static void look_at_process(struct attached *attached, long self, long pid)
{
	char path[64];

	if (pid == self)
		return;
	snprintf(path, sizeof(path), "/proc/%ld/fd", pid);
	each_number(path, attached, pid, look_at_file);
}

void attached_find_holder(struct attached *attached)
{
	int fd = open_link(attached, &attached->link_id);

	if (fd >= 0)
		close(fd);
	each_number("/proc", attached, getpid(), look_at_process);
}

static int detach_link(const struct attached *attached)
{
	__u32 id;
	int fd = open_link(attached, &id);
	int err;

	if (fd < 0)
		return fd;
	err = bpf_link_detach(fd);
	close(fd);
	return err;
}

int attached_take_off(const struct attached *attached)
{
	LIBBPF_OPTS(bpf_xdp_attach_opts, opts);
	int fd = bpf_prog_get_fd_by_id(attached->prog_id);
	int err;

	/* This program and no other; without CAP_SYS_ADMIN that cannot be said. */
	opts.old_prog_fd = fd < 0 ? 0 : fd;
	err = bpf_xdp_detach(attached->ifindex, mode_rows[attached->mode].flag, &opts);
	if (fd >= 0)
		close(fd);
	/* What a link holds, netlink cannot touch. */
	return err == -EBUSY ? detach_link(attached) : err;
}

void attached_describe(const struct attached *attached, char *text, size_t size)
{
	char quoted[ATTACHED_NAME_SIZE + 3] = "", holder[64] = "";

	if (attached->name[0])
		snprintf(quoted, sizeof(quoted), " '%s'", attached->name);
	if (attached->holder)
		snprintf(holder, sizeof(holder), ", %s by pid %d (%s)",
			 attached->holder_has_link ? "held" : "loaded", (int)attached->holder,
			 attached->holder_name);
	else if (attached->link_id)
		snprintf(holder, sizeof(holder), ", held by bpf_link %u", attached->link_id);
	snprintf(text, size, "XDP program %u%s (%s mode%s)", attached->prog_id, quoted,
		 mode_rows[attached->mode].name, holder);
}
