"""The steer tool: what the XDP program itself says becomes of a frame."""

import os
import pathlib
import subprocess

from daemon import REPOSITORY

STEER = pathlib.Path(os.environ.get("STEER", REPOSITORY / "build/tests/tools/steer"))
CLASSES = ("own MAC", "own ARP", "own ND", "both ARP", "both DHCP", "both RA", "both MLD",
           "both DHCPv6")


class Steer:
    """The program with a policy, in a namespace; nothing is attached anywhere."""

    def __init__(self, namespace):
        self._process = subprocess.Popen(namespace.command(STEER), stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True)

    def close(self):
        self._process.stdin.close()
        self._process.wait(5)
        self._process.stdout.close()

    def ask(self, *words):
        self._process.stdin.write(" ".join(words) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().rstrip("\n")

    def tell(self, *words):
        answer = self.ask(*words)
        assert answer == "ok", f"{words}: {answer}"

    def verdict(self, frame):
        answer = self.ask("frame", frame.hex())
        assert answer in ("pass", "redirect"), f"{frame.hex()}: {answer}"
        return answer

    def counts(self):
        return [int(word) for word in self.ask("counts").split()]

    def judge(self, frame):
        """The verdict, and what counted it: a class, "rule N" from 0, or None."""
        before = self.counts()
        verdict = self.verdict(frame)
        moved = [at for at, pair in enumerate(zip(before, self.counts())) if pair[0] != pair[1]]
        assert len(moved) <= 1, f"counted in several places: {moved}"
        if not moved:
            return verdict, None
        at = moved[0]
        return verdict, CLASSES[at] if at < len(CLASSES) else f"rule {at - len(CLASSES)}"
