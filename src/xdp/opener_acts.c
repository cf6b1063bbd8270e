/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "xdp/opener_acts.h"

#include <arpa/inet.h>
#include <cap-ng.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/signals.h"
#include "xdp/uapi.h"

static int check_capabilities(void)
{
	static const struct {
		unsigned capability;
		unsigned instead; /* does as well */
		const char *name;
	} needed[] = {
		{ CAP_NET_ADMIN, CAP_NET_ADMIN, "CAP_NET_ADMIN" },
		{ CAP_NET_RAW, CAP_NET_RAW, "CAP_NET_RAW" },
		{ CAP_BPF, CAP_SYS_ADMIN, "CAP_BPF" },
	};
	char missing[64] = "";

	capng_get_caps_process();
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		size_t len = strlen(missing);

		if (capng_have_capability(CAPNG_EFFECTIVE, needed[i].capability) ||
		    capng_have_capability(CAPNG_EFFECTIVE, needed[i].instead))
			continue;
		snprintf(missing + len, sizeof(missing) - len, "%s%s", len ? ", " : "",
			 needed[i].name);
	}
	if (!missing[0])
		return 0;
	log_error(
		"missing %s: run as root, or give the program CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF "
		"(and CAP_IPC_LOCK where the frames exceed `ulimit -l`), in a systemd unit by "
		"AmbientCapabilities= and CapabilityBoundingSet=",
		missing);
	return -EPERM;
}

/* `where` names interface and queue, if it is about one, with a colon and a blank. */
static void socket_failed(const char *where, int err)
{
	if (err == -EAFNOSUPPORT)
		log_error("%sno AF_XDP: " ERR_FORMAT "; the kernel needs CONFIG_XDP_SOCKETS, a "
			  "systemd unit AF_XDP in RestrictAddressFamilies=",
			  where, ERR_ARGS(err));
	else
		log_error("%sno AF_XDP socket: " ERR_FORMAT, where, ERR_SANDBOX_ARGS(err));
}

int act_check(void)
{
	int err = check_capabilities();
	int fd;

	if (err)
		return err;
	fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		err = -errno;
		socket_failed("", err);
		return err;
	}
	close(fd);
	return 0;
}

int act_memlock(uint64_t bytes)
{
	struct rlimit limit, wish;

	capng_get_caps_process();
	if (capng_have_capability(CAPNG_EFFECTIVE, CAP_IPC_LOCK))
		return 0; /* the limit does not bind us */
	if (getrlimit(RLIMIT_MEMLOCK, &limit))
		return 0; /* then the kernel's own answer must do */
	/* To the full, for `bytes` are not all: other forwards have theirs, and the kernel counts memory
	 * that is registered for zero-copy and for copy twice. */
	if (limit.rlim_cur < limit.rlim_max) {
		wish = (struct rlimit){ limit.rlim_max, limit.rlim_max };
		if (!setrlimit(RLIMIT_MEMLOCK, &wish))
			limit = wish;
	}
	if (limit.rlim_cur >= bytes) /* RLIM_INFINITY is the largest number */
		return 0;
	wish = (struct rlimit){ RLIM_INFINITY, RLIM_INFINITY };
	if (!setrlimit(RLIMIT_MEMLOCK, &wish))
		return 0;
	log_error(
		"the frames need %llu bytes of locked memory, RLIMIT_MEMLOCK allows %llu and cannot "
		"be raised: " ERR_FORMAT "; `ulimit -l %llu`, LimitMEMLOCK= or CAP_IPC_LOCK allow "
		"it, a smaller --ring-size needs less",
		(unsigned long long)bytes, (unsigned long long)limit.rlim_cur, ERR_ARGS(errno),
		(unsigned long long)((bytes + 1023) / 1024));
	return -ENOBUFS;
}

static void register_failed(const char *ifname, uint32_t queue, uint64_t bytes, int err)
{
	struct rlimit limit = { 0 };

	if (err == -ECANCELED)
		return; /* asked to end, nothing wrong */
	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (err == -ENOBUFS)
		log_error(
			"%s q%u: %llu bytes of frames exceed RLIMIT_MEMLOCK (%llu bytes for this "
			"user together); raise it (`ulimit -l`, LimitMEMLOCK=), give CAP_IPC_LOCK, "
			"or lower --ring-size",
			ifname, queue, (unsigned long long)bytes,
			(unsigned long long)limit.rlim_cur);
	else
		log_error(
			"%s q%u: the kernel refuses %llu bytes of frames (XDP_UMEM_REG): " ERR_FORMAT
			"%s",
			ifname, queue, (unsigned long long)bytes, ERR_SANDBOX_ARGS(err),
			err == -ENOMEM ? "; lower --ring-size or --frames-per-queue" : "");
}

