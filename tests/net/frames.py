"""Building and taking apart Ethernet frames, without the 4-byte FCS, in plain bytes."""

import struct
import zlib

ARP, IPV4, VLAN, QINQ = 0x0806, 0x0800, 0x8100, 0x88A8
EXPERIMENT = 0x88B5  # IEEE local experimental: no stack answers it
BROADCAST = b"\xff" * 6
ICMP, TCP, UDP = 1, 6, 17
# Locally administered, no interface's own: a forwarder must not care.
ALICE, BOB = bytes.fromhex("020a0a0a0a01"), bytes.fromhex("020b0b0b0b02")
MIN_SIZE, MAX_SIZE = 60, 1514


def ethernet(dst, src, ethertype, payload, size=MIN_SIZE):
    frame = dst + src + struct.pack("!H", ethertype) + payload
    return frame.ljust(size, b"\0")


def tagged(frame, *tags):
    """Push tags, outermost first, each (TPID, TCI)."""
    return frame[:12] + b"".join(struct.pack("!HH", *tag) for tag in tags) + frame[12:]


def swapped(frame):
    return frame[6:12] + frame[:6] + frame[12:]


def checksum(data):
    """RFC 1071 over data; 0 when a right checksum is part of it."""
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def address(text):
    return bytes(int(part) for part in text.split("."))


def arp(operation, sender_mac, sender_ip, target_ip, target_mac=b"\0" * 6):
    body = struct.pack("!HHBBH", 1, IPV4, 6, 4, operation)
    body += sender_mac + address(sender_ip) + target_mac + address(target_ip)
    return ethernet(target_mac if any(target_mac) else BROADCAST, sender_mac, ARP, body)


def ipv4(src, dst, protocol, payload, ident=0):
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), ident, 0x4000, 64, protocol, 0,
                       address(src), address(dst))
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


def pseudo_header(packet, protocol, length):
    return packet[12:20] + struct.pack("!BBH", 0, protocol, length)


def icmp_echo(kind, ident, seq, data):
    body = struct.pack("!BBHHH", kind, 0, 0, ident, seq) + data
    return body[:2] + struct.pack("!H", checksum(body)) + body[4:]


def udp(src, dst, sport, dport, data):
    """An IPv4 packet with a UDP datagram, both checksums right."""
    body = struct.pack("!HHHH", sport, dport, 8 + len(data), 0) + data
    packet = ipv4(src, dst, UDP, body)
    total = checksum(pseudo_header(packet, UDP, len(body)) + body) or 0xFFFF
    return packet[:26] + struct.pack("!H", total) + packet[28:]


def tcp_syn(src, dst, sport, dport, seq=1, flags=0x02):
    body = struct.pack("!HHIIBBHHH", sport, dport, seq, 0, 5 << 4, flags, 65535, 0, 0)
    packet = ipv4(src, dst, TCP, body)
    total = checksum(pseudo_header(packet, TCP, len(body)) + body)
    return packet[:36] + struct.pack("!H", total) + packet[38:]


def _pattern(seq, length):
    block = struct.pack("!II", seq, zlib.crc32(struct.pack("!I", seq)))
    return (block * (length // len(block) + 1))[:length]


def numbered(seq, size=MIN_SIZE, dst=BOB, src=ALICE):
    """Frame number seq, exactly `size` bytes, every byte a function of seq and size."""
    assert size >= 18
    return ethernet(dst, src, EXPERIMENT, _pattern(seq, size - 14), size)


def number_of(frame):
    """The number in a numbered() frame, tagged or not (the tags must be the known ones)."""
    at = 12
    while struct.unpack_from("!H", frame, at)[0] in (VLAN, QINQ):
        at += 4
    assert struct.unpack_from("!H", frame, at)[0] == EXPERIMENT, frame.hex()
    return struct.unpack_from("!I", frame, at + 2)[0]


def udp_flow(flow, seq, dst=BOB, src=ALICE):
    """One of many UDP flows, told apart by port, so that they spread over the queues."""
    return ethernet(dst, src, IPV4, udp("198.18.0.1", "198.18.0.2", 1024 + flow, 9,
                                        struct.pack("!II", flow, seq)))


def check_udp(frame):
    """Fail unless frame is Ethernet, IPv4 and UDP with right lengths and checksums."""
    assert struct.unpack_from("!H", frame, 12)[0] == IPV4, frame.hex()
    packet = frame[14:]
    assert packet[0] == 0x45, "IPv4 without options"
    length = struct.unpack_from("!H", packet, 2)[0]
    assert length == len(packet), f"IPv4 says {length} bytes, frame carries {len(packet)}"
    assert checksum(packet[:20]) == 0, "IPv4 header checksum"
    assert packet[9] == UDP
    body = packet[20:]
    assert struct.unpack_from("!H", body, 4)[0] == len(body), "UDP length"
    assert struct.unpack_from("!H", body, 6)[0] != 0, "UDP checksum left out"
    assert checksum(pseudo_header(packet, UDP, len(body)) + body) == 0, "UDP checksum"
