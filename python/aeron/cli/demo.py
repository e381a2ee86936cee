"""``aeron demo``: market data from one process to another through an embedded driver."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from aeron.demo.plan import Plan, Source
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
def command(
    *,
    inputs: tuple[Path, ...],
    generate: bool,
    seed: int,
    repeat: int | None,
    rate: int,
    seconds: float,
    symbol: str | None,
    time_column: str | None,
    price_column: str | None,
    quantity_column: str | None,
    symbol_column: str | None,
) -> None:
    """Publish trades from one process to another: first as fast as it goes, then at a steady rate.

    Phase one shows the rate, phase two the latency; the subscriber keeps last, high, low and volume per symbol and
    checks that every trade arrived once and in order.
    """
    console = Console()
    columns = (time_column, price_column, quantity_column, symbol_column)
    sources = [Source(str(path.resolve()), *columns, symbol, 0, seed) for path in inputs]
    if generate or not sources:
        sources.append(Source(None, *columns, symbol, _GENERATED_TRADES, seed))
    for source in sources:
        try:
            _show(source, repeat, rate, seconds, console)
        except (TradesError, RuntimeError) as error:
            raise click.ClickException(str(error)) from error


def _show(source: Source, repeat: int | None, rate: int, seconds: float, console: Console) -> None:
    trades = source.load()
    times = repeat or max(1, round(_FAST_TRADES / len(trades.records)))
    console.print(
        f"\n[bold]{trades.source}[/]: {len(trades.records):,} {'quotes' if trades.is_quotes else 'trades'} of "
        f"{', '.join(trades.symbols)}, replayed {times:,} times over Aeron IPC to another process"
    )
    plan = Plan("", source, times, max(1, round(rate * seconds)), rate)
    for table in report(run(plan, trades, console), trades):
        console.print(table)
