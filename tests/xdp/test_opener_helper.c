/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The helper's side, asked by a client that need not be ours. Nothing here needs a privilege. */
#include "../../src/xdp/opener_helper.c"

#include <fcntl.h>
#include <sys/wait.h>

#include "unit.h"

static int client; /* our end */
static struct helper helper;
static bool list_fails;

static struct opener_permit permitted; /* lo, with all that there is, if a test says nothing else */
static unsigned realtime;

static int permit(void *context, bool afresh, struct opener_permits *permits)
{
	(void)context;
	if (!afresh)
		return 0;
	if (list_fails)
		return -ENOENT;
	opener_permit_realtime(permits, realtime);
	return opener_permit_device(permits, &permitted);
}

static struct opener_opts opts = { .permit = permit };

static int setup(void **state)
{
	int pair[2];

	(void)state;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -1;
	client = pair[0];
	permitted = (struct opener_permit){
		.device = "lo", .replace = true, .vlan_offload = true, .busy_poll = true
	};
	realtime = 99;
	list_fails = false;
	helper = (struct helper){ .fd = pair[1], .client = getpid(), .opts = &opts };
	log_capture(pass_on, &helper);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	log_capture(NULL, NULL);
	close(client);
	close(helper.fd);
	free(helper.permits.permit);
	traces_undo(&helper.traces);
	return 0;
}

static unsigned open_files(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < 64; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* Sends `size` bytes, lets the helper serve that, and returns its result; *text gets its last words. */
static int served(void *message, size_t size, struct opener_fds *given, char *text)
{
	struct opener_answer answer;
	struct opener_fds fds;

	text[0] = '\0';
	assert_int_equal(opener_send(client, message, size, given), 0);
	assert_true(serve_next(&helper));
	for (;;) {
		assert_int_equal(opener_receive(client, &answer, sizeof(answer), &fds), 0);
		assert_int_equal(fds.count, 0);
		if (answer.kind == OPENER_RESULT)
			return answer.result;
		snprintf(text, OPENER_TEXT_SIZE, "%s", answer.text);
	}
}

static int asked(struct opener_request request, struct opener_fds *given, char *text)
{
	return served(&request, sizeof(request), given, text);
}

static void message_of_another_size_is_refused(void **state)
{
	static char huge[65536];
	char text[OPENER_TEXT_SIZE];

	(void)state;
	assert_int_equal(served(huge, 1, NULL, text), -EBADMSG);
	assert_int_equal(served(huge, sizeof(struct opener_request) - 1, NULL, text), -EBADMSG);
	assert_int_equal(served(huge, sizeof(struct opener_request) + 1, NULL, text), -EBADMSG);
	assert_int_equal(served(huge, sizeof(huge), NULL, text), -EBADMSG);
	assert_string_equal(text, "");
}

static void op_that_is_none_is_refused(void **state)
{
	char text[OPENER_TEXT_SIZE];

	(void)state;
	assert_int_equal(asked((struct opener_request){ .op = OPENER_OPS }, NULL, text), -EPROTO);
	assert_int_equal(asked((struct opener_request){ .op = UINT32_MAX }, NULL, text), -EPROTO);
}

static void fds_that_do_not_belong_are_refused_and_closed(void **state)
{
	struct opener_fds three = { { 0, 1, 2 }, 3 }, one = { { 0 }, 1 }, two = { { 0, 1 }, 2 };
	struct opener_request busy_poll = { .op = OPENER_BUSY_POLL, .ifindex = 1 };
	struct opener_request socket = { .op = OPENER_SOCKET, .ifindex = 1 };
	struct opener_request refresh = { .op = OPENER_REFRESH };
	unsigned before = open_files();
	char text[OPENER_TEXT_SIZE];

	(void)state;
	assert_int_equal(asked(refresh, NULL, text), 0);
	assert_int_equal(asked(refresh, &one, text), -EPROTO);
	assert_int_equal(asked(socket, &two, text), -EPROTO);
	assert_int_equal(asked(busy_poll, &three, text), -EPROTO);
	assert_int_equal(asked(busy_poll, NULL, text), -EPROTO);
	assert_int_equal(served(text, 3, &three, text), -EBADMSG);
	/* There, but not a socket of the right kind. */
	assert_int_equal(asked(busy_poll, &one, text), -EPROTO);
	one.fd[0] = client;
	assert_int_equal(asked(busy_poll, &one, text), -EPROTO);
	assert_int_equal(open_files(), before);
}

static void file_that_holds_no_frames_is_refused(void **state)
{
	struct opener_request request = { .op = OPENER_SOCKET, .ifindex = 1 };
	struct opener_fds fds = { { open("/proc/self/exe", O_RDONLY | O_CLOEXEC) }, 1 };
	char text[OPENER_TEXT_SIZE];

	(void)state;
	assert_true(fds.fd[0] >= 0);
	assert_int_equal(asked((struct opener_request){ .op = OPENER_REFRESH }, NULL, text), 0);
	assert_int_equal(asked(request, &fds, text), -EBADMSG);
	assert_non_null(strstr(text, "lo q0: the frames cannot be mapped"));
	opener_fds_close(&fds);
}

static void device_that_is_not_configured_is_refused(void **state)
{
	static const enum opener_op ops[] = { OPENER_ATTACH,	   OPENER_ATTACH_AGAIN,
					      OPENER_SOCKET,	   OPENER_BIND,
					      OPENER_BUSY_POLL,	   OPENER_PROMISCUOUS,
					      OPENER_VLAN_OFFLOAD, OPENER_PEER_NAME };
	struct opener_request request = { .ifindex = 1, .ifname = "d0" };
	char text[OPENER_TEXT_SIZE];

	(void)state;
	/* Before the first list, and with one that has another; whatever the client says it is. */
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
			struct opener_fds one = { { client }, acts[ops[i]].fds_min };

			request.op = ops[i];
			assert_int_equal(asked(request, &one, text), -EACCES);
			assert_string_equal(text, "lo: is not in the configuration, so it is not "
						  "touched; name it there first");
		}
		permitted.device = "d0";
		assert_int_equal(asked((struct opener_request){ .op = OPENER_REFRESH }, NULL, text),
				 0);
	}
}

