/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/ctl/output.c"

#include <fcntl.h>
#include <signal.h>
#include <string.h>

#include "unit.h"

/* A small pipe: two pages. It has room as long as one of them is unused. */
static void small_pipe(int ends[2])
{
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(fcntl(ends[1], F_SETPIPE_SZ, 8192), 8192);
}

static char *lines_of(char letter, size_t len)
{
	char *text = malloc(len);

	memset(text, letter, len - 1);
	text[len - 1] = '\n';
	return text;
}

static void what_fits_is_written_at_once(void **state)
{
	struct output output = { 0 };
	char seen[100];
	int ends[2];

	(void)state;
	small_pipe(ends);
	output.fd = ends[1];
	assert_int_equal(output_put(&output, lines_of('a', 50), 50, 0), 0);
	assert_int_equal(output_put(&output, lines_of('b', 50), 50, 0), 0);
	assert_int_equal(read(ends[0], seen, sizeof(seen)), 100);
	assert_int_equal(seen[0], 'a');
	assert_int_equal(seen[99], '\n');
	assert_int_equal(output.skipped, 0);
	output_fini(&output);
	close(ends[0]);
	close(ends[1]);
}

/* Seen as a daemon that ignored SIGTERM: its reports went into a pipe that nobody read. */
static void a_reader_that_stopped_holds_nothing_up(void **state)
{
	struct output output = { 0 };
	uint64_t start_ns = clock_now_ns();
	char seen[20000];
	size_t got = 0;
	int ends[2];

	(void)state;
	small_pipe(ends);
	output.fd = ends[1];
	assert_int_equal(output_put(&output, lines_of('a', 10000), 10000, 10), 0);
	assert_int_equal(output_put(&output, lines_of('b', 10000), 10000, 10), 0);
	assert_int_equal(output_put(&output, lines_of('c', 10000), 10000, 10), 0);
	assert_true(clock_now_ns() - start_ns < NSEC_PER_SEC);
	assert_int_equal(output.skipped, 2);
	/* It reads again: it gets the first text to its end, then whole new ones. */
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	for (int i = 0; i < 10; i++) {
		ssize_t more;

		assert_int_equal(output_put(&output, lines_of('d', 10), 10, 0), 0);
		while ((more = read(ends[0], seen + got, sizeof(seen) - got)) > 0)
			got += (size_t)more;
	}
	assert_true(got > 10000);
	for (size_t i = 0; i < 9999; i++)
		assert_int_equal(seen[i], 'a');
	assert_int_equal(seen[9999], '\n');
	for (size_t i = 10000; i + 10 <= got; i += 10)
		assert_memory_equal(seen + i, "ddddddddd\n", 10);
	output_fini(&output);
	close(ends[0]);
	close(ends[1]);
}

static void a_reader_that_is_gone_is_told(void **state)
{
	struct output output = { 0 };
	int ends[2];

	(void)state;
	signal(SIGPIPE, SIG_IGN); /* NOLINT(concurrency-mt-unsafe): one thread */
	small_pipe(ends);
	output.fd = ends[1];
	close(ends[0]);
	assert_int_equal(output_put(&output, lines_of('a', 10), 10, 0), -EPIPE);
	output_fini(&output);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_fits_is_written_at_once),
		cmocka_unit_test(a_reader_that_stopped_holds_nothing_up),
		cmocka_unit_test(a_reader_that_is_gone_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
