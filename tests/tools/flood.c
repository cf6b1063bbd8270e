/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Load for tests and benchmarks, and the far end that counts it.
 *
 *    gen:  BPF_PROG_TEST_RUN -> flood_gen (live frames) -> redirect -> device
 *    sink: device -> flood_sink -> counts, drop
 *    pass: device -> flood_pass -> stack: without a program (or GRO) at its peer, a veth refuses
 *          frames redirected into it
 *    redirect: device -> flood_redirect -> another device, all in the kernel
 */
#include "flood.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/if_link.h>
#include <math.h>
#include <net/if.h>
#include <netinet/ether.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Said again outside a system header, or clang's analyser holds that it keeps what it frees. */
void bpf_object__destroy_skeleton(struct bpf_object_skeleton *s);

#include "flood.skel.h"

enum { EXIT_WORLD = 1, EXIT_USAGE = 2 };

/*
 * Frames that one pass of BPF_PROG_TEST_RUN makes before it flushes them. 64 is the NAPI budget, a
 * quarter of a veth's ring (256). On veth 16, 64 and 256 (the most the kernel takes) are equally
 * fast; 256 fills the ring in one pass, and what is left in it from before becomes a loss.
 */
#define BATCH 64

/*
 * After the first expiry the timer fires again and again: a signal that comes between the look at
 * `stop` and the system call would not end the call, the next one does.
 */
#define AGAIN_NS 1000000

struct options {
	const char *command;
	const char *dev;
	const char *to; /* redirect's other device */
	int ifindex;
	uint64_t count; /* 0: no end */
	double seconds; /* 0: no end */
	unsigned int size;
	unsigned int flows;
	unsigned int interval_ms; /* 0: final line only */
	int cpu;		  /* -1: wherever we are */
	unsigned int vlan;	  /* 0: no tag */
	bool skb;
	bool check;
	struct ether_addr dmac;
	struct ether_addr smac;
};

static volatile sig_atomic_t stop;
static timer_t stop_timer;

static int complain(const struct options *o, const char *what, int err)
{
	fprintf(stderr, "flood %s: %s: %s: %s (%s)\n", o->command, o->dev, what,
		strerrordesc_np(err), strerrorname_np(err));
	return EXIT_WORLD;
}

static double clock_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct timespec timespec_of(double seconds)
{
	struct timespec t = { .tv_sec = (time_t)seconds };

	t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
	return t;
}

