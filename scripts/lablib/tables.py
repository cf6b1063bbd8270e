# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What can be chosen: kernels (kernels.table), NICs, machines, scenarios (one file each)."""

import ast
import collections
import pathlib

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
LAB = REPOSITORY / "tests/lab"

# zero_copy: kinds of NIC that must bind in zero-copy under this kernel.
Kernel = collections.namedtuple("Kernel", "name suite package zero_copy")
# kind: what the user may ask for; it takes in the variants. devices: QEMU's device of each port of the
# device under test, a third one as the first. drivers: what the guest loads. copies: ports that have zero-copy under no kernel.
Nic = collections.namedtuple("Nic", "name kind devices drivers copies", defaults=[()])
# How a guest is emulated. argv: QEMU's. words: on the kernel's command line. root: the PCI bus above
# the cards. wires: how many there are, with a card under test on each. installed: it boots as a host does,
# systemd from a disk on which the package is installed.
Machine = collections.namedtuple("Machine", "name argv words root wires installed",
                                 defaults=["pcie.0", 2, False])
# zero_copy: it is about that, so it says nothing where the card binds none. long: it is left out unless
# somebody names it, or all.
Scenario = collections.namedtuple("Scenario", "name about nics seconds machine zero_copy long path")

# iommu_platform: the driver maps for DMA, which is what a buffer pool needs. The offloads off: with
# them the device may send super-frames, and the driver refuses XDP.
VIRTIO = ("virtio-net-pci,iommu_platform=on,disable-legacy=on,"
          "guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off")
# The driver refuses XDP: an old device whose header must have a buffer of its own.
VIRTIO_SPLIT = "virtio-net-pci,disable-modern=on,disable-legacy=off,any_layout=off"
# Offloads left on and no control of them: the driver would refuse XDP as well, but QEMU takes them
# from a card whose other end carries no virtio headers, which only a tap does.
VIRTIO_UNCONTROLLED = "virtio-net-pci,iommu_platform=on,disable-legacy=on,ctrl_guest_offloads=off"
# Each of them has one queue pair, fewer than the guest has CPUs, so that sending takes a lock. More
# need mq=on and a netdev with queues, which only a tap has: "hubport: Invalid parameter 'queues'".
NICS = {nic.name: nic for nic in (
    Nic("igb", "igb", ("igb", "igb"), ("igb",)),
    Nic("mixed", "igb", ("igb", "e1000e"), ("igb", "e1000e"), ("d1",)),
    Nic("virtio", "virtio", (VIRTIO, VIRTIO), ("virtio_net",)),
    Nic("virtio-small", "virtio", (f"{VIRTIO},mrg_rxbuf=off", VIRTIO), ("virtio_net",)),
    Nic("virtio-split", "virtio", (VIRTIO_SPLIT, VIRTIO_UNCONTROLLED), ("virtio_net",), ("d0",)),
    Nic("e1000e", "e1000e", ("e1000e", "e1000e"), ("e1000e",)),
)}
KINDS = list(dict.fromkeys(nic.kind for nic in NICS.values()))
USUAL = ("-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2")
# Never /dev/kvm: the lab must be the same everywhere, and nested machines are not ours to start.
MACHINES = {machine.name: machine for machine in (
    Machine("usual", USUAL, ""),
    Machine("three", USUAL, "", wires=3),
    # Every clock of the guest goes on by 1 ns with each instruction, and its scheduler's account of
    # CPU time is one of instructions. One CPU: with two, each waits while the other's are counted.
    # Without erms and fsrm the kernel copies 8 bytes with an instruction. It would take `rep movsb`,
    # and of that QEMU counts every byte.
    Machine("counted", ("-accel", "tcg,thread=single", "-icount", "shift=0", "-cpu",
                        "max,-erms,-fsrm", "-smp", "1"), "tsc=reliable"),
    # Two nodes of two cores of two threads, the cards on the second. "max" is an AMD without what
    # tells kernels of threads. Without rdrand there are no random numbers yet when Python starts, and
    # it gives up. The nodes' memory is all there is: MEMORY_MIB together.
    Machine("numa", ("-accel", "tcg,thread=multi", "-cpu", "Nehalem,+rdrand", "-smp",
                     "8,sockets=2,cores=2,threads=2",
                     "-object", "memory-backend-ram,id=memory0,size=512M",
                     "-object", "memory-backend-ram,id=memory1,size=512M",
                     "-numa", "node,nodeid=0,cpus=0-3,memdev=memory0",
                     "-numa", "node,nodeid=1,cpus=4-7,memdev=memory1",
                     "-device", "pxb-pcie,id=second,bus=pcie.0,bus_nr=64,numa_node=1"),
            "", "second"),
    # This machine's files, which the guest only reads (disk.py). No IPv6: a host that speaks it sends
    # frames of its own as soon as a link is up.
    Machine("installed", (*USUAL, "-fsdev", "local,id=host,path=/,security_model=none,readonly=on,"
                                          "multidevs=remap",
                          "-device", "virtio-9p-pci,fsdev=host,mount_tag=host"),
            "ipv6.disable=1 systemd.show_status=no", installed=True),
)}


