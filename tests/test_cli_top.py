"""Tests of `aeron top`: its rows, rates and states, the screen by textual's pilot, and the command in tmux."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from tests.conftest import Stream, eventually
from tests.ports import free_port
from textual.pilot import Pilot

import aeron
from aeron import metrics
from aeron.cli.text import printable
from aeron.cli.top import cells
from aeron.cli.top.app import Top
from aeron.cli.top.rows import Row
from aeron.cli.top.series import HISTORY, Series
from aeron.cli.top.views import VIEWS, Layout, Order, layout, matching
from aeron.cli.top.watch import SILENT_MS, Frame, Watch
from commands import driver_directory, run, running_driver

IPC = "aeron:ipc?term-length=64k"
STREAMS, READERS, CLIENTS, RECORDINGS, ERRORS = VIEWS
HOSTILE = "[bold]\x1b[2J\x9b31m\r\nforged\u202e 日本"
SHOWN = r"[bold]\x1b[2J\x9b31m\r\nforged\u202e 日本"


# ---- rates -----------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 1 << 40), st.integers(1, 10**10)), min_size=2, max_size=2 * HISTORY))
def test_a_rate_is_the_distance_of_two_positions_over_the_time_between_them(steps: list[tuple[int, int]]) -> None:
    series, position, time_ns = Series(), 0, 0
    for distance, elapsed_ns in steps:
        position, time_ns = position + distance, time_ns + elapsed_ns
        series.add({"a": position}, time_ns)
    expected = [distance * 1e9 / elapsed_ns for distance, elapsed_ns in steps[1:]]
    assert series.history("a") == pytest.approx(expected[-HISTORY:])


def test_a_position_that_decreases_or_disappears_starts_a_new_history() -> None:
    series = Series()
    for time_ns, positions in enumerate([{"a": 5, "b": 5}, {"a": 6, "b": 6}, {"a": 1}, {"a": 2, "b": 9}]):
        series.add(positions, time_ns)
    assert series.history("a") == (1e9,)
    assert series.history("b") == ()


def test_a_sample_at_the_time_of_the_last_one_is_left_out() -> None:
    series = Series()
    for time_ns, position in [(1, 0), (1, 5), (3, 8)]:
        series.add({"a": position}, time_ns)
    assert series.history("a") == (4e9,)


# ---- cells -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (None, "-"),
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (102_400, "100 KiB"),
        (1_048_575, "1.0 MiB"),
        (2**63 - 1, "8.0 EiB"),
    ],
)
def test_an_amount_has_a_unit(number: int | None, text: str) -> None:
    assert cells.amount(number) == text


@given(st.integers(0, 2**63 - 1))
def test_an_amount_fits_its_column(number: int) -> None:
    assert len(cells.amount(number)) <= 8


def test_a_sparkline_has_the_newest_rates_on_the_right() -> None:
    assert cells.sparkline([0, 3.5, 7], 5) == "  ▁▅█"
    assert cells.sparkline([9, 0, 0], 2) == "▁▁"
    assert cells.sparkline([1], 0) == ""


@pytest.mark.parametrize(("milliseconds", "text"), [(None, "-"), (1234, "1.2s"), (75_000, "1m 15s"), (-1, "0s")])
def test_an_age_has_its_two_largest_units(milliseconds: int | None, text: str) -> None:
    assert cells.age(milliseconds) == text


# ---- order, filter and layout ----------------------------------------------------------------------------------------


def row(stream_id: int, channel: str = "aeron:ipc", **values: object) -> Row:
    empty = {column.name: () if column.name == "history" else None for column in STREAMS.columns}
    found = {**empty, "stream": stream_id, "session": -(2**31), "channel": channel, **values}
    return Row(stream_id, stream_id, "", found)  # type: ignore[arg-type]


@given(st.lists(st.none() | st.integers(0, 9)), st.booleans())
def test_rows_without_a_value_are_last_and_equal_rows_keep_their_order(lags: list[int | None], down: bool) -> None:
    rows = Order("lag", down).sorted(row(index, lag=lag) for index, lag in enumerate(lags))
    found = [(each.cells["lag"], each.cells["stream"]) for each in rows]
    assert found == sorted(
        ((lag, index) for index, lag in enumerate(lags)),
        key=lambda pair: (pair[0] is None, 0 if pair[0] is None else -pair[0] if down else pair[0], pair[1]),
    )


def test_a_filter_needs_all_words_in_ids_and_texts_in_any_case() -> None:
    rows = [row(1001, "aeron:udp?endpoint=Quotes:1"), row(1002, "aeron:ipc?alias=quotes", lag=1001)]
    assert matching(rows, "QUOTES", STREAMS) == rows
    assert matching(rows, "1001 quotes", STREAMS) == rows[:1]
    assert matching(rows, " ", STREAMS) == rows
    assert matching(rows, "[", STREAMS) == []


@given(st.lists(st.text(max_size=100).map(printable), max_size=5), st.integers(0, 250))
def test_each_line_fits_the_screen(channels: list[str], width: int) -> None:
    rows = [row(index, channel, **{"held back by": channel}) for index, channel in enumerate(channels)]
    found = layout(STREAMS, rows, width)
    widths = {cell_len(found.line(each)) for each in rows} | {cell_len(found.titles(STREAMS.order))}
    assert len(widths) == 1
    assert widths.pop() <= width


def test_ids_are_complete_in_all_layouts_of_a_usual_screen() -> None:
    def columns(found: Layout) -> list[str]:
        return [column.name for column, _ in found.columns]

    least = ["stream", "bytes/s", "history", "lag", "held back by", "channel"]
    for stream_id, more in ((1001, ["kind"]), (-(2**31), [])):
        one = row(stream_id, "aeron:udp?endpoint=" + "x" * 200, lag=1, room=1)
        narrow, wide = layout(STREAMS, [one], 80), layout(STREAMS, [one], 160)
        assert sorted(columns(narrow)) == sorted(least + more)
        assert narrow.line(one).split()[0] == str(stream_id)
        assert columns(wide) == [column.name for column in STREAMS.columns]
        assert wide.line(one).split()[:2] == [str(stream_id), str(-(2**31))]


# ---- rows of a driver ------------------------------------------------------------------------------------------------


def frame_of(driver: aeron.MediaDriver) -> Frame:
    return Watch(driver.dir).read()


def rows_of_stream(driver: aeron.MediaDriver, view: str, stream_id: int) -> list[Row]:
    return [each for each in frame_of(driver).rows[view] if each.cells.get("stream") == stream_id]


def fill(publication: aeron.ExclusivePublication) -> None:
    eventually(lambda: publication.offer(bytes(992)) == aeron.BACK_PRESSURED)


def test_the_rate_of_a_stream_and_its_reader_is_that_of_their_positions(
    driver: aeron.MediaDriver, stream: Stream
) -> None:
    def shown(frame: Frame) -> list[object]:
        rows = [*frame.rows["streams"], *frame.rows["readers"]]
        return [each.cells["bytes/s"] for each in rows if each.cells["stream"] == stream.stream_id]

    before = metrics.snapshot(driver.dir)
    stream.publication.publish(bytes(992), timeout=5)
    stream.receive()

    def rates() -> list[object]:
        watch = Watch(driver.dir)
        assert shown(watch.add(before, 0)) == [None, None]
        return shown(watch.add(metrics.snapshot(driver.dir), 2 * 10**9))

    eventually(lambda: rates() == [512.0, 512.0])


def test_the_reader_that_holds_a_publisher_back_is_named_with_its_client(
    driver: aeron.MediaDriver, stream_id: int
) -> None:
    with aeron.connect(driver, client_name="slow one") as client:
        slow, fast = (client.add_subscription(IPC, stream_id) for _ in range(2))
        publication = client.add_exclusive_publication(IPC, stream_id)
        publication.wait_connected(timeout=5)

        def is_held() -> bool:
            fast.poll_batch(100)
            publication.offer(bytes(992))
            [found] = rows_of_stream(driver, "streams", stream_id)
            return found.cells["held back by"] == f"slow one ({client.client_id})"

        eventually(is_held)
        [found] = rows_of_stream(driver, "streams", stream_id)
        assert found.is_marked
        assert f"held back by reader {slow.registration_id} of slow one" in found.facts[0][1]
        marked = [each for each in rows_of_stream(driver, "readers", stream_id) if each.is_marked]
        assert [each.cells["holds"] for each in marked] == ["holds back"]
        assert f"reader {slow.registration_id} of slow one ({client.client_id})" in marked[0].title


def test_the_reader_that_lets_its_receiver_hold_a_publisher_back_is_named(
    driver: aeron.MediaDriver, stream_id: int
) -> None:
    channel = f"aeron:udp?endpoint=localhost:{free_port()}|term-length=64k"
    with aeron.connect(driver, client_name="slow one") as client:
        subscription = client.add_subscription(channel, stream_id)
        publication = client.add_exclusive_publication(channel, stream_id)
        publication.wait_connected(timeout=5)
        fill(publication)
        held = f"receivers: slow one ({client.client_id})"

        def is_held() -> bool:
            publication.offer(bytes(992))
            return held in [each.cells["held back by"] for each in rows_of_stream(driver, "streams", stream_id)]

        eventually(is_held)
        assert {each.cells["kind"] for each in rows_of_stream(driver, "streams", stream_id)} == {"pub", "image"}
        [reader] = rows_of_stream(driver, "readers", stream_id)
        assert reader.is_marked
        assert reader.title.startswith(f"reader {subscription.registration_id} of slow one")


def test_recordings_and_errors_have_rows(
    driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int, tmp_path: Path
) -> None:
    with (
        aeron.Archive(tmp_path / "archive", driver=driver, archive_id=78, low_storage_space_threshold=0),
        aeron.connect_archive(client) as archive,
    ):
        publication = archive.add_recorded_exclusive_publication(IPC, stream_id)
        archive.wait_recorded(publication, publication.publish(bytes(992), timeout=5), timeout=5)
        eventually(lambda: [each.cells["lag"] for each in rows_of_stream(driver, "recordings", stream_id)] == [0])
        [recording] = rows_of_stream(driver, "recordings", stream_id)
        assert (recording.cells["archive"], recording.cells["position"]) == (78, 1024)
    with pytest.raises(aeron.AeronError):
        client.add_publication("aeron:ipc?mtu=101", stream_id)
    eventually(lambda: any(r"channel=aeron:ipc?mtu=101" in each.title for each in frame_of(driver).rows["errors"]))


def test_losses_are_rows_of_errors(driver: aeron.MediaDriver) -> None:
    found = metrics.snapshot(driver.dir)
    lost = aeron.LossObservation(3, 4096, 1000, 2000, -7, 1001, f"aeron:udp?{HOSTILE}", "127.0.0.1:1")
    [shown] = [
        each
        for each in Watch(driver.dir).add(replace(found, losses=(lost,)), 0).rows["errors"]
        if each.cells["kind"] == "loss"
    ]
    assert (shown.cells["count"], shown.facts[-1]) == (3, ("lost", "4.0 KiB"))
    assert shown.cells["text"] == f"aeron:udp?{SHOWN}, stream 1001, session -7, from 127.0.0.1:1"


def test_a_client_with_an_old_heartbeat_is_marked_and_a_new_one_has_none(driver: aeron.MediaDriver) -> None:
    found = metrics.snapshot(driver.dir)

    def row_of(age_ms: int) -> Row:
        client = metrics.ClientMetrics(1, "quotes", "", "", age_ms, 0, 0, 0)
        later = replace(found, time_ms=found.start_timestamp_ms + 60_000, clients=(client,))
        [shown] = Watch(driver.dir).add(later, 0).rows["clients"]
        return shown

    assert [(row_of(age).cells["heartbeat"], row_of(age).is_marked) for age in (5_000, 5_001, 60_001)] == [
        (5_000, False),
        (5_001, True),
        (None, False),
    ]


@given(st.text(min_size=1))
def test_no_row_has_a_character_that_a_terminal_obeys(text: str) -> None:
    reader = metrics.SubscriberMetrics(2, 1, text, 0, 9, None, None)
    stream = metrics.StreamMetrics(3, 1, text, 4, 5, True, 9, 9, 0, None, None, None, None, (reader,), "subscriber 2")
    image = metrics.ImageMetrics(6, text, 4, 7, 9, 9, 0, None, None, (reader,))
    found = metrics.DriverMetrics(
        text,
        *(2000, 8, 1000, 2000, {}),
        clients=(metrics.ClientMetrics(1, text, text, text, 0, 1, 1, 0),),
        streams=(stream,),
        images=(image,),
        endpoints=(),
        recordings=(metrics.RecordingMetrics(9, 0, text, 4, 5, 0, 9),),
        archives=(),
        losses=(),
        errors=(),
        counters=(),
        max_counters=100,
        free_bytes=None,
    )
    frame = Watch(text).add(found, 0)
    rows = [each for view in VIEWS for each in frame.rows[view.name]]
    assert len(rows) == 6
    texts = [value for each in rows for value in each.cells.values() if isinstance(value, str)]
    texts += [each.title for each in rows] + [value for each in rows for fact in each.facts for value in fact]
    gone = Watch(text).missing(text, 0)
    for shown in (*texts, frame.driver, frame.totals, gone.driver, gone.trouble):
        assert printable(shown) == shown


# ---- states of a driver ----------------------------------------------------------------------------------------------


def test_a_client_that_has_gone_is_shown_for_some_minutes(driver: aeron.MediaDriver) -> None:
    with aeron.connect(driver, client_name="short") as client, client.add_counter(1001, "of short"):
        found = metrics.snapshot(driver.dir)
    [gone] = [each for each in found.clients if each.client_id == client.client_id]
    later = replace(found, clients=tuple(each for each in found.clients if each is not gone))
    watch = Watch(driver.dir)
    watch.add(found, 0)
    for seconds, is_shown in [(30, True), (100, True), (151, False)]:
        rows = watch.add(later, seconds * 1_000_000_000).rows["clients"]
        texts = [row.title for row in rows if row.key == ("client", client.client_id)]
        assert bool(texts) == is_shown, seconds
        assert all("gone" in text for text in texts)


def test_the_totals_count_timeouts_and_failed_recordings(driver: aeron.MediaDriver) -> None:
    found = metrics.snapshot(driver.dir)
    quiet = replace(found, system=found.system | {"client_timeouts": 0, "unblocked_publications": 0}, archives=())
    assert "timeouts" not in Watch(driver.dir).add(quiet, 0).totals
    archive = metrics.ArchiveMetrics(7, {"archive_errors": 3, "archive_blocked_images": 1})
    busy = replace(quiet, system=quiet.system | {"client_timeouts": 2}, archives=(archive,))
    totals = Watch(driver.dir).add(busy, 0).totals
    assert totals.endswith("  client timeouts 2  archive errors 3  recordings failed 1")


def test_a_driver_whose_heartbeat_is_old_does_not_respond(driver: aeron.MediaDriver) -> None:
    found = metrics.snapshot(driver.dir)
    watch = Watch(driver.dir)
    assert watch.add(found, 0).trouble == ""
    assert watch.add(replace(found, time_ms=found.heartbeat_ms + SILENT_MS), 1).trouble == ""
    silent = watch.add(replace(found, time_ms=found.heartbeat_ms + 65_000), 2)
    assert silent.trouble == f"the driver does not respond, last heartbeat 1m 05s ago, and process {os.getpid()} exists"
    assert set(silent.rows) == {view.name for view in VIEWS}


def test_a_driver_that_has_ended_or_is_gone_keeps_its_rows_and_its_last_heartbeat(
    driver: aeron.MediaDriver, stream: Stream
) -> None:
    found = metrics.snapshot(driver.dir)
    watch = Watch(driver.dir)
    rows = watch.add(found, 0).rows
    ended = watch.add(replace(found, heartbeat_ms=-1, time_ms=found.heartbeat_ms + 1500), 1)
    assert ended.trouble == "the driver has ended, last heartbeat 1.5s ago: waiting for the next one"
    gone = watch.missing("no file", found.heartbeat_ms + 2500)
    assert gone.trouble == "no driver, last heartbeat 2.5s ago: waiting for one (no file)"
    assert [each.key for each in gone.rows["streams"]] == [each.key for each in rows["streams"]]


def test_a_directory_in_which_no_driver_was_says_so(tmp_path: Path) -> None:
    frame = Watch(str(tmp_path)).read()
    assert frame.trouble.startswith("no driver: waiting for one (CnC file not created")
    assert frame.rows == {}


def test_rates_start_again_with_the_next_driver(driver: aeron.MediaDriver, stream: Stream) -> None:
    found = metrics.snapshot(driver.dir)
    watch = Watch(driver.dir)
    watch.add(found, 0)
    assert any(each.history for each in watch.add(found, 10**9).rows["streams"])
    restarted = watch.add(replace(found, start_timestamp_ms=found.start_timestamp_ms + 1), 2 * 10**9)
    assert not any(each.history for each in restarted.rows["streams"])
    assert ", 1 restart, " in restarted.driver


# ---- the screen ------------------------------------------------------------------------------------------------------


def lines(app: Top) -> list[str]:
    return ["".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()]


def screen(app: Top) -> str:
    return "\n".join(line.rstrip() for line in lines(app))


async def until(pilot: Pilot[None], condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert isinstance(pilot.app, Top)
        assert time.monotonic() < deadline, screen(pilot.app)
        await pilot.pause(0.01)


def on_screen(
    directory: object,
    steps: Callable[[Top, Pilot[None]], Awaitable[None]],
    size: tuple[int, int] = (80, 24),
    period_s: float = 0.05,
) -> None:
    """Runs steps on the live view of a directory."""

    async def main() -> None:
        app = Top(str(directory), period_s)
        async with app.run_test(size=size) as pilot:
            await steps(app, pilot)

    asyncio.run(asyncio.wait_for(main(), 30))


def test_keys_show_each_view_on_a_small_screen(driver: aeron.MediaDriver, stream: Stream) -> None:
    async def steps(app: Top, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: f"{stream.stream_id} " in screen(app))
        assert [len(line) for line in lines(app)] == [80] * 24
        assert f"pid {os.getpid()}, up " in lines(app)[0]
        assert "held back by" in lines(app)[3]
        titles = {"2": "client", "3": "publications", "4": "archive", "5": "last↓", "tab": "held back by"}
        for key, title in titles.items():
            await pilot.press(key)
            await until(pilot, lambda title=title: title in lines(app)[3])

    on_screen(driver.dir, steps)


def test_the_screen_may_have_any_size_and_a_wide_one_has_more_columns(
    driver: aeron.MediaDriver, stream: Stream
) -> None:
    session = str(stream.publication.session_id)

    async def steps(app: Top, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: f"{stream.stream_id} " in screen(app))
        assert "session" not in lines(app)[3]
        await pilot.resize_terminal(160, 50)
        await until(pilot, lambda: "session" in lines(app)[3] and session in screen(app))
        for width, height in [(20, 6), (1, 1), (80, 24)]:
            await pilot.resize_terminal(width, height)
            await until(pilot, lambda size=(width, height): (len(lines(app)[0]), len(lines(app))) == size)
        await until(pilot, lambda: f"{stream.stream_id} " in screen(app))

    on_screen(driver.dir, steps)


def channels_shown(app: Top) -> list[str]:
    return re.findall(r"alias=(\w+)", "\n".join(lines(app)[4:12]))


@pytest.fixture
def three_streams(driver: aeron.MediaDriver, stream_id: int) -> Iterator[list[aeron.ExclusivePublication]]:
    with aeron.connect(driver, client_name="three") as client:
        yield [client.add_exclusive_publication(f"aeron:ipc?alias={name}", stream_id) for name in "cab"]


def test_s_sorts_by_the_next_column_and_capital_s_in_the_other_direction(
    driver: aeron.MediaDriver, three_streams: list[aeron.ExclusivePublication]
) -> None:
    async def steps(app: Top, pilot: Pilot[None]) -> None:
        await pilot.press("slash", *"alias", "enter")
        await until(pilot, lambda: sorted(channels_shown(app)) == list("abc"))
        while "channel↓" not in lines(app)[3]:
            await pilot.press("s")
            await pilot.pause()
        assert channels_shown(app) == list("cba")
        await pilot.press("S")
        await until(pilot, lambda: channels_shown(app) == list("abc"))
        assert "channel↑" in lines(app)[3]

    on_screen(driver.dir, steps, size=(120, 24))


def test_a_filter_is_applied_while_it_is_written_and_removed_by_escape(
    driver: aeron.MediaDriver, three_streams: list[aeron.ExclusivePublication]
) -> None:
    async def steps(app: Top, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: len(channels_shown(app)) == 3)
        await pilot.press("slash", *"alias=b")
        await until(pilot, lambda: channels_shown(app) == ["b"])
        assert "filter: alias=b" in screen(app)
        assert lines(app)[-2].startswith("alias=b")
        await pilot.press("q")
        await until(pilot, lambda: channels_shown(app) == [])
        await pilot.press("escape")
        await until(pilot, lambda: len(channels_shown(app)) == 3)

    on_screen(driver.dir, steps, size=(120, 24))


def test_the_cursor_stays_on_its_row(
    driver: aeron.MediaDriver, three_streams: list[aeron.ExclusivePublication]
) -> None:
    def selected(app: Top) -> str:
        return "\n".join(lines(app)[-3:-1])

    async def steps(app: Top, pilot: Pilot[None]) -> None:
        await pilot.press("slash", *"alias", "enter")
        while "channel↓" not in lines(app)[3]:
            await pilot.press("s")
            await pilot.pause()
        await until(pilot, lambda: channels_shown(app) == list("cba"))
        await pilot.press("home")
        await until(pilot, lambda: "alias=c" in selected(app) and "row 1/3 " in screen(app))
        await pilot.press("S")
        await until(pilot, lambda: "row 3/3 " in screen(app))
        assert "alias=c" in selected(app)
        await pilot.press("up")
        await until(pilot, lambda: "alias=b" in selected(app))

    on_screen(driver.dir, steps, size=(120, 24))


def test_a_followed_stream_has_its_values_its_readers_and_a_sparkline(
    driver: aeron.MediaDriver, stream_id: int
) -> None:
    with aeron.connect(driver, client_name="quotes") as client:
        slow = client.add_subscription(IPC, stream_id)
        other = client.add_subscription(IPC, stream_id + 1)
        publication = client.add_exclusive_publication(IPC, stream_id)
        client.add_exclusive_publication(IPC, stream_id + 1).wait_connected(timeout=5)
        publication.wait_connected(timeout=5)
        fill(publication)

        async def steps(app: Top, pilot: Pilot[None]) -> None:
            await pilot.press("slash", *f"{stream_id} quotes", "enter")
            await until(pilot, lambda: "row 1/1 " in screen(app))
            assert "! " in lines(app)[4]
            await pilot.press("enter")
            await until(pilot, lambda: "▁▁▁" in screen(app))
            shown = " ".join(screen(app).split())
            assert f"exclusive publication {publication.registration_id} of quotes" in shown
            assert f"held back by reader {slow.registration_id} of quotes ({client.client_id})" in shown
            await until(pilot, lambda: any(re.match(rf"! +{stream_id} quotes", line) for line in lines(app)))
            await pilot.press("escape")
            await until(pilot, lambda: "exclusive publication" not in "\n".join(lines(app)[:-3]))
            assert f"filter: {stream_id} quotes" in screen(app)

        on_screen(driver.dir, steps)
        assert not other.is_closed


def test_a_followed_client_has_its_readers(driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int) -> None:
    with aeron.connect(driver, client_name="reader-of-two") as other:
        ids = (stream_id, stream_id + 1)
        kept = [(other.add_subscription(IPC, id), client.add_exclusive_publication(IPC, id)) for id in ids]

        async def steps(app: Top, pilot: Pilot[None]) -> None:
            await pilot.press("3", "slash", *"reader-of-two", "enter")
            await until(pilot, lambda: "row 1/1 " in screen(app))
            await pilot.press("enter")
            await until(pilot, lambda: "row 1/2 " in screen(app))
            assert f"client {other.client_id} reader-of-two" in screen(app)

        on_screen(driver.dir, steps)
        assert len(kept) == 2


def test_a_paused_screen_shows_old_values_and_the_state_of_the_driver() -> None:
    with driver_directory() as directory:

        async def steps(app: Top, pilot: Pilot[None]) -> None:
            with aeron.MediaDriver(dir=directory), aeron.connect(directory) as client:
                await until(pilot, lambda: "1 streams 0" in screen(app))
                await pilot.press("p")
                publication = client.add_exclusive_publication(IPC, 1)
                await until(pilot, lambda: app._frame.rows["streams"])
                await pilot.pause()
                assert "PAUSED" in screen(app)
                assert "1 streams 0" in screen(app)
                assert not publication.is_closed
            await until(pilot, lambda: "no driver, last heartbeat" in screen(app))
            assert "1 streams 0" in screen(app)
            await pilot.press("p")
            await until(pilot, lambda: "PAUSED" not in screen(app) and "1 streams 1" in screen(app))

        on_screen(directory, steps)


def test_the_screen_goes_on_with_the_next_driver_and_finds_the_followed_stream_again() -> None:
    with driver_directory() as directory:

        async def steps(app: Top, pilot: Pilot[None]) -> None:
            await until(pilot, lambda: "no driver: waiting for one" in screen(app))
            registrations = []
            for restarts in range(2):
                with aeron.MediaDriver(dir=directory), aeron.connect(directory, client_name="quotes") as client:
                    others = [client.add_counter(1001, "other ids") for _ in range(restarts)]
                    publication = client.add_exclusive_publication(IPC, 7)
                    registrations.append(publication.registration_id)
                    title = f"exclusive publication {publication.registration_id} of "
                    await until(pilot, lambda title=title: title in screen(app))
                    if not restarts:
                        await pilot.press("enter")
                    await until(pilot, lambda title=title: title in lines(app)[3] and "ENDED" not in screen(app))
                    assert len(others) == restarts
                await until(pilot, lambda: "no driver, last heartbeat" in screen(app))
            assert registrations[0] != registrations[1]
            assert "1 restart," in screen(app)

        on_screen(directory, steps)


def test_a_followed_stream_that_has_ended_says_so(driver: aeron.MediaDriver, stream_id: int) -> None:
    with aeron.connect(driver) as client:
        publication = client.add_exclusive_publication("aeron:ipc?alias=ending", stream_id)

        async def steps(app: Top, pilot: Pilot[None]) -> None:
            await pilot.press("slash", *"ending", "enter")
            await until(pilot, lambda: "row 1/1 " in screen(app))
            await pilot.press("enter")
            publication.close()
            await until(pilot, lambda: "ENDED" in screen(app))
            assert "alias=ending" in screen(app)

        on_screen(driver.dir, steps)


def test_text_of_other_processes_is_shown_harmlessly(driver: aeron.MediaDriver, stream_id: int) -> None:
    alias, shown_alias = "[red]\x1b[2J\nx", r"[red]\x1b[2J\nx"  # a channel must be ASCII
    with aeron.connect(driver, client_name=HOSTILE) as client:
        publication = client.add_exclusive_publication(f"aeron:ipc?alias={alias}", stream_id)
        with pytest.raises(aeron.AeronError):
            client.add_publication(f"aeron:udp?endpoint={alias}:1", stream_id)

        async def steps(app: Top, pilot: Pilot[None]) -> None:
            await pilot.press("slash", *f"{stream_id} red", "enter")
            await until(pilot, lambda: SHOWN in screen(app))
            assert shown_alias in screen(app)
            await pilot.press("enter")
            await until(pilot, lambda: "exclusive publication" in lines(app)[3])
            assert shown_alias in screen(app)
            await pilot.press("escape", "escape", "3")
            await until(pilot, lambda: f"client {client.client_id} {SHOWN}" in screen(app))
            await pilot.press("5", "slash", *"red", "enter")
            await until(pilot, lambda: "error: " in screen(app) and shown_alias in screen(app))
            assert printable("".join(lines(app))) == "".join(lines(app))

        on_screen(driver.dir, steps, size=(160, 40))
        assert not publication.is_closed


def test_of_ten_thousand_rows_only_the_visible_lines_are_made(
    driver: aeron.MediaDriver, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = metrics.snapshot(driver.dir)
    one = replace(found.streams[0], subscribers=())
    many = tuple(replace(one, registration_id=id, stream_id=id) for id in range(10_000))
    monkeypatch.setattr(metrics, "snapshot", lambda directory: replace(found, streams=many))
    made: list[Row] = []
    line = Layout.line

    def counted(self: Layout, row: Row) -> str:
        made.append(row)
        return line(self, row)

    monkeypatch.setattr(Layout, "line", counted)

    async def steps(app: Top, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "row 1/10000 " in screen(app))
        made.clear()
        await pilot.press("end")
        await until(pilot, lambda: "row 10000/10000 " in screen(app))
        assert 0 < len(made) < 1000

    on_screen(driver.dir, steps, period_s=60)


# ---- the command -----------------------------------------------------------------------------------------------------


def test_once_as_json_is_the_snapshot(driver: aeron.MediaDriver, client: aeron.Aeron, stream_id: int) -> None:
    channel = f"aeron:udp?endpoint=localhost:{free_port()}"
    subscription = client.add_subscription(channel, stream_id)
    with pytest.raises(aeron.AeronError):
        client.add_publication("aeron:ipc?mtu=102", stream_id)
    eventually(lambda: any("mtu=102" in each.text for each in metrics.snapshot(driver.dir).errors))
    for arguments in (["--once", "--json"], ["--json"]):
        shown = json.loads(run("top", "--dir", driver.dir, *arguments).stdout)
        found = metrics.snapshot(driver.dir)
        assert list(shown) == list(vars(found))
        assert (shown["pid"], shown["aeron_dir"], shown["max_counters"]) == (os.getpid(), driver.dir, 16_384)
        [endpoint] = [each for each in shown["endpoints"] if each["channel"] == channel]
        assert (endpoint["status"], endpoint["is_sender"]) == ("ACTIVE", False)
        assert shown["counters"][0]["key"] == found.counters[0].key.hex()
        assert shown["counters"][0]["label"] == found.counters[0].label
        assert any("mtu=102" in each["text"] for each in shown["errors"])
    assert not subscription.is_closed


def test_once_prints_all_views_and_escapes_texts(driver: aeron.MediaDriver, stream_id: int) -> None:
    with aeron.connect(driver, client_name=HOSTILE) as client:
        publication = client.add_exclusive_publication(IPC, stream_id)
        eventually(lambda: SHOWN in run("top", "--dir", driver.dir, "--once").stdout)
        shown = run("top", "--dir", driver.dir, "--once").stdout
        assert [line.partition(":")[0] for line in shown.splitlines() if re.match(r"\w+: \d+$", line)] == [
            view.name for view in VIEWS
        ]
        assert re.search(rf"^ *{stream_id} .*{re.escape(SHOWN)} .*{re.escape(IPC)}$", shown, re.MULTILINE)
        assert printable(shown, keep="\n") == shown
        assert not publication.is_closed


@pytest.mark.parametrize("arguments", [["--once"], ["--json"]])
def test_once_without_a_driver_is_an_error_of_one_line(arguments: list[str], tmp_path: Path) -> None:
    result = run("top", "--dir", tmp_path, *arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: CnC file not created")


def test_without_a_terminal_the_live_view_is_an_error_of_one_line(driver: aeron.MediaDriver) -> None:
    result = run("top", "--dir", driver.dir)
    assert (result.exit_code, result.stderr) == (
        1,
        "Error: the live view needs a terminal: use --once, or --once --json\n",
    )


def test_without_textual_the_live_view_says_how_to_install_it_and_the_snapshot_works(driver: aeron.MediaDriver) -> None:
    code = "import sys; sys.modules['textual'] = None; from aeron.cli import main; main()"
    command = [sys.executable, "-c", code, "top", "--dir", driver.dir]
    live = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (live.returncode, live.stdout) == (1, "")
    assert live.stderr == "Error: the live view needs textual: pip install 'aeron-py[top]'\n"
    once = subprocess.run([*command, "--once", "--json"], capture_output=True, text=True, check=True)
    assert json.loads(once.stdout)["pid"] == os.getpid()


def test_other_commands_do_not_import_textual(driver: aeron.MediaDriver) -> None:
    code = f"""
