/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/ctl/metrics.c"

#include "unit.h"

#include "sample.h"

static char *text_of(struct sample *sample)
{
	char *text = metrics_text(&sample->facts, &sample->report);

	assert_non_null(text);
	return text;
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		print_error("not there: %s\n", part);
	assert_non_null(strstr(text, part));
}

static void it_begins_with_the_daemon_and_ends_with_the_end(void **state)
{
	static const char head[] =
		"# TYPE millrace_build info\n"
		"# HELP millrace_build The daemon.\n"
		"millrace_build_info{version=\"1.2\"} 1\n"
		"# TYPE millrace_uptime_seconds gauge\n"
		"# UNIT millrace_uptime_seconds seconds\n"
		"# HELP millrace_uptime_seconds Since the daemon started.\n"
		"millrace_uptime_seconds 12.345\n"
		"# TYPE millrace_reloads counter\n"
		"# HELP millrace_reloads Configurations taken over while it ran.\n"
		"millrace_reloads_total 5\n"
		"# TYPE millrace_port_up gauge\n";
	static const char tail[] = "\n# EOF\n";
	struct sample sample;
	char *text;

	(void)state;
	sample_init(&sample);
	text = text_of(&sample);
	assert_memory_equal(text, head, sizeof(head) - 1);
	assert_string_equal(text + strlen(text) - (sizeof(tail) - 1), tail);
	free(text);
}

static void a_family_is_counted_of_every_socket(void **state)
{
	static const char want[] =
		"# TYPE millrace_rx_bytes counter\n"
		"# UNIT millrace_rx_bytes bytes\n"
		"# HELP millrace_rx_bytes Bytes of these, without FCS.\n"
		"millrace_rx_bytes_total{forward=\"main\",port=\"wan\",queue=\"0\",worker=\"0\"} 1002\n"
		"millrace_rx_bytes_total{forward=\"main\",port=\"lan\",queue=\"1\",worker=\"1\"} 2002\n"
		"# TYPE millrace_rx_descriptors counter\n";
	struct sample sample;
	char *text;

	(void)state;
	sample_init(&sample);
	text = text_of(&sample);
	assert_has(text, want);
	free(text);
}

/* In the struct's order, which sample_fill() counts. */
static void every_count_of_a_socket_is_there(void **state)
{
	static const char labels[] = "{forward=\"main\",port=\"wan\",queue=\"0\",worker=\"0\"";
	static const struct {
		const char *name, *label;
		uint64_t value;
	} rows[] = {
		{ "millrace_rx_packets_total", "", 1000 },
		{ "millrace_rx_descriptors_total", "", 1001 },
		{ "millrace_tx_packets_total", "", 1003 },
		{ "millrace_tx_descriptors_total", "", 1004 },
		{ "millrace_tx_bytes_total", "", 1005 },
		{ "millrace_flooded_packets_total", "", 1007 },
		{ "millrace_flood_copies_total", "", 1008 },
		{ "millrace_loop_probes_total", "", 1009 },
		{ "millrace_partial_checksums_total", "", 1010 },
		{ "millrace_kernel_rx_dropped_packets_total", "", 500 },
		{ "millrace_kernel_rx_invalid_descriptors_total", "", 501 },
		{ "millrace_kernel_tx_invalid_descriptors_total", "", 502 },
		{ "millrace_kernel_rx_ring_full_packets_total", "", 503 },
		{ "millrace_kernel_fill_ring_empty_total", "", 504 },
		{ "millrace_kernel_tx_ring_empty_total", "", 505 },
	};
	struct sample sample;
	char *text, line[256];

	(void)state;
	sample_init(&sample);
	text = text_of(&sample);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		snprintf(line, sizeof(line), "\n%s%s%s} %" PRIu64 "\n", rows[i].name, labels,
			 rows[i].label, rows[i].value);
		assert_has(text, line);
	}
	for (unsigned i = 0; i < DROP_REASONS; i++) {
		snprintf(line, sizeof(line),
			 "\nmillrace_dropped_packets_total%s,reason=\"%s\"} %" PRIu64 "\n", labels,
			 drop_name((enum drop_reason)i), sample.worker[0].counts.queue[0].drops[i]);
		assert_has(text, line);
	}
	for (unsigned i = 0; i < 4; i++) {
		snprintf(line, sizeof(line), "\nmillrace_ring_frames%s,ring=\"%s\"} %" PRIu64 "\n",
			 labels, ring_value(i), (&sample.worker[0].counts.queue[0].fill)[i]);
		assert_has(text, line);
	}
	snprintf(line, sizeof(line), "\nmillrace_kernel_frames%s} %" PRId64 "\n", labels,
		 sample.worker[0].counts.queue[0].kernel);
	assert_has(text, line);
	free(text);
}

