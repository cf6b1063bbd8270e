/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/conf/file.c"

#include "unit.h"

static struct conf conf;
static struct diag diag = { .file = "f" };

static int parse(const char *text)
{
	FILE *in = fmemopen((void *)text, strlen(text), "r");
	int err;

	conf_fini(&conf);
	diag_fini(&diag);
	err = conf_parse(in, &conf, &diag);
	fclose(in);
	return err;
}

/* All findings, a line each. */
static const char *findings(void)
{
	static char text[DIAG_LINES_MAX * DIAG_TEXT_SIZE];
	size_t len = 0;

	text[0] = '\0';
	for (unsigned i = 0; i < diag.count; i++) {
		char line[DIAG_TEXT_SIZE * 2];

		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s\n",
					diag.lines[i].warning ? "warning: " : "",
					diag_print(&diag, i, line, sizeof(line)));
	}
	return text;
}

#define WAN	"[port wan]\ndevice = eth0\n"
#define WAN_LAN WAN "[port lan]\ndevice = eth1\n"

static void the_files_defaults(void **state)
{
	(void)state;
	assert_int_equal(parse(WAN_LAN "[forward main]\nmode = patch\nports = lan wan\n"), 0);
	assert_int_equal(diag.warnings, 0);
	assert_int_equal(conf.ports, 2);
	assert_int_equal(conf.forwards, 1);
	assert_string_equal(conf.port[0].name, "wan");
	assert_string_equal(conf.port[1].device, "eth1");
	assert_int_equal(conf.port[1].line, 3);
	assert_true(conf.port[0].all_queues);
	assert_int_equal(conf.port[0].queues.count, 0);
	assert_int_equal(conf.port[0].attach, CONF_ATTACH_AUTO);
	assert_int_equal(conf.port[0].zero_copy, CONF_ZERO_COPY_AUTO);
	assert_int_equal(conf.port[0].promiscuous, CONF_PROMISCUOUS_AUTO);
	assert_false(conf.port[0].keep_vlan_offload);
	assert_string_equal(conf.forward[0].name, "main");
	assert_int_equal(conf.forward[0].mode, CONF_MODE_PATCH);
	assert_int_equal(conf.forward[0].line, 5);
	assert_ptr_equal(conf.forward[0].port[0], &conf.port[1]);
	assert_ptr_equal(conf.forward[0].port[1], &conf.port[0]);
	assert_int_equal(conf.forward[0].wait, CONF_WAIT_ADAPTIVE);
	assert_false(conf.forward[0].busy_poll || conf.forward[0].no_need_wakeup);
	assert_int_equal(conf.forward[0].cpus.count, 0);
	assert_int_equal(conf.forward[0].batch, 64);
	assert_int_equal(conf.forward[0].ring_size, 2048);
	assert_int_equal(conf.forward[0].frames_per_queue, 10240);
	assert_int_equal(conf.interval_s, 1);
}

