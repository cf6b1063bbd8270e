/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The operator's client: one command, asked once or again and again, as text or as JSON. */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "ctl/commands.h"
#include "ctl/people.h"
#include "version.h"

#define EXIT_USAGE 2

/* How long the daemon may take for an answer, ms. It answers within WORKER_ANSWER_MS, but a reload waits
 * for drivers, each of which may take seconds. */
#define ANSWER_MS 60000

/* Largest answer: some 2 KiB a socket, of which there are 16 ports x 1024 queues at most. */
#define ANSWER_MAX (64U << 20)

#define INTERVAL_MAX 86400

enum {
	OPTION_SOCKET,
	OPTION_JSON,
	OPTION_INTERVAL,
	OPTION_COUNT,
	OPTION_HELP,
	OPTION_VERSION,
	OPTION_COMPLETION,
	OPTIONS,
};

static const struct command_option option_rows[OPTIONS] = {
	[OPTION_SOCKET] = { 's', "socket", "PATH", "socket of the daemon (" COMMANDS_SOCKET ")",
			    false },
	[OPTION_JSON] = { 'j', "json", NULL, "print the result as one line of JSON", false },
	[OPTION_INTERVAL] = { 'i', "interval", "SEC",
			      "stats: print every SEC seconds, with rates (1)", true },
	[OPTION_COUNT] = { 'n', "count", "N",
			   "stats: print so often, with rates, and end (0: no end)", true },
	[OPTION_HELP] = { 'h', "help", NULL, "print this and end", false },
	[OPTION_VERSION] = { 0, "version", NULL, "print the version and end", false },
	[OPTION_COMPLETION] = { 0, "completion", "SHELL",
				"print a completion for a shell, which must be bash, and end",
				false },
};

/* What the command line said. */
struct call {
	const char *path; /* of the socket */
	enum command command;
	json_t *request;
	bool json;
	bool repeated; /* -i or -n was given */
	unsigned long interval_s;
	unsigned long count; /* 0: no end */
};

/* The connection, and what of the answer has come. */
struct line {
	int fd;
	const char *path;
	char *text;
	size_t len, size;
};

