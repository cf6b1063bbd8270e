/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether the devices can do what the forwards ask of them. */
#include <string.h>

#include "plan/build.h"
#include "plan/mtu.h"

static bool forwards(const struct plan_forward *forward)
{
	const struct plan_mode *mode = plan_mode_of(forward->conf->mode);

	return mode->receives && mode->sends;
}

/* The earlier port of any forward that has the same device, or NULL. */
static const struct plan_port *same_device(const struct build *build, const struct plan_port *port)
{
	for (unsigned i = 0; i < build->plan->forwards; i++) {
		const struct plan_forward *forward = &build->plan->forward[i];

		for (unsigned j = 0; j < forward->ports; j++) {
			const struct plan_port *other = &forward->port[j];

			if (other == port)
				return NULL;
			if (other->device.present && other->device.ifindex == port->device.ifindex)
				return other;
		}
	}
	return NULL;
}

static void check_same(struct build *build, struct plan_forward *forward,
		       const struct plan_port *port)
{
	const struct plan_port *other = same_device(build, port);

	if (other)
		build_say(build, PLAN_ERROR, forward, port,
			  "%s and %s are the same interface; name it once", port->conf->device,
			  other->conf->device);
}

/* The earlier port of any forward whose frames come by the same map, or NULL. */
static const struct plan_port *same_map(const struct build *build, const struct plan_port *port)
{
	for (unsigned i = 0; port->conf->xskmap[0] && i < build->plan->forwards; i++) {
		const struct plan_forward *forward = &build->plan->forward[i];

		for (unsigned j = 0; j < forward->ports; j++) {
			const struct plan_port *other = &forward->port[j];

			if (other == port)
				return NULL;
			if (!strcmp(other->conf->xskmap, port->conf->xskmap))
				return other;
		}
	}
	return NULL;
}

/* Its slots are by queue number, which two interfaces have in common. */
static void check_map(struct build *build, struct plan_forward *forward,
		      const struct plan_port *port)
{
	const struct plan_port *other = same_map(build, port);

	if (other)
		build_say(build, PLAN_ERROR, forward, port,
			  "%s and %s have the same xskmap %s, whose slots are the queues of one "
			  "interface; give each its own",
			  other->conf->device, port->conf->device, port->conf->xskmap);
}

/* Devices that live by every frame of their ports. Others, such as a VRF, do with what is left. */
static const struct {
	const char *kind;
	const char *role;
} masters[] = {
	{ "bridge", "a port of bridge" },
	{ "bond", "a member of bond" },
	{ "team", "a member of team" },
	{ "openvswitch", "a port of Open vSwitch" },
};

/* Devices that have frames only through their members. A native program is run by these, and the kernel
 * drops, without counting, what a socket of another device is to get. In skb mode frames keep the queue
 * numbers of the members, which the device does not tell. */
static bool has_members(const struct netdev *device)
{
	return !strcmp(device->kind, "bond") || !strcmp(device->kind, "team");
}

/* Returns false, after a message, if nothing else need be looked at. */
static bool check_role(struct build *build, struct plan_forward *forward,
		       const struct plan_port *port)
{
	const struct plan_mode *mode = plan_mode_of(forward->conf->mode);
	const struct netdev *device = &port->device;

	if (device->loopback) {
		build_say(build, PLAN_ERROR, forward, port,
			  "%s: the loopback interface gets back whatever it sends, so nothing can "
			  "be forwarded; name another, or make a pair with `ip link add v0 type "
			  "veth peer name v1`",
			  device->name);
		return false;
	}
	if (!device->ethernet && mode->sends) {
		build_say(build, PLAN_ERROR, forward, port,
			  "%s: not an Ethernet interface; `ip link` shows link/ether for those",
			  device->name);
		return false;
	}
	if (mode->receives && has_members(device)) {
		build_say(build, PLAN_ERROR, forward, port,
			  "%s: a %s receives through its members, and no socket of its own gets "
			  "their frames; name the member ports instead, taken out of it with `ip "
			  "link set dev MEMBER nomaster`",
			  device->name, device->kind);
		return false;
	}
	for (size_t i = 0; i < sizeof(masters) / sizeof(masters[0]); i++) {
		if (strcmp(device->master_kind, masters[i].kind) != 0)
			continue;
		build_say(build, PLAN_ERROR, forward, port,
			  "%s: is %s %s, which would %s; `ip link set dev %s nomaster` takes it "
			  "out",
			  device->name, masters[i].role, device->master_name,
			  mode->receives ? "get no frame from it any more" :
					   "send on it at the same time",
			  device->name);
		return false;
	}
	return true;
}

/* What stands on a device is above the program. It may be meant, so it is said and no more. */
static void check_upper(struct build *build, struct plan_forward *forward,
			const struct plan_port *port)
{
	if (port->device.upper[0] && plan_mode_of(forward->conf->mode)->receives)
		build_say(build, PLAN_WARNING, forward, port,
			  "%s: %s stands on it, and gets no frame of the queues that are served",
			  port->device.name, port->device.upper);
}

