/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "mirror.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/bucket.h"
#include "base/clock.h"
#include "base/log.h"
#include "xdp/opener.h"
#include "xdp/packet.h"
#include "xdp/steer.h"

/* Frames that are read before others have their turn in the loop: about a millisecond. */
#define TURN_FRAMES 32

/* Tokens that are waited for when there is none: a wake-up for each would cost as much again. The room of the
 * socket lasts longer. */
#define WAIT_TOKENS 16

#define INTERVAL_NS (NSEC_PER_SEC / MIRROR_RATE)

/* Frames that are still sent at the end: more than a socket has room for. */
#define REST_MAX 4096

/* One port, as long as it has the same program. */
struct mirror {
	struct mirrors *all;
	int ifindex;
	uint32_t prog_id;
	char ifname[NETDEV_NAME_SIZE];
	int fd;			    /* -1: it cannot be had */
	const struct mirror *other; /* where copies go; NULL: there is none now */
	sd_event_source *io, *timer;
	struct bucket bucket;
	struct report_copies counts;
	bool seen; /* in the last look */
	bool said_dropped;
};

/* --- copying --- */

static void note_overflow(struct mirror *mirror)
{
	mirror->counts.dropped += packet_overflow(mirror->fd);
	if (!mirror->counts.dropped || mirror->said_dropped)
		return;
	mirror->said_dropped = true;
	log_warning(
		"%s: more frames come that the host and the wire both need than the %d a second "
		"that are copied; the host has the rest alone, see `millracectl stats`",
		mirror->ifname, MIRROR_RATE);
}

/* Copies the next frame. Returns 0; -EAGAIN: there is none; -ENETDOWN: the device went down. */
static int copy_next(struct mirror *mirror)
{
	struct packet *packet = mirror->all->packet;
	int err = packet_receive(mirror->fd, packet);

	if (err == -EAGAIN || err == -ENETDOWN)
		return err;
	bucket_take(&mirror->bucket, clock_now_ns());
	if (!err)
		err = mirror->other ? packet_send(mirror->other->fd, packet) : -ENXIO;
	if (err)
		mirror->counts.failed++;
	else
		mirror->counts.copied++;
	return 0;
}

/* Nothing is read for a while. */
static int wait_for_tokens(struct mirror *mirror)
{
	uint64_t due_ns = mirror->bucket.next_ns + (WAIT_TOKENS - 1) * INTERVAL_NS;

	note_overflow(mirror);
	sd_event_source_set_enabled(mirror->io, SD_EVENT_OFF);
	sd_event_source_set_time(mirror->timer, due_ns / 1000);
	return sd_event_source_set_enabled(mirror->timer, SD_EVENT_ONESHOT);
}

static int on_frames(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct mirror *mirror = context;

	(void)source, (void)fd, (void)events;
	for (unsigned i = 0; i < TURN_FRAMES; i++) {
		if (!bucket_ready(&mirror->bucket, clock_now_ns()))
			return wait_for_tokens(mirror);
		if (copy_next(mirror))
			return 0;
	}
	return 0;
}

static int on_tokens(sd_event_source *source, uint64_t due_us, void *context)
{
	struct mirror *mirror = context;

	(void)source, (void)due_us;
	return sd_event_source_set_enabled(mirror->io, SD_EVENT_ON);
}

/* What the socket has goes out, at whatever rate. */
static void copy_rest(struct mirror *mirror)
{
	for (unsigned i = 0; mirror->fd >= 0 && i < REST_MAX; i++) {
		if (copy_next(mirror) == -EAGAIN)
			break;
	}
}

/* --- one mirror --- */

static void tell_counts(struct mirror *mirror)
{
	const struct report_copies *counts = &mirror->counts;

	note_overflow(mirror);
	if (counts->dropped || counts->failed)
		log_info("%s: of the frames that the host and the wire both needed, %llu were "
			 "copied, %llu were too many, and %llu could not be sent",
			 mirror->ifname, (unsigned long long)counts->copied,
			 (unsigned long long)counts->dropped, (unsigned long long)counts->failed);
}

static void mirror_free(struct mirror *mirror)
{
	sd_event_source_disable_unref(mirror->io);
	sd_event_source_disable_unref(mirror->timer);
	if (mirror->fd >= 0) {
		tell_counts(mirror);
		close(mirror->fd);
	}
	free(mirror);
}

static int add_sources(struct mirror *mirror)
{
	/* Late by this much: 5 tokens more are there. */
	const uint64_t accuracy_us = 5000;
	sd_event *loop = mirror->all->loop;
	int err = sd_event_add_time(loop, &mirror->timer, CLOCK_MONOTONIC, 0, accuracy_us,
				    on_tokens, mirror);

	if (err >= 0)
		err = sd_event_source_set_enabled(mirror->timer, SD_EVENT_OFF);
	if (err >= 0)
		err = sd_event_add_io(loop, &mirror->io, mirror->fd, EPOLLIN, on_frames, mirror);
	if (err < 0)
		log_error("%s: copies for the wire cannot be waited for: " ERR_FORMAT,
			  mirror->ifname, ERR_ARGS(err));
	return err < 0 ? err : 0;
}

/* Also one whose socket cannot be had is kept, so that this is tried and said once. NULL: no memory. */
static struct mirror *mirror_new(struct mirrors *mirrors, const struct port *port)
{
	struct mirror *mirror = calloc(1, sizeof(*mirror));
	int err;

