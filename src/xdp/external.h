/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The XSKMAP of somebody else's program: opening and checking it. Main thread. */
#pragma once

#include <stdbool.h>

#include "xdp/prog.h"

/*
 * Opens the map that is pinned at opts->xskmap, which must be an XSKMAP of opts->queues slots or more; loads
 * and attaches nothing. Says so with a warning where no program is attached, or one that does not use the map.
 * Needs CAP_BPF, and CAP_SYS_ADMIN to tell which maps a program uses. Returns 0; or -errno after a message
 * that names device, path and what to do: -ENOENT no such file, -EINVAL it is not what it must be, -E2BIG it
 * has too few slots, -EPERM, -EACCES.
 */
int external_open(struct prog *prog, const struct prog_opts *opts);

/* False if no XDP program is on the device, where its socket has nothing to receive. Needs no capability. */
bool external_there(int ifindex);
