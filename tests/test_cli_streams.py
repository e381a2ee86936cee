"""Tests of the output of ``aeron streams`` and ``aeron loss`` for counters and a loss report that the test has made."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

import aeron
from commands import run

TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}[+-]\d{4}"
CHANNEL = "aeron:udp?endpoint=localhost:45121"
LONG_CHANNEL = f"aeron:udp?endpoint=localhost:45122|alias={'a' * 100}"
KEY_ROOM = 92

# Counters of streams: type id, name, registration id, session id, stream id, channel, value.
STREAM_COUNTERS = [
    (12, "pub-pos (concurrent)", 6, 369433184, 1001, CHANNEL, 384),
    (1, "pub-lmt", 6, 369433184, 1001, CHANNEL, 8388992),
    (2, "snd-pos", 6, 369433184, 1001, CHANNEL, 320),
    (9, "snd-lmt", 6, 369433184, 1001, CHANNEL, 131072),
    (13, "snd-bpe", 6, 369433184, 1001, CHANNEL, 0),
    (19, "snd-naks-received", 6, 369433184, 1001, CHANNEL, 0),
    (3, "rcv-hwm", 7, 369433184, 1001, CHANNEL, 384),
    (5, "rcv-pos", 7, 369433184, 1001, CHANNEL, 384),
    (20, "rcv-naks-sent", 7, 369433184, 1001, CHANNEL, 0),
    (4, "sub-pos", 2, 369433184, 1001, f"{CHANNEL} @0", 384),
    (4, "sub-pos", 4, 369433184, 1001, f"{CHANNEL} @64", 320),
    (12, "pub-pos (exclusive)", 9, -5, 1002, "aeron:ipc", 64),
    (1, "pub-lmt", 9, -5, 1002, "aeron:ipc", 164),
    (2, "snd-pos", 11, -4, 1003, LONG_CHANNEL, 96),
    (9, "snd-lmt", 11, -4, 1003, LONG_CHANNEL, 96),
]


@pytest.fixture(scope="module")
def directory() -> Iterator[str]:
    with aeron.MediaDriver() as driver, aeron.connect(driver) as client:
        counters = []
        for type_id, name, registration_id, session_id, stream_id, text, value in STREAM_COUNTERS:
            channel = text.partition(" @")[0].encode()[:KEY_ROOM]
            key = struct.pack("<qiii", registration_id, session_id, stream_id, len(channel)) + channel
            counter = client.add_counter(type_id, f"{name}: {registration_id} {session_id} {stream_id} {text}", key)
            counter.set(value)
            counters.append(counter)
        yield driver.dir


# ---- streams -------------------------------------------------------------------------------------------------------


def test_streams_prints_the_counters_of_each_stream_in_one_line(directory: str) -> None:
    """06-7: the streams are sorted, in the form of Aeron's `StreamStat`; a channel too long for the key comes from the
    label"""
    result = run("streams", "--dir", directory)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"Command `n Control file {directory}/cnc.dat",
        "sessionId=-5 streamId=1002 channel=aeron:ipc : pub-pos (exclusive):9:64 pub-lmt:9:164",
        f"sessionId=-4 streamId=1003 channel={LONG_CHANNEL} : snd-pos:11:96 snd-lmt:11:96",
        f"sessionId=369433184 streamId=1001 channel={CHANNEL} : pub-pos (concurrent):6:384 pub-lmt:6:8388992 "
        "snd-pos:6:320 snd-lmt:6:131072 snd-bpe:6:0 snd-naks-received:6:0 rcv-hwm:7:384 rcv-pos:7:384 "
        "rcv-naks-sent:7:0 sub-pos:2:384 sub-pos:4:320",
    ]


def test_the_backlog_shows_the_distances_between_publisher_sender_receiver_and_subscribers(directory: str) -> None:
    """06-7: a stream without a sender, a stream with only a sender, and a stream with publisher, sender and receiver"""
    assert run("streams", "--backlog", "--dir", directory).stdout.splitlines()[1:] == [
        "sessionId=-5 streamId=1002 channel=aeron:ipc : ",
        "┌─for publisher 9 the last sampled position is 64 (~100 bytes before back-pressure)",
        "└─no sender",
        "",
        f"sessionId=-4 streamId=1003 channel={LONG_CHANNEL} : ",
        "└─sender 11 is at position 96 (0 bytes remaining in the sender window)",
        "",
        f"sessionId=369433184 streamId=1001 channel={CHANNEL} : ",
        "┌─for publisher 6 the last sampled position is 384 (~8388608 bytes before back-pressure)",
        "└─sender 6 has to send 64 bytes (130752 bytes remaining in the sender window)",
        "┌─receiver 7 is at position 384",
        "├─subscriber 2 has 0 backlog bytes",
        "└─subscriber 4 has 64 backlog bytes",
        "",
    ]


def test_streams_with_json_prints_the_ids_of_counters(directory: str) -> None:
    streams = json.loads(run("streams", "--json", "--dir", directory).stdout)
    assert [(stream["session_id"], stream["stream_id"]) for stream in streams] == [
        (-5, 1002),
        (-4, 1003),
        (369433184, 1001),
    ]
    with aeron.CncFile(directory) as cnc:
        values = {counter.id: counter.value for counter in cnc.counters()}
    for stream in streams:
        assert all(values[counter["id"]] == counter["value"] for counter in stream["counters"])


def test_streams_prints_only_a_heading_if_there_are_no_streams() -> None:
    """06-7"""
    with aeron.MediaDriver() as driver:
        assert run("streams", "--dir", driver.dir).stdout == f"Command `n Control file {driver.dir}/cnc.dat\n"
        assert run("streams", "--json", "--dir", driver.dir).stdout == "[]\n"


# ---- loss ----------------------------------------------------------------------------------------------------------


def _entry(count: int, lost: int, first_ms: int, last_ms: int, session_id: int, texts: tuple[str, str]) -> bytes:
    channel, source = (text.encode() for text in texts)
    fixed = struct.pack("<qqqqii", count, lost, first_ms, last_ms, session_id, 1001)
    padding = bytes(-len(channel) % 4)
    entry = fixed + struct.pack("<i", len(channel)) + channel + padding + struct.pack("<i", len(source)) + source
    return entry + bytes(-len(entry) % 64)


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """Returns a directory with a loss report of two images."""
    entries = [
        _entry(158, 275456, 1_700_000_000_123, 1_700_000_001_456, -423187462, (CHANNEL, "127.0.0.1:52661")),
        _entry(1, 1408, 1_700_000_002_000, 1_700_000_002_000, 7, ("aeron:udp?endpoint=[::1]:1", "[::1]:5")),
    ]
    (tmp_path / "loss-report.dat").write_bytes(b"".join(entries).ljust(4096, b"\0"))
    return tmp_path


def test_loss_prints_a_row_with_times_for_each_entry_and_the_number_of_entries(report: Path) -> None:
    """06-5"""
    before = (report / "loss-report.dat").read_bytes()
    result = run("loss", "--dir", report)
    assert result.exit_code == 0
    header, first, second, count = result.stdout.splitlines()
    fields = "OBSERVATION_COUNT, TOTAL_BYTES_LOST, FIRST_OBSERVATION,LAST_OBSERVATION, SESSION_ID, STREAM_ID"
    assert header == f"{fields}, CHANNEL, SOURCE"
    times = re.fullmatch(
        rf"158,275456,({TIME}),({TIME}),-423187462,1001,{re.escape(CHANNEL)},127\.0\.0\.1:52661", first
    )
    assert times[1] < times[2]
    assert re.fullmatch(rf"1,1408,({TIME}),\1,7,1001,aeron:udp\?endpoint=\[::1\]:1,\[::1\]:5", second)
    assert count == "2 entries read"
    assert (report / "loss-report.dat").read_bytes() == before


def test_loss_with_json_and_the_python_function_return_the_same_entries(report: Path) -> None:
    first, second = json.loads(run("loss", "--json", "--dir", report).stdout)
    [one, two] = aeron.read_loss_report(report)
    for shown, read in ((first, one), (second, two)):
        assert {name: getattr(read, name) for name in shown} == shown
    assert (one.observation_count, one.total_bytes_lost) == (158, 275456)
    assert "158 gaps, 275456 bytes of session -423187462" in repr(one)


def test_the_loss_report_of_a_driver_without_losses_is_empty(directory: str) -> None:
    """06-5"""
    assert run("loss", "--dir", directory).stdout.endswith("SOURCE\n0 entries read\n")
    assert run("loss", "--json", AERON_DIR=directory).stdout == "[]\n"


def test_the_error_of_loss_without_a_report_names_the_missing_file(tmp_path: Path) -> None:
    """06-5"""
    result = run("loss", "--dir", tmp_path / "none")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr == f"Error: Loss report does not exist: {tmp_path}/none/loss-report.dat\n"
    with pytest.raises(FileNotFoundError, match=r"loss-report\.dat"):
        aeron.read_loss_report(tmp_path)


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 4096, bytes(40), struct.pack("<q", 5) + bytes(4000)])
def test_damaged_loss_reports_are_read_without_a_crash(tmp_path: Path, content: bytes) -> None:
    """06-5"""
    (tmp_path / "loss-report.dat").write_bytes(content)
    result = run("loss", "--dir", tmp_path)
    assert result.exit_code in (0, 1)
    assert "Traceback" not in result.output
