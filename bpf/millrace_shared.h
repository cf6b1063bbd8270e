/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the XDP program and the daemon share. Included by both; the includer brings __u64. */
#pragma once

/* One a CPU, in the one-entry map millrace_count. Written by the program, summed by the daemon. */
struct millrace_counts {
	__u64 seen;   /* frames the program was run on */
	__u64 passed; /* of these, given to the host's stack */
};

/* Entries of millrace_xsks before the daemon sizes it for the port's RX queues. */
#define MILLRACE_XSKS_DEFAULT 1
