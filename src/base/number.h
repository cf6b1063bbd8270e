/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers and lists of numbers as people type them. Pure; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The most numbers a list may hold; more than the queues or CPUs of any host we know of. */
#define NUMBER_LIST_MAX 1024

struct number_list {
	unsigned count;
	unsigned value[NUMBER_LIST_MAX]; /* in the order given, each once */
};

/*
 * Reads text as one decimal number without sign, blank or trailing junk. Returns 0 with *value in
 * [min, max], -EINVAL if it is no such number, -ERANGE if it is one outside the range.
 */
int number_parse(const char *text, unsigned long min, unsigned long max, unsigned long *value);

/*
 * Reads text as one hexadecimal number, with or without "0x", without sign, blank or trailing junk.
 * Returns 0 with *value up to max, -EINVAL if it is no such number, -ERANGE if it is larger.
 */
int number_hex_parse(const char *text, unsigned long max, unsigned long *value);

/*
 * Reads text as a list of numbers and ranges, "0,2-3". Returns 0; -EINVAL for anything else, an
 * empty list or a range that runs backwards; -ERANGE for a number over max or over
 * NUMBER_LIST_MAX numbers; -EEXIST for a number given twice.
 */
int number_list_parse(const char *text, unsigned max, struct number_list *list);

/* True if the list holds the number. */
bool number_list_has(const struct number_list *list, unsigned value);

/* Writes a list whose numbers ascend as number_list_parse() reads it, "0,2-3", cut to the room there is. */
void number_list_print(const struct number_list *list, char *text, size_t size);

/* True if value is a power of two; 0 is none. */
static inline bool number_is_power_of_two(unsigned long value)
{
	return value && !(value & (value - 1));
}
