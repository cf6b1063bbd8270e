/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/xdp/netdev.c"

#include "unit.h"

/* What the kernel would say of one link; 0 or NULL: left out. */
struct link {
	const char *name, *kind, *master_kind;
	unsigned type, flags;
	uint32_t master, mtu, link;
	bool has_netnsid;
	int32_t netnsid;
};

static char buffer[4096] __attribute__((aligned(8)));

static struct nlmsghdr *make_message(uint16_t type, unsigned char family, const struct link *link)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	struct ifinfomsg *info = mnl_nlmsg_put_extra_header(message, sizeof(*info));
	struct nlattr *nest;

	message->nlmsg_type = type;
	info->ifi_family = family;
	info->ifi_index = 7;
	info->ifi_type = (unsigned short)link->type;
	info->ifi_flags = link->flags;
	if (link->name)
		mnl_attr_put_strz(message, IFLA_IFNAME, link->name);
	if (link->mtu)
		mnl_attr_put_u32(message, IFLA_MTU, link->mtu);
	if (link->master)
		mnl_attr_put_u32(message, IFLA_MASTER, link->master);
	if (link->link)
		mnl_attr_put_u32(message, IFLA_LINK, link->link);
	if (link->has_netnsid)
		mnl_attr_put_u32(message, IFLA_LINK_NETNSID, (uint32_t)link->netnsid);
	nest = mnl_attr_nest_start(message, IFLA_LINKINFO);
	if (link->kind)
		mnl_attr_put_strz(message, IFLA_INFO_KIND, link->kind);
	if (link->master_kind)
		mnl_attr_put_strz(message, IFLA_INFO_SLAVE_KIND, link->master_kind);
	mnl_attr_nest_end(message, nest);
	return message;
}

static struct netdev parsed(const struct link *link)
{
	struct netdev netdev = { 0 };

	parse_link(make_message(RTM_NEWLINK, AF_UNSPEC, link), &netdev);
	return netdev;
}

static void ports_and_members_know_their_master(void **state)
{
	static const char *const kinds[] = { "bridge", "bond", "team", "openvswitch", "vrf" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const struct link link = { .name = "d0",
					   .type = ARPHRD_ETHER,
					   .kind = "veth",
					   .master_kind = kinds[i],
					   .master = 12,
					   .mtu = 1500 };
		struct netdev netdev = parsed(&link);

		assert_int_equal(netdev.ifindex, 7);
		assert_string_equal(netdev.name, "d0");
		assert_int_equal(netdev.mtu, 1500);
		assert_int_equal(netdev.master, 12);
		assert_string_equal(netdev.master_kind, kinds[i]);
		assert_string_equal(netdev.kind, "veth");
		assert_true(netdev.ethernet && !netdev.loopback);
	}
}

static void a_device_of_its_own_has_no_master(void **state)
{
	const struct link link = { .name = "eth0", .type = ARPHRD_ETHER };
	struct netdev netdev = parsed(&link);

	(void)state;
	assert_int_equal(netdev.master, 0);
	assert_string_equal(netdev.master_kind, "");
	assert_string_equal(netdev.kind, "");
}

static void loopback_and_what_is_not_ethernet_are_told_apart(void **state)
{
	const struct link loopback = { .name = "lo",
				       .type = ARPHRD_LOOPBACK,
				       .flags = IFF_LOOPBACK };
	const struct link tunnel = { .name = "wg0", .type = ARPHRD_NONE, .kind = "wireguard" };
	struct netdev netdev = parsed(&loopback);

	(void)state;
	assert_true(netdev.loopback);
	netdev = parsed(&tunnel);
	assert_true(!netdev.loopback && !netdev.ethernet);
}

static void a_link_is_up_with_a_carrier(void **state)
{
	const struct link down = { .name = "d0", .flags = IFF_LOWER_UP };
	const struct link alone = { .name = "d0", .flags = IFF_UP };
	const struct link up = { .name = "d0", .flags = IFF_UP | IFF_LOWER_UP };

	(void)state;
	assert_false(parsed(&down).link_up);
	assert_false(parsed(&alone).link_up);
	assert_true(parsed(&up).link_up);
}

