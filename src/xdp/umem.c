/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "xdp/umem.h"

#include <assert.h>
#include <errno.h>
#include <linux/memfd.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"

/* The size of huge page that we ask for: small enough not to waste, and there on every x86-64 and on
 * arm64 with 4 KiB pages. */
#define HUGE_PAGE_BYTES (2ULL << 20)

/* Nodes of the largest kernel configuration (CONFIG_NODES_SHIFT 10). */
#define MAX_NODES 1024

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

uint64_t umem_locked_bytes(const struct umem_opts *opts)
{
	return (uint64_t)opts->frames * opts->frame_size;
}

static void header_fill(struct umem_header *header, const struct umem_opts *opts, uint64_t unit)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t ledger_bytes = (uint64_t)opts->frames * sizeof(ledger_entry);
	uint64_t frames_offset = round_up(page + ledger_bytes, unit);

	*header = (struct umem_header){
		.magic = UMEM_MAGIC,
		.version = UMEM_VERSION,
		.header_bytes = sizeof(*header),
		.ledger_offset = page,
		.frames_offset = frames_offset,
		.total_bytes = frames_offset + round_up(umem_locked_bytes(opts), unit),
		.frames = opts->frames,
		.frame_size = opts->frame_size,
		.headroom = opts->headroom,
		.tx_metadata_len = opts->tx_metadata_len,
		.ring_size = opts->ring_size,
		.fill_size = opts->fill_size,
		.unaligned = opts->unaligned,
	};
}

/* Preferred, not bound: memory on the wrong node beats none. No error is worth stopping for: a kernel
 * without NUMA has no such call. */
static void prefer_node(void *base, uint64_t bytes, int numa_node)
{
	unsigned long mask[MAX_NODES / (8 * sizeof(unsigned long))] = { 0 };

	if (numa_node < 0 || numa_node >= MAX_NODES)
		return;
	mask[(unsigned)numa_node / (8 * sizeof(mask[0]))] = 1UL
							    << numa_node % (8 * sizeof(mask[0]));
	syscall(SYS_mbind, base, bytes, MPOL_PREFERRED, mask, (unsigned long)MAX_NODES, 0UL);
}

static int map_memfd(struct umem *umem, const struct umem_header *layout, bool huge_pages,
		     int numa_node)
{
	void *base;

	umem->fd = memfd_create("millrace-umem",
				MFD_CLOEXEC | (huge_pages ? MFD_HUGETLB | MFD_HUGE_2MB : 0));
	if (umem->fd < 0)
		return -errno;
	if (ftruncate(umem->fd, (off_t)layout->total_bytes))
		goto fail;
	base = mmap(NULL, layout->total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, umem->fd, 0);
	if (base == MAP_FAILED)
		goto fail;
	prefer_node(base, layout->total_bytes, numa_node);
	/* All pages now, or an error now, and none to fault in while forwarding. MAP_POPULATE would
	 * keep a failure to itself. A kernel before 5.14 does not know this (EINVAL). */
	if (madvise(base, layout->total_bytes, MADV_POPULATE_WRITE) && errno != EINVAL) {
		int err = -errno;

		munmap(base, layout->total_bytes);
		close(umem->fd);
		umem->fd = -1;
		return err;
	}
	umem->header = base;
	umem->ledger = (ledger_entry *)((uint8_t *)base + layout->ledger_offset);
	umem->frames = (uint8_t *)base + layout->frames_offset;
	return 0;
fail:;
	int err = -errno;

	close(umem->fd);
	umem->fd = -1;
	return err;
}

/* What the kernel thinks can be had without swapping; everything if it does not say. The pages of a
 * memfd are taken one by one, and the first that is not there is answered by the OOM killer. */
static uint64_t available_bytes(void)
{
	FILE *meminfo = fopen("/proc/meminfo", "re");
	unsigned long long kib = 0;
	char line[128];

	while (meminfo && fgets(line, sizeof(line), meminfo)) {
		if (!strncmp(line, "MemAvailable:", 13))
			kib = strtoull(line + 13, NULL, 10);
	}
	if (meminfo)
		fclose(meminfo);
	return kib ? kib * 1024 : UINT64_MAX;
}

static int map_best(struct umem *umem, struct umem_header *layout, const struct umem_opts *opts)
{
	int err;

	if (opts->huge_pages) {
		header_fill(layout, opts, HUGE_PAGE_BYTES);
		err = map_memfd(umem, layout, true, opts->numa_node);
		if (!err)
			return 0;
		log_warning("no huge pages for %llu MiB: " ERR_FORMAT
			    "; using small pages (huge ones "
			    "are reserved by vm.nr_hugepages)",
			    (unsigned long long)(layout->total_bytes >> 20), ERR_ARGS(err));
	}
	header_fill(layout, opts, (uint64_t)sysconf(_SC_PAGESIZE));
	if (layout->total_bytes > available_bytes())
		return -ENOMEM;
	return map_memfd(umem, layout, false, opts->numa_node);
}

int umem_open(struct umem *umem, const struct umem_opts *opts)
{
	struct umem_header layout;
	int err;

	*umem = (struct umem){ .fd = -1 };
	err = map_best(umem, &layout, opts);
	if (err) {
		log_error("no memory for %u frames of %u bytes (%llu MiB): " ERR_FORMAT
			  "; lower --frames-per-queue or --ring-size",
			  opts->frames, opts->frame_size,
			  (unsigned long long)(layout.total_bytes >> 20), ERR_ARGS(err));
		return err;
	}
	assert(umem->header && umem->frames);
	*umem->header = layout;
	umem->frames_bytes = umem_locked_bytes(opts);
	umem->frame_shift = (uint32_t)__builtin_ctz(opts->frame_size);
	for (uint32_t i = 0; i < opts->frames; i++)
		umem->ledger[i] = ledger_pack(LEDGER_POOL, 0, 0);
	return 0;
}

void umem_close(struct umem *umem)
{
	if (umem->header)
		munmap(umem->header, umem->header->total_bytes);
	if (umem->fd > 0)
		close(umem->fd);
	*umem = (struct umem){ .fd = -1 };
}
