/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * VLANs of a bridge that looks at tags: which frame is in which VLAN, where that reaches, and the frame with
 * or without its tag, as each port wants it. As IEEE 802.1Q has it for a bridge of C-VLANs (TPID 0x8100), and
 * the kernel's bridge with vlan_filtering: an S-tag is data, and a frame with one outermost is untagged.
 *
 * A bridge that does not (vlan-mode = transparent) never comes here: it is chosen when a worker starts.
 */
#pragma once

#include "base/layout.h"
#include "base/wire.h"
#include "conf/vlan_mode.h"
#include "fwd/bridge.h"
#include "fwd/flood.h"

#define VLAN_TPID     0x8100
#define VLAN_VID_MASK 0xfff
#define VLAN_RESERVED 0xfff
#define VLAN_TAG_AT   (2 * MAC_LEN)

/* Of one VLAN, ports as bits: those in it, and those that have its frames without a tag. */
struct vlan_ports {
	uint16_t member;
	uint16_t untagged;
};

/*
 * By VLAN, not a bitmap by port: what comes in and where it may leave are then one load, however many ports
 * there are. The 16 VLANs of a line are neighbours. Written before the workers start.
 */
struct vlan_table {
	GROUP_BEGIN_APART(vlans);
	uint16_t native
		[CONF_PORTS_MAX]; /* by port: of frames without a VLAN's tag; 0: they are dropped */
	uint16_t access;	  /* ports that are, as bits */
	struct vlan_ports of[VLAN_VID_MASK + 1];
	GROUP_END(vlans);
};

ASSERT_GROUP(vlan_table, vlans, 257);

/* What a packet had when it came. */
struct vlan_frame {
	uint16_t vlan;
	uint16_t tci; /* of its tag, which may have a priority only; 0 without one */
	bool tagged;  /* it has one */
	uint16_t descs;
};

/* Main thread. Returns 0 with *result for vlan_table_free(), or -ENOMEM, without a message. */
int vlan_table_new(struct vlan_table **result, const struct vlan_mode *const *port, unsigned ports);

/* The workers have ended. NULL is fine. */
void vlan_table_free(struct vlan_table *table);

/* Tells the VLAN of a frame whose tag was read into *frame (`vlan` 0 if it has none). Returns DROP_REASONS, or
 * why the port does not take it. */
static always_inline enum drop_reason vlan_admit(const struct vlan_table *table, unsigned port,
						 struct vlan_frame *frame)
{
	if (!frame->vlan) {
		frame->vlan = table->native[port];
		return likely(frame->vlan) ? DROP_REASONS : DROP_NO_NATIVE;
	}
	if (likely(table->of[frame->vlan].member & 1U << port))
		return DROP_REASONS;
	return table->access & 1U << port ? DROP_TAGGED_ACCESS : DROP_VLAN_INGRESS;
}

/* The tag that a frame has where it leaves with one: the priority it came with stays. */
static always_inline uint16_t vlan_tci(const struct vlan_frame *frame)
{
	return (uint16_t)((frame->tci & ~VLAN_VID_MASK) | frame->vlan);
}

/* Bytes that a frame grows by; negative: shrinks. */
static always_inline int vlan_growth(const struct vlan_frame *frame, bool tagged)
{
	return ETHER_VLAN_LEN * ((int)tagged - (int)frame->tagged);
}

static always_inline void vlan_write_tag(uint8_t *bytes, const struct vlan_frame *frame)
{
	wire_put_16(wire_put_16(bytes + VLAN_TAG_AT, VLAN_TPID), vlan_tci(frame));
}

/* Copies a frame of `len` bytes, its head, to where it has room, as it is to leave. Returns its length. */
static always_inline uint32_t vlan_copy(uint8_t *to, const uint8_t *from, uint32_t len,
					const struct vlan_frame *frame, bool tagged)
{
	uint32_t skip = VLAN_TAG_AT + (frame->tagged ? ETHER_VLAN_LEN : 0);
	uint32_t at = VLAN_TAG_AT + (tagged ? ETHER_VLAN_LEN : 0);

	memcpy(to, from, VLAN_TAG_AT);
	if (tagged)
		vlan_write_tag(to, frame);
	memcpy(to + at, from + skip, len - skip);
	return at + len - skip;
}

