/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "xdp/host_port.h"

#include <errno.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "xdp/netlink.h"
#include "xdp/offload.h"

/* By which a pair is known to be one of these; `ip link` shows it. */
#define ALIAS "host port of millrace"

/* What there is of a name. */
struct found {
	bool ours;
	bool in_use; /* it has an XDP program */
};

static bool has_program(const struct nlattr *nest)
{
	const struct nlattr *attr;

	mnl_attr_for_each_nested(attr, nest)
	{
		if (mnl_attr_get_type(attr) == IFLA_XDP_ATTACHED)
			return mnl_attr_get_u8(attr) != XDP_ATTACHED_NONE;
	}
	return false;
}

static int parse_link(const struct nlmsghdr *message, void *context)
{
	struct found *found = context;
	const struct nlattr *attr;

	mnl_attr_for_each(attr, message, sizeof(struct ifinfomsg))
	{
		if (mnl_attr_get_type(attr) == IFLA_IFALIAS)
			found->ours = !strncmp(mnl_attr_get_str(attr), ALIAS, sizeof(ALIAS) - 1);
		if (mnl_attr_get_type(attr) == IFLA_XDP)
			found->in_use = has_program(attr);
	}
	return MNL_CB_STOP;
}

static struct nlmsghdr *begin(char *buffer, uint16_t type, uint16_t flags)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);

	message->nlmsg_type = type;
	message->nlmsg_flags = NLM_F_REQUEST | flags;
	(void)mnl_nlmsg_put_extra_header(message, sizeof(struct ifinfomsg));
	return message;
}

/* Returns 0, -ENODEV or another -errno. */
static int look(const char *name, struct found *found)
{
	char buffer[NETLINK_REQUEST_BYTES] __attribute__((aligned(8)));
	struct nlmsghdr *message = begin(buffer, RTM_GETLINK, 0);

	*found = (struct found){ 0 };
	mnl_attr_put_strz(message, IFLA_IFNAME, name);
	return netlink_ask(message, parse_link, found);
}

/* One end: its name, its MTU unless 0, and one queue, so that none is left unserved. */
static void put_end(struct nlmsghdr *message, const char *name, uint32_t mtu)
{
	mnl_attr_put_strz(message, IFLA_IFNAME, name);
	if (mtu)
		mnl_attr_put_u32(message, IFLA_MTU, mtu);
	mnl_attr_put_u32(message, IFLA_NUM_TX_QUEUES, 1);
	mnl_attr_put_u32(message, IFLA_NUM_RX_QUEUES, 1);
}

static int create(const char *near, const char *name, uint32_t mtu)
{
	char buffer[NETLINK_REQUEST_BYTES] __attribute__((aligned(8)));
	struct nlmsghdr *message =
		begin(buffer, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK);
	struct nlattr *info, *data, *peer;

	put_end(message, near, mtu);
	info = mnl_attr_nest_start(message, IFLA_LINKINFO);
	mnl_attr_put_strz(message, IFLA_INFO_KIND, "veth");
	data = mnl_attr_nest_start(message, IFLA_INFO_DATA);
	peer = mnl_attr_nest_start(message, VETH_INFO_PEER);
	(void)mnl_nlmsg_put_extra_header(message, sizeof(struct ifinfomsg));
	put_end(message, name, mtu);
	mnl_attr_nest_end(message, peer);
	mnl_attr_nest_end(message, data);
	mnl_attr_nest_end(message, info);
	return netlink_ask(message, NULL, NULL);
}

static int set_alias(const char *near)
{
	char buffer[NETLINK_REQUEST_BYTES] __attribute__((aligned(8)));
	struct nlmsghdr *message = begin(buffer, RTM_SETLINK, NLM_F_ACK);

	mnl_attr_put_strz(message, IFLA_IFNAME, near);
	mnl_attr_put_str(message, IFLA_IFALIAS, ALIAS);
	return netlink_ask(message, NULL, NULL);
}

