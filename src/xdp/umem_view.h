/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The frames of a umem whose memfd another process made, mapped for as long as it takes to register
 * them: the kernel pins the pages of whoever asks it to. Nothing in the memfd is trusted.
 */
#pragma once

#include <stdint.h>

#include "xdp/umem.h"

struct umem_view {
	struct umem_header header; /* a copy, checked */
	uint8_t *frames;	   /* mapped; NULL: closed */
	uint64_t frames_bytes;	   /* those of the frames alone */
	uint64_t mapped_bytes;	   /* in whole pages of the memfd's kind */
};

/*
 * Reads and checks the header and maps the frames. The fd stays the caller's. Returns 0; -EBADMSG for a
 * header that is none of this version's or does not agree with the size of the file; or what fstat(2),
 * pread(2) and mmap(2) say (-ENOMEM). No message.
 */
int umem_view_open(struct umem_view *view, int fd);

/* Unmaps; registered pages stay with their sockets. A zeroed or closed view is fine. */
void umem_view_close(struct umem_view *view);
