/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a port of a VLAN-aware bridge does with tags, as users say it: `vlan-mode = trunk 1-10,20 native 1`.
 * Pure; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* VLANs go from 1 to this: 0 is no VLAN but a tag that carries a priority only, and 4095 is reserved. */
#define VLAN_MODE_MAX 4094

/* Room for the longest list, every other VLAN, and what stands around it. */
#define VLAN_MODE_TEXT_SIZE (VLAN_MODE_MAX / 2 * 5 + 64)

enum vlan_mode_kind {
	VLAN_MODE_TRANSPARENT, /* tags are data */
	VLAN_MODE_ACCESS,      /* one VLAN, without tags */
	VLAN_MODE_TRUNK,       /* several, with tags */
};

struct vlan_mode {
	enum vlan_mode_kind kind;
	/* Of frames without a tag of a VLAN, and without a tag when they leave: the port's one VLAN, or of a
	 * trunk the native one. 0: none. */
	uint16_t untagged;
	uint64_t list[VLAN_MODE_MAX / 64 +
		      1]; /* of a trunk, as bits; the native one need not be there */
};

/* What is wrong, and what was expected. */
struct vlan_wrong {
	char text[256];
};

/* Reads `transparent`, `access VID` or `trunk LIST [native VID]`. Returns 0 with *mode, or -EINVAL with
 * *wrong. */
int vlan_mode_parse(const char *text, struct vlan_mode *mode, struct vlan_wrong *wrong);

/* Writes it as vlan_mode_parse() reads it, cut to the room there is. */
void vlan_mode_print(const struct vlan_mode *mode, char *text, size_t size);

/* True if the port is in this VLAN, 1 to VLAN_MODE_MAX. A transparent one is in none. */
static inline bool vlan_mode_has(const struct vlan_mode *mode, unsigned vlan)
{
	return mode->untagged == vlan || mode->list[vlan / 64] & 1ULL << vlan % 64;
}
