"""Real stacks talk through the patch (RIG-2; g0 and s0 share a subnet): ping, and a 10 MB TCP copy.

TX checksum offload and super-frames are off at the ends: a veth peer with them on sends frames that
no wire ever carries (KERNEL-FACTS, Checksums).
"""

import hashlib
import os
import re
import socket

import pytest

SIZE = 10 << 20
GEN_IP, SINK_IP, PORT = "10.77.0.1", "10.77.0.2", 5001
ADDRESSES = {"g0": f"{GEN_IP}/24", "s0": f"{SINK_IP}/24"}


@pytest.fixture
def rig(rig2):
    rig = rig2(addresses=ADDRESSES)
    rig.offloads_off("g0", "s0")
    return rig


def patch(millraced, rig, attach, waiting):
    return millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", attach=attach, waiting=waiting)


def bad_checksums(namespace):
    """TcpInCsumErrors and UdpInCsumErrors of a namespace, added up."""
    with namespace.entered():
        rows = open("/proc/thread-self/net/snmp").read().split("\n")
    counts = 0
    for names, values in zip(rows[::2], rows[1::2]):
        pairs = dict(zip(names.split(), values.split()))
        counts += int(pairs.get("InCsumErrors", 0))
    return counts


def test_ping(rig, millraced, attach, waiting):
    daemon = patch(millraced, rig, attach, waiting)
    out = rig.gen.run("ping", "-c", 20, "-i", 0.05, "-W", 1, SINK_IP)
    assert "20 packets transmitted, 20 received, 0% packet loss" in out, out
    daemon.stop()


@pytest.mark.alone
def test_single_ping_with_cold_arp(rig, millraced, attach, waiting):
    """Field case 37: ARP request and reply, echo request and reply, four lone frames in 10 ms."""
    daemon = patch(millraced, rig, attach, waiting)
    times = []
    for _ in range(5):
        rig.gen.ip("neigh", "flush", "all")
        out = rig.gen.run("ping", "-c", 1, "-W", 1, SINK_IP)
        times.append(float(re.search(r"time=([\d.]+) ms", out).group(1)))
    daemon.stop()
    assert sorted(times)[2] < 10, times


def listen(namespace):
    with namespace.entered():
        server = socket.create_server((SINK_IP, PORT))
    server.settimeout(20)
    return server


def receive_all(server):
    digest, size = hashlib.sha256(), 0
    connection, _ = server.accept()
    with connection:
        connection.settimeout(20)
        while chunk := connection.recv(1 << 16):
            digest.update(chunk)
            size += len(chunk)
        connection.sendall(digest.digest())
    return size


def send_all(namespace, payload):
    """Connect, send, and return the far end's hash of what it got."""
    with namespace.entered():
        client = socket.socket()
    with client:
        client.settimeout(20)
        client.connect((SINK_IP, PORT))
        client.sendall(payload)
        client.shutdown(socket.SHUT_WR)
        answer = b""
        while chunk := client.recv(64):
            answer += chunk
        return answer


def test_tcp_copy_has_equal_hash(rig, millraced, task, closing, attach, waiting):
    """Field case 20, once the ends checksum their frames themselves."""
    payload = os.urandom(SIZE)
    daemon = patch(millraced, rig, attach, waiting)
    server = closing(listen(rig.sink))
    receiver = task(receive_all, server)
    sender = task(send_all, rig.gen, payload)
    answer = sender.result(60)
    assert receiver.result(5) == SIZE
    assert answer == hashlib.sha256(payload).digest()
    daemon.stop()
    assert bad_checksums(rig.sink) == bad_checksums(rig.gen) == 0


def test_tcp_connects_on_the_first_syn(rig, millraced, closing, attach, waiting):
    """Field case 37."""
    daemon = patch(millraced, rig, attach, waiting)
    server = closing(listen(rig.sink))
    before = retransmissions(rig.gen)
    with rig.gen.entered():
        client = closing(socket.socket())
    client.settimeout(0.9)  # a lost SYN is sent again after 1 s
    client.connect((SINK_IP, PORT))
    closing(server.accept()[0])
    assert retransmissions(rig.gen) == before
    daemon.stop()


def retransmissions(namespace):
    with namespace.entered():
        rows = open("/proc/thread-self/net/snmp").read()
    names, values = re.findall(r"^Tcp: (.*)$", rows, re.M)
    return int(dict(zip(names.split(), values.split()))["RetransSegs"])
