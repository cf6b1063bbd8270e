"""The live-frames generator and sink of tests/tools/flood, run in a namespace."""

import json
import os
import pathlib
import signal
import subprocess

from lab import SLOWNESS

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
FLOOD = pathlib.Path(os.environ.get("FLOOD", REPOSITORY / "build/tests/tools/flood"))


class Flood:
    """`flood gen|sink|pass --dev IF ...`; gen and sink report in JSON at their end."""

    def __init__(self, namespace, command, ifname, *args):
        self.argv = namespace.command(FLOOD, command, "--dev", ifname, *args)
        self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if command != "gen":
            line = self.process.stdout.readline()
            assert line and json.loads(line)["ready"], f"{self.argv}: {self._rest()}"

    def _rest(self):
        return self.process.communicate(timeout=5)

    def finish(self, timeout=60):
        """Wait for its own end; the last line it printed."""
        out, err = self.process.communicate(timeout=timeout * SLOWNESS)
        assert self.process.returncode == 0, f"{self.argv}: {err}"
        assert not err, f"{self.argv}: {err}"
        return json.loads(out.strip().split("\n")[-1])

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.finish(10)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=10)


def xmit_errors(namespace, ifname):
    """Frames born in XDP that the veth refused to take: ring full, or the peer not ready."""
    stats = namespace.ethtool_stats(ifname)
    return sum(value for key, value in stats.items() if key.endswith("_xdp_xmit_errors"))


def receive_drops(namespace, ifname):
    """Frames that the veth took and dropped for want of memory for an skb."""
    stats = namespace.ethtool_stats(ifname)
    return sum(value for key, value in stats.items()
               if key.startswith("rx_queue_") and key.endswith("_drops") and "_xdp_" not in key)
