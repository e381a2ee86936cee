"""Makes bars of trades with pandas, and compares Spark's bars with them."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import numpy.typing as npt

from aeron.demo.bars import BAR, FIGURES


def is_available() -> bool:
    """Returns whether pandas is installed."""
    return find_spec("pandas") is not None


def bars_by_pandas(records: npt.NDArray[np.void], bar_us: int) -> npt.NDArray[np.void]:
    """Returns the bars of trades, sorted by start and symbol.

    Args:
        records: Trades (:data:`aeron.demo.trades.TRADE`) in the order of publication.
        bar_us: Length of a bar in microseconds.
    """
    import pandas as pd

    times_us = records["time_ns"] // 1000
    trades = pd.DataFrame(
        {
            "time": records["time_ns"],
            "start": times_us // bar_us * bar_us,
            "symbol": records["symbol"],
            "price": records["price"],
            "quantity": records["quantity"],
            "value": records["price"] * records["quantity"],
        }
    )
    # This kind of sort is stable: trades of the same time stay in the order of publication.
    groups = trades.sort_values("time", kind="stable").groupby(["start", "symbol"], sort=True)
    figures = groups.agg(
        open=("price", "first"),
        high=("price", "max"),
        low=("price", "min"),
        close=("price", "last"),
        volume=("quantity", "sum"),
        value=("value", "sum"),
        trades=("price", "size"),
    )
    figures["vwap"] = (figures["value"] / figures["volume"]).where(figures["volume"] != 0, figures["close"])
    bars = np.zeros(len(figures), BAR)
    bars["start"] = figures.index.get_level_values("start").to_numpy().astype("datetime64[us]")
    bars["symbol"] = figures.index.get_level_values("symbol").to_numpy().astype("S16")
    for name in (*FIGURES, "trades"):
        bars[name] = figures[name].to_numpy()
    return bars


def check_equal(made: npt.NDArray[np.void], expected: npt.NDArray[np.void]) -> None:
    """Checks that Spark's bars are equal to the bars of pandas. Sums of doubles may differ in their last digits.

    Raises:
        RuntimeError: a bar is missing, occurs twice, or differs. The text names the bar, or the numbers of bars.
    """
    for name in ("start", "symbol"):
        missing = np.setdiff1d(expected[name], made[name])
        if len(missing):
            raise RuntimeError(f"Spark made no bar with {name} {missing[0]}, which pandas has")
    if len(made) != len(expected):
        raise RuntimeError(f"Spark made {len(made):,} bars, but pandas has {len(expected):,}")
    same = np.ones(len(made), bool)
    for name in ("start", "symbol", "open", "high", "low", "close", "trades"):
        same &= made[name] == expected[name]
    for name in ("volume", "vwap"):
        same &= np.isclose(made[name], expected[name], rtol=1e-9, atol=0)
    if not same.all():
        at = int(np.argmin(same))
        raise RuntimeError(f"Spark made the bar {made[at]}, but pandas has {expected[at]}")
