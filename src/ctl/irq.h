/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How often an interrupt came, as /proc/interrupts counts it. Needs no capability. Main thread. */
#pragma once

#include <stdint.h>

/* The kernel writes a number or three letters; more than that is cut nowhere we know of. */
#define IRQ_LABEL_SIZE 16

struct irq {
	char label[IRQ_LABEL_SIZE]; /* first column: "36" or "LOC"; "" if none is watched */
	uint64_t last;		    /* its row's sum when last read */
	uint64_t count;		    /* since irq_find() */
};

/*
 * Finds the first line of /proc/interrupts that contains text, and counts from now on. Empty text:
 * none is watched. Returns 0, or -ENOENT or another -errno after a message.
 */
int irq_find(struct irq *irq, const char *text);

/* Counts on and returns the count. While the row cannot be read, or has lost the column of a CPU that
 * went offline, it stands still rather than goes back. */
uint64_t irq_read(struct irq *irq);