static void every_key_is_read(void **state)
{
	(void)state;
	assert_int_equal(
		parse("[forward two]\nmode = txonly\nports = a,\n  b\nwait = poll busy-poll\n"
		      "cpus = 3, 1-2\nbatch = 7\nframe-size = 3000\nhuge-pages = off\n"
		      "need-wakeup = no\nfrags = on\nunaligned = true\nshared-umem = 1\n"
		      "policy = fifo\npriority = 5\ntx-pkt-count = 9\nretries = 8\n"
		      "sizes = 100-200\ntx-pkt-pattern = beef\ntx-vlan = yes\ntx-vlan-id = 4\n"
		      "tx-vlan-pri = 3\ntx-dmac = 02:00:00:00:00:09\ntx-smac = 04:00:00:00:00:01\n"
		      "tx-cycle = 1000\ntstamp = yes\nclock = TAI\n"
		      "[millrace]\ncontrol-socket = /run/x.sock\ncontrol-group = staff\n"
		      "user = somebody\nkeep-privileges = yes\nring-size = 512\nframes-per-queue = 4000\n"
		      "huge-pages = yes\n"
		      "[port a]\ndevice = eth0\nqueues = 0,2,\n\t4\nattach = native\n"
		      "zero-copy = require\npromiscuous = on\nvlan-offload = keep\nreplace = yes\n"
		      "on-program-lost = exit\n"
		      "[port b]\ndevice = eth1\nqueues = auto\nattach = skb\nzero-copy = never\n"
		      "promiscuous = off\n[port c]\ndevice = eth2\nattach-method = external\n"
		      "xskmap = /sys/fs/bpf/maps/xsks\n"
		      "[forward three]\nmode = rxdrop\nports = c\nwait = busy-poll\n"),
		0);
	assert_string_equal(conf.control_socket, "/run/x.sock");
	assert_string_equal(conf.control_group, "staff");
	assert_string_equal(conf.user, "somebody");
	assert_true(conf.keep_privileges);
	assert_int_equal(conf.port[0].queues.count, 3);
	assert_int_equal(conf.port[0].queues.value[2], 4);
	assert_int_equal(conf.port[0].attach, CONF_ATTACH_NATIVE);
	assert_int_equal(conf.port[0].zero_copy, CONF_ZERO_COPY_REQUIRE);
	assert_int_equal(conf.port[0].promiscuous, CONF_PROMISCUOUS_ON);
	assert_true(conf.port[0].keep_vlan_offload && conf.port[0].replace);
	assert_int_equal(conf.port[0].on_program_lost, CONF_PROGRAM_LOST_EXIT);
	assert_int_equal(conf.port[1].on_program_lost, CONF_PROGRAM_LOST_REATTACH);
	assert_int_equal(conf.port[1].attach_method, CONF_ATTACH_METHOD_LINK);
	assert_string_equal(conf.port[1].xskmap, "");
	assert_int_equal(conf.port[2].attach_method, CONF_ATTACH_METHOD_EXTERNAL);
	assert_string_equal(conf.port[2].xskmap, "/sys/fs/bpf/maps/xsks");
	assert_int_equal(conf.port[1].promiscuous, CONF_PROMISCUOUS_OFF);
	assert_int_equal(conf.port[1].zero_copy, CONF_ZERO_COPY_NEVER);
	assert_int_equal(conf.forward[0].mode, CONF_MODE_TXPUSH);
	assert_int_equal(conf.forward[0].ports, 2);
	assert_true(conf.forward[0].wait == CONF_WAIT_POLL && conf.forward[0].busy_poll);
	assert_int_equal(conf.forward[0].cpus.value[0], 3);
	assert_int_equal(conf.forward[0].ring_size, 512);
	assert_int_equal(conf.forward[0].frames_per_queue, 4000);
	assert_false(conf.forward[0].huge_pages);
	assert_true(conf.forward[0].no_need_wakeup && conf.forward[0].frags);
	assert_true(conf.forward[0].unaligned && conf.forward[0].shared_umem);
	assert_true(conf.forward[0].realtime);
	assert_int_equal(conf.forward[0].priority, 5);
	assert_int_equal(conf.forward[0].tx.count, 9);
	assert_int_equal(conf.forward[0].tx.size_max, 200);
	assert_int_equal(conf.forward[0].tx.clock, CLOCK_TAI);
	assert_true(conf.forward[0].tx.source_given);
	assert_int_equal(conf.forward[1].ring_size, 512);
	assert_true(conf.forward[1].huge_pages && conf.forward[1].busy_poll);
	assert_int_equal(conf.forward[1].wait, CONF_WAIT_ADAPTIVE);
}

static void stations_are_read_and_sorted(void **state)
{
	const struct conf_station *station;

	(void)state;
	assert_int_equal(
		parse("[fdb two]\nblocked = 02:00:00:00:00:09 vlan 7\n"
		      "static = 02:00:00:00:00:03\th ; the host\nstatic = 02:00:00:00:00:02 lan\n" WAN_LAN
		      "[forward one]\nmode = rxdrop\nports = wan\n[port x]\ndevice = eth2\n"
		      "[forward two]\nmode = bridge\nports = lan x\nhost-port = h\n"),
		0);
	assert_int_equal(conf.forward[0].stations, 0);
	assert_int_equal(conf.forward[1].stations, 3);
	station = conf.forward[1].station;
	assert_int_equal(station[0].mac[5], 2);
	assert_int_equal(station[0].port, 0);
	assert_int_equal(station[0].line, 4);
	assert_int_equal(station[1].mac[5], 3);
	assert_int_equal(station[1].port, 2);
	assert_int_equal(station[2].vlan, 7);
	assert_int_equal(station[2].port, STATION_BLOCKED);
}

