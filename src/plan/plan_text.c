/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "plan/plan.h"

#define MIB (1024.0 * 1024.0)

/* A cell of a table: text that the widest of its column says the width of. */
#define CELL_SIZE 160

struct port_cells {
	char name[CELL_SIZE], device[CELL_SIZE], driver[CELL_SIZE], queues[CELL_SIZE];
	char mtu[CELL_SIZE], node[CELL_SIZE];
};

struct worker_cells {
	char number[CELL_SIZE], cpu[CELL_SIZE], umem[CELL_SIZE];
};

static void widen(int *width, const char *cell)
{
	int len = (int)strlen(cell);

	if (len > *width)
		*width = len;
}

static void node_text(char *text, size_t size, int node)
{
	if (node < 0)
		snprintf(text, size, "no node");
	else
		snprintf(text, size, "node %d", node);
}

static void fill_port_cells(struct port_cells *cells, const struct plan_port *port)
{
	const struct netdev *device = &port->device;

	snprintf(cells->name, CELL_SIZE, "%s", port->conf->name);
	snprintf(cells->device, CELL_SIZE, "%s", port->conf->device);
	if (!device->present) {
		snprintf(cells->driver, CELL_SIZE, device->awaited ? "awaited" : "absent");
		return;
	}
	if (strcmp(port->conf->device, device->name) != 0)
		snprintf(cells->device, CELL_SIZE, "%s (%s)", port->conf->device, device->name);
	snprintf(cells->driver, CELL_SIZE, "%s", device->driver[0] ? device->driver : "no driver");
	snprintf(cells->queues, CELL_SIZE, "%u RX, %u TX", device->rx_queues, device->tx_queues);
	snprintf(cells->mtu, CELL_SIZE, "MTU %u", device->mtu);
	node_text(cells->node, CELL_SIZE, device->numa_node);
}

static void print_ports(FILE *out, const struct plan_forward *forward)
{
	int name = 0, device = 0, driver = 0, queues = 0, mtu = 0;

	for (unsigned i = 0; i < forward->ports; i++) {
		struct port_cells cells = { 0 };

		fill_port_cells(&cells, &forward->port[i]);
		widen(&name, cells.name);
		widen(&device, cells.device);
		widen(&driver, cells.driver);
		widen(&queues, cells.queues);
		widen(&mtu, cells.mtu);
	}
	for (unsigned i = 0; i < forward->ports; i++) {
		struct port_cells cells = { 0 };

		fill_port_cells(&cells, &forward->port[i]);
		if (!forward->port[i].device.present)
			fprintf(out, "  port %-*s  %-*s  %s\n", name, cells.name, device,
				cells.device, cells.driver);
		else
			fprintf(out, "  port %-*s  %-*s  %-*s  %-*s  %-*s  %s\n", name, cells.name,
				device, cells.device, driver, cells.driver, queues, cells.queues,
				mtu, cells.mtu, cells.node);
	}
}

const char *plan_attach_method(enum conf_attach_method method)
{
	static const char *const words[] = {
		[CONF_ATTACH_METHOD_LINK] = "link",
		[CONF_ATTACH_METHOD_DISPATCHER] = "dispatcher",
		[CONF_ATTACH_METHOD_EXTERNAL] = "external",
	};

	return words[method];
}

/* How frames come to our sockets, where that is not as usual. */
static void print_methods(FILE *out, const struct plan_forward *forward)
{
	int name = 0;

	for (unsigned i = 0; i < forward->ports; i++)
		widen(&name, forward->port[i].conf->name);
	for (unsigned i = 0; i < forward->ports; i++) {
		const struct conf_port *port = forward->port[i].conf;

		if (port->attach_method == CONF_ATTACH_METHOD_DISPATCHER)
			fprintf(out, "  attach %-*s  %s, beside other XDP programs\n", name,
				port->name, plan_attach_method(port->attach_method));
		else if (port->attach_method == CONF_ATTACH_METHOD_EXTERNAL)
			fprintf(out, "  attach %-*s  %s, nothing of ours: fills %s\n", name,
				port->name, plan_attach_method(port->attach_method), port->xskmap);
	}
}

/* What the host gets of the frames that come in. Without a mode that receives, all. */
static void print_passes(FILE *out, const struct plan_forward *forward)
{
	const struct plan_mode *mode = plan_mode_of(forward->conf->mode);
	int name = 0;

	for (unsigned i = 0; i < forward->ports; i++)
		widen(&name, forward->port[i].conf->name);
	for (unsigned i = 0; mode->receives && i < forward->ports; i++) {
		const struct conf_port *port = forward->port[i].conf;
		char text[PASS_TEXT_SIZE];

		if (!port->pass.rules && !(port->pass.standard && mode->shares))
			continue;
		pass_print(&port->pass, text, sizeof(text));
		fprintf(out, "  pass %-*s  %s\n", name, port->name, text);
	}
}

