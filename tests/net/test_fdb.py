"""The forwarding database as operators see and change it, and what floods of stations do to it."""

import json
import random
import re

import pytest

from appliance import forward, port
from control import Client, code, millracectl
from daemon import balanced, drops, no_drops_but
from frames import BROADCAST, ethernet, tagged
from lab import SLOWNESS, wait_until
from wire import exchange


def mac(number):
    return bytes([2, 0, 0, 9, number >> 8, number & 255])


def text(address):
    return address.hex(":")


def frame(src, dst, fill=b"fdb"):
    return ethernet(dst, src, 0x88B5, fill, 60)


def quiet_star(star, tap, stations="abc"):
    """Taps of stations that say nothing by themselves."""
    rig = star(stations=stations)
    rig.silence()
    return rig, [tap(rig.station[name], f"{name}0") for name in stations]


class Asked:
    """millracectl fdb, on a socket."""

    def __init__(self, sock):
        self.sock = sock

    def say(self, *words):
        status, out, err = millracectl(self.sock, "fdb", *words)
        assert (status, err) == (0, ""), err
        return out

    def fails(self, *words):
        status, out, err = millracectl(self.sock, "fdb", *words)
        assert status == 1 and out == "" and err.count("\n") == 1, (out, err)
        return err

    def entries(self, *words):
        result = json.loads(self.say("-j", *words))
        assert result["next"] is None
        return result["entries"]

    def where(self, *words):
        """{(VLAN, MAC): (kind, port)}"""
        return {(one["vlan"], one["mac"]): (one["kind"], one["port"]) for one in self.entries(*words)}

    def count(self, name):
        """{port: its counts}, and those of the whole bridge."""
        counts = json.loads(self.say("count", "-j", "forward", name))["forwards"][0]
        return {one["port"]: one for one in counts["ports"]}, counts


def hears(receiver, wanted):
    assert receiver.receive(2 * SLOWNESS)[0] == wanted


