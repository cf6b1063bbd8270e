/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Asks the XDP program, by BPF_PROG_TEST_RUN, what becomes of frames. Reads one command a line from standard
 * input, and answers each with one line:
 *
 *	pass LIST			sets the rules of a patch's port	-> ok
 *	own MAC [ADDRESS[@VLAN[.VLAN]]]... sets what the host has there	-> ok
 *	copy on|off			somebody makes copies			-> ok
 *	frame HEX			-> pass or redirect
 *	time REPEAT HEX			-> ns a run
 *	bare REPEAT HEX			-> the same of a program that only redirects and counts
 *	counts				-> frames of each class, then of each rule
 *	seen				-> seen and passed
 *
 * In the slot stands a socket of this process, on lo: an empty one passes everything. Needs root.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* The rules as the daemon makes them. */
#include "../../src/steering.c"
#include "bare.skel.h"
#include "millrace.skel.h"

#define FRAME_MAX  3072
#define CHUNK_SIZE 4096
#define CHUNKS	   64
#define OWN_MAX	   64

void fleet_each_port(const struct fleet *fleet, fleet_port_fn *each, void *context)
{
	(void)fleet, (void)each, (void)context;
}

static struct millrace_bpf *skeleton;
static struct bare_bpf *bare;
static struct conf_port conf;
static struct port port = { .conf = &conf };

static void die(const char *what)
{
	perror(what);
	_exit(1);
}

/* A socket on queue 0 of lo, with the rings that bind() asks for. */
static int open_socket(void)
{
	void *memory = mmap(NULL, CHUNKS * CHUNK_SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	struct xdp_umem_reg umem = {
		.addr = (uintptr_t)memory,
		.len = CHUNKS * CHUNK_SIZE,
		.chunk_size = CHUNK_SIZE,
	};
	struct sockaddr_xdp address = {
		.sxdp_family = AF_XDP,
		.sxdp_flags = XDP_COPY,
		.sxdp_ifindex = if_nametoindex("lo"),
	};
	int size = CHUNKS, fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (memory == MAP_FAILED || fd < 0 ||
	    setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &umem, sizeof(umem)) ||
	    setsockopt(fd, SOL_XDP, XDP_UMEM_FILL_RING, &size, sizeof(size)) ||
	    setsockopt(fd, SOL_XDP, XDP_UMEM_COMPLETION_RING, &size, sizeof(size)) ||
	    setsockopt(fd, SOL_XDP, XDP_RX_RING, &size, sizeof(size)) ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)))
		die("AF_XDP socket on lo");
	return fd;
}

static void open_all(void)
{
	struct steer_maps maps;
	uint32_t zero = 0;
	int fd = open_socket();

	skeleton = millrace_bpf__open_and_load();
	bare = bare_bpf__open_and_load();
	if (!skeleton || !bare)
		die("program");
	if (bpf_map_update_elem(bpf_map__fd(skeleton->maps.millrace_xsks), &zero, &fd, BPF_ANY) ||
	    bpf_map_update_elem(bpf_map__fd(bare->maps.bare_xsks), &zero, &fd, BPF_ANY))
		die("slot");
	maps = (struct steer_maps){
		.fd = {
			[STEER_POLICY] = bpf_map__fd(skeleton->maps.millrace_policy),
			[STEER_OWN] = bpf_map__fd(skeleton->maps.millrace_own),
			[STEER_RULES] = bpf_map__fd(skeleton->maps.millrace_rules),
			[STEER_MACS] = bpf_map__fd(skeleton->maps.millrace_macs),
			[STEER_HITS] = bpf_map__fd(skeleton->maps.millrace_hits),
		},
	};
	if (steer_new(&port.steer, &maps))
		die("policy");
}

static const char *ok(int err)
{
	return err ? err_name(err) : "ok";
}

static const char *set_pass(const char *list)
{
	static struct pass_wrong wrong;

	conf.pass = (struct pass){ 0 };
	if (pass_parse(list, &conf.pass, &wrong))
		return wrong.text;
	return ok(set_rules(&port, CONF_MODE_PATCH));
}

