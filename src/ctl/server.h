/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The control socket: many clients, one line each way, nothing that blocks. A client's next request is
 * read only when it has taken the answer to the last one, so that it costs a line and an answer of memory
 * whatever it does. Main thread.
 */
#pragma once

#include <systemd/sd-event.h>

#include "ctl/answer.h"

/* Clients at a time. Each may hold a line and an answer, some 100 KiB. */
#define CONTROL_CLIENTS_MAX 32
/* Of these, places that only those find who may do everything: members of the group cannot lock them
 * out by staying. */
#define CONTROL_CLIENTS_RESERVED 4
/* Longest request with its newline. The longest there is names a port: some 200 bytes. */
#define CONTROL_LINE_MAX 65536
/* How long a client may leave an answer lying, seconds, before its place goes to another. */
#define CONTROL_STUCK_S 10

struct control;

struct control_opts {
	const char *path;  /* of the socket */
	const char *group; /* whose members may use read-only commands; "": nobody's */
	struct answerer answerer;
};

/*
 * Makes the socket. Clients may connect from now on, and wait until control_start(). Before privileges
 * are given up, for the file may have to be given to the group. Returns 0, or -errno after a message:
 * -ENOENT no such folder or group, -EADDRINUSE, -EEXIST and others, see socket_file_open().
 */
int control_open(struct control **result, const struct control_opts *opts);

/* Whether the host has what control_open() needs: the group, and the socket's folder; touches nothing. Any
 * message is control_open()'s. Returns 0, or the first -errno after messages. */
int control_check(const char *path, const char *group);

/* Serves clients from the event loop, after everything else there that is due. Returns 0 or -errno
 * after a message. */
int control_start(struct control *control, sd_event *loop);

/* Drops every client, closes the socket and takes its file away. NULL is fine. */
void control_close(struct control *control);
