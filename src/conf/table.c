/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "conf/table.h"

#include <string.h>

static const struct option_word mode_words[] = {
	{ "rxdrop", CONF_MODE_RXDROP },
	{ "txpush", CONF_MODE_TXPUSH },
	{ "l2fwd", CONF_MODE_L2FWD },
	{ "patch", CONF_MODE_PATCH },
	{ "bridge", CONF_MODE_BRIDGE },
	{ "txonly", CONF_MODE_TXPUSH },
	{ NULL, 0 },
};

static const struct option_word attach_words[] = {
	{ "auto", CONF_ATTACH_AUTO },
	{ "native", CONF_ATTACH_NATIVE },
	{ "skb", CONF_ATTACH_SKB },
	{ NULL, 0 },
};

static const struct option_word zero_copy_words[] = {
	{ "auto", CONF_ZERO_COPY_AUTO },
	{ "require", CONF_ZERO_COPY_REQUIRE },
	{ "never", CONF_ZERO_COPY_NEVER },
	{ NULL, 0 },
};

static const struct option_word promiscuous_words[] = {
	{ "auto", CONF_PROMISCUOUS_AUTO },
	{ "on", CONF_PROMISCUOUS_ON },
	{ "off", CONF_PROMISCUOUS_OFF },
	{ NULL, 0 },
};

static const struct option_word program_lost_words[] = {
	{ "reattach", CONF_PROGRAM_LOST_REATTACH },
	{ "exit", CONF_PROGRAM_LOST_EXIT },
	{ NULL, 0 },
};

static const struct option_word attach_method_words[] = {
	{ "link", CONF_ATTACH_METHOD_LINK },
	{ "dispatcher", CONF_ATTACH_METHOD_DISPATCHER },
	{ "external", CONF_ATTACH_METHOD_EXTERNAL },
	{ NULL, 0 },
};

static const struct option_word vlan_offload_words[] = {
	{ "off", false },
	{ "keep", true },
	{ NULL, 0 },
};

static const struct option_word mtu_words[] = {
	{ "warn", false },
	{ "stop", true },
	{ NULL, 0 },
};

static const struct option_word policy_words[] = {
	{ "OTHER", false },
	{ "FIFO", true },
	{ NULL, 0 },
};

static const struct option_word clock_words[] = {
	{ "MONOTONIC", CLOCK_MONOTONIC },
	{ "REALTIME", CLOCK_REALTIME },
	{ "TAI", CLOCK_TAI },
	{ "BOOTTIME", CLOCK_BOOTTIME },
	{ NULL, 0 },
};

/* Said of one forward, or of all of them. */
#define IN_BOTH (IN_MILLRACE | IN_FORWARD)

/* clang-format off */
#define RUN(member)	.scope = SCOPE_RUN, .field = offsetof(struct conf, member)
#define FORWARD(member) .scope = SCOPE_FORWARD, .field = offsetof(struct conf_forward, member)
#define PORT(member)	.scope = SCOPE_PORT, .field = offsetof(struct conf_port, member)
#define LINE(action)	.scope = SCOPE_LINE, .act = (action)
#define SHORT_FOR(key_name, text) .sets = (key_name), .says = (text)
#define SWITCH		.kind = &kind_bool, .words = words_yes_no
#define GENERATES	.generates = true, .in = IN_FORWARD

/* A default is the parenthesis at the end of a help; what the file's is, where it differs or where
 * the help is about flags, `about` says. */
