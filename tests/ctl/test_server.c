/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../src/ctl/server.c"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "unit.h"

#include "sample.h"

#define VERSION	     "{\"version\":1,\"command\":\"version\"}\n"
#define VERSION_GOOD "{\"version\":1,\"ok\":true,\"result\":{\"version\":\"1.2\",\"protocol\":1}}\n"
#define PLAN	     "{\"version\":1,\"command\":\"plan\"}\n"
#define RELOAD	     "{\"version\":1,\"command\":\"reload\"}\n"

static struct sample sample;
static struct control *control;
static sd_event *loop;
static char folder[64], path[96];

/* Who connects next, instead of this process. */
static struct peer next_peer;
static int next_peer_err;

/* NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier): the linker's name */
int __wrap_peer_look(int fd, gid_t group, struct peer *peer);

int __wrap_peer_look(int fd, gid_t group, struct peer *peer)
{
	(void)fd, (void)group;
	*peer = next_peer;
	return next_peer_err;
}
/* NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier) */

static int open_control(const char *where)
{
	const struct control_opts opts = { where, "", { &sample_ops, &sample } };

	return control_open(&control, &opts);
}

static int setup(void **state)
{
	(void)state;
	sample_init(&sample);
	next_peer = (struct peer){ .uid = 0 };
	next_peer_err = 0;
	snprintf(folder, sizeof(folder), "/tmp/test_server.XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/sock", folder);
	assert_true(sd_event_new(&loop) >= 0);
	assert_int_equal(open_control(path), 0);
	assert_int_equal(control_start(control, loop), 0);
	control->group = 4711; /* as if one had been found by its name */
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	control_close(control);
	control = NULL;
	sd_event_unref(loop);
	/* Fails if the socket's file was left behind. */
	return rmdir(folder);
}

/* Lets the server do all there is to do now. */
static void turn(void)
{
	while (sd_event_run(loop, 0) > 0)
		;
}

static int dial(const char *where)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", where);
	if (!connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return fd;
	close(fd);
	return -1;
}

static int client(void)
{
	int fd = dial(path);

	assert_true(fd >= 0);
	turn();
	return fd;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
	turn();
}

/* All that has come so far; static. */
static const char *heard(int fd)
{
	static char text[8192];
	ssize_t len = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);

	text[len > 0 ? len : 0] = '\0';
	return text;
}

static bool hung_up(int fd)
{
	char byte;
	ssize_t len = recv(fd, &byte, 1, MSG_DONTWAIT);

	return !len || (len < 0 && errno == ECONNRESET);
}

static unsigned clients(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < CONTROL_CLIENTS_MAX; i++)
		count += control->client[i].fd > 0;
	return count;
}

static void one_line_gets_one_answer(void **state)
{
	int fd = client();

	(void)state;
	say(fd, VERSION);
	assert_string_equal(heard(fd), VERSION_GOOD);
	say(fd, VERSION);
	assert_string_equal(heard(fd), VERSION_GOOD);
	close(fd);
	turn();
	assert_int_equal(clients(), 0);
}

static void half_a_line_waits_for_the_other(void **state)
{
	int fd = client();

	(void)state;
	for (const char *at = VERSION; *at; at++) {
		char byte[2] = { *at, '\0' };

		assert_string_equal(heard(fd), "");
		say(fd, byte);
	}
	assert_string_equal(heard(fd), VERSION_GOOD);
	close(fd);
}

static void several_lines_in_one_write_are_answered_in_order(void **state)
{
	int fd = client();

	(void)state;
	say(fd, VERSION "x\n" VERSION "{\"vers");
	assert_string_equal(
		heard(fd), VERSION_GOOD
		"{\"version\":1,\"ok\":false,\"error\":{\"code\":\"bad_request\",\"message\":"
		"\"not JSON: '[' or '{' expected near 'x' (byte 1)\"}}\n" VERSION_GOOD);
	say(fd, "ion\":1,\"command\":\"version\"}\n");
	assert_string_equal(heard(fd), VERSION_GOOD);
	close(fd);
}

