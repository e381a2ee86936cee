"""Tests of `aeron.metrics.Exporter`, `aeron exporter`, and the bridges to other libraries of metrics."""

from __future__ import annotations

import base64
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import prometheus_client
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import parser
from tests.conftest import Stream, eventually

import aeron
from aeron import _exporter, metrics
from commands import run
from ports import free_port

SECRET = "$scrypt$ln=4,r=8,p=1$IK2ROoftgZie6zB6ALa5uw$3ffdwk2OQMUhPWl74tgtb0XjocyYCwf3Z4/DtmuciJw"
"""Hash of a password that costs little."""


@pytest.fixture
def exporter(driver: aeron.MediaDriver) -> Iterator[metrics.Exporter]:
    with metrics.Exporter({"main": driver.dir}, port=0) as exporter:
        yield exporter


def fetch(url: str, headers: dict[str, str] | None = None, context: ssl.SSLContext | None = None) -> tuple[int, str]:
    """Returns status and text of a response."""
    request = urllib.request.Request(url, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=10, context=context) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def samples(text: str) -> dict[str, float]:
    """Returns the values of all series."""
    lines = (line.rpartition(" ") for line in text.split("\n") if line and not line.startswith("#"))
    return {series: float(value) for series, _, value in lines}


# ---- metrics ---------------------------------------------------------------------------------------------------------


def test_a_scrape_has_the_positions_of_a_stream(exporter: metrics.Exporter, stream: Stream) -> None:
    stream.publication.publish(b"x" * 100, timeout=5)
    labels = f'{{driver="main",channel="aeron:ipc",stream_id="{stream.stream_id}"}}'
    lag = f"aeron_subscriber_lag_bytes{labels}"
    position = f"aeron_publisher_position_bytes_total{labels}"
    eventually(lambda: samples(fetch(exporter.url + "/metrics")[1]).get(lag) == 160)
    assert samples(exporter.render())[position] == 160
    stream.receive()
    eventually(lambda: samples(fetch(exporter.url + "/metrics")[1])[lag] == 0)


def test_prometheus_client_reads_the_text(exporter: metrics.Exporter, stream: Stream) -> None:
    families = {family.name: family for family in parser.text_string_to_metric_families(exporter.render())}
    [up] = families["aeron_driver_up"].samples
    assert (up.labels, up.value) == ({"driver": "main"}, 1.0)
    assert families["aeron_publisher_position_bytes"].type == "counter"
    assert all(family.documentation.endswith(".") for family in families.values())


def test_a_collector_has_the_same_samples_as_the_exporter(driver: aeron.MediaDriver, stream: Stream) -> None:
    def series(text: str) -> set[tuple[str, frozenset[tuple[str, str]]]]:
        parsed = _exporter._parsed(text)
        return {(family.name, frozenset(labels.items())) for family in parsed for labels, _ in family.samples}

    registry = prometheus_client.CollectorRegistry()
    registry.register(metrics.Collector({"main": driver.dir}))
    text = prometheus_client.generate_latest(registry).decode()
    with metrics.Exporter({"main": driver.dir}, port=0) as exporter:
        assert series(text) == series(exporter.render())


def test_instruments_of_opentelemetry_have_the_samples(driver: aeron.MediaDriver, stream: Stream) -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[reader])
    metrics.instrument(provider, {"main": driver.dir})
    data = reader.get_metrics_data()
    assert data is not None
    [resource] = data.resource_metrics
    [scope] = resource.scope_metrics
    found = {metric.name: metric for metric in scope.metrics}
    [up] = found["aeron_driver_up"].data.data_points
    assert (up.attributes, up.value) == ({"driver": "main"}, 1.0)
    positions = found["aeron_publisher_position_bytes_total"]
    assert positions.unit == "By"
    assert str(stream.stream_id) in {point.attributes["stream_id"] for point in positions.data.data_points}
    provider.shutdown()


def test_labels_with_quotes_and_line_ends_are_read_back(driver: aeron.MediaDriver, client: aeron.Aeron) -> None:
    label = 'a "quoted"\\ label\nof two lines'
    with client.add_counter(1001, label):
        reading = _exporter.Reading(driver.dir)
        [family] = [family for family in reading.samples() if family.name == "aeron_undeclared"]
        assert label in {labels["label"] for labels, _ in family.samples}


