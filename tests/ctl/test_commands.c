/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/ctl/commands.c"

#include <stdlib.h>

#include "unit.h"

static void every_command_is_found_by_its_name(void **state)
{
	(void)state;
	for (unsigned i = 0; i < COMMANDS; i++) {
		const struct command_row *row = command_row((enum command)i);
		char synopsis[COMMAND_SYNOPSIS_SIZE], wrong[COMMAND_WRONG_SIZE] = "";

		assert_non_null(row->name);
		assert_int_equal(command_find(row->name), i);
		assert_true(row->help[0]);
		assert_true(strlen(command_synopsis((enum command)i, synopsis)) <
			    COMMAND_SYNOPSIS_SIZE - 1); /* none was cut */
		print_members(row, wrong, sizeof(wrong));
		assert_true(strlen(wrong) + strlen(row->name) + 80 < COMMAND_WRONG_SIZE);
	}
	assert_int_equal(command_find("stat"), COMMANDS);
	assert_int_equal(command_find(""), COMMANDS);
}

static void only_looking_is_read_only(void **state)
{
	(void)state;
	for (unsigned i = 0; i < COMMANDS; i++)
		assert_int_equal(command_row((enum command)i)->read_only,
				 i != COMMAND_RELOAD && i != COMMAND_SET && i != COMMAND_CONFIRM &&
					 i != COMMAND_FDB_ADD && i != COMMAND_FDB_DEL &&
					 i != COMMAND_FDB_FLUSH);
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
		{ COMMAND_FDB, { NULL }, "{}" },
		{ COMMAND_FDB,
		  { "vlan", "7", "port", "wan", NULL },
		  "{\"vlan\":7,\"port\":\"wan\"}" },
		{ COMMAND_FDB, { "after", "lan", NULL }, NULL },
		{ COMMAND_FDB_ADD,
		  { "02:00:00:00:00:01", "blocked", "forward", "lan", NULL },
		  "{\"mac\":\"02:00:00:00:00:01\",\"blocked\":true,\"forward\":\"lan\"}" },
		{ COMMAND_FDB_ADD, { "02:00:00:00:00:01", NULL }, NULL },
		{ COMMAND_FDB_DEL, { "vlan", "7", NULL }, NULL },
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

/* All that an argument can be. */
static const struct command_argument every_kind[] = {
	{ "mac", NULL, "MAC", COMMAND_NAME },
	{ "port", "port", "NAME", COMMAND_NAME, .or_next = true },
	{ "blocked", "blocked", NULL, COMMAND_FLAG },
	{ "vlan", "vlan", "N", COMMAND_NUMBER, .optional = true },
	{ "on", "on", "on|off", COMMAND_SWITCH, .optional = true },
	{ "after", NULL, NULL, COMMAND_NAME, .unsaid = true },
	{ 0 },
};
static const struct command_row every_row = { "put it", "[-i SEC]", "", .arguments = every_kind };

static void optional_words_stand_in_any_order(void **state)
{
	static const struct {
		char *words[10];
		const char *want; /* NULL: -EINVAL */
	} rows[] = {
		{ { "m", "port", "a", NULL }, "{\"mac\":\"m\",\"port\":\"a\"}" },
		{ { "port", "a", "m", NULL }, "{\"mac\":\"m\",\"port\":\"a\"}" },
		{ { "m", "blocked", NULL }, "{\"blocked\":true,\"mac\":\"m\"}" },
		{ { "on", "off", "vlan", "0", "m", "port", "vlan", NULL },
		  "{\"mac\":\"m\",\"on\":false,\"port\":\"vlan\",\"vlan\":0}" },
		{ { NULL }, NULL },
		{ { "m", NULL }, NULL },
		{ { "port", "a", NULL }, NULL },
		{ { "m", "port", NULL }, NULL },
		{ { "m", "port", "a", "blocked", NULL }, NULL },
		{ { "m", "port", "a", "port", "b", NULL }, NULL },
		{ { "m", "blocked", "m", NULL }, NULL },
		{ { "m", "blocked", "vlan", NULL }, NULL },
		{ { "m", "blocked", "vlan", "-1", NULL }, NULL },
		{ { "m", "blocked", "vlan", "4294967296", NULL }, NULL },
		{ { "m", "blocked", "after", "x", NULL }, NULL },
		{ { "m", "blocked", "on", NULL }, NULL },
	};
	char text[COMMAND_SYNOPSIS_SIZE];

	(void)state;
	assert_string_equal(print_synopsis(&every_row, text, sizeof(text)),
			    "put it [-i SEC] MAC port NAME | blocked [vlan N] [on on|off]");
	print_synopsis(&every_row, text, 21);
	assert_string_equal(text, "put it [-i SEC] MAC ");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		json_t *arguments = NULL;
		int err = read_arguments(&every_row, rows[i].words, &arguments);
		char *got;

		assert_int_equal(err, rows[i].want ? 0 : -EINVAL);
		if (err)
			continue;
		got = json_dumps(arguments, JSON_COMPACT | JSON_SORT_KEYS);
		assert_string_equal(got, rows[i].want);
		free(got);
		json_decref(arguments);
	}
}

