/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "xdp/netdev.h"

#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "xdp/netlink.h"

/* A text attribute, cut to the room there is. */
static void copy_text(char *text, size_t size, const struct nlattr *attr)
{
	snprintf(text, size, "%.*s", (int)mnl_attr_get_payload_len(attr), mnl_attr_get_str(attr));
}

static void parse_kinds(const struct nlattr *nest, struct netdev *netdev)
{
	const struct nlattr *attr;

	mnl_attr_for_each_nested(attr, nest)
	{
		if (mnl_attr_get_type(attr) == IFLA_INFO_KIND)
			copy_text(netdev->kind, sizeof(netdev->kind), attr);
		else if (mnl_attr_get_type(attr) == IFLA_INFO_SLAVE_KIND)
			copy_text(netdev->master_kind, sizeof(netdev->master_kind), attr);
	}
}

static int parse_link(const struct nlmsghdr *message, void *context)
{
	struct netdev *netdev = context;
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(message);
	const struct nlattr *attr;

	netdev->ifindex = info->ifi_index;
	netdev->loopback = info->ifi_flags & IFF_LOOPBACK;
	netdev->ethernet = info->ifi_type == ARPHRD_ETHER;
	netdev->link_up = (info->ifi_flags & IFF_UP) && (info->ifi_flags & IFF_LOWER_UP);
	mnl_attr_for_each(attr, message, sizeof(*info))
	{
		switch (mnl_attr_get_type(attr)) {
		case IFLA_IFNAME:
			copy_text(netdev->name, sizeof(netdev->name), attr);
			break;
		case IFLA_MTU:
			netdev->mtu = mnl_attr_get_u32(attr);
			break;
		case IFLA_MASTER:
			netdev->master = (int)mnl_attr_get_u32(attr);
			break;
		case IFLA_LINKINFO:
			parse_kinds(attr, netdev);
			break;
		case IFLA_ADDRESS:
			if (mnl_attr_get_payload_len(attr) == MAC_LEN)
				memcpy(netdev->mac, mnl_attr_get_payload(attr), MAC_LEN);
			break;
		default:
			break;
		}
	}
	return MNL_CB_STOP;
}

/* Which link a RTM_GETLINK is about. */
struct link_request {
	const char *name; /* NULL: by number */
	int ifindex;
	bool elsewhere; /* in the namespace that this one knows as `netnsid` */
	int32_t netnsid;
	bool all; /* a dump */
};

static void build_request(struct nlmsghdr *message, const struct link_request *request)
{
	struct ifinfomsg *info = mnl_nlmsg_put_extra_header(message, sizeof(*info));
	const char *name = request->name;

	message->nlmsg_type = RTM_GETLINK;
	message->nlmsg_flags = NLM_F_REQUEST | (request->all ? NLM_F_DUMP : 0);
	info->ifi_index = request->ifindex;
	if (name)
		mnl_attr_put_strz(message, strlen(name) < IFNAMSIZ ? IFLA_IFNAME : IFLA_ALT_IFNAME,
				  name);
	if (request->elsewhere)
		mnl_attr_put_u32(message, IFLA_TARGET_NETNSID, (uint32_t)request->netnsid);
}

/* Sends a RTM_GETLINK and lets `parse` read the answer. */
static int ask_link(const struct link_request *request, mnl_cb_t parse, void *context)
{
	char buffer[NETLINK_REQUEST_BYTES] __attribute__((aligned(8)));
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);

	build_request(message, request);
	return netlink_ask(message, parse, context);
}

static int ethtool_ioctl(int fd, const char *name, void *command)
{
	struct ifreq request = { 0 };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	request.ifr_data = command;
	return ioctl(fd, SIOCETHTOOL, &request) ? -errno : 0;
}

/*
 * The kernel binds a socket to any queue below the *current* real count, which only the channel
 * query tells: IFLA_NUM_RX_QUEUES is how many were allocated. A driver without that query has
 * either one queue or tells its RX rings.
 */
static int query_queues(int fd, const char *name, struct netdev_queues *queues)
{
	struct ethtool_channels channels = { .cmd = ETHTOOL_GCHANNELS };
	struct ethtool_rxnfc rings = { .cmd = ETHTOOL_GRXRINGS };
	int err = ethtool_ioctl(fd, name, &channels);

	*queues = (struct netdev_queues){ 1, 1 };
	if (err == -ENODEV)
		return err;
	if (!err) {
		queues->rx = channels.rx_count + channels.combined_count;
		queues->tx = channels.tx_count + channels.combined_count;
	} else if (!ethtool_ioctl(fd, name, &rings) && rings.data > 0) {
		queues->rx = queues->tx = (uint32_t)rings.data;
	}
	if (!queues->rx)
		queues->rx = 1;
	if (!queues->tx)
		queues->tx = 1;
	return 0;
}

