"""Tests of `read_recording`, which reads recordings in an archive's directory as Arrow record batches."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.recorded import MAX_MESSAGE_LENGTH, SEGMENT_LENGTH, Message, Recorder, offer_all, recorder

import aeron
from aeron.sbe import Schema
from commands import run

HEADERS = ["stream_id", "session_id", "position", "reserved_value", "timestamp"]
TRADE = "n i64, price f64"
TIMES = np.dtype([("ms", "M8[ms]"), ("us", "M8[us]"), ("ns", "M8[ns]")])
TRADE_DTYPE = np.dtype([("n", "<i8"), ("price", "<f8")])

stream_ids = itertools.count(5000)


@pytest.fixture(scope="module")
def recordings(driver: aeron.MediaDriver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorder]:
    with recorder(driver, tmp_path_factory.mktemp("archive") / "archive") as recordings:
        yield recordings


@pytest.fixture(scope="module")
def trades(recordings: Recorder) -> aeron.Recording:
    """Returns a recording of 5,000 messages with one to three trades each, in several segments."""
    numbers = itertools.count()
    messages = [b"".join(trade(next(numbers)) for _ in range(1 + index % 3)) for index in range(5000)]
    return recordings.record(next(stream_ids), messages)


def trade(number: int) -> bytes:
    return struct.pack("<qd", number, number / 4)


def read(recordings: Recorder, recording: aeron.Recording, **options: Any) -> aeron.RecordedBatches:
    return aeron.read_recording(recordings.directory, recording.recording_id, **options)


def rows(batches: aeron.RecordedBatches) -> list[tuple[int, int, bytes]]:
    """Returns position, reserved value and payload of each row."""
    found: list[tuple[int, int, bytes]] = []
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("position", "reserved_value", "value"))
        found += zip(*columns, strict=True)
    return found


def expected(messages: list[Message]) -> list[tuple[int, int, bytes]]:
    return [(each.position, each.reserved_value, each.payload) for each in messages]


@pytest.fixture(scope="module")
def times(recordings: Recorder) -> aeron.Recording:
    """Returns a recording of times in each unit: a known time, numpy's NaT, and the earliest and latest nanosecond."""
    records = np.zeros(4, TIMES)
    for name in TIMES.names or ():
        records[name][:2] = [np.datetime64("2026-11-28T10:00:00.123456789"), np.datetime64("NaT")]
    records["ns"][2:] = np.array([-(2**63) + 1, 2**63 - 1]).view("M8[ns]")
    return recordings.record(next(stream_ids), [record.tobytes() for record in records])


# ---- compared with the segment files, which the test reads with its own code -----------------------------------------


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lengths=st.lists(st.integers(0, 64) | st.integers(1300, 1500) | st.integers(0, MAX_MESSAGE_LENGTH), max_size=60),
    cuts=st.lists(st.floats(0, 1), max_size=5),
)
def test_each_random_message_is_read_once_in_any_division_into_ranges(
    recordings: Recorder, lengths: list[int], cuts: list[float]
) -> None:
    payloads = [bytes([index % 251 + 1]) * length for index, length in enumerate(lengths, start=1)]
    recording = recordings.record(next(stream_ids), [b"first", *payloads])
    messages = recordings.messages(recording)
    assert [each.payload for each in messages] == [b"first", *payloads]
    stop = recording.stop_position
    assert stop is not None
    assert rows(read(recordings, recording)) == expected(messages)
    bounds = sorted({0, stop, *(int(cut * stop) for cut in cuts)})
    for first, last in itertools.pairwise(bounds):
        part = [each for each in messages if first <= each.begin < last]
        batches = read(recordings, recording, from_position=first, to_position=last)
        assert rows(batches) == expected(part)
        assert last <= batches.position == batches.to_position < last + 32


