/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/ctl/report.c"
#include "../../src/ctl/report_json.c"
#include "../../src/ctl/report_text.c"

#include <stdlib.h>

#include "unit.h"

static struct report_worker worker;
static struct report_worker workers[3];
static struct report_socket sock;
static struct report_program program;

static struct report sample(void)
{
	struct queue_counts *counts = &worker.counts.queue[0];
	struct report report = {
		.elapsed_ns = 2500000000ULL,
		.interval_ns = 500000000ULL,
		.sockets = 1,
		.programs = 1,
		.workers = 1,
		.socket = &sock,
		.program = &program,
		.worker = &worker,
	};

	worker = (struct report_worker){ .cpu = 1 };
	worker.counts =
		(struct worker_counts){ .total = 1000, .pool = 500, .reclaimed = 3, .queues = 1 };
	*counts = (struct queue_counts){ .rx_packets = 1234567,
					 .rx_bytes = 74074020,
					 .tx_packets = 1000,
					 .tx_bytes = 60000,
					 .fill = 400,
					 .rx = 30,
					 .tx = 20,
					 .completion = 10,
					 .lost = 2,
					 .kernel = 38 };
	counts->drops[DROP_RUNT] = 7;
	counts->rx_descriptors = 2469134;
	counts->tx_descriptors = 3000;
	counts->flooded = 12;
	counts->copies = 13;
	counts->probes = 14;
	counts->partial_checksums = 9;
	for (int i = 0; i < CALL_COUNTS; i++)
		counts->calls[i] = 100 + (uint64_t)i;
	sock = (struct report_socket){ .interface = "d0",
				       .mode = mode_of(CONF_MODE_TXPUSH),
				       .queue = 3,
				       .native = true,
				       .need_wakeup = true,
				       .poll = true,
				       .counts = counts };
	sock.stats = (struct xsk_stats){ 1, 2, 3, 4, 5, 6 };
	program = (struct report_program){ .interface = "d0", .seen = 50, .passed = 20 };
	return report;
}

static char *text_of_report(int (*write)(FILE *, const struct report *),
			    const struct report *report)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(write(out, report), 0);
	fclose(out);
	return text;
}

static char *text_of(int (*write)(FILE *, const struct report *))
{
	struct report report = sample();

	return text_of_report(write, &report);
}

static int write_first(FILE *out, const struct report *report)
{
	return report_text(out, report, NULL);
}

static int write_second(FILE *out, const struct report *report)
{
	struct queue_counts old = { .rx_packets = 1234067,
				    .tx_packets = 1000,
				    .rx_descriptors = 2469034,
				    .tx_descriptors = 1500,
				    .calls = { 0, 1, 2, 3, 4 } };
	struct report_socket old_sockets[2] = { sock, sock };
	struct report before = *report;

	old_sockets[0].counts = old_sockets[1].counts = &old;
	old_sockets[0].stats = old_sockets[1].stats = (struct xsk_stats){ 1, 1, 1, 1, 1, 1 };
	before.socket = old_sockets;
	before.irqs = 6000;
	return report_text(out, report, &before);
}

static void rows_are_xdpsocks_to_the_character(void **state)
{
	char *text = text_of(write_second);

	(void)state;
	assert_string_equal(text,
			    "\n sock0@d0:3 txonly xdp-drv poll() \n"
			    "                   pps            pkts           0.50          \n"
			    "rx                 1000           1234567       \n"
			    "tx                 0              1000          \n");
	free(text);
}

static void the_first_rows_count_from_zero(void **state)
{
	char *text = text_of(write_first);

	(void)state;
	assert_non_null(strstr(text, "rx                 2469134        1234567       \n"));
	free(text);
}

static const char *const sock_rows =
	"\n sock0@d0:3 txonly xdp-drv poll() \n"
	"                   pps            pkts           0.50          \n"
	"rx                 1000           1234567       \n"
	"tx                 0              1000          \n";

/* clang-format off */
#define CALL_TABLE \
	"\n                   calls/s        count         \n" \
	"rx empty polls     200            100           \n" \
	"fill fail polls    200            101           \n" \
	"copy tx sendtos    200            102           \n" \
	"tx wakeup sendtos  200            103           \n" \
	"opt polls          200            104           \n"
/* clang-format on */

