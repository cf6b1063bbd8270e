/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The daemon owns everything: it opens ports, workers and sockets, runs them, closes them. */
#pragma once

#include "conf/conf.h"

/*
 * Runs one foreground forward until a signal, the duration, the frame count or the loss of a device
 * ends it. Main thread, with SIGINT and SIGTERM blocked. Returns the exit status: 0 ended as asked,
 * 1 after a message.
 */
int daemon_run(const struct conf *conf);
