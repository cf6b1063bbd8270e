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
#include "base/signals.h"

/* The size of huge page that we ask for: small enough not to waste, and there on every x86-64 and on
 * arm64 with 4 KiB pages. */
#define HUGE_PAGE_BYTES (2ULL << 20)
#define HUGE_PAGE_DIR	"/sys/kernel/mm/hugepages/hugepages-2048kB/"

/* Taking all pages of a large UMEM lasts seconds (here 0.3 s a GiB), and no signal is seen within a
 * call: ask this often. */
#define POPULATE_BYTES (256ULL << 20)

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

/* All pages now, or an error now, and none to fault in while forwarding. MAP_POPULATE would keep a
 * failure to itself. A kernel before 5.14 does not know this (EINVAL). */
static int populate(uint8_t *base, uint64_t bytes)
{
	for (uint64_t done = 0; done < bytes; done += POPULATE_BYTES) {
		uint64_t left = bytes - done;

		if (signals_end_asked())
			return -ECANCELED;
		if (madvise(base + done, left < POPULATE_BYTES ? left : POPULATE_BYTES,
			    MADV_POPULATE_WRITE))
			return errno == EINVAL ? 0 : -errno;
	}
	return 0;
}

static int map_memfd(struct umem *umem, const struct umem_header *layout, bool huge_pages,
		     int numa_node)
{
	void *base = MAP_FAILED;
	int err = 0;

	umem->fd = memfd_create("millrace-umem",
				MFD_CLOEXEC | (huge_pages ? MFD_HUGETLB | MFD_HUGE_2MB : 0));
	if (umem->fd < 0)
		return -errno;
	if (ftruncate(umem->fd, (off_t)layout->total_bytes))
		err = -errno;
	if (!err)
		base = mmap(NULL, layout->total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, umem->fd,
			    0);
	if (!err && base == MAP_FAILED)
		err = -errno;
	if (!err) {
		prefer_node(base, layout->total_bytes, numa_node);
		err = populate(base, layout->total_bytes);
	}
	if (err) {
		if (base != MAP_FAILED)
			munmap(base, layout->total_bytes);
		close(umem->fd);
		umem->fd = -1;
		return err;
	}
	umem->header = base;
	umem->ledger = (ledger_entry *)((uint8_t *)base + layout->ledger_offset);
	umem->frames = (uint8_t *)base + layout->frames_offset;
	return 0;
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

/* A number of the kernel's about huge pages; 0 if it has none of this size. */
static uint64_t huge_pages_count(const char *what)
{
	unsigned long long count = 0;
	char path[96];
	FILE *file;

	snprintf(path, sizeof(path), HUGE_PAGE_DIR "%s", what);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%llu", &count) != 1) /* NOLINT(cert-err34-c): the kernel's own number */
		count = 0;
	fclose(file);
	return count;
}

/* Pages that a new mapping can have: free, and not promised to another; or to be made on demand. */
static uint64_t huge_pages_free(void)
{
	uint64_t unused =
		huge_pages_count("free_hugepages") + huge_pages_count("nr_overcommit_hugepages");
	uint64_t taken = huge_pages_count("resv_hugepages") + huge_pages_count("surplus_hugepages");

	return unused > taken ? unused - taken : 0;
}

static void say_shortage(struct umem *umem, uint64_t needed, const struct umem_opts *opts)
{
	uint64_t reserved = huge_pages_count("nr_hugepages");

	if (opts->shortage_said || (!reserved && !opts->huge_pages))
		return;
	umem->shortage_said = true;
	log_write(opts->huge_pages ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO,
		  "%llu huge pages a worker are needed, %llu of %llu are free: using small pages; "
		  "`sysctl vm.nr_hugepages=N` reserves more",
		  (unsigned long long)needed, (unsigned long long)huge_pages_free(),
		  (unsigned long long)reserved);
}

static int map_best(struct umem *umem, struct umem_header *layout, const struct umem_opts *opts)
{
	uint64_t needed;
	int err = -ENOMEM;

	header_fill(layout, opts, HUGE_PAGE_BYTES);
	needed = layout->total_bytes / HUGE_PAGE_BYTES;
	if (needed <= huge_pages_free())
		err = map_memfd(umem, layout, true, opts->numa_node);
	umem->huge_pages = !err;
	if (!err || err == -ECANCELED)
		return err;
	say_shortage(umem, needed, opts);
	header_fill(layout, opts, (uint64_t)sysconf(_SC_PAGESIZE));
	if (layout->total_bytes > available_bytes())
		return -ENOMEM;
	return map_memfd(umem, layout, false, opts->numa_node);
}

static void open_failed(const struct umem_header *layout, int err)
{
	if (err == -ECANCELED)
		return; /* asked to end, nothing wrong */
	if (err != -ENOMEM)
		log_error("no memory file for frames (memfd_create): " ERR_FORMAT,
			  ERR_SANDBOX_ARGS(err));
	else
		log_error("no memory for %u frames of %u bytes (%llu MiB): " ERR_FORMAT
			  "; lower --frames-per-queue or --ring-size",
			  layout->frames, layout->frame_size,
			  (unsigned long long)(layout->total_bytes >> 20), ERR_ARGS(err));
}

int umem_open(struct umem *umem, const struct umem_opts *opts)
{
	struct umem_header layout;
	int err;

	*umem = (struct umem){ .fd = -1, .shortage_said = opts->shortage_said };
	err = map_best(umem, &layout, opts);
	if (err) {
		open_failed(&layout, err);
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
