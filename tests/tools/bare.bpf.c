// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* millrace.bpf.c without a policy: what the cost of one is held against. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "millrace_shared.h"

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
	__uint(max_entries, 1);
} bare_xsks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct millrace_counts);
	__uint(max_entries, 1);
} bare_count SEC(".maps");

SEC("xdp.frags")
int bare(struct xdp_md *ctx)
{
	long verdict = bpf_redirect_map(&bare_xsks, ctx->rx_queue_index, XDP_PASS);
	__u32 zero = 0;
	struct millrace_counts *counts = bpf_map_lookup_elem(&bare_count, &zero);

	if (counts) {
		counts->seen++;
		if (verdict == XDP_PASS)
			counts->passed++;
	}
	return (int)verdict;
}

char program_license[] SEC("license") = "Dual BSD/GPL";
