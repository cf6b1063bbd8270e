/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Somebody else's program, for libxdp's dispatcher: counts what it sees, drops some and passes the rest. */
#include <linux/bpf.h>
#include <linux/if_ether.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "beside.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} beside_count SEC(".maps");

SEC("xdp")
int beside(struct xdp_md *ctx)
{
	/* NOLINTBEGIN(performance-no-int-to-ptr): the context holds them so */
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	/* NOLINTEND(performance-no-int-to-ptr) */
	const struct ethhdr *ethernet = data;
	__u32 zero = 0;
	__u64 *count = bpf_map_lookup_elem(&beside_count, &zero);

	if (count)
		__sync_fetch_and_add(count, 1);
	if ((void *)(ethernet + 1) > end)
		return XDP_PASS;
	return ethernet->h_proto == bpf_htons(BESIDE_DROPS) ? XDP_DROP : XDP_PASS;
}

char program_license[] SEC("license") = "Dual BSD/GPL";
