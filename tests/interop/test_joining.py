"""Test of receivers that join a running multi-destination stream. `python -m interop.joining` measures the times."""

import pytest

import aeron
from interop.channels import dynamic
from interop.drivers import PATIENT_SETTINGS
from interop.joining import join, running_stream

RATE = 1e6
LENGTH = 300_000


@pytest.mark.parametrize("receiver", ["c", "java", "ours"])
def test_a_receiver_that_joins_a_running_stream_receives_all_messages_from_its_join_position(receiver, start_driver):
    control, channel = dynamic()
    sending, receiving = start_driver("ours", PATIENT_SETTINGS), start_driver(receiver, PATIENT_SETTINGS)
    with (
        running_stream(sending.directory, control, channel, RATE),
        aeron.connect(receiving.directory) as client,
    ):
        first, last = join(client, channel, LENGTH)
    assert first is not None, "no message arrived"
    assert last is not None, "the stream stopped"
