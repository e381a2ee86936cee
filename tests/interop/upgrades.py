"""Tests of two versions of this project: the working tree, and the commit `OLD_COMMIT` of `toolchain.py`.

Processes of the two versions share drivers, archives and directories. `make test-upgrades` builds the package of the
older commit and runs this file.
"""

import time

import pytest
from tests.conftest import eventually

import aeron
from interop import toolchain
from interop.drivers import PATIENT_SETTINGS
from interop.peers import transfer
from ports import free_port

CHANNEL = "aeron:ipc?term-length=64k"
LENGTHS = [32, 0, 1, 1376, 1377, 10_000]
COUNT = 300
# Each message of `archive_user.py` has this length in a recording, so a segment of 128 KiB has 256 messages.
MESSAGE_LENGTH = 512
RECORDED = 600

# (driver, publisher, subscriber): each part is once the old one, and once the new one.
MIXTURES = [("ours", "old", "ours"), ("ours", "ours", "old"), ("old", "ours", "old"), ("old", "old", "ours")]
each_mixture = pytest.mark.parametrize(("driver", "publisher", "subscriber"), MIXTURES, ids=map("-".join, MIXTURES))
each_end = pytest.mark.parametrize("end", ["stop", "kill"])
DRIVER_SETTINGS = {**PATIENT_SETTINGS, "AERON_CLIENT_LIVENESS_TIMEOUT": "5s"}
# The new archive takes the directory of the old one, the old archive takes it back, and so on.
TURNS = ["old", "ours", "old", "ours"]


@pytest.fixture(scope="module", autouse=True)
def old_package(started):
    return started(toolchain.old_package)


@pytest.fixture
def archive(start_driver, start_archive):
    """Starts an old archive on a new driver. A restarted archive resumes its recordings."""
    driver = start_driver("ours", DRIVER_SETTINGS)
    settings = {"aeron.archive.resume": "true", "aeron.archive.low.storage.space.threshold": "0"}
    archive = start_archive("old", driver, settings)
    archive.driver = driver
    return archive


@pytest.fixture
def user(archive, start_peer):
    """`user(kind)` returns a client of a kind that is connected to the running archive."""

    def connect(kind, **settings):
        user = start_peer(f"{kind}-user", archive.driver)
        control, control_stream, response = archive.control("ipc")
        user.call("use_archive", control=control, control_stream=control_stream, response=response, **settings)
        return user

    return connect


def loaded_module(process):
    """Returns the path of the native module that a process has loaded."""
    with open(f"/proc/{process.pid}/maps") as maps:
        [path] = {line.split()[-1] for line in maps if "_aeron.abi3.so" in line}
    return path


@each_mixture
def test_each_process_runs_its_own_version(driver, publisher, subscriber, drivers, start_peer):
    running = drivers(driver)
    processes = {driver: running.process}
    for kind in (publisher, subscriber):
        processes[kind] = start_peer(kind, running).process
    assert loaded_module(processes["old"]).startswith(str(toolchain.old_package()))
    assert not loaded_module(processes["ours"]).startswith(str(toolchain.old_package()))


@each_mixture
@pytest.mark.parametrize("exclusive", [False, True], ids=["concurrent", "exclusive"])
def test_messages_over_ipc_arrive_complete_and_in_order(
    driver, publisher, subscriber, exclusive, drivers, start_peer, stream
):
    running = drivers(driver)
    subscription = start_peer(subscriber, running).add_subscription("aeron:ipc", stream)
    publication = start_peer(publisher, running).add_publication("aeron:ipc", stream, exclusive=exclusive)
    publication.await_connected()
    for how in ("offer", "claim", "parts"):
        lengths = [length for length in LENGTHS if how != "claim" or length <= publication.max_payload]
        transfer([publication], [subscription], COUNT, lengths, how=how)


@each_mixture
def test_messages_over_udp_arrive_complete_and_in_order(driver, publisher, subscriber, drivers, start_peer, stream):
    channel = f"aeron:udp?endpoint=localhost:{free_port()}"
    running = drivers(driver)
    subscription = start_peer(subscriber, running).add_subscription(channel, stream)
    publication = start_peer(publisher, running).add_publication(channel, stream)
    publication.await_connected()
    transfer([publication], [subscription], COUNT, LENGTHS)


@pytest.mark.parametrize(("sender", "receiver"), [("ours", "old"), ("old", "ours")], ids=["ours-to-old", "old-to-ours"])
def test_drivers_of_two_versions_exchange_messages(sender, receiver, drivers, start_peer, stream):
    channel = f"aeron:udp?endpoint=localhost:{free_port()}"
    subscription = start_peer(receiver, drivers(receiver)).add_subscription(channel, stream)
    publication = start_peer(sender, drivers(sender)).add_publication(channel, stream)
    publication.await_connected()
    transfer([publication], [subscription], COUNT, LENGTHS)


@each_mixture
def test_a_counter_of_one_version_is_read_by_the_other(driver, publisher, subscriber, drivers, start_peer):
    running = drivers(driver)
    owner, reader = start_peer(publisher, running), start_peer(subscriber, running)
    counter = owner.add_counter(1001, "orders", key=b"key")
    counter.set(42)
    event = reader.await_event("counter", registration=counter.registration)
    [found] = [it for it in reader.counters() if it["id"] == event["id"]]
    assert (found["type"], found["label"], found["key"][:6], found["value"]) == (1001, "orders", b"key".hex(), 42)
    counter.close()
    reader.await_event("counter_gone", registration=counter.registration)


