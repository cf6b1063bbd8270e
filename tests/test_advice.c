/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../src/advice.c"

#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"

/* Standard error, kept aside while what is said goes to a file. */
static int standard_error, said_fd;
static char said[2048];

static int listen_to_it(void **state)
{
	(void)state;
	standard_error = dup(STDERR_FILENO);
	said_fd = memfd_create("said", 0);
	return dup2(said_fd, STDERR_FILENO) < 0;
}

static int listen_no_more(void **state)
{
	(void)state;
	dup2(standard_error, STDERR_FILENO);
	close(standard_error);
	close(said_fd);
	return 0;
}

static const char *what_was_said(void)
{
	ssize_t len = pread(said_fd, said, sizeof(said) - 1, 0);

	said[len < 0 ? 0 : len] = '\0';
	return said;
}

static const struct conf_port of_flags, of_file = { .line = 1 }, of_host = { .host = true };

static const struct port veth = { .conf = &of_flags,
				  .netdev = { .name = "d0", .kind = "veth", .peer = "g0" },
				  .prog = { .native = true } };
static const struct port veth_skb = { .conf = &of_flags,
				      .netdev = { .name = "d1", .kind = "veth", .peer = "s0" } };
static const struct port veth_unknown = { .conf = &of_flags,
					  .netdev = { .name = "d2", .kind = "veth" },
					  .prog = { .native = true } };
static const struct port near_end = { .conf = &of_host,
				      .netdev = { .name = "mr-home", .kind = "veth" },
				      .prog = { .native = true } };
static const struct port card = { .conf = &of_flags,
				  .netdev = { .name = "eth0" },
				  .prog = { .native = true } };
static const struct port card_of_file = { .conf = &of_file,
					  .netdev = { .name = "eth0" },
					  .prog = { .native = true } };

static void nothing_at_start_for_network_cards(void **state)
{
	const struct port ports[] = { card, card };

	(void)state;
	advice_at_start(ports, 2);
	assert_string_equal(what_was_said(), "");
}

static void nothing_at_start_for_a_host_port(void **state)
{
	(void)state;
	advice_at_start(&near_end, 1);
	assert_string_equal(what_was_said(), "");
}

static void one_line_at_start_for_all_veths(void **state)
{
	const struct port ports[] = { veth, card, veth_skb };

	(void)state;
	advice_at_start(ports, 3);
	assert_string_equal(
		what_was_said(),
		"millraced: d0, d1: over veth a sender with TX checksum offload leaves only the "
		"pseudo-header sum, and in skb mode super-frames too large for a chunk, and TCP "
		"through here fails: `ethtool -K g0 tx off`, `ethtool -K s0 tx off tso off gso "
		"off` on the far end\n");
}

static void an_unknown_far_end_is_said_to_be(void **state)
{
	(void)state;
	advice_at_start(&veth_unknown, 1);
	assert_non_null(strstr(what_was_said(), "`ethtool -K PEER tx off` on the far end, PEER "
						"being its name there\n"));
}

static void partial_checksums_name_the_command(void **state)
{
	(void)state;
	advice_partial_checksums(&veth);
	assert_string_equal(what_was_said(),
			    "millraced: warning: d0: frames come in with only the pseudo-header "
			    "sum for a checksum, and receivers drop them; `ethtool -K g0 tx off` "
			    "on the far end\n");
}

static void partial_checksums_over_a_card_are_the_senders(void **state)
{
	(void)state;
	advice_partial_checksums(&card);
	assert_non_null(strstr(what_was_said(), "`ethtool -K PEER tx off` on the sending host, "
						"PEER being its interface\n"));
}

static void oversize_over_veth_in_skb_mode_is_segmentation(void **state)
{
	(void)state;
	advice_oversize(&veth_skb, 12, 3840);
	assert_string_equal(what_was_said(),
			    "millraced: warning: d1: 12 frames larger than the 3840 bytes a chunk "
			    "has room for were dropped; in skb mode senders do not segment: "
			    "`ethtool -K s0 tso off gso off` on the far end\n");
}

static void oversize_elsewhere_is_the_mtu(void **state)
{
	(void)state;
	advice_oversize(&card, 1, 1792);
	assert_string_equal(what_was_said(),
			    "millraced: warning: eth0: 1 frames larger than the 1792 bytes a "
			    "chunk has room for were dropped; start with -F or a larger -f, or "
			    "`ip link set dev eth0 mtu 1770` here and on the far end\n");
}

static void oversize_from_a_file_names_keys(void **state)
{
	(void)state;
	advice_oversize(&card_of_file, 2, 1792);
	assert_non_null(
		strstr(what_was_said(), "start with frags = yes or a larger frame-size, or "));
}

static void oversize_in_the_largest_chunk_names_no_larger_one(void **state)
{
	(void)state;
	advice_oversize(&card_of_file, 2, CONF_FRAME_SIZE_MAX - CONF_HEADROOM);
	assert_non_null(strstr(what_was_said(), "start with frags = yes, or "));
}

#define LISTENING(test) cmocka_unit_test_setup_teardown(test, listen_to_it, listen_no_more)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LISTENING(nothing_at_start_for_network_cards),
		LISTENING(nothing_at_start_for_a_host_port),
		LISTENING(one_line_at_start_for_all_veths),
		LISTENING(an_unknown_far_end_is_said_to_be),
		LISTENING(partial_checksums_name_the_command),
		LISTENING(partial_checksums_over_a_card_are_the_senders),
		LISTENING(oversize_over_veth_in_skb_mode_is_segmentation),
		LISTENING(oversize_elsewhere_is_the_mtu),
		LISTENING(oversize_from_a_file_names_keys),
		LISTENING(oversize_in_the_largest_chunk_names_no_larger_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
