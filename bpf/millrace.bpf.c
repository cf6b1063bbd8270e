// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Steers each frame to the socket of the queue it came in on, or to the host's stack if that queue
 * has no socket or the policy gives the frame to the host. One instance and one set of maps a port: the
 * queue number is the only key, and two ports would collide on it.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#define CLASSIFY_LOAD bpf_xdp_load_bytes
#include "classify.h"
#include "maps.h"
#include "millrace_shared.h"

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
	__uint(max_entries, MILLRACE_XSKS_DEFAULT);
} millrace_xsks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct millrace_counts);
	__uint(max_entries, 1);
} millrace_count SEC(".maps");

/* True if the policy gives the frame to the host. */
static __always_inline bool is_hosts(struct xdp_md *ctx, const struct millrace_policy *policy)
{
	struct millrace_rule rule = classify(ctx, policy, CLASSIFY_NO_TAG);
	__u64 *hits;

	if (rule.verdict == MILLRACE_FORWARD)
		return false;
	hits = bpf_map_lookup_elem(&millrace_hits, &rule.hits);
	if (hits)
		(*hits)++;
	return true;
}

/* xdp.frags: attaches natively at any MTU; where the sockets take one descriptor a packet the
 * daemon refuses an MTU that does not fit. */
SEC("xdp.frags")
int millrace(struct xdp_md *ctx)
{
	__u32 zero = 0;
	const struct millrace_policy *policy = bpf_map_lookup_elem(&millrace_policy, &zero);
	struct millrace_counts *counts;
	long verdict;

	if (policy && policy->on && is_hosts(ctx, policy))
		verdict = XDP_PASS;
	else /* XDP_PASS in the flags is the answer where the slot is empty. */
		verdict = bpf_redirect_map(&millrace_xsks, ctx->rx_queue_index, XDP_PASS);
	counts = bpf_map_lookup_elem(&millrace_count, &zero);
	if (counts) {
		counts->seen++;
		if (verdict == XDP_PASS)
			counts->passed++;
	}
	return (int)verdict;
}

char program_license[] SEC("license") = "Dual BSD/GPL";
