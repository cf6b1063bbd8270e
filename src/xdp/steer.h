/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The policy of one port: which frames the XDP program gives to the host (bpf/classify.h has the decision).
 * It is changed while frames come: what stays is never missing, not for one frame. Needs no capability.
 * Main thread only.
 */
#pragma once

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "millrace_shared.h"

/* The program's maps that hold a policy, as bpf/maps.h has them. */
enum steer_map {
	STEER_POLICY,
	STEER_OWN,
	STEER_RULES,
	STEER_MACS,
	STEER_HITS,
	STEER_MAPS,
};

/* Owned by the struct prog; 0 or less: none. */
struct steer_maps {
	int fd[STEER_MAPS];
};

struct steer_rule {
	enum millrace_kind kind;
	unsigned bits;	   /* of a MAC that count */
	uint8_t value[16]; /* a MAC, or as in struct millrace_rule_key */
	bool both;	   /* a copy goes on, while there is somebody to make it */
};

/* What the host has on the port. */
struct steer_own {
	uint8_t mac[6];				/* zeros: none */
	unsigned addresses;			/* up to MILLRACE_OWN_MAX */
	const struct millrace_own_key *address; /* each once */
};

struct steer;

/* Takes copies of the fds of the maps, as the maps are when new: what it does later reaches them or nothing,
 * also when the program is closed. Returns 0, or -errno: -ENOMEM, -EMFILE. */
int steer_new(struct steer **result, const struct steer_maps *maps);

/*
 * From now on these rules hold, each given once, MILLRACE_RULES_MAX at most; `standard`: then also what the
 * host has without. A rule that was there before keeps its count. Returns 0; or -errno, and then what can be
 * held is: -ENOMEM, -EPERM where bpf() is forbidden.
 */
int steer_set_rules(struct steer *steer, bool standard, const struct steer_rule *rule,
		    unsigned rules);

/* From now on these addresses are the host's. Returns as steer_set_rules(). */
int steer_set_own(struct steer *steer, const struct steer_own *own);

/* From now on somebody copies what is for the host and the wire, or no longer: then it is forwarded only. */
int steer_set_copy(struct steer *steer, bool on);

/* True if the host has more than what rules say, see steer_set_rules(). */
bool steer_is_standard(const struct steer *steer);

/* Frames that a rule gave to the host since it came into the list; -ENOENT: it is in none, or another -errno. */
int steer_rule_frames(const struct steer *steer, const struct steer_rule *rule, uint64_t *frames);

/* Those that a class of what the host has without rules gave to it; or -errno. */
int steer_class_frames(const struct steer *steer, enum millrace_class class, uint64_t *frames);

/* NULL is fine. */
void steer_free(struct steer *steer);
