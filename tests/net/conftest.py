"""Fixtures of the network tests: rigs, taps, daemons. Whatever a test opens is closed for it."""

import os
import shutil
import signal
import sys
import zlib

sys.dont_write_bytecode = True

import pytest  # noqa: E402  (no bytecode beside the sources, so the flag comes first)

import daemon as daemon_module  # noqa: E402
import flood as flood_module  # noqa: E402
from appliance import File  # noqa: E402
from control import Folder  # noqa: E402
from daemon import ATTACH_FLAG, MILLRACED, WAITING_FLAG, Daemon  # noqa: E402
from holder import Holder  # noqa: E402
from lab import Rig1, Rig2, Star, Task, run  # noqa: E402
from wire import Stream, Wire  # noqa: E402

CALL_PASSED = pytest.StashKey()
TOOLS = ("ip", "ethtool", "bpftool", "ping", "capsh", "clang", "strace")
FOREIGN_SOURCE = """
__attribute__((section("xdp"), used)) int foreign_pass(void *ctx) { return 2; /* XDP_PASS */ }
char _license[] __attribute__((section("license"), used)) = "GPL";
"""


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="also run the long tests")
    parser.addoption("--one-wait", action="store_true",
                     help="where a test stands once a wait and otherwise alike, run one of the two")


def other_wait(items):
    """The tests that are left out by --one-wait.

    Every other parameter keeps all its values. Which wait a test keeps goes like the colours of a
    chessboard: from each value of a parameter to its next it changes, and from one test's name to
    another's it begins with either, so each pair of values still meets, in a test or in its file.
    """
    alike, values = {}, {}
    for item in items:
        params = dict(item.callspec.params) if hasattr(item, "callspec") else {}
        waits = [params.pop(name) for name in ("waiting", "wait")
                 if params.get(name) in ("adaptive", "spin", "poll")]
        if not waits:
            continue
        test = item.fspath, item.originalname
        rest = []
        for name, value in sorted(params.items()):
            known = values.setdefault((test, name), [])
            if repr(value) not in known:
                known.append(repr(value))
            rest.append(known.index(repr(value)))
        alike.setdefault((test, tuple(rest)), {})[waits[0]] = item
    spare = set()
    for ((_, name), rest), by_wait in alike.items():
        if len(by_wait) == 2:
            spare.add(by_wait[sorted(by_wait)[(zlib.crc32(name.encode()) + sum(rest)) % 2]])
    return spare


