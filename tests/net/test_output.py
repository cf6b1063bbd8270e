"""What is printed: xdpsock's rows, JSON lines, both flushed each interval; when it ends (RIG-1)."""

import re
import signal
import time

import frames
import pytest
from daemon import BOUND, REPOSITORY, total
from lab import SLOWNESS

HEAD = re.compile(r" sock(\d+)@d0:(\d+) (rxdrop|txonly|l2fwd) (xdp-drv |xdp-skb )(poll\(\) )?")
COLUMNS = re.compile(r"\s+pps\s+pkts\s+(\d+\.\d\d)\s*")
ROW = re.compile(r"(rx|tx)\s+(\d+)\s+(\d+)\s*")
DOCUMENTED = (REPOSITORY / "docs/report-json.md").read_text()
SOCKET = {
    "interface": str, "queue": int, "mode": str, "attach": str, "zero_copy": bool,
    "need_wakeup": bool, "busy_poll": str, "rx_packets": int, "rx_bytes": int, "tx_packets": int,
    "tx_bytes": int, "rx_descriptors": int, "tx_descriptors": int, "flooded": int,
    "copies": int, "probes": int, "partial_checksums": int,
    "drops": dict, "rx_dropped": int, "rx_invalid_descs": int, "tx_invalid_descs": int,
    "rx_ring_full": int, "rx_fill_ring_empty_descs": int, "tx_ring_empty_descs": int,
    "oversize": int, "calls": dict, "fill": int, "rx": int, "tx": int, "completion": int,
}
CALLS = {name: int for name in ("rx_empty", "fill_fail", "copy_tx", "wake_tx", "poll")}
PROGRAM = {"interface": str, "seen": int, "passed": int, "departed": int, "unexplained": int}
WORKER = {name: int for name in ("cpu", "total", "pool", "kernel", "lost", "hand_over", "handed",
                                      "reclaimed", "balance")}


def parse_rows(lines):
    """Blocks of xdpsock's rows: each a (head match, seconds, {rx|tx: (rate, total)})."""
    blocks, at = [], 0
    while at < len(lines):
        assert lines[at] == "", f"a blank line starts a block: {lines[at]!r}"
        head, columns, rx, tx = lines[at + 1:at + 5]
        match = HEAD.fullmatch(head)
        assert match, f"{head!r}"
        seconds = COLUMNS.fullmatch(columns).group(1)
        want = "%-18s %-14s %-14s %-14.2f" % ("", "pps", "pkts", float(seconds))
        assert columns == want, f"{columns!r} is not {want!r}"
        rows = {}
        for line, name in ((rx, "rx"), (tx, "tx")):
            _, rate, count = ROW.fullmatch(line).groups()
            want = "%-18s %-14d %-14d" % (name, int(rate), int(count))
            assert line == want, f"{line!r} is not {want!r}"
            rows[name] = (int(rate), int(count))
        blocks.append((match, float(seconds), rows))
        at += 5
    return blocks


@pytest.mark.parametrize("attach, waiting", [("native", "spin"), ("skb", "poll")])
@pytest.mark.parametrize("flag, name", [("-r", "rxdrop"), ("-t", "txonly"), ("-l", "l2fwd")])
def test_rows_are_xdpsocks(rig1, tap, millraced, attach, waiting, flag, name):
    rig = rig1()
    wire = tap(rig.gen, "g0")
    daemon = millraced(rig.dut, flag, "-i", "d0", attach=attach, waiting=waiting, json_lines=False)
    if flag != "-t":
        wire.send_all(frames.numbered(n) for n in range(500))
    time.sleep(1.3)
    daemon.stop()
    blocks = parse_rows([text for _, text in daemon.out])
    assert len(blocks) >= 2, "one each interval and one at the end"
    for head, _, rows in blocks:
        assert head.group(1, 2) == ("0", "0") and head.group(3) == name
        assert head.group(4) == {"native": "xdp-drv ", "skb": "xdp-skb "}[attach]
        assert bool(head.group(5)) == (waiting == "poll")
    last = blocks[-1][2]
    if flag == "-t":
        assert last["tx"][1] > 0 and last["rx"][1] == 0
    else:
        assert last["rx"][1] == 500 and last["tx"][1] == (500 if flag == "-l" else 0)


def test_rate_is_frames_by_seconds_of_the_interval(rig1, millraced):
    rig = rig1()
    daemon = millraced(rig.dut, "-t", "-i", "d0", "-d", 4, json_lines=False)
    assert daemon.wait(8)[0] == 0
    blocks = parse_rows([text for _, text in daemon.out])
    before = 0
    for _, seconds, rows in blocks:
        rate, count = rows["tx"]
        if seconds >= 0.5:
            assert rate == pytest.approx((count - before) / seconds, rel=0.02)
        before = count
    assert before > 0


