"""Candlesticks of bars: one page of HTML with SVG in it, which needs nothing from anywhere else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

import numpy as np
import numpy.typing as npt

from aeron.demo.bars import time_text

WIDTH = 960
PRICES_HEIGHT, VOLUME_HEIGHT, GAP = 300, 70, 14
LEFT, RIGHT, TOP, BOTTOM = 8, 84, 10, 26
HEIGHT = TOP + PRICES_HEIGHT + GAP + VOLUME_HEIGHT + BOTTOM
_TIME_LABELS = 6
_WIDEST_CANDLE = 24.0

_STYLE = """
:root { color-scheme: light dark; --page: #fff;
        --ink: #1f2328; --faint: #d8dee4; --up: #1a7f64; --down: #c4432b; --vwap: #5a6fd6 }
@media (prefers-color-scheme: dark) {
  :root { --page: #0d1117; --ink: #e6edf3; --faint: #30363d; --up: #3fb894; --down: #f0785f; --vwap: #93a4f4 }
}
body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem; background: var(--page); color: var(--ink);
       font: 15px/1.5 system-ui, sans-serif }
h2 { margin: 2rem 0 0; font-size: 1.15rem } p { margin: 0.2rem 0 0.6rem }
svg { width: 100%; height: auto } text { fill: var(--ink); font: 11px system-ui, sans-serif }
.grid { stroke: var(--faint) }
.up { fill: var(--up); stroke: var(--up) } .down { fill: var(--down); stroke: var(--down) }
.volume { opacity: 0.45; stroke: none } .vwap { fill: none; stroke: var(--vwap); stroke-width: 1.5 }
.key { color: var(--vwap) }
"""


@dataclass(frozen=True)
class Chart:
    """Bars of one symbol, in order of time, with what is to be said of them."""

    title: str
    note: str
    bars: npt.NDArray[np.void]
    bar_us: int


def page(charts: Sequence[Chart]) -> str:
    """All charts below each other."""
    key = '<span class="key">line: VWAP</span>'
    sections = "\n".join(
        f"<h2>{escape(chart.title)}</h2>\n<p>{escape(chart.note)}; {key}</p>\n{svg(chart)}" for chart in charts
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Bars by Spark from an Aeron stream</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>Bars by Spark from an Aeron stream</h1>\n{sections}\n</body>\n</html>\n"
    )


def svg(chart: Chart) -> str:
    """The picture: prices with their scale at the right, volumes below, time at the bottom."""
    scale = _Scale(chart)
    parts = [*_grid(scale), *_time_labels(scale)]
    for bar in chart.bars:
        parts += _candle(scale, bar)
    middles = " ".join(f"{scale.x(bar):.1f},{scale.price_y(bar['vwap']):.1f}" for bar in chart.bars)
    parts.append(f'<polyline class="vwap" points="{middles}"/>')
    label = escape(f"Candlesticks of {chart.title}", quote=True)
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">\n' + "\n".join(parts) + "\n</svg>"


class _Scale:
    """From times, prices and volumes to places in the picture."""

    def __init__(self, chart: Chart) -> None:
        bars = chart.bars
        self.bar_us = chart.bar_us
        self.starts = bars["start"].astype(np.int64)
        self.first = int(self.starts[0])
        self.step = (WIDTH - LEFT - RIGHT) / ((int(self.starts[-1]) - self.first) // chart.bar_us + 1)
        self.candle = min(self.step * 0.7, _WIDEST_CANDLE)
        low, high = float(bars["low"].min()), float(bars["high"].max())
        margin = (high - low or abs(high) or 1.0) * 0.03
        self.low, self.high = low - margin, high + margin
        self.most = float(bars["volume"].max()) or 1.0

    def x(self, bar: np.void) -> float:
        """The middle of a bar's window."""
        return LEFT + ((int(bar["start"].astype(np.int64)) - self.first) / self.bar_us + 0.5) * self.step

    def price_y(self, price: float) -> float:
        return TOP + PRICES_HEIGHT * (self.high - price) / (self.high - self.low)

    def volume_height(self, volume: float) -> float:
        return VOLUME_HEIGHT * volume / self.most


def _candle(scale: _Scale, bar: np.void) -> Iterator[str]:
    kind = "up" if bar["close"] >= bar["open"] else "down"
    x, left = scale.x(bar), scale.x(bar) - scale.candle / 2
    top, bottom = sorted((scale.price_y(bar["open"]), scale.price_y(bar["close"])))
    height = scale.volume_height(bar["volume"])
    said = f"{bar['start']} open {bar['open']:g} high {bar['high']:g} low {bar['low']:g} close {bar['close']:g}"
    said = f"{said} volume {bar['volume']:g} VWAP {bar['vwap']:g} trades {bar['trades']}"
    yield f'<g class="{kind}"><title>{escape(said)}</title>'
    yield (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{scale.price_y(bar["high"]):.1f}" y2="{scale.price_y(bar["low"]):.1f}"/>'
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{scale.candle:.1f}" height="{max(bottom - top, 1):.1f}"/>'
        f'<rect class="volume" x="{left:.1f}" y="{HEIGHT - BOTTOM - height:.1f}" width="{scale.candle:.1f}" '
        f'height="{height:.1f}"/></g>'
    )


def _grid(scale: _Scale) -> Iterator[str]:
    step = _usual_step((scale.high - scale.low) / 5)
    decimals = max(0, -int(np.floor(np.log10(step) + 1e-9)))
    for number in range(int(np.ceil(scale.low / step)), int(np.floor(scale.high / step)) + 1):
        y = scale.price_y(number * step)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{WIDTH - RIGHT + 6}" y="{y + 4:.1f}">{number * step:,.{decimals}f}</text>'


def _time_labels(scale: _Scale) -> Iterator[str]:
    windows = (int(scale.starts[-1]) - scale.first) // scale.bar_us + 1
    text = time_text(scale.bar_us)
    for window in range(0, windows, max(1, -(-windows // _TIME_LABELS))):
        moment = datetime.fromtimestamp((scale.first + window * scale.bar_us) / 1e6, UTC)
        yield f'<text x="{LEFT + window * scale.step:.1f}" y="{HEIGHT - 8}">{moment:{text}}</text>'


def _usual_step(least: float) -> float:
    """1, 2 or 5 times a power of ten, not below ``least``."""
    power = 10.0 ** np.floor(np.log10(least))
    return float(power * next(number for number in (1, 2, 5, 10) if number * power >= least * (1 - 1e-9)))
