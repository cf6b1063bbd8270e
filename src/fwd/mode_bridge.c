/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bridge: each frame to the port that its destination is behind; to all others where that is not known. */
#include "fwd/bridge.h"

#include "base/wire.h"
#include "fwd/flood.h"
#include "fwd/mode.h"
#include "fwd/probe.h"
#include "fwd/vlan.h"

#define BROADCAST_MAC 0xffffffffffffULL /* as bridge_mac() has it */

_Static_assert(DROP_STORM_MULTICAST - DROP_STORM_BROADCAST == STORM_MULTICAST &&
		       DROP_STORM_UNKNOWN - DROP_STORM_BROADCAST == STORM_UNKNOWN,
	       "reasons are in the order of the kinds");

/* How a burst is compiled; constants in each caller. */
struct bridge_kind {
	bool plain; /* the worker's chunks */
	bool vlans; /* tags are not data: the bridge has VLANs */
};

/* The packets of one burst, as they stand on RX. */
struct bridge_look {
	const struct worker *worker;
	const struct queue *ingress;
	uint64_t now_ns; /* 0: nothing has asked for it yet */
	struct fdb_frames frames;
	uint16_t descs[FDB_BURST];
	uint8_t drop[FDB_BURST]; /* enum drop_reason; DROP_REASONS: go on */
	struct vlan_frame vlan[FDB_BURST];
};

/* 01:80:c2:00:00:00 to -0f. */
static always_inline bool is_reserved(uint64_t mac)
{
	return (mac & 0xf0ffffffffffULL) == 0x0000c28001ULL;
}

static always_inline bool is_own(const struct bridge *bridge, uint64_t mac)
{
	bool own = false;

	for (unsigned i = 0; i < bridge->ports; i++)
		own |= load_relaxed(&bridge->own[i]) == mac; /* pairs with bridge_set_mac() */
	return own;
}

/* Why a frame with this source is not to be believed; DROP_REASONS: it is. */
static always_inline enum drop_reason source_doubt(const struct bridge *bridge, uint64_t mac)
{
	if (unlikely(mac & 1))
		return DROP_SOURCE_GROUP;
	if (unlikely(!mac))
		return DROP_SOURCE_ZERO;
	if (unlikely(is_own(bridge, mac)))
		return DROP_SOURCE_OWN;
	return DROP_REASONS;
}

/* What to say of a frame whose source is ours: a probe that came back is noted. */
static COLD enum drop_reason own_doubt(const struct bridge_look *look, const uint8_t *bytes,
				       uint32_t len)
{
	if (probes_take(look->worker, look->ingress->port, bytes, len))
		return DROP_LOOP_PROBE;
	return DROP_SOURCE_OWN;
}

/* Reads the frame's tag. Returns DROP_REASONS, or why it is none. */
static always_inline enum drop_reason read_tag(const uint8_t *bytes, uint32_t len,
					       struct vlan_frame *frame)
{
	*frame = (struct vlan_frame){ 0 };
	if (likely(wire_get_16(bytes + VLAN_TAG_AT) != VLAN_TPID))
		return DROP_REASONS;
	if (unlikely(len < ETHER_HEADER_LEN + ETHER_VLAN_LEN))
		return DROP_TAG_CUT;
	frame->tagged = true;
	frame->tci = wire_get_16(bytes + ETHER_HEADER_LEN);
	frame->vlan = frame->tci & VLAN_VID_MASK;
	return unlikely(frame->vlan == VLAN_RESERVED) ? DROP_VLAN_RESERVED : DROP_REASONS;
}

/* Fills in what concerns one frame, of at least a header. Returns why it is dropped, or DROP_REASONS. */
static always_inline enum drop_reason look_at_frame(struct bridge_look *look, unsigned index,
						    const uint8_t *bytes, uint32_t len, bool vlans)
{
	const struct bridge *bridge = look->worker->bridge;
	uint64_t destination = bridge_mac(bytes), source = bridge_mac(bytes + MAC_LEN);
	enum drop_reason drop = source_doubt(bridge, source);
	struct vlan_frame frame;

	if (unlikely(drop != DROP_REASONS))
		return drop == DROP_SOURCE_OWN ? own_doubt(look, bytes, len) : drop;
	drop = read_tag(bytes, len, &frame);
	if (unlikely(drop != DROP_REASONS))
		return drop;
	if (unlikely(is_reserved(destination)) && !(bridge->reserved & 1U << (bytes[5] & 0xf)))
		return DROP_RESERVED;
	if (vlans) {
		drop = vlan_admit(bridge->vlans, look->ingress->port, &frame);
		if (unlikely(drop != DROP_REASONS))
			return drop;
		look->vlan[index] = frame;
	}
	look->frames.source[index] = fdb_key(frame.vlan, bytes + MAC_LEN);
	look->frames.destination[index] = fdb_key(frame.vlan, bytes);
	return DROP_REASONS;
}

