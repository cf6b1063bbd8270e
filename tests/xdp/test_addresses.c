/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/xdp/addresses.c"

#include <arpa/inet.h>

#include "unit.h"

/* d0 is 2; on it d0.100 (3), and on that d0.100.200 (4); 5 is a VLAN of a device elsewhere, 6 a macvlan. */
enum { D0 = 2, VLAN_ON_D0, VLAN_ON_VLAN, VLAN_ELSEWHERE, MACVLAN, OTHER };

static struct addresses all;
static char buffer[1024] __attribute__((aligned(8)));

/* What a device stands on. */
struct stand {
	int below;
	const char *kind;
	uint16_t vlan;
	bool elsewhere;
};

/* A message as the kernel sends it. */
static void add_device(int ifindex, uint8_t mac, struct stand stand)
{
	const uint8_t address[MAC_LEN] = { 2, 0, 0, 0, 0, mac };
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	struct ifinfomsg *info = mnl_nlmsg_put_extra_header(message, sizeof(*info));

	info->ifi_index = ifindex;
	mnl_attr_put(message, IFLA_ADDRESS, sizeof(address), address);
	if (stand.below)
		mnl_attr_put_u32(message, IFLA_LINK, (uint32_t)stand.below);
	if (stand.elsewhere)
		mnl_attr_put_u32(message, IFLA_LINK_NETNSID, 0);
	if (stand.kind) {
		struct nlattr *nest = mnl_attr_nest_start(message, IFLA_LINKINFO), *data;

		mnl_attr_put_strz(message, IFLA_INFO_KIND, stand.kind);
		data = mnl_attr_nest_start(message, IFLA_INFO_DATA);
		mnl_attr_put_u16(message, IFLA_VLAN_ID, stand.vlan);
		mnl_attr_nest_end(message, data);
		mnl_attr_nest_end(message, nest);
	}
	assert_int_equal(parse_device(message, &all), MNL_CB_OK);
}

static void add_address(int ifindex, const char *local, const char *peer)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	struct ifaddrmsg *info = mnl_nlmsg_put_extra_header(message, sizeof(*info));
	bool ipv4 = strchr(peer, '.');
	size_t len = ipv4 ? 4 : 16;
	uint8_t bytes[16];

	info->ifa_family = ipv4 ? AF_INET : AF_INET6;
	info->ifa_index = (uint32_t)ifindex;
	assert_int_equal(inet_pton(info->ifa_family, peer, bytes), 1);
	mnl_attr_put(message, IFA_ADDRESS, len, bytes);
	if (local) {
		assert_int_equal(inet_pton(info->ifa_family, local, bytes), 1);
		mnl_attr_put(message, IFA_LOCAL, len, bytes);
	}
	assert_int_equal(parse_address(message, &all), MNL_CB_OK);
}

static int make_host(void **state)
{
	(void)state;
	add_device(D0, 0xd0, (struct stand){ 0 });
	add_device(VLAN_ON_D0, 0xd0, (struct stand){ D0, "vlan", 100 });
	add_device(VLAN_ON_VLAN, 0xd0, (struct stand){ VLAN_ON_D0, "vlan", 200 });
	add_device(VLAN_ELSEWHERE, 0xee, (struct stand){ D0, "vlan", 300, true });
	add_device(MACVLAN, 0xaa, (struct stand){ D0, "macvlan" });
	add_device(OTHER, 0x77, (struct stand){ 0 });
	add_address(D0, "192.0.2.1", "192.0.2.1");
	add_address(D0, NULL, "2001:db8::1");
	add_address(D0, "192.0.2.1", "192.0.2.99"); /* again, with a peer */
	add_address(VLAN_ON_D0, "192.0.2.1", "192.0.2.1");
	add_address(VLAN_ON_VLAN, NULL, "fe80::1");
	add_address(VLAN_ELSEWHERE, "192.0.2.3", "192.0.2.3");
	add_address(MACVLAN, "192.0.2.4", "192.0.2.4");
	add_address(OTHER, "192.0.2.7", "192.0.2.7");
	return 0;
}

static int forget_host(void **state)
{
	(void)state;
	free(all.device);
	free(all.address);
	all = (struct addresses){ 0 };
	return 0;
}

static void a_port_has_its_own_addresses_and_those_of_its_vlans_with_their_tags(void **state)
{
	static const struct {
		const char *address;
		uint16_t outer, inner;
	} want[] = {
		{ "::ffff:192.0.2.1", 0, 0 },
		{ "2001:db8::1", 0, 0 },
		{ "::ffff:192.0.2.1", 100, 0 },
		{ "fe80::1", 100, 200 },
	};
	struct millrace_own_key keys[8];
	uint8_t mac[MAC_LEN];

	(void)state;
	assert_int_equal(addresses_of(&all, D0, mac, keys, 8), ARRAY_SIZE(want));
	assert_int_equal(mac[5], 0xd0);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		struct millrace_own_key key = { .vlan = { want[i].outer, want[i].inner } };

		assert_int_equal(inet_pton(AF_INET6, want[i].address, key.address), 1);
		assert_memory_equal(&keys[i], &key, sizeof(key));
	}
}

static void what_finds_no_room_is_counted(void **state)
{
	struct millrace_own_key keys[3] = { [2] = { .vlan = { 9, 9 } } };
	uint8_t mac[MAC_LEN];

	(void)state;
	assert_int_equal(addresses_of(&all, D0, mac, keys, 2), 4);
	assert_int_equal(keys[2].vlan[0], 9);
}

static void a_device_that_is_not_there_has_none(void **state)
{
	struct millrace_own_key keys[8];
	uint8_t mac[MAC_LEN] = { 1, 2, 3, 4, 5, 6 };
	const uint8_t none[MAC_LEN] = { 0 };

	(void)state;
	assert_int_equal(addresses_of(&all, 99, mac, keys, 8), 0);
	assert_memory_equal(mac, none, MAC_LEN);
}

/* lo is in every namespace, and the kernel answers who has no capability. */
static void the_kernel_tells_them(void **state)
{
	struct addresses *now = NULL;

	(void)state;
	assert_int_equal(addresses_read(&now), 0);
	assert_non_null(now);
	assert_true(now && find_device(now, 1));
	addresses_free(now);
	addresses_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_port_has_its_own_addresses_and_those_of_its_vlans_with_their_tags,
			make_host, forget_host),
		cmocka_unit_test_setup_teardown(what_finds_no_room_is_counted, make_host,
						forget_host),
		cmocka_unit_test_setup_teardown(a_device_that_is_not_there_has_none, make_host,
						forget_host),
		cmocka_unit_test(the_kernel_tells_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