/* Or the near end would speak on the wire by itself. A kernel without IPv6 refuses, and has none to give. */
static void set_no_addresses(const char *near)
{
	char buffer[NETLINK_REQUEST_BYTES] __attribute__((aligned(8)));
	struct nlmsghdr *message = begin(buffer, RTM_SETLINK, NLM_F_ACK);
	struct nlattr *families, *family;

	mnl_attr_put_strz(message, IFLA_IFNAME, near);
	families = mnl_attr_nest_start(message, IFLA_AF_SPEC);
	family = mnl_attr_nest_start(message, AF_INET6);
	mnl_attr_put_u8(message, IFLA_INET6_ADDR_GEN_MODE, IN6_ADDR_GEN_MODE_NONE);
	mnl_attr_nest_end(message, family);
	mnl_attr_nest_end(message, families);
	(void)netlink_ask(message, NULL, NULL);
}

static int set_up(const char *name)
{
	char buffer[NETLINK_REQUEST_BYTES] __attribute__((aligned(8)));
	struct nlmsghdr *message = begin(buffer, RTM_SETLINK, NLM_F_ACK);
	struct ifinfomsg *info = mnl_nlmsg_get_payload(message);

	info->ifi_flags = info->ifi_change = IFF_UP;
	mnl_attr_put_strz(message, IFLA_IFNAME, name);
	return netlink_ask(message, NULL, NULL);
}

static int remove_link(const char *near)
{
	char buffer[NETLINK_REQUEST_BYTES] __attribute__((aligned(8)));
	struct nlmsghdr *message = begin(buffer, RTM_DELLINK, NLM_F_ACK);

	mnl_attr_put_strz(message, IFLA_IFNAME, near);
	return netlink_ask(message, NULL, NULL);
}

/* Of both names nothing is there. Returns 0, or -errno after a message. */
static int make_new(const char *name, const char *near, uint32_t mtu)
{
	int err = create(near, name, mtu);

	if (!err)
		err = set_alias(near);
	if (!err) {
		set_no_addresses(near);
		err = offload_host_port_off(name);
	}
	if (!err)
		err = set_up(near);
	if (!err)
		err = set_up(name);
	if (!err)
		return 0;
	log_error("host-port %s: the pair cannot be made: " ERR_FORMAT "%s", name,
		  ERR_SANDBOX_ARGS(err),
		  err == -EOPNOTSUPP ? "; the kernel needs CONFIG_VETH" : "");
	(void)host_port_remove(name);
	return err;
}

int host_port_make(const char *name, uint32_t mtu)
{
	char near[NETDEV_NAME_SIZE];
	struct found found;
	int err;

	host_port_near(name, near);
	err = look(near, &found);
	if (!err && found.ours && !found.in_use)
		return 0; /* left by one that was killed, or told to keep it */
	if (!err && found.ours)
		log_error("host-port %s: is the host port of another millraced that runs; choose "
			  "another name",
			  name);
	else if (!err)
		log_error("host-port %s: an interface %s is there already, and not of ours; choose "
			  "another name, or `ip link del %s`",
			  name, near, near);
	if (!err)
		return -EEXIST;
	err = look(name, &found);
	if (err == -ENODEV)
		return make_new(name, near, mtu);
	if (err) {
		log_error("host-port %s: cannot be looked up: " ERR_FORMAT, name,
			  ERR_SANDBOX_ARGS(err));
		return err;
	}
	log_error("host-port %s: an interface of that name is there already; choose another name, "
		  "or `ip link del %s`",
		  name, name);
	return -EEXIST;
}

int host_port_remove(const char *name)
{
	char near[NETDEV_NAME_SIZE];
	struct found found;
	int err;

	host_port_near(name, near);
	err = look(near, &found);
	if (err == -ENODEV || (!err && !found.ours))
		return 0;
	if (!err)
		err = remove_link(near);
	if (err && err != -ENODEV)
		log_warning("host-port %s: cannot be removed: " ERR_FORMAT
			    "; `ip link del %s` does that",
			    name, ERR_SANDBOX_ARGS(err), near);
	return err == -ENODEV ? 0 : err;
}
