"""The control socket and millracectl against a real daemon: what it says is what ip, ethtool and
bpftool say, what it counts is what came, and whoever asks holds nobody up."""

import contextlib
import json
import pathlib
import re
import stat
import subprocess
import threading

import control
import frames
import pytest
from control import MILLRACECTL, Client, as_user, code, millracectl, result
from daemon import REPOSITORY, total
from lab import run, wait_until
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from test_privileges import without
from wire import exchange

GROUP = "games"  # of every Debian, with nobody in it
DOCUMENTED = (REPOSITORY / "docs/control-protocol.md").read_text()
REPORT_DOCUMENTED = (REPOSITORY / "docs/report-json.md").read_text()
STATUS = {"state", "pid", "version", "uptime_seconds", "configuration", "generation",
          "last_reload", "confirm", "ports", "workers"}
PORT = {"port", "device", "ifindex", "link", "state", "state_seconds", "reason", "history", "mtu",
        "driver", "rx_queues", "tx_queues", "attach", "program", "promiscuous",
        "copies"}
QUEUE = {"queue", "forward", "mode", "worker", "cpu", "zero_copy", "need_wakeup", "busy_poll",
         "fill", "rx", "tx", "completion", "kernel"}
WORKER = {"worker", "forward", "mode", "wait", "fresh", "sockets", "cpu", "total", "pool",
          "kernel", "lost", "reclaimed", "balance", "hand_over", "handed"}
STATS = {"seconds", "current", "totals", "sockets", "programs", "copies", "workers"}


@pytest.fixture
def sock(closing):
    return closing(control.Folder()).socket


@pytest.fixture
def client(closing):
    def connect(path, **options):
        return closing(Client(path, **options))
    return connect


def start(millraced, namespace, sock, *flags, **options):
    return millraced(namespace, *flags, "--control-socket", sock, **options)


def current_queues(namespace, ifname):
    """(RX, TX) of the second part of `ethtool -l`."""
    text = namespace.run("ethtool", "-l", ifname).split("Current hardware settings")[1]
    rows = re.findall(r"^(RX|TX|Combined):\s+(\d+)$", text, re.M)
    found = {key: int(count) for key, count in rows}
    return tuple(found.get(key, 0) + found.get("Combined", 0) for key in ("RX", "TX"))


def pinned_cpus(pid):
    """CPUs of the threads beside the main one."""
    return sorted(int(re.search(r"^Cpus_allowed_list:\s+(\d+)$", (task / "status").read_text(),
                                re.M)[1])
                  for task in pathlib.Path(f"/proc/{pid}/task").iterdir() if int(task.name) != pid)


# What it says


def test_status_is_what_ip_ethtool_and_bpftool_say(rig2, millraced, sock, attach, waiting):
    rig = rig2(queues=2)
    queues = {port: current_queues(rig.dut, port) for port in rig.ports}
    daemon = start(millraced, rig.dut, sock, "-l", "-i", "d0", "-i", "d1", "-q", "all",
                   attach=attach, waiting=waiting)
    status = result(sock, "status")
    assert set(status) == STATUS
    assert status["state"] == "running" and status["pid"] == daemon.pid
    assert status["configuration"] is None and status["last_reload"] is None
    assert status["generation"] == 0
    assert 0 < status["uptime_seconds"] < 60
    assert [port["port"] for port in status["ports"]] == ["d0", "d1"]
    for port in status["ports"]:
        assert set(port) == PORT | {"queues"}
        link = rig.dut.link(port["device"])
        assert port["device"] == port["port"]
        assert port["ifindex"] == link["ifindex"] and port["mtu"] == link["mtu"]
        assert port["link"] == "up" and link["operstate"] == "UP"
        assert port["promiscuous"] is (link["promiscuity"] > 0) is True
        assert port["attach"] == {1: "native", 2: "skb"}[link["xdp"]["mode"]] == attach
        driver = rig.dut.run("ethtool", "-i", port["device"])
        assert re.search(rf"^driver: {port['driver']}$", driver, re.M) and port["driver"]
        assert (port["rx_queues"], port["tx_queues"]) == queues[port["device"]] == (2, 2)
        program = json.loads(run("bpftool", "-j", "prog", "show", "id", port["program"]["id"]))
        assert port["program"]["id"] == link["xdp"]["prog"]["id"]
        assert port["program"] == {key: program[key] for key in ("id", "name", "tag")}
        assert [queue["queue"] for queue in port["queues"]] == [0, 1]
        for queue in port["queues"]:
            assert set(queue) == QUEUE
            bound = daemon.bound[port["device"], queue["queue"]]
            assert queue["forward"] == "main" and queue["mode"] == "patch"
            assert queue["zero_copy"] is (bound["copy"] == "zero-copy")
            assert queue["need_wakeup"] is (bound["wakeup"] == "need_wakeup")
            assert (queue["worker"], queue["cpu"]) == (int(bound["worker"]), int(bound["cpu"]))
            assert queue["busy_poll"] == "off"
            assert queue["fill"] + queue["kernel"] > 0
    check_workers(status, daemon, waiting)
    daemon.stop()