static void device_that_is_not_there_is_named(void **state)
{
	struct opener_request request = { .op = OPENER_PROMISCUOUS, .ifindex = INT_MAX };
	char text[OPENER_TEXT_SIZE];

	(void)state;
	memset(request.ifname, 'x', sizeof(request.ifname)); /* and no NUL */
	assert_int_equal(asked(request, NULL, text), -ENODEV);
	assert_memory_equal(text, "xxxxxxxxxxxxxxx: the device went away", 37);
}

static void list_that_fails_leaves_the_old_one(void **state)
{
	struct opener_request request = { .op = OPENER_PEER_NAME, .ifindex = 1 };
	char text[OPENER_TEXT_SIZE];

	(void)state;
	assert_int_equal(asked((struct opener_request){ .op = OPENER_REFRESH }, NULL, text), 0);
	list_fails = true;
	assert_int_equal(asked((struct opener_request){ .op = OPENER_REFRESH }, NULL, text),
			 -ENOENT);
	assert_int_equal(asked(request, NULL, text), -ENOENT); /* lo has no peer: it was asked */
}

static void program_for_no_queue_or_too_many_is_refused(void **state)
{
	struct opener_request request = { .op = OPENER_ATTACH, .ifindex = 1 };
	char text[OPENER_TEXT_SIZE];

	(void)state;
	assert_int_equal(asked((struct opener_request){ .op = OPENER_REFRESH }, NULL, text), 0);
	assert_int_equal(asked(request, NULL, text), -EPROTO);
	request.attach.queues = UINT32_MAX;
	assert_int_equal(asked(request, NULL, text), -EPROTO);
	request.attach.queues = 1;
	request.attach.mode = UINT32_MAX;
	assert_int_equal(asked(request, NULL, text), -EPROTO);
}