const struct option_row option_rows[] = {
	{ 'r', "rxdrop", NULL, NULL, "receive and discard (the default mode)",
	  .scope = SCOPE_FORWARD, SHORT_FOR("mode", "rxdrop") },
	{ 't', "txonly", "txpush", NULL, "send generated IPv4/UDP frames; the host keeps receiving",
	  .scope = SCOPE_FORWARD, SHORT_FOR("mode", "txpush") },
	{ 'l', "l2fwd", NULL, NULL,
	  "one interface: swap the MAC addresses, send back; two: patch, each to the other unchanged",
	  .scope = SCOPE_FORWARD, SHORT_FOR("mode", "l2fwd") },
	{ .key = "mode", .in = IN_FORWARD, .about = "what is done with the frames", .must = true,
	  .value = "MODE", .kind = &kind_words, .words = mode_words, FORWARD(mode) },
	{ .key = "ports", .in = IN_FORWARD, .about = "names of the ports it serves", .must = true,
	  .value = "NAMES", .kind = &kind_ports, FORWARD(port) },
	{ .key = "device", .in = IN_PORT, .about = "the interface, by its name or an alternative one",
	  .must = true, .value = "IFACE", .kind = &kind_device, PORT(device) },
	{ 'i', "interface", NULL, "IFACE", "interface to serve; may be given several times",
	  LINE(ACT_INTERFACE), SHORT_FOR("device", NULL) },
	{ 'q', "queue", NULL, "LIST",
	  "queues: a number, a list or range such as 0,2-3, or all (0)", &kind_queues,
	  0, QUEUE_MAX, PORT(queues), .key = "queues", .in = IN_PORT,
	  .about = "queues such as 0,2-3; or auto, all active receive queues (auto)" },
	{ 'p', "poll", NULL, NULL, "sleep in poll() when there is nothing to do, instead of spinning",
	  SWITCH, FORWARD(poll), SHORT_FOR("wait", "poll") },
	{ .key = "wait", .in = IN_FORWARD,
	  .about = "when nothing is to do; busy-poll runs the driver's NAPI from the poller (poll)",
	  .value = "spin|poll|busy-poll", .kind = &kind_wait, FORWARD(poll) },
	{ 'S', "xdp-skb", NULL, NULL, "attach in generic (skb) mode, which also means copy",
	  .scope = SCOPE_PORT, SHORT_FOR("attach", "skb") },
	{ 'N', "xdp-native", NULL, NULL,
	  "attach in native mode or fail (neither: native if possible, else skb)",
	  .scope = SCOPE_PORT, SHORT_FOR("attach", "native") },
	{ .key = "attach", .in = IN_PORT, .about = "native and skb, or fail; auto takes the best (auto)",
	  .kind = &kind_words, .words = attach_words, PORT(attach) },
	{ 0, "replace", NULL, NULL,
	  "take another XDP program off the interface; it is not put back at the end",
	  SWITCH, PORT(replace), .in = IN_PORT,
	  .about = "take another XDP program off the interface (no)" },
	{ 0, "attach-method", NULL, "link|dispatcher|external",
	  "our XDP program, alone or beside others; or one of yours, whose XSKMAP is filled (link)",
	  &kind_words, .words = attach_method_words, PORT(attach_method), .in = IN_PORT },
	{ 0, "xskmap", NULL, "PATH", "with --attach-method=external: where its XSKMAP is pinned (none)",
	  &kind_map_path, PORT(xskmap), .in = IN_PORT,
	  .about = "with attach-method = external: where its XSKMAP is pinned (none)" },
	{ 0, "on-program-lost", NULL, "reattach|exit",
	  "what to do when somebody takes our XDP program off the interface (reattach)",
	  &kind_words, .words = program_lost_words, PORT(on_program_lost), .in = IN_PORT },
	{ 'z', "zero-copy", NULL, NULL,
	  "zero-copy or fail (neither: zero-copy if possible, else copy)",
	  .scope = SCOPE_PORT, SHORT_FOR("zero-copy", "require") },
	{ 'c', "copy", NULL, NULL, "copy mode, also where zero-copy is possible",
	  .scope = SCOPE_PORT, SHORT_FOR("zero-copy", "never") },
	{ .key = "zero-copy", .in = IN_PORT, .about = "require it or fail; auto where possible (auto)",
	  .kind = &kind_words, .words = zero_copy_words, PORT(zero_copy) },
	{ 0, "promiscuous", NULL, "auto|on|off",
	  "take frames for others too; auto: as the mode needs it (auto)",
	  &kind_words, .words = promiscuous_words, PORT(promiscuous), .in = IN_PORT },
	{ 0, "vlan-offload", NULL, "off|keep",
	  "what a forwarding mode does with the card's stripping of VLAN tags (off)",
	  &kind_bool, .words = vlan_offload_words, PORT(keep_vlan_offload), .in = IN_PORT },
	{ .key = "wait-for-device", .in = IN_PORT,
	  .about = "start without the device too, and serve it once it is there (no)",
	  .kind = &kind_bool, .words = words_yes_no, PORT(wait_for_device) },
	{ .key = "mtu-too-large", .in = IN_PORT,
	  .about = "when the MTU is raised above what frames take: warn, or stop the port (warn)",
	  .kind = &kind_bool, .words = mtu_words, PORT(mtu_stops) },
	{ 0, "pass", NULL, "LIST",
	  "frames that the host gets: default, none, or rules such as tcp dport 22 (none)",
	  &kind_pass, PORT(pass), .in = IN_PORT,
	  .about = "frames that the host gets: default, none, or rules such as tcp dport 22 (default)" },
	{ .key = "hairpin", .in = IN_PORT,
	  .about = "of a bridge: frames may leave by the port that they came in on (no)",
	  .kind = &kind_bool, .words = words_yes_no, PORT(hairpin), .bridges = true },
	{ .key = "isolated", .in = IN_PORT,
	  .about = "of a bridge: isolated ports do not send to each other (no)",
	  .kind = &kind_bool, .words = words_yes_no, PORT(isolated), .bridges = true },
	{ .key = "learn-limit", .in = IN_PORT, .value = "N",
	  .about = "of a bridge: stations that may be learned on the port (0: any number)",
	  .kind = &kind_unsigned, .min = 0, .max = CONF_STATIONS_MAX, PORT(learn_limit),
	  .bridges = true },
	{ .key = "storm-broadcast", .in = IN_PORT, .value = "N",
	  .about = "of a bridge: broadcast frames a second that the port may send to all others (0: no limit)",
	  .kind = &kind_unsigned, .min = 0, .max = CONF_STORM_MAX, PORT(storm_broadcast),
	  .bridges = true },
	{ .key = "storm-multicast", .in = IN_PORT, .value = "N",
	  .about = "of a bridge: multicast frames a second that the port may send to all others (0: no limit)",
	  .kind = &kind_unsigned, .min = 0, .max = CONF_STORM_MAX, PORT(storm_multicast),
	  .bridges = true },
	{ .key = "storm-unknown", .in = IN_PORT, .value = "N",
	  .about = "of a bridge: unknown unicast frames a second that the port may send to all others (0: no limit)",
	  .kind = &kind_unsigned, .min = 0, .max = CONF_STORM_MAX, PORT(storm_unknown),
	  .bridges = true },
	{ .key = "host-port", .in = IN_FORWARD, .value = "NAME",
	  .about = "patch, bridge: make interface NAME, by which the host is behind a port of its own (none)",
	  .kind = &kind_host_port, FORWARD(host_port) },
	{ .key = "keep-host-port", .in = IN_FORWARD,
	  .about = "leave the host port's interface there at the end (no)",
	  .kind = &kind_bool, .words = words_yes_no, FORWARD(keep_host_port) },
	{ .key = "ageing", .in = IN_FORWARD, .value = "SECONDS",
	  .about = "of a bridge: how long a silent station is remembered, such as 300s or 5m; 0: for ever (300s)",
	  .kind = &kind_seconds, .min = 0, .max = CONF_AGEING_MAX, FORWARD(ageing_s),
	  .bridges = true },
	{ .key = "fdb-size", .in = IN_FORWARD, .value = "N",
	  .about = "of a bridge: stations that it may learn (65536)",
	  .kind = &kind_unsigned, .min = 16, .max = CONF_STATIONS_MAX, FORWARD(stations_max),
	  .bridges = true },
	{ .key = "forward-reserved", .in = IN_FORWARD,
	  .about = "of a bridge: let frames to 01:80:c2:00:00:02 to -0f cross it, LLDP among them (no)",
	  .kind = &kind_bool, .words = words_yes_no, FORWARD(forward_reserved), .bridges = true },
	{ 'm', "no-need-wakeup", NULL, NULL,
	  "bind without need_wakeup: the kernel is called for every batch",
	  .scope = SCOPE_FORWARD, SHORT_FOR("need-wakeup", "no") },
	{ .key = "need-wakeup", .in = IN_FORWARD,
	  .about = "call the kernel only when it asks, not for every batch (yes)",
	  .kind = &kind_bool, .words = words_no_yes, FORWARD(no_need_wakeup) },
	{ 'B', "busy-poll", NULL, NULL,
	  "run the driver's NAPI from the poller: SO_PREFER_BUSY_POLL, 20 us, a budget of -b",
	  SWITCH, FORWARD(busy_poll), SHORT_FOR("wait", "busy-poll") },
	{ 'b', "batch-size", NULL, "N", "frames a port and pass (64)",
	  &kind_unsigned, 1, BATCH_MAX, FORWARD(batch), .key = "batch", .in = IN_FORWARD },
	{ 'f', "frame-size", NULL, "BYTES", "UMEM chunk, 2048 or 4096, any size between with -u (4096)",
	  &kind_unsigned, CONF_FRAME_SIZE_MIN, CONF_FRAME_SIZE_MAX, FORWARD(frame_size),
	  .in = IN_BOTH, .about = "UMEM chunk, 2048 or 4096, any size between if unaligned (4096)" },
	{ 'u', "unaligned", NULL, NULL, "unaligned chunks: -f need not be a power of two",
	  SWITCH, FORWARD(unaligned), .in = IN_FORWARD,
	  .about = "unaligned chunks: frame-size need not be a power of two (no)" },
	{ 'M', "shared-umem", NULL, NULL,
	  "register the frames of all queues and interfaces as one UMEM",
	  SWITCH, FORWARD(shared_umem), .in = IN_FORWARD,
	  .about = "register the frames of all its queues and ports as one UMEM (no)" },
	{ 'F', "frags", NULL, NULL,
	  "multi-buffer: a packet larger than a chunk takes several (XDP_USE_SG)",
	  SWITCH, FORWARD(frags), .in = IN_FORWARD,
	  .about = "multi-buffer: a packet larger than a chunk takes several (no)" },
	{ 'n', "interval", NULL, "SECONDS", "seconds between two reports (1)",
	  &kind_unsigned, 1, 86400, RUN(interval_s) },
	{ 'd', "duration", NULL, "SECONDS", "end after this time (0: never)",
	  &kind_unsigned, 0, INT_MAX, RUN(duration_s) },
	{ 0, "confirm", NULL, "SECONDS",
	  "detach everything and end unless millracectl confirm comes within this time (0: never)",
	  &kind_unsigned, 0, 86400, RUN(confirm_s) },
	{ 'C', "tx-pkt-count", NULL, "N",
	  "txpush: send exactly N frames, over all queues together, and end (0: no end)",
	  &kind_uint64, 0, LONG_MAX, FORWARD(tx.count), GENERATES },
	{ 'O', "retries", NULL, "N", "with -C: seconds to wait for the last frames to be completed (3)",
	  &kind_unsigned, 0, 86400, FORWARD(tx.retries), GENERATES,
	  .about = "with tx-pkt-count: seconds to wait for the last frames to be completed (3)" },
	{ 's', "tx-pkt-size", NULL, "BYTES", "txpush: bytes a frame, the 4-byte FCS included (64)",
	  &kind_tx_size, TX_SIZE_MIN, CONF_TX_SIZE_MAX, FORWARD(tx), GENERATES },
	{ 0, "sizes", NULL, "A-B|imix",
	  "txpush: every size from A to B in turn; or 7 x 64, 4 x 594, 1 x 1518",
	  &kind_sizes, TX_SIZE_MIN, CONF_TX_SIZE_MAX, FORWARD(tx), GENERATES },
	{ 'P', "tx-pkt-pattern", NULL, "HEX", "txpush: 32 bits that fill the payload (0x12345678)",
	  &kind_pattern, FORWARD(tx.pattern), GENERATES },
	{ 'V', "tx-vlan", NULL, NULL, "txpush: send 802.1Q tagged frames",
	  SWITCH, FORWARD(tx.vlan), GENERATES, .about = "txpush: send 802.1Q tagged frames (no)" },
	{ 'J', "tx-vlan-id", NULL, "N", "with -V: VLAN id (1)",
	  &kind_unsigned, 0, VLAN_ID_MAX, FORWARD(tx.vlan_id), GENERATES,
	  .about = "with tx-vlan: VLAN id (1)" },
	{ 'K', "tx-vlan-pri", NULL, "N", "with -V: priority (0)",
	  &kind_unsigned, 0, VLAN_PRI_MAX, FORWARD(tx.vlan_priority), GENERATES,
	  .about = "with tx-vlan: priority (0)" },
	{ 'G', "tx-dmac", NULL, "MAC", "txpush: destination (02:00:00:00:00:02)",
	  &kind_mac, FORWARD(tx.destination), GENERATES },
	{ 'H', "tx-smac", NULL, "MAC", "txpush: source (the interface's own)",
	  &kind_source_mac, FORWARD(tx.source), GENERATES },
	{ 0, "pps", NULL, "N",
	  "txpush: frames a second over all queues together (as fast as it goes)",
	  &kind_uint64, 1, PPS_MAX, FORWARD(tx.pps), GENERATES },
	{ 'T', "tx-cycle", NULL, "USECS", "txpush: one batch a queue every so often",
	  &kind_unsigned, 1, CYCLE_MAX_US, FORWARD(tx.cycle_us), GENERATES },
	{ 'y', "tstamp", NULL, NULL,
	  "txpush: sequence number and time of sending in the payload, as pktgen",
	  SWITCH, FORWARD(tx.timestamp), GENERATES,
	  .about = "txpush: sequence number and time of sending in the payload, as pktgen (no)" },
	{ 'w', "clock", NULL, "CLOCK",
	  "with -T or -y: MONOTONIC, REALTIME, TAI or BOOTTIME (MONOTONIC)",
	  &kind_words, .words = clock_words, FORWARD(tx.clock), GENERATES,
	  .about = "the clock of tx-cycle and tstamp (MONOTONIC)" },
	{ 'W', "policy", NULL, "POLICY", "scheduling of the pollers: OTHER or FIFO (OTHER)",
	  &kind_bool, .words = policy_words, FORWARD(realtime), .in = IN_FORWARD,
	  .about = "scheduling of the pollers (OTHER)" },
	{ 'U', "schpri", NULL, "N", "with -W FIFO: priority, 1 to 99 (0)",
	  &kind_unsigned, 0, PRIORITY_MAX, FORWARD(priority), .key = "priority", .in = IN_FORWARD,
	  .about = "with policy = FIFO: priority, 1 to 99 (0)" },
	{ 'x', "extra-stats", NULL, NULL, "report the sockets' own statistics too",
	  SWITCH, RUN(extra_stats) },
	{ 'a', "app-stats", NULL, NULL, "report system calls and the transmit cycle too",
	  SWITCH, RUN(app_stats) },
	{ 'I', "irq-string", NULL, "TEXT",
	  "report the interrupt whose line in /proc/interrupts has TEXT",
	  &kind_irq_string, RUN(irq_string) },
	{ 'Q', "quiet", NULL, NULL, "no reports", SWITCH, RUN(quiet) },
	{ 'R', "reduce-cap", NULL, NULL,
	  "accepted: dropping capabilities, what it asked for, is what happens without it",
	  LINE(ACT_NONE) },
	{ 0, "cpus", NULL, "LIST", "one CPU a queue, in this order (those this process may use)",
	  &kind_cpus, 0, CPU_MAX, FORWARD(cpus), .in = IN_FORWARD,
	  .about = "one CPU a queue, in this order; or auto, those this process may use (auto)" },
	{ 0, "ring-size", NULL, "N",
	  "RX and TX ring entries, a power of two; fill has twice as many (2048)",
	  &kind_power_of_two, RING_SIZE_MIN, RING_SIZE_MAX, FORWARD(ring_size), .in = IN_BOTH },
	{ 0, "frames-per-queue", NULL, "N",
	  "UMEM frames per interface and queue, at least 5 x ring-size (5 x ring-size)",
	  &kind_unsigned, 1, FRAMES_MAX, FORWARD(frames_per_queue), .in = IN_BOTH },
	{ 0, "huge-pages", NULL, NULL,
	  "warn if there are no huge pages for the frames; they are used where there are",
	  SWITCH, FORWARD(huge_pages), .in = IN_BOTH,
	  .about = "warn if there are no huge pages for the frames (no)" },
	{ 0, "json", NULL, NULL, "report one JSON object a line instead of rows",
	  SWITCH, RUN(json) },
	{ 0, "keep-privileges", NULL, NULL, "do not drop all capabilities before forwarding",
	  SWITCH, RUN(keep_privileges), .in = IN_MILLRACE,
	  .about = "do not drop all capabilities before forwarding (no)" },
	{ 0, "user", NULL, "NAME",
	  "user to run as when started as root; with a file millrace, if there is one (root)",
	  &kind_user, RUN(user), .in = IN_MILLRACE,
	  .about = "user to run as when started as root (millrace if there is one, else root)" },
	{ 0, "control-socket", NULL, "PATH", "UNIX socket on which millracectl is answered (none)",
	  &kind_socket_path, RUN(control_socket), .in = IN_MILLRACE },
	{ 0, "control-group", NULL, "NAME",
	  "group whose members may ask there what changes nothing (none)",
	  &kind_group, RUN(control_group), .in = IN_MILLRACE },
	{ 0, "config", NULL, "FILE",
	  "run the ports and forwards of a configuration file; reports only with -n or --json",
	  LINE(ACT_CONFIG) },
	{ 0, "check", NULL, "FILE", "say what is wrong with a configuration file, and end",
	  LINE(ACT_CHECK) },
	{ 0, "print-config", NULL, NULL,
	  "print what was asked for as a configuration file, and as flags, and end",
	  LINE(ACT_PRINT) },
	{ 0, "plan", NULL, "json", "print which poller would serve which queue, and end",
	  LINE(ACT_PLAN), .optional = true },
	{ 'h', "help", NULL, NULL, "print this and end", LINE(ACT_HELP) },
	{ 0, "help-config", NULL, NULL, "print the keys of a configuration file and end",
	  LINE(ACT_HELP_CONFIG) },
	{ 0, "version", NULL, NULL, "print the version and end", LINE(ACT_VERSION) },
};
/* clang-format on */

#define ROWS (sizeof(option_rows) / sizeof(option_rows[0]))

_Static_assert(ROWS <= OPTIONS_ROWS_MAX, "more options than what is kept of each has room for");

const unsigned option_rows_count = ROWS;

const struct option_row *option_find(const char *key)
{
	for_each_row(row)
	{
		if (option_key(row) && !strcmp(option_key(row), key))
			return row;
	}
	return NULL;
}
