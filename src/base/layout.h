/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cache-line groups: fields of a hot structure are grouped by who writes them, each group is
 * marked by GROUP_BEGIN/GROUP_END, and ASSERT_GROUP states its size in cache lines, so that a
 * field that moves or grows breaks the build instead of a benchmark.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The line size of every x86-64 and of the arm64 cores we know; larger lines (128 bytes on some
 * arm64 and POWER) are covered by CACHE_PAIR. */
#define CACHE_LINE 64

/* Distance between fields that different threads write. Two lines, not one: the adjacent-line
 * prefetcher of x86 pulls lines in aligned pairs, so a neighbour 64 bytes away still bounces. */
#define CACHE_PAIR 128

/* A group of the same thread as its neighbours: it starts on a line, and is packed against them. */
#define GROUP_BEGIN(group) _Alignas(CACHE_LINE) uint8_t group_begin_##group[0]
/* A group of another thread than the one before it: it shares no pair of lines with it. */
#define GROUP_BEGIN_APART(group) _Alignas(CACHE_PAIR) uint8_t group_begin_##group[0]
#define GROUP_END(group)	 uint8_t group_end_##group[0]

#define GROUP_BYTES(type, group) \
	(offsetof(struct type, group_end_##group) - offsetof(struct type, group_begin_##group))

/* States that the group fills exactly `lines` cache lines (the last one possibly in part). */
#define ASSERT_GROUP(type, group, lines)                                                    \
	_Static_assert((GROUP_BYTES(type, group) + CACHE_LINE - 1) / CACHE_LINE == (lines), \
		       "struct " #type ": group " #group " is not " #lines " cache lines")

#define COLD __attribute__((cold))

/* What a loop is compiled of for each of its constants. Not where each access is looked at as well: it is not
 * about speed there, and a mode would take minutes to compile. */
#if defined(__SANITIZE_ADDRESS__)
#define always_inline inline
#else
#define always_inline inline __attribute__((always_inline))
#endif
#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
