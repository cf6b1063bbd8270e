# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""No dispatcher to be had, or none that can be shared: one line each, nothing attached (cases 47 and 51)."""

import contextlib
import os

import frames
from lab import SLOWNESS, wait_until
from sharing import JOIN_SECONDS, METHOD, Other, id_of_ours, order, pins, wait_order
from wire import exchange

NICS = ("igb",)
SECONDS = 300
FLAG = {"native": "-N", "skb": "-S"}
LARGE = 9000


@contextlib.contextmanager
def environment(**words):
    before = {name: os.environ.get(name) for name in words}
    os.environ.update(words)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def refused(bench, *flags):
    """The only line that is said."""
    lines = bench.refused("-l", "-i", "d2", METHOD, *flags).split("\n")
    assert len(lines) == 1, lines
    return lines[0]


def cannot_be_had(bench):
    for mode in ("native", "skb"):
        with environment(LIBXDP_BPFFS="/none"):
            line = refused(bench, FLAG[mode])
            assert "d2: dispatcher unavailable: No bpffs found at /none" in line, line
            assert "use attach-method = link (as a flag --attach-method=link)" in line, line
            assert bench.dut.attached() == {}, "what the library fell back to"
        with environment(LIBXDP_OBJECT_PATH="/none"):
            line = refused(bench, FLAG[mode])
            assert "d2: " in line and "xdp-dispatcher.o" in line, line
            assert bench.dut.attached() == {}
    assert pins() == [], pins()


def in_the_way(bench):
    """A dispatcher has one mode, and pins in one place; a program without a dispatcher is not moved into one."""
    other = Other(bench, "d2", "skb", 10)
    line = refused(bench, "-N")
    assert "attached in skb mode, for all its programs; ask for attach = skb (as a flag -S)" in line, line
    daemon = bench.millraced("-l", "-i", "d2", METHOD, wait_links=False)
    assert {one["attach"] for one in daemon.bound.values()} == {"skb"}, daemon.stderr
    daemon.stop()
    wait_order(bench, "d2", "beside")
    before = bench.dut.attached()
    with environment(LIBXDP_BPFFS="/sys/fs/bpf"):  # which is another one in here
        line = refused(bench, "-S")
    assert "'xdp_dispatcher' (skb mode" in line and "pinned in no bpf file system that we see" in line, line
    assert bench.dut.attached() == before
    line = bench.refused("-l", "-S", "-i", "d2")
    assert "share it by attach-method = dispatcher (as a flag --attach-method=dispatcher)" in line, line
    daemon = bench.millraced("-l", "-S", "-i", "d2", "--replace", wait_links=False)
    assert daemon.warnings("'xdp_dispatcher' .* was taken off for --replace"), daemon.stderr
    daemon.stop()
    assert bench.dut.attached() == {} and pins() == [], other.id


def set_mtu(bench, mtu):
    for namespace, ifname in ((bench.sink, "s2"), (bench.dut, "d2")):
        namespace.ip("link", "set", ifname, "mtu", mtu)


def fragments(bench):
    """Alone, ours takes packets of several buffers; one that is not built for them is refused, or we say it."""
    near = bench.tap("s2")
    if bench.kernel.startswith("6.1."):  # its sockets take no packets of several buffers (-F), only programs do
        daemon = bench.millraced("-l", "-N", "-i", "d2", METHOD, wait_links=False)
        set_mtu(bench, LARGE)
    else:
        set_mtu(bench, LARGE)
        daemon = bench.millraced("-l", "-N", "-i", "d2", METHOD, "-F", wait_links=False)
    assert "several buffers" not in daemon.stderr, daemon.stderr
    ours = id_of_ours(bench, "d2")
    try:
        Other(bench, "d2", "native", 10)
    except AssertionError as error:
        assert "Numerical result out of range" in str(error)
    else:
        raise AssertionError("a program without fragments was let in at that MTU")
    assert order(bench, "d2") == ["millrace"] and id_of_ours(bench, "d2") == ours
    sent = [frames.numbered(n, 60 + n) for n in range(50)]
    exchange(near, near, sent, [frames.swapped(one) for one in sent])
    built = Other(bench, "d2", "native", 10, "frags")
    assert order(bench, "d2") == ["beside", "millrace"]
    exchange(near, near, sent, [frames.swapped(one) for one in sent])
    built.leave()
    daemon.stop()

    set_mtu(bench, 1500)
    other = Other(bench, "d2", "native", 10)
    daemon = bench.millraced("-l", "-N", "-i", "d2", METHOD, wait_links=False)
    assert "d2: the dispatcher takes no packets of several buffers" in daemon.stderr, daemon.stderr
    assert "`xdp-loader status d2`" in daemon.stderr
    daemon.stop()
    wait_order(bench, "d2", "beside")
    other.leave()


def deleted(bench):
    """With the device goes the dispatcher, and what of it would stay behind is unpinned by us."""
    with bench.veth("s2", "d2"):
        daemon = bench.millraced("-l", "-i", "d2", METHOD, wait_links=False)
        assert len(pins()) == 1
    daemon.ended(10 * SLOWNESS, code=1)
    wait_until(lambda: pins() == [], JOIN_SECONDS * SLOWNESS, f"pins, {pins()}", step=0.1)


def run(bench):
    bench.load("veth")
    with bench.veth("s2", "d2"):
        cannot_be_had(bench)
        in_the_way(bench)
        fragments(bench)
    assert pins() == [], pins()
    deleted(bench)
