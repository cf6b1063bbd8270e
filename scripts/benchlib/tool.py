# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A program of tests/tools that measures without traffic: asked by a line, it answers by a line."""

import statistics
import subprocess


class Tool:
    def __init__(self, path, *arguments):
        argv = [path, *map(str, arguments)]
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def close(self):
        self._process.stdin.close()
        self._process.wait(30)

    def ask(self, *words):
        """The numbers of its answer."""
        question = " ".join(map(str, words))
        self._process.stdin.write(question + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().split()
        if not answer:
            raise RuntimeError(f"{self._process.args[0]} ended at {question}")
        return [float(word) for word in answer]


def rounds_of(cells, rounds, ask, say):
    """{cell: [ask(cell) of each round]}; every other round the other way round, so that nothing is
    always what comes second."""
    results = {}
    for number in range(rounds):
        for cell in cells if number % 2 == 0 else cells[::-1]:
            results.setdefault(cell, []).append(ask(cell))
        say(f"round {number + 1} of {rounds}")
    return results


def disturbed(walls):
    """Of the wall time by CPU time of each round: whether others took the CPU in most of them."""
    return sum(wall > 1.25 for wall in walls) * 2 > len(walls)


DISTURBED = "* In most rounds its CPU was taken away for more than a fifth of the time."


def signed_rank(differences):
    """Wilcoxon's signed-rank test: how likely differences as far from 0 as these are, if none is more
    likely than its opposite. By the normal approximation with ties averaged, which is good from about
    20 differences on."""
    told = sorted((abs(one), one > 0) for one in differences if one)
    count, rank_sum, ties, at = len(told), 0.0, 0, 0
    if not count:
        return 1.0
    while at < count:
        end = at
        while end < count and told[end][0] == told[at][0]:
            end += 1
        rank_sum += (at + 1 + end) / 2 * sum(positive for _, positive in told[at:end])
        ties += (end - at) ** 3 - (end - at)
        at = end
    mean = count * (count + 1) / 4
    variance = count * (count + 1) * (2 * count + 1) / 24 - ties / 48
    if variance <= 0:
        return 1.0
    away = max(abs(rank_sum - mean) - 0.5, 0) / variance**0.5
    return 2 * (1 - statistics.NormalDist().cdf(away))
