"""Tests of the details of control sessions and recordings: messages, counters and files of the archive.

Each test runs on the real archive, to check the test itself, and on ours.
"""

import struct

import pytest

import aeron
from interop.archive_peers import (
    ACTIVE_RECORDING,
    ACTIVE_SUBSCRIPTION,
    INVALID_EXTENSION,
    MAX_RECORDINGS,
    STORAGE_SPACE,
    UNKNOWN_RECORDING,
    UNKNOWN_SUBSCRIPTION,
)
from interop.archive_protocol import (
    ARCHIVE_ID,
    CHALLENGE_RESPONSE,
    ERROR,
    KEEP_ALIVE,
    LIST_RECORDING,
    OK,
    PING,
    PROTOCOL_VERSION,
    RECORDING_UNKNOWN,
    RESPONSE,
    START_RECORDING,
    Connection,
    decoded_event,
)
from interop.channels import unicast
from interop.kinds import each_archive_on_ours
from interop.peers import PeerError
from interop.waiting import eventually

_TERM_LENGTH = 64 * 1024
_CHANNEL = f"aeron:ipc?term-length={_TERM_LENGTH}"
_LENGTHS = (10, 3000, 0, 1400, 7)
_COUNT = 200

# Numbers that are added to the stream id of a test. Stream ids near that id belong to other tests and to archives.
_REPLAY, _EVENTS, _OTHER = 10_000, 20_000, 30_000

_REC_POS, _ERRORS, _SESSIONS, _RECORDINGS, _REPLAYS, _CONTROL_SESSION = 100, 101, 102, 111, 112, 113
# Id of a system counter of the driver.
_PUBLICATIONS_REVOKED = 40
_CONNECT_TIMEOUT_S = 0.6
_SHORT = {"aeron.archive.connect.timeout": f"{int(_CONNECT_TIMEOUT_S * 1000)}ms"}


class World:
    """An archive on a driver, and the clients of a test."""

    def __init__(self, archive, driver, archive_client, client):
        self.archive = archive
        self.aeron = client
        self._driver = driver
        self._archive_client = archive_client

    def connection(self, way="ipc"):
        """Returns a connection that sends and receives single protocol messages."""
        return Connection(self.aeron, self.archive, way)

    def client(self, way="ipc"):
        """Returns the real client, connected over `way`."""
        return self._archive_client(self._driver, self.archive, way)

    def counters(self, type):
        """Returns this archive's counters of a type. Other archives may share the driver."""
        end = f" - archiveId={self.archive_id}"
        counters = [counter for counter in self.aeron.counters_reader if counter.type_id == type]
        return [counter for counter in counters if counter.label.endswith(end) or f"{end} " in counter.label]

    def value(self, type):
        (counter,) = self.counters(type)
        return counter.value

    @property
    def archive_id(self):
        return self.archive.archive_id()


@pytest.fixture
def world(drivers, start_archive, archive_client):
    """`world(kinds, settings, driver_settings)` starts an archive on a driver."""
    clients = []

    def start(kinds, settings=None, driver_settings=None):
        archive_kind, driver_kind = kinds
        driver = drivers(driver_kind, driver_settings)
        archive = start_archive(archive_kind, driver, settings)
        clients.append(aeron.Aeron(driver.directory))
        return World(archive, driver, archive_client, clients[-1])

    yield start
    for client in clients:
        client.close()


def _recorded(client, stream, channel=_CHANNEL, **options):
    """Records messages of a new publication. Returns publication, recording id and recorded position."""
    client.start_recording(channel, stream, **options)
    publication = client.peer.add_publication(channel, stream, exclusive=True)
    start = client.await_signal("START")
    return publication, start["recording"], _publish(client, publication, start["recording"])


def _publish(client, publication, recording):
    publication.await_connected()
    publication.start_publish(_COUNT, _LENGTHS)
    assert client.peer.answer()["sent"] == _COUNT
    position = publication.state()["position"]
    client.await_recorded(recording, position)
    return position


