/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/conf/pass.c"

#include "unit.h"

static struct pass pass;
static struct pass_wrong wrong;

static const char *canonical(const char *text)
{
	static char printed[PASS_TEXT_SIZE];

	pass = (struct pass){ 0 };
	if (pass_parse(text, &pass, &wrong))
		fail_msg("%s: %s", text, wrong.text);
	pass_print(&pass, printed, sizeof(printed));
	return printed;
}

static void lists_are_printed_one_way(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "none", "none" },
		{ "default", "default" },
		{ " default ,\ttcp  dport 22 ", "default, tcp dport 22" },
		{ "vlan 1,vlan 4094", "vlan 1, vlan 4094" },
		{ "tcp dport 22,\n\tdefault", "default, tcp dport 22" },
		{ "ethertype 35020", "ethertype 0x88cc" },
		{ "ethertype 0X600", "ethertype 0x0600" },
		{ "udp dport 0x1f4", "udp dport 500" },
		{ "proto 0, proto 255", "proto 0, proto 255" },
		{ "mac 01:80:C2:00:00:0F/44", "mac 01:80:c2:00:00:00/44" },
		{ "mac ff:ff:ff:ff:ff:ff/1", "mac 80:00:00:00:00:00/1" },
		{ "mac ff:ff:ff:ff:ff:ff/47", "mac ff:ff:ff:ff:ff:fe/47" },
		{ "mac 02:00:00:00:00:01/48", "mac 02:00:00:00:00:01" },
		{ "host 192.0.2.1", "host 192.0.2.1" },
		{ "host 2001:DB8:0::1", "host 2001:db8::1" },
		{ "host ::ffff:192.0.2.1", "host 192.0.2.1" },
		{ "both udp dport 68", "both udp dport 68" },
		{ "both host 2001:db8:1111:2222:3333:4444:5555:6666",
		  "both host 2001:db8:1111:2222:3333:4444:5555:6666" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char again[PASS_TEXT_SIZE];

		assert_string_equal(canonical(rows[i].text), rows[i].want);
		snprintf(again, sizeof(again), "%s", rows[i].want);
		assert_string_equal(canonical(again), rows[i].want);
	}
}

static void what_is_wrong_is_named_with_what_was_expected(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "", "a rule is missing" },
		{ "tcp dport 22,", "a rule is missing" },
		{ "tcp dport 22,,vlan 1", "a rule is missing" },
		{ "all", "'all' is no rule; type default, none, mac ADDRESS/BITS" },
		{ "both", "'both' is no rule" },
		{ "both both vlan 1", "is no rule" },
		{ "both default", "is no rule" },
		{ "tcp port 22", "'tcp port 22': type tcp dport and a port from 1 to 65535" },
		{ "tcp 22", "type tcp dport" },
		{ "tcp dport 22 23", "type tcp dport" },
		{ "vlan", "'vlan': type vlan and a VLAN from 1 to 4094" },
		{ "vlan 0", "'0' must be a VLAN from 1 to 4094" },
		{ "vlan 4095", "'4095' must be" },
		{ "vlan -1", "'-1' must be" },
		{ "ethertype 0x5ff", "must be a number from 0x600 to 0xffff" },
		{ "ethertype 0x10000", "must be a number from" },
		{ "ethertype 88cc", "must be a number from" },
		{ "proto 256", "'256' must be an IP protocol's number from 0 to 255" },
		{ "tcp dport 0", "must be a port" },
		{ "tcp dport 65536", "must be a port" },
		{ "udp dport ssh", "'ssh' must be a port from 1 to 65535" },
		{ "mac 01:80:c2:00:00:00/0", "with 1 to 48 bits" },
		{ "mac 01:80:c2:00:00:00/49", "with 1 to 48 bits" },
		{ "mac 01:80:c2:00:00", "must be 01:80:c2:00:00:00/44" },
		{ "mac 01:80:c2:00:00:00/", "with 1 to 48 bits" },
		{ "host 192.0.2.256", "must be an IPv4 or IPv6 address" },
		{ "host example.org", "must be an IPv4 or IPv6 address" },
		{ "host 192.0.2.0/24", "must be an IPv4 or IPv6 address" },
		{ "none, vlan 1", "none excludes rules" },
		{ "default, none", "none excludes default" },
		{ "vlan 1, vlan 1", "these frames have a rule before; give one" },
		{ "vlan 1, both vlan 1", "give one, with both or without" },
		{ "mac 01:80:c2:00:00:00/44, mac 01:80:c2:00:00:0e/44", "have a rule before" },
		{ "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
		  "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
		  "is no rule" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		pass = (struct pass){ 0 };
		wrong.text[0] = '\0';
		assert_int_equal(pass_parse(rows[i].text, &pass, &wrong), -EINVAL);
		if (!strstr(wrong.text, rows[i].want))
			fail_msg("'%s': said '%s', not '%s'", rows[i].text, wrong.text,
				 rows[i].want);
	}
}

static void what_is_said_takes_the_place_of_defaults_and_adds_up(void **state)
{
	char text[PASS_TEXT_SIZE];

	(void)state;
	pass = (struct pass){ .standard = true };
	assert_int_equal(pass_parse("vlan 1", &pass, &wrong), 0);
	assert_false(pass.standard);
	assert_int_equal(pass_parse("vlan 2, default", &pass, &wrong), 0);
	pass_print(&pass, text, sizeof(text));
	assert_string_equal(text, "default, vlan 1, vlan 2");
	assert_int_equal(pass_parse("none", &pass, &wrong), -EINVAL);
}

static void a_list_has_an_end(void **state)
{
	char rule[32];

	(void)state;
	pass = (struct pass){ 0 };
	for (unsigned i = 0; i < PASS_RULES_MAX; i++) {
		snprintf(rule, sizeof(rule), "vlan %u", i + 1);
		assert_int_equal(pass_parse(rule, &pass, &wrong), 0);
	}
	assert_int_equal(pass_parse("vlan 4000", &pass, &wrong), -EINVAL);
	assert_string_equal(wrong.text, "'vlan 4000': more than 256 rules");
}

static void lists_are_compared(void **state)
{
	struct pass one;

	(void)state;
	(void)canonical("default, tcp dport 22");
	one = pass;
	(void)canonical("tcp dport 22, default");
	assert_true(pass_same(&one, &pass));
	(void)canonical("default, both tcp dport 22");
	assert_false(pass_same(&one, &pass));
	(void)canonical("tcp dport 22");
	assert_false(pass_same(&one, &pass));
	(void)canonical("default, tcp dport 22, vlan 1");
	assert_false(pass_same(&one, &pass));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_are_printed_one_way),
		cmocka_unit_test(what_is_wrong_is_named_with_what_was_expected),
		cmocka_unit_test(what_is_said_takes_the_place_of_defaults_and_adds_up),
		cmocka_unit_test(a_list_has_an_end),
		cmocka_unit_test(lists_are_compared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
