/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/ctl/people.c"
#include "../../src/ctl/table.c"

#include "unit.h"

static char *printed(enum command command, const char *result, const char *before)
{
	json_t *now = json_loads(result, 0, NULL), *then = NULL;
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(now);
	if (before)
		then = json_loads(before, 0, NULL);
	assert_int_equal(people_print(out, command, now, then), 0);
	fclose(out);
	json_decref(now);
	json_decref(then);
	return text;
}

static void assert_printed(enum command command, const char *result, const char *before,
			   const char *want)
{
	char *text = printed(command, result, before);

	assert_string_equal(text, want);
	free(text);
}

static void columns_are_as_wide_as_what_is_in_them(void **state)
{
	struct table table;
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	table_init(&table, "NAME N LAST");
	table_text(&table, "a\033b");
	table_count(&table, -12345);
	table_text(&table, NULL);
	table_text(&table, "longer");
	table_count(&table, 1);
	table_text(&table, "x y");
	assert_int_equal(table_print(&table, out), 0);
	table_init(&table, "NOTHING BUT HEADS");
	assert_int_equal(table_print(&table, out), 0);
	fclose(out);
	assert_string_equal(text, "NAME         N  LAST\n"
				  "a?b     -12345  -\n"
				  "longer       1  x y\n");
	free(text);
}