static int cpu_pin(const struct options *o)
{
	cpu_set_t set;

	if (o->cpu < 0)
		return 0;
	CPU_ZERO(&set);
	CPU_SET((unsigned int)o->cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		return complain(o, "cannot run on the CPU asked for with --cpu", errno);
	return 0;
}

/* gen */

static void on_stop(int sig)
{
	const struct itimerspec again = { .it_value.tv_nsec = AGAIN_NS,
					  .it_interval.tv_nsec = AGAIN_NS };

	stop = 1;
	if (sig != SIGALRM)
		timer_settime(stop_timer, 0, &again, NULL);
}

static int stop_start(const struct options *o)
{
	struct sigaction action = { .sa_handler = on_stop, .sa_flags = SA_RESTART };
	struct itimerspec when = { .it_interval.tv_nsec = AGAIN_NS };

	if (timer_create(CLOCK_MONOTONIC, NULL, &stop_timer))
		return complain(o, "cannot make a timer", errno);
	sigemptyset(&action.sa_mask);
	sigaction(SIGALRM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	when.it_value = timespec_of(o->seconds); /* all 0 leaves it disarmed */
	timer_settime(stop_timer, 0, &when, NULL);
	return 0;
}

static uint16_t ip_checksum(const struct iphdr *ip)
{
	uint16_t word[sizeof(*ip) / 2];
	uint32_t sum = 0;

	memcpy(word, ip, sizeof(word));
	for (unsigned int i = 0; i < sizeof(*ip) / 2; i++)
		sum += word[i];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void headers_fill(struct flood_headers *h, const struct options *o)
{
	const uint16_t size = (uint16_t)(o->size - (o->vlan ? FLOOD_TAG_LEN : 0));
	struct iphdr ip = {
		.version = 4,
		.ihl = sizeof(ip) / 4,
		.ttl = 64,
		.protocol = IPPROTO_UDP,
		.tot_len = htons((uint16_t)(size - sizeof(h->eth))),
		.saddr = htonl(FLOOD_SADDR),
		.daddr = htonl(FLOOD_DADDR),
	};

	ip.check = ip_checksum(&ip);
	*h = (struct flood_headers){
		.eth.h_proto = htons(ETH_P_IP),
		.ip = ip,
		.udp.source = htons(FLOOD_SPORT),
		.udp.dest = htons(FLOOD_DPORT),
		.udp.len = htons((uint16_t)(size - sizeof(h->eth) - sizeof(ip))),
	};
	memcpy(h->eth.h_dest, &o->dmac, ETH_ALEN);
	memcpy(h->eth.h_source, &o->smac, ETH_ALEN);
}

/* What the program writes into each frame, a tag among it if one is asked for. */
static void headers_give(struct flood_bpf *skel, const struct options *o)
{
	const uint16_t tag[] = { htons(ETH_P_8021Q), htons((uint16_t)o->vlan) };
	const size_t tag_at = 2 * ETH_ALEN, tag_len = o->vlan ? sizeof(tag) : 0;
	struct flood_headers headers;
	uint8_t bytes[sizeof(headers) + sizeof(tag)] = { 0 };

	_Static_assert(sizeof(tag) == FLOOD_TAG_LEN, "a tag");
	headers_fill(&headers, o);
	memcpy(bytes, &headers, tag_at);
	memcpy(bytes + tag_at, tag, tag_len);
	memcpy(bytes + tag_at + tag_len, (const uint8_t *)&headers + tag_at,
	       sizeof(headers) - tag_at);
	memcpy((void *)skel->rodata->header, bytes, sizeof(skel->rodata->header));
	memcpy((void *)&skel->rodata->header_end, bytes + sizeof(skel->rodata->header),
	       sizeof(skel->rodata->header_end));
	skel->rodata->tag_len = (__u32)tag_len;
}

/* Where the programs that redirect send their frames to. */
static int port_set(struct flood_bpf *skel, const struct options *o, int ifindex)
{
	__u32 value = (__u32)ifindex, key = 0;
	int err =
		bpf_map__update_elem(skel->maps.port, &key, sizeof(key), &value, sizeof(value), 0);

	return err ? complain(o, "cannot redirect to it", -err) : 0;
}

static int gen_load(struct flood_bpf *skel, const struct options *o)
{
	int err;

	headers_give(skel, o);
	skel->rodata->flows = o->flows;
	bpf_program__set_autoload(skel->progs.flood_gen, true);
	err = flood_bpf__load(skel);
	if (err)
		return complain(o, "cannot load the generator", -err);
	return port_set(skel, o, o->ifindex);
}

/* One call makes up to 2^32 - 1 frames: the generator is as fast as it gets when never re-entered. */
static int gen_run(struct flood_bpf *skel, const struct options *o, int prog_fd)
{
	uint8_t frame[FLOOD_SIZE_MAX] = { 0 };

	for (unsigned int i = FLOOD_FILL_AT; i < o->size; i++)
		frame[i] = flood_fill(i);
	while (!stop && (!o->count || skel->bss->produced < o->count)) {
		uint64_t before = skel->bss->produced;
		uint64_t left = o->count ? o->count - before : UINT32_MAX;
		LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = frame, .data_size_in = o->size,
			    .repeat = (int)(left < UINT32_MAX ? left : UINT32_MAX),
			    .flags = BPF_F_TEST_XDP_LIVE_FRAMES, .batch_size = BATCH);
		int err = bpf_prog_test_run_opts(prog_fd, &run);

		if (err && err != -EINTR)
			return complain(o, "cannot run the generator", -err);
		if (skel->bss->refused)
			return complain(o, "went away under the generator", ENODEV);
	}
	return 0;
}

/* What the device says it sent; a guess of 0 where it cannot be read. */
static uint64_t dev_sent(const struct options *o)
{
	FILE *file = fopen("/proc/net/dev", "re"); /* ours whatever /sys is mounted */
	char line[512];
	char name[IFNAMSIZ + 1];
	uint64_t sent = 0;
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		const char *colon = strchr(line, ':');
		char *at;

		if (!colon || sscanf(line, " %16[^:]", name) != 1 || strcmp(name, o->dev) != 0)
			continue;
		found = true;
		at = (char *)colon + 1;
		for (int column = 0; column < 10; column++)
			sent = strtoull(at, &at, 10);
	}
	if (file)
		fclose(file);
	return sent;
}

static int gen_main(struct flood_bpf *skel, const struct options *o)
{
	double start;
	double seconds;
	uint64_t frames;
	uint64_t sent;
	int err;

	err = gen_load(skel, o);
	if (!err)
		err = cpu_pin(o);
	if (!err)
		err = stop_start(o);
	if (err)
		return err;
	sent = dev_sent(o);
	start = clock_s();
	err = gen_run(skel, o, bpf_program__fd(skel->progs.flood_gen));
	seconds = clock_s() - start;
	timer_delete(stop_timer);
	frames = skel->bss->produced;
	printf("{\"frames\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"seconds\":%.6f,\"pps\":%.0f}\n",
	       frames, frames * o->size, seconds, seconds > 0 ? (double)frames / seconds : 0);
	if (!err && frames && dev_sent(o) == sent)
		fprintf(stderr,
			"flood gen: %s: no frame left it - a veth needs its peer up, with an XDP "
			"program (flood pass) or GRO on\n",
			o->dev);
	return err;
}

/* sink, pass and redirect */

static int attach(const struct options *o, struct bpf_program *prog)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts,
		    .flags = o->skb ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE);
	int link_fd = bpf_link_create(bpf_program__fd(prog), o->ifindex, BPF_XDP, &opts);

	/* Held until the process ends: then the kernel detaches. */
	if (link_fd < 0)
		return complain(o,
				o->skb ? "cannot attach in generic mode" :
					 "cannot attach in native mode",
				-link_fd);
	return 0;
}

