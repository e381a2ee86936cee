"""``aeron demo``: market data from one process to another through an embedded driver, and then through Spark."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.console import Console
from rich.markup import escape

import aeron
import aeron.spark
from aeron.cli.options import DEFAULT_STREAM_ID, LONGEST_S, STREAM_ID, Number
from aeron.demo import crashes, expected, live, picture, recording
from aeron.demo.bars import usual_bar_us
from aeron.demo.picture import Chart
from aeron.demo.pipeline import Pipeline
from aeron.demo.plan import CHANNEL, Plan, Replay, Source
from aeron.demo.run import report, run
from aeron.demo.trades import Trades, TradesError
from aeron.export_output import OutputDirectory, OutputFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FAST_TRADES = 10_000_000
_RATE = 100_000
_REPLAY_S = 20.0
_MOST_TRADES = 100_000_000
_LONGEST_BAR_S = 100_000_000


@click.command("demo")
@click.option(
    "-i",
    "--input",
    "inputs",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A .csv or .parquet file of trades, or of quotes; may be given more than once.",
)
@click.option(
    "--generate", is_flag=True, help="Generate a seeded stream of trades of four symbols (the default without --input)."
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Seed of --generate.")
@click.option(
    "--trades",
    "generated",
    type=click.IntRange(min=1, max=_MOST_TRADES),
    default=1_000_000,
    show_default=True,
    help="Number of trades that --generate makes.",
)
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    help=f"Number of times that phase one replays the trades (default: about {_FAST_TRADES:,} trades in all).",
)
@click.option(
    "--rate",
    type=click.IntRange(min=1),
    help="Trades per second in phase two (default: 100,000), and on average to Spark (see --speed).",
)
@click.option(
    "--seconds", type=Number(min=0.1, max=LONGEST_S), default=3.0, show_default=True, help="Length of phase two."
)
@click.option("--archive", "with_archive", is_flag=True, help="Also record trades, kill the archive, and replay them.")
@click.option("--spark", "with_spark", is_flag=True, help="Also make bars of the trades with Spark. Needs a JDK.")
@click.option(
    "--speed",
    type=Number(min=1e-6, max=1e12),
    help="Market seconds per second of the replay to Spark (default: by --rate, else all trades in 20 s).",
)
@click.option(
    "--bar",
    "bar_s",
    type=Number(min=0.001, max=_LONGEST_BAR_S),
    help="Length of a bar in seconds (default: a usual length near 1/40 of the time of all trades).",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default="bars",
    show_default=True,
    help="Directory for bars.html (needs plotly) and the bars in Parquet.",
)
@click.option("--symbol", help="Symbol of a file without a symbol column (default: the file's name).")
@click.option("--time-column", help="Column of the time.")
@click.option("--price-column", help="Column of the price.")
@click.option("--quantity-column", help="Column of the quantity.")
@click.option("--symbol-column", help="Column of the symbol.")
@click.option("--dir", "directory", help="Directory of the embedded driver (default: a temporary one).")
@click.option("-c", "--channel", default=CHANNEL, show_default=True, help="Channel URI.")
@click.option(
    "-s", "--stream", "stream_id", type=STREAM_ID, default=DEFAULT_STREAM_ID, show_default=True, help="Stream id."
)
def command(
    *,
    inputs: tuple[Path, ...],
    generate: bool,
    seed: int,
    generated: int,
    symbol: str | None,
    time_column: str | None,
    price_column: str | None,
    quantity_column: str | None,
    symbol_column: str | None,
    with_archive: bool,
    with_spark: bool,
    **options: Any,
) -> None:
    """Publish trades from one process to another: first at full rate, then at a steady rate.

    Phase one measures the rate, phase two the latency. The subscriber computes last, high, low and volume per symbol,
    and checks that every trade arrived once and in order. With --archive, an archive then records the trades, is
    killed, starts again, and replays them. With --spark, Spark's Structured Streaming reads the trades, makes bars of
    them, and publishes the bars on the next stream id. A subscriber prints the bars. With both options, Spark also
    makes bars of recorded trades while Spark, the archive and the driver are killed in turn. The demo compares these
    bars with those of pandas.
    """
    console = Console(highlight=False)
    columns = (time_column, price_column, quantity_column, symbol_column)
    sources = [Source(str(path.resolve()), *columns, symbol, 0, seed) for path in inputs]
    if generate or not sources:
        sources.append(Source(None, *columns, symbol, generated, seed))
    settings = _Settings(**options)
    settings.check(with_spark)
    if with_spark:
        with_spark = _has_spark(console)
    try:
        for source in sources:
            _show(source, settings, console)
        if with_archive:
            _show_archive(sources[0], console)
        if with_spark:
            _show_bars(sources, settings, console)
        if with_archive and with_spark:
            _show_crashes(sources[0], console)
    except (TradesError, RuntimeError, FileExistsError, aeron.AeronError) as error:
        raise click.ClickException(str(error).rstrip()) from error


@dataclass(frozen=True)
class _Settings:
    """The options that apply to all sources: channel, stream, rate, duration and output."""

    repeat: int | None
    rate: int | None
    seconds: float
    speed: float | None
    bar_s: float | None
    output: Path
    directory: str | None
    channel: str
    stream_id: int

    def check(self, with_spark: bool) -> None:
        """Raises ``click.UsageError`` for options with which the demo would fail later."""
        if (self.rate or _RATE) * self.seconds > _MOST_TRADES:
            raise click.UsageError(f"--rate times --seconds are more than {_MOST_TRADES:,} trades in phase two.")
        if not with_spark:
            return
        if self.stream_id == STREAM_ID.max:
            raise click.UsageError(f"--stream {self.stream_id}: bars go to the next stream id, which does not exist.")
        place = next(path for path in (self.output, *self.output.absolute().parents) if os.path.exists(path))
        if not (place.is_dir() and os.access(place, os.W_OK)):
            raise click.UsageError(f"--output {self.output}: {place} is not a writable directory.")

    def speed_of(self, trades: Trades) -> float:
        """Returns the seconds of market time in one second of the replay."""
        span_s = (int(trades.records["time_ns"].max()) - int(trades.records["time_ns"].min())) / 1e9
        replay_s = len(trades.records) / self.rate if self.rate else _REPLAY_S
        return self.speed or span_s / replay_s or 1.0

    def bar_us_of(self, trades: Trades) -> int:
        """Returns the length of a bar in microseconds."""
        return round(self.bar_s * 1e6) if self.bar_s else usual_bar_us(trades.records["time_ns"])


def _show(source: Source, settings: _Settings, console: Console) -> None:
    trades = source.load()
    repeat = settings.repeat or max(1, round(_FAST_TRADES / len(trades.records)))
    rate = settings.rate or _RATE
    console.print(
        f"\n[bold]{escape(trades.source)}[/]: {len(trades.records):,} {trades.kind} of "
        f"{escape(', '.join(trades.symbols))}, replayed {repeat:,} times to another process over "
        f"{escape(settings.channel)}"
    )
    with _place() as place:
        plan = Plan(
            settings.directory or str(place / "aeron"),
            settings.channel,
            settings.stream_id,
            source,
            repeat,
            max(1, round(rate * settings.seconds)),
            rate,
        )
        result = run(plan, trades, console)
    for table in report(result, trades):
        console.print(table)


def _show_archive(source: Source, console: Console) -> None:
    trades = source.load()
    console.print(
        f"\n[bold]{escape(trades.source)}[/]: {trades.kind} to an archive in a process of its own. The archive is"
        " killed while it records, starts again, and replays them"
    )
    with _place() as place:
        outcome = recording.run(place, trades)
    console.print(recording.report(outcome))
    console.print(f"Files of the archive: {escape(', '.join(outcome.files))}")


def _show_crashes(source: Source, console: Console) -> None:
    if not expected.is_available():
        console.print(escape("No crashes in this demo: pandas is not installed; pip install 'aeron-py[demo]'"))
        return
    trades = source.load()
    console.print(
        f"\n[bold]{escape(trades.source)}[/]: {len(trades.records):,} {trades.kind} to an archive, and from there to "
        "bars by Spark. Spark, the archive and the driver are killed in turn"
    )
    with _place() as place:
        outcome = crashes.run(place, trades, console)
    console.print(crashes.report(outcome))


# ---- with Spark ------------------------------------------------------------------------------------------------------


def _has_spark(console: Console) -> bool:
    """Returns whether Spark can run on this machine. If not, prints what to install."""
    missing = [check for check in aeron.spark.check() if check.what in ("Java", "PySpark", "pyarrow") and not check.ok]
    for check in missing:
        console.print(f"No Spark in this demo: {escape(f'{check.what}: {check.found}; {check.remedy}')}")
    if not missing and not picture.is_available():
        console.print(escape("No bars.html in this demo: plotly is not installed; pip install 'aeron-py[demo]'"))
    return not missing


def _show_bars(sources: list[Source], settings: _Settings, console: Console) -> None:
    """Runs all sources in one Spark session, each with a separate driver. Writes a page with the charts of all
    sources."""
    from aeron.demo.pipeline import session

    charts: list[Chart] = []
    with _place() as place:
        console.print(f"\nStarting Spark, which takes some seconds and logs to {place / 'spark.log'}")
        with session(place) as spark:
            for number, source in enumerate(sources):
                kept = settings.output / f"{name_of(sources, number)}-bars.parquet"
                charts += _bars_of(spark, source, settings, console, place=place / str(number), kept=kept)
    if not picture.is_available():
        return
    file = settings.output / "bars.html"
    with OutputFile(file, overwrite=True) as output:
        output.new_file("html").write_text(picture.page(charts), encoding="utf-8")
    console.print(f"\nCandlesticks: {escape(str(file))}")


def name_of(sources: list[Source], number: int) -> str:
    """Returns a name for the bars of a source: the name of its file, with a number if an earlier file has that name."""
    stems = [Path(source.path or "generated").stem for source in sources]
    same = stems[:number].count(stems[number])
    return f"{stems[number]}-{same + 1}" if same else stems[number]


def _bars_of(
    spark: SparkSession, source: Source, settings: _Settings, console: Console, *, place: Path, kept: Path
) -> Iterator[Chart]:
    """Runs the pipeline with a source, copies the Parquet files to ``kept``, and yields a chart for each symbol."""
    trades, directory = source.load(), settings.directory or str(place / "aeron")
    bar_us, speed = settings.bar_us_of(trades), settings.speed_of(trades)
    place.mkdir()
    pipeline = Pipeline(directory, settings.channel, settings.stream_id, settings.stream_id + 1, bar_us, place)
    # A bar is complete when the market time is one bar length past its end, because trades may be that late.
    replay = Replay(directory, settings.channel, settings.stream_id, source, speed, closing_ns=3 * bar_us * 1000)
    console.print(
        f"\n[bold]{escape(trades.source)}[/]: {len(trades.records):,} {trades.kind}, {speed:,.3g} seconds of the "
        f"market in one, to bars of {bar_us / 1e6:g} s by Spark"
    )
    bars = live.run(spark, pipeline, replay, trades, console)
    # An interrupted run leaves nothing: the output is made when its files are complete.
    kept.parent.mkdir(parents=True, exist_ok=True)
    with OutputDirectory(kept, overwrite=True) as output:
        # The log of Spark's file sink is not copied: it refers to files in the temporary directory, which is deleted.
        for path in sorted(pipeline.parquet.glob("part-*.parquet")):
            shutil.copyfile(path, output.new_file("parquet"))
    console.print(
        f"\n{len(bars):,} bars of {len(trades.records):,} {trades.kind}: those received over Aeron are those in "
        f"Parquet, {escape(str(kept))}"
    )
    for symbol in np.unique(bars["symbol"]):
        title = f"{symbol.decode()}, {trades.source}"
        yield Chart(title, f"bars of {bar_us / 1e6:g} s, UTC", bars[bars["symbol"] == symbol], bar_us)


@contextmanager
def _place() -> Iterator[Path]:
    """Yields a temporary directory, in shared memory if possible: the driver's files should not be on a disk."""
    shared_memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix=f"aeron-demo-{os.getpid()}-", dir=shared_memory) as place:
        yield Path(place)
