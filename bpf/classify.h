/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who gets a frame: the socket, the host, or both. One text for every program that must answer this the same
 * way. The includer defines, before it,
 *
 *	CLASSIFY_LOAD(ctx, offset, to, len)	copies bytes of the frame; not 0: it is not that long
 *
 * as bpf_xdp_load_bytes() or bpf_skb_load_bytes(), which reach into every piece of a frame.
 *
 * A rule that fits decides, see enum millrace_kind for the order; then, if MILLRACE_ON_DEFAULT is set:
 *
 *	to the port's own address			HOST
 *	ARP, ND to a group, about an own address	HOST
 *	RA, MLD, DHCP to a client, ARP for others,	BOTH, where the host has addresses
 *	to a group
 *	all else					FORWARD
 *
 * What is unicast to somebody else is none of the host's, whatever is in it. A frame that ends too early, or
 * whose headers make no sense, is judged by what comes before that.
 */
#pragma once

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "maps.h"
#include "millrace_shared.h"

#define CLASSIFY_TAGS	    2 /* that are looked behind */
#define CLASSIFY_EXTENSIONS 6 /* IPv6 headers before the payload: what RFC 8200 has, once each */

#define IPV6_HOP_BY_HOP	 0
#define IPV6_ROUTING	 43
#define IPV6_FRAGMENT	 44
#define IPV6_DESTINATION 60
#define PROTO_ICMPV6	 58

#define PORT_DHCP_CLIENT   68
#define PORT_DHCPV6_CLIENT 546

#define ICMPV6_MLD_QUERY	 130
#define ICMPV6_MLD_REPORT	 131
#define ICMPV6_MLD_DONE		 132
#define ICMPV6_ROUTER_ADVERT	 134
#define ICMPV6_NEIGHBOUR_SOLICIT 135
#define ICMPV6_NEIGHBOUR_ADVERT	 136
#define ICMPV6_MLD2_REPORT	 143
#define ICMPV6_ND_TARGET	 8 /* its offset */

/* A tag that was taken out of the frame before the program sees it, as the stack does; CLASSIFY_NO_TAG:
 * none was. */
#define CLASSIFY_NO_TAG 0x10000

/* What is known of a frame behind its Ethernet header. */
struct classify_frame {
	__u16 vlan[CLASSIFY_TAGS]; /* host order; 0 where there is no tag */
	__u32 tags;
	__u32 type;    /* Ethertype behind the tags, host order */
	__u32 network; /* offset of what is behind it */
	__u32 proto;   /* of IP; CLASSIFY_NO_PROTO: it is not, or cannot be told */
	__u32 payload; /* offset of what proto is about */
	bool headed;   /* the payload begins there: it is no later fragment */
	bool whole;    /* no fragment at all */
};

#define CLASSIFY_NO_PROTO 256

struct classify_ethernet {
	__u8 destination[ETH_ALEN];
	__u8 source[ETH_ALEN];
	__be16 type;
};

struct classify_tag {
	__be16 tci;
	__be16 type;
};

static __always_inline bool classify_is_tag(__u32 type)
{
	return type == ETH_P_8021Q || type == ETH_P_8021AD;
}

static __always_inline void classify_tags(void *ctx, struct classify_frame *frame, __u32 taken)
{
	if (taken != CLASSIFY_NO_TAG) {
		frame->vlan[0] = taken & 0xfff;
		frame->tags = 1;
	}
#pragma unroll
	for (int i = 0; i < CLASSIFY_TAGS; i++) {
		struct classify_tag tag;

		if (i < frame->tags)
			continue;
		if (!classify_is_tag(frame->type) ||
		    CLASSIFY_LOAD(ctx, frame->network, &tag, sizeof(tag)))
			return;
		frame->vlan[i] = bpf_ntohs(tag.tci) & 0xfff;
		frame->tags = i + 1;
		frame->type = bpf_ntohs(tag.type);
		frame->network += sizeof(tag);
	}
}

static __always_inline void classify_ipv4(void *ctx, struct classify_frame *frame)
{
	__u8 header[20];
	__u32 len, fragment;

	if (CLASSIFY_LOAD(ctx, frame->network, header, sizeof(header)))
		return;
	len = (header[0] & 0xf) * 4;
	if (header[0] >> 4 != 4 || len < sizeof(header))
		return;
	fragment = (__u32)header[6] << 8 | header[7];
	frame->proto = header[9];
	frame->payload = frame->network + len;
	frame->headed = !(fragment & 0x1fff);
	frame->whole = !(fragment & 0x3fff); /* "more fragments" too */
}