/* What the ports of a bridge that has VLANs do with tags. */
static void print_vlans(FILE *out, const struct plan_forward *forward)
{
	int name = 0;

	for (unsigned i = 0; i < forward->ports; i++)
		widen(&name, forward->port[i].conf->name);
	for (unsigned i = 0; i < forward->ports; i++) {
		const struct conf_port *port = forward->port[i].conf;
		char text[VLAN_MODE_TEXT_SIZE];

		if (port->vlan.kind == VLAN_MODE_TRANSPARENT)
			continue;
		vlan_mode_print(&port->vlan, text, sizeof(text));
		fprintf(out, "  vlan %-*s  %s\n", name, port->name, text);
	}
}

static void fill_worker_cells(struct worker_cells *cells, const struct plan_forward *forward,
			      unsigned index)
{
	const struct plan_worker *worker = &forward->worker[index];
	double mib = (double)worker->frames * forward->conf->frame_size / MIB;
	char node[32];

	node_text(node, sizeof(node), worker->cpu_node);
	snprintf(cells->number, CELL_SIZE, "%u", index);
	snprintf(cells->cpu, CELL_SIZE, "cpu %u (%s)", worker->cpu, node);
	if (forward->conf->shared_umem)
		snprintf(cells->umem, CELL_SIZE, "umem %u (frames %u to %u, %.0f MiB)",
			 worker->umem, worker->first_frame,
			 worker->first_frame + worker->frames - 1, mib);
	else
		snprintf(cells->umem, CELL_SIZE, "umem %u (%u frames, %.0f MiB)", worker->umem,
			 worker->frames, mib);
}

/* "wan q0 rx+tx, lan q0 tx, hands wan->lan to worker 0" */
static void print_lanes(FILE *out, const struct plan_forward *forward,
			const struct plan_worker *worker)
{
	const char *comma = "";

	for (unsigned i = 0; i < forward->ports; i++) {
		const struct plan_lane *lane = &worker->lane[i];

		if (!lane->rx && !lane->tx)
			continue;
		fprintf(out, "%s%s q%u %s", comma, forward->port[i].conf->name, worker->queue,
			lane->rx && lane->tx ? "rx+tx" :
			lane->rx	     ? "rx" :
					       "tx");
		comma = ", ";
	}
	for (unsigned to = 0; to < forward->ports; to++) {
		if (worker->lane[to].hand_to == PLAN_NOBODY)
			continue;
		for (unsigned from = 0; from < forward->ports; from++) {
			if (worker->lane[from].rx && plan_sends(forward->conf->mode, from, to))
				fprintf(out, ", hands %s->%s to worker %d",
					forward->port[from].conf->name,
					forward->port[to].conf->name, worker->lane[to].hand_to);
		}
	}
	fputc('\n', out);
}

static void print_workers(FILE *out, const struct plan_forward *forward)
{
	int number = 0, cpu = 0, umem = 0;

	for (unsigned i = 0; i < forward->workers; i++) {
		struct worker_cells cells;

		fill_worker_cells(&cells, forward, i);
		widen(&number, cells.number);
		widen(&cpu, cells.cpu);
		widen(&umem, cells.umem);
	}
	for (unsigned i = 0; i < forward->workers; i++) {
		struct worker_cells cells;

		fill_worker_cells(&cells, forward, i);
		fprintf(out, "  worker %*s  %-*s  %-*s  ", number, cells.number, cpu, cells.cpu,
			umem, cells.umem);
		print_lanes(out, forward, &forward->worker[i]);
	}
}

static void print_forward(FILE *out, const struct plan_forward *forward)
{
	fprintf(out, "forward %s: %s, ", forward->conf->name,
		plan_mode_of(forward->conf->mode)->name);
	if (forward->complete)
		fprintf(out, "%u worker%s, %.0f MiB locked\n", forward->workers,
			forward->workers == 1 ? "" : "s", (double)forward->locked_bytes / MIB);
	else
		fputs("cannot run\n", out);
	print_ports(out, forward);
	print_methods(out, forward);
	print_passes(out, forward);
	print_vlans(out, forward);
	print_workers(out, forward);
}

/* The gravest first. */
static void print_messages(FILE *out, const struct plan *plan)
{
	for (int level = PLAN_ERROR; level <= PLAN_NOTE; level++) {
		for (unsigned i = 0; i < plan->messages; i++) {
			const struct plan_message *message = &plan->message[i];

			if ((int)message->level == level)
				fprintf(out, "%s: %s\n", plan_level_name(message->level),
					message->text);
		}
	}
}

int plan_text(FILE *out, const struct plan *plan)
{
	for (unsigned i = 0; i < plan->forwards; i++)
		print_forward(out, &plan->forward[i]);
	print_messages(out, plan);
	if (fflush(out) || ferror(out))
		return errno ? -errno : -EIO;
	return 0;
}
