/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "plan/mtu.h"

#include <stdio.h>

uint32_t mtu_limit_of(const struct conf_forward *conf, unsigned frame_size)
{
	return conf_chunk_room(conf) + frame_size - conf->frame_size - MTU_HEADERS_MAX;
}

uint32_t mtu_limit(const struct conf_forward *conf)
{
	return conf->frags ? UINT32_MAX : mtu_limit_of(conf, conf->frame_size);
}

void mtu_larger_chunks(const struct conf_forward *conf, uint32_t mtu, char *text, size_t size)
{
	uint32_t largest = mtu_limit_of(conf, CONF_FRAME_SIZE_MAX);

	text[0] = '\0';
	if (conf->frame_size < CONF_FRAME_SIZE_MAX && mtu <= largest)
		snprintf(text, size, ", with %s%d (up to %u)", conf->line ? "frame-size = " : "-f ",
			 CONF_FRAME_SIZE_MAX, largest);
}
