/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "ctl/server.h"

#include <errno.h>
#include <grp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "ctl/peer.h"
#include "ctl/socket_file.h"

/* Accepting waits so long when there is no file descriptor left for another client: the listening socket
 * stays readable, and the loop would spin. */
#define ACCEPT_PAUSE_US 500000
#define LOOSE_US	100000 /* timers here may be late by so much */

/* Room for input grows by this. */
#define INPUT_STEP 4096

struct client {
	struct control *control; /* borrowed */
	int fd;			 /* 0: this place is free. Owned. */
	enum rights rights;
	sd_event_source *io;
	sd_event_source *stuck; /* while an answer waits to be taken */
	char *in;		/* bytes read and not yet answered; no newline before `searched` */
	size_t in_len, in_size, searched;
	char *out; /* the answer, NULL: none */
	size_t out_len, out_done;
	bool ended;   /* it sends no more */
	bool closing; /* goes when it has its answer */
};

struct control {
	struct socket_file file;
	struct answerer answerer;
	gid_t group;	/* (gid_t)-1: none */
	sd_event *loop; /* borrowed */
	sd_event_source *accept;
	sd_event_source *resume; /* accepting again */
	bool said_full;		 /* that there is no fd for more clients */
	struct client client[CONTROL_CLIENTS_MAX];
};

/* --- one client --- */

static void client_close(struct client *client)
{
	if (client->fd <= 0)
		return;
	sd_event_source_disable_unref(client->io);
	sd_event_source_disable_unref(client->stuck);
	free(client->in);
	free(client->out);
	close(client->fd);
	*client = (struct client){ 0 };
}

static int on_stuck(sd_event_source *source, uint64_t due_us, void *context)
{
	(void)source, (void)due_us;
	client_close(context);
	return 0;
}

/* The length of the first whole line with its newline, 0 if there is none. */
static size_t line_len(struct client *client)
{
	const char *newline;

	if (client->in_len == client->searched)
		return 0;
	newline = memchr(client->in + client->searched, '\n', client->in_len - client->searched);
	if (newline)
		return (size_t)(newline - client->in) + 1;
	client->searched = client->in_len;
	return 0;
}

static void forget_input(struct client *client, size_t len)
{
	memmove(client->in, client->in + len, client->in_len - len);
	client->in_len -= len;
	client->searched = 0;
}

/* The answer is the client's from now on; NULL, there is no memory for one: nothing more is said. */
static void set_answer(struct client *client, char *answer)
{
	client->out = answer;
	client->out_len = answer ? strlen(answer) : 0;
	client->out_done = 0;
	if (!answer)
		client->closing = true;
}

/* Answers the first line, if there is one; or one that can no longer become a request. */
static void answer_next(struct client *client)
{
	size_t len = line_len(client);

	if (len && len <= CONTROL_LINE_MAX) {
		set_answer(client, answer_request(&client->control->answerer, client->rights,
						  client->in, len));
		forget_input(client, len);
	} else if (client->in_len >= CONTROL_LINE_MAX) {
		set_answer(client, answer_error(ANSWER_LINE_TOO_LONG,
						"a request has at most %d bytes with its newline",
						CONTROL_LINE_MAX));
		client->closing = true;
	} else if (client->ended) {
		client->closing = true; /* half a line is no request */
	}
}

static int grow_input(struct client *client)
{
	size_t size = client->in_size + INPUT_STEP;
	char *in;

	if (client->in_size - client->in_len)
		return 0;
	in = realloc(client->in, size);
	if (!in)
		return -ENOMEM;
	client->in = in;
	client->in_size = size;
	return 0;
}

