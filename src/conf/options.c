/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "conf/options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mac.h"

/* Smallest ring: below this a batch of one already fills it and the kernel's own batching of fill
 * entries (it takes up to 16 at a time in zero-copy drivers) stalls. */
#define RING_SIZE_MIN 16
/* Largest ring: 2 x 65536 fill entries of 8 bytes are the 1 MiB up to which the kernel's ring
 * allocation is known to succeed on a fragmented host. */
#define RING_SIZE_MAX 65536
/* With -F: the kernel delivers a packet whole or not at all, and one of an skb has up to 46 pieces
 * (MAX_SKB_FRAGS, 17 to 45 by its configuration, and the head). */
#define FRAGS_RING_MIN 64
#define BATCH_MAX      1024
#define FRAMES_MAX     (1U << 24)
#define TX_SIZE_MIN    64
#define QUEUE_MAX      4095
#define CPU_MAX	       4095
#define PRIORITY_MAX   99	    /* of SCHED_FIFO, sched(7) */
#define VLAN_ID_MAX    4095	    /* 12 bits; 802.1Q keeps 4095 for itself, xdpsock sends it */
#define VLAN_PRI_MAX   7	    /* 3 bits */
#define PPS_MAX	       1000000000UL /* one a nanosecond */
#define CYCLE_MAX_US   3600000000UL /* an hour */

/* More than there are rows; an assertion below the table holds it. */
#define OPTIONS_MAX 64

struct option_row;

enum scope {
	SCOPE_RUN,
	SCOPE_FORWARD,
	SCOPE_PORT,
};

/* What the options said, before it is known whether they fit together. */
struct parse {
	struct conf *conf;
	struct conf_forward *forward; /* the one that flags make */
	struct conf_port port;	      /* what they say of every interface */
	char *error;
	size_t error_size;
	const struct option_row *mode_row; /* the one of -r -t -l that was given, else NULL */
	bool given[OPTIONS_MAX];	   /* by row */
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
	enum scope scope;	/* what has the member that a plain option sets */
	size_t field;		/* ... and where */
	bool generates;		/* is about generated frames: needs -t */
};

/* Notes the one line that tells what is wrong, and is the error to return. */
#define fail(parse, ...) (snprintf((parse)->error, (parse)->error_size, __VA_ARGS__), -EINVAL)

static int set_mode(struct parse *parse, const struct option_row *row, enum conf_mode mode)
{
	if (parse->mode_row && parse->mode_row != row)
		return fail(parse, "two modes: give one of -r, -t and -l");
	parse->mode_row = row;
	parse->forward->mode = mode;
	return 0;
}

static int apply_rxdrop(struct parse *parse, const struct option_row *row, const char *value)
{
	(void)value;
	return set_mode(parse, row, CONF_MODE_RXDROP);
}

static int apply_txpush(struct parse *parse, const struct option_row *row, const char *value)
{
	(void)value;
	return set_mode(parse, row, CONF_MODE_TXPUSH);
}

static int apply_l2fwd(struct parse *parse, const struct option_row *row, const char *value)
{
	(void)value;
	return set_mode(parse, row, CONF_MODE_L2FWD);
}

static int apply_interface(struct parse *parse, const struct option_row *row, const char *value)
{
	struct conf *conf = parse->conf;
	struct conf_port *port;

	(void)row;
	if (!*value || strlen(value) >= CONF_IFNAME_SIZE)
		return fail(parse, "-i '%s': an interface name has 1 to %d characters", value,
			    CONF_IFNAME_SIZE - 1);
	for (unsigned i = 0; i < conf->ports; i++) {
		if (!strcmp(conf->port[i].device, value))
			return fail(parse, "-i %s: given twice; name each interface once", value);
	}
	if (conf->ports == CONF_PORTS_MAX)
		return fail(parse, "-i %s: more than %d interfaces", value, CONF_PORTS_MAX);
	port = &conf->port[conf->ports++];
	snprintf(port->name, sizeof(port->name), "%s", value);
	snprintf(port->device, sizeof(port->device), "%s", value);
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
	parse->port.all_queues = !strcmp(value, "all");
	if (parse->port.all_queues) {
		parse->port.queues.count = 0;
		return 0;
	}
	return apply_list(parse, row, value, &parse->port.queues);
}