def test_a_name_with_other_line_ends_hides_and_forges_nothing(driver: aeron.MediaDriver) -> None:
    forged = "\u2028# TYPE aeron_driver_up gauge\u2028aeron_driver_up{} 0\u2028\r\x85"
    with aeron.connect(driver, client_name=forged) as client, client.add_counter(1001, "of a forger"):
        reading = _exporter.Reading(driver.dir)

        def is_shown() -> bool:
            families = {family.name: family for family in reading.samples()}
            assert [value for _, value in families["aeron_driver_up"].samples] == [1.0]
            return forged in {labels.get("client") for labels, _ in families["aeron_clients"].samples}

        eventually(is_shown)


def test_counters_of_an_application_have_declared_names(driver: aeron.MediaDriver, client: aeron.Aeron) -> None:
    custom = '[[counter]]\ntype_id = 1003\nname = "orders"\nkind = "counter"\nlabels.venue = { label = "venue" }'
    counter = client.add_counter(1003, "orders venue=XETR")
    counter.set(7)
    with metrics.Exporter({"main": driver.dir}, port=0, custom=custom) as exporter:
        assert samples(exporter.render())['orders_total{driver="main",venue="XETR"}'] == 7
    with pytest.raises(aeron.InvalidArgumentError, match="belongs to Aeron"):
        metrics.Exporter(driver.dir, port=0, custom=custom.replace("1003", "3"))


def test_an_archive_has_metrics_of_its_own(tmp_path: Path, stream_id: int) -> None:
    with (
        aeron.MediaDriver(dir=tmp_path / "driver", ipc_term_buffer_length=64 * 1024) as driver,
        aeron.Archive(tmp_path / "archive", driver=driver, low_storage_space_threshold=0),
        aeron.connect(driver) as client,
        aeron.connect_archive(client) as control,
    ):
        publication = control.add_recorded_publication("aeron:ipc", stream_id)
        control.wait_recorded(publication, publication.publish(b"x" * 100, timeout=5), timeout=5)
        with metrics.Exporter({"d": driver.dir}, archives={"a": tmp_path / "archive"}, port=0) as exporter:
            found = samples(exporter.render())
            assert found['aeron_archive_up{archive="a"}'] == 1
            archive_id = control.archive_id
            assert found[f'aeron_archive_info{{archive="a",archive_id="{archive_id}"}}'] == 1
            labels = f'{{driver="d",channel="aeron:ipc",stream_id="{stream_id}",archive_id="{archive_id}"}}'
            assert found[f"aeron_archive_recording_position_bytes_total{labels}"] == 160
            assert found[f"aeron_archive_recording_lag_bytes{labels}"] == 0
            assert found[f'aeron_archive_recording_sessions{{driver="d",archive_id="{archive_id}"}}'] == 1
            assert fetch(exporter.url + "/readyz") == (200, "ok\n")


def test_the_exporter_goes_on_after_a_restart_of_the_driver(tmp_path: Path) -> None:
    up = 'aeron_driver_up{driver="d"}'
    with metrics.Exporter({"d": tmp_path / "driver"}, port=0) as exporter:
        assert samples(exporter.render())[up] == 0
        starts = set()
        for _ in range(2):
            with aeron.MediaDriver(dir=tmp_path / "driver"):
                found = samples(exporter.render())
                assert found[up] == 1
                starts.add(found['aeron_driver_start_timestamp_seconds{driver="d"}'])
            assert samples(exporter.render())[up] == 0
        assert len(starts) == 2


# ---- health ----------------------------------------------------------------------------------------------------------


def test_probes_have_a_status_and_the_reasons(driver: aeron.MediaDriver, tmp_path: Path) -> None:
    with metrics.Exporter([driver.dir, tmp_path], port=0) as exporter:
        for path in ("/healthz", "/readyz"):
            status, text = fetch(exporter.url + path)
            assert status == 503
            assert str(tmp_path) in text
    with metrics.Exporter(driver.dir, port=0) as exporter:
        assert fetch(exporter.url + "/healthz") == (200, "ok\n")
        assert fetch(exporter.url + "/other")[0] == 404


# ---- security --------------------------------------------------------------------------------------------------------


def test_an_address_of_the_network_needs_tls_or_a_decision(driver: aeron.MediaDriver) -> None:
    for address in ("0.0.0.0", "::", "192.0.2.1", "example.invalid"):
        with pytest.raises(aeron.InvalidArgumentError, match="insecure=True"):
            metrics.Exporter(driver.dir, address=address, port=0)
    with metrics.Exporter(driver.dir, address="0.0.0.0", port=0, insecure=True) as exporter:
        assert fetch(exporter.url.replace("0.0.0.0", "127.0.0.1") + "/healthz")[0] == 200
    with metrics.Exporter(driver.dir, address="::1", port=0) as exporter:
        assert fetch(exporter.url + "/healthz")[0] == 200


