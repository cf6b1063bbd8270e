/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Questions to rtnetlink, and its news. Any thread; no capability is needed. Logs nothing. */
#pragma once

#include <libmnl/libmnl.h>
#include <stdint.h>

/* Room for a request: its headers, and a name. */
#define NETLINK_REQUEST_BYTES 512

/* The kernel's own limit for one message of a dump; a link with many virtual functions answers with tens of
 * KiB too. */
#define NETLINK_ANSWER_BYTES 32768

/*
 * Sends a request and has `parse` called for each message of the
 * answer, until it says MNL_CB_STOP or the answer is over. Blocks only for that. Returns 0, or -errno: the
 * kernel's, or what `parse` set before MNL_CB_ERROR.
 */
int netlink_ask(const struct nlmsghdr *request, mnl_cb_t parse, void *context);

/* Opens a socket that becomes readable with news of these groups (RTMGRP_LINK and so on, as bits). Reading
 * it never blocks. Returns the fd, which the caller closes, or -errno (-EMFILE). */
int netlink_watch_open(uint32_t groups);
