/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mac.h"
#include "conf/table.h"

/* Notes what is wrong, and is the error to return. */
#define fail(wrong, ...) (snprintf((wrong)->text, sizeof((wrong)->text), __VA_ARGS__), -EINVAL)

void *option_field(const struct option_row *row, const struct option_place *place)
{
	switch (row->scope) {
	case SCOPE_FORWARD:
		return (char *)place->forward + row->field;
	case SCOPE_PORT:
		return (char *)place->port + row->field;
	default:
		return (char *)place->conf + row->field;
	}
}

/* Words. */

const struct option_word words_yes_no[] = {
	{ "yes", true },  { "no", false }, { "true", true }, { "false", false }, { "on", true },
	{ "off", false }, { "1", true },   { "0", false },   { NULL, 0 },
};

const struct option_word words_no_yes[] = {
	{ "yes", false }, { "no", true }, { "true", false }, { "false", true }, { "on", false },
	{ "off", true },  { "1", false }, { "0", true },     { NULL, 0 },
};

/* True for the first word of its value. */
static bool proposed(const struct option_word *words, const struct option_word *word)
{
	while (words->value != word->value)
		words++;
	return words == word;
}

/* "must be auto, native or skb" */
static int fail_words(const struct option_row *row, struct option_wrong *wrong)
{
	const struct option_word *last = row->words;
	size_t len = 0;

	for (const struct option_word *one = row->words; one->word; one++) {
		if (proposed(row->words, one))
			last = one;
	}
	for (const struct option_word *one = row->words; one->word; one++) {
		const char *before = one == row->words ? "must be " : one == last ? " or " : ", ";

		if (proposed(row->words, one))
			len += (size_t)snprintf(wrong->text + len, sizeof(wrong->text) - len,
						"%s%s", before, one->word);
	}
	return -EINVAL;
}

static int find_word(const struct option_row *row, const char *value, int *meaning,
		     struct option_wrong *wrong)
{
	for (const struct option_word *one = row->words; one->word; one++) {
		if (strcasecmp(one->word, value) == 0) {
			*meaning = one->value;
			return 0;
		}
	}
	return fail_words(row, wrong);
}

static void print_word(const struct option_row *row, int meaning, char *text, size_t size)
{
	const struct option_word *one = row->words;

	while (one->value != meaning)
		one++;
	snprintf(text, size, "%s", one->word);
}

static int parse_words(const struct option_row *row, const char *value,
		       const struct option_place *place, struct option_wrong *wrong)
{
	return find_word(row, value, option_field(row, place), wrong);
}

static void print_words(const struct option_row *row, const struct option_place *place, char *text,
			size_t size)
{
	print_word(row, *(const int *)option_field(row, place), text, size);
}

const struct option_kind kind_words = { parse_words, print_words };

static int parse_bool(const struct option_row *row, const char *value,
		      const struct option_place *place, struct option_wrong *wrong)
{
	bool *field = option_field(row, place);
	int meaning = 0, err = find_word(row, value, &meaning, wrong);

	if (!err)
		*field = meaning;
	return err;
}

static void print_bool(const struct option_row *row, const struct option_place *place, char *text,
		       size_t size)
{
	print_word(row, *(const bool *)option_field(row, place), text, size);
}

const struct option_kind kind_bool = { parse_bool, print_bool };

/* Numbers. */

static int parse_number(const struct option_row *row, const char *value, unsigned long *number,
			struct option_wrong *wrong)
{
	switch (number_parse(value, row->min, row->max, number)) {
	case 0:
		return 0;
	case -ERANGE:
		return fail(wrong, "must be %lu to %lu", row->min, row->max);
	default:
		return fail(wrong, "not a number; type one from %lu to %lu", row->min, row->max);
	}
}

static int parse_unsigned(const struct option_row *row, const char *value,
			  const struct option_place *place, struct option_wrong *wrong)
{
	unsigned *field = option_field(row, place);
	unsigned long number;
	int err = parse_number(row, value, &number, wrong);

	if (!err)
		*field = (unsigned)number;
	return err;
}

static void print_unsigned(const struct option_row *row, const struct option_place *place,
			   char *text, size_t size)
{
	snprintf(text, size, "%u", *(const unsigned *)option_field(row, place));
}

const struct option_kind kind_unsigned = { parse_unsigned, print_unsigned };

static int parse_power_of_two(const struct option_row *row, const char *value,
			      const struct option_place *place, struct option_wrong *wrong)
{
	unsigned *field = option_field(row, place);
	unsigned long number;
	int err = parse_number(row, value, &number, wrong);

	if (!err && !number_is_power_of_two(number))
		return fail(wrong, "must be a power of two from %lu to %lu", row->min, row->max);
	if (!err)
		*field = (unsigned)number;
	return err;
}

