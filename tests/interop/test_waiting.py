"""Tests of our client while the real archive or a real driver lets it wait."""

import pytest
from tests import waiting_requests
from tests.waiting_requests import ADDED, FORMS

import aeron
from interop import toolchain


@pytest.fixture(scope="module")
def runs(started):
    started(toolchain.jar)
    return waiting_requests.runs("java")


@pytest.mark.parametrize(("method", "prefix"), FORMS, ids=[prefix + method for method, prefix in FORMS])
def test_a_request_to_the_stopped_real_archive_ends_with_an_error_and_the_next_request_gets_a_response(
    runs, method, prefix
):
    run = runs[method, prefix]
    waiting_requests.check(run, method)
    # The real archive never responds to the question for the capabilities, whether it is stopped or not.
    assert isinstance(run.afterwards.error, aeron.NotSupportedByArchiveError) == (method in ADDED), run


@pytest.mark.parametrize("kind", ["c", "java", "ours"])
def test_the_port_of_a_subscription_is_known_when_the_subscription_is_ready(shared_drivers, kind):
    """So a persistent subscription never waits in its state AWAIT_REPLAY_CHANNEL_ENDPOINT."""
    with aeron.connect(shared_drivers(kind).directory) as client:
        for stream in range(20):
            adding = client.async_add_subscription("aeron:udp?endpoint=localhost:0", stream)
            while not adding.done():
                pass
            assert adding.result(timeout=0).try_resolve_channel_endpoint_port()
