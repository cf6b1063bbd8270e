/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A line of the control socket from any bytes, by anybody: the first byte is their rights. Whatever comes
 * in, the answer is one line of JSON that keeps docs/control-protocol.md, and nobody changes anything who
 * may not.
 */
#include "../../src/ctl/answer.c"
#include "../../src/ctl/answer_json.c"
#include "../../src/ctl/commands.c"
#include "../../src/ctl/metrics.c"
#include "../../src/ctl/report.c"
#include "../../src/ctl/report_json.c"
#include "../../src/fwd/stats.c"

#include "../ctl/sample.h"
#include "fuzz.h"

static bool is_code(const char *code)
{
	for (int i = 0; i < ANSWER_ERRORS; i++) {
		if (!strcmp(error_codes[i], code))
			return true;
	}
	return false;
}

static void check_error(const json_t *error)
{
	const char *message = json_string_value(json_object_get(error, "message"));

	must(is_code(json_string_value(json_object_get(error, "code"))));
	must(message && message[0]);
	for (; *message; message++)
		must((unsigned char)*message >= ' ' && *message != 0x7f);
}

static void check_answer(const char *answer)
{
	json_t *root = json_loads(answer, JSON_REJECT_DUPLICATES, NULL);
	const json_t *good = json_object_get(root, "ok");

	must(strchr(answer, '\n') == answer + strlen(answer) - 1);
	must(json_object_size(root) == 3);
	must(json_integer_value(json_object_get(root, "version")) == COMMANDS_VERSION);
	must(json_is_boolean(good));
	if (json_is_true(good))
		must(json_is_object(json_object_get(root, "result")));
	else
		check_error(json_object_get(root, "error"));
	json_decref(root);
}

/* NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's word */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sample sample;
	const struct answerer answerer = { &sample_ops, &sample };
	enum rights rights;
	char *line, *answer;

	if (!size)
		return 0;
	rights = (enum rights)(data[0] % 3);
	/* In memory of its own, so that the first byte read behind it is seen. */
	line = malloc(size - 1 ? size - 1 : 1);
	memcpy(line, data + 1, size - 1);
	sample_init(&sample);
	sample.errors = data[0] >> 7;
	sample.facts.confirm_asked = data[0] & 0x40;
	sample.confirm = !sample.facts.confirm_asked ? -ENOENT : data[0] & 0x20 ? -EALREADY : 0;
	answer = answer_request(&answerer, rights, line, size - 1);
	must(answer);
	check_answer(answer);
	must(rights == RIGHTS_ALL || (!sample.set && !sample.reloads));
	must(rights != RIGHTS_NONE || !sample.collected);
	must(sample.set + sample.reloads <= 1);
	free(answer);
	free(line);
	return 0;
}