static void a_query_tells_a_device_from_none(void **state)
{
	struct netdev netdev;

	(void)state;
	assert_int_equal(netdev_query("lo", &netdev), 0);
	assert_true(netdev.present && netdev.loopback);
	assert_false(netdev.rx_vlan_offload);
	assert_int_equal(netdev_query("no-such-device", &netdev), -ENODEV);
	assert_false(netdev.present);
}

static void texts_longer_than_their_room_are_cut(void **state)
{
	const struct link link = { .name = "a-name-of-more-than-fifteen",
				   .master_kind = "a-kind-of-more-than-fifteen" };
	struct netdev netdev = parsed(&link);

	(void)state;
	assert_string_equal(netdev.name, "a-name-of-more-");
	assert_string_equal(netdev.master_kind, "a-kind-of-more-");
}

static void a_veths_other_end_is_here_or_elsewhere(void **state)
{
	const struct link here = { .link = 9 };
	const struct link elsewhere = { .link = 9, .has_netnsid = true, .netnsid = 3 };
	const struct link unknown = { .link = 9, .has_netnsid = true, .netnsid = -1 };
	struct link_request peer = { 0 };

	(void)state;
	parse_lower(make_message(RTM_NEWLINK, AF_UNSPEC, &here), &peer);
	assert_int_equal(peer.ifindex, 9);
	assert_false(peer.elsewhere);
	parse_lower(make_message(RTM_NEWLINK, AF_UNSPEC, &elsewhere), &peer);
	assert_true(peer.elsewhere);
	assert_int_equal(peer.netnsid, 3);
	parse_lower(make_message(RTM_NEWLINK, AF_UNSPEC, &unknown), &peer);
	assert_int_equal(peer.netnsid, -1);
}

