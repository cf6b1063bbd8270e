/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether our programs are still on their devices. `bpftool link detach`, or whoever else is root, takes one
 * off without an event that anybody is told of: so each link is asked, once a second. Main thread.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "fleet.h"

/* How often to look. An operator wants to know within 5 s. */
#define PROGRAM_WATCH_NS NSEC_PER_SEC

/*
 * Looks at every port whose device is there. One whose program is lost is degraded until that is attached
 * again, which is tried at once and then after 1, 2, 4, 8, 16, 16 ... s; it is said when it is lost, and
 * when it is back. Another program in its place is left alone but for `replace`. Returns true if the run is to
 * end, since a port has on-program-lost = exit.
 */
bool program_watch_look(struct fleet *fleet);
