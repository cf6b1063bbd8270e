/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether our sockets are in their slots of the XSKMAPs still. Whoever is root can empty a slot, or put another
 * socket there, without an event that anybody is told of. Main thread.
 */
#pragma once

#include "fleet.h"

/*
 * To be called each second. A slot that was emptied is filled again; that is said, but once a minute, and the port is
 * degraded until the next look; where the run has a single socket it is not noticed (see prog_slot_keep()). A slot
 * with somebody else's socket is left alone, is an error in the log, and the port is degraded as long as it is there.
 */
void slot_watch_look(struct fleet *fleet);
