/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/conf/options.c"

#include <stdlib.h>

#include "unit.h"

#define WORDS_MAX 48

static struct conf conf;
static struct options options;
#define error options.error

/* Parses a command line given as one string. */
static enum options_result parse(const char *line)
{
	char *argv[WORDS_MAX] = { "millraced" };
	char *copy = strdup(line), *rest = copy, *word;
	enum options_result result;
	int argc = 1;

	while ((word = strsep(&rest, " ")))
		if (*word && argc < WORDS_MAX)
			argv[argc++] = word;
	conf_fini(&conf);
	result = options_parse(argc, argv, &options, &conf);
	free(copy);
	return result;
}

static void defaults_are_xdpsocks(void **state)
{
	(void)state;
	assert_int_equal(parse("-i eth7"), OPTIONS_RUN);
	assert_int_equal(conf.forward->mode, CONF_MODE_RXDROP);
	assert_int_equal(conf.ports, 1);
	assert_string_equal(conf.port[0].device, "eth7");
	assert_int_equal(conf.port[0].queues.count, 1);
	assert_int_equal(conf.port[0].queues.value[0], 0);
	assert_false(conf.port[0].all_queues);
	assert_int_equal(conf.forward->batch, 64);
	assert_int_equal(conf.forward->frame_size, 4096);
	assert_int_equal(conf.forward->ring_size, 2048);
	assert_int_equal(conf.forward->frames_per_queue, 5 * 2048);
	assert_int_equal(conf.interval_s, 1);
	assert_int_equal(conf.duration_s, 0);
	assert_int_equal(conf.forward->tx.size_min, 64);
	assert_int_equal(conf.port[0].attach, CONF_ATTACH_AUTO);
	assert_int_equal(conf.port[0].zero_copy, CONF_ZERO_COPY_AUTO);
	assert_int_equal(conf.forward->wait, CONF_WAIT_ADAPTIVE);
	assert_false(conf.json);
	assert_false(conf.keep_privileges);
}

static void modes_follow_flags_and_ports(void **state)
{
	static const struct {
		const char *line;
		enum conf_mode want;
	} rows[] = {
		{ "-r -i a", CONF_MODE_RXDROP },	   { "--rxdrop -i a", CONF_MODE_RXDROP },
		{ "-t -i a", CONF_MODE_TXPUSH },	   { "--txonly -i a", CONF_MODE_TXPUSH },
		{ "--txpush -i a", CONF_MODE_TXPUSH },	   { "-l -i a", CONF_MODE_L2FWD },
		{ "-l -i a -i b", CONF_MODE_PATCH },	   { "-i b --l2fwd -i a", CONF_MODE_PATCH },
		{ "-r -i a -i b -i c", CONF_MODE_RXDROP },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(parse(rows[i].line), OPTIONS_RUN);
		assert_int_equal(conf.forward->mode, rows[i].want);
	}
}

static void every_flag_of_the_first_issue_is_understood(void **state)
{
	(void)state;
	assert_int_equal(parse("-l -i a -i b -q 0,2-3 -p -N -z -b 32 -f 2048 -n 5 -d 60 "
			       "--cpus=1,0 --ring-size=4096 --frames-per-queue=30000 --huge-pages "
			       "--json --keep-privileges"),
			 OPTIONS_RUN);
	assert_int_equal(conf.port[0].queues.count, 3);
	assert_int_equal(conf.port[0].queues.value[2], 3);
	assert_true(conf.forward->wait == CONF_WAIT_POLL && conf.forward->huge_pages && conf.json &&
		    conf.keep_privileges);
	assert_int_equal(conf.port[0].attach, CONF_ATTACH_NATIVE);
	assert_int_equal(conf.port[0].zero_copy, CONF_ZERO_COPY_REQUIRE);
	assert_int_equal(conf.forward->batch, 32);
	assert_int_equal(conf.forward->frame_size, 2048);
	assert_int_equal(conf.interval_s, 5);
	assert_int_equal(conf.duration_s, 60);
	assert_int_equal(conf.forward->cpus.count, 2);
	assert_int_equal(conf.forward->cpus.value[0], 1);
	assert_int_equal(conf.forward->ring_size, 4096);
	assert_int_equal(conf.forward->frames_per_queue, 30000);

	assert_int_equal(parse("--txonly --interface=a --queue=all --poll --xdp-skb --copy "
			       "--batch-size=1 --frame-size=4096 --interval=1 --duration=0 "
			       "--tx-pkt-count=179 --tx-pkt-size=1518"),
			 OPTIONS_RUN);
	assert_true(conf.port[0].all_queues);
	assert_int_equal(conf.port[0].attach, CONF_ATTACH_SKB);
	assert_int_equal(conf.port[0].zero_copy, CONF_ZERO_COPY_NEVER);
	assert_int_equal(conf.forward->tx.count, 179);
	assert_int_equal(conf.forward->tx.size_min, 1518);

	assert_int_equal(parse("-t -i a -q all -S -c -C 1 -s 64"), OPTIONS_RUN);
	assert_int_equal(parse("--help"), OPTIONS_HELP);
	assert_int_equal(parse("-h"), OPTIONS_HELP);
	assert_int_equal(parse("--version"), OPTIONS_VERSION);
}