def spread_long_ones(config, items):
    """xdist gives each worker neighbours: long tests of one function would all run on one, after all others."""
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    long = [item for item in items if item.get_closest_marker("full")]
    rest = [item for item in items if not item.get_closest_marker("full")]
    share = max(len(items) // (4 * workers), 2)  # what xdist begins with, for each worker
    step = min(share, len(items) // max(len(long), 1))
    for place, item in enumerate(long):
        rest.insert(place * step, item)
    items[:] = rest


@pytest.hookimpl(trylast=True)  # what -k and -m leave
def pytest_collection_modifyitems(config, items):
    if config.getoption("--one-wait"):
        spare = other_wait(items)
        config.hook.pytest_deselected(items=list(spare))
        items[:] = [item for item in items if item not in spare]
    if config.getoption("--full"):
        spread_long_ones(config, items)
        return
    for item in items:
        if item.get_closest_marker("full"):
            item.add_marker(pytest.mark.skip(reason="long; runs with --full"))


def pytest_sessionstart(session):
    if session.config.option.collectonly:
        return
    if os.geteuid() != 0:
        pytest.exit("network tests make namespaces: run them as root", returncode=3)
    # Asked to end, end as for Ctrl-C: with every finalizer, so that no namespace stays behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        pytest.exit(f"network tests need {', '.join(missing)}", returncode=3)


@pytest.fixture
def share(request):
    """How often something is repeated that finds more the longer it runs: as said with --full, else
    a fifth of it."""
    full = request.config.getoption("--full")
    return lambda times: times if full else times // 5


@pytest.fixture
def closing():
    """Register anything with a close(); closed in reverse order, every one even if one fails."""
    things, errors = [], []

    def register(thing):
        things.append(thing)
        return thing

    yield register
    for thing in reversed(things):
        try:
            thing.close()
        except Exception as error:  # go on: namespaces must not stay behind
            errors.append(error)
    if errors:
        raise errors[0]


@pytest.fixture
def rig1(closing):
    def make(**options):
        return closing(Rig1(**options))
    return make


@pytest.fixture
def rig2(closing):
    def make(**options):
        return closing(Rig2(**options))
    return make


@pytest.fixture
def star(closing):
    def make(**options):
        return closing(Star(**options))
    return make


@pytest.fixture
def tap(closing):
    """Open a raw tap on an interface of a namespace."""
    def make(namespace, ifname):
        return closing(Wire(namespace, ifname))
    return make


@pytest.fixture
def file(tmp_path, closing):
    """A configuration file, with a control socket."""
    return File(tmp_path / "millrace.conf", closing(Folder()).socket)


@pytest.fixture
def task():
    """Run a function in a thread; its exception comes out of result()."""
    return Task


@pytest.fixture
def stream(task, closing):
    """A steady stream of frames in the background; stopped at the end at the latest."""
    running = []

    def make(wire, build, rate):
        running.append(Stream(task, wire, build, rate))
        return running[-1]

    yield make
    for one in running:
        one.stop()


@pytest.fixture(params=["native", "skb"])
def attach(request):
    return request.param


@pytest.fixture(params=["adaptive", "poll"])
def waiting(request):
    """The default, which spins as well while frames come, and the other; for all three see any_waiting."""
    return request.param


@pytest.fixture(params=["adaptive", "spin", "poll"])
def any_waiting(request):
    return request.param


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.when == "call":
        item.stash[CALL_PASSED] = report.passed


@pytest.fixture
def millraced(request, closing):
    """Start millraced: `millraced(namespace, *flags)`; a ready daemon unless `ready=False`."""
    if not MILLRACED.exists():
        pytest.fail(f"{MILLRACED} is not built (or set MILLRACED)")
    daemons = []

    def start(namespace, *flags, attach="auto", waiting="adaptive", ready=True, **options):
        argv = [*ATTACH_FLAG[attach], *WAITING_FLAG[waiting], *flags]
        one = Daemon(namespace, *argv, **options)
        daemons.append(one)
        if ready:
            one.wait_ready()
            if attach != "auto":
                assert one.bound, f"no line a queue at start: {one}"
                assert {b["attach"] for b in one.bound.values()} == {attach}, one.stderr
        return one

    yield start
    left = [one for one in daemons if one.running]
    for one in left:
        one.kill()
    if request.node.stash.get(CALL_PASSED, False):
        assert not left, f"the test left a daemon running, so without its audit: {left[0]}"


@pytest.fixture(scope="session")
def foreign_object(tmp_path_factory):
    """Somebody else's XDP program, for `ip link set dev X xdp obj`."""
    source = tmp_path_factory.mktemp("foreign") / "pass.c"
    source.write_text(FOREIGN_SOURCE)
    compiled = source.with_suffix(".o")
    run("clang", "-O2", "-g", "-target", "bpf", "-c", source, "-o", compiled)
    return compiled


@pytest.fixture
def foreign_link(closing):
    """Somebody else's process that holds a program on an interface by a bpf_link."""
    def start(namespace, ifname, mode):
        return closing(Holder(namespace, ifname, mode))
    return start


@pytest.fixture
def flood(closing):
    """Start the flood tool in a namespace; ended with the test at the latest."""
    if not flood_module.FLOOD.exists():
        pytest.fail(f"{flood_module.FLOOD} is not built (or set FLOOD)")
    tools = []

    def start(namespace, *args):
        tools.append(flood_module.Flood(namespace, *args))
        return tools[-1]

    yield start
    for tool in tools:
        tool.kill()


def pytest_report_header():
    return f"millraced: {daemon_module.MILLRACED}, flood: {flood_module.FLOOD}"