def test_all_columns_have_the_values_of_the_frames(recordings: Recorder) -> None:
    recording = recordings.record(next(stream_ids), [b"a" * 100, b"b" * 5000, b""])
    messages = recordings.messages(recording)
    columns = ["flags", "term_offset", "term_id", "recording_id", "channel", *reversed(HEADERS), "value"]
    before = time.time()
    table = pa.table(read(recordings, recording, columns=columns))
    assert table.column_names == columns
    assert table["flags"].to_pylist() == [each.flags for each in messages] == [0xC0, 0x80, 0xC0]
    assert table["term_offset"].to_pylist() == [each.begin for each in messages]
    assert set(table["term_id"].to_pylist()) == {recording.initial_term_id}
    assert set(table["recording_id"].to_pylist()) == {recording.recording_id}
    assert set(table["channel"].to_pylist()) == {recording.original_channel}
    assert set(table["session_id"].to_pylist()) == {recording.session_id}
    assert set(table["stream_id"].to_pylist()) == {recording.stream_id}
    times = [each.timestamp() for each in table["timestamp"].to_pylist()]
    assert times == sorted(times)
    assert recording.start_timestamp_ms / 1000 <= times[0] <= times[-1] <= before


def test_not_a_time_is_null_and_nanoseconds_are_exact(
    recordings: Recorder, times: aeron.Recording, tmp_path: Path
) -> None:
    """08-60"""
    table = pa.table(read(recordings, times, layout=TIMES))
    output = tmp_path / "times.parquet"
    read(recordings, times, layout=TIMES).export(output)
    for rows in (table, pq.read_table(output)):
        assert [rows.schema.field(name).type for name in ("ms", "us", "ns")] == [
            pa.timestamp("us", "UTC"),
            pa.timestamp("us", "UTC"),
            pa.timestamp("ns", "UTC"),
        ]
        for name in ("ms", "us", "ns"):
            assert rows[name].is_null().to_pylist() == [False, True, False, False]
        ns = rows["ns"].cast(pa.int64()).to_pylist()
        assert ns == [1_795_860_000_123_456_789, None, -(2**63) + 1, 2**63 - 1]
        assert rows["ms"].cast(pa.int64())[0].as_py() == 1_795_860_000_123_000


def test_times_are_null_without_an_index(recordings: Recorder, trades: aeron.Recording, tmp_path: Path) -> None:
    copy = shutil.copytree(recordings.directory, tmp_path / "copy")
    for index in copy.glob(f"index-{trades.recording_id}-*.idx"):
        index.unlink()
    (copy / "archive-mark.dat").unlink()
    table = pa.table(aeron.read_recording(copy, trades.recording_id))
    assert (table.num_rows, table["timestamp"].null_count) == (5000, 5000)