static int counts_read(struct flood_bpf *skel, struct flood_counts *sum)
{
	int cpus = libbpf_num_possible_cpus();
	struct flood_counts *each;
	__u32 key = 0;
	int err;

	if (cpus < 0)
		return cpus;
	each = calloc((size_t)cpus, sizeof(*each));
	if (!each)
		return -ENOMEM;
	err = bpf_map__lookup_elem(skel->maps.counts, &key, sizeof(key), each,
				   (size_t)cpus * sizeof(*each), 0);
	*sum = (struct flood_counts){ 0 };
	for (int i = 0; !err && i < cpus; i++) {
		sum->frames += each[i].frames;
		sum->bytes += each[i].bytes;
		sum->foreign += each[i].foreign;
		sum->corrupt += each[i].corrupt;
		sum->fresh += each[i].fresh;
		sum->duplicate += each[i].duplicate;
		sum->late += each[i].late;
		if (sum->next < each[i].next)
			sum->next = each[i].next;
	}
	free(each);
	return err;
}

static int sink_print(struct flood_bpf *skel, const struct options *o, double start, bool final)
{
	struct flood_counts c;
	int err = counts_read(skel, &c);

	if (err)
		return complain(o, "cannot read the counters", -err);
	printf("{\"final\":%s,\"seconds\":%.6f,\"frames\":%llu,\"bytes\":%llu",
	       final ? "true" : "false", clock_s() - start, c.frames, c.bytes);
	if (o->check) {
		/* A frame too late to be judged was taken as missing when others overtook it. */
		uint64_t seen = c.fresh + c.late;

		printf(",\"foreign\":%llu,\"corrupt\":%llu,\"fresh\":%llu,\"duplicates\":%llu,"
		       "\"late\":%llu,\"gaps\":%llu",
		       c.foreign, c.corrupt, c.fresh, c.duplicate, c.late,
		       c.next > seen ? c.next - seen : 0);
	}
	printf("}\n");
	fflush(stdout);
	return 0;
}

/* Until a signal or --seconds, with a line each --interval. */
static int sink_watch(struct flood_bpf *skel, const struct options *o, const sigset_t *ends)
{
	double start = clock_s();
	double end = o->seconds > 0 ? start + o->seconds : INFINITY;
	double step = o->interval_ms ? o->interval_ms / 1e3 : INFINITY;
	double line = start + step;

	for (;;) {
		double next = fmin(end, line);
		double wait = fmax(next - clock_s(), 0);
		struct timespec timeout = timespec_of(isinf(wait) ? 3600 : wait);
		int err;

		if (sigtimedwait(ends, NULL, &timeout) > 0 || clock_s() >= end)
			return sink_print(skel, o, start, true);
		if (clock_s() < line)
			continue;
		err = sink_print(skel, o, start, false);
		if (err)
			return err;
		line = fmax(line + step, clock_s());
	}
}

static int listen_main(struct flood_bpf *skel, const struct options *o, struct bpf_program *prog)
{
	int to = o->to ? (int)if_nametoindex(o->to) : 0;
	sigset_t ends;
	int err;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &ends, NULL);
	skel->rodata->check = o->check;
	for (unsigned int i = 0; i < sizeof(skel->rodata->fill); i++)
		skel->rodata->fill[i] = flood_fill(i);
	bpf_program__set_autoload(prog, true);
	err = flood_bpf__load(skel);
	if (err)
		return complain(o, "cannot load the program", -err);
	if (to)
		err = port_set(skel, o, to);
	if (!err)
		err = attach(o, prog);
	if (err)
		return err;
	printf("{\"ready\":true}\n");
	fflush(stdout);
	if (prog == skel->progs.flood_sink)
		return sink_watch(skel, o, &ends);
	sigwaitinfo(&ends, NULL);
	return 0;
}