def check_workers(status, daemon, waiting):
    assert [worker["worker"] for worker in status["workers"]] == [0, 1]
    assert sorted(worker["cpu"] for worker in status["workers"]) == pinned_cpus(daemon.pid)
    for index, worker in enumerate(status["workers"]):
        assert set(worker) == WORKER
        assert worker["forward"] == "main" and worker["mode"] == "patch"
        assert worker["wait"] == waiting and worker["hand_over"] == 0 and worker["lost"] == 0
        assert worker["sockets"] == [{"port": port, "queue": index} for port in ("d0", "d1")]
        assert worker["balance"] == 0
        mine = [queue for port in status["ports"] for queue in port["queues"]
                if queue["worker"] == index]
        out = sum(queue[key] for queue in mine
                  for key in ("fill", "rx", "tx", "completion", "kernel"))
        assert worker["total"] == worker["pool"] + out > 0


def test_status_follows_the_device(rig2, millraced, sock):
    rig = rig2()
    daemon = start(millraced, rig.dut, sock, "-r", "-i", "d0", "-i", "d1")

    def port(name):
        ports = result(sock, "ports")["ports"]
        assert all(set(one) == PORT for one in ports)
        return next(one for one in ports if one["port"] == name)

    rig.gen.link_down("g0")
    wait_until(lambda: rig.dut.link("d0")["operstate"] != "UP", 5, "d0 without a carrier")
    wait_until(lambda: port("d0")["link"] == "down", 5, "it says so")
    assert port("d1")["link"] == "up"
    rig.gen.link_up("g0")
    wait_until(lambda: port("d0")["link"] == "up", 5, "it says so")
    rig.dut.ip("link", "set", "d0", "mtu", 1400)
    wait_until(lambda: port("d0")["mtu"] == 1400, 5, "it says so")
    daemon.stop()


def test_busy_poll_stands_beside_how_it_waits(rig1, millraced, sock):
    rig = rig1()
    daemon = start(millraced, rig.dut, sock, "-i", "d0", "-B")
    status = result(sock, "status")
    assert status["workers"][0]["wait"] == "adaptive"
    assert status["ports"][0]["queues"][0]["busy_poll"] in ("on", "not effective")
    daemon.stop()


def test_promiscuous_mode_is_switched(rig2, millraced, sock):
    """Without any privilege: the socket that holds the device so is there."""
    rig = rig2()
    daemon = start(millraced, rig.dut, sock, "-l", "-i", "d0", "-i", "d1")
    for on in (True, False, False, True):
        assert result(sock, "set", port="d0", promiscuous=on) == {"port": "d0", "promiscuous": on}
        assert rig.dut.promiscuity("d0") == int(on) and rig.dut.promiscuity("d1") == 1
        assert [p["promiscuous"] for p in result(sock, "ports")["ports"]] == [on, True]
    status, out, err = millracectl(sock, "set", "port", "d1", "promiscuous", "off")
    assert (status, out, err) == (0, "d1: promiscuous off\n", "")
    assert rig.dut.promiscuity("d1") == 0
    status, out, err = millracectl(sock, "set", "port", "d2", "promiscuous", "off")
    assert status == 1 and out == "" and "port 'd2': there is none of that name" in err
    daemon.stop()


