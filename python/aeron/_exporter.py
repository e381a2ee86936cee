"""The exporter of metrics: an HTTP server, and the bridges to `prometheus_client` and OpenTelemetry."""

from __future__ import annotations

import base64
import binascii
import contextlib
import errno
import hashlib
import http.client
import ipaddress
import logging
import os
import re
import socket
import ssl
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any, TypeAlias

from aeron import _aeron
from aeron._aeron import _Exposition, _Users
from aeron._health import health
from aeron.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation
    from prometheus_client.metrics_core import Metric

Path: TypeAlias = str | os.PathLike[str]
Sources: TypeAlias = Path | Iterable[Path] | Mapping[str, Path]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MAX_SERIES = 10_000
MAX_CONNECTIONS = 16
"""More than the scrapers and probes of a service need at once."""
MAX_READ_S = 5.0
"""Time without a byte after which a connection ends."""
MAX_CONNECTION_S = 30.0
"""Time after which a connection ends. A client that sends one byte at a time would keep it for ever."""
_MAX_AGE_S = 0.5
"""Age up to which one reading serves all instruments of OpenTelemetry: they are called one after the other."""

_LOOP_S = 0.1
"""Time after which the thread of the server looks whether it should end, and which connections should."""

_log = logging.getLogger("aeron.exporter")
_SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")


def _named(sources: Sources) -> list[tuple[str, str]]:
    """Returns names and directories. A directory without a name has its path as its name."""
    if isinstance(sources, Mapping):
        return [(name, os.fspath(directory)) for name, directory in sources.items()]
    paths = [sources] if isinstance(sources, (str, os.PathLike)) else sources
    return [(os.fspath(path), os.fspath(path)) for path in paths]


class Exporter:
    """Serves the metrics of drivers and archives over HTTP, for Prometheus and for probes. Thread-safe.

    The exporter reads the files of drivers and archives, is no client of a driver, and needs no restart after a driver
    was restarted. `/metrics` returns the metrics. `/healthz` and `/readyz` return the results of `aeron.health`: the
    status is 200 or 503, with one line for each reason. The server runs in a daemon thread, and
    ends with `close` or the `with` block. A forked process has no server.

    A metric has the labels `driver` or `archive`, and, if they apply, `channel`, `stream_id` and `client`. Sessions of
    a stream and clients of the same name are one series. A total contains what ended sessions have sent.

    Args:
        drivers: Directories of drivers, or a dictionary with their names for the label `driver`. `None`: the default
            directory, or no driver if there are archives.
        archives: Directories of archives on this machine, or a dictionary with their names for the label `archive`.
        address: Address to listen on.
        port: Port to listen on. 0: any free port.
        ssl_context: TLS context of a server. It may demand client certificates.
        users: Path of a users file, in the form of an archive's users file, with mode 0600. A scraper then needs name
            and password of a user with a password. Any role may read metrics. Probes need none, and get no reasons
            then.
        insecure: Whether to listen on an address of the network without TLS.
        max_series: Maximum number of series of counters. Of more, whole streams with the lowest rate are left out, and
            the metric `aeron_exporter_dropped_series` counts them.
        per_session: Whether series also have the labels `session_id` and `registration_id`, which are new after each
            restart.
        custom: Text in TOML with the names, kinds, units and labels of an application's counters.

    Raises:
        InvalidArgumentError: If `custom` is not valid, `max_series` is less than 1, or `address` is an address of the
            network and there is neither TLS nor `insecure`.
        ConfigurationError: If the users file is not valid, or other users of this machine may read it.
        OSError: If the exporter cannot listen on the address.

    Example:
        ```python
        with aeron.metrics.Exporter(driver.dir, port=0) as exporter:
            print(urllib.request.urlopen(exporter.url + "/metrics").read().decode())
        ```
    """

    def __init__(
        self,
        drivers: Sources | None = None,
        *,
        archives: Sources = (),
        address: str = "127.0.0.1",
        port: int = 9464,
        ssl_context: ssl.SSLContext | None = None,
        users: Path | None = None,
        insecure: bool = False,
        max_series: int = MAX_SERIES,
        per_session: bool = False,
        custom: str = "",
    ) -> None:
        if ssl_context is None and not insecure and not _is_local(address):
            raise InvalidArgumentError(
                f"address={address!r} can be reached over the network, and the exporter has no TLS: pass ssl_context, "
                "or insecure=True if the network is trusted"
            )
        self._reading = Reading(
            drivers, archives=archives, max_series=max_series, per_session=per_session, custom=custom
        )
        passwords = None if users is None else _Passwords(users)
        self._server = _Server((address, port), self._reading, passwords, ssl_context)
        scheme = "http" if ssl_context is None else "https"
        host = f"[{address}]" if ":" in address else address
        self.url: str = f"{scheme}://{host}:{self._server.server_port}"
        """Address of the server, without a path."""
        self._pid = os.getpid()
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_LOOP_S,), name="aeron-exporter", daemon=True
        )
        self._thread.start()
        _open.add(self._server)

    def render(self) -> str:
        """Reads all files, and returns the metrics in the text format of Prometheus, version 0.0.4."""
        return self._reading.text().decode()

    def close(self) -> None:
        """Ends the server and its connections. Idempotent."""
        if self._pid != os.getpid():
            return  # the fork has closed the socket, and the connections belong to the parent
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()
        _open.discard(self._server)

    def __enter__(self) -> Exporter:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<aeron.metrics.Exporter {self.url}>"