static int sink_main(struct flood_bpf *skel, const struct options *o)
{
	return listen_main(skel, o, skel->progs.flood_sink);
}

static int pass_main(struct flood_bpf *skel, const struct options *o)
{
	return listen_main(skel, o, skel->progs.flood_pass);
}

static int redirect_main(struct flood_bpf *skel, const struct options *o)
{
	if (!o->to || !if_nametoindex(o->to)) {
		fprintf(stderr, "flood redirect: --to: %s - see flood --help\n",
			o->to ? "no such interface here" : "is missing");
		return o->to ? EXIT_WORLD : EXIT_USAGE;
	}
	return listen_main(skel, o, skel->progs.flood_redirect);
}

/* argv */

struct command {
	const char *name;
	int (*run)(struct flood_bpf *skel, const struct options *o);
	const char *takes; /* the val of each option it knows */
};

static const struct command commands[] = {
	{ "gen", gen_main, "dnbtfDScv" },
	{ "sink", sink_main, "dtksi" },
	{ "pass", pass_main, "d" },
	{ "redirect", redirect_main, "dos" },
};

static const struct option long_options[] = {
	{ "dev", required_argument, NULL, 'd' },
	{ "to", required_argument, NULL, 'o' },
	{ "count", required_argument, NULL, 'n' },
	{ "size", required_argument, NULL, 'b' },
	{ "seconds", required_argument, NULL, 't' },
	{ "flows", required_argument, NULL, 'f' },
	{ "dmac", required_argument, NULL, 'D' },
	{ "smac", required_argument, NULL, 'S' },
	{ "cpu", required_argument, NULL, 'c' },
	{ "vlan", required_argument, NULL, 'v' },
	{ "skb", no_argument, NULL, 's' },
	{ "check", no_argument, NULL, 'k' },
	{ "interval", required_argument, NULL, 'i' },
	{ NULL, 0, NULL, 0 },
};

static const char help[] =
	"Usage: flood gen  --dev IF [--count N] [--seconds S] [--size BYTES] [--flows F]\n"
	"                  [--dmac MAC] [--smac MAC] [--cpu C] [--vlan V]\n"
	"       flood sink --dev IF [--skb] [--check] [--interval MS] [--seconds S]\n"
	"       flood pass --dev IF\n"
	"       flood redirect --dev IF --to IF [--skb]\n"
	"\n"
	"gen redirects frames into IF from BPF_PROG_TEST_RUN: --count of them, or as many as go in\n"
	"--seconds, or until SIGINT or SIGTERM, whichever comes first. --size is without FCS, 60 to\n"
	"1514 (60). Ethernet, IPv4, UDP without checksum from port 1024 + (0 to F - 1, in turn) to\n"
	"port 9, a sequence number from 0 (8 bytes, big endian), then a fill that depends on the\n"
	"offset. --vlan puts a tag of that VLAN into each, 4 bytes of its size; such frames are\n"
	"foreign to --check. When IF is a veth its peer must be up, with an XDP program or GRO on.\n"
	"sink counts what arrives on IF and drops it, in native mode, or generic with --skb. --check\n"
	"looks into the frames of one run of gen: a frame that is not of gen is foreign; wrong\n"
	"lengths, IP checksum or fill make it corrupt; the others are fresh (number not seen\n"
	"before), duplicates, or late (more than 65536 numbers behind the highest, where the two\n"
	"cannot be told apart). gaps are the numbers below the highest that did not come; what is\n"
	"missing after the last frame only the count of gen tells.\n"
	"pass hands all that arrives on IF to the stack, in native mode; redirect sends it out of\n"
	"another one, in the kernel.\n"
	"\n"
	"Standard output, one JSON object a line. gen, at the end:\n"
	"  {\"frames\":N,\"bytes\":N,\"seconds\":S,\"pps\":R}\n"
	"all but gen, once the program is attached: {\"ready\":true}\n"
	"sink, each --interval milliseconds and at the end (final is true), totals since ready:\n"
	"  {\"final\":B,\"seconds\":S,\"frames\":N,\"bytes\":N} and with --check\n"
	"  \"foreign\", \"corrupt\", \"fresh\", \"duplicates\", \"late\", \"gaps\"\n"
	"They end at SIGINT or SIGTERM and detach, also when they are killed.\n"
	"Exit status: 0, 1 when the world refuses (one line on standard error), 2 for wrong usage.\n";

