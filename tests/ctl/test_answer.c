/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/ctl/answer.c"
#include "../../src/ctl/answer_json.c"

#include "unit.h"

#include "sample.h"

static struct sample sample;
static const struct answerer answerer = { &sample_ops, &sample };

static char *ask(enum rights rights, const char *line)
{
	char *answer = answer_request(&answerer, rights, line, strlen(line));

	assert_non_null(answer);
	assert_ptr_equal(strchr(answer, '\n'), answer + strlen(answer) - 1); /* one line */
	return answer;
}

/* The result of a command without arguments; a new reference. */
static json_t *result_of(const char *command)
{
	char request[128], *answer;
	json_t *root, *result;

	snprintf(request, sizeof(request), "{\"version\":1,\"command\":\"%s\"}", command);
	answer = ask(RIGHTS_READ, request);
	root = json_loads(answer, 0, NULL);
	assert_true(json_is_true(json_object_get(root, "ok")));
	assert_int_equal(json_integer_value(json_object_get(root, "version")), 1);
	result = json_incref(json_object_get(root, "result"));
	assert_non_null(result);
	json_decref(root);
	free(answer);
	return result;
}

static int fresh_sample(void **state)
{
	(void)state;
	sample_init(&sample);
	return 0;
}

static void what_is_no_request_is_told_so(void **state)
{
	static const struct {
		const char *line, *code, *says;
	} rows[] = {
		{ "", "bad_request", "not JSON" },
		{ "\n", "bad_request", "not JSON" },
		{ "hello\n", "bad_request", "not JSON" },
		{ "{\"version\":1,\"command\":\"status\"", "bad_request", "not JSON" },
		{ "{\"version\":1,\"command\":\"status\"} x", "bad_request", "not JSON" },
		{ "{\"version\":1,\"version\":1,\"command\":\"status\"}", "bad_request",
		  "not JSON: duplicate" },
		{ "{\"version\":1,\"command\":\"\xff\"}", "bad_request", "not JSON" },
		{ "[]", "bad_request", "a request is an object such as" },
		{ "{}", "bad_request", "a request is an object such as" },
		{ "{\"version\":1}", "bad_request", "a request is an object such as" },
		{ "{\"command\":\"status\"}", "bad_request", "a request is an object such as" },
		{ "{\"version\":1,\"command\":7}", "bad_request", "a request is an object" },
		{ "{\"version\":\"1\",\"command\":\"status\"}", "bad_request",
		  "a request is an object" },
		{ "{\"version\":1,\"command\":\"status\",\"args\":{}}", "bad_request", "'args'" },
		{ "{\"version\":2,\"command\":\"status\"}", "unsupported_version",
		  "this daemon speaks 1" },
		{ "{\"version\":1,\"command\":\"stat\"}", "unknown_command",
		  "did you mean stats?" },
		{ "{\"version\":1,\"command\":\"\"}", "unknown_command", "no such command" },
		{ "{\"version\":1,\"command\":\"status\",\"arguments\":[]}", "bad_arguments",
		  "must be an object" },
		{ "{\"version\":1,\"command\":\"status\",\"arguments\":null}", "bad_arguments",
		  "must be an object" },
		{ "{\"version\":1,\"command\":\"status\",\"arguments\":{\"x\":1}}", "bad_arguments",
		  "takes no arguments" },
		{ "{\"version\":1,\"command\":\"set\"}", "bad_arguments", "\"port\"" },
		{ "{\"version\":1,\"command\":\"set\",\"arguments\":{\"port\":\"wan\"}}",
		  "bad_arguments", "\"promiscuous\"" },
		{ "{\"version\":1,\"command\":\"set\",\"arguments\":"
		  "{\"port\":\"wan\",\"promiscuous\":\"on\"}}",
		  "bad_arguments", "\"promiscuous\"" },
		{ "{\"version\":1,\"command\":\"set\",\"arguments\":"
		  "{\"port\":\"wan\",\"promiscuous\":true,\"mtu\":1}}",
		  "bad_arguments", "\"promiscuous\"" },
		{ "{\"version\":1,\"command\":\"set\",\"arguments\":"
		  "{\"port\":\"x\",\"promiscuous\":true}}",
		  "failed", "none of that name" },
		{ "{\"version\":1,\"command\":\"fdb flush\",\"arguments\":{\"port\":\"none\"}}",
		  "failed", "port 'none': there is none of that name" },
		{ "{\"version\":1,\"command\":\"fdb add\",\"arguments\":{\"port\":\"none\"}}",
		  "bad_arguments", "fdb add: the arguments are \"mac\", a text; " },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char *answer = ask(RIGHTS_ALL, rows[i].line);
		json_t *root = json_loads(answer, 0, NULL), *error = json_object_get(root, "error");
		const char *message = json_string_value(json_object_get(error, "message"));

		assert_true(json_is_false(json_object_get(root, "ok")));
		assert_string_equal(json_string_value(json_object_get(error, "code")),
				    rows[i].code);
		if (!strstr(message, rows[i].says))
			print_error("%s: %s\n", rows[i].line, message);
		assert_non_null(strstr(message, rows[i].says));
		json_decref(root);
		free(answer);
	}
}

