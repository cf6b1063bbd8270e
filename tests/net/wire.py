"""A raw tap on an interface: sends and receives whole frames through AF_PACKET, byte for byte.

The kernel takes an outer VLAN tag out of a received frame before a packet socket sees it; the tap
puts it back from the auxiliary data, so what it returns is what was on the wire.
"""

import errno
import select
import socket
import struct
import time

from lab import SLOWNESS

ETH_P_ALL = 0x0003
SOL_PACKET, PACKET_STATISTICS, PACKET_AUXDATA, PACKET_IGNORE_OUTGOING = 263, 6, 8, 23
SO_RCVBUFFORCE, SO_TIMESTAMPNS = 33, 35
STATUS_VLAN, STATUS_TPID = 1 << 4, 1 << 6  # TP_STATUS_VLAN_VALID, TP_STATUS_VLAN_TPID_VALID
AUXDATA = struct.Struct("IIIHHHH")
TIMESPEC = struct.Struct("ll")
RECEIVE_BYTES = 256 << 20  # room for every frame of the largest test while nobody reads
# A veth ring holds 256 frames and overruns silently: never more of ours on the way than this.
WINDOW = 64


def carried(taps, cases):
    """Cases: sender, frame, and {receiver: the frame that comes out of it}; nothing else comes out of any."""
    for number, (sender, sent, wanted) in enumerate(cases):
        sender.send(sent)
        for receiver, one in wanted.items():
            got, _ = receiver.receive(2 * SLOWNESS) or (b"", None)
            assert got == one, (number, receiver.where, sent.hex(), got.hex())
    assert [one.drain() for one in taps] == [[]] * len(taps)


class Wire:
    def __init__(self, namespace, ifname):
        self.where = f"{namespace.name}/{ifname}"
        with namespace.entered():
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        try:
            self._set(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
            self._set(SOL_PACKET, PACKET_AUXDATA, 1)
            self._set(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            self._set(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BYTES)
            self._socket.setblocking(False)
            self._socket.bind((ifname, ETH_P_ALL))
        except OSError:
            self.close()
            raise

    def _set(self, *option):
        self._socket.setsockopt(*option)

    def close(self):
        self._socket.close()

    def send(self, frame):
        """Send one frame; False when the kernel dropped it at once (link down, ring full)."""
        try:
            self._socket.send(frame)
            return True
        except OSError as error:
            if error.errno in (errno.ENOBUFS, errno.ENETDOWN, errno.EAGAIN, errno.ENXIO):
                return False
            raise

    def send_all(self, frames, burst=WINDOW, pause=0.001):
        """Send every frame, in bursts that no ring overruns on; one dropped at once goes again."""
        for at, frame in enumerate(frames):
            for _ in range(1000):
                if self.send(frame):
                    break
                time.sleep(pause)
            else:
                raise AssertionError(f"{self.where}: the kernel takes no frame")
            if at % burst == burst - 1:
                time.sleep(pause)

    def receive(self, timeout=1.0):
        """(frame, CLOCK_REALTIME seconds of its arrival), or None when nothing came in time."""
        if not select.select([self._socket], [], [], timeout)[0]:
            return None
        return self._read()

    def _read(self):
        try:
            data, ancillary, _, _ = self._socket.recvmsg(65536, 256)
        except BlockingIOError:
            return None
        except OSError:
            return self._read()  # ENETDOWN is reported once when the link goes down
        when = None
        for level, kind, body in ancillary:
            if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
                status, _, _, _, _, tci, tpid = AUXDATA.unpack(body[:AUXDATA.size])
                if status & STATUS_VLAN:
                    tpid = tpid if status & STATUS_TPID else 0x8100
                    data = data[:12] + struct.pack("!HH", tpid, tci) + data[12:]
            elif (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
                seconds, nanoseconds = TIMESPEC.unpack(body)
                when = seconds + nanoseconds / 1e9
        return data, when

    def frames(self, count, timeout=5.0):
        """Up to `count` frames; fewer when none came for `timeout` seconds."""
        got = []
        while len(got) < count:
            item = self.receive(timeout)
            if item is None:
                break
            got.append(item[0])
        return got

    def drain(self, quiet=0.1):
        """Everything that is queued or arrives until nothing came for `quiet` seconds."""
        return self.frames(1 << 30, quiet)

    def lost(self):
        """Frames dropped here for want of room since the last call: a fault of the test."""
        packed = self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8)
        return struct.unpack("II", packed)[1]


def exchange(sender, receiver, frames, wanted, timeout=5.0, window=WINDOW):
    """Send frames with at most `window` on their way; all wanted must come, equal, in order."""
    seen = 0
    for start in range(0, len(frames), window):
        part = wanted[start:start + window]
        sender.send_all(frames[start:start + window], burst=window)
        got = receiver.frames(len(part), timeout)
        for offset, (have, want) in enumerate(zip(got, part)):
            assert have == want, (f"frame {start + offset} differs on {receiver.where}:\n"
                                  f"want {len(want)} bytes {want.hex()}\n"
                                  f"have {len(have)} bytes {have.hex()}")
        seen += len(got)
        assert len(got) == len(part), (f"{receiver.where}: {seen} frames of {start + len(part)}, "
                                       f"the tap lost {receiver.lost()}")
    extra = receiver.frames(1, 0.02)
    assert not extra, f"{receiver.where}: a frame nobody sent: {extra[0].hex()}"


class Stream:
    """A steady numbered stream in the background.

    `given` is the next number to be sent, `refused` how many the kernel dropped at once.
    """

    def __init__(self, task, wire, build, rate):
        self._wire, self._build, self._rate = wire, build, rate
        self._stop = False
        self.given = self.refused = 0
        self._task = task(self._run)

    def _run(self):
        start = time.monotonic()
        while not self._stop:
            due = int((time.monotonic() - start) * self._rate)
            late = due - self.given - WINDOW
            if late > 0:  # we were stalled: make nothing up, that would overrun the veth
                start += late / self._rate
                due -= late
            while self.given < due:
                self.refused += not self._wire.send(self._build(self.given))
                self.given += 1
            time.sleep(0.002)

    def stop(self):
        self._stop = True
        self._task.result(5)


class Taker:
    """Takes what arrives in the background: however long it takes, the tap does not fill up."""

    def __init__(self, task, wire):
        self._wire = wire
        self._stop = False
        self._got = []
        self._task = task(self._run)

    def _run(self):
        while not self._stop:
            item = self._wire.receive(0.05)
            if item:
                self._got.append(item[0])

    def stop(self, quiet=0.3):
        """All that came, until nothing came for `quiet` seconds."""
        self._stop = True
        self._task.result(5)
        return self._got + self._wire.drain(quiet)
