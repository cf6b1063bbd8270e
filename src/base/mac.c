/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/mac.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int mac_parse(const char *text, uint8_t *mac)
{
	uint8_t bytes[MAC_LEN];

	for (int i = 0; i < MAC_LEN; i++, text += 3) {
		if (!isxdigit((unsigned char)text[0]) || !isxdigit((unsigned char)text[1]))
			return -EINVAL;
		if (text[2] != (i < MAC_LEN - 1 ? ':' : '\0'))
			return -EINVAL;
		bytes[i] = (uint8_t)strtoul((const char[]){ text[0], text[1], '\0' }, NULL, 16);
	}
	memcpy(mac, bytes, MAC_LEN);
	return 0;
}

char *mac_print(const uint8_t *mac, char *text)
{
	snprintf(text, MAC_TEXT_SIZE, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
		 mac[3], mac[4], mac[5]);
	return text;
}
