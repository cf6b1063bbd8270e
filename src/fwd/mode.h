/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table of modes. A new mode is one file mode_x.c, one line here and one in mode.c. */
#pragma once

#include <stdbool.h>

#include "conf/conf.h"

struct worker;

struct mode {
	const char *name;     /* as users and JSON reports spell it */
	const char *row_name; /* in statistics rows: xdpsock's word where it has one */
	void (*run)(struct worker *worker); /* a worker thread's whole life; cold pointer */
	bool receives;	  /* its sockets stand in the XSKMAP; else the host gets every frame */
	bool sends;	  /* needs a TX queue of each number it serves */
	bool promiscuous; /* takes frames that are addressed to others */
};

/* The row of a mode. Static; any thread. */
const struct mode *mode_of(enum conf_mode mode);

/* What a worker's thread runs, from worker_start() until its worker_stop() and drain. */
void mode_rxdrop_run(struct worker *worker);
void mode_txpush_run(struct worker *worker);
void mode_l2fwd_run(struct worker *worker);
void mode_patch_run(struct worker *worker);
void mode_bridge_run(struct worker *worker); /* worker->bridge and fdb_view are set */
