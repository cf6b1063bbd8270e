/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/conf/station.c"

#include "unit.h"

static void an_address_is_one_that_a_station_can_have(void **state)
{
	static const struct {
		const char *text, *says; /* NULL: it is right */
	} rows[] = {
		{ "02:00:00:00:00:01", NULL },
		{ "FE:ff:FF:ff:ff:ff", NULL },
		{ "00:00:00:00:00:01", NULL },
		{ "00:00:00:00:00:00", "zero address" },
		{ "01:80:c2:00:00:00", "of a group" },
		{ "ff:ff:ff:ff:ff:ff", "of a group" },
		{ "2:0:0:0:0:1", "type one such as" },
		{ "02:00:00:00:00:01:02", "type one such as" },
		{ "", "type one such as" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint8_t mac[MAC_LEN] = { 9, 9, 9, 9, 9, 9 };
		struct station_wrong wrong = { "" };
		char text[MAC_TEXT_SIZE];
		int err = station_mac_parse(rows[i].text, mac, &wrong);

		assert_int_equal(err, rows[i].says ? -EINVAL : 0);
		if (rows[i].says) {
			assert_non_null(strstr(wrong.text, rows[i].says));
			assert_int_equal(mac[0], 9);
		} else {
			assert_int_equal(strcasecmp(mac_print(mac, text), rows[i].text), 0);
		}
	}
}

static void an_entry_is_in_a_vlan_that_its_port_is_in(void **state)
{
	static const struct {
		int port;
		long long asked;
		int want; /* -1: says */
		const char *says;
	} rows[] = {
		{ 0, -1, 10, NULL },
		{ 0, 10, 10, NULL },
		{ 0, 20, -1, "vlan 20: port p0 is not in it, by its vlan-mode" },
		{ 1, -1, -1, "add vlan N, for all that port p1 takes has a tag" },
		{ 1, 20, 20, NULL },
		{ 2, -1, 10, NULL },
		{ 2, 20, 20, NULL },
		{ STATION_BLOCKED, -1, -1, "add vlan N, for its ports look at tags" },
		{ STATION_BLOCKED, 4094, 4094, NULL },
		{ STATION_BLOCKED, 0, -1, "vlan 0: must be 1 to 4094" },
		{ 1, 4095, -1, "vlan 4095: must be 1 to 4094" },
		{ 1, -2, -1, "vlan -2: must be 1 to 4094" },
	};
	static const char *const modes[] = { "access 10", "trunk 10,20", "trunk 20 native 10" };
	struct conf_port port[3] = { { .name = "p0" }, { .name = "p1" }, { .name = "p2" } };
	struct conf_forward forward = { .ports = 3, .port = { &port[0], &port[1], &port[2] } };
	struct station_wrong wrong;
	struct vlan_wrong wrong_mode;
	uint16_t vlan;

	(void)state;
	assert_false(station_vlans(&forward)); /* tags are data: any VLAN, or none */
	assert_int_equal(station_vlan(&forward, 0, -1, &vlan, &wrong), 0);
	assert_int_equal(vlan, 0);
	assert_int_equal(station_vlan(&forward, STATION_BLOCKED, 77, &vlan, &wrong), 0);
	assert_int_equal(vlan, 77);
	assert_int_equal(station_vlan(&forward, 0, 0, &vlan, &wrong), -EINVAL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(vlan_mode_parse(modes[i], &port[i].vlan, &wrong_mode), 0);
	assert_true(station_vlans(&forward));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int err = station_vlan(&forward, rows[i].port, rows[i].asked, &vlan, &wrong);

		assert_int_equal(err, rows[i].says ? -EINVAL : 0);
		if (rows[i].says)
			assert_non_null(strstr(wrong.text, rows[i].says));
		else
			assert_int_equal(vlan, rows[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_is_one_that_a_station_can_have),
		cmocka_unit_test(an_entry_is_in_a_vlan_that_its_port_is_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
