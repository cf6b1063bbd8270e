/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parts of a report as JSON, for its own line and for the answers of the control socket. Each returns a
 * new reference, or NULL without memory; jansson passes a NULL on to whatever it is put into. Main thread.
 */
#pragma once

#include <jansson.h>

#include "ctl/report.h"

static inline json_t *json_count(uint64_t value)
{
	return json_integer((json_int_t)value);
}

/* A string; one that is no UTF-8, as the name of a device or file may be, with "?" for what is not
 * ASCII. Text must not be NULL. */
json_t *json_text(const char *text);

/* A row of sockets[], programs[], workers[], see docs/report-json.md. */
json_t *report_socket_json(const struct report_socket *socket);
json_t *report_program_json(const struct report_program *program);
json_t *report_worker_json(const struct report_worker *worker);