def test_every_field_is_documented(rig1, millraced, sock):
    rig = rig1()
    daemon = start(millraced, rig.dut, sock, "-i", "d0")
    stats = result(sock, "stats")
    for name in STATUS | PORT | QUEUE | WORKER | STATS | {"queues"} | set(stats["totals"]):
        assert re.search(rf"`{name}(\[\])?`", DOCUMENTED), name
    for name in stats["sockets"][0]:
        assert f"`{name}`" in DOCUMENTED + REPORT_DOCUMENTED, name
    for name in stats["sockets"][0]["send_calls"]:
        assert f"`{name}`" in DOCUMENTED, name
    daemon.stop()


# What it counts


def same_as_final(stats, final):
    """Every count of the last line on standard output that outlives the sockets."""
    assert len(stats["sockets"]) == len(final["sockets"])
    for socket, last in zip(stats["sockets"], final["sockets"]):
        now_only = {"fill", "rx", "tx", "completion", "calls", "tx_ring_empty_descs"}
        assert set(last) <= set(socket)
        assert {key: socket[key] for key in set(last) - now_only} == {
            key: last[key] for key in set(last) - now_only}
    assert stats["programs"] == final["programs"]


def test_stats_are_the_frames_that_came(rig2, tap, millraced, sock, attach):
    rig = rig2()
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = start(millraced, rig.dut, sock, "-l", "-i", "d0", "-i", "d1", attach=attach)
    sent = [frames.numbered(n, size) for n, size in enumerate(range(60, 1060))]
    exchange(near, far, sent, sent)
    exchange(far, near, sent[:300], sent[:300])
    daemon.quiet_record()
    stats = result(sock, "stats")
    assert set(stats) == STATS and stats["current"] is True
    totals = stats["totals"]
    assert totals["rx_packets"] == totals["tx_packets"] == 1300
    assert totals["rx_bytes"] == totals["tx_bytes"] == sum(map(len, sent + sent[:300]))
    assert not any(totals["drops"].values())
    assert [socket["rx_packets"] for socket in stats["sockets"]] == [1000, 300]
    assert [socket["tx_packets"] for socket in stats["sockets"]] == [300, 1000]
    assert [(socket["port"], socket["forward"], socket["worker"]) for socket in stats["sockets"]
            ] == [("d0", "main", 0), ("d1", "main", 0)]
    assert all(socket["send_calls"]["calls"] > 0 for socket in stats["sockets"])
    same_as_final(stats, daemon.stop())


def test_drops_have_their_reason(rig2, tap, millraced, sock):
    rig = rig2()
    wire = tap(rig.gen, "g0")
    daemon = start(millraced, rig.dut, sock, "-l", "-i", "d0", "-i", "d1")
    rig.dut.link_down("d1")
    wire.send_all(frames.numbered(n) for n in range(500))
    daemon.quiet_record()
    stats = result(sock, "stats")
    dropped = stats["totals"]["drops"].pop("link_down")
    assert dropped > 0 and not any(stats["totals"]["drops"].values())
    assert stats["sockets"][0]["drops"]["link_down"] == dropped
    assert stats["totals"]["rx_packets"] == 500
    metrics = samples(result(sock, "metrics")["text"])
    assert value(metrics, "millrace_dropped_packets_total", port="d0",
                 reason="link_down") == dropped
    assert re.search(rf"^d0 +0 +link_down +{dropped}$", millracectl(sock, "stats")[1], re.M)
    rig.dut.link_up("d1")
    daemon.kill()  # what was put on the TX ring before the link went down leaves late


