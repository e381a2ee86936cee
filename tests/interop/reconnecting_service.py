"""A service that reconnects, as a process: a publisher and a subscriber, each with a client, share ten streams.

A message names its stream and its number, so the service knows which messages were lost. It compares them with the
publisher's reports. Of the two recorded streams, nothing is lost.
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


_KINDS = (*(_same(lambda: "aeron:ipc"),) * 2, *(_same(unicast),) * 2, _same(multicast), dynamic, dynamic, _manual)
_RECORDED_STREAMS = 2


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


class _RecordedStream:
    """A stream with a recorded publisher."""

    def __init__(self, number, directory, control):
        self.number, self.next_message = number, 0
        self._directory = directory
        control_channel, control_stream, responses = control
        self._archive = {
            "control_channel": control_channel,
            "control_stream_id": control_stream,
            "response_channel": responses,
        }
        channel = f"{unicast()}|term-length=64k" if number % 2 else "aeron:ipc?term-length=64k"
        self.publisher = aeron.RecordedPublisher(
            channel, _STREAM_ID + number, driver=directory, message_timeout=2, **self._archive
        )
        eventually(lambda: self.publisher.poll() >= 0 and self.publisher.recording_id is not None, _AGAIN_S)

    def offer(self):
        if self.publisher.offer(_MESSAGE.pack(self.number, self.next_message)):
            self.next_message += 1

    def check(self):
        """Replays the recording: each message is in it once."""
        messages = []
        with (
            aeron.connect(self._directory) as client,
            aeron.connect_archive(client, **self._archive) as archive,
            archive.replay(self.publisher.recording_id, position=0, length=self.publisher.recorded_position) as replay,
        ):
            for batch in replay.batches(timeout=_AGAIN_S):
                messages += [_MESSAGE.unpack(message) for message in batch]
        assert messages == [(self.number, index) for index in range(self.next_message)], len(messages)


class _Service:
    """A publisher and a subscriber of ten streams, which run until `close`."""

    def __init__(self, directory, control, driver_timeout_ms):
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
        numbers = range(len(_KINDS), len(_KINDS) + _RECORDED_STREAMS)
        self._recorded = [_RecordedStream(number, directory, control) for number in numbers]
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
            for stream in (*self._streams, *self._recorded):
                stream.offer()
            self._counter.increment()
        for stream in self._recorded:
            stream.publisher.poll()
        time.sleep(_PAUSE_S)

    def _receive(self):
        if not sum(stream.poll() for stream in self._streams):
            time.sleep(_PAUSE_S)

    def await_loss(self, losses):
        """Waits until both clients have lost their drivers this many times in all."""
        eventually(lambda: len(self._disconnects) >= 2 * losses, _AGAIN_S)

    def await_messages(self):
        """Waits until each stream has carried a message after this moment. Returns the seconds.

        The seconds are those of the streams that are not recorded: the others wait for their archive.
        """
        begin = time.monotonic()
        firsts = [stream.next_message for stream in self._streams]
        recorded = [stream.publisher.position for stream in self._recorded]

        def has_carried(stream, first):
            return stream.received and stream.received[-1][1] > first

        def has_recorded(stream, position):
            return stream.publisher.recorded_position > position

        eventually(lambda: self._errors or all(map(has_carried, self._streams, firsts)), _AGAIN_S)
        seconds = time.monotonic() - begin
        eventually(lambda: self._errors or all(map(has_recorded, self._recorded, recorded)), _AGAIN_S)
        assert not self._errors, self._errors
        return seconds

    def pause(self):
        """Stops to publish, and waits until everything was received that can be received."""
        self._is_publishing.clear()
        counts = None
        while counts != (counts := [len(stream.received) for stream in self._streams]):
            time.sleep(0.7)
        eventually(
            lambda: all(it.publisher.recorded_position == it.publisher.position for it in self._recorded), _AGAIN_S
        )

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
        for stream in self._recorded:
            stream.check()
        return sum(_check_stream(stream, reports, goes_on) for stream in self._streams)

    def close(self):
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        for stream in self._recorded:
            stream.publisher.close(0)
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


def _serve(pipe, *settings):
    """Runs the service. Each received list is a method of the service and its arguments."""
    try:
        service = _Service(*settings)
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

    def __init__(self, directory, control, driver_timeout_ms=10_000):
        context = multiprocessing.get_context("spawn")
        self._pipe, child = context.Pipe()
        self._process = context.Process(target=_serve, args=(child, directory, control, driver_timeout_ms), daemon=True)
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
