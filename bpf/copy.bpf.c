// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Filter of the packet socket that copies are read from: of the frames that a port's XDP program gave to the
 * host it takes those that the wire needs too. It judges by the maps of that program, so both mean the same
 * frames. One whose verdict is to be forwarded goes into a socket of AF_XDP and never comes here, but where a
 * queue has no socket: then nobody forwards it, and neither is it copied.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#define CLASSIFY_LOAD bpf_skb_load_bytes
#include "classify.h"
#include "maps.h"
#include "millrace_shared.h"

/* How much of a frame is taken: all of it, and the most that an int says. */
#define WHOLE 0x7fffffff

SEC("socket")
int millrace_copy(struct __sk_buff *skb)
{
	__u32 zero = 0;
	const struct millrace_policy *policy = bpf_map_lookup_elem(&millrace_policy, &zero);
	/* The stack, or the card, has taken the outer tag out. */
	__u32 taken = skb->vlan_present ? skb->vlan_tci : CLASSIFY_NO_TAG;

	if (!policy || !policy->on)
		return 0;
	/* Not asking for MILLRACE_ON_COPY: what was passed just before it went off has nobody else. */
	return classify_all(skb, policy, taken).verdict == MILLRACE_BOTH ? WHOLE : 0;
}

char program_license[] SEC("license") = "Dual BSD/GPL";