def samples(text):
    """[(name, labels, value)] of an exposition that the strict parser takes."""
    assert text.endswith("# EOF\n")
    return [(sample.name, sample.labels, sample.value)
            for family in text_string_to_metric_families(text) for sample in family.samples]


def value(metrics, name, **labels):
    found = [number for sample, has, number in metrics
             if sample == name and labels.items() <= has.items()]
    assert len(found) == 1, f"{name} {labels}: {found}"
    return found[0]


def test_metrics_are_the_same_counts(rig2, tap, millraced, sock):
    rig = rig2()
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = start(millraced, rig.dut, sock, "-l", "-i", "d0", "-i", "d1")
    sent = [frames.numbered(n) for n in range(700)]
    exchange(near, far, sent, sent)
    daemon.quiet_record()
    stats, metrics = result(sock, "stats"), samples(result(sock, "metrics")["text"])
    for socket in stats["sockets"]:
        labels = {"forward": "main", "port": socket["port"], "queue": str(socket["queue"]),
                  "worker": str(socket["worker"])}
        for key, name in (("rx_packets", "rx_packets"), ("rx_bytes", "rx_bytes"),
                          ("tx_packets", "tx_packets"), ("tx_bytes", "tx_bytes"),
                          ("rx_descriptors", "rx_descriptors"),
                          ("tx_descriptors", "tx_descriptors"),
                          ("partial_checksums", "partial_checksums"),
                          ("rx_dropped", "kernel_rx_dropped_packets"),
                          ("rx_ring_full", "kernel_rx_ring_full_packets"),
                          ("rx_invalid_descs", "kernel_rx_invalid_descriptors"),
                          ("tx_invalid_descs", "kernel_tx_invalid_descriptors")):
            assert value(metrics, f"millrace_{name}_total", **labels) == socket[key], key
        for reason, count in socket["drops"].items():
            assert value(metrics, "millrace_dropped_packets_total", reason=reason,
                         **labels) == count
        for ring in ("rx", "tx", "completion"):
            assert value(metrics, "millrace_ring_frames", ring=ring, **labels) == socket[ring]
        assert value(metrics, "millrace_calls_total", call="copy_tx", **labels) >= (
            socket["calls"]["copy_tx"])
    for program in stats["programs"]:
        for key in ("seen", "passed"):
            assert value(metrics, f"millrace_program_{key}_packets_total",
                         device=program["interface"]) == program[key]
    assert value(metrics, "millrace_worker_balance_frames", worker="0") == 0
    assert value(metrics, "millrace_worker_frames", worker="0") == stats["workers"][0]["total"]
    assert value(metrics, "millrace_port_up", port="d0") == 1
    assert value(metrics, "millrace_port_mtu_bytes", port="d1") == 1500
    assert value(metrics, "millrace_build_info", version=result(sock, "version")["version"]) == 1
    daemon.stop()


def test_all_who_ask_at_once_get_the_same_snapshot(rig1, millraced, sock, client):
    """A worker is asked once for all of them."""
    rig = rig1()
    daemon = start(millraced, rig.dut, sock, "-i", "d0")
    one = client(sock)
    for _ in range(20):
        for _ in range(2):
            one.request("stats")
    seconds = [one.line()["result"]["seconds"] for _ in range(40)]
    assert seconds == sorted(seconds)
    assert len(set(seconds)) < 20, "most came from a snapshot that another had asked for"
    daemon.stop()


# Who may ask


