/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The one table of options. A row is a flag, a key of the configuration file, or both; it feeds the
 * command line, the file, the canonical printer, --help and, by way of --help, the manuals' check.
 * Within conf/ only.
 */
#pragma once

#include <limits.h>
#include <stddef.h>

#include "base/diag.h"
#include "conf/conf.h"
#include "conf/options.h"

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

/* Room for any printed value: PASS_RULES_MAX rules, and their commas. */
#define OPTION_TEXT_SIZE PASS_TEXT_SIZE

/* What has the member that a row sets. */
enum option_scope {
	SCOPE_RUN,
	SCOPE_FORWARD,
	SCOPE_PORT,
	SCOPE_LINE, /* the command line itself: no member */
};

/* Sections of a file, as bits. */
enum option_section {
	IN_MILLRACE = 1U << 0,
	IN_PORT = 1U << 1,
	IN_FORWARD = 1U << 2,
	IN_FDB = 1U << 3,
};

/* What a flag of SCOPE_LINE does. */
enum option_act {
	ACT_NONE,
	ACT_INTERFACE,
	ACT_HELP,
	ACT_HELP_CONFIG,
	ACT_VERSION,
	ACT_CONFIG,
	ACT_CHECK,
	ACT_PRINT,
	ACT_PLAN,
};

struct option_row;

/* The structures that rows are about; those of other scopes than the row's may be NULL. */
struct option_place {
	struct conf *conf;
	struct conf_forward *forward;
	struct conf_port *port;
};

/* Room for what a value should have been. */
struct option_wrong {
	char text[256];
};

/* A kind of value: how it is read and written. */
struct option_kind {
	/* Reads value into the row's member. Returns 0, or -EINVAL with `wrong` telling what is wrong
	 * and what was expected, to stand behind the option and the value. */
	int (*parse)(const struct option_row *row, const char *value,
		     const struct option_place *place, struct option_wrong *wrong);
	/* Writes the member as parse reads it, or nothing if the row has nothing to say. */
	void (*print)(const struct option_row *row, const struct option_place *place, char *text,
		      size_t size);
};

/* A word and what it means; the first word of a value is the one to print and to propose. */
struct option_word {
	const char *word; /* NULL: the end */
	int value;
};

struct option_row {
	char letter;	   /* 0: none */
	const char *name;  /* long form; NULL: no flag */
	const char *alias; /* second long form */
	const char *value; /* what follows the flag or the key's '='; NULL: a switch, or words */
	const char *help;
	const struct option_kind *kind;	 /* NULL: none of its own, see `sets` */
	unsigned long min, max;		 /* of a number */
	enum option_scope scope;	 /* what has the member, */
	size_t field;			 /* and where */
	const struct option_word *words; /* of a choice */
	bool generates;			 /* is about generated frames: needs mode txpush */
	bool bridges;			 /* is about a bridge */
	bool optional;			 /* the flag's value may be left out */
	enum option_act act;
	const char *key;	 /* in a file, where it is not the name */
	unsigned in;		 /* the sections it may stand in; 0: it is no key */
	const char *about;	 /* help of the key, where it is not the flag's */
	bool must;		 /* no section without this key */
	const char *sets, *says; /* a flag that is short for the key `sets` with the value `says` */
};

extern const struct option_row option_rows[];
extern const unsigned option_rows_count;

/* NOLINTBEGIN(bugprone-macro-parentheses): it declares the row */
#define for_each_row(row)                                                                       \
	for (const struct option_row *row = option_rows; row < option_rows + option_rows_count; \
	     row++)
/* NOLINTEND(bugprone-macro-parentheses) */

static inline unsigned option_index(const struct option_row *row)
{
	return (unsigned)(row - option_rows);
}

/* The name in a file; NULL if the row is no key. */
static inline const char *option_key(const struct option_row *row)
{
	return !row->in ? NULL : row->key ? row->key : row->name;
}

/* The row of a key, or NULL. */
const struct option_row *option_find(const char *key);

/* The member in `place` that the row names; its type is the kind's to know. */
void *option_field(const struct option_row *row, const struct option_place *place);

/* Kinds of values (values.c). */
extern const struct option_kind kind_words;	   /* an int or enum by name */
extern const struct option_kind kind_bool;	   /* a bool by name */
extern const struct option_kind kind_unsigned;	   /* unsigned, min to max */
extern const struct option_kind kind_power_of_two; /* unsigned */
extern const struct option_kind kind_uint64;
extern const struct option_kind kind_queues; /* a port's: a list, or auto */
extern const struct option_kind kind_cpus;   /* a struct number_list, or auto */
extern const struct option_kind kind_tx_size, kind_sizes, kind_pattern, kind_mac, kind_source_mac;
extern const struct option_kind kind_wait;	 /* wait and busy_poll of a forward */
extern const struct option_kind kind_device;	 /* a port's */
extern const struct option_kind kind_irq_string; /* a conf's */
extern const struct option_kind kind_socket_path, kind_group, kind_user;
extern const struct option_kind kind_map_path;	/* char[CONF_MAP_PATH_SIZE] */
extern const struct option_kind kind_pass;	/* a port's */
extern const struct option_kind kind_seconds;	/* unsigned; with s, m or h behind it, or nothing */
extern const struct option_kind kind_host_port; /* a forward's */
extern const struct option_kind kind_vlan_mode; /* a struct vlan_mode */
extern const struct option_kind kind_station;	/* a forward's, one a line; likewise */
extern const struct option_kind kind_ports; /* a forward's; read by file.c, which knows them all */

extern const struct option_word words_yes_no[], words_no_yes[];

/*
 * Options that do not fit together: one set of checks for flags and files, which name things their own
 * way. Errors go into diag; of flags, only the first counts.
 */
struct option_check {
	bool file;
	struct diag *diag;
	const char *section;		 /* "[port wan]: " before every message, or "" */
	unsigned section_line;		 /* for what has no line of its own; 0: flags */
	unsigned line[OPTIONS_ROWS_MAX]; /* of each row that was given; flags: 1 */
	bool wrong[OPTIONS_ROWS_MAX];	 /* given, but its value was not understood */
};

/* True if a key was given. */
bool option_given(const struct option_check *check, const char *key);

/* The run's, the forward's and the port's own consistency. May complete a forward (conf_forward_complete()).
 * What depends on a value that was wrong is not checked. */
void option_check_run(struct option_check *check, const struct conf *conf);
void option_check_forward(struct option_check *check, struct conf_forward *conf);
void option_check_port(struct option_check *check, const struct conf_port *port);

/* The keys of a port that are about a bridge, where its forward, whose diag and section `check` is of, is
 * none. */
void option_check_no_bridge(struct option_check *check, const struct conf_port *port);

/* Room for an option as users write it: its name and a short value. */
#define OPTION_WORD_SIZE 96

/*
 * An option as the user would type it: "batch = 64" in a file, "-b 64" among flags; with value NULL
 * "batch" and "-b". Returns text, of OPTION_WORD_SIZE bytes.
 */
char *option_word(bool file, const char *key, const char *value, char *text);

/* Ethernet, IPv4 and UDP headers and what the options add, FCS included: a smaller frame than that is
 * not sent. */
static inline unsigned conf_tx_size_needed(const struct conf_tx *tx)
{
	return CONF_TX_HEADERS + (tx->vlan ? ETHER_VLAN_LEN : 0) +
	       (tx->timestamp ? CONF_TX_TIMESTAMP : 0);
}
