# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One run of QEMU: its arguments, what the guest reports, and its end, wanted or not."""

import collections
import json
import os
import pathlib
import queue
import subprocess
import tempfile
import threading
import time

from . import image, tables

MEMORY_MIB = 1024
# To user space, on a machine that does other things too; 6 to 12 s on one that does not.
BOOT_SECONDS = 60
TAIL_LINES, TAIL_COLUMNS = 25, 300

# The far ends: the kernel's own stack takes them, so they need none of what zero-copy needs. Once its
# receive ring is full QEMU lets frames overtake each other; the largest ring makes that rare.
FAR = "virtio-net-pci,rx_queue_size=1024"
FAR_DRIVERS = ("virtio_pci", "virtio_net")
PORTS = {"d0": 0, "d1": 1, "g0": 0, "s0": 1, "d2": 2, "s1": 2}  # port: hub

Result = collections.namedtuple("Result", "scenario outcome reason seconds")


def address(port):
    """The MAC address by which the guest knows a card."""
    return f"52:54:00:4d:52:{list(PORTS).index(port):02x}"


def ports_of(machine):
    """{port: hub} of the machine's wires."""
    return {port: hub for port, hub in PORTS.items() if hub < machine.wires}


def cards(nic, machine):
    """QEMU's arguments for the machine's wires with a card on each end."""
    argv = []
    for slot, (port, hub) in enumerate(ports_of(machine).items()):
        model = nic.devices[hub % len(nic.devices)] if port[0] == "d" else FAR
        argv += ["-netdev", f"hubport,id={port},hubid={hub}",
                 # A port of its own: PCI Express cards can be taken out only there.
                 "-device", f"pcie-root-port,bus={machine.root},id=slot{slot},"
                            f"chassis={slot + 1},slot={slot + 1}",
                 "-device", f"{model},netdev={port},bus=slot{slot},mac={address(port)},romfile="]
    return argv


def drive(disk):
    """QEMU's arguments for a disk. What the guest writes outlives its resets, and not QEMU."""
    return ["-drive", f"file={disk},if=none,id=disk,format=raw,snapshot=on",
            "-device", "virtio-blk-pci,drive=disk"] if disk else ["-no-reboot"]


def arguments(qemu, kernel, nic, machine, folder, console):
    """The whole command line; the guest's reports come on standard output.

    In `folder` are initrd and, for a machine that has one, disk.
    """
    command = (f"console=ttyS0 rdinit={image.INIT} panic=-1 loglevel=5 mitigations=off "
               f"net.ifnames=0 {machine.words}")
    return [*qemu.argv, "-machine", "q35", *machine.argv, "-m", str(MEMORY_MIB),
            "-nodefaults", "-no-user-config", "-display", "none",
            "-kernel", str(kernel.image), "-initrd", str(folder / "initrd"), "-append", command,
            *drive(machine.installed and folder / "disk"), *console, *cards(nic, machine)]


def plan(kernel, row, nic, scenarios):
    """What init.py is told; the scenarios are for the same machine, the usual one if there are none."""
    machine = tables.MACHINES[scenarios[0].machine if scenarios else "usual"]
    ports = ports_of(machine)
    able = [port for port in ports if port[0] == "d" and port not in nic.copies]
    return {"kernel": kernel.release, "nic": nic.name,
            "zero_copy": able if nic.kind in row.zero_copy else [],
            "modules": kernel.modules, "drivers": [*FAR_DRIVERS, *nic.drivers],
            "ports": {port: address(port) for port in ports},
            "scenarios": [scenario.name for scenario in scenarios],
            "installed": machine.installed}


