/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The counters as OpenMetrics 1.0 text, for whoever scrapes them. Main thread. */
#pragma once

#include "ctl/answer.h"

/* The media type of metrics_text(), for HTTP. */
#define METRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* A whole exposition, malloc()ed, with "# EOF" as its last line; NULL without memory. */
char *metrics_text(const struct control_facts *facts, const struct report *report);
