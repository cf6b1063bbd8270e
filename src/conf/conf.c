/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "conf/conf.h"

#include <string.h>

#include "conf/table.h"

void conf_forward_defaults(struct conf_forward *forward)
{
	/* Locally administered, so that it is nobody's. */
	static const uint8_t destination[MAC_LEN] = { 0x02, 0x00, 0x00, 0x00, 0x00, 0x02 };

	memset(forward, 0, sizeof(*forward));
	forward->batch = 64;
	forward->frame_size = 4096;
	forward->ring_size = 2048;
	forward->stations_max = 65536;
	forward->ageing_s = 300;
	forward->tx.retries = 3;
	forward->tx.size_min = forward->tx.size_max = TX_SIZE_MIN;
	forward->tx.pattern = 0x12345678; /* xdpsock's */
	forward->tx.vlan_id = 1;
	forward->tx.clock = CLOCK_MONOTONIC;
	memcpy(forward->tx.destination, destination, MAC_LEN);
}

void conf_port_defaults(struct conf_port *port, bool file)
{
	memset(port, 0, sizeof(*port));
	port->all_queues = file;
	port->pass.standard = file;
	if (!file)
		port->queues.count = 1; /* queue 0 */
}

static void complete_sizes(struct conf_tx *tx, bool given)
{
	unsigned need = conf_tx_size_needed(tx);

	if (tx->size_min >= need || tx->sizes != CONF_SIZES_RANGE)
		return;
	tx->size_asked = given ? tx->size_min : 0;
	tx->size_min = need;
	if (tx->size_max < need)
		tx->size_max = need;
}

void conf_forward_complete(struct conf_forward *forward, bool batch_given, bool size_given)
{
	if (!forward->frames_per_queue)
		forward->frames_per_queue = conf_ring_frames(forward);
	if (!batch_given && forward->batch > forward->ring_size)
		forward->batch = forward->ring_size;
	complete_sizes(&forward->tx, size_given);
}

bool conf_name_valid(const char *name, size_t max)
{
	size_t len = strlen(name);

	return len >= 1 && len <= max &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
		       len;
}