const struct option_kind kind_power_of_two = { parse_power_of_two, print_unsigned };

static int parse_uint64(const struct option_row *row, const char *value,
			const struct option_place *place, struct option_wrong *wrong)
{
	uint64_t *field = option_field(row, place);
	unsigned long number;
	int err = parse_number(row, value, &number, wrong);

	if (!err)
		*field = number;
	return err;
}

static void print_uint64(const struct option_row *row, const struct option_place *place, char *text,
			 size_t size)
{
	snprintf(text, size, "%lu", (unsigned long)*(const uint64_t *)option_field(row, place));
}

const struct option_kind kind_uint64 = { parse_uint64, print_uint64 };

/* Times. */

static int parse_seconds(const struct option_row *row, const char *value,
			 const struct option_place *place, struct option_wrong *wrong)
{
	static const struct {
		char letter;
		unsigned seconds;
	} units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 } };
	unsigned *field = option_field(row, place), unit = 1;
	size_t len = strlen(value);
	unsigned long number;
	char digits[24] = "";

	for (size_t i = 0; len && i < sizeof(units) / sizeof(units[0]); i++) {
		if (value[len - 1] != units[i].letter)
			continue;
		unit = units[i].seconds;
		len--;
		break;
	}
	if (len < sizeof(digits))
		snprintf(digits, sizeof(digits), "%.*s", (int)len, value);
	switch (number_parse(digits, row->min, row->max / unit, &number)) {
	case 0:
		*field = (unsigned)number * unit;
		return 0;
	case -ERANGE:
		return fail(wrong, "must be %lus to %lus", row->min, row->max);
	default:
		return fail(wrong, "not a time; type for example 300s, 5m or 1h");
	}
}

static void print_seconds(const struct option_row *row, const struct option_place *place,
			  char *text, size_t size)
{
	snprintf(text, size, "%us", *(const unsigned *)option_field(row, place));
}

const struct option_kind kind_seconds = { parse_seconds, print_seconds };

/* Lists of numbers. */

/* Blanks behind a comma are a matter of taste, and what a continued line leaves. */
static void copy_without_blanks(const char *from, char *to, size_t size)
{
	size_t len = 0;

	for (char before = ','; *from && len + 1 < size; from++) {
		if (isspace((unsigned char)*from) && before == ',')
			continue;
		before = *from;
		to[len++] = *from;
	}
	to[len] = '\0';
}

static int parse_list(const struct option_row *row, const char *value, struct number_list *list,
		      struct option_wrong *wrong)
{
	char text[OPTION_TEXT_SIZE];

	memset(list, 0, sizeof(*list));
	copy_without_blanks(value, text, sizeof(text));
	switch (number_list_parse(text, (unsigned)row->max, list)) {
	case 0:
		return 0;
	case -ERANGE:
		return fail(wrong, "numbers go from 0 to %lu, and %d of them at most", row->max,
			    NUMBER_LIST_MAX);
	case -EEXIST:
		return fail(wrong, "a number is given twice");
	default:
		return fail(wrong, "not a list of numbers; type for example 0,2-3");
	}
}

static int parse_queues(const struct option_row *row, const char *value,
			const struct option_place *place, struct option_wrong *wrong)
{
	struct conf_port *port = place->port;

	port->all_queues = strcmp(value, "auto") == 0 || strcmp(value, "all") == 0;
	if (port->all_queues) {
		memset(&port->queues, 0, sizeof(port->queues));
		return 0;
	}
	return parse_list(row, value, &port->queues, wrong);
}

static void print_queues(const struct option_row *row, const struct option_place *place, char *text,
			 size_t size)
{
	(void)row;
	if (place->port->all_queues)
		snprintf(text, size, "auto");
	else
		number_list_print(&place->port->queues, text, size);
}

const struct option_kind kind_queues = { parse_queues, print_queues };

static int parse_cpus(const struct option_row *row, const char *value,
		      const struct option_place *place, struct option_wrong *wrong)
{
	struct number_list *list = option_field(row, place);

	if (strcmp(value, "auto") == 0) {
		memset(list, 0, sizeof(*list));
		return 0;
	}
	return parse_list(row, value, list, wrong);
}

static void print_cpus(const struct option_row *row, const struct option_place *place, char *text,
		       size_t size)
{
	const struct number_list *list = option_field(row, place);

	if (list->count)
		number_list_print(list, text, size);
	else
		snprintf(text, size, "auto");
}

