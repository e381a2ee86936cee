"""Tests of claims: a program reserves a range of the log, fills the range, and commits or aborts the claim."""

from __future__ import annotations

import gc
import os
import signal
import threading

import numpy as np
import pytest
from tests.conftest import Stream, eventually

import aeron


class Oops(Exception):
    pass


def test_the_end_of_the_block_commits_the_claim(stream: Stream) -> None:
    with stream.publication.claim(5, timeout=1) as view:
        assert isinstance(view, memoryview)
        assert not view.readonly
        assert len(view) == 5
        assert stream.subscription.poll(lambda *_: None) == 0, "the message is visible before the commit"
        view[:] = b"hello"
    assert stream.receive() == [b"hello"]


def test_an_exception_in_the_block_aborts_the_claim(stream: Stream) -> None:
    """03-93: abort writes padding, and a poll skips it."""
    with pytest.raises(Oops), stream.publication.claim(5) as view:
        view[:] = b"wrong"
        raise Oops
    stream.publication.offer(b"next")
    assert stream.receive() == [b"next"]


def test_the_view_of_a_claim_is_released_when_the_claim_ends(stream: Stream) -> None:
    with stream.publication.claim(5) as view:
        pass
    with pytest.raises(ValueError, match="released"):
        view[0] = 1
    claim = stream.publication.try_claim(8)
    view = claim.view
    exporter = view.obj
    claim.commit()
    with pytest.raises(ValueError, match="released"):
        bytes(view)
    with pytest.raises(BufferError):
        memoryview(exporter)


def test_a_claim_can_be_committed_or_aborted_only_once(stream: Stream) -> None:
    claim = stream.publication.try_claim(8)
    assert not claim.is_finished
    assert claim.commit() == claim.position == stream.publication.position
    assert claim.is_finished
    for finish in (claim.commit, claim.abort, lambda: claim.set_flags(0), lambda: claim.set_reserved_value(1)):
        with pytest.raises(aeron.AeronError, match="already"):
            finish()
    with stream.publication.claim(3) as _:
        pass


def test_the_block_may_commit_or_abort_its_claim_itself(stream: Stream) -> None:
    claim = stream.publication.claim(3)
    with claim as view:
        view[:] = b"abc"
        claim.commit()
    with pytest.raises(Oops), (second := stream.publication.claim(3)):
        second.abort()
        raise Oops
    stream.publication.offer(b"next")
    assert stream.receive(2) == [b"abc", b"next"]


def test_dropping_a_claim_without_a_commit_aborts_it(stream: Stream) -> None:
    stream.publication.try_claim(100)
    gc.collect()
    stream.publication.offer(b"next")
    assert stream.receive() == [b"next"]


def test_the_reserved_value_of_a_claim_is_sent(stream: Stream) -> None:
    claim = stream.publication.try_claim(4)
    claim.set_reserved_value(-5)
    claim.view[:] = b"data"
    claim.commit()
    batch = stream.subscription.poll_batch()
    assert list(batch.reserved_values) == [-5]


def test_a_claim_is_truthy_and_the_reason_for_no_claim_is_falsy(stream: Stream) -> None:
    claim = stream.publication.try_claim(0)
    assert claim
    assert len(claim) == claim.length == 0
    claim.abort()
    while claim := stream.publication.try_claim(1000):
        claim.abort()
    assert claim in (aeron.BACK_PRESSURED, aeron.ADMIN_ACTION)


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_views_and_arrays_that_are_kept_after_a_claim_do_not_change_the_log(stream: Stream, end: str) -> None:
    claim = stream.publication.try_claim(32)
    view = claim.view
    kept = [view[:16], np.frombuffer(view, dtype="<i8"), memoryview(view)]
    view[:] = bytes(range(32))
    assert getattr(claim, end)() in (None, claim.position)
    kept[0][:] = b"\xff" * 16
    kept[1][:] = -1
    kept[2][:] = b"\xff" * 32
    assert stream.publication.offer(b"next")
    expected = [bytes(range(32))] if end == "commit" else []
    assert stream.receive(len(expected) + 1) == [*expected, b"next"]
    assert kept[1].sum() == -4, "after the end of the claim, the array has no memory of its own"


def test_a_claim_is_sent_once_although_an_array_of_it_is_kept(stream: Stream) -> None:
    with stream.publication.claim(16) as view:
        array = np.frombuffer(view, dtype="<i8")
        array[:] = [1, 2]
    array[:] = [3, 4]
    stream.publication.offer(b"next")
    assert stream.receive(2) == [np.array([1, 2], dtype="<i8").tobytes(), b"next"]


def test_a_direct_claim_is_a_view_of_the_log(stream: Stream) -> None:
    with stream.publication.claim(4, direct=True) as view:
        view[:] = b"1234"
        kept = view[:1]
    kept[:] = b"x"
    assert stream.receive() == [b"x234"], "the kept view of a direct claim is not a view of the log"
    claim = stream.publication.try_claim(4, direct=True)
    claim.view[:] = b"abcd"
    claim.commit()
    assert stream.receive() == [b"abcd"]


def test_an_array_of_a_claim_can_be_read_after_client_and_publication_are_closed(stream: Stream) -> None:
    with stream.publication.claim(16) as view:
        array = np.frombuffer(view, dtype="<i8")
        array[:] = [1, 2]
    stream.publication.close()
    stream.subscription.close()
    stream.client.close()
    gc.collect()
    assert array.sum() is not None


def test_a_claim_can_be_filled_and_committed_after_its_publication_and_client_are_closed(stream: Stream) -> None:
    claim = stream.publication.try_claim(16)
    stream.publication.close()
    stream.client.close()
    claim.view[:] = bytes(16)
    claim.commit()


def test_a_signal_during_a_wait_for_a_claim_leaves_no_claim_that_blocks_the_stream(
    client: aeron.Aeron, stream_id: int
) -> None:
    def interrupt(*_: object) -> None:
        raise Oops

    publication = client.add_publication("aeron:ipc?term-length=64k", stream_id)
    subscription = client.add_subscription("aeron:ipc?term-length=64k", stream_id)
    publication.wait_connected(5)
    while publication.offer(bytes(1000)):
        pass

    def signal_and_make_room() -> None:
        os.kill(os.getpid(), signal.SIGUSR1)
        eventually(lambda: len(subscription.poll_batch()) == 0)

    reader = threading.Timer(0.2, signal_and_make_room)
    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        reader.start()
        with pytest.raises(Oops):
            publication.claim(100, timeout=10)
    finally:
        signal.signal(signal.SIGUSR1, before)
        reader.join()
    publication.publish(b"after", timeout=5)
    received: list[bytes] = []
    # `eventually` waits for 10 s. An abandoned claim would block the stream until the driver unblocks it after 15 s.
    eventually(lambda: received.extend(subscription.poll_batch().to_list()) or received[-1:] == [b"after"])
