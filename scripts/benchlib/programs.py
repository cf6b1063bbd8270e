# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The forwarders: which cells each can do, its command line there, and how it tells its rate."""

import contextlib
import hashlib
import itertools
import json
import os
import pathlib
import re
import subprocess

SLACK_S = 20  # each tool ends by itself this much after the run it is for, whatever befalls us


def run_seconds(options):
    return options.seconds + SLACK_S


# A series is a list of (seconds on the monotonic clock, packets), one entry a line of the tool.
# The clock of a tool starts when it likes; the line that came with the least delay tells when.


def series_of(stamps):
    """[(arrival, seconds of the tool, packets)] -> series"""
    if not stamps:
        return []
    start = min(arrival - seconds for arrival, seconds, _ in stamps)
    return [(start + seconds, packets) for _, seconds, packets in stamps]


def compiler_of(path):
    """What the compiler left in the program, or nothing."""
    with contextlib.suppress(OSError):
        done = subprocess.run(
            ["readelf", "-p", ".comment", path], capture_output=True, text=True, check=False
        )
        if found := re.search(r"^ +\[ *0\] +(.+)$", done.stdout, re.MULTILINE):
            return found[1].strip()
    return ""


def sha_of(path):
    with open(path, "rb") as file:
        return f"sha256 {hashlib.sha256(file.read()).hexdigest()[:12]}"


class Program:
    """A forwarder. Its rate is the difference of two of its own totals, unless it is counted at
    the sink."""

    at_sink = False
    attaches = True  # an XDP program to each port
    has_workers = False  # all its threads but the main one are
    limits = None  # what it does, in words, where that is not every cell

    def __init__(self, path, options, name):
        self.path, self.options, self.name = path, options, name
        self.compiler = compiler_of(path)
        self._version = None

    def suits(self, cell):
        del cell
        return True

    def argv(self, cell):
        raise NotImplementedError

    def has_taken(self, lab, dev):
        """Whether it has begun to serve the device."""
        return lab.attached(dev)

    def read_version(self):
        return f"tells no version, {sha_of(self.path)}"

    @property
    def version(self):
        if self._version is None:
            self._version = self.read_version()
        return self._version

    def series(self, tool, cell):
        raise NotImplementedError

    def complaints(self, tool):
        """What its own books say is wrong."""
        del tool
        return iter(())

    def stop(self, tool):
        tool.stop()


