/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "xdp/addresses.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_addr.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "xdp/netlink.h"

struct device {
	int ifindex;
	int below;     /* device that it stands on; 0: none, or in another namespace */
	uint16_t vlan; /* 0: it is no VLAN device */
	uint8_t mac[MAC_LEN];
};

struct address {
	int ifindex;
	uint8_t bytes[16]; /* as in struct millrace_own_key */
};

struct addresses {
	unsigned devices, addresses;
	struct device *device;
	struct address *address;
};

/* Room for one more at the end of an array, which grows by doubling; NULL without memory. */
static void *grow(void *array, unsigned count, size_t size)
{
	if (count & (count - 1) || !size)
		return array;
	return reallocarray(array, count ? 2UL * count : 1, size);
}

/* --- what the kernel tells --- */

static uint16_t parse_vlan(const struct nlattr *link_info)
{
	const struct nlattr *attr, *data = NULL;
	bool is_vlan = false;
	uint16_t vlan = 0;

	mnl_attr_for_each_nested(attr, link_info)
	{
		if (mnl_attr_get_type(attr) == IFLA_INFO_KIND)
			is_vlan = !strcmp(mnl_attr_get_str(attr), "vlan");
		else if (mnl_attr_get_type(attr) == IFLA_INFO_DATA)
			data = attr;
	}
	if (!is_vlan || !data)
		return 0;
	mnl_attr_for_each_nested(attr, data)
	{
		if (mnl_attr_get_type(attr) == IFLA_VLAN_ID)
			vlan = mnl_attr_get_u16(attr);
	}
	return vlan;
}

static int parse_device(const struct nlmsghdr *message, void *context)
{
	struct addresses *all = context;
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(message);
	struct device device = { .ifindex = info->ifi_index };
	struct device *grown = grow(all->device, all->devices, sizeof(*grown));
	const struct nlattr *attr;
	bool elsewhere = false;

	if (!grown) {
		errno = ENOMEM;
		return MNL_CB_ERROR;
	}
	all->device = grown;
	mnl_attr_for_each(attr, message, sizeof(*info))
	{
		switch (mnl_attr_get_type(attr)) {
		case IFLA_ADDRESS:
			if (mnl_attr_get_payload_len(attr) == MAC_LEN)
				memcpy(device.mac, mnl_attr_get_payload(attr), MAC_LEN);
			break;
		case IFLA_LINK:
			device.below = (int)mnl_attr_get_u32(attr);
			break;
		case IFLA_LINK_NETNSID:
			elsewhere = true;
			break;
		case IFLA_LINKINFO:
			device.vlan = parse_vlan(attr);
			break;
		default:
			break;
		}
	}
	if (elsewhere)
		device.below = 0;
	all->device[all->devices++] = device;
	return MNL_CB_OK;
}

static int parse_address(const struct nlmsghdr *message, void *context)
{
	struct addresses *all = context;
	const struct ifaddrmsg *info = mnl_nlmsg_get_payload(message);
	size_t len = info->ifa_family == AF_INET ? 4 : 16;
	struct address address = { .ifindex = (int)info->ifa_index };
	const struct nlattr *attr, *own = NULL;
	struct address *grown;

	if (info->ifa_family != AF_INET && info->ifa_family != AF_INET6)
		return MNL_CB_OK;
	/* Of a point to point link one is ours and the other the peer's. */
	mnl_attr_for_each(attr, message, sizeof(*info))
	{
		if (mnl_attr_get_payload_len(attr) != len)
			continue;
		if (mnl_attr_get_type(attr) == IFA_LOCAL ||
		    (mnl_attr_get_type(attr) == IFA_ADDRESS && !own))
			own = attr;
	}
	if (!own)
		return MNL_CB_OK;
	grown = grow(all->address, all->addresses, sizeof(*grown));
	if (!grown) {
		errno = ENOMEM;
		return MNL_CB_ERROR;
	}
	all->address = grown;
	if (len == 4)
		address.bytes[10] = address.bytes[11] = 0xff;
	memcpy(address.bytes + sizeof(address.bytes) - len, mnl_attr_get_payload(own), len);
	all->address[all->addresses++] = address;
	return MNL_CB_OK;
}

