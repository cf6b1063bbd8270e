"""Which frames the XDP program gives to the host, asked of it frame by frame (BPF_PROG_TEST_RUN)."""

import ipaddress
import random
import struct

import pytest
from frames import (ALICE, ARP, BOB, BROADCAST, IPV4, QINQ, TCP, UDP, VLAN, address, arp, ethernet,
                    ipv4, tagged, udp)
from verdict import Steer

OWN = bytes.fromhex("02000000000a")
OWN4, OTHER4 = "192.0.2.1", "192.0.2.77"
OWN6, OTHER6 = "2001:db8::1", "fe80::77"
IPV6, LLDP = 0x86DD, 0x88CC
ICMPV6, OSPF, AH = 58, 89, 51
HOP_BY_HOP, ROUTING, FRAGMENT, DESTINATION = 0, 43, 44, 60
ALL_NODES = bytes.fromhex("333300000001")
MDNS = bytes.fromhex("01005e0000fb")
TAGS = [(), ((VLAN, 100),), ((QINQ, 100), (VLAN, 200))]


def six(text):
    return ipaddress.IPv6Address(text).packed


def ipv6(proto, payload, src=OTHER6, dst="ff02::1"):
    return struct.pack("!IHBB", 6 << 28, len(payload), proto, 255) + six(src) + six(dst) + payload


def extended(kinds, proto, payload):
    """The payload behind extension headers of these kinds, the first outermost; 8 or 16 bytes each."""
    for kind in reversed(kinds):
        if kind == FRAGMENT:
            payload = struct.pack("!BBHI", proto, 0, 0, 7) + payload
        else:
            more = kind == ROUTING
            payload = struct.pack("!BB", proto, more) + b"\1\4" + b"\xff" * (4 + 8 * more) + payload
        proto = kind
    return proto, payload


def icmp6(kind, target=None):
    return struct.pack("!BBHI", kind, 0, 0, 0) + (six(target) if target else b"")


def frame_of(dst, ethertype, payload):
    return ethernet(dst, ALICE, ethertype, payload, 0)


def arp_for(target, dst=BROADCAST):
    return dst + arp(1, ALICE, OTHER4, target)[6:42]


def nd(target, kind=135):
    return frame_of(ALL_NODES, IPV6, ipv6(ICMPV6, icmp6(kind, target)))


def udp6(dport, dst="ff02::1"):
    return ipv6(UDP, struct.pack("!HHHH", 547, dport, 8, 0), dst=dst)