class Millraced(Program):
    has_workers = True
    _waiting = None

    @property
    def waiting(self):
        """Flags of each way to wait; a build from before wait = adaptive spins by default."""
        if self._waiting is None:
            told = subprocess.run([self.path, "--help"], capture_output=True, text=True, check=False)
            spin = ["--wait=spin"] if "--wait=" in told.stdout else []
            self._waiting = {"adaptive": [], "spin": spin, "poll": ["-p"], "busy-poll": ["-B", *spin]}
        return self._waiting

    def bridge_argv(self, cell):
        """What flags cannot ask for, in a file."""
        pollers = self.options.places[cell.cores].pollers
        lines = ["[millrace]", f"control-socket = {self.options.control}"]
        for port, vlan_mode in itertools.zip_longest(cell.ports, cell.vlan_modes):
            lines += [f"[port {port}]", f"device = {port}", "queues = 0", f"attach = {cell.attach}",
                      "zero-copy = never", "pass = none"]
            lines += [f"vlan-mode = {vlan_mode}"] if vlan_mode else []
        lines += ["[forward bridge]", "mode = bridge", f"ports = {' '.join(cell.ports)}",
                  f"wait = {cell.wait}", f"batch = {cell.batch}",
                  f"cpus = {','.join(map(str, pollers))}"]
        path = pathlib.Path(self.options.control).with_name(f"{cell}.conf".replace(" ", "-"))
        path.write_text("\n".join(lines) + "\n", encoding="ascii")
        seconds = str(run_seconds(self.options))
        return [self.path, "--config", str(path), "-n", "1", "-d", seconds, "--json"]

    def argv(self, cell):
        if cell.mode == "bridge":
            return self.bridge_argv(cell)
        mode = {"rxdrop": "-r", "txpush": "-t", "l2fwd": "-l", "patch": "-l"}[cell.mode]
        argv = [self.path, mode]
        for port in cell.ports:
            argv += ["-i", port]
        argv += ["-q", "0" if max(cell.port_widths) == 1 else "all"]
        argv += ["-S" if cell.attach == "skb" else "-N", "-c"]
        argv += self.waiting[cell.wait]
        argv += ["-b", str(cell.batch), "-n", "1", "-d", str(run_seconds(self.options)), "--json"]
        argv += [f"--control-socket={self.options.control}"] if cell.asking else []
        pollers = self.options.places[cell.cores].pollers
        return argv + [f"--cpus={','.join(map(str, pollers))}"]

    @property
    def control_client(self):
        return str(pathlib.Path(self.path).with_name("millracectl"))

    def handed_share(self, tool):
        """Of the packets sent by the last line, which part one worker handed to another."""
        row = json.loads(tool.lines[-1][1])
        sent = sum(socket["tx_packets"] for socket in row["sockets"])
        return sum(worker["handed"] for worker in row["workers"]) / sent if sent else 0

    def read_version(self):
        done = subprocess.run([self.path, "--version"], capture_output=True, text=True, check=False)
        said = done.stdout.strip()
        return said.splitlines()[0] if said else super().read_version()

    def series(self, tool, cell):
        stamps = []
        for arrival, line in list(tool.lines):
            with contextlib.suppress(json.JSONDecodeError):
                row = json.loads(line)
                packets = sum(s[f"{cell.key}_packets"] for s in row["sockets"])
                stamps.append((arrival, row["seconds"], packets))
        return series_of(stamps)

    def complaints(self, tool):
        if self.name != "millraced":
            return  # a build made to be compared may keep no books
        for _, line in tool.lines:
            row = {}
            with contextlib.suppress(json.JSONDecodeError):
                row = json.loads(line)
            for worker in row.get("workers", []):
                if worker["balance"]:
                    yield f"balance {worker['balance']} on CPU {worker['cpu']}"
            for program in row.get("programs", []):
                if program["unexplained"]:
                    yield f"{program['interface']}: {program['unexplained']} frames unexplained"

    def stop(self, tool):
        status = tool.stop()
        if status and self.name == "millraced":  # one that keeps no books fails its own walk
            tool.fail(f"ended with {status}")
        if status is None:
            tool.fail("did not end at SIGINT within 3 s")


class InKernel(Program):
    """The kernel itself, told by a line for the shell. What comes in on a veth is worked on where the generator
    runs. GRO is on, or veth would not take what the generator redirects into it."""

    at_sink = True
    attaches = False

    def __init__(self, options, name):
        super().__init__("/bin/sh", options, name)
        self.compiler = ""

    def set_up(self, cell):
        """Commands, each of which ends in "; "."""
        raise NotImplementedError

    def argv(self, cell):
        return [self.path, "-c", f"set -e; {self.set_up(cell)}exec sleep {run_seconds(self.options)}"]

    def read_version(self):
        return os.uname().release


class LinuxBridge(InKernel):
    """The kernel's own, over the same two veths; with `steered`, RPS hands each frame to the forwarder's CPU, as
    an operator would do who has a second one."""

    limits = "bridge without VLANs"

    def __init__(self, options, name, steered):
        super().__init__(options, name)
        self.steered = steered

    def suits(self, cell):
        # It neither attaches nor waits in any way of its own: once beside each row of cores.
        if cell.mode != "bridge" or cell.vlan_modes:
            return False
        return not self.steered or cell.cores == "two"

    def set_up(self, cell):
        text = "ip link add br0 type bridge stp_state 0; ip link set br0 up; "
        for port in cell.ports:
            if self.steered:
                mask = f"{1 << self.options.places[cell.cores].pollers[0]:x}"
                text += f"echo {mask} >/sys/class/net/{port}/queues/rx-0/rps_cpus; "
            text += f"ip link set {port} master br0; "
        return text

    def has_taken(self, lab, dev):
        return lab.in_bridge(dev)


