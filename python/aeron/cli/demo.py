"""``aeron demo``: market data from one process to another through an embedded driver."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape

import aeron
from aeron.cli.options import DEFAULT_STREAM_ID, STREAM_ID
from aeron.demo.plan import CHANNEL, Plan, Source
from aeron.demo.run import report, run
from aeron.demo.trades import TradesError

_FAST_TRADES = 10_000_000
_GENERATED_TRADES = 1_000_000


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
    "--generate", is_flag=True, help="Make up a seeded tick stream of four symbols (the default without --input)."
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of --generate.")
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    help=f"How often the trades are replayed in phase one (default: about {_FAST_TRADES:,} trades).",
)
@click.option(
    "--rate", type=click.IntRange(min=1), default=100_000, show_default=True, help="Trades a second in phase two."
)
@click.option("--seconds", type=click.FloatRange(min=0.1), default=3.0, show_default=True, help="Length of phase two.")
@click.option("--symbol", help="Symbol of a file without a symbol column (default: its name).")
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
    symbol: str | None,
    time_column: str | None,
    price_column: str | None,
    quantity_column: str | None,
    symbol_column: str | None,
    **settings: Any,
) -> None:
    """Publish trades from one process to another: first as fast as it goes, then at a steady rate.

    Phase one shows the rate, phase two the latency; the subscriber keeps last, high, low and volume per symbol and
    checks that every trade arrived once and in order.
    """
    console = Console(highlight=False)
    columns = (time_column, price_column, quantity_column, symbol_column)
    sources = [Source(str(path.resolve()), *columns, symbol, 0, seed) for path in inputs]
    if generate or not sources:
        sources.append(Source(None, *columns, symbol, _GENERATED_TRADES, seed))
    for source in sources:
        try:
            _show(source, _Settings(**settings), console)
        except (TradesError, RuntimeError, aeron.AeronError) as error:
            raise click.ClickException(str(error).rstrip()) from error


@dataclass(frozen=True)
class _Settings:
    """The options that say how, not what."""

    repeat: int | None
    rate: int
    seconds: float
    directory: str | None
    channel: str
    stream_id: int


def _show(source: Source, settings: _Settings, console: Console) -> None:
    trades = source.load()
    repeat = settings.repeat or max(1, round(_FAST_TRADES / len(trades.records)))
    console.print(
        f"\n[bold]{escape(trades.source)}[/]: {len(trades.records):,} {trades.kind} of "
        f"{escape(', '.join(trades.symbols))}, replayed {repeat:,} times to another process over {settings.channel}"
    )
    with tempfile.TemporaryDirectory(prefix=f"aeron-demo-{os.getpid()}-", dir=_shared_memory()) as parent:
        plan = Plan(
            settings.directory or str(Path(parent) / "aeron"),
            settings.channel,
            settings.stream_id,
            source,
            repeat,
            max(1, round(settings.rate * settings.seconds)),
            settings.rate,
        )
        result = run(plan, trades, console)
    for table in report(result, trades):
        console.print(table)


def _shared_memory() -> str | None:
    """The platform's shared memory, where it has one: the driver's files should never meet a disk."""
    return "/dev/shm" if os.path.isdir("/dev/shm") else None