const struct option_kind kind_cpus = { parse_cpus, print_cpus };

/* Generated frames. */

static int parse_tx_size(const struct option_row *row, const char *value,
			 const struct option_place *place, struct option_wrong *wrong)
{
	struct conf_tx *tx = &place->forward->tx;
	unsigned long number;
	int err = parse_number(row, value, &number, wrong);

	if (!err)
		tx->size_min = tx->size_max = (unsigned)number;
	return err;
}

/* Only one of the two rows of sizes has something to say. */
static bool one_size(const struct conf_tx *tx)
{
	return tx->sizes == CONF_SIZES_RANGE && tx->size_min == tx->size_max && !tx->size_asked;
}

static void print_tx_size(const struct option_row *row, const struct option_place *place,
			  char *text, size_t size)
{
	(void)row;
	text[0] = '\0';
	if (one_size(&place->forward->tx))
		snprintf(text, size, "%u", place->forward->tx.size_min);
}

const struct option_kind kind_tx_size = { parse_tx_size, print_tx_size };

/* "A-B", or the name of a mix. */
static int parse_sizes(const struct option_row *row, const char *value,
		       const struct option_place *place, struct option_wrong *wrong)
{
	struct conf_tx *tx = &place->forward->tx;
	const char *dash = strchr(value, '-');
	unsigned long min, max;
	char first[16] = "";

	if (!strcmp(value, "imix")) {
		tx->sizes = CONF_SIZES_IMIX;
		tx->size_min = CONF_IMIX_SMALL;
		tx->size_max = CONF_IMIX_LARGE;
		return 0;
	}
	if (dash && (size_t)(dash - value) < sizeof(first))
		memcpy(first, value, (size_t)(dash - value));
	if (!dash || number_parse(first, row->min, row->max, &min) ||
	    number_parse(dash + 1, min, row->max, &max))
		return fail(wrong, "must be imix, or two sizes from %lu to %lu such as 64-1518",
			    row->min, row->max);
	tx->sizes = CONF_SIZES_RANGE;
	tx->size_min = (unsigned)min;
	tx->size_max = (unsigned)max;
	return 0;
}

static void print_sizes(const struct option_row *row, const struct option_place *place, char *text,
			size_t size)
{
	const struct conf_tx *tx = &place->forward->tx;

	(void)row;
	text[0] = '\0';
	if (tx->sizes == CONF_SIZES_IMIX)
		snprintf(text, size, "imix");
	else if (!one_size(tx))
		snprintf(text, size, "%u-%u", tx->size_asked ? tx->size_asked : tx->size_min,
			 tx->size_max);
}

const struct option_kind kind_sizes = { parse_sizes, print_sizes };

static int parse_pattern(const struct option_row *row, const char *value,
			 const struct option_place *place, struct option_wrong *wrong)
{
	uint32_t *field = option_field(row, place);
	unsigned long number;

	if (number_hex_parse(value, UINT32_MAX, &number))
		return fail(wrong,
			    "not a pattern; type up to 8 hexadecimal digits such as 0x12345678");
	*field = (uint32_t)number;
	return 0;
}

static void print_pattern(const struct option_row *row, const struct option_place *place,
			  char *text, size_t size)
{
	snprintf(text, size, "0x%08x", *(const uint32_t *)option_field(row, place));
}

const struct option_kind kind_pattern = { parse_pattern, print_pattern };

static int parse_mac(const struct option_row *row, const char *value,
		     const struct option_place *place, struct option_wrong *wrong)
{
	if (mac_parse(value, option_field(row, place)))
		return fail(wrong,
			    "not a MAC address; type six pairs of hexadecimal digits such as "
			    "02:00:00:00:00:02");
	return 0;
}

static void print_mac(const struct option_row *row, const struct option_place *place, char *text,
		      size_t size)
{
	(void)size; /* OPTION_TEXT_SIZE: more than an address takes */
	(void)mac_print(option_field(row, place), text);
}

const struct option_kind kind_mac = { parse_mac, print_mac };

static int parse_source_mac(const struct option_row *row, const char *value,
			    const struct option_place *place, struct option_wrong *wrong)
{
	struct conf_tx *tx = &place->forward->tx;
	int err = parse_mac(row, value, place, wrong);

	if (!err && tx->source[0] & 1)
		return fail(wrong, "a group address, which no frame comes from");
	tx->source_given = true;
	return err;
}

static void print_source_mac(const struct option_row *row, const struct option_place *place,
			     char *text, size_t size)
{
	text[0] = '\0';
	if (place->forward->tx.source_given)
		print_mac(row, place, text, size);
}

