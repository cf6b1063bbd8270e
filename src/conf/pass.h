/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which frames of a port the host gets, as users say it: `pass = default, tcp dport 22`. Pure; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of one port. The XDP program has room for as many (MILLRACE_RULES_MAX). */
#define PASS_RULES_MAX 256

#define PASS_ADDRESS_LEN 16

/* In the order in which a frame is held against them. */
enum pass_kind {
	PASS_MAC,	/* mac 01:80:c2:00:00:00/44: destination */
	PASS_VLAN,	/* vlan 4000 */
	PASS_ETHERTYPE, /* ethertype 0x88cc: behind VLAN tags */
	PASS_HOST,	/* host 192.0.2.1 */
	PASS_PROTO,	/* proto 89 */
	PASS_TCP_PORT,	/* tcp dport 22 */
	PASS_UDP_PORT,	/* udp dport 500 */
};

struct pass_rule {
	enum pass_kind kind;
	bool both;			   /* a copy of the frame goes on */
	unsigned number;		   /* of kinds without an address; of a MAC its bits */
	uint8_t address[PASS_ADDRESS_LEN]; /* MAC, or IPv6, or IPv4 as ::ffff:192.0.2.1; else 0 */
};

struct pass {
	bool given;    /* something was said */
	bool none;     /* "none" was */
	bool standard; /* "default": what the mode gives to the host */
	unsigned rules;
	struct pass_rule rule[PASS_RULES_MAX]; /* in the order given, each once */
};

/* Room for the longest rule, "both host " and an IPv6 address. */
#define PASS_RULE_SIZE 64

/* And for the longest list. */
#define PASS_TEXT_SIZE (PASS_RULES_MAX * (PASS_RULE_SIZE + 2))

/* What is wrong with a list, and what was expected. */
struct pass_wrong {
	char text[256];
};

/*
 * Adds what the text lists: `default`, `none`, rules, with commas between them. What was there from
 * defaults goes at the first time. Returns 0, or -EINVAL with *wrong, and *pass is then half done.
 */
int pass_parse(const char *text, struct pass *pass, struct pass_wrong *wrong);

/* Writes it as pass_parse() reads it, cut to the room there is. */
void pass_print(const struct pass *pass, char *text, size_t size);

/* True if both say the same, in the same order. */
bool pass_same(const struct pass *one, const struct pass *other);

/* Writes one rule; text has PASS_RULE_SIZE bytes. Returns text. */
char *pass_rule_print(const struct pass_rule *rule, char *text);