@pytest.fixture
def users(tmp_path: Path) -> Path:
    path = tmp_path / "users.toml"
    path.write_text(f'[[user]]\nname = "ann"\nrole = "read"\nsecret = "{SECRET}"\n')
    path.chmod(0o600)
    return path


def test_a_scraper_needs_a_password_and_a_probe_does_not(
    driver: aeron.MediaDriver, users: Path, tmp_path: Path
) -> None:
    def header(credentials: str) -> dict[str, str]:
        return {"Authorization": "Basic " + base64.b64encode(credentials.encode()).decode()}

    with metrics.Exporter([driver.dir, tmp_path], port=0, users=users) as exporter:
        url = exporter.url + "/metrics"
        for wrong in ({}, header("ann:wrong"), header("bob:password"), header("ann"), {"Authorization": "Basic ?"}):
            assert fetch(url, wrong) == (401, "name and password are missing or wrong\n")
        for _ in range(2):
            assert fetch(url, header("ann:password"))[0] == 200
        assert fetch(exporter.url + "/healthz") == (503, "")
        assert str(tmp_path) in fetch(exporter.url + "/healthz", header("ann:password"))[1]
    users.chmod(0o640)
    with pytest.raises(aeron.ConfigurationError, match="0600"):
        metrics.Exporter(driver.dir, port=0, users=users)


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """Returns a certificate of 127.0.0.1 and its key."""
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, *subject]
    subprocess.run(command, check=True, capture_output=True)
    return cert, key


def test_scrapes_over_tls(driver: aeron.MediaDriver, certificate: tuple[Path, Path]) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(*certificate)
    client = ssl.create_default_context(cafile=certificate[0])
    with metrics.Exporter(driver.dir, port=0, ssl_context=server) as exporter:
        assert exporter.url.startswith("https://")
        assert fetch(exporter.url + "/healthz", context=client) == (200, "ok\n")
        assert fetch(exporter.url + "/metrics", context=client)[0] == 200
        with pytest.raises(urllib.error.URLError):
            fetch(exporter.url + "/healthz", context=ssl.create_default_context())
        # A client that does not speak TLS disturbs no other client.
        with pytest.raises(OSError, match=r"reset|closed|EOF"):
            fetch(exporter.url.replace("https", "http") + "/healthz")
        assert fetch(exporter.url + "/healthz", context=client) == (200, "ok\n")


def test_silent_and_slow_connections_end_and_leave_room(
    driver: aeron.MediaDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_exporter, "MAX_CONNECTIONS", 4)
    monkeypatch.setattr(_exporter, "MAX_CONNECTION_S", 1.0)
    with metrics.Exporter(driver.dir, port=0) as exporter:
        address = ("127.0.0.1", int(exporter.url.rpartition(":")[2]))
        slow = [socket.create_connection(address) for _ in range(4)]
        eventually(lambda: len(exporter._server._ends) == 4)
        refused = socket.create_connection(address)
        refused.settimeout(5)
        assert refused.recv(1) == b""
        for each in slow:
            each.settimeout(5)
            each.send(b"GET /metrics HT")
        # A byte now and then does not keep a connection.
        end = time.monotonic() + 5
        try:
            while time.monotonic() < end:
                slow[0].send(b"T")
                time.sleep(0.05)
        except OSError:
            pass
        assert time.monotonic() < end
        assert fetch(exporter.url + "/healthz")[0] == 200
        for each in (*slow, refused):
            each.close()


def test_close_ends_the_server_and_is_idempotent(driver: aeron.MediaDriver) -> None:
    exporter = metrics.Exporter(driver.dir, port=0)
    exporter.close()
    exporter.close()
    with pytest.raises(OSError, match="refused"):
        fetch(exporter.url + "/metrics")
    assert "aeron-exporter" not in {thread.name for thread in threading.enumerate()}


def test_a_forked_process_has_no_server(driver: aeron.MediaDriver, exporter: metrics.Exporter) -> None:
    child = os.fork()
    if child == 0:
        exporter.close()
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert fetch(exporter.url + "/healthz")[0] == 200