# Name, frame, what counts it (None: it is the wire's), and how many bytes that takes.
CLASSES = [
    ("to the own MAC", frame_of(OWN, IPV4, udp(OTHER4, OWN4, 9, 9, b"x")), "own MAC", 14),
    ("to the own MAC, no type of ours", frame_of(OWN, 0x88B5, b"12345"), "own MAC", 14),
    ("ARP for the host", arp_for(OWN4), "own ARP", 14 + 28),
    ("ARP reply to all about the host", BROADCAST + arp(2, ALICE, OTHER4, OWN4)[6:42],
     "own ARP", 14 + 28),
    ("solicitation of the host", nd(OWN6), "own ND", 14 + 40 + 24),
    ("advertisement of its address", nd(OWN6, 136), "own ND", 14 + 40 + 24),
    ("solicitation behind options", frame_of(ALL_NODES, IPV6, ipv6(*extended(
        [HOP_BY_HOP, DESTINATION], ICMPV6, icmp6(135, OWN6)))), "own ND", 14 + 40 + 16 + 24),
    ("ARP for others", arp_for(OTHER4), "both ARP", 14 + 6),
    ("DHCP to a client", frame_of(BROADCAST, IPV4, udp(OTHER4, "255.255.255.255", 67, 68, b"")),
     "both DHCP", 14 + 20 + 4),
    ("DHCPv6 to a client", frame_of(ALL_NODES, IPV6, udp6(546)), "both DHCPv6", 14 + 40 + 4),
    ("router advertisement", frame_of(ALL_NODES, IPV6, ipv6(ICMPV6, icmp6(134, None) + bytes(8))),
     "both RA", 14 + 40 + 1),
    ("MLD query", frame_of(ALL_NODES, IPV6, ipv6(*extended(
        [HOP_BY_HOP], ICMPV6, icmp6(130, "::")))), "both MLD", 14 + 40 + 8 + 1),
    ("MLDv2 report", frame_of(ALL_NODES, IPV6, ipv6(*extended(
        [HOP_BY_HOP], ICMPV6, icmp6(143, None)))), "both MLD", 14 + 40 + 8 + 1),
    ("behind every extension", frame_of(ALL_NODES, IPV6, ipv6(*extended(
        [HOP_BY_HOP, DESTINATION, ROUTING, DESTINATION], ICMPV6, icmp6(134, None)))),
     "both RA", 14 + 40 + 8 + 8 + 16 + 8 + 1),
    ("solicitation of others", nd(OTHER6), None, 0),
    ("ND in a fragment", frame_of(ALL_NODES, IPV6, ipv6(*extended(
        [FRAGMENT], ICMPV6, icmp6(135, OWN6)))), None, 0),
    ("behind seven extensions", frame_of(ALL_NODES, IPV6, ipv6(*extended(
        [DESTINATION] * 7, ICMPV6, icmp6(134, None)))), None, 0),
    ("unicast to others", frame_of(BOB, IPV4, udp(OTHER4, OWN4, 9, 9, b"x")), None, 0),
    ("ARP for the host to another", arp_for(OWN4, BOB), None, 0),
    ("ARP of another hardware", BROADCAST + arp(1, ALICE, OTHER4, OWN4)[6:14] + b"\0\6" +
     arp(1, ALICE, OTHER4, OWN4)[16:42], None, 0),
    ("spanning tree", frame_of(bytes.fromhex("0180c2000000"), 0x0026, bytes(38)), None, 0),
    ("LLDP", frame_of(bytes.fromhex("0180c200000e"), LLDP, bytes(40)), None, 0),
    ("multicast DNS", frame_of(MDNS, IPV4, udp(OTHER4, "224.0.0.251", 5353, 5353, b"")), None, 0),
    ("DHCP to a server", frame_of(BROADCAST, IPV4, udp("0.0.0.0", "255.255.255.255", 68, 67, b"")),
     None, 0),
    ("a later fragment that looks like DHCP", frame_of(BROADCAST, IPV4, ipv4(
        OTHER4, "255.255.255.255", UDP, struct.pack("!HHHH", 67, 68, 8, 0))[:6] + b"\0\1" + ipv4(
            OTHER4, "255.255.255.255", UDP, struct.pack("!HHHH", 67, 68, 8, 0))[8:]), None, 0),
    ("IPv4 of version 5", frame_of(BROADCAST, IPV4, b"\x55" + udp(
        OTHER4, "255.255.255.255", 67, 68, b"")[1:]), None, 0),
    ("IPv4 with a short header", frame_of(BROADCAST, IPV4, b"\x44" + udp(
        OTHER4, "255.255.255.255", 67, 68, b"")[1:]), None, 0),
    ("IPv6 of version 4", frame_of(ALL_NODES, IPV6, b"\x40" + ipv6(
        ICMPV6, icmp6(134, None))[1:]), None, 0),
]


@pytest.fixture
def steer(rig1, closing):
    return closing(Steer(rig1().dut))


def own_everywhere(*tags):
    vlans = [tci for _, tci in tags]
    where = "@" + ".".join(map(str, vlans)) if vlans else ""
    return [f"{OWN4}{where}", f"{OWN6}{where}"]


def set_own(steer, *addresses):
    steer.tell("own", OWN.hex(":"), *addresses)


