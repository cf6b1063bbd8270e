/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "conf/pass.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mac.h"
#include "base/number.h"

/* Notes what is wrong, and is the error to return. */
#define fail(wrong, ...) (snprintf((wrong)->text, sizeof((wrong)->text), __VA_ARGS__), -EINVAL)

/* The most words of a rule: both tcp dport 22. One more shows that there are too many. */
#define WORDS_MAX 5

#define MAC_BITS (8 * MAC_LEN)

/* A kind by its words, and what follows them. */
struct form {
	enum pass_kind kind;
	const char *word, *second; /* second: NULL where there is none */
	const char *value;	   /* for messages */
	unsigned long min, max;	   /* of a number */
};

static const struct form forms[] = {
	{ PASS_MAC, "mac", NULL, "01:80:c2:00:00:00/44, with 1 to 48 bits, or a whole address" },
	{ PASS_VLAN, "vlan", NULL, "a VLAN from 1 to 4094", 1, 4094 },
	/* Below, it is a length. */
	{ PASS_ETHERTYPE, "ethertype", NULL, "a number from 0x600 to 0xffff", 0x600, 0xffff },
	{ PASS_HOST, "host", NULL, "an IPv4 or IPv6 address such as 192.0.2.1" },
	{ PASS_PROTO, "proto", NULL, "an IP protocol's number from 0 to 255", 0, 255 },
	{ PASS_TCP_PORT, "tcp", "dport", "a port from 1 to 65535", 1, 65535 },
	{ PASS_UDP_PORT, "udp", "dport", "a port from 1 to 65535", 1, 65535 },
};

#define FORMS (sizeof(forms) / sizeof(forms[0]))

static const struct form *form_of(enum pass_kind kind)
{
	const struct form *form = forms;

	while (form->kind != kind)
		form++;
	return form;
}

/* --- reading --- */

static int parse_number(const struct form *form, const char *text, struct pass_rule *rule)
{
	unsigned long number;
	bool hex = !strncmp(text, "0x", 2) || !strncmp(text, "0X", 2);

	if (hex ? number_hex_parse(text, form->max, &number) :
		  number_parse(text, form->min, form->max, &number))
		return -EINVAL;
	rule->number = (unsigned)number;
	return number < form->min ? -EINVAL : 0;
}

static int parse_mac(const char *text, struct pass_rule *rule)
{
	const char *slash = strchr(text, '/');
	unsigned long bits = MAC_BITS;
	char mac[32];

	snprintf(mac, sizeof(mac), "%.*s", slash ? (int)(slash - text) : (int)strlen(text), text);
	if ((slash && number_parse(slash + 1, 1, MAC_BITS, &bits)) || mac_parse(mac, rule->address))
		return -EINVAL;
	rule->number = (unsigned)bits;
	/* What is behind the bits that count is 0, so that equal rules look so. */
	for (unsigned i = 0; i < MAC_LEN; i++) {
		unsigned keep = bits <= 8UL * i ? 0 : (unsigned)bits - 8 * i;

		if (keep < 8)
			rule->address[i] &= (uint8_t)(0xff00U >> keep);
	}
	return 0;
}

static int parse_host(const char *text, struct pass_rule *rule)
{
	if (inet_pton(AF_INET, text, rule->address + 12) == 1) {
		rule->address[10] = rule->address[11] = 0xff;
		return 0;
	}
	return inet_pton(AF_INET6, text, rule->address) == 1 ? 0 : -EINVAL;
}

static int parse_value(const struct form *form, const char *text, struct pass_rule *rule)
{
	rule->kind = form->kind;
	if (form->kind == PASS_MAC)
		return parse_mac(text, rule);
	if (form->kind == PASS_HOST)
		return parse_host(text, rule);
	return parse_number(form, text, rule);
}

static int fail_form(const char *text, struct pass_wrong *wrong)
{
	return fail(
		wrong,
		"'%.60s' is no rule; type default, none, mac ADDRESS/BITS, vlan N, ethertype N, "
		"host ADDRESS, proto N, tcp dport N, udp dport N, or both and a rule",
		text);
}

static unsigned split(char *text, char **words)
{
	unsigned count = 0;
	char *word;

	while (count < WORDS_MAX && (word = strsep(&text, " \t\n"))) {
		if (*word)
			words[count++] = word;
	}
	return count;
}

/* The words behind "both", as many as there are. */
static int parse_form(const char *text, char *const *words, unsigned count, struct pass_rule *rule,
		      struct pass_wrong *wrong)
{
	const struct form *form = forms;
	unsigned names;

	while (form < forms + FORMS && (!count || strcmp(words[0], form->word) != 0))
		form++;
	if (form == forms + FORMS)
		return fail_form(text, wrong);
	names = form->second ? 2 : 1;
	if (count != names + 1 || (form->second && strcmp(words[1], form->second) != 0))
		return fail(wrong, "'%.60s': type %s%s%s and %s", text, form->word,
			    form->second ? " " : "", form->second ? form->second : "", form->value);
	if (parse_value(form, words[names], rule))
		return fail(wrong, "'%.60s': '%.45s' must be %s", text, words[names], form->value);
	return 0;
}