static int apply_cpus(struct parse *parse, const struct option_row *row, const char *value)
{
	return apply_list(parse, row, value, &parse->forward->cpus);
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

/* The member that the row names; its type is the apply function's to know. */
static void *field_of(struct parse *parse, const struct option_row *row)
{
	switch (row->scope) {
	case SCOPE_FORWARD:
		return (char *)parse->forward + row->field;
	case SCOPE_PORT:
		return (char *)&parse->port + row->field;
	default:
		return (char *)parse->conf + row->field;
	}
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

static int apply_uint64(struct parse *parse, const struct option_row *row, const char *value)
{
	uint64_t *field = field_of(parse, row);
	unsigned long number;
	int err = parse_number(parse, row, value, &number);

	if (!err)
		*field = number;
	return err;
}

static int apply_tx_size(struct parse *parse, const struct option_row *row, const char *value)
{
	struct conf_tx *tx = &parse->forward->tx;
	unsigned long number;
	int err = parse_number(parse, row, value, &number);

	if (!err)
		tx->size_min = tx->size_max = (unsigned)number;
	return err;
}

/* "A-B", or the name of a mix. */
static int apply_sizes(struct parse *parse, const struct option_row *row, const char *value)
{
	struct conf_tx *tx = &parse->forward->tx;
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
	    number_parse(dash + 1, row->min, row->max, &max) || min > max)
		return fail(parse,
			    "--%s=%s: must be imix, or two sizes from %lu to %lu such as 64-1518",
			    row->name, value, row->min, row->max);
	tx->sizes = CONF_SIZES_RANGE;
	tx->size_min = (unsigned)min;
	tx->size_max = (unsigned)max;
	return 0;
}

static int apply_pattern(struct parse *parse, const struct option_row *row, const char *value)
{
	unsigned long number;

	if (number_hex_parse(value, UINT32_MAX, &number))
		return fail(parse,
			    "--%s=%s: not a pattern; type up to 8 hexadecimal digits such as "
			    "0x12345678",
			    row->name, value);
	parse->forward->tx.pattern = (uint32_t)number;
	return 0;
}

static int apply_mac(struct parse *parse, const struct option_row *row, const char *value)
{
	uint8_t *field = field_of(parse, row);

	if (mac_parse(value, field))
		return fail(
			parse,
			"--%s=%s: not a MAC address; type six pairs of hexadecimal digits such as "
			"02:00:00:00:00:02",
			row->name, value);
	return 0;
}

static int apply_source_mac(struct parse *parse, const struct option_row *row, const char *value)
{
	int err = apply_mac(parse, row, value);

	if (!err && parse->forward->tx.source[0] & 1)
		return fail(parse, "--%s=%s: a group address, which no frame comes from", row->name,
			    value);
	parse->forward->tx.source_given = true;
	return err;
}

static int apply_clock(struct parse *parse, const struct option_row *row, const char *value)
{
	static const struct {
		const char *name;
		clockid_t clock;
	} clocks[] = {
		{ "MONOTONIC", CLOCK_MONOTONIC },
		{ "REALTIME", CLOCK_REALTIME },
		{ "TAI", CLOCK_TAI },
		{ "BOOTTIME", CLOCK_BOOTTIME },
	};

	for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		if (strcasecmp(clocks[i].name, value) == 0) {
			parse->forward->tx.clock = clocks[i].clock;
			return 0;
		}
	}
	return fail(parse, "--%s=%s: must be MONOTONIC, REALTIME, TAI or BOOTTIME", row->name,
		    value);
}

static int apply_policy(struct parse *parse, const struct option_row *row, const char *value)
{
	parse->forward->realtime = strcasecmp(value, "FIFO") == 0;
	if (!parse->forward->realtime && strcasecmp(value, "OTHER") != 0)
		return fail(parse, "--%s=%s: must be OTHER or FIFO", row->name, value);
	return 0;
}

