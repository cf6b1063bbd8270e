/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What opening, changing and closing a forwarder have in common; forwarder.c and forwarder_change.c. Main thread. */
#pragma once

#include "forwarder.h"

/* What the configuration says, or the mode where that says nothing. */
bool forwarder_wants_promiscuous(const struct forwarder *forwarder, const struct port *port);

/* Frees a set of parameters and those before it. */
void forwarder_free_params(struct params *params);
