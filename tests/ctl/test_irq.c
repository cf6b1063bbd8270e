/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/ctl/irq.c"

#include "unit.h"

static const char *const interrupts =
	"           CPU0       CPU1       CPU2       \n"
	" 26:          0         10          1  IO-APIC   4-edge      ttyS0\n"
	" 28:          7          0          2  00-MSIX-0000:00:01.0   0-edge      eth0-rx-0\n"
	" 29:          1          0          0  PCI-MSIX-0000:00:01.0   1-edge      eth0-rx-1\n"
	"280:          5          0          0  PCI-MSIX-0000:00:01.0   2-edge      eth0-tx\n"
	"LOC:        100        200 4294967296   Local timer interrupts\n"
	"ERR:          3\n";

static int read_text(const char *lines, const char *text, char *label, uint64_t *sum)
{
	char *copy = strdup(lines);
	FILE *in = fmemopen(copy, strlen(copy), "r");
	int err;

	assert_non_null(in);
	err = read_row(in, text, label, sum);
	fclose(in);
	free(copy);
	return err;
}

static void the_first_line_with_the_text_is_found_and_summed(void **state)
{
	static const struct {
		const char *text, *label;
		uint64_t sum;
	} rows[] = {
		{ "ttyS0", "26", 11 },
		{ "eth0", "28", 9 }, /* what follows the columns begins with digits too */
		{ "eth0-rx-1", "29", 1 },
		{ "eth0-tx", "280", 5 },
		{ "Local timer", "LOC", 4294967596ULL },
		{ "LOC:", "LOC", 4294967596ULL },
		{ "ERR", "ERR", 3 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char label[IRQ_LABEL_SIZE] = "";
		uint64_t sum = 0;

		assert_int_equal(read_text(interrupts, rows[i].text, label, &sum), 0);
		assert_string_equal(label, rows[i].label);
		assert_int_equal(sum, rows[i].sum);
	}
}

static void no_line_is_no_entry(void **state)
{
	static const struct {
		const char *lines, *text;
	} rows[] = {
		{ interrupts, "eth1" },
		{ interrupts, "CPU0" }, /* the head is no interrupt */
		{ "", "eth0" },
		{ "\n\n", "eth0" },
		{ "  CPU0\neth0 without a colon\n", "eth0" },
		{ "  CPU0\n: eth0\n", "eth0" },
		{ "  CPU0\na label of many letters: 1 eth0\n", "eth0" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char label[IRQ_LABEL_SIZE] = "";
		uint64_t sum;

		assert_int_equal(read_text(rows[i].lines, rows[i].text, label, &sum), -ENOENT);
	}
}

static void later_it_is_found_by_its_label(void **state)
{
	char label[IRQ_LABEL_SIZE] = "28";
	uint64_t sum = 0;

	(void)state;
	assert_int_equal(read_text(interrupts, "", label, &sum), 0); /* and not 280 */
	assert_int_equal(sum, 9);
	snprintf(label, sizeof(label), "2");
	assert_int_equal(read_text(interrupts, "", label, &sum), -ENOENT);
}

/* xdpsock reads 4,095 bytes a line: the rows of a host of 400 CPUs are longer. */
static void a_line_of_any_length_is_read(void **state)
{
	enum { CPUS = 2000 };
	char label[IRQ_LABEL_SIZE] = "", *lines = NULL;
	uint64_t sum = 0;
	size_t size = 0;
	FILE *out = open_memstream(&lines, &size);

	(void)state;
	for (int i = 0; i < CPUS; i++)
		fprintf(out, "CPU%-8d", i);
	fputs("\n 99:", out);
	for (int i = 0; i < CPUS; i++)
		fprintf(out, " %10d", i);
	fputs("  12 PCI-MSIX eth9\n", out);
	fclose(out);
	assert_int_equal(read_text(lines, "eth9", label, &sum), 0);
	assert_string_equal(label, "99");
	assert_int_equal(sum, CPUS * (CPUS - 1) / 2);
	free(lines);
}

/* The timer interrupt comes to every host, and has a name and no number. */
static void this_hosts_timer_is_counted(void **state)
{
	struct irq irq;

	(void)state;
	if (irq_find(&irq, "Local timer"))
		skip(); /* not an x86 host */
	assert_string_equal(irq.label, "LOC");
	assert_int_equal(irq.count, 0);
	for (int i = 0; i < 1000000000 && !irq_read(&irq); i++)
		;
	assert_true(irq.count > 0);
}

static void a_count_never_goes_back(void **state)
{
	struct irq irq;
	uint64_t before;

	(void)state;
	if (irq_find(&irq, "Local timer"))
		skip();
	irq.count = before = 5;
	irq.last = UINT64_MAX; /* as if a CPU had gone offline with its column */
	assert_int_equal(irq_read(&irq), before);
	snprintf(irq.label, sizeof(irq.label), "none"); /* as if the device had gone */
	assert_int_equal(irq_read(&irq), before);
}

static void nothing_asked_for_is_nothing_watched(void **state)
{
	struct irq irq;

	(void)state;
	assert_int_equal(irq_find(&irq, ""), 0);
	assert_int_equal(irq_read(&irq), 0);
	assert_int_equal(irq_find(&irq, "no such interrupt"), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_line_with_the_text_is_found_and_summed),
		cmocka_unit_test(no_line_is_no_entry),
		cmocka_unit_test(later_it_is_found_by_its_label),
		cmocka_unit_test(a_line_of_any_length_is_read),
		cmocka_unit_test(this_hosts_timer_is_counted),
		cmocka_unit_test(a_count_never_goes_back),
		cmocka_unit_test(nothing_asked_for_is_nothing_watched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
