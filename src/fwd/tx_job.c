/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "fwd/tx_job.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The "simple IMIX": 7 of 64, 4 of 594 and 1 of 1518 bytes, as evenly spread as twelve allow. */
static const uint16_t imix_sizes[] = { CONF_IMIX_SMALL, CONF_IMIX_MIDDLE, CONF_IMIX_LARGE };
static const uint16_t imix_order[] = { 0, 1, 0, 0, 1, 0, 2, 0, 1, 0, 1, 0 };

_Static_assert(CONF_TX_HEADERS == FRAME_HEADERS_LEN + ETHER_FCS_LEN, "a smaller frame is allowed");
_Static_assert(CONF_TX_TIMESTAMP == FRAME_TIMESTAMP_LEN, "a smaller frame is allowed");
_Static_assert(CONF_TX_SIZE_MAX == FRAME_BYTES_MAX + ETHER_FCS_LEN, "a larger frame is allowed");

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

/* A cycle that is later than this is left out: a clock that was set forward, a machine that slept. */
#define CYCLE_LATE_NS NSEC_PER_SEC

static uint64_t read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

static int fill_in_sizes(struct tx_job *job, const struct conf_tx *tx)
{
	bool imix = tx->sizes == CONF_SIZES_IMIX;

	job->sizes = imix ? ARRAY_LEN(imix_sizes) : tx->size_max - tx->size_min + 1;
	job->orders = imix ? ARRAY_LEN(imix_order) : job->sizes;
	job->len = calloc(job->sizes, sizeof(*job->len));
	job->order = calloc(job->orders, sizeof(*job->order));
	if (!job->len || !job->order)
		return -ENOMEM;
	for (uint32_t i = 0; i < job->sizes; i++)
		job->len[i] = (imix ? imix_sizes[i] : tx->size_min + i) - ETHER_FCS_LEN;
	for (uint32_t i = 0; i < job->orders; i++)
		job->order[i] = imix ? imix_order[i] : (uint16_t)i;
	return 0;
}

static void fill_in_ports(struct tx_job *job, const struct conf_tx *tx)
{
	for (unsigned i = 0; i < job->ports; i++) {
		struct frame_opts *opts = &job->port[i].opts;

		opts->pattern = tx->pattern;
		opts->vlan = tx->vlan;
		opts->vlan_tci = (uint16_t)(tx->vlan_priority << 13 | tx->vlan_id);
		opts->timestamp = tx->timestamp;
		memcpy(opts->dst, tx->destination, MAC_LEN);
		memcpy(opts->src, tx->source, MAC_LEN);
		job->port[i].due = tx->pps || tx->cycle_us ? 0 : UINT32_MAX;
	}
	job->head_len = frame_headers_len(&job->port[0].opts);
}

int tx_job_new(struct tx_job **result, const struct conf_forward *conf, unsigned ports,
	       uint32_t frames)
{
	const struct conf_tx *tx = &conf->tx;
	struct tx_job *job = calloc(1, sizeof(*job));
	int err;

	assert(ports && ports <= CONF_PORTS_MAX);
	if (!job)
		return -ENOMEM;
	job->ports = ports;
	job->frames = frames;
	job->written = calloc(frames, sizeof(*job->written));
	err = job->written ? fill_in_sizes(job, tx) : -ENOMEM;
	if (err) {
		tx_job_free(job);
		return err;
	}
	fill_in_ports(job, tx);
	job->piece_len = conf_chunk_room(conf);
	job->pieces_max = (tx->size_max - ETHER_FCS_LEN + job->piece_len - 1) / job->piece_len;
	job->timestamp = tx->timestamp;
	job->paced = tx->pps;
	job->clock = tx->clock;
	job->cycle_frames = conf->batch;
	job->cycle =
		(struct cycle_counts){ .period_ns = tx->cycle_us * 1000ULL, .min_ns = UINT64_MAX };
	job->plain = job->sizes == 1 && job->pieces_max == 1 && !job->timestamp && !job->paced &&
		     !tx->cycle_us;
	*result = job;
	return 0;
}

void tx_job_free(struct tx_job *job)
{
	if (!job)
		return;
	for (unsigned i = 0; i < job->ports; i++) {
		free(job->port[i].heads);
		free(job->port[i].body);
	}
	free(job->len);
	free(job->order);
	free(job->written);
	free(job);
}

