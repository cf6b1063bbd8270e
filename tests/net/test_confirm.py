"""Field case 61, its second half: --confirm. Who is cut off by what was started gets the host back by
waiting; who can still reach it says so, and it goes on. The host's own traffic is a ping from gen."""

import grp
import time

import control
import pytest
from appliance import File, forward, port
from control import Client, code, millracectl, result
from lab import SLOWNESS, wait_until

WAIT = 3
ADDRESSES = {"g0": "10.76.0.1/24", "d0": "10.76.0.2/24"}
OVER = f"millraced: error: not confirmed within {WAIT} s (--confirm={WAIT}): everything is detached"


@pytest.fixture
def sock(closing):
    return closing(control.Folder()).socket


@pytest.fixture
def rig(rig1):
    return rig1(addresses=ADDRESSES)


def answers(rig, seconds=0.5):
    """Whether the host answers on d0; the neighbour entry is learnt anew."""
    rig.gen.ip("neigh", "flush", "all")
    out = rig.gen.run("ping", "-c", 1, "-W", seconds, "10.76.0.2", check=False, timeout=20)
    return " 1 received" in out


def start(millraced, rig, sock, attach, *flags):
    """An rxdrop that cuts the host off."""
    assert answers(rig)
    began = time.monotonic()
    daemon = millraced(rig.dut, "-r", "-i", "d0", f"--confirm={WAIT}", "--control-socket", sock,
                       *flags, attach=attach)
    assert rig.dut.attached() and not answers(rig)
    return daemon, began


def test_unconfirmed_gives_the_host_its_interface_back(rig, millraced, sock, attach):
    daemon, began = start(millraced, rig, sock, attach)
    assert (f"everything is detached in {WAIT} s unless this comes: millracectl -s {sock} confirm"
            in daemon.stderr)
    first = result(sock, "status")["confirm"]
    assert first["confirmed"] is False and 0 < first["left_seconds"] < WAIT
    status, out, _ = millracectl(sock, "status")
    assert status == 0 and "\nnot confirmed: everything is detached in " in out
    later = result(sock, "status")["confirm"]["left_seconds"]
    assert 0 < later < first["left_seconds"]
    assert not answers(rig) and daemon.running
    daemon.ended(WAIT + 5 * SLOWNESS, code=1)
    assert WAIT <= time.monotonic() - began < WAIT + 3 * SLOWNESS
    assert [text for _, text in daemon.err if "error: " in text] == [OVER]
    assert not rig.dut.attached() and rig.dut.promiscuity("d0") == 0 and not sock.exists()
    assert answers(rig)


def test_confirmed_goes_on(rig, millraced, sock, attach):
    daemon, began = start(millraced, rig, sock, attach)
    assert millracectl(sock, "confirm") == (0, "confirmed; it goes on\n", "")
    wait_until(lambda: "millraced: an operator has confirmed it; forwarding goes on"
               in daemon.stderr, 2 * SLOWNESS, "the log has it")
    status = result(sock, "status")["confirm"]
    assert status["confirmed"] is True and 0 < status["left_seconds"] < WAIT
    assert millracectl(sock, "confirm") == (0, "confirmed already; it goes on\n", "")
    again = result(sock, "confirm")
    assert again == {**status, "already": True}
    time.sleep(max(0, began + WAIT + 1.5 - time.monotonic()))
    assert daemon.running and rig.dut.attached() and not answers(rig)
    assert result(sock, "status")["confirm"] == status
    assert "\nconfirmed\n" in millracectl(sock, "status")[1]
    assert daemon.stderr.count("confirmed it") == 1
    daemon.stop()
    assert answers(rig)


def test_nothing_waits_to_be_confirmed(rig1, millraced, sock, closing):
    rig = rig1()
    for flags in ((), ("--confirm=0",)):
        daemon = millraced(rig.dut, "-r", "-i", "d0", "--control-socket", sock, *flags)
        status, out, err = millracectl(sock, "confirm")
        assert (status, out) == (1, "")
        assert "nothing waits to be confirmed: millraced was started without --confirm" in err
        answer = closing(Client(sock)).answer("confirm")
        assert code(answer) == "failed"
        assert result(sock, "status")["confirm"] is None
        assert "confirm" not in millracectl(sock, "status")[1]
        daemon.stop()


def test_a_reload_does_not_confirm(rig, millraced, sock, attach, tmp_path):
    file = File(tmp_path / "millrace.conf", sock)
    sections = [port("wan", "d0", attach=attach), forward("sink", "rxdrop", "wan")]
    file.write(*sections)
    daemon = millraced(rig.dut, "--config", file.path, f"--confirm={WAIT}")
    left = result(sock, "status")["confirm"]["left_seconds"]
    now = file.take(*sections)["confirm"]
    assert now["confirmed"] is False and now["left_seconds"] < left
    daemon.ended(WAIT + 5 * SLOWNESS, code=1)
    assert OVER in daemon.stderr
    assert not rig.dut.attached() and answers(rig)


def test_a_reload_leaves_what_was_confirmed(rig1, millraced, sock, tmp_path):
    rig = rig1()
    file = File(tmp_path / "millrace.conf", sock)
    sections = [port("wan", "d0"), forward("sink", "rxdrop", "wan")]
    file.write(*sections)
    daemon = millraced(rig.dut, "--config", file.path, f"--confirm={WAIT}")
    assert result(sock, "confirm")["already"] is False
    assert file.take(*sections)["confirm"]["confirmed"] is True
    time.sleep(WAIT + 0.5)
    assert daemon.running and rig.dut.attached()
    daemon.stop()


def test_an_end_that_is_asked_for_waits_for_nobody(rig1, millraced, sock):
    rig = rig1()
    millraced(rig.dut, "-r", "-i", "d0", "--confirm=60", "--control-socket", sock).stop()
    millraced(rig.dut, "-r", "-i", "d0", "--confirm=60", "-d", 1, "--control-socket", sock).ended(10)
    assert not rig.dut.attached()


def test_without_a_control_socket_nobody_could_confirm(rig1, millraced, tmp_path):
    rig = rig1()
    path = tmp_path / "millrace.conf"
    path.write_text(port("wan", "d0") + forward("sink", "rxdrop", "wan"))
    want = ("millraced: error: --confirm=5: nobody could confirm without a control socket; add "
            "--control-socket=/run/millrace/control.sock")
    for flags in (("-r", "-i", "d0"), ("--config", path), ("--check", path)):
        assert millraced(rig.dut, *flags, "--confirm=5", ready=False).fails(code=2).strip() == want
        assert not rig.dut.attached()


def test_a_member_of_the_group_may_not_confirm(rig1, millraced, sock):
    rig = rig1()
    daemon = millraced(rig.dut, "-r", "-i", "d0", "--confirm=60", "--control-socket", sock,
                       "--control-group", "games")

    def ask():
        client = Client(sock)
        return [client.answer("confirm"), client.answer("status")]

    answer, status = control.as_user(65534, 65534, [grp.getgrnam("games").gr_gid], ask)
    assert code(answer) == "denied"
    assert status["result"]["confirm"]["confirmed"] is False
    daemon.stop()
    wait_until(lambda: not sock.exists(), 2, "the socket is gone")