const struct option_kind kind_source_mac = { parse_source_mac, print_source_mac };

/* The rest. */

static const char *const wait_words[] = {
	[CONF_WAIT_ADAPTIVE] = "adaptive",
	[CONF_WAIT_SPIN] = "spin",
	[CONF_WAIT_POLL] = "poll",
};

#define WAIT_WORDS (sizeof(wait_words) / sizeof(wait_words[0]))

/* Notes one word of a wait, of which `ways` are counted. Returns false if it is none. */
static bool add_wait(const char *word, unsigned *ways, struct conf_forward *forward)
{
	if (!strcmp(word, "busy-poll")) {
		forward->busy_poll = true;
		return true;
	}
	for (size_t i = 0; i < WAIT_WORDS; i++) {
		if (strcmp(word, wait_words[i]) != 0)
			continue;
		forward->wait = (enum conf_wait)i;
		++*ways;
		return true;
	}
	return false;
}

/* What is not said stays as it is: flags say the two in words of their own. */
static int parse_wait(const struct option_row *row, const char *value,
		      const struct option_place *place, struct option_wrong *wrong)
{
	char words[64], *rest = words, *word;
	unsigned ways = 0, said = 0;
	bool known = strlen(value) < sizeof(words);

	(void)row;
	snprintf(words, sizeof(words), "%s", value);
	while (known && (word = strsep(&rest, ", \t"))) {
		known = !*word || add_wait(word, &ways, place->forward);
		said += *word != '\0';
	}
	if (!known || !said || ways > 1)
		return fail(wrong, "must be adaptive, spin or poll; busy-poll may stand beside it");
	return 0;
}

static void print_wait(const struct option_row *row, const struct option_place *place, char *text,
		       size_t size)
{
	const struct conf_forward *forward = place->forward;

	(void)row;
	snprintf(text, size, "%s%s", wait_words[forward->wait],
		 forward->busy_poll ? ",busy-poll" : "");
}

const struct option_kind kind_wait = { parse_wait, print_wait };

static int parse_device(const struct option_row *row, const char *value,
			const struct option_place *place, struct option_wrong *wrong)
{
	(void)row;
	if (!*value || strlen(value) >= CONF_IFNAME_SIZE)
		return fail(wrong, "an interface name has 1 to %d characters",
			    CONF_IFNAME_SIZE - 1);
	for (const char *at = value; *at; at++) {
		if ((unsigned char)*at <= ' ' || *at == 0x7f || *value == ';')
			return fail(wrong, "an interface name has no blank, control character or "
					   "leading semicolon");
	}
	snprintf(place->port->device, sizeof(place->port->device), "%s", value);
	return 0;
}

static void print_device(const struct option_row *row, const struct option_place *place, char *text,
			 size_t size)
{
	(void)row;
	snprintf(text, size, "%s", place->port->device);
}

const struct option_kind kind_device = { parse_device, print_device };

static int parse_pass(const struct option_row *row, const char *value,
		      const struct option_place *place, struct option_wrong *wrong)
{
	struct pass_wrong what;
	int err = pass_parse(value, option_field(row, place), &what);

	return err ? fail(wrong, "%s", what.text) : 0;
}

static void print_pass(const struct option_row *row, const struct option_place *place, char *text,
		       size_t size)
{
	pass_print(option_field(row, place), text, size);
}

const struct option_kind kind_pass = { parse_pass, print_pass };

static int parse_irq_string(const struct option_row *row, const char *value,
			    const struct option_place *place, struct option_wrong *wrong)
{
	(void)row;
	if (!*value || strlen(value) >= CONF_IRQ_SIZE)
		return fail(wrong, "give 1 to %d characters of a line of /proc/interrupts",
			    CONF_IRQ_SIZE - 1);
	snprintf(place->conf->irq_string, CONF_IRQ_SIZE, "%s", value);
	return 0;
}

static void print_irq_string(const struct option_row *row, const struct option_place *place,
			     char *text, size_t size)
{
	(void)row;
	snprintf(text, size, "%s", place->conf->irq_string);
}

const struct option_kind kind_irq_string = { parse_irq_string, print_irq_string };

/* Takes an absolute path into `field`. */
static int take_path(const char *value, char *field, size_t size, struct option_wrong *wrong)
{
	if (*value != '/' || strlen(value) >= size)
		return fail(wrong, "must be an absolute path of up to %zu characters", size - 1);
	for (const char *at = value; *at; at++) {
		/* Of a value in a file " ;" and blanks at the end would not be left. */
		if ((unsigned char)*at <= ' ' || *at == 0x7f)
			return fail(wrong, "has a blank or control character");
	}
	snprintf(field, size, "%s", value);
	return 0;
}