static int apply_irq_string(struct parse *parse, const struct option_row *row, const char *value)
{
	if (!*value || strlen(value) >= CONF_IRQ_SIZE)
		return fail(parse,
			    "--%s='%s': give 1 to %d characters of a line of /proc/interrupts",
			    row->name, value, CONF_IRQ_SIZE - 1);
	snprintf(parse->conf->irq_string, CONF_IRQ_SIZE, "%s", value);
	return 0;
}

/* A text that is kept as it is. */
static int apply_text(struct parse *parse, const struct option_row *row, const char *value)
{
	if (strlen(value) < row->min || strlen(value) > row->max)
		return fail(parse, "--%s='%s': must be %lu to %lu characters", row->name, value,
			    row->min, row->max);
	snprintf(field_of(parse, row), row->max + 1, "%s", value);
	return 0;
}

static int apply_skb(struct parse *parse, const struct option_row *row, const char *value)
{
	(void)row, (void)value;
	parse->port.attach = CONF_ATTACH_SKB;
	return 0;
}

static int apply_native(struct parse *parse, const struct option_row *row, const char *value)
{
	(void)row, (void)value;
	parse->port.attach = CONF_ATTACH_NATIVE;
	return 0;
}

static int apply_zero_copy(struct parse *parse, const struct option_row *row, const char *value)
{
	(void)row, (void)value;
	parse->port.zero_copy = CONF_ZERO_COPY_REQUIRE;
	return 0;
}

static int apply_copy(struct parse *parse, const struct option_row *row, const char *value)
{
	(void)row, (void)value;
	parse->port.zero_copy = CONF_ZERO_COPY_NEVER;
	return 0;
}