def _continued(descriptor, difference=None):
    """Returns the channel of a publication that continues a recording at its stop position.

    With `difference`, the parameter of that name does not match the recording.
    """
    position, initial_term = descriptor["stop"], descriptor["initial_term"]
    term_length, mtu = descriptor["term_length"], descriptor["mtu"]
    match difference:
        case "position":
            position -= 32
        case "initial-term":
            initial_term += 1
        case "term-length":
            term_length *= 2
        case "mtu":
            mtu = 2048
    terms, offset = divmod(position, term_length)
    place = f"init-term-id={initial_term}|term-id={initial_term + terms}|term-offset={offset}"
    return f"aeron:ipc?{place}|term-length={term_length}|mtu={mtu}"


@each_archive_on_ours
def test_the_archive_repeats_the_response_to_connect_until_the_first_request(world, kinds):
    """07-16, 07-17, 07-18, 07-19, 07-30"""
    it = world(kinds, {"aeron.archive.session.liveness.check.interval": "200ms"})
    session = it.connection().connect()
    accepted = session.messages(1.1)
    assert 3 <= len(accepted) <= 8, accepted
    assert all(found == accepted[0] for found in accepted)
    assert accepted[0]["correlation"] == session.correlation
    assert accepted[0]["relevant"] == accepted[0]["session"]
    assert (accepted[0]["code"], accepted[0]["version"]) == (OK, PROTOCOL_VERSION)
    session.open()
    assert session.ask(ARCHIVE_ID)["relevant"] == it.archive_id
    later = session.messages(1.1)
    assert {found["template"] for found in later} == {PING}
    assert 3 <= len(later) <= 8, later


@each_archive_on_ours
def test_a_client_of_another_major_version_is_refused(world, kinds):
    """07-20, 07-21"""
    it = world(kinds, _SHORT)
    connection = it.connection()
    errors_before = it.value(_ERRORS)
    session = connection.connect(version=2 << 16)
    for _ in range(2):
        error = session.await_message(RESPONSE)
        assert error["code"] == ERROR
        assert error["text"] == "invalid client version 2.0.0, archive is 1.12.0"
        assert error["relevant"] == error["session"]
    eventually(lambda: not connection.publication.is_connected)
    eventually(lambda: it.value(_SESSIONS) == 0)
    eventually(lambda: it.value(_ERRORS) > errors_before)
    old = it.connection().connect(version=1 << 16).open()
    assert old.ask(ARCHIVE_ID)["relevant"] == it.archive_id


@each_archive_on_ours
def test_a_session_without_a_response_subscriber_ends(world, kinds):
    """07-22"""
    it = world(kinds, _SHORT)
    connection = it.connection()
    errors_before = it.value(_ERRORS)
    connection.send_connect("aeron:ipc?session-id=77")
    eventually(lambda: it.value(_SESSIONS) == 1)
    eventually(lambda: it.value(_SESSIONS) == 0)
    eventually(lambda: not connection.publication.is_connected)
    eventually(lambda: it.value(_ERRORS) > errors_before)
    assert it.counters(_CONTROL_SESSION) == []


@each_archive_on_ours
def test_a_connect_request_with_an_invalid_response_channel_only_records_an_error(world, kinds):
    """07-23"""
    it = world(kinds)
    connection = it.connection()
    errors_before = it.value(_ERRORS)
    connection.send_connect("nonsense")
    eventually(lambda: it.value(_ERRORS) > errors_before)
    assert it.value(_SESSIONS) == 0
    assert connection.connect().open().ask(ARCHIVE_ID)["code"] == OK


@each_archive_on_ours
def test_the_response_stream_has_the_term_length_and_mtu_of_the_request_or_else_of_the_archive(world, kinds):
    """07-24"""
    settings = {"aeron.archive.control.term.buffer.length": "128k", "aeron.archive.control.mtu.length": "4096"}
    it = world(kinds, settings)
    connection = it.connection()
    image = connection.connect("aeron:ipc?alias=mine").open().image
    assert (image.term_buffer_length, image.mtu_length) == (128 * 1024, 4096)
    image = connection.connect("aeron:ipc?term-length=256k|mtu=2048", stream=8021).open().image
    assert (image.term_buffer_length, image.mtu_length) == (256 * 1024, 2048)


