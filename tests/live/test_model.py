"""Test with random publishers, limits, restarts and ends of streams. At the end, each message must be one row."""

from __future__ import annotations

import itertools
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import eventually

import aeron
from aeron import _aeron
from live.query import Query
from live.streams import missing_bytes, publish

CHANNEL = "aeron:ipc"
PUBLISHERS = 3

_stream_ids = itertools.count(500_000)

publishing = st.tuples(
    st.just("publish"), st.integers(0, PUBLISHERS - 1), st.integers(1, 40), st.sampled_from([8, 100, 1376, 3000, 8000])
)
batch = st.tuples(st.just("batch"), st.booleans())
restart = st.tuples(
    st.just("restart"),
    st.booleans(),
    st.fixed_dictionaries(
        {},
        optional={
            "max_rows_per_trigger": st.integers(1, 60),
            "max_bytes_per_trigger": st.integers(1, 60_000),
            "min_partitions": st.integers(1, 5),
            "max_rows_per_partition": st.integers(1, 20),
        },
    ),
)
end = st.tuples(st.just("end"), st.integers(0, PUBLISHERS - 1))
steps = st.lists(st.one_of(publishing, publishing, batch, batch, restart, end), max_size=25)


class World:
    """A query and its publishers. The steps of the test are the methods `publish`, `batch`, `restart` and `end`."""

    def __init__(self, home: Path, driver: aeron.MediaDriver, client: aeron.Aeron) -> None:
        self.home, self.driver, self.client = home, driver, client
        self.stream_id = next(_stream_ids)
        self.publications: dict[int, aeron.ExclusivePublication] = {}
        self.sent: dict[int, int] = {}
        self.query = self.start({})

    def start(self, options: dict[str, int]) -> Query:
        source = _aeron.LiveSource(
            CHANNEL,
            [self.stream_id],
            client={"aeron_dir": self.driver.dir},
            archive_dir=str(self.home / "archives"),
            **options,
        )
        query = Query(self.home / f"checkpoint-{self.stream_id}", source)
        self.done_before = query.done
        query.run_batch()
        return query

    def publish(self, publisher: int, count: int, size: int) -> None:
        publication = self.publications.get(publisher)
        if publication is None:
            publication = self.client.add_exclusive_publication(CHANNEL, self.stream_id)
            self.publications[publisher] = publication
        sent = self.sent.setdefault(publication.session_id, 0)
        self.sent[publication.session_id] += len(publish(publication, count, first=sent, size=size))

    def batch(self, limited: bool) -> None:
        self.query.run_batch(limited=limited)

    def restart(self, unfinished: bool, options: dict[str, int]) -> None:
        eventually(lambda: len(self.query.rows()) + self.query.report()["backlogMessages"] == sum(self.sent.values()))
        self.query.source.close()
        before = self.query.rows()
        last = self.query.done - 1
        # A batch of an earlier run stays finished: the source may have got a request for the latest offset after the
        # batch, which shows that the batch has finished.
        unfinished = unfinished and last >= self.done_before
        if unfinished:
            (self.query.checkpoint / "commits" / str(last)).unlink()
        self.query = self.start(options)
        if unfinished:
            assert self.query.rows()[: len(before)] == before, "a logged batch had other rows when it ran again"

    def end(self, publisher: int) -> None:
        publication = self.publications.pop(publisher, None)
        if publication is not None:
            publication.close()

    def check(self) -> None:
        rows = self.query.run_until(sum(self.sent.values()))
        assert missing_bytes(rows) == 0
        taken = Counter(row.session_id for row in rows)
        assert taken == Counter(self.sent)

    def close(self) -> None:
        self.query.source.close()
        for publisher in range(PUBLISHERS):
            self.end(publisher)


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    directory = Path(mkdtemp(prefix="aeron-live-", dir="/dev/shm"))
    yield directory
    shutil.rmtree(directory)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps)
@pytest.mark.timeout(180)
def test_every_complete_message_becomes_exactly_one_row_in_random_sequences(
    place: Path, driver: aeron.MediaDriver, client: aeron.Aeron, steps: list[tuple[str, object]]
) -> None:
    """08-41, 08-42: random recordings, limits, commits, restarts with and without an unfinished batch, and ends."""
    world = World(place, driver, client)
    try:
        for name, *arguments in steps:
            getattr(world, name)(*arguments)
        world.check()
    finally:
        world.close()