/* For what an older tool needed said, and here is always so. */
static int apply_nothing(struct parse *parse, const struct option_row *row, const char *value)
{
	(void)parse, (void)row, (void)value;
	return 0;
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
#define RUN(member)	.scope = SCOPE_RUN, .field = offsetof(struct conf, member)
#define FORWARD(member) .scope = SCOPE_FORWARD, .field = offsetof(struct conf_forward, member)
#define PORT(member)	.scope = SCOPE_PORT, .field = offsetof(struct conf_port, member)
#define GENERATES     .generates = true

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
	  "sleep in poll() when there is nothing to do, instead of spinning", apply_flag, FORWARD(poll) },
	{ 'S', "xdp-skb", NULL, NULL,
	  "attach in generic (skb) mode, which also means copy", apply_skb },
	{ 'N', "xdp-native", NULL, NULL,
	  "attach in native mode or fail (neither: native if possible, else skb)",
	  apply_native },
	{ 0, "replace", NULL, NULL,
	  "take another XDP program off the interface; it is not put back at the end", apply_flag,
	  PORT(replace) },
	{ 'z', "zero-copy", NULL, NULL,
	  "zero-copy or fail (neither: zero-copy if possible, else copy)", apply_zero_copy },
	{ 'c', "copy", NULL, NULL, "copy mode, also where zero-copy is possible", apply_copy },
	{ 'm', "no-need-wakeup", NULL, NULL,
	  "bind without need_wakeup: the kernel is called for every batch", apply_flag,
	  FORWARD(no_need_wakeup) },
	{ 'B', "busy-poll", NULL, NULL,
	  "run the driver's NAPI from the poller: SO_PREFER_BUSY_POLL, 20 us, a budget of -b",
	  apply_flag, FORWARD(busy_poll) },
	{ 'b', "batch-size", NULL, "N",
	  "frames a port and pass (64)", apply_unsigned, 1, BATCH_MAX, FORWARD(batch) },
	{ 'f', "frame-size", NULL, "BYTES",
	  "UMEM chunk, 2048 or 4096, any size between with -u (4096)", apply_unsigned,
	  CONF_FRAME_SIZE_MIN, CONF_FRAME_SIZE_MAX, FORWARD(frame_size) },
	{ 'u', "unaligned", NULL, NULL,
	  "unaligned chunks: -f need not be a power of two", apply_flag, FORWARD(unaligned) },
	{ 'M', "shared-umem", NULL, NULL,
	  "register the frames of all queues and interfaces as one UMEM", apply_flag,
	  FORWARD(shared_umem) },
	{ 'F', "frags", NULL, NULL,
	  "multi-buffer: a packet larger than a chunk takes several (XDP_USE_SG)", apply_flag,
	  FORWARD(frags) },
	{ 'n', "interval", NULL, "SECONDS",
	  "seconds between two reports (1)", apply_unsigned, 1, 86400, RUN(interval_s) },
	{ 'd', "duration", NULL, "SECONDS",
	  "end after this time (0: never)", apply_unsigned, 0, INT_MAX, RUN(duration_s) },
	{ 'C', "tx-pkt-count", NULL, "N",
	  "txonly: send exactly N frames, over all queues together, and end (0: no end)",
	  apply_uint64, 0, LONG_MAX, FORWARD(tx.count), GENERATES },
	{ 'O', "retries", NULL, "N",
	  "with -C: seconds to wait for the last frames to be completed (3)", apply_unsigned,
	  0, 86400, FORWARD(tx.retries), GENERATES },
	{ 's', "tx-pkt-size", NULL, "BYTES",
	  "txonly: bytes a frame, the 4-byte FCS included (64)", apply_tx_size,
	  TX_SIZE_MIN, CONF_TX_SIZE_MAX, GENERATES },
	{ 0, "sizes", NULL, "A-B|imix",
	  "txonly: every size from A to B in turn; or 7 x 64, 4 x 594, 1 x 1518", apply_sizes,
	  TX_SIZE_MIN, CONF_TX_SIZE_MAX, GENERATES },
	{ 'P', "tx-pkt-pattern", NULL, "HEX",
	  "txonly: 32 bits that fill the payload (0x12345678)", apply_pattern, GENERATES },
	{ 'V', "tx-vlan", NULL, NULL,
	  "txonly: send 802.1Q tagged frames", apply_flag, FORWARD(tx.vlan), GENERATES },
	{ 'J', "tx-vlan-id", NULL, "N",
	  "with -V: VLAN id (1)", apply_unsigned, 0, VLAN_ID_MAX, FORWARD(tx.vlan_id), GENERATES },
	{ 'K', "tx-vlan-pri", NULL, "N",
	  "with -V: priority (0)", apply_unsigned, 0, VLAN_PRI_MAX, FORWARD(tx.vlan_priority),
	  GENERATES },
	{ 'G', "tx-dmac", NULL, "MAC",
	  "txonly: destination (02:00:00:00:00:02)", apply_mac, FORWARD(tx.destination), GENERATES },
	{ 'H', "tx-smac", NULL, "MAC",
	  "txonly: source (the interface's own)", apply_source_mac, FORWARD(tx.source), GENERATES },
	{ 0, "pps", NULL, "N",
	  "txonly: frames a second over all queues together (as fast as it goes)", apply_uint64,
	  1, PPS_MAX, FORWARD(tx.pps), GENERATES },
	{ 'T', "tx-cycle", NULL, "USECS",
	  "txonly: one batch a queue every so often", apply_unsigned, 1, CYCLE_MAX_US,
	  FORWARD(tx.cycle_us), GENERATES },
	{ 'y', "tstamp", NULL, NULL,
	  "txonly: sequence number and time of sending in the payload, as pktgen", apply_flag,
	  FORWARD(tx.timestamp), GENERATES },
	{ 'w', "clock", NULL, "CLOCK",
	  "with -T or -y: MONOTONIC, REALTIME, TAI or BOOTTIME (MONOTONIC)", apply_clock, GENERATES },
	{ 'W', "policy", NULL, "POLICY",
	  "scheduling of the pollers: OTHER or FIFO (OTHER)", apply_policy },
	{ 'U', "schpri", NULL, "N",
	  "with -W FIFO: priority, 1 to 99 (0)", apply_unsigned, 0, PRIORITY_MAX, FORWARD(priority) },
	{ 'x', "extra-stats", NULL, NULL,
	  "report the sockets' own statistics too", apply_flag, RUN(extra_stats) },
	{ 'a', "app-stats", NULL, NULL,
	  "report system calls and the transmit cycle too", apply_flag, RUN(app_stats) },
	{ 'I', "irq-string", NULL, "TEXT",
	  "report the interrupt whose line in /proc/interrupts has TEXT", apply_irq_string },
	{ 'Q', "quiet", NULL, NULL, "no reports", apply_flag, RUN(quiet) },
	{ 'R', "reduce-cap", NULL, NULL,
	  "accepted: dropping capabilities, what it asked for, is what happens without it",
	  apply_nothing },
	{ 0, "cpus", NULL, "LIST",
	  "one CPU a queue, in this order (those this process may use)", apply_cpus, 0, CPU_MAX },
	{ 0, "ring-size", NULL, "N",
	  "RX and TX ring entries, a power of two; fill has twice as many (2048)",
	  apply_power_of_two, RING_SIZE_MIN, RING_SIZE_MAX, FORWARD(ring_size) },
	{ 0, "frames-per-queue", NULL, "N",
	  "UMEM frames per interface and queue, at least 5 x ring-size (5 x ring-size)",
	  apply_unsigned, 1, FRAMES_MAX, FORWARD(frames_per_queue) },
	{ 0, "huge-pages", NULL, NULL,
	  "warn if there are no huge pages for the frames; they are used where there are",
	  apply_flag, FORWARD(huge_pages) },
	{ 0, "json", NULL, NULL,
	  "report one JSON object a line instead of rows", apply_flag, RUN(json) },
	{ 0, "control-socket", NULL, "PATH",
	  "answer millracectl on this UNIX socket while it runs (none)", apply_text,
	  1, CONF_PATH_SIZE - 1, RUN(control_socket) },
	{ 0, "control-group", NULL, "GROUP",
	  "with --control-socket: group that may look, not change (none)", apply_text,
	  1, CONF_NAME_SIZE - 1, RUN(control_group) },
	{ 0, "keep-privileges", NULL, NULL,
	  "do not drop all capabilities before forwarding", apply_flag, RUN(keep_privileges) },
	{ 'h', "help", NULL, NULL, "print this and end", apply_help },
	{ 0, "version", NULL, NULL, "print the version and end", apply_version },
};
/* clang-format on */

