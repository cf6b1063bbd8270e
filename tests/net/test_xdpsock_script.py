"""A script that knows xdpsock's flags and rows, and nothing of millraced, works unchanged (RIG-1).

The parser below was written from xdpsock's documented formats alone: it shares no code with the
other tests, and takes no word that xdpsock does not print. Every report must be whole and right to
the character, on a pipe and in a file, from each of xdpsock's command lines in both spellings.
"""

import collections
import os
import re
import shutil
import signal
import subprocess
import time

import frames
import pytest
from daemon import MILLRACED, stopped
from lab import SLOWNESS, wait_until

# %-14.0f and %-14lu: the number, padded to 14; a longer one stands alone.
NUMBER = r"(?:(?=.{14}(?:\s|$))%(digits)s *|(?=\S{15})%(digits)s)"
HEAD = re.compile(r" sock(?P<number>\d+)@(?P<interface>[^\s:]+):(?P<queue>\d+) "
                  r"(?P<mode>rxdrop|txonly|l2fwd) (?P<attach>xdp-drv |xdp-skb )"
                  r"(?P<poll>poll\(\) )?")
COLUMNS = re.compile(r" {18} pps {11} pkts {10} (?P<seconds>\d+\.\d\d) +")
FRAG_COLUMNS = re.compile(r" {18} pps {11} pkts {10} fps {11} frags {9} (?P<seconds>\d+\.\d\d) +")
CALL_COLUMNS = f"{'':18} {'calls/s':14} {'count':14}"
IRQ_COLUMNS = f"{'':18} {'intrs/s':14} {'count':14}"
CYCLE_COLUMNS = " ".join([f"{'':18}"] + [f"{name:10}" for name in
                                         ("period", "min", "ave", "max", "cycle")])
EXTRA = ["rx dropped", "rx invalid", "tx invalid", "rx queue full", "fill ring empty",
         "tx ring empty"]
CALLS = ["rx empty polls", "fill fail polls", "copy tx sendtos", "tx wakeup sendtos", "opt polls"]

Report = collections.namedtuple("Report", "sockets calls cycle irqs")
Socket = collections.namedtuple("Socket", "head seconds rows")


class Parser:
    """Reads reports line by line. `digits` is what numbers are made of; some locales group them."""

    def __init__(self, text, digits=r"\d+"):
        assert text == "" or text.endswith("\n"), f"half a line at the end: {text[-60:]!r}"
        self._lines = text.split("\n")[:-1]
        self._at = 0
        self._number = NUMBER % {"digits": digits}

    def _peek(self, ahead=0):
        at = self._at + ahead
        return self._lines[at] if at < len(self._lines) else None

    def _next(self):
        line = self._peek()
        assert line is not None, f"half a report at the end, after {self._lines[-3:]}"
        self._at += 1
        return line

    def _row(self, name, columns=2):
        line = self._next()
        pattern = " ".join([f"{name:18}".replace(" ", r"\ ")] + [f"({self._number})"] * columns)
        match = re.fullmatch(pattern, line)
        assert match, f"{line!r} is no row {name!r} of {columns} columns"
        return tuple(int(re.sub(r"\D", "", value)) for value in match.groups())

    def _socket(self):
        head = HEAD.fullmatch(self._next())
        assert head, f"{self._lines[self._at - 1]!r} is no head of a socket"
        line = self._next()
        columns = COLUMNS.fullmatch(line)
        frags = None if columns else FRAG_COLUMNS.fullmatch(line)
        assert columns or frags, f"{line!r} are no columns"
        seconds = (columns or frags)["seconds"]
        assert line.endswith(f"{seconds:14}"), f"{line!r} is not padded"
        rows = {name: self._row(name, 2 if columns else 4) for name in ("rx", "tx")}
        if (self._peek() or "").startswith(EXTRA[0]):
            rows.update((name, self._row(name)) for name in EXTRA)
        return Socket(head.groupdict(), float(seconds), rows)

    def _tables(self):
        """What follows the sockets: call tables, the cycle, the interrupt."""
        calls, cycle, irqs = [], None, None
        while self._peek() == "" and not (self._peek(1) or "").startswith(" sock"):
            self._next()
            columns = self._next()
            if columns == CALL_COLUMNS and cycle is None and irqs is None:
                calls.append({name: self._row(name) for name in CALLS})
            elif columns == CYCLE_COLUMNS and cycle is None and irqs is None:
                match = re.fullmatch(f"{'Cyclic TX':18}" + r" (?=.{10})(\d+) *" * 5, self._next())
                assert match, f"{self._lines[self._at - 1]!r} is no cycle"
                cycle = tuple(map(int, match.groups()))
            elif columns == IRQ_COLUMNS and irqs is None:
                irqs = self._row("irqs")
            else:
                raise AssertionError(f"{columns!r} begins no table here")
        return calls, cycle, irqs

    def reports(self):
        reports = []
        while self._peek() is not None:
            sockets = []
            while self._peek() == "" and (self._peek(1) or "").startswith(" sock"):
                self._next()
                sockets.append(self._socket())
                if sockets[-1].head["number"] != str(len(sockets) - 1):
                    raise AssertionError(f"sockets out of turn: {sockets}")
                following = self._peek(1) or ""
                if following.startswith(" sock0@"):
                    break
            assert sockets, f"{self._peek()!r} begins no report"
            reports.append(Report(sockets, *self._tables()))
        return reports


