/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * intruder PID DEVICE OTHER: asks the helper process of the millraced with that pid for what its configuration does not
 * have, as the process of frames could, were it taken over. It takes that one's end of the socket (pidfd_getfd(2)),
 * and holds its main thread by ptrace meanwhile, which would take the answers for the helper's end. DEVICE is served,
 * OTHER is not. A line for each request: its name, the result, what the helper said.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "xdp/opener_proto.h"

#define FDS_TRIED 256

static int served, other, helper, xsk, file;

static struct opener_request about(enum opener_op op, int ifindex)
{
	struct opener_request request = { .op = op, .ifindex = ifindex };

	/* What it says of itself must make no difference. */
	snprintf(request.ifname, sizeof(request.ifname), "lo");
	return request;
}

static struct opener_request attach(int ifindex, const char *xskmap)
{
	struct opener_request request = about(OPENER_ATTACH, ifindex);

	request.attach.queues = 1;
	snprintf(request.attach.xskmap, sizeof(request.attach.xskmap), "%s", xskmap);
	return request;
}

static void answer_of(const char *name)
{
	struct opener_answer answer;
	struct opener_fds fds;
	char said[OPENER_TEXT_SIZE] = "";

	do {
		int err = opener_receive(helper, &answer, sizeof(answer), &fds);

		if (err) {
			printf("%s: no answer: %d\n", name, err);
			return;
		}
		if (answer.kind == OPENER_LOG)
			memcpy(said, answer.text, sizeof(said));
	} while (answer.kind == OPENER_LOG);
	printf("%s: %d, %u fds: %.*s\n", name, answer.result, fds.count, OPENER_TEXT_SIZE - 1,
	       said);
	opener_fds_close(&fds);
}

static void ask(const char *name, struct opener_request request, int fd)
{
	const struct opener_fds given = { { fd }, fd < 0 ? 0 : 1 };

	if (opener_send(helper, &request, sizeof(request), &given))
		printf("%s: cannot be asked\n", name);
	else
		answer_of(name);
}

static void ask_for_other_devices(void)
{
	struct opener_request request = about(OPENER_SOCKET, other);

	ask("other-socket", request, -1);
	ask("other-program", attach(other, ""), -1);
	ask("other-promiscuous", about(OPENER_PROMISCUOUS, other), -1);
	ask("other-offload", about(OPENER_VLAN_OFFLOAD, other), -1);
	ask("other-peer", about(OPENER_PEER_NAME, other), -1);
	ask("other-bind", about(OPENER_BIND, other), xsk);
	request = about(OPENER_HOST_PORT, 0);
	snprintf(request.ifname, sizeof(request.ifname), "evil");
	ask("other-host-port", request, -1);
}

static void ask_for_more_of_ours(void)
{
	struct opener_request request = about(OPENER_SOCKET, served);

	request.socket.queue = 1;
	ask("queue-socket", request, -1);
	request = about(OPENER_BIND, served);
	request.bind.queue = 1;
	ask("queue-bind", request, xsk);
	ask("map", attach(served, "/sys/fs/bpf/others"), -1);
	ask("map-outside", attach(served, "/etc/passwd"), -1);
	request = attach(served, "");
	request.attach.replace = 1;
	ask("replace", request, -1);
	request = attach(served, "");
	request.attach.dispatcher = 1;
	ask("dispatcher", request, -1);
	ask("offload", about(OPENER_VLAN_OFFLOAD, served), -1);
	ask("busy-poll", about(OPENER_BUSY_POLL, served), xsk);
	request = about(OPENER_REALTIME, 0);
	request.realtime.tid = getpid();
	request.realtime.priority = 99;
	ask("realtime", request, -1);
}

/* What is no request of ours. */
static void ask_for_nothing(void)
{
	struct opener_request request = attach(served, "");
	char byte = 0;

	ask("no-such-request", about(OPENER_OPS, served), -1);
	ask("fd-too-many", about(OPENER_CHECK, 0), xsk);
	ask("bind-a-file", about(OPENER_BIND, served), file);
	request.attach.mode = 77;
	ask("no-such-mode", request, -1);
	if (!opener_send(helper, &byte, sizeof(byte), NULL))
		answer_of("one-byte");
}

static bool is_the_helpers(int fd)
{
	int type = 0, domain = 0;
	socklen_t len = sizeof(int);

	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) && type == SOCK_SEQPACKET &&
	       !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) && domain == AF_UNIX;
}

static int take_socket(pid_t pid)
{
	int process = (int)syscall(SYS_pidfd_open, pid, 0);

	for (int fd = 0; fd < FDS_TRIED; fd++) {
		int taken = (int)syscall(SYS_pidfd_getfd, process, fd, 0);

		if (taken >= 0 && is_the_helpers(taken))
			return taken;
		if (taken >= 0)
			close(taken);
	}
	return -1;
}

int main(int argc, char **argv)
{
	pid_t pid = argc == 4 ? (pid_t)strtol(argv[1], NULL, 10) : 0;

	served = argc == 4 ? (int)if_nametoindex(argv[2]) : 0;
	other = argc == 4 ? (int)if_nametoindex(argv[3]) : 0;
	xsk = socket(AF_XDP, SOCK_RAW, 0);
	file = open("/etc/passwd", O_RDONLY);
	if (pid <= 0 || !served || !other || xsk < 0 || file < 0) {
		fprintf(stderr, "usage: intruder PID DEVICE OTHER\n");
		return 2;
	}
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) || ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) ||
	    waitpid(pid, NULL, __WALL) != pid) {
		perror("intruder: the main thread cannot be held");
		return 1;
	}
	helper = take_socket(pid);
	if (helper < 0) {
		fprintf(stderr, "intruder: pid %d has no socket to a helper\n", (int)pid);
		return 1;
	}
	ask_for_other_devices();
	ask_for_more_of_ours();
	ask_for_nothing();
	return 0; /* which lets go of it */
}