@pytest.mark.parametrize("tags", TAGS, ids=["untagged", "one tag", "two tags"])
@pytest.mark.parametrize("row", CLASSES, ids=[row[0] for row in CLASSES])
def test_each_class_at_every_length(steer, row, tags):
    _, frame, want, need = row
    frame = tagged(frame, *tags)
    # Tags stand behind the addresses: what the destination alone decides takes no more bytes.
    need += 4 * len(tags) if want != "own MAC" else 0
    set_own(steer, *own_everywhere(*tags))
    steer.tell("pass", "default")
    for copy in ("off", "on"):
        steer.tell("copy", copy)
        for length in range(14, len(frame) + 1):
            hosts = want and length >= need and (copy == "on" or not want.startswith("both"))
            # Of ARP too short for its target it is not known whom it is for: others, then.
            if want == "own ARP" and copy == "on" and need - 22 <= length < need:
                assert steer.judge(frame[:length]) == ("pass", "both ARP"), length
                continue
            assert steer.judge(frame[:length]) == (
                ("pass", want) if hosts else ("redirect", None)), (length, copy)


def test_three_tags_are_not_looked_behind(steer):
    set_own(steer, OWN4, *own_everywhere((VLAN, 1), (VLAN, 2)))
    steer.tell("pass", "default")
    assert steer.verdict(tagged(arp_for(OWN4), (VLAN, 1), (VLAN, 2), (VLAN, 3))) == "redirect"
    assert steer.verdict(tagged(arp_for(OWN4), (VLAN, 1), (VLAN, 2))) == "pass"


def test_an_address_is_own_in_its_vlan_only(steer):
    """Every customer has a 192.168.1.1: whose VLAN is not the host's keeps its own."""
    set_own(steer, OWN4, f"{OTHER4}@7")
    steer.tell("pass", "default")
    want = {(): OWN4, ((VLAN, 7),): OTHER4}
    for tags, own in want.items():
        for target in (OWN4, OTHER4):
            frame = tagged(arp_for(target), *tags)
            assert steer.verdict(frame) == ("pass" if own == target else "redirect"), (tags, target)
    # A tag with a priority and no VLAN is none.
    assert steer.verdict(tagged(arp_for(OWN4), (VLAN, 5 << 13))) == "pass"
    assert steer.verdict(tagged(arp_for(OWN4), (VLAN, 8))) == "redirect"


@pytest.mark.parametrize("addresses, hosts", [
    ((), set()),
    ((OWN4,), {"both ARP", "both DHCP", "both DHCPv6"}),
    ((OWN6,), {"both RA", "both MLD", "both DHCP", "both DHCPv6"}),
], ids=["no address", "IPv4", "IPv6"])
def test_what_both_need_is_the_wires_where_the_host_has_no_address(steer, addresses, hosts):
    set_own(steer, *addresses)
    steer.tell("pass", "default")
    steer.tell("copy", "on")
    for name, frame, want, _ in CLASSES:
        if want and want.startswith("both"):
            assert steer.judge(frame) == (
                ("pass", want) if want in hosts else ("redirect", None)), name


def test_none_gives_nothing_to_the_host(steer):
    set_own(steer, OWN4, OWN6)
    steer.tell("pass", "none")
    steer.tell("copy", "on")
    for name, frame, _, _ in CLASSES:
        assert steer.judge(frame) == ("redirect", None), name


# List, frame, and the place in the list of the rule that decides; None: it is forwarded.
TCP22 = frame_of(BOB, IPV4, ipv4(OTHER4, OWN4, TCP, struct.pack("!HHII", 999, 22, 0, 0)))
TCP6_22 = frame_of(BOB, IPV6, ipv6(*extended([DESTINATION], TCP, struct.pack("!HHII", 9, 22, 0, 0))))
OPTIONS22 = frame_of(BOB, IPV4, b"\x46" + ipv4(OTHER4, OWN4, TCP, b"")[1:] + bytes(4) +
                     struct.pack("!HHII", 999, 22, 0, 0))