/* The kernel un-accounts a closed socket's memory in deferred work, 10 to 50 ms later here. */
#define UNACCOUNT_NS	 (NSEC_PER_SEC / 2)
#define UNACCOUNT_NAP_US 5000

static int register_umem(int fd, const struct umem_view *view)
{
	struct xsk_umem_reg reg = {
		.addr = (uint64_t)(uintptr_t)view->frames,
		.len = view->frames_bytes,
		.chunk_size = view->header.frame_size,
		.headroom = view->header.headroom,
		.tx_metadata_len = view->header.tx_metadata_len,
	};
	uint64_t start_ns = clock_now_ns();

	if (view->header.unaligned)
		reg.flags |= XDP_UMEM_UNALIGNED_CHUNK_FLAG;
	if (reg.tx_metadata_len)
		reg.flags |= XDP_UMEM_TX_METADATA_LEN;
	while (setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &reg, sizeof(reg))) {
		int err = -errno;

		if (err != -ENOBUFS || clock_now_ns() - start_ns > UNACCOUNT_NS)
			return err;
		if (signals_end_asked())
			return -ECANCELED;
		usleep(UNACCOUNT_NAP_US);
	}
	return 0;
}

int act_socket(const char *ifname, uint32_t queue, const struct umem_view *view)
{
	int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0) {
		char where[64];

		err = -errno;
		snprintf(where, sizeof(where), "%s q%u: ", ifname, queue);
		socket_failed(where, err);
		return err;
	}
	err = view ? register_umem(fd, view) : 0;
	if (err) {
		register_failed(ifname, queue, view->frames_bytes, err);
		close(fd);
		return err;
	}
	return fd;
}

int act_busy_poll(int fd, const char *ifname, uint32_t queue, unsigned budget)
{
	const struct {
		int name;
		const char *text;
		int value;
	} options[] = {
		{ SO_PREFER_BUSY_POLL, "SO_PREFER_BUSY_POLL", 1 },
		{ SO_BUSY_POLL, "SO_BUSY_POLL", ACT_BUSY_POLL_US },
		{ SO_BUSY_POLL_BUDGET, "SO_BUSY_POLL_BUDGET", (int)budget },
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		int err;

		if (!setsockopt(fd, SOL_SOCKET, options[i].name, &options[i].value,
				sizeof(options[i].value)))
			continue;
		err = -errno;
		log_error("%s q%u: no busy polling: %s=%d: " ERR_FORMAT
			  "; leave out -B, in a file busy-poll",
			  ifname, queue, options[i].text, options[i].value, ERR_ARGS(err));
		return err;
	}
	return 0;
}

int act_realtime(pid_t tid, unsigned priority)
{
	const struct sched_param param = { .sched_priority = (int)priority };
	int err;

	if (!sched_setscheduler(tid, SCHED_FIFO, &param))
		return 0;
	err = -errno;
	log_error("-W FIFO -U %u: " ERR_FORMAT
		  "; it needs CAP_SYS_NICE from the start (in a systemd unit AmbientCapabilities= "
		  "and CapabilityBoundingSet=, and no RestrictRealtime=), and real-time share in "
		  "the control group",
		  priority, ERR_ARGS(err));
	return err;
}

int act_promiscuous(const char *ifname, int ifindex)
{
	struct packet_mreq request = { .mr_ifindex = ifindex, .mr_type = PACKET_MR_PROMISC };
	/* Protocol 0: the socket is there for the membership and receives nothing. */
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	int err;

	if (fd >= 0 &&
	    !setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &request, sizeof(request)))
		return fd;
	err = -errno;
	log_error("%s: cannot be made promiscuous: " ERR_FORMAT, ifname, ERR_SANDBOX_ARGS(err));
	if (fd >= 0)
		close(fd);
	return err;
}
