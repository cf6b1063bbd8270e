/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "ctl/answer.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "ctl/answer_json.h"
#include "ctl/metrics.h"
#include "ctl/report_json.h"

static const char *const error_codes[ANSWER_ERRORS] = {
	[ANSWER_BAD_REQUEST] = "bad_request",
	[ANSWER_UNSUPPORTED_VERSION] = "unsupported_version",
	[ANSWER_UNKNOWN_COMMAND] = "unknown_command",
	[ANSWER_BAD_ARGUMENTS] = "bad_arguments",
	[ANSWER_DENIED] = "denied",
	[ANSWER_FAILED] = "failed",
	[ANSWER_LINE_TOO_LONG] = "line_too_long",
	[ANSWER_TOO_MANY_CLIENTS] = "too_many_clients",
};

/* One request on its way to its answer; either result or error is set. */
struct exchange {
	const struct answerer *answerer;
	enum rights rights;
	enum command command;
	json_t *arguments; /* borrowed; NULL: none */
	json_t *result;
	json_t *error;
};

/* --- answers --- */

/* Takes over the body. A newline ends every answer, and is nowhere else in it. */
static char *answer_line(bool good, json_t *body)
{
	json_t *root = json_object();
	char *text, *line = NULL;
	size_t len;

	json_object_set_new(root, "version", json_integer(COMMANDS_VERSION));
	json_object_set_new(root, "ok", json_boolean(good));
	if (json_object_set_new(root, good ? "result" : "error", body)) {
		json_decref(root);
		return NULL;
	}
	text = json_dumps(root, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
	json_decref(root);
	len = text ? strlen(text) : 0;
	if (text)
		line = realloc(text, len + sizeof("\n"));
	if (line)
		memcpy(line + len, "\n", sizeof("\n"));
	else
		free(text);
	return line;
}

static json_t *error_json(enum answer_error code, const char *message)
{
	json_t *error = json_object();

	json_object_set_new(error, "code", json_string(error_codes[code]));
	json_object_set_new(error, "message", json_text(message));
	return error;
}

static void __attribute__((format(printf, 3, 0)))
format_message(char *text, size_t size, const char *format, va_list args)
{
	vsnprintf(text, size, format, args);
	for (char *at = text; *at; at++) {
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = '?'; /* the message repeats what came in, which may be anything */
	}
}

char *answer_error(enum answer_error code, const char *format, ...)
{
	char message[512];
	va_list args;

	va_start(args, format);
	format_message(message, sizeof(message), format, args);
	va_end(args);
	return answer_line(false, error_json(code, message));
}

/* Notes the error that is the answer. */
static void __attribute__((format(printf, 3, 4)))
fail(struct exchange *exchange, enum answer_error code, const char *format, ...)
{
	char message[512];
	va_list args;

	va_start(args, format);
	format_message(message, sizeof(message), format, args);
	va_end(args);
	exchange->error = error_json(code, message);
}

/* --- the commands --- */

static void answer_status(struct exchange *exchange)
{
	const struct answerer *answerer = exchange->answerer;
	struct control_facts facts = { 0 };
	const struct report *report = answerer->ops->collect(answerer->context);

	answerer->ops->facts(answerer->context, &facts);
	exchange->result = answer_status_json(&facts, report);
}

static void answer_stats(struct exchange *exchange)
{
	const struct answerer *answerer = exchange->answerer;

	exchange->result = answer_stats_json(answerer->ops->collect(answerer->context));
}

static void answer_ports(struct exchange *exchange)
{
	const struct answerer *answerer = exchange->answerer;

	exchange->result = json_object();
	json_object_set_new(exchange->result, "ports",
			    answer_ports_json(answerer->ops->collect(answerer->context)));
}

static void answer_rules(struct exchange *exchange)
{
	const struct answerer *answerer = exchange->answerer;

	exchange->result = json_object();
	json_object_set_new(exchange->result, "rules",
			    answerer->ops->rules_json(answerer->context));
}

static void answer_plan(struct exchange *exchange)
{
	const struct answerer *answerer = exchange->answerer;
	char *text = answerer->ops->plan_text(answerer->context);

	if (text) {
		exchange->result = json_object();
		json_object_set_new(exchange->result, "plan",
				    answerer->ops->plan_json(answerer->context));
		json_object_set_new(exchange->result, "text", json_text(text));
	}
	free(text);
}

static void answer_metrics(struct exchange *exchange)
{
	const struct answerer *answerer = exchange->answerer;
	struct control_facts facts = { 0 };
	const struct report *report = answerer->ops->collect(answerer->context);
	char *text;

	answerer->ops->facts(answerer->context, &facts);
	text = metrics_text(&facts, report);
	if (text) {
		exchange->result = json_object();
		json_object_set_new(exchange->result, "text", json_text(text));
	}
	free(text);
}

static void answer_reload(struct exchange *exchange)
{
	const struct answerer *answerer = exchange->answerer;
	struct control_facts facts = { 0 };
	json_t *errors = json_array();
	int err = errors ? answerer->ops->reload(answerer->context, errors) : -ENOMEM;

	if (err) {
		fail(exchange, ANSWER_FAILED, "not reloaded; the running configuration stays");
		json_object_set(exchange->error, "errors", errors);
	} else {
		answerer->ops->facts(answerer->context, &facts);
		exchange->result = json_object();
		json_object_set_new(exchange->result, "generation", json_count(facts.generation));
	}
	json_decref(errors);
}

static void answer_set(struct exchange *exchange)
{
	const struct answerer *answerer = exchange->answerer;
	json_t *port = json_object_get(exchange->arguments, "port");
	json_t *on = json_object_get(exchange->arguments, "promiscuous");
	char error[256] = "";

	if (answerer->ops->set_promiscuous(answerer->context, json_string_value(port),
					   json_is_true(on), error, sizeof(error))) {
		fail(exchange, ANSWER_FAILED, "%s", error);
		return;
	}
	exchange->result = json_object();
	json_object_set(exchange->result, "port", port);
	json_object_set(exchange->result, "promiscuous", on);
}

static void answer_fdb(struct exchange *exchange)
{
	const struct answerer *answerer = exchange->answerer;
	char error[400] = "";

	exchange->result = answerer->ops->fdb(answerer->context, exchange->command,
					      exchange->arguments, error, sizeof(error));
	if (!exchange->result)
		fail(exchange, ANSWER_FAILED, "%s", error);
}

static void answer_confirm(struct exchange *exchange)
{
	const struct answerer *answerer = exchange->answerer;
	struct control_facts facts = { 0 };
	int err = answerer->ops->confirm(answerer->context);

	if (err && err != -EALREADY) {
		fail(exchange, ANSWER_FAILED,
		     "nothing waits to be confirmed: millraced was started without --confirm");
		return;
	}
	answerer->ops->facts(answerer->context, &facts);
	exchange->result = answer_confirm_json(&facts);
	json_object_set_new(exchange->result, "already", json_boolean(err == -EALREADY));
}

static void answer_version(struct exchange *exchange)
{
	const struct answerer *answerer = exchange->answerer;
	struct control_facts facts = { 0 };

	answerer->ops->facts(answerer->context, &facts);
	exchange->result = json_object();
	json_object_set_new(exchange->result, "version", json_text(facts.version));
	json_object_set_new(exchange->result, "protocol", json_integer(COMMANDS_VERSION));
}

static void (*const answers[COMMANDS])(struct exchange *exchange) = {
	[COMMAND_STATUS] = answer_status,   [COMMAND_STATS] = answer_stats,
	[COMMAND_PORTS] = answer_ports,	    [COMMAND_PLAN] = answer_plan,
	[COMMAND_METRICS] = answer_metrics, [COMMAND_RELOAD] = answer_reload,
	[COMMAND_FDB] = answer_fdb,	    [COMMAND_FDB_COUNT] = answer_fdb,
	[COMMAND_FDB_ADD] = answer_fdb,	    [COMMAND_FDB_DEL] = answer_fdb,
	[COMMAND_FDB_FLUSH] = answer_fdb,   [COMMAND_RULES] = answer_rules,
	[COMMAND_SET] = answer_set,	    [COMMAND_CONFIRM] = answer_confirm,
	[COMMAND_VERSION] = answer_version,
};

/* --- requests --- */

/* Members that a request may have. */
static bool is_member(const char *key)
{
	return !strcmp(key, "version") || !strcmp(key, "command") || !strcmp(key, "arguments");
}

/* The command asked for, or COMMANDS with an error. */
static enum command parse_request(struct exchange *exchange, json_t *request)
{
	json_t *version = json_object_get(request, "version");
	const char *name = json_string_value(json_object_get(request, "command"));
	enum command command;
	const char *key;
	json_t *value;

	exchange->arguments = json_object_get(request, "arguments");
	json_object_foreach(request, key, value)
	{
		if (is_member(key))
			continue;
		fail(exchange, ANSWER_BAD_REQUEST,
		     "'%.32s': a request has \"version\", \"command\" and \"arguments\" only", key);
		return COMMANDS;
	}
	if (!json_is_integer(version) || !name) {
		fail(exchange, ANSWER_BAD_REQUEST,
		     "a request is an object such as {\"version\":%d,\"command\":\"status\"}",
		     COMMANDS_VERSION);
		return COMMANDS;
	}
	if (json_integer_value(version) != COMMANDS_VERSION) {
		fail(exchange, ANSWER_UNSUPPORTED_VERSION, "version %lld: this daemon speaks %d",
		     (long long)json_integer_value(version), COMMANDS_VERSION);
		return COMMANDS;
	}
	command = command_find(name);
	if (command == COMMANDS) {
		const char *nearest = command_nearest(name);

		fail(exchange, ANSWER_UNKNOWN_COMMAND, "'%.32s': no such command%s%s%s", name,
		     nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
	}
	return command;
}

static void carry_out(struct exchange *exchange, enum command command)
{
	const struct command_row *row = command_row(command);
	const json_t *arguments = exchange->arguments;
	char wrong[COMMAND_WRONG_SIZE];

	if (exchange->rights == RIGHTS_NONE || (exchange->rights == RIGHTS_READ && !row->read_only))
		fail(exchange, ANSWER_DENIED,
		     "%s: only root and the daemon's own user (uid %u) may do that", row->name,
		     (unsigned)geteuid());
	else if (arguments && !json_is_object(arguments))
		fail(exchange, ANSWER_BAD_ARGUMENTS, "%s: \"arguments\" must be an object",
		     row->name);
	else if (command_check(command, arguments, wrong))
		fail(exchange, ANSWER_BAD_ARGUMENTS, "%s", wrong);
	else {
		exchange->command = command;
		answers[command](exchange);
	}
}

char *answer_request(const struct answerer *answerer, enum rights rights, const char *line,
		     size_t len)
{
	struct exchange exchange = { .answerer = answerer, .rights = rights };
	json_error_t error;
	json_t *request = json_loadb(line, len, JSON_REJECT_DUPLICATES, &error);
	enum command command;
	char *answer;

	if (!request) {
		return answer_error(ANSWER_BAD_REQUEST, "not JSON: %s (byte %d)", error.text,
				    error.position);
	}
	command = parse_request(&exchange, request);
	if (command != COMMANDS)
		carry_out(&exchange, command);
	if (exchange.error)
		answer = answer_line(false, exchange.error);
	else
		answer = answer_line(true, exchange.result);
	json_decref(request);
	return answer;
}
