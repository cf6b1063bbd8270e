/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/xdp/umem_view.c"

#include <string.h>

#include "unit.h"

#define FRAMES 16
#define FRAME  2048

static struct umem umem;

static int make(void **state)
{
	const struct umem_opts opts = { .frames = FRAMES,
					.frame_size = FRAME,
					.ring_size = 16,
					.fill_size = 32,
					.numa_node = -1 };

	(void)state;
	return umem_open(&umem, &opts);
}

static int unmake(void **state)
{
	(void)state;
	umem_close(&umem);
	return 0;
}

static void frames_are_those_of_the_other_process(void **state)
{
	struct umem_view view;

	(void)state;
	memset(umem.frames, 0x5a, (size_t)FRAMES * FRAME);
	assert_int_equal(umem_view_open(&view, umem.fd), 0);
	assert_int_equal(view.frames_bytes, (size_t)FRAMES * FRAME);
	assert_ptr_not_equal(view.frames, umem.frames);
	assert_memory_equal(view.frames, umem.frames, (size_t)FRAMES * FRAME);
	umem_view_close(&view);
	umem_view_close(&view);
}

static void refused(int want)
{
	struct umem_view view;

	assert_int_equal(umem_view_open(&view, umem.fd), want);
	assert_null(view.frames);
	umem_view_close(&view);
}

static void header_that_does_not_fit_is_refused(void **state)
{
	const struct umem_header right = *umem.header;
	struct umem_header wrong[16];
	struct umem_view view;
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		wrong[i] = right;
	wrong[n++].magic++;
	wrong[n++].version++;
	wrong[n++].header_bytes--;
	wrong[n++].frames = 0;
	wrong[n++].frames = UINT32_MAX;
	wrong[n++].frames = FRAMES + 4096 / FRAME; /* a page more than there is */
	wrong[n++].frame_size = 0;
	wrong[n++].frame_size = 2047;
	wrong[n++].frame_size = 4097;
	wrong[n++].frame_size = UINT32_MAX;
	wrong[n++].frames_offset = 0;
	wrong[n++].frames_offset += 1;
	wrong[n++].frames_offset += 4096;
	wrong[n++].frames_offset = UINT64_MAX;
	wrong[n++].frames_offset = UINT64_MAX / 4096 * 4096;
	wrong[n++].frames_offset = 1ULL << 63;
	assert_int_equal(n, ARRAY_SIZE(wrong));
	for (size_t i = 0; i < n; i++) {
		*umem.header = wrong[i];
		refused(-EBADMSG);
	}
	*umem.header = right;
	assert_int_equal(umem_view_open(&view, umem.fd), 0);
	umem_view_close(&view);
}

static void file_that_is_too_short_is_refused(void **state)
{
	const uint64_t bytes = umem.header->total_bytes;

	(void)state;
	assert_int_equal(ftruncate(umem.fd, (off_t)(bytes - 4096)), 0);
	refused(-EBADMSG);
	assert_int_equal(ftruncate(umem.fd, 8), 0);
	refused(-EBADMSG);
	assert_int_equal(ftruncate(umem.fd, (off_t)bytes), 0);
}

static void what_is_no_file_is_refused(void **state)
{
	struct umem_view view;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(umem_view_open(&view, ends[0]), -ESPIPE);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(umem_view_open(&view, ends[0]), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(frames_are_those_of_the_other_process, make,
						unmake),
		cmocka_unit_test_setup_teardown(header_that_does_not_fit_is_refused, make, unmake),
		cmocka_unit_test_setup_teardown(file_that_is_too_short_is_refused, make, unmake),
		cmocka_unit_test(what_is_no_file_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
