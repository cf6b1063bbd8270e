/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "xdp/steer.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A rule that is in the maps. */
struct entry {
	struct steer_rule rule;
	uint32_t hits; /* entry of millrace_hits */
};

struct steer {
	struct steer_maps maps; /* copies, owned */
	struct millrace_policy policy;
	bool standard, copy;
	bool ipv4, ipv6; /* the host has such addresses */
	unsigned rules;
	struct entry *rule; /* in the order of the list */
	bool hits_used[MILLRACE_HITS];
	unsigned owns;
	struct millrace_own_key *own; /* sorted */
	uint64_t *per_cpu;	      /* room for a value of each CPU */
	unsigned cpus;
};

int steer_new(struct steer **result, const struct steer_maps *maps)
{
	struct steer *steer = calloc(1, sizeof(*steer));
	int cpus = libbpf_num_possible_cpus(), err;

	if (!steer)
		return -ENOMEM;
	err = cpus < 0 ? cpus : 0;
	for (int i = 0; !err && i < STEER_MAPS; i++) {
		steer->maps.fd[i] = fcntl(maps->fd[i], F_DUPFD_CLOEXEC, 3);
		err = steer->maps.fd[i] < 0 ? -errno : 0;
	}
	if (!err) {
		steer->cpus = (unsigned)cpus;
		steer->per_cpu = calloc(steer->cpus, sizeof(*steer->per_cpu));
		err = steer->per_cpu ? 0 : -ENOMEM;
	}
	if (!err)
		*result = steer;
	else
		steer_free(steer);
	return err;
}

/* --- the word that the program looks at first --- */

static uint32_t policy_on(const struct steer *steer)
{
	uint32_t on = 0;

	for (unsigned i = 0; i < steer->rules; i++)
		on |= MILLRACE_ON_KIND(steer->rule[i].rule.kind);
	if (steer->standard)
		on |= MILLRACE_ON_DEFAULT | (steer->ipv4 ? MILLRACE_ON_IPV4 : 0) |
		      (steer->ipv6 ? MILLRACE_ON_IPV6 : 0);
	return on && steer->copy ? on | MILLRACE_ON_COPY : on;
}

static int write_policy(struct steer *steer, uint32_t on)
{
	uint32_t zero = 0;

	steer->policy.on = on;
	return bpf_map_update_elem(steer->maps.fd[STEER_POLICY], &zero, &steer->policy, BPF_ANY) ?
		       -errno :
		       0;
}

/* --- rules --- */

/* Writes the rule, or takes it away if `hits` is NULL. */
static int write_rule(const struct steer *steer, const struct steer_rule *rule,
		      const uint32_t *hits)
{
	struct millrace_mac_key mac = { .bits = rule->bits };
	struct millrace_rule_key key = { .kind = rule->kind };
	bool is_mac = rule->kind == MILLRACE_KIND_MAC;
	int fd = is_mac ? steer->maps.fd[STEER_MACS] : steer->maps.fd[STEER_RULES];
	struct millrace_rule value = {
		.verdict = rule->both ? MILLRACE_BOTH : MILLRACE_HOST,
		.hits = hits ? *hits : 0,
	};
	int err;

	memcpy(mac.mac, rule->value, 6);
	memcpy(key.value, rule->value, sizeof(key.value));
	if (hits)
		err = bpf_map_update_elem(fd, is_mac ? (void *)&mac : (void *)&key, &value,
					  BPF_ANY);
	else
		err = bpf_map_delete_elem(fd, is_mac ? (void *)&mac : (void *)&key);
	return err ? -errno : 0;
}

/* Of the same frames, be the verdict another. */
static bool same_frames(const struct steer_rule *one, const struct steer_rule *other)
{
	return one->kind == other->kind && one->bits == other->bits &&
	       !memcmp(one->value, other->value, sizeof(one->value));
}

static const struct entry *find_rule(const struct entry *rules, unsigned count,
				     const struct steer_rule *rule)
{
	for (unsigned i = 0; i < count; i++) {
		if (same_frames(&rules[i].rule, rule))
			return &rules[i];
	}
	return NULL;
}

/* An entry of millrace_hits, at 0. The maps have room for twice as many rules as a list. */
static int take_hits(struct steer *steer, uint32_t *hits)
{
	uint32_t index = MILLRACE_CLASSES;

	while (index < MILLRACE_HITS && steer->hits_used[index])
		index++;
	if (index == MILLRACE_HITS)
		return -ENOSPC;
	memset(steer->per_cpu, 0, steer->cpus * sizeof(*steer->per_cpu));
	if (bpf_map_update_elem(steer->maps.fd[STEER_HITS], &index, steer->per_cpu, BPF_ANY))
		return -errno;
	steer->hits_used[index] = true;
	*hits = index;
	return 0;
}

/* Puts a rule in, or what has changed of it. */
static int raise_rule(struct steer *steer, struct entry *entry)
{
	const struct entry *before = find_rule(steer->rule, steer->rules, &entry->rule);
	int err;

	if (before) {
		entry->hits = before->hits;
		return before->rule.both == entry->rule.both ?
			       0 :
			       write_rule(steer, &entry->rule, &entry->hits);
	}
	err = take_hits(steer, &entry->hits);
	if (err)
		return err;
	err = write_rule(steer, &entry->rule, &entry->hits);
	if (err)
		steer->hits_used[entry->hits] = false;
	return err;
}