@each_archive_on_ours
def test_a_client_receives_responses_over_a_channel_of_control_mode_response(world, kinds):
    """07-25"""
    client = world(kinds).client("response")
    assert client.list_recordings() == []
    assert client.state() == "CONNECTED"


@each_archive_on_ours
def test_a_challenge_response_without_a_challenge_is_ignored(world, kinds):
    """07-28"""
    session = world(kinds).connection().connect().open()
    session.send(CHALLENGE_RESPONSE, b"", b"anything")
    assert session.ask(ARCHIVE_ID)["code"] == OK


@each_archive_on_ours
@pytest.mark.parametrize("way", ["ipc", "udp"])
def test_a_close_request_ends_the_session_and_frees_its_counter_and_response_stream(world, kinds, way):
    """07-31, 07-36"""
    it = world(kinds)
    connection = it.connection(way)
    session = connection.connect().open()
    image = session.image
    eventually(lambda: it.value(_SESSIONS) == 1)
    (counter,) = it.counters(_CONTROL_SESSION)
    assert struct.unpack_from("<qq", counter.key) == (it.archive_id, session.id)
    assert counter.value == session.id
    label = f" sessionId={connection.publication.session_id} - archiveId={it.archive_id}"
    assert counter.label.startswith("control-session: sourceIdentity=")
    assert counter.label.endswith(label)
    assert it.aeron.counters_reader.reference_id(counter.id) > 0
    session.messages()
    session.close()
    eventually(lambda: it.counters(_CONTROL_SESSION) == [])
    eventually(lambda: image.is_closed)
    assert image.is_publication_revoked
    assert it.value(_SESSIONS) == 0
    assert [found for found in session.messages() if found["template"] == RESPONSE] == []
    assert connection.publication.is_connected


@each_archive_on_ours
def test_a_session_ends_without_its_response_subscriber_and_another_session_of_the_client_continues(world, kinds):
    """07-32, 07-37"""
    it = world(kinds)
    connection = it.connection()
    first, second = connection.connect().open(), connection.connect(stream=8021).open()
    assert first.id != second.id
    eventually(lambda: it.value(_SESSIONS) == 2)
    first.subscription.close()
    eventually(lambda: it.value(_SESSIONS) == 1)
    assert second.ask(ARCHIVE_ID)["relevant"] == it.archive_id
    assert connection.publication.is_connected


@each_archive_on_ours
def test_the_end_of_the_request_publication_ends_the_session_but_no_recordings(world, kinds, stream):
    """07-33, 07-38"""
    it = world(kinds)
    connection = it.connection()
    session = connection.connect().open()
    arguments = struct.pack("<iii", stream, 0, 0)
    assert session.ask(START_RECORDING, arguments, _CHANNEL.encode())["code"] == OK
    publication = it.aeron.add_publication(_CHANNEL, stream)
    eventually(lambda: it.value(_RECORDINGS) == 1)
    connection.publication.close()
    eventually(lambda: it.counters(_CONTROL_SESSION) == [])
    position = publication.publish(b"recorded without the session")
    (recording,) = it.counters(_REC_POS)
    eventually(lambda: it.aeron.counters_reader.value(recording.id) == position)