static void a_default_batch_shrinks_to_a_small_ring(void **state)
{
	(void)state;
	assert_int_equal(parse("-i a --ring-size=16"), OPTIONS_RUN);
	assert_int_equal(conf.forward->batch, 16);
	assert_int_equal(conf.forward->frames_per_queue, 80);
}

static const struct {
	const char *line, *wanted_in_error;
} mistakes[] = {
	{ "", "no interface: give one with -i" },
	{ "-r -t -i a", "two modes" },
	{ "-l -t -i a", "two modes" },
	{ "-i a -i a", "given twice" },
	{ "-l -i a -i b -i c", "not 3" },
	{ "-S -N -i a", "-S and -N" },
	{ "-z -c -i a", "-z and -c" },
	{ "-S -z -i a", "-S and -z" },
	{ "-r -C 5 -i a", "-C, --tx-pkt-count: is about generated frames; it needs -t" },
	{ "-l -s 64 -i a", "it needs -t" },
	{ "-i a --pps=5", "--pps: is about generated frames; it needs -t" },
	{ "-i a -V", "-V, --tx-vlan: is about generated frames" },
	{ "-i a -y -r", "-y, --tstamp: is about generated frames" },
	{ "-t -i a -J 5", "-J 5: there is no tag without -V" },
	{ "-t -i a -K 5", "-K 5: there is no tag without -V" },
	{ "-t -i a -V -J 4096", "--tx-vlan-id=4096: must be 0 to 4095" },
	{ "-t -i a -V -K 8", "--tx-vlan-pri=8: must be 0 to 7" },
	{ "-t -i a -O 5", "-O 5: there is no last frame to wait for without -C" },
	{ "-t -i a -w TAI", "-w: nothing is timed without -T or -y" },
	{ "-t -i a -w UTC -y", "--clock=UTC: must be MONOTONIC, REALTIME, TAI or BOOTTIME" },
	{ "-t -i a --pps=5 -T 5", "--pps and -T exclude each other" },
	{ "-t -i a --pps=0", "--pps=0: must be 1 to 1000000000" },
	{ "-t -i a -T 0", "--tx-cycle=0: must be 1 to" },
	{ "-t -i a -P xyz", "--tx-pkt-pattern=xyz: not a pattern" },
	{ "-t -i a -P 0x", "not a pattern" },
	{ "-t -i a -P 123456789", "not a pattern" },
	{ "-t -i a -P -1", "not a pattern" },
	{ "-t -i a -G 02:00:00:00:00", "--tx-dmac=02:00:00:00:00: not a MAC address" },
	{ "-t -i a -G 02:00:00:00:00:02:", "not a MAC address" },
	{ "-t -i a -H 2:0:0:0:0:2", "--tx-smac=2:0:0:0:0:2: not a MAC address" },
	{ "-t -i a -H 03:00:00:00:00:02", "a group address, which no frame comes from" },
	{ "-t -i a --sizes=64", "--sizes=64: must be imix, or two sizes" },
	{ "-t -i a --sizes=1518-64", "must be imix, or two sizes" },
	{ "-t -i a --sizes=63-64", "must be imix, or two sizes" },
	{ "-t -i a --sizes=64-1518x", "must be imix, or two sizes" },
	{ "-t -i a --sizes=IMIX", "must be imix, or two sizes" },
	{ "-t -i a --sizes=64-5000", "--sizes: a frame of 5000 bytes, FCS included, does not" },
	{ "-t -i a --sizes=64-100 -s 64", "-s and --sizes exclude each other" },
	{ "-t -i a --sizes=imix -V -y", "have no room for -V with -y (66)" },
	{ "-i a -W RR", "--policy=RR: must be OTHER or FIFO" },
	{ "-i a -W FIFO", "-W FIFO: needs a priority; add -U 1" },
	{ "-i a -U 5", "-U 5: only FIFO has priorities; add -W FIFO" },
	{ "-i a -W FIFO -U 100", "--schpri=100: must be 0 to 99" },
	{ "-i a -I ", "--irq-string needs a value" },
	{ "-i a -q 1,1", "--queue=1,1: a number is given twice" },
	{ "-i a -q 4096", "0 to 4095" },
	{ "-i a -q x", "not a list of numbers" },
	{ "-i a -q -1", "not a list of numbers" },
	{ "-i a --cpus=0-", "--cpus=0-: not a list" },
	{ "-i a -b 0", "--batch-size=0: must be 1 to 1024" },
	{ "-i a -b 1025", "must be 1 to 1024" },
	{ "-i a -b 64k", "not a number" },
	{ "-i a -b -5", "not a number" },
	{ "-i a -b 32 --ring-size=16", "more than the rings hold (16)" },
	{ "-i a -f 3000", "--frame-size=3000: must be a power of two, 2048 or 4096; with -u" },
	{ "-i a -f 1024", "must be 2048 to 4096" },
	{ "-i a --ring-size=1000", "--ring-size=1000: must be a power of two" },
	{ "-i a --ring-size=2", "must be 16 to 65536" },
	{ "-i a -F --ring-size=32", "--ring-size=32: with -F at least 64" },
	{ "-i a --ring-size=131072", "must be 16 to 65536" },
	{ "-i a --frames-per-queue=10239", "the rings need at least 10240" },
	{ "-i a -n 0", "--interval=0" },
	{ "-i a -d 99999999999", "--duration=99999999999" },
	{ "-i a --confirm=86401", "--confirm=86401: must be 0 to 86400" },
	{ "-t -i a -s 63", "must be 64 to 9728" },
	{ "-t -i a -s 3845", "at most 3844" },
	{ "-t -i a -f 2048 -s 1797", "at most 1796" },
	{ "-t -i a -C 99999999999999999999", "--tx-pkt-count=" },
	{ "-i a --no-such-flag", "--no-such-flag: unknown option" },
	{ "-i a -e", "-e: unknown option" },
	{ "-i a -re", "-e: unknown option" },
	{ "-i a --poll=yes", "--poll takes no value" },
	{ "-i a -p --wait=spin", "-p and --wait exclude each other" },
	{ "-i a --wait=spin,poll", "--wait=spin,poll: must be adaptive, spin or poll" },
	{ "-i a --wait=", "--wait=: must be adaptive" },
	{ "-i", "--interface needs a value" },
	{ "-i a --ring-size", "--ring-size needs a value: --ring-size=N" },
	{ "-i a eth9", "'eth9': not an option" },
	{ "-i a --tx=5", "--tx=5: several options begin so" },
	{ "-i a --frame 5", "--frame: several options begin so" },
	{ "-i a -\xc3\xa9", "an option letter that is none" },
	{ "-i a -q 0-2000", "1024 of them at most" },
	{ "-i a -b 1\n2\x1b[31m", "--batch-size=1?2?[31m: not a number" },
	{ "-t -i a -s 5000", "(at most 3844); lower it, or use -F" },
};