def rows(text):
    """(line number, words) of every line that says something; # begins a comment."""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if words:
            yield number, words


def parse_kernels(text, where="kernels.table"):
    """{name: Kernel}, in the order of the table."""
    kernels = {}
    for number, words in rows(text):
        if len(words) != 4:
            raise ValueError(f"{where}:{number}: want NAME SUITE PACKAGE ZERO-COPY, "
                             f"got {len(words)} words")
        name, suite, package, zero_copy = words
        nics = () if zero_copy == "-" else tuple(zero_copy.split(","))
        unknown = [nic for nic in nics if nic not in KINDS]
        if unknown:
            raise ValueError(f"{where}:{number}: no NIC '{unknown[0]}' (of {', '.join(KINDS)})")
        if name in kernels:
            raise ValueError(f"{where}:{number}: kernel '{name}' is there already")
        kernels[name] = Kernel(name, suite, package, nics)
    return kernels


def parse_scenario(text, path):
    """What a scenario file says of itself, without running it.

    The first line of its docstring, NICS (the NICs it is for), SECONDS (its limit under emulation),
    MACHINE (where it is not the usual one), ZERO_COPY (True where it is about that) and LONG (True
    where it takes minutes) are all that is looked at.
    """
    tree = ast.parse(text, str(path))
    constants = {"MACHINE": "usual", "ZERO_COPY": False, "LONG": False}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name in ("NICS", "SECONDS", "MACHINE", "ZERO_COPY", "LONG"):
                constants[name] = ast.literal_eval(node.value)
    about = (ast.get_docstring(tree) or "").split("\n")[0]
    missing = [name for name in ("NICS", "SECONDS") if name not in constants]
    if missing or not about:
        raise ValueError(f"{path.name}: a scenario has a docstring, NICS and SECONDS; "
                         f"missing: {', '.join(missing) or 'a docstring'}")
    unknown = [nic for nic in constants["NICS"] if nic not in NICS]
    if unknown:
        raise ValueError(f"{path.name}: no NIC '{unknown[0]}' (of {', '.join(NICS)})")
    if constants["MACHINE"] not in MACHINES:
        raise ValueError(f"{path.name}: no machine '{constants['MACHINE']}' "
                         f"(of {', '.join(MACHINES)})")
    return Scenario(path.stem, about, tuple(constants["NICS"]), constants["SECONDS"],
                    constants["MACHINE"], constants["ZERO_COPY"], constants["LONG"], path)


def kernels():
    path = LAB / "kernels.table"
    return parse_kernels(path.read_text(), path.name)


def scenarios():
    found = [parse_scenario(path.read_text(), path)
             for path in sorted((LAB / "scenarios").glob("*.py"))]
    return {scenario.name: scenario for scenario in found}


def unfit(scenario, row, nic):
    """Why a scenario can say nothing here; None: it can."""
    if scenario.zero_copy and nic.kind not in row.zero_copy:
        return f"{nic.kind} binds no zero-copy under this kernel; zc_refused is about that"
    return None


def in_all(scenario, row, nic):
    """Whether `run all` has it here: counting, which takes boots of its own, only where it compares."""
    return scenario.machine != "counted" or nic.kind in row.zero_copy


def by_machine(scenarios):
    """Lists of the scenarios that can share a boot; what has a disk of its own has it to itself."""
    shared = [[one for one in scenarios if one.machine == name]
              for name, machine in MACHINES.items() if not machine.installed]
    alone = [[one] for one in scenarios if MACHINES[one.machine].installed]
    return [together for together in shared + alone if together]


def module_names():
    """Kernel modules that a guest can load, in no order: modules.py finds what they need."""
    return [words[0] for _, words in rows((LAB / "modules.list").read_text())]
