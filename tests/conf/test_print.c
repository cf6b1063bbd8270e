/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/conf/print.c"

#include <stdlib.h>

#include "conf/file.h"
#include "conf_equal.h"
#include "unit.h"

#define WORDS_MAX 64

static struct options options;

/* A conf of flags, given as one string. */
static void conf_of_flags(const char *line, struct conf *conf)
{
	static char copy[8192];
	char *argv[WORDS_MAX] = { "millraced" }, *rest = copy, *word;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	while ((word = strsep(&rest, " ")))
		if (*word && argc < WORDS_MAX - 1)
			argv[argc++] = word;
	if (options_parse(argc, argv, &options, conf) != OPTIONS_RUN)
		fail_msg("%s: %s", line, options.error);
}

static void conf_of_text(const char *text, struct conf *conf)
{
	FILE *in = fmemopen((void *)text, strlen(text), "r");
	struct diag diag = { 0 };
	char said[1024];

	if (conf_parse(in, conf, &diag))
		fail_msg("%s\n%s", diag_print(&diag, 0, said, sizeof(said)), text);
	fclose(in);
	diag_fini(&diag);
}

static char *text_of(const struct conf *conf)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	conf_print(out, conf);
	fclose(out);
	return text;
}

static char *flags_of(const struct conf *conf)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	bool some = conf_print_flags(out, conf);

	fclose(out);
	assert_int_equal(some, text[0] != '\0');
	return text;
}

/* Printed and parsed, a conf is the same, and its text too. */
static void check_identity(const struct conf *conf)
{
	struct conf again = { 0 };
	char *text = text_of(conf), *second;

	conf_of_text(text, &again);
	if (!conf_equal(conf, &again))
		print_error("not the same conf:\n%s", text);
	assert_true(conf_equal(conf, &again));
	second = text_of(&again);
	assert_string_equal(text, second);
	free(text);
	free(second);
	conf_fini(&again);
}