@pytest.mark.parametrize("how", ["effective", "supplementary"])
def test_members_of_the_group_may_look(rig1, millraced, sock, how):
    rig = rig1()
    daemon = start(millraced, rig.dut, sock, "-i", "d0", "--control-group", GROUP)
    seen = sock.stat()
    group = seen.st_gid
    assert stat.S_IMODE(seen.st_mode) == 0o660 and seen.st_uid == 0 and group != 0
    gid, groups = (group, []) if how == "effective" else (4321, [4322, group, 4323])

    def ask():
        with contextlib.closing(Client(sock)) as mine:
            return [mine.answer(command, **arguments) for command, arguments in (
                ("status", {}), ("stats", {}), ("ports", {}), ("plan", {}), ("metrics", {}),
                ("version", {}), ("reload", {}), ("set", {"port": "d0", "promiscuous": True}))]

    answers = as_user(4321, gid, groups, ask)
    assert [answer["ok"] for answer in answers] == [True] * 6 + [False] * 2, answers
    assert [code(answer) for answer in answers[6:]] == ["denied", "denied"]
    assert rig.dut.promiscuity("d0") == 0
    daemon.stop()


def test_others_may_nothing(rig1, millraced, sock):
    rig = rig1()
    daemon = start(millraced, rig.dut, sock, "-i", "d0", "--control-group", GROUP)

    def ask():
        with contextlib.closing(Client(sock)) as mine:
            return [mine.answer("version"), mine.line()]

    assert "PermissionError" in as_user(4321, 4321, [4322], ask)["error"]
    sock.chmod(0o666)  # the file is not what keeps them out
    answer, more = as_user(4321, 4321, [4322], ask)
    assert code(answer) == "denied" and more is None
    answer = as_user(0, 4321, [], lambda: Client(sock).answer("version"))
    assert answer["ok"] is True, "root, whatever its groups"
    daemon.stop()


def test_without_a_group_it_is_roots(rig1, millraced, sock):
    rig = rig1()
    daemon = start(millraced, rig.dut, sock, "-i", "d0")
    assert stat.S_IMODE(sock.stat().st_mode) == 0o600
    sock.chmod(0o666)
    answer = as_user(4321, 0, [0], lambda: Client(sock).answer("version"))
    assert code(answer) == "denied", "root's group is not the control group"
    daemon.stop()


def test_a_group_that_cannot_be_given_is_told(rig1, millraced, sock):
    rig = rig1()
    said = start(millraced, rig.dut, sock, "-i", "d0", "--control-group", "no-such-group",
                 ready=False).fails()
    assert "control group 'no-such-group': there is no such group" in said
    assert "groupadd --system no-such-group" in said
    said = start(millraced, rig.dut, sock, "-i", "d0", "--control-group", GROUP, ready=False,
                 wrap=without("cap_chown")).fails()
    assert "CAP_CHOWN" in said and str(sock) in said
    assert not sock.exists()
    said = millraced(rig.dut, "-i", "d0", "--control-group", GROUP, ready=False).fails(code=2)
    assert "--control-socket" in said


# The file


def test_the_socket_goes_with_the_daemon(rig1, millraced, sock):
    rig = rig1()
    daemon = start(millraced, rig.dut, sock, "-i", "d0")
    assert stat.S_ISSOCK(sock.stat().st_mode)
    daemon.stop()
    assert not sock.exists()
    start(millraced, rig.dut, sock, "-i", "d0", "-d", 1).ended(10)
    assert not sock.exists()


def test_a_socket_left_behind_is_replaced(rig1, millraced, sock):
    rig = rig1()
    start(millraced, rig.dut, sock, "-i", "d0").kill()
    assert sock.exists()
    status, _, err = millracectl(sock, "status")
    assert status == 1 and "nobody answers" in err and str(sock) in err
    daemon = start(millraced, rig.dut, sock, "-i", "d0")
    assert result(sock, "status")["pid"] == daemon.pid
    daemon.stop()


def test_a_live_socket_is_left_alone(rig2, millraced, sock):
    rig = rig2()
    daemon = start(millraced, rig.dut, sock, "-i", "d0")
    said = start(millraced, rig.dut, sock, "-i", "d1", ready=False).fails()
    assert f"control socket {sock}: a running daemon answers on it" in said
    assert set(rig.dut.attached()) == {"d0"}, "the second one touched nothing"
    assert result(sock, "status")["pid"] == daemon.pid
    daemon.stop()


