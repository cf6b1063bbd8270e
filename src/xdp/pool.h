/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The frames of one worker that are in no ring: a stack, so that the frame used last, whose lines
 * are warm, is used next. Owner: the worker's thread; no lock.
 */
#pragma once

#include <assert.h>
#include <stdint.h>

#include "base/layout.h"

struct pool {
	uint32_t count;	 /* frames in it */
	uint32_t size;	 /* frames there are */
	uint32_t *frame; /* frame numbers; `size` of them, owned by the caller of pool_init() */
};

/* Empty pool over the caller's array of `size` numbers. */
static inline void pool_init(struct pool *pool, uint32_t *frame, uint32_t size)
{
	*pool = (struct pool){ .size = size, .frame = frame };
}

/* Puts a frame that the caller owns into the pool. */
static always_inline void pool_put(struct pool *pool, uint32_t frame)
{
	assert(pool->count < pool->size);
	pool->frame[pool->count++] = frame;
}

/* Takes a frame; the pool is not empty. The caller owns the frame then. */
static always_inline uint32_t pool_get(struct pool *pool)
{
	assert(pool->count);
	return pool->frame[--pool->count];
}