static void flags_become_a_file_and_flags_again(void **state)
{
	/* {flags, as they are printed if that is not the same} */
	static const struct {
		const char *flags, *want;
	} rows[] = {
		{ "-r -i a", NULL },
		{ "-l -i a", NULL },
		{ "-l -i a -i b", NULL },
		{ "-i b -i a -q 1,0,5-7", "-r -i b -i a -q 1,0,5-7" },
		{ "-r -i a -i b -q all -p -B", "-r -i a -i b -q auto --wait=poll,busy-poll" },
		{ "-r -i a -B", "-r -i a --wait=adaptive,busy-poll" },
		{ "-r -i a -B --wait=spin", "-r -i a --wait=spin,busy-poll" },
		{ "-r -i a -p", "-r -i a --wait=poll" },
		{ "-r -i a -p --wait=poll", "-r -i a --wait=poll" },
		{ "-r -i a --wait=adaptive", "-r -i a" },
		{ "-l -i a -i b -S -c", NULL },
		{ "-l -N --replace -i a -z -m -b 7 -f 3000 -u -M -F",
		  "-l -i a -N --replace -z -m -b 7 -f 3000 -u -M -F" },
		{ "-r -i a --on-program-lost=exit", NULL },
		{ "-r -i a --replace --attach-method=dispatcher", NULL },
		{ "-r -i a --attach-method=external --xskmap=/sys/fs/bpf/m", NULL },
		{ "-r -i a -b 64 -q 0 -W OTHER", "-r -i a" },
		{ "-r -i a --ring-size=16", NULL },
		{ "-r -i a --ring-size=16 --frames-per-queue=80 -b 16", "-r -i a --ring-size=16" },
		{ "-r -i a -b 15 --ring-size=16 --frames-per-queue=81", NULL },
		{ "-r -i a -W fifo -U 50 --cpus=3,1", "-r -i a -W FIFO -U 50 --cpus=3,1" },
		{ "-r -i a -n 7 -d 9 --confirm=30 -x -a -I eth -Q --json --keep-privileges", NULL },
		{ "-r -i a --huge-pages --user=u --control-socket=/run/x --control-group=g", NULL },
		{ "-t -i a", NULL },
		{ "-t -i a -V -y", NULL },
		{ "-t -i a -V -y -s 64", "-t -i a --sizes=64-66 -V -y" },
		{ "-t -i a -V -y -s 66", "-t -i a -V -y" },
		{ "-t -i a -V -y --sizes=64-70", "-t -i a --sizes=64-70 -V -y" },
		{ "-t -i a --sizes=imix --pps=1000000000", NULL },
		{ "-t -i a --sizes=64-64", "-t -i a" },
		{ "-t -i a -F -C 9223372036854775807 -O 0 -s 9728", NULL },
		{ "-t -i a -P 0x0000beef -V -J 0 -K 7 -G ff:ff:ff:ff:ff:ff -H 00:00:00:00:00:00 -T 1 -w TAI",
		  NULL },
		{ "-r -i a' -i $(b)", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct conf conf, again;
		char *flags;

		conf_of_flags(rows[i].flags, &conf);
		check_identity(&conf);
		flags = flags_of(&conf);
		if (i == ARRAY_SIZE(rows) - 1) {
			assert_string_equal(flags, "millraced -r -i 'a'\\''' -i '$(b)'");
		} else {
			const char *want = rows[i].want ? rows[i].want : rows[i].flags;

			conf_of_flags(flags + strlen("millraced"), &again);
			assert_true(conf_equal(&conf, &again));
			conf_fini(&again);
			if (strcmp(flags + strlen("millraced "), want) != 0)
				print_error("%s\n", flags);
			assert_string_equal(flags + strlen("millraced "), want);
		}
		free(flags);
		conf_fini(&conf);
	}
}

static void only_what_is_no_default_is_printed(void **state)
{
	static const char text[] =
		"[millrace]\nframe-size = 2048\nring-size = 512\n"
		"[port wan]\ndevice = eth0\nqueues = auto\nattach = auto\n"
		"[port lan]\ndevice = eth1\nqueues = 0,2-3\n"
		"promiscuous = on\nvlan-offload = keep\n"
		"[forward main]\nports = lan, wan\nmode = patch\nwait = adaptive\n"
		"batch = 64\nneed-wakeup = yes\nframe-size = 4096\n"
		"[port x]\ndevice = eth2\n[forward b]\nmode = rxdrop\nports = x\n"
		"wait = spin\nneed-wakeup = no\n";
	static const char want[] =
		"[port wan]\ndevice = eth0\n\n"
		"[port lan]\ndevice = eth1\nqueues = 0,2-3\n"
		"promiscuous = on\nvlan-offload = keep\n\n"
		"[port x]\ndevice = eth2\n\n"
		"[forward main]\nmode = patch\nports = lan wan\nring-size = 512\n\n"
		"[forward b]\nmode = rxdrop\nports = x\nwait = spin\n"
		"need-wakeup = no\nframe-size = 2048\nring-size = 512\n";
	struct conf conf;
	char *printed;

	(void)state;
	conf_of_text(text, &conf);
	printed = text_of(&conf);
	assert_string_equal(printed, want);
	check_identity(&conf);
	free(printed);
	conf_fini(&conf);
}

static void a_list_of_any_length_is_printed_in_lines_that_can_be_read(void **state)
{
	struct conf conf;

	(void)state;
	conf_of_text("[port a]\ndevice = eth0\n[forward f]\nmode = rxdrop\nports = a\n", &conf);
	conf.port[0].all_queues = false;
	for (unsigned i = 0; i < NUMBER_LIST_MAX; i++) {
		conf.port[0].queues.value[i] = 4094 - 2 * i;
		conf.forward[0].cpus.value[i] = 4 * i;
	}
	conf.port[0].queues.count = conf.forward[0].cpus.count = NUMBER_LIST_MAX;
	check_identity(&conf);
	conf_fini(&conf);
}

static void sixteen_ports_with_long_names(void **state)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct conf conf;

	(void)state;
	for (unsigned i = 0; i < CONF_PORTS_MAX; i++)
		fprintf(out, "[port %031u]\ndevice = e%0*u\n", i, CONF_IFNAME_SIZE - 2, i);
	fputs("[forward abcdefghijklmnopqrstuvwxyzABCDE]\nmode = rxdrop\nports =\n", out);
	for (unsigned i = 0; i < CONF_PORTS_MAX; i++)
		fprintf(out, " %031u\n", i);
	fclose(out);
	conf_of_text(text, &conf);
	check_identity(&conf);
	conf_fini(&conf);
	free(text);
}

static void stations_are_printed_as_they_are_read(void **state)
{
	struct conf conf;
	char *text;

	(void)state;
	conf_of_text("[port a]\ndevice = a\nvlan-mode = access 10\n[port b]\ndevice = b\n"
		     "vlan-mode = trunk 10,20\n[forward f]\nmode = bridge\nports = a b\n[fdb f]\n"
		     "static = 02:00:00:00:00:03 b vlan 20\nblocked = 02:00:00:00:00:02 vlan 20\n"
		     "static = 02:00:00:00:00:01 a\n",
		     &conf);
	text = text_of(&conf);
	assert_non_null(strstr(text, "\n\n[fdb f]\nstatic = 02:00:00:00:00:01 a vlan 10\n"
				     "blocked = 02:00:00:00:00:02 vlan 20\n"
				     "static = 02:00:00:00:00:03 b vlan 20\n"));
	free(text);
	check_identity(&conf);
	conf_fini(&conf);
}

static void what_flags_cannot_say_has_none(void **state)
{
	static const char *const rows[] = {
		"[port a]\ndevice = a\n[port b]\ndevice = b\n[forward f]\nmode = rxdrop\nports = a\n"
		"[forward g]\nmode = rxdrop\nports = b\n",
		"[port a]\ndevice = a\npromiscuous = on\n[port b]\ndevice = b\n[forward f]\n"
		"mode = patch\nports = a b\n",
		"[port a]\ndevice = a\n[port b]\ndevice = b\nattach = skb\n[forward f]\nmode = patch\n"
		"ports = a b\n",
		"[port a]\ndevice = a\n[port b]\ndevice = b\n[forward f]\nmode = rxdrop\nports = b\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct conf conf;
		char *flags;

		conf_of_text(rows[i], &conf);
		flags = flags_of(&conf);
		assert_string_equal(flags, "");
		free(flags);
		conf_fini(&conf);
	}
}

