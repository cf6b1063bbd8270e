/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "conf/options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <string.h>

#include "base/mac.h"

/* Smallest ring: below this a batch of one already fills it and the kernel's own batching of fill
 * entries (it takes up to 16 at a time in zero-copy drivers) stalls. */
#define RING_SIZE_MIN 16
/* Largest ring: 2 x 65536 fill entries of 8 bytes are the 1 MiB up to which the kernel's ring
 * allocation is known to succeed on a fragmented host. */
#define RING_SIZE_MAX 65536
#define BATCH_MAX     1024
/* The kernel's limits: chunks of 2048 bytes up to one page (xdp_umem_reg()). */
#define FRAME_SIZE_MIN 2048
#define FRAME_SIZE_MAX 4096
#define FRAMES_MAX     (1U << 24)
#define TX_SIZE_MIN    64
#define TX_SIZE_MAX    9728
#define QUEUE_MAX      4095
#define CPU_MAX	       4095

/* What the options said, before it is known whether they fit together. */
struct parse {
	struct conf *conf;
	char *error;
	size_t error_size;
	unsigned modes; /* how many of -r -t -l */
	bool attach_given, zero_copy_given, batch_given, tx_count_given, tx_size_given;
	bool help, version;
};

struct option_row {
	char letter;	   /* 0: none */
	const char *name;  /* long form */
	const char *alias; /* second long form */
	const char *value; /* what follows, NULL: a switch */
	const char *help;
	int (*apply)(struct parse *parse, const struct option_row *row, const char *value);
	unsigned long min, max; /* of a number */
	size_t field;		/* offset of the conf member that a plain option sets */
};

/* Notes the one line that tells what is wrong, and is the error to return. */
#define fail(parse, ...) (snprintf((parse)->error, (parse)->error_size, __VA_ARGS__), -EINVAL)

static int set_mode(struct parse *parse, enum conf_mode mode)
{
	if (parse->modes++ && parse->conf->mode != mode)
		return fail(parse, "two modes: give one of -r, -t and -l");
	parse->conf->mode = mode;
	return 0;
}

static int apply_rxdrop(struct parse *parse, const struct option_row *row, const char *value)
{
	(void)row, (void)value;
	return set_mode(parse, CONF_MODE_RXDROP);
}

static int apply_txpush(struct parse *parse, const struct option_row *row, const char *value)
{
	(void)row, (void)value;
	return set_mode(parse, CONF_MODE_TXPUSH);
}

static int apply_l2fwd(struct parse *parse, const struct option_row *row, const char *value)
{
	(void)row, (void)value;
	return set_mode(parse, CONF_MODE_L2FWD);
}

static int apply_interface(struct parse *parse, const struct option_row *row, const char *value)
{
	struct conf *conf = parse->conf;

	(void)row;
	if (!*value || strlen(value) >= CONF_IFNAME_SIZE)
		return fail(parse, "-i '%s': an interface name has 1 to %d characters", value,
			    CONF_IFNAME_SIZE - 1);
	for (unsigned i = 0; i < conf->ports; i++) {
		if (!strcmp(conf->ifname[i], value))
			return fail(parse, "-i %s: given twice; name each interface once", value);
	}
	if (conf->ports == CONF_PORTS_MAX)
		return fail(parse, "-i %s: more than %d interfaces", value, CONF_PORTS_MAX);
	snprintf(conf->ifname[conf->ports++], CONF_IFNAME_SIZE, "%s", value);
	return 0;
}

static int apply_list(struct parse *parse, const struct option_row *row, const char *value,
		      struct number_list *list)
{
	switch (number_list_parse(value, (unsigned)row->max, list)) {
	case 0:
		return 0;
	case -ERANGE:
		return fail(parse, "--%s=%s: numbers go from 0 to %lu, and %d of them at most",
			    row->name, value, row->max, NUMBER_LIST_MAX);
	case -EEXIST:
		return fail(parse, "--%s=%s: a number is given twice", row->name, value);
	default:
		return fail(parse, "--%s=%s: not a list of numbers; type for example 0,2-3",
			    row->name, value);
	}
}