#define ROWS (sizeof(option_rows) / sizeof(option_rows[0]))

_Static_assert(ROWS <= OPTIONS_MAX, "more options than struct parse has room for");

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

static bool given(const struct parse *parse, char letter)
{
	return parse->given[row_of(letter) - option_rows];
}

static bool given_long(const struct parse *parse, const char *name)
{
	for (size_t i = 0; i < ROWS; i++) {
		if (!strcmp(option_rows[i].name, name))
			return parse->given[i];
	}
	return false;
}

static int check_rings(struct parse *parse)
{
	struct conf_forward *conf = parse->forward;
	unsigned need = conf_ring_frames(conf);

	if (!conf->unaligned && !number_is_power_of_two(conf->frame_size))
		return fail(parse,
			    "--frame-size=%u: must be a power of two, %u or %u; with -u any size "
			    "between",
			    conf->frame_size, CONF_FRAME_SIZE_MIN, CONF_FRAME_SIZE_MAX);
	if (conf->frags && conf->ring_size < FRAGS_RING_MIN)
		return fail(parse,
			    "--ring-size=%u: with -F at least %u, for all the pieces of a packet",
			    conf->ring_size, FRAGS_RING_MIN);
	if (!conf->frames_per_queue)
		conf->frames_per_queue = need;
	if (conf->frames_per_queue < need)
		return fail(parse,
			    "--frames-per-queue=%u: the rings need at least %u (fill %u + RX %u + "
			    "TX %u + completion %u); raise it or lower --ring-size",
			    conf->frames_per_queue, need, 2 * conf->ring_size, conf->ring_size,
			    conf->ring_size, conf->ring_size);
	if (!given(parse, 'b') && conf->batch > conf->ring_size)
		conf->batch = conf->ring_size;
	if (conf->batch > conf->ring_size)
		return fail(parse,
			    "--batch-size=%u: more than the rings hold (%u); lower it or raise "
			    "--ring-size",
			    conf->batch, conf->ring_size);
	return 0;
}