static void build_frames(const struct tx_job *job, struct tx_port *tx)
{
	/* The longest comes last, and stays. */
	for (uint32_t i = 0; i < job->sizes; i++) {
		frame_build(tx->body, job->len[i], &tx->opts);
		memcpy(tx->heads + (size_t)i * job->head_len, tx->body, job->head_len);
	}
}

int tx_job_build(struct tx_job *job, unsigned port)
{
	struct tx_port *tx = &job->port[port];
	uint32_t longest = job->len[job->sizes - 1];

	tx->heads = calloc(job->sizes, job->head_len);
	tx->body = calloc(1, longest);
	if (!tx->heads || !tx->body)
		return -ENOMEM;
	build_frames(job, tx);
	return 0;
}

void tx_job_set_source(struct tx_job *job, unsigned port, const uint8_t *mac)
{
	struct tx_port *tx = &job->port[port];

	memcpy(tx->opts.src, mac, MAC_LEN);
	build_frames(job, tx);
	memset(job->written, 0, job->frames * sizeof(*job->written));
}

static void tick_cycle(struct tx_job *job)
{
	uint64_t late_ns;

	/* On a microsecond, as xdpsock begins; and anew if the clock was set back. */
	if (!job->next_ns || job->next_ns > job->now_ns + 2 * job->cycle.period_ns)
		job->next_ns = (job->now_ns / 1000 + 1) * 1000 + job->cycle.period_ns;
	if (job->now_ns < job->next_ns)
		return;
	late_ns = job->now_ns - job->next_ns;
	job->next_ns += job->cycle.period_ns;
	if (late_ns > job->cycle.period_ns + CYCLE_LATE_NS)
		job->next_ns = job->now_ns + job->cycle.period_ns;
	if (late_ns < job->cycle.min_ns)
		job->cycle.min_ns = late_ns;
	if (late_ns > job->cycle.max_ns)
		job->cycle.max_ns = late_ns;
	job->cycle.sum_ns += late_ns;
	job->cycle.cycles++;
	for (unsigned i = 0; i < job->ports; i++)
		job->port[i].due = job->cycle_frames;
}

void tx_job_tick(struct tx_job *job)
{
	if (job->timestamp || job->cycle.period_ns)
		job->now_ns = read_clock(job->clock);
	if (job->cycle.period_ns)
		tick_cycle(job);
	if (job->paced) {
		uint64_t now_ns = clock_now_ns();

		for (unsigned i = 0; i < job->ports; i++)
			job->port[i].due = pacer_due(&job->port[i].pacer, now_ns);
	}
}

uint64_t tx_job_wait_ns(const struct tx_job *job)
{
	uint64_t wait_ns = UINT64_MAX;

	if (job->cycle.period_ns) {
		uint64_t now_ns = read_clock(job->clock);

		return job->next_ns > now_ns ? job->next_ns - now_ns : 0;
	}
	for (unsigned i = 0; job->paced && i < job->ports; i++) {
		uint64_t port_ns = pacer_wait_ns(&job->port[i].pacer);

		if (!job->port[i].finished && port_ns < wait_ns)
			wait_ns = port_ns;
	}
	return wait_ns == UINT64_MAX ? 0 : wait_ns;
}

void tx_job_sleep(const struct tx_job *job)
{
	struct timespec due = { .tv_sec = (time_t)(job->next_ns / NSEC_PER_SEC),
				.tv_nsec = (long)(job->next_ns % NSEC_PER_SEC) };

	clock_nanosleep(job->clock, TIMER_ABSTIME, &due, NULL);
}

uint32_t tx_job_write(struct tx_job *job, struct tx_piece which, uint8_t *bytes, uint32_t *mark)
{
	struct tx_port *tx = &job->port[which.port];
	const uint8_t *head = tx->heads + (size_t)which.size * job->head_len;
	uint32_t at = which.piece * job->piece_len, len = job->len[which.size] - at;
	uint32_t want = 1 + which.port + job->ports * (which.size * job->pieces_max + which.piece);

	if (len > job->piece_len)
		len = job->piece_len;
	if (*mark != want) {
		memcpy(bytes, tx->body + at, len);
		if (!which.piece)
			memcpy(bytes, head, job->head_len);
		*mark = want;
	}
	if (job->timestamp && !which.piece) {
		memcpy(bytes, head, job->head_len);
		frame_stamp(bytes, &tx->opts, tx->sequence++, job->now_ns);
	}
	return len;
}
