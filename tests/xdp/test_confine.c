/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the two processes may not do any more, each tried in a child that is confined as they are. */
#include "../../src/xdp/confine.c"

#include <linux/sched.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "unit.h"

static int pair[2]; /* [0] is the helper's socket */
static int packet;  /* a datagram socket, as good as a packet socket: -1 is as closed */

static int outcome(long result)
{
	return result < 0 ? errno : 0;
}

/* --- what a process tries, returning its errno, 0: it did it --- */

static int make_unix_socket(void)
{
	return outcome(socket(AF_UNIX, SOCK_STREAM, 0));
}

static int make_internet_socket(void)
{
	return outcome(socket(AF_INET, SOCK_STREAM, 0));
}

static int make_xdp_socket(void)
{
	return outcome(socket(AF_XDP, SOCK_RAW, 0));
}

static int make_packet_socket(void)
{
	return outcome(socket(AF_PACKET, SOCK_RAW, 0));
}

static int make_netlink_socket(void)
{
	return outcome(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
}

static int bind_a_socket(void)
{
	const struct sockaddr_xdp address = { .sxdp_family = AF_XDP, .sxdp_ifindex = 1 };

	return outcome(bind(packet, (const struct sockaddr *)&address, sizeof(address)));
}

static int connect_a_socket(void)
{
	const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "/run/dbus" };

	return outcome(connect(packet, (const struct sockaddr *)&address, sizeof(address)));
}

/* As a packet socket is told its interface. */
static int send_to_an_interface(void)
{
	const struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_ifindex = 1 };

	return outcome(
		sendto(packet, "", 1, 0, (const struct sockaddr *)&address, sizeof(address)));
}

static int send_a_message(int fd)
{
	struct iovec part = { .iov_base = "x", .iov_len = 1 };
	const struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	return outcome(sendmsg(fd, &message, MSG_NOSIGNAL));
}

static int send_a_message_to_another(void)
{
	return send_a_message(packet);
}

static int send_a_message_to_the_helper(void)
{
	return send_a_message(pair[0]);
}

static int wake_a_socket(void)
{
	return outcome(sendto(pair[0], NULL, 0, MSG_DONTWAIT, NULL, 0));
}

static int execute(void)
{
	char *const argv[] = { "true", NULL };

	return outcome(execv("/bin/true", argv));
}

static int fork_a_process(void)
{
	long pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

	if (!pid)
		_exit(0);
	return outcome(pid);
}

static int fork_by_clone3(void)
{
	struct clone_args args = { .exit_signal = SIGCHLD };
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (!pid)
		_exit(0);
	return outcome(pid);
}

static void *run_thread(void *context)
{
	return context;
}

static int start_a_thread(void)
{
	pthread_t thread;
	int err = pthread_create(&thread, NULL, run_thread, NULL);

	return err ? err : pthread_join(thread, NULL);
}

static int open_a_file(const char *path, int flags)
{
	return outcome(open(path, flags, S_IRUSR));
}

static int write_a_file(void)
{
	return open_a_file("/dev/null", O_WRONLY);
}

static int change_a_file(void)
{
	return open_a_file("/dev/null", O_RDWR);
}

static int make_a_file(void)
{
	return open_a_file("/dev/null", O_RDONLY | O_CREAT);
}

static int read_a_file(void)
{
	return open_a_file("/dev/null", O_RDONLY);
}

static int rename_a_file(void)
{
	return outcome(rename("/nonexistent/a", "/nonexistent/b"));
}

static int change_a_mode(void)
{
	return outcome(chmod("/nonexistent", S_IRWXU));
}

static int kill_another(void)
{
	return outcome(kill(getppid(), 0));
}

static int trace_another(void)
{
	return outcome(ptrace(PTRACE_ATTACH, getppid(), NULL, NULL));
}

static int become_another(void)
{
	return outcome(setresuid(12345, 12345, 12345));
}

static int map_code(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return page == MAP_FAILED ? errno : 0;
}

static int call_bpf(int command)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	return outcome(syscall(SYS_bpf, command, &attr, sizeof(attr)));
}

static int make_a_map(void)
{
	return call_bpf(BPF_MAP_CREATE);
}

static int load_a_program(void)
{
	return call_bpf(BPF_PROG_LOAD);
}

static int attach_a_program(void)
{
	return call_bpf(BPF_LINK_CREATE);
}

static int open_a_pin(void)
{
	return call_bpf(BPF_OBJ_GET);
}

static int pin_a_map(void)
{
	return call_bpf(BPF_OBJ_PIN);
}

static int update_a_map(void)
{
	return call_bpf(BPF_MAP_UPDATE_ELEM) == EPERM ? EPERM : 0;
}

static int register_memory(void)
{
	return outcome(setsockopt(packet, SOL_XDP, XDP_UMEM_REG, NULL, 0));
}

static int set_a_filter(void)
{
	return outcome(setsockopt(packet, SOL_SOCKET, SO_DETACH_FILTER, NULL, 0));
}

static int set_a_limit(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	return outcome(setrlimit(RLIMIT_NOFILE, &limit));
}

static int ask_a_limit(void)
{
	struct rlimit limit;

	return outcome(getrlimit(RLIMIT_NOFILE, &limit));
}

static int use_io_uring(void)
{
	return outcome(syscall(SYS_io_uring_setup, 1, NULL));
}

#define FRAMES 1 /* may do it */
#define OPENER 2