/* Any socket takes the ioctls; this kind is needed anyway, so that a sandbox need not allow another. */
static int ioctl_socket(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	return fd < 0 ? -errno : fd;
}

int netdev_query_queues(const char *name, struct netdev_queues *queues)
{
	int fd = ioctl_socket();
	int err;

	if (fd < 0)
		return fd;
	err = query_queues(fd, name, queues);
	close(fd);
	return err;
}

/* More than the kernel has had for years; one that has more yet is told nothing about. */
#define FEATURES_MAX 256
#define FEATURE_BITS 32 /* of one block */

/* Commands with room for what the kernel writes behind them. */
union feature_count {
	struct ethtool_sset_info info;
	uint8_t room[sizeof(struct ethtool_sset_info) + sizeof(uint32_t)];
};

union feature_names {
	struct ethtool_gstrings names;
	uint8_t room[sizeof(struct ethtool_gstrings) + (size_t)FEATURES_MAX * ETH_GSTRING_LEN];
};

union feature_states {
	struct ethtool_gfeatures states;
	uint8_t room[sizeof(struct ethtool_gfeatures) +
		     FEATURES_MAX / FEATURE_BITS * sizeof(struct ethtool_get_features_block)];
};

/* The names of the features, whose numbers differ from kernel to kernel. Returns how many, 0: not told. */
static uint32_t query_features(int fd, const char *name, union feature_names *features)
{
	union feature_count count = {
		.info = { .cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1ULL << ETH_SS_FEATURES },
	};

	memset(features, 0, sizeof(*features));
	features->names.cmd = ETHTOOL_GSTRINGS;
	features->names.string_set = ETH_SS_FEATURES;
	/* The kernel writes as many names as it has, whatever there is room for. */
	if (ethtool_ioctl(fd, name, &count) || !count.info.sset_mask ||
	    count.info.data[0] > FEATURES_MAX || ethtool_ioctl(fd, name, features))
		return 0;
	return features->names.len;
}

static bool strips_tags(const char *feature)
{
	/* Of 802.1Q, which `ethtool -k` calls rx-vlan-offload, and of 802.1ad. */
	return !strncmp(feature, "rx-vlan-hw-parse", ETH_GSTRING_LEN) ||
	       !strncmp(feature, "rx-vlan-stag-hw-parse", ETH_GSTRING_LEN);
}

static void query_vlan_offload(int fd, struct netdev *netdev)
{
	union feature_states features = { .states = { .cmd = ETHTOOL_GFEATURES } };
	union feature_names names;
	uint32_t count = query_features(fd, netdev->name, &names);

	features.states.size = (count + FEATURE_BITS - 1) / FEATURE_BITS;
	if (!count || ethtool_ioctl(fd, netdev->name, &features))
		return;
	for (uint32_t i = 0; i < count; i++) {
		const struct ethtool_get_features_block *block =
			&features.states.features[i / FEATURE_BITS];
		const uint8_t *name = &names.names.data[(size_t)i * ETH_GSTRING_LEN];
		uint32_t bit = 1U << i % FEATURE_BITS;

		if (!strips_tags((const char *)name) || !(block->active & bit))
			continue;
		netdev->rx_vlan_offload = true;
		if (!(block->available & bit) || (block->never_changed & bit))
			netdev->rx_vlan_offload_fixed = true;
	}
}

/* sysfs of the caller's namespace, if it is mounted; a virtual device has no such file. */
static int query_numa_node(const char *name)
{
	char path[64];
	FILE *file;
	int node = -1;

	snprintf(path, sizeof(path), "/sys/class/net/%s/device/numa_node", name);
	file = fopen(path, "re");
	if (!file)
		return -1;
	if (fscanf(file, "%d", &node) != 1) /* NOLINT(cert-err34-c): the kernel's own number */
		node = -1;
	fclose(file);
	return node;
}

static void query_master_name(struct netdev *netdev)
{
	const struct link_request request = { .ifindex = netdev->master };
	struct netdev master = { 0 };

	if (netdev->master && !ask_link(&request, parse_link, &master))
		memcpy(netdev->master_name, master.name, sizeof(netdev->master_name));
}