/* Ethernet, IPv4 and UDP headers and what the options add, FCS included: a smaller frame than that is
 * not sent. */
static unsigned tx_size_needed(const struct conf_tx *tx)
{
	return CONF_TX_HEADERS + (tx->vlan ? ETHER_VLAN_LEN : 0) +
	       (tx->timestamp ? CONF_TX_TIMESTAMP : 0);
}

static int check_tx_sizes(struct parse *parse)
{
	struct conf_tx *tx = &parse->forward->tx;
	unsigned need = tx_size_needed(tx), room = conf_chunk_room(parse->forward) + ETHER_FCS_LEN;

	if (given(parse, 's') && given_long(parse, "sizes"))
		return fail(parse, "-s and --sizes exclude each other: give one");
	if (tx->size_min < need && tx->sizes == CONF_SIZES_RANGE) {
		tx->size_raised = given(parse, 's') || given_long(parse, "sizes");
		tx->size_min = need;
		if (tx->size_max < need)
			tx->size_max = need;
	}
	if (tx->size_min < need)
		return fail(parse,
			    "--sizes=imix: its 64-byte frames have no room for -V with -y "
			    "(%u); leave out one",
			    need);
	if (tx->size_max > room && !parse->forward->frags)
		return fail(
			parse,
			"--%s: a frame of %u bytes, FCS included, does not fit a chunk of %u (at "
			"most %u); lower it%s, or use -F",
			given(parse, 's') ? "tx-pkt-size" : "sizes", tx->size_max,
			parse->forward->frame_size, room,
			parse->forward->frame_size < CONF_FRAME_SIZE_MAX ? ", use -f 4096" : "");
	return 0;
}

static int check_tx(struct parse *parse)
{
	struct conf_forward *conf = parse->forward;

	for (size_t i = 0; i < ROWS; i++) {
		if (!parse->given[i] || !option_rows[i].generates || conf->mode == CONF_MODE_TXPUSH)
			continue;
		if (option_rows[i].letter)
			return fail(parse, "-%c, --%s: is about generated frames; it needs -t",
				    option_rows[i].letter, option_rows[i].name);
		return fail(parse, "--%s: is about generated frames; it needs -t",
			    option_rows[i].name);
	}
	if (given(parse, 'J') && !conf->tx.vlan)
		return fail(parse, "-J %u: there is no tag without -V", conf->tx.vlan_id);
	if (given(parse, 'K') && !conf->tx.vlan)
		return fail(parse, "-K %u: there is no tag without -V", conf->tx.vlan_priority);
	if (given(parse, 'O') && !conf->tx.count)
		return fail(parse, "-O %u: there is no last frame to wait for without -C",
			    conf->tx.retries);
	if (given(parse, 'w') && !conf->tx.cycle_us && !conf->tx.timestamp)
		return fail(parse, "-w: nothing is timed without -T or -y");
	if (conf->tx.pps && conf->tx.cycle_us)
		return fail(parse, "--pps and -T exclude each other: give one");
	return check_tx_sizes(parse);
}

static int check_scheduling(struct parse *parse)
{
	const struct conf_forward *conf = parse->forward;

	if (conf->realtime && !conf->priority)
		return fail(parse, "-W FIFO: needs a priority; add -U 1 (to %d)", PRIORITY_MAX);
	if (!conf->realtime && conf->priority)
		return fail(parse, "-U %u: only FIFO has priorities; add -W FIFO", conf->priority);
	return 0;
}

