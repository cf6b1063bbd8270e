#!/usr/bin/python3 -IS
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The first and only program of a guest: mounts, modules, interfaces; scenarios or a shell; off.

What to do is in /millrace/plan.json. What came of it goes out on the second serial line, an object
a line: {"ready": seconds since power on}, {"begin": scenario}, {"end": scenario, "result": "pass",
"fail" or "skip", "reason": text, "seconds": number}, {"say": text} between the two, {"done": true}.
The first is the console.
"""

import ctypes
import json
import os
import pathlib
import subprocess
import sys
import time
import traceback
import tty

HOME = pathlib.Path("/millrace")
MOUNTS = (("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/run"),
          ("tmpfs", "/tmp"), ("bpf", "/sys/fs/bpf"), ("debugfs", "/sys/kernel/debug"),
          # `ip netns exec` mounts another /sys.
          ("bpf", "/bpf"))
DISK_MODULES = ("virtio_blk", "ext4", "9pnet_virtio", "9p", "overlay")
MS_RDONLY, MS_MOVE = 1, 0x2000
POWER_OFF = 0x4321FEDC
# Everything takes longer when each instruction is emulated: limits on time are multiplied by this.
SLOWNESS = 5

libc = ctypes.CDLL(None, use_errno=True)


def mount_all():
    for kind, where in MOUNTS:
        os.makedirs(where, exist_ok=True)
        if libc.mount(kind.encode(), where.encode(), kind.encode(), 0, None):
            print(f"init: {where}: {os.strerror(ctypes.get_errno())}", flush=True)


def uptime():
    return float(pathlib.Path("/proc/uptime").read_text().split()[0])


class Report:
    def __init__(self):
        self._line = os.open("/dev/ttyS1", os.O_RDWR | os.O_NOCTTY)
        tty.setraw(self._line)

    def __call__(self, **what):
        os.write(self._line, json.dumps(what).encode() + b"\n")


def run_one(name, bench):
    """(result, reason) of one scenario."""
    from bench import Skip
    module = __import__(name)
    try:
        module.run(bench)
        bench.check_left_nothing()
        return "pass", ""
    except Skip as why:
        return "skip", str(why)
    except BaseException as error:  # the next scenario must run
        traceback.print_exc()
        lines = str(error).strip().splitlines() or [""]
        return "fail", f"{type(error).__name__}: {lines[0][:400]}"
    finally:
        bench.clean()


def run_scenarios(plan, report):
    from bench import Bench
    bench = Bench(plan, lambda text: report(say=text))
    report(ready=uptime())
    for name in plan["scenarios"]:
        report(begin=name)
        print(f"== {name}", flush=True)
        start = time.monotonic()
        result, reason = run_one(name, bench)
        report(end=name, result=result, reason=reason, seconds=time.monotonic() - start)
    report(done=True)


def run_shell(plan, report):
    from bench import Bench
    bench = Bench(plan, print)
    report(ready=uptime())
    print(f"\nNamespaces: gen {bench.gen.name} (g0), dut {bench.dut.name} (d0, d1), "
          f"sink {bench.sink.name} (s0). This shell is in dut; `ip netns exec NAME` enters another."
          f"\nmillraced and millracectl are in the path; exit ends the guest.\n", flush=True)

    def terminal():
        os.setsid()
        fd = os.open("/dev/ttyS0", os.O_RDWR)
        for number in range(3):
            os.dup2(fd, number)

    subprocess.run(bench.dut.command("bash", "-i"), preexec_fn=terminal, check=False)


def mount(source, where, kind, data="", flags=0):
    os.makedirs(where, exist_ok=True)
    if libc.mount(source.encode(), where.encode(), kind.encode(), flags, data.encode()):
        raise OSError(ctypes.get_errno(), f"{kind} at {where}")


def name_cards(plan):
    """As the lab calls them. What udev does by .link files, which this machine may not have."""
    names = {address: port for port, address in plan["ports"].items()}
    for path in list(pathlib.Path("/sys/class/net").glob("*/address")):
        name = names.get(path.read_text().strip())
        if name:
            subprocess.run(["ip", "link", "set", path.parent.name, "name", name, "up"], check=True)


def go_on(plan):
    """systemd takes over, on the files of the host and what the disk has in their place."""
    import kmod
    for name in DISK_MODULES:
        kmod.load(plan, name)
    name_cards(plan)
    mount("host", "/host", "9p", "trans=virtio,version=9p2000.L,cache=loose,msize=524288",
          MS_RDONLY)
    mount("/dev/vda", "/disk", "ext4")
    mount("overlay", "/new", "overlay", "lowerdir=/host,upperdir=/disk/upper,workdir=/disk/work")
    home = pathlib.Path(f"/new{HOME}")
    (home / "plan.json").write_text(json.dumps(plan))
    if not (home / "notes.json").exists():  # which host.py makes
        report = Report()
        report(ready=uptime())
        report(begin=plan["scenarios"][0])
    os.chdir("/new")
    if libc.mount(b".", b"/", None, MS_MOVE, None):
        raise OSError(ctypes.get_errno(), "the new root")
    os.chroot(".")
    os.execve("/sbin/init", ["/sbin/init"], {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "TERM": "linux"})


def main():
    plan = json.loads((HOME / "plan.json").read_text())
    mount_all()
    os.environ.update(PATH=f"{HOME}/build:/usr/sbin:/usr/bin:/sbin:/bin", HOME="/root",
                      TERM="linux", LC_ALL="C", MILLRACE_SLOWNESS=str(SLOWNESS), LIBXDP_BPFFS="/bpf")
    sys.path[:0] = [str(HOME / folder) for folder in
                    ("tests/lab/guest", "tests/lab/scenarios", "tests/net")]
    os.chdir("/root")
    import kmod
    for name in plan["drivers"]:
        kmod.load(plan, name)
    if plan["installed"]:
        go_on(plan)
    report = Report()
    if plan["scenarios"]:
        run_scenarios(plan, report)
    else:
        run_shell(plan, report)


if __name__ == "__main__":
    try:
        main()
    except BaseException:  # nothing may end the first process but the power
        traceback.print_exc()
    sys.stdout.flush()
    libc.reboot(ctypes.c_uint(POWER_OFF))
