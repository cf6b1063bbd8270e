/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The user and the capabilities of this process. Main thread, before there is another. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A set of them: bit n is capability n. */
#define CAPABILITY(number) (1ULL << (number))

/* Whether this process has it in effect. */
bool privileges_have(unsigned capability);

/*
 * Gives up every capability but those of `kept` that it has: of all sets, the bounding one too where CAP_SETPCAP
 * allows that; and all ways to regain one (no_new_privs). For this thread and those it starts. Returns 0, or -EPERM
 * or another -errno after a message.
 */
int privileges_keep(uint64_t kept);

/* The user that a daemon runs as if it is there, and nothing else is said. */
#define PRIVILEGES_USER "millrace"

struct privileges_user {
	char name[33];
	bool other; /* than the present one */
	uid_t uid;
	gid_t gid;
};

/*
 * Finds the user of this name; if it is "", for root the one called `otherwise`, if there is one: NULL, nobody.
 * Returns 0, with *user as now where there is none to be found; or -ENOENT or another -errno after a message.
 */
int privileges_find_user(const char *name, const char *otherwise, struct privileges_user *user);

/*
 * Runs as that user, with its groups, from now on, and keeps the capabilities. For this thread and those it starts.
 * The signal of PR_SET_PDEATHSIG is to be set anew. Returns 0, or -EPERM or another -errno after a message.
 */
int privileges_become(const struct privileges_user *user);