static __always_inline void classify_ipv6(void *ctx, struct classify_frame *frame)
{
	__u8 header[8];
	__u32 proto, offset = frame->network + 40;

	if (CLASSIFY_LOAD(ctx, frame->network, header, sizeof(header)) || header[0] >> 4 != 6)
		return;
	proto = header[6];
	frame->headed = frame->whole = true;
#pragma unroll
	for (int i = 0; i < CLASSIFY_EXTENSIONS; i++) {
		__u8 next[4];

		if (proto != IPV6_HOP_BY_HOP && proto != IPV6_ROUTING && proto != IPV6_FRAGMENT &&
		    proto != IPV6_DESTINATION)
			break;
		if (!frame->headed || CLASSIFY_LOAD(ctx, offset, next, sizeof(next)))
			break;
		if (proto == IPV6_FRAGMENT) {
			frame->whole = false;
			frame->headed = !(next[2] | (next[3] & 0xf8));
			offset += 8;
		} else {
			offset += 8 + 8 * (__u32)next[1];
		}
		proto = next[0];
	}
	frame->proto = proto;
	frame->payload = offset;
}

static __always_inline void classify_network(void *ctx, struct classify_frame *frame)
{
	if (frame->type == ETH_P_IP)
		classify_ipv4(ctx, frame);
	else if (frame->type == ETH_P_IPV6)
		classify_ipv6(ctx, frame);
}

/* --- keys --- */

/*
 * They are made of words of 8 bytes, each stored as a whole. Before Linux 6.8 (ab125ed3ec1c) the verifier takes
 * a number in the first part of a word on the stack for a spilled register, and a store into another part for an
 * attack on it, unless the loader has CAP_PERFMON, which ours has not: "attempt to corrupt spilled pointer".
 */
union classify_key {
	struct millrace_rule_key rule;
	struct millrace_own_key own;
	__u64 word[3];
};

union classify_mac_key {
	struct millrace_mac_key mac;
	__u64 word[2];
};

/* What has, in memory, the first and then the second of two halves. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define CLASSIFY_JOIN(first, second, bits) ((first) | (second) << (bits))
#else
#define CLASSIFY_JOIN(first, second, bits) ((first) << (bits) | (second))
#endif

static __always_inline __u32 classify_half(__u16 first, __u16 second)
{
	return CLASSIFY_JOIN((__u32)first, (__u32)second, 16);
}

static __always_inline __u64 classify_word(__u32 first, __u32 second)
{
	return CLASSIFY_JOIN((__u64)first, (__u64)second, 32);
}

/* --- rules --- */

/* True if a rule of that kind has the value whose two words are in the key, and *rule is then its. */
static __always_inline bool classify_find(__u32 kind, union classify_key *key,
					  struct millrace_rule *rule)
{
	struct millrace_rule *found;

	key->word[2] = classify_word(kind, 0);
	found = bpf_map_lookup_elem(&millrace_rules, key);
	if (found)
		*rule = *found;
	return found;
}

static __always_inline bool classify_find_number(__u32 kind, __u32 number,
						 struct millrace_rule *rule)
{
	union classify_key key;

	key.word[0] = classify_word(classify_half(bpf_htons((__u16)number), 0), 0);
	key.word[1] = 0;
	return classify_find(kind, &key, rule);
}

/* Its first four bytes and its last two. */
static __always_inline bool classify_find_mac(__u32 first, __u16 last, struct millrace_rule *rule)
{
	union classify_mac_key key;
	struct millrace_rule *found;

	key.word[0] = classify_word(8 * ETH_ALEN, first);
	key.word[1] = classify_word(classify_half(last, 0), 0);
	found = bpf_map_lookup_elem(&millrace_macs, &key);
	if (found)
		*rule = *found;
	return found;
}

/* The address at that offset of the frame, into the key. False: the frame ends before. */
static __always_inline bool classify_address(void *ctx, __u32 offset, bool ipv4,
					     union classify_key *key)
{
	__u32 address;

	if (!ipv4)
		return !CLASSIFY_LOAD(ctx, offset, key, 16);
	if (CLASSIFY_LOAD(ctx, offset, &address, sizeof(address)))
		return false;
	key->word[0] = 0;
	key->word[1] = classify_word(bpf_htonl(0xffff), address);
	return true;
}

static __always_inline bool classify_find_host(void *ctx, const struct classify_frame *frame,
					       struct millrace_rule *rule)
{
	bool ipv4 = frame->type != ETH_P_IPV6;
	__u32 from = frame->network, to = frame->network;
	union classify_key key;

