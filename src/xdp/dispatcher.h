/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sharing an interface with other XDP programs: libxdp's dispatcher is attached, and runs those that it was
 * given one after the other, ours among them. It pins them in a bpf file system (/sys/fs/bpf, or what
 * LIBXDP_BPFFS names), so that they outlive who put them there. Needs CAP_SYS_ADMIN. Main thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "xdp/prog.h"

struct bpf_object;

/* How libxdp's program is called, as `bpftool prog` shows it. */
#define DISPATCHER_NAME "xdp_dispatcher"

/* Whether there can be one: 0; or -EPERM after a message that says what to do instead, since a capability lacks
 * or this kernel allows no programs of the type. */
int dispatcher_check(const struct prog_opts *opts);

/*
 * Loads the object and puts its program among those of the device's dispatcher, making one where there is
 * none. One of a millraced that was killed is taken out first; one that a process still has open is waited
 * for, up to a second, and then left. The mode is that of the dispatcher that is there, opts->attach where
 * there is none. Returns 0 with *native; or -errno after a message that says what to do: -ENOSYS there is no
 * dispatcher to be had, -EBUSY another program has the device for itself, or a millraced
 * serves it. Then nothing of ours is attached. -ECANCELED, without a message, if a signal to end is pending.
 */
int dispatcher_attach(struct bpf_object *object, const struct prog_opts *opts, bool *native);

/* True if the program of this id is among those of the device's dispatcher. */
bool dispatcher_has(int ifindex, uint32_t prog_id);

/*
 * Takes it out; those of others stay, and a dispatcher without any goes. If it is in none any more, because
 * somebody took the dispatcher off, forgets it as dispatcher_forget() does. Says so if that fails. Returns
 * false if the device is not there (any more) to be looked at.
 */
bool dispatcher_leave(const char *ifname, int ifindex, uint32_t prog_id);

/* Of a device or a dispatcher that is gone: unpins the program, unless others are pinned beside it. One that is pinned
 * nowhere is fine. */
void dispatcher_forget(int ifindex, uint32_t prog_id);

/* Takes the dispatcher off with all that it runs and pins. Returns 0, -EBUSY if a millraced's program is
 * among them that a process has open, or another -errno; without a message. */
int dispatcher_take_off(int ifindex);