static void __attribute__((format(printf, 1, 2))) complain(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("millracectl: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
}

/* --- the command line --- */

static void print_help(void)
{
	fputs("Usage: millracectl [options] COMMAND [arguments]\n"
	      "Asks a running millraced, or tells it something.\n\n"
	      "Commands:\n",
	      stdout);
	commands_help(stdout);
	fputs("\nOptions:\n", stdout);
	for (unsigned i = 0; i < OPTIONS; i++) {
		const struct command_option *row = &option_rows[i];
		char letter[8] = "    ", names[64];

		if (row->letter)
			snprintf(letter, sizeof(letter), "-%c, ", row->letter);
		snprintf(names, sizeof(names), "%s--%s%s%s", letter, row->name,
			 row->value ? "=" : "", row->value ? row->value : "");
		printf("  %-28s %s\n", names, row->help);
	}
	puts("\nExit status: 0 done, 1 the daemon refused or is not there, 2 usage.");
}

static int usage_number(const struct command_option *row, const char *text, unsigned long min,
			unsigned long *number)
{
	unsigned long max = row == &option_rows[OPTION_INTERVAL] ? INTERVAL_MAX : INT_MAX;

	if (!number_parse(text, min, max, number))
		return 0;
	complain("--%s=%s: must be %lu to %lu", row->name, text, min, max);
	return -EINVAL;
}

static int completion(const char *shell)
{
	if (strcmp(shell, "bash") != 0) {
		complain("--completion=%s: must be bash", shell);
		return -EINVAL;
	}
	commands_completion(stdout, option_rows, OPTIONS);
	return 1;
}

/* Returns 0 to go on, 1 if all is done, or -EINVAL after a message. */
static int take_option(struct call *call, unsigned option, const char *value)
{
	switch (option) {
	case OPTION_SOCKET:
		call->path = value;
		return 0;
	case OPTION_JSON:
		call->json = true;
		return 0;
	case OPTION_INTERVAL:
		call->repeated = true;
		return usage_number(&option_rows[option], value, 1, &call->interval_s);
	case OPTION_COUNT:
		call->repeated = true;
		return usage_number(&option_rows[option], value, 0, &call->count);
	case OPTION_VERSION:
		puts("millracectl " MILLRACE_VERSION);
		return 1;
	case OPTION_COMPLETION:
		return completion(value);
	default:
		print_help();
		return 1;
	}
}

static int take_options(struct call *call, int argc, char **argv)
{
	struct option longs[OPTIONS + 1] = { 0 };
	char letters[2 * OPTIONS + 2] = ":", *letter = letters + 1;
	int code, done = 0;

	for (unsigned i = 0; i < OPTIONS; i++) {
		const struct command_option *row = &option_rows[i];

		longs[i] = (struct option){ row->name, row->value ? required_argument : no_argument,
					    NULL, 256 + (int)i };
		if (!row->letter)
			continue;
		*letter++ = row->letter;
		if (row->value)
			*letter++ = ':';
	}
	opterr = 0;
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): the only thread */
	while (!done && (code = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		unsigned i = 0;

		if (code == ':' || code == '?') {
			complain(code == ':' ? "%s: needs a value; see millracectl --help" :
					       "%s: unknown option; see millracectl --help",
				 argv[optind - 1]);
			return -EINVAL;
		}
		while (code < 256 && option_rows[i].letter != code)
			i++;
		done = take_option(call, code < 256 ? i : (unsigned)code - 256, optarg);
	}
	return done;
}

/* Returns 0, or -EINVAL or -ENOMEM after a message. */
static int take_command(struct call *call, char *const *words)
{
	const struct command_row *row;
	char synopsis[COMMAND_SYNOPSIS_SIZE];
	json_t *arguments = NULL;
	char *const *rest = words;
	int err;

	if (!words[0]) {
		complain("no command; `millracectl status` shows what runs, --help lists them all");
		return -EINVAL;
	}
	call->command = command_take(&rest);
	if (call->command == COMMANDS) {
		const char *nearest = command_nearest(words[0]);

		complain("'%s': no such command%s%s%s", words[0],
			 nearest ? "; did you mean " : "; millracectl --help lists them",
			 nearest ? nearest : "", nearest ? "?" : "");
		return -EINVAL;
	}
	row = command_row(call->command);
	if (call->repeated && !row->repeats) {
		complain("%s: is asked once; -i and -n are for stats", row->name);
		return -EINVAL;
	}
	err = command_arguments(call->command, rest, &arguments);
	if (err == -EINVAL)
		complain("type: millracectl %s", command_synopsis(call->command, synopsis));
	if (!err) {
		call->request = json_pack("{s:i, s:s, s:o}", "version", COMMANDS_VERSION, "command",
					  row->name, "arguments", arguments);
		err = call->request ? 0 : -ENOMEM;
	}
	if (err == -ENOMEM)
		complain("out of memory");
	return err;
}

/* --- the connection --- */

static int connect_failed(const char *path, int err)
{
	if (err == ENOENT)
		complain("%s: no such socket: is millraced running, with control-socket or "
			 "--control-socket=%s? -s names another",
			 path, path);
	else if (err == ECONNREFUSED)
		complain("%s: nobody answers: the millraced that made it has ended; start it again",
			 path);
	else if (err == EACCES)
		complain("%s: not allowed: run it as root, or as a member of the socket's group "
			 "(`ls -l %s`)",
			 path, path);
	else
		complain("%s: cannot connect: %s", path, strerrordesc_np(err));
	return -err;
}

static int line_open(struct line *line, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	*line = (struct line){ .fd = -1, .path = path };
	if (!path[0] || strlen(path) >= sizeof(address.sun_path)) {
		complain("-s '%s': a path of a socket has 1 to %zu characters", path,
			 sizeof(address.sun_path) - 1);
		return -ENAMETOOLONG;
	}
	memcpy(address.sun_path, path, strlen(path) + 1);
	line->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (line->fd < 0 || connect(line->fd, (const struct sockaddr *)&address, sizeof(address)))
		return connect_failed(path, errno);
	return 0;
}

static void line_close(struct line *line)
{
	if (line->fd >= 0)
		close(line->fd);
	free(line->text);
}

/* Whether it could be sent is seen by the answer: one that turns us away may have come already. */
static int line_send(const struct line *line, const json_t *request)
{
	char *text = json_dumps(request, JSON_COMPACT);
	size_t len = text ? strlen(text) : 0;
	size_t done = 0;

	if (!text) {
		complain("out of memory");
		return -ENOMEM;
	}
	text[len++] = '\n'; /* in place of the NUL */
	while (done < len) {
		ssize_t sent = send(line->fd, text + done, len - done, MSG_NOSIGNAL);

		if (sent < 0)
			break;
		done += (size_t)sent;
	}
	free(text);
	return 0;
}

static int line_grow(struct line *line)
{
	size_t size = line->size ? 2 * line->size : 65536;
	char *text;

	if (line->len < line->size)
		return 0;
	text = size > ANSWER_MAX ? NULL : realloc(line->text, size);
	if (!text) {
		complain("%s: an answer of over %zu bytes is too large for the memory there is",
			 line->path, line->size);
		return -ENOMEM;
	}
	line->text = text;
	line->size = size;
	return 0;
}

/* Reads one answer, and takes what comes after it for no part of it: nothing was asked for that. */
static int line_read(struct line *line)
{
	uint64_t deadline_ns = clock_now_ns() + ANSWER_MS * NSEC_PER_MSEC;

	line->len = 0;
	while (!line->len || line->text[line->len - 1] != '\n') {
		struct pollfd pollfd = { .fd = line->fd, .events = POLLIN };
		uint64_t now_ns = clock_now_ns();
		ssize_t got;

		if (line_grow(line))
			return -ENOMEM;
		if (now_ns >= deadline_ns ||
		    !poll(&pollfd, 1, (int)((deadline_ns - now_ns) / NSEC_PER_MSEC) + 1)) {
			complain("%s: no answer within %d s; millraced is stopped or very busy",
				 line->path, ANSWER_MS / 1000);
			return -ETIMEDOUT;
		}
		got = recv(line->fd, line->text + line->len, line->size - line->len, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			complain("%s: millraced has closed the connection: it has ended",
				 line->path);
			return -ECONNRESET;
		}
		line->len += (size_t)got;
	}
	return 0;
}

/* --- answers --- */

static int tell_error(const json_t *answer)
{
	const json_t *error = json_object_get(answer, "error");
	const char *message = json_string_value(json_object_get(error, "message"));
	const json_t *errors = json_object_get(error, "errors");
	json_t *one;
	size_t i;

	/* Lines of a file stand alone, so that an editor finds them. */
	json_array_foreach(errors, i, one)
	{
		if (json_is_string(one))
			fprintf(stderr, "%s\n", json_string_value(one));
	}
	complain("%s", message ? message : "an answer that is none; is it a millraced?");
	return -EPROTO;
}

/* Asks once. The result is a new reference. Returns 0, or -errno after a message. */
static int ask(struct line *line, const struct call *call, json_t **result)
{
	json_t *answer, *value;
	int err = line_send(line, call->request);

	if (!err)
		err = line_read(line);
	if (err)
		return err;
	answer = json_loadb(line->text, line->len, 0, NULL);
	value = json_object_get(answer, "result");
	if (json_is_true(json_object_get(answer, "ok")) && json_is_object(value))
		*result = json_incref(value);
	else
		err = tell_error(answer);
	json_decref(answer);
	return err;
}

/* 0 if standard output took everything; a reader who has had enough, such as `head`, is told nothing. */
static int finish_output(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	if (errno != EPIPE)
		complain("standard output takes no text: %s", strerrordesc_np(errno));
	return -errno;
}

#define JSON_HOW (JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9))

static int print_result(const struct call *call, const json_t *result, const json_t *before)
{
	int err = 0;

	if (call->json) {
		json_dumpf(result, stdout, JSON_HOW);
		putchar('\n');
	} else {
		err = people_print(stdout, call->command, result, before);
		if (call->repeated)
			putchar('\n');
	}
	if (err)
		complain("out of memory");
	return err ? err : finish_output();
}

/* Sleeps until then; a daemon that ends meanwhile is noticed at once. */
static int wait_until(const struct line *line, uint64_t due_ns)
{
	uint64_t now_ns;

	while ((now_ns = clock_now_ns()) < due_ns) {
		struct pollfd pollfd = { .fd = line->fd, .events = POLLIN };

		if (poll(&pollfd, 1, (int)((due_ns - now_ns) / NSEC_PER_MSEC) + 1) > 0) {
			complain("%s: millraced has closed the connection: it has ended",
				 line->path);
			return -ECONNRESET;
		}
	}
	return 0;
}

/* Rates need two results: the first is printed after the first interval. */
static int repeat(struct line *line, const struct call *call)
{
	uint64_t due_ns = clock_now_ns();
	json_t *before = NULL, *now = NULL;
	int err = ask(line, call, &before);

	for (unsigned long i = 0; !err && (!call->count || i < call->count); i++) {
		due_ns += call->interval_s * NSEC_PER_SEC;
		err = wait_until(line, due_ns);
		if (!err)
			err = ask(line, call, &now);
		if (!err)
			err = print_result(call, now, before);
		json_decref(before);
		before = now;
		now = NULL;
	}
	json_decref(before);
	return err;
}

/* One page of a result that comes in several, which is more than memory should hold: as JSON, all of them are one
 * line with one array. */
static int print_page(const struct call *call, const json_t *result, bool first, bool last)
{
	const char *name = command_row(call->command)->pages;
	json_t *element;
	size_t i;

	if (!call->json)
		return print_result(call, result, first ? NULL : result);
	if (first)
		printf("{\"%s\":[", name);
	json_array_foreach(json_object_get(result, name), i, element)
	{
		if (i || !first)
			putchar(',');
		json_dumpf(element, stdout, JSON_HOW);
	}
	if (last)
		printf("],\"next\":null}\n");
	return finish_output();
}

static int pages(struct line *line, const struct call *call)
{
	json_t *arguments = json_object_get(call->request, "arguments"), *next;
	bool first = true, last = false;
	json_t *result = NULL;
	int err = 0;

	while (!err && !last) {
		err = ask(line, call, &result);
		if (err)
			return err;
		next = json_object_get(result, "next");
		last = !json_is_string(next);
		err = print_page(call, result, first, last);
		if (!err && !last)
			err = json_object_set(arguments, "after", next) ? -ENOMEM : 0;
		json_decref(result);
		first = false;
	}
	return err;
}

static int once(struct line *line, const struct call *call)
{
	json_t *result = NULL;
	int err;

	if (command_row(call->command)->pages)
		return pages(line, call);
	err = ask(line, call, &result);
	if (!err)
		err = print_result(call, result, NULL);
	json_decref(result);
	return err;
}

int main(int argc, char **argv)
{
	struct call call = { .path = COMMANDS_SOCKET, .interval_s = 1 };
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct line line = { .fd = -1 };
	int err;

	sigaction(SIGPIPE, &ignore, NULL);
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): the only thread */
	setlocale(LC_ALL, "");
	err = take_options(&call, argc, argv);
	if (err > 0)
		return finish_output() ? EXIT_FAILURE : EXIT_SUCCESS;
	if (err || take_command(&call, argv + optind))
		return EXIT_USAGE;
	err = line_open(&line, call.path);
	if (!err)
		err = call.repeated ? repeat(&line, &call) : once(&line, &call);
	line_close(&line);
	json_decref(call.request);
	return err && err != -EPIPE ? EXIT_FAILURE : EXIT_SUCCESS;
}