static void who_has_said_all_still_gets_the_answers(void **state)
{
	int fd = client();

	(void)state;
	assert_int_equal(send(fd, VERSION VERSION "{\"half", 2 * strlen(VERSION) + 6, 0),
			 2 * strlen(VERSION) + 6);
	shutdown(fd, SHUT_WR);
	turn();
	assert_string_equal(heard(fd), VERSION_GOOD VERSION_GOOD);
	assert_true(hung_up(fd));
	assert_int_equal(clients(), 0);
	close(fd);
}

static void garbage_is_answered_and_forgiven(void **state)
{
	char garbage[1000];
	int fd = client();

	(void)state;
	for (size_t i = 0; i < sizeof(garbage); i++)
		garbage[i] = (char)(i * 7 + 128);
	garbage[sizeof(garbage) - 1] = '\n';
	for (size_t i = 0; i < sizeof(garbage) - 1; i++)
		garbage[i] = (char)(garbage[i] == '\n' ? 0 : garbage[i]);
	assert_int_equal(send(fd, garbage, sizeof(garbage), 0), sizeof(garbage));
	turn();
	assert_non_null(strstr(heard(fd), "\"code\":\"bad_request\""));
	say(fd, VERSION);
	assert_string_equal(heard(fd), VERSION_GOOD);
	close(fd);
}

/* A byte over the limit is too long, also when its newline comes with it. */
static void a_line_may_be_so_long_and_no_longer(void **state)
{
	static char text[CONTROL_LINE_MAX + 1];

	(void)state;
	for (int over = 0; over <= 1; over++) {
		size_t len = CONTROL_LINE_MAX + (size_t)over, done = 0;
		int fd = client();

		memset(text, ' ', len);
		memcpy(text + len - (sizeof(VERSION) - 1), VERSION, sizeof(VERSION) - 1);
		while (done < len) {
			ssize_t sent = send(fd, text + done, len - done, MSG_NOSIGNAL);

			if (sent < 0)
				break;
			done += (size_t)sent;
			turn();
		}
		if (over) {
			assert_non_null(strstr(heard(fd), "\"code\":\"line_too_long\",\"message\":"
							  "\"a request has at most 65536 bytes"));
			assert_true(hung_up(fd));
		} else {
			assert_string_equal(heard(fd), VERSION_GOOD);
		}
		close(fd);
	}
	turn();
	assert_int_equal(clients(), 0);
}

static void a_line_of_a_mebibyte_is_told_and_hung_up_on(void **state)
{
	char piece[4096];
	int fd = client(), sent = 0;

	(void)state;
	memset(piece, '{', sizeof(piece));
	for (; sent < 256 && send(fd, piece, sizeof(piece), MSG_NOSIGNAL) > 0; sent++)
		turn();
	assert_in_range(sent, CONTROL_LINE_MAX / sizeof(piece), 255);
	assert_non_null(strstr(heard(fd), "\"code\":\"line_too_long\""));
	assert_true(hung_up(fd));
	assert_int_equal(clients(), 0);
	close(fd);
}

