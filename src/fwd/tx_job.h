/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a worker's txpush generates: the frames of each port, prepared once and copied into the UMEM
 * where a chunk does not hold them yet, and the times at which they are due.
 *
 * A frame is a head, which depends on its size (lengths and checksums), and a body that is the same
 * for all sizes of a port. A large one lies in several chunks, the pieces.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "conf/conf.h"
#include "fwd/frame.h"
#include "fwd/pacer.h"
#include "fwd/stats.h"

/* What one port sends. */
struct tx_port {
	struct frame_opts opts;
	uint8_t *heads;	    /* of each size: head_len bytes */
	uint8_t *body;	    /* a frame of the largest size */
	struct pacer pacer; /* where pps are given */
	uint32_t due;	    /* frames that may be sent now; UINT32_MAX: any number */
	bool finished;	    /* it has sent all that it had to */
	uint32_t step;	    /* which of `order` is next */
	uint32_t sequence;  /* of the next timestamp */
};

/* Owner: the worker's thread, once it runs. */
struct tx_job {
	uint32_t head_len;
	uint32_t piece_len;  /* room of a chunk */
	uint32_t pieces_max; /* chunks of the largest frame */
	uint32_t sizes;	     /* different ones */
	uint32_t *len;	     /* of each size, bytes without FCS */
	uint32_t orders;
	uint16_t *order; /* the sizes in the order they are sent */
	bool plain;	 /* one size, one chunk, as fast as it goes, nothing written but once */
	bool timestamp;
	bool paced;
	clockid_t clock;       /* of timestamps and cycle */
	uint32_t cycle_frames; /* a queue and cycle */
	uint64_t next_ns;      /* when the next cycle is due, by `clock`; 0: no cycle yet */
	uint64_t now_ns;       /* `clock` at the beginning of this pass */
	struct cycle_counts cycle;
	unsigned ports;
	struct tx_port port[CONF_PORTS_MAX];
	uint32_t frames;
	uint32_t *
		written; /* what each of the `frames` chunks holds, see tx_job_write(); 0: nothing */
};

/*
 * Prepares for `ports` ports and a UMEM of `frames` chunks. Addresses and rates are the caller's to
 * fill in: port[].opts.dst and .src before tx_job_build(), port[].pacer. Main thread. Returns 0 with
 * *result for tx_job_free(), or -ENOMEM.
 */
int tx_job_new(struct tx_job **result, const struct conf_forward *conf, unsigned ports,
	       uint32_t frames);
void tx_job_free(struct tx_job *job);

/* Builds the frames of a port from its opts. Main thread. Returns 0 or -ENOMEM. */
int tx_job_build(struct tx_job *job, unsigned port);

/* What is sent from now on comes from this address. Main thread, the worker being parked. */
void tx_job_set_source(struct tx_job *job, unsigned port, const uint8_t *mac);

/*
 * Looks at the clock, once a pass, and sets what is due on every port. The worker's thread, as the
 * rest.
 */
void tx_job_tick(struct tx_job *job);

/* Nanoseconds until more is due; 0: now. */
uint64_t tx_job_wait_ns(const struct tx_job *job);

/* Sleeps until the next cycle is due, which must be less than a few milliseconds away. */
void tx_job_sleep(const struct tx_job *job);

/* Which part of which frame. */
struct tx_piece {
	unsigned port;
	uint32_t size;	/* index of tx_job.len */
	uint32_t piece; /* of the chunks it takes */
};

/*
 * Writes one piece of a frame into a chunk, at `bytes`, unless *mark says that it is there, and updates
 * that; the mark of the first piece of the first size is 1 + port. A first piece gets its timestamp.
 * Returns the piece's length.
 */
uint32_t tx_job_write(struct tx_job *job, struct tx_piece which, uint8_t *bytes, uint32_t *mark);
