/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the BPF programs and the daemon share. Included by both; the includer brings __u64 and the like. */
#pragma once

/* One a CPU, in the one-entry map millrace_count. Written by the program, summed by the daemon. */
struct millrace_counts {
	__u64 seen;   /* frames the program was run on */
	__u64 passed; /* of these, given to the host's stack */
};

/* Entries of millrace_xsks before the daemon sizes it for the port's RX queues. */
#define MILLRACE_XSKS_DEFAULT 1

/* What becomes of a frame (classify.h). */
enum millrace_verdict {
	MILLRACE_FORWARD, /* to the socket */
	MILLRACE_HOST,	  /* to the host's stack */
	MILLRACE_BOTH,	  /* to the host's stack, and a copy that the daemon makes goes on */
};

/* Kinds of rules. Of those in millrace_rules the number is in the key; those of addresses are in
 * millrace_macs, for their prefixes. A frame is held against them in this order. */
enum millrace_kind {
	MILLRACE_KIND_MAC,	 /* destination, or its first bits */
	MILLRACE_KIND_VLAN,	 /* of the outer tag, or of the one in it */
	MILLRACE_KIND_ETHERTYPE, /* behind up to two tags */
	MILLRACE_KIND_HOST,	 /* source or destination of IP, sender or target of ARP */
	MILLRACE_KIND_PROTO,	 /* of IPv4 or, behind extension headers, of IPv6 */
	MILLRACE_KIND_TCP_PORT,	 /* destination */
	MILLRACE_KIND_UDP_PORT,	 /* destination */
	MILLRACE_KINDS,
};

/*
 * The one entry of millrace_policy. `on` has a bit for each kind that has a rule, and those below; 0: every
 * frame goes to the socket. `mac`: the port's own address in its first 6 bytes as on the wire, then zeros;
 * 0: none is known. It is one word so that none reads half of two addresses.
 */
struct millrace_policy {
	__u64 mac;
	__u32 on;
	__u32 reserved; /* 0 */
};

#define MILLRACE_ON_KIND(kind) (1U << (kind))
#define MILLRACE_ON_DEFAULT    (1U << 16) /* the host has its own frames, see classify.h */
#define MILLRACE_ON_IPV4       (1U << 17) /* the host has IPv4 addresses on the port */
#define MILLRACE_ON_IPV6       (1U << 18) /* and IPv6 ones, be it a link-local one */
#define MILLRACE_ON_COPY \
	(1U << 19) /* somebody copies what is MILLRACE_BOTH; else it is forwarded */

/* Key of millrace_own, the host's addresses on the port: IPv6, or IPv4 as ::ffff:192.0.2.1. VLAN of the outer
 * and the inner tag, in host order; 0: no tag, or one for priority only. */
struct millrace_own_key {
	__u8 address[16];
	__u16 vlan[2];
};

/* Key of millrace_rules. The value is in network order, at the front, then zeros: 2 bytes of VLAN, Ethertype
 * or port, 1 of protocol, 16 of an address as in millrace_own_key. */
struct millrace_rule_key {
	__u8 value[16];
	__u32 kind; /* enum millrace_kind */
};

/* Key of millrace_macs, a longest prefix trie: of two rules that fit the one with more bits counts. */
struct millrace_mac_key {
	__u32 bits;
	__u8 mac[8]; /* the last two: 0 */
};

/* Value of the rules' maps. */
struct millrace_rule {
	__u32 verdict; /* enum millrace_verdict */
	__u32 hits;    /* where it counts: entry of millrace_hits */
};

/* Entries of millrace_hits that count what MILLRACE_ON_DEFAULT passes; behind them those of rules. */
enum millrace_class {
	MILLRACE_OWN_MAC,
	MILLRACE_OWN_ARP,
	MILLRACE_OWN_ND,
	MILLRACE_BOTH_ARP,
	MILLRACE_BOTH_DHCP,
	MILLRACE_BOTH_RA,
	MILLRACE_BOTH_MLD,
	MILLRACE_BOTH_DHCPV6,
	MILLRACE_CLASSES,
};

/* Rules of a port. The maps have twice the room: while one list takes the place of another, both are in. */
#define MILLRACE_RULES_MAX  256
#define MILLRACE_RULES_ROOM (2 * MILLRACE_RULES_MAX)
#define MILLRACE_HITS	    (MILLRACE_CLASSES + MILLRACE_RULES_ROOM)
/* Addresses of a port that the host owns: more than a host with a container an address has. Memory is taken
 * for those that there are. */
#define MILLRACE_OWN_MAX 4096
