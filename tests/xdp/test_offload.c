/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <linux/ethtool.h>
#include <string.h>
#include <sys/ioctl.h>

static int fake_ioctl(int fd, unsigned long request, void *argument);
#define ioctl(fd, request, argument) fake_ioctl(fd, request, argument)
#include "../../src/xdp/offload.c"
#undef ioctl

#include "unit.h"

/* A device with a feature a word, so that every index is used. */
static struct device {
	bool silent;   /* has no ethtool */
	bool stubborn; /* takes a change and does nothing */
	struct ethtool_get_features_block block[2];
	unsigned sets;
} device;

#define CTAG_BIT 8  /* of word 0 */
#define STAG_BIT 3  /* of word 1 */
#define NAMES	 40 /* CTAG is number 8, STAG 35 */
#define CTAG	 (1U << CTAG_BIT)
#define STAG	 (1U << STAG_BIT)

static char said[1024];

static bool keep(enum log_level level, const char *text, void *context)
{
	(void)level, (void)context;
	snprintf(said, sizeof(said), "%s", text);
	return true;
}

static void answer_strings(struct ethtool_gstrings *names)
{
	char(*name)[ETH_GSTRING_LEN] = (void *)names->data;

	assert_int_equal(names->len, NAMES);
	for (int i = 0; i < NAMES; i++)
		snprintf(name[i], sizeof(name[i]), "feature-%d", i);
	snprintf(name[CTAG_BIT], sizeof(name[0]), "rx-vlan-hw-parse");
	snprintf(name[32 + STAG_BIT], sizeof(name[0]), "rx-vlan-stag-hw-parse");
}

static void answer_set(const struct ethtool_sfeatures *set)
{
	assert_int_equal(set->size, 2);
	device.sets++;
	for (int i = 0; i < 2 && !device.stubborn; i++) {
		uint32_t valid = set->features[i].valid;

		assert_int_equal(valid & ~device.block[i].available, 0);
		assert_int_equal(valid & ~(i ? STAG : CTAG), 0);
		device.block[i].active &= ~valid;
		device.block[i].active |= valid & set->features[i].requested;
	}
}

static int fake_ioctl(int fd, unsigned long request, void *argument)
{
	struct ifreq *ifreq = argument;
	struct ethtool_gfeatures *get = (void *)ifreq->ifr_data;

	(void)fd;
	assert_int_equal(request, SIOCETHTOOL);
	assert_string_equal(ifreq->ifr_name, "d0");
	if (device.silent) {
		errno = EOPNOTSUPP;
		return -1;
	}
	switch (get->cmd) {
	case ETHTOOL_GSSET_INFO:
		((struct ethtool_sset_info *)get)->data[0] = NAMES;
		return 0;
	case ETHTOOL_GSTRINGS:
		answer_strings((struct ethtool_gstrings *)get);
		return 0;
	case ETHTOOL_GFEATURES:
		assert_true(get->size >= 2);
		get->size = 2;
		memcpy(get->features, device.block, sizeof(device.block));
		return 0;
	case ETHTOOL_SFEATURES:
		answer_set((const struct ethtool_sfeatures *)get);
		return 0;
	default:
		fail_msg("command %u", get->cmd);
		return -1;
	}
}

static int reset(void **state)
{
	(void)state;
	device = (struct device){ .block = { { .available = CTAG, .active = CTAG },
					     { .available = STAG, .active = STAG } } };
	said[0] = '\0';
	log_capture(keep, NULL);
	return 0;
}

static void what_is_on_is_switched_off_and_on_again(void **state)
{
	static const struct {
		uint32_t ctag, stag;
		unsigned changed;
	} cases[] = {
		{ CTAG, STAG, OFFLOAD_VLAN_CTAG | OFFLOAD_VLAN_STAG },
		{ CTAG, 0, OFFLOAD_VLAN_CTAG },
		{ 0, STAG, OFFLOAD_VLAN_STAG },
		{ 0, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned changed;

		/* Other features stay as they are. */
		device.block[0].active = cases[i].ctag | 1U;
		device.block[1].active = cases[i].stag | 1U;
		device.sets = 0;
		assert_int_equal(offload_vlan_off("d0", &changed), 0);
		assert_int_equal(changed, cases[i].changed);
		assert_int_equal(device.sets, changed ? 1 : 0);
		assert_int_equal(device.block[0].active, 1U);
		assert_int_equal(device.block[1].active, 1U);
		assert_int_equal(offload_vlan_on("d0", changed), 0);
		assert_int_equal(device.block[0].active, cases[i].ctag | 1U);
		assert_int_equal(device.block[1].active, cases[i].stag | 1U);
	}
	assert_string_equal(said, "");
}

static void fixed_is_refused_and_nothing_else_changed(void **state)
{
	unsigned changed;

	(void)state;
	device.block[0].available = 0;
	assert_int_equal(offload_vlan_off("d0", &changed), -EOPNOTSUPP);
	assert_int_equal(changed, 0);
	assert_int_equal(device.sets, 0);
	assert_string_equal(said,
			    "d0: the device takes VLAN tags out of frames (rx-vlan-offload is on "
			    "and fixed), and they would be forwarded without; `vlan-offload = "
			    "keep` in its [port] section, or --vlan-offload=keep, "
			    "accepts that");
}

static void fixed_off_is_fine(void **state)
{
	unsigned changed;

	(void)state;
	device.block[0] = device.block[1] = (struct ethtool_get_features_block){ 0 };
	assert_int_equal(offload_vlan_off("d0", &changed), 0);
	assert_int_equal(changed, 0);
	assert_string_equal(said, "");
}

static void what_does_not_stay_off_is_refused(void **state)
{
	unsigned changed;

	(void)state;
	device.stubborn = true;
	assert_int_equal(offload_vlan_off("d0", &changed), -EOPNOTSUPP);
	assert_non_null(strstr(said, "rx-vlan-offload is on and stays so"));
}

static void a_device_that_does_not_tell_is_refused(void **state)
{
	unsigned changed;

	(void)state;
	device.silent = true;
	assert_int_equal(offload_vlan_off("d0", &changed), -EOPNOTSUPP);
	assert_int_equal(changed, 0);
	assert_non_null(strstr(said, "EOPNOTSUPP"));
	assert_non_null(strstr(said, "`vlan-offload = keep`"));
}

static void command_names_what_was_changed(void **state)
{
	char text[96], little[12];

	(void)state;
	offload_vlan_command("d0", OFFLOAD_VLAN_CTAG, text, sizeof(text));
	assert_string_equal(text, "`ethtool -K d0 rxvlan on`");
	offload_vlan_command("d0", OFFLOAD_VLAN_CTAG | OFFLOAD_VLAN_STAG, text, sizeof(text));
	assert_string_equal(text, "`ethtool -K d0 rxvlan on rx-vlan-stag-hw-parse on`");
	offload_vlan_command("d0", OFFLOAD_VLAN_CTAG, little, sizeof(little));
	assert_int_equal(strlen(little), sizeof(little) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_is_on_is_switched_off_and_on_again, reset),
		cmocka_unit_test_setup(fixed_is_refused_and_nothing_else_changed, reset),
		cmocka_unit_test_setup(fixed_off_is_fine, reset),
		cmocka_unit_test_setup(what_does_not_stay_off_is_refused, reset),
		cmocka_unit_test_setup(a_device_that_does_not_tell_is_refused, reset),
		cmocka_unit_test_setup(command_names_what_was_changed, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
