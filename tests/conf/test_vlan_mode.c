/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/conf/vlan_mode.c"

#include "unit.h"

#define LIST_MISTAKE " a VLAN is a number from 1 to 4094"

/* {text, how it is printed} */
static const char *const good[][2] = {
	{ "transparent", "transparent" },
	{ "access 1", "access 1" },
	{ "Access  4094", "access 4094" },
	{ "trunk 20,1-10", "trunk 1-10,20" },
	{ "trunk 1, 2,\t3 native 5", "trunk 1-3 native 5" },
	{ "trunk 7 native 7", "trunk 7 native 7" },
	{ "trunk 1-4094", "trunk 1-4094" },
	{ "trunk 63,64,65,128", "trunk 63-65,128" },
};

static const struct {
	const char *text, *want;
} bad[] = {
	{ "", "must be transparent, access VID, or trunk LIST native VID, such as access 10, "
	      "trunk 10,20 or trunk 1-10,20 native 1" },
	{ "hybrid 1",
	  "must be transparent, access VID, or trunk LIST native VID, such as access 10, "
	  "trunk 10,20 or trunk 1-10,20 native 1" },
	{ "access", "access: type the VLAN behind it, such as access 10" },
	{ "access 0", "'0':" LIST_MISTAKE },
	{ "access 4095", "'4095':" LIST_MISTAKE },
	{ "access 4096", "'4096':" LIST_MISTAKE },
	{ "access ten", "'ten':" LIST_MISTAKE },
	{ "access 10,20",
	  "access: is in one VLAN, not in '10,20'; several are for example trunk 10,20" },
	{ "access 10 native",
	  "access: is in one VLAN, not in '10 native'; several are for example trunk 10,20" },
	{ "trunk", "trunk: names no VLAN; type a list such as trunk 1-10,20" },
	{ "trunk native 1", "trunk: names no VLAN; type a list such as trunk 1-10,20" },
	{ "trunk 0", "'0':" LIST_MISTAKE },
	{ "trunk 1-4095", "'4095':" LIST_MISTAKE },
	{ "trunk 1,4096", "'4096':" LIST_MISTAKE },
	{ "trunk 1,,2", "'':" LIST_MISTAKE },
	{ "trunk 1-", "'':" LIST_MISTAKE },
	{ "trunk 1-2-3", "'2-3':" LIST_MISTAKE },
	{ "trunk 20-10", "'20-10': runs backwards; type 10-20" },
	{ "trunk 1-10,5", "VLAN 5 is there twice; name it once" },
	{ "trunk 7,7", "VLAN 7 is there twice; name it once" },
	{ "trunk 1 native", "native: type the VLAN behind it, such as native 1" },
	{ "trunk 1 native 0", "'0':" LIST_MISTAKE },
	{ "trunk 1 native 4095", "'4095':" LIST_MISTAKE },
	{ "trunk 1 2",
	  "'2': behind the list stands nothing, or native and one VLAN; type for example "
	  "trunk 1-10,20 native 1" },
	{ "trunk 1 native 2 3",
	  "'3': behind the list stands nothing, or native and one VLAN; type for "
	  "example trunk 1-10,20 native 1" },
};

static void modes_are_read_and_written(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		char text[VLAN_MODE_TEXT_SIZE];
		struct vlan_wrong wrong;
		struct vlan_mode mode;

		assert_int_equal(vlan_mode_parse(good[i][0], &mode, &wrong), 0);
		vlan_mode_print(&mode, text, sizeof(text));
		assert_string_equal(text, good[i][1]);
	}
}

static void the_longest_list_has_room(void **state)
{
	char text[VLAN_MODE_TEXT_SIZE], again[VLAN_MODE_TEXT_SIZE];
	struct vlan_mode mode = { .kind = VLAN_MODE_TRUNK, .untagged = 4094 }, read;
	struct vlan_wrong wrong;

	(void)state;
	for (unsigned vlan = 2; vlan <= VLAN_MODE_MAX; vlan += 2)
		mode.list[vlan / 64] |= 1ULL << vlan % 64;
	vlan_mode_print(&mode, text, sizeof(text));
	assert_int_equal(vlan_mode_parse(text, &read, &wrong), 0);
	vlan_mode_print(&read, again, sizeof(again));
	assert_string_equal(text, again);
	assert_non_null(strstr(text, "4092,4094 native 4094"));
}

static void nonsense_is_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct vlan_wrong wrong = { "" };
		struct vlan_mode mode;

		assert_int_equal(vlan_mode_parse(bad[i].text, &mode, &wrong), -EINVAL);
		assert_string_equal(wrong.text, bad[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modes_are_read_and_written),
		cmocka_unit_test(the_longest_list_has_room),
		cmocka_unit_test(nonsense_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
