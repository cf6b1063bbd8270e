"""Network namespaces joined by veth pairs: the two rigs that every network test stands on.

RIG-1: gen(g0) <-> dut(d0).                       RIG-2: gen(g0) <-> dut(d0), dut(d1) <-> sink(s0).

The device under test is in `dut`. IPv6 is off and no interface has an address unless a test
asks, so that nothing but the test sends a frame and counts can be exact. Names carry our PID.
"""

import contextlib
import ctypes
import itertools
import json
import os
import pathlib
import re
import subprocess
import threading
import time

CLONE_NEWNET = 0x40000000
NETNS_DIR = pathlib.Path("/run/netns")  # where `ip netns add` puts a name; part of its interface
# Sanitizer builds run several times slower: limits on time are multiplied by this.
SLOWNESS = float(os.environ.get("MILLRACE_SLOWNESS", "1"))
SANITIZED = "ASAN_OPTIONS" in os.environ

_libc = ctypes.CDLL(None, use_errno=True)
_serial = itertools.count()


def run(*argv, check=True, timeout=20):
    """Run a command to its end and return its standard output; a failure shows what it said."""
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=timeout)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, argv))}: exit {done.returncode}\n"
                             f"{done.stdout}{done.stderr}")
    return done.stdout


def wait_until(condition, timeout, what, step=0.005):
    """Poll `condition` until it is true; return the seconds it took, or fail naming `what`."""
    start = time.monotonic()
    while True:
        if condition():
            return time.monotonic() - start
        if time.monotonic() - start > timeout:
            raise AssertionError(f"not within {timeout:g} s: {what}")
        time.sleep(step)