/* Those that are in no list any more. What cannot be taken away is counted nowhere, and passed. */
static int lower_rules(struct steer *steer, const struct entry *before, unsigned count)
{
	int err = 0;

	for (unsigned i = 0; i < count; i++) {
		int failed;

		if (find_rule(steer->rule, steer->rules, &before[i].rule))
			continue;
		failed = write_rule(steer, &before[i].rule, NULL);
		if (!failed)
			steer->hits_used[before[i].hits] = false;
		else
			err = failed;
	}
	return err;
}

int steer_set_rules(struct steer *steer, bool standard, const struct steer_rule *rule,
		    unsigned rules)
{
	struct entry *after = calloc(rules + 1U, sizeof(*after)), *before = steer->rule;
	unsigned kept = 0, count = steer->rules;
	uint32_t on = steer->policy.on;
	int err = 0, failed;

	if (!after)
		return -ENOMEM;
	for (unsigned i = 0; i < rules; i++) {
		after[kept].rule = rule[i];
		failed = raise_rule(steer, &after[kept]);
		if (failed)
			err = failed;
		else
			kept++;
	}
	steer->rule = after;
	steer->rules = kept;
	steer->standard = standard;
	/* All that is new is there before a kind is looked at, and all that goes until it is not. */
	failed = write_policy(steer, policy_on(steer));
	if (failed) {
		err = failed;
		steer->policy.on = on;
	}
	failed = lower_rules(steer, before, count);
	free(before);
	return failed ? failed : err;
}

int steer_set_copy(struct steer *steer, bool on)
{
	steer->copy = on;
	return write_policy(steer, policy_on(steer));
}

/* --- the host's addresses --- */

static int compare_own(const void *one, const void *other)
{
	return memcmp(one, other, sizeof(struct millrace_own_key));
}

static bool has_own(const struct millrace_own_key *own, unsigned count,
		    const struct millrace_own_key *key)
{
	return count && bsearch(key, own, count, sizeof(*own), compare_own);
}

static bool is_ipv4(const struct millrace_own_key *key)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(key->address, mapped, sizeof(mapped));
}

/* What comes, then what goes. One that cannot be had is not noted, so that the next time tries it again. */
static int move_own(struct steer *steer, struct millrace_own_key *after, unsigned *count)
{
	const uint32_t value = 1;
	unsigned kept = 0;
	int err = 0;

	for (unsigned i = 0; i < *count; i++) {
		if (!has_own(steer->own, steer->owns, &after[i]) &&
		    bpf_map_update_elem(steer->maps.fd[STEER_OWN], &after[i], &value, BPF_ANY))
			err = -errno;
		else
			after[kept++] = after[i];
	}
	*count = kept;
	for (unsigned i = 0; i < steer->owns; i++) {
		if (!has_own(after, kept, &steer->own[i]))
			(void)bpf_map_delete_elem(steer->maps.fd[STEER_OWN], &steer->own[i]);
	}
	return err;
}

int steer_set_own(struct steer *steer, const struct steer_own *own)
{
	struct millrace_own_key *after = calloc(own->addresses + 1U, sizeof(*after));
	unsigned count = own->addresses;
	int err, failed;

	if (!after)
		return -ENOMEM;
	if (count)
		memcpy(after, own->address, count * sizeof(*after));
	qsort(after, count, sizeof(*after), compare_own);
	err = move_own(steer, after, &count);
	free(steer->own);
	steer->own = after;
	steer->owns = count;
	steer->ipv4 = steer->ipv6 = false;
	for (unsigned i = 0; i < count; i++) {
		steer->ipv4 = steer->ipv4 || is_ipv4(&after[i]);
		steer->ipv6 = steer->ipv6 || !is_ipv4(&after[i]);
	}
	steer->policy.mac = 0;
	memcpy(&steer->policy.mac, own->mac, sizeof(own->mac));
	failed = write_policy(steer, policy_on(steer));
	return failed ? failed : err;
}

/* --- counts --- */

static int read_hits(const struct steer *steer, uint32_t index, uint64_t *frames)
{
	uint64_t sum = 0;

	if (bpf_map_lookup_elem(steer->maps.fd[STEER_HITS], &index, steer->per_cpu))
		return -errno;
	for (unsigned i = 0; i < steer->cpus; i++)
		sum += steer->per_cpu[i];
	*frames = sum;
	return 0;
}

bool steer_is_standard(const struct steer *steer)
{
	return steer->standard;
}

int steer_rule_frames(const struct steer *steer, const struct steer_rule *rule, uint64_t *frames)
{
	const struct entry *entry = find_rule(steer->rule, steer->rules, rule);

	return entry ? read_hits(steer, entry->hits, frames) : -ENOENT;
}

int steer_class_frames(const struct steer *steer, enum millrace_class class, uint64_t *frames)
{
	return read_hits(steer, class, frames);
}

void steer_free(struct steer *steer)
{
	if (!steer)
		return;
	for (int i = 0; i < STEER_MAPS; i++) {
		if (steer->maps.fd[i] > 0)
			close(steer->maps.fd[i]);
	}
	free(steer->rule);
	free(steer->own);
	free(steer->per_cpu);
	free(steer);
}
