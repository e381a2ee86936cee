"""`iceoryx2` slices. The publisher writes into loaned memory, and the subscriber reads views of it. If the subscriber
is slow, the publisher waits and drops nothing."""

import ctypes
import os
import struct
import time

import iceoryx2 as iox
from records import RING, Check, last, ready, report_sent, ring_of_bytes, run

DEPTH = 256
HEAD = struct.Struct("<qq")
iox.set_log_level(iox.LogLevel.Error)


def open_service(arguments):
    """Returns a node, and the service named after the directory."""
    node = iox.NodeBuilder.new().create(iox.ServiceType.Ipc)
    name = iox.ServiceName.new(os.path.basename(arguments.directory))
    builder = node.service_builder(name).publish_subscribe(iox.Slice[ctypes.c_uint8])
    return node, builder.enable_safe_overflow(False).subscriber_max_buffer_size(DEPTH).open_or_create()


def publish(arguments):
    _node, service = open_service(arguments)
    publisher = (
        service.publisher_builder()
        .initial_max_slice_len(arguments.length)
        .backpressure_strategy(iox.BackpressureStrategy.RetryUntilDelivered)
        .create()
    )
    while service.dynamic_config.number_of_subscribers == 0:
        time.sleep(0.001)
    length, heads, body = arguments.length, ring_of_bytes(16), bytes(arguments.length)

    def send(head):
        sample = publisher.loan_slice_uninit(length)
        view = sample.payload().as_memory_view().cast("B")
        view[:] = body
        view[:16] = head
        sample.assume_init().send()

    number, deadline = 0, time.perf_counter() + arguments.seconds
    while time.perf_counter() < deadline:
        for _ in range(64):
            send(heads[number % RING])
            number += 1
    send(last(16).tobytes())
    report_sent(number)
    while service.dynamic_config.number_of_subscribers > 0:
        time.sleep(0.001)


def subscribe(arguments):
    _node, service = open_service(arguments)
    subscriber = service.subscriber_builder().create()
    ready()
    check = Check(arguments)
    while not check.ended:
        sample = subscriber.receive()
        if sample is None:
            os.sched_yield()
            continue
        check.take_one(*HEAD.unpack_from(sample.payload().as_memory_view()))
        sample.delete()
    check.report()


run({"pub": publish, "sub": subscribe})