_open: set[_Server] = set()
"""The servers of this process. A server runs until it is closed, also if the program drops its exporter."""


def _close_in_child() -> None:
    """Closes the sockets of the parent's exporters. Otherwise a child would keep their ports after the parent's end."""
    for server in _open:
        server.socket.close()
    _open.clear()


os.register_at_fork(after_in_child=_close_in_child)


def push(url: str, text: str, *, timeout: float = 10.0) -> None:
    """Sends metrics to a push gateway of Prometheus, in place of those that it has for the same address.

    Args:
        url: Address with the grouping key, such as `http://gateway:9091/metrics/job/aeron/instance/a`.
        text: Metrics, as `Exporter.render` returns them.
        timeout: Seconds to wait for the gateway.

    Raises:
        InvalidArgumentError: If the address is not one of HTTP with a host.
        OSError: If the gateway cannot be reached, refuses the metrics, or does not speak HTTP.
    """
    _check_url(url)
    request = urllib.request.Request(
        url, data=text.encode(), method="PUT", headers={"Content-Type": CONTENT_TYPE, "User-Agent": "aeron-exporter"}
    )
    try:
        urllib.request.urlopen(request, timeout=timeout).close()
    except http.client.HTTPException as error:
        raise OSError(f"the gateway does not speak HTTP: {error!r}") from error


def _check_url(url: str) -> None:
    try:
        parts = urllib.parse.urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable or not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidArgumentError(f"url={url!r} is not an address such as http://gateway:9091/metrics/job/aeron")


def _is_local(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


class Reading:
    """The metrics of drivers and archives: their text, and their samples."""

    def __init__(
        self,
        drivers: Sources | None,
        *,
        archives: Sources = (),
        max_series: int = MAX_SERIES,
        per_session: bool = False,
        custom: str = "",
    ) -> None:
        if max_series < 1:
            raise InvalidArgumentError(f"max_series={max_series} is less than 1")
        self._archives = _named(archives)
        if drivers is None:
            drivers = () if self._archives else _aeron.default_directory()
        self._drivers = _named(drivers)
        for kind, sources in (("drivers", self._drivers), ("archives", self._archives)):
            names = [name for name, _ in sources]
            if len(set(names)) < len(names):
                raise InvalidArgumentError(f"{kind}: {', '.join(names)}: give each directory once")
        self._settings: dict[str, Any] = {"max_series": max_series, "per_session": per_session, "custom": custom}
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._exposition = _Exposition(self._drivers, self._archives, **self._settings)

    def text(self) -> bytes:
        """Reads all files. A forked process begins anew: a thread of its parent may have been reading."""
        if self._pid != os.getpid():
            self._begin()
        return self._exposition.render()

    def families(self) -> list[Family]:
        """Returns all metrics that can occur, without samples."""
        return [Family(name, type, help, []) for name, type, help in self._exposition.families()]

    def samples(self) -> list[Family]:
        """Returns the metrics of this moment."""
        return list(_parsed(self.text().decode()))

    def reasons(self, *, is_live: bool) -> list[str] | None:
        """Returns why a driver or an archive is not live, or not ready; `None` if all are."""
        results = [health(directory) for _, directory in self._drivers]
        results += [health(archive=directory) for _, directory in self._archives]
        if all(result.is_live if is_live else result.is_ready for result in results):
            return None
        return [reason for result in results for reason in result.reasons]


@dataclass
class Family:
    """A metric and its samples: labels and values."""

    name: str
    type: str
    help: str
    samples: list[tuple[dict[str, str], float]]


def _parsed(text: str) -> Iterator[Family]:
    """Yields the metrics of a text that the native module has written."""
    family = None
    # Only this character ends a line of the format. Names may have others that `splitlines` takes for ends.
    for line in text.split("\n"):
        if line.startswith("# HELP "):
            _, _, name, help = line.split(" ", 3)
            family = Family(name, "", _unescaped(help), [])
            yield family
        elif family is not None and line.startswith("# TYPE "):
            family.type = line.rpartition(" ")[2]
        elif family is not None and (sample := _SAMPLE.fullmatch(line)) is not None:
            labels = {name: _unescaped(value) for name, value in _LABEL.findall(sample[2] or "")}
            family.samples.append((labels, float(sample[3])))


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], text)