def test_operators_see_and_change_stations(star, tap, millraced, file, attach):
    """Learn, show, move; static beats learned, blocked drops, a flush spares both; mistakes are told."""
    rig, (a, b, c) = quiet_star(star, tap)
    file.write(*(port(f"p{i}", f"d{i}", attach=attach) for i in range(3)),
               forward("br", "bridge", "p0 p1 p2", fdb_size=1000, ageing="60s"))
    daemon = millraced(rig.dut, "--config", file.path, json_lines=True)
    fdb = Asked(file.sock)
    assert fdb.say() == "" and fdb.entries() == []
    one, two = text(mac(1)), text(mac(2))
    a.send(frame(mac(1), BROADCAST))
    a.send(tagged(frame(mac(1), BROADCAST), (0x8100, 7)))
    b.send(frame(mac(2), mac(1)))
    hears(a, frame(mac(2), mac(1)))
    assert fdb.where() == {(None, one): ("learned", "p0"), (None, two): ("learned", "p1"),
                           (7, one): ("learned", "p0")}
    assert [*fdb.where("port", "p1")] == [(None, two)]
    assert [*fdb.where("vlan", 7, "forward", "br")] == [(7, one)]
    assert re.search(rf"^   - +{one} +learned +\d s +p0 +br\n   - +{two} .*\n   7 +{one} ",
                     fdb.say().partition("\n")[2], re.M), fdb.say()
    b.send(frame(mac(1), mac(2)))  # moved; nothing leaves where it came in
    wait_until(lambda: (None, one) in fdb.where("port", "p1"), 2 * SLOWNESS, "the move")
    assert fdb.say("add", one, "port", "p0") == f"forward br: station {one} is behind port p0\n"
    b.send(frame(mac(1), BROADCAST))
    c.send(frame(mac(3), mac(1)))
    hears(a, frame(mac(1), BROADCAST))
    hears(a, frame(mac(3), mac(1)))
    assert fdb.where()[None, one] == ("static", "p0")
    assert json.loads(fdb.say("add", "-j", text(mac(9)), "blocked")) == {
        "forward": "br", "vlan": None, "mac": text(mac(9)), "kind": "blocked", "port": None,
        "age_seconds": None}
    for sender, src, dst in ((b, 9, 2), (c, 3, 9)):
        sender.send(frame(mac(src), mac(dst)))
    daemon.quiet_record()  # they are behind us
    ports, whole = fdb.count("br")
    assert (whole["learned"], whole["static"], whole["blocked"], whole["size"],
            whole["ageing_seconds"]) == (3, 1, 1, 1000, 60)
    assert ports["p2"] == {"port": "p2", "learned": 1, "static": 0, "limit": None}
    assert re.search(r"^br +\(all\) +3 +1 +1000$", fdb.say("count"), re.M)
    assert fdb.say("flush", "vlan", 7) == "1 entry removed\n"
    assert fdb.say("flush", "port", "p2") == "1 entry removed\n"
    assert fdb.say("flush") == "1 entry removed\n"
    assert fdb.where() == {(None, one): ("static", "p0"),
                           (None, text(mac(9))): ("blocked", None)}
    assert fdb.say("del", one) == "1 entry removed\n"
    for words, says in (
            (["port", "p9"], "port 'p9': there is none of that name; `millracectl ports`"),
            (["forward", "nowhere"], "forward 'nowhere': there is none"),
            (["vlan", 0], "vlan 0: must be 1 to 4094"),
            (["add", one, "port", "p0", "vlan", 4095], "vlan 4095: must be 1 to 4094"),
            (["add", "01:00:5e:00:00:01", "port", "p0"], "an address of a group"),
            (["add", "00:00:00:00:00:00", "blocked"], "no station has the zero address"),
            (["add", "2:0:0:0:0:1", "blocked"], "type one such as 02:00:00:00:00:01"),
            (["add", one, "port", "p9"], "port 'p9'"),
            (["add", text(rig.macs["d1"]), "port", "p0"], "is the address of port p1 itself"),
            (["del", one], f"{one}: no such station; `millracectl fdb` lists them")):
        assert says in fdb.fails(*words), words
    assert "type: millracectl fdb add MAC port NAME | blocked [vlan N]" in millracectl(
        file.sock, "fdb", "add", one)[2]
    assert f"forward br: station {one} is behind port p0 until it is removed" in daemon.stderr
    a.drain(), b.drain(), c.drain()
    b.send(frame(mac(2), mac(9)))
    daemon.quiet_record()
    final = daemon.stop()
    assert balanced(final) and no_drops_but(final, "same_port", "blocked"), final
    assert drops(final)["blocked"] == 3


@pytest.mark.parametrize("stations", [2_000, pytest.param(100_000, marks=pytest.mark.full)])
def test_a_flood_of_stations_takes_no_place_of_others(star, tap, millraced, file, attach, stations):
    """Beyond learn-limit they are flooded and counted; static entries and those of other ports stay."""
    rig, (a, b, c) = quiet_star(star, tap)
    file.write(port("p0", "d0", attach=attach, learn_limit=500),
               *(port(f"p{i}", f"d{i}", attach=attach) for i in (1, 2)),
               forward("br", "bridge", "p0 p1 p2", fdb_size=600))
    daemon = millraced(rig.dut, "--config", file.path, json_lines=True)
    fdb = Asked(file.sock)
    for number in range(10):
        fdb.say("add", text(mac(number)), "port", "p1")
    b.send(frame(mac(500), BROADCAST))
    hears(c, frame(mac(500), BROADCAST))
    hears(a, frame(mac(500), BROADCAST))
    numbers = random.Random(8)
    flood = [frame(bytes([4]) + numbers.randbytes(5), mac(500)) for _ in range(stations)]
    for at in range(0, stations, 2_000):
        exchange(a, b, flood[at:at + 2_000], flood[at:at + 2_000])
    ports, whole = fdb.count("br")
    assert ports["p0"] == {"port": "p0", "learned": 500, "static": 0, "limit": 500}
    assert (whole["learned"], whole["static"]) == (501, 10)
    metrics = file.ask("metrics")["text"]
    assert re.search(rf'learned_frames_total{{port="p0",.*result="limited"}} {stations - 500}\n', metrics)
    entries = fdb.where("port", "p0")
    learned = next(one for one in flood if (None, text(one[6:12])) in entries)
    unknown = next(one for one in flood if (None, text(one[6:12])) not in entries)
    for number in range(10):
        a.send(frame(mac(700), mac(number)))
        hears(b, frame(mac(700), mac(number)))
    assert c.drain() == []
    b.send(frame(mac(500), learned[6:12]))  # is known: to its port alone
    hears(a, frame(mac(500), learned[6:12]))
    assert c.drain() == []
    b.send(frame(mac(500), unknown[6:12]))  # is not: to all others
    hears(a, frame(mac(500), unknown[6:12]))
    hears(c, frame(mac(500), unknown[6:12]))
    assert fdb.say("flush", "port", "p0") == "500 entries removed\n"
    assert fdb.count("br")[1]["static"] == 10
    final = daemon.stop()
    assert balanced(final) and no_drops_but(final), final


