/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The command line from any bytes: words between NULs. Whatever comes in, the answer keeps what
 * options.h and conf.h promise, and a second run gives the same one.
 */
#include "../../src/conf/options.c"

#include "fuzz.h"

#define WORDS_MAX 64

struct words {
	int count;
	char *word[WORDS_MAX + 1];
};

struct answer {
	enum options_result result;
	struct conf conf;
	struct options options;
};

/* Every word in memory of its own, so that the first byte read behind it is seen. */
static void words_split(struct words *words, const uint8_t *data, size_t size)
{
	words->count = 0;
	words->word[words->count++] = strdup("millraced");
	while (size && words->count < WORDS_MAX) {
		const uint8_t *end = memchr(data, '\0', size);
		size_t len = end ? (size_t)(end - data) : size;

		words->word[words->count++] = strndup((const char *)data, len);
		data += len;
		size -= len;
		if (end) {
			data++;
			size--;
		}
	}
	words->word[words->count] = NULL;
}

/* `fill` is what stood in the memory before. */
static void ask(const struct words *words, struct answer *answer, int fill)
{
	char *argv[WORDS_MAX + 1]; /* getopt turns them round */

	memcpy(argv, words->word, sizeof(argv));
	memset(answer, fill, sizeof(*answer));
	answer->result = options_parse(words->count, argv, &answer->options, &answer->conf);
}

/* Padding and all: a conf begins as zeros. */
static bool same_bytes(const void *one, const void *other, size_t bytes)
{
	return !memcmp(one, other, bytes);
}

/* Where the two have things in memory does not count. */
static bool same_conf(const struct conf *one, const struct conf *other)
{
	struct conf_forward a = *one->forward, b = *other->forward;
	const size_t scalars = offsetof(struct conf, control_socket);

	memset((void *)a.port, 0, sizeof(a.port));
	memset((void *)b.port, 0, sizeof(b.port));
	return one->ports == other->ports && one->forwards == other->forwards &&
	       same_bytes(one->port, other->port, one->ports * sizeof(*one->port)) &&
	       same_bytes(&a, &b, sizeof(a)) &&
	       same_bytes((const char *)one + scalars, (const char *)other + scalars,
			  sizeof(*one) - scalars);
}

/* What another command line gives, whatever was parsed before it. */
static void check_nothing_is_left_behind(void)
{
	static const struct words plain = { 4, { "millraced", "-l", "-i", "eth0", NULL } };
	static struct answer answer;

	ask(&plain, &answer, 0x55);
	must(answer.result == OPTIONS_RUN);
	must(answer.conf.forward->mode == CONF_MODE_L2FWD && answer.conf.ports == 1);
	must(!strcmp(answer.conf.port->device, "eth0"));
	must(answer.conf.forward->batch == 64 && answer.conf.forward->wait == CONF_WAIT_ADAPTIVE);
	must(!answer.conf.irq_string[0]);
	conf_fini(&answer.conf);
}

static void check_error(const char *error)
{
	must(error[0]);
	must(memchr(error, '\0', sizeof(((struct options *)0)->error)));
	for (const char *at = error; *at; at++)
		must((unsigned char)*at >= ' ' && *at != 0x7f);
}

static void check_list(const struct number_list *list, unsigned max)
{
	must(list->count <= NUMBER_LIST_MAX);
	for (unsigned i = 0; i < list->count; i++) {
		must(list->value[i] <= max);
		for (unsigned j = 0; j < i; j++)
			must(list->value[i] != list->value[j]);
	}
}

static void check_port(const struct conf_port *port)
{
	must(port->device[0]);
	must(memchr(port->device, '\0', CONF_IFNAME_SIZE));
	check_list(&port->queues, QUEUE_MAX);
	must(port->all_queues == !port->queues.count);
	must(port->attach != CONF_ATTACH_SKB || port->zero_copy != CONF_ZERO_COPY_REQUIRE);
}