class Collector:
    """The metrics of drivers and archives for a registry of `prometheus_client`. Thread-safe.

    For a program that already serves its own metrics. `Exporter` reads large drivers with less effort: this class makes
    a Python object for each sample.

    Args:
        drivers: As for `Exporter`.
        archives: As for `Exporter`.
        max_series: As for `Exporter`.
        per_session: As for `Exporter`.
        custom: As for `Exporter`.

    Raises:
        InvalidArgumentError: If `custom` is not valid, or `max_series` is less than 1.

    Example:
        ```python
        prometheus_client.REGISTRY.register(aeron.metrics.Collector(driver.dir))
        ```
    """

    def __init__(
        self,
        drivers: Sources | None = None,
        *,
        archives: Sources = (),
        max_series: int = MAX_SERIES,
        per_session: bool = False,
        custom: str = "",
    ) -> None:
        self._reading = Reading(
            drivers, archives=archives, max_series=max_series, per_session=per_session, custom=custom
        )

    def collect(self) -> Iterator[Metric]:
        """Yields the metrics of this moment. The registry calls this method."""
        from prometheus_client.metrics_core import Metric

        for family in self._reading.samples():
            # A registry keeps the name of a total without its end.
            metric = Metric(family.name.removesuffix("_total"), family.help, family.type)
            for labels, value in family.samples:
                metric.add_sample(family.name, labels, value)
            yield metric

    def describe(self) -> list[Metric]:
        """Returns nothing, so that a registry reads no files when the collector is registered."""
        return []


def instrument(
    meter_provider: MeterProvider,
    drivers: Sources | None = None,
    *,
    archives: Sources = (),
    max_series: int = MAX_SERIES,
    per_session: bool = False,
    custom: str = "",
) -> None:
    """Adds the metrics of drivers and archives to a meter provider of OpenTelemetry.

    Each metric is an observable counter or gauge of the meter `aeron`, with the name, unit and labels that `Exporter`
    uses. One reading of the files serves all instruments of a collection.

    Args:
        meter_provider: Meter provider, such as one of `opentelemetry-sdk`.
        drivers: As for `Exporter`.
        archives: As for `Exporter`.
        max_series: As for `Exporter`.
        per_session: As for `Exporter`.
        custom: As for `Exporter`.

    Raises:
        ImportError: If `opentelemetry-api` is not installed.
        InvalidArgumentError: If `custom` is not valid, or `max_series` is less than 1.

    Example:
        ```python
        aeron.metrics.instrument(opentelemetry.metrics.get_meter_provider(), driver.dir)
        ```
    """
    from opentelemetry.metrics import Observation

    reading = Reading(drivers, archives=archives, max_series=max_series, per_session=per_session, custom=custom)
    collection = _Collection(reading)

    def callback(name: str) -> Callable[[CallbackOptions], list[Observation]]:
        return lambda _: [Observation(value, labels) for labels, value in collection.samples(name)]

    meter = meter_provider.get_meter("aeron", _aeron.__version__)
    for family in reading.families():
        create = meter.create_observable_counter if family.type == "counter" else meter.create_observable_gauge
        create(family.name, [callback(family.name)], _unit(family.name), family.help)


def _unit(name: str) -> str:
    """Returns the unit at the end of the name of a metric, as OpenTelemetry writes it."""
    name = name.removesuffix("_total")
    return "By" if name.endswith("_bytes") else "s" if name.endswith("_seconds") else "1"


