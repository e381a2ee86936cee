"""Tests of the last datagram of a term, between two drivers over UDP. It ends in a padding frame, of which only the
header is sent."""

import time

import pytest

import aeron
from interop.channels import unicast

_TERM_LENGTH = 64 * 1024
# Receivers accept data up to half a term after the position of their last status message.
_WINDOW = _TERM_LENGTH // 2
_HEADER_LENGTH = 32
_FIRST_STREAM = 20_000
_SENDER_POSITION = 2
_TIMEOUT_S = 20


@pytest.mark.parametrize("frame_length", [64, 544, 1056, 1376])
@pytest.mark.parametrize(
    ("sender", "receiver"), [("ours", "ours"), ("ours", "c"), ("c", "ours"), ("ours", "java"), ("java", "ours")]
)
def test_each_remainder_of_a_term_is_received_within_the_first_window(sender, receiver, frame_length, drivers):
    """04-196: if the stream is not reliable, a datagram that the receiver drops is a lost message

    The real C driver counts the whole padding and drops some of these datagrams, from each sender. Its streams are
    therefore reliable."""
    reliable = str(receiver == "c").lower()
    channel = unicast()
    with (
        aeron.connect(drivers(sender).directory) as publishing,
        aeron.connect(drivers(receiver).directory) as subscribing,
    ):
        missing = {
            remainder: lost
            for remainder in range(_HEADER_LENGTH, frame_length, 32)
            if (lost := _lost(publishing, subscribing, channel, reliable, frame_length, remainder))
        }
    assert missing == {}


def _lost(publishing, subscribing, channel, reliable, frame_length, remainder):
    """Returns the numbers of the lost messages of a stream with this remainder at the end of its first window."""
    stream = _FIRST_STREAM + remainder
    # Before the subscriber reads, as many messages are sent as the window allows, and then the header of the padding.
    count = (_WINDOW - _HEADER_LENGTH) // frame_length
    offset = _TERM_LENGTH - remainder - count * frame_length
    start = f"|term-length={_TERM_LENGTH}|init-term-id=7|term-id=7|term-offset={offset}"
    with (
        subscribing.add_subscription(f"{channel}|reliable={reliable}", stream) as subscription,
        publishing.add_exclusive_publication(channel + start, stream) as publication,
    ):
        publication.wait_connected(timeout=_TIMEOUT_S)
        subscription.wait_connected(timeout=_TIMEOUT_S)
        for number in range(count):
            assert _offer(publication, number, frame_length) > 0
        is_next_sent = _offer(publication, count, frame_length) > 0
        _until(lambda: _sender_position(publishing, publication) == _TERM_LENGTH, "the padding is sent")
        received = []

        def has_all():
            nonlocal is_next_sent
            subscription.poll(lambda payload, header: received.append(int.from_bytes(bytes(payload[:4]), "little")))
            is_next_sent = is_next_sent or _offer(publication, count, frame_length) > 0
            return received and received[-1] == count

        _until(has_all, "the first message of the next term is received")
    return sorted(set(range(count + 1)) - set(received))


def _offer(publication, number, frame_length):
    payload = number.to_bytes(4, "little") + bytes(frame_length - _HEADER_LENGTH - 4)
    position = publication.offer(payload)
    return publication.offer(payload) if position is aeron.ADMIN_ACTION else position


def _sender_position(client, publication):
    stream = f" {publication.session_id} {publication.stream_id} "
    counters = client.counters_reader
    return next(it.value for it in counters if it.type_id == _SENDER_POSITION and stream in it.label)


def _until(is_met, what):
    deadline = time.monotonic() + _TIMEOUT_S
    while not is_met():
        assert time.monotonic() < deadline, what