/* Fails unless the second report is the socket's usual rows and then these. */
static void assert_rows_follow(const struct report *report, const char *rows)
{
	char *text = text_of_report(write_second, report), *want = NULL;

	assert_true(asprintf(&want, "%s%s", sock_rows, rows) > 0);
	assert_string_equal(text, want);
	free(text);
	free(want);
}

static void extra_rows_are_xdpsocks_to_the_character(void **state)
{
	struct report report = sample();

	(void)state;
	report.extra_stats = true;
	assert_rows_follow(&report, "rx dropped         0              1             \n"
				    "rx invalid         2              2             \n"
				    "tx invalid         4              3             \n"
				    "rx queue full      6              4             \n"
				    "fill ring empty    8              5             \n"
				    "tx ring empty      10             6             \n");
}

static void call_rows_are_xdpsocks_to_the_character(void **state)
{
	struct report report = sample();

	(void)state;
	report.app_stats = true;
	assert_rows_follow(&report, CALL_TABLE);
}

/* As xdpsock: first every socket's packets, then every socket's calls. */
static void call_tables_come_after_all_sockets_rows(void **state)
{
	struct report report = sample();
	struct report_socket socks[2] = { sock, sock };

	(void)state;
	report.socket = socks;
	report.sockets = 2;
	report.app_stats = true;
	assert_rows_follow(
		&report,
		"\n sock1@d0:3 txonly xdp-drv poll() \n"
		"                   pps            pkts           0.50          \n"
		"rx                 1000           1234567       \n"
		"tx                 0              1000          \n" CALL_TABLE CALL_TABLE);
}

static void the_cycle_row_is_xdpsocks_to_the_character(void **state)
{
	struct report report = sample();

	(void)state;
	report.app_stats = true;
	report.worker = workers;
	report.workers = 3;
	workers[0].counts.cycle = (struct cycle_counts){ 1000000, 700, 4000, 2500, 4 };
	workers[1].counts.cycle = (struct cycle_counts){ 1000000, UINT64_MAX, 0, 0, 0 };
	workers[2].counts.cycle = (struct cycle_counts){ 1000000, 900, 2000, 3100, 2 };
	assert_rows_follow(
		&report, CALL_TABLE
		"\n                   period     min        ave        max        cycle     \n"
		"Cyclic TX          1000000    700        1000       3100       6         \n");
	report.app_stats = false; /* only with -a */
	assert_rows_follow(&report, "");
}

static void before_the_first_cycle_its_row_is_zeros(void **state)
{
	struct report report = sample();
	char *text;

	(void)state;
	report.app_stats = true;
	worker.counts.cycle = (struct cycle_counts){ 1000000, UINT64_MAX, 0, 0, 0 };
	text = text_of_report(write_first, &report);
	assert_non_null(strstr(
		text,
		"\nCyclic TX          1000000    0          0          0          0         \n"));
	free(text);
}

static void the_irq_row_is_xdpsocks_to_the_character(void **state)
{
	struct report report = sample();

	(void)state;
	report.irq = true;
	report.irqs = 6500;
	assert_rows_follow(&report, "\n                   intrs/s        count         \n"
				    "irqs               1000           6500          \n");
}

static void multi_buffer_rows_are_xdpsocks_to_the_character(void **state)
{
	struct report report = sample();
	char *text;

	(void)state;
	sock.frags = true;
	text = text_of_report(write_second, &report);
	assert_string_equal(
		text,
		"\n sock0@d0:3 txonly xdp-drv poll() \n"
		"                   pps            pkts           fps            frags          "
		"0.50          \n"
		"rx                 1000           1234567        200            2469134       \n"
		"tx                 0              1000           3000           3000          \n");
	free(text);
}

