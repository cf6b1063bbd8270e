# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two nodes, two threads a core: workers and memory on the card's node, one a core before two."""

import json
import pathlib
import re

from daemon import MILLRACED
from lab import SLOWNESS

NICS = ("igb",)
SECONDS = 240
MACHINE = "numa"
CPUS = pathlib.Path("/sys/devices/system/cpu")
FAR, NEAR = [0, 1, 2, 3], [4, 5, 6, 7]  # the card is on node 1


def node_of(cpu):
    return int(next(path.name[4:] for path in (CPUS / f"cpu{cpu}").glob("node[0-9]*")))


def core_of(cpu):
    return (CPUS / f"cpu{cpu}/topology/thread_siblings_list").read_text().strip()


def planned(bench, *flags):
    """CPUs of the workers, nodes of the memory, warnings."""
    said = json.loads(bench.dut.run(MILLRACED, "-r", "-i", "d0", "-q", "all", "--plan=json", *flags,
                                    timeout=20 * SLOWNESS))
    forward = said["forwards"][0]
    for worker in forward["workers"]:
        assert worker["cpu_node"] == node_of(worker["cpu"]), worker
    return ([worker["cpu"] for worker in forward["workers"]],
            {umem["numa_node"] for umem in forward["umems"]},
            [one["text"] for one in said["messages"] if one["level"] == "warning"])


def pages(pid):
    """{node: pages of frames there} of a process."""
    found = {}
    for line in pathlib.Path(f"/proc/{pid}/numa_maps").read_text().splitlines():
        if "memfd:millrace" in line:
            for node, count in re.findall(r" N(\d+)=(\d+)", line):
                found[int(node)] = found.get(int(node), 0) + int(count)
    return found


def run(bench):
    # The machine is what this is about.
    assert [node_of(cpu) for cpu in FAR + NEAR] == [0] * 4 + [1] * 4
    assert [core_of(cpu) for cpu in FAR + NEAR] == [
        core for first in (0, 2, 4, 6) for core in [f"{first}-{first + 1}"] * 2]
    before = bench.queues_of("d0")
    try:
        for queues, cpus in ((1, [4]), (2, [4, 6]), (4, [4, 6, 5, 7])):
            bench.dut.run("ethtool", "-L", "d0", "combined", queues)
            assert planned(bench) == (cpus, {1}, [])
        bench.dut.run("ethtool", "-L", "d0", "combined", 2)
        bench.wait_links()

        # A list is taken as it is, with a word where it is worse than need be.
        assert planned(bench, "--cpus=4,6")[::2] == ([4, 6], [])
        cpus, _, said = planned(bench, "--cpus=0,2")
        assert cpus == [0, 2] and len(said) == 1, said
        assert re.match(r"d0: the device is on node 1 and CPUs 0,2 on node 0", said[0]), said
        cpus, _, said = planned(bench, "--cpus=4,5")
        assert cpus == [4, 5] and len(said) == 1, said
        assert re.match(r"CPUs 4-5: another thread of the core .* CPU 6 has none", said[0]), said
        said = bench.refused("-r", "-i", "d0", "-q", "all", "--cpus=4,8")
        assert re.search(r"CPU 8 does not exist or is not allowed here", said), said

        # And so it is done.
        daemon = bench.millraced("-r", "-p", "-i", "d0", "-q", "all")
        assert [int(one["cpu"]) for _, one in sorted(daemon.bound.items())] == [4, 6], daemon.stderr
        where = pages(daemon.pid)
        assert where and set(where) == {1}, where
        daemon.stop()
    finally:
        bench.dut.run("ethtool", "-L", "d0", "combined", before)
        bench.wait_links()
