/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One JSON object. Its fields are documented in docs/plan-json.md. */
#include <errno.h>
#include <jansson.h>

#include "plan/plan.h"

/* Of the fields; more when one is taken away or means something else. */
#define PLAN_JSON_VERSION 1

static json_t *integer(uint64_t value)
{
	return json_integer((json_int_t)value);
}

/* A number that is negative where there is none. */
static json_t *maybe(int value)
{
	return value < 0 ? json_null() : json_integer(value);
}

static json_t *port_json(const struct plan_port *port)
{
	const struct netdev *device = &port->device;
	json_t *object = json_object();
	char pass[PASS_TEXT_SIZE], vlan[VLAN_MODE_TEXT_SIZE];

	json_object_set_new(object, "port", json_string(port->conf->name));
	json_object_set_new(object, "device", json_string(port->conf->device));
	json_object_set_new(object, "attach_method",
			    json_string(plan_attach_method(port->conf->attach_method)));
	pass_print(&port->conf->pass, pass, sizeof(pass));
	json_object_set_new(object, "pass", json_string(pass));
	vlan_mode_print(&port->conf->vlan, vlan, sizeof(vlan));
	json_object_set_new(object, "vlan_mode", json_string(vlan));
	json_object_set_new(object, "present", json_boolean(device->present));
	if (!device->present && device->awaited) {
		json_object_set_new(object, "rx_queues", integer(device->rx_queues));
		json_object_set_new(object, "tx_queues", integer(device->tx_queues));
	}
	if (!device->present)
		return object;
	json_object_set_new(object, "interface", json_string(device->name));
	json_object_set_new(object, "ifindex", json_integer(device->ifindex));
	json_object_set_new(object, "driver", json_string(device->driver));
	json_object_set_new(object, "link_up", json_boolean(device->link_up));
	json_object_set_new(object, "mtu", integer(device->mtu));
	json_object_set_new(object, "rx_queues", integer(device->rx_queues));
	json_object_set_new(object, "tx_queues", integer(device->tx_queues));
	json_object_set_new(object, "numa_node", maybe(device->numa_node));
	json_object_set_new(object, "rx_vlan_offload", json_boolean(device->rx_vlan_offload));
	json_object_set_new(object, "rx_vlan_offload_fixed",
			    json_boolean(device->rx_vlan_offload_fixed));
	return object;
}

static json_t *lanes_json(const struct plan_forward *forward, const struct plan_worker *worker)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < forward->ports; i++) {
		const struct plan_lane *lane = &worker->lane[i];
		json_t *object;

		if (!lane->rx && !lane->tx && lane->hand_to == PLAN_NOBODY)
			continue;
		object = json_object();
		json_object_set_new(object, "port", json_string(forward->port[i].conf->name));
		json_object_set_new(object, "rx", json_boolean(lane->rx));
		json_object_set_new(object, "tx", json_boolean(lane->tx));
		json_object_set_new(object, "hand_to", maybe(lane->hand_to));
		json_array_append_new(array, object);
	}
	return array;
}

static json_t *worker_json(const struct plan_forward *forward, unsigned index)
{
	const struct plan_worker *worker = &forward->worker[index];
	json_t *object = json_object();

	json_object_set_new(object, "worker", integer(index));
	json_object_set_new(object, "queue", integer(worker->queue));
	json_object_set_new(object, "cpu", integer(worker->cpu));
	json_object_set_new(object, "cpu_node", maybe(worker->cpu_node));
	json_object_set_new(object, "umem", integer(worker->umem));
	json_object_set_new(object, "first_frame", integer(worker->first_frame));
	json_object_set_new(object, "frames", integer(worker->frames));
	json_object_set_new(object, "lanes", lanes_json(forward, worker));
	return object;
}

static json_t *umem_json(const struct plan_umem *umem)
{
	json_t *object = json_object();

	json_object_set_new(object, "frames", integer(umem->frames));
	json_object_set_new(object, "frame_size", integer(umem->frame_size));
	json_object_set_new(object, "bytes", integer(umem->bytes));
	json_object_set_new(object, "numa_node", maybe(umem->numa_node));
	return object;
}

static json_t *forward_json(const struct plan_forward *forward)
{
	json_t *object = json_object();
	json_t *ports = json_array(), *workers = json_array(), *umems = json_array();

	for (unsigned i = 0; i < forward->ports; i++)
		json_array_append_new(ports, port_json(&forward->port[i]));
	for (unsigned i = 0; i < forward->workers; i++)
		json_array_append_new(workers, worker_json(forward, i));
	for (unsigned i = 0; i < forward->umems; i++)
		json_array_append_new(umems, umem_json(&forward->umem[i]));
	json_object_set_new(object, "forward", json_string(forward->conf->name));
	json_object_set_new(object, "mode", json_string(plan_mode_of(forward->conf->mode)->name));
	json_object_set_new(object, "complete", json_boolean(forward->complete));
	json_object_set_new(object, "locked_bytes", integer(forward->locked_bytes));
	json_object_set_new(object, "ports", ports);
	json_object_set_new(object, "workers", workers);
	json_object_set_new(object, "umems", umems);
	return object;
}

static json_t *message_json(const struct plan_message *message)
{
	json_t *object = json_object();

	json_object_set_new(object, "level", json_string(plan_level_name(message->level)));
	json_object_set_new(object, "forward", json_string(message->forward->name));
	json_object_set_new(object, "port",
			    message->port ? json_string(message->port->name) : json_null());
	json_object_set_new(object, "text", json_string(message->text));
	return object;
}

int plan_json(FILE *out, const struct plan *plan)
{
	json_t *root = json_object(), *forwards = json_array(), *messages = json_array();
	int err = 0;

	for (unsigned i = 0; i < plan->forwards; i++)
		json_array_append_new(forwards, forward_json(&plan->forward[i]));
	for (unsigned i = 0; i < plan->messages; i++)
		json_array_append_new(messages, message_json(&plan->message[i]));
	json_object_set_new(root, "version", integer(PLAN_JSON_VERSION));
	json_object_set_new(root, "forwards", forwards);
	json_object_set_new(root, "messages", messages);
	/* jansson hands every failed allocation down as NULL, to the root at last. */
	if (!root || json_dumpf(root, out, JSON_COMPACT | JSON_PRESERVE_ORDER))
		err = !root ? -ENOMEM : errno ? -errno : -EIO;
	json_decref(root);
	if (err)
		return err;
	fputc('\n', out);
	if (fflush(out) || ferror(out))
		return errno ? -errno : -EIO;
	return 0;
}