@each_archive_on_ours
def test_a_session_ends_if_its_client_does_not_read_the_responses(world, kinds):
    """07-34"""
    it = world(kinds, _SHORT)
    connection = it.connection()
    session = connection.connect().open()
    errors_before = it.value(_ERRORS)

    # The responses to these requests are longer than the window of the response stream.
    for _ in range(_TERM_LENGTH // 2 // 96 + 10):
        session.send(LIST_RECORDING, struct.pack("<q", 7))
    eventually(lambda: not connection.publication.is_connected)
    eventually(lambda: it.value(_SESSIONS) == 0)
    eventually(lambda: it.value(_ERRORS) > errors_before)


@each_archive_on_ours
def test_a_request_with_an_unknown_session_id_records_an_error_and_has_no_response(world, kinds):
    """07-35"""
    it = world(kinds)
    session = it.connection().connect().open()
    session.messages()
    errors_before = it.value(_ERRORS)
    session.send(ARCHIVE_ID, session=session.id + 1000)
    eventually(lambda: it.value(_ERRORS) > errors_before)
    assert [found for found in session.messages(0.2) if found["template"] == RESPONSE] == []
    unknown = session.ask(LIST_RECORDING, struct.pack("<q", 7))
    assert (unknown["code"], unknown["relevant"]) == (RECORDING_UNKNOWN, 7)
    assert session.ask(ARCHIVE_ID)["code"] == OK
    session.send(KEEP_ALIVE)
    assert [found for found in session.messages(0.1) if found["template"] == RESPONSE] == []


@each_archive_on_ours
def test_a_spy_records_a_udp_publication_of_the_same_driver(world, kinds, stream):
    """07-40"""
    client = world(kinds).client()
    channel = unicast()
    subscription = client.start_recording(channel, stream)
    remote = client.start_recording(unicast(), stream + _OTHER, source="REMOTE")
    ipc = client.start_recording(_CHANNEL, stream)
    listed = {found["subscription"]: found["stripped"] for found in client.list_subscriptions()}
    assert listed[subscription] == f"aeron-spy:{channel}"
    assert listed[remote].startswith("aeron:udp?endpoint=")
    assert listed[ipc] == "aeron:ipc"
    publication = client.peer.add_publication(f"{channel}|ssc=true", stream, exclusive=True)
    recording = client.await_signal("START")["recording"]
    position = _publish(client, publication, recording)
    descriptor = client.list_recording(recording)
    assert descriptor["stripped"] == channel
    assert descriptor["source"] == "aeron:ipc"
    assert client.max_recorded_position(recording) == position


@each_archive_on_ours
def test_a_second_recording_subscription_for_the_same_channel_and_stream_is_refused(world, kinds, stream):
    """07-41"""
    client = world(kinds).client()
    client.start_recording(_CHANNEL, stream)
    with pytest.raises(PeerError, match=f"recording exists for streamId={stream} channel=aeron:ipc") as refused:
        client.start_recording("aeron:ipc?alias=other|mtu=2048", stream)
    assert refused.value.code == ACTIVE_SUBSCRIPTION


@each_archive_on_ours
def test_a_channel_with_a_session_id_records_that_session_and_one_without_it_records_all_sessions(world, kinds, stream):
    """07-42, 07-43, 07-46"""
    it = world(kinds)
    client = it.client()
    publications = [client.peer.add_publication(_CHANNEL, stream, exclusive=True) for _ in range(2)]
    sessions = [publication.session for publication in publications]
    client.start_recording(f"{_CHANNEL}|session-id={sessions[1]}", stream)
    only = client.await_signal("START")["recording"]
    client.start_recording(_CHANNEL, stream)
    both = [client.await_signal("START")["recording"] for _ in range(2)]
    assert client.list_recording(only)["session"] == sessions[1]
    assert sorted(client.list_recording(id)["session"] for id in both) == sorted(sessions)
    assert len({only, *both}) == 3
    descriptor = client.list_recording(only)
    (counter,) = [found for found in it.counters(_REC_POS) if struct.unpack_from("<q", found.key)[0] == only]
    source = descriptor["source"].encode()
    key = struct.pack("<qii", only, sessions[1], len(source)) + source + struct.pack("<q", it.archive_id)
    assert counter.key[: len(key)] == key
    stripped = descriptor["stripped"]
    label = f"rec-pos: {only} {sessions[1]} {stream} {stripped} - archiveId={it.archive_id}"
    assert (counter.label, counter.value) == (label, 0)


@each_archive_on_ours
def test_a_replay_of_frames_with_checksums_has_the_session_id_of_the_replay(world, kinds, stream):
    """07-51, 07-52"""
    checksum = {"aeron.archive.record.checksum": "CRC-32C", "aeron.archive.replay.checksum": "CRC-32C"}
    client = world(kinds, checksum).client()
    publication, recording, position = _recorded(client, stream)
    subscription = client.replay(recording, "aeron:ipc", stream + _REPLAY, position=0, length=position)
    received = subscription.receive(_COUNT, _LENGTHS)
    assert (received["faults"], received["received"]) == ([], _COUNT)
    assert str(publication.session) not in received["sessions"]


@each_archive_on_ours
@pytest.mark.parametrize(("channel", "is_behind"), [("aeron:ipc", True), ("udp", False)], ids=["behind", "at-the-end"])
def test_publications_to_a_killed_client_are_revoked_and_replays_to_other_clients_continue(
    world, kinds, stream, channel, is_behind
):
    """07-31, 07-94: the replay and the responses"""
    it = world(kinds, None, {"AERON_CLIENT_LIVENESS_TIMEOUT": "2s"})
    client, killed = it.client(), it.client()
    publication, recording, _ = _recorded(client, stream)
    other = it.aeron.add_subscription("aeron:ipc", stream + _OTHER)
    kept = killed.start_replay(recording, "aeron:ipc", stream + _OTHER, position=0)
    channel = unicast() if channel == "udp" else channel
    replay = killed.replay(recording, channel, stream + _REPLAY, position=0)
    received = 0

    def has_received_all(count):
        nonlocal received
        received += len(other.poll_batch(100))
        return received == count

    eventually(lambda: has_received_all(_COUNT))
    if not is_behind:
        assert replay.receive(_COUNT, _LENGTHS)["received"] == _COUNT
    revoked = it.aeron.counters_reader.value(_PUBLICATIONS_REVOKED)
    assert (it.value(_REPLAYS), it.value(_SESSIONS)) == (2, 2)
    killed.peer.process.kill()
    eventually(lambda: (it.value(_REPLAYS), it.value(_SESSIONS)) == (1, 1))
    eventually(lambda: it.aeron.counters_reader.value(_PUBLICATIONS_REVOKED) == revoked + 2)
    _publish(client, publication, recording)
    eventually(lambda: has_received_all(2 * _COUNT))
    client.stop_replay(kept)
    eventually(lambda: it.value(_REPLAYS) == 0)
    assert it.archive.error_log() == b""


@each_archive_on_ours
def test_a_recording_is_stopped_by_channel_and_by_recording_id(world, kinds, stream):
    """07-54"""
    client = world(kinds).client()
    _, first, _ = _recorded(client, stream)
    client.stop_recording_channel("aeron:ipc?alias=other", stream)
    client.await_signal("STOP", recording=first)
    with pytest.raises(PeerError) as refused:
        client.stop_recording_channel(_CHANNEL, stream)
    assert refused.value.code == UNKNOWN_SUBSCRIPTION
    _, second, _ = _recorded(client, stream + _OTHER)
    assert client.try_stop_recording_by_identity(second)
    client.await_signal("STOP", recording=second)
    assert not client.try_stop_recording_by_identity(second)
    assert client.list_subscriptions() == []
    with pytest.raises(PeerError) as refused:
        client.try_stop_recording_by_identity(77)
    assert refused.value.code == UNKNOWN_RECORDING


@each_archive_on_ours
def test_the_end_of_a_publication_ends_its_recording_but_not_the_recording_subscription(world, kinds, stream):
    """07-55"""
    it = world(kinds)
    client = it.client()
    publication, recording, position = _recorded(client, stream)
    publication.close()
    stop = client.await_signal("STOP", recording=recording)
    assert stop["position"] == position
    descriptor = client.list_recording(recording)
    assert descriptor["stop"] == position
    assert descriptor["stop_timestamp"] >= descriptor["start_timestamp"]
    assert [found["stream"] for found in client.list_subscriptions()] == [stream]
    client.peer.add_publication(_CHANNEL, stream, exclusive=True)
    assert client.await_signal("START")["recording"] == recording + 1


@each_archive_on_ours
def test_a_recording_subscription_with_auto_stop_ends_with_its_recording(world, kinds, stream):
    """07-56"""
    client = world(kinds).client()
    publication, recording, _ = _recorded(client, stream, auto_stop=True)
    publication.close()
    client.await_signal("STOP", recording=recording)
    eventually(lambda: client.list_subscriptions() == [])


@each_archive_on_ours
def test_a_recording_is_extended_at_its_stop_position(world, kinds, stream):
    """07-57, 07-59"""
    it = world(kinds)
    client = it.client()
    publication, recording, position = _recorded(client, stream)
    with pytest.raises(PeerError) as refused:
        client.extend_recording(recording, "aeron:ipc?session-id=1", stream)
    assert refused.value.code == ACTIVE_RECORDING
    with pytest.raises(PeerError) as refused:
        client.extend_recording(77, _CHANNEL, stream)
    assert refused.value.code == UNKNOWN_RECORDING
    client.stop_recording_channel(_CHANNEL, stream)
    client.await_signal("STOP")
    publication.close()
    with pytest.raises(PeerError) as refused:
        client.extend_recording(recording, _CHANNEL, stream + _OTHER)
    assert refused.value.code == UNKNOWN_RECORDING
    stopped = client.list_recording(recording)
    continued = client.peer.add_publication(_continued(stopped), stream, exclusive=True)
    subscription = client.extend_recording(recording, _CHANNEL, stream)
    signal = client.await_signal("EXTEND")
    assert signal["recording"] == recording
    assert signal["position"] == position
    assert signal["subscription"] == subscription
    # In the catalog file, these fields are at offset 64, after the headers of the file and of the entry. Each header
    # has 32 bytes.
    entry = struct.unpack_from("<qq", (it.archive.directory / "archive.catalog").read_bytes(), 64)
    assert entry == (client.session_id, signal["correlation"])
    running = client.list_recording(recording)
    assert (running["stop"], running["stop_timestamp"], running["session"]) == (-1, -1, continued.session)
    end = _publish(client, continued, recording)
    continued.close()
    assert client.await_signal("STOP")["position"] == end
    replayed = client.replay(recording, "aeron:ipc", stream + _REPLAY, position=position, length=end - position)
    assert replayed.receive(_COUNT, _LENGTHS)["received"] == _COUNT


@each_archive_on_ours
@pytest.mark.parametrize("difference", ["position", "initial-term", "term-length", "mtu"])
@pytest.mark.parametrize("auto_stop", [False, True], ids=["stays", "auto-stop"])
def test_an_extension_that_does_not_continue_the_recording_is_refused(world, kinds, stream, difference, auto_stop):
    """07-58"""
    client = world(kinds).client()
    publication, recording, _ = _recorded(client, stream)
    client.stop_recording_channel(_CHANNEL, stream)
    client.await_signal("STOP")
    publication.close()
    stopped = client.list_recording(recording)
    client.extend_recording(recording, _CHANNEL, stream, auto_stop=auto_stop)
    client.peer.add_publication(_continued(stopped, difference), stream, exclusive=True)
    errors = []

    def is_told():
        client.signals()
        errors.extend(client.errors())
        return errors

    eventually(is_told)
    assert [error["code"] for error in errors] == [INVALID_EXTENSION]
    assert client.list_recording(recording) == stopped
    eventually(lambda: bool(client.list_subscriptions()) == (not auto_stop))


@each_archive_on_ours
def test_a_recording_is_refused_below_the_threshold_of_free_storage_space(world, kinds, stream):
    """07-60"""
    it = world(kinds, {"aeron.archive.low.storage.space.threshold": str(1 << 60)})
    with pytest.raises(PeerError, match="low storage threshold") as refused:
        it.client().start_recording(_CHANNEL, stream)
    assert refused.value.code == STORAGE_SPACE


@each_archive_on_ours
def test_a_recording_above_the_maximum_number_is_refused(world, kinds, stream):
    """07-60"""
    client = world(kinds, {"aeron.archive.max.concurrent.recordings": "1"}).client()
    _recorded(client, stream)
    with pytest.raises(PeerError, match="max concurrent recordings reached 1") as refused:
        client.start_recording(_CHANNEL, stream + _OTHER)
    assert refused.value.code == MAX_RECORDINGS


@each_archive_on_ours
def test_recordings_need_no_subscriber_of_their_events_and_a_later_subscriber_receives_events(world, kinds, stream):
    """07-61"""
    events_stream = stream + _EVENTS
    settings = {
        "aeron.archive.recording.events.enabled": "true",
        "aeron.archive.recording.events.channel": "aeron:ipc?term-length=64k",
        "aeron.archive.recording.events.stream.id": str(events_stream),
    }
    it = world(kinds, settings)
    client = it.client()
    unheard, first, _ = _recorded(client, stream)
    unheard.close()
    client.await_signal("STOP", recording=first)
    with it.aeron.add_subscription("aeron:ipc?term-length=64k", events_stream) as events:
        eventually(lambda: events.is_connected)
        heard = []
        publication, recording, position = _recorded(client, stream + _OTHER)
        publication.close()

        def is_over():
            events.poll(lambda payload, header: heard.append(decoded_event(bytes(payload))), 100)
            return heard and heard[-1][0] == "stopped"

        eventually(is_over)
    started, *progress, stopped = heard
    assert started == ("started", recording, 0, publication.session, stream + _OTHER)
    assert stopped == ("stopped", recording, 0, position)
    positions = [event[3] for event in progress]
    assert positions == sorted(set(positions))
    assert positions[-1] == position
    assert {event[:3] for event in progress} == {("progress", recording, 0)}


@each_archive_on_ours
def test_a_link_file_names_the_directory_of_the_mark_file(world, kinds, tmp_path):
    """07-74"""
    elsewhere = tmp_path.resolve() / "marks"
    it = world(kinds, {"aeron.archive.mark.file.dir": str(elsewhere)})
    link = it.archive.directory / "archive-mark.lnk"
    assert link.read_text() == str(elsewhere)
    assert not (it.archive.directory / "archive-mark.dat").exists()
    it.archive.stop()
    del it.archive.settings["aeron.archive.mark.file.dir"]
    it.archive.start()
    assert not link.exists()


@each_archive_on_ours
def test_the_archive_saves_the_error_log_of_the_previous_run(world, kinds):
    """07-75"""
    it = world(kinds)
    it.connection().send_connect("nonsense")
    eventually(lambda: it.value(_ERRORS) > 0)
    it.archive.stop()
    assert it.archive.error_log() != b""
    it.archive.start()
    (saved,) = it.archive.directory.glob("archive-*-error.log")
    assert "nonsense" in saved.read_text()
    assert it.archive.error_log() == b""


@each_archive_on_ours
def test_the_archive_has_the_counters_of_the_real_archive_and_frees_them_at_its_end(world, kinds):
    """07-134"""
    it = world(kinds)
    id = it.archive_id
    counters = [(type, counter) for type in range(_REC_POS, 118) for counter in it.counters(type)]
    labels = {
        _ERRORS: "Archive Errors",
        _SESSIONS: "Archive Control Sessions",
        103: "archive-conductor max cycle time in ns: SHARED",
        104: "archive-conductor work cycle time exceeded count: threshold=100ms SHARED",
        105: "archive-recorder max write time in ns",
        106: "archive-recorder total write bytes",
        107: "archive-recorder total write time in ns",
        108: "archive-replayer max read time in ns",
        109: "archive-replayer total read bytes",
        110: "archive-replayer total read time in ns",
        _RECORDINGS: "Archive Recording Sessions",
        112: "Archive Replay Sessions",
    }
    found = {type: counter.label.split(f" - archiveId={id}")[0] for type, counter in counters}
    assert found == labels
    assert len(counters) == len(labels)
    assert all(struct.unpack_from("<q", counter.key)[0] == id for _, counter in counters)
    order = [type for type, _ in sorted(counters, key=lambda pair: pair[1].registration_id)]
    assert order == [101, 103, 104, 102, 111, 112, 105, 106, 107, 108, 109, 110]
    it.archive.stop()
    eventually(lambda: not any(it.counters(type) for type in labels))


@each_archive_on_ours
def test_a_second_archive_with_the_same_archive_id_is_refused(world, kinds, drivers, start_archive):
    """07-135"""
    # At its start, our archive waits until the driver has freed the counters of a killed archive with the same id. It
    # waits for the client liveness timeout at most.
    liveness = {"AERON_CLIENT_LIVENESS_TIMEOUT": "3s"}
    it = world(kinds, None, liveness)
    with pytest.raises(AssertionError, match=f"found existing archive for archiveId={it.archive_id}"):
        start_archive(kinds[0], drivers(kinds[1], liveness), {"aeron.archive.id": str(it.archive_id)})
    assert it.client().archive_id == it.archive_id
