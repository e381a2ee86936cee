"""``aeron exporter``: the metrics of drivers and archives over HTTP, or sent to a push gateway."""

from __future__ import annotations

import contextlib
import ssl
import threading
from pathlib import Path
from typing import Any

import click

from aeron._exporter import MAX_SERIES, Exporter, Reading, Sources, push
from aeron.cli.text import printable
from aeron.exceptions import AeronError


@click.command("exporter")
@click.option(
    "--dir", "drivers", multiple=True, metavar="[NAME=]DIRECTORY", help="Driver.  [default: AERON_DIR or the default]"
)
@click.option("--archive", "archives", multiple=True, metavar="[NAME=]DIRECTORY", help="Archive.")
@click.option("--address", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=9464, show_default=True, help="Port; 0: any free one.")
@click.option("--tls-cert", type=click.Path(exists=True, dir_okay=False), help="Certificate chain in PEM.")
@click.option("--tls-key", type=click.Path(exists=True, dir_okay=False), help="Key of the certificate in PEM.")
@click.option(
    "--tls-client-ca", type=click.Path(exists=True, dir_okay=False), help="Scrapers need a certificate of this CA."
)
@click.option("--users", type=click.Path(exists=True, dir_okay=False), help="Scrapers need a password of this file.")
@click.option("--insecure", is_flag=True, help="Listen on an address of the network without TLS.")
@click.option("--per-session", is_flag=True, help="Label series with session ids and registration ids.")
@click.option(
    "--max-series", type=click.IntRange(min=1), default=MAX_SERIES, show_default=True, help="Series of counters."
)
@click.option(
    "--counters", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="TOML file about own counters."
)
@click.option("--once", is_flag=True, help="Print the metrics and end.")
@click.option("--push", "push_url", metavar="URL", help="Send the metrics to a push gateway instead of listening.")
@click.option(
    "--interval", type=click.FloatRange(min=0.1), default=15.0, show_default=True, help="Seconds between two pushes."
)
def command(
    *,
    drivers: tuple[str, ...],
    archives: tuple[str, ...],
    address: str,
    port: int,
    tls_cert: str | None,
    tls_key: str | None,
    tls_client_ca: str | None,
    users: str | None,
    insecure: bool,
    per_session: bool,
    max_series: int,
    counters: Path | None,
    once: bool,
    push_url: str | None,
    interval: float,
) -> None:
    """Serve metrics at /metrics, and health at /healthz and /readyz.

    The command reads files, and needs no restart after a driver or an archive was restarted. It listens on this machine
    only, unless --address says otherwise. NAME is the value of the label driver or archive.
    """
    try:
        own = "" if counters is None else counters.read_text(encoding="utf-8")
        tls = _ssl_context(tls_cert, tls_key, tls_client_ca)
    except (OSError, ValueError) as error:
        raise click.UsageError(printable(f"{counters if tls_cert is None else tls_cert}: {error}")) from error
    read: dict[str, Any] = {
        "drivers": _named(drivers) if drivers else None,
        "archives": _named(archives),
        "max_series": max_series,
        "per_session": per_session,
        "custom": own,
    }
    try:
        if once or push_url is not None:
            reading = Reading(**read)
            if once:
                click.echo(reading.text(), nl=False)
            else:
                with contextlib.suppress(KeyboardInterrupt):
                    _push_for_ever(reading, str(push_url), interval)
            return
        with Exporter(address=address, port=port, ssl_context=tls, users=users, insecure=insecure, **read) as exporter:
            click.echo(f"metrics of {_count(drivers, archives)} at {exporter.url}/metrics")
            with contextlib.suppress(KeyboardInterrupt):
                threading.Event().wait()
    except AeronError as error:
        raise click.UsageError(printable(str(error))) from error
    except OSError as error:
        raise click.ClickException(printable(f"cannot listen on {address} port {port}: {error}")) from error


def _named(sources: tuple[str, ...]) -> Sources:
    """Returns directories by their names. A directory without a name has its path as its name."""
    named: dict[str, str] = {}
    for source in sources:
        name, separator, directory = source.partition("=")
        if not separator or "/" in name:  # a path may have the character too
            name = directory = source
        if name in named:
            raise click.UsageError(printable(f"{name} is there twice: give each directory a name of its own"))
        named[name] = directory
    return named


def _count(drivers: tuple[str, ...], archives: tuple[str, ...]) -> str:
    driver_count = len(drivers) or (0 if archives else 1)
    counts = ((driver_count, "driver"), (len(archives), "archive"))
    return " and ".join(f"{count} {name}{'s' * (count > 1)}" for count, name in counts if count)


def _ssl_context(cert: str | None, key: str | None, client_ca: str | None) -> ssl.SSLContext | None:
    if cert is None:
        if key is not None or client_ca is not None:
            raise click.UsageError("--tls-key and --tls-client-ca need --tls-cert")
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    if client_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client_ca)
    return context


def _push_for_ever(reading: Reading, url: str, interval: float) -> None:
    """Pushes until the process ends. A gateway that is away for a while is told once, and once that it is back."""
    is_away = False
    while True:
        try:
            push(url, reading.text().decode(), timeout=interval)
        except OSError as error:
            if not is_away:
                click.echo(printable(f"the push gateway at {url} does not take the metrics: {error}"), err=True)
            is_away = True
        else:
            if is_away:
                click.echo(printable(f"the push gateway at {url} takes the metrics again"), err=True)
            is_away = False
        threading.Event().wait(interval)