/* Reads what fits once. Returns 0, also if there was nothing; or -errno. */
static int read_some(struct client *client)
{
	ssize_t len;
	int err = grow_input(client);

	if (err)
		return err;
	len = recv(client->fd, client->in + client->in_len, client->in_size - client->in_len,
		   MSG_DONTWAIT);
	if (len < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	client->ended |= len == 0;
	client->in_len += (size_t)len;
	return 0;
}

/* Writes what is taken. Returns 0 or -errno: it is gone. */
static int write_some(struct client *client)
{
	while (client->out_done < client->out_len) {
		ssize_t len = send(client->fd, client->out + client->out_done,
				   client->out_len - client->out_done, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (len < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		client->out_done += (size_t)len;
	}
	free(client->out);
	client->out = NULL;
	return 0;
}

/* What it waits for: to write, or to go on with a line that is here; else to read. */
static int watch(struct client *client)
{
	bool waits = client->out;
	uint32_t events = waits || client->ended || line_len(client) ? EPOLLOUT : EPOLLIN;
	int err = sd_event_source_set_io_events(client->io, events);

	if (err >= 0 && waits)
		err = sd_event_source_set_time_relative(client->stuck,
							CONTROL_STUCK_S * 1000000ULL);
	if (err >= 0)
		err = sd_event_source_set_enabled(client->stuck,
						  waits ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
	return err;
}

/* One step a turn of the loop: whoever has many requests waits for the others in between. */
static int on_client(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct client *client = context;
	int err = 0;

	(void)source, (void)fd;
	if (!client->out && events & (EPOLLIN | EPOLLHUP | EPOLLERR) && !line_len(client))
		err = read_some(client);
	if (!err && !client->out)
		answer_next(client);
	if (!err && client->out)
		err = write_some(client);
	if (err || (client->closing && !client->out) || watch(client) < 0)
		client_close(client);
	return 0;
}

/* --- accepting --- */

static enum rights rights_of(const struct control *control, int fd)
{
	struct peer peer;

	if (peer_look(fd, control->group, &peer))
		return RIGHTS_NONE;
	if (!peer.uid || peer.uid == geteuid())
		return RIGHTS_ALL;
	return control->group != (gid_t)-1 && peer.in_group ? RIGHTS_READ : RIGHTS_NONE;
}

static struct client *free_place(struct control *control, enum rights rights)
{
	unsigned places = CONTROL_CLIENTS_MAX, used = 0;
	struct client *place = NULL;

	if (rights != RIGHTS_ALL)
		places -= CONTROL_CLIENTS_RESERVED;
	for (unsigned i = 0; i < CONTROL_CLIENTS_MAX; i++) {
		if (control->client[i].fd > 0)
			used++;
		else
			place = &control->client[i];
	}
	return used < places ? place : NULL;
}

/* Tells it in one line, which always fits a new socket, and closes. */
static void turn_away(int fd, char *answer)
{
	if (answer && send(fd, answer, strlen(answer), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		(void)errno; /* it is gone already */
	free(answer);
	close(fd);
}

static int add_client(struct control *control, struct client *client)
{
	int err =
		sd_event_add_io(control->loop, &client->io, client->fd, EPOLLIN, on_client, client);

	if (err >= 0)
		err = sd_event_source_set_priority(client->io, SD_EVENT_PRIORITY_IDLE);
	if (err >= 0)
		err = sd_event_add_time_relative(control->loop, &client->stuck, CLOCK_MONOTONIC,
						 CONTROL_STUCK_S * 1000000ULL, LOOSE_US, on_stuck,
						 client);
	if (err >= 0)
		err = sd_event_source_set_enabled(client->stuck, SD_EVENT_OFF);
	return err;
}

static void take_in(struct control *control, int fd)
{
	enum rights rights = rights_of(control, fd);
	struct client *client = free_place(control, rights);

	if (rights == RIGHTS_NONE) {
		turn_away(fd,
			  answer_error(ANSWER_DENIED,
				       "only root, the daemon's own user (uid %u) and members of "
				       "the control group may ask",
				       (unsigned)geteuid()));
		return;
	}
	if (!client) {
		turn_away(fd,
			  answer_error(ANSWER_TOO_MANY_CLIENTS,
				       "too many clients: %d may be connected, %d of them who are "
				       "only in the control group; close some",
				       CONTROL_CLIENTS_MAX,
				       CONTROL_CLIENTS_MAX - CONTROL_CLIENTS_RESERVED));
		return;
	}
	*client = (struct client){ .control = control, .fd = fd, .rights = rights };
	if (add_client(control, client) < 0)
		client_close(client);
}

static int on_resume(sd_event_source *source, uint64_t due_us, void *context)
{
	const struct control *control = context;

	(void)source, (void)due_us;
	return sd_event_source_set_enabled(control->accept, SD_EVENT_ON);
}

/* Not before some time has passed. */
static void pause_accepting(struct control *control, int err)
{
	if (!control->said_full)
		log_warning("control socket %s: clients must wait: " ERR_FORMAT, control->file.path,
			    ERR_ARGS(err));
	control->said_full = true;
	sd_event_source_set_enabled(control->accept, SD_EVENT_OFF);
	sd_event_source_set_time_relative(control->resume, ACCEPT_PAUSE_US);
	sd_event_source_set_enabled(control->resume, SD_EVENT_ONESHOT);
}

static int on_accept(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct control *control = context;
	int client_fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)source, (void)events;
	if (client_fd >= 0)
		take_in(control, client_fd);
	else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		pause_accepting(control, -errno);
	return 0;
}

/* --- the socket --- */

static int find_group(const char *name, gid_t *group)
{
	const struct group *entry;
	int err;

	*group = (gid_t)-1;
	if (!name[0])
		return 0;
	errno = 0;
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): only the main thread asks for groups */
	entry = getgrnam(name);
	if (entry) {
		*group = entry->gr_gid;
		return 0;
	}
	err = errno ? -errno : -ENOENT;
	if (err == -ENOENT)
		log_error("control group '%s': there is no such group; make it with `groupadd "
			  "--system %s`",
			  name, name);
	else
		log_error("control group '%s': cannot be looked up: " ERR_FORMAT, name,
			  ERR_ARGS(err));
	return err;
}

int control_open(struct control **result, const struct control_opts *opts)
{
	struct control *control = calloc(1, sizeof(*control));
	int err;

	if (!control) {
		log_error("control socket %s: " ERR_FORMAT, opts->path, ERR_ARGS(ENOMEM));
		return -ENOMEM;
	}
	control->answerer = opts->answerer;
	err = find_group(opts->group, &control->group);
	if (!err)
		err = socket_file_open(&control->file, opts->path, control->group);
	if (err)
		free(control);
	else
		*result = control;
	return err;
}

int control_check(const char *path, const char *group)
{
	gid_t gid;
	int group_err = find_group(group, &gid);
	int err = socket_file_check(path);

	return group_err ? group_err : err;
}

int control_start(struct control *control, sd_event *loop)
{
	int err;

	control->loop = loop;
	err = sd_event_add_io(loop, &control->accept, control->file.fd, EPOLLIN, on_accept,
			      control);
	if (err >= 0)
		err = sd_event_source_set_priority(control->accept, SD_EVENT_PRIORITY_IDLE);
	if (err >= 0)
		err = sd_event_add_time_relative(loop, &control->resume, CLOCK_MONOTONIC,
						 ACCEPT_PAUSE_US, LOOSE_US, on_resume, control);
	if (err >= 0)
		err = sd_event_source_set_enabled(control->resume, SD_EVENT_OFF);
	if (err >= 0)
		return 0;
	log_error("control socket %s: no event source: " ERR_FORMAT, control->file.path,
		  ERR_ARGS(err));
	return err;
}

void control_close(struct control *control)
{
	if (!control)
		return;
	for (unsigned i = 0; i < CONTROL_CLIENTS_MAX; i++)
		client_close(&control->client[i]);
	sd_event_source_disable_unref(control->accept);
	sd_event_source_disable_unref(control->resume);
	socket_file_close(&control->file);
	free(control);
}