/* Bounds are inclusive. */
static bool number(const char *text, double min, double max, double *value)
{
	char *end;

	errno = 0;
	*value = strtod(text, &end);
	return !errno && end != text && !*end && *value >= min && *value <= max;
}

static bool whole(const char *text, double min, double max, double *value)
{
	return number(text, min, max, value) && floor(*value) == *value;
}

static bool option_set(struct options *o, int opt, const char *text)
{
	double value = 0;
	bool ok = true;

	switch (opt) {
	case 'd':
		o->dev = text;
		break;
	case 'o':
		o->to = text;
		break;
	case 'n':
		ok = whole(text, 1, 1e15, &value); /* a double counts to 9e15 */
		o->count = (uint64_t)value;
		break;
	case 'b':
		ok = whole(text, FLOOD_SIZE_MIN, FLOOD_SIZE_MAX, &value);
		o->size = (unsigned int)value;
		break;
	case 't':
		ok = number(text, 1e-3, 1e6, &value);
		o->seconds = value;
		break;
	case 'f':
		ok = whole(text, 1, UINT16_MAX - FLOOD_SPORT + 1, &value);
		o->flows = (unsigned int)value;
		break;
	case 'D':
		ok = ether_aton_r(text, &o->dmac) != NULL;
		break;
	case 'S':
		ok = ether_aton_r(text, &o->smac) != NULL;
		break;
	case 'c':
		ok = whole(text, 0, CPU_SETSIZE - 1, &value);
		o->cpu = (int)value;
		break;
	case 'v':
		ok = whole(text, 1, 4094, &value);
		o->vlan = (unsigned int)value;
		break;
	case 'i':
		ok = whole(text, 1, 3600000, &value);
		o->interval_ms = (unsigned int)value;
		break;
	case 's':
		o->skb = true;
		break;
	default:
		o->check = true;
		break;
	}
	return ok;
}

static int refuse(const char *command, const char *what, const char *text)
{
	fprintf(stderr, "flood %s: %s%s%s - see flood --help\n", command, what,
		text ? ": not a value to use: " : "", text ? text : "");
	return EXIT_USAGE;
}

static int options_parse(struct options *o, const struct command *command, int argc, char **argv)
{
	int index = 0;
	int opt;

	opterr = 0;
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread */
	while ((opt = getopt_long(argc, argv, "", long_options, &index)) != -1) {
		if (opt == '?' || !strchr(command->takes, opt))
			return refuse(command->name, argv[optind - 1], NULL);
		if (!option_set(o, opt, optarg))
			return refuse(command->name, long_options[index].name, optarg);
	}
	if (optind < argc)
		return refuse(command->name, argv[optind], NULL);
	if (!o->dev)
		return refuse(command->name, "--dev is missing", NULL);
	return 0;
}

static const struct command *command_find(const char *name)
{
	for (unsigned int i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (name && strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static int command_run(const struct command *command, struct options *o)
{
	struct flood_bpf *skel;
	int err;

	o->ifindex = (int)if_nametoindex(o->dev);
	if (!o->ifindex)
		return complain(o, "no such interface here", errno);
	libbpf_set_print(NULL);
	skel = flood_bpf__open();
	if (!skel)
		return complain(o, "cannot open the program", errno);
	bpf_program__set_autoload(skel->progs.flood_gen, false);
	bpf_program__set_autoload(skel->progs.flood_sink, false);
	bpf_program__set_autoload(skel->progs.flood_pass, false);
	bpf_program__set_autoload(skel->progs.flood_redirect, false);
	err = command->run(skel, o);
	flood_bpf__destroy(skel);
	return err;
}

int main(int argc, char **argv)
{
	const struct command *command = command_find(argv[1]);
	struct options o = {
		.size = FLOOD_SIZE_MIN,
		.flows = 1,
		.cpu = -1,
		.smac = { { 0x02, 0, 0, 0, 0, 0x01 } },
		.dmac = { { 0x02, 0, 0, 0, 0, 0x02 } },
	};
	int err;

	if (argc > 1 && strcmp(argv[argc - 1], "--help") == 0) {
		fputs(help, stdout);
		return 0;
	}
	if (!command) {
		fputs("flood: the first argument is gen, sink, pass or redirect - see flood --help\n",
		      stderr);
		return EXIT_USAGE;
	}
	o.command = command->name;
	err = options_parse(&o, command, argc - 1, argv + 1);
	if (err)
		return err;
	return command_run(command, &o);
}
