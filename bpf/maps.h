/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Maps of the policy: who gets a frame. One set a port; written by the daemon, steer.h. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "millrace_shared.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct millrace_policy);
	__uint(max_entries, 1);
} millrace_policy SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct millrace_own_key);
	__type(value, __u32);
	__uint(max_entries, MILLRACE_OWN_MAX);
} millrace_own SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct millrace_rule_key);
	__type(value, struct millrace_rule);
	__uint(max_entries, MILLRACE_RULES_ROOM);
} millrace_rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct millrace_mac_key);
	__type(value, struct millrace_rule);
	__uint(max_entries, MILLRACE_RULES_ROOM);
} millrace_macs SEC(".maps");

/* Frames that each class and rule gave to the host's stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, MILLRACE_HITS);
} millrace_hits SEC(".maps");