static void there_are_no_more_stations_than_fit(void **state)
{
	char text[4096] =
		WAN_LAN "[forward m]\nmode = bridge\nports = wan lan\nfdb-size = 16\n[fdb m]\n";
	size_t len = strlen(text);

	(void)state;
	for (unsigned i = 0; i < 17; i++) {
		assert_int_equal(parse(text), 0);
		assert_int_equal(conf.forward[0].stations, i);
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"static = 02:00:00:00:00:%02x wan\n", i);
	}
	assert_int_equal(parse(text), -EINVAL);
	assert_string_equal(findings(),
			    "f:9: [fdb m]: 17 stations are more than fdb-size = 16; raise "
			    "it in [forward m]\n");
}

/* {text, all that is said of it} */
static const struct {
	const char *text, *want;
} mistakes[] = {
	{ "\n", "f: has no forward; add a section [forward NAME] with mode and ports\n" },
	{ WAN "[forward m]\nmode = hub\nports = wan\n",
	  "f:4: [forward m]: mode = hub: must be rxdrop, txpush, l2fwd, patch or bridge\n" },
	{ WAN "[forward m]\nmode = patch\nports = wan\n",
	  "f:5: [forward m]: mode = patch: takes two ports, not 1\n" },
	{ WAN_LAN "[port x]\ndevice = eth2\n[forward m]\nmode = patch\nports = wan lan x\n",
	  "f:9: [forward m]: mode = patch: takes two ports, not 3\n" },
	{ WAN_LAN "[forward m]\nmode = l2fwd\nports = wan lan\n",
	  "f:7: [forward m]: mode = l2fwd: takes one port, not 2; two are mode = patch\n" },
	{ WAN "[forward m]\nmode = bridge\nports = wan\n",
	  "f:5: [forward m]: mode = bridge: takes 2 to 16 ports, not 1; a host-port counts\n" },
	{ WAN "[forward m]\nmode = bridge\nports = wan\nhost-port = name-of-13-xx\n",
	  "f:5: [forward m]: mode = bridge: takes 2 to 16 ports, not 1; a host-port counts\n"
	  "f:6: [forward m]: host-port = name-of-13-xx: its name has 1 to 12 letters, digits, . _ or "
	  "-: with mr- before it, it is an interface's as well\n" },
	{ WAN "[forward m]\nmode = bridge\nports = wan\nhost-port = wan\n",
	  "f:6: [forward m]: host-port = wan: is a name of [port wan] already, in line 1; choose "
	  "another\n" },
	{ WAN "[forward m]\nmode = rxdrop\nports = wan\nhost-port = h\n",
	  "f:6: [forward m]: host-port = h: the host can be behind a port of a patch or a bridge only; "
	  "it needs mode = patch or mode = bridge\n" },
	{ WAN "[forward m]\nmode = bridge\nports = wan\nkeep-host-port = yes\n",
	  "f:5: [forward m]: mode = bridge: takes 2 to 16 ports, not 1; a host-port counts\n"
	  "f:6: [forward m]: keep-host-port = yes: there is none to keep without host-port\n" },
	{ WAN "[forward m]\nmode = bridge\nports = wan\nhost-port = h\nageing = 5x\n",
	  "f:7: [forward m]: ageing = 5x: not a time; type for example 300s, 5m or 1h\n" },
	{ WAN "[forward m]\nmode = bridge\nports = wan\nhost-port = h\nageing = 17h\n",
	  "f:7: [forward m]: ageing = 17h: must be 0s to 60000s\n" },
	{ WAN "[forward m]\nmode = rxdrop\nports = wan\nageing = 5m\n",
	  "f:6: [forward m]: ageing: is about a bridge; it needs mode = bridge\n" },
	{ "[port wan]\ndevice = a\nhairpin = yes\n[forward m]\nmode = rxdrop\nports = wan\n",
	  "f:1: [port wan]: hairpin = yes: is about a bridge, and it is a port of one only with mode = "
	  "bridge\n" },
	{ WAN "vlan-mode = access 5\n[forward m]\nmode = rxdrop\nports = wan\n",
	  "f:1: [port wan]: vlan-mode = access 5: is about a bridge, and it is a port of one only with "
	  "mode = bridge\n" },
	{ WAN "vlan-mode = access 5\n[port lan]\ndevice = eth1\n[forward m]\nmode = bridge\n"
	      "ports = wan lan\nhost-port = h\n",
	  "f:4: [port lan]: has no vlan-mode, which every port of the bridge [forward m] needs, since "
	  "its port wan has one; add for example vlan-mode = access 1\n"
	  "f:9: [forward m]: host-port = h: [port wan] has a vlan-mode, so every port of the bridge "
	  "needs one; add for example host-vlan-mode = trunk 1-4094\n" },
	{ WAN_LAN "[forward m]\nmode = bridge\nports = wan lan\nhost-vlan-mode = access 1\n",
	  "f:8: [forward m]: host-vlan-mode: is about the port of host-port, which is not there\n" },
	{ WAN_LAN "[forward m]\nmode = bridge\nports = wan lan\n[fdb m]\n"
		  "static = 02:00:00:00:00:01 lam\nstatic = 01:00:00:00:00:01 lan\n"
		  "blocked = 00:00:00:00:00:00\nstatic = 02:00:00:00:00:01\n"
		  "static = 02:00:00:00:00:01 lan vlan 0\nblocked = 02:00:00:00:00:01 vlan 4095\n"
		  "blocked = 02:00:00:00:00:01 lan\nstatic = 02:00:00:00:00:02 wan\n"
		  "blocked = 02:00:00:00:00:02\nsttic = 1\nageing = 5s\n"
		  "static = 02:00:00:00:00:03 wan\n  vlan 7\n",
	  "f:9: [fdb m]: static = 02:00:00:00:00:01 lam: [forward m] has no port lam; did you mean "
	  "lan?\n"
	  "f:10: [fdb m]: static = 01:00:00:00:00:01 lan: an address of a group (its first byte is odd); "
	  "no station has one\n"
	  "f:11: [fdb m]: blocked = 00:00:00:00:00:00: no station has the zero address\n"
	  "f:12: [fdb m]: static = 02:00:00:00:00:01: must be MAC PORT [vlan N], such as "
	  "02:00:00:00:00:01 lan vlan 10\n"
	  "f:13: [fdb m]: static = 02:00:00:00:00:01 lan vlan 0: vlan 0: must be 1 to 4094\n"
	  "f:14: [fdb m]: blocked = 02:00:00:00:00:01 vlan 4095: vlan 4095: must be 1 to 4094\n"
	  "f:15: [fdb m]: blocked = 02:00:00:00:00:01 lan: must be MAC [vlan N], such as "
	  "02:00:00:00:00:01\n"
	  "f:17: [fdb m]: station 02:00:00:00:00:02 is there already, in line 16\n"
	  "f:18: [fdb m]: sttic: no such key; did you mean static?\n"
	  "f:19: [fdb m]: ageing: does not belong here; it is a key of [forward NAME]\n"
	  "f:21: [fdb m]: static: goes on in this line; write a line for each station\n" },
	{ WAN_LAN "[forward m]\nmode = patch\nports = wan lan\n[fdb m]\n[fdb n]\n"
		  "static = 02:00:00:00:00:01 lan\n",
	  "f:8: [fdb m]: [forward m] is no bridge, and knows no stations; it needs mode = bridge\n"
	  "f:9: [fdb n]: there is no [forward n]\n" },
	{ WAN
	  "vlan-mode = access 5\n[port lan]\ndevice = eth1\nvlan-mode = trunk 5,6\n[forward m]\n"
	  "mode = bridge\nports = wan lan\n[fdb m]\nstatic = 02:00:00:00:00:01 lan\n"
	  "static = 02:00:00:00:00:02 wan vlan 6\nblocked = 02:00:00:00:00:03\n"
	  "static = 02:00:00:00:00:04 wan\nblocked = 02:00:00:00:00:04 vlan 5\n",
	  "f:11: [fdb m]: static = 02:00:00:00:00:01 lan: in which VLAN? add vlan N, for all that port lan "
	  "takes has a tag\n"
	  "f:12: [fdb m]: static = 02:00:00:00:00:02 wan vlan 6: vlan 6: port wan is not in it, by its "
	  "vlan-mode\n"
	  "f:13: [fdb m]: blocked = 02:00:00:00:00:03: in which VLAN? add vlan N, for its ports look at "
	  "tags\n"
	  "f:15: [fdb m]: station 02:00:00:00:00:04 in VLAN 5 is there already, in line 14\n" },
	{ WAN "vlan-mode = trunk 1-10\nvlan-offload = keep\n[port lan]\ndevice = eth1\n"
	      "vlan-mode = trunk 1 native 2\n[forward m]\nmode = bridge\nports = wan lan\n",
	  "f:4: [port wan]: vlan-offload = keep: the card would take the tags out of frames, which "
	  "vlan-mode needs to tell their VLAN; leave it out, or the vlan-mode\n" },
	{ WAN_LAN "[forward m]\nmode = rxdrop\nports = wna lan\n",
	  "f:7: [forward m]: ports: there is no [port wna]; did you mean wan?\n" },
	{ WAN "[forward m]\nmode = rxdrop\nports = zzzzzz\n",
	  "f:5: [forward m]: ports: there is no [port zzzzzz]\n" },
	{ WAN "[forward m]\nmode = rxdrop\nports = wan wan\n",
	  "f:5: [forward m]: ports: wan is there twice\n" },
	{ WAN "[forward m]\nmode = rxdrop\nports = wan\n[forward n]\nmode = l2fwd\nports = wan\n",
	  "f:8: [forward n]: ports: wan is a port of [forward m] already, in line 3; a port has one "
	  "forward\n" },
	{ WAN "[forward m]\nmode = rxdrop\nports =\n",
	  "f:5: [forward m]: ports: names none; type for example ports = wan lan\n" },
	{ WAN "[forward m]\n",
	  "f:3: [forward m]: has no mode; it must be rxdrop, txpush, l2fwd, patch or bridge\n"
	  "f:3: [forward m]: has no ports; add ports = NAMES\n" },
	{ "[port wan]\n[forward m]\nmode = rxdrop\nports = wan\n",
	  "f:1: [port wan]: has no device; add device = IFACE\n" },
	{ WAN "[port lan]\ndevice = eth0\n[forward m]\nmode = patch\nports = wan lan\n",
	  "f:4: [port lan]: device = eth0: is the device of [port wan] already, in line 1\n" },
	{ WAN "[port wan]\ndevice = eth1\n[forward m]\nmode = rxdrop\nports = wan\n",
	  "f:3: [port wan]: is there already, in line 1; put them together\n" },
	{ WAN "device = eth1\n[forward m]\nmode = rxdrop\nports = wan\n",
	  "f:3: [port wan]: device: is there already, in line 2\n" },
	{ WAN "quues = 1\nbatch = 3\nzzzzzzzz = 1\nxdp-skb = yes\n[forward m]\nmode = rxdrop\n"
	      "ports = wan\nbatch-size = 3\n",
	  "f:3: [port wan]: quues: no such key; did you mean queues?\n"
	  "f:4: [port wan]: batch: does not belong here; it is a key of [forward NAME]\n"
	  "f:5: [port wan]: zzzzzzzz: no such key; `millraced --help-config` lists them\n"
	  "f:6: [port wan]: xdp-skb: is a flag; in a file it is attach = skb\n"
	  "f:10: [forward m]: batch-size: is a flag; in a file it is batch\n" },
	{ WAN "ring-size = 512\n[forward m]\nmode = rxdrop\nports = wan\n",
	  "f:3: [port wan]: ring-size: does not belong here; it is a key of [millrace] or [forward "
	  "NAME]\n" },
	{ "[prt a]\nx = 1\n[zzzzzzzz]\n[port]\n[port a b]\n[millrace x]\n[port "
	  "aaaaaaaaaabbbbbbbbbbccccccccccdd]\n" WAN "[forward m]\nmode = rxdrop\nports = wan\n",
	  "f:1: [prt a]: no such section; did you mean port?\n"
	  "f:3: [zzzzzzzz]: no such section; there are [millrace], [port NAME], [forward NAME] and [fdb NAME]\n"
	  "f:4: [port]: has no name; type [port NAME]\n"
	  "f:5: [port a b]: a name has 1 to 31 letters, digits, . _ or -\n"
	  "f:6: [millrace x]: has no name; type [millrace]\n"
	  "f:7: [port aaaaaaaaaabbbbbbbbbbccccccccccdd]: a name has 1 to 31 letters, digits, . _ or "
	  "-\n" },
	{ "x = 1\n" WAN "[forward m]\nmode = rxdrop\nports = wan\n",
	  "f:1: x: stands before the first section, such as [millrace]\n" },
	{ WAN "attach = skb\nzero-copy = require\n[forward m]\nmode = rxdrop\nports = wan\n",
	  "f:4: [port wan]: attach = skb and zero-copy = require exclude each other: skb mode always "
	  "copies\n" },
	{ WAN "attach-method = external\n[forward m]\nmode = rxdrop\nports = wan\n",
	  "f:3: [port wan]: attach-method = external: needs the map to fill; add xskmap = "
	  "/sys/fs/bpf/NAME\n" },
	{ WAN "xskmap = /m\n[forward m]\nmode = rxdrop\nports = wan\n",
	  "f:3: [port wan]: xskmap = /m: only a program of yours has one; add attach-method = "
	  "external\n" },
	{ WAN "attach-method = dispatcher\nxskmap = /m\n[forward m]\nmode = rxdrop\nports = wan\n",
	  "f:4: [port wan]: xskmap = /m: only a program of yours has one; add attach-method = "
	  "external\n" },
	{ WAN "attach-method = dispatch\n[forward m]\nmode = rxdrop\nports = wan\n",
	  "f:3: [port wan]: attach-method = dispatch: must be link, dispatcher or external\n" },
	{ WAN "attach-method = external\nxskmap = m\n[forward m]\nmode = rxdrop\nports = wan\n",
	  "f:4: [port wan]: xskmap = m: must be an absolute path of up to 127 characters\n" },
	{ WAN "attach-method = external\nxskmap = /m\nattach = native\nreplace = yes\n"
	      "on-program-lost = exit\npass = both vlan 3\n[forward m]\nmode = rxdrop\n"
	      "ports = wan\n",
	  "f:5: [port wan]: attach = native: is about a program of ours; with attach-method = "
	  "external there is none\n"
	  "f:6: [port wan]: replace = yes: is about a program of ours; with attach-method = external "
	  "there is none\n"
	  "f:7: [port wan]: on-program-lost = exit: is about a program of ours; with attach-method = "
	  "external there is none\n"
	  "f:8: [port wan]: pass = both vlan 3: is about a program of ours; with attach-method = "
	  "external there is none\n" },
	{ WAN "queues = 1,1\nattach = best\nreplace = maybe\npromiscuous = yes\n[forward m]\n"
	      "mode = rxdrop\nports = wan\nwait = spin poll\ncpus = 5000\n",
	  "f:3: [port wan]: queues = 1,1: a number is given twice\n"
	  "f:4: [port wan]: attach = best: must be auto, native or skb\n"
	  "f:5: [port wan]: replace = maybe: must be yes or no\n"
	  "f:6: [port wan]: promiscuous = yes: must be auto, on or off\n"
	  "f:10: [forward m]: wait = spin poll: must be adaptive, spin or poll; busy-poll may "
	  "stand beside it\n"
	  "f:11: [forward m]: cpus = 5000: numbers go from 0 to 4095, and 1024 of them at most\n" },
	{ WAN "[forward m]\nmode = rxdrop\nports = wan\nbatch = 64 # few\nring-size = 100\n"
	      "frame-size = 3000\nfrags = yes\n  no\n",
	  "f:6: [forward m]: batch = 64 # few: not a number; type one from 1 to 1024; a comment behind "
	  "a value begins with ;\n"
	  "f:7: [forward m]: ring-size = 100: must be a power of two from 16 to 65536\n"
	  "f:8: [forward m]: frame-size = 3000: must be a power of two, 2048 or 4096; with unaligned = "
	  "yes any size between\n"
	  "f:10: [forward m]: frags: goes on in this line; only lists do, write name = value\n" },
	{ WAN "[forward m]\nmode = rxdrop\nports = wan\nbatch = 64\nring-size = 32\nfrags = yes\n"
	      "frames-per-queue = 99\n",
	  "f:6: [forward m]: batch = 64: more than the rings hold (32); lower it or raise ring-size\n"
	  "f:7: [forward m]: ring-size = 32: with frags = yes at least 64, for all the pieces of a "
	  "packet\n"
	  "f:9: [forward m]: frames-per-queue = 99: the rings need at least 160 (fill 64 + RX 32 + TX "
	  "32 + completion 32); raise it or lower ring-size\n" },
	{ "[millrace]\nring-size = 100\n" WAN "[forward m]\nmode = rxdrop\nports = wan\n"
	  "frames-per-queue = 500\n",
	  "f:2: [millrace]: ring-size = 100: must be a power of two from 16 to 65536\n" },
	{ "[millrace]\nframes-per-queue = 500\n" WAN "[forward m]\nmode = rxdrop\nports = wan\n",
	  "f:5: [forward m]: frames-per-queue = 500: the rings need at least 10240 (fill 4096 + RX "
	  "2048 + TX 2048 + completion 2048); raise it or lower ring-size\n" },
	{ WAN "[forward m]\nmode = rxdrop\nports = wan\npps = 5\npolicy = FIFO\n",
	  "f:6: [forward m]: pps: is about generated frames; it needs mode = txpush\n"
	  "f:7: [forward m]: policy = FIFO: needs a priority; add priority = 1 (to 99)\n" },
	{ WAN "[forward m]\nmode = txpush\nports = wan\ntx-vlan-id = 5\nretries = 4\nclock = TAI\n"
	      "pps = 5\ntx-cycle = 5\npriority = 4\ntx-pkt-size = 5000\n",
	  "f:6: [forward m]: tx-vlan-id = 5: there is no tag without tx-vlan = yes\n"
	  "f:7: [forward m]: retries = 4: there is no last frame to wait for without tx-pkt-count\n"
	  "f:10: [forward m]: pps and tx-cycle exclude each other: give one\n"
	  "f:11: [forward m]: priority = 4: only FIFO has priorities; add policy = FIFO\n"
	  "f:12: [forward m]: tx-pkt-size: a frame of 5000 bytes, FCS included, does not fit a chunk "
	  "of 4096 (at most 3844); lower it, or use frags = yes\n" },
	{ WAN
	  "[forward m]\nmode = txpush\nports = wan\nsizes = imix\ntx-vlan = yes\ntstamp = yes\n",
	  "f:6: [forward m]: sizes = imix: its 64-byte frames have no room for tx-vlan = yes with "
	  "tstamp = yes (66); leave out one\n" },
	{ WAN "[forward m]\nmode = txpush\nports = wan\nsizes = 64-99\ntx-pkt-size = 64\n"
	      "clock = UTC\n",
	  "f:8: [forward m]: clock = UTC: must be MONOTONIC, REALTIME, TAI or BOOTTIME\n" },
	{ "[millrace]\ncontrol-socket = run/x\ncontrol-group = a b\nuser = ^\n" WAN
	  "[forward m]\nmode = rxdrop\nports = wan\n",
	  "f:2: [millrace]: control-socket = run/x: must be an absolute path of up to 107 characters\n"
	  "f:3: [millrace]: control-group = a b: a group name has 1 to 32 letters, digits, . _ or -\n"
	  "f:4: [millrace]: user = ^: a user name has 1 to 32 letters, digits, . _ or -\n" },
	{ "[port wan]\ndevice = a b\n[forward m]\nmode = rxdrop\nports = wan\n",
	  "f:2: [port wan]: device = a b: an interface name has no blank, control character or leading "
	  "semicolon\n" },
};