class Script:
    """One run as a script makes it: xdpsock's arguments, output into a pipe or a file."""

    def __init__(self, namespace, arguments, tmp_path, into_file=False, environment=()):
        self.words = arguments if isinstance(arguments, list) else arguments.split()
        self.path = tmp_path / "stdout" if into_file else None
        self._errors = open(tmp_path / "stderr", "w+")
        environment = {**os.environ, "LC_ALL": "C", **dict(environment)}
        out = open(self.path, "w") if into_file else subprocess.PIPE
        self.process = subprocess.Popen(namespace.command(MILLRACED, *self.words), stdout=out,
                                        stderr=self._errors, stdin=subprocess.DEVNULL,
                                        env=environment)
        if into_file:
            out.close()
        else:
            os.set_blocking(self.process.stdout.fileno(), False)
        self._read = b""

    @property
    def errors(self):
        self._errors.seek(0)
        return self._errors.read()

    def wait_running(self):
        wait_until(lambda: "forwarding" in self.errors or self.process.poll() is not None,
                   10 * SLOWNESS, f"{self.words} runs")
        assert self.process.poll() is None, f"{self.words}: {self.errors}"

    def output(self):
        """What is on standard output so far."""
        if self.path:
            return self.path.read_text()
        while True:
            piece = self.process.stdout.read()
            if not piece:
                return self._read.decode()
            self._read += piece

    def end(self, seconds, code=0):
        try:
            got = self.process.wait(seconds + 5 * SLOWNESS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.words}: did not end: {self.errors}") from None
        text = self.output()
        assert got == code, f"{self.words}: exit {got}, {self.errors}"
        return text

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        self._errors.close()
        if self.process.stdout:
            self.process.stdout.close()


@pytest.fixture
def script(closing, tmp_path):
    def start(namespace, arguments, **options):
        return closing(Script(namespace, arguments, tmp_path, **options))
    return start


def consistent(reports, seconds=3):
    """What a script relies on beyond the format: times, and rates that belong to the counts."""
    assert seconds <= len(reports) <= seconds + 1, f"{len(reports)} reports in {seconds} s"
    total = sum(report.sockets[0].seconds for report in reports)
    assert total == pytest.approx(seconds, abs=0.5 * SLOWNESS)
    before = {}
    for report in reports:
        for socket in report.sockets:
            for name, (rate, count, *_) in socket.rows.items():
                key = socket.head["number"], name
                assert count >= before.get(key, 0), f"{key}: {count} after {before[key]}"
                if socket.seconds > 0.5:
                    assert rate == pytest.approx((count - before.get(key, 0)) / socket.seconds,
                                                 rel=0.01, abs=1), f"{key}"
                before[key] = count


