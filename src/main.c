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
#include "conf/print.h"
#include "ctl/commands.h"
#include "ctl/server.h"
#include "daemon.h"
#include "planner.h"
#include "version.h"
#include "xdp/privileges.h"

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

/* What a file has wrong with it, line by line. */
static void say_findings(const struct diag *diag)
{
	for (unsigned i = 0; i < diag->count; i++) {
		char text[2 * DIAG_TEXT_SIZE];

		log_write(diag->lines[i].warning ? LOG_LEVEL_WARNING : LOG_LEVEL_ERROR, "%s",
			  diag_print(diag, i, text, sizeof(text)));
	}
	if (diag_more(diag))
		log_error("%s: and %u more", diag->file, diag_more(diag));
}

/* Reads the configuration file, if there is one. Returns 0, or -errno after messages. */
static int load(const struct options *options, struct conf *conf, bool say)
{
	struct diag diag = { 0 };
	int err;

	if (!options->file)
		return 0;
	err = options_load(options, conf, &diag);
	if (say)
		say_findings(&diag);
	diag_fini(&diag);
	return err;
}

/* A wait that nobody could end is a mistake to be told before anything is touched. */
static int check_confirm(const struct conf *conf)
{
	if (!conf->confirm_s || conf->control_socket[0])
		return 0;
	log_error("--confirm=%u: nobody could confirm without a control socket; add "
		  "--control-socket=" COMMANDS_SOCKET,
		  conf->confirm_s);
	return -EINVAL;
}

static int check(const struct options *options, const struct conf *conf)
{
	struct privileges_user user;
	struct plan *plan = NULL;
	int control_err = 0, user_err, err;

	/* As a start: the control socket comes before any device. */
	if (conf->control_socket[0])
		control_err = control_check(conf->control_socket, conf->control_group);
	user_err = privileges_find_user(conf->user, PRIVILEGES_USER, &user);
	err = planner_make(conf, NULL, &plan);
	if (!err)
		err = planner_check(plan);
	plan_free(plan);
	if (err || control_err || user_err)
		return EXIT_FAILURE;
	printf("%s: correct; %u port%s, %u forward%s\n", options->file, conf->ports,
	       conf->ports == 1 ? "" : "s", conf->forwards, conf->forwards == 1 ? "" : "s");
	return finish_output();
}

static int print_config(const struct conf *conf)
{
	fputs("# ", stdout);
	if (!conf_print_flags(stdout, conf))
		fputs("no flags say this: they know one forward, whose ports are all alike",
		      stdout);
	putchar('\n');
	conf_print(stdout, conf);
	return finish_output();
}

static int show_plan(const struct conf *conf, bool json)
{
	int status = planner_show(conf, stdout, json);

	return status ? status : finish_output();
}

/* For the daemon, when it is to read the file again. */
static int load_again(void *context, struct conf *conf, bool say)
{
	return load(context, conf, say);
}

static int run(struct options *options, struct conf *conf)
{
	const struct daemon_file file = {
		.path = options->file,
		.load = load_again,
		.context = options,
	};

	return daemon_run(conf, options->file ? &file : NULL);
}

/* Does with the conf what the command line asked for. */
static int act(struct options *options, struct conf *conf)
{
	switch (options->action) {
	case ACTION_CHECK:
		return check(options, conf);
	case ACTION_PRINT:
		return print_config(conf);
	case ACTION_PLAN:
		return show_plan(conf, false);
	case ACTION_PLAN_JSON:
		return show_plan(conf, true);
	case ACTION_RUN:
		break;
	}
	return run(options, conf);
}

int main(int argc, char **argv)
{
	static struct options options;
	static struct conf conf;
	int status;

	signals_block();
	ignore_sigpipe();
	open_standard_fds();
	log_open();
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): the only thread so far */
	setlocale(LC_ALL, "");
	switch (options_parse(argc, argv, &options, &conf)) {
	case OPTIONS_HELP:
		options_help(stdout);
		return finish_output();
	case OPTIONS_HELP_CONFIG:
		options_help_config(stdout);
		return finish_output();
	case OPTIONS_VERSION:
		puts("millraced " MILLRACE_VERSION);
		return finish_output();
	case OPTIONS_WRONG:
		log_error("%s", options.error);
		return EXIT_USAGE;
	case OPTIONS_RUN:
		break;
	}
	if (load(&options, &conf, true) || check_confirm(&conf))
		status = EXIT_USAGE;
	else
		status = act(&options, &conf);
	conf_fini(&conf);
	return status;
}
