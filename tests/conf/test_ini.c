/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/conf/ini.c"

#include <stdlib.h>

#include "unit.h"

static char told[65536];
static struct diag diag;

__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...)
{
	size_t len = strlen(told);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(told + len, sizeof(told) - len, format, arguments);
	va_end(arguments);
}

static void on_section(void *context, unsigned line, const char *text)
{
	(void)context;
	tell("%u[%s]", line, text ? text : "?");
}

static void on_value_told(void *context, unsigned line, const char *name, const char *value,
			  bool more)
{
	(void)context;
	tell("%u%s%s=%s;", line, more ? "+" : "", name, value);
}

static int read_text(const char *text, size_t len)
{
	static const struct ini_sink sink = { on_section, on_value_told };
	FILE *in = fmemopen((void *)text, len, "r");
	int err;

	told[0] = '\0';
	diag_fini(&diag);
	err = ini_read(in, &sink, NULL, &diag);
	fclose(in);
	return err;
}

static const char *first_error(void)
{
	static char text[1024];

	return diag.count ? diag_print(&diag, 0, text, sizeof(text)) : "";
}

/* What comes out of each text, with line numbers; + is a value that goes on. */
static void lines_become_sections_and_values(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "[a]\nx = 1\ny=2\n", "1[a]2x=1;3y=2;" },
		{ "[a]\nx = 1", "1[a]2x=1;" },
		{ "[empty]\n[a]\n\n\n[a]\n[a]\n", "1[empty]2[a]5[a]6[a]" },
		{ "# c\n; c\n   ; c\n[a] ; c\n[b]# c\n[c]\n", "4[a]5[b]6[c]" },
		{ "[a]\nx = 1 ; c\ny = 1;2\nz = 1 # 2\n", "1[a]2x=1;3y=1;2;4z=1 # 2;" },
		{ "[a]\nx = ;c\ny =;2\n", "1[a]2x=;3y=;2;" },
		{ "[a]\r\nx = 1\r\n\r\ny = 2\r\n", "1[a]2x=1;4y=2;" },
		{ "\xef\xbb\xbf[a]\nx = 1\n", "1[a]2x=1;" },
		{ "\xef\xbb\xbfx = 1\n", "1x=1;" },
		{ "[a]\n\tx = 1 \t\n   y\t=\t2\n", "1[a]2x=1;3y=2;" },
		{ "[a]\nx = 1\n  2 ; c\n\n# c\n\t3\ny = 1\n", "1[a]2x=1;3+x=2;6+x=3;7y=1;" },
		{ "[a]\nx = 02:00:00\ny = a = b\n", "1[a]2x=02:00:00;3y=a = b;" },
		{ "[ a b ]\n[]\n", "1[ a b ]2[]" },
		{ "x =\n", "1x=;" },
		{ "\n", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(read_text(rows[i].text, strlen(rows[i].text)), 0);
		if (diag.errors || strcmp(told, rows[i].want) != 0)
			print_error("row %zu: '%s' %s\n", i, told, first_error());
		assert_string_equal(told, rows[i].want);
		assert_int_equal(diag.errors, 0);
	}
}

#define LETTERS_40 "abcdefghijklmnopqrstuvwxyzabcdefghijklmn"
#define LETTERS_49 LETTERS_40 "ABCDEFGHI"