import sys
from aeron.cli.commands import aeron
for arguments in (["health", "--dir", {driver.dir!r}], ["top", "--dir", {driver.dir!r}, "--once"]):
    try:
        aeron(arguments)
    except SystemExit as end:
        assert end.code == 0
    print("imported:", [name for name in ("textual", "aeron.cli.top.app") if name in sys.modules])
"""
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert result.stdout.count("imported: []") == 2


class Terminal:
    """A terminal in tmux with a shell, on a server of its own."""

    def __init__(self, width: int, height: int) -> None:
        if shutil.which("tmux") is None:
            reason = "tmux is not installed: `make tmux` installs it, or says how"
            pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
        self._folder = tempfile.mkdtemp(prefix="aeron-tmux-")
        size = ["-x", str(width), "-y", str(height)]
        self.tmux("-f", "/dev/null", "new-session", "-d", *size, "env PS1='$ ' COLUMNS=80 LINES=24 sh")

    def tmux(self, *arguments: str) -> str:
        command = ["tmux", "-u", "-S", f"{self._folder}/socket", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=10).stdout

    def type(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)
        self.tmux("send-keys", "Enter")

    def press(self, key: str) -> None:
        self.tmux("send-keys", key)

    def text(self) -> str:
        return self.tmux("capture-pane", "-p")

    def wait_for(self, *texts: str) -> None:
        deadline = time.monotonic() + 15
        while not all(text in self.text() for text in texts):
            assert time.monotonic() < deadline, f"no {texts!r}:\n{self.text()}"
            time.sleep(0.02)

    def state(self) -> str:
        """Returns whether the alternate screen, the cursor and the mouse are on."""
        return self.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag} #{mouse_any_flag}").strip()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.tmux("kill-server")
        shutil.rmtree(self._folder)


@pytest.mark.slow
def test_in_a_terminal_the_view_resizes_survives_a_killed_driver_and_ends_cleanly_at_signals(tmp_path: Path) -> None:
    with driver_directory() as directory, Terminal(80, 24) as terminal:
        show = f"{sys.executable} -m aeron top --dir {directory} -u 100"
        with running_driver(directory) as driver:
            before = terminal.state()
            terminal.type(f"stty -g > {tmp_path}/before; sh -c 'echo $$ > {tmp_path}/pid; exec {show}'; echo status $?")
            terminal.wait_for(f"pid {driver.pid},", "1 streams 0", "q quit")
            assert terminal.state() != before
            assert "client " not in terminal.text()
            terminal.tmux("resize-window", "-x", "140", "-y", "30")
            terminal.wait_for("session", "client ")
            with aeron.connect(directory, client_name="\x1b[2Jquotes") as client:
                publication = client.add_exclusive_publication(IPC, 1001)
                terminal.wait_for(r"\x1b[2Jquotes (", "1 streams 1")
                assert not publication.is_closed
            driver.send(signal.SIGKILL)
            driver.end()
            terminal.wait_for("the driver does not respond, last heartbeat 3")
        with running_driver(directory) as driver:
            terminal.wait_for(f"pid {driver.pid},", "1 restart,", "1 streams 0")
            os.kill(int((tmp_path / "pid").read_text()), signal.SIGTERM)
            terminal.wait_for("status 0")
            assert terminal.state() == before
            terminal.type(f"stty -g > {tmp_path}/after; echo done")
            terminal.wait_for("\ndone")
            # The speed and the modes, without the size of the terminal, are as before.
            assert (tmp_path / "after").read_text() == (tmp_path / "before").read_text()


def process_in(terminal: Terminal, directory: Path) -> int:
    """Returns the process id of a view that has started in a terminal."""
    shell = terminal.tmux("list-panes", "-F", "#{pane_pid}").strip()
    terminal.type(f"exec {sys.executable} -m aeron top --dir {directory} -u 100")
    terminal.wait_for("no driver: waiting for one")
    return int(shell)


def test_the_view_ends_with_its_terminal(tmp_path: Path) -> None:
    with Terminal(80, 24) as terminal:
        pid = process_in(terminal, tmp_path)
        assert "top" in psutil.Process(pid).cmdline()
        terminal.tmux("kill-server")
        eventually(lambda: not psutil.pid_exists(pid))


def test_the_view_ends_if_its_terminal_goes_away_without_a_signal(tmp_path: Path) -> None:
    ours, its = pty.openpty()
    view = [sys.executable, "-m", "aeron", "top", "--dir", str(tmp_path), "-u", "100"]
    process = subprocess.Popen(view, stdin=its, stdout=its, stderr=its)
    try:
        os.close(its)
        shown = b""
        while b"no driver" not in shown:
            shown += os.read(ours, 1 << 16)
        os.close(ours)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_the_view_and_restores_the_terminal(number: signal.Signals, tmp_path: Path) -> None:
    with Terminal(80, 24) as terminal:
        before = terminal.state()
        view = f"{sys.executable} -m aeron top --dir {tmp_path} -u 100"
        terminal.type(f"sh -c 'echo $$ > {tmp_path}/pid; exec {view}'; echo status $?")
        terminal.wait_for("no driver: waiting for one")
        os.kill(int((tmp_path / "pid").read_text()), number)
        terminal.wait_for("status 0")
        assert terminal.state() == before


@pytest.mark.parametrize("key", ["q", "C-c"])
def test_the_view_ends_at_a_key(key: str, tmp_path: Path) -> None:
    with Terminal(80, 24) as terminal:
        terminal.type(f"{sys.executable} -m aeron top --dir {tmp_path} -u 100; echo status $?")
        terminal.wait_for("no driver: waiting for one")
        terminal.press(key)
        terminal.wait_for("status 0")
