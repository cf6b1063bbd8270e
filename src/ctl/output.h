/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Text out of a file descriptor whose reader may have stopped reading: a pipe that nobody empties must
 * hold up neither the event loop nor the end. Main thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct output {
	int fd;		  /* borrowed */
	char *text;	  /* what is not written yet; owned, malloc()ed */
	size_t len, done; /* bytes of it, and how many of them are written */
	uint64_t skipped; /* texts that were not taken since an older one was still on its way */
};

/*
 * Writes `len` bytes of text, which must be malloc()ed and belongs to the output from now on, waiting
 * up to timeout_ms for the reader. What it does not take by then is kept and goes first next time;
 * until it is gone, later texts are skipped whole and counted, so that a reader never sees half a text.
 * Returns 0, also for a skipped text, or -errno of write(2): the reader is gone (EPIPE), the disk full.
 */
int output_put(struct output *output, char *text, size_t len, int timeout_ms);

/* Frees what is kept. */
void output_fini(struct output *output);
