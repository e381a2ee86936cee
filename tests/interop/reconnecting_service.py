"""A service that reconnects, as a process: a publisher and a subscriber, each with a client, share ten streams.

A message names its stream and its number, so the service knows which messages were lost. It compares them with the
publisher's reports.
"""

import multiprocessing
import os
import struct
import threading
import time
import traceback
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field

import aeron
from interop.channels import dynamic, multicast, unicast
from interop.waiting import eventually

_FRAME_LENGTH = 64
_MESSAGE = struct.Struct("<IQ12x")
_STREAM_ID = 7700
# The service offers in bursts, so that the machine has time for its drivers.
_PAUSE_S = 0.002
# After the start of a driver, each stream carries messages again within this time. The product's goal is a second, and
# tests share the machine.
_AGAIN_S = 20


def _same(channel):
    return lambda: (channel(),) * 2


def _manual():
    endpoint = unicast()
    return "aeron:udp?control-mode=manual", endpoint


_KINDS = (*(_same(lambda: "aeron:ipc"),) * 3, *(_same(unicast),) * 3, _same(multicast), dynamic, dynamic, _manual)


@dataclass
class _Stream:
    """A stream of the service. Its objects live as long as the service."""

    number: int
    publication: aeron.Publication | aeron.ExclusivePublication
    subscription: aeron.Subscription
    next_message: int = 0
    accepted: Counter = field(default_factory=Counter)
    unclear: set = field(default_factory=set)
    received: list = field(default_factory=list)

    def offer(self):
        """Offers one message, and counts it for its session. It is unclear which one if the session changed."""
        before = self.publication.session_id
        if self.publication.offer(_MESSAGE.pack(self.number, self.next_message)):
            self.next_message += 1
            session = self.publication.session_id
            self.accepted[session] += 1
            if session != before:
                self.unclear |= {session, before}

    def poll(self):
        return self.subscription.poll(self._on_message, 100)

    def _on_message(self, message, header):
        number, index = _MESSAGE.unpack(message)
        assert number == self.number
        self.received.append((header.session_id, index))


class _Service:
    """A publisher and a subscriber of ten streams, which run until `close`."""

    def __init__(self, directory, driver_timeout_ms):
        self._stack = ExitStack()
        self._directory, self._timeout_ms = directory, driver_timeout_ms
        self._disconnects, self._reports, self._errors = [], [], []
        publisher, subscriber = self._clients = tuple(map(self._connect, ("publisher", "subscriber")))
        self._streams = []
        for number, kind in enumerate(_KINDS):
            channel, subscribed = kind()
            add = publisher.add_publication if number % 2 else publisher.add_exclusive_publication
            publication, subscription = add(channel, _STREAM_ID + number), None
            if "manual" in channel:
                publication.add_destination(subscribed)
            subscription = subscriber.add_subscription(subscribed, _STREAM_ID + number)
            self._streams.append(_Stream(number, publication, subscription))
        self._counter = publisher.add_counter(1001, "service")
        for stream in self._streams:
            stream.publication.wait_connected(timeout=_AGAIN_S)
        self._stopping, self._is_publishing = threading.Event(), threading.Event()
        self._is_publishing.set()
        self._threads = [threading.Thread(target=self._run, args=(step,)) for step in (self._publish, self._receive)]
        for thread in self._threads:
            thread.start()

    def _connect(self, name):
        on_reconnect = self._reports.append if name == "publisher" else None
        return self._stack.enter_context(
            aeron.connect(
                self._directory,
                client_name=name,
                driver_timeout_ms=self._timeout_ms,
                reconnect=aeron.Reconnect(min_delay=0.02, max_delay=0.5),
                on_disconnect=self._disconnects.append,
                on_reconnect=on_reconnect,
                error_handler=self._on_error,
            )
        )

    def _on_error(self, error):
        """Keeps an error. A driver that ends soon after its start may delete the log of an image that it announces."""
        if "log file cannot be mapped: No such file" not in str(error):
            self._errors.append(error)

    def _run(self, step):
        try:
            while not self._stopping.is_set():
                step()
        except BaseException as error:
            self._errors.append(error)
            raise

    def _publish(self):
        if self._is_publishing.is_set():
            for stream in self._streams:
                stream.offer()
            self._counter.increment()
        time.sleep(_PAUSE_S)

    def _receive(self):
        if not sum(stream.poll() for stream in self._streams):
            time.sleep(_PAUSE_S)

    def await_loss(self, losses):
        """Waits until both clients have lost their drivers this many times in all."""
        eventually(lambda: len(self._disconnects) >= 2 * losses, _AGAIN_S)

    def await_messages(self):
        """Waits until each stream has carried a message after this moment. Returns the seconds."""
        begin = time.monotonic()
        firsts = [stream.next_message for stream in self._streams]

        def has_carried(stream, first):
            return stream.received and stream.received[-1][1] > first

        eventually(lambda: self._errors or all(map(has_carried, self._streams, firsts)), _AGAIN_S)
        assert not self._errors, self._errors
        return time.monotonic() - begin

    def pause(self):
        """Stops to publish, and waits until everything was received that can be received."""
        self._is_publishing.clear()
        counts = None
        while counts != (counts := [len(stream.received) for stream in self._streams]):
            time.sleep(0.7)

    def resume(self):
        self._is_publishing.set()

    def resources(self):
        """Returns the numbers of threads, descriptors and mapped files of this process, and of its counters."""
        with open("/proc/self/maps") as maps:
            mapped = sum("/dev/shm/" in line for line in maps)
        reader = self._clients[0].counters_reader
        counters = sum(record.type_id == 1001 for record in reader)
        return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd")), mapped, counters

    def check(self, reconnections, goes_on=False):
        """Compares the lost messages of each session with its report. Returns the number of sessions.

        A driver that goes on (`goes_on`) may still send the old session beside the new one.
        """
        assert not self._errors, self._errors
        assert len(self._reports) == reconnections, self._reports
        assert [report.reconnections for report in self._reports] == list(range(1, reconnections + 1))
        assert not any(report.refused for report in self._reports)
        assert all(stream.publication.generation == reconnections for stream in self._streams)
        assert self._clients[0].counters_reader.value(self._counter.id) == self._counter.value
        reports = {
            (stream.stream_id - _STREAM_ID, stream.session_id): stream
            for report in self._reports
            for stream in report.streams
            if stream.kind != "image"
        }
        return sum(_check_stream(stream, reports, goes_on) for stream in self._streams)

    def close(self):
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        self._stack.close()