static void ports_programs_and_workers_are_there(void **state)
{
	static const char *const lines[] = {
		"\nmillrace_port_up{port=\"wan\",device=\"d0\"} 1\n",
		"\nmillrace_port_up{port=\"lan\",device=\"d1\"} 0\n",
		"\nmillrace_port_promiscuous{port=\"wan\",device=\"d0\"} 1\n",
		"\nmillrace_port_mtu_bytes{port=\"lan\",device=\"d1\"} 1501\n",
		"\nmillrace_port_state{port=\"wan\",device=\"d0\",state=\"up\"} 1\n",
		"\nmillrace_port_state{port=\"wan\",device=\"d0\",state=\"gone\"} 0\n",
		"\nmillrace_port_state{port=\"lan\",device=\"d1\",state=\"gone\"} 1\n",
		"\nmillrace_port_state{port=\"lan\",device=\"d1\",state=\"degraded\"} 0\n",
		"\nmillrace_port_state_changes_total{port=\"lan\",device=\"d1\"} 2\n",
		"\nmillrace_program_seen_packets_total{device=\"d0\"} 70\n",
		"\nmillrace_program_passed_packets_total{device=\"d1\"} 81\n",
		"\nmillrace_program_departed_packets_total{device=\"d0\"} 85\n",
		"\nmillrace_unexplained_packets{device=\"d0\"} 90\n",
		"\nmillrace_worker_frames{forward=\"main\",worker=\"1\",cpu=\"5\"} 10001\n",
		"\nmillrace_worker_pool_frames{forward=\"main\",worker=\"0\",cpu=\"4\"} 5000\n",
		"\nmillrace_worker_hand_over_frames{forward=\"main\",worker=\"0\",cpu=\"4\"} 60\n",
		"\nmillrace_worker_reclaimed_frames_total{forward=\"main\",worker=\"1\",cpu=\"5\"} 4\n",
	};
	struct sample sample;
	char *text;

	(void)state;
	sample_init(&sample);
	text = text_of(&sample);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		assert_has(text, lines[i]);
	assert_null(strstr(text, "millrace_irqs"));
	free(text);
	sample.report.irq = true;
	sample.report.irqs = 17;
	text = text_of(&sample);
	assert_has(text, "\nmillrace_irqs_total 17\n");
	free(text);
}

/* Of the one port that is a bridge's. */
static void what_bridges_learned_is_there(void **state)
{
	static const char *const lines[] = {
		"\nmillrace_bridge_stations{port=\"wan\",device=\"d0\"} 41\n",
		"\nmillrace_bridge_static_entries{port=\"wan\",device=\"d0\"} 42\n",
		"\nmillrace_bridge_learned_frames_total{port=\"wan\",device=\"d0\",result=\"new\"} 43\n",
		"\nmillrace_bridge_learned_frames_total{port=\"wan\",device=\"d0\",result=\"moved\"} 44\n",
		"\nmillrace_bridge_learned_frames_total{port=\"wan\",device=\"d0\",result=\"full\"} 45\n",
		"\nmillrace_bridge_expired_stations_total{port=\"wan\",device=\"d0\"} 46\n",
		"\nmillrace_bridge_removed_stations_total{port=\"wan\",device=\"d0\"} 47\n",
	};
	struct sample sample;
	char *text;

	(void)state;
	sample_init(&sample);
	text = text_of(&sample);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		assert_has(text, lines[i]);
	assert_null(strstr(text, "millrace_bridge_stations{port=\"lan\""));
	assert_null(strstr(text, "result=\"unchanged\""));
	free(text);
}

static void labels_are_escaped(void **state)
{
	struct sample sample;
	char *text;

	(void)state;
	sample_init(&sample);
	sample.port[0].port = "a\"b\\c\nd";
	text = text_of(&sample);
	assert_has(text, "\nmillrace_port_up{port=\"a\\\"b\\\\c\\nd\",device=\"d0\"} 1\n");
	free(text);
}

/* A family that is twice in the table would be no OpenMetrics. */
static void every_family_is_there_once(void **state)
{
	struct sample sample;
	char *text, *at;

	(void)state;
	sample_init(&sample);
	text = text_of(&sample);
	at = text;
	while ((at = strstr(at, "# TYPE "))) {
		char line[128];

		snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n") + 1, at);
		assert_ptr_equal(strstr(text, line), at);
		assert_null(strstr(at + 1, line));
		at++;
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_begins_with_the_daemon_and_ends_with_the_end),
		cmocka_unit_test(a_family_is_counted_of_every_socket),
		cmocka_unit_test(every_count_of_a_socket_is_there),
		cmocka_unit_test(ports_programs_and_workers_are_there),
		cmocka_unit_test(what_bridges_learned_is_there),
		cmocka_unit_test(labels_are_escaped),
		cmocka_unit_test(every_family_is_there_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
