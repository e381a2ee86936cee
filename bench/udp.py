"""Measurements over UDP through our driver or the real C driver, in most cases with our native client. Sender and
receiver run on one host or on two."""

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

from bench import environments as env
from bench.hosts import HERE, free_port, two_hosts
from bench.measure import (
    VoidError,
    cpu_seconds,
    expect_ready,
    running_driver,
    started,
    timed,
)
from bench.placement import SPLIT, Placement

SUBSCRIBERS = 4
_SPARE_TIME_S = 15


def unicast(receiving):
    """Returns the channel of the publisher and the channel of its only subscriber."""
    channel = f"aeron:udp?endpoint={receiving.address}:{free_port()}"
    return channel, (channel,)


def multicast(_):
    """Returns the channels of one publisher and several subscribers. The subscribers share one image of their
    driver."""
    channel = f"aeron:udp?endpoint=224.10.9.7:{free_port()}|interface=localhost"
    return f"{channel}|fc=min", (channel,) * SUBSCRIBERS


def several_destinations(_):
    """Returns the channels of one publisher and several subscribers. Each subscriber has its own socket. The publisher
    waits until all are connected."""
    control = f"control=localhost:{free_port()}|control-mode=dynamic"
    subscribers = (f"aeron:udp?endpoint=localhost:{free_port()}|{control}" for _ in range(SUBSCRIBERS))
    return f"aeron:udp?{control}|fc=min,g:/{SUBSCRIBERS}", tuple(subscribers)


@dataclass
class UdpOneWay:
    """Messages per second from one process to another, and the CPU time of all processes per million messages."""

    name: str
    drivers: tuple
    """One kind for a driver that both clients use, or two kinds: the publisher's driver and the subscriber's driver."""
    driver_settings: dict
    settings: dict = field(default_factory=dict)
    channels: Callable = unicast
    between_hosts: bool = False
    placement: Placement = SPLIT
    unit: str = "messages/s"

    def measure(self, seconds):
        words, place = timed(self.settings, seconds), self.placement.prefix
        with ExitStack() as stack:
            sending, receiving = stack.enter_context(two_hosts()) if self.between_hosts else (HERE, HERE)
            ends = [
                stack.enter_context(running_driver(kind, self.driver_settings, (*host.place, *place("driver"))))
                for kind, host in zip(self.drivers, (sending, receiving), strict=False)
            ]
            to, at = self.channels(receiving)
            at_subscriber, at_publisher = (
                (*receiving.place, *place("subscriber")),
                (*sending.place, *place("publisher")),
            )
            receiver = stack.enter_context(
                started((env.native(),), ends[-1][0], ["sub", f"channel={' '.join(at)}", *words], at_subscriber)
            )
            expect_ready(receiver)
            sender = stack.enter_context(
                started((env.native(),), ends[0][0], ["pub", f"channel={to}", *words], at_publisher)
            )
            expect_ready(sender)
            before = _used(ends)
            sent = json.loads(sender.read(seconds + _SPARE_TIME_S))
            got = json.loads(receiver.read(seconds + _SPARE_TIME_S))
            cpu = _used(ends) - before + sent["cpu"] + got["cpu"]
            # The clients are killed, because an orderly end of the stream would last until the drivers' timeouts.
            sender.kill()
            receiver.kill()
        if got["faults"] or (got["received"], got["sum"]) != (sent["sent"], sent["sum"]):
            raise VoidError(f"{self.name}: sent {sent}, received {got}")
        return {"rate": got["measured"] / got["seconds"], "cost": cpu / sent["sent"] * 1e6}


@dataclass
class UdpRoundTrip:
    """Round-trip time. The next message is sent after the previous one has come back."""

    name: str
    drivers: tuple
    driver_settings: dict
    settings: dict = field(default_factory=dict)
    between_hosts: bool = False
    placement: Placement = SPLIT
    unit: str = "ns"

    def measure(self, seconds):
        words, place = timed(self.settings, seconds), self.placement.prefix
        with ExitStack() as stack:
            calling, answering = stack.enter_context(two_hosts()) if self.between_hosts else (HERE, HERE)
            directories = [
                stack.enter_context(running_driver(kind, self.driver_settings, (*host.place, *place("driver"))))[0]
                for kind, host in zip(self.drivers, (calling, answering), strict=False)
            ]
            there, back = unicast(answering)[0], unicast(calling)[0]
            words += [f"channel={there}", f"reply={back}"]
            at_echo, at_caller = (*answering.place, *place("subscriber")), (*calling.place, *place("publisher"))
            echo = stack.enter_context(started((env.native(),), directories[-1], ["pong", *words], at_echo))
            expect_ready(echo)
            caller = stack.enter_context(started((env.native(),), directories[0], ["ping", *words], at_caller))
            times = json.loads(caller.read(seconds * 4 + _SPARE_TIME_S))
            caller.kill()
            echo.kill()
        return times


@dataclass
class EmbeddedRoundTrip:
    """Round-trip time between two processes that each have an embedded driver."""

    name: str
    command: Callable
    driver: str
    """Mode of the embedded driver: `invoked` by the loop of the process, or on its own `threads`."""
    driver_settings: dict
    settings: dict = field(default_factory=dict)
    placement: Placement = SPLIT
    unit: str = "ns"

    def measure(self, seconds):
        there, back = unicast(HERE)[0], unicast(HERE)[0]
        words = timed({**self.settings, "driver": self.driver, "channel": there, "reply": back}, seconds)
        with ExitStack() as stack:
            roles = []
            for role, place in (("pong", "subscriber"), ("ping", "publisher")):
                directory, _ = stack.enter_context(running_driver(None, {}))
                command, at = (self.command(),), self.placement.prefix(place)
                process = started(command, f"{directory}/driver", [role, *words], at, self.driver_settings)
                roles.append(stack.enter_context(process))
                if role == "pong":
                    expect_ready(roles[0])
            times = json.loads(roles[1].read(seconds * 4 + _SPARE_TIME_S))
            for process in roles:
                process.kill()
        return times


def _used(ends):
    return sum(cpu_seconds(process.pid) for _, process in ends)
