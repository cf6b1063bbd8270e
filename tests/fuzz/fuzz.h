/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the fuzzers share. Each is one program: libFuzzer's main() and the function below. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the run with the line that is not true, unlike assert() in every kind of build. */
#define must(condition) \
	((condition) ? (void)0 : (fprintf(stderr, "not true: %s\n", #condition), abort()))

/* One try; libFuzzer calls it with ever new bytes. Returns 0. */
/* NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's word */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
