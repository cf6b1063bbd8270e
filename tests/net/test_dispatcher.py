"""attach-method = dispatcher where the kernel forbids it, as this machine's does: field case 47.

What it does where it can be had is for the lab: dispatcher, dispatcher_kill, dispatcher_refused.
"""

import errno
import json
import struct

import pytest
from appliance import File, forward, port
from daemon import MILLRACED
from holder import BPF_PROG_LOAD, bpf
from lab import run
from test_programs import IP_WORD

BPF_PROG_TYPE_EXT = 28
METHOD = "--attach-method=dispatcher"
LINE = ("error: d0: dispatcher unavailable: this kernel refuses BPF programs of type EXT: EPERM "
        "(Operation not permitted); use attach-method = link (as a flag --attach-method=link)")


@pytest.fixture(autouse=True)
def forbidden():
    """A kernel that allows them has something else to say of a program without instructions."""
    try:
        bpf(BPF_PROG_LOAD, struct.pack("<II", BPF_PROG_TYPE_EXT, 0).ljust(120, b"\0"))
    except OSError as error:
        if error.errno == errno.EPERM:
            return
    pytest.skip("this kernel allows BPF programs of type EXT; scripts/lab run dispatcher says more")


def test_one_line_with_the_way_out_and_nothing_attached(rig2, millraced, tmp_path, attach):
    """From flags and from a file; the port before it is let go of."""
    rig = rig2()
    said = millraced(rig.dut, "-l", "-i", "d0", METHOD, attach=attach, ready=False).fails(1)
    assert said == f"millraced: {LINE}"
    file = File(tmp_path / "millrace.conf", tmp_path / "sock")
    file.write(port("a", "d1", attach=attach), port("b", "d0", attach=attach, attach_method="dispatcher"),
               forward("main", "patch", "a b"))
    said = millraced(rig.dut, "--config", file.path, ready=False).fails(1)
    assert said == f"millraced: {LINE}"
    assert rig.dut.attached() == {}
    daemon = millraced(rig.dut, "-l", "-i", "d0", attach=attach)
    assert "dispatcher" not in daemon.stderr, "by default nothing is tried, and nothing said"
    daemon.stop()


def test_replace_takes_nothing_off_before_that_is_known(rig1, millraced, foreign_object, attach):
    rig = rig1()
    rig.dut.ip("link", "set", "dev", "d0", IP_WORD[attach], "obj", foreign_object, "sec", "xdp")
    before = rig.dut.attached()
    said = millraced(rig.dut, "-l", "-i", "d0", METHOD, "--replace", attach=attach, ready=False).fails(1)
    assert said == f"millraced: {LINE}"
    assert rig.dut.attached() == before


def test_dispatcher_of_others_is_offered_to_be_shared(rig1, millraced, tmp_path, attach):
    """Without it, a link has no room beside it."""
    rig = rig1()
    source, compiled = tmp_path / "dispatcher.c", tmp_path / "dispatcher.o"
    source.write_text("""
__attribute__((section("xdp"), used)) int xdp_dispatcher(void *ctx) { return 2; /* XDP_PASS */ }
char _license[] __attribute__((section("license"), used)) = "GPL";
""")
    run("clang", "-O2", "-g", "-target", "bpf", "-c", source, "-o", compiled)
    rig.dut.ip("link", "set", "dev", "d0", IP_WORD[attach], "obj", compiled, "sec", "xdp")
    before = rig.dut.attached()
    said = millraced(rig.dut, "-l", "-i", "d0", attach=attach, ready=False).fails(1)
    assert (f"d0: XDP program {before['d0']} 'xdp_dispatcher' ({attach} mode) is attached and is left "
            "alone; share it by attach-method = dispatcher (as a flag --attach-method=dispatcher), or "
            "start with --replace") in said
    assert rig.dut.attached() == before
    daemon = millraced(rig.dut, "-l", "-i", "d0", "--replace", attach=attach)
    assert daemon.warnings("'xdp_dispatcher' .* was taken off for --replace")
    daemon.stop()


def test_plan_tells_of_the_method(rig1, tmp_path):
    rig = rig1()
    file = File(tmp_path / "millrace.conf", tmp_path / "sock")
    file.write(port("a", "d0", attach_method="dispatcher"), forward("main", "rxdrop", "a"))
    plan = rig.dut.run(MILLRACED, "--config", file.path, "--plan")
    assert "  attach a  dispatcher, beside other XDP programs\n" in plan
    plan = json.loads(rig.dut.run(MILLRACED, "--config", file.path, "--plan=json"))
    assert plan["forwards"][0]["ports"][0]["attach_method"] == "dispatcher"
