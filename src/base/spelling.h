/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How far one word is from another: to guess which name somebody meant. Pure; any thread. */
#pragma once

/* Longest word that is compared; beyond it, only what comes before counts. Alternative interface names
 * have 127 characters. */
#define SPELLING_MAX 127

/* Letters to insert, remove, replace, or swap with their neighbour, to make one word of the other. */
unsigned spelling_distance(const char *one, const char *other);
