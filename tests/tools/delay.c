/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long frames take from one interface to another of this network namespace, through whatever joins them:
 *
 *	delay FROM TO CPU RATE SECONDS SAMPLE
 *
 * sends RATE frames a second (or part of one) out of FROM (0: as many as go), each with the time of its sending, and takes every
 * SAMPLEth of them from TO, whose kernel says when it came. One thread on that CPU. Prints what was sent, what was
 * awaited, what came of that, and the median, 99th percentile and longest time in ns.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "timed.h"

/* IEEE's for experiments: nobody else's here. */
#define ETHERTYPE 0x88b5

#define FRAME_BYTES 60
#define WARM_UP_NS  (200 * NSEC_PER_MSEC)

/* What is still under way at the end. */
#define AFTER_NS (200 * NSEC_PER_MSEC)

struct frame {
	uint8_t destination[6], source[6];
	uint16_t ethertype;
	uint8_t sampled; /* at byte 14, where the filter looks */
	uint8_t unused;
	uint64_t sent_ns; /* CLOCK_REALTIME */
} __attribute__((packed));

static struct {
	uint64_t sent, awaited, came, room;
	uint64_t *took_ns;
	uint64_t since_ns; /* what was sent before is not counted */
} results;

static uint64_t real_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

static void fail(const char *what)
{
	fprintf(stderr, "delay: %s: %s\n", what, strerror(errno)); /* NOLINT: one thread */
	exit(1); /* NOLINT(concurrency-mt-unsafe): one thread */
}

static int open_socket(const char *ifname, uint16_t protocol)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_protocol = htons(protocol) };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(protocol));

	address.sll_ifindex = (int)if_nametoindex(ifname);
	if (fd < 0 || !address.sll_ifindex ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)))
		fail(ifname);
	return fd;
}

/* Only what is sampled, so that the rest costs this thread nothing. */
static int open_receiver(const char *ifname)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, offsetof(struct frame, sampled)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, FRAME_BYTES),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };
	const int on = 1, bytes = 64 << 20;
	int fd = open_socket(ifname, ETHERTYPE);

	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) ||
	    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		fail(ifname);
	return fd;
}

/* Takes what has come. */
static void receive(int fd)
{
	struct frame frame;
	char control[256];
	struct iovec part = { &frame, sizeof(frame) };

	for (;;) {
		struct msghdr message = { .msg_iov = &part,
					  .msg_iovlen = 1,
					  .msg_control = control,
					  .msg_controllen = sizeof(control) };
		struct timespec stamp;
		struct cmsghdr *head;

		if (recvmsg(fd, &message, MSG_DONTWAIT) < (ssize_t)sizeof(frame))
			return;
		head = CMSG_FIRSTHDR(&message);
		if (!head || head->cmsg_type != SO_TIMESTAMPNS ||
		    frame.sent_ns < results.since_ns || results.came == results.room)
			continue;
		memcpy(&stamp, CMSG_DATA(head), sizeof(stamp));
		results.took_ns[results.came++] = (uint64_t)stamp.tv_sec * NSEC_PER_SEC +
						  (uint64_t)stamp.tv_nsec - frame.sent_ns;
	}
}

static void send_one(int fd, struct frame *frame, uint64_t number, uint64_t sample)
{
	uint8_t bytes[FRAME_BYTES] = { 0 };

	frame->sampled = number % sample == 0;
	frame->sent_ns = real_ns();
	memcpy(bytes, frame, sizeof(*frame));
	if (send(fd, bytes, sizeof(bytes), 0) < 0 || frame->sent_ns < results.since_ns)
		return;
	results.sent++;
	results.awaited += frame->sampled;
}

static void wait_until(uint64_t due_ns, int receiver)
{
	for (;;) {
		uint64_t now_ns = clock_now_ns();

		receive(receiver);
		if (now_ns >= due_ns)
			return;
		/* A timer is up to 0.1 ms late; as at other rates the CPU is awake when the frame is sent. */
		if (due_ns - now_ns > NSEC_PER_MSEC) {
			const struct timespec nap = { .tv_nsec = NSEC_PER_MSEC / 2 };

			nanosleep(&nap, NULL);
		}
	}
}

static int compare(const void *one, const void *other)
{
	uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

	return a < b ? -1 : a > b;
}

int main(int argc, char **argv)
{
	struct frame frame = { .destination = { 2, 0, 0, 0, 0, 2 },
			       .source = { 2, 0, 0, 0, 0, 1 },
			       .ethertype = htons(ETHERTYPE) };
	uint64_t start_ns, end_ns, warm_up_ns, number = 0, sample;
	const int bypass = 1;
	double rate, seconds;
	int from, to;

	if (argc != 7) {
		fprintf(stderr, "delay FROM TO CPU RATE SECONDS SAMPLE\n");
		return 2;
	}
	rate = strtod(argv[4], NULL);
	seconds = strtod(argv[5], NULL);
	sample = strtoull(argv[6], NULL, 10);
	if (timed_pin((int)strtol(argv[3], NULL, 10)))
		fail("CPU");
	from = open_socket(argv[1], 0);
	to = open_receiver(argv[2]);
	if (setsockopt(from, SOL_PACKET, PACKET_QDISC_BYPASS, &bypass, sizeof(bypass)))
		fail("PACKET_QDISC_BYPASS");
	results.room = 8 << 20;
	results.took_ns = calloc(results.room, sizeof(*results.took_ns));
	if (!results.took_ns)
		fail("memory");
	start_ns = clock_now_ns();
	warm_up_ns = rate > 0 && rate < 100 ? 0 : WARM_UP_NS; /* of few each one counts */
	results.since_ns = real_ns() + warm_up_ns;
	end_ns = start_ns + warm_up_ns + (uint64_t)(seconds * (double)NSEC_PER_SEC);
	while (clock_now_ns() < end_ns) {
		if (rate > 0) { /* the first one after a gap as well */
			uint64_t due_ns = start_ns + (uint64_t)((double)(number + 1) *
								(double)NSEC_PER_SEC / rate);

			if (due_ns > end_ns)
				break;
			wait_until(due_ns, to);
		} else if (number % 64 == 0) {
			receive(to);
		}
		send_one(from, &frame, number++, sample);
	}
	wait_until(clock_now_ns() + AFTER_NS, to);
	qsort(results.took_ns, results.came, sizeof(*results.took_ns), compare);
	printf("%llu %llu %llu", (unsigned long long)results.sent,
	       (unsigned long long)results.awaited, (unsigned long long)results.came);
	for (unsigned i = 0; i < 3; i++) {
		static const double part[] = { 0.5, 0.99, 1 };
		uint64_t at = (uint64_t)(part[i] * (double)results.came);

		if (at >= results.came)
			at = results.came - 1;
		printf(" %llu", results.came ? (unsigned long long)results.took_ns[at] : 0ULL);
	}
	printf("\n");
	free(results.took_ns);
	return 0;
}
