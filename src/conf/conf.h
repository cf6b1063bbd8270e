/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the user asked for: plain data, filled in once by a parser and never edited afterwards. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/number.h"

/* Ports of one forward. A bridge of 16 is the largest the design foresees. */
#define CONF_PORTS_MAX 16

/* Interface names: 15 characters and NUL, or an alternative name of up to 127 (ALTIFNAMSIZ). */
#define CONF_IFNAME_SIZE 128

enum conf_mode {
	CONF_MODE_RXDROP,
	CONF_MODE_TXPUSH,
	CONF_MODE_L2FWD, /* one port: MACs swapped, back out of it */
	CONF_MODE_PATCH, /* two ports: unchanged, out of the other */
};

enum conf_attach {
	CONF_ATTACH_AUTO, /* native if the driver can, else skb */
	CONF_ATTACH_NATIVE,
	CONF_ATTACH_SKB,
};

enum conf_zero_copy {
	CONF_ZERO_COPY_AUTO, /* zero-copy if the driver can, else copy */
	CONF_ZERO_COPY_REQUIRE,
	CONF_ZERO_COPY_NEVER,
};

struct conf {
	enum conf_mode mode;
	unsigned ports;
	char ifname[CONF_PORTS_MAX][CONF_IFNAME_SIZE];
	bool all_queues; /* every active RX queue, and queues is empty */
	struct number_list queues;
	struct number_list cpus; /* empty: the CPUs this process may run on, in their order */
	enum conf_attach attach;
	enum conf_zero_copy zero_copy;
	bool poll;		   /* sleep in poll() instead of spinning */
	unsigned batch;		   /* frames a port and pass */
	unsigned frame_size;	   /* bytes a UMEM chunk */
	unsigned ring_size;	   /* RX, TX and completion entries; fill has twice as many */
	unsigned frames_per_queue; /* per port and queue; 0: as many as the rings hold */
	bool huge_pages;
	unsigned interval_s; /* seconds between two statistics reports */
	unsigned duration_s; /* 0: until a signal */
	uint64_t tx_count;   /* txpush: frames in total, 0: no end */
	unsigned tx_size;    /* txpush: bytes a frame including the 4 of the FCS */
	bool json;
	bool keep_privileges;
};

/* Frames that the four rings of one port and queue can hold together: fill, RX, TX, completion. */
static inline unsigned conf_ring_frames(const struct conf *conf)
{
	return 5 * conf->ring_size;
}
