/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "conf/station.h"

#include <errno.h>
#include <stdio.h>

#include "conf/conf.h"

/* Notes what is wrong, and is the error to return. */
#define fail(wrong, ...) (snprintf((wrong)->text, sizeof((wrong)->text), __VA_ARGS__), -EINVAL)

int station_mac_parse(const char *text, uint8_t *mac, struct station_wrong *wrong)
{
	static const uint8_t zero[MAC_LEN];
	uint8_t bytes[MAC_LEN];

	if (mac_parse(text, bytes))
		return fail(wrong, "not a MAC address; type one such as 02:00:00:00:00:01");
	if (!memcmp(bytes, zero, MAC_LEN))
		return fail(wrong, "no station has the zero address");
	if (bytes[0] & 1)
		return fail(wrong, "an address of a group (its first byte is odd); no station has "
				   "one");
	memcpy(mac, bytes, MAC_LEN);
	return 0;
}

char *station_mac_print(const uint8_t *mac, char *text)
{
	snprintf(text, STATION_MAC_SIZE, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
		 mac[3], mac[4], mac[5]);
	return text;
}

bool station_vlans(const struct conf_forward *forward)
{
	return forward->ports && forward->port[0]->vlan.kind != VLAN_MODE_TRANSPARENT;
}

/* What is not said of a bridge that has VLANs. */
static int vlan_unsaid(const struct conf_port *port, uint16_t *vlan, struct station_wrong *wrong)
{
	if (!port)
		return fail(wrong, "in which VLAN? add vlan N, for its ports look at tags");
	if (!port->vlan.untagged)
		return fail(wrong,
			    "in which VLAN? add vlan N, for all that port %s takes has a tag",
			    port->name);
	*vlan = port->vlan.untagged;
	return 0;
}

int station_vlan(const struct conf_forward *forward, int port, long long asked, uint16_t *vlan,
		 struct station_wrong *wrong)
{
	const struct conf_port *behind = port == STATION_BLOCKED ? NULL : forward->port[port];

	if (asked != -1 && (asked < 1 || asked > VLAN_MODE_MAX))
		return fail(wrong, "vlan %lld: must be 1 to %d", asked, VLAN_MODE_MAX);
	if (!station_vlans(forward)) {
		*vlan = asked == -1 ? 0 : (uint16_t)asked;
		return 0;
	}
	if (asked == -1)
		return vlan_unsaid(behind, vlan, wrong);
	if (behind && !vlan_mode_has(&behind->vlan, (unsigned)asked))
		return fail(wrong, "vlan %lld: port %s is not in it, by its vlan-mode", asked,
			    behind->name);
	*vlan = (uint16_t)asked;
	return 0;
}