/* It costs one answer, and nobody else anything. */
static void a_client_that_never_reads_is_answered_no_more(void **state)
{
	int deaf = client(), fd = client();
	struct client *stuck = NULL;
	char *first;

	(void)state;
	sample.plan_is_large = 4 << 20;
	for (int i = 0; i < 100; i++) {
		if (send(deaf, PLAN, strlen(PLAN), MSG_NOSIGNAL) < 0)
			assert_int_equal(errno, EAGAIN); /* nobody reads its lines either */
		turn();
	}
	for (unsigned i = 0; i < CONTROL_CLIENTS_MAX; i++) {
		if (control->client[i].fd > 0 && control->client[i].out)
			stuck = &control->client[i];
	}
	assert_non_null(stuck);
	first = stuck->out;
	say(fd, VERSION);
	assert_string_equal(heard(fd), VERSION_GOOD);
	for (int i = 0; i < 100; i++) {
		if (send(deaf, PLAN, strlen(PLAN), MSG_NOSIGNAL) < 0)
			assert_int_equal(errno, EAGAIN); /* nobody reads its lines either */
		turn();
	}
	assert_ptr_equal(stuck->out, first);
	assert_in_range(stuck->in_size, 1, CONTROL_LINE_MAX);
	/* As long as it may leave it lying. */
	assert_true(sd_event_source_get_enabled(stuck->stuck, NULL) > 0);
	on_stuck(stuck->stuck, 0, stuck);
	assert_int_equal(clients(), 1);
	close(deaf);
	close(fd);
}

static void a_slow_reader_gets_all_of_a_large_answer(void **state)
{
	size_t total = 0;
	int fd = client();
	char last = 0;

	(void)state;
	sample.plan_is_large = 4 << 20;
	say(fd, PLAN VERSION);
	for (int idle = 0; idle < 3; idle++) {
		char piece[10000];
		ssize_t len = recv(fd, piece, sizeof(piece), MSG_DONTWAIT);

		turn();
		if (len <= 0)
			continue;
		idle = 0;
		total += (size_t)len;
		last = piece[len - 1];
	}
	assert_in_range(total, (4 << 20) + strlen(VERSION_GOOD), (4 << 20) + 300);
	assert_int_equal(last, '\n');
	close(fd);
}

static void places_are_limited_and_some_kept_for_root(void **state)
{
	int fd[CONTROL_CLIENTS_MAX], over;
	unsigned group = CONTROL_CLIENTS_MAX - CONTROL_CLIENTS_RESERVED;

	(void)state;
	next_peer = (struct peer){ .uid = geteuid() + 1, .in_group = true };
	for (unsigned i = 0; i < group; i++)
		fd[i] = client();
	assert_int_equal(clients(), group);
	over = client();
	assert_non_null(strstr(heard(over), "\"code\":\"too_many_clients\""));
	assert_true(hung_up(over));
	close(over);
	next_peer = (struct peer){ .uid = 0 };
	for (unsigned i = group; i < CONTROL_CLIENTS_MAX; i++)
		fd[i] = client();
	assert_int_equal(clients(), CONTROL_CLIENTS_MAX);
	over = client();
	assert_non_null(strstr(heard(over), "32 may be connected"));
	assert_true(hung_up(over));
	close(over);
	for (unsigned i = 0; i < CONTROL_CLIENTS_MAX; i++) {
		say(fd[i], VERSION);
		assert_string_equal(heard(fd[i]), VERSION_GOOD);
	}
	for (unsigned i = 0; i < CONTROL_CLIENTS_MAX; i++)
		close(fd[i]);
	turn();
	assert_int_equal(clients(), 0);
	over = client();
	say(over, VERSION);
	assert_string_equal(heard(over), VERSION_GOOD);
	close(over);
}

