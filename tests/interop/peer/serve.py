"""The request loop and the state that the Python peers share. `peers.py` describes the protocol.

A peer has one method per operation. The arguments of the method are the values of the request, all of type `str`. The
method returns the response. This module works with Python 3.11 and later, and imports only the standard library."""

import json
import sys
import time

from pattern import message

NOT_CONNECTED, BACK_PRESSURED, ADMIN_ACTION, CLOSED, MAX_POSITION_EXCEEDED = -1, -2, -3, -4, -5

_MOST_FAULTS = 5


def serve(peer):
    """Responds to request lines until standard input ends."""
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        operation, *pairs = line.rstrip("\n").split("\t")
        values = dict(pair.split("=", 1) for pair in pairs)
        try:
            answer = {"ok": getattr(peer, operation)(**values) or {}}
        except Exception as error:
            text = {"type": type(error).__name__, "code": getattr(error, "code", 0), "text": str(error)}
            answer = {"error": text}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def false_frames(length):
    """Returns the content of an aborted claim: headers of frames without payload. A reader must not read them as
    frames."""
    header = bytes.fromhex("20000000 00c00100") + bytes(24)
    return (header * (length // len(header) + 1))[:length]


class Publisher:
    """Numbers the messages of one publication. `send(how, payload)` makes one attempt and returns Aeron's result."""

    def __init__(self, send):
        self._send = send
        self._next = 0

    def publish(self, *, count, lengths, timeout_ms, how="offer"):
        """Sends `count` messages. Tries each message until it is sent, until the deadline, or until it can never be
        sent."""
        lengths = [int(length) for length in lengths.split(",")]
        first, end = self._next, self._next + int(count)
        deadline = time.monotonic() + int(timeout_ms) / 1000
        result = 0
        while self._next < end:
            result = self._send(how, message(self._next, lengths[self._next % len(lengths)]))
            if result > 0:
                self._next += 1
            elif result < ADMIN_ACTION or time.monotonic() > deadline:
                break
            else:
                time.sleep(0)
        return {"sent": self._next - first, "result": result}

    def offer(self, *, length, how="offer"):
        """Makes one attempt to send a message."""
        result = self._send(how, message(self._next, int(length)))
        if result > 0:
            self._next += 1
        return {"result": result}

    def take(self, length):
        """Returns the next message and counts it as sent."""
        self._next += 1
        return message(self._next - 1, length)


class Receiver:
    """Compares the messages of each session with the pattern. `poll(limit)` returns the number of polled fragments."""

    def __init__(self, poll):
        self._poll = poll
        self._sessions = {}

    def receive(self, *, count, lengths, timeout_ms, first=0, limit=64):
        """Polls until `count` messages have arrived or the time is over."""
        self._lengths = [int(length) for length in lengths.split(",")]
        self._first, self._received, self._bytes, self._faults = int(first), 0, 0, []
        deadline = time.monotonic() + int(timeout_ms) / 1000
        while self._received < int(count) and time.monotonic() < deadline:
            if self._poll(int(limit)) == 0:
                time.sleep(0)
        return {
            "received": self._received,
            "bytes": self._bytes,
            "sessions": {str(session): state for session, state in self._sessions.items()},
            "faults": self._faults,
        }

    def on_message(self, session, position, payload):
        """Checks one whole message."""
        state = self._sessions.setdefault(session, {"next": self._first, "position": 0})
        number = state["next"]
        state["next"], state["position"] = number + 1, position
        self._received += 1
        self._bytes += len(payload)
        expected = self._lengths[number % len(self._lengths)]
        if payload != message(number, expected) and len(self._faults) < _MOST_FAULTS:
            self._faults.append(f"session {session} message {number}: length {len(payload)}, expected {expected}")