static const struct {
	int (*attempt)(void);
	unsigned who; /* may */
	const char *name;
} attempts[] = {
#define ATTEMPT(function, who)           \
	{                                \
		function, who, #function \
	}
	ATTEMPT(make_unix_socket, 0),
	ATTEMPT(make_internet_socket, 0),
	ATTEMPT(make_xdp_socket, OPENER),
	ATTEMPT(make_packet_socket, OPENER),
	ATTEMPT(make_netlink_socket, FRAMES | OPENER),
	ATTEMPT(bind_a_socket, OPENER),
	ATTEMPT(connect_a_socket, 0),
	ATTEMPT(send_to_an_interface, OPENER),
	ATTEMPT(send_a_message_to_another, OPENER),
	ATTEMPT(send_a_message_to_the_helper, FRAMES | OPENER),
	ATTEMPT(wake_a_socket, FRAMES | OPENER),
	ATTEMPT(execute, 0),
	ATTEMPT(fork_a_process, 0),
	ATTEMPT(fork_by_clone3, 0),
	ATTEMPT(start_a_thread, FRAMES),
	ATTEMPT(write_a_file, 0),
	ATTEMPT(change_a_file, 0),
	ATTEMPT(make_a_file, 0),
	ATTEMPT(read_a_file, FRAMES | OPENER),
	ATTEMPT(rename_a_file, 0),
	ATTEMPT(change_a_mode, 0),
	ATTEMPT(kill_another, 0),
	ATTEMPT(trace_another, 0),
	ATTEMPT(become_another, 0),
	ATTEMPT(map_code, 0),
	ATTEMPT(make_a_map, OPENER),
	ATTEMPT(load_a_program, OPENER),
	ATTEMPT(attach_a_program, OPENER),
	ATTEMPT(open_a_pin, OPENER),
	ATTEMPT(pin_a_map, 0),
	ATTEMPT(update_a_map, FRAMES | OPENER),
	ATTEMPT(register_memory, OPENER),
	ATTEMPT(set_a_filter, OPENER),
	ATTEMPT(set_a_limit, OPENER),
	ATTEMPT(ask_a_limit, FRAMES | OPENER),
	ATTEMPT(use_io_uring, 0),
};

/* Whether the opener is one that shares an interface. */
static bool sharing;

/* Whether the filter let it pass: what the kernel then says is another matter, but not EPERM here, for the child has
 * what the kernel asks for, or is told something else first. */
static bool passes(int (*attempt)(void), bool opener)
{
	pid_t parent = getpid();
	int status;
	pid_t pid = fork();

	if (!pid) {
		/* The helper as the opener is nobody that is tried: pid 1 is not signalled here. */
		int err = opener ? confine_opener(parent, sharing) : confine_frames(pair[0], 1);

		if (err)
			_exit(255);
		err = attempt();
		_exit(err == EPERM || err == ENOSYS ? 1 : 0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_not_equal(WEXITSTATUS(status), 255);
	return !WEXITSTATUS(status);
}

/* What this process may not do in any case, such as in a container, tells nothing. */
static bool passes_unconfined(int (*attempt)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		int err = attempt();

		_exit(err == EPERM || err == ENOSYS ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static void only_what_is_a_processes_part_passes(void **state)
{
	unsigned wrong = 0;

	(void)state;
	if (SANITIZED)
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(attempts); i++) {
		bool frames = passes(attempts[i].attempt, false);
		bool opener = passes(attempts[i].attempt, true);
		unsigned may = (frames ? FRAMES : 0) | (opener ? OPENER : 0);

		if (may == attempts[i].who ||
		    (!may && attempts[i].who && !passes_unconfined(attempts[i].attempt)))
			continue;
		print_error("%s: by the process of frames: %s, by the opener: %s\n",
			    attempts[i].name, frames ? "passes" : "refused",
			    opener ? "passes" : "refused");
		wrong++;
	}
	assert_int_equal(wrong, 0);
}

struct waiting {
	int fd; /* what comes there ends the wait */
	int err;
};

/* A thread that was there before is confined too. */
static void *wait_and_try(void *context)
{
	struct waiting *waiting = context;
	char byte;

	while (read(waiting->fd, &byte, 1) < 0)
		;
	waiting->err = make_internet_socket();
	return NULL;
}

static void threads_that_run_are_confined(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	pid = fork();
	if (!pid) {
		struct waiting waiting;
		pthread_t thread;
		int go[2];

		if (pipe(go))
			_exit(255);
		waiting.fd = go[0];
		if (pthread_create(&thread, NULL, wait_and_try, &waiting) ||
		    confine_frames(pair[0], 1) || write(go[1], "", 1) != 1 ||
		    pthread_join(thread, NULL))
			_exit(255);
		_exit(waiting.err == EPERM ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int setup(void **state)
{
	(void)state;
	packet = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return packet < 0 ? -1 : socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
}

static int make_pipe(void)
{
	int ends[2];

	return pipe2(ends, O_CLOEXEC) ? errno : 0;
}

static int make_folder(void)
{
	return mkdir("/none/xdp", 0700) ? errno : 0;
}

static int remove_pin(void)
{
	return unlink("/none/xdp/prog0-link") ? errno : 0;
}

/* Folders and pins are for who is beside other programs. */
static void pins_are_for_who_shares_an_interface(void **state)
{
	int (*const pinning[])(void) = { make_pipe, make_folder, remove_pin };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pinning); i++) {
		sharing = false;
		assert_int_equal(passes(pinning[i], true), SANITIZED && pinning[i] != make_folder);
		sharing = true;
		assert_true(passes(pinning[i], true));
		sharing = false;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_is_a_processes_part_passes),
		cmocka_unit_test(threads_that_run_are_confined),
		cmocka_unit_test(pins_are_for_who_shares_an_interface),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