static void rights_go_by_who_connects(void **state)
{
	static const struct {
		uid_t uid;
		bool in_group, none;
		int err;
		bool looks, changes;
	} rows[] = {
		{ 0, false, false, 0, true, true },
		{ 1234, true, false, 0, true, false },
		{ 1234, false, false, 0, false, false },
		{ 1234, true, true, 0, false, false }, /* no group was named */
		{ 0, true, false, -EINVAL, false, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int fd;

		next_peer = (struct peer){ .uid = rows[i].uid, .in_group = rows[i].in_group };
		next_peer_err = rows[i].err;
		control->group = rows[i].none ? (gid_t)-1 : 4711;
		fd = client();
		if (!rows[i].looks) {
			assert_non_null(strstr(heard(fd), "\"code\":\"denied\""));
			assert_true(hung_up(fd));
			close(fd);
			continue;
		}
		say(fd, VERSION);
		assert_string_equal(heard(fd), VERSION_GOOD);
		say(fd, RELOAD);
		assert_int_equal(strstr(heard(fd), "\"ok\":true") != NULL, rows[i].changes);
		close(fd);
	}
	assert_int_equal(sample.reloads, 1);
}

/* --- the file --- */

static void a_live_socket_is_left_alone(void **state)
{
	struct control *first = control;
	int fd;

	(void)state;
	assert_int_equal(open_control(path), -EADDRINUSE);
	control = first;
	fd = client();
	say(fd, VERSION);
	assert_string_equal(heard(fd), VERSION_GOOD);
	close(fd);
}

static void a_socket_that_nobody_answers_on_is_replaced(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int dead = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;

	(void)state;
	control_close(control);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_int_equal(bind(dead, (struct sockaddr *)&address, sizeof(address)), 0);
	close(dead);
	assert_int_equal(open_control(path), 0);
	assert_int_equal(control_start(control, loop), 0);
	fd = client();
	say(fd, VERSION);
	assert_string_equal(heard(fd), VERSION_GOOD);
	close(fd);
}

static void what_is_no_socket_stays(void **state)
{
	struct control *first = control;
	struct stat status;
	char other[96];

	(void)state;
	snprintf(other, sizeof(other), "%s/file", folder);
	close(open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(open_control(other), -EEXIST);
	assert_int_equal(stat(other, &status), 0);
	unlink(other);
	/* A link to a live socket is no socket either. */
	assert_int_equal(symlink(path, other), 0);
	assert_int_equal(open_control(other), -EEXIST);
	assert_int_equal(unlink(other), 0);
	control = first;
}

static void what_cannot_be_made_is_told(void **state)
{
	struct control *first = control;
	char other[200];

	(void)state;
	snprintf(other, sizeof(other), "%s/none/sock", folder);
	assert_int_equal(open_control(other), -ENOENT);
	memset(other, 'x', sizeof(other) - 1);
	other[sizeof(other) - 1] = '\0';
	assert_int_equal(open_control(other), -ENAMETOOLONG);
	control = first;
}

static void the_file_is_its_owners_alone_without_a_group(void **state)
{
	struct stat status;

	(void)state;
	assert_int_equal(lstat(path, &status), 0);
	assert_true(S_ISSOCK(status.st_mode));
	assert_int_equal(status.st_mode & 07777, 0600);
}

/* Somebody replaced it: it is theirs. */
static void a_file_that_is_no_longer_ours_stays(void **state)
{
	struct stat status;

	(void)state;
	assert_int_equal(unlink(path), 0);
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	control_close(control);
	control = NULL;
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(unlink(path), 0);
}

#define SERVER_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SERVER_TEST(one_line_gets_one_answer),
		SERVER_TEST(half_a_line_waits_for_the_other),
		SERVER_TEST(several_lines_in_one_write_are_answered_in_order),
		SERVER_TEST(who_has_said_all_still_gets_the_answers),
		SERVER_TEST(garbage_is_answered_and_forgiven),
		SERVER_TEST(a_line_may_be_so_long_and_no_longer),
		SERVER_TEST(a_line_of_a_mebibyte_is_told_and_hung_up_on),
		SERVER_TEST(a_client_that_never_reads_is_answered_no_more),
		SERVER_TEST(a_slow_reader_gets_all_of_a_large_answer),
		SERVER_TEST(places_are_limited_and_some_kept_for_root),
		SERVER_TEST(rights_go_by_who_connects),
		SERVER_TEST(a_live_socket_is_left_alone),
		SERVER_TEST(a_socket_that_nobody_answers_on_is_replaced),
		SERVER_TEST(what_is_no_socket_stays),
		SERVER_TEST(what_cannot_be_made_is_told),
		SERVER_TEST(the_file_is_its_owners_alone_without_a_group),
		SERVER_TEST(a_file_that_is_no_longer_ours_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
