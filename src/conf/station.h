/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Entries of a bridge's forwarding database as users say them: which station is behind which port, or blocked.
 * Pure; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/mac.h"

struct conf_forward;

/* Instead of a port: frames from and to the station are dropped. */
#define STATION_BLOCKED (-1)

/* An entry that a file has. */
struct conf_station {
	uint8_t mac[MAC_LEN];
	uint16_t vlan; /* 0: frames without a tag, where tags are data */
	int port;      /* its number in the forward, or STATION_BLOCKED */
	unsigned line;
};

/* What is wrong, and what was expected: to stand behind what was typed. */
struct station_wrong {
	char text[256];
};

/* Reads the address of a station. Returns 0 with *mac, or -EINVAL with *wrong: of a group, zero, or none. */
int station_mac_parse(const char *text, uint8_t *mac, struct station_wrong *wrong);

/* True if the ports of a bridge look at VLAN tags; else tags are data, and say where a station is known. */
bool station_vlans(const struct conf_forward *forward);

/* Room for an entry as text. */
#define STATION_TEXT_SIZE 192

/*
 * Reads "MAC PORT [vlan N]", or of a blocked one "MAC [vlan N]". Returns 0 with *station, but for its line; or
 * -EINVAL with *wrong.
 */
int station_parse(const char *text, const struct conf_forward *forward, bool blocked,
		  struct conf_station *station, struct station_wrong *wrong);

/* Writes it as station_parse() reads it. Returns text, of STATION_TEXT_SIZE bytes. */
char *station_print(const struct conf_station *station, const struct conf_forward *forward,
		    char *text);

/* How entries are sorted: by VLAN and address. 0: they are about the same station. */
int station_order(const struct conf_station *one, const struct conf_station *other);

/* True if two sorted lists say the same, wherever it stands. */
bool stations_same(const struct conf_station *one, unsigned ones, const struct conf_station *other,
		   unsigned others);

/*
 * The VLAN of an entry of this bridge, behind the port of that number or STATION_BLOCKED. asked: as it was
 * said, -1: it was not; then it is the one of frames that the port has without a tag, 0 where tags are data.
 * Returns 0 with *vlan; or -EINVAL with *wrong: it is none, the port is not in it, or it must be said.
 */
int station_vlan(const struct conf_forward *forward, int port, long long asked, uint16_t *vlan,
		 struct station_wrong *wrong);