static void members_of_the_group_look_and_change_nothing(void **state)
{
	static const char add[] = "{\"version\":1,\"command\":\"fdb add\",\"arguments\":"
				  "{\"mac\":\"02:00:00:00:00:01\",\"port\":\"wan\"}}";
	static const char del[] = "{\"version\":1,\"command\":\"fdb del\",\"arguments\":"
				  "{\"mac\":\"02:00:00:00:00:01\"}}";
	static const char set[] = "{\"version\":1,\"command\":\"set\",\"arguments\":"
				  "{\"port\":\"wan\",\"promiscuous\":true}}";

	(void)state;
	for (unsigned i = 0; i < COMMANDS; i++) {
		enum command command = (enum command)i;
		char request[256], *answer;

		snprintf(request, sizeof(request), "{\"version\":1,\"command\":\"%s\"}",
			 command_row(command)->name);
		for (enum rights rights = RIGHTS_NONE; rights <= RIGHTS_ALL; rights++) {
			bool may = rights == RIGHTS_ALL ||
				   (rights == RIGHTS_READ && command_row(command)->read_only);

			answer = ask(rights, command == COMMAND_SET	? set :
					     command == COMMAND_FDB_ADD ? add :
					     command == COMMAND_FDB_DEL ? del :
									  request);
			assert_int_equal(strstr(answer, "\"code\":\"denied\"") == NULL, may);
			assert_int_equal(strstr(answer, "\"ok\":true") != NULL, may);
			free(answer);
		}
	}
	assert_int_equal(sample.reloads, 1);
	assert_int_equal(sample.set, 1);
	assert_true(sample.set_on);
	assert_string_equal(sample.set_port, "wan");
}

static void a_reload_that_fails_lists_what_is_wrong(void **state)
{
	static const char request[] = "{\"version\":1,\"command\":\"reload\"}";
	char *answer;

	(void)state;
	sample.errors = 2;
	answer = ask(RIGHTS_ALL, request);
	assert_string_equal(
		answer,
		"{\"version\":1,\"ok\":false,\"error\":{\"code\":\"failed\",\"message\":"
		"\"not reloaded; the running configuration stays\",\"errors\":"
		"[\"a.conf:3: port wan: no such key\",\"a.conf:3: port wan: no such key\"]}}\n");
	free(answer);
	sample.errors = 0;
	answer = ask(RIGHTS_ALL, request);
	assert_string_equal(answer, "{\"version\":1,\"ok\":true,\"result\":{\"generation\":6}}\n");
	free(answer);
}

static void a_port_that_is_gone_has_a_history_and_no_program(void **state)
{
	json_t *ports = result_of("ports");
	json_t *lan = json_array_get(json_object_get(ports, "ports"), 1), *program, *attach;
	char *text = json_dumps(json_object_get(lan, "history"),
				JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));

	(void)state;
	assert_string_equal(json_string_value(json_object_get(lan, "state")), "gone");
	assert_string_equal(json_string_value(json_object_get(lan, "reason")), "deleted");
	assert_string_equal(text, "[{\"age_seconds\":2.0,\"state\":\"gone\",\"reason\":"
				  "\"deleted\"},{\"age_seconds\":3.0,\"state\":\"up\","
				  "\"reason\":\"\"}]");
	program = json_object_get(lan, "program");
	attach = json_object_get(lan, "attach");
	assert_true(json_is_null(program) && json_is_null(attach));
	free(text);
	json_decref(ports);
}

