/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "xdp/external.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/magic.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/log.h"
#include "xdp/attached.h"
#include "xdp/dispatcher.h"
#include "xdp/netdev.h"

/* What is open, as /proc has it: "bpf-map", "bpf-prog", "bpf_link"; "" if that cannot be told. */
static void kind_of(int fd, char *kind, size_t size)
{
	static const char lead[] = "anon_inode:";
	char path[64], target[64];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	len = readlink(path, target, sizeof(target) - 1);
	target[len < 0 ? 0 : len] = '\0';
	snprintf(kind, size, "%s",
		 strncmp(target, lead, sizeof(lead) - 1) ? "" : target + sizeof(lead) - 1);
}

static void open_failed(const struct prog_opts *opts, int err)
{
	struct statfs fs;

	if (err == -ENOENT)
		log_error("%s: xskmap %s: no such file; pin the map of your program there "
			  "(`bpftool map pin name NAME %s`)",
			  opts->ifname, opts->xskmap, opts->xskmap);
	else if (!statfs(opts->xskmap, &fs) && fs.f_type != BPF_FS_MAGIC)
		log_error("%s: xskmap %s: is no pinned map, for it is not in a bpf file system; "
			  "`mount -t bpf bpf FOLDER` makes one",
			  opts->ifname, opts->xskmap);
	else
		log_error("%s: xskmap %s: cannot be opened: " ERR_FORMAT, opts->ifname,
			  opts->xskmap, ERR_SANDBOX_ARGS(err));
}

static int open_pin(const struct prog_opts *opts)
{
	int fd = bpf_obj_get(opts->xskmap);
	char kind[64];

	if (fd < 0) {
		int err = -errno;

		open_failed(opts, err);
		return err;
	}
	kind_of(fd, kind, sizeof(kind));
	if (!kind[0] || !strcmp(kind, "bpf-map"))
		return fd;
	close(fd);
	log_error("%s: xskmap %s: is a %s and not a map; name the file at which your program's "
		  "XSKMAP is pinned",
		  opts->ifname, opts->xskmap, kind);
	return -EINVAL;
}

static int check_map(const struct prog_opts *opts, const struct bpf_map_info *info)
{
	if (info->type != BPF_MAP_TYPE_XSKMAP || info->key_size != sizeof(uint32_t) ||
	    info->value_size != sizeof(uint32_t)) {
		log_error(
			"%s: xskmap %s: map '%s' is not an XSKMAP (`bpftool map show pinned %s`); "
			"make it with BPF_MAP_TYPE_XSKMAP",
			opts->ifname, opts->xskmap, info->name, opts->xskmap);
		return -EINVAL;
	}
	if (info->max_entries < opts->queues) {
		log_error("%s: xskmap %s: has %u slots, and queue %u needs %u; make it with "
			  "max_entries %u, or serve other queues",
			  opts->ifname, opts->xskmap, info->max_entries, opts->queues - 1,
			  opts->queues, opts->queues);
		return -E2BIG;
	}
	return 0;
}

/* Returns 1 or 0, or -errno if it cannot be told. */
static int uses_map(const struct attached *attached, uint32_t map_id)
{
	uint32_t ids[64];
	struct bpf_prog_info info = { .nr_map_ids = 64, .map_ids = (uintptr_t)ids };
	__u32 len = sizeof(info);
	int fd = bpf_prog_get_fd_by_id(attached->prog_id), err = 0;

	if (fd < 0)
		return -errno;
	if (bpf_obj_get_info_by_fd(fd, &info, &len))
		err = -errno;
	close(fd);
	for (uint32_t i = 0; !err && i < info.nr_map_ids; i++) {
		if (i >= sizeof(ids) / sizeof(ids[0]) || ids[i] == map_id)
			return 1;
	}
	return err;
}

/* Nobody's mistake yet: the program may come later, and may be another one then. */
static void look_at_program(const struct prog_opts *opts, uint32_t map_id, struct prog *prog)
{
	struct attached attached;
	char text[160];

	prog->native = true;
	if (attached_find(opts->ifindex, &attached)) {
		log_warning("%s: no XDP program is attached; nothing comes to our sockets until "
			    "yours is",
			    opts->ifname);
		return;
	}
	prog->native = attached.mode == ATTACHED_NATIVE;
	prog->id = attached.prog_id;
	snprintf(prog->name, sizeof(prog->name), "%s", attached.name);
	if (!strcmp(attached.name, DISPATCHER_NAME) || uses_map(&attached, map_id))
		return;
	attached_describe(&attached, text, sizeof(text));
	log_warning(
		"%s: %s does not use the map pinned at %s; nothing comes to our sockets until a "
		"program does",
		opts->ifname, text, opts->xskmap);
}

int external_open(struct prog *prog, const struct prog_opts *opts)
{
	struct bpf_map_info info = { 0 };
	__u32 len = sizeof(info);
	int fd = open_pin(opts), err;

	*prog = (struct prog){ 0 };
	if (fd < 0)
		return fd;
	err = bpf_obj_get_info_by_fd(fd, &info, &len) ? -errno : 0;
	if (err)
		open_failed(opts, err);
	else
		err = check_map(opts, &info);
	if (err) {
		close(fd);
		return err;
	}
	prog->external = true;
	prog->xsks_fd = fd;
	look_at_program(opts, info.id, prog);
	return 0;
}

bool external_there(int ifindex)
{
	return netdev_has_program(ifindex) != 0;
}