/* Which link another one stands on or, for a veth, where its other end is. */
static int parse_lower(const struct nlmsghdr *message, void *context)
{
	struct link_request *lower = context;
	const struct nlattr *attr;

	mnl_attr_for_each(attr, message, sizeof(struct ifinfomsg))
	{
		if (mnl_attr_get_type(attr) == IFLA_LINK)
			lower->ifindex = (int)mnl_attr_get_u32(attr);
		if (mnl_attr_get_type(attr) != IFLA_LINK_NETNSID)
			continue;
		lower->elsewhere = true;
		lower->netnsid = (int32_t)mnl_attr_get_u32(attr);
	}
	return MNL_CB_STOP;
}

/* A link that lives by the frames of another one in this namespace. A veth names its peer in the same way. */
static int parse_upper(const struct nlmsghdr *message, void *context)
{
	struct netdev *lower = context, upper = { 0 };
	struct link_request link = { 0 };

	parse_link(message, &upper);
	parse_lower(message, &link);
	if (link.ifindex == lower->ifindex && !link.elsewhere && strcmp(upper.kind, "veth") != 0 &&
	    !lower->upper[0])
		memcpy(lower->upper, upper.name, sizeof(lower->upper));
	return MNL_CB_OK;
}

static void query_upper(struct netdev *netdev)
{
	const struct link_request request = { .all = true };

	(void)ask_link(&request, parse_upper, netdev);
}

int netdev_query(const char *name, struct netdev *netdev)
{
	const struct link_request request = { .name = name };
	struct ethtool_drvinfo driver = { .cmd = ETHTOOL_GDRVINFO };
	struct netdev_queues queues;
	int err, fd;

	*netdev = (struct netdev){ 0 };
	err = ask_link(&request, parse_link, netdev);
	if (err)
		return err;
	fd = ioctl_socket();
	if (fd < 0)
		return fd;
	err = query_queues(fd, netdev->name, &queues);
	if (err) { /* it went meanwhile */
		close(fd);
		return err;
	}
	netdev->rx_queues = queues.rx;
	netdev->tx_queues = queues.tx;
	query_vlan_offload(fd, netdev);
	if (!ethtool_ioctl(fd, netdev->name, &driver))
		snprintf(netdev->driver, sizeof(netdev->driver), "%s", driver.driver);
	close(fd);
	netdev->numa_node = query_numa_node(netdev->name);
	query_master_name(netdev);
	query_upper(netdev);
	if (!strcmp(netdev->kind, "veth"))
		(void)netdev_peer_name(netdev->ifindex, netdev->peer, sizeof(netdev->peer));
	netdev->present = true;
	return 0;
}

int netdev_peer_name(int ifindex, char *name, size_t size)
{
	const struct link_request near = { .ifindex = ifindex };
	struct link_request far = { 0 };
	struct netdev peer = { 0 };
	int err = ask_link(&near, parse_lower, &far);

	name[0] = '\0';
	if (!err && (!far.ifindex || (far.elsewhere && far.netnsid < 0)))
		err = -ENOENT;
	if (!err)
		err = ask_link(&far, parse_link, &peer);
	if (!err)
		snprintf(name, size, "%s", peer.name);
	return err;
}

struct name_callback {
	netdev_name_fn *each;
	void *context;
};

static int parse_names(const struct nlmsghdr *message, void *context)
{
	const struct name_callback *callback = context;
	const struct nlattr *attr, *alternative;

	mnl_attr_for_each(attr, message, sizeof(struct ifinfomsg))
	{
		if (mnl_attr_get_type(attr) == IFLA_IFNAME)
			callback->each(mnl_attr_get_str(attr), callback->context);
		if (mnl_attr_get_type(attr) != IFLA_PROP_LIST)
			continue;
		mnl_attr_for_each_nested(alternative, attr)
		{
			if (mnl_attr_get_type(alternative) == IFLA_ALT_IFNAME)
				callback->each(mnl_attr_get_str(alternative), callback->context);
		}
	}
	return MNL_CB_OK;
}

int netdev_names(netdev_name_fn *each, void *context)
{
	const struct link_request request = { .all = true };
	struct name_callback callback = { each, context };

	return ask_link(&request, parse_names, &callback);
}

/* The only answer there is. */
static int parse_names_of(const struct nlmsghdr *message, void *context)
{
	(void)parse_names(message, context);
	return MNL_CB_STOP;
}

int netdev_names_of(int ifindex, netdev_name_fn *each, void *context)
{
	const struct link_request request = { .ifindex = ifindex };
	struct name_callback callback = { each, context };

	return ask_link(&request, parse_names_of, &callback);
}