static void status_is_to_the_character(void **state)
{
	char want[4096];
	json_t *status = result_of("status");
	char *text = json_dumps(status, JSON_COMPACT | JSON_PRESERVE_ORDER);

	(void)state;
	json_array_remove(json_object_get(status, "ports"), 1);
	json_array_remove(json_object_get(status, "workers"), 0);
	free(text);
	text = json_dumps(status, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
	snprintf(want, sizeof(want),
		 "{\"state\":\"running\",\"pid\":%d,\"version\":\"1.2\",\"uptime_seconds\":12.345,"
		 "\"configuration\":null,\"generation\":5,\"last_reload\":null,"
		 "\"confirm\":null,\"ports\":["
		 "{\"port\":\"wan\",\"device\":\"d0\",\"ifindex\":7,\"link\":\"up\","
		 "\"state\":\"up\",\"state_seconds\":3.0,\"reason\":\"\",\"history\":[{"
		 "\"age_seconds\":3.0,\"state\":\"up\",\"reason\":\"\"}],\"mtu\":1500,"
		 "\"driver\":\"veth\",\"rx_queues\":2,\"tx_queues\":4,\"attach\":\"native\","
		 "\"program\":{\"id\":100,\"name\":\"millrace\",\"tag\":\"decae08c01455707\"},"
		 "\"promiscuous\":true,"
		 "\"copies\":{\"copied\":31,\"dropped\":32,\"failed\":33},"
		 "\"queues\":[{\"queue\":0,\"forward\":\"main\",\"mode\":"
		 "\"patch\",\"worker\":0,\"cpu\":4,\"zero_copy\":false,\"need_wakeup\":true,"
		 "\"busy_poll\":\"off\",\"fill\":%llu,\"rx\":%llu,\"tx\":%llu,\"completion\":%llu,"
		 "\"kernel\":%lld}]}],\"workers\":[{\"worker\":1,\"forward\":\"main\",\"mode\":"
		 "\"patch\",\"wait\":\"poll\",\"fresh\":false,\"sockets\":[{\"port\":\"lan\","
		 "\"queue\":1}],\"cpu\":5,\"total\":10001,\"pool\":5000,\"kernel\":%lld,"
		 "\"lost\":%llu,\"hand_over\":61,\"handed\":71,\"reclaimed\":4,"
		 "\"balance\":%lld}]}",
		 getpid(), (unsigned long long)sample.socket[0].counts->fill,
		 (unsigned long long)sample.socket[0].counts->rx,
		 (unsigned long long)sample.socket[0].counts->tx,
		 (unsigned long long)sample.socket[0].counts->completion,
		 (long long)sample.socket[0].counts->kernel,
		 (long long)sample.socket[1].counts->kernel,
		 (unsigned long long)sample.socket[1].counts->lost,
		 (long long)worker_counts_balance(&sample.worker[1].counts));
	assert_string_equal(text, want);
	free(text);
	json_decref(status);
}

static void status_tells_of_the_file_and_the_last_reload(void **state)
{
	json_t *status, *reload;

	(void)state;
	sample.facts.configuration = "/etc/m.conf";
	sample.facts.reloaded = true;
	sample.facts.reload_errors = 3;
	sample.facts.reload_age_ns = 1500 * NSEC_PER_MSEC;
	status = result_of("status");
	assert_string_equal(json_string_value(json_object_get(status, "configuration")),
			    "/etc/m.conf");
	reload = json_object_get(status, "last_reload");
	assert_true(json_is_false(json_object_get(reload, "ok")));
	assert_int_equal(json_integer_value(json_object_get(reload, "errors")), 3);
	assert_true(json_real_value(json_object_get(reload, "age_seconds")) == 1.5);
	json_decref(status);

	sample.facts.reload_taken = true;
	status = result_of("status");
	reload = json_object_get(status, "last_reload");
	assert_true(json_is_true(json_object_get(reload, "ok")));
	assert_int_equal(json_integer_value(json_object_get(reload, "errors")), 3);
	json_decref(status);
}

static void who_confirms_is_told_what_it_did(void **state)
{
	static const char request[] = "{\"version\":1,\"command\":\"confirm\"}";
	json_t *status;
	char *answer, *text;

	(void)state;
	sample.confirm = -ENOENT;
	answer = ask(RIGHTS_ALL, request);
	assert_non_null(strstr(answer, "\"failed\""));
	assert_non_null(strstr(answer, "started without --confirm"));
	free(answer);

	sample.confirm = 0;
	sample.facts.confirm_asked = true;
	sample.facts.confirm_left_ns = 2500 * NSEC_PER_MSEC;
	status = result_of("status");
	text = json_dumps(json_object_get(status, "confirm"), JSON_COMPACT | JSON_PRESERVE_ORDER);
	assert_string_equal(text, "{\"confirmed\":false,\"left_seconds\":2.5}");
	free(text);
	json_decref(status);
	answer = ask(RIGHTS_ALL, request);
	assert_string_equal(answer, "{\"version\":1,\"ok\":true,\"result\":{\"confirmed\":true,"
				    "\"left_seconds\":2.5,\"already\":false}}\n");
	free(answer);
	sample.confirm = -EALREADY;
	answer = ask(RIGHTS_ALL, request);
	assert_non_null(strstr(answer, "\"confirmed\":true,\"left_seconds\":2.5,"
				       "\"already\":true"));
	free(answer);
}

/* A Linux path may be any bytes; JSON is UTF-8. */
static void names_that_are_no_utf8_are_readable_all_the_same(void **state)
{
	json_t *status;

	(void)state;
	sample.facts.configuration = "/etc/\xff.conf";
	status = result_of("status");
	assert_string_equal(json_string_value(json_object_get(status, "configuration")),
			    "/etc/?.conf");
	json_decref(status);
}

static void totals_are_sums_over_the_sockets(void **state)
{
	static const char *const names[] = { "rx_packets",	 "rx_bytes",	    "tx_packets",
					     "tx_bytes",	 "rx_dropped",	    "rx_ring_full",
					     "rx_invalid_descs", "tx_invalid_descs" };
	json_t *stats = result_of("stats"), *all = json_object_get(stats, "totals");
	json_t *sockets = json_object_get(stats, "sockets");
	json_t *first = json_array_get(sockets, 0), *second = json_array_get(sockets, 1);

	(void)state;
	assert_int_equal(json_object_size(all), ARRAY_SIZE(names) + 1);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		json_int_t sum = json_integer_value(json_object_get(first, names[i])) +
				 json_integer_value(json_object_get(second, names[i]));

		assert_true(sum > 0);
		assert_int_equal(json_integer_value(json_object_get(all, names[i])), sum);
	}
	for (int i = 0; i < DROP_REASONS; i++) {
		json_t *drops = json_object_get(all, "drops");

		assert_int_equal(json_object_size(drops), DROP_REASONS);
		assert_int_equal(
			json_integer_value(json_object_get(drops, drop_name((enum drop_reason)i))),
			sample.socket[0].counts->drops[i] + sample.socket[1].counts->drops[i]);
	}
	assert_string_equal(json_string_value(json_object_get(second, "port")), "lan");
	assert_string_equal(json_string_value(json_object_get(second, "forward")), "main");
	assert_int_equal(json_integer_value(json_object_get(second, "worker")), 1);
	for (int i = 0; i < KICK_RESULTS; i++)
		assert_int_equal(
			json_integer_value(json_object_get(json_object_get(second, "send_calls"),
							   kick_name((enum kick_result)i))),
			sample.socket[1].counts->kicks[i]);
	assert_true(json_real_value(json_object_get(stats, "seconds")) == 2.5);
	assert_true(json_is_true(json_object_get(stats, "current")));
	assert_int_equal(json_array_size(json_object_get(stats, "programs")), 2);
	assert_int_equal(json_array_size(json_object_get(stats, "workers")), 2);
	json_decref(stats);
}