def test_a_reload_changes_what_a_running_bridge_learns(star, tap, millraced, file):
    """ageing and learn-limit: no station is lost by it, and no frame."""
    rig, (a, b, _) = quiet_star(star, tap)

    def sections(limit, ageing):
        return (port("p0", "d0", learn_limit=limit), *(port(f"p{i}", f"d{i}") for i in (1, 2)),
                forward("br", "bridge", "p0 p1 p2", ageing=ageing))

    def learned(*numbers):
        for number in numbers:
            a.send(frame(mac(number), BROADCAST))
            hears(b, frame(mac(number), BROADCAST))
        return [one["mac"] for one in fdb.entries()]

    file.write(*sections(1, "0s"))
    daemon = millraced(rig.dut, "--config", file.path, json_lines=True)
    fdb = Asked(file.sock)
    assert learned(1, 2) == [text(mac(1))]
    file.take(*sections(2, "0s"))
    assert learned(2, 3) == [text(mac(1)), text(mac(2))]
    file.take(*sections(1, "0s"))
    assert learned(3) == [text(mac(1)), text(mac(2))]
    assert daemon.stderr.count("forward br: runs on with other parameters") == 2
    file.take(*sections(1, "1s"))
    wait_until(lambda: not fdb.entries(), 6 * SLOWNESS, "the stations' end", step=0.1)
    final = daemon.stop()
    assert balanced(final) and no_drops_but(final), final


def test_stations_of_the_file(star, tap, millraced, file, attach):
    """There at the start, behind the host port too; a reload adds and removes, and leaves operators'."""
    rig, (a, b, c) = quiet_star(star, tap)

    def sections(*lines):
        return (*(port(f"p{i}", f"d{i}", attach=attach) for i in range(3)),
                forward("br", "bridge", "p0 p1 p2", host_port="h0", fdb_size=16),
                "\n".join(["[fdb br]", *lines, ""]))

    one, two, three, four = (text(mac(number)) for number in (1, 2, 3, 4))
    fixed = (f"static = {one} p0", f"blocked = {two}")
    for line, says in ((f"static = {three} p9", "has no port p9"),
                       ("static = ff:ff:ff:ff:ff:ff p0", "an address of a group"),
                       (f"blocked = {two} vlan 4095", "must be 1 to 4094"),
                       (f"static = {two} p1", "is there already, in line 24")):
        file.write(*sections(*fixed, line))
        said = millraced(rig.dut, "--check", file.path, ready=False).fails(2)
        assert re.search(rf"{re.escape(str(file.path))}:25: \[fdb br\]: .*{re.escape(says)}", said), said
    file.write(*sections(*fixed, f"static = {three} h0"))
    daemon = millraced(rig.dut, "--config", file.path, json_lines=True)
    fdb = Asked(file.sock)
    assert fdb.where() == {(None, one): ("static", "p0"), (None, two): ("blocked", None),
                           (None, three): ("static", "h0")}
    b.send(frame(mac(1), mac(2)))
    b.send(frame(mac(1), mac(9)))
    hears(a, frame(mac(1), mac(9)))
    hears(c, frame(mac(1), mac(9)))
    fdb.say("add", four, "port", "p2")
    fdb.say("del", one)
    errors = file.refuse(*sections(*fixed, f"static = {three} p9"))
    assert "has no port p9" in errors[0]
    errors = file.refuse(*sections(*fixed, f"static = {text(rig.macs['d2'])} p1"))
    assert "d2: its own address is" in errors[0] and "line 25 of the file" in errors[0], errors
    assert (None, one) not in fdb.where()
    file.take(*sections(*fixed, f"static = {two[:-1]}5 p1 vlan 7"))
    assert "forward br: runs on with other parameters" in daemon.stderr
    assert fdb.where() == {(None, one): ("static", "p0"), (None, two): ("blocked", None),
                           (None, four): ("static", "p2"), (7, f"{two[:-1]}5"): ("static", "p1")}
    file.take(*sections())
    assert fdb.where() == {(None, four): ("static", "p2")}
    final = daemon.stop()
    assert balanced(final) and no_drops_but(final, "blocked", "link_down"), final


