/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/base/mac.c"

#include "unit.h"

static void addresses_are_read_whole_or_refused(void **state)
{
	static const char *const wrong[] = {
		"",
		"02:00:00:00:00",
		"02:00:00:00:00:0",
		"02:00:00:00:00:022",
		"02:00:00:00:00:02:",
		"02-00-00-00-00-02",
		"0g:00:00:00:00:02",
		" 2:00:00:00:00:02",
		"020000000002",
		"02:00:00:00:00:02 ",
		"2:0:0:0:0:2",
	};
	static const uint8_t right[MAC_LEN] = { 0x02, 0xab, 0xcd, 0xef, 0x00, 0xff };
	uint8_t mac[MAC_LEN] = { 9, 9, 9, 9, 9, 9 }, before[MAC_LEN];

	(void)state;
	memcpy(before, mac, MAC_LEN);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(mac_parse(wrong[i], mac), -EINVAL);
		assert_memory_equal(mac, before, MAC_LEN);
	}
	assert_int_equal(mac_parse("02:ab:CD:eF:00:ff", mac), 0);
	assert_memory_equal(mac, right, MAC_LEN);
	assert_string_equal(mac_print(mac, (char[MAC_TEXT_SIZE]){ 0 }), "02:ab:cd:ef:00:ff");
}

static void a_swap_exchanges_twelve_bytes(void **state)
{
	uint8_t frame[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 };
	static const uint8_t want[] = { 7, 8, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6, 13, 14 };

	(void)state;
	mac_swap(frame);
	assert_memory_equal(frame, want, sizeof(want));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_read_whole_or_refused),
		cmocka_unit_test(a_swap_exchanges_twelve_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