RECEIVING = {
    "the default mode": "-i d0",
    "short": "-r -i d0 -q 0 -n 1 -d 3 -N -c",
    "long": "--rxdrop --interface=d0 --queue=0 --interval=1 --duration=3 --xdp-native --copy",
    "long, values apart": "--rxdrop --interface d0 --queue 0 --interval 1 --duration 3 --xdp-skb",
    "short, values attached": "-r -id0 -q0 -n1 -S",
    "short, in one word": "-rpSi d0 -n 1",
    "abbreviated": "--rx --interf=d0 --que=0 --dur=2 --extra --app-stats",
    "poll": "-r -i d0 -p -N",
    "extra": "-r -i d0 -x -n 1",
    "app": "-r -i d0 -a -n 1",
    "extra and app, long": "--rxdrop -i d0 --extra-stats --app-stats",
    "batch and frame size": "-r -i d0 -b 32 -f 2048",
    "no need_wakeup": "-r -i d0 -m -c",
    "no need_wakeup, long": "-r -i d0 --no-need-wakeup --batch-size=128 --frame-size=2048",
    "busy poll": "-r -i d0 -B -b 64 -x",
    "busy poll, long": "-r -i d0 --busy-poll --poll",
    "unaligned": "-r -i d0 -u -f 3000",
    "unaligned, long": "-r -i d0 --unaligned",
    "shared UMEM": "-r -i d0 -M -x -a",
    "shared UMEM, long": "-r -i d0 --shared-umem",
    "frags": "-r -i d0 -F",
    "frags, long, with the rest": "-r -i d0 --frags -x -a",
    "reduced": "-r -i d0 -R",
    "reduced, long": "-r -i d0 --reduce-cap",
    "interrupt": "-r -i d0 -I LOC",
    "interrupt, long, with the rest": ["-r", "-i", "d0", "--irq-string=Local timer", "-x", "-a"],
    "priority": "-r -i d0 -p -W FIFO -U 10",
    "priority, long": "-r -i d0 -p --policy=fifo --schpri=1",
    "forwarding": "-l -i d0 -q 0 -N -c -n 1 -d 3",
    "forwarding, long": "--l2fwd --interface=d0 --xdp-skb",
    "forwarding, all rows": "-l -i d0 -x -a -F -I LOC -p",
    "forwarding, busy, one UMEM": "-l -i d0 -B -M -m",
    "forwarding, unaligned": "-l -i d0 -u",
}


def has(words, short, long):
    """Whether a flag without a value is among the words, also in a word of several."""
    return any(word == long or re.fullmatch(rf"-[a-zA-Z]*{short}[a-zA-Z]*", word)
               for word in words)


def check_shape(reports, words):
    """Exactly the rows and tables that were asked for, in every report."""
    for report in reports:
        [socket] = report.sockets
        assert (socket.head["interface"], socket.head["queue"]) == ("d0", "0")
        assert bool(socket.head["poll"]) == has(words, "p", "--poll")
        if has(words, "S", "--xdp-skb") or has(words, "N", "--xdp-native"):
            assert socket.head["attach"] == ("xdp-skb " if has(words, "S", "--xdp-skb")
                                             else "xdp-drv ")
        extra = has(words, "x", "--extra-stats") or "--extra" in words
        assert list(socket.rows) == ["rx", "tx"] + (EXTRA if extra else [])
        assert len(socket.rows["rx"]) == (4 if has(words, "F", "--frags") else 2)
        assert len(report.calls) == has(words, "a", "--app-stats")
        assert (report.irqs is not None) == any(word in ("-I",) or word.startswith("--irq-string")
                                                for word in words)


def words_of(arguments):
    return arguments if isinstance(arguments, list) else arguments.split()


def duration_of(words):
    """Words that end by themselves, and after how many seconds."""
    text = " ".join(words)
    match = re.search(r"(?:-d |--dur\w*[= ])(\d+)", text)
    return words if match else [*words, "-d", "1"], int(match[1]) if match else 1


@pytest.mark.parametrize("arguments, into_file",
                         [(words_of(line), at % 2 == 1) for at, line in
                          enumerate(RECEIVING.values())], ids=RECEIVING.keys())