def test_two_bridges_and_many_pages(star, tap, millraced, file):
    """Each entry once and in order over several answers; what is one bridge's and what is all's."""
    rig, (a, b, c, d) = quiet_star(star, tap, "abcd")
    file.write(*(port(f"p{i}", f"d{i}") for i in range(2)),
               port("p2", "d2", vlan_mode="access 10"), port("p3", "d3", vlan_mode="trunk 10,20"),
               forward("one", "bridge", "p0 p1"), forward("two", "bridge", "p2 p3"))
    daemon = millraced(rig.dut, "--config", file.path, json_lines=True)
    fdb = Asked(file.sock)
    first = sorted(text(mac(number)) for number in range(2_500))
    many = [frame(mac(number), mac(3_000)) for number in range(2_500)]
    exchange(a, b, many, many)
    c.send(frame(mac(1), BROADCAST))
    hears(d, tagged(frame(mac(1), BROADCAST), (0x8100, 10)))
    entries = fdb.entries()
    assert [one["mac"] for one in entries] == [*first, text(mac(1))]
    assert [one["forward"] for one in entries] == ["one"] * 2_500 + ["two"]
    assert [one["mac"] for one in fdb.entries("forward", "one")] == first
    assert [one["port"] for one in fdb.entries("port", "p2")] == ["p2"]
    assert len(fdb.say().splitlines()) == 2_502 and len(fdb.say("port", "p1")) == 0
    client = Client(file.sock)
    page = client.result("fdb", forward="one")
    assert len(page["entries"]) == 1024
    behind = client.result("fdb", forward="one", after=page["next"])["entries"]
    assert [{**one, "age_seconds": 0} for one in behind] == [{**one, "age_seconds": 0} for one in
                                                             entries[1024:2048]]
    assert code(client.answer("fdb", after="one 7")) == "failed"
    assert code(client.answer("fdb", after="one 7 x")) == "failed"
    assert code(client.answer("fdb", after="three")) == "failed"
    client.close()
    assert "there are several bridges: add forward NAME, such as forward one" in fdb.fails(
        "add", text(mac(1)), "blocked")
    assert "port 'p2': is none of forward one" in fdb.fails("add", text(mac(1)), "port", "p2", "forward", "one")
    # By the VLANs of the ports.
    assert entries[-1]["vlan"] == 10
    assert " in VLAN 10 is behind port p2" in fdb.say("add", text(mac(1)), "port", "p2")
    assert " in VLAN 20 is blocked" in fdb.say("add", text(mac(1)), "blocked", "vlan", 20, "forward", "two")
    for words, says in ((["port", "p3"], "in which VLAN? add vlan N, for all that port p3 takes has a tag"),
                        (["port", "p2", "vlan", 20], "vlan 20: port p2 is not in it, by its vlan-mode"),
                        (["blocked", "forward", "two"], "add vlan N, for its ports look at tags")):
        assert "forward two: " in (said := fdb.fails("add", text(mac(1)), *words)) and says in said
    assert fdb.say("del", text(mac(1))) == "3 entries removed\n"
    assert fdb.say("flush", "forward", "one") == "2499 entries removed\n"
    final = daemon.stop()
    assert balanced(final), final