def _setns(fd):
    if _libc.setns(fd, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


class Namespace:
    """One network namespace. Commands, sockets and threads can be put into it."""

    def __init__(self, role):
        self.name = f"mr{os.getpid()}n{next(_serial)}{role}"
        run("ip", "netns", "add", self.name)
        self.closed = False
        self.link_up("lo")

    def close(self):
        if not self.closed:
            self.closed = True
            run("ip", "netns", "del", self.name, check=False)

    @contextlib.contextmanager
    def entered(self):
        """The calling thread is in the namespace within the block; its sockets stay there."""
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            there = os.open(NETNS_DIR / self.name, os.O_RDONLY | os.O_CLOEXEC)
            try:
                _setns(there)
                try:
                    yield
                finally:
                    _setns(home)
            finally:
                os.close(there)
        finally:
            os.close(home)

    def command(self, *argv):
        """The argument vector that runs argv here; it is exec'ed, so the process id stays."""
        return ["ip", "netns", "exec", self.name, *map(str, argv)]

    def run(self, *argv, **kwargs):
        return run(*self.command(*argv), **kwargs)

    def ip(self, *argv, **kwargs):
        return run("ip", "-n", self.name, *argv, **kwargs)

    def write_sysctl(self, key, value):
        path = pathlib.Path("/proc/sys", *key.split("."))
        with self.entered():
            if path.exists():
                path.write_text(str(value))

    def link_up(self, ifname):
        self.ip("link", "set", ifname, "up")

    def link_down(self, ifname):
        self.ip("link", "set", ifname, "down")

    def link(self, ifname):
        """What the kernel says of an interface: `ip -d -s -j link show`."""
        return json.loads(self.ip("-d", "-s", "-j", "link", "show", "dev", ifname))[0]

    def links(self):
        return {link["ifname"]: link for link in json.loads(self.ip("-d", "-j", "link", "show"))}

    def mac(self, ifname):
        return bytes.fromhex(self.link(ifname)["address"].replace(":", ""))

    def promiscuity(self, ifname):
        return self.link(ifname)["promiscuity"]

    def attached(self):
        """{interface: program id} of the XDP programs attached here, by rtnetlink and bpftool.

        They are asked one after the other, and a program may come or go between.
        """
        for _ in range(5):
            by_link = {name: link["xdp"]["prog"]["id"] for name, link in self.links().items()
                       if "xdp" in link}
            shown = json.loads(self.run("bpftool", "-j", "net", "show"))[0]["xdp"]
            by_bpftool = {entry["devname"]: entry["id"] for entry in shown}
            if by_link == by_bpftool:
                return by_link
        raise AssertionError(f"ip link has {by_link}, bpftool {by_bpftool}")

    def ethtool_set(self, ifname, *features):
        self.run("ethtool", "-K", ifname, *features)

    def ethtool_stats(self, ifname):
        text = self.run("ethtool", "-S", ifname)
        return {key: int(value) for key, value in re.findall(r"^\s+(\w+): (\d+)$", text, re.M)}


class Rig:
    """Namespaces and pairs; `close` takes everything away whatever happened before."""

    def __init__(self, queues=1, peer_queues=None, addresses=()):
        self.queues, self.peer_queues = queues, peer_queues or queues
        self.namespaces = []
        self.macs = {}
        try:
            self._build()
            for where, address in dict(addresses).items():
                self._owner(where).ip("address", "add", address, "dev", where)
        except BaseException:
            self.close()
            raise

    def close(self):
        for namespace in self.namespaces:
            namespace.close()

    def _namespace(self, role):
        namespace = Namespace(role)
        self.namespaces.append(namespace)
        for scope in ("all", "default"):
            namespace.write_sysctl(f"net.ipv6.conf.{scope}.disable_ipv6", 1)
        return namespace

    def _owner(self, ifname):
        return {"g": self.gen, "d": self.dut, "s": getattr(self, "sink", None)}[ifname[0]]

    def join(self, far, far_if, near_if):
        """A veth pair from namespace `far` to the dut, both ends up."""
        far.ip("link", "add", far_if, "numtxqueues", self.peer_queues, "numrxqueues",
               self.peer_queues, "type", "veth", "peer", "name", near_if, "netns", self.dut.name,
               "numtxqueues", self.queues, "numrxqueues", self.queues)
        far.link_up(far_if)
        self.dut.link_up(near_if)
        wait_until(lambda: far.link(far_if)["operstate"] == "UP", 5, f"{far_if} up")
        self.macs[far_if], self.macs[near_if] = far.mac(far_if), self.dut.mac(near_if)

    def offloads_off(self, *ends):
        """No checksum left to an offload, no super-frames: AF_XDP forwards what it is given."""
        for end in ends:
            self._owner(end).ethtool_set(end, "tx", "off", "gso", "off", "tso", "off")

    def gro_on(self, *ends):
        """Generic mode needs GRO (so a NAPI) on the receiving side for frames born in XDP."""
        for end in ends:
            self._owner(end).ethtool_set(end, "gro", "on")


class Rig1(Rig):
    ports = ("d0",)

    def _build(self):
        self.gen, self.dut = self._namespace("gen"), self._namespace("dut")
        self.join(self.gen, "g0", "d0")


class Rig2(Rig):
    ports = ("d0", "d1")

    def _build(self):
        self.gen, self.dut = self._namespace("gen"), self._namespace("dut")
        self.sink = self._namespace("sink")
        self.join(self.gen, "g0", "d0")
        self.join(self.sink, "s0", "d1")


class Star(Rig):
    """Stations, each in a namespace (`station`), on d0, d1, ... of the dut: a is 10.7.0.1, b .2, ..."""

    def __init__(self, stations="abc", **options):
        self._stations = stations
        self.ports = tuple(f"d{number}" for number in range(len(stations)))
        super().__init__(**options)

    def _build(self):
        self.dut = self._namespace("dut")
        self.station = {}
        for number, name in enumerate(self._stations):
            far, far_if = self._namespace(name), f"{name}0"
            self.station[name] = far
            self.join(far, far_if, f"d{number}")
            far.ethtool_set(far_if, "tx", "off", "gso", "off", "tso", "off")
            far.ip("address", "add", f"10.7.0.{number + 1}/24", "dev", far_if)

    def silence(self):
        """No station says anything by itself any more."""
        for name, far in self.station.items():
            far.ip("address", "flush", "dev", f"{name}0")


def backlog_drops():
    """Frames that the per-CPU backlog dropped since boot, over all CPUs and namespaces."""
    rows = pathlib.Path("/proc/net/softnet_stat").read_text().split("\n")
    return sum(int(row.split()[1], 16) for row in rows if row)


class Task(threading.Thread):
    """A thread whose exception is raised again by `result`, not lost."""

    def __init__(self, function, *args):
        super().__init__(daemon=True)
        self._function, self._args = function, args
        self._value = self._error = None
        self.start()

    def run(self):
        try:
            self._value = self._function(*self._args)
        except BaseException as error:  # handed to the caller of result()
            self._error = error

    def result(self, timeout):
        self.join(timeout)
        assert not self.is_alive(), f"{self._function.__name__} did not end within {timeout:g} s"
        if self._error is not None:
            raise self._error
        return self._value