/*
 * Makes of a frame in its chunk what is to leave: it grows and shrinks at its front, or, where the chunk has
 * nothing in front of it, grows at its end. Returns false if there is no room for 4 bytes at all.
 */
static always_inline bool vlan_edit(const struct chunks *chunks, struct xdp_desc *desc,
				    const struct vlan_frame *frame, bool tagged)
{
	const uint64_t chunk = chunks_addr(chunks, chunks_frame(chunks, desc->addr));
	const int growth = vlan_growth(frame, tagged);
	uint64_t at = chunks_flat(chunks, desc->addr) - chunk;
	uint8_t *bytes = chunks->frames + chunk + at;

	if (growth > 0 && unlikely(at < ETHER_VLAN_LEN)) {
		if (at + desc->len + ETHER_VLAN_LEN > chunks->size)
			return false;
		memmove(bytes + VLAN_TAG_AT + ETHER_VLAN_LEN, bytes + VLAN_TAG_AT,
			desc->len - VLAN_TAG_AT);
	} else if (growth) {
		memmove(bytes - growth, bytes, VLAN_TAG_AT);
		bytes -= growth;
		at -= (uint64_t)(int64_t)growth;
		desc->addr = chunks_at(chunks, chunk, at);
	}
	desc->len += (uint32_t)growth;
	if (tagged)
		vlan_write_tag(bytes, frame);
	return true;
}

/* A copy of the packet at the cursor, which stays, as the port wants it: the first of its descriptors is
 * what differs. The pool has the frames. */
static inline void vlan_outlet_copy(struct outlet *outlet, struct worker *worker,
				    const struct ring_cursor *rx, const struct vlan_frame *frame,
				    bool tagged)
{
	struct sends *sends = &outlet->sends;
	const struct xdp_desc *from = cursor_ahead(rx, 0);
	struct ring_cursor rest = *rx;
	uint32_t number = pool_get(&worker->pool);
	struct xdp_desc desc = {
		.addr = chunks_copy_addr(&sends->chunks, number, from->len + ETHER_VLAN_LEN),
		.options = from->options,
	};

	chunks_take(&sends->chunks, number);
	desc.len = vlan_copy(chunks_bytes(&sends->chunks, desc.addr),
			     chunks_bytes(&sends->chunks, from->addr), from->len, frame, tagged);
	sends_put(sends, desc);
	outlet->room--;
	rest.index++;
	outlet_copy(outlet, worker, &rest, frame->descs - 1);
}

/* The packet itself; the cursor moves behind it. False if there is no room for its tag: then it stays. */
static always_inline bool vlan_outlet_move(struct outlet *outlet, struct ring_cursor *rx,
					   const struct vlan_frame *frame, bool tagged)
{
	struct sends *sends = &outlet->sends;
	struct xdp_desc desc = *cursor_ahead(rx, 0);

	if (unlikely(!vlan_edit(&sends->chunks, &desc, frame, tagged)))
		return false;
	chunks_take(&sends->chunks, chunks_frame(&sends->chunks, desc.addr));
	sends_put(sends, desc);
	outlet->room--;
	rx->index++;
	outlet_move(outlet, rx, frame->descs - 1);
	return true;
}

/* As flood_packet(), with or without a tag as each of the ports wants it. */
static always_inline void vlan_flood(struct outlets *outlets, struct ring_cursor *rx,
				     const struct vlan_frame *frame, uint32_t ports, bool plain)
{
	struct worker *worker = outlets->worker;
	const uint32_t untagged = worker->bridge->vlans->of[frame->vlan].untagged;
	uint32_t able = flood_begin(outlets, rx, frame->descs, ports, plain);
	unsigned port;

	if (unlikely(!able))
		return;
	for (; able & (able - 1); able &= able - 1) {
		port = (unsigned)__builtin_ctz(able);
		if (worker->pool.count < frame->descs)
			worker->queue[port].drops[DROP_NO_FRAME]++;
		else
			vlan_outlet_copy(outlet_of(outlets, port, plain), worker, rx, frame,
					 !(untagged & 1U << port));
	}
	port = (unsigned)__builtin_ctz(able);
	if (likely(vlan_outlet_move(outlet_of(outlets, port, plain), rx, frame,
				    !(untagged & 1U << port))))
		return;
	worker->queue[port].drops[DROP_NO_ROOM]++;
	packet_return(worker, outlets->ingress, rx, frame->descs);
}
