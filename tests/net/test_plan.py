"""--plan: what would be done, told beforehand; the facts in it are those of ip and ethtool."""

import json
import re
import subprocess

import pytest
from daemon import MILLRACED

PAIR = ["-l", "-i", "d0", "-i", "d1", "-q", "all"]


def ask(namespace, *flags, wrap=None, code=0):
    """Run it to its end: standard output; nothing is attached before or after."""
    argv = [str(MILLRACED), *map(str, flags)]
    done = subprocess.run(namespace.command(*(wrap(argv) if wrap else argv)), capture_output=True,
                          text=True, timeout=20)
    assert done.returncode == code, f"{flags}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    assert namespace.attached() == {}
    return done.stdout


def planned(namespace, *flags, **options):
    return json.loads(ask(namespace, *flags, "--plan=json", **options))


def levels(plan):
    return [message["level"] for message in plan["messages"]]


def test_devices_are_what_ip_and_ethtool_say(rig2):
    rig = rig2(queues=4)
    rig.dut.run("ethtool", "-L", "d0", "rx", 3, "tx", 2)
    rig.dut.ip("link", "set", "d1", "mtu", 1400)
    rig.dut.link_down("d1")
    ports = planned(rig.dut, *PAIR)["forwards"][0]["ports"]
    for port, (rx, tx) in zip(ports, ((3, 2), (4, 4))):
        link = rig.dut.link(port["device"])
        assert port["interface"] == link["ifname"] == port["device"]
        assert (port["ifindex"], port["mtu"]) == (link["ifindex"], link["mtu"])
        assert port["link_up"] is ({"UP", "LOWER_UP"} <= set(link["flags"]))
        assert (port["rx_queues"], port["tx_queues"]) == (rx, tx)
        said = rig.dut.run("ethtool", "-i", port["device"])
        assert port["driver"] == re.search(r"^driver: (.*)$", said, re.M)[1]
    assert [port["link_up"] for port in ports] == [True, False]


@pytest.mark.parametrize("off, strips", [
    ([], True), (["rxvlan"], True), (["rx-vlan-stag-hw-parse"], True),
    (["rxvlan", "rx-vlan-stag-hw-parse"], False),
])
def test_stripping_of_vlan_tags_is_seen(rig1, off, strips):
    rig = rig1()
    rig.dut.ethtool_set("d0", *(word for name in ("rxvlan", "rx-vlan-stag-hw-parse")
                                for word in (name, "off" if name in off else "on")))
    plan = planned(rig.dut, "-l", "-i", "d0")
    port = plan["forwards"][0]["ports"][0]
    assert (port["rx_vlan_offload"], port["rx_vlan_offload_fixed"]) == (strips, False)
    assert bool([one for one in plan["messages"] if "vlan" in one["text"]]) is strips


def test_what_runs_is_what_was_planned(rig2, millraced):
    rig = rig2(queues=2)
    flags = [*PAIR, "--cpus=1,0"]
    workers = planned(rig.dut, *flags)["forwards"][0]["workers"]
    daemon = millraced(rig.dut, *flags, waiting="poll")
    runs = {(interface, queue): (bound["cpu"], bound["worker"])
            for (interface, queue), bound in daemon.bound.items()}
    assert runs == {(lane["port"], worker["queue"]): (str(worker["cpu"]), str(worker["worker"]))
                    for worker in workers for lane in worker["lanes"]}
    frames = [worker["total"] for worker in daemon.stop()["workers"]]
    assert frames == [worker["frames"] for worker in workers]


def test_no_capability_is_needed(rig2):
    rig = rig2()
    text = ask(rig.dut, *PAIR, "--plan", wrap=lambda argv: [
        "setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", *argv])
    assert re.match(r"forward main: patch, 1 worker, 80 MiB locked\n", text), text
    assert re.search(r"^  worker 0  cpu \d+ \(.*\)  umem 0 \(20480 frames, 80 MiB\)  d0 q0 rx\+tx, "
                     r"d1 q0 rx\+tx$", text, re.M), text


def test_an_error_is_exit_1_and_an_absent_device_is_none(rig2):
    rig = rig2()
    plan = planned(rig.dut, *PAIR, "--cpus=4000", code=1)
    assert "error" in levels(plan) and not plan["forwards"][0]["complete"]
    plan = planned(rig.dut, "-l", "-i", "d0", "-i", "d7")
    assert "absent" in levels(plan) and "error" not in levels(plan)
    assert [port["present"] for port in plan["forwards"][0]["ports"]] == [True, False]
    assert not plan["forwards"][0]["complete"] and not plan["forwards"][0]["workers"]
