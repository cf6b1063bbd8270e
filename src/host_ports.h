/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The pairs of devices by which the host is behind a port (xdp/host_port.h), as configurations come and go.
 * Main thread. */
#pragma once

#include "conf/conf.h"

/* Makes those that *conf names and that are not there yet; before it is planned for. Returns 0, or -errno after
 * a message. */
int host_ports_make(const struct conf *conf);

/* Removes those that `gone` names and *conf does not, unless `gone` keeps them. What fails is said. */
void host_ports_remove(const struct conf *gone, const struct conf *conf);
