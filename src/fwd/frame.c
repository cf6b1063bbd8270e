/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "fwd/frame.h"

#include <arpa/inet.h>
#include <assert.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <string.h>

#include "base/clock.h"
#include "base/wire.h"

#define ADDRESS_FROM 0xc0000201U /* 192.0.2.1 */
#define ADDRESS_TO   0xc0000202U
#define UDP_PORT     4096	 /* xdpsock's */
#define PKTGEN_MAGIC 0xbe9be955U /* the kernel's net/core/pktgen.c */

/* Offset of the checksum field in a UDP and in a TCP header. */
#define UDP_CHECKSUM_AT 6
#define TCP_CHECKSUM_AT 16

static uint16_t fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* The sum of 16-bit words, not folded: 2^16 of them fit. */
static uint32_t sum_words(const uint8_t *bytes, uint32_t len)
{
	uint32_t i, sum = 0;

	for (i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
	if (i < len)
		sum += (uint32_t)bytes[i] << 8;
	return sum;
}

uint16_t frame_checksum(const uint8_t *bytes, uint32_t len, uint32_t sum)
{
	return (uint16_t)~fold(fold(sum) + sum_words(bytes, len));
}

/* RFC 768: a UDP checksum field of 0 means that there is none. */
static void put_udp_checksum(uint8_t *udp, uint16_t checksum)
{
	wire_put_16(udp + UDP_CHECKSUM_AT, checksum ? checksum : 0xffff);
}

/* Where the IPv4 header begins. */
static uint32_t ip_offset(const struct frame_opts *opts)
{
	return ETHER_HEADER_LEN + (opts->vlan ? ETHER_VLAN_LEN : 0);
}

uint32_t frame_headers_len(const struct frame_opts *opts)
{
	return FRAME_HEADERS_LEN + (opts->vlan ? ETHER_VLAN_LEN : 0) +
	       (opts->timestamp ? FRAME_TIMESTAMP_LEN : 0);
}

static void put_ethernet(uint8_t *bytes, const struct frame_opts *opts)
{
	memcpy(bytes, opts->dst, MAC_LEN);
	memcpy(bytes + MAC_LEN, opts->src, MAC_LEN);
	bytes += (size_t)2 * MAC_LEN;
	if (opts->vlan) {
		wire_put_16(bytes, ETH_P_8021Q);
		wire_put_16(bytes + 2, opts->vlan_tci);
		bytes += ETHER_VLAN_LEN;
	}
	wire_put_16(bytes, ETH_P_IP);
}

static void put_ip(uint8_t *bytes, uint32_t len)
{
	struct iphdr ip = {
		.version = 4,
		.ihl = sizeof(ip) / 4,
		.tot_len = htons((uint16_t)len),
		.ttl = IPDEFTTL,
		.protocol = IPPROTO_UDP,
		.saddr = htonl(ADDRESS_FROM),
		.daddr = htonl(ADDRESS_TO),
	};

	memcpy(bytes, &ip, sizeof(ip));
	wire_put_16(bytes + offsetof(struct iphdr, check), frame_checksum(bytes, sizeof(ip), 0));
}

void frame_build(uint8_t *bytes, uint32_t len, const struct frame_opts *opts)
{
	uint8_t *ip = bytes + ip_offset(opts);
	uint8_t *udp = ip + sizeof(struct iphdr);
	uint8_t *payload = bytes + frame_headers_len(opts);
	uint32_t udp_len = len - (uint32_t)(udp - bytes);
	uint32_t pseudo_sum;

	assert(len >= frame_headers_len(opts) && len <= FRAME_BYTES_MAX);
	put_ethernet(bytes, opts);
	put_ip(ip, len - ip_offset(opts));
	memset(udp, 0, (size_t)(payload - udp));
	for (uint32_t i = 0; i < len - frame_headers_len(opts); i++)
		payload[i] = (uint8_t)(opts->pattern >> (8 * (3 - i % 4)));
	if (opts->timestamp)
		wire_put_32(payload - FRAME_TIMESTAMP_LEN, PKTGEN_MAGIC);
	wire_put_16(udp, UDP_PORT);
	wire_put_16(udp + 2, UDP_PORT);
	wire_put_16(udp + 4, udp_len);
	pseudo_sum = sum_words(ip + offsetof(struct iphdr, saddr), 8) + IPPROTO_UDP + udp_len;
	put_udp_checksum(udp, frame_checksum(udp, udp_len, pseudo_sum));
}

void frame_stamp(uint8_t *headers, const struct frame_opts *opts, uint32_t sequence,
		 uint64_t time_ns)
{
	uint8_t *udp = headers + ip_offset(opts) + sizeof(struct iphdr);
	uint8_t *stamp = udp + sizeof(struct udphdr) + 4; /* behind the magic */
	uint32_t sum = (uint16_t)~wire_get_16(udp + UDP_CHECKSUM_AT);

	wire_put_32(stamp, sequence);
	wire_put_32(stamp + 4, (uint32_t)(time_ns / NSEC_PER_SEC));
	wire_put_32(stamp + 8, (uint32_t)(time_ns % NSEC_PER_SEC / 1000));
	/* RFC 1624, equation 3; what stood there before was 0. */
	put_udp_checksum(udp, frame_checksum(stamp, 12, sum));
}

struct l4 {
	uint32_t at, len;  /* of the TCP or UDP packet in the frame */
	uint32_t addr_at;  /* of the two IP addresses */
	uint32_t addr_len; /* of both together */
	uint8_t protocol;
};

static bool find_ipv4(const uint8_t *bytes, uint32_t len, uint32_t at, struct l4 *l4)
{
	uint32_t header_len = (bytes[at] & 0xfU) * 4, total = wire_get_16(bytes + at + 2);

	(void)len;
	if (bytes[at] >> 4 != 4 || header_len < sizeof(struct iphdr) || total < header_len)
		return false;
	if (wire_get_16(bytes + at + 6) & (IP_MF | IP_OFFMASK))
		return false; /* a fragment: its checksum is over more than this */
	*l4 = (struct l4){ at + header_len, total - header_len,
			   at + (uint32_t)offsetof(struct iphdr, saddr), 8, bytes[at + 9] };
	return true;
}

/* Without extension headers: those packets are told as OTHER. */
static bool find_ipv6(const uint8_t *bytes, uint32_t len, uint32_t at, struct l4 *l4)
{
	if (at + 40 > len || bytes[at] >> 4 != 6)
		return false;
	*l4 = (struct l4){ at + 40, wire_get_16(bytes + at + 4), at + 8, 32, bytes[at + 6] };
	return true;
}

static bool find_l4(const uint8_t *bytes, uint32_t len, struct l4 *l4)
{
	uint32_t at = ETHER_HEADER_LEN, type;

	if (len < ETHER_HEADER_LEN)
		return false;
	type = wire_get_16(bytes + 2 * MAC_LEN);
	for (int tags = 0; tags < 2 && (type == ETH_P_8021Q || type == ETH_P_8021AD); tags++) {
		if (at + ETHER_VLAN_LEN > len)
			return false;
		type = wire_get_16(bytes + at + 2);
		at += ETHER_VLAN_LEN;
	}
	if (at + sizeof(struct iphdr) > len)
		return false;
	if (type == ETH_P_IP)
		return find_ipv4(bytes, len, at, l4);
	return type == ETH_P_IPV6 && find_ipv6(bytes, len, at, l4);
}

enum frame_l4 frame_l4_checksum(const uint8_t *bytes, uint32_t len)
{
	uint32_t field_at, pseudo_sum;
	struct l4 l4;

	if (!find_l4(bytes, len, &l4))
		return FRAME_L4_OTHER;
	if (l4.protocol == IPPROTO_TCP)
		field_at = TCP_CHECKSUM_AT;
	else if (l4.protocol == IPPROTO_UDP)
		field_at = UDP_CHECKSUM_AT;
	else
		return FRAME_L4_OTHER;
	if (l4.len < field_at + 2 || l4.at + field_at + 2 > len)
		return FRAME_L4_OTHER;
	pseudo_sum = sum_words(bytes + l4.addr_at, l4.addr_len) + l4.protocol + l4.len;
	if (wire_get_16(bytes + l4.at + field_at) != fold(pseudo_sum))
		return FRAME_L4_WHOLE;
	if (l4.at + l4.len <= len && !frame_checksum(bytes + l4.at, l4.len, pseudo_sum))
		return FRAME_L4_WHOLE;
	return FRAME_L4_PARTIAL;
}
