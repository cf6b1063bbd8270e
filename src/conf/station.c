/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "conf/station.h"

#include <errno.h>
#include <stdio.h>

#include "base/number.h"
#include "base/spelling.h"

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

/* Splits at blanks; one more than there may be is enough to see that there are too many. */
static unsigned split(char *text, char **words, unsigned most)
{
	unsigned count = 0;
	char *word;

	while (count < most && (word = strsep(&text, " \t"))) {
		if (*word)
			words[count++] = word;
	}
	return count;
}

static int find_port(const struct conf_forward *forward, const char *name, int *port,
		     struct station_wrong *wrong)
{
	unsigned least = (unsigned)strlen(name) / 2 + 1;
	const char *nearest = NULL;

	for (unsigned i = 0; i < forward->ports; i++) {
		unsigned distance = spelling_distance(name, forward->port[i]->name);

		*port = (int)i;
		if (!distance)
			return 0;
		if (distance < least) {
			least = distance;
			nearest = forward->port[i]->name;
		}
	}
	return fail(wrong, "[forward %s] has no port %.40s%s%.40s%s", forward->name, name,
		    nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}

int station_parse(const char *text, const struct conf_forward *forward, bool blocked,
		  struct conf_station *station, struct station_wrong *wrong)
{
	const unsigned must = blocked ? 1 : 2;
	char copy[STATION_TEXT_SIZE], *words[6];
	unsigned long vlan = 0;
	bool said;
	unsigned count;

	snprintf(copy, sizeof(copy), "%s", text);
	count = split(copy, words, 6);
	said = count == must + 2 && !strcmp(words[must], "vlan");
	if (strlen(text) >= sizeof(copy) || (count != must && !said))
		return fail(wrong, "must be %s, such as 02:00:00:00:00:01%s",
			    blocked ? "MAC [vlan N]" : "MAC PORT [vlan N]",
			    blocked ? "" : " lan vlan 10");
	*station = (struct conf_station){ .port = STATION_BLOCKED };
	if (station_mac_parse(words[0], station->mac, wrong) ||
	    (!blocked && find_port(forward, words[1], &station->port, wrong)))
		return -EINVAL;
	if (said && number_parse(words[must + 1], 1, VLAN_MODE_MAX, &vlan))
		return fail(wrong, "vlan %.20s: must be 1 to %d", words[must + 1], VLAN_MODE_MAX);
	return station_vlan(forward, station->port, said ? (long long)vlan : -1, &station->vlan,
			    wrong);
}

char *station_print(const struct conf_station *station, const struct conf_forward *forward,
		    char *text)
{
	size_t len;

	mac_print(station->mac, text);
	len = strlen(text);
	if (station->port != STATION_BLOCKED)
		len += (size_t)snprintf(text + len, STATION_TEXT_SIZE - len, " %s",
					forward->port[station->port]->name);
	if (station->vlan && len < STATION_TEXT_SIZE)
		snprintf(text + len, STATION_TEXT_SIZE - len, " vlan %u", station->vlan);
	return text;
}

int station_order(const struct conf_station *one, const struct conf_station *other)
{
	return one->vlan != other->vlan ? one->vlan - other->vlan :
					  memcmp(one->mac, other->mac, MAC_LEN);
}

bool stations_same(const struct conf_station *one, unsigned ones, const struct conf_station *other,
		   unsigned others)
{
	for (unsigned i = 0; i < ones && ones == others; i++) {
		if (station_order(&one[i], &other[i]) || one[i].port != other[i].port)
			return false;
	}
	return ones == others;
}
