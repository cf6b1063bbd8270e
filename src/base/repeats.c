/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/repeats.h"

#include <stdio.h>

/* FNV-1a, 64 bits: kinds are few, and one taken for another only costs a line. */
#define FNV_BASIS 0xcbf29ce484222325ULL
#define FNV_PRIME 0x100000001b3ULL

static uint64_t hash_kind(int level, const char *text)
{
	uint64_t hash = (FNV_BASIS ^ (unsigned)level) * FNV_PRIME;
	bool named = true; /* still in front of the colon */

	for (; *text; text++) {
		if (*text == ':')
			named = false;
		if (named || *text < '0' || *text > '9')
			hash = (hash ^ (unsigned char)*text) * FNV_PRIME;
	}
	return hash;
}

/* Its place, or a free one; NULL: all are taken. */
static struct repeats_kind *find(struct repeats *repeats, uint64_t hash)
{
	struct repeats_kind *unused = NULL;

	for (unsigned i = 0; i < REPEATS_KINDS; i++) {
		struct repeats_kind *kind = &repeats->kind[i];

		if (kind->began_ns && kind->hash == hash)
			return kind;
		if (!kind->began_ns && !unused)
			unused = kind;
	}
	return unused;
}

bool repeats_pass(struct repeats *repeats, int level, const char *text, uint64_t now_ns)
{
	uint64_t hash = hash_kind(level, text);
	struct repeats_kind *kind = find(repeats, hash);

	if (!kind)
		return true;
	if (!kind->began_ns)
		*kind = (struct repeats_kind){ .hash = hash, .began_ns = now_ns, .level = level };
	if (kind->passed < REPEATS_LINES) {
		kind->passed++;
		return true;
	}
	kind->held++;
	snprintf(kind->text, sizeof(kind->text), "%s", text);
	return false;
}

bool repeats_end(struct repeats *repeats, uint64_t now_ns, struct repeats_kind *ended)
{
	for (unsigned i = 0; i < REPEATS_KINDS; i++) {
		struct repeats_kind *kind = &repeats->kind[i];

		if (!kind->began_ns || now_ns - kind->began_ns < REPEATS_WINDOW_NS)
			continue;
		kind->began_ns = 0;
		if (!kind->held)
			continue;
		*ended = *kind;
		return true;
	}
	return false;
}
