"""Tests of the users of our archive with the real client: passwords, challenges and roles."""

import pytest

from interop.archive_peers import AUTHENTICATION_REJECTED, UNAUTHORISED_ACTION
from interop.peers import PeerError
from interop.users import scrypt_secret

_KINDS = ("ours", "ours")
_CHANNEL = "aeron:ipc?term-length=64k"
_KEY = bytes(range(32))
_SAMPLE = "io.aeron.samples.archive.SampleAuthenticatorSupplier"
_TIMEOUT_MS = 700


@pytest.fixture
def users_file(tmp_path):
    """Returns a users file. `ann` may read, `rex` may record, and `adam` is an admin with a key for challenges."""
    path = tmp_path / "users.toml"
    path.touch(mode=0o600)
    path.write_text(
        f"""
        [[user]]
        name = "ann"
        role = "read"
        secret = "{scrypt_secret(b"ann's")}"

        [[user]]
        name = "rex"
        role = "record"
        secret = "{scrypt_secret(b"rex's")}"

        [[user]]
        name = "adam"
        role = "admin"
        key = "{_KEY.hex()}"
        """
    )
    return path


@pytest.fixture
def connect(drivers, start_archive, archive_client, users_file):
    """`connect(**credentials)` connects the real client to an archive with users."""
    archive_kind, driver_kind = _KINDS
    driver = drivers(driver_kind)
    settings = {
        "aeron.archive.users.file": str(users_file),
        "aeron.archive.authenticator.supplier": _SAMPLE,
        "aeron.archive.connect.timeout": f"{_TIMEOUT_MS}ms",
    }
    archive = start_archive(archive_kind, driver, settings)

    def start(way="ipc", **credentials):
        return archive_client(driver, archive, way, **credentials)

    start.archive = archive
    return start


@pytest.mark.parametrize("way", ["ipc", "udp"])
def test_a_user_with_the_correct_password_is_accepted(connect, way):
    """07-26"""
    assert connect(way, credentials=b"ann:ann's").list_recordings() == []


@pytest.mark.parametrize("credentials", [b"", b"ann", b"ann:", b"ann:rex's", b"nobody:ann's", b"adam:"])
def test_unknown_users_and_wrong_passwords_are_rejected(connect, credentials):
    """07-26, 07-27"""
    with pytest.raises(PeerError, match="authentication rejected") as refused:
        connect(credentials=credentials)
    assert refused.value.code == AUTHENTICATION_REJECTED


def test_a_user_with_the_correct_key_passes_the_challenge(connect):
    """07-27"""
    assert connect("udp", credentials=b"adam", challenge_key=_KEY).list_recordings() == []
    with pytest.raises(PeerError) as refused:
        connect(credentials=b"adam", challenge_key=_KEY[::-1])
    assert refused.value.code == AUTHENTICATION_REJECTED


def test_a_role_limits_the_requests_of_its_users_and_the_session_continues(connect, stream):
    """07-29"""
    reader = connect(credentials=b"ann:ann's")
    recorder = connect(credentials=b"rex:rex's")
    admin = connect(credentials=b"adam", challenge_key=_KEY)
    with pytest.raises(PeerError, match="unauthorised action") as refused:
        reader.start_recording(_CHANNEL, stream)
    assert refused.value.code == UNAUTHORISED_ACTION
    assert reader.list_recordings() == []
    publication = recorder.add_recorded_publication(_CHANNEL, stream, exclusive=True)
    recording = recorder.await_signal("START")["recording"]
    recorder.stop_recording_publication(publication)
    recorder.await_signal("STOP")
    assert len(reader.list_recordings()) == 1
    with pytest.raises(PeerError) as refused:
        recorder.purge(recording)
    assert refused.value.code == UNAUTHORISED_ACTION
    assert admin.purge(recording) == 1


def test_the_archive_refuses_to_start_if_others_can_read_its_users_file(connect, users_file):
    connect.archive.stop()
    users_file.chmod(0o644)
    with pytest.raises(AssertionError, match="mode 0644 lets others use it: set mode 0600 with chmod"):
        connect.archive.start()
    assert connect.archive.mark_file()[1] == -1
    users_file.chmod(0o600)
    connect.archive.start()