/* Any combination of values, a few thousand of them by a generator of its own. */
static uint32_t random_state;

static unsigned random_below(unsigned limit)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % limit;
}

static void random_port(struct conf_port *port, unsigned index)
{
	conf_port_defaults(port, true);
	snprintf(port->name, sizeof(port->name), "p%u", index);
	snprintf(port->device, sizeof(port->device), "eth%u", index);
	port->all_queues = random_below(2);
	for (unsigned i = 0; !port->all_queues && i <= random_below(9); i++)
		port->queues.value[port->queues.count++] = 3 * i + random_below(3);
	port->attach = random_below(3);
	port->zero_copy = random_below(port->attach == CONF_ATTACH_SKB ? 1 : 3);
	port->promiscuous = random_below(3);
	port->replace = random_below(2);
	port->on_program_lost = random_below(2);
	if (port->attach == CONF_ATTACH_AUTO && !port->replace && !port->on_program_lost &&
	    random_below(2)) {
		port->attach_method = CONF_ATTACH_METHOD_EXTERNAL;
		snprintf(port->xskmap, sizeof(port->xskmap), "/sys/fs/bpf/m%u", index);
	}
	if (port->attach_method == CONF_ATTACH_METHOD_LINK && random_below(2))
		port->attach_method = CONF_ATTACH_METHOD_DISPATCHER;
	port->keep_vlan_offload = random_below(2);
	port->wait_for_device = random_below(2);
	port->mtu_stops = random_below(2);
}

static void random_forward(struct conf_forward *forward)
{
	conf_forward_defaults(forward);
	snprintf(forward->name, sizeof(forward->name), "f");
	forward->wait = (enum conf_wait)random_below(3);
	forward->busy_poll = random_below(2);
	forward->no_need_wakeup = random_below(2);
	forward->frags = random_below(2);
	forward->unaligned = random_below(2);
	forward->shared_umem = random_below(2);
	forward->huge_pages = random_below(2);
	forward->ring_size = 64U << random_below(10);
	forward->batch = 1 + random_below(64);
	forward->frames_per_queue = conf_ring_frames(forward) + random_below(2);
	forward->frame_size = forward->unaligned ? 2048 + random_below(2049) : 4096;
	forward->priority = random_below(100);
	forward->realtime = forward->priority;
	for (unsigned i = 0; i < random_below(9); i++)
		forward->cpus.value[forward->cpus.count++] = 3 * i + random_below(3);
}

static void random_tx(struct conf_tx *tx)
{
	tx->count = random_below(3);
	tx->retries = tx->count ? random_below(9) : 3;
	tx->timestamp = random_below(2);
	tx->vlan = random_below(2);
	tx->vlan_id = tx->vlan ? random_below(4096) : 1;
	tx->size_min = 66 + random_below(900);
	tx->size_max = tx->size_min + random_below(900) * random_below(2);
	tx->pattern = random_below(UINT16_MAX);
	tx->cycle_us = random_below(3);
	tx->pps = tx->cycle_us ? 0 : random_below(3);
	tx->source_given = random_below(2);
	tx->source[5] = tx->source_given ? (uint8_t)random_below(256) : 0;
	tx->clock = tx->cycle_us && random_below(2) ? CLOCK_TAI : CLOCK_MONOTONIC;
}

static void printing_then_parsing_is_the_identity(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 3000; round++) {
		struct conf conf = { .ports = 1 + random_below(3), .forwards = 1 };

		conf.port = calloc(conf.ports, sizeof(*conf.port));
		conf.forward = calloc(1, sizeof(*conf.forward));
		random_forward(conf.forward);
		conf.forward->mode = conf.ports == 2 ? CONF_MODE_PATCH : random_below(2);
		if (conf.forward->mode == CONF_MODE_TXPUSH)
			random_tx(&conf.forward->tx);
		conf.forward->ports = conf.ports;
		for (unsigned i = 0; i < conf.ports; i++) {
			random_port(&conf.port[i], i);
			conf.forward->port[i] = &conf.port[conf.ports - 1 - i];
		}
		conf.keep_privileges = random_below(2);
		check_identity(&conf);
		conf_fini(&conf);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flags_become_a_file_and_flags_again),
		cmocka_unit_test(only_what_is_no_default_is_printed),
		cmocka_unit_test(a_list_of_any_length_is_printed_in_lines_that_can_be_read),
		cmocka_unit_test(sixteen_ports_with_long_names),
		cmocka_unit_test(stations_are_printed_as_they_are_read),
		cmocka_unit_test(what_flags_cannot_say_has_none),
		cmocka_unit_test(printing_then_parsing_is_the_identity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