static void oversize_is_what_an_empty_fill_ring_does_not_explain(void **state)
{
	static const struct {
		uint64_t dropped, empty;
		bool zero_copy, frags;
		uint64_t want;
	} rows[] = {
		{ 10, 4, false, false, 6 }, { 4, 4, false, false, 0 }, { 0, 0, false, false, 0 },
		{ 3, 4, false, false, 0 },  { 10, 4, true, false, 0 }, { 10, 4, false, true, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		(void)sample();
		sock.frags = rows[i].frags;
		sock.zero_copy = rows[i].zero_copy;
		sock.stats = (struct xsk_stats){ .rx_dropped = rows[i].dropped,
						 .rx_fill_ring_empty_descs = rows[i].empty };
		assert_int_equal(report_oversize(&sock), rows[i].want);
	}
}

static json_t *member(json_t *root, const char *array, const char *name)
{
	json_t *found = json_object_get(json_array_get(json_object_get(root, array), 0), name);

	if (!found)
		print_error("%s[0].%s is missing\n", array, name);
	assert_non_null(found);
	return found;
}

static void json_has_every_field_with_its_value(void **state)
{
	static const struct {
		const char *array, *name;
		json_int_t value;
	} integers[] = {
		{ "sockets", "queue", 3 },
		{ "sockets", "rx_packets", 1234567 },
		{ "sockets", "rx_bytes", 74074020 },
		{ "sockets", "tx_packets", 1000 },
		{ "sockets", "tx_bytes", 60000 },
		{ "sockets", "rx_descriptors", 2469134 },
		{ "sockets", "tx_descriptors", 3000 },
		{ "sockets", "flooded", 12 },
		{ "sockets", "copies", 13 },
		{ "sockets", "probes", 14 },
		{ "sockets", "partial_checksums", 9 },
		{ "sockets", "oversize", 0 },
		{ "sockets", "rx_dropped", 1 },
		{ "sockets", "rx_invalid_descs", 2 },
		{ "sockets", "tx_invalid_descs", 3 },
		{ "sockets", "rx_ring_full", 4 },
		{ "sockets", "rx_fill_ring_empty_descs", 5 },
		{ "sockets", "tx_ring_empty_descs", 6 },
		{ "sockets", "fill", 400 },
		{ "sockets", "rx", 30 },
		{ "sockets", "tx", 20 },
		{ "sockets", "completion", 10 },
		{ "programs", "seen", 50 },
		{ "programs", "passed", 20 },
		{ "programs", "departed", 0 },
		{ "programs", "unexplained", 0 },
		{ "workers", "cpu", 1 },
		{ "workers", "total", 1000 },
		{ "workers", "pool", 500 },
		{ "workers", "kernel", 38 },
		{ "workers", "lost", 2 },
		{ "workers", "hand_over", 0 },
		{ "workers", "handed", 0 },
		{ "workers", "reclaimed", 3 },
		{ "workers", "balance", 0 },
	};
	char *text = text_of(report_json);
	json_t *root = json_loads(text, 0, NULL);

	(void)state;
	assert_non_null(root);
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1); /* one line */
	for (size_t i = 0; i < ARRAY_SIZE(integers); i++)
		assert_int_equal(
			json_integer_value(member(root, integers[i].array, integers[i].name)),
			integers[i].value);
	assert_string_equal(json_string_value(member(root, "sockets", "interface")), "d0");
	assert_string_equal(json_string_value(member(root, "sockets", "mode")), "txpush");
	assert_string_equal(json_string_value(member(root, "sockets", "attach")), "native");
	assert_true(json_is_false(member(root, "sockets", "zero_copy")));
	assert_true(json_is_true(member(root, "sockets", "need_wakeup")));
	assert_string_equal(json_string_value(member(root, "sockets", "busy_poll")), "off");
	for (int i = 0; i < DROP_REASONS; i++)
		assert_int_equal(
			json_integer_value(json_object_get(member(root, "sockets", "drops"),
							   drop_name((enum drop_reason)i))),
			i == DROP_RUNT ? 7 : 0);
	assert_true(json_real_value(json_object_get(root, "seconds")) == 2.5);
	/* Only with -I and -T. */
	assert_null(json_object_get(root, "irqs"));
	assert_null(json_object_get(json_array_get(json_object_get(root, "workers"), 0), "cycle"));
	json_decref(root);
	free(text);
}

static void json_has_every_call_with_its_count(void **state)
{
	static const char *const names[] = { "rx_empty", "fill_fail", "copy_tx", "wake_tx",
					     "poll" };
	char *text = text_of(report_json);
	json_t *root = json_loads(text, 0, NULL);
	json_t *calls = member(root, "sockets", "calls");

	(void)state;
	assert_int_equal(json_object_size(calls), ARRAY_SIZE(names));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_int_equal(json_integer_value(json_object_get(calls, names[i])), 100 + i);
	json_decref(root);
	free(text);
}