/* "192.0.2.1@100.200" */
static int parse_own(char *text, struct millrace_own_key *key)
{
	char *tags = strchr(text, '@'), *inner;

	memset(key, 0, sizeof(*key));
	if (tags) {
		*tags++ = '\0';
		key->vlan[0] = (uint16_t)strtoul(tags, &inner, 10);
		key->vlan[1] = *inner ? (uint16_t)strtoul(inner + 1, NULL, 10) : 0;
	}
	if (inet_pton(AF_INET6, text, key->address) == 1)
		return 0;
	key->address[10] = key->address[11] = 0xff;
	return inet_pton(AF_INET, text, key->address + 12) == 1 ? 0 : -EINVAL;
}

static const char *set_addresses(char *rest)
{
	struct millrace_own_key keys[OWN_MAX];
	struct steer_own own = { .address = keys };
	char *word = strsep(&rest, " ");

	if (mac_parse(word, own.mac))
		return "no MAC";
	while ((word = strsep(&rest, " ")) && own.addresses < OWN_MAX) {
		if (parse_own(word, &keys[own.addresses++]))
			return "no address";
	}
	return ok(steer_set_own(port.steer, &own));
}

static long run_frame(int program_fd, const char *hex, unsigned repeat, unsigned *ns)
{
	unsigned char frame[FRAME_MAX];
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .repeat = (int)repeat);

	for (; opts.data_size_in < FRAME_MAX && hex[0] && hex[1]; hex += 2) {
		const char pair[] = { hex[0], hex[1], '\0' };

		frame[opts.data_size_in++] = (unsigned char)strtoul(pair, NULL, 16);
	}
	if (bpf_prog_test_run_opts(program_fd, &opts))
		return -errno;
	*ns = opts.duration;
	return opts.retval;
}

static void show_frame(const char *hex)
{
	unsigned ns;
	long verdict = run_frame(bpf_program__fd(skeleton->progs.millrace), hex, 1, &ns);

	if (verdict == XDP_PASS || verdict == XDP_REDIRECT)
		puts(verdict == XDP_PASS ? "pass" : "redirect");
	else
		printf("%ld\n", verdict);
}

static void show_time(const struct bpf_program *program, char *rest)
{
	unsigned repeat = (unsigned)strtoul(strsep(&rest, " "), NULL, 10), ns = 0;
	long verdict = run_frame(bpf_program__fd(program), rest ? rest : "", repeat, &ns);

	printf("%ld\n", verdict < 0 ? verdict : (long)ns);
}

static void show_counts(void)
{
	uint64_t frames = 0;

	for (unsigned i = 0; i < MILLRACE_CLASSES; i++) {
		if (steer_class_frames(port.steer, (enum millrace_class)i, &frames))
			die("counts");
		printf("%llu ", (unsigned long long)frames);
	}
	for (unsigned i = 0; i < conf.pass.rules; i++) {
		struct steer_rule rule = rule_of(&conf.pass.rule[i]);

		if (steer_rule_frames(port.steer, &rule, &frames))
			die("counts");
		printf("%llu ", (unsigned long long)frames);
	}
	putchar('\n');
}

static void show_seen(void)
{
	const struct prog prog = { .count_fd = bpf_map__fd(skeleton->maps.millrace_count) };
	struct prog_counts counts;

	if (prog_counts(&prog, &counts))
		die("seen");
	printf("%llu %llu\n", (unsigned long long)counts.seen, (unsigned long long)counts.passed);
}

static void obey(char *line)
{
	char *rest = line, *word = strsep(&rest, " ");

	if (!rest)
		rest = word + strlen(word);
	if (!strcmp(word, "pass"))
		puts(set_pass(rest));
	else if (!strcmp(word, "own"))
		puts(set_addresses(rest));
	else if (!strcmp(word, "copy"))
		puts(ok(steer_set_copy(port.steer, !strcmp(rest, "on"))));
	else if (!strcmp(word, "frame"))
		show_frame(rest);
	else if (!strcmp(word, "time"))
		show_time(skeleton->progs.millrace, rest);
	else if (!strcmp(word, "bare"))
		show_time(bare->progs.bare, rest);
	else if (!strcmp(word, "counts"))
		show_counts();
	else if (!strcmp(word, "seen"))
		show_seen();
	else
		puts("no such command");
}

int main(void)
{
	char *line = NULL;
	size_t size = 0;

	open_all();
	while (getline(&line, &size, stdin) > 0) {
		line[strcspn(line, "\n")] = '\0';
		obey(line);
		fflush(stdout);
	}
	free(line);
	return 0;
}
