"""-W FIFO -U N: the pollers run in real time, the main thread does not."""

import os
import pathlib


def test_only_the_pollers_run_under_fifo(rig1, millraced):
    rig = rig1(queues=2)
    daemon = millraced(rig.dut, "-r", "-i", "d0", "-q", "0,1", "-p", "-W", "FIFO", "-U", 7)
    policies = {}
    for task in pathlib.Path(f"/proc/{daemon.pid}/task").iterdir():
        tid = int(task.name)
        policies[(task / "comm").read_text().strip()] = (os.sched_getscheduler(tid),
                                                         os.sched_getparam(tid).sched_priority)
    assert policies.pop("millraced") == (os.SCHED_OTHER, 0)
    assert policies == {f"poller-q{n}": (os.SCHED_FIFO, 7) for n in (0, 1)}
    daemon.stop()


def test_without_it_nothing_does(rig1, millraced):
    rig = rig1()
    daemon = millraced(rig.dut, "-r", "-i", "d0", "-p")
    for task in pathlib.Path(f"/proc/{daemon.pid}/task").iterdir():
        assert os.sched_getscheduler(int(task.name)) == os.SCHED_OTHER
    daemon.stop()


def test_real_time_that_is_not_allowed_is_refused_by_name(rig1, millraced):
    """Without CAP_SYS_NICE and an rtprio limit."""
    def without(argv):
        return ["prlimit", "--rtprio=0", "capsh", "--drop=cap_sys_nice", "--",
                "-c", 'exec "$0" "$@"', *argv]

    rig = rig1()
    said = millraced(rig.dut, "-r", "-i", "d0", "-W", "FIFO", "-U", 7, ready=False,
                     json_lines=False, wrap=without).fails(1)
    assert "-W FIFO -U 7: EPERM" in said and "CAP_SYS_NICE" in said, said
    assert rig.dut.attached() == {}
