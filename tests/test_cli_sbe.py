"""Tests of ``aeron sbe``, and of the option ``--sbe`` of commands that print messages."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

import aeron
from aeron.sbe import Schema
from commands import Command, run

MARKET = str(Path(__file__).parent / "sbe" / "market.xml")


def trade() -> bytes:
    values = {"transactTime": 5, "tradeId": 1, "side": "Buy", "price": Decimal("1.25"), "symbol": "E\x1b[2J"}
    return Schema(MARKET)["Trade"].encode_one({**values, "expiry": 9})


def test_a_schema_is_listed_with_its_messages_or_the_fields_of_one() -> None:
    listed = run("sbe", MARKET)
    assert listed.exit_code == 0
    assert listed.stdout.startswith(
        "package market, schema 71, version 2, 3 messages\n     1 Trade (48 bytes): transactTime,"
    )
    fields = run("sbe", MARKET, "BookUpdate").stdout.splitlines()
    assert fields[0].startswith("message BookUpdate, template 2, block of ")
    assert any(line.startswith("    price: decimal of int64 at ") for line in fields)
    rows = [json.loads(line) for line in run("sbe", MARKET, "--json").stdout.splitlines()]
    assert [(row["id"], row["name"]) for row in rows] == [(1, "Trade"), (2, "BookUpdate"), (3, "Instrument")]


def test_a_schema_that_breaks_a_rule_is_an_error_with_its_line(tmp_path: Path) -> None:
    broken = tmp_path / "broken.xml"
    broken.write_text(Path(MARKET).read_text().replace('type="Side"', 'type="Sides"', 1))
    for arguments, text in [
        ((str(broken),), "Sides"),
        (("missing.xml",), "No such file"),
        ((MARKET, "Quote"), "it has Trade"),
    ]:
        failed = run("sbe", *arguments)
        assert failed.exit_code == 1
        assert text in failed.stderr


def test_messages_in_hexadecimal_digits_are_decoded() -> None:
    decoded = run("sbe", MARKET, "--hex", trade().hex())
    assert decoded.stdout.startswith('Trade {"transactTime": 5, "tradeId": 1, "side": "Buy", "price": "1.250000000"')
    values = json.loads(run("sbe", MARKET, "--json", "--hex", trade().hex()).stdout)
    assert (values["template"], values["values"]["venue"]) == ("Trade", None)
    short = run("sbe", MARKET, "--hex", trade()[:-1].hex())
    assert short.exit_code == 1
    assert "cannot be decoded: " in short.stdout
    assert "--hex: non-hexadecimal number" in run("sbe", MARKET, "--hex", "xyz").stderr


@pytest.mark.parametrize("message", [trade(), b"\x1b[2J"])
def test_the_values_of_received_messages_are_printed(message: bytes) -> None:
    with aeron.MediaDriver() as driver, aeron.connect(driver) as client:
        publication = client.add_exclusive_publication("aeron:ipc", 1001)
        with Command("sub", "--dir", driver.dir, "-c", "aeron:ipc", "-m", "1", "--sbe", MARKET) as sub:
            publication.wait_connected(timeout=20)
            publication.publish(message, timeout=5)
            assert sub.end() == 0
            printed = sub.output()
    expected = '<<Trade {"transactTime": 5,' if len(message) > 8 else "<<cannot be decoded: "
    assert expected in printed
    assert "\x1b" not in printed