def test_a_process_that_was_forked_while_metrics_were_read_reads_them_too(
    driver: aeron.MediaDriver, exporter: metrics.Exporter
) -> None:
    is_over = threading.Event()

    def read() -> None:
        while not is_over.is_set():
            exporter.render()

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                os._exit(7 if "aeron_driver_up" in exporter.render() else 1)
            eventually(lambda child=child: os.waitpid(child, os.WNOHANG) == (child, 7 << 8))  # type: ignore[misc]
    finally:
        is_over.set()
        reader.join()


def test_a_child_does_not_keep_the_port_of_its_parent(driver: aeron.MediaDriver) -> None:
    # Not a port of the system's choice, which another process may get in the meantime.
    port = free_port()
    exporter = metrics.Exporter(driver.dir, port=port)
    child = os.fork()
    if child == 0:
        signal.pause()
    try:
        exporter.close()
        metrics.Exporter(driver.dir, port=port).close()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


# ---- the command -----------------------------------------------------------------------------------------------------


def test_the_command_prints_metrics_once(driver: aeron.MediaDriver) -> None:
    result = run("exporter", "--dir", f"main={driver.dir}", "--once")
    assert result.exit_code == 0
    assert samples(result.stdout)['aeron_driver_up{driver="main"}'] == 1


def test_the_command_serves_until_sigterm(driver: aeron.MediaDriver) -> None:
    command = [sys.executable, "-m", "aeron", "exporter", "--dir", driver.dir, "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("metrics of 1 driver at http://127.0.0.1:")
    status, text = fetch(line.split()[-1])
    assert status == 200
    assert f'aeron_driver_up{{driver="{driver.dir}"}} 1' in text
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0
    process.stdout.close()


def test_a_directory_may_have_a_name_and_its_path_any_character(driver: aeron.MediaDriver, tmp_path: Path) -> None:
    named = tmp_path / "a=b"
    named.symlink_to(driver.dir)
    result = run("exporter", "--dir", named, "--dir", f"main={named}", "--once")
    found = samples(result.stdout)
    assert found[f'aeron_driver_up{{driver="{named}"}}'] == found['aeron_driver_up{driver="main"}'] == 1
    result = run("exporter", "--dir", f"a={driver.dir}", "--dir", f"a={tmp_path}", "--once")
    assert (result.exit_code, "twice" in result.stderr) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--address", "0.0.0.0"], "insecure"),
        (["--tls-key", __file__], "need --tls-cert"),
        (["--counters", __file__], "declarations of counters"),
        (["--address", "192.0.2.1", "--insecure"], "cannot listen on 192.0.2.1"),
    ],
)
def test_a_wrong_option_is_one_line(driver: aeron.MediaDriver, arguments: list[str], expected: str) -> None:
    result = run("exporter", "--dir", driver.dir, "--port", "0", *arguments)
    assert result.exit_code == 1
    assert expected in result.stderr


class Gateway(BaseHTTPRequestHandler):
    """A push gateway that refuses the first push."""

    pushed: list[str]

    def do_PUT(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        type(self).pushed.append(text)
        self.send_response(503 if len(self.pushed) == 1 else 202)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        pass


def test_the_command_pushes_again_after_a_failure(driver: aeron.MediaDriver) -> None:
    Gateway.pushed = []
    with HTTPServer(("127.0.0.1", 0), Gateway) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/metrics/job/aeron"
        command = [sys.executable, "-m", "aeron", "exporter", "--dir", driver.dir, "--push", url, "--interval", "0.2"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        eventually(lambda: len(Gateway.pushed) >= 3)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=10)
        server.shutdown()
    assert "does not take the metrics" in errors
    assert errors.count("takes the metrics again") == 1
    assert f'aeron_driver_up{{driver="{driver.dir}"}} 1' in Gateway.pushed[-1]


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://", "http://a:x/", "http://a b/", "http://ä/", "a"])
def test_a_push_needs_an_address_of_http(url: str) -> None:
    with pytest.raises(aeron.InvalidArgumentError, match="http://gateway"):
        metrics.push(url, "")


def test_a_gateway_that_does_not_speak_http_is_an_error_of_the_system() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def reply() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.send(b"hello\r\n\r\n")

        threading.Thread(target=reply, daemon=True).start()
        with pytest.raises(OSError, match="does not speak HTTP"):
            metrics.push(f"http://127.0.0.1:{server.getsockname()[1]}/", "x" * 10)