static void check_ports(const struct conf *conf)
{
	const struct conf_forward *forward = conf->forward;

	must(conf->ports >= 1 && conf->ports <= CONF_PORTS_MAX);
	must(conf->forwards == 1 && forward->ports == conf->ports);
	must(forward->mode != CONF_MODE_L2FWD || forward->ports == 1);
	must(forward->mode != CONF_MODE_PATCH || forward->ports == (forward->host_port[0] ? 3 : 2));
	for (unsigned i = 0; i < forward->ports; i++) {
		must(forward->port[i] == &conf->port[i]);
		check_port(forward->port[i]);
		for (unsigned j = 0; j < i; j++)
			must(strcmp(conf->port[i].device, conf->port[j].device) != 0);
	}
	check_list(&forward->cpus, CPU_MAX);
}

static void check_memory(const struct conf_forward *conf)
{
	must(number_is_power_of_two(conf->ring_size));
	must(conf->ring_size >= RING_SIZE_MIN && conf->ring_size <= RING_SIZE_MAX);
	must(conf->batch >= 1 && conf->batch <= BATCH_MAX && conf->batch <= conf->ring_size);
	must(conf->frame_size >= CONF_FRAME_SIZE_MIN && conf->frame_size <= CONF_FRAME_SIZE_MAX);
	must(conf->unaligned || number_is_power_of_two(conf->frame_size));
	must(conf->frames_per_queue >= conf_ring_frames(conf));
	must(conf->frames_per_queue <= FRAMES_MAX);
}

static void check_tx_of_conf(const struct conf_forward *conf)
{
	const struct conf_tx *tx = &conf->tx;
	unsigned headers = 46 + (tx->vlan ? 4 : 0) + (tx->timestamp ? 16 : 0);

	must(tx->size_min <= tx->size_max && tx->size_max <= CONF_TX_SIZE_MAX);
	must(tx->size_min >= headers && tx->size_min >= TX_SIZE_MIN);
	must(conf->frags || tx->size_max <= conf->frame_size - 256 + 4);
	must(tx->sizes == CONF_SIZES_RANGE || (tx->size_min == 64 && tx->size_max == 1518));
	must(tx->vlan_id <= VLAN_ID_MAX && tx->vlan_priority <= VLAN_PRI_MAX);
	must(!(tx->source[0] & 1));
	must(tx->pps <= PPS_MAX && tx->cycle_us <= CYCLE_MAX_US && !(tx->pps && tx->cycle_us));
	must(tx->count <= LONG_MAX);
	must(tx->clock == CLOCK_MONOTONIC || tx->clock == CLOCK_REALTIME ||
	     tx->clock == CLOCK_TAI || tx->clock == CLOCK_BOOTTIME);
}

/* Without -t nothing was said of generated frames. */
static void check_no_tx(const struct conf_forward *conf)
{
	static struct conf_forward defaults;

	conf_forward_defaults(&defaults);
	must(same_bytes(&conf->tx, &defaults.tx, sizeof(conf->tx)));
}

static void check_conf(const struct conf *conf)
{
	const struct conf_forward *forward = conf->forward;

	check_ports(conf);
	check_memory(forward);
	if (forward->mode == CONF_MODE_TXPUSH)
		check_tx_of_conf(forward);
	else
		check_no_tx(forward);
	must(forward->realtime == (forward->priority > 0) && forward->priority <= PRIORITY_MAX);
	must(conf->interval_s >= 1 && conf->interval_s <= 86400);
	must(conf->duration_s <= INT_MAX);
	must(conf->confirm_s <= 86400);
	must(memchr(conf->irq_string, '\0', CONF_IRQ_SIZE));
}

/* NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's word */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct answer first, second;
	struct words words;

	words_split(&words, data, size);
	ask(&words, &first, 0);
	check_nothing_is_left_behind();
	ask(&words, &second, 0xff);
	must(first.result == second.result);
	if (first.result == OPTIONS_WRONG) {
		check_error(first.options.error);
		must(!strcmp(first.options.error, second.options.error));
	}
	must(first.options.action == second.options.action);
	if (first.result == OPTIONS_RUN && first.options.file) {
		must(!first.conf.ports && !first.conf.forwards);
	} else if (first.result == OPTIONS_RUN) {
		check_conf(&first.conf);
		must(same_conf(&first.conf, &second.conf));
	}
	conf_fini(&first.conf);
	conf_fini(&second.conf);
	for (int i = 0; i < words.count; i++)
		free(words.word[i]);
	return 0;
}
