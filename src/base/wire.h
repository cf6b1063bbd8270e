/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers as they stand in frames: the most significant byte first, at any address. Pure. */
#pragma once

#include <stdint.h>

static inline uint16_t wire_get_16(const uint8_t *bytes)
{
	return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static inline uint32_t wire_get_32(const uint8_t *bytes)
{
	return (uint32_t)wire_get_16(bytes) << 16 | wire_get_16(bytes + 2);
}

/* The lower 16 bits. Returns where the next number goes, as the other one does. */
static inline uint8_t *wire_put_16(uint8_t *bytes, uint32_t value)
{
	bytes[0] = (uint8_t)(value >> 8);
	bytes[1] = (uint8_t)value;
	return bytes + 2;
}

static inline uint8_t *wire_put_32(uint8_t *bytes, uint32_t value)
{
	return wire_put_16(wire_put_16(bytes, value >> 16), value);
}
