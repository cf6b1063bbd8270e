// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * An XDP program of your own for attach-method = external: it decides which frames millraced gets, and
 * millraced fills its XSKMAP with sockets. This one leaves ARP and ssh to the host; begin from it.
 *
 *	clang -O2 -g -target bpf -idirafter /usr/include/$(gcc -print-multiarch) \
 *		-c external-xdp.bpf.c -o external-xdp.o
 *	bpftool prog load external-xdp.o /sys/fs/bpf/external pinmaps /sys/fs/bpf/external-maps
 *	bpftool net attach xdp pinned /sys/fs/bpf/external dev eth0
 *
 * and in the configuration file
 *
 *	[port wan]
 *	device = eth0
 *	attach-method = external
 *	xskmap = /sys/fs/bpf/external-maps/xsks
 *
 * millraced puts a socket into slot N for each queue N that it serves, and takes it out at its end. It
 * touches nothing else: other slots, the program and the pins are yours. A map that takes the place of the
 * pinned one is taken up when millraced is started again.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/tcp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* The key is the receive queue and nothing else: a socket gets frames of its own queue only, and the
 * kernel drops others without counting them. At least as many slots as the highest queue number and one. */
struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
	__uint(max_entries, 64);
} xsks SEC(".maps");

#define SSH_PORT 22

/* True for frames of the host's own ssh sessions, either way. Too short to tell: not. */
static __always_inline int is_ssh(void *ip_header, void *end)
{
	struct iphdr *ip = ip_header;
	struct tcphdr *tcp;

	if ((void *)(ip + 1) > end || ip->protocol != IPPROTO_TCP)
		return 0;
	tcp = ip_header + ip->ihl * 4;
	if ((void *)(tcp + 1) > end)
		return 0;
	return tcp->dest == bpf_htons(SSH_PORT) || tcp->source == bpf_htons(SSH_PORT);
}

/* xdp.frags: attaches natively at any MTU. */
SEC("xdp.frags")
int external(struct xdp_md *ctx)
{
	/* The kernel has them as numbers. NOLINTNEXTLINE(performance-no-int-to-ptr) */
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *ethernet = data;

	if ((void *)(ethernet + 1) > end)
		return XDP_DROP;
	if (ethernet->h_proto == bpf_htons(ETH_P_ARP))
		return XDP_PASS;
	if (ethernet->h_proto == bpf_htons(ETH_P_IP) && is_ssh(ethernet + 1, end))
		return XDP_PASS;
	/* XDP_PASS in the flags: frames go to the host while the slot is empty, so before millraced has
	 * started, after its end, and for queues that it does not serve. */
	return (int)bpf_redirect_map(&xsks, ctx->rx_queue_index, XDP_PASS);
}

char program_license[] SEC("license") = "Dual BSD/GPL";
