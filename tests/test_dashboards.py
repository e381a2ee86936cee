"""Prometheus returns series for each query of the dashboards while `aeron exporter` shows a running driver."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import eventually
from tests.ports import free_port

import aeron
import dashboards
from aeron._exporter import Reading
from alarms import series
from promtool import find

QUERIES = list(
    dict.fromkeys(query for panels in dashboards.DASHBOARDS.values() for each in panels for query in each.queries)
)
IPC = "aeron:ipc?term-length=64k"
MESSAGE = bytes(992)


def test_the_files_are_up_to_date() -> None:
    for name in dashboards.DASHBOARDS:
        assert (dashboards.DIRECTORY / f"{name}.json").read_text() == dashboards.render(name), name
    assert {path.stem for path in dashboards.DIRECTORY.glob("*.json")} == set(dashboards.DASHBOARDS)


def test_the_files_contain_the_queries() -> None:
    found = set()
    for path in dashboards.DIRECTORY.glob("*.json"):
        for panel in json.loads(path.read_text())["panels"]:
            assert panel["datasource"]["uid"] == "${datasource}"
            found |= {target["expr"] for target in panel["targets"]}
    assert found == {*QUERIES, dashboards.ALARMS}


def test_the_queries_use_metrics_of_the_exporter_only() -> None:
    names = {family.name for family in Reading([]).families()}
    assert {name for query in QUERIES for name in dashboards.METRIC.findall(query)} <= names


# ---- the real Prometheus ---------------------------------------------------------------------------------------------


class Prometheus:
    """The real Prometheus, which scrapes one exporter five times a second."""

    def __init__(self, directory: Path, target: str) -> None:
        configuration = {
            "global": {"scrape_interval": "200ms", "scrape_timeout": "200ms", "evaluation_interval": "200ms"},
            "rule_files": [str(series.RULES)],
            "scrape_configs": [{"job_name": "aeron", "static_configs": [{"targets": [target]}]}],
        }
        file = directory / "prometheus.yml"
        file.write_text(json.dumps(configuration))
        self._log = directory / "prometheus.log"
        command = [
            find("prometheus"),
            f"--config.file={file}",
            f"--storage.tsdb.path={directory / 'data'}",
            "--web.listen-address=127.0.0.1:0",
        ]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(command, stderr=log, cwd=directory)
        try:
            eventually(self._is_ready)
        except BaseException:
            self.end()
            raise

    def _address(self) -> str | None:
        found = re.search(r'msg="Listening on" address=(\S+)', self._log.read_text())
        return found[1] if found else None

    def _is_ready(self) -> bool:
        try:
            return self._address() is not None and self._get("/-/ready").startswith(b"Prometheus Server is Ready")
        except urllib.error.HTTPError:
            return False

    def _get(self, path: str) -> bytes:
        with urllib.request.urlopen(f"http://{self._address()}{path}", timeout=10) as response:
            body: bytes = response.read()
            return body

    def query(self, expression: str) -> list[Any]:
        """Returns the series of a query of a dashboard."""
        for variable, value in (("$__rate_interval", "5s"), ("$driver", ".*")):
            expression = expression.replace(variable, value)
        answer = json.loads(self._get("/api/v1/query?" + urllib.parse.urlencode({"query": expression})))
        result: list[Any] = answer["data"]["result"]
        return result

    def end(self) -> None:
        self._process.terminate()
        self._process.wait(10)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Returns Prometheus beside a driver that loses datagrams, with streams, an archive and a reader that is stuck."""
    directory = tmp_path_factory.mktemp("prometheus")
    find("prometheus")
    with ExitStack() as stack:
        driver = stack.enter_context(
            aeron.MediaDriver(
                dir=directory / "driver",
                ipc_term_buffer_length=64 * 1024,
                incoming_loss=aeron.RandomLoss(rate=0.05, seed=27),
            )
        )
        settings: dict[str, Any] = {"segment_file_length": 64 * 1024, "low_storage_space_threshold": 0}
        stack.enter_context(aeron.Archive(directory / "archive", driver=driver, **settings))
        client = stack.enter_context(aeron.connect(driver, client_name="demo"))
        archive = stack.enter_context(aeron.connect_archive(client))
        udp = f"aeron:udp?endpoint=127.0.0.1:{free_port()}|term-length=64k"
        reader = client.add_subscription(udp, 1001)
        stuck = client.add_subscription(IPC, 1003)
        publications = [
            client.add_publication(udp, 1001),
            archive.add_recorded_publication(IPC, 1002),
            client.add_publication(IPC, 1003),
        ]
        stop = threading.Event()

        def work() -> None:
            while not stop.wait(0.005):
                for publication in publications:
                    publication.offer(MESSAGE)
                reader.poll_batch(100)

        worker = threading.Thread(target=work)
        worker.start()
        stack.callback(worker.join)
        stack.callback(stop.set)
        sources = ["--dir", f"demo={driver.dir}", "--archive", f"journal={directory / 'archive'}"]
        command = [sys.executable, "-m", "aeron", "exporter", "--port", "0", *sources]
        exporter = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        stack.callback(exporter.terminate)
        assert exporter.stdout is not None
        target = urllib.parse.urlsplit(exporter.stdout.readline().split()[-1]).netloc
        found = Prometheus(directory, target)
        stack.callback(found.end)
        assert not stuck.is_closed
        yield found


# Prometheus looks at its configuration for 5 s before the first scrape.
@pytest.mark.interop
@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES)
def test_a_query_returns_series(prometheus: Prometheus, query: str) -> None:
    eventually(lambda: prometheus.query(query))


@pytest.mark.interop
@pytest.mark.slow
def test_no_alarm_fires_in_the_first_minute_and_pending_ones_are_shown(prometheus: Prometheus) -> None:
    eventually(lambda: prometheus.query('ALERTS{alertname="AeronPublisherLimited",alertstate="pending"}'))
    assert prometheus.query(dashboards.ALARMS) == []