@pytest.mark.parametrize("json_lines", [True, False], ids=["json", "rows"])
def test_output_on_a_pipe_is_flushed_every_interval(rig1, millraced, json_lines):
    """Nothing waits for a buffer to fill: a report is there about every second."""
    rig = rig1()
    daemon = millraced(rig.dut, "-i", "d0", json_lines=json_lines)
    time.sleep(3.6)
    stamps = sorted({round(when, 1) for when, _ in daemon.out})
    daemon.send(signal.SIGTERM)
    assert daemon.wait(5)[0] == 0
    assert len(stamps) >= 3, stamps
    gaps = [b - a for a, b in zip(stamps, stamps[1:])]
    assert min(gaps) > 0.7 and max(gaps) < 1.4 * SLOWNESS, gaps


def test_interval_is_the_one_asked_for(rig1, millraced):
    rig = rig1()
    daemon = millraced(rig.dut, "-i", "d0", "-n", 2, "-d", 5)
    final = daemon.ended(9)
    seconds = [record["seconds"] for record in daemon.records]
    assert [round(value) for value in seconds[:2]] == [2, 4], seconds
    assert final["seconds"] == pytest.approx(5, abs=0.7 * SLOWNESS)


def test_every_field_of_the_json_report_is_documented():
    for name in ("seconds", *SOCKET, *CALLS, *PROGRAM, *WORKER):
        assert f"`{name}`" in DOCUMENTED, name


def check_types(record, schema):
    assert set(record) == set(schema)
    for key, kind in schema.items():
        assert type(record[key]) is kind, f"{key}: {record[key]!r}"
        if kind is int and key not in ("kernel",):
            assert record[key] >= 0, f"{key}: {record[key]}"


@pytest.mark.parametrize("attach, flags, name", [
    ("native", ["-r", "-i", "d0"], "rxdrop"),
    ("native", ["-t", "-i", "d0"], "txpush"),
    ("skb", ["-l", "-i", "d0"], "l2fwd"),
    ("skb", ["-l", "-i", "d0", "-i", "d1"], "patch"),
], ids=["rxdrop", "txpush", "l2fwd", "patch"])
def test_json_lines_have_the_documented_fields(rig2, millraced, attach, flags, name):
    rig = rig2()
    daemon = millraced(rig.dut, *flags, attach=attach)
    daemon.next_record()
    daemon.stop()
    records = daemon.records
    assert len(records) >= 2
    ports = flags.count("-i")
    for record in records:
        assert set(record) == {"seconds", "sockets", "programs", "workers"}
        assert type(record["seconds"]) in (int, float)
        assert [len(record[key]) for key in ("sockets", "programs", "workers")] == [ports, ports, 1]
        for socket in record["sockets"]:
            check_types(socket, SOCKET)
            assert socket["attach"] == attach
            assert socket["mode"] == name
            assert all(type(count) is int for count in socket["drops"].values())
            check_types(socket["calls"], CALLS)
            assert all(f"`{name}`" in DOCUMENTED for name in socket["drops"])
        for program in record["programs"]:
            check_types(program, PROGRAM)
        for worker in record["workers"]:
            check_types(worker, WORKER)
    assert [record["seconds"] for record in records] == \
        sorted({record["seconds"] for record in records})


def test_totals_never_fall_and_start_at_zero(rig1, tap, millraced):
    rig = rig1()
    wire = tap(rig.gen, "g0")
    daemon = millraced(rig.dut, "-l", "-i", "d0")
    for _ in range(3):
        wire.send_all(frames.numbered(n) for n in range(300))
        daemon.next_record()
    final = daemon.stop()
    for field in ("rx_packets", "rx_bytes", "tx_packets", "tx_bytes"):
        values = [total(record, field) for record in daemon.records]
        assert values == sorted(values), values
    assert total(final, "rx_packets") == 900


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it_at_once_also_when_idle(rig1, millraced, attach, waiting, number):
    """xdpsock with -p and no traffic ignores SIGINT; and nobody waits for the interval to pass."""
    rig = rig1()
    daemon = millraced(rig.dut, "-r", "-i", "d0", "-n", 60, attach=attach, waiting=waiting)
    time.sleep(0.2)
    daemon.stop(number)
    assert len(daemon.records) == 1, "the final line"


def test_duration_ends_it(rig1, millraced, waiting):
    rig = rig1()
    started = time.monotonic()
    daemon = millraced(rig.dut, "-r", "-i", "d0", "-d", 2, waiting=waiting)
    daemon.ended(8)
    assert 2 <= time.monotonic() - started < 4 + 2 * SLOWNESS


def test_start_lines_precede_the_ready_line(rig2, millraced, attach):
    rig = rig2(queues=2)
    daemon = millraced(rig.dut, "-l", "-i", "d0", "-i", "d1", "-q", "0-1", attach=attach)
    daemon.stop()
    lines = daemon.stderr.split("\n")
    assert lines.count("millraced: forwarding") == 1
    ready = lines.index("millraced: forwarding")
    assert len(daemon.bound) == 4
    assert all(BOUND.match(line) is None for line in lines[ready:]), lines
