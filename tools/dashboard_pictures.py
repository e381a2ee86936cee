"""Draws what the queries of the dashboards return for recorded scrapes, for docs/how-to/alarms.md.

Usage: `python tools/dashboard_pictures.py DIRECTORY`. `tests/alarms/record.py --raw DIRECTORY` has written the scrapes.
The real Prometheus reads them and runs the queries. Needs Debian's package `prometheus`, plotly, and `kaleido==0.2.1`
for SVG files.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import plotly
from kaleido.scopes.plotly import PlotlyScope
from plotly.subplots import make_subplots

import dashboards

ASSETS = Path(__file__).resolve().parents[1] / "docs/assets"
PICTURES = {
    "overview": ("healthy", ["Clients", "Sent and received", "Longest duty cycle", "Free counters"]),
    "streams": ("reader_slow", ["Publishers", "Subscribers", "Lag of subscribers", "Room of publishers"]),
    "archive": ("recorder_behind", ["Recordings", "Lag of recordings", "Written and read", "Longest write and read"]),
}
"""For each dashboard, the recording and the panels."""

_COLUMNS = 2
_UNITS = {"Bps": "bytes per second", "s": "seconds", "short": "", "bytes": "bytes"}
_COLORS = ["#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2"]
_STEP_S = 2
_MIN_VALUES = 5


def _open_metrics(texts: list[str], begin: int) -> str:
    """Returns scrapes with their times, each metric at one place, as OpenMetrics demands."""
    types: dict[str, str] = {}
    samples: dict[str, dict[str, list[str]]] = {}
    shown: dict[str, set[str]] = {}
    for second, text in enumerate(texts):
        last, shown = shown, {}
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ")
                types[name] = kind
            elif line and not line.startswith("#"):
                series, _, value = line.rpartition(" ")
                found = re.match(r"\w+", series)
                assert found is not None
                by_series = samples.setdefault(found[0], {})
                by_series.setdefault(series, []).append(f"{series} {value} {begin + second}")
                shown.setdefault(found[0], set()).add(series)
        for name, before in last.items():
            # A series that has ended would otherwise go on for five minutes.
            for series in before - shown.get(name, set()):
                samples[name][series].append(f"{series} NaN {begin + second}")
    lines = []
    for name, by_series in samples.items():
        lines.append(f"# TYPE {name.removesuffix('_total')} {types[name]}")
        lines += [line for each in by_series.values() for line in each]
    return "\n".join([*lines, "# EOF", ""])


class Prometheus:
    """The real Prometheus with one recording."""

    def __init__(self, directory: Path, raw: Path) -> None:
        begin, *texts = raw.read_text().split("\0")
        self.begin = int(float(begin))
        self.end = self.begin + len(texts)
        metrics, data = directory / "metrics.txt", directory / "data"
        metrics.write_text(_open_metrics(texts, self.begin))
        subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", metrics, data], check=True)
        (directory / "prometheus.yml").write_text("{}")
        self._log = directory / "log"
        options = [f"--config.file={directory / 'prometheus.yml'}", f"--storage.tsdb.path={data}"]
        command = ["prometheus", *options, "--web.listen-address=127.0.0.1:0"]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(command, stderr=log)
        while b"Ready" not in self._get("/-/ready"):
            time.sleep(0.1)

    def _get(self, path: str) -> bytes:
        found = re.search(r'msg="Listening on" address=(\S+)', self._log.read_text())
        if found is None:
            return b""
        try:
            with urllib.request.urlopen(f"http://{found[1]}{path}") as response:
                body: bytes = response.read()
                return body
        except OSError:
            return b""

    def query(self, expression: str) -> list[Any]:
        """Returns the series of a query over the whole recording."""
        query = expression.replace("$__rate_interval", "15s").replace("$driver", ".*")
        arguments = {"query": query, "start": self.begin, "end": self.end, "step": _STEP_S}
        answer = json.loads(self._get("/api/v1/query_range?" + urllib.parse.urlencode(arguments)))
        result: list[Any] = answer["data"]["result"]
        return result

    def close(self) -> None:
        """Ends the process."""
        self._process.terminate()
        self._process.wait()


def draw(name: str, recording: str, panels: list[dashboards.Panel], prometheus: Prometheus) -> bytes:
    """Returns a picture of panels as SVG."""
    rows = (len(panels) + _COLUMNS - 1) // _COLUMNS
    titles = [panel.title for panel in panels]
    figure = make_subplots(rows=rows, cols=_COLUMNS, subplot_titles=titles, horizontal_spacing=0.1)
    # The drawing program knows plain lists only.
    layout = json.loads(figure.to_json())["layout"]
    traces = []
    for place, panel in enumerate(panels, 1):
        axis = "" if place == 1 else str(place)
        (left, _), (bottom, _) = (layout[f"{letter}axis{axis}"]["domain"] for letter in "xy")
        layout[f"yaxis{axis}"].update(title={"text": _UNITS[panel.unit]}, rangemode="tozero")
        layout[f"legend{axis}"] = {"x": left, "y": bottom - 0.05, "yanchor": "top", "font": {"size": 10}}
        traces += _traces(panel, prometheus, axis)
    title = f"Drawing of query results: dashboard {name}, recording {recording} (seconds)"
    layout.update(title={"text": title, "font": {"size": 14}}, paper_bgcolor="white", plot_bgcolor="#f4f4f4")
    layout.update(template=None, showlegend=True)
    library = Path(plotly.__file__).parent / "package_data/plotly.min.js"
    figure = {"data": traces, "layout": layout}
    picture: bytes = PlotlyScope(plotlyjs=str(library)).transform(figure, "svg", width=1000, height=110 + 300 * rows)
    return picture


def _traces(panel: dashboards.Panel, prometheus: Prometheus, axis: str) -> list[dict[str, Any]]:
    """Returns the lines of a panel."""
    found = [(legend, each) for query, legend in panel.queries.items() for each in prometheus.query(query)]
    # A client is without its name in its first second.
    found = [(legend, each) for legend, each in found if len(each["values"]) >= _MIN_VALUES]
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "x": [at - prometheus.begin for at, _ in each["values"]],
            "y": [None if value == "NaN" else float(f"{float(value):.4g}") for _, value in each["values"]],
            "xaxis": f"x{axis}",
            "yaxis": f"y{axis}",
            "legend": f"legend{axis}",
            "name": _legend(legend, each["metric"]),
            "line": {"color": color, "width": 1.5},
        }
        for color, (legend, each) in zip(_COLORS, found, strict=False)
    ]


def _legend(legend: str, labels: dict[str, str]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found[1], ""), legend).strip()


def main() -> None:
    """Draws all pictures."""
    for name, (recording, titles) in PICTURES.items():
        panels = [panel for panel in dashboards.DASHBOARDS[name] if panel.title in titles]
        with tempfile.TemporaryDirectory() as directory:
            prometheus = Prometheus(Path(directory), Path(sys.argv[1]) / f"{recording}.raw")
            try:
                picture = draw(name, recording, panels, prometheus)
            finally:
                prometheus.close()
        (ASSETS / f"dashboard-{name}.svg").write_bytes(picture)


if __name__ == "__main__":
    main()
