#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Asks millraced, with each command in turn, again and again, each when the answer before has come.

    ask.py SOCKET COMMAND...

Until SIGINT; then it prints how many answers it had: {"answers":N}. One that is no success ends it
with status 1.
"""

import itertools
import json
import signal
import socket
import sys


def main():
    requests = [json.dumps({"version": 1, "command": name}) + "\n" for name in sys.argv[2:]]
    answers = 0
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        client.connect(sys.argv[1])
        connection = client.makefile("rwb")
        for request in itertools.cycle(requests):
            connection.write(request.encode())
            connection.flush()
            answer = connection.readline()
            # Not parsed as a whole: that would be most of the time between two requests.
            if not answer.startswith(b'{"version":1,"ok":true,'):
                sys.exit(f"ask: {request.strip()}: {answer.decode() or 'the daemon hung up'}")
            answers += 1
    except KeyboardInterrupt:
        print(json.dumps({"answers": answers}), flush=True)


if __name__ == "__main__":
    main()