class _Collection:
    """The samples of one moment, for instruments that are called one after the other. Thread-safe."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._families: dict[str, Family] = {}
        self._read_at = -_MAX_AGE_S

    def samples(self, name: str) -> list[tuple[dict[str, str], float]]:
        if self._pid != os.getpid():
            self._begin()
        with self._lock:
            now = time.monotonic()
            if now - self._read_at >= _MAX_AGE_S:
                self._families = {family.name: family for family in self._reading.samples()}
                self._read_at = time.monotonic()
            family = self._families.get(name)
            return [] if family is None else family.samples


class _Passwords:
    """Checks the credentials of scrapers. Remembers those that are right: a check takes 40 ms of a processor."""

    def __init__(self, path: Path) -> None:
        self._users = _Users(os.fspath(path))
        self._right: set[bytes] = set()
        self._lock = threading.Lock()

    def accepts(self, authorization: str | None) -> bool:
        scheme, _, encoded = (authorization or "").partition(" ")
        if scheme.lower() != "basic":
            return False
        try:
            credentials = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            return False
        digest = hashlib.sha256(credentials).digest()
        if digest in self._right:
            return True
        name, colon, password = credentials.partition(b":")
        # One check at a time: wrong passwords must not use all processors.
        with self._lock:
            is_right = bool(colon) and self._users.has_password(name.decode(errors="replace"), password)
        if is_right:
            self._right.add(digest)
        return is_right


class _Handler(BaseHTTPRequestHandler):
    """Handles one request and closes the connection."""

    server: _Server
    server_version = "aeron-exporter"
    sys_version = ""
    timeout = MAX_READ_S

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        is_known = self.server.passwords is None or self.server.passwords.accepts(self.headers["Authorization"])
        if path == "/metrics":
            if is_known:
                self._answer(200, self.server.reading.text(), CONTENT_TYPE)
            else:
                self._answer(401, b"name and password are missing or wrong\n")
        elif path in ("/healthz", "/readyz"):
            reasons = self.server.reading.reasons(is_live=path == "/healthz")
            text = "ok\n" if reasons is None else "".join(f"{reason}\n" for reason in reasons if is_known)
            self._answer(200 if reasons is None else 503, text.encode(errors="replace"))
        elif path == "/":
            self._answer(200, b"/metrics\n/healthz\n/readyz\n")
        else:
            self._answer(404, b"not here: try /metrics, /healthz or /readyz\n")

    do_HEAD = do_GET

    def _answer(self, status: int, body: bytes, content_type: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="aeron", charset="UTF-8"')
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        _log.debug(format, *arguments)


class _Server(ThreadingMixIn, HTTPServer):
    """A server with a limited number of connections, each of a limited time."""

    daemon_threads = True
    block_on_close = False

    def __init__(
        self,
        address: tuple[str, int],
        reading: Reading,
        passwords: _Passwords | None,
        ssl_context: ssl.SSLContext | None,
    ) -> None:
        self.reading = reading
        self.passwords = passwords
        self._ssl_context = ssl_context
        self._lock = threading.Lock()
        self._ends: dict[socket.socket, float] = {}
        """Open connections, and the times at which they end."""
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        # HTTPServer would look up the name of the address, which can take seconds.
        super(HTTPServer, self).server_bind()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def get_request(self) -> tuple[socket.socket, Any]:
        try:
            return super().get_request()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                time.sleep(_LOOP_S)  # the connection still waits: the thread would use a whole processor
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            is_full = len(self._ends) >= MAX_CONNECTIONS
            if not is_full:
                self._ends[request] = time.monotonic() + MAX_CONNECTION_S
        if is_full:
            _log.debug("connection of %s refused: %d are open", client_address, MAX_CONNECTIONS)
            self.shutdown_request(request)
        else:
            super().process_request(request, client_address)

    def finish_request(self, request: Any, client_address: Any) -> None:
        if self._ssl_context is None:
            super().finish_request(request, client_address)
            return
        # TLS takes the place of a socket. The server must still be able to end the connection: hence a second one.
        duplicate = request.dup()
        duplicate.settimeout(MAX_READ_S)
        # The handshake waits for the client, so it is no work for the thread that accepts connections.
        with self._ssl_context.wrap_socket(duplicate, server_side=True) as secured:
            super().finish_request(secured, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._ends.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Ends the connections that are open for too long. The thread of the server calls this method in each loop."""
        self._end_connections(time.monotonic())

    def server_close(self) -> None:
        super().server_close()
        self._end_connections(float("inf"))

    def _end_connections(self, now: float) -> None:
        with self._lock:
            for request, end in self._ends.items():
                if end <= now:
                    with contextlib.suppress(OSError):  # the client was faster
                        request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        _log.debug("connection of %s failed", client_address, exc_info=True)


# Users import these names from `aeron.metrics`, so reprs and pickles name that module.
Exporter.__module__ = Collector.__module__ = "aeron.metrics"
push.__module__ = instrument.__module__ = "aeron.metrics"