static int apply_queue(struct parse *parse, const struct option_row *row, const char *value)
{
	parse->conf->all_queues = !strcmp(value, "all");
	if (parse->conf->all_queues) {
		parse->conf->queues.count = 0;
		return 0;
	}
	return apply_list(parse, row, value, &parse->conf->queues);
}

static int apply_cpus(struct parse *parse, const struct option_row *row, const char *value)
{
	return apply_list(parse, row, value, &parse->conf->cpus);
}

static int parse_number(struct parse *parse, const struct option_row *row, const char *value,
			unsigned long *number)
{
	switch (number_parse(value, row->min, row->max, number)) {
	case 0:
		return 0;
	case -ERANGE:
		return fail(parse, "--%s=%s: must be %lu to %lu", row->name, value, row->min,
			    row->max);
	default:
		return fail(parse, "--%s=%s: not a number; type one from %lu to %lu", row->name,
			    value, row->min, row->max);
	}
}

/* The conf member that the row names; its type is the apply function's to know. */
static void *field_of(const struct parse *parse, const struct option_row *row)
{
	return (char *)parse->conf + row->field;
}

static int apply_flag(struct parse *parse, const struct option_row *row, const char *value)
{
	bool *field = field_of(parse, row);

	(void)value;
	*field = true;
	return 0;
}

static int apply_unsigned(struct parse *parse, const struct option_row *row, const char *value)
{
	unsigned *field = field_of(parse, row);
	unsigned long number;
	int err = parse_number(parse, row, value, &number);

	if (!err)
		*field = (unsigned)number;
	return err;
}

static int apply_power_of_two(struct parse *parse, const struct option_row *row, const char *value)
{
	const unsigned *field = field_of(parse, row);
	int err = apply_unsigned(parse, row, value);

	if (!err && !number_is_power_of_two(*field))
		return fail(parse, "--%s=%s: must be a power of two from %lu to %lu", row->name,
			    value, row->min, row->max);
	return err;
}

static int apply_batch(struct parse *parse, const struct option_row *row, const char *value)
{
	parse->batch_given = true;
	return apply_unsigned(parse, row, value);
}

static int apply_tx_count(struct parse *parse, const struct option_row *row, const char *value)
{
	unsigned long number;
	int err = parse_number(parse, row, value, &number);

	parse->tx_count_given = true;
	if (!err)
		parse->conf->tx_count = number;
	return err;
}

static int apply_tx_size(struct parse *parse, const struct option_row *row, const char *value)
{
	parse->tx_size_given = true;
	return apply_unsigned(parse, row, value);
}

static int set_attach(struct parse *parse, enum conf_attach attach)
{
	if (parse->attach_given && parse->conf->attach != attach)
		return fail(parse, "-S and -N exclude each other: give one");
	parse->attach_given = true;
	parse->conf->attach = attach;
	return 0;
}

static int apply_skb(struct parse *parse, const struct option_row *row, const char *value)
{
	(void)row, (void)value;
	return set_attach(parse, CONF_ATTACH_SKB);
}

static int apply_native(struct parse *parse, const struct option_row *row, const char *value)
{
	(void)row, (void)value;
	return set_attach(parse, CONF_ATTACH_NATIVE);
}

static int set_zero_copy(struct parse *parse, enum conf_zero_copy zero_copy)
{
	if (parse->zero_copy_given && parse->conf->zero_copy != zero_copy)
		return fail(parse, "-z and -c exclude each other: give one");
	parse->zero_copy_given = true;
	parse->conf->zero_copy = zero_copy;
	return 0;
}

static int apply_zero_copy(struct parse *parse, const struct option_row *row, const char *value)
{
	(void)row, (void)value;
	return set_zero_copy(parse, CONF_ZERO_COPY_REQUIRE);
}

static int apply_copy(struct parse *parse, const struct option_row *row, const char *value)
{
	(void)row, (void)value;
	return set_zero_copy(parse, CONF_ZERO_COPY_NEVER);
}