static void a_mistake_gets_one_line_that_names_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(mistakes); i++) {
		enum options_result result = parse(mistakes[i].line);

		if (result != OPTIONS_WRONG || !strstr(error, mistakes[i].wanted_in_error))
			print_error("'%s': '%s'\n", mistakes[i].line, error);
		assert_int_equal(result, OPTIONS_WRONG);
		assert_non_null(strstr(error, mistakes[i].wanted_in_error));
		assert_null(strchr(error, '\n'));
	}
}

static void the_rest_of_xdpsocks_vocabulary_is_understood(void **state)
{
	static const uint8_t dst[] = { 0x02, 0xab, 0, 0, 0, 0xff }, src[] = { 4, 0, 0, 0, 0, 1 };

	(void)state;
	assert_int_equal(
		parse("-t -i a -m -B -u -f 3000 -M -F -C 7 -O 9 -s 9000 -P beef -V -J 4095 "
		      "-K 7 -G 02:ab:00:00:00:FF -H 04:00:00:00:00:01 -T 1000 -y -w tai "
		      "-W fifo -U 99 -x -a -I eth0 -Q -R"),
		OPTIONS_RUN);
	assert_true(conf.forward->no_need_wakeup && conf.forward->busy_poll &&
		    conf.forward->unaligned && conf.forward->shared_umem);
	assert_true(conf.forward->frags && conf.forward->tx.vlan && conf.forward->tx.timestamp &&
		    conf.forward->realtime);
	assert_true(conf.extra_stats && conf.app_stats && conf.quiet);
	assert_int_equal(conf.forward->frame_size, 3000);
	assert_int_equal(conf.forward->tx.count, 7);
	assert_int_equal(conf.forward->tx.retries, 9);
	assert_int_equal(conf.forward->tx.size_min, 9000);
	assert_int_equal(conf.forward->tx.size_max, 9000);
	assert_int_equal(conf.forward->tx.pattern, 0xbeef);
	assert_int_equal(conf.forward->tx.vlan_id, 4095);
	assert_int_equal(conf.forward->tx.vlan_priority, 7);
	assert_memory_equal(conf.forward->tx.destination, dst, 6);
	assert_memory_equal(conf.forward->tx.source, src, 6);
	assert_true(conf.forward->tx.source_given);
	assert_int_equal(conf.forward->tx.cycle_us, 1000);
	assert_int_equal(conf.forward->tx.clock, CLOCK_TAI);
	assert_int_equal(conf.forward->priority, 99);
	assert_string_equal(conf.irq_string, "eth0");
	assert_int_equal(parse("-t -i a --pps=1000 --sizes=imix"), OPTIONS_RUN);
	assert_int_equal(conf.forward->tx.pps, 1000);
	assert_int_equal(conf.forward->tx.sizes, CONF_SIZES_IMIX);
	assert_int_equal(parse("-t -i a --sizes=100-1518"), OPTIONS_RUN);
	assert_int_equal(conf.forward->tx.size_min, 100);
	assert_int_equal(conf.forward->tx.size_max, 1518);
}

