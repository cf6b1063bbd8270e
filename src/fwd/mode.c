/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "fwd/mode.h"

static const struct mode modes[] = {
	/*		     name      row name  run		  receives sends promiscuous */
	[CONF_MODE_RXDROP] = { "rxdrop", "rxdrop", mode_rxdrop_run, true, false, false },
	[CONF_MODE_TXPUSH] = { "txpush", "txonly", mode_txpush_run, false, true, false },
	[CONF_MODE_L2FWD] = { "l2fwd", "l2fwd", mode_l2fwd_run, true, true, false },
	[CONF_MODE_PATCH] = { "patch", "patch", mode_patch_run, true, true, true },
	[CONF_MODE_BRIDGE] = { "bridge", "bridge", mode_bridge_run, true, true, true },
};

const struct mode *mode_of(enum conf_mode mode)
{
	return &modes[mode];
}