class Xdpsock(Program):
    limits = "rxdrop, txpush and l2fwd"
    # "rx   1,234  5,678": rate and total, grouped as the locale likes
    ROW = re.compile(r"^(rx|tx) +([\d.,' ]*\d) +([\d.,']*\d) *$")
    HEAD = re.compile(r"^ +pps +pkts +(\d+[.,]\d+) *$")

    def suits(self, cell):
        return cell.mode not in ("patch", "bridge")

    def argv(self, cell):
        mode = {"rxdrop": "-r", "txpush": "-t", "l2fwd": "-l"}[cell.mode]
        # Without -c it does not kick a copy-mode device and frames stay where they are.
        argv = ["taskset", "-c", str(self.options.cpu_forward), "stdbuf", "-oL", self.path, mode]
        argv += ["-i", "d0", "-q", "0", "-S" if cell.attach == "skb" else "-N", "-c"]
        argv += {"adaptive": [], "spin": [], "poll": ["-p"], "busy-poll": ["-B"]}[cell.wait]
        return argv + ["-b", str(cell.batch), "-n", "1", "-d", str(run_seconds(self.options))]

    def series(self, tool, cell):
        """An interval is printed with two digits; total and rate give it exactly."""
        stamps, clock, interval, before = [], 0.0, 0.0, 0
        for arrival, line in list(tool.lines):
            if head := self.HEAD.match(line):
                interval = float(head[1].replace(",", "."))
            row = self.ROW.match(line.rstrip("\n"))
            if not row or row[1] != cell.key:
                continue
            rate, total = (int(re.sub(r"\D", "", row[i])) for i in (2, 3))
            clock += (total - before) / rate if rate and total > before else interval
            before = total
            stamps.append((arrival, clock, total))
        return series_of(stamps)

    def stop(self, tool):
        tool.stop(patience_s=0.3)  # in poll without traffic it does not hear SIGINT


class XskFwd(Program):
    """Two interfaces, native, spinning, 64 frames a burst: nothing of it can be chosen."""

    at_sink = True
    limits = "patch, native, spin, batch 64"

    def suits(self, cell):
        return (cell.mode, cell.attach, cell.wait, cell.batch) == ("patch", "native", "spin", 64)

    def argv(self, cell):
        ports = [word for port in cell.ports for word in ("-i", port, "-q", "0")]
        return [self.path, *ports, "-c", str(self.options.cpu_forward)]


class Testpmd(Program):
    """The AF_XDP driver of DPDK under testpmd. busy_budget is the driver's: 0 spins."""

    at_sink = True
    limits = "txpush, l2fwd and patch, native, spin and busy-poll"
    FORWARD = {"txpush": "txonly", "l2fwd": "macswap", "patch": "io"}
    MBUFS = 16384  # for the rings of two ports (2,048 each way) and a burst under way

    def __init__(self, path, options, name, burst=None):
        """burst: this in place of a cell's, and only in the cells that spin."""
        super().__init__(path, options, name)
        self.burst = burst

    def suits(self, cell):
        if self.burst and cell.wait != "spin":
            return False
        return cell.mode in self.FORWARD and cell.attach == "native" and cell.wait not in ("poll", "adaptive")

    def _eal(self):
        cpu = self.options.cpu_forward
        # Two threads on one CPU: the first only waits for the end.
        argv = [self.path, "--no-huge", "--no-shconf", "-m", "256", "--no-pci", "--no-telemetry"]
        return [*argv, "--lcores", f"0@{cpu},1@{cpu}"]

    def argv(self, cell):
        budget = cell.batch if cell.wait == "busy-poll" else 0
        argv = self._eal()
        for i, port in enumerate(cell.ports):
            argv += ["--vdev", f"net_af_xdp{i},iface={port},busy_budget={budget}"]
        argv += ["--", f"--forward-mode={self.FORWARD[cell.mode]}", f"--burst={self.burst or cell.batch}"]
        argv += [f"--total-num-mbufs={self.MBUFS}"]
        argv += ["--port-topology=loop"] if len(cell.ports) == 1 else []
        argv += ["--txpkts=60"] if cell.mode == "txpush" else []  # millraced's 64 with the FCS
        # With a period it does not end at the end of its standard input.
        return argv + [f"--stats-period={run_seconds(self.options)}"]

    def read_version(self):
        done = subprocess.run(
            [*self._eal(), "-v", "--", "--help"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        found = re.search(r"RTE Version: '(.+)'", done.stdout + done.stderr)
        return found[1] if found else super().read_version()