static void copies_are_of_ports_that_may_have_some(void **state)
{
	json_t *stats = result_of("stats"), *status = result_of("status");
	char *text =
		json_dumps(json_object_get(stats, "copies"), JSON_COMPACT | JSON_PRESERVE_ORDER);

	(void)state;
	assert_string_equal(text, "[{\"port\":\"wan\",\"copied\":31,\"dropped\":32,"
				  "\"failed\":33}]");
	assert_true(json_is_null(
		json_object_get(json_array_get(json_object_get(status, "ports"), 1), "copies")));
	free(text);
	json_decref(stats);
	json_decref(status);
}

static void rules_are_those_of_the_daemon(void **state)
{
	json_t *result = result_of("rules"), *rule;

	(void)state;
	assert_int_equal(json_array_size(json_object_get(result, "rules")), 1);
	rule = json_array_get(json_object_get(result, "rules"), 0);
	assert_string_equal(json_string_value(json_object_get(rule, "rule")), "tcp dport 22");
	assert_int_equal(json_integer_value(json_object_get(rule, "frames")), 7);
	json_decref(result);
}

static void a_message_repeats_no_control_characters(void **state)
{
	char *answer = answer_error(ANSWER_FAILED, "a%sb", "\n\033\x7f");

	(void)state;
	assert_string_equal(answer, "{\"version\":1,\"ok\":false,\"error\":{\"code\":\"failed\","
				    "\"message\":\"a???b\"}}\n");
	free(answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_is_no_request_is_told_so, fresh_sample),
		cmocka_unit_test_setup(members_of_the_group_look_and_change_nothing, fresh_sample),
		cmocka_unit_test_setup(a_reload_that_fails_lists_what_is_wrong, fresh_sample),
		cmocka_unit_test_setup(a_port_that_is_gone_has_a_history_and_no_program,
				       fresh_sample),
		cmocka_unit_test_setup(status_is_to_the_character, fresh_sample),
		cmocka_unit_test_setup(status_tells_of_the_file_and_the_last_reload, fresh_sample),
		cmocka_unit_test_setup(who_confirms_is_told_what_it_did, fresh_sample),
		cmocka_unit_test_setup(names_that_are_no_utf8_are_readable_all_the_same,
				       fresh_sample),
		cmocka_unit_test_setup(totals_are_sums_over_the_sockets, fresh_sample),
		cmocka_unit_test_setup(rules_are_those_of_the_daemon, fresh_sample),
		cmocka_unit_test_setup(copies_are_of_ports_that_may_have_some, fresh_sample),
		cmocka_unit_test_setup(a_message_repeats_no_control_characters, fresh_sample),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