static int dump(uint16_t type, mnl_cb_t parse, struct addresses *all)
{
	char buffer[NETLINK_REQUEST_BYTES] __attribute__((aligned(8)));
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);

	message->nlmsg_type = type;
	message->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	if (type == RTM_GETLINK)
		mnl_nlmsg_put_extra_header(message, sizeof(struct ifinfomsg));
	else
		mnl_nlmsg_put_extra_header(message, sizeof(struct ifaddrmsg));
	return netlink_ask(message, parse, all);
}

/* A dump that a change came in between has what was before, or what is now: news of the change come too. */
int addresses_read(struct addresses **addresses)
{
	struct addresses *all = calloc(1, sizeof(*all));
	int err;

	if (!all)
		return -ENOMEM;
	err = dump(RTM_GETLINK, parse_device, all);
	if (!err)
		err = dump(RTM_GETADDR, parse_address, all);
	if (!err)
		*addresses = all;
	else
		addresses_free(all);
	return err;
}

/* --- what is asked --- */

static const struct device *find_device(const struct addresses *all, int ifindex)
{
	for (unsigned i = 0; ifindex && i < all->devices; i++) {
		if (all->device[i].ifindex == ifindex)
			return &all->device[i];
	}
	return NULL;
}

/* True if frames of the device are those of the port with these tags. */
static bool stands_on(const struct addresses *all, int ifindex, int port, uint16_t vlan[2])
{
	const struct device *device, *below;

	vlan[0] = vlan[1] = 0;
	if (ifindex == port)
		return true;
	device = find_device(all, ifindex);
	if (!device || !device->vlan)
		return false;
	vlan[0] = device->vlan;
	if (device->below == port)
		return true;
	below = find_device(all, device->below);
	if (!below || !below->vlan || below->below != port)
		return false;
	vlan[0] = below->vlan;
	vlan[1] = device->vlan;
	return true;
}

static bool is_there(const struct millrace_own_key *keys, unsigned count,
		     const struct millrace_own_key *key)
{
	for (unsigned i = 0; i < count; i++) {
		if (!memcmp(&keys[i], key, sizeof(*key)))
			return true;
	}
	return false;
}

unsigned addresses_of(const struct addresses *addresses, int ifindex, uint8_t mac[MAC_LEN],
		      struct millrace_own_key *keys, unsigned max)
{
	const struct device *device = find_device(addresses, ifindex);
	unsigned count = 0;

	memset(mac, 0, MAC_LEN);
	if (!device)
		return 0;
	memcpy(mac, device->mac, MAC_LEN);
	for (unsigned i = 0; i < addresses->addresses; i++) {
		struct millrace_own_key key = { 0 };

		if (!stands_on(addresses, addresses->address[i].ifindex, ifindex, key.vlan))
			continue;
		memcpy(key.address, addresses->address[i].bytes, sizeof(key.address));
		/* With two prefixes an address is there twice. */
		if (is_there(keys, count < max ? count : max, &key))
			continue;
		if (count < max)
			keys[count] = key;
		count++;
	}
	return count;
}

void addresses_free(struct addresses *addresses)
{
	if (!addresses)
		return;
	free(addresses->device);
	free(addresses->address);
	free(addresses);
}

/* --- news --- */

int addresses_watch_open(void)
{
	return netlink_watch_open(RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR);
}

void addresses_watch_drain(int fd)
{
	char message[1]; /* the rest of it is cut off */

	/* ENOBUFS: some were dropped, which says that there was news as well. */
	while (recv(fd, message, sizeof(message), 0) >= 0 || errno == ENOBUFS || errno == EINTR)
		;
}
