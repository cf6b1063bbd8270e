/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/ctl/commands.c"

#include <stdlib.h>

#include "unit.h"

static void every_command_is_found_by_its_name(void **state)
{
	(void)state;
	for (unsigned i = 0; i < COMMANDS; i++) {
		const struct command_row *row = command_row((enum command)i);

		assert_non_null(row->name);
		assert_int_equal(command_find(row->name), i);
		assert_true(row->help[0]);
		assert_true(strlen(row->name) + 1 + strlen(row->synopsis) < SYNOPSIS_SIZE);
		/* What takes words must know what they mean, and nothing else needs to. */
		assert_int_equal(command_words((enum command)i) > 0, row->arguments != NULL);
	}
	assert_int_equal(command_find("stat"), COMMANDS);
	assert_int_equal(command_find(""), COMMANDS);
}

static void only_looking_is_read_only(void **state)
{
	(void)state;
	for (unsigned i = 0; i < COMMANDS; i++)
		assert_int_equal(command_row((enum command)i)->read_only,
				 i != COMMAND_RELOAD && i != COMMAND_SET && i != COMMAND_CONFIRM);
}

static void a_slip_of_the_finger_is_understood(void **state)
{
	static const struct {
		const char *typed, *meant;
	} rows[] = {
		{ "stat", "stats" },

		{ "staus", "status" },	 { "prots", "ports" },
		{ "metric", "metrics" }, { "rleoad", "reload" },
		{ "sett", "set" },	 { "plans", "plan" },
		{ "vesion", "version" }, { "comfirm", "confirm" },
		{ "xyzzyxyz", NULL },	 { "", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *nearest = command_nearest(rows[i].typed);

		if (!rows[i].meant)
			assert_null(nearest);
		else
			assert_string_equal(nearest, rows[i].meant);
	}
}

static void words_become_arguments_or_are_refused(void **state)
{
	static const struct {
		enum command command;
		char *words[6];
		const char *want; /* NULL: -EINVAL */
	} rows[] = {
		{ COMMAND_STATUS, { NULL }, "{}" },
		{ COMMAND_STATS, { NULL }, "{}" },
		{ COMMAND_STATUS, { "d0", NULL }, NULL },
		{ COMMAND_RELOAD, { "", NULL }, NULL },
		{ COMMAND_CONFIRM, { NULL }, "{}" },
		{ COMMAND_CONFIRM, { "yes", NULL }, NULL },
		{ COMMAND_SET,
		  { "port", "wan", "promiscuous", "on", NULL },
		  "{\"port\":\"wan\",\"promiscuous\":true}" },
		{ COMMAND_SET,
		  { "port", "p\"\\", "promiscuous", "off", NULL },
		  "{\"port\":\"p\\\"\\\\\",\"promiscuous\":false}" },
		{ COMMAND_SET, { NULL }, NULL },
		{ COMMAND_SET, { "port", "wan", "promiscuous", NULL }, NULL },
		{ COMMAND_SET, { "port", "wan", "promiscuous", "yes", NULL }, NULL },
		{ COMMAND_SET, { "port", "wan", "promiscuous", "", NULL }, NULL },
		{ COMMAND_SET, { "prot", "wan", "promiscuous", "on", NULL }, NULL },
		{ COMMAND_SET, { "port", "wan", "mtu", "on", NULL }, NULL },
		{ COMMAND_SET, { "port", "\xff", "promiscuous", "on", NULL }, NULL },
		{ COMMAND_SET, { "port", "wan", "promiscuous", "on", "on", NULL }, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		json_t *arguments = NULL;
		char *text;
		int err = command_arguments(rows[i].command, rows[i].words, &arguments);

		assert_int_equal(err, rows[i].want ? 0 : -EINVAL);
		if (err)
			continue;
		text = json_dumps(arguments, JSON_COMPACT | JSON_PRESERVE_ORDER);
		assert_string_equal(text, rows[i].want);
		free(text);
		json_decref(arguments);
	}
}

static char *completion_text(void)
{
	static const struct command_option options[] = {
		{ 's', "socket", "PATH", "", false },
		{ 'j', "json", NULL, "", false },
		{ 0, "count", "N", "", true },
	};
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	commands_completion(out, options, ARRAY_SIZE(options));
	fclose(out);
	return text;
}

static void the_completion_has_every_command_and_option(void **state)
{
	char *text = completion_text();

	(void)state;
	for (unsigned i = 0; i < COMMANDS; i++)
		assert_non_null(strstr(text, command_row((enum command)i)->name));
	assert_non_null(strstr(text, "-s|--socket) "));
	assert_non_null(strstr(text, "--count) "));
	assert_non_null(strstr(text, "words=\"-s --socket= -j --json \"\n"));
	assert_non_null(strstr(text, "== stats ]] && words+=\"--count= \"\n"));
	assert_non_null(strstr(text, "\tset:1) words=\"port\" ;;\n"
				     "\tset:2) words=$(_millracectl_ports \"$socket\") ;;\n"
				     "\tset:3) words=\"promiscuous\" ;;\n"
				     "\tset:4) words=\"on off\" ;;\n"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_command_is_found_by_its_name),
		cmocka_unit_test(only_looking_is_read_only),
		cmocka_unit_test(a_slip_of_the_finger_is_understood),
		cmocka_unit_test(words_become_arguments_or_are_refused),
		cmocka_unit_test(the_completion_has_every_command_and_option),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
