/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/signals.h"
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

/* A reader that closes our output is an error to report, not a signal to die of. */
static void ignore_sigpipe(void)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };

	sigaction(SIGPIPE, &ignore, NULL);
}

/* 0 if standard output took everything. */
static int finish_output(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return EXIT_SUCCESS;
	log_error("standard output takes no text: " ERR_FORMAT, ERR_ARGS(errno));
	return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	static struct conf conf;
	char error[512];
	int status;

	signals_block();
	ignore_sigpipe();
	open_standard_fds();
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): the only thread so far */
	setlocale(LC_ALL, "");
	switch (options_parse(argc, argv, &conf, error, sizeof(error))) {
	case OPTIONS_HELP:
		options_help(stdout);
		return finish_output();
	case OPTIONS_VERSION:
		puts("millraced " MILLRACE_VERSION);
		return finish_output();
	case OPTIONS_WRONG:
		log_error("%s", error);
		return EXIT_USAGE;
	case OPTIONS_RUN:
		break;
	}
	status = daemon_run(&conf, NULL);
	conf_fini(&conf);
	return status;
}
