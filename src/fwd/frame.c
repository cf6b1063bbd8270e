/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "fwd/frame.h"

#include <arpa/inet.h>
#include <assert.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <string.h>

#define ADDRESS_FROM 0xc0000201U /* 192.0.2.1 */
#define ADDRESS_TO   0xc0000202U
#define UDP_PORT     4096 /* xdpsock's */

uint16_t frame_checksum(const uint8_t *bytes, uint32_t len, uint32_t sum)
{
	uint32_t i;

	for (i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
	if (i < len)
		sum += (uint32_t)bytes[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static uint32_t pseudo_header_sum(uint32_t udp_len)
{
	return (ADDRESS_FROM >> 16) + (ADDRESS_FROM & 0xffff) + (ADDRESS_TO >> 16) +
	       (ADDRESS_TO & 0xffff) + IPPROTO_UDP + udp_len;
}

void frame_build(struct frame_template *frame, const struct frame_opts *opts)
{
	struct ethhdr ethernet;
	struct iphdr ip = { 0 };
	struct udphdr udp = { 0 };
	uint8_t *ip_at = frame->bytes + sizeof(ethernet);
	uint8_t *udp_at = ip_at + sizeof(ip);
	uint8_t *payload = udp_at + sizeof(udp);
	uint32_t udp_len = opts->len - (uint32_t)(udp_at - frame->bytes);
	uint16_t sum;

	assert(opts->len >= FRAME_HEADERS_LEN && opts->len <= FRAME_BYTES_MAX);
	frame->len = opts->len;
	memcpy(ethernet.h_dest, opts->dst, MAC_LEN);
	memcpy(ethernet.h_source, opts->src, MAC_LEN);
	ethernet.h_proto = htons(ETH_P_IP);
	memcpy(frame->bytes, &ethernet, sizeof(ethernet));
	for (uint32_t i = 0; i < udp_len - sizeof(udp); i++)
		payload[i] = (uint8_t)(opts->pattern >> (8 * (3 - i % 4)));

	ip.version = 4;
	ip.ihl = sizeof(ip) / 4;
	ip.tot_len = htons((uint16_t)(sizeof(ip) + udp_len));
	ip.ttl = IPDEFTTL;
	ip.protocol = IPPROTO_UDP;
	ip.saddr = htonl(ADDRESS_FROM);
	ip.daddr = htonl(ADDRESS_TO);
	memcpy(ip_at, &ip, sizeof(ip));
	ip.check = htons(frame_checksum(ip_at, sizeof(ip), 0));
	memcpy(ip_at, &ip, sizeof(ip));

	udp.source = htons(UDP_PORT);
	udp.dest = htons(UDP_PORT);
	udp.len = htons((uint16_t)udp_len);
	memcpy(udp_at, &udp, sizeof(udp));
	sum = frame_checksum(udp_at, udp_len, pseudo_header_sum(udp_len));
	udp.check = htons(sum ? sum : 0xffff); /* RFC 768: 0 means that there is none */
	memcpy(udp_at, &udp, sizeof(udp));
}
