/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/base/log.c"

#include <sys/mman.h>

#include "unit.h"

/* Standard error, kept aside while what is said goes to a file. */
static int standard_error, said_fd;
static char said[16384];

static int listen_to_it(void **state)
{
	(void)state;
	standard_error = dup(STDERR_FILENO);
	said_fd = memfd_create("said", 0);
	return dup2(said_fd, STDERR_FILENO) < 0;
}

static int listen_no_more(void **state)
{
	(void)state;
	dup2(standard_error, STDERR_FILENO);
	close(standard_error);
	close(said_fd);
	unsetenv("JOURNAL_STREAM"); /* NOLINT(concurrency-mt-unsafe) */
	journal.is_it = false;
	return 0;
}

static const char *what_was_said(void)
{
	ssize_t len = pread(said_fd, said, sizeof(said) - 1, 0);

	said[len < 0 ? 0 : len] = '\0';
	return said;
}

/* As systemd does it; `off` by so much it is another stream. */
static void be_the_journal(unsigned off)
{
	char text[64];
	struct stat stat;

	fstat(STDERR_FILENO, &stat);
	snprintf(text, sizeof(text), "%llu:%llu", (unsigned long long)stat.st_dev,
		 (unsigned long long)stat.st_ino + off);
	setenv("JOURNAL_STREAM", text, 1); /* NOLINT(concurrency-mt-unsafe) */
	log_open();
}

static unsigned lines_said(void)
{
	unsigned lines = 0;

	for (const char *at = what_was_said(); (at = strchr(at, '\n')); at++)
		lines++;
	return lines;
}

static void levels_are_words(void **state)
{
	(void)state;
	log_open();
	log_error("d0: %d", 1);
	log_warning("d0: 2");
	log_info("d0: 3");
	assert_string_equal(what_was_said(), "millraced: error: d0: 1\n"
					     "millraced: warning: d0: 2\n"
					     "millraced: d0: 3\n");
}

static void in_the_journal_they_are_priorities(void **state)
{
	(void)state;
	be_the_journal(0);
	log_error("d0: 1");
	log_warning("d0: 2");
	log_info("d0: 3");
	assert_string_equal(what_was_said(), "<3>error: d0: 1\n<4>warning: d0: 2\n<6>d0: 3\n");
}

static void a_stream_that_is_not_ours_is_no_journal(void **state)
{
	(void)state;
	be_the_journal(1);
	log_info("d0: 3");
	assert_string_equal(what_was_said(), "millraced: d0: 3\n");
}

static void a_message_is_one_line(void **state)
{
	(void)state;
	be_the_journal(0);
	log_error("'a\n<0>b\x1b[31m\x7f'");
	assert_string_equal(what_was_said(), "<3>error: 'a?<0>b?[31m?'\n");
}

static void a_long_message_is_cut_and_still_a_line(void **state)
{
	static char text[3000];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	be_the_journal(0);
	log_error("%s", text);
	assert_int_equal(strlen(what_was_said()), LINE_SIZE - 1);
	assert_int_equal(said[LINE_SIZE - 2], '\n');
	assert_int_equal(lines_said(), 1);
}

static void repetitions_are_counted_in_the_journal(void **state)
{
	(void)state;
	be_the_journal(0);
	for (unsigned i = 0; i < 100; i++)
		log_warning("d1: lost %u", i);
	assert_int_equal(lines_said(), REPEATS_LINES);
	log_repeats(false);
	assert_int_equal(lines_said(), REPEATS_LINES);
	log_repeats(true);
	assert_int_equal(lines_said(), REPEATS_LINES + 1);
	assert_non_null(strstr(said, "<4>warning: d1: lost 99 (the last of 90 more like this)\n"));
}

static void and_nowhere_else(void **state)
{
	(void)state;
	log_open();
	for (unsigned i = 0; i < 100; i++)
		log_warning("d2: lost %u", i);
	log_repeats(true);
	assert_int_equal(lines_said(), 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(levels_are_words, listen_to_it, listen_no_more),
		cmocka_unit_test_setup_teardown(in_the_journal_they_are_priorities, listen_to_it,
						listen_no_more),
		cmocka_unit_test_setup_teardown(a_stream_that_is_not_ours_is_no_journal,
						listen_to_it, listen_no_more),
		cmocka_unit_test_setup_teardown(a_message_is_one_line, listen_to_it,
						listen_no_more),
		cmocka_unit_test_setup_teardown(a_long_message_is_cut_and_still_a_line,
						listen_to_it, listen_no_more),
		cmocka_unit_test_setup_teardown(repetitions_are_counted_in_the_journal,
						listen_to_it, listen_no_more),
		cmocka_unit_test_setup_teardown(and_nowhere_else, listen_to_it, listen_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
