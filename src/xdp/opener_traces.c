/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "xdp/opener_traces.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "xdp/dispatcher.h"
#include "xdp/host_port.h"
#include "xdp/offload.h"

/* --- offloads --- */

static struct change *change_of(struct traces *traces, int ifindex)
{
	for (unsigned i = 0; i < traces->changes; i++) {
		if (traces->change[i].ifindex == ifindex && !traces->change[i].away)
			return &traces->change[i];
	}
	return NULL;
}

/* The device is away, and what was changed of it is with it. */
static void keep_away(struct traces *traces, struct change *change)
{
	unsigned away = 0, first = 0;

	change->away = true;
	for (unsigned i = traces->changes; i--;) {
		if (traces->change[i].away) {
			away++;
			first = i;
		}
	}
	if (away <= CHANGES_AWAY)
		return;
	traces->changes--;
	memmove(&traces->change[first], &traces->change[first + 1],
		(traces->changes - first) * sizeof(*traces->change));
}

/* It may be one that was away, also if it has another number now. */
static void come_back(struct traces *traces, const struct netdev_event *device)
{
	for (unsigned i = 0; i < traces->changes; i++) {
		struct change *change = &traces->change[i];

		if (!change->away || strcmp(change->ifname, device->name) != 0 ||
		    memcmp(change->mac, device->mac, MAC_LEN) != 0)
			continue;
		change->away = false;
		change->ifindex = device->ifindex;
		return;
	}
}

/* The device's entry, a new one if it has none. Made before the change, so that none goes unremembered. Returns
 * 0, or -errno without a message. */