def test_a_file_that_is_no_socket_is_left_alone(rig1, millraced, sock):
    rig = rig1()
    sock.write_text("precious")
    said = start(millraced, rig.dut, sock, "-i", "d0", ready=False).fails()
    assert f"control socket {sock}: there is a file that is no socket" in said
    assert sock.read_text() == "precious"
    said = start(millraced, rig.dut, sock / "none", "-i", "d0", ready=False).fails()
    assert str(sock / "none") in said
    said = start(millraced, rig.dut, sock.parent / "none/sock", "-i", "d0", ready=False).fails()
    assert f"mkdir -p {sock.parent}/none" in said


def test_of_many_that_start_at_once_one_has_the_socket(rig1, millraced, sock):
    """All find one left behind, and none takes the other's."""
    rig = rig1()
    start(millraced, rig.dut, sock, "-i", "d0").kill()
    many = [start(millraced, rig.dut, sock, "-i", "d0", ready=False) for _ in range(6)]
    wait_until(lambda: sum(one.running for one in many) <= 1, 20, "the others have given up")
    winner = next(one for one in many if one.running)
    for one in many:
        if one is not winner:
            assert "a running daemon answers on it" in one.fails()
    winner.wait_ready()
    assert result(sock, "status")["pid"] == winner.pid
    winner.stop()


# Clients of all kinds


def test_forty_clients(rig1, millraced, sock, client):
    rig = rig1()
    daemon = start(millraced, rig.dut, sock, "-i", "d0")
    many = [client(sock) for _ in range(40)]
    for one in many:
        one.request("version")
    answers = [one.line() for one in many]
    assert sum(answer["ok"] for answer in answers) == 32
    assert [code(a) for a in answers if not a["ok"]] == ["too_many_clients"] * 8
    for one in many:
        one.close()
    wait_until(lambda: Client(sock).answer("version")["ok"], 5, "a place is free again")
    daemon.stop()


def test_garbage_and_lines_of_a_mebibyte(rig1, millraced, sock, client):
    rig = rig1()
    daemon = start(millraced, rig.dut, sock, "-i", "d0")
    one = client(sock)
    one.send(b"\0\xff\x80{[[\n")
    assert code(one.line()) == "bad_request"
    one.send(b"[" * 60000 + b"\n")
    assert code(one.line()) == "bad_request"
    assert one.result("version")["protocol"] == 1
    large = client(sock)
    large.send(b"x" * (1 << 20) + b"\n")
    answer = large.line()
    assert code(answer) == "line_too_long" and "65536" in answer["error"]["message"]
    assert large.line() is None
    half = client(sock)
    half.send(b'{"version":1,')
    assert one.result("version")["protocol"] == 1
    half.send(b'"command":"version"}\n')
    assert half.line()["ok"]
    daemon.stop()


def test_clients_that_never_read_hold_up_no_frame_and_nobody(rig2, tap, millraced, sock, client):
    rig = rig2()
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = start(millraced, rig.dut, sock, "-l", "-i", "d0", "-i", "d1", waiting="poll")
    stop = threading.Event()

    def deaf():
        with contextlib.closing(Client(sock, timeout=0.2)) as one:
            while not stop.is_set():
                with contextlib.suppress(TimeoutError, OSError):
                    one.request("metrics")

    threads = [threading.Thread(target=deaf) for _ in range(8)]
    for thread in threads:
        thread.start()
    try:
        sent = [frames.numbered(n) for n in range(5000)]
        exchange(near, far, sent, sent)
        one = client(sock)
        for _ in range(20):
            assert one.result("stats")["workers"][0]["balance"] == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join(10)
    final = daemon.stop()
    assert total(final, "rx_packets") == total(final, "tx_packets") == 5000


# millracectl