static void what_stands_on_a_device_is_found(void **state)
{
	static const struct {
		struct link link;
		const char *upper;
	} rows[] = {
		{ { .name = "d0.7", .kind = "vlan", .link = 9 }, "d0.7" },
		{ { .name = "mac0", .kind = "macvlan", .link = 9 }, "mac0" },
		{ { .name = "d1.7", .kind = "vlan", .link = 8 }, "" },
		{ { .name = "d1" }, "" },
		/* Of another namespace, and the other end of a wire. */
		{ { .name = "d0.7", .kind = "vlan", .link = 9, .has_netnsid = true }, "" },
		{ { .name = "d0", .kind = "veth", .link = 9 }, "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct netdev lower = { .ifindex = 9 };
		struct nlmsghdr *message = make_message(RTM_NEWLINK, AF_UNSPEC, &rows[i].link);

		assert_int_equal(parse_upper(message, &lower), MNL_CB_OK);
		assert_string_equal(lower.upper, rows[i].upper);
	}
}

static void note_event(const struct netdev_event *event, void *context)
{
	struct netdev_event *noted = context;

	*noted = *event;
}

static void events_say_what_happened(void **state)
{
	static const struct {
		uint16_t type;
		unsigned char family;
		bool told, gone;
	} rows[] = {
		{ RTM_NEWLINK, AF_UNSPEC, true, false },
		{ RTM_DELLINK, AF_UNSPEC, true, true },
		{ RTM_DELLINK, AF_BRIDGE, true, false }, /* out of the bridge, still here */
		{ RTM_NEWADDR, AF_UNSPEC, false, false },
	};
	const struct link link = { .name = "d0", .mtu = 9000 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct netdev_event noted = { 0 };
		struct event_callback callback = { note_event, &noted };

		watch_message(make_message(rows[i].type, rows[i].family, &link), &callback);
		assert_int_equal(noted.ifindex, rows[i].told ? 7 : 0);
		assert_int_equal(noted.gone, rows[i].gone);
		assert_int_equal(noted.mtu, rows[i].told ? 9000 : 0);
	}
}

static void events_carry_the_link_as_it_is(void **state)
{
	static const struct {
		const char *name;
		unsigned flags;
		bool set_up, carrier;
	} rows[] = {
		{ "down", 0, false, false },
		{ "without a carrier", IFF_UP, true, false },
		{ "up", IFF_UP | IFF_RUNNING | IFF_LOWER_UP, true, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct link link = { .name = "d0", .flags = rows[i].flags };
		struct nlmsghdr *message = make_message(RTM_NEWLINK, AF_UNSPEC, &link);
		struct netdev_event event = { 0 };
		static const uint8_t mac[MAC_LEN] = { 2, 0, 0, 0, 0, 9 };

		print_message("%s\n", rows[i].name);
		parse_event(message, &event);
		assert_false(event.mac_told);
		mnl_attr_put(message, IFLA_ADDRESS, MAC_LEN, mac);
		parse_event(message, &event);
		assert_string_equal(event.name, "d0");
		assert_int_equal(event.set_up, rows[i].set_up);
		assert_int_equal(event.carrier, rows[i].carrier);
		assert_int_equal(netdev_event_up(&event), rows[i].set_up && rows[i].carrier);
		assert_true(event.mac_told);
		assert_memory_equal(event.mac, mac, MAC_LEN);
	}
}

struct names {
	char text[64];
};

static void note_name(const char *name, void *context)
{
	struct names *names = context;
	size_t len = strlen(names->text);

	snprintf(names->text + len, sizeof(names->text) - len, "%s ", name);
}

static void alternative_names_are_names_too(void **state)
{
	const struct link link = { .name = "d0" };
	struct nlmsghdr *message = make_message(RTM_NEWLINK, AF_UNSPEC, &link);
	struct nlattr *nest = mnl_attr_nest_start(message, IFLA_PROP_LIST);
	struct names names = { "" };
	struct name_callback callback = { note_name, &names };

	(void)state;
	mnl_attr_put_strz(message, IFLA_ALT_IFNAME, "uplink");
	mnl_attr_put_strz(message, IFLA_ALT_IFNAME, "rack-3-port-7");
	mnl_attr_nest_end(message, nest);
	parse_names(message, &callback);
	assert_string_equal(names.text, "d0 uplink rack-3-port-7 ");
}

static void the_loopback_interface_is_found(void **state)
{
	struct netdev netdev;
	struct netdev_event event;
	char name[NETDEV_NAME_SIZE];

	(void)state;
	assert_int_equal(netdev_query("lo", &netdev), 0);
	assert_true(netdev.loopback);
	assert_int_equal(netdev_look(netdev.ifindex, &event), 0);
	assert_false(event.gone);
	assert_true(event.set_up);
	assert_string_equal(event.name, "lo");
	assert_false(netdev_gone(netdev.ifindex));
	assert_int_equal(netdev_peer_name(netdev.ifindex, name, sizeof(name)), -ENOENT);
	assert_int_equal(netdev_query("nosuchdevice0", &netdev), -ENODEV);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ports_and_members_know_their_master),
		cmocka_unit_test(a_device_of_its_own_has_no_master),
		cmocka_unit_test(loopback_and_what_is_not_ethernet_are_told_apart),
		cmocka_unit_test(a_link_is_up_with_a_carrier),
		cmocka_unit_test(a_query_tells_a_device_from_none),
		cmocka_unit_test(texts_longer_than_their_room_are_cut),
		cmocka_unit_test(a_veths_other_end_is_here_or_elsewhere),
		cmocka_unit_test(what_stands_on_a_device_is_found),
		cmocka_unit_test(events_say_what_happened),
		cmocka_unit_test(events_carry_the_link_as_it_is),
		cmocka_unit_test(alternative_names_are_names_too),
		cmocka_unit_test(the_loopback_interface_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