	if (frame->type == ETH_P_IP) {
		from += 12;
		to += 16;
	} else if (frame->type == ETH_P_IPV6) {
		from += 8;
		to += 24;
	} else if (frame->type == ETH_P_ARP) {
		from += 14;
		to += 24;
	} else {
		return false;
	}
	if (classify_address(ctx, to, ipv4, &key) && classify_find(MILLRACE_KIND_HOST, &key, rule))
		return true;
	return classify_address(ctx, from, ipv4, &key) &&
	       classify_find(MILLRACE_KIND_HOST, &key, rule);
}

/* The destination port in host order, or 0: there is none. */
static __always_inline __u32 classify_port(void *ctx, const struct classify_frame *frame)
{
	__be16 ports[2];

	if (!frame->headed || (frame->proto != IPPROTO_TCP && frame->proto != IPPROTO_UDP) ||
	    CLASSIFY_LOAD(ctx, frame->payload, ports, sizeof(ports)))
		return 0;
	return bpf_ntohs(ports[1]);
}

#define CLASSIFY_ON(on, kind) ((on)&MILLRACE_ON_KIND(MILLRACE_KIND_##kind))

/* Kinds for which the headers behind Ethernet's are read. */
#define CLASSIFY_IP_KINDS                                                                   \
	(MILLRACE_ON_KIND(MILLRACE_KIND_PROTO) | MILLRACE_ON_KIND(MILLRACE_KIND_TCP_PORT) | \
	 MILLRACE_ON_KIND(MILLRACE_KIND_UDP_PORT))
#define CLASSIFY_KINDS (MILLRACE_ON_KIND(MILLRACE_KINDS) - 1)

static __always_inline bool classify_by_rules(void *ctx, const struct classify_frame *frame,
					      __u32 on, struct millrace_rule *rule)
{
	if (CLASSIFY_ON(on, VLAN) && frame->tags > 0 &&
	    classify_find_number(MILLRACE_KIND_VLAN, frame->vlan[0], rule))
		return true;
	if (CLASSIFY_ON(on, VLAN) && frame->tags > 1 &&
	    classify_find_number(MILLRACE_KIND_VLAN, frame->vlan[1], rule))
		return true;
	if (CLASSIFY_ON(on, ETHERTYPE) &&
	    classify_find_number(MILLRACE_KIND_ETHERTYPE, frame->type, rule))
		return true;
	if (CLASSIFY_ON(on, HOST) && classify_find_host(ctx, frame, rule))
		return true;
	if (frame->proto == CLASSIFY_NO_PROTO)
		return false;
	/* One byte: the first of the two of a number. */
	if (CLASSIFY_ON(on, PROTO) &&
	    classify_find_number(MILLRACE_KIND_PROTO, frame->proto << 8, rule))
		return true;
	if (frame->proto == IPPROTO_TCP && CLASSIFY_ON(on, TCP_PORT))
		return classify_find_number(MILLRACE_KIND_TCP_PORT, classify_port(ctx, frame),
					    rule);
	if (frame->proto == IPPROTO_UDP && CLASSIFY_ON(on, UDP_PORT))
		return classify_find_number(MILLRACE_KIND_UDP_PORT, classify_port(ctx, frame),
					    rule);
	return false;
}

/* --- what the host has without rules --- */

static __always_inline struct millrace_rule classify_as(__u32 verdict, __u32 hits)
{
	return (struct millrace_rule){ verdict, hits };
}

static __always_inline bool classify_is_own(void *ctx, const struct classify_frame *frame,
					    __u32 offset, bool ipv4)
{
	union classify_key key;

	key.word[2] = classify_word(classify_half(frame->vlan[0], frame->vlan[1]), 0);
	return classify_address(ctx, offset, ipv4, &key) &&
	       bpf_map_lookup_elem(&millrace_own, &key);
}

/* For IPv4 over Ethernet, as far as it says so. */
static __always_inline struct millrace_rule
classify_arp(void *ctx, const struct classify_frame *frame, __u32 on)
{
	__u8 head[6];

	if (CLASSIFY_LOAD(ctx, frame->network, head, sizeof(head)) || head[0] || head[1] != 1 ||
	    head[2] != ETH_P_IP >> 8 || head[3] != (ETH_P_IP & 0xff) || head[4] != ETH_ALEN ||
	    head[5] != 4)
		return classify_as(MILLRACE_FORWARD, 0);
	if (classify_is_own(ctx, frame, frame->network + 24, true))
		return classify_as(MILLRACE_HOST, MILLRACE_OWN_ARP);
	return classify_as(on & MILLRACE_ON_IPV4 ? MILLRACE_BOTH : MILLRACE_FORWARD,
			   MILLRACE_BOTH_ARP);
}