/* Looks at the next packet, at the cursor, which moves behind it. */
static always_inline void look_at_packet(struct bridge_look *look, struct ring_cursor *ahead,
					 unsigned index, struct bridge_kind kind)
{
	struct chunks chunks = chunks_of(&look->worker->chunks, kind.plain);
	const struct xdp_desc *desc = cursor_ahead(ahead, 0);
	uint32_t descs = kind.plain ? 1 : look->descs[index];
	enum drop_reason drop =
		DROP_RUNT; /* also of what is not to be believed: that counts itself */

	look->frames.source[index] = look->frames.destination[index] = FDB_NO_STATION;
	if (!kind.plain && cursor_ahead(ahead, descs - 1)->options & XDP_PKT_CONTD)
		drop = DROP_TOO_LONG;
	else if (likely(packet_believable(look->ingress, &chunks, ahead, descs) &&
			desc->len >= ETHER_HEADER_LEN))
		drop = look_at_frame(look, index, chunks_bytes(&chunks, desc->addr), desc->len,
				     kind.vlans);
	look->drop[index] = (uint8_t)drop;
	ahead->index += descs;
}

/* Up to `most` packets of `ready` descriptors, and their headers on their way here. Returns how many. */
static always_inline unsigned look_ahead(struct bridge_look *look, struct ring_cursor ahead,
					 uint32_t ready, unsigned most, bool plain)
{
	struct chunks chunks = chunks_of(&look->worker->chunks, plain);
	unsigned count = 0;

	for (; count < most; count++) {
		uint32_t descs = plain ? ready > 0 : packet_descs(&ahead, ready);

		if (!descs)
			break;
		look->descs[count] = (uint16_t)descs;
		/* An address that the kernel should not have named does no harm here. */
		__builtin_prefetch(chunks_bytes(&chunks, cursor_ahead(&ahead, 0)->addr));
		ahead.index += descs;
		ready -= descs;
	}
	return count;
}

/* Of the packet at the cursor, whose frames the kernel may name, and which is to go to all: DROP_REASONS, or
 * that there are too many of its kind. Reads the clock once for all of a burst. */
static enum drop_reason storm_doubt(struct bridge_look *look, const struct ring_cursor *rx)
{
	const struct worker *worker = look->worker;
	struct chunks chunks = chunks_of(&worker->chunks, false);
	const uint8_t *bytes = chunks_bytes(&chunks, cursor_ahead(rx, 0)->addr);
	uint64_t destination = bridge_mac(bytes);
	enum storm_kind kind = !(destination & 1)	    ? STORM_UNKNOWN :
			       destination == BROADCAST_MAC ? STORM_BROADCAST :
							      STORM_MULTICAST;

	if (!look->now_ns)
		look->now_ns = clock_now_ns();
	if (storm_take(worker->storm, look->ingress->port, kind, look->now_ns))
		return DROP_REASONS;
	return (enum drop_reason)(DROP_STORM_BROADCAST + kind);
}

/* Why a frame cannot go to this port, FDB_UNKNOWN: to any, if it cannot. */
static always_inline enum drop_reason no_way(const struct bridge *bridge,
					     const struct queue *ingress, uint8_t port)
{
	uint32_t blocked = load_relaxed(&bridge->blocked);

	if (port == ingress->port)
		return DROP_SAME_PORT;
	if (unlikely(blocked) && (port >= CONF_PORTS_MAX || blocked & 1U << port))
		return DROP_LOOP_BLOCKED;
	return DROP_ISOLATED;
}

/* Where the packet of that index may go, as bits; or 0, with *drop. */
static always_inline uint32_t choose_ports(const struct bridge_look *look, unsigned index,
					   enum drop_reason *drop, bool vlans)
{
	const struct bridge *bridge = look->worker->bridge;
	/* Pairs with bridge_block(), like the next. */
	uint32_t reach = load_relaxed(&bridge->to[look->ingress->port]);
	uint8_t port = look->frames.port[index];

	*drop = (enum drop_reason)look->drop[index];
	if (unlikely(*drop != DROP_REASONS))
		return 0;
	*drop = DROP_BLOCKED;
	if (unlikely(look->frames.learned[index] == FDB_DENIED || port == FDB_BLOCKED))
		return 0;
	if (likely(port < CONF_PORTS_MAX))
		reach &= 1U << port;
	*drop = no_way(bridge, look->ingress, port);
	if (vlans && reach) {
		reach &= bridge->vlans->of[look->vlan[index].vlan].member;
		*drop = DROP_VLAN_EGRESS;
	}
	return reach;
}

/* True if the packet at the cursor, which would go to all ports that it may go to, still may; else *drop. */
static always_inline bool flood_allowed(struct bridge_look *look, struct queue *ingress,
					const struct ring_cursor *rx, enum drop_reason *drop)
{
	/* Pairs with bridge_limit(). */
	if (unlikely(load_relaxed(&look->worker->bridge->limited) & 1U << ingress->port)) {
		*drop = storm_doubt(look, rx);
		if (*drop != DROP_REASONS)
			return false;
	}
	ingress->flooded++;
	return true;
}

