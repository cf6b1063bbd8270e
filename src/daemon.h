/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The daemon owns everything: it opens ports, workers and sockets, runs them, closes them. */
#pragma once

#include <stdbool.h>

#include "conf/conf.h"

/* Where a configuration that can be read again comes from. */
struct daemon_file {
	const char *path; /* for people */
	/* Reads it into *conf, which is overwritten, and the caller's to conf_fini(). Returns 0, or -errno;
	 * `say`: with everything that is wrong with it logged. */
	int (*load)(void *context, struct conf *conf, bool say);
	void *context;
};

/*
 * Forwards until a signal, the duration, the frame count or the loss of a device ends it; SIGHUP reads the
 * configuration again. Takes over what *conf owns, and leaves it empty. file: NULL for a run from flags.
 * Main thread, with SIGINT, SIGTERM and SIGHUP blocked. Returns the exit status: 0 ended as asked, 1
 * after a message.
 */
int daemon_run(struct conf *conf, const struct daemon_file *file);
