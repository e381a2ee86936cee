"""Bars of trades: the records of trades and bars, and the Spark query that makes bars with Spark's windows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TRADE_LAYOUT = "time ts_ns, sent_ns i64, sequence i64, price f64, quantity f64, symbol char[16]"
"""The record layout of :data:`aeron.demo.trades.TRADE`, for Spark. The event time is the market time."""

FIGURES = ("open", "high", "low", "close", "volume", "vwap")

BAR = np.dtype([("start", "<M8[us]"), ("symbol", "S16"), *((name, "<f8") for name in FIGURES), ("trades", "<i8")])
"""One bar, 80 bytes: the start of the window, the symbol, and the figures of the trades in the window."""

BAR_LAYOUT = f"start ts_us, symbol char[16], {', '.join(f'{name} f64' for name in FIGURES)}, trades i64"
"""The record layout of :data:`BAR`, for Spark."""

BARS = 40
"""Approximate number of bars per symbol of a source."""

_QUANTITY = "decimal(28, 8)"
_USUAL_S = (
    *(number * unit for unit in (0.001, 0.01, 0.1) for number in (1, 2, 5)),
    *(number * unit for unit in (1, 60) for number in (1, 2, 5, 10, 15, 30)),
    *(3600 * hours for hours in (1, 2, 4, 6, 12, 24, 7 * 24, 28 * 24)),
)


def bars(trades: DataFrame, bar_us: int) -> DataFrame:
    """Computes open, high, low, close, volume and VWAP for each symbol and window of ``bar_us``.

    The columns are those of :data:`TRADE_LAYOUT`. A trade that is late by more than the length of a bar is dropped.

    The order of the rows is not fixed, and a sum of doubles depends on it. So quantities are added as decimals of eight
    places. The VWAP is a quotient of sums of doubles, so its last digits may differ between two runs.
    """
    from pyspark.sql import functions as F

    length = f"{bar_us} microseconds"
    order = F.struct("time", "sequence")
    traded = F.try_divide(F.sum(F.col("price") * F.col("quantity")), F.sum("quantity"))
    close = F.max_by("price", order)
    return (
        trades.withWatermark("time", length)
        .groupBy(F.window("time", length), "symbol")
        .agg(
            F.min_by("price", order).alias("open"),
            F.max("price").alias("high"),
            F.min("price").alias("low"),
            close.alias("close"),
            F.sum(F.col("quantity").cast(_QUANTITY)).cast("double").alias("volume"),
            F.coalesce(traded, close).alias("vwap"),
            F.count("*").alias("trades"),
        )
        .select(F.col("window.start").alias("start"), "symbol", *FIGURES, "trades")
    )


def usual_bar_us(times_ns: npt.NDArray[np.int64]) -> int:
    """Returns one of the usual lengths of a bar: the one nearest to 1/40 of the time from the first to the last
    trade."""
    wanted_s = max(int(times_ns.max()) - int(times_ns.min()), 1) / 1e9 / BARS
    return round(1e6 * min(_USUAL_S, key=lambda usual_s: abs(math.log(usual_s / wanted_s))))


def time_text(bar_us: int) -> str:
    """Returns a time format with enough digits to distinguish the starts of bars of this length."""
    lengths = ((1_000_000, "%H:%M:%S.%f"), (600_000_000, "%H:%M:%S"), (86_400_000_000, "%m-%d %H:%M"))
    return next((text for limit, text in lengths if bar_us < limit), "%Y-%m-%d")