static void map_that_is_not_configured_is_not_opened(void **state)
{
	struct opener_request request = {
		.op = OPENER_ATTACH,
		.ifindex = 1,
		.attach = { .queues = 1, .xskmap = "/sys/fs/bpf/theirs" },
	};
	char text[OPENER_TEXT_SIZE];

	(void)state;
	assert_int_equal(serve_refresh(&(struct serving){ .helper = &helper }), 0);
	assert_int_equal(asked(request, NULL, text), -EACCES);
	assert_string_equal(text,
			    "lo: xskmap /sys/fs/bpf/theirs: is not in the configuration, so it "
			    "is not opened; name it there first");
	/* Once it is named it is looked for. */
	permitted.xskmap = "/sys/fs/bpf/theirs";
	assert_int_equal(serve_refresh(&(struct serving){ .helper = &helper }), 0);
	assert_int_not_equal(asked(request, NULL, text), -EACCES);
	assert_non_null(strstr(text, "lo: xskmap /sys/fs/bpf/theirs: "));
	assert_null(strstr(text, "configuration"));
}

/* A link is not what was asked for where ours is to be beside others, and the other way round. */
static void method_that_is_not_configured_is_refused(void **state)
{
	struct opener_request request = {
		.op = OPENER_ATTACH,
		.ifindex = 1,
		.attach = { .queues = 1 },
	};
	char text[OPENER_TEXT_SIZE];

	(void)state;
	permitted.dispatcher = true;
	assert_int_equal(serve_refresh(&(struct serving){ .helper = &helper }), 0);
	assert_int_equal(asked(request, NULL, text), -EACCES);
	assert_non_null(strstr(text, "does not have an XDP program of ours there"));
	request.attach.dispatcher = 1;
	snprintf(request.attach.xskmap, sizeof(request.attach.xskmap), "/sys/fs/bpf/theirs");
	assert_int_equal(asked(request, NULL, text), -EPROTO);
}

/* What the configuration does not have of a device that it names. */
static void act_that_is_not_configured_is_refused(void **state)
{
	static const struct {
		struct opener_request request;
		const char *what;
	} cases[] = {
		{ { .op = OPENER_ATTACH, .attach = { .queues = 1 } },
		  "an XDP program of ours there" },
		{ { .op = OPENER_ATTACH, .attach = { .queues = 1, .dispatcher = 1 } },
		  "attach-method = dispatcher" },
		{ { .op = OPENER_ATTACH_AGAIN }, "an XDP program of ours there" },
		{ { .op = OPENER_ATTACH,
		    .attach = { .queues = 1, .replace = 1, .xskmap = "/sys/fs/bpf/ours" } },
		  "replace = yes" },
		{ { .op = OPENER_SOCKET, .socket = { .queue = 3 } }, "queue 3" },
		{ { .op = OPENER_SOCKET, .socket = { .queue = UINT32_MAX } }, "queue 4294967295" },
		{ { .op = OPENER_BIND, .bind = { .queue = 3 } }, "queue 3" },
		{ { .op = OPENER_BIND, .bind = { .queue = QUEUES_PERMITTED } }, "queue 4096" },
		{ { .op = OPENER_VLAN_OFFLOAD }, "vlan-offload = off" },
	};
	static const struct number_list queues = { 2, { 2, 4 } };

	(void)state;
	permitted = (struct opener_permit){ .device = "lo",
					    .xskmap = "/sys/fs/bpf/ours",
					    .queues = &queues };
	assert_int_equal(serve_refresh(&(struct serving){ .helper = &helper }), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct opener_request request = cases[i].request;
		struct opener_fds one = { { client }, acts[request.op].fds_min };
		char text[OPENER_TEXT_SIZE], want[OPENER_TEXT_SIZE];

		request.ifindex = 1;
		assert_int_equal(asked(request, &one, text), -EACCES);
		snprintf(want, sizeof(want),
			 "lo: the configuration does not have %s, so it is not done; say it there "
			 "first",
			 cases[i].what);
		assert_string_equal(text, want);
	}
}