class Guest:
    """A guest that runs scenarios; `run` yields what came of them, also when it hangs.

    `make_disk` writes the disk of a machine that has one to the path that it is given.
    """

    def __init__(self, qemu, kernel, nic, machine, archive, make_disk=None):
        self._folder = tempfile.TemporaryDirectory(prefix="millrace-lab-")
        folder = pathlib.Path(self._folder.name)
        (folder / "initrd").write_bytes(archive)
        if make_disk:
            make_disk(folder / "disk")
        self._console = folder / "console"
        console = ["-chardev", f"file,id=console,path={self._console}",
                   "-chardev", "stdio,id=report,signal=off",
                   "-serial", "chardev:console", "-serial", "chardev:report"]
        self.started = time.monotonic()
        self._process = subprocess.Popen(
            arguments(qemu, kernel, nic, machine, folder, console), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
            env={**os.environ, **qemu.environment}, preexec_fn=lambda: os.nice(10))
        self._reports = queue.Queue()
        self._errors = []
        self._readers = [threading.Thread(target=reader, daemon=True)
                         for reader in (self._read_reports, self._read_errors)]
        for reader in self._readers:
            reader.start()

    def __enter__(self):
        return self

    def kill(self):
        """At once; `next` then tells that it ended. Any thread."""
        if self._process.poll() is None:
            self._process.kill()

    def __exit__(self, *_):
        self.kill()
        self._process.wait()
        for reader in self._readers:
            reader.join(5)
        self._folder.cleanup()

    def _read_reports(self):
        for line in self._process.stdout:
            try:
                report = json.loads(line)
            except ValueError:
                continue  # firmware talks on serial lines too
            if isinstance(report, dict):
                self._reports.put(report)
        self._reports.put(None)

    def _read_errors(self):
        self._errors += list(self._process.stderr)

    def next(self, seconds):
        """The guest's next report, None when it ended, queue.Empty when nothing came in time."""
        return self._reports.get(timeout=seconds)

    def console(self):
        """All of the console so far."""
        return self._console.read_text(errors="replace") if self._console.exists() else ""

    def tail(self):
        """The end of the console, and what QEMU itself said."""
        lines = [line[:TAIL_COLUMNS] for line in self.console().splitlines()[-TAIL_LINES:]]
        return "\n".join([*lines, *(line.rstrip() for line in self._errors)])


def run(guest, scenarios, slowness, ready=lambda seconds: None, heard=lambda text: None):
    """Yield a Result for each scenario that came to an end, then for the one that did not.

    `heard` is told each line that a scenario has for whoever runs it.
    Fewer results than scenarios: the guest hung or died in the last one that is yielded.
    """
    limits = {scenario.name: scenario.seconds * slowness for scenario in scenarios}
    current, limit, begun = None, BOOT_SECONDS * slowness, time.monotonic()
    while True:
        try:
            report = guest.next(max(0.0, begun + limit - time.monotonic()))
        except queue.Empty:
            why = f"hung: nothing within {limit:.0f} s"
            break
        if report is None:
            why = "the guest ended by itself"
            break
        if "ready" in report:
            ready(time.monotonic() - guest.started)
        elif "begin" in report:
            current, begun = report["begin"], time.monotonic()
            limit = limits[current]
        elif "say" in report:
            heard(report["say"])
        elif "end" in report:
            yield Result(report["end"], report["result"], report["reason"], report["seconds"])
            current, limit, begun = None, BOOT_SECONDS * slowness, time.monotonic()
        elif "done" in report:
            return
    name = current or "boot"
    yield Result(name, "fail", why, time.monotonic() - begun)


def interactive(qemu, kernel, nic, archive):
    """A guest whose console is this terminal; QEMU's exit status. Ctrl-A x ends it at once."""
    with tempfile.TemporaryDirectory(prefix="millrace-lab-") as folder:
        folder = pathlib.Path(folder)
        (folder / "initrd").write_bytes(archive)
        console = ["-serial", "mon:stdio", "-serial", "null"]
        argv = arguments(qemu, kernel, nic, tables.MACHINES["usual"], folder, console)
        return subprocess.run(argv, check=False, env={**os.environ, **qemu.environment}).returncode