def test_receiving(rig1, tap, script, arguments, into_file):
    rig = rig1()
    wire = tap(rig.gen, "g0")
    words, seconds = duration_of(arguments)
    run = script(rig.dut, words, into_file=into_file)
    run.wait_running()
    wire.send_all(frames.numbered(n) for n in range(300))
    reports = Parser(run.end(seconds)).reports()
    consistent(reports, seconds)
    check_shape(reports, words)
    forwards = has(words, "l", "--l2fwd")
    for report in reports:
        assert report.sockets[0].head["mode"] == ("l2fwd" if forwards else "rxdrop")
    rows = reports[-1].sockets[0].rows
    assert rows["rx"][1] == 300 and rows["tx"][1] == (300 if forwards else 0)
    if has(words, "F", "--frags"):
        assert rows["rx"][3] == rows["rx"][1] and rows["tx"][3] == rows["tx"][1]
    if reports[-1].irqs:
        assert 0 < reports[0].irqs[1] <= reports[-1].irqs[1]


TO, FROM = "02:aa:00:00:00:0a", "02:bb:00:00:00:0b"
# {name: (arguments, frames, bytes with FCS, payload begins so, tag)}
SENDING = {
    "short": ("-t -i d0 -C 1000", 1000, 64, "12345678", None),
    "long": ("--txonly --interface=d0 --queue=0 --tx-pkt-count=1000 --tx-pkt-size=128 "
             "--tx-pkt-pattern=0xdeadbeef --retries=2", 1000, 128, "deadbeef", None),
    "with a tag, short": ("-t -i d0 -C 100 -O 1 -s 1500 -P ffff0001 -V -J 7 -K 3 -N -x", 100, 1500,
                          "ffff0001", 3 << 13 | 7),
    "with a tag, long": ("--txonly -i d0 --tx-pkt-count 77 --tx-vlan --tx-vlan-id=4094 "
                         "--tx-vlan-pri=7 --xdp-skb -a", 77, 64, "12345678", 7 << 13 | 4094),
    "with the default tag": ("-t -i d0 -C 10 -V", 10, 64, "12345678", 1),
    "with addresses, short": (f"-t -i d0 -C 10 -G {TO} -H {FROM}", 10, 64, "12345678", None),
    "with addresses, long": (f"-t -i d0 -C 10 --tx-dmac={TO} --tx-smac={FROM} -p", 10, 64,
                             "12345678", None),
    "stamped, short": ("-t -i d0 -C 200 -y -w REALTIME -s 100", 200, 100, "be9be955", None),
    "stamped, long": ("-t -i d0 -C 200 --tstamp --clock=tai", 200, 64, "be9be955", None),
    "stamped with a tag, raised": ("-t -i d0 -C 20 -y -V -w REALTIME", 20, 66, "be9be955", 1),
    "small batches": ("-t -i d0 -C 1001 -b 16 -S -m -x -a", 1001, 64, "12345678", None),
    "all kinds of sockets": ("-t -i d0 -C 999 -M -B -u -F -R", 999, 64, "12345678", None),
}


@pytest.mark.parametrize("arguments, count, size, payload, tag", SENDING.values(),
                         ids=SENDING.keys())
