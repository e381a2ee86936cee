"""Tests that commands escape text of peers.

No command prints a control character that a peer has sent, except tabs and line ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import eventually

import aeron
from aeron.cli.text import printable, printable_lines
from commands import Command, driver_directory, run

_EVIL = "\x1b]0;title\x07\x1b[2J\rforged\x9b31m\u202egpj.exe"
_ESCAPED = r"\x1b]0;title\x07\x1b[2J\rforged\x9b31m\u202egpj.exe"


# A channel must be ASCII, so these texts have only the ASCII control characters.
_EVIL_ASCII, _ESCAPED_ASCII = "\x1b[2J\x07forged\r", r"\x1b[2J\x07forged\r"


def assert_harmless(output: str, escaped: str = _ESCAPED) -> None:
    assert escaped in output
    assert printable_lines(output) == output


@given(st.text())
def test_escaped_text_is_one_line_without_control_characters_and_other_text_is_unchanged(text: str) -> None:
    shown = printable(text)
    assert not any(ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0 for character in shown)
    assert len(shown.splitlines()) <= 1
    assert printable(shown) == shown
    if text.isprintable():
        assert shown == text


def test_umlauts_emoji_and_tabs_are_not_escaped() -> None:
    assert printable("Größe 👩‍👧 日本") == "Größe 👩‍👧 日本"
    assert printable_lines("a\n\tb\x1b") == "a\n\tb\\x1b"


def test_sub_escapes_messages(driver: aeron.MediaDriver) -> None:
    with aeron.connect(driver) as client:
        publication = client.add_publication("aeron:ipc?alias=text", 4711)
        with Command("sub", "--dir", driver.dir, "-c", "aeron:ipc", "-s", 4711, "-m", 1) as sub:
            publication.wait_connected(timeout=10)
            publication.publish(_EVIL.encode(), timeout=5)
            assert sub.end() == 0
    assert_harmless(sub.output())


def test_stat_escapes_labels(driver: aeron.MediaDriver) -> None:
    with aeron.connect(driver) as client:
        client.add_counter(1100, label=f"mine {_EVIL}")
        counter = client.add_counter(1100, label=f"mine {_EVIL}")
        assert counter.id
        assert_harmless(run("stat", "--once", "--dir", driver.dir).stdout)


def test_errors_escapes_texts_from_peers(driver: aeron.MediaDriver) -> None:
    with aeron.connect(driver) as client:
        with pytest.raises(aeron.AeronError):
            client.add_publication(f"aeron:udp?endpoint={_EVIL_ASCII}:1", 1)
        eventually(lambda: "forged" in run("errors", "--dir", driver.dir).stdout)
        assert_harmless(run("errors", "--dir", driver.dir).stdout, _ESCAPED_ASCII)


def test_receive_escapes_names_of_files(driver: aeron.MediaDriver, tmp_path: Path) -> None:
    sent, received = tmp_path / "sent", tmp_path / "received"
    sent.mkdir()
    received.mkdir()
    (sent / _EVIL).write_text("content")
    arguments = ("--dir", driver.dir, "-c", "aeron:ipc", "-s", 4712)
    with Command("receive", received, *arguments, "--files", 1) as receiver:
        receiver.wait_for("Receiving from")
        assert run("send", sent / _EVIL, *arguments).exit_code == 0
        assert receiver.end() == 0
    assert_harmless(receiver.output())
    assert (received / _EVIL).read_text() == "content"


def test_the_error_of_a_command_is_escaped() -> None:
    with driver_directory() as directory, aeron.MediaDriver(dir=directory):
        failed = run("sub", "--dir", directory, "-c", f"aeron:udp?endpoint={_EVIL_ASCII}:1")
    assert failed.exit_code == 1
    assert_harmless(failed.stderr, _ESCAPED_ASCII)


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["archive", "--help"], ["stat", "--once"], ["doctor"], ["errors", "--json"], ["loss"], ["streams"]],
    ids=" ".join,
)
def test_an_output_that_cannot_be_written_ends_a_command_with_one_line(
    driver: aeron.MediaDriver, arguments: list[str]
) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "aeron", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "AERON_DIR": str(driver.dir), "PYSPARK_PYTHON": sys.executable},
        )
    assert (done.returncode, done.stderr) == (1, "Error: [Errno 28] No space left on device\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["\udcff"],
        ["pub", "-c", "aeron:ipc?alias=\udcff", "-s", "1", "-m", "x"],
        ["sub", "-c", "\udcff", "-s", "1"],
        ["stat", "\udcff", "--once"],
        ["archive", "list", "--channel", "\udcff"],
        ["archive", "describe", "\udcff"],
        ["inspect", "\udcff"],
        ["send", "\udcff"],
        ["driver", "\udcff"],
        ["driver", "-Daeron.dir=\udcff"],
        ["archive", "run", "\udcff"],
    ],
    ids=ascii,
)
def test_an_argument_that_is_not_utf_8_ends_a_command_without_a_traceback(
    driver: aeron.MediaDriver, arguments: list[str]
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "aeron", *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=60,
        env={**os.environ, "AERON_DIR": str(driver.dir)},
    )
    assert "Traceback" not in done.stderr
    # 255 is the status of Aeron's own archive tool.
    assert done.returncode in {0, 1, 255}
    assert done.returncode == 0 or done.stderr.strip()


@pytest.mark.parametrize("program", ["aeronmd_main", "aeronarchive_main"])
def test_an_argument_of_a_native_program_that_is_not_utf_8_is_one_line(program: str) -> None:
    code = f"import sys; from aeron._aeron import {program}; sys.exit({program}())"
    done = subprocess.run(
        [sys.executable, "-c", code, "-Daeron.dir=\udcff"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1
    assert done.stderr.startswith("ERROR: not UTF-8: [")
    assert done.stderr.count("\n") == 1