static int parse_socket_path(const struct option_row *row, const char *value,
			     const struct option_place *place, struct option_wrong *wrong)
{
	(void)row;
	return take_path(value, place->conf->control_socket, CONF_PATH_SIZE, wrong);
}

static void print_socket_path(const struct option_row *row, const struct option_place *place,
			      char *text, size_t size)
{
	(void)row;
	snprintf(text, size, "%s", place->conf->control_socket);
}

const struct option_kind kind_socket_path = { parse_socket_path, print_socket_path };

static int parse_map_path(const struct option_row *row, const char *value,
			  const struct option_place *place, struct option_wrong *wrong)
{
	return take_path(value, option_field(row, place), CONF_MAP_PATH_SIZE, wrong);
}

static void print_map_path(const struct option_row *row, const struct option_place *place,
			   char *text, size_t size)
{
	snprintf(text, size, "%s", (const char *)option_field(row, place));
}

const struct option_kind kind_map_path = { parse_map_path, print_map_path };

/* A name of the system's: `what` is its kind. */
static int parse_account(const char *what, const struct option_row *row, const char *value,
			 const struct option_place *place, struct option_wrong *wrong)
{
	if (!conf_name_valid(value, CONF_NAME_SIZE - 1))
		return fail(wrong, "a %s name has 1 to %d letters, digits, . _ or -", what,
			    CONF_NAME_SIZE - 1);
	snprintf(option_field(row, place), CONF_NAME_SIZE, "%s", value);
	return 0;
}

static int parse_group(const struct option_row *row, const char *value,
		       const struct option_place *place, struct option_wrong *wrong)
{
	return parse_account("group", row, value, place, wrong);
}

static int parse_user(const struct option_row *row, const char *value,
		      const struct option_place *place, struct option_wrong *wrong)
{
	return parse_account("user", row, value, place, wrong);
}

static void print_account(const struct option_row *row, const struct option_place *place,
			  char *text, size_t size)
{
	snprintf(text, size, "%s", (const char *)option_field(row, place));
}

const struct option_kind kind_group = { parse_group, print_account };
const struct option_kind kind_user = { parse_user, print_account };

static int parse_host_port(const struct option_row *row, const char *value,
			   const struct option_place *place, struct option_wrong *wrong)
{
	(void)row;
	if (!conf_name_valid(value, CONF_HOST_NAME_MAX) || !strcmp(value, ".") ||
	    !strcmp(value, ".."))
		return fail(wrong,
			    "its name has 1 to %d letters, digits, . _ or -: with %s before it, it "
			    "is an interface's as well",
			    CONF_HOST_NAME_MAX, CONF_HOST_NEAR);
	snprintf(place->forward->host_port, sizeof(place->forward->host_port), "%s", value);
	return 0;
}

static void print_host_port(const struct option_row *row, const struct option_place *place,
			    char *text, size_t size)
{
	(void)row;
	snprintf(text, size, "%s", place->forward->host_port);
}

const struct option_kind kind_host_port = { parse_host_port, print_host_port };

static int parse_vlan_mode(const struct option_row *row, const char *value,
			   const struct option_place *place, struct option_wrong *wrong)
{
	struct vlan_wrong why;
	struct vlan_mode mode;

	if (vlan_mode_parse(value, &mode, &why))
		return fail(wrong, "%s", why.text);
	*(struct vlan_mode *)option_field(row, place) = mode;
	return 0;
}

static void print_vlan_mode(const struct option_row *row, const struct option_place *place,
			    char *text, size_t size)
{
	vlan_mode_print(option_field(row, place), text, size);
}

const struct option_kind kind_vlan_mode = { parse_vlan_mode, print_vlan_mode };

static void print_ports(const struct option_row *row, const struct option_place *place, char *text,
			size_t size)
{
	const struct conf_forward *forward = place->forward;
	size_t len = 0;

	(void)row;
	text[0] = '\0';
	for (unsigned i = 0; i < forward->ports && len < size; i++) {
		if (!forward->port[i]->host)
			len += (size_t)snprintf(text + len, size - len, "%s%s", i ? " " : "",
						forward->port[i]->name);
	}
}

const struct option_kind kind_ports = { NULL, print_ports };

/* Lines of their own, which print.c has. */
static void print_station(const struct option_row *row, const struct option_place *place,
			  char *text, size_t size)
{
	(void)row, (void)place, (void)size;
	text[0] = '\0';
}

const struct option_kind kind_station = { NULL, print_station };