def _check_stream(stream, reports, goes_on):
    indexes = [index for _, index in stream.received]
    again = len(indexes) - len(set(indexes))
    assert not again, (stream.number, f"{again} messages were delivered twice")
    assert goes_on or indexes == sorted(indexes), "a message of an old session came after one of a new session"
    received = Counter(session for session, _ in set(stream.received))
    checked = 0
    # A driver that goes on may still have the log of a shared publication. Then the session goes on too.
    for session in stream.accepted.keys() - stream.unclear - {stream.publication.session_id}:
        report = reports.get((stream.number, session))
        if report is None:
            continue
        accepted, got = stream.accepted[session] * _FRAME_LENGTH, received[session] * _FRAME_LENGTH
        shown = (stream.number, accepted, got, report)
        assert report.position == accepted, shown
        assert report.delivered_bytes is None or report.delivered_bytes <= got, shown
        assert report.lost_bytes is None or report.lost_bytes <= accepted - got, shown
        if None not in (report.lost_bytes, report.possibly_lost_bytes):
            assert accepted - got <= report.lost_bytes + report.possibly_lost_bytes, shown
        checked += 1
    return checked


def _serve(pipe, directory, driver_timeout_ms):
    """Runs the service. Each received list is a method of the service and its arguments."""
    try:
        service = _Service(directory, driver_timeout_ms)
    except Exception:
        return pipe.send((traceback.format_exc(), None))
    pipe.send((None, None))
    while True:
        try:
            method, *arguments = pipe.recv()
        except EOFError:
            method, arguments = "close", ()
        try:
            pipe.send((None, getattr(service, method)(*arguments)))
        except BrokenPipeError:
            return None
        except BaseException:
            pipe.send((traceback.format_exc(), None))
        if method == "close":
            return None


class Service:
    """The process of the service."""

    def __init__(self, directory, driver_timeout_ms=10_000):
        context = multiprocessing.get_context("spawn")
        self._pipe, child = context.Pipe()
        self._process = context.Process(target=_serve, args=(child, directory, driver_timeout_ms), daemon=True)
        self._process.start()
        child.close()
        self.pid = self._process.pid
        self._result()

    def call(self, method, *arguments):
        """Calls a method of the service. Raises if the method raises."""
        self._pipe.send((method, *arguments))
        return self._result()

    def _result(self):
        error, result = self._pipe.recv()
        assert error is None, error
        return result

    def close(self):
        """Ends the process in any state."""
        if self._process.is_alive():
            self._process.kill()
        self._process.join()
