/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The configuration file. Pure but for reading it; one thread at a time. */
#pragma once

#include <stdio.h>

#include "base/diag.h"
#include "conf/conf.h"

/* Largest file that is read. A forward of 16 ports takes some 2 KiB. */
#define CONF_FILE_MAX (1U << 20)

/*
 * Reads a configuration into *conf, which is overwritten, and the caller's to conf_fini() whatever
 * comes of it. Everything that is wrong goes into diag, in the order of the file. Returns 0 if conf is
 * complete and consistent, whatever warnings there are; -EINVAL after errors; another -errno, after an
 * error too, if reading failed.
 */
int conf_parse(FILE *in, struct conf *conf, struct diag *diag);

/* The same for the file at path, which diag->file becomes. It must be a regular file. */
int conf_parse_file(const char *path, struct conf *conf, struct diag *diag);