def test_millracectl_prints_for_people_and_programs(rig2, tap, millraced, sock):
    rig = rig2()
    near, far = tap(rig.gen, "g0"), tap(rig.sink, "s0")
    daemon = start(millraced, rig.dut, sock, "-l", "-i", "d0", "-i", "d1")
    sent = [frames.numbered(n) for n in range(100)]
    exchange(near, far, sent, sent)
    daemon.quiet_record()
    for command in ("status", "stats", "ports", "plan", "metrics", "version"):
        status, out, err = millracectl(sock, command)
        assert (status, err) == (0, ""), command
        assert out.endswith("\n") and not out.startswith("{")
        status, out, err = millracectl(sock, command, "-j")
        assert (status, err) == (0, "") and out.count("\n") == 1
        assert set(json.loads(out)) == set(result(sock, command))
    text = millracectl(sock, "status")[1]
    assert text.startswith(f"millraced {result(sock, 'version')['version']}, pid {daemon.pid}, "
                           "running for ")
    assert re.search(r"^d1 +d1 +\d+ +up +\d+ s +1500 +veth +1/1 +native +\d+ +millrace +\w{16} +on$",
                     text, re.M)
    assert re.search(r"^total +- +100 +6000 +100 +6000$", millracectl(sock, "stats")[1], re.M)
    assert "forward main: patch, 1 worker" in millracectl(sock, "plan")[1]
    samples(millracectl(sock, "metrics")[1])
    daemon.stop()


def test_millracectl_repeats_with_rates(rig1, tap, millraced, sock, stream):
    rig = rig1()
    daemon = start(millraced, rig.dut, sock, "-i", "d0")
    stream(tap(rig.gen, "g0"), frames.numbered, 500)
    status, out, err = millracectl(sock, "stats", "-i", 1, "-n", 2)
    assert (status, err) == (0, "")
    blocks = out.strip("\n").split("\n\n")
    assert len(blocks) == 2 and all("RX-PPS" in block for block in blocks)
    rates = [int(re.search(r"^d0 +0 +(\d+) ", block, re.M)[1]) for block in blocks]
    assert all(rate > 0 for rate in rates)
    status, out, err = millracectl(sock, "-j", "stats", "-n", 3)
    lines = [json.loads(line) for line in out.splitlines()]
    assert status == 0 and len(lines) == 3
    seconds = [line["seconds"] for line in lines]
    assert seconds == sorted(seconds) and 1.5 < seconds[2] - seconds[0]
    daemon.stop()


