"""Draws bars as candlesticks with plotly: one interactive page, which works without a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import plotly.graph_objects as go

UP, DOWN, VWAP = "#2a9d78", "#d9553a", "#6f83e0"
_INK, _GRID = "#7d8590", "rgba(125, 133, 144, 0.25)"
_HEIGHT = 520

_STYLE = """
:root { color-scheme: light dark; --page: #fff; --ink: #1f2328 }
@media (prefers-color-scheme: dark) { :root { --page: #0d1117; --ink: #e6edf3 } }
body { margin: 2rem auto; max-width: 75rem; padding: 0 1rem; background: var(--page); color: var(--ink);
       font: 15px/1.5 system-ui, sans-serif }
h2 { margin: 2rem 0 0; font-size: 1.15rem } p { margin: 0.2rem 0 0.6rem }
"""


@dataclass(frozen=True)
class Chart:
    """Bars of one symbol in time order, with a title and a note."""

    title: str
    note: str
    bars: npt.NDArray[np.void]
    bar_us: int


def is_available() -> bool:
    """Returns whether plotly, which draws the page, is installed."""
    return find_spec("plotly") is not None


def page(charts: Sequence[Chart]) -> str:
    """Returns the HTML page of all charts, one below the other. The page contains plotly's script, about 5 MB."""
    sections = "\n".join(_section(number, chart) for number, chart in enumerate(charts))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Bars by Spark from an Aeron stream</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>Bars by Spark from an Aeron stream</h1>\n{sections}\n</body>\n</html>\n"
    )


def _section(number: int, chart: Chart) -> str:
    import plotly.io

    drawn = plotly.io.to_html(
        figure(chart),
        full_html=False,
        include_plotlyjs=number == 0,
        div_id=f"chart-{number}",
        config={"displaylogo": False, "responsive": True, "scrollZoom": True},
    )
    return f"<h2>{escape(chart.title)}</h2>\n<p>{escape(chart.note)}; line: VWAP</p>\n{drawn}"


def figure(chart: Chart) -> go.Figure:
    """Returns a figure: candles and VWAP with their scale at the right, volumes and the time axis below."""
    import plotly.graph_objects as go

    bars = chart.bars
    starts = np.datetime_as_string(bars["start"], unit="us")
    # Each mark is in the middle of its window and as wide as the window, even if neighbouring windows are empty.
    window = {"x": starts, "xperiod": chart.bar_us / 1000, "xperiod0": starts[0], "xperiodalignment": "middle"}
    colors = np.where(bars["close"] >= bars["open"], UP, DOWN)
    candles = go.Candlestick(
        **window,
        **{name: bars[name] for name in ("open", "high", "low", "close")},
        name="price",
        increasing={"line": {"color": UP, "width": 1}, "fillcolor": UP},
        decreasing={"line": {"color": DOWN, "width": 1}, "fillcolor": DOWN},
    )
    vwap = go.Scatter(
        **window, y=bars["vwap"], mode="lines", name="VWAP", line={"color": VWAP, "width": 1.5}, connectgaps=False
    )
    volume = go.Bar(
        **window,
        y=bars["volume"],
        yaxis="y2",
        name="volume",
        opacity=0.45,
        marker={"color": colors, "line": {"width": 0}},
        customdata=bars["trades"],
        hovertemplate="%{y:,} in %{customdata:,} trades",
    )
    return go.Figure([candles, vwap, volume], _layout())


def _layout() -> dict[str, object]:
    scale = {"side": "right", "gridcolor": _GRID, "zeroline": False, "tickformat": ","}
    return {
        "height": _HEIGHT,
        "margin": {"l": 8, "r": 84, "t": 10, "b": 30},
        "paper_bgcolor": "rgba(0, 0, 0, 0)",
        "plot_bgcolor": "rgba(0, 0, 0, 0)",
        "font": {"color": _INK, "size": 11},
        "showlegend": False,
        "hovermode": "x unified",
        "dragmode": "pan",
        "xaxis": {"type": "date", "rangeslider": {"visible": False}, "showgrid": False, "anchor": "y2"},
        "yaxis": {**scale, "domain": [0.24, 1]},
        "yaxis2": {**scale, "domain": [0, 0.2], "rangemode": "tozero", "fixedrange": True, "nticks": 3},
    }
