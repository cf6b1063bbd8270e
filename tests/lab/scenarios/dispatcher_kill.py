# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""In a dispatcher beside another program: killed, helper and all; taken out by somebody; a second millraced."""

import os
import pathlib
import signal

import frames
from control import Folder, result
from daemon import program
from lab import SLOWNESS, wait_until
from sharing import JOIN_SECONDS, METHOD, Other, id_of_ours, order, pins, wait_order
from wire import exchange

NICS = ("igb",)
SECONDS = 400


def helper_of(daemon):
    """The process id of its helper, which is its only child."""
    children = pathlib.Path(f"/proc/{daemon.pid}/task/{daemon.pid}/children").read_text().split()
    assert len(children) == 1, children
    return int(children[0])


def forwards(bench, wire, first):
    sent = [frames.numbered(n, dst=bench.macs["d0"]) for n in range(first, first + 100)]
    exchange(wire, wire, sent, [frames.swapped(one) for one in sent])


def taken_out(bench, wire, other):
    """By whoever is root: attached again within seconds, and no count begins anew."""
    sock = bench.keep(Folder()).socket
    daemon = bench.millraced("-l", "-p", METHOD, "-i", "d0", f"--control-socket={sock}")
    forwards(bench, wire, 0)
    for count in (1, 2):
        before = id_of_ours(bench, "d0")
        if count == 1:
            bench.dut.run("/millrace/build/tests/tools/beside", "d0", "leave", before)
        else:  # the dispatcher and all
            bench.dut.run("ip", "link", "set", "dev", "d0", "xdp", "off")
        wait_until(lambda n=count: len(daemon.said("program lost")) == n, 5 * SLOWNESS, str(daemon))
        wait_until(lambda: "millrace" in order(bench, "d0"), JOIN_SECONDS * SLOWNESS, str(daemon), 0.1)
        bench.wait_links()
        assert id_of_ours(bench, "d0") != before
        forwards(bench, wire, 100 * count)
    assert program(daemon.quiet_record(), "d0")["seen"] == 300
    now = result(sock, "status")["ports"][0]
    assert (now["state"], now["program"]["id"]) == ("up", id_of_ours(bench, "d0")), now
    daemon.stop()
    wait_until(lambda: bench.dut.attached() == {}, JOIN_SECONDS * SLOWNESS, "nothing attached", 0.1)
    wait_until(lambda: pins() == [], JOIN_SECONDS * SLOWNESS, f"pins of dispatchers that are gone, {pins()}", 0.1)


def run(bench):
    wire = bench.tap("g0")
    other = Other(bench, "d0", "native", 10)
    bench.wait_links()
    flags = ["-l", "-p", METHOD, "-i", "d0"]

    # The daemon alone: the helper takes ours out.
    daemon = bench.millraced(*flags)
    forwards(bench, wire, 0)
    second = bench.refused(*flags)
    assert "d0: another millraced serves it, whose XDP program" in second, second
    assert f"pid {daemon.pid} (millraced) has open; end that first" in second, second
    daemon.kill()
    wait_order(bench, "d0", "beside")

    # Both: it stays, harmless, and the next start takes it out.
    daemon = bench.millraced(*flags)
    os.kill(helper_of(daemon), signal.SIGKILL)
    wait_until(lambda: daemon.said("the helper process, pid"), 5 * SLOWNESS, str(daemon))
    forwards(bench, wire, 0)
    daemon.kill()
    assert order(bench, "d0") == ["beside", "millrace"]
    left = id_of_ours(bench, "d0")
    daemon = bench.millraced(*flags)
    assert daemon.warnings(f"d0: XDP program {left} 'millrace', which a millraced that was killed left in "
                           "the dispatcher, is taken out"), daemon.stderr
    assert order(bench, "d0") == ["beside", "millrace"] and id_of_ours(bench, "d0") != left
    forwards(bench, wire, 100)

    # Without a helper an end cannot take it out, and says so.
    os.kill(helper_of(daemon), signal.SIGKILL)
    wait_until(lambda: daemon.said("the helper process, pid"), 5 * SLOWNESS, str(daemon))
    daemon.stop()
    assert daemon.warnings("d0: our XDP program [0-9]+ stays in the dispatcher"), daemon.stderr
    daemon = bench.millraced(*flags)
    daemon.stop()
    wait_order(bench, "d0", "beside")
    other.leave()
    assert bench.dut.attached() == {} and pins() == [], pins()
    bench.wait_links()
    taken_out(bench, wire, other)