def test_sending(rig1, tap, script, arguments, count, size, payload, tag):
    """It sends that many frames of that kind, ends by itself, and its last rows say so."""
    rig = rig1()
    wire = tap(rig.gen, "g0")
    run = script(rig.dut, arguments)
    text = run.end(5)
    reports = Parser(text).reports()
    check_shape(reports, run.words)
    assert reports[-1].sockets[0].head["mode"] == "txonly"
    rows = reports[-1].sockets[0].rows
    assert rows["tx"][1] == count and rows["rx"][1] == 0
    got = wire.frames(count + 1, 0.3)
    assert len(got) == count
    if payload != "be9be955":
        assert set(got) == {got[0]}, "all alike"
    for number, frame in enumerate(got):
        assert len(frame) == size - 4
        if TO in arguments:
            assert frame[:12] == bytes.fromhex((TO + FROM).replace(":", ""))
        if tag is not None:
            assert frame[12:16] == bytes.fromhex("8100") + tag.to_bytes(2, "big")
            frame = frame[:12] + frame[16:]
        frames.check_udp(frame)
        begin = bytes.fromhex(payload)
        assert frame[42:46] == begin
        if payload == "be9be955":
            assert int.from_bytes(frame[46:50], "big") == number
            sent_at = int.from_bytes(frame[50:54], "big")
            now = time.time() if "-w" in arguments or "--clock" in arguments else time.monotonic()
            assert abs(sent_at - now) < 60 + 40, "TAI is 37 s ahead, if it is set at all"
        else:
            rest = frame[46:]
            assert rest == (begin * (len(rest) // 4 + 1))[:len(rest)]


def test_large_packets_in_fragments(rig1, tap, script):
    rig = rig1()
    rig.gen.ip("link", "set", "g0", "mtu", 9000)
    rig.dut.ip("link", "set", "d0", "mtu", 9000)
    wire = tap(rig.gen, "g0")
    run = script(rig.dut, "-t -i d0 -F -s 9000 -C 50")
    reports = Parser(run.end(5)).reports()
    rx, tx = (reports[-1].sockets[0].rows[name] for name in ("rx", "tx"))
    assert rx == (0, 0, 0, 0) and tx[1] == 50 and tx[3] == 3 * 50
    got = wire.frames(51, 0.3)
    assert [len(frame) for frame in got] == [8996] * 50
    frames.check_udp(got[0])
    run = script(rig.dut, "-r -i d0 --frags -N -d 2")
    run.wait_running()
    wire.send_all((frames.numbered(n, 8000) for n in range(40)), burst=8)
    reports = Parser(run.end(2)).reports()
    rate, count, frag_rate, frags = reports[-1].sockets[0].rows["rx"]
    assert count == 40 and frags == 3 * 40


@pytest.mark.parametrize("arguments", [
    "-t -i d0 -T 10000 -b 8 -a -d 3 -n 1", "--txonly -i d0 --tx-cycle=10000 --batch-size=8 "
    "--app-stats --duration=3 --policy=FIFO --schpri=20 --tstamp --clock=MONOTONIC -x",
], ids=["short", "long"])
def test_the_cycle_table(rig1, script, arguments):
    rig = rig1()
    reports = Parser(script(rig.dut, arguments).end(3)).reports()
    consistent(reports)
    for report in reports:
        period, least, mean, most, cycles = report.cycle
        assert period == 10000 * 1000
        assert least <= mean <= most < 3 * 10**9
    assert 250 / SLOWNESS <= cycles <= 301
    assert abs(reports[-1].sockets[0].rows["tx"][1] - 8 * cycles) <= 8


def test_call_rows_count_what_they_say(rig1, tap, script):
    rig = rig1()
    wire = tap(rig.gen, "g0")
    counts = {}
    for waiting in ("--wait=spin", "-p"):
        run = script(rig.dut, f"-l -i d0 -c -a -d 2 {waiting}")
        run.wait_running()
        wire.send_all(frames.numbered(n) for n in range(300))
        # The first: at its end it waits for frames under way, with poll() whatever was asked for.
        [calls] = Parser(run.end(2)).reports()[0].calls
        counts[waiting] = {name: count for name, (_, count) in calls.items()}
    for waiting, count in counts.items():
        assert count["copy tx sendtos"] >= 300 / 64, "each takes a batch at most"
        assert count["tx wakeup sendtos"] == 0, "none is zero-copy"
        assert count["rx empty polls"] > 0
    spins, polls = counts.values()
    assert spins["opt polls"] == 0 and polls["opt polls"] > 0
    assert spins["rx empty polls"] > polls["rx empty polls"]


def test_extra_rows_name_what_the_kernel_dropped(rig1, tap, script):
    """Stopped, the process takes nothing off its ring of 2,048."""
    rig = rig1()
    wire = tap(rig.gen, "g0")
    run = script(rig.dut, "-r -i d0 -N -c -x -d 3")
    run.wait_running()
    with stopped(run.process.pid):
        wire.send_all(frames.numbered(n) for n in range(3000))
    rows = Parser(run.end(3)).reports()[-1].sockets[0].rows
    assert rows["rx queue full"][1] >= 3000 - 2048 - 64
    assert rows["rx"][1] + rows["rx queue full"][1] + rows["rx dropped"][1] == 3000
    assert rows["rx invalid"][1] == rows["tx invalid"][1] == 0


def test_several_sockets(rig1, script):
    rig = rig1(queues=2)
    reports = Parser(script(rig.dut, "-r -i d0 -q 0-1 -M -x -a -d 2").end(2)).reports()
    for report in reports:
        assert [socket.head["queue"] for socket in report.sockets] == ["0", "1"]
        assert len(report.calls) == 2


@pytest.mark.parametrize("arguments", ["-t -i d0 -Q -C 100 -x -a", "-r -i d0 --quiet -d 1 -I LOC"],
                         ids=["short", "long"])
def test_quiet(rig1, script, arguments):
    rig = rig1()
    run = script(rig.dut, arguments)
    assert run.end(3) == ""
    assert "millraced: forwarding" in run.errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ended_by_a_signal(rig1, script, number):
    """The last report is there; SIGINT is heard also with -p and no traffic."""
    rig = rig1()
    run = script(rig.dut, "-r -i d0 -p -n 10 -x -a")
    run.wait_running()
    time.sleep(0.2)
    run.process.send_signal(number)
    started = time.monotonic()
    [report] = Parser(run.end(2)).reports()
    assert time.monotonic() - started < 2 * SLOWNESS
    assert report.sockets[0].seconds < 2 * SLOWNESS


def test_zero_copy_that_cannot_be_had_is_refused(rig1, script):
    rig = rig1()
    for flag in ("-z", "--zero-copy"):
        run = script(rig.dut, f"-r -i d0 {flag}")
        assert run.end(3, code=1) == ""
        assert "d0 q0" in run.errors


def test_an_interrupt_that_is_not_there_is_refused(rig1, script):
    rig = rig1()
    run = script(rig.dut, "-r -i d0 -I nosuchinterrupt")
    assert run.end(3, code=1) == ""
    assert re.fullmatch(r"millraced: error: -I nosuchinterrupt: not found in /proc/interrupts.*\n",
                        run.errors), run.errors


def whole(run):
    """The reports on the output so far; a file's last write may be under way for a moment."""
    for _ in range(5):
        try:
            return Parser(run.output()).reports()
        except AssertionError:
            if not run.path:
                raise
            time.sleep(0.01)
    return Parser(run.output()).reports()


@pytest.mark.parametrize("into_file", [False, True], ids=["pipe", "file"])
def test_each_report_is_whole_when_it_is_there(rig1, script, into_file):
    """Nothing waits in a buffer: whenever one looks, there are whole reports, one a second."""
    rig = rig1()
    run = script(rig.dut, "-t -i d0 -p -x -a -F -I LOC -d 3", into_file=into_file)
    run.wait_running()
    started, seen = time.monotonic(), []
    while run.process.poll() is None:
        seen.append((time.monotonic() - started, len(whole(run))))
        time.sleep(0.02)
    assert all(count >= int(when - 0.5 * SLOWNESS) for when, count in seen), seen
    assert len(whole(run)) >= 3


@pytest.fixture
def grouping(tmp_path):
    """Environment of a locale that groups by three; made here, since a small host has none."""
    if not shutil.which("localedef"):
        pytest.skip("no localedef here, so no locale that groups")
    source = tmp_path / "source"
    source.write_text("""escape_char /
comment_char %
LC_NUMERIC
decimal_point "."
thousands_sep ","
grouping 3;3
END LC_NUMERIC
""")
    made = subprocess.run(["localedef", "--no-archive", "-c", "-i", source, "-f", "ANSI_X3.4-1968",
                           tmp_path / "grouping"], capture_output=True, text=True)
    if not (tmp_path / "grouping/LC_NUMERIC").exists():
        pytest.skip(f"localedef makes no locale here: {made.stderr[:200]}")
    return {"LOCPATH": str(tmp_path), "LC_ALL": "grouping"}


def test_a_locale_that_groups(rig1, script, grouping):
    rig = rig1()
    run = script(rig.dut, "-t -i d0 -C 123456 -x -a -F", environment=grouping)
    text = run.end(10)
    reports = Parser(text, digits=r"\d{1,3}(?:,\d{3})*").reports()
    assert reports[-1].sockets[0].rows["tx"][1] == 123456
    assert f"{'tx':18} " in text and " 123,456       " in text


@pytest.mark.parametrize("name", ["C", "C.UTF-8", "POSIX", "xx_XX.no-such-locale"])
def test_locales_that_do_not_group(rig1, script, name):
    rig = rig1()
    text = script(rig.dut, "-t -i d0 -C 123456", environment={"LC_ALL": name}).end(10)
    assert Parser(text).reports()[-1].sockets[0].rows["tx"][1] == 123456
    assert "," not in text
