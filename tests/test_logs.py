"""Tests of logs: the loggers of a Python process, and the lines of the programs."""

from __future__ import annotations

import hmac
import itertools
import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.conftest import eventually

import aeron
from commands import run

LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}\+0000 (?P<level>[A-Z]+) (?P<logger>[a-z.]+) (?P<text>.*)")


def refuse(client: aeron.Aeron, alias: str) -> None:
    """Causes an entry of the driver's log. A text that repeats within a minute is logged once in a process."""
    with pytest.raises(aeron.RegistrationError):
        client.add_publication(f"aeron:ipc?mtu=100|alias={alias}", 1)


# ---- loggers of a Python process -------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _all_levels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def test_a_refused_command_is_logged_below_the_level_of_warnings(
    client: aeron.Aeron, caplog: pytest.LogCaptureFixture
) -> None:
    """The client gets the refusal as an exception, so a program without a configuration of logging prints nothing."""
    refuse(client, "refused-once")
    eventually(lambda: any("refused-once" in record.getMessage() for record in caplog.records))
    [record] = [record for record in caplog.records if "refused-once" in record.getMessage()]
    assert (record.name, record.levelno) == ("aeron.driver", logging.INFO)


def test_an_error_that_repeats_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with aeron.MediaDriver(dir=tmp_path / "driver") as driver, aeron.connect(driver) as client:
        for _ in range(20):
            refuse(client, "refused-often")
        refuse(client, "refused-last")
        eventually(lambda: any("refused-last" in record.getMessage() for record in caplog.records))
    assert len([record for record in caplog.records if "refused-often" in record.getMessage()]) == 1