static int apply_help(struct parse *parse, const struct option_row *row, const char *value)
{
	(void)row, (void)value;
	parse->help = true;
	return 0;
}

static int apply_version(struct parse *parse, const struct option_row *row, const char *value)
{
	(void)row, (void)value;
	parse->version = true;
	return 0;
}

/* clang-format off */
#define FIELD(member) .field = offsetof(struct conf, member)

static const struct option_row option_rows[] = {
	{ 'r', "rxdrop", NULL, NULL,
	  "receive and discard (the default mode)", apply_rxdrop },
	{ 't', "txonly", "txpush", NULL,
	  "send generated IPv4/UDP frames; the host keeps receiving", apply_txpush },
	{ 'l', "l2fwd", NULL, NULL,
	  "one interface: swap the MAC addresses, send back; two: patch, each to the other unchanged",
	  apply_l2fwd },
	{ 'i', "interface", NULL, "IFACE",
	  "interface to serve; may be given several times", apply_interface },
	{ 'q', "queue", NULL, "LIST",
	  "queues: a number, a list or range such as 0,2-3, or all (0)", apply_queue,
	  0, QUEUE_MAX },
	{ 'p', "poll", NULL, NULL,
	  "sleep in poll() when there is nothing to do, instead of spinning", apply_flag, FIELD(poll) },
	{ 'S', "xdp-skb", NULL, NULL,
	  "attach in generic (skb) mode, which also means copy", apply_skb },
	{ 'N', "xdp-native", NULL, NULL,
	  "attach in native mode or fail (neither: native if possible, else skb)",
	  apply_native },
	{ 'z', "zero-copy", NULL, NULL,
	  "zero-copy or fail (neither: zero-copy if possible, else copy)", apply_zero_copy },
	{ 'c', "copy", NULL, NULL, "copy mode, also where zero-copy is possible", apply_copy },
	{ 'b', "batch-size", NULL, "N",
	  "frames a port and pass (64)", apply_batch, 1, BATCH_MAX, FIELD(batch) },
	{ 'f', "frame-size", NULL, "BYTES",
	  "UMEM chunk, 2048 or 4096 (4096)", apply_power_of_two, FRAME_SIZE_MIN, FRAME_SIZE_MAX,
	  FIELD(frame_size) },
	{ 'n', "interval", NULL, "SECONDS",
	  "seconds between two reports (1)", apply_unsigned, 1, 86400, FIELD(interval_s) },
	{ 'd', "duration", NULL, "SECONDS",
	  "end after this time (0: never)", apply_unsigned, 0, INT_MAX, FIELD(duration_s) },
	{ 'C', "tx-pkt-count", NULL, "N",
	  "txonly: send exactly N frames, over all queues together, and end (0: no end)",
	  apply_tx_count, 0, LONG_MAX },
	{ 's', "tx-pkt-size", NULL, "BYTES",
	  "txonly: bytes a frame, the 4-byte FCS included (64)", apply_tx_size,
	  TX_SIZE_MIN, TX_SIZE_MAX, FIELD(tx_size) },
	{ 0, "cpus", NULL, "LIST",
	  "one CPU a queue, in this order (those this process may use)", apply_cpus, 0, CPU_MAX },
	{ 0, "ring-size", NULL, "N",
	  "RX and TX ring entries, a power of two; fill has twice as many (2048)",
	  apply_power_of_two, RING_SIZE_MIN, RING_SIZE_MAX, FIELD(ring_size) },
	{ 0, "frames-per-queue", NULL, "N",
	  "UMEM frames per interface and queue, at least 5 x ring-size (5 x ring-size)",
	  apply_unsigned, 1, FRAMES_MAX, FIELD(frames_per_queue) },
	{ 0, "huge-pages", NULL, NULL,
	  "put the frames on huge pages if there are any", apply_flag, FIELD(huge_pages) },
	{ 0, "json", NULL, NULL,
	  "report one JSON object a line instead of rows", apply_flag, FIELD(json) },
	{ 0, "keep-privileges", NULL, NULL,
	  "do not drop all capabilities before forwarding", apply_flag, FIELD(keep_privileges) },
	{ 'h', "help", NULL, NULL, "print this and end", apply_help },
	{ 0, "version", NULL, NULL, "print the version and end", apply_version },
};
/* clang-format on */

