/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "xdp/umem.h"

#include <assert.h>
#include <errno.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"

/* The x86-64 and arm64 default. With larger ones the kernel rounds up and the map stays aligned,
 * since every offset is a multiple of 2 MiB only where 2 MiB pages were asked for. */
#define HUGE_PAGE_BYTES (2ULL << 20)

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
	};
}

static int map_memfd(struct umem *umem, const struct umem_header *layout, bool huge_pages)
{
	void *base;

	umem->fd = memfd_create("millrace-umem", MFD_CLOEXEC | (huge_pages ? MFD_HUGETLB : 0));
	if (umem->fd < 0)
		return -errno;
	/* MAP_POPULATE: all pages now, or an error now, and none to fault in while forwarding. */
	if (ftruncate(umem->fd, (off_t)layout->total_bytes))
		goto fail;
	base = mmap(NULL, layout->total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		    umem->fd, 0);
	if (base == MAP_FAILED)
		goto fail;
	umem->header = base;
	umem->ledger = (ledger_entry *)((uint8_t *)base + layout->ledger_offset);
	umem->frames = (uint8_t *)base + layout->frames_offset;
	umem->huge_pages = huge_pages;
	return 0;
fail:;
	int err = -errno;

	close(umem->fd);
	umem->fd = -1;
	return err;
}

static int map_best(struct umem *umem, struct umem_header *layout, const struct umem_opts *opts)
{
	int err;

	if (opts->huge_pages) {
		header_fill(layout, opts, HUGE_PAGE_BYTES);
		err = map_memfd(umem, layout, true);
		if (!err)
			return 0;
		log_warning("no huge pages for %llu MiB: " ERR_FORMAT
			    "; using small pages (huge ones "
			    "are reserved by vm.nr_hugepages)",
			    (unsigned long long)(layout->total_bytes >> 20), ERR_ARGS(err));
	}
	header_fill(layout, opts, (uint64_t)sysconf(_SC_PAGESIZE));
	return map_memfd(umem, layout, false);
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