static void everything_wrong_is_said_at_its_line(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(mistakes); i++) {
		int err = parse(mistakes[i].text);

		if (strcmp(findings(), mistakes[i].want) != 0)
			print_error("row %zu:\n%s", i, findings());
		assert_string_equal(findings(), mistakes[i].want);
		assert_int_equal(err, -EINVAL);
		assert_true(diag.errors > 0);
	}
}

static void a_port_without_a_forward_is_a_warning(void **state)
{
	(void)state;
	assert_int_equal(parse(WAN_LAN "[forward m]\nmode = l2fwd\nports = lan\n"), 0);
	assert_string_equal(findings(), "warning: f:1: [port wan]: no forward serves it\n");
	assert_int_equal(conf.ports, 2);
	assert_int_equal(conf.forward[0].ports, 1);
}

static char *text_of(unsigned sections, const char *format)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (unsigned i = 0; i < sections; i++)
		fprintf(out, format, i, i);
	fclose(out);
	return text;
}

static void a_hundred_errors_are_all_said_and_more_are_counted(void **state)
{
	char *text = text_of(99, "[port p%u]\nwrong-%u = 1\n");

	(void)state;
	/* Each section lacks a device too. */
	assert_int_equal(parse(text), -EINVAL);
	assert_int_equal(diag.errors, 2 * 99 + 1);
	assert_int_equal(diag.count, DIAG_LINES_MAX);
	assert_int_equal(diag_more(&diag), 99);
	free(text);
	text = text_of(99, "[port p%u]\ndevice = e%u\nwrong = 1\n");
	assert_int_equal(parse(text), -EINVAL);
	assert_int_equal(diag.errors, 100);
	assert_int_equal(diag.count, 100);
	for (unsigned i = 1; i < diag.count; i++)
		assert_int_equal(diag.lines[i].line, 3 * i);
	free(text);
}

