/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "conf/options.h"
#include "daemon.h"
#include "version.h"

#define EXIT_USAGE 2

/* Standard input, output and error always exist, so that no socket of ours gets their number. */
static void open_standard_fds(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

/* The event loop takes SIGINT and SIGTERM; blocked from the first line on, they wait for it. A
 * reader that closes our output is an error to report, not a signal to die of. */
static void block_signals(void)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
}

int main(int argc, char **argv)
{
	static struct conf conf;
	char error[512];

	open_standard_fds();
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): the only thread so far */
	setlocale(LC_ALL, "");
	switch (options_parse(argc, argv, &conf, error, sizeof(error))) {
	case OPTIONS_HELP:
		options_help(stdout);
		return EXIT_SUCCESS;
	case OPTIONS_VERSION:
		puts("millraced " MILLRACE_VERSION);
		return EXIT_SUCCESS;
	case OPTIONS_WRONG:
		log_error("%s", error);
		return EXIT_USAGE;
	case OPTIONS_RUN:
		break;
	}
	block_signals();
	return daemon_run(&conf);
}