/* As in xdpsock, where a frame of 64 bytes has no room for both a tag and a timestamp. */
static void a_size_that_the_headers_do_not_fit_is_raised(void **state)
{
	(void)state;
	assert_int_equal(parse("-t -i a -V -y"), OPTIONS_RUN);
	assert_int_equal(conf.forward->tx.size_min, 66);
	assert_int_equal(conf.forward->tx.size_max, 66);
	assert_int_equal(conf.forward->tx.size_asked, 0);
	assert_int_equal(parse("-t -i a -V -y -s 65"), OPTIONS_RUN);
	assert_int_equal(conf.forward->tx.size_max, 66);
	assert_int_equal(conf.forward->tx.size_asked, 65);
	assert_int_equal(parse("-t -i a -V -y --sizes=64-70"), OPTIONS_RUN);
	assert_int_equal(conf.forward->tx.size_min, 66);
	assert_int_equal(conf.forward->tx.size_max, 70);
	assert_int_equal(conf.forward->tx.size_asked, 64);
}

static void an_interface_name_of_any_length_is_safe(void **state)
{
	char line[400] = "-i ";

	(void)state;
	memset(line + 3, 'x', 300);
	assert_int_equal(parse(line), OPTIONS_WRONG);
	line[3 + 127] = '\0';
	assert_int_equal(parse(line), OPTIONS_RUN);
}

static void too_many_interfaces_are_refused(void **state)
{
	char line[400] = "-r";

	(void)state;
	for (int i = 0; i < CONF_PORTS_MAX; i++)
		snprintf(line + strlen(line), sizeof(line) - strlen(line), " -i%d", i);
	assert_int_equal(parse(line), OPTIONS_RUN);
	snprintf(line + strlen(line), sizeof(line) - strlen(line), " -iz");
	assert_int_equal(parse(line), OPTIONS_WRONG);
	assert_non_null(strstr(error, "more than 16"));
}

static void help_names_every_option(void **state)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	options_help(out);
	fclose(out);
	for_each_row(row)
	{
		char name[64];

		if (!row->name)
			continue;
		snprintf(name, sizeof(name), "--%s", row->name);
		assert_non_null(strstr(text, name));
		assert_non_null(strstr(text, row->help));
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_xdpsocks),
		cmocka_unit_test(modes_follow_flags_and_ports),
		cmocka_unit_test(every_flag_of_the_first_issue_is_understood),
		cmocka_unit_test(a_default_batch_shrinks_to_a_small_ring),
		cmocka_unit_test(a_mistake_gets_one_line_that_names_it),
		cmocka_unit_test(the_rest_of_xdpsocks_vocabulary_is_understood),
		cmocka_unit_test(a_size_that_the_headers_do_not_fit_is_raised),
		cmocka_unit_test(an_interface_name_of_any_length_is_safe),
		cmocka_unit_test(too_many_interfaces_are_refused),
		cmocka_unit_test(help_names_every_option),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