	if (!mirror)
		return NULL;
	*mirror = (struct mirror){
		.all = mirrors,
		.ifindex = port->netdev.ifindex,
		.prog_id = port->prog.id,
		.bucket = { .interval_ns = INTERVAL_NS, .burst = MIRROR_BURST },
	};
	memcpy(mirror->ifname, port->netdev.name, sizeof(mirror->ifname));
	mirror->fd = opener_packet(port->netdev.name, port->netdev.ifindex, &port->prog.steer);
	err = mirror->fd < 0 ? mirror->fd : add_sources(mirror);
	/* From now on the host has such frames. */
	if (!err)
		err = steer_set_copy(port->steer, true);
	if (!err)
		return mirror;
	log_warning("%s: frames that the host and the wire both need are forwarded, and the host "
		    "does not get them: " ERR_FORMAT,
		    mirror->ifname, ERR_ARGS(err));
	if (mirror->fd >= 0)
		close(mirror->fd);
	mirror->io = sd_event_source_disable_unref(mirror->io);
	mirror->timer = sd_event_source_disable_unref(mirror->timer);
	mirror->fd = -1;
	return mirror;
}

/* --- all of them --- */

static struct mirror *find(const struct mirrors *mirrors, const struct port *port)
{
	for (unsigned i = 0; i < mirrors->count; i++) {
		if (mirrors->mirror[i]->ifindex == port->netdev.ifindex &&
		    mirrors->mirror[i]->prog_id == port->prog.id)
			return mirrors->mirror[i];
	}
	return NULL;
}

static struct mirror *add(struct mirrors *mirrors, const struct port *port)
{
	struct mirror **grown =
		reallocarray(mirrors->mirror, mirrors->count + 1, sizeof(struct mirror *));
	struct mirror *mirror = NULL;

	if (grown) {
		mirrors->mirror = grown;
		mirror = mirror_new(mirrors, port);
	}
	if (mirror)
		mirrors->mirror[mirrors->count++] = mirror;
	return mirror;
}

/* True if its program may say of a frame that both need it, and there is a port for the copy. */
static bool wants_copies(const struct forwarder *forwarder)
{
	if (forwarder->conf->mode != CONF_MODE_PATCH || conf_is_bridge(forwarder->conf))
		return false;
	for (unsigned i = 0; i < forwarder->ports; i++) {
		const struct pass *pass = &forwarder->port[i].conf->pass;

		if (pass->standard)
			return true;
		for (unsigned j = 0; j < pass->rules; j++) {
			if (pass->rule[j].both)
				return true;
		}
	}
	return false;
}

static bool is_attached(const struct port *port)
{
	return port->prog.link_fd > 0 && port->steer;
}

static void look_at(struct mirrors *mirrors, const struct forwarder *forwarder)
{
	struct mirror *pair[2] = { NULL, NULL };

	for (unsigned i = 0; i < 2; i++) {
		const struct port *port = &forwarder->port[i];

		if (!is_attached(port))
			continue;
		pair[i] = find(mirrors, port);
		if (!pair[i])
			pair[i] = add(mirrors, port);
		if (pair[i])
			pair[i]->seen = true;
	}
	for (unsigned i = 0; i < 2; i++) {
		if (pair[i])
			pair[i]->other = pair[!i] && pair[!i]->fd >= 0 ? pair[!i] : NULL;
	}
}

/*
 * What the port passes has changed, and it goes on. From the moment the host's part ends such frames take the
 * faster way, so what waits for copying goes first: only what comes between the two may be overtaken.
 */
static void end_copies(struct mirrors *mirrors, const struct port *port)
{
	struct mirror *mirror = is_attached(port) ? find(mirrors, port) : NULL;

	if (!mirror)
		return;
	copy_rest(mirror);
	(void)steer_set_copy(port->steer, false);
	prog_settle();
	copy_rest(mirror);
}

static void look(struct mirrors *mirrors)
{
	const struct fleet *fleet = mirrors->fleet;
	unsigned kept = 0;

	for (unsigned i = 0; i < mirrors->count; i++)
		mirrors->mirror[i]->seen = false;
	for (unsigned i = 0; i < fleet->forwards; i++) {
		const struct forwarder *forwarder = fleet->forward[i];

		if (wants_copies(forwarder)) {
			look_at(mirrors, forwarder);
			continue;
		}
		for (unsigned j = 0; mirrors->count && j < forwarder->ports; j++)
			end_copies(mirrors, &forwarder->port[j]);
	}
	for (unsigned i = 0; i < mirrors->count; i++) {
		struct mirror *mirror = mirrors->mirror[i];

		if (mirror->seen)
			mirrors->mirror[kept++] = mirror;
		else
			mirror_free(mirror);
	}
	mirrors->count = kept;
}

static int on_look(sd_event_source *source, void *context)
{
	(void)source;
	look(context);
	return 0;
}

int mirrors_start(struct mirrors *mirrors, struct fleet *fleet, sd_event *loop)
{
	int err;

	mirrors->fleet = fleet;
	mirrors->packet = malloc(sizeof(*mirrors->packet));
	if (!mirrors->packet)
		return -ENOMEM;
	err = sd_event_add_post(loop, &mirrors->look, on_look, mirrors);
	if (err < 0)
		return err;
	mirrors->loop = loop;
	look(mirrors);
	return 0;
}

bool mirrors_counts(struct mirrors *mirrors, const struct port *port, struct report_copies *copies)
{
	struct mirror *mirror = find(mirrors, port);

	if (!mirror || mirror->fd < 0)
		return false;
	note_overflow(mirror);
	*copies = mirror->counts;
	return true;
}

void mirrors_close(struct mirrors *mirrors)
{
	for (unsigned i = 0; i < mirrors->count; i++)
		copy_rest(mirrors->mirror[i]);
	for (unsigned i = 0; i < mirrors->count; i++)
		mirror_free(mirrors->mirror[i]);
	free(mirrors->mirror);
	free(mirrors->packet);
	sd_event_source_disable_unref(mirrors->look);
	*mirrors = (struct mirrors){ 0 };
}
