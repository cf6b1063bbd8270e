# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A patch whose one port may go zero-copy and whose other port cannot: what is true of every one.

DESIGN.md: a worker's memory is registered once for each kind, so that frames go from one port to the
other by their address. That is seen here as one memory file a worker, which the kernel knows as two
UMEMs of the same size, one zero-copy and one not; and every frame is there at the end.
"""

import json
import pathlib

import appliance
import frames
import sockets
from bench import Skip
from control import millracectl
from daemon import MILLRACED, program, total
from wire import exchange

SENT = [frames.numbered(n, size) for n, size in
        enumerate(range(frames.MIN_SIZE, frames.MAX_SIZE + 1))]
# Spread by address over the queues of a card that has several: those without a partner on the other
# port hand over. igb takes no ports into its hash.
FLOWS = [frames.ethernet(frames.BOB, frames.ALICE, frames.IPV4,
                         frames.udp(f"198.18.0.{n}", "198.18.1.1", 1024, 9, bytes([n])))
         for n in range(1, 65)]


def check_flows(sender, receiver):
    sender.send_all(FLOWS)
    got = receiver.frames(len(FLOWS))
    assert sorted(got) == sorted(FLOWS), f"{len(got)} frames of {len(FLOWS)}, or not the same ones"


def planned(bench, path):
    said = bench.dut.run(MILLRACED, f"--config={path}", "--plan=json", timeout=60)
    return json.loads(said)["messages"]


def told_by_kernel(bench):
    """Whether this kernel tells of its AF_XDP sockets; that of Debian 12 does not."""
    try:
        bench.load("xsk_diag")
    except Skip as why:
        print(f"   {why}", flush=True)
        return False
    return True


def check_registrations(bench, daemon, ports):
    """The kernel's own account of the sockets is what the lines at start say."""
    if not told_by_kernel(bench):
        return
    name = {bench.dut.link(port)["ifindex"]: port for port in ports}
    found = sockets.bound(bench.dut)
    assert {(name[one.ifindex], one.queue): one.zero_copy for one in found} == {
        key: said["copy"] == "zero-copy" for key, said in daemon.bound.items()}, found
    workers = {said["worker"] for said in daemon.bound.values()}
    maps = pathlib.Path(f"/proc/{daemon.pid}/maps").read_text()
    assert maps.count("memfd:millrace-umem") == len(workers), maps
    for worker in workers:
        mine = [one for one in found
                if daemon.bound[name[one.ifindex], one.queue]["worker"] == worker]
        kinds = {one.zero_copy for one in mine}
        assert len({one.umem for one in mine}) == len(kinds), f"not one UMEM a kind: {mine}"
        assert len({one.bytes for one in mine}) == 1, f"not the same memory: {mine}"
    print("\n".join(f"   {one}" for one in found), flush=True)


def check_status(daemon, sock):
    status, out, err = millracectl(sock, "status", "-j")
    assert status == 0, err
    queues = {(port["port"], queue["queue"]): queue["zero_copy"]
              for port in json.loads(out)["ports"] for queue in port["queues"]}
    assert queues == {key: said["copy"] == "zero-copy" for key, said in daemon.bound.items()}, out


def check(bench, other, driver, near, far):
    """d0, which may have zero-copy, patched with `other`, whose driver has none."""
    ports, expected = ("d0", other), "zero-copy" if "d0" in bench.zero_copy_ports else "copy"
    conf = bench.file()
    must = {"zero_copy": "require"} if expected == "zero-copy" else {}
    # Small rings the second time: their frames go round several times.
    for wait, keys in (("poll", {}), ("spin", {"ring_size": 64})):
        path = conf.write(appliance.port("d0", "d0", **must), appliance.port(other, other),
                          appliance.forward("main", "patch", f"d0 {other}", wait=wait, **keys))
        notes = [one["text"] for one in planned(bench, path) if f"({driver})" in one["text"]]
        assert len(notes) == 1 and notes[0].startswith(f"{other}: "), notes
        assert "no zero-copy" in notes[0] and "registered twice" in notes[0], notes
        daemon = bench.millraced(f"--config={path}")
        assert {said["copy"] for (port, _), said in daemon.bound.items() if port == "d0"} == {
            expected}, daemon.stderr
        assert {said["copy"] for (port, _), said in daemon.bound.items() if port == other} == {
            "copy"}, daemon.stderr
        check_registrations(bench, daemon, ports)
        check_status(daemon, conf.sock)
        exchange(near, far, SENT, SENT, window=32)
        exchange(far, near, SENT, SENT, window=32)
        check_flows(near, far)
        final = daemon.stop()
        for rx, tx, sent in ((*ports, SENT + FLOWS), (*ports[::-1], SENT)):
            assert total(final, "rx_packets", rx) == total(final, "tx_packets", tx) == len(sent)
            assert total(final, "rx_bytes", rx) == sum(map(len, sent))
            assert program(final, rx)["seen"] == len(sent)
        queues = [one for one in final["sockets"] if one["interface"] == "d0"]
        assert all(one["rx_packets"] for one in queues), f"a queue had no traffic: {queues}"
        assert {one["zero_copy"] for one in queues} == {expected == "zero-copy"}
        yield daemon
    if told_by_kernel(bench):
        assert sockets.bound(bench.dut) == [], "a socket is left"
