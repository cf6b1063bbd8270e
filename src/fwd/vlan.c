/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "fwd/vlan.h"

#include <errno.h>
#include <stdlib.h>

static void add_port(struct vlan_table *table, const struct vlan_mode *mode, unsigned port)
{
	const uint16_t bit = (uint16_t)(1U << port);

	table->native[port] = mode->untagged;
	if (mode->kind == VLAN_MODE_ACCESS)
		table->access |= bit;
	for (unsigned vlan = 1; vlan <= VLAN_MODE_MAX; vlan++) {
		if (vlan_mode_has(mode, vlan))
			table->of[vlan].member |= bit;
	}
	if (mode->untagged)
		table->of[mode->untagged].untagged |= bit;
}

int vlan_table_new(struct vlan_table **result, const struct vlan_mode *const *port, unsigned ports)
{
	struct vlan_table *table = aligned_alloc(_Alignof(struct vlan_table), sizeof(*table));

	if (!table)
		return -ENOMEM;
	memset(table, 0, sizeof(*table));
	for (unsigned i = 0; i < ports; i++)
		add_port(table, port[i], i);
	*result = table;
	return 0;
}

void vlan_table_free(struct vlan_table *table)
{
	free(table);
}
