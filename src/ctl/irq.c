/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "ctl/irq.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define INTERRUPTS "/proc/interrupts"

/* How many CPUs the first line names: so many numbers a row has at most, and what follows is text
 * that may begin with digits too. */
static unsigned count_cpus(const char *line)
{
	unsigned cpus = 0;

	while ((line = strstr(line, "CPU"))) {
		line += 3;
		cpus++;
	}
	return cpus;
}

static uint64_t sum_row(const char *columns, unsigned cpus)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < cpus; i++) {
		char *end;
		unsigned long long value = strtoull(columns, &end, 10);

		if (end == columns)
			break;
		sum += value;
		columns = end;
	}
	return sum;
}

/* Takes "  36:   0   282099  ..." apart: the label, and where its columns begin. NULL for no row. */
static const char *split_row(const char *line, char *label)
{
	const char *start = line + strspn(line, " ");
	size_t len = strcspn(start, ":");

	if (!len || start[len] != ':' || len >= IRQ_LABEL_SIZE)
		return NULL;
	memcpy(label, start, len);
	label[len] = '\0';
	return start + len + 1;
}

/* Reads the row with this label or, if label is empty, the first that contains text, whose label it
 * then becomes. Lines have one column a CPU, so they may have any length. */
static int read_row(FILE *in, const char *text, char *label, uint64_t *sum)
{
	char *line = NULL;
	size_t size = 0;
	unsigned cpus = 0;
	bool found = false;

	if (getline(&line, &size, in) > 0)
		cpus = count_cpus(line);
	while (!found && getline(&line, &size, in) > 0) {
		char this_label[IRQ_LABEL_SIZE];
		const char *columns = split_row(line, this_label);

		found = columns && (*label ? !strcmp(label, this_label) : !!strstr(line, text));
		if (found) {
			memcpy(label, this_label, sizeof(this_label));
			*sum = sum_row(columns, cpus);
		}
	}
	free(line);
	return found ? 0 : -ENOENT;
}

int irq_find(struct irq *irq, const char *text)
{
	FILE *in;
	int err;

	*irq = (struct irq){ 0 };
	if (!*text)
		return 0;
	in = fopen(INTERRUPTS, "re");
	if (!in) {
		err = -errno;
		log_error("-I %s: " INTERRUPTS " cannot be read: " ERR_FORMAT, text, ERR_ARGS(err));
		return err;
	}
	err = read_row(in, text, irq->label, &irq->last);
	fclose(in);
	if (err)
		log_error("-I %s: not found in " INTERRUPTS "; `grep NAME " INTERRUPTS
			  "` shows the lines of a device",
			  text);
	return err;
}

uint64_t irq_read(struct irq *irq)
{
	FILE *in = *irq->label ? fopen(INTERRUPTS, "re") : NULL;
	uint64_t now;

	if (!in)
		return irq->count;
	if (!read_row(in, "", irq->label, &now)) {
		if (now > irq->last)
			irq->count += now - irq->last;
		irq->last = now;
	}
	fclose(in);
	return irq->count;
}