def test_a_format_in_the_text_of_a_peer_is_text(client: aeron.Aeron, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(aeron.AeronError):
        client.add_publication("aeron:udp?endpoint=%s%n%d.invalid:1", 1)
    eventually(lambda: any("%s%n%d" in record.getMessage() for record in caplog.records))


def test_a_text_of_a_peer_is_one_line(client: aeron.Aeron, caplog: pytest.LogCaptureFixture) -> None:
    refuse(client, "of-a-peer\nINFO aeron.archive.audit user=root\x1b[2J")
    eventually(lambda: any("of-a-peer" in record.getMessage() for record in caplog.records))
    [text] = [record.getMessage() for record in caplog.records if "of-a-peer" in record.getMessage()]
    assert text.isprintable()


def test_a_handler_that_blocks_delays_no_driver(tmp_path: Path) -> None:
    """The queue is bounded: the records that do not fit are counted."""
    release = threading.Event()
    texts: list[str] = []

    class Blocked(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            texts.append(record.getMessage())
            release.wait(60)

    handler = Blocked()
    logger = logging.getLogger("aeron")
    logger.addHandler(handler)
    try:
        with aeron.MediaDriver(dir=tmp_path / "driver") as driver, aeron.connect(driver) as client:
            refuse(client, "the-first")
            eventually(lambda: texts)
            slowest = 0.0
            for number in range(1200):
                begin = time.monotonic()
                refuse(client, f"behind-a-handler-{number}")
                slowest = max(slowest, time.monotonic() - begin)
            # A driver that waited for the handler would not respond for a minute.
            assert slowest < 10
            release.set()
            eventually(lambda: any("log records were dropped" in text for text in texts))
    finally:
        release.set()
        logger.removeHandler(handler)


def test_the_last_records_are_logged_before_the_process_ends() -> None:
    program = """
import aeron, logging
logging.basicConfig(format="%(name)s %(levelname)s %(message)s", level=logging.INFO)
driver = aeron.MediaDriver()
client = aeron.connect(driver)
try:
    client.add_publication("aeron:ipc?mtu=100", 1)
except aeron.RegistrationError:
    pass
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert "aeron.driver INFO" in done.stderr


def test_a_forked_process_logs_too() -> None:
    program = """
import aeron, logging, os, sys
logging.basicConfig(format="%(process)d %(name)s %(message)s", level=logging.INFO)

def refuse():
    with aeron.MediaDriver() as driver, aeron.connect(driver) as client:
        try:
            client.add_publication("aeron:ipc?mtu=100", 1)
        except aeron.RegistrationError:
            pass

refuse()
child = os.fork()
if child == 0:
    refuse()
    sys.exit()
print(child, flush=True)
os.waitpid(child, 0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert f"{done.stdout.strip()} aeron.driver" in done.stderr


# ---- programs --------------------------------------------------------------------------------------------------------


@contextmanager
def program(*arguments: str | Path, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """Runs `aeron driver` or `aeron archive run`. The standard error output is a pipe."""
    command = [sys.executable, "-m", "aeron", *map(str, arguments)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"AERON_LOG_LEVEL": "info"} | variables,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()


def ended(process: subprocess.Popen[str]) -> list[str]:
    """Ends a program and returns its lines."""
    process.send_signal(signal.SIGTERM)
    return process.communicate(timeout=20)[1].splitlines()


def started(directory: Path) -> None:
    eventually(lambda: (directory / "cnc.dat").exists() and aeron.health(directory).is_live)


def test_a_driver_logs_its_start_its_errors_and_its_end(tmp_path: Path) -> None:
    directory = tmp_path / "driver"
    with program("driver", "--dir", directory, "-Daeron.threading.mode=SHARED", "-Daeron.mtu.length=2048") as process:
        started(directory)
        with aeron.connect(directory) as client:
            for _ in range(3):
                refuse(client, "a")
        lines = [LINE.fullmatch(line) for line in ended(process)]
    first, error, repeated, last = lines
    assert first is not None
    assert error is not None
    assert repeated is not None
    assert last is not None
    assert (first["level"], first["logger"]) == ("INFO", "aeron.driver")
    pid = process.pid
    assert first["text"].startswith("started: version 1.52.")
    assert (
        f" directory {directory}, pid {pid}, threading mode SHARED, settings that are not defaults: 3" in first["text"]
    )
    assert (error["level"], error["logger"]) == ("INFO", "aeron.driver")
    assert "mtu" in error["text"].lower()
    assert {repeated["text"].rpartition(" (")[2], last["text"].rpartition(" (")[2]} >= {"2 more times)"}
    assert {repeated["text"], last["text"]} >= {"ended: signal 15"}


def test_a_log_in_json_has_an_object_a_line(tmp_path: Path) -> None:
    directory = tmp_path / "driver"
    with program("driver", "--dir", directory, AERON_LOG_FORMAT="json") as process:
        started(directory)
        lines = [json.loads(line) for line in ended(process)]
    assert [line.keys() for line in lines] == [{"time", "level", "logger", "text"}] * 2
    assert lines[0]["logger"] == "aeron.driver"


@pytest.mark.parametrize(("name", "text"), [("AERON_LOG_FORMAT", "xml"), ("AERON_LOG_LEVEL", "loud")])
def test_a_wrong_setting_of_the_log_is_refused(tmp_path: Path, name: str, text: str) -> None:
    with program("driver", "--dir", tmp_path / "driver", **{name: text}) as process:
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 1
    assert errors.startswith(f"ERROR: {name}={text} is not ")


@pytest.mark.parametrize("level", ["info", "off"])
def test_a_driver_whose_log_nobody_reads_works_and_ends(tmp_path: Path, level: str) -> None:
    """A pipe holds 64 KiB, and the log of errors 1 MiB. Then records are dropped."""
    directory = tmp_path / "driver"
    variables = {"AERON_LOG_LEVEL": level, "AERON_ERROR_BUFFER_LENGTH": "1m"}
    with program("driver", "--dir", directory, **variables) as process:
        started(directory)
        with aeron.connect(directory) as client:
            for number in range(1500):
                refuse(client, f"{'x' * 1000}{number}")
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == signal.SIGTERM


def test_the_level_changes_while_a_driver_runs(tmp_path: Path) -> None:
    directory = tmp_path / "driver"
    with program("driver", "--dir", directory, AERON_LOG_LEVEL="off") as process:
        started(directory)
        with aeron.connect(directory) as client:
            refuse(client, "unseen")
            assert run("log-level", "info", "--dir", directory).exit_code == 0
            assert process.stderr is not None
            reader = threading.Thread(target=lambda: lines.append(process.stderr.readline()))  # type: ignore[union-attr]
            lines: list[str] = []
            reader.start()
            numbers = itertools.count()

            def is_logged() -> bool:
                refuse(client, f"seen-{next(numbers)}")
                time.sleep(0.05)
                return bool(lines)

            eventually(is_logged)
            reader.join()
        assert " INFO aeron.driver " in lines[0]
        assert run("log-level", "default", "--dir", directory).exit_code == 0
        assert not (directory / "log-level").exists()


def test_a_level_needs_a_driver_or_an_archive(tmp_path: Path) -> None:
    for option in ("--dir", "--archive"):
        result = run("log-level", "warn", option, tmp_path)
        assert result.exit_code == 1
        assert str(tmp_path) in result.stderr


def test_an_archive_logs_its_start_and_its_end(tmp_path: Path) -> None:
    archive, driver = tmp_path / "archive", tmp_path / "driver"
    settings = ["-Daeron.archive.control.channel.enabled=false", "-Daeron.archive.replication.channel=aeron:ipc"]
    with program("archive", "run", "--with-driver", "--archive-dir", archive, "--dir", driver, *settings) as process:
        eventually(lambda: aeron.health(archive=archive).is_live)
        lines = [LINE.fullmatch(line) for line in ended(process)]
    loggers, texts = zip(*((line["logger"], line["text"]) for line in lines if line is not None), strict=True)
    assert loggers == ("aeron.driver", "aeron.archive", "aeron.archive")
    assert f" directory {archive}, pid {process.pid}, directory of the driver {driver}, " in texts[1]
    assert texts[2] == "ended: signal 15"


# ---- the audit of an archive -----------------------------------------------------------------------------------------


def audited(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "aeron.archive.audit"]


def test_requests_that_delete_have_a_line_and_others_have_none(
    tmp_path: Path, driver: aeron.MediaDriver, stream_id: int, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        aeron.Archive(tmp_path / "archive", driver=driver, low_storage_space_threshold=0),
        aeron.connect(driver) as client,
        aeron.connect_archive(client) as archive,
    ):
        publication = archive.add_recorded_publication("aeron:ipc", stream_id)
        position = publication.publish(b"x" * 100, timeout=5)
        recording = archive.wait_recorded(publication, position, timeout=5)
        archive.stop_recording(publication)
        archive.list_recordings()
        archive.truncate_recording(recording.recording_id, 0)
        with pytest.raises(aeron.ArchiveError):
            archive.purge_recording(99)
        archive.set_retention(max_bytes=1 << 30)
        session = archive.control_session_id
    begin = f"user=none session={session} address=aeron:ipc request="
    for request, result in [
        (f'StopRecording channel="aeron:ipc?session-id={publication.session_id}" stream_id={stream_id}', "accepted"),
        (f"TruncateRecording recording={recording.recording_id} position=0", "accepted"),
        ("PurgeRecording recording=99", 'refused reason="unknown recording id: 99"'),
        ('SetRetention recording=-1 channel="" stream_id=all max_bytes=1073741824 max_age_ms=-1', "accepted"),
    ]:
        eventually(lambda line=f"{begin}{request} result={result}": line in audited(caplog))  # type: ignore[misc]
    assert len(audited(caplog)) == 4


def test_refused_users_have_a_line(tmp_path: Path, driver: aeron.MediaDriver, caplog: pytest.LogCaptureFixture) -> None:
    def prove(challenge: bytes | None) -> bytes:
        return b"ann" if challenge is None else hmac.digest(bytes(16), challenge, "sha256")

    users = tmp_path / "users.toml"
    users.write_text(f'[[user]]\nname = "ann"\nrole = "read"\nkey = "{"00" * 16}"\n')
    users.chmod(0o600)
    with (
        aeron.Archive(tmp_path / "archive", driver=driver, users_file=users, low_storage_space_threshold=0),
        aeron.connect(driver) as client,
    ):
        with pytest.raises(aeron.AuthenticationRejectedError):
            aeron.connect_archive(client, credentials=b"ann:wrong")
        eventually(lambda: audited(caplog))
        assert audited(caplog)[0].endswith('request=connect result=refused reason="credentials"')
        with aeron.connect_archive(client, credentials=prove) as archive:
            with pytest.raises(aeron.ArchiveError, match="unauthorised"):
                archive.purge_recording(0)
            eventually(lambda: len(audited(caplog)) >= 2)
        assert audited(caplog)[1].startswith('user="ann" session=')
        assert audited(caplog)[1].endswith('request=template 104 result=refused reason="unauthorised"')


# ---- events of a driver that only counters showed --------------------------------------------------------------------


def test_a_client_that_dies_in_a_claim_is_named_and_so_is_its_stream(
    tmp_path: Path, stream_id: int, caplog: pytest.LogCaptureFixture
) -> None:
    dying = """
import aeron, os, signal, sys, time
client = aeron.connect(sys.argv[1], client_name="doomed", keepalive_interval_ns=50_000_000)
publication = client.add_publication("aeron:ipc", int(sys.argv[2]))
publication.wait_connected(timeout=10)
claim = publication.try_claim(32)
while not any("name=doomed" in counter.label for counter in client.counters_reader):
    time.sleep(0.01)
os.kill(os.getpid(), signal.SIGKILL)
"""
    with (
        aeron.MediaDriver(
            dir=tmp_path / "driver",
            timer_interval_ns=100_000_000,
            client_liveness_timeout_ns=1_000_000_000,
            publication_unblock_timeout_ns=1_500_000_000,
        ) as driver,
        aeron.connect(driver, keepalive_interval_ns=100_000_000) as client,
    ):
        # A publication of another client, so that the log remains after the death of the first one.
        kept = client.add_subscription("aeron:ipc", stream_id), client.add_publication("aeron:ipc", stream_id)
        subprocess.run([sys.executable, "-c", dying, driver.dir, str(stream_id)], timeout=30, check=False)
        texts = lambda: [record.getMessage() for record in caplog.records]  # noqa: E731
        eventually(lambda: any("has timed out, and lost 1 publications" in text for text in texts()))
        [timed_out] = [text for text in texts() if "has timed out" in text]
        assert "name=doomed" in timed_out
        eventually(lambda: any("the driver skipped it: pub-pos" in text for text in texts()))
        [skipped] = [text for text in texts() if "the driver skipped it" in text]
        assert f" {stream_id} aeron:ipc" in skipped
        assert all(not each.is_closed for each in kept)
