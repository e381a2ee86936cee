"""Tests of requests to an archive that does not respond.

The process of an archive is stopped, and every method of `AeronArchive` that has a form with the prefix `async_` is
called in both forms. Each call ends at the message timeout with an error that names the request and the limit. When the
archive continues, the same call gets a response in the same session.
"""

from __future__ import annotations

import pytest
from tests import waiting_requests
from tests.waiting_requests import FORMS, Run

import aeron

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def runs() -> dict[tuple[str, str], Run]:
    return waiting_requests.runs("ours")


@pytest.mark.parametrize(("method", "prefix"), FORMS, ids=[prefix + method for method, prefix in FORMS])
def test_a_request_to_a_stopped_archive_ends_with_an_error_and_the_next_request_gets_a_response(
    runs: dict[tuple[str, str], Run], method: str, prefix: str
) -> None:
    run = runs[method, prefix]
    waiting_requests.check(run, method)
    assert not isinstance(run.afterwards.error, aeron.NotSupportedByArchiveError), run