/* Of the configuration's it is asked of the kernel, which has more to say. */
static void socket_is_bound_to_what_is_configured(void **state)
{
	static const struct number_list queues = { 1, { 2 } };
	struct opener_request request = { .op = OPENER_BIND, .ifindex = 1 };
	struct opener_fds one = { { socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0) }, 1 };
	struct opener_fds other = { { client }, 1 }, two;
	char text[OPENER_TEXT_SIZE];

	(void)state;
	if (one.fd[0] < 0) /* takes CAP_NET_RAW */
		skip();
	two = (struct opener_fds){ { one.fd[0], client }, 2 };
	permitted.queues = &queues;
	assert_int_equal(serve_refresh(&(struct serving){ .helper = &helper }), 0);
	assert_int_equal(asked(request, &one, text), -EACCES);
	request.bind.queue = 2;
	assert_int_equal(asked(request, &other, text), -EPROTO);
	assert_int_equal(asked(request, &two, text), -EPROTO);
	assert_int_equal(asked(request, &one, text), -EINVAL); /* it has no rings */
	assert_string_equal(text, "");
	opener_fds_close(&one);
}

static void busy_poll_that_is_not_configured_is_refused(void **state)
{
	struct opener_request request = { .op = OPENER_BUSY_POLL, .ifindex = 1 };
	struct opener_fds one = { { socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0) }, 1 };
	char text[OPENER_TEXT_SIZE];

	(void)state;
	if (one.fd[0] < 0)
		skip();
	permitted.busy_poll = false;
	assert_int_equal(serve_refresh(&(struct serving){ .helper = &helper }), 0);
	assert_int_equal(asked(request, &one, text), -EACCES);
	assert_non_null(strstr(text, "lo: the configuration does not have wait = busy-poll, "));
	opener_fds_close(&one);
}

static void priority_above_the_configured_one_is_refused(void **state)
{
	struct opener_request request = { .op = OPENER_REALTIME };
	char text[OPENER_TEXT_SIZE];

	(void)state;
	request.realtime.tid = getpid();
	request.realtime.priority = 4;
	realtime = 3;
	assert_int_equal(serve_refresh(&(struct serving){ .helper = &helper }), 0);
	assert_int_equal(asked(request, NULL, text), -EACCES);
	assert_string_equal(text, "-W FIFO -U 4: the configuration has no priority so high, so it "
				  "is not given; say it there first");
}

static void thread_of_another_process_is_refused(void **state)
{
	struct opener_request request = { .op = OPENER_REALTIME };
	char text[OPENER_TEXT_SIZE];

	(void)state;
	assert_int_equal(serve_refresh(&(struct serving){ .helper = &helper }), 0);
	request.realtime.tid = getppid();
	request.realtime.priority = 1;
	assert_int_equal(asked(request, NULL, text), -ESRCH);
	request.realtime.tid = -1;
	assert_int_equal(asked(request, NULL, text), -EINVAL);
}

static void nothing_changed_is_nothing_to_restore(void **state)
{
	struct opener_request request = { .op = OPENER_PORT_RESTORE, .ifindex = 1 };
	char text[OPENER_TEXT_SIZE];

	(void)state;
	assert_int_equal(asked(request, NULL, text), 0);
	assert_string_equal(text, "");
}

static void client_that_is_gone_ends_it(void **state)
{
	(void)state;
	shutdown(client, SHUT_WR);
	assert_false(serve_next(&helper));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(message_of_another_size_is_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(op_that_is_none_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(fds_that_do_not_belong_are_refused_and_closed,
						setup, teardown),
		cmocka_unit_test_setup_teardown(file_that_holds_no_frames_is_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(device_that_is_not_configured_is_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(device_that_is_not_there_is_named, setup, teardown),
		cmocka_unit_test_setup_teardown(list_that_fails_leaves_the_old_one, setup,
						teardown),
		cmocka_unit_test_setup_teardown(program_for_no_queue_or_too_many_is_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(map_that_is_not_configured_is_not_opened, setup,
						teardown),
		cmocka_unit_test_setup_teardown(method_that_is_not_configured_is_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(act_that_is_not_configured_is_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(socket_is_bound_to_what_is_configured, setup,
						teardown),
		cmocka_unit_test_setup_teardown(busy_poll_that_is_not_configured_is_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(priority_above_the_configured_one_is_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(thread_of_another_process_is_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(nothing_changed_is_nothing_to_restore, setup,
						teardown),
		cmocka_unit_test_setup_teardown(client_that_is_gone_ends_it, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
