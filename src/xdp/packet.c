/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "xdp/packet.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mac.h"

/* As in prog.c. */
void bpf_object__destroy_skeleton(struct bpf_object_skeleton *s);

#include "copy.skel.h"

/* What waits to be read, in the kernel's measure, of which it takes twice as much: 150 frames of drivers that
 * give a page to each, 850 small ones of others. Smaller, and a burst that may go at once (mirror.c) would
 * not find room; larger, and under a flood what is copied would be more than a second old. */
#define ROOM_BYTES (320 << 10)

/* --- opening --- */

static int load_filter(const struct steer_maps *maps, struct copy_bpf **skeleton)
{
	struct copy_bpf *made = copy_bpf__open();
	int err;

	if (!made)
		return -errno;
	*skeleton = made;
	err = bpf_map__set_autocreate(made->maps.millrace_hits, false); /* it counts nothing */
	if (!err)
		err = bpf_map__reuse_fd(made->maps.millrace_policy, maps->fd[STEER_POLICY]);
	if (!err)
		err = bpf_map__reuse_fd(made->maps.millrace_own, maps->fd[STEER_OWN]);
	if (!err)
		err = bpf_map__reuse_fd(made->maps.millrace_rules, maps->fd[STEER_RULES]);
	if (!err)
		err = bpf_map__reuse_fd(made->maps.millrace_macs, maps->fd[STEER_MACS]);
	return err ? err : copy_bpf__load(made);
}

static int set_option(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) ? -errno : 0;
}

/* The filter stands before the socket is bound to anything: no other frame ever gets in. */
static int prepare(int fd, int ifindex, int filter_fd)
{
	const struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = ifindex,
	};
	int err = set_option(fd, SOL_SOCKET, SO_ATTACH_BPF, filter_fd);

	if (!err)
		err = set_option(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1);
	if (!err)
		err = set_option(fd, SOL_PACKET, PACKET_AUXDATA, 1);
	if (!err)
		err = set_option(fd, SOL_PACKET, PACKET_VNET_HDR, 1);
	if (!err)
		err = set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, ROOM_BYTES);
	if (err)
		return err;
	return bind(fd, (const struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
}

int packet_open(const char *ifname, int ifindex, const struct steer_maps *maps)
{
	struct copy_bpf *skeleton = NULL;
	int err = load_filter(maps, &skeleton);
	int fd = -1;

	if (!err) {
		/* Protocol 0: it receives nothing yet. */
		fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		err = fd < 0 ? -errno : 0;
	}
	if (!err)
		err = prepare(fd, ifindex, bpf_program__fd(skeleton->progs.millrace_copy));
	if (skeleton)
		copy_bpf__destroy(skeleton);
	if (!err)
		return fd;
	log_error("%s: no packet socket for what the host and the wire both need: " ERR_FORMAT,
		  ifname, ERR_SANDBOX_ARGS(err));
	if (fd >= 0)
		close(fd);
	return err;
}

/* --- one frame --- */

/* What the kernel tells beside a frame. */
union control {
	struct cmsghdr head; /* for its alignment */
	char bytes[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
};

static bool find_tag(struct msghdr *message, struct tpacket_auxdata *aux)
{
	for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head;
	     head = CMSG_NXTHDR(message, head)) {
		if (head->cmsg_level != SOL_PACKET || head->cmsg_type != PACKET_AUXDATA)
			continue;
		memcpy(aux, CMSG_DATA(head), sizeof(*aux));
		return aux->tp_status & TP_STATUS_VLAN_VALID;
	}
	return false;
}

/* Puts the tag back that the stack took out, and moves with it what the header points at. */
static void insert_tag(struct packet *packet, const struct tpacket_auxdata *aux)
{
	uint16_t tag[2] = {
		htons(aux->tp_status & TP_STATUS_VLAN_TPID_VALID ? aux->tp_vlan_tpid : ETH_P_8021Q),
		htons(aux->tp_vlan_tci),
	};

	_Static_assert(sizeof(tag) == PACKET_TAG_BYTES, "room is kept for it");
	packet->frame -= sizeof(tag);
	packet->len += sizeof(tag);
	memmove(packet->frame, packet->frame + sizeof(tag), 2 * MAC_LEN);
	memcpy(packet->frame + 2 * MAC_LEN, tag, sizeof(tag));
	if (packet->head.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
		packet->head.csum_start += sizeof(tag);
	if (packet->head.hdr_len)
		packet->head.hdr_len += sizeof(tag);
}

int packet_receive(int fd, struct packet *packet)
{
	union control control;
	struct iovec parts[] = {
		{ &packet->head, sizeof(packet->head) },
		{ packet->room + PACKET_TAG_BYTES, PACKET_FRAME_MAX },
	};
	struct msghdr message = {
		.msg_iov = parts,
		.msg_iovlen = 2,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	struct tpacket_auxdata aux;
	ssize_t len = recvmsg(fd, &message, MSG_DONTWAIT);

	if (len < 0)
		return -errno;
	if (message.msg_flags & MSG_TRUNC)
		return -EMSGSIZE;
	if ((size_t)len < sizeof(packet->head) + ETH_HLEN)
		return -EINVAL; /* no frame that the filter lets in */
	packet->frame = parts[1].iov_base;
	packet->len = (size_t)len - sizeof(packet->head);
	/* That a checksum was found right is for who receives, and no word for who sends. */
	packet->head.flags &= VIRTIO_NET_HDR_F_NEEDS_CSUM;
	if (find_tag(&message, &aux))
		insert_tag(packet, &aux);
	return 0;
}

int packet_send(int fd, const struct packet *packet)
{
	struct iovec parts[] = {
		{ (void *)&packet->head, sizeof(packet->head) },
		{ packet->frame, packet->len },
	};

	/* Not sendmsg(2): that could name another interface, and so is not for this process (confine.h). */
	return writev(fd, parts, 2) < 0 ? -errno : 0;
}

uint32_t packet_overflow(int fd)
{
	struct tpacket_stats stats = { 0 };
	socklen_t len = sizeof(stats);

	return getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len) ? 0 : stats.tp_drops;
}