static void json_has_cycles_and_interrupts_where_they_are_counted(void **state)
{
	static const struct {
		const char *name;
		json_int_t value;
	} rows[] = {
		{ "period_ns", 1000000 }, { "min_ns", 700 }, { "average_ns", 1000 },
		{ "max_ns", 2500 },	  { "cycles", 4 },
	};
	struct report report = sample();
	json_t *root, *cycle;
	char *text;

	(void)state;
	report.irq = true;
	report.irqs = 12;
	worker.counts.cycle = (struct cycle_counts){ 1000000, 700, 4000, 2500, 4 };
	text = text_of_report(report_json, &report);
	root = json_loads(text, 0, NULL);
	assert_int_equal(json_integer_value(json_object_get(root, "irqs")), 12);
	cycle = member(root, "workers", "cycle");
	assert_int_equal(json_object_size(cycle), ARRAY_SIZE(rows));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(json_integer_value(json_object_get(cycle, rows[i].name)),
				 rows[i].value);
	json_decref(root);
	free(text);
}

static void json_says_how_busy_poll_went(void **state)
{
	static const char *const names[] = { "off", "on", "not effective" };

	(void)state;
	for (int i = 0; i <= REPORT_BUSY_POLL_NOT_EFFECTIVE; i++) {
		struct report report = sample();
		json_t *root;
		char *text;

		sock.busy_poll = (enum report_busy_poll)i;
		text = text_of_report(report_json, &report);
		root = json_loads(text, 0, NULL);
		assert_string_equal(json_string_value(member(root, "sockets", "busy_poll")),
				    names[i]);
		json_decref(root);
		free(text);
	}
}

static void frames_that_nobody_has_are_unexplained(void **state)
{
	static const struct {
		uint64_t seen_before, passed, departed, received, on_ring, dropped, full, want;
	} rows[] = {
		{ 0, 0, 0, 0, 0, 0, 0, 0 },
		{ 100, 20, 0, 50, 10, 15, 5, 0 },
		{ 100, 20, 0, 50, 10, 15, 4, 1 },
		{ 100, 20, 7, 50, 10, 9, 4, 0 },
		{ 100, 0, 0, 0, 0, 0, 0, 100 },
		{ 100, 200, 0, 0, 0, 0, 0, 0 }, /* what came since is no debt */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct report report = sample();
		struct queue_counts *counts = &worker.counts.queue[0];

		program.passed = rows[i].passed;
		program.departed = rows[i].departed;
		counts->rx_packets = rows[i].received;
		counts->rx = rows[i].on_ring;
		sock.stats = (struct xsk_stats){ .rx_dropped = rows[i].dropped,
						 .rx_ring_full = rows[i].full,
						 .rx_fill_ring_empty_descs = rows[i].dropped };
		assert_int_equal(report_unexplained(&report, &program, rows[i].seen_before),
				 rows[i].want);
	}
}

static void another_interfaces_frames_explain_nothing(void **state)
{
	struct report report = sample();

	(void)state;
	program.interface = "d1";
	program.passed = 0;
	assert_int_equal(report_unexplained(&report, &program, 9), 9);
}

static void a_full_output_is_told(void **state)
{
	struct report report = sample();
	FILE *full = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(full);
	assert_int_equal(report_text(full, &report, NULL), -ENOSPC);
	assert_true(report_json(full, &report) < 0);
	fclose(full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_xdpsocks_to_the_character),
		cmocka_unit_test(the_first_rows_count_from_zero),
		cmocka_unit_test(extra_rows_are_xdpsocks_to_the_character),
		cmocka_unit_test(call_rows_are_xdpsocks_to_the_character),
		cmocka_unit_test(call_tables_come_after_all_sockets_rows),
		cmocka_unit_test(the_cycle_row_is_xdpsocks_to_the_character),
		cmocka_unit_test(before_the_first_cycle_its_row_is_zeros),
		cmocka_unit_test(the_irq_row_is_xdpsocks_to_the_character),
		cmocka_unit_test(multi_buffer_rows_are_xdpsocks_to_the_character),
		cmocka_unit_test(oversize_is_what_an_empty_fill_ring_does_not_explain),
		cmocka_unit_test(json_has_every_field_with_its_value),
		cmocka_unit_test(json_has_every_call_with_its_count),
		cmocka_unit_test(json_has_cycles_and_interrupts_where_they_are_counted),
		cmocka_unit_test(json_says_how_busy_poll_went),
		cmocka_unit_test(frames_that_nobody_has_are_unexplained),
		cmocka_unit_test(another_interfaces_frames_explain_nothing),
		cmocka_unit_test(a_full_output_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
