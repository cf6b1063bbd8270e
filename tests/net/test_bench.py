"""scripts/bench: that a short run measures and leaves nothing, and how it reads its peers."""

import csv
import os
import re
import shutil
import subprocess
import sys
import types

import pytest
from daemon import MILLRACED, REPOSITORY
from flood import FLOOD

sys.path.insert(0, str(REPOSITORY / "scripts"))

from benchlib import programs, tool  # noqa: E402
from benchlib.cells import Cell, Place, cells_of, places_of  # noqa: E402
from benchlib.measure import Result, gen_argvs, packets_at  # noqa: E402
from benchlib.report import table  # noqa: E402

OPTIONS = types.SimpleNamespace(seconds=1, cpu_forward=0)
SPIN = Cell("rxdrop", "native", "spin", "two", 64)

# Of the plain build, as FLOOD: sanitized ones have no programs that measure by themselves.
MEASURED = f"--millraced={FLOOD.parents[2] / 'millraced'}"

pytestmark = pytest.mark.alone


def bench(*arguments, timeout=60):
    environment = {**os.environ, "TESTPMD": "none", "XDPSOCK": "", "XSK_FWD": ""}
    return subprocess.run([REPOSITORY / "scripts/bench", *arguments], env=environment, text=True,
                          capture_output=True, timeout=timeout)


def test_a_short_run_measures_every_cell_and_says_where_from(tmp_path):
    file = tmp_path / "results.csv"
    done = bench("--rounds=1", "--seconds=1", "--modes=rxdrop,l2fwd", "--attach=native",
                 "--wait=spin", "--cores=two,one", "--batch=32", f"--csv={file}",
                 f"--millraced={MILLRACED}", f"--flood={FLOOD}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# duration   about a minute: 4 runs" in done.stdout
    with open(file, encoding="utf-8") as text:
        rows = list(csv.DictReader(text))
    assert [(row["mode"], row["cores"]) for row in rows] == [
        ("rxdrop", "two"), ("rxdrop", "one"), ("l2fwd", "two"), ("l2fwd", "one")]
    for row in rows:
        assert float(row["kpps"]) > 0, row
        assert f"{MILLRACED} -" in row["command"] and " -b 32 " in row["command"]
        assert row["kernel"].startswith(os.uname().release)
        assert row["version"].startswith("millraced ")
    assert "mrbench-" not in subprocess.check_output(["ip", "netns"], text=True)


def test_what_cannot_be_measured_is_said_and_the_rest_goes_on():
    done = bench("--rounds=2", "--seconds=1", "--modes=rxdrop", "--attach=native", "--wait=spin",
                 f"--millraced={MILLRACED}", "--compare=/bin/false", f"--flood={FLOOD}")
    assert done.returncode == 1
    assert "! round 1,2: rxdrop native spin two 64 other: /bin/false ended with 1" in done.stdout
    assert "failed" in done.stdout


def test_txpush_has_no_cell_on_a_shared_core():
    lists = dict(modes=["rxdrop", "txpush"], attach=["skb"], wait=["poll"], batch=[32, 64])
    cells = cells_of(types.SimpleNamespace(group="modes", cores=["two", "one"], **lists))
    assert [str(cell) for cell in cells if cell.mode == "txpush"] == [
        "txpush skb poll two 32", "txpush skb poll two 64"]
    assert len(cells) == 6


def test_a_bridge_is_held_against_a_patch_and_the_kernels_bridge():
    lists = dict(attach=["native"], wait=["spin"], cores=["two", "one"], batch=[64])
    places = {"two": Place((0,), (1,)), "one": Place((1,), (1,))}
    options = types.SimpleNamespace(group="bridge", seconds=1, places=places, flood="flood",
                                    size=60, vlans=["none"], **lists)
    cells = cells_of(options)
    assert [(cell.mode, cell.cores) for cell in cells] == [
        ("patch", "two"), ("bridge", "two"), ("patch", "one"), ("bridge", "one")]
    assert cells[1].base == cells[0] and cells[3].base == cells[2]
    # Frames both ways, each end's source being the other's destination.
    one, other = gen_argvs(cells[1], options)
    assert "g0" in one and "--smac" not in one
    assert other[other.index("--smac"):][:4] == [
        "--smac", "02:00:00:00:00:02", "--dmac", "02:00:00:00:00:01"]
    linux, steered = (programs.LinuxBridge(options, name, name != "linux")
                      for name in ("linux", "linux+rps"))
    assert [linux.suits(cell) for cell in cells] == [False, True, False, True]
    assert [steered.suits(cell) for cell in cells] == [False, True, False, False]
    assert "echo 2 >/sys/class/net/d0/queues/rx-0/rps_cpus" in steered.argv(cells[1])[2]
    # One port in a VLAN without a tag, the other with, and so do the ends send.
    options.vlans = ["access-trunk"]
    vlans = cells_of(options)[1]
    assert vlans.base == cells[0] and str(vlans).endswith("VLANs access-trunk")
    assert ["--vlan" in argv for argv in gen_argvs(vlans, options)] == [False, True]
    assert not linux.suits(vlans)
    # Of the peer's row the ratio is ours by theirs, of our own ours by the base's.
    results = {(cells[0], "millraced"): [Result(1000.0, None, None, [], cpu_ns=100.0)],
               (cells[1], "millraced"): [Result(960.0, None, None, [], cpu_ns=105.0)],
               (cells[1], "linux"): [Result(480.0, None, None, [])]}
    ours = types.SimpleNamespace(name="millraced")
    rows = [line.split() for line in table(cells[:2], [ours, linux], results)]
    assert [row[11:] for row in rows[1:4]] == [
        ["-", "base", "100"], ["-", "0.96", "105", "1.05"], ["-", "2.00", "-", "-"]], rows


# Of each figure: its command, and for each row columns that make it what it is.
FIGURES = {
    "workers": (["--wait=poll"], ("cores", "queues", "workers"), [
        ("2+1", "1:1", "1"), ("2+1", "2:2", "2"), ("2+2", "2:2", "2")]),
    "asking": (["--wait=spin", "--modes=rxdrop"], ("mode", "asking"), [
        ("rxdrop", "nobody"), ("rxdrop", "stats -i 1"), ("rxdrop", "without pause"),
        ("rxdrop", "a loop")]),
    "hand-over": ([], ("cores", "queues", "workers"), [
        ("1+1", "4:4", "4"), ("1+1", "4:1", "4"), ("2+2", "4:4", "4"), ("2+2", "4:1", "4")]),
}


NUMBER = r"\d+(\.\d+)?"
RATES = rf" millraced +{NUMBER} +{NUMBER} +{NUMBER} +\d+% +(-|{NUMBER}!?) +{NUMBER}\*?"
ROW_BASE = rf"{RATES} +base +{NUMBER}$"
ROW = rf"{RATES} +{NUMBER} +{NUMBER} +{NUMBER}( |$)"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="the groups need two CPUs")
@pytest.mark.parametrize("group", [group if group == "workers" else
                                   pytest.param(group, marks=pytest.mark.full) for group in FIGURES])