/* Of `ready` descriptors, up to `most` packets, FDB_BURST at most; the cursor moves behind those that were
 * taken. Returns how many these are. */
static always_inline unsigned bridge_some(struct outlets *outlets, struct ring_cursor *rx,
					  uint32_t ready, unsigned most, struct bridge_kind kind)
{
	const bool plain = kind.plain;
	struct worker *worker = outlets->worker;
	struct queue *ingress = outlets->ingress;
	struct ring_cursor ahead = *rx;
	struct bridge_look look;
	unsigned count;

	look.worker = worker;
	look.ingress = ingress;
	look.now_ns = 0;
	count = look_ahead(&look, ahead, ready, most, plain);
	for (unsigned i = 0; i < count; i++)
		look_at_packet(&look, &ahead, i, kind);
	fdb_burst(worker->bridge->fdb, worker->fdb_view, &look.frames, count, ingress->port);
	for (unsigned i = 0; i < count; i++) {
		uint32_t descs = plain ? 1 : look.descs[i];
		enum drop_reason drop;
		uint32_t ports = choose_ports(&look, i, &drop, kind.vlans);

		/* What reaches no port is not flooded, and takes nothing of a storm limit. */
		if (look.frames.port[i] >= CONF_PORTS_MAX && ports &&
		    !flood_allowed(&look, ingress, rx, &drop))
			ports = 0;
		ingress->rx_bytes += packet_bytes(rx, descs);
		if (unlikely(!ports)) {
			forward_drop(worker, ingress, rx, descs, drop);
		} else if (kind.vlans) {
			look.vlan[i].descs = (uint16_t)descs;
			vlan_flood(outlets, rx, &look.vlan[i], ports, plain);
		} else {
			flood_packet(outlets, rx, descs, ports, plain);
		}
	}
	return count;
}

/* What comes in on a port that is blocked. Probes among it are noted all the same: how else would one know that
 * the loop is still there? */
static COLD uint32_t discard_blocked(struct worker *worker, struct queue *ingress)
{
	struct chunks chunks = chunks_of(&worker->chunks, false);
	uint32_t ready = descs_ready(ingress);
	struct ring_cursor rx = ring_peek(&ingress->rx);

	for (uint32_t i = 0; i < ready && i < worker->batch; i++) {
		const struct xdp_desc *desc = cursor_desc(&rx);
		const uint8_t *bytes = chunks_bytes(&chunks, desc->addr);

		if (chunks_doubt(&chunks, desc->addr, LEDGER_FILL, ingress->port) == DROP_REASONS &&
		    desc->len >= ETHER_HEADER_LEN &&
		    is_own(worker->bridge, bridge_mac(bytes + MAC_LEN)))
			(void)probes_take(worker, ingress->port, bytes, desc->len);
	}
	return forward_discard(worker, ingress, DROP_LOOP_BLOCKED);
}

static always_inline uint32_t bridge_any_burst(struct worker *worker, struct queue *ingress,
					       struct bridge_kind kind)
{
	uint32_t ready = descs_ready(ingress), left = worker->batch;
	struct ring_cursor rx = ring_peek(&ingress->rx);
	const uint64_t begin = rx.index;
	struct outlets outlets;

	if (!ready) {
		ingress->calls[CALL_RX_EMPTY]++;
		return 0;
	}
	/* Pairs with bridge_block(). */
	if (unlikely(load_relaxed(&worker->bridge->blocked) & 1U << ingress->port))
		return discard_blocked(worker, ingress);
	if (unlikely(ingress->samples))
		forward_sample(worker, ingress, rx, 1);
	outlets_begin(&outlets, worker, ingress);
	while (left) {
		unsigned most = left < FDB_BURST ? left : FDB_BURST;
		unsigned count = bridge_some(&outlets, &rx, ready - (uint32_t)(rx.index - begin),
					     most, kind);

		left -= count;
		if (count < most)
			break;
	}
	outlets_end(&outlets);
	ring_release(&ingress->rx, &rx);
	return (uint32_t)(rx.index - begin);
}

static always_inline uint32_t bridge_burst(struct worker *worker, struct queue *ingress, bool plain)
{
	return bridge_any_burst(worker, ingress, (struct bridge_kind){ plain, false });
}

/* Of a bridge that has VLANs. */
static always_inline uint32_t bridge_vlan_burst(struct worker *worker, struct queue *ingress,
						bool plain)
{
	return bridge_any_burst(worker, ingress, (struct bridge_kind){ plain, true });
}

/* Chosen once, so that a bridge whose tags are data does not pay for the others. */
void mode_bridge_run(struct worker *worker)
{
	if (worker->bridge->vlans)
		worker_loop(worker, bridge_vlan_burst);
	else
		worker_loop(worker, bridge_burst);
}
