/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/xdp/umem.c"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

static const struct umem_opts opts = {
	.frames = 1000,
	.frame_size = 2048,
	.headroom = 32,
	.ring_size = 64,
	.fill_size = 128,
};

static void the_memory_describes_itself(void **state)
{
	struct umem umem, other = { 0 };
	const struct umem_header *header;
	void *base;

	(void)state;
	assert_int_equal(umem_open(&umem, &opts), 0);
	/* What a later process would do: map the memfd anew and believe its header. */
	base = mmap(NULL, umem.header->total_bytes, PROT_READ, MAP_SHARED, umem.fd, 0);
	assert_true(base != MAP_FAILED);
	header = base;
	assert_true(header->magic == UMEM_MAGIC);
	assert_int_equal(header->version, UMEM_VERSION);
	assert_int_equal(header->header_bytes, sizeof(*header));
	assert_int_equal(header->frames, 1000);
	assert_int_equal(header->frame_size, 2048);
	assert_int_equal(header->headroom, 32);
	assert_int_equal(header->ring_size, 64);
	assert_int_equal(header->fill_size, 128);
	assert_int_equal(header->frames_offset % (uint64_t)sysconf(_SC_PAGESIZE), 0);
	assert_true(header->ledger_offset + 8 * 1000 <= header->frames_offset);
	assert_true(header->frames_offset + umem_locked_bytes(&opts) <= header->total_bytes);

	umem.ledger[999] = ledger_pack(LEDGER_TX, 3, 77);
	memcpy(umem.frames + 999 * 2048, "frame", 5);
	other.ledger = (ledger_entry *)((char *)base + header->ledger_offset);
	other.frames = (uint8_t *)base + header->frames_offset;
	assert_true(other.ledger[999] == ledger_pack(LEDGER_TX, 3, 77));
	assert_memory_equal(other.frames + 999 * 2048, "frame", 5);
	munmap(base, header->total_bytes);
	umem_close(&umem);
	umem_close(&umem); /* twice is fine */
}

static void every_frame_starts_in_the_pool(void **state)
{
	struct umem umem;

	(void)state;
	assert_int_equal(umem_open(&umem, &opts), 0);
	for (uint32_t i = 0; i < opts.frames; i++)
		assert_int_equal(ledger_state(umem.ledger[i]), LEDGER_POOL);
	umem_close(&umem);
}

static void more_than_there_is_is_refused_not_oom_killed(void **state)
{
	struct umem_opts huge = opts;
	struct umem umem;

	(void)state;
	huge.frames = 1U << 30; /* 2 TiB */
	assert_int_equal(umem_open(&umem, &huge), -ENOMEM);
	umem_close(&umem);
}

static void huge_pages_fall_back_to_small_ones(void **state)
{
	struct umem_opts huge = opts;
	struct umem umem;

	(void)state;
	huge.huge_pages = true;
	if (umem_open(&umem, &huge))
		abort(); /* the analyser does not know that a failed assertion ends the test */
	/* Either way it works. */
	umem.frames[umem.frames_bytes - 1] = 1;
	umem_close(&umem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_memory_describes_itself),
		cmocka_unit_test(every_frame_starts_in_the_pool),
		cmocka_unit_test(more_than_there_is_is_refused_not_oom_killed),
		cmocka_unit_test(huge_pages_fall_back_to_small_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