static void a_command_has_one_word_or_two(void **state)
{
	static const struct {
		char *words[4];
		enum command command;
		unsigned taken;
	} rows[] = {
		{ { NULL }, COMMANDS, 0 },
		{ { "status", NULL }, COMMAND_STATUS, 1 },
		{ { "fdb", NULL }, COMMAND_FDB, 1 },
		{ { "fdb", "port", "add", NULL }, COMMAND_FDB, 1 },
		{ { "fdb", "add", "count", NULL }, COMMAND_FDB_ADD, 2 },
		{ { "fdb", "flush", NULL }, COMMAND_FDB_FLUSH, 2 },
		{ { "fdb", "ad", NULL }, COMMAND_FDB, 1 },
		{ { "fdb add", NULL }, COMMAND_FDB_ADD, 1 },
		{ { "fbd", "add", NULL }, COMMANDS, 1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char *const *words = rows[i].words;

		assert_int_equal(command_take(&words), rows[i].command);
		assert_ptr_equal(words, rows[i].words + rows[i].taken);
	}
}

static void arguments_of_a_request_are_held_against_the_table(void **state)
{
	static const struct {
		const char *arguments, *says; /* NULL: they are right */
	} rows[] = {
		{ "{\"mac\":\"m\",\"port\":\"a\"}", NULL },
		{ "{\"mac\":\"m\",\"blocked\":true,\"after\":\"x\",\"vlan\":0}", NULL },
		{ "{}", "put it: the arguments are \"mac\", a text; \"port\", a text; or "
			"\"blocked\", true; \"vlan\", a number (or without); " },
		{ "{\"mac\":\"m\"}", "the arguments are" },
		{ "{\"mac\":\"m\",\"blocked\":true,\"port\":\"a\"}", "the arguments are" },
		{ "{\"mac\":1,\"port\":\"a\"}", "'mac' is none of them, or of another kind: " },
		{ "{\"mac\":\"m\",\"port\":null}", "'port' is none" },
		{ "{\"mac\":\"m\",\"blocked\":false}", "'blocked' is none" },
		{ "{\"mac\":\"m\",\"port\":\"a\",\"vlan\":-1}", "'vlan' is none" },
		{ "{\"mac\":\"m\",\"port\":\"a\",\"vlan\":1.5}", "'vlan' is none" },
		{ "{\"mac\":\"m\",\"port\":\"a\",\"on\":\"on\"}", "'on' is none" },
		{ "{\"mac\":\"m\",\"port\":\"a\",\"mtu\":1}", "'mtu' is none" },
	};
	static const struct command_row plain = { "plain", "", "" };
	char wrong[COMMAND_WRONG_SIZE];
	json_t *one = json_pack("{s:i}", "x", 1);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		json_t *arguments = json_loads(rows[i].arguments, 0, NULL);

		assert_non_null(arguments);
		wrong[0] = '\0';
		assert_int_equal(check_members(&every_row, arguments, wrong),
				 rows[i].says ? -EINVAL : 0);
		if (rows[i].says && !strstr(wrong, rows[i].says))
			print_error("%s: %s\n", rows[i].arguments, wrong);
		assert_non_null(strstr(wrong, rows[i].says ? rows[i].says : ""));
		json_decref(arguments);
	}
	assert_int_equal(check_members(&every_row, NULL, wrong), -EINVAL);
	assert_int_equal(check_members(&plain, NULL, wrong), 0);
	assert_int_equal(check_members(&plain, one, wrong), -EINVAL);
	assert_string_equal(wrong, "plain: takes no arguments");
	json_decref(one);
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
	assert_non_null(strstr(text, "== 'stats' ]] && words+=\"--count= \"\n"));
	assert_non_null(strstr(text, "\t'set:port') words=$(_millracectl_ports \"$socket\") ;;\n"
				     "\t'set:promiscuous') words=\"on off\" ;;\n"
				     "\t'set:'*) next=\"port promiscuous \"; "));
	assert_non_null(strstr(text, "\t'fdb:'*) next=\"port vlan forward \"; [[ $typed ]] || "
				     "next+=\"count add del flush \" ;;\n"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_command_is_found_by_its_name),
		cmocka_unit_test(only_looking_is_read_only),
		cmocka_unit_test(a_slip_of_the_finger_is_understood),
		cmocka_unit_test(words_become_arguments_or_are_refused),
		cmocka_unit_test(optional_words_stand_in_any_order),
		cmocka_unit_test(a_command_has_one_word_or_two),
		cmocka_unit_test(arguments_of_a_request_are_held_against_the_table),
		cmocka_unit_test(the_completion_has_every_command_and_option),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
