/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The XDP program that is on a device, who holds it there, and how to take it off. Main thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ATTACHED_NAME_SIZE 16 /* of a program (BPF_OBJ_NAME_LEN) or a process (TASK_COMM_LEN) */

enum attached_mode {
	ATTACHED_NATIVE,
	ATTACHED_SKB,
	ATTACHED_OFFLOAD,
};

struct attached {
	int ifindex;
	uint32_t prog_id;
	char name[ATTACHED_NAME_SIZE]; /* the program's; "": not told, which needs CAP_SYS_ADMIN */
	enum attached_mode mode;
	/* From here on by attached_find_holder(). */
	uint32_t link_id; /* of the bpf_link that holds it; 0: attached by netlink, or not told */
	pid_t holder; /* a process that has the link or else the program open; 0: none is known */
	bool holder_has_link;
	char holder_name[ATTACHED_NAME_SIZE];
};

/* Looks what is on the device. Returns 0; -ENOENT if that is nothing; or another -errno of the netlink
 * request. Logs nothing, as the next two. */
int attached_find(int ifindex, struct attached *attached);

/* Finds out who holds what attached_find() found, as far as this process may see: reads all of /proc,
 * which takes milliseconds. */
void attached_find_holder(struct attached *attached);

/*
 * Takes it off: one of netlink by detaching in its mode, one of a bpf_link by detaching that. Returns 0;
 * -EPERM for a bpf_link without CAP_SYS_ADMIN; -ENOTUNIQ if it cannot be told which link holds it; or
 * what the kernel says. What came to the device in the meantime stays.
 */
int attached_take_off(const struct attached *attached);

/* "XDP program 12 'name' (native mode, held by pid 34 (comm))". */
void attached_describe(const struct attached *attached, char *text, size_t size);

/* The word for the mode in `ip link set dev IFACE WORD off`. Static. */
const char *attached_ip_word(const struct attached *attached);