# ---- payloads --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [TRADE, TRADE_DTYPE, [("n", "<i8"), ("price", "<f8")]])
def test_records_of_a_layout_are_columns(recordings: Recorder, trades: aeron.Recording, layout: Any) -> None:
    batches = read(recordings, trades, layout=layout)
    assert batches.schema.names == ["n", "price", *HEADERS]
    table = pa.table(batches)
    count = sum(1 + index % 3 for index in range(5000))
    assert table["n"].to_pylist() == list(range(count))
    assert table["price"].to_pylist() == [number / 4 for number in range(count)]
    positions = [each.position for each in recordings.messages(trades) for _ in range(len(each.payload) // 16)]
    assert table["position"].to_pylist() == positions


def test_columns_can_be_selected_and_a_field_replaces_a_column_of_the_same_name(recordings: Recorder) -> None:
    recording = recordings.record(next(stream_ids), [struct.pack("<qq", 7, 8)])
    chosen = read(recordings, recording, layout="position i64", columns=["RECORD_INDEX", "position", "stream_id"])
    assert pa.table(chosen).drop("stream_id").to_pydict() == {"record_index": [0, 1], "position": [7, 8]}
    assert read(recordings, recording, layout="position i64").schema.names == [
        "position",
        *(name for name in HEADERS if name != "position"),
    ]


def test_text_messages_become_a_column_of_strings(recordings: Recorder) -> None:
    recording = recordings.record(next(stream_ids), ["grüße".encode(), b"\xff", b""])
    batches = read(recordings, recording, text=True, malformed="drop")
    assert pa.table(batches)["value"].to_pylist() == ["grüße", ""]
    assert batches.malformed == 1
    with pytest.raises(aeron.InvalidArgumentError, match="not UTF-8 from byte 0 on: correct the layout"):
        next(read(recordings, recording, text=True))


def test_sbe_messages_of_a_template_become_columns_beside_their_positions(recordings: Recorder) -> None:
    schema = Schema(Path(__file__).parent / "sbe" / "market.xml")
    trades = [{"transactTime": 5, "tradeId": n, "side": "Buy", "price": n, "symbol": "ES", "expiry": 9} for n in (1, 2)]
    sent = [schema["Trade"].encode_one(each) for each in trades]
    other = schema["BookUpdate"].encode_one({"transactTime": 5, "flags": []})
    recording = recordings.record(next(stream_ids), [sent[0], other, sent[1]])
    table = pa.table(read(recordings, recording, sbe=schema["Trade"]))
    assert table["tradeId"].to_pylist() == [1, 2]
    assert table.schema.field("transactTime").type == pa.timestamp("ns", "UTC")
    positions = pa.table(read(recordings, recording))["position"].to_pylist()
    assert table["position"].to_pylist() == [positions[0], positions[2]]
    with pytest.raises(aeron.ArgumentTypeError, match="sbe is a str: pass a template"):
        read(recordings, recording, sbe="market.xml")


def test_malformed_messages_are_an_error_or_are_dropped_and_counted(recordings: Recorder) -> None:
    recording = recordings.record(next(stream_ids), [trade(1), b"seven.." * 2, trade(2)])
    dropped = read(recordings, recording, layout=TRADE, malformed="drop")
    assert pa.table(dropped)["n"].to_pylist() == [1, 2]
    assert dropped.malformed == 1
    failing = read(recordings, recording, layout=TRADE)
    for _ in range(2):  # The second attempt must raise the error again, and not end like a complete recording.
        with pytest.raises(aeron.InvalidArgumentError, match=r"position 128 .*: its 14 bytes are no records of 16"):
            list(failing)
    with pytest.raises(pa.ArrowInvalid, match="its 14 bytes are no records of 16 bytes"):
        pa.table(read(recordings, recording, layout=TRADE))


# ---- Arrow libraries -------------------------------------------------------------------------------------------------


def test_arrow_libraries_read_the_stream_and_share_it_with_the_iterator(
    recordings: Recorder, trades: aeron.Recording
) -> None:
    batches = read(recordings, trades)
    first = next(batches)
    rest = pa.RecordBatchReader.from_stream(batches).read_all()
    assert first.num_rows + rest.num_rows == 5000
    assert first.schema == rest.schema == batches.schema
    assert list(batches) == []
    lazily = read(recordings, trades, layout=TRADE)  # noqa: F841 - DuckDB finds it by its name
    assert duckdb.sql("SELECT count(*), sum(price), max(position) FROM lazily").fetchall() == [
        (9999, sum(range(9999)) / 4, trades.stop_position)
    ]


def test_the_schema_names_the_origin(recordings: Recorder, trades: aeron.Recording) -> None:
    batches = read(recordings, trades, layout=TRADE)
    expected = {
        b"aeron.recording_id": str(trades.recording_id).encode(),
        b"aeron.stream_id": str(trades.stream_id).encode(),
        b"aeron.session_id": str(trades.session_id).encode(),
        b"aeron.channel": trades.original_channel.encode(),
        b"aeron.layout": TRADE.encode(),
    }
    assert batches.schema.metadata == next(batches).schema.metadata == expected
    assert batches.recording == trades


def test_the_size_of_a_batch_does_not_depend_on_the_length_of_the_recording(
    recordings: Recorder, trades: aeron.Recording
) -> None:
    lengths = [batch.num_rows for batch in read(recordings, trades)]
    assert lengths == [4096, 904]
    long = recordings.record(next(stream_ids), [bytes(8000)] * 400)
    sizes = [batch.nbytes for batch in read(recordings, long)]
    assert len(sizes) > 2
    assert max(sizes) < 1.1 * 2**20


# ---- recordings that are active or damaged ---------------------------------------------------------------------------


def test_a_growing_recording_is_read_without_gap_or_repetition(recordings: Recorder) -> None:
    payloads = [bytes([number % 256]) * (number * 37 % MAX_MESSAGE_LENGTH) for number in range(3000)]
    publication = recordings.archive.add_recorded_exclusive_publication(
        "aeron:ipc?term-length=64k|mtu=1408", next(stream_ids)
    )
    recording = recordings.archive.wait_recorded(publication, 0, timeout=10)
    publisher = threading.Thread(target=offer_all, args=(publication, payloads))
    publisher.start()
    found: list[bytes] = []
    position, reads = 0, 0
    while len(found) < len(payloads):
        batches = read(recordings, recording, from_position=position, columns=["value", "position"])
        for batch in batches:
            found += batch.column("value").to_pylist()
        position = batches.position
        reads += 1
    publisher.join()
    assert found == payloads
    assert position == publication.position
    assert reads > 1
    publication.close()


def test_a_recording_of_an_archive_with_an_unknown_driver_is_read_up_to_the_end_of_its_index(
    driver: aeron.MediaDriver, recordings: Recorder, tmp_path: Path
) -> None:
    with recordings.archive.add_recorded_exclusive_publication("aeron:ipc?term-length=64k", next(stream_ids)) as active:
        position = offer_all(active, [bytes(1000)] * 300)
        recording = recordings.archive.wait_recorded(active, position, timeout=10)
        copy = shutil.copytree(recordings.directory, tmp_path / "copy")
        mark = copy / "archive-mark.dat"
        content = mark.read_bytes()
        assert driver.dir.encode() in content
        mark.write_bytes(content.replace(driver.dir.encode(), driver.dir.upper().encode()))
        batches = aeron.read_recording(copy, recording.recording_id)
        assert position - 64 * 1024 <= batches.to_position <= position
        assert len(rows(batches)) == batches.to_position // 1056
        for index in copy.glob(f"index-{recording.recording_id}-*.idx"):
            index.unlink()
        with pytest.raises(aeron.ArchiveDirectoryError, match="is active, and its recorded position is not known here"):
            aeron.read_recording(copy, recording.recording_id)
        assert len(rows(aeron.read_recording(copy, recording.recording_id, to_position=10560))) == 10


def test_the_error_for_a_damaged_or_missing_segment_has_file_and_position(
    recordings: Recorder, trades: aeron.Recording, tmp_path: Path
) -> None:
    copy = shutil.copytree(recordings.directory, tmp_path / "copy")
    id = trades.recording_id
    segment = copy / f"{id}-{SEGMENT_LENGTH}.rec"
    begin = next(each.begin for each in recordings.messages(trades) if each.begin > SEGMENT_LENGTH)
    with segment.open("r+b") as file:
        file.seek(begin - SEGMENT_LENGTH + 16)
        file.write(b"\xff")
    damaged = aeron.read_recording(copy, id)
    with pytest.raises(aeron.ArchiveDirectoryError, match=rf"{segment.name}, position {begin}: stream id"):
        list(damaged)
    with pytest.raises(OSError, match=rf"{segment.name}, position {begin}: stream id"):
        pa.table(aeron.read_recording(copy, id))
    segment.unlink()
    with pytest.raises(aeron.ArchiveDirectoryError, match=rf"{segment.name}.*No such file"):
        list(aeron.read_recording(copy, id))
    # The segments after the missing one are still readable.
    after = aeron.read_recording(copy, id, from_position=2 * SEGMENT_LENGTH)
    assert pa.table(after)["position"].to_pylist()[-1] == trades.stop_position


# ---- arguments -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"from_position": -1}, "from_position=-1 is not within 0 to"),
        ({"to_position": 1 << 40}, "to_position=1099511627776 is not within 0 to"),
        ({"from_position": 64, "to_position": 32}, "to_position=32 is not within 64 to"),
        ({"layout": "price f65"}, "layout='price f65': 'price' at offset 0: unknown type 'f65'"),
        ({"layout": "i4"}, "layout='i4': 'i4' at offset 0: expected 'name type'"),
        ({"layout": np.dtype([("odd", "f2")])}, "field 'odd' is float16; a layout has"),
        ({"layout": np.dtype("f8")}, "float64 has no fields; give a structured dtype"),
        ({"layout": TRADE, "text": True}, "pass layout, text or sbe"),
        ({"columns": ["price"]}, "column 'price' does not exist; there are value, stream_id"),
        ({"columns": []}, "there is no column"),
        ({"columns": ["value", "Value"]}, "column 'value' is there twice"),
    ],
)
def test_the_error_for_an_invalid_value_names_the_argument(
    recordings: Recorder, trades: aeron.Recording, options: dict[str, Any], error: str
) -> None:
    with pytest.raises(aeron.InvalidArgumentError) as raised:
        read(recordings, trades, **options)
    assert error in str(raised.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"from_position": "0"}, "from_position='0' is not an integer"),
        ({"layout": 7}, "7 is not a layout: pass its text"),
        ({"text": "yes"}, "text='yes' is not True or False"),
        ({"columns": "value"}, "columns='value' is not a list of str"),
        ({"malformed": None}, 'malformed=None is not "fail", "drop" or "keep"'),
    ],
)
def test_a_value_of_another_type_is_a_type_error(
    recordings: Recorder, trades: aeron.Recording, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(aeron.ArgumentTypeError, match=re.escape(says)):
        read(recordings, trades, **options)


def test_an_unknown_recording_or_archive_is_refused(recordings: Recorder, tmp_path: Path) -> None:
    with pytest.raises(aeron.ArchiveDirectoryError, match="no recording 999 in"):
        aeron.read_recording(recordings.directory, 999)
    with pytest.raises(aeron.ArchiveDirectoryError, match=r"archive\.catalog"):
        aeron.read_recording(tmp_path, 0)


# ---- checksums -------------------------------------------------------------------------------------------------------


@pytest.fixture
def damaged(driver: aeron.MediaDriver, tmp_path: Path) -> Path:
    """Returns the directory of an archive with CRC-32C, in which the third message of recording 0 is zeroed."""
    directory = tmp_path / "with-checksums"
    channels = {"control_channel_enabled": False, "replication_channel": "aeron:udp?endpoint=localhost:0"}
    local = {"local_control_channel": "aeron:ipc?term-length=64k", "local_control_stream_id": 77}
    with (
        aeron.Archive(directory, driver=driver, record_checksum="CRC-32C", **channels, **local),
        aeron.connect(driver) as client,
        aeron.connect_archive(client, control_stream_id=77) as archive,
    ):
        publication = archive.add_recorded_exclusive_publication("aeron:ipc?term-length=64k", 1)
        position = [publication.publish(bytes([number]) * 100, timeout=5) for number in range(1, 9)][-1]
        archive.wait_recorded(publication, position, timeout=5)
        archive.stop_recording(publication)
    segment = directory / "0-0.rec"
    data = bytearray(segment.read_bytes())
    data[2 * 160 + 32 : 2 * 160 + 132] = bytes(100)
    segment.write_bytes(data)
    return directory


def values(batches: aeron.RecordedBatches) -> list[bytes]:
    return [value for batch in batches for value in batch.column("value").to_pylist()]


@pytest.mark.parametrize("with_index", [True, False])
@pytest.mark.parametrize("from_position", [0, 320])
def test_a_zeroed_payload_is_an_error_if_the_archive_writes_checksums_07_194(
    damaged: Path, with_index: bool, from_position: int
) -> None:
    if not with_index:
        for index in damaged.glob("*.idx"):
            index.unlink()
    with pytest.raises(aeron.ArchiveDirectoryError, match=r"0-0\.rec, position 320: .*CRC-32C"):
        values(aeron.read_recording(damaged, 0, from_position=from_position))
    with pytest.raises(aeron.ArchiveDirectoryError, match="position 320"):
        aeron.read_recording(damaged, 0, from_position=from_position).export(damaged.parent / "out.parquet")
    assert not (damaged.parent / "out.parquet").exists()
    rest = aeron.read_recording(damaged, 0, from_position=480)
    assert values(rest) == [bytes([number]) * 100 for number in range(4, 9)]
    unverified = values(aeron.read_recording(damaged, 0, verify_checksums=False))
    assert unverified[2] == bytes(100)
    assert len(unverified) == 8


def test_the_last_frame_of_a_segment_with_an_index_is_verified_alone_07_194(damaged: Path) -> None:
    segment = damaged / "0-0.rec"
    data = bytearray(segment.read_bytes())
    data[7 * 160 + 40] ^= 1
    segment.write_bytes(data)
    with pytest.raises(aeron.ArchiveDirectoryError, match="position 1120"):
        values(aeron.read_recording(damaged, 0, from_position=7 * 160))


def test_describe_names_the_checksums_of_the_frames_07_194(damaged: Path, recordings: Recorder) -> None:
    assert "(recordingId=0) frames: CRC-32C\n" in run("archive", "describe", damaged).stdout
    assert "(recordingId=0) frames: CRC-32C\n" in run("archive", "describe", damaged, 0).stdout
    plain = recordings.record(next(stream_ids), [b"x"])
    shown = run("archive", "describe", recordings.directory, plain.recording_id)
    assert f"(recordingId={plain.recording_id}) frames: no checksums\n" in shown.stdout
    as_json = run("archive", "describe", damaged, 0, "--json")
    assert json.loads(as_json.stdout)["frame_checksum"] == "CRC-32C"


def test_an_export_of_damaged_frames_can_be_forced_07_194(damaged: Path, tmp_path: Path) -> None:
    command = ("archive", "export", damaged, 0, tmp_path / "out.parquet")
    refused = run(*command)
    assert refused.exit_code == 1
    assert "position 320" in refused.stderr
    assert run(*command, "--no-verify-checksums").exit_code == 0


def test_a_recording_that_is_extended_with_another_setting_is_read_07_194(
    driver: aeron.MediaDriver, tmp_path: Path
) -> None:
    channels = {"control_channel_enabled": False, "replication_channel": "aeron:udp?endpoint=localhost:0"}
    local = {"local_control_channel": "aeron:ipc?term-length=64k", "local_control_stream_id": 78}
    for checksum in ("", "CRC-32C", ""):
        with (
            aeron.Archive(tmp_path / "archive", driver=driver, record_checksum=checksum, **channels, **local),
            aeron.connect(driver) as client,
            aeron.connect_archive(client, control_stream_id=78) as archive,
        ):
            recording = archive.list_recording(0)
            if recording is None:
                publication = archive.add_recorded_exclusive_publication("aeron:ipc?term-length=64k", 1)
            else:
                assert recording.stop_position is not None
                uri = aeron.ChannelUriBuilder("ipc", term_length=65536)
                uri.initial_position(recording.stop_position, recording.initial_term_id, 65536)
                publication = client.add_exclusive_publication(str(uri), 1)
                archive.extend_recording(0, f"aeron:ipc?session-id={publication.session_id}", 1)
            position = [publication.publish(bytes([number]) * 100, timeout=5) for number in range(8)][-1]
            archive.wait_recorded(publication, position, timeout=5)
    assert len(values(aeron.read_recording(tmp_path / "archive", 0))) == 24