def next_message(subscription):
    messages = []
    eventually(lambda: messages.extend(subscription.poll_batch(1).to_list()) or messages, timeout=30)
    return messages


@each_end
def test_a_client_with_reconnect_continues_over_the_changes_of_its_driver(end, start_driver, run_directory, stream):
    driver = start_driver("old", directory=run_directory / f"changing-{stream}")
    reconnected = []
    with aeron.connect(driver.directory, reconnect=True, on_reconnect=reconnected.append) as client:
        subscription = client.add_subscription("aeron:ipc", stream)
        publication = client.add_publication("aeron:ipc", stream)
        for turn, kind in enumerate(TURNS):
            if turn > 0:
                getattr(driver, end)()
                driver = start_driver(kind, directory=driver.directory)
                eventually(lambda turn=turn: len(reconnected) == turn, timeout=60)
            publication.publish(kind.encode(), timeout=30)
            assert next_message(subscription) == [kind.encode()]


@each_end
def test_archives_of_both_versions_continue_a_directory_in_turns(end, archive, user, stream):
    """Each archive lists, replays and extends what the others recorded, and keeps their readers and policies. If an
    archive is killed, its recording is active, so that the next archive finds the end of the recording."""
    count, times, described, files = 0, [], None, set()
    for turn, kind in enumerate(TURNS):
        if turn > 0:
            archive.start(kind)
        users = {"old": user("old"), "ours": user("ours")}
        if turn > 0:
            assert [each.call("describe") for each in users.values()] == [described, described]
        # The archive and the client that records are of different versions.
        publisher = users[TURNS[turn - 1]]
        times.append(time.time())
        recording = publisher.call("record", stream=stream, first=count, count=RECORDED)["recording"]
        count += RECORDED
        if turn == 0:
            publisher.call("protect", recording=recording, position=0)
        publisher.call("apply_retention")
        for each in users.values():
            assert each.call("recorded", recording=recording)["numbers"] == list(range(count))
            found = [each.call("found", recording=recording, seconds=time) for time in times]
            assert found == [{"position": turn * RECORDED * MESSAGE_LENGTH, "exact": True} for turn in range(turn + 1)]
        described = publisher.call("describe")
        assert described == {
            "recordings": [[recording, stream, 0, count * MESSAGE_LENGTH]],
            "readers": [[recording, "bars", 0]],
            "policies": [[recording, 1]],
            "names": [[recording, f"name {recording}", b"\0metadata".hex()]],
        }
        if end == "stop":
            publisher.call("stop_recording")
            archive.stop()
        else:
            archive.kill()
            publisher.call("stop_recording")
        for each in users.values():
            each.call("disconnect")
        now = {path.name for path in archive.directory.iterdir()}
        indexes = {name for name in now if name.endswith(".idx")}
        assert indexes == {f"index-{name.removesuffix('.rec')}.idx" for name in now if name.endswith(".rec")}
        assert files | {"archive.catalog", "archive-extensions.dat", "archive-mark.dat"} <= now
        assert not [name for name in now if "damaged" in name or "unreadable" in name]
        files = now


# An old follower fails if an archive that is just stopping accepts its new connection and ends it at once.
@pytest.mark.parametrize(("reader", "end"), [("ours", "stop"), ("ours", "kill"), ("old", "kill")])
def test_a_follower_gets_each_message_once_over_the_changes_of_the_archive(reader, end, archive, user, stream):
    publisher = user("ours")
    recording = publisher.call("record", stream=stream, first=0, count=RECORDED)["recording"]
    # A request to a killed archive gets no response. The follower then tries again.
    follower = user(reader, timeout_s=5)
    follower.call("follow", recording=recording)
    count = RECORDED
    for kind in TURNS[1:]:
        eventually(lambda count=count: len(follower.call("followed")["numbers"]) >= count, timeout=60)
        getattr(archive, end)()
        archive.start(kind)
        publisher.call("record_more", first=count, count=RECORDED)
        count += RECORDED
    eventually(lambda: len(follower.call("followed")["numbers"]) >= count, timeout=60)
    assert follower.call("followed")["numbers"] == list(range(count))
    assert user("ours").call("recorded", recording=recording)["numbers"] == list(range(count))


def test_a_follower_with_reconnect_continues_over_the_changes_of_driver_and_archive(archive, start_driver, stream):
    control, control_stream, response = archive.control("ipc")
    settings = {"control_channel": control, "control_stream_id": control_stream, "response_channel": response}
    directory, driver, got = archive.driver.directory, archive.driver, []
    with (
        aeron.connect(directory, reconnect=True) as client,
        aeron.connect_archive(client, **settings, message_timeout=5) as connection,
        aeron.RecordedPublisher(CHANNEL, stream, driver=directory, **settings) as publisher,
    ):
        publisher.wait_connected(timeout=30)
        with connection.follow(publisher.recording_id, reader="follower") as follower:
            for turn, kind in enumerate(TURNS):
                if turn > 0:
                    archive.stop()
                    driver.stop()
                    driver = start_driver(kind, DRIVER_SETTINGS, directory=directory)
                    archive.start(kind)
                for number in range(turn * COUNT, (turn + 1) * COUNT):
                    position = publisher.publish(b"%d" % number, timeout=30)
                publisher.wait_recorded(position, timeout=30)
                for batch in follower.batches(timeout=60):
                    got += [int(message) for message in batch.to_list()]
                    if len(got) >= (turn + 1) * COUNT:
                        break
                assert got == list(range((turn + 1) * COUNT))