def test_each_figure_has_a_command(tmp_path, group):
    """Its rows are there and well formed: how fast they are is for nobody to assert."""
    arguments, columns, cells = FIGURES[group]
    file = tmp_path / "results.csv"
    done = bench(group, "--rounds=1", "--seconds=1", *arguments, f"--csv={file}",
                 f"--millraced={MILLRACED}", f"--flood={FLOOD}")
    assert done.returncode == 0, done.stdout + done.stderr
    with open(file, encoding="utf-8") as text:
        rows = list(csv.DictReader(text))
    assert [tuple(row[column] for column in columns) for row in rows] == cells
    for row in rows:
        assert float(row["kpps"]) > 0 and float(row["cpu_ns"]) > 0, row
        assert bool(row["answers_per_s"]) == (row["asking"] in ("stats -i 1", "without pause"))
        assert bool(row["handed"]) == (row["queues"] == "4:1"), row
    if group == "hand-over":
        assert float(rows[1]["handed"]) > 0.9 and 0 < float(rows[3]["handed"]) < 1
    lines = [line for line in done.stdout.splitlines() if line.split()[:1] == [rows[0]["mode"]]]
    assert len(lines) == len(cells)
    for line, cell in zip(lines, cells):
        base = cell == cells[0] or cell == ("2+2", "4:4", "4")
        assert re.search(ROW_BASE if base else ROW, line), line


def test_the_cost_of_a_policy_is_printed_against_a_bare_redirect():
    done = bench("steering", "--rounds=1", f"--millraced={MILLRACED}")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if not line.startswith(("#", "frame "))]
    assert len(rows) == 5 * 7
    assert [row[-1] for row in rows].count("base") == 5
    assert all(int(row[-4]) > 0 for row in rows)


def test_layouts_are_compared_with_the_one_that_we_have():
    done = bench("layout", "--rounds=2", MEASURED)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith(("remembered", "looked at"))]
    assert len(rows) == 3 * 2 * 5
    compared = [row for row in rows if "all 128 apart" not in row]
    # Two rounds are too few for any difference to be sure of.
    assert len(compared) == 3 * 2 * 4 and all("no difference seen" in row for row in compared)


def test_what_keeps_readers_and_a_writer_apart_is_compared():
    done = bench("readers", "--rounds=2", MEASURED)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [re.fullmatch(r"(.*\S) +([12])((?: +[\d.]+){7})(?: \*)?", line)
            for line in done.stdout.splitlines() if not line.startswith("#")]
    rows = [row for row in rows if row]
    assert len(rows) == 4 * 2
    for row in rows:
        median, least, most, _, _, replaced, _ = map(float, row.group(3).split())
        assert 0 < least <= median <= most and replaced >= 1


