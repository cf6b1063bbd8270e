/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "conf/vlan_mode.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

/* Notes what is wrong, and is the error to return. */
#define fail(wrong, ...) (snprintf((wrong)->text, sizeof((wrong)->text), __VA_ARGS__), -EINVAL)

/* Of a part of the text in a message; more says nothing. */
#define SHOWN "%.40s"

/* One word more than any mode has. */
#define WORDS_MAX 5

#define BLANKS " \t\n"

/* Copies what is one word to us: blanks behind a comma are a matter of taste, and what a continued line
 * leaves. Returns false if there is no room. */
static bool copy_words(const char *from, char *to, size_t size)
{
	size_t len = 0;

	for (char before = ' '; *from; from++) {
		if (isspace((unsigned char)*from) && before == ',')
			continue;
		if (len + 1 >= size)
			return false;
		before = *from;
		to[len++] = *from;
	}
	to[len] = '\0';
	return true;
}

static unsigned split(char *text, char **words)
{
	unsigned count = 0;
	char *word;

	while (count < WORDS_MAX && (word = strsep(&text, BLANKS))) {
		if (*word)
			words[count++] = word;
	}
	return count;
}

static int parse_vlan(const char *text, unsigned *vlan, struct vlan_wrong *wrong)
{
	unsigned long number;

	if (number_parse(text, 1, VLAN_MODE_MAX, &number))
		return fail(wrong, "'" SHOWN "': a VLAN is a number from 1 to %d", text,
			    VLAN_MODE_MAX);
	*vlan = (unsigned)number;
	return 0;
}

/* "20" or "1-10". */
static int parse_range(char *text, struct vlan_mode *mode, struct vlan_wrong *wrong)
{
	char *end = text, *begin = strsep(&end, "-");
	unsigned first = 0, last;

	if (parse_vlan(begin, &first, wrong))
		return -EINVAL;
	last = first;
	if (end && parse_vlan(end, &last, wrong))
		return -EINVAL;
	if (last < first)
		return fail(wrong, "'%u-%u': runs backwards; type %u-%u", first, last, last, first);
	for (unsigned vlan = first; vlan <= last; vlan++) {
		if (mode->list[vlan / 64] & 1ULL << vlan % 64)
			return fail(wrong, "VLAN %u is there twice; name it once", vlan);
		mode->list[vlan / 64] |= 1ULL << vlan % 64;
	}
	return 0;
}

static int parse_native(const char *text, struct vlan_mode *mode, struct vlan_wrong *wrong)
{
	unsigned vlan = 0;

	if (parse_vlan(text, &vlan, wrong))
		return -EINVAL;
	mode->untagged = (uint16_t)vlan;
	return 0;
}

static int parse_trunk(char *const *words, unsigned count, struct vlan_mode *mode,
		       struct vlan_wrong *wrong)
{
	char *list, *range;

	if (!count || !strcasecmp(words[0], "native"))
		return fail(wrong, "trunk: names no VLAN; type a list such as trunk 1-10,20");
	if (count == 2 && !strcasecmp(words[1], "native"))
		return fail(wrong, "native: type the VLAN behind it, such as native 1");
	if (count != 1 && (count != 3 || strcasecmp(words[1], "native") != 0))
		return fail(wrong,
			    "'" SHOWN "': behind the list stands nothing, or native and one VLAN; "
			    "type for example trunk 1-10,20 native 1",
			    words[count - 1]);
	list = words[0];
	while ((range = strsep(&list, ","))) {
		if (parse_range(range, mode, wrong))
			return -EINVAL;
	}
	return count == 3 ? parse_native(words[2], mode, wrong) : 0;
}

static int parse_access(char *const *words, unsigned count, struct vlan_mode *mode,
			struct vlan_wrong *wrong)
{
	if (!count)
		return fail(wrong, "access: type the VLAN behind it, such as access 10");
	if (count > 1 || strpbrk(words[0], ",-"))
		return fail(wrong,
			    "access: is in one VLAN, not in '" SHOWN "%s" SHOWN
			    "'; several are for example trunk 10,20",
			    words[0], count > 1 ? " " : "", count > 1 ? words[1] : "");
	return parse_native(words[0], mode, wrong);
}

int vlan_mode_parse(const char *text, struct vlan_mode *mode, struct vlan_wrong *wrong)
{
	char copy[VLAN_MODE_TEXT_SIZE], *words[WORDS_MAX] = { NULL };
	unsigned count;

	memset(mode, 0, sizeof(*mode));
	if (!copy_words(text, copy, sizeof(copy)))
		return fail(wrong, "is longer than any list of VLANs");
	count = split(copy, words);
	if (count && !strcasecmp(words[0], "access")) {
		mode->kind = VLAN_MODE_ACCESS;
		return parse_access(words + 1, count - 1, mode, wrong);
	}
	if (count && !strcasecmp(words[0], "trunk")) {
		mode->kind = VLAN_MODE_TRUNK;
		return parse_trunk(words + 1, count - 1, mode, wrong);
	}
	if (count == 1 && !strcasecmp(words[0], "transparent"))
		return 0;
	return fail(wrong, "must be transparent, access VID, or trunk LIST native VID, such as "
			   "access 10, trunk 10,20 or trunk 1-10,20 native 1");
}

static bool listed(const struct vlan_mode *mode, unsigned vlan)
{
	return vlan <= VLAN_MODE_MAX && mode->list[vlan / 64] & 1ULL << vlan % 64;
}

/* Returns the length, which may be more than the room. */
static size_t print_list(const struct vlan_mode *mode, char *text, size_t size)
{
	const char *comma = "";
	size_t len = 0;

	for (unsigned vlan = 1; vlan <= VLAN_MODE_MAX && len < size; vlan++) {
		unsigned last = vlan;

		if (!listed(mode, vlan))
			continue;
		while (listed(mode, last + 1))
			last++;
		len += (size_t)snprintf(text + len, size - len, "%s%u", comma, vlan);
		if (last > vlan && len < size)
			len += (size_t)snprintf(text + len, size - len, "-%u", last);
		comma = ",";
		vlan = last;
	}
	return len;
}

void vlan_mode_print(const struct vlan_mode *mode, char *text, size_t size)
{
	size_t len;

	if (mode->kind == VLAN_MODE_TRANSPARENT) {
		snprintf(text, size, "transparent");
		return;
	}
	if (mode->kind == VLAN_MODE_ACCESS) {
		snprintf(text, size, "access %u", mode->untagged);
		return;
	}
	len = (size_t)snprintf(text, size, "trunk ");
	if (len < size)
		len += print_list(mode, text + len, size - len);
	if (mode->untagged && len < size)
		snprintf(text + len, size - len, " native %u", mode->untagged);
}