/* What a size of generated frames counts beyond the MTU. */
#define FRAME_OVERHEAD (ETHER_HEADER_LEN + ETHER_FCS_LEN)

/* A generated frame that the peer does not take is completed all the same: nothing would tell. */
static void check_mtu(struct build *build, struct plan_forward *forward,
		      const struct plan_port *port)
{
	const struct conf_forward *conf = forward->conf;
	const struct netdev *device = &port->device;
	unsigned overhead = FRAME_OVERHEAD + (conf->tx.vlan ? ETHER_VLAN_LEN : 0);
	bool receives = plan_mode_of(conf->mode)->receives;

	if (receives && device->mtu > mtu_limit(conf)) {
		uint32_t limit = mtu_limit_of(conf, conf->frame_size);
		char larger[64];

		mtu_larger_chunks(conf, device->mtu, larger, sizeof(larger));
		/* Raised while it runs: that was said, and is no reason to refuse what is new. */
		build_say(build, device->served ? PLAN_WARNING : PLAN_ERROR, forward, port,
			  "%s: MTU %u does not fit frames of %u bytes, which take up to %u; start "
			  "with %s (any MTU)%s, or `ip link set dev %s mtu %u`",
			  device->name, device->mtu, conf->frame_size, limit,
			  build_word(forward, "-F", "frags = yes"), larger, device->name, limit);
	}
	if (!receives && conf->tx.size_max > device->mtu + overhead)
		build_say(build, PLAN_ERROR, forward, port,
			  "%s: frames of %u bytes (-s, --sizes) are more than MTU %u allows (%u); "
			  "send smaller ones, or `ip link set dev %s mtu %u`",
			  device->name, conf->tx.size_max, device->mtu, device->mtu + overhead,
			  device->name, conf->tx.size_max - overhead);
}

static bool share_vlan(const struct conf_port *one, const struct conf_port *other)
{
	for (unsigned vlan = 1; vlan <= VLAN_MODE_MAX; vlan++) {
		if (vlan_mode_has(&one->vlan, vlan) && vlan_mode_has(&other->vlan, vlan))
			return true;
	}
	return false;
}

/*
 * Devices take a frame with a tag 4 bytes above their MTU, and none that is longer: what fills the MTU where
 * it comes in fits where it leaves, with a tag or without, if the MTU is no smaller there.
 */
static void check_vlan_mtus(struct build *build, struct plan_forward *forward)
{
	for (unsigned i = 0; i < forward->ports; i++) {
		const struct plan_port *port = &forward->port[i], *larger = NULL;

		for (unsigned j = 0; j < forward->ports; j++) {
			const struct plan_port *other = &forward->port[j];

			if (other->device.mtu > (larger ? larger : port)->device.mtu &&
			    share_vlan(port->conf, other->conf))
				larger = other;
		}
		if (larger)
			build_say(build, PLAN_WARNING, forward, port,
				  "%s: MTU %u is less than that of %s (%u), with which it has a "
				  "VLAN in common: longer frames from there are lost where they "
				  "leave; `ip link set dev %s mtu %u`",
				  port->device.name, port->device.mtu, larger->device.name,
				  larger->device.mtu, port->device.name, larger->device.mtu);
	}
}

/* A device that takes the VLAN tag out of a frame makes it cross what the tag kept apart. */
static void check_vlan(struct build *build, struct plan_forward *forward,
		       const struct plan_port *port)
{
	const struct netdev *device = &port->device;

	if (!forwards(forward) || !device->rx_vlan_offload || port->conf->keep_vlan_offload)
		return;
	if (device->rx_vlan_offload_fixed)
		build_say(build, PLAN_ERROR, forward, port,
			  "%s: takes the VLAN tags out of received frames, which would leave "
			  "without them, and its driver (%s) does not let that be switched off; "
			  "name another, or accept it with %s",
			  device->name, device->driver[0] ? device->driver : "unknown",
			  build_word(forward, "--vlan-offload=keep", "vlan-offload = keep"));
	else
		build_say(build, PLAN_NOTE, forward, port,
			  "%s: rx-vlan-offload will be switched off, for frames leave with the "
			  "tags they came with; and on again at the end",
			  device->name);
}

/* Said by ports that cannot do zero-copy whatever is asked: those drivers that are sure not to. */
static bool driver_copies(const struct netdev *device)
{
	static const char *const drivers[] = { "veth",	 "tun",	      "bonding", "e1000",
					       "e1000e", "hv_netvsc", "vif" };

	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
		if (!strcmp(device->driver, drivers[i]))
			return true;
	}
	return false;
}