static int check_together(struct parse *parse)
{
	struct conf_forward *conf = parse->forward;
	int err;

	if (!conf->ports)
		return fail(parse, "no interface: give one with -i");
	if (conf->mode == CONF_MODE_L2FWD && conf->ports == 2)
		conf->mode = CONF_MODE_PATCH;
	if (conf->mode == CONF_MODE_L2FWD && conf->ports > 2)
		return fail(parse,
			    "-l takes one interface (swap and send back) or two (patch), not %u",
			    conf->ports);
	if (given(parse, 'S') && given(parse, 'N'))
		return fail(parse, "-S and -N exclude each other: give one");
	if (given(parse, 'z') && given(parse, 'c'))
		return fail(parse, "-z and -c exclude each other: give one");
	if (given(parse, 'S') && given(parse, 'z'))
		return fail(parse, "-S and -z exclude each other: skb mode always copies");
	if (parse->conf->control_group[0] && !parse->conf->control_socket[0])
		return fail(parse,
			    "--control-group=%s: there is nothing to ask without "
			    "--control-socket",
			    parse->conf->control_group);
	err = check_scheduling(parse);
	if (!err)
		err = check_rings(parse);
	return err ? err : check_tx(parse);
}

static void forward_defaults(struct conf_forward *forward)
{
	/* Locally administered, so that it is nobody's. */
	static const uint8_t destination[MAC_LEN] = { 0x02, 0x00, 0x00, 0x00, 0x00, 0x02 };

	snprintf(forward->name, sizeof(forward->name), "main");
	forward->batch = 64;
	forward->frame_size = 4096;
	forward->ring_size = 2048;
	forward->tx.retries = 3;
	forward->tx.size_min = forward->tx.size_max = TX_SIZE_MIN;
	forward->tx.pattern = 0x12345678; /* xdpsock's */
	forward->tx.vlan_id = 1;
	forward->tx.clock = CLOCK_MONOTONIC;
	memcpy(forward->tx.destination, destination, MAC_LEN);
}

/* One forward, of all the interfaces that will be named. */
static int conf_defaults(struct conf *conf)
{
	memset(conf, 0, sizeof(*conf));
	conf->forwards = 1;
	conf->forward = calloc(1, sizeof(*conf->forward));
	conf->port = calloc(CONF_PORTS_MAX, sizeof(*conf->port));
	conf->interval_s = 1;
	if (!conf->forward || !conf->port)
		return -ENOMEM;
	forward_defaults(conf->forward);
	return 0;
}

/* What was said of the interfaces holds for each of them. */
static void spread_port(struct parse *parse)
{
	struct conf *conf = parse->conf;

	for (unsigned i = 0; i < conf->ports; i++) {
		struct conf_port *port = &conf->port[i], named = *port;

		*port = parse->port;
		memcpy(port->name, named.name, sizeof(port->name));
		memcpy(port->device, named.device, sizeof(port->device));
		parse->forward->port[i] = port;
	}
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
		parse->given[row_of(code) - option_rows] = true;
	}
	if (!err && optind < argc)
		return fail(parse, "'%s': not an option; name interfaces with -i", argv[optind]);
	return err;
}

/* A message repeats what was typed, which may be anything; it stays one line, and leaves the terminal
 * alone. */
static enum options_result wrong(const struct parse *parse)
{
	for (char *at = parse->error; *at; at++) {
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = '?';
	}
	return OPTIONS_WRONG;
}

enum options_result options_parse(int argc, char **argv, struct conf *conf, char *error,
				  size_t error_size)
{
	struct parse parse = {
		.conf = conf,
		.port.queues.count = 1, /* queue 0, as xdpsock */
		.error = error,
		.error_size = error_size,
	};

	if (conf_defaults(conf)) {
		(void)fail(&parse, "out of memory");
		return OPTIONS_WRONG;
	}
	parse.forward = conf->forward;
	if (parse_all(&parse, argc, argv))
		return wrong(&parse);
	if (parse.help)
		return OPTIONS_HELP;
	if (parse.version)
		return OPTIONS_VERSION;
	parse.forward->ports = conf->ports;
	spread_port(&parse);
	return check_together(&parse) ? wrong(&parse) : OPTIONS_RUN;
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
