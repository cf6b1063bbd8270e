/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "facts.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/number.h"
#include "xdp/netdev.h"
#include "xdp/opener.h"

/* As many as the kernel can be built for is 8192; one that has more than we ask for answers EINVAL. */
#define CPUS_MAX 8192

/* sysfs has a link "nodeN" in each CPU's folder, if the kernel knows of nodes at all. */
static int node_of_cpu(unsigned cpu)
{
	char path[64];
	const struct dirent *entry;
	unsigned long node;
	int found = -1;
	DIR *folder;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u", cpu);
	folder = opendir(path);
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): each folder has one reader */
	while (folder && found < 0 && (entry = readdir(folder))) {
		if (!strncmp(entry->d_name, "node", 4) &&
		    !number_parse(entry->d_name + 4, 0, INT16_MAX, &node))
			found = (int)node;
	}
	if (folder)
		closedir(folder);
	return found;
}

/* The lowest of the hardware threads of its core: itself where the kernel does not tell. */
static unsigned core_of_cpu(unsigned cpu)
{
	char path[96];
	unsigned core;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list",
		 cpu);
	file = fopen(path, "re");
	if (!file)
		return cpu;
	if (fscanf(file, "%u", &core) != 1) /* NOLINT(cert-err34-c): the kernel's own number */
		core = cpu;
	fclose(file);
	return core;
}

static int read_cpus(struct host_facts *host)
{
	cpu_set_t allowed[CPUS_MAX / CPU_SETSIZE];

	memset(allowed, 0, sizeof(allowed));
	if (sched_getaffinity(0, sizeof(allowed), allowed)) {
		int err = -errno;

		log_error("the allowed CPUs cannot be read: " ERR_FORMAT, ERR_ARGS(err));
		return err;
	}
	host->cpu = calloc((size_t)CPU_COUNT_S(sizeof(allowed), allowed), sizeof(*host->cpu));
	if (!host->cpu) {
		log_error("out of memory");
		return -ENOMEM;
	}
	for (unsigned cpu = 0; cpu < CPUS_MAX; cpu++) {
		if (CPU_ISSET_S(cpu, sizeof(allowed), allowed))
			host->cpu[host->cpus++] =
				(struct cpu_facts){ cpu, node_of_cpu(cpu), core_of_cpu(cpu) };
	}
	return 0;
}

static int read_devices(struct host_facts *host, const struct conf *conf)
{
	host->device = calloc(conf->ports, sizeof(*host->device));
	if (!host->device) {
		log_error("out of memory");
		return -ENOMEM;
	}
	for (unsigned i = 0; i < conf->ports; i++) {
		const char *name = conf->port[i].device;
		struct netdev *device = &host->device[i];
		int err = netdev_query(name, device);

		host->devices++;
		/* In another namespace, where this process may not ask. */
		if (!err && !strcmp(device->kind, "veth") && !device->peer[0] && opener_fd() >= 0)
			(void)opener_peer_name(device->name, device->ifindex, device->peer,
					       sizeof(device->peer));
		if (!err || err == -ENODEV)
			continue;
		log_error("%s: cannot be looked up: " ERR_FORMAT, name, ERR_SANDBOX_ARGS(err));
		return err;
	}
	return 0;
}

int facts_read(struct host_facts *host, const struct conf *conf)
{
	int err;

	*host = (struct host_facts){ 0 };
	err = read_devices(host, conf);
	if (!err)
		err = read_cpus(host);
	if (err)
		facts_fini(host);
	return err;
}

void facts_fini(struct host_facts *host)
{
	free(host->device);
	free(host->cpu);
	*host = (struct host_facts){ 0 };
}
