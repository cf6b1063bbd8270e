/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "xdp/port_state.h"

#include <stdio.h>
#include <string.h>

const char *port_state_word(enum port_state state)
{
	static const char *const word[PORT_STATES] = {
		[PORT_STATE_UP] = "up",
		[PORT_STATE_NO_CARRIER] = "no-carrier",
		[PORT_STATE_DOWN] = "down",
		[PORT_STATE_GONE] = "gone",
		[PORT_STATE_DEGRADED] = "degraded",
	};

	return word[state];
}

const struct port_change *port_state_past(const struct port_states *states, unsigned back)
{
	if (back >= PORT_HISTORY || back >= states->changes)
		return NULL;
	return &states->change[(states->changes - 1 - back) % PORT_HISTORY];
}

enum port_state port_state_now(const struct port_states *states)
{
	const struct port_change *newest = port_state_past(states, 0);

	return newest ? newest->state : PORT_STATE_UP;
}

/* Cuts what is too long. */
static void copy_reason(char *to, const char *reason)
{
	snprintf(to, PORT_REASON_SIZE, "%.*s", PORT_REASON_SIZE - 1, reason);
}

static const char *first_fault(const struct port_states *states)
{
	for (int i = 0; i < PORT_FAULTS; i++) {
		if (states->fault[i][0])
			return states->fault[i];
	}
	return NULL;
}

static bool show(struct port_states *states, uint64_t now_ns)
{
	const char *fault = states->link == PORT_STATE_UP ? first_fault(states) : NULL;
	enum port_state state = fault ? PORT_STATE_DEGRADED : states->link;
	bool changed = !states->changes || port_state_now(states) != state;
	struct port_change *change;

	states->changes += changed;
	change = &states->change[(states->changes - 1) % PORT_HISTORY];
	if (changed)
		*change = (struct port_change){ .at_ns = now_ns, .state = state };
	snprintf(change->reason, sizeof(change->reason), "%s", fault ? fault : states->link_reason);
	return changed;
}

bool port_state_link(struct port_states *states, enum port_state link, const char *reason,
		     uint64_t now_ns)
{
	states->link = link;
	copy_reason(states->link_reason, reason);
	return show(states, now_ns);
}

bool port_state_fault(struct port_states *states, enum port_fault fault, const char *reason,
		      uint64_t now_ns)
{
	copy_reason(states->fault[fault], reason ? reason : "");
	return show(states, now_ns);
}
