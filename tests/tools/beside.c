/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Somebody else who shares an interface through libxdp, as xdp-loader would:
 *
 *	beside IFACE join native|skb PRIORITY [frags]	prints the program's id; it stays there
 *	beside IFACE leave ID
 *	beside IFACE list	"ID NAME PRIORITY" of each program of the dispatcher, in their order
 *	beside IFACE count ID	frames that the program has seen
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/types.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xdp/libxdp.h>

/* Said again outside a system header, or clang's analyser holds that it keeps what it frees. */
void bpf_object__destroy_skeleton(struct bpf_object_skeleton *s);

#include "beside.skel.h"

enum { EXIT_WORLD = 1, EXIT_USAGE = 2 };

static int complain(const char *what, int err)
{
	fprintf(stderr, "beside: %s: %s\n", what, strerrordesc_np(-err));
	return EXIT_WORLD;
}

static int join(int ifindex, char **argv, int argc)
{
	struct beside_bpf *skeleton = beside_bpf__open();
	struct xdp_program *program;
	int err;

	if (!skeleton)
		return complain("open", -errno);
	program = xdp_program__from_bpf_obj(skeleton->obj, NULL);
	err = (int)libxdp_get_error(program);
	if (!err)
		err = xdp_program__set_run_prio(program, (unsigned)strtoul(argv[1], NULL, 10));
	if (!err)
		err = xdp_program__set_xdp_frags_support(program,
							 argc > 2 && !strcmp(argv[2], "frags"));
	if (!err)
		err = xdp_program__attach(program, ifindex,
					  strcmp(argv[0], "skb") ? XDP_MODE_NATIVE : XDP_MODE_SKB,
					  0);
	if (err)
		return complain("join", err);
	printf("%u\n", xdp_program__id(program));
	return EXIT_SUCCESS;
}

static int leave(int ifindex, const char *id)
{
	struct xdp_program *program = xdp_program__from_id((uint32_t)strtoul(id, NULL, 10));
	struct xdp_multiprog *dispatcher = xdp_multiprog__get_from_ifindex(ifindex);
	int err = (int)libxdp_get_error(program);

	if (!err)
		err = (int)libxdp_get_error(dispatcher);
	if (!err)
		err = xdp_program__detach(program, ifindex, xdp_multiprog__attach_mode(dispatcher),
					  0);
	return err ? complain("leave", err) : EXIT_SUCCESS;
}

static int list(int ifindex)
{
	struct xdp_multiprog *dispatcher = xdp_multiprog__get_from_ifindex(ifindex);
	struct xdp_program *one = NULL;

	if (libxdp_get_error(dispatcher) || xdp_multiprog__is_legacy(dispatcher))
		return EXIT_SUCCESS;
	while ((one = xdp_multiprog__next_prog(one, dispatcher)))
		printf("%u %s %u\n", xdp_program__id(one), xdp_program__name(one),
		       xdp_program__run_prio(one));
	return EXIT_SUCCESS;
}

static int count(const char *id)
{
	uint32_t map_id = 0, zero = 0;
	uint64_t frames = 0;
	struct bpf_prog_info info = { .nr_map_ids = 1, .map_ids = (uintptr_t)&map_id };
	__u32 len = sizeof(info);
	int fd = bpf_prog_get_fd_by_id((uint32_t)strtoul(id, NULL, 10));

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len))
		return complain("program", -errno);
	fd = bpf_map_get_fd_by_id(map_id);
	if (fd < 0 || bpf_map_lookup_elem(fd, &zero, &frames))
		return complain("map", -errno);
	printf("%" PRIu64 "\n", frames);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	int ifindex = argc > 2 ? (int)if_nametoindex(argv[1]) : 0;

	if (argc > 2 && !ifindex)
		return complain(argv[1], -errno);
	if (argc > 4 && !strcmp(argv[2], "join"))
		return join(ifindex, argv + 3, argc - 3);
	if (argc > 3 && !strcmp(argv[2], "leave"))
		return leave(ifindex, argv[3]);
	if (argc > 3 && !strcmp(argv[2], "count"))
		return count(argv[3]);
	if (argc > 2 && !strcmp(argv[2], "list"))
		return list(ifindex);
	fputs("usage: beside IFACE join native|skb PRIORITY [frags] | leave ID | list | count ID\n",
	      stderr);
	return EXIT_USAGE;
}
