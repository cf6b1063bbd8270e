/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What to type against what the host does to frames: the wording of it, in one place. Each call logs one
 * line or none. Main thread. */
#pragma once

#include <stdint.h>

#include "conf/conf.h"
#include "lane.h"

/* For ports that forward, attached: what a veth's other end must not leave to an offload, if one of them
 * is a veth. An info line. */
void advice_at_start(const struct port *port, unsigned ports);

/* Frames that came in on the port have only the sum of the pseudo-header in place of a checksum. */
void advice_partial_checksums(const struct port *port);

/* That many frames that came in on the port were dropped, each larger than the `room` of a chunk. */
void advice_oversize(const struct port *port, uint64_t frames, unsigned room);

/* The device's MTU is above what frames of one chunk take now. */
void advice_mtu(const struct conf_forward *conf, const struct netdev *netdev);
