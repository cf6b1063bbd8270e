/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "xdp/offload.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/sockios.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"

/* Words of 32 features; kernels have 2. */
#define WORDS_MAX 8

/* struct ethtool_sset_info, ethtool_gfeatures and ethtool_sfeatures, with room for what follows them. */
struct sset_request {
	uint32_t cmd;
	uint32_t reserved;
	uint64_t sset_mask;
	uint32_t count;
};

struct get_request {
	uint32_t cmd;
	uint32_t size;
	struct ethtool_get_features_block block[WORDS_MAX];
};

struct set_request {
	uint32_t cmd;
	uint32_t size;
	struct ethtool_set_features_block block[WORDS_MAX];
};

static const struct {
	unsigned flag;
	const char *name;  /* the kernel's */
	const char *word;  /* ethtool -K's */
	const char *shown; /* ethtool -k's */
} rows[] = {
	{ OFFLOAD_VLAN_CTAG, "rx-vlan-hw-parse", "rxvlan", "rx-vlan-offload" },
	{ OFFLOAD_VLAN_STAG, "rx-vlan-stag-hw-parse", "rx-vlan-stag-hw-parse",
	  "rx-vlan-stag-hw-parse" },
	{ OFFLOAD_TX_CHECKSUM, "tx-checksum-ip-generic", "tx", "tx-checksumming" },
	{ OFFLOAD_TX_SCTP, "tx-checksum-sctp", "tx-checksum-sctp", "tx-checksum-sctp" },
	{ OFFLOAD_TX_VLAN_CTAG, "tx-vlan-hw-insert", "txvlan", "tx-vlan-offload" },
	{ OFFLOAD_TX_VLAN_STAG, "tx-vlan-stag-hw-insert", "tx-vlan-stag-hw-insert",
	  "tx-vlan-stag-hw-insert" },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* One device's features. */
struct features {
	const char *ifname;
	int fd;
	unsigned bit[ROWS]; /* number of the feature, 0: this kernel has it not */
	uint32_t words;
	struct ethtool_get_features_block block[WORDS_MAX];
};

static int ethtool(const struct features *features, void *command)
{
	struct ifreq request = { 0 };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", features->ifname);
	request.ifr_data = command;
	return ioctl(features->fd, SIOCETHTOOL, &request) < 0 ? -errno : 0;
}

/* Which bits they are is told by the position of their names. */
static int find_bits(struct features *features)
{
	struct sset_request set = { .cmd = ETHTOOL_GSSET_INFO,
				    .sset_mask = 1ULL << ETH_SS_FEATURES };
	struct ethtool_gstrings *names;
	int err = ethtool(features, &set);

	if (err)
		return err;
	names = calloc(1, sizeof(*names) + (size_t)set.count * ETH_GSTRING_LEN);
	if (!names)
		return -ENOMEM;
	*names = (struct ethtool_gstrings){ .cmd = ETHTOOL_GSTRINGS,
					    .string_set = ETH_SS_FEATURES,
					    .len = set.count };
	err = ethtool(features, names);
	for (uint32_t i = 0; !err && i < set.count && i < 32 * WORDS_MAX; i++) {
		const char *name = (const char *)names->data + (size_t)i * ETH_GSTRING_LEN;

		for (size_t row = 0; row < ROWS; row++) {
			if (!strncmp(name, rows[row].name, ETH_GSTRING_LEN))
				features->bit[row] = i;
		}
	}
	free(names);
	return err;
}

/* Reads what the features are now. */
static int read_features(struct features *features)
{
	struct get_request get = { .cmd = ETHTOOL_GFEATURES, .size = WORDS_MAX };
	int err = ethtool(features, &get);

	if (err)
		return err;
	features->words = get.size < WORDS_MAX ? get.size : WORDS_MAX;
	memcpy(features->block, get.block, sizeof(features->block));
	return 0;
}

static uint32_t mask_of(const struct features *features, size_t row)
{
	return features->bit[row] ? 1U << features->bit[row] % 32 : 0;
}

static const struct ethtool_get_features_block *block_of(const struct features *features,
							 size_t row)
{
	return &features->block[features->bit[row] / 32];
}

static int open_features(struct features *features, const char *ifname)
{
	int err;

	/* Any socket takes the ioctls; see netdev_query(). */
	*features = (struct features){ .ifname = ifname };
	features->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (features->fd < 0)
		return -errno;
	err = find_bits(features);
	return err ? err : read_features(features);
}

static void close_features(struct features *features)
{
	if (features->fd >= 0)
		close(features->fd);
}

/* Which of those in `which` are active. */
static unsigned active(const struct features *features, unsigned which)
{
	unsigned found = 0;

	for (size_t row = 0; row < ROWS; row++) {
		if ((which & rows[row].flag) &&
		    (block_of(features, row)->active & mask_of(features, row)))
			found |= rows[row].flag;
	}
	return found;
}

/* Which of those that are active the driver lets nobody switch off. */
static unsigned fixed(const struct features *features, unsigned which)
{
	unsigned found = 0;

	for (size_t row = 0; row < ROWS; row++) {
		if ((which & rows[row].flag) &&
		    !(block_of(features, row)->available & mask_of(features, row)))
			found |= rows[row].flag;
	}
	return found;
}

static int set(const struct features *features, unsigned which, bool on)
{
	struct set_request request = { .cmd = ETHTOOL_SFEATURES, .size = features->words };

	for (size_t row = 0; row < ROWS; row++) {
		struct ethtool_set_features_block *block = &request.block[features->bit[row] / 32];

		if (!(which & rows[row].flag))
			continue;
		block->valid |= mask_of(features, row);
		if (on)
			block->requested |= mask_of(features, row);
	}
	return ethtool(features, &request);
}

static void refused(const char *ifname, unsigned which, const char *how)
{
	for (size_t row = 0; row < ROWS; row++) {
		if (!(which & rows[row].flag))
			continue;
		log_error("%s: the device takes VLAN tags out of frames (%s is on%s), and they "
			  "would be forwarded without; `vlan-offload = keep` in its "
			  "[port] section, or --vlan-offload=keep, accepts that",
			  ifname, rows[row].shown, how);
		return;
	}
}

int offload_vlan_off(const char *ifname, unsigned *changed)
{
	struct features features;
	int err = open_features(&features, ifname);
	unsigned on, left = 0;

	*changed = 0;
	on = err ? 0 : active(&features, OFFLOAD_VLAN_CTAG | OFFLOAD_VLAN_STAG);
	if (on && fixed(&features, on)) {
		refused(ifname, fixed(&features, on), " and fixed");
		err = -EOPNOTSUPP;
		goto out;
	}
	if (on && !err)
		err = set(&features, on, false);
	if (on && !err) {
		*changed = on;
		err = read_features(&features);
		left = active(&features, on);
	}
	if (err) {
		log_error("%s: whether the device takes VLAN tags out of frames "
			  "(rx-vlan-offload) cannot be told or changed: " ERR_FORMAT
			  "; `vlan-offload = keep` in its [port] section, or "
			  "--vlan-offload=keep, goes on without",
			  ifname, ERR_SANDBOX_ARGS(err));
	} else if (left) {
		refused(ifname, left, " and stays so");
		err = -EOPNOTSUPP;
	}
out:
	close_features(&features);
	return err;
}

int offload_vlan_on(const char *ifname, unsigned changed)
{
	struct features features;
	int err = open_features(&features, ifname);

	if (!err)
		err = set(&features, changed, true);
	if (!err)
		err = read_features(&features);
	if (!err && active(&features, changed) != changed)
		err = -EOPNOTSUPP;
	close_features(&features);
	return err;
}

int offload_host_port_off(const char *ifname)
{
	const unsigned all =
		OFFLOAD_TX_CHECKSUM | OFFLOAD_TX_SCTP | OFFLOAD_TX_VLAN_CTAG | OFFLOAD_TX_VLAN_STAG;
	struct features features;
	int err = open_features(&features, ifname);

	if (!err)
		err = set(&features, all, false);
	if (!err)
		err = read_features(&features);
	if (!err && active(&features, all))
		err = -EOPNOTSUPP;
	close_features(&features);
	return err;
}

void offload_vlan_command(const char *ifname, unsigned changed, char *text, size_t size)
{
	size_t len;

	snprintf(text, size, "`ethtool -K %s", ifname);
	for (size_t row = 0; row < ROWS; row++) {
		len = strlen(text);
		if (changed & rows[row].flag)
			snprintf(text + len, size - len, " %s on", rows[row].word);
	}
	len = strlen(text);
	snprintf(text + len, size - len, "`");
}