static void rates_have_three_digits_and_a_prefix(void **state)
{
	static const struct {
		double rate;
		const char *want;
	} rows[] = {
		{ 0, "0" },	      { 999, "999" },	 { 999.6, "1.00k" }, { 1234, "1.23k" },
		{ 12345, "12.3k" },   { 99960, "100k" }, { 123456, "123k" }, { 999600, "1.00M" },
		{ 14.88e6, "14.9M" }, { 1e10, "10.0G" }, { 5e12, "5.00T" },  { 7e20, "700000P" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct table table;

		table_init(&table, "X");
		table_rate(&table, rows[i].rate);
		assert_string_equal(table.cell[1], rows[i].want);
		free(table.cell);
	}
}

#define SOCKET(rx, drops)                                                                          \
	"{\"port\":\"wan\",\"queue\":0,\"rx_packets\":" rx ",\"rx_bytes\":" rx "00,\"tx_packets\"" \
	":7,\"tx_bytes\":700,\"drops\":{\"runt\":0,\"link_down\":" drops                           \
	"},\"rx_dropped\":0,\"rx_ring_full\":3}"
#define STATS(seconds, rx, drops)                                                         \
	"{\"seconds\":" seconds ",\"current\":true,\"totals\":{\"rx_packets\":" rx        \
	",\"rx_bytes\":" rx "00,\"tx_packets\":7,\"tx_bytes\":700},\"sockets\":[" SOCKET( \
		rx, drops) "],\"programs\":[{\"interface\":\"d0\",\"unexplained\":0}]}"

static void stats_have_totals_and_what_was_dropped(void **state)
{
	(void)state;
	assert_printed(COMMAND_STATS, STATS("2.5", "1000", "12"), NULL,
		       "2.500 s\n"
		       "PORT   QUEUE  RX-PACKETS  RX-BYTES  TX-PACKETS  TX-BYTES\n"
		       "wan        0        1000    100000           7       700\n"
		       "total      -        1000    100000           7       700\n"
		       "PORT  QUEUE  DROPPED               TOTAL\n"
		       "wan       0  link_down                12\n"
		       "wan       0  kernel: rx_ring_full      3\n");
}

static void rates_are_over_the_time_between_two(void **state)
{
	(void)state;
	assert_printed(
		COMMAND_STATS, STATS("4.5", "5000", "12"), STATS("2.5", "1000", "2"),
		"4.500 s\n"
		"PORT   QUEUE  RX-PPS  RX-BIT/S  TX-PPS  TX-BIT/S  RX-PACKETS  RX-BYTES  TX-PACKETS  "
		"TX-BYTES\n"
		"wan        0   2.00k     1.60M       0         0        5000    500000           7  "
		"     700\n"
		"total      -   2.00k     1.60M       0         0        5000    500000           7  "
		"     700\n"
		"PORT  QUEUE  DROPPED               PER-SECOND  TOTAL\n"
		"wan       0  link_down                      5     12\n"
		"wan       0  kernel: rx_ring_full           0      3\n");
}

/* A socket that a reload made in between has no rate yet; one whose total was corrected has 0. */
static void there_is_no_rate_without_an_earlier_count(void **state)
{
	char *text = printed(COMMAND_STATS, STATS("4.5", "5000", "0"),
			     "{\"seconds\":2.5,\"sockets\":[]}");

	(void)state;
	assert_non_null(
		strstr(text, "wan        0       0         0       0         0        5000"));
	free(text);
	text = printed(COMMAND_STATS, STATS("4.5", "900", "0"), STATS("2.5", "1000", "0"));
	assert_non_null(
		strstr(text, "wan        0       0         0       0         0         900"));
	free(text);
}

static void alarms_are_said(void **state)
{
	char *text = printed(COMMAND_STATS,
			     "{\"seconds\":1,\"current\":false,\"programs\":[{\"interface\":\"d0\","
			     "\"unexplained\":9}]}",
			     NULL);

	(void)state;
	assert_non_null(strstr(text, "not all workers have answered in time"));
	assert_non_null(strstr(text, "d0: 9 frames unexplained\n"));
	free(text);
}

static void one_is_no_plural(void **state)
{
	char *text = printed(COMMAND_STATUS,
			     "{\"configuration\":\"/etc/m.conf\",\"generation\":1,\"last_reload\":"
			     "{\"ok\":false,\"errors\":1,\"age_seconds\":1}}",
			     NULL);

	(void)state;
	assert_non_null(strstr(text, "reloaded 1 time\n"));
	assert_non_null(strstr(text, "refused: 1 error\n"));
	free(text);

	text = printed(COMMAND_STATUS,
		       "{\"configuration\":\"/etc/m.conf\",\"generation\":1,\"last_reload\":"
		       "{\"ok\":true,\"errors\":2,\"age_seconds\":1}}",
		       NULL);
	assert_non_null(strstr(text, "taken over: 2 errors\n"));
	free(text);
}

static void status_has_ports_queues_and_workers(void **state)
{
	(void)state;
	assert_printed(
		COMMAND_STATUS,
		"{\"state\":\"running\",\"pid\":12,\"version\":\"1.2\",\"uptime_seconds\":93784.5,"
		"\"configuration\":\"/etc/m.conf\",\"generation\":3,\"last_reload\":{\"ok\":false,"
		"\"errors\":2,\"age_seconds\":61},\"ports\":[{\"port\":\"wan\",\"device\":\"d0\","
		"\"ifindex\":7,\"state\":\"up\",\"state_seconds\":5.2,\"history\":[{\"age_seconds"
		"\":5.2,\"state\":\"up\",\"reason\":\"\"}],\"mtu\":1500,\"driver\":\"veth\",\"rx_queues\":2,"
		"\"tx_queues\":4,\"attach\":\"native\",\"program\":{\"id\":100,\"name\":"
		"\"millrace\",\"tag\":\"decae08c01455707\"},\"promiscuous\":true,\"queues\":["
		"{\"queue\":1,\"forward\":\"main\",\"mode\":\"patch\",\"worker\":0,\"cpu\":4,"
		"\"zero_copy\":false,\"need_wakeup\":true,\"busy_poll\":\"off\",\"fill\":10,"
		"\"rx\":11,\"tx\":12,\"completion\":13,\"kernel\":-14}]}],\"workers\":[{\"worker\":"
		"0,\"forward\":\"main\",\"mode\":\"patch\",\"wait\":\"poll\",\"sockets\":[{}],"
		"\"cpu\":4,\"total\":100,\"pool\":50,\"lost\":1,\"reclaimed\":2,\"balance\":0,"
		"\"hand_over\":3}]}",
		NULL,
		"millraced 1.2, pid 12, running for 1 d 2 h 3 min 4 s\n"
		"configuration /etc/m.conf, reloaded 3 times\n"
		"last reload 1 min 1 s ago, refused: 2 errors\n"
		"\n"
		"PORT  DEVICE  IFINDEX  STATE  FOR   MTU  DRIVER  RX/TX-QUEUES  ATTACH  PROGRAM  "
		"NAME      TAG               PROMISCUOUS\n"
		"wan   d0            7  up     5 s  1500  veth             2/4  native      100  "
		"millrace  decae08c01455707  on\n"
		"\n"
		"PORT  QUEUE  FORWARD  MODE   WORKER  CPU  COPY  NEED-WAKEUP  BUSY-POLL  FILL  RX  "
		"TX  COMPLETION  KERNEL\n"
		"wan       1  main     patch       0    4  copy  yes          off          10  11  "
		"12          13     -14\n"
		"\n"
		"WORKER  FORWARD  MODE   CPU  WAIT  SOCKETS  TOTAL  POOL  HAND-OVER  LOST  "
		"RECLAIMED  BALANCE\n"
		"     0  main     patch    4  poll        1    100    50          3     1  "
		"        2        0\n");
}

static void ports_that_were_not_always_up_have_a_history(void **state)
{
	(void)state;
	assert_printed(
		COMMAND_PORTS,
		"{\"ports\":[{\"port\":\"wan\",\"device\":\"d0\",\"ifindex\":7,\"state\":\"up\","
		"\"state_seconds\":5.2,\"history\":[{\"age_seconds\":5.2,\"state\":\"up\","
		"\"reason\":\"\"}],\"mtu\":1500,\"driver\":\"veth\",\"rx_queues\":2,"
		"\"tx_queues\":4,\"attach\":\"native\",\"program\":{\"id\":100,\"name\":"
		"\"millrace\",\"tag\":\"decae08c01455707\"},\"promiscuous\":true},"
		"{\"port\":\"lan\",\"device\":\"d1\",\"ifindex\":0,\"state\":\"gone\","
		"\"state_seconds\":2,\"history\":[{\"age_seconds\":2,\"state\":\"gone\","
		"\"reason\":\"deleted\"},{\"age_seconds\":70,\"state\":\"up\",\"reason\":"
		"\"\"}],\"mtu\":1500,\"driver\":\"veth\",\"rx_queues\":2,\"tx_queues\":4,"
		"\"attach\":null,\"program\":null,\"promiscuous\":false}]}",
		NULL,
		"PORT  DEVICE  IFINDEX  STATE  FOR   MTU  DRIVER  RX/TX-QUEUES  ATTACH  PROGRAM  "
		"NAME      TAG               PROMISCUOUS\n"
		"wan   d0            7  up     5 s  1500  veth             2/4  native      100  "
		"millrace  decae08c01455707  on\n"
		"lan   d1            0  gone   2 s  1500  veth             2/4  -             -  "
		"-         -                 off\n"
		"\n"
		"PORT   AGO  STATE  REASON\n"
		"lan    2 s  gone   deleted\n"
		"lan   70 s  up     -\n");
}

static void status_says_what_waits_for_an_operator(void **state)
{
	char *text = printed(COMMAND_STATUS,
			     "{\"confirm\":{\"confirmed\":false,\"left_seconds\":61.9}}", NULL);

	(void)state;
	assert_non_null(strstr(text, "\nnot confirmed: everything is detached in 1 min 1 s; "
				     "keep it with millracectl confirm\n"));
	free(text);
	text = printed(COMMAND_STATUS, "{\"confirm\":{\"confirmed\":true,\"left_seconds\":2}}",
		       NULL);
	assert_non_null(strstr(text, "\nconfirmed\n"));
	free(text);
	text = printed(COMMAND_STATUS, "{\"confirm\":null}", NULL);
	assert_null(strstr(text, "confirm"));
	free(text);
}

static void the_others_are_a_line_or_what_came(void **state)
{
	(void)state;
	assert_printed(COMMAND_RULES,
		       "{\"rules\":[{\"port\":\"wan\",\"rule\":\"default\",\"class\":\"own MAC\","
		       "\"both\":false,\"frames\":12},"
		       "{\"port\":\"wan\",\"rule\":\"default\",\"class\":\"RA\",\"both\":true,"
		       "\"frames\":0},"
		       "{\"port\":\"lan\",\"rule\":\"both udp dport 68\",\"class\":null,"
		       "\"both\":true,\"frames\":3}]}",
		       NULL,
		       "PORT  RULE                FRAMES\n"
		       "wan   default: own MAC        12\n"
		       "wan   default: RA (both)       0\n"
		       "lan   both udp dport 68        3\n");
	assert_printed(COMMAND_PLAN, "{\"plan\":{},\"text\":\"a\\nb\\n\"}", NULL, "a\nb\n");
	assert_printed(COMMAND_METRICS, "{\"text\":\"# EOF\\n\"}", NULL, "# EOF\n");
	assert_printed(COMMAND_RELOAD, "{\"generation\":4}", NULL, "reloaded; generation 4\n");
	assert_printed(COMMAND_SET, "{\"port\":\"wan\",\"promiscuous\":true}", NULL,
		       "wan: promiscuous on\n");
	assert_printed(COMMAND_CONFIRM, "{\"confirmed\":true,\"already\":false}", NULL,
		       "confirmed; it goes on\n");
	assert_printed(COMMAND_CONFIRM, "{\"confirmed\":true,\"already\":true}", NULL,
		       "confirmed already; it goes on\n");
	assert_printed(COMMAND_VERSION, "{\"version\":\"1.2\",\"protocol\":1}", NULL,
		       "millraced 1.2, protocol 1\n");
}

static void copies_are_told_where_there_were_any(void **state)
{
	char *text =
		printed(COMMAND_STATS,
			"{\"copies\":[{\"port\":\"wan\",\"copied\":7,\"dropped\":8,\"failed\":9},"
			"{\"port\":\"lan\",\"copied\":0,\"dropped\":0,\"failed\":0}]}",
			NULL);

	(void)state;
	assert_non_null(strstr(text, "\nPORT  COPIED  TOO-MANY  NOT-SENT\n"
				     "wan        7         8         9\n"));
	assert_null(strstr(text, "lan"));
	free(text);
	text = printed(COMMAND_STATS, "{\"copies\":[{\"port\":\"lan\",\"copied\":0}]}", NULL);
	assert_null(strstr(text, "COPIED"));
	free(text);
}

/* The daemon may be of another version. */
static void stations_come_in_pages_of_one_table(void **state)
{
	static const char page[] =
		"{\"entries\":[{\"forward\":\"lan\",\"vlan\":null,\"mac\":\"02:00:00:00:00:01\","
		"\"kind\":\"learned\",\"port\":\"a\",\"age_seconds\":12},{\"forward\":\"lan\","
		"\"vlan\":7,\"mac\":\"02:00:00:00:00:02\",\"kind\":\"blocked\",\"port\":null,"
		"\"age_seconds\":null}],\"next\":\"lan 7 02:00:00:00:00:02\"}";
	static const char rows[] =
		"   -  02:00:00:00:00:01  learned     12 s  a                lan\n"
		"   7  02:00:00:00:00:02  blocked        -  -                lan\n";
	char first[512];

	(void)state;
	snprintf(first, sizeof(first),
		 "VLAN  MAC                KIND         AGE  PORT             "
		 "FORWARD\n%s",
		 rows);
	assert_printed(COMMAND_FDB, page, NULL, first);
	assert_printed(COMMAND_FDB, page, page, rows);
	assert_printed(COMMAND_FDB, "{\"entries\":[],\"next\":null}", NULL, "");
	assert_printed(
		COMMAND_FDB_COUNT,
		"{\"forwards\":[{\"forward\":\"lan\",\"learned\":3,\"static\":1,\"blocked\":2,"
		"\"size\":1000,\"ports\":[{\"port\":\"a\",\"learned\":3,\"static\":1,"
		"\"limit\":null}]}]}",
		NULL,
		"FORWARD  PORT       LEARNED  STATIC  AT-MOST\n"
		"lan      a                3       1        -\n"
		"lan      (blocked)        -       2        -\n"
		"lan      (all)            3       1     1000\n");
	assert_printed(
		COMMAND_FDB_ADD,
		"{\"forward\":\"lan\",\"vlan\":7,\"mac\":\"02:00:00:00:00:01\",\"port\":\"a\"}",
		NULL, "forward lan: station 02:00:00:00:00:01 in VLAN 7 is behind port a\n");
	assert_printed(
		COMMAND_FDB_ADD,
		"{\"forward\":\"lan\",\"vlan\":null,\"mac\":\"02:00:00:00:00:01\",\"port\":null}",
		NULL, "forward lan: station 02:00:00:00:00:01 is blocked\n");
	assert_printed(COMMAND_FDB_DEL, "{\"removed\":1}", NULL, "1 entry removed\n");
	assert_printed(COMMAND_FDB_FLUSH, "{\"removed\":0}", NULL, "0 entries removed\n");
}

static void an_empty_result_is_no_harm(void **state)
{
	(void)state;
	for (unsigned i = 0; i < COMMANDS; i++)
		free(printed((enum command)i, "{}", "{}"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_as_wide_as_what_is_in_them),
		cmocka_unit_test(rates_have_three_digits_and_a_prefix),
		cmocka_unit_test(stats_have_totals_and_what_was_dropped),
		cmocka_unit_test(rates_are_over_the_time_between_two),
		cmocka_unit_test(there_is_no_rate_without_an_earlier_count),
		cmocka_unit_test(alarms_are_said),
		cmocka_unit_test(one_is_no_plural),
		cmocka_unit_test(status_has_ports_queues_and_workers),
		cmocka_unit_test(ports_that_were_not_always_up_have_a_history),
		cmocka_unit_test(status_says_what_waits_for_an_operator),
		cmocka_unit_test(the_others_are_a_line_or_what_came),
		cmocka_unit_test(copies_are_told_where_there_were_any),
		cmocka_unit_test(stations_come_in_pages_of_one_table),
		cmocka_unit_test(an_empty_result_is_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
