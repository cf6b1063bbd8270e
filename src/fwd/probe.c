/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "fwd/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/wire.h"
#include "fwd/worker_loop.h"

#define PROBE_MAGIC   "millrace"
#define PROBE_VERSION 1

/* Tags of one that came back through others' trunks: IEEE 802.1Q and 802.1ad. */
#define TPID_C 0x8100
#define TPID_S 0x88a8

/* What follows the type, byte for byte. */
struct probe_body {
	uint8_t magic[sizeof(PROBE_MAGIC) - 1];
	uint8_t version;
	uint8_t port;
	uint8_t sequence[4];
	uint8_t id[PROBE_ID_LEN];
};

_Static_assert(sizeof(struct probe_body) == 30, "no padding between its bytes");

uint32_t probe_build(uint8_t *bytes, const struct probe_round *round, const uint8_t *mac,
		     unsigned port, uint16_t vlan)
{
	struct probe_body body = { .version = PROBE_VERSION, .port = (uint8_t)port };
	uint32_t len = vlan ? PROBE_LEN + ETHER_VLAN_LEN : PROBE_LEN;
	uint8_t *at = bytes + 2 * MAC_LEN;

	memset(bytes, 0, len);
	memset(bytes, 0xff, MAC_LEN);
	memcpy(bytes + MAC_LEN, mac, MAC_LEN);
	if (vlan) {
		at = wire_put_16(at, TPID_C);
		at = wire_put_16(at, vlan);
	}
	at = wire_put_16(at, PROBE_TYPE);
	memcpy(body.magic, PROBE_MAGIC, sizeof(body.magic));
	wire_put_32(body.sequence, round->sequence);
	memcpy(body.id, round->id, PROBE_ID_LEN);
	memcpy(at, &body, sizeof(body));
	return len;
}

bool probe_read(const uint8_t *bytes, uint32_t len, const uint8_t *id, struct probe *probe)
{
	uint32_t at = 2 * MAC_LEN;
	struct probe_body body;

	if (len < ETHER_HEADER_LEN)
		return false;
	if (wire_get_16(bytes + at) == TPID_C || wire_get_16(bytes + at) == TPID_S)
		at += ETHER_VLAN_LEN;
	if (len < at + 2 + sizeof(body) || wire_get_16(bytes + at) != PROBE_TYPE)
		return false;
	memcpy(&body, bytes + at + 2, sizeof(body));
	if (memcmp(body.magic, PROBE_MAGIC, sizeof(body.magic)) != 0 ||
	    body.version != PROBE_VERSION || memcmp(body.id, id, PROBE_ID_LEN) != 0)
		return false;
	probe->port = body.port;
	probe->sequence = wire_get_32(body.sequence);
	return true;
}

int probes_new(struct probes **result, unsigned workers)
{
	size_t bytes = workers * sizeof(struct probes);
	struct probes *probes = aligned_alloc(_Alignof(struct probes), bytes);
	uint8_t id[PROBE_ID_LEN];

	if (!probes)
		return -ENOMEM;
	if (getrandom(id, sizeof(id), 0) != sizeof(id)) {
		free(probes);
		return -EIO;
	}
	memset(probes, 0, bytes);
	for (unsigned i = 0; i < workers; i++)
		memcpy(probes[i].id, id, sizeof(id));
	*result = probes;
	return 0;
}

/* --- main thread --- */

bool probes_begin(struct probes *probes)
{
	/* Pairs with store_release() in probes_send(): it does not read them any more. */
	if (load_acquire(&probes->done) != probes->ordered)
		return false;
	probes->ports = 0;
	return true;
}

void probes_put(struct probes *probes, const struct probe_round *round, const uint8_t *mac,
		unsigned port, uint16_t vlan)
{
	probes->len[port] = (uint8_t)probe_build(probes->frame[port], round, mac, port, vlan);
	probes->ports |= (uint16_t)(1U << port);
}

void probes_order(struct probes *probes)
{
	store_release(&probes->ordered, probes->ordered + 1); /* pairs with probes_send() */
}

/* One word, so that no half of it is seen; 0: none. */
static uint64_t pack(const struct probe *probe)
{
	return (uint64_t)probe->sequence << 32 | 1U << 8 | probe->port;
}

bool probes_back(const struct probes *probes, unsigned port, struct probe *probe)
{
	uint64_t word = load_relaxed(&probes->back[port]);

	*probe = (struct probe){ .port = (uint8_t)word, .sequence = (uint32_t)(word >> 32) };
	return word;
}

/* --- worker's thread --- */

bool probes_take(const struct worker *worker, unsigned port, const uint8_t *bytes, uint32_t len)
{
	struct probes *probes = worker->probes;
	struct probe probe, before;
	uint64_t one = 1;

	if (!probe_read(bytes, len, probes->id, &probe))
		return false;
	if (probes_back(probes, port, &before) && (int32_t)(probe.sequence - before.sequence) <= 0)
		return true;
	store_relaxed(&probes->back[port], pack(&probe)); /* carries nothing but itself */
	if (write(worker->done_fd, &one, sizeof(one)) < 0)
		return true; /* others' writes have filled it: somebody is told */
	return true;
}

static void send_one(struct worker *worker, unsigned port)
{
	struct queue *queue = &worker->queue[port];
	const struct probes *probes = worker->probes;
	struct sends sends;

	if (port >= worker->queues || queue->hands_over || queue->down || !queue_tx_room(queue) ||
	    !worker->pool.count)
		return;
	sends = sends_begin(worker, queue, false);
	sends_copy(&sends, worker, &(struct xdp_desc){ .len = probes->len[port] },
		   probes->frame[port]);
	sends_end(queue, &sends);
	queue->probes++;
}

void probes_send(struct worker *worker)
{
	struct probes *probes = worker->probes;
	/* Pairs with store_release() in probes_order(): the frames are there. */
	uint32_t ordered = load_acquire(&probes->ordered);

	if (ordered == probes->done)
		return;
	/* Who drains sends nothing new, that would have to be waited for. */
	for (uint32_t left = load_relaxed(&worker->stop) ? 0 : probes->ports; left;
	     left &= left - 1)
		send_one(worker, (unsigned)__builtin_ctz(left));
	store_release(&probes->done, ordered); /* pairs with probes_begin() */
}
