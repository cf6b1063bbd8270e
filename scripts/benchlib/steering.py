# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What it costs a frame to be held against a policy, by BPF_PROG_TEST_RUN: no traffic, no driver."""

import socket
import statistics
import struct
import subprocess

OTHERS, OWN = bytes.fromhex("020b0b0b0b02"), bytes.fromhex("02000000000a")
BROADCAST, ALL_NODES = b"\xff" * 6, bytes.fromhex("333300000001")
SOURCE = bytes.fromhex("020a0a0a0a01")
REPEAT = 500_000  # runs a measurement: 10 to 50 ms
SIZE = 60


def _ethernet(dst, ethertype, payload):
    return (dst + SOURCE + struct.pack("!H", ethertype) + payload).ljust(SIZE, b"\0")


def _udp4(dst):
    body = struct.pack("!HHHH", 9, 9, 26, 0)
    head = struct.pack("!BBHHHBBH", 0x45, 0, 46, 0, 0, 64, socket.IPPROTO_UDP, 0)
    return _ethernet(dst, 0x0800, head + socket.inet_aton("192.0.2.77") +
                     socket.inet_aton("192.0.2.78") + body)


def _udp6(dst):
    head = struct.pack("!IHBB", 6 << 28, 8, socket.IPPROTO_UDP, 64)
    ends = socket.inet_pton(socket.AF_INET6, "2001:db8::77") * 2
    return _ethernet(dst, 0x86DD, head + ends + struct.pack("!HHHH", 9, 9, 8, 0))


def _arp(dst):
    return _ethernet(dst, 0x0806, struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1) + SOURCE +
                     socket.inet_aton("192.0.2.77") + bytes(6) + socket.inet_aton("192.0.2.78"))


FRAMES = {
    "UDP, IPv4, to others": _udp4(OTHERS),
    "UDP, IPv6, to others": _udp6(OTHERS),
    "ARP to all, for others": _arp(BROADCAST),
    "UDP, IPv6, to a group": _udp6(ALL_NODES),
    "UDP, IPv4, to the host": _udp4(OWN),
}


def _ports(count):
    return ", ".join(f"udp dport {1000 + n}" for n in range(count))


# None of them fits a frame: each is the longest way.
POLICIES = {
    "none": "none",
    "default": "default",
    "default, 1 rule": f"default, {_ports(1)}",
    "default, 16 rules": f"default, {_ports(16)}",
    "default, 256 rules": f"default, {_ports(256)}",
    "default, all kinds": "default, mac 02:ff:00:00:00:00/16, vlan 7, ethertype 0x88cc, "
                          "host 192.0.2.9, proto 89, tcp dport 22, udp dport 500",
}
BARE = "bare redirect"


class Tool:
    def __init__(self, path):
        inner = 'ip link set lo up && exec "$0"'
        self._process = subprocess.Popen(["unshare", "--net", "sh", "-c", inner, path],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def close(self):
        self._process.stdin.close()
        self._process.wait(10)

    def ask(self, *words):
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().rstrip("\n")

    def tell(self, *words):
        if (answer := self.ask(*words)) != "ok":
            raise RuntimeError(f"{words[0]}: {answer or 'the tool ended'}")

    def time(self, command, frame):
        answer = self.ask(command, REPEAT, frame.hex())
        if not answer.isdigit():
            raise RuntimeError(f"{command}: {answer or 'the tool ended'}")
        return int(answer)


def measure(tool, rounds):
    """{(policy, frame): [ns of each round]}; every other round the other way round."""
    results = {}
    cells = [(policy, frame) for policy in (BARE, *POLICIES) for frame in FRAMES]
    tool.tell("own", OWN.hex(":"), "192.0.2.1", "2001:db8::1")
    for number in range(rounds):
        for policy, frame in cells if number % 2 == 0 else cells[::-1]:
            if policy != BARE:
                tool.tell("pass", POLICIES[policy])
            ns = tool.time("bare" if policy == BARE else "time", FRAMES[frame])
            results.setdefault((policy, frame), []).append(ns)
    return results


def table(results):
    """Lines: of each frame and policy the median, its spread, and what it is more than bare, by the
    median over the rounds of the differences."""
    yield f"{'frame':<24} {'policy':<20} {'ns':>5} {'min':>5} {'max':>5} {'+ns':>5}"
    for frame in FRAMES:
        bare = results[BARE, frame]
        for policy in (BARE, *POLICIES):
            ns = results[policy, frame]
            more = statistics.median(one - base for one, base in zip(ns, bare))
            told = "base" if policy == BARE else f"{more:.0f}"
            yield (f"{frame:<24} {policy:<20} {statistics.median(ns):>5.0f} {min(ns):>5} "
                   f"{max(ns):>5} {told:>5}")
