/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What cmocka wants before its own header, in its order. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