static int parse_rule(const char *text, struct pass_rule *rule, struct pass_wrong *wrong)
{
	char copy[PASS_RULE_SIZE + 32], *words[WORDS_MAX];
	unsigned count;

	memset(rule, 0, sizeof(*rule)); /* padding too: confs are compared by their bytes */
	if ((size_t)snprintf(copy, sizeof(copy), "%s", text) >= sizeof(copy))
		return fail_form(text, wrong);
	count = split(copy, words);
	rule->both = count && !strcmp(words[0], "both");
	return parse_form(text, words + rule->both, count - rule->both, rule, wrong);
}

static bool same_frames(const struct pass_rule *one, const struct pass_rule *other)
{
	return one->kind == other->kind && one->number == other->number &&
	       !memcmp(one->address, other->address, sizeof(one->address));
}

static int add_rule(const char *text, struct pass *pass, struct pass_wrong *wrong)
{
	struct pass_rule rule;
	int err = parse_rule(text, &rule, wrong);

	if (err)
		return err;
	for (unsigned i = 0; i < pass->rules; i++) {
		if (same_frames(&pass->rule[i], &rule))
			return fail(
				wrong, "'%.60s': these frames have a rule before; give one%s", text,
				pass->rule[i].both != rule.both ? ", with both or without" : "");
	}
	if (pass->rules == PASS_RULES_MAX)
		return fail(wrong, "'%.60s': more than %d rules", text, PASS_RULES_MAX);
	pass->rule[pass->rules++] = rule;
	return 0;
}

static int add_item(const char *text, struct pass *pass, struct pass_wrong *wrong)
{
	if (!*text)
		return fail(wrong, "a rule is missing; type none for no frame, or rules with one "
				   "comma between two of them");
	if (!strcmp(text, "none"))
		pass->none = true;
	else if (!strcmp(text, "default"))
		pass->standard = true;
	else if (add_rule(text, pass, wrong))
		return -EINVAL;
	if (pass->none && (pass->standard || pass->rules))
		return fail(wrong, "none excludes %s: give one of them",
			    pass->standard ? "default" : "rules");
	return 0;
}

/* Takes blanks off both ends, and a '\0' takes the place of the last. */
static char *trim(char *text)
{
	size_t len;

	while (isspace((unsigned char)*text))
		text++;
	len = strlen(text);
	while (len && isspace((unsigned char)text[len - 1]))
		text[--len] = '\0';
	return text;
}

int pass_parse(const char *text, struct pass *pass, struct pass_wrong *wrong)
{
	char copy[PASS_RULE_SIZE + 32];
	int err = 0;

	if (!pass->given)
		memset(pass, 0, sizeof(*pass));
	pass->given = true;
	while (!err && text) {
		size_t len = strcspn(text, ",");

		/* Longer than any rule, whatever it is. */
		if (len >= sizeof(copy))
			return fail_form(text, wrong);
		memcpy(copy, text, len);
		copy[len] = '\0';
		err = add_item(trim(copy), pass, wrong);
		text = text[len] ? text + len + 1 : NULL;
	}
	return err;
}

bool pass_same(const struct pass *one, const struct pass *other)
{
	bool same = one->standard == other->standard && one->rules == other->rules;

	for (unsigned i = 0; same && i < one->rules; i++)
		same = same_frames(&one->rule[i], &other->rule[i]) &&
		       one->rule[i].both == other->rule[i].both;
	return same;
}

/* --- writing --- */

static void print_address(const struct pass_rule *rule, char *text, size_t size)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (!memcmp(rule->address, mapped, sizeof(mapped)))
		inet_ntop(AF_INET, rule->address + 12, text, (socklen_t)size);
	else
		inet_ntop(AF_INET6, rule->address, text, (socklen_t)size);
}

static void print_mac(const struct pass_rule *rule, char *text, size_t size)
{
	char mac[MAC_TEXT_SIZE];

	(void)mac_print(rule->address, mac);
	if (rule->number < MAC_BITS)
		snprintf(text, size, "%s/%u", mac, rule->number);
	else
		snprintf(text, size, "%s", mac);
}

char *pass_rule_print(const struct pass_rule *rule, char *text)
{
	const struct form *form = form_of(rule->kind);
	char value[INET6_ADDRSTRLEN];

	if (rule->kind == PASS_MAC)
		print_mac(rule, value, sizeof(value));
	else if (rule->kind == PASS_HOST)
		print_address(rule, value, sizeof(value));
	else
		snprintf(value, sizeof(value), rule->kind == PASS_ETHERTYPE ? "0x%04x" : "%u",
			 rule->number);
	snprintf(text, PASS_RULE_SIZE, "%s%s %s%s%s", rule->both ? "both " : "", form->word,
		 form->second ? form->second : "", form->second ? " " : "", value);
	return text;
}

void pass_print(const struct pass *pass, char *text, size_t size)
{
	bool none = !pass->standard && !pass->rules;
	size_t len = (size_t)snprintf(text, size, "%s",
				      pass->standard ? "default" : (none ? "none" : ""));

	for (unsigned i = 0; i < pass->rules && len < size; i++) {
		char rule[PASS_RULE_SIZE];

		len += (size_t)snprintf(text + len, size - len, "%s%s", len ? ", " : "",
					pass_rule_print(&pass->rule[i], rule));
	}
}
