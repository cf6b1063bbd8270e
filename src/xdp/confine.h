/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What each of the two processes may ask of the kernel, as seccomp filters: the one that touches frames, and the
 * opener's helper. A call that is not listed fails with EPERM, and the kernel's audit log has its number: a
 * forwarder does not end, and take the network along, for a call that a newer library makes. What could be had by
 * ending it, that whoever has taken it over gets no second try, the restart by a service manager would give back.
 * Calls of another architecture end the process. SECURITY in millraced(8) says which
 * has what.
 *
 * A build with a sanitizer may do more, since that does more: see `sanitizer_rules`.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * Confines all threads of this process, that which touches frames, and those that it starts, for good. It talks to
 * the helper process `opener` over `opener_fd`, and sends messages with file descriptors to nobody else. Sets
 * no_new_privs. Main thread. Returns 0, or -errno after a message.
 */
int confine_frames(int opener_fd, pid_t opener);

/* The same for the helper, whose client is the process `client`; with what libxdp does to its dispatchers, for
 * which it makes and removes folders and pins. */
int confine_opener(pid_t client, bool dispatchers);
