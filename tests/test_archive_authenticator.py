"""Tests of a function that decides about the clients of an archive."""

from __future__ import annotations

import hashlib
import hmac
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import eventually

import aeron
from aeron import AuthenticationDecision as Decision
from aeron._pipeline import _read_archive_mark

_KEY = b"0123456789abcdef"


def archive_with(
    tmp_path: Path, driver: aeron.MediaDriver, function: Callable[..., Any], **settings: Any
) -> aeron.Archive:
    return aeron.Archive(
        tmp_path / "archive", driver=driver, authenticator=function, low_storage_space_threshold=0, **settings
    )


def sign(challenge: bytes) -> bytes:
    return hmac.digest(_KEY, challenge, hashlib.sha256)


def errors(tmp_path: Path) -> list[str]:
    mark = _read_archive_mark(tmp_path / "archive")
    assert mark is not None
    # The tests share a driver, so a late request of a former test's client may be in the log too.
    return [error.text for error in mark.errors if error.text.startswith("authenticator")]


def test_a_function_challenges_accepts_and_rejects_clients(
    driver: aeron.MediaDriver, client: aeron.Aeron, tmp_path: Path
) -> None:
    """07-200"""
    seen = []

    def authenticate(session: aeron.AuthenticatingSession, credentials: bytes) -> Decision:
        seen.append((session, credentials))
        if session.challenge is None:
            return Decision.challenge(b"sign this") if credentials == b"ada" else Decision.reject()
        return Decision.accept("ada") if credentials == sign(session.challenge) else Decision.reject()

    def credentials(challenge: bytes | None) -> bytes:
        return b"ada" if challenge is None else sign(challenge)

    with archive_with(tmp_path, driver, authenticate):
        with aeron.connect_archive(client, credentials=credentials) as archive:
            assert len(archive.list_recordings()) == 0
        [first, second] = seen
        assert first[0].challenge is None
        assert first[1] == b"ada"
        assert second == (
            aeron.AuthenticatingSession(first[0].control_session_id, first[0].source, b"sign this"),
            sign(b"sign this"),
        )
        assert first[0].source.startswith("client ")
        for wrong in (b"bob", lambda challenge: b"ada" if challenge is None else b"guess"):
            with pytest.raises(aeron.AuthenticationRejectedError):
                aeron.connect_archive(client, credentials=wrong)
    assert errors(tmp_path) == []


def test_the_name_that_a_function_accepts_has_the_role_of_the_user_in_the_file(
    driver: aeron.MediaDriver, client: aeron.Aeron, tmp_path: Path
) -> None:
    """07-200"""
    users = tmp_path / "users.toml"
    users.write_text(f'[[user]]\nname = "reader"\nrole = "read"\nkey = "{_KEY.hex()}"\n')
    users.chmod(0o600)
    with (
        archive_with(tmp_path, driver, lambda _, credentials: Decision.accept(credentials), users_file=str(users)),
        aeron.connect_archive(client, credentials=b"reader") as reader,
    ):
        assert len(reader.list_recordings()) == 0
        with pytest.raises(aeron.UnauthorisedActionError):
            reader.start_recording("aeron:ipc", 1)
        # The first request of a client asks for the id of the archive.
        with pytest.raises(aeron.UnauthorisedActionError):
            aeron.connect_archive(client, credentials=b"stranger")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda session, credentials: {}[credentials], "KeyError: b'ada'"),
        (lambda session, credentials: True, "returned bool"),
        (lambda session: Decision.accept(), "positional argument"),
    ],
)
def test_an_error_of_the_function_rejects_the_client_and_is_in_the_error_log(
    driver: aeron.MediaDriver, client: aeron.Aeron, tmp_path: Path, function: Callable[..., Any], reason: str
) -> None:
    """07-201"""
    with archive_with(tmp_path, driver, function):
        with pytest.raises(aeron.AuthenticationRejectedError):
            aeron.connect_archive(client, credentials=b"ada")
        eventually(lambda: errors(tmp_path))
    [error] = errors(tmp_path)
    assert error.startswith("authenticator failed, the client is rejected: ")
    assert reason in error


def test_a_function_that_does_not_return_holds_up_nobody_who_is_connected_and_its_client_is_rejected(
    driver: aeron.MediaDriver, client: aeron.Aeron, tmp_path: Path
) -> None:
    """07-201"""
    go_on = threading.Event()

    def authenticate(_: aeron.AuthenticatingSession, credentials: bytes) -> Decision:
        if credentials == b"slow":
            go_on.wait(60)
        return Decision.accept(credentials)

    with (
        archive_with(tmp_path, driver, authenticate, connect_timeout_ns=2_000_000_000),
        aeron.connect_archive(client, credentials=b"ada") as archive,
    ):
        rejected = threading.Event()

        def connect() -> None:
            with pytest.raises(aeron.AuthenticationRejectedError):
                aeron.connect_archive(client, credentials=b"slow")
            rejected.set()

        thread = threading.Thread(target=connect)
        thread.start()
        while not rejected.is_set():
            begin = time.monotonic()
            assert len(archive.list_recordings()) == 0
            assert time.monotonic() - begin < 1
            time.sleep(0.01)
        thread.join()
        [error] = errors(tmp_path)
        assert "no decision after 1800 ms" in error
        go_on.set()
        aeron.connect_archive(client, credentials=b"later").close()


def test_an_authenticator_that_is_no_function_or_contradicts_a_setting_is_refused(
    driver: aeron.MediaDriver, tmp_path: Path
) -> None:
    with pytest.raises(aeron.ArgumentTypeError, match="authenticator=5 is not a function"):
        aeron.Archive(tmp_path, driver=driver, authenticator=5)  # type: ignore[arg-type]
    with pytest.raises(aeron.ConfigurationError, match="a function decides about clients"):
        archive_with(
            tmp_path,
            driver,
            lambda *_: Decision.reject(),
            authenticator_supplier="io.aeron.security.DefaultAuthenticatorSupplier",
        )