FIRST6 = frame_of(BOB, IPV6, ipv6(*extended([FRAGMENT], UDP, struct.pack("!HHHH", 9, 500, 8, 0))))
LATER6 = FIRST6[:14 + 40 + 2] + b"\0\x08" + FIRST6[14 + 40 + 4:]
LATER4 = TCP22[:14 + 6] + b"\x20\1" + TCP22[14 + 8:]
RULES = [
    ("tcp dport 22", TCP22, 0),
    ("tcp dport 22", TCP6_22, 0),
    ("tcp dport 22", OPTIONS22, 0),
    ("tcp dport 23, tcp dport 22", TCP22, 1),
    ("tcp dport 999", TCP22, None),
    ("udp dport 22", TCP22, None),
    ("tcp dport 22", LATER4, None),
    ("proto 6", LATER4, 0),
    ("udp dport 500", FIRST6, 0),
    ("udp dport 500", LATER6, None),
    ("proto 17", LATER6, 0),
    ("proto 6", TCP22, 0),
    ("proto 6", TCP6_22, 0),
    ("proto 60", TCP6_22, None),
    ("proto 51", frame_of(BOB, IPV6, ipv6(AH, bytes(24))), 0),
    ("proto 0", frame_of(BOB, IPV4, ipv4(OTHER4, OWN4, 0, b"")), 0),
    ("proto 89", frame_of(MDNS, IPV4, ipv4(OTHER4, "224.0.0.5", OSPF, bytes(24))), 0),
    ("proto 0", arp_for(OWN4), None),
    ("vlan 100", tagged(TCP22, (VLAN, 100)), 0),
    ("vlan 100", tagged(TCP22, (VLAN, 7 << 13 | 100)), 0),
    ("vlan 200", tagged(TCP22, (QINQ, 100), (VLAN, 200)), 0),
    ("vlan 100", tagged(TCP22, (QINQ, 100), (VLAN, 200)), 0),
    ("vlan 300", tagged(TCP22, (QINQ, 100), (VLAN, 200)), None),
    ("vlan 100", TCP22, None),
    ("tcp dport 22", tagged(TCP22, (QINQ, 100), (VLAN, 200)), 0),
    ("ethertype 0x88cc", frame_of(BOB, LLDP, b"x"), 0),
    ("ethertype 0x88cc", tagged(frame_of(BOB, LLDP, b"x"), (VLAN, 3)), 0),
    ("ethertype 0x0806", arp_for(OWN4), 0),
    ("ethertype 0x0800", arp_for(OWN4), None),
    (f"host {OWN4}", TCP22, 0),
    (f"host {OTHER4}", TCP22, 0),
    (f"host {OWN4}", arp_for(OWN4), 0),
    (f"host {OTHER4}", arp_for(OWN4), 0),
    ("host 192.0.2.9", TCP22, None),
    ("host ff02::1", TCP6_22, 0),
    (f"host {OTHER6}", TCP6_22, 0),
    (f"host {OWN6}", TCP6_22, None),
    (f"host {OTHER4}", frame_of(BOB, LLDP, bytes(12) + address(OTHER4)), None),
    ("mac 01:80:c2:00:00:00/44", frame_of(bytes.fromhex("0180c200000e"), LLDP, b""), 0),
    ("mac 01:80:c2:00:00:00/44", frame_of(bytes.fromhex("0180c2000010"), LLDP, b""), None),
    ("mac 01:80:c2:00:00:00/44, mac 01:80:c2:00:00:0e",
     frame_of(bytes.fromhex("0180c200000e"), LLDP, b""), 1),
    (f"mac {BOB.hex(':')}", TCP22, 0),
    ("mac 00:00:00:00:00:00/1", TCP22, 0),
    ("mac 80:00:00:00:00:00/1", TCP22, None),
    # Held against them in the order of kinds, whatever that of the list.
    (f"tcp dport 22, proto 6, host {OWN4}, ethertype 0x0800, vlan 100, mac {BOB.hex(':')}",
     tagged(TCP22, (VLAN, 100)), 5),
    (f"tcp dport 22, proto 6, host {OWN4}, ethertype 0x0800, vlan 100", tagged(TCP22, (VLAN, 100)), 4),
    (f"tcp dport 22, proto 6, host {OWN4}, ethertype 0x0800", TCP22, 3),
    (f"tcp dport 22, proto 6, host {OWN4}", TCP22, 2),
    ("tcp dport 22, proto 6", TCP22, 1),
]