static void ten_thousand_lines_are_read(void **state)
{
	char *text = text_of(2000, "[port p%u]\ndevice = e%u\n; a comment\n\nqueues = 0-3\n");

	(void)state;
	assert_int_equal(parse(text), -EINVAL);
	assert_string_equal(
		findings(),
		"f: has no forward; add a section [forward NAME] with mode and ports\n");
	assert_int_equal(conf.ports, 2000);
	assert_string_equal(conf.port[1999].device, "e1999");
	assert_int_equal(conf.port[1999].line, 9996);
	free(text);
}

static void seventeen_ports_are_too_many_for_a_forward(void **state)
{
	char *ports = text_of(17, "[port p%u]\ndevice = e%u\n"), *names = text_of(17, " p%u\n");
	char *text;

	(void)state;
	assert_true(asprintf(&text, "%s[forward m]\nmode = rxdrop\nports =\n%s", ports, names) > 0);
	assert_int_equal(parse(text), -EINVAL);
	assert_string_equal(findings(), "f:37: [forward m]: ports: a forward has up to 16\n");
	free(ports);
	free(names);
	free(text);
}

static void only_files_are_read(void **state)
{
	static const struct {
		const char *path, *want;
		int err;
	} rows[] = {
		{ "/", "/: is not a file but a directory\n", -EINVAL },
		{ "/dev/zero", "/dev/zero: is not a file but a device, pipe or socket\n", -EINVAL },
		{ "/nonexistent/x",
		  "/nonexistent/x: cannot be opened: ENOENT (No such file or directory)\n",
		  -ENOENT },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		conf_fini(&conf);
		diag_fini(&diag);
		assert_int_equal(conf_parse_file(rows[i].path, &conf, &diag), rows[i].err);
		assert_string_equal(findings(), rows[i].want);
	}
	diag.file = "f";
}