static int change_new(struct traces *traces, int ifindex, struct change **change)
{
	struct netdev_event device;
	struct change *grown;
	int err = netdev_look(ifindex, &device);

	if (err)
		return err;
	come_back(traces, &device);
	*change = change_of(traces, ifindex);
	if (*change)
		return 0;
	grown = reallocarray(traces->change, traces->changes + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	traces->change = grown;
	*change = &traces->change[traces->changes++];
	**change = (struct change){ .ifindex = ifindex };
	memcpy((*change)->ifname, device.name, sizeof((*change)->ifname));
	memcpy((*change)->mac, device.mac, sizeof((*change)->mac));
	return 0;
}

static void note_first(const char *name, void *context)
{
	char *first = context;

	if (!first[0])
		snprintf(first, NETDEV_NAME_SIZE, "%s", name);
}

/* A device that is gone has nothing to be put back. */
static void put_back(const struct change *change)
{
	char ifname[NETDEV_NAME_SIZE] = "", command[96];
	int err;

	if (!change->vlan || change->away || netdev_names_of(change->ifindex, note_first, ifname))
		return;
	err = offload_vlan_on(ifname, change->vlan);
	if (!err || err == -ENODEV)
		return;
	offload_vlan_command(ifname, change->vlan, command, sizeof(command));
	log_warning("%s: rx-vlan-offload was on before and cannot be switched on again: " ERR_FORMAT
		    "; try %s",
		    ifname, ERR_ARGS(err), command);
}

int traces_vlan_off(struct traces *traces, const char *ifname, int ifindex, unsigned *changed)
{
	struct change *change;
	unsigned more;
	int err = change_new(traces, ifindex, &change);

	if (err) {
		log_error("%s: cannot be looked up: " ERR_FORMAT, ifname, ERR_SANDBOX_ARGS(err));
		return err;
	}
	err = offload_vlan_off(ifname, &more);
	change->vlan |= more;
	*changed = change->vlan;
	return err;
}

void traces_vlan_restore(struct traces *traces, int ifindex)
{
	struct change *change = change_of(traces, ifindex);

	if (!change)
		return;
	if (change->vlan && netdev_gone(change->ifindex)) {
		keep_away(traces, change);
		return;
	}
	put_back(change);
	*change = traces->change[--traces->changes];
}

/* --- programs in dispatchers --- */

static void remove_dispatched(struct traces *traces, unsigned index)
{
	if (traces->dispatched[index].fd >= 0)
		close(traces->dispatched[index].fd);
	traces->dispatched[index] = traces->dispatched[--traces->dispatches];
}

/* Its device being away: the program stays there and passes everything, until the device comes back, others take
 * its place in the list, or the end. */
static void keep_gone(struct traces *traces, unsigned index)
{
	unsigned gone = 0, first = index;

	if (traces->dispatched[index].fd >= 0)
		close(traces->dispatched[index].fd);
	traces->dispatched[index].fd = -1;
	for (unsigned i = traces->dispatches; i--;) {
		if (traces->dispatched[i].fd < 0) {
			gone++;
			first = i;
		}
	}
	if (gone <= DISPATCHED_GONE)
		return;
	dispatcher_forget(traces->dispatched[first].ifindex, traces->dispatched[first].prog_id);
	remove_dispatched(traces, first);
}

static void leave_dispatcher(struct traces *traces, unsigned index)
{
	const struct dispatched *one = &traces->dispatched[index];

	if (dispatcher_leave(one->ifname, one->ifindex, one->prog_id))
		remove_dispatched(traces, index);
	else
		keep_gone(traces, index);
}

void traces_leave_from_before(struct traces *traces, int ifindex)
{
	for (unsigned i = traces->dispatches; i--;) {
		if (traces->dispatched[i].fd < 0 && traces->dispatched[i].ifindex == ifindex)
			leave_dispatcher(traces, i);
	}
}

void traces_leave_programs(struct traces *traces)
{
	for (unsigned i = traces->dispatches; i--;) {
		struct pollfd end = { .fd = traces->dispatched[i].fd };

		if (poll(&end, 1, 0) > 0)
			leave_dispatcher(traces, i);
	}
}

unsigned traces_watch_programs(const struct traces *traces, struct pollfd *fds, unsigned room)
{
	unsigned count = 0;

	for (; count < traces->dispatches && count < room; count++)
		fds[count] = (struct pollfd){ .fd = traces->dispatched[count].fd };
	return count;
}

int traces_hold_program(struct traces *traces, const char *ifname, int ifindex, uint32_t prog_id)
{
	struct dispatched *grown;
	int ends[2], err = 0;

	grown = reallocarray(traces->dispatched, traces->dispatches + 1, sizeof(*grown));
	if (grown)
		traces->dispatched = grown;
	if (!grown || pipe2(ends, O_CLOEXEC)) {
		err = grown ? -errno : -ENOMEM;
		log_error("%s: the XDP program cannot be held: " ERR_FORMAT, ifname, ERR_ARGS(err));
		(void)dispatcher_leave(ifname, ifindex, prog_id);
		return err;
	}
	grown = &traces->dispatched[traces->dispatches++];
	*grown = (struct dispatched){ .ifindex = ifindex, .prog_id = prog_id, .fd = ends[0] };
	snprintf(grown->ifname, sizeof(grown->ifname), "%s", ifname);
	return ends[1];
}

static void leave_for_good(struct traces *traces)
{
	for (unsigned i = 0; i < traces->dispatches; i++) {
		const struct dispatched *one = &traces->dispatched[i];

		if (!dispatcher_leave(one->ifname, one->ifindex, one->prog_id))
			dispatcher_forget(one->ifindex, one->prog_id);
		if (one->fd >= 0)
			close(one->fd);
	}
}

/* --- host ports --- */

static struct host_port *host_port_of(const struct traces *traces, const char *name)
{
	for (unsigned i = 0; i < traces->host_ports; i++) {
		if (!strcmp(traces->host_port[i].name, name))
			return &traces->host_port[i];
	}
	return NULL;
}

/* Its entry, which had better be there before it is. NULL: no memory. */
static struct host_port *host_port_new(struct traces *traces, const char *name)
{
	struct host_port *grown =
		reallocarray(traces->host_port, traces->host_ports + 1, sizeof(*grown));

	if (!grown)
		return NULL;
	traces->host_port = grown;
	grown += traces->host_ports++;
	*grown = (struct host_port){ 0 };
	snprintf(grown->name, sizeof(grown->name), "%s", name);
	return grown;
}

static void host_port_forget(struct traces *traces, struct host_port *port)
{
	*port = traces->host_port[--traces->host_ports];
}

/* True if it is still there. */
static bool host_port_stands(const char *name)
{
	struct netdev netdev;
	char near[NETDEV_NAME_SIZE];

	host_port_near(name, near);
	return netdev_query(near, &netdev) != -ENODEV;
}

int traces_host_port(struct traces *traces, const char *name, uint32_t mtu, bool keep)
{
	struct host_port *port = host_port_of(traces, name);
	int err;

	if (port && host_port_stands(name)) {
		port->keep = keep;
		return 0;
	}
	if (!port)
		port = host_port_new(traces, name);
	if (!port) {
		log_error("out of memory");
		return -ENOMEM;
	}
	err = host_port_make(port->name, mtu);
	port->keep = keep;
	if (err)
		host_port_forget(traces, port);
	return err;
}

int traces_host_port_remove(struct traces *traces, const char *name)
{
	struct host_port *port = host_port_of(traces, name);
	int err = 0;

	if (!port)
		return 0;
	if (!port->keep)
		err = host_port_remove(port->name);
	host_port_forget(traces, port);
	return err;
}

/* --- at the end --- */

void traces_undo(struct traces *traces)
{
	leave_for_good(traces);
	for (unsigned i = 0; i < traces->changes; i++)
		put_back(&traces->change[i]);
	for (unsigned i = 0; i < traces->host_ports; i++) {
		if (!traces->host_port[i].keep)
			(void)host_port_remove(traces->host_port[i].name);
	}
	free(traces->dispatched);
	free(traces->change);
	free(traces->host_port);
	*traces = (struct traces){ 0 };
}
