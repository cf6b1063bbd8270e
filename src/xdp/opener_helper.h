/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The opener's other half: the process that keeps the capabilities. */
#pragma once

#include "xdp/opener.h"

/*
 * What the forked child does: serves the requests that come over the socket until its other end is
 * closed, puts back what it changed on the host, and exits. `client` is the process that asks.
 */
_Noreturn void opener_helper_run(int socket, pid_t client, const struct opener_opts *opts);