static void pipes_and_large_files_are_refused_at_once(void **state)
{
	char folder[] = "/tmp/test_file.XXXXXX", path[64];
	int fd;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/x", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	diag_fini(&diag);
	assert_int_equal(conf_parse_file(path, &conf, &diag), -EINVAL);
	assert_non_null(strstr(findings(), "a device, pipe or socket"));
	unlink(path);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, CONF_FILE_MAX + 1), 0);
	close(fd);
	diag_fini(&diag);
	assert_int_equal(conf_parse_file(path, &conf, &diag), -EFBIG);
	assert_non_null(strstr(findings(), "has 1048577 bytes; a configuration has up to 1048576"));
	unlink(path);
	rmdir(folder);
	diag.file = "f";
}

static void the_shipped_example_is_right(void **state)
{
	(void)state;
	conf_fini(&conf);
	diag_fini(&diag);
	assert_int_equal(conf_parse_file(EXAMPLE, &conf, &diag), 0);
	assert_string_equal(findings(), "");
	assert_int_equal(conf.forward[0].mode, CONF_MODE_PATCH);
	assert_string_equal(conf.forward[0].port[0]->device, "enp1s0f0");
	assert_string_equal(conf.control_socket, "/run/millrace/control.sock");
	conf_fini(&conf);
	diag_fini(&diag);
	diag.file = "f";
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_files_defaults),
		cmocka_unit_test(every_key_is_read),
		cmocka_unit_test(stations_are_read_and_sorted),
		cmocka_unit_test(there_are_no_more_stations_than_fit),
		cmocka_unit_test(everything_wrong_is_said_at_its_line),
		cmocka_unit_test(a_port_without_a_forward_is_a_warning),
		cmocka_unit_test(a_hundred_errors_are_all_said_and_more_are_counted),
		cmocka_unit_test(ten_thousand_lines_are_read),
		cmocka_unit_test(seventeen_ports_are_too_many_for_a_forward),
		cmocka_unit_test(only_files_are_read),
		cmocka_unit_test(pipes_and_large_files_are_refused_at_once),
		cmocka_unit_test(the_shipped_example_is_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