#define ROWS (sizeof(option_rows) / sizeof(option_rows[0]))

/* getopt_long() returns LONG_BASE + row for a long option, so that one switch serves both. */
#define LONG_BASE 256

static void getopt_tables(char *letters, struct option *longs)
{
	*letters++ = ':'; /* tell a missing value from an unknown option */
	for (size_t i = 0; i < ROWS; i++) {
		int has_value = option_rows[i].value ? required_argument : no_argument;

		if (option_rows[i].letter) {
			*letters++ = option_rows[i].letter;
			if (option_rows[i].value)
				*letters++ = ':';
		}
		*longs++ =
			(struct option){ option_rows[i].name, has_value, NULL, LONG_BASE + (int)i };
		if (option_rows[i].alias)
			*longs++ = (struct option){ option_rows[i].alias, has_value, NULL,
						    LONG_BASE + (int)i };
	}
	*letters = '\0';
	*longs = (struct option){ NULL, 0, NULL, 0 };
}

static const struct option_row *row_of(int code)
{
	if (code >= LONG_BASE)
		return &option_rows[code - LONG_BASE];
	for (size_t i = 0; i < ROWS; i++) {
		if (option_rows[i].letter == code)
			return &option_rows[i];
	}
	return NULL;
}

static int check_sizes(struct parse *parse)
{
	struct conf *conf = parse->conf;
	unsigned need = conf_ring_frames(conf);
	unsigned room = conf->frame_size - XDP_PACKET_HEADROOM;

	if (!conf->frames_per_queue)
		conf->frames_per_queue = need;
	if (conf->frames_per_queue < need)
		return fail(parse,
			    "--frames-per-queue=%u: the rings need at least %u (fill %u + RX %u + "
			    "TX %u + completion %u); raise it or lower --ring-size",
			    conf->frames_per_queue, need, 2 * conf->ring_size, conf->ring_size,
			    conf->ring_size, conf->ring_size);
	if (!parse->batch_given && conf->batch > conf->ring_size)
		conf->batch = conf->ring_size;
	if (conf->batch > conf->ring_size)
		return fail(parse,
			    "--batch-size=%u: more than the rings hold (%u); lower it or raise "
			    "--ring-size",
			    conf->batch, conf->ring_size);
	if (conf->tx_size - ETHER_FCS_LEN > room)
		return fail(
			parse,
			"--tx-pkt-size=%u: a frame of %u bytes and FCS does not fit a chunk of %u "
			"(at most %u)%s",
			conf->tx_size, conf->tx_size - ETHER_FCS_LEN, conf->frame_size,
			room + ETHER_FCS_LEN,
			conf->frame_size < FRAME_SIZE_MAX ? "; lower it or use -f 4096" :
							    "; lower it");
	return 0;
}

static int check_together(struct parse *parse)
{
	struct conf *conf = parse->conf;

	if (!conf->ports)
		return fail(parse, "no interface: give one with -i");
	if (conf->mode == CONF_MODE_L2FWD && conf->ports == 2)
		conf->mode = CONF_MODE_PATCH;
	if (conf->mode == CONF_MODE_L2FWD && conf->ports > 2)
		return fail(parse,
			    "-l takes one interface (swap and send back) or two (patch), not %u",
			    conf->ports);
	if (conf->attach == CONF_ATTACH_SKB && conf->zero_copy == CONF_ZERO_COPY_REQUIRE)
		return fail(parse, "-S and -z exclude each other: skb mode always copies");
	if (parse->tx_count_given && conf->mode != CONF_MODE_TXPUSH)
		return fail(parse, "-C counts generated frames: it needs -t");
	if (parse->tx_size_given && conf->mode != CONF_MODE_TXPUSH)
		return fail(parse, "-s sizes generated frames: it needs -t");
	return check_sizes(parse);
}

