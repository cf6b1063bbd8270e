/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "advice.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "plan/mtu.h"

static bool is_veth(const struct port *port)
{
	return !strcmp(port->netdev.kind, "veth");
}

/* Appends; what does not fit is cut. */
static void append(char *text, size_t size, const char *more)
{
	size_t len = strlen(text);

	snprintf(text + len, size - len, "%s", more);
}

/* Appends "`ethtool -K PEER features`". */
static void append_ethtool(char *text, size_t size, const struct port *port, const char *features)
{
	char command[96];

	snprintf(command, sizeof(command), "`ethtool -K %s %s`",
		 port->netdev.peer[0] ? port->netdev.peer : "PEER", features);
	append(text, size, command);
}

void advice_at_start(const struct port *port, unsigned ports)
{
	char names[160] = "", commands[320] = "";
	bool all_known = true, any_skb = false;

	for (unsigned i = 0; i < ports; i++) {
		const struct port *one = &port[i];

		if (!is_veth(one) || one->conf->host) /* that one leaves nothing undone */
			continue;
		all_known = all_known && one->netdev.peer[0];
		any_skb = any_skb || !one->prog.native;
		append(names, sizeof(names), names[0] ? ", " : "");
		append(names, sizeof(names), one->netdev.name);
		append(commands, sizeof(commands), commands[0] ? ", " : "");
		append_ethtool(commands, sizeof(commands), one,
			       one->prog.native ? "tx off" : "tx off tso off gso off");
	}
	if (!names[0])
		return;
	log_info("%s: over veth a sender with TX checksum offload leaves only the pseudo-header "
		 "sum%s, and TCP through here fails: %s on the far end%s",
		 names, any_skb ? ", and in skb mode super-frames too large for a chunk" : "",
		 commands, all_known ? "" : ", PEER being its name there");
}

void advice_partial_checksums(const struct port *port)
{
	char command[96] = "";

	append_ethtool(command, sizeof(command), port, "tx off");
	log_warning("%s: frames come in with only the pseudo-header sum for a checksum, and "
		    "receivers drop them; %s on the %s",
		    port->netdev.name, command,
		    port->netdev.peer[0] ? "far end" :
		    is_veth(port)	 ? "far end, PEER being its name there" :
					   "sending host, PEER being its interface");
}

void advice_oversize(const struct port *port, uint64_t frames, unsigned room)
{
	const char *name = port->netdev.name;
	bool in_file = port->conf->line;
	const char *larger = in_file ? " or a larger frame-size" : " or a larger -f";
	char command[96] = "";

	if (is_veth(port) && !port->prog.native) {
		append_ethtool(command, sizeof(command), port, "tso off gso off");
		log_warning("%s: %llu frames larger than the %u bytes a chunk has room for were "
			    "dropped; in skb mode senders do not segment: %s on the far end%s",
			    name, (unsigned long long)frames, room, command,
			    port->netdev.peer[0] ? "" : ", PEER being its name there");
		return;
	}
	if (room >= CONF_FRAME_SIZE_MAX - CONF_HEADROOM)
		larger = "";
	log_warning("%s: %llu frames larger than the %u bytes a chunk has room for were dropped; "
		    "start with %s%s, or `ip link set dev %s mtu %u` here and on the far end",
		    name, (unsigned long long)frames, room, in_file ? "frags = yes" : "-F", larger,
		    name, room - MTU_HEADERS_MAX);
}

void advice_mtu(const struct conf_forward *conf, const struct netdev *netdev)
{
	uint32_t limit = mtu_limit_of(conf, conf->frame_size);
	char larger[64];

	mtu_larger_chunks(conf, netdev->mtu, larger, sizeof(larger));
	log_warning("%s: MTU is %u now, and frames of %u bytes take up to %u: larger packets are "
		    "dropped; `ip link set dev %s mtu %u`, or start with %s (any MTU)%s",
		    netdev->name, netdev->mtu, conf->frame_size, limit, netdev->name, limit,
		    conf->line ? "frags = yes" : "-F", larger);
}