@pytest.mark.full
def test_ways_to_wait_are_compared():
    done = bench("waiting", "--rounds=1", MEASURED, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith(("two", "one"))]
    effective = "busy-poll: not measured" not in done.stdout
    assert len(rows) == (5 + 1) * (4 if effective else 3), done.stdout
    share = {row[2]: float(row[3]) for row in rows if row[1] == "idle"}
    assert share["adaptive"] < 0.5 and share["spin"] > 50, share


def test_the_rank_test_tells_a_shift_from_noise():
    assert tool.signed_rank([]) == 1.0
    assert tool.signed_rank([1, -1] * 15) > 0.9
    assert tool.signed_rank([-5, 6, -7, 8] * 8) > 0.1
    # All 30 differences of one sign: (232.5 - 0.5) / sqrt(2363.75) standard deviations.
    assert abs(tool.signed_rank(range(1, 31)) - 1.82e-6) < 1e-8
    assert tool.signed_rank(range(1, 31)) == tool.signed_rank([-one for one in range(1, 31)])


def test_a_figure_takes_no_list_that_it_compares():
    done = bench("hand-over", "--modes=rxdrop")
    assert done.returncode == 2
    assert "--modes cannot be chosen for hand-over, which sets it itself" in done.stderr
    done = bench("steering", "--batch=64")
    assert done.returncode == 2
    assert "--batch cannot be chosen for steering, which sets it itself" in done.stderr


def test_generators_reach_the_queues_from_the_cpus_there_are():
    assert places_of([0, 1])["1+1"] == Place((1,), (0,))
    assert places_of([0, 1])["2+2"] == Place((0, 1), (0, 1))
    assert places_of(list(range(8)))["2+2"] == Place((0, 1), (6, 7))
    assert places_of([4, 8, 9])["1+1"] == Place((9,), (8,))
    assert set(places_of([2, 4])) == {"two", "one", "1+1"}
    assert set(places_of([3])) == {"two", "one"}


def test_peers_do_what_they_can():
    xdpsock, xsk_fwd, testpmd = (kind("/bin/false", OPTIONS, "peer")
                                 for kind in (programs.Xdpsock, programs.XskFwd,
                                              programs.Testpmd))
    patch = Cell("patch", "native", "spin", "one", 64)
    poll = Cell("l2fwd", "skb", "poll", "two", 32)
    assert [p.suits(SPIN) for p in (xdpsock, xsk_fwd, testpmd)] == [True, False, False]
    assert [p.suits(patch) for p in (xdpsock, xsk_fwd, testpmd)] == [False, True, True]
    assert [p.suits(poll) for p in (xdpsock, xsk_fwd, testpmd)] == [True, False, False]


def test_rows_of_xdpsock_become_totals_over_time():
    text = """
 sock0@d0:0 rxdrop xdp-drv \n                   pps            pkts           1.00
rx                 1,000          1,000
tx                 0              0

 sock0@d0:0 rxdrop xdp-drv \n                   pps            pkts           2.00
rx                 500            2,000
tx                 0              0
"""
    tool = types.SimpleNamespace(lines=[(10.0, line + "\n") for line in text.splitlines()])
    series = programs.Xdpsock("/bin/false", OPTIONS, "xdpsock").series(tool, SPIN)
    (t0, n0), (t1, n1) = series
    assert (n0, n1, t1 - t0) == (1000, 2000, 2.0)
    assert packets_at(series, t0 + 0.5) == 1250


def test_the_ratio_is_the_median_over_rounds_both_have_measured():
    def rounds(*rates):
        return [rate and Result(rate, None, None, []) for rate in rates]

    both = [types.SimpleNamespace(name=name) for name in ("millraced", "xdpsock")]
    ours, theirs = rounds(100, 200, None, 300, 100), rounds(100, 100, 50, 100, None)
    rows = list(table([SPIN], both, {(SPIN, "millraced"): ours, (SPIN, "xdpsock"): theirs}))
    assert rows[1].split()[5:] == "millraced 150 100 300 133% - - 1 failed".split()
    assert rows[2].split()[5:] == "xdpsock 100 50 100 50% - - 2.00 1.00 to 3.00; 1 failed".split()


def test_c2c_explains_itself():
    """It records where the hardware can, and says what is missing where it cannot, which is more common."""
    if not shutil.which("perf"):
        pytest.skip("perf is not installed: apt-get install linux-perf")
    if subprocess.run(["perf", "c2c", "record", "-e", "list"], capture_output=True, check=False).returncode == 0:
        pytest.skip("perf c2c can record here: scripts/c2c takes half a minute and a core")
    done = subprocess.run([REPOSITORY / "scripts/c2c"], text=True, capture_output=True, timeout=60)
    assert done.returncode == 1 and done.stdout == ""
    assert "nothing to record" in done.stderr and "scripts/bench layout" in done.stderr, done.stderr
