/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/* The EtherType that beside.bpf.c drops: the second of those for local experiments (IEEE 802). */
#define BESIDE_DROPS 0x88b6