def test_millracectl_ends_with_the_daemon(rig1, millraced, sock):
    rig = rig1()
    daemon = start(millraced, rig.dut, sock, "-i", "d0")
    with subprocess.Popen([MILLRACECTL, "-s", sock, "stats", "-i", "1"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as watching:
        assert "RX-PPS" in watching.stdout.readline() + watching.stdout.readline()
        daemon.stop()
        _, err = watching.communicate(timeout=10)
    assert watching.returncode == 1
    assert err == f"millracectl: {sock}: millraced has closed the connection: it has ended\n"


def test_millracectl_ends_with_its_reader(rig1, millraced, sock):
    rig = rig1()
    daemon = start(millraced, rig.dut, sock, "-i", "d0")
    with subprocess.Popen([MILLRACECTL, "-s", sock, "stats", "-i", "1"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as watching:
        watching.stdout.readline()
        watching.stdout.close()
        assert watching.wait(10) == 0
        assert watching.stderr.read() == ""
    with open("/dev/full", "w") as full:
        done = subprocess.run([MILLRACECTL, "-s", sock, "status"], stdout=full, text=True,
                              stderr=subprocess.PIPE, timeout=10)
    assert done.returncode == 1 and "standard output takes no text" in done.stderr
    daemon.stop()


def test_millracectl_says_what_to_type(rig1, millraced, sock):
    for arguments, says in ((["stat"], "did you mean stats?"),
                            (["xyzzyxyzzy"], "--help lists them"),
                            ([], "no command"), (["status", "d0"], "type: millracectl status"),
                            (["set", "port", "d0"],
                             "type: millracectl set port NAME promiscuous on|off"),
                            (["-x"], "unknown option"), (["--socket"], "needs a value"),
                            (["stats", "-i", "0"], "must be 1 to 86400"),
                            (["status", "-n", "2"], "-i and -n are for stats"),
                            (["--completion=zsh"], "must be bash")):
        status, out, err = millracectl(sock, *arguments)
        assert status == 2 and out == "" and says in err and err.count("\n") == 1, err
    status, _, err = millracectl(sock, "status")
    assert status == 1 and f"{sock}: no such socket" in err and "--control-socket" in err
    status, _, err = millracectl("x" * 200, "status")
    assert status == 1 and "1 to 107 characters" in err
    rig = rig1()
    daemon = start(millraced, rig.dut, sock, "-i", "d0")
    status, out, err = millracectl(sock, "reload")
    assert status == 1 and out == ""
    assert err.splitlines()[0].startswith("millraced runs from flags")
    assert "the running configuration stays" in err.splitlines()[1]
    daemon.stop()


def test_millracectl_tells_others_why(rig1, millraced, sock):
    """Its answer comes before it has said anything."""
    rig = rig1()
    daemon = start(millraced, rig.dut, sock, "-i", "d0")
    many = [Client(sock) for _ in range(32)]
    for one in many:
        one.result("version")
    status, out, err = millracectl(sock, "status")
    assert status == 1 and out == "" and "too many clients: 32 may be connected" in err
    for one in many:
        one.close()
    daemon.stop()


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_has_every_command(flag):
    done = subprocess.run([MILLRACECTL, flag], capture_output=True, text=True, timeout=10)
    assert done.returncode == 0 and done.stderr == ""
    for name in ("status", "stats [-i SEC] [-n N]", "ports", "plan", "metrics", "reload",
                 "set port NAME promiscuous on|off", "version", "--socket=PATH", "--json",
                 "--completion=SHELL", "--version"):
        assert f" {name} " in done.stdout, name


def complete(sock, *words):
    """What bash offers for the last word."""
    script = ("source <(\"$0\" --completion bash); PATH=$(dirname \"$0\"):$PATH; "
              "COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _millracectl; "
              "printf '%s\\n' \"${COMPREPLY[@]}\"")
    done = subprocess.run(["bash", "-c", script, MILLRACECTL, "millracectl", *map(str, words)],
                          capture_output=True, text=True, timeout=20)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout.split()


def test_completion_in_bash(rig2, millraced, sock):
    loaded = run("bash", "-c", "source <(\"$0\" --completion bash); complete -p millracectl",
                 MILLRACECTL)
    assert loaded == "complete -F _millracectl millracectl\n"
    rig = rig2()
    daemon = start(millraced, rig.dut, sock, "-r", "-i", "d0", "-i", "d1")
    assert complete(sock, "st") == ["status", "stats"]
    assert complete(sock, "") == ["status", "stats", "ports", "rules", "plan", "metrics", "fdb",
                                  "reload", "set", "confirm", "version"]
    assert complete(sock, "set", "") == ["port", "promiscuous"]
    assert complete(sock, "-s", sock, "set", "port", "") == ["d0", "d1"]
    assert complete(sock, "--socket", "=", sock, "set", "port", "d1", "") == ["promiscuous"]
    assert complete(sock, "set", "port", "d0", "promiscuous", "") == ["on", "off"]
    assert complete(sock, "fdb", "") == ["port", "vlan", "forward", "count", "add", "del", "flush"]
    assert complete(sock, "-s", sock, "fdb", "vlan", "7", "port", "") == ["d0", "d1"]
    assert complete(sock, "fdb", "vlan", "7", "") == ["port", "forward"]
    assert complete(sock, "fdb", "add", "") == ["port", "blocked", "vlan", "forward"]
    assert complete(sock, "fdb", "fl") == ["flush"] and complete(sock, "fdb", "vlan", "") == []
    assert "--interval=" in complete(sock, "stats", "--")
    assert "--interval=" not in complete(sock, "status", "--")
    assert complete(sock, "-s", f"{sock.parent}/s") == [str(sock)]
    daemon.stop()