static bool conf_copies(const struct conf_port *conf)
{
	return conf->attach == CONF_ATTACH_SKB || conf->zero_copy == CONF_ZERO_COPY_NEVER;
}

/* Frames that come in zero-copy and leave through a copy, or the other way, are as slow as a copy, and the
 * memory is registered twice. */
static void check_zero_copy(struct build *build, struct plan_forward *forward)
{
	const struct plan_port *capable = NULL, *told = NULL, *unable = NULL;

	for (unsigned i = forward->ports; i-- > 0;) {
		const struct plan_port *port = &forward->port[i];

		if (conf_copies(port->conf))
			told = port;
		else if (driver_copies(&port->device))
			unable = port;
		else
			capable = port;
	}
	if (!forwards(forward) || !capable)
		return;
	if (told)
		build_say(build, PLAN_WARNING, forward, told,
			  "%s: %s makes the kernel copy its frames, and %s may go without: the "
			  "copy sets the pace of both, and their memory is registered twice; let "
			  "them do the same",
			  told->device.name,
			  told->conf->attach == CONF_ATTACH_SKB ? "attach = skb" :
								  "zero-copy = never",
			  capable->device.name);
	else if (unable)
		build_say(build, PLAN_NOTE, forward, unable,
			  "%s: its driver (%s) has no zero-copy, so the kernel copies its frames, "
			  "and the copy sets the pace of %s too; if that goes zero-copy, their "
			  "memory is registered twice",
			  unable->device.name, unable->device.driver, capable->device.name);
}

static void check_cpus(struct build *build, struct plan_forward *forward)
{
	const struct number_list *wanted = &forward->conf->cpus;

	for (unsigned i = 0; i < wanted->count; i++) {
		bool allowed = false;

		for (unsigned j = 0; j < build->host->cpus; j++)
			allowed |= build->host->cpu[j].cpu == wanted->value[i];
		if (allowed)
			continue;
		build_say(build, PLAN_ERROR, forward, NULL,
			  "%s: CPU %u does not exist or is not allowed here; `taskset -cp $$` "
			  "lists those that are",
			  build_word(forward, "--cpus", "cpus"), wanted->value[i]);
		return;
	}
}

/* The port of the forward whose device has this address itself, or NULL. */
static const struct plan_port *port_of_mac(const struct plan_forward *forward, const uint8_t *mac)
{
	for (unsigned i = 0; i < forward->ports; i++) {
		const struct netdev *device = &forward->port[i].device;

		if (device->present && !memcmp(device->mac, mac, MAC_LEN))
			return &forward->port[i];
	}
	return NULL;
}

/* A bridge believes no frame from an address of its own ports. The kernel's does not add such an entry either
 * (File exists). */
static void check_stations(struct build *build, struct plan_forward *forward)
{
	const struct conf_forward *conf = forward->conf;

	for (unsigned i = 0; i < conf->stations; i++) {
		const struct conf_station *station = &conf->station[i];
		const struct plan_port *port = port_of_mac(forward, station->mac);
		char text[MAC_TEXT_SIZE];

		if (port && station->port != STATION_BLOCKED)
			build_say(
				build, PLAN_ERROR, forward, port,
				"%s: its own address is %s, and no station's behind a port of the "
				"same bridge; remove `static = %s ...`, line %u of the file",
				port->device.name, mac_print(station->mac, text), text,
				station->line);
	}
}

static void say_awaited(struct build *build, struct plan_forward *forward,
			const struct plan_port *port)
{
	if (port->conf->host)
		build_say(build, PLAN_NOTE, forward, port,
			  "%s: the near end of the host port %s, which will be made",
			  port->conf->device, port->conf->name);
	else
		build_say(
			build, PLAN_NOTE, forward, port,
			"%s: no such interface yet; planned for %u queue%s, and its port comes up "
			"when it appears",
			port->conf->device, port->device.rx_queues,
			port->device.rx_queues == 1 ? "" : "s");
}

void build_checks(struct build *build, struct plan_forward *forward)
{
	bool all_present = true;

	for (unsigned i = 0; i < forward->ports; i++) {
		const struct plan_port *port = &forward->port[i];

		if (port->device.awaited) {
			say_awaited(build, forward, port);
			all_present = false;
			continue;
		}
		if (!port->device.present) {
			build_say(build, PLAN_ABSENT, forward, port,
				  "%s: no such interface; `ip link` lists those of this network "
				  "namespace",
				  port->conf->device);
			all_present = false;
			continue;
		}
		check_same(build, forward, port);
		check_map(build, forward, port);
		if (!check_role(build, forward, port))
			continue;
		check_upper(build, forward, port);
		check_mtu(build, forward, port);
		check_vlan(build, forward, port);
	}
	if (all_present) {
		check_zero_copy(build, forward);
		check_vlan_mtus(build, forward);
	}
	check_cpus(build, forward);
	check_stations(build, forward);
}