@pytest.mark.parametrize("list_, frame, index", RULES,
                         ids=[f"{at}: {row[0]}" for at, row in enumerate(RULES)])
def test_rules(steer, list_, frame, index):
    steer.tell("pass", list_)
    want = ("redirect", None) if index is None else ("pass", f"rule {index}")
    assert steer.judge(frame) == want
    # What is for both is forwarded, and not counted, until somebody copies.
    steer.tell("pass", ", ".join(f"both {rule}" for rule in list_.split(", ")))
    assert steer.judge(frame) == ("redirect", None)
    steer.tell("copy", "on")
    assert steer.judge(frame) == want
    for length in range(14, len(frame)):
        assert steer.verdict(frame[:length]) in ("pass", "redirect")


def test_a_rule_comes_before_the_default(steer):
    set_own(steer, OWN4)
    steer.tell("pass", "default, tcp dport 22")
    assert steer.judge(OWN + TCP22[6:]) == ("pass", "rule 0")
    assert steer.judge(OWN + FIRST6[6:]) == ("pass", "own MAC")
    assert steer.judge(TCP22) == ("pass", "rule 0")
    assert steer.judge(FIRST6) == ("redirect", None)


def test_a_rule_that_stays_keeps_its_count(steer):
    steer.tell("pass", "tcp dport 22, vlan 7")
    steer.judge(TCP22)
    assert steer.counts()[-2:] == [1, 0]
    steer.tell("pass", "vlan 9, both tcp dport 22, default")
    assert steer.counts()[-2:] == [0, 1]
    steer.tell("pass", "vlan 9")
    steer.tell("pass", "tcp dport 22")
    assert steer.counts()[-1:] == [0], "one that comes back begins anew"


def test_as_many_rules_as_there_may_be_change_places_with_as_many(steer):
    for first in (1, 1001, 1):
        steer.tell("pass", ", ".join(f"tcp dport {first + n}" for n in range(256)))
        for port, index in ((first, 0), (first + 255, 255)):
            frame = TCP22[:36] + struct.pack("!H", port) + TCP22[38:]
            assert steer.judge(frame) == ("pass", f"rule {index}")
    assert "more than 256" in steer.ask("pass", ", ".join(f"vlan {n + 1}" for n in range(257)))


def test_garbage_is_judged_by_its_address_alone(steer):
    """Whatever is in it, what is unicast to others goes on and what is to the host's own MAC does not."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    set_own(steer, OWN4, OWN6)
    steer.tell("pass", "default")
    steer.tell("copy", "on")
    types = [IPV4, IPV6, ARP, VLAN, QINQ]
    for _ in range(3000):
        dst = rng.choice([OWN, BOB, BROADCAST, ALL_NODES])
        ethertype = rng.choice(types) if rng.random() < 0.9 else rng.randrange(1 << 16)
        body = bytearray(rng.randbytes(rng.randrange(120)))
        if body and rng.random() < 0.8:  # so that it goes deeper
            body[0] = {IPV4: 0x45, IPV6: 0x60}.get(ethertype, body[0])
        frame = frame_of(dst, ethertype, bytes(body))
        want = {OWN: {"pass"}, BOB: {"redirect"}}.get(dst, {"pass", "redirect"})
        assert steer.verdict(frame) in want, frame.hex()
    seen, passed = map(int, steer.ask("seen").split())
    assert seen == 3000 and passed == sum(steer.counts())
