/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A configuration file from any bytes. What is right keeps what conf.h promises, is printed, read
 * again as the same conf and printed the same; what is wrong is said in printable lines, which are the
 * file's. Flags, where there are equivalent ones, say the same.
 */
#include "../../src/conf/options.c"

#include "conf/conf_equal.h"
#include "conf/print.h"
#include "fuzz.h"

#define WORDS_MAX 128

static int parse_bytes(const uint8_t *data, size_t size, struct conf *conf, struct diag *diag)
{
	FILE *in = size ? fmemopen((void *)data, size, "r") : fopen("/dev/null", "re");
	int err;

	must(in);
	err = conf_parse(in, conf, diag);
	must(!fclose(in));
	return err;
}

static void check_findings(const struct diag *diag, const uint8_t *data, size_t size)
{
	unsigned lines = 1, before = 0;

	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	for (unsigned i = 0; i < diag->count; i++) {
		const struct diag_line *line = &diag->lines[i];

		must(line->line <= lines && line->line >= before);
		must(line->text[0]);
		for (const char *at = line->text; *at; at++)
			must((unsigned char)*at >= ' ' && *at != 0x7f);
		/* Then ours and inih's idea of a line would differ. */
		must(strcmp(line->text, "is not understood") != 0);
		before = line->line;
	}
}

static void check_forward(const struct conf *conf, const struct conf_forward *forward)
{
	must(conf_name_valid(forward->name, CONF_NAME_MAX));
	must(forward->ports >= 1 && forward->ports <= CONF_PORTS_MAX);
	must(forward->mode != CONF_MODE_L2FWD || forward->ports == 1);
	must(forward->mode != CONF_MODE_PATCH || forward->ports == (forward->host_port[0] ? 3 : 2));
	for (unsigned i = 0; i < forward->ports; i++)
		must(forward->port[i] >= conf->port && forward->port[i] < conf->port + conf->ports);
	must(number_is_power_of_two(forward->ring_size) && forward->batch <= forward->ring_size);
	must(forward->unaligned || number_is_power_of_two(forward->frame_size));
	must(forward->frames_per_queue >= conf_ring_frames(forward));
	must(forward->realtime == (forward->priority > 0));
}

static void check_conf(const struct conf *conf)
{
	must(conf->forwards >= 1);
	for (unsigned i = 0; i < conf->forwards; i++)
		check_forward(conf, &conf->forward[i]);
	for (unsigned i = 0; i < conf->ports; i++) {
		const struct conf_port *port = &conf->port[i];

		must(conf_name_valid(port->name, CONF_NAME_MAX) && port->device[0]);
		must(port->all_queues == !port->queues.count);
		for (unsigned j = 0; j < i; j++)
			must(strcmp(port->device, conf->port[j].device) != 0);
	}
}

static void check_printing(const struct conf *conf)
{
	char *text[2] = { NULL, NULL };
	size_t size[2];
	struct conf again;
	struct diag diag = { 0 };

	for (int i = 0; i < 2; i++) {
		FILE *out = open_memstream(&text[i], &size[i]);

		conf_print(out, i ? &again : conf);
		must(!fclose(out));
		if (!i)
			must(!parse_bytes((const uint8_t *)text[0], size[0], &again, &diag));
	}
	must(conf_equal(conf, &again));
	must(size[0] == size[1] && !memcmp(text[0], text[1], size[0]));
	free(text[0]);
	free(text[1]);
	conf_fini(&again);
	diag_fini(&diag);
}

/* Names are the flags' own. */
static void check_flags_of(const struct conf *conf)
{
	static struct options options;
	char *text = NULL, *rest, *word, *argv[WORDS_MAX];
	size_t size;
	FILE *out = open_memstream(&text, &size);
	bool some = conf_print_flags(out, conf);
	struct conf again;
	int argc = 0;

	must(!fclose(out));
	must(some == (size > 0));
	/* Words in quotes are the shell's to read. */
	rest = some && !strchr(text, '\'') ? text : NULL;
	while (rest && (word = strsep(&rest, " ")) && argc < WORDS_MAX - 1)
		argv[argc++] = word;
	argv[argc] = NULL;
	if (argc) {
		must(options_parse(argc, argv, &options, &again) == OPTIONS_RUN);
		must(again.ports == conf->ports && again.forward->mode == conf->forward->mode);
		for (unsigned i = 0; i < conf->ports; i++) {
			memcpy(again.port[i].name, conf->port[i].name, sizeof(again.port[i].name));
			must(same_port(again.port[i], conf->port[i]));
		}
		memcpy(again.forward->name, conf->forward->name, sizeof(again.forward->name));
		must(conf_equal(&again, conf));
		conf_fini(&again);
	}
	free(text);
}

/* NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's word */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct diag diag = { 0 };
	struct conf conf;
	int err = parse_bytes(data, size, &conf, &diag);

	must((err != 0) == (diag.errors > 0));
	check_findings(&diag, data, size);
	if (!err) {
		check_conf(&conf);
		check_printing(&conf);
		check_flags_of(&conf);
	}
	conf_fini(&conf);
	diag_fini(&diag);
	return 0;
}