static void conf_defaults(struct conf *conf)
{
	memset(conf, 0, sizeof(*conf));
	conf->queues.count = 1; /* queue 0, as xdpsock */
	conf->batch = 64;
	conf->frame_size = 4096;
	conf->ring_size = 2048;
	conf->interval_s = 1;
	conf->tx_size = TX_SIZE_MIN;
}

/* getopt_long() takes "--frame" for --frame-size only if nothing else begins so. */
static bool ambiguous(const char *word)
{
	size_t len = strcspn(word, "=");
	unsigned found = 0;

	for (size_t i = 0; i < ROWS && !strncmp(word, "--", 2); i++)
		found += !strncmp(word + 2, option_rows[i].name, len - 2);
	return found > 1;
}

/* The option as the user typed it, for messages; getopt has moved past it. */
static int fail_unknown(struct parse *parse, char **argv)
{
	const char *word = argv[optind - 1];

	if (optopt >= LONG_BASE)
		return fail(parse, "--%s takes no value", option_rows[optopt - LONG_BASE].name);
	if (optopt > 0)
		return fail(parse, "-%c: unknown option; see millraced --help", optopt);
	if (optopt < 0) /* a letter beyond ASCII, in the middle of a word */
		return fail(parse, "an option letter that is none; see millraced --help");
	if (ambiguous(word))
		return fail(parse, "%s: several options begin so; see millraced --help", word);
	return fail(parse, "%s: unknown option; see millraced --help", word);
}

static int fail_valueless(struct parse *parse)
{
	const struct option_row *row = row_of(optopt);

	return fail(parse, "--%s needs a value: --%s=%s", row->name, row->name, row->value);
}

static int parse_all(struct parse *parse, int argc, char **argv)
{
	struct option longs[2 * ROWS + 1];
	char letters[2 * ROWS + 2];
	int code, err = 0;

	getopt_tables(letters, longs);
	opterr = 0;
	optind = 0; /* glibc: start afresh */
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): before the first thread, see options.h */
	while (!err && (code = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (code == '?')
			return fail_unknown(parse, argv);
		if (code == ':')
			return fail_valueless(parse);
		err = row_of(code)->apply(parse, row_of(code), optarg);
	}
	if (!err && optind < argc)
		return fail(parse, "'%s': not an option; name interfaces with -i", argv[optind]);
	return err;
}

enum options_result options_parse(int argc, char **argv, struct conf *conf, char *error,
				  size_t error_size)
{
	struct parse parse = { .conf = conf, .error = error, .error_size = error_size };

	conf_defaults(conf);
	if (parse_all(&parse, argc, argv))
		return OPTIONS_WRONG;
	if (parse.help)
		return OPTIONS_HELP;
	if (parse.version)
		return OPTIONS_VERSION;
	return check_together(&parse) ? OPTIONS_WRONG : OPTIONS_RUN;
}

void options_help(FILE *out)
{
	fputs("Usage: millraced [-r|-t|-l] -i IFACE [-i IFACE] [options]\n"
	      "Moves Ethernet frames in user space over AF_XDP.\n\n",
	      out);
	for (size_t i = 0; i < ROWS; i++) {
		char names[64];
		int len = 0;

		if (option_rows[i].letter)
			len = snprintf(names, sizeof(names), "-%c, ", option_rows[i].letter);
		else
			len = snprintf(names, sizeof(names), "    ");
		len += snprintf(names + len, sizeof(names) - (size_t)len, "--%s%s%s",
				option_rows[i].name, option_rows[i].value ? "=" : "",
				option_rows[i].value ? option_rows[i].value : "");
		if (option_rows[i].alias)
			snprintf(names + len, sizeof(names) - (size_t)len, ", --%s",
				 option_rows[i].alias);
		fprintf(out, "  %-28s %s\n", names, option_rows[i].help);
	}
	fputs("\nExit status: 0 ended as asked, 1 this host refused or a device went away, 2 usage.\n",
	      out);
}