/* Every line that is no INI, and that the lines after it are what they are without it. */
static void what_inih_would_take_in_silence_is_an_error(void **state)
{
	static const struct {
		const char *text, *told, *error;
	} rows[] = {
		{ "[a]\n[" LETTERS_49 "]\n[" LETTERS_49 "J]\ny = 1\n",
		  "1[a]2[" LETTERS_49 "]3[?]4y=1;",
		  ":3: [abcdefghijklmnopqrs...: a header has up to 49" },
		{ "[a]\n" LETTERS_49 "=1\n" LETTERS_49 "J = 1\ny = 1\n",
		  "1[a]2" LETTERS_49 "=1;4y=1;",
		  ":3: 'abcdefghijklmnopqrst...': a name has up to 49" },
		{ "[a]\n[b] c\ny = 1\n", "1[a]2[?]3y=1;", ":2: [b]: 'c' behind it" },
		{ "[a]\n[b\ny = 1\n", "1[a]2[?]3y=1;", ":2: [b: a section has no ']'" },
		{ "[a]\n[b ;]\ny = 1\n", "1[a]2[?]3y=1;", ":2: [b: a section has no ']'" },
		{ "[a]\nx: 1\ny = 1\n", "1[a]3y=1;", ":2: 'x: 1': is neither" },
		{ "[a]\nx: 1 = 2\ny = 1\n", "1[a]3y=1;", ":2: 'x: 1': no name has a ':' or ';'" },
		{ "[a]\nx ; = 2\ny = 1\n", "1[a]3y=1;", ":2: 'x ;': no name has" },
		{ "[a]\nnothing\ny = 1\n", "1[a]3y=1;", ":2: 'nothing': is neither" },
		{ "[a]\n = 1\ny = 1\n", "1[a]3y=1;", ":2: '= 1': has no name" },
		{ "[a]\n  more\ny = 1\n", "1[a]3y=1;", ":2: 'more': continues no value" },
		{ "[a]\nx = 1\n[b]\n  more\n", "1[a]2x=1;3[b]", ":4: 'more': continues no value" },
		{ "[a]\nx = 1\nnothing\n  more\n  still\n", "1[a]2x=1;", ":3: 'nothing'" },
		{ "[a]\nx = a\x01\ny = 1\n", "1[a]3y=1;", ":2: has a byte 0x01" },
		{ "[a]\n# a\x1b[31m\ny = 1\n", "1[a]3y=1;", ":2: has a byte 0x1b" },
		{ "[a]\nx = a\rb\ny = 1\n", "1[a]3y=1;", ":2: has a byte 0x0d" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(read_text(rows[i].text, strlen(rows[i].text)), 0);
		if (diag.errors != 1 || strcmp(told, rows[i].told) != 0)
			print_error("row %zu: '%s' %s\n", i, told, first_error());
		assert_string_equal(told, rows[i].told);
		assert_int_equal(diag.errors, 1);
		if (!strstr(first_error(), rows[i].error))
			print_error("row %zu: %s\n", i, first_error());
		assert_non_null(strstr(first_error(), rows[i].error));
	}
}

static void a_null_byte_does_not_hide_the_rest_of_its_line(void **state)
{
	static const char text[] = "[a]\nx = 1\0 2\ny = 1\n";

	(void)state;
	assert_int_equal(read_text(text, sizeof(text) - 1), 0);
	assert_string_equal(told, "1[a]3y=1;");
	assert_non_null(strstr(first_error(), ":2: has a byte 0x00"));
}

/* Up to the limit nothing is cut; comments may be as long as they like. */
static void a_line_is_whole_or_refused(void **state)
{
	char text[1000], want[1000];
	unsigned longest = 0;

	(void)state;
	for (unsigned len = 1; len < 400; len++) {
		snprintf(text, sizeof(text), "[a]\nx = %0*u\ny = 1\n", (int)len, 0);
		snprintf(want, sizeof(want), "1[a]2x=%0*u;3y=1;", (int)len, 0);
		assert_int_equal(read_text(text, strlen(text)), 0);
		if (!diag.errors) {
			assert_string_equal(told, want);
			assert_int_equal(longest, len - 1);
			longest = len;
			continue;
		}
		assert_string_equal(told, "1[a]3y=1;");
		assert_non_null(strstr(first_error(), ":2: a line of "));
	}
	/* As millrace.conf(5) says: 199 with "x = ". */
	assert_int_equal(longest, 195);
	memset(text, 'c', sizeof(text));
	text[0] = '#';
	snprintf(text + sizeof(text) - 10, 10, "\n[a]\nx=1");
	assert_int_equal(read_text(text, strlen(text)), 0);
	assert_string_equal(told, "2[a]3x=1;");
	assert_int_equal(diag.errors, 0);
}

static void errors_of_all_lines_are_found(void **state)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	for (unsigned i = 0; i < 150; i++)
		fprintf(out, "wrong %u\n", i);
	fclose(out);
	assert_int_equal(read_text(text, size), 0);
	assert_int_equal(diag.errors, 150);
	assert_int_equal(diag.count, 100);
	assert_int_equal(diag_more(&diag), 50);
	for (unsigned i = 0; i < diag.count; i++)
		assert_int_equal(diag.lines[i].line, i + 1);
	free(text);
}

static void ten_thousand_lines_keep_their_numbers(void **state)
{
	static const char tail[] = "[b]\nz = 1\n";
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	for (unsigned i = 0; i < 10000; i++)
		fputs(i % 2 ? "; comment\n" : "\n", out);
	fputs(tail, out);
	fclose(out);
	assert_int_equal(read_text(text, size), 0);
	assert_string_equal(told, "10001[b]10002z=1;");
	assert_int_equal(diag.errors, 0);
	free(text);
}

static ssize_t fail_to_read(void *cookie, char *buffer, size_t size)
{
	(void)cookie, (void)buffer, (void)size;
	errno = EIO;
	return -1;
}

static void a_read_that_fails_is_no_end(void **state)
{
	static const struct ini_sink sink = { on_section, on_value_told };
	FILE *in = fopencookie(NULL, "r", (cookie_io_functions_t){ .read = fail_to_read });

	(void)state;
	diag_fini(&diag);
	assert_int_equal(ini_read(in, &sink, NULL, &diag), -EIO);
	assert_int_equal(diag.errors, 1);
	assert_non_null(strstr(first_error(), "cannot be read: EIO"));
	fclose(in);
	diag_fini(&diag);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_become_sections_and_values),
		cmocka_unit_test(what_inih_would_take_in_silence_is_an_error),
		cmocka_unit_test(a_null_byte_does_not_hide_the_rest_of_its_line),
		cmocka_unit_test(a_line_is_whole_or_refused),
		cmocka_unit_test(errors_of_all_lines_are_found),
		cmocka_unit_test(ten_thousand_lines_keep_their_numbers),
		cmocka_unit_test(a_read_that_fails_is_no_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