/* Never in fragments, RFC 6980. */
static __always_inline struct millrace_rule
classify_icmpv6(void *ctx, const struct classify_frame *frame, __u32 on)
{
	__u32 both = on & MILLRACE_ON_IPV6 ? MILLRACE_BOTH : MILLRACE_FORWARD;
	__u8 type;

	if (!frame->whole || CLASSIFY_LOAD(ctx, frame->payload, &type, sizeof(type)))
		return classify_as(MILLRACE_FORWARD, 0);
	if (type == ICMPV6_NEIGHBOUR_SOLICIT || type == ICMPV6_NEIGHBOUR_ADVERT) {
		if (classify_is_own(ctx, frame, frame->payload + ICMPV6_ND_TARGET, false))
			return classify_as(MILLRACE_HOST, MILLRACE_OWN_ND);
		return classify_as(MILLRACE_FORWARD, 0);
	}
	if (type == ICMPV6_ROUTER_ADVERT)
		return classify_as(both, MILLRACE_BOTH_RA);
	if (type == ICMPV6_MLD_QUERY || type == ICMPV6_MLD_REPORT || type == ICMPV6_MLD_DONE ||
	    type == ICMPV6_MLD2_REPORT)
		return classify_as(both, MILLRACE_BOTH_MLD);
	return classify_as(MILLRACE_FORWARD, 0);
}

static __always_inline struct millrace_rule
classify_group(void *ctx, const struct classify_frame *frame, __u32 on)
{
	if (frame->type == ETH_P_ARP)
		return classify_arp(ctx, frame, on);
	if (frame->type == ETH_P_IPV6 && frame->proto == PROTO_ICMPV6)
		return classify_icmpv6(ctx, frame, on);
	/* An IPv6 address alone shows that the host uses the port, and may still wait for one of IPv4. */
	if (frame->proto == IPPROTO_UDP && (on & (MILLRACE_ON_IPV4 | MILLRACE_ON_IPV6))) {
		__u32 port = classify_port(ctx, frame);

		if (frame->type == ETH_P_IP && port == PORT_DHCP_CLIENT)
			return classify_as(MILLRACE_BOTH, MILLRACE_BOTH_DHCP);
		if (frame->type == ETH_P_IPV6 && port == PORT_DHCPV6_CLIENT)
			return classify_as(MILLRACE_BOTH, MILLRACE_BOTH_DHCPV6);
	}
	return classify_as(MILLRACE_FORWARD, 0);
}

/* --- all of it --- */

static __always_inline struct millrace_rule
classify_all(void *ctx, const struct millrace_policy *policy, __u32 taken)
{
	const struct millrace_rule forward = { .verdict = MILLRACE_FORWARD };
	struct classify_frame frame = { .proto = CLASSIFY_NO_PROTO };
	struct classify_ethernet ethernet;
	struct millrace_rule rule;
	__u32 on = policy->on;
	__u32 first;
	__u16 last;
	__u64 mac;
	bool group;

	if (CLASSIFY_LOAD(ctx, 0, &ethernet, sizeof(ethernet)))
		return forward;
	__builtin_memcpy(&first, ethernet.destination, sizeof(first));
	__builtin_memcpy(&last, ethernet.destination + sizeof(first), sizeof(last));
	mac = classify_word(first, classify_half(last, 0));
	group = on & MILLRACE_ON_DEFAULT && ethernet.destination[0] & 1;
	if (CLASSIFY_ON(on, MAC) && classify_find_mac(first, last, &rule))
		return rule;
	if (group || on & CLASSIFY_KINDS & ~MILLRACE_ON_KIND(MILLRACE_KIND_MAC)) {
		frame.type = bpf_ntohs(ethernet.type);
		frame.network = sizeof(ethernet);
		classify_tags(ctx, &frame, taken);
		if (group || on & CLASSIFY_IP_KINDS)
			classify_network(ctx, &frame);
		if (classify_by_rules(ctx, &frame, on, &rule))
			return rule;
	}
	if (on & MILLRACE_ON_DEFAULT && mac && mac == policy->mac)
		return classify_as(MILLRACE_HOST, MILLRACE_OWN_MAC);
	return group ? classify_group(ctx, &frame, on) : forward;
}

/* The verdict, and what counts it. MILLRACE_BOTH only while somebody copies. */
static __always_inline struct millrace_rule
classify(void *ctx, const struct millrace_policy *policy, __u32 taken)
{
	struct millrace_rule rule = classify_all(ctx, policy, taken);

	if (rule.verdict == MILLRACE_BOTH && !(policy->on & MILLRACE_ON_COPY))
		rule.verdict = MILLRACE_FORWARD;
	return rule;
}