static int parse_event(const struct nlmsghdr *message, void *context)
{
	struct netdev_event *event = context;
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(message);
	const struct nlattr *attr;

	*event = (struct netdev_event){ .ifindex = info->ifi_index,
					.set_up = info->ifi_flags & IFF_UP,
					.carrier = info->ifi_flags & IFF_RUNNING };
	/* A port that leaves a bridge sends RTM_DELLINK too, of family AF_BRIDGE: it is still here. */
	event->gone = message->nlmsg_type == RTM_DELLINK && info->ifi_family == AF_UNSPEC;
	mnl_attr_for_each(attr, message, sizeof(*info))
	{
		switch (mnl_attr_get_type(attr)) {
		case IFLA_MTU:
			event->mtu = mnl_attr_get_u32(attr);
			break;
		case IFLA_IFNAME:
			copy_text(event->name, sizeof(event->name), attr);
			break;
		case IFLA_ADDRESS:
			event->mac_told = mnl_attr_get_payload_len(attr) == MAC_LEN;
			if (event->mac_told)
				memcpy(event->mac, mnl_attr_get_payload(attr), MAC_LEN);
			break;
		default:
			break;
		}
	}
	return MNL_CB_STOP;
}

int netdev_look(int ifindex, struct netdev_event *event)
{
	const struct link_request request = { .ifindex = ifindex };
	int err;

	*event = (struct netdev_event){ 0 };
	err = ask_link(&request, parse_event, event);
	event->ifindex = ifindex;
	event->gone = err == -ENODEV;
	return event->gone ? 0 : err;
}

bool netdev_gone(int ifindex)
{
	struct netdev_event event;

	return !netdev_look(ifindex, &event) && event.gone;
}

struct program {
	bool attached;
	uint32_t id;
};

static int parse_program(const struct nlmsghdr *message, void *context)
{
	const struct nlattr *attr, *inner;
	struct program *program = context;

	mnl_attr_for_each(attr, message, sizeof(struct ifinfomsg))
	{
		if (mnl_attr_get_type(attr) != IFLA_XDP)
			continue;
		mnl_attr_for_each_nested(inner, attr)
		{
			if (mnl_attr_get_type(inner) == IFLA_XDP_ATTACHED)
				program->attached = mnl_attr_get_u8(inner) != XDP_ATTACHED_NONE;
			else if (mnl_attr_get_type(inner) == IFLA_XDP_PROG_ID ||
				 (mnl_attr_get_type(inner) == IFLA_XDP_DRV_PROG_ID && !program->id))
				program->id = mnl_attr_get_u32(inner);
		}
	}
	return MNL_CB_STOP;
}

int netdev_has_program(int ifindex)
{
	const struct link_request request = { .ifindex = ifindex };
	struct program program = { 0 };
	int err = ask_link(&request, parse_program, &program);

	return err ? err : program.attached;
}

int netdev_program_id(int ifindex, uint32_t *id)
{
	const struct link_request request = { .ifindex = ifindex };
	struct program program = { 0 };
	int err = ask_link(&request, parse_program, &program);

	*id = program.id;
	return err;
}

int netdev_watch_open(void)
{
	return netlink_watch_open(RTMGRP_LINK);
}

int netdev_promiscuous(int fd, int ifindex, bool on)
{
	const struct packet_mreq request = { .mr_ifindex = ifindex, .mr_type = PACKET_MR_PROMISC };
	int option = on ? PACKET_ADD_MEMBERSHIP : PACKET_DROP_MEMBERSHIP;

	return setsockopt(fd, SOL_PACKET, option, &request, sizeof(request)) ? -errno : 0;
}

struct event_callback {
	netdev_event_fn *tell;
	void *context;
};

static int watch_message(const struct nlmsghdr *message, void *context)
{
	const struct event_callback *callback = context;
	struct netdev_event event;

	if (message->nlmsg_type != RTM_NEWLINK && message->nlmsg_type != RTM_DELLINK)
		return MNL_CB_OK;
	parse_event(message, &event);
	callback->tell(&event, callback->context);
	return MNL_CB_OK;
}

int netdev_watch_read(int fd, netdev_event_fn *tell, void *context)
{
	struct event_callback callback = { tell, context };
	char buffer[NETLINK_ANSWER_BYTES] __attribute__((aligned(8)));
	int lost = 0;

	for (;;) {
		ssize_t len = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);

		/* What is still queued is older than what was lost, and is to be told before the caller looks. */
		if (len < 0 && errno == ENOBUFS) {
			lost = -ENOBUFS;
			continue;
		}
		if (len < 0)
			return errno == EAGAIN || errno == EINTR ? lost : -errno;
		if (mnl_cb_run(buffer, (size_t)len, 0, 0, watch_message, &callback) < 0)
			return -errno;
	}
}
