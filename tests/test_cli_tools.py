"""Tests of the output of ``aeron stat``, ``errors``, ``info`` and ``inspect`` about a driver's files."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import re
import shutil
import signal
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.conftest import eventually

import aeron
from aeron.cli.screen import fit
from commands import Command, driver_directory, run, running_driver

TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}[+-]\d{4}"
HEADER = re.compile(rf"{TIME} - Aeron Stat \(CnC v0\.2\.0\), pid (\d+), heartbeat age (-?\d+)ms")
LINE = re.compile(r"^([ \d]{5}): ([ \d,-]{26}) - (.*)$")


@dataclass(frozen=True)
class Scene:
    """A driver with two IPC streams, a few messages and two distinct errors. One error was observed twice."""

    driver: aeron.MediaDriver
    client: aeron.Aeron
    publication: aeron.ExclusivePublication
    rotated: aeron.Publication

    @property
    def directory(self) -> str:
        return self.driver.dir

    def log(self, publication: aeron.ExclusivePublication | aeron.Publication) -> Path:
        return Path(self.driver.dir) / "publications" / f"{publication.registration_id}.logbuffer"


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    with (
        driver_directory() as directory,
        aeron.MediaDriver(dir=directory, ipc_term_buffer_length=64 * 1024, dir_delete_on_shutdown=False) as driver,
        aeron.connect(driver, keepalive_interval_ns=20_000_000) as client,
    ):
        publication = client.add_exclusive_publication("aeron:ipc?session-id=7|alias=first", 1001)
        rotated = client.add_publication(
            "aeron:ipc?session-id=8|alias=second|init-term-id=5|term-id=5|term-offset=61440|term-length=64k", 1002
        )
        subscriptions = [client.add_subscription("aeron:ipc", stream_id) for stream_id in (1001, 1002)]
        for each in (publication, rotated):
            each.wait_connected(timeout=5)
        publication.publish(b"K\xc3" * 1500, timeout=5)
        publication.publish(b"whole", timeout=5)
        publication.claim(50, timeout=5).abort()
        publication.publish(b"last", timeout=5)
        for _ in range(3):
            rotated.publish(bytes(1376), timeout=5)
        for wrong in ("mtu=100", "mtu=100", "term-length=100"):
            with pytest.raises(aeron.RegistrationError):
                client.add_publication(f"aeron:ipc?{wrong}", 1001)
        # A client appends its version to the label of its heartbeat counter when it writes the first heartbeat. The
        # tests compare labels, so they must start after this change.
        eventually(lambda: any(c.type_id == 11 and " version=" in c.label for c in client.counters_reader))
        yield Scene(driver, client, publication, rotated)
        assert all(subscription.is_connected for subscription in subscriptions)


# ---- stat ----------------------------------------------------------------------------------------------------------


def test_stat_prints_a_header_and_one_line_for_each_allocated_counter(scene: Scene) -> None:
    """06-1: the counters are in the order of their ids, and the values have separators and 26 columns"""
    result = run("stat", "--dir", scene.directory, "--once")
    assert result.exit_code == 0
    header, rule, *lines = result.stdout.splitlines()
    pid, age_ms = map(int, HEADER.fullmatch(header).groups())
    assert pid == os.getpid()
    assert -100 < age_ms < 5000
    assert rule == "=" * 70
    matches = [LINE.fullmatch(line) for line in lines]
    shown = [(int(match[1]), int(match[2].replace(",", "")), match[3]) for match in matches]
    counters = scene.client.counters_reader.snapshot()
    assert [(id, label) for id, _, label in shown] == [(counter.id, counter.label) for counter in counters]
    position = next(counter for counter in counters if counter.label.startswith("pub-pos (exclusive)"))
    assert {id: value for id, value, _ in shown}[position.id] == scene.publication.position
    assert re.search(r"^   34: {21}78,850 - ", result.stdout, re.MULTILINE)


def test_stat_prints_at_its_period_until_a_signal(scene: Scene) -> None:
    """06-1"""
    start = time.monotonic()
    with Command("stat", "--dir", scene.directory, "-u", 100, "type=0") as stat:
        # With the default period of one second, 16 rounds would take longer than the timeout.
        eventually(lambda: stat.output().count("Aeron Stat") > 15, timeout=15)
        stat.send(signal.SIGINT)
        assert stat.end() == 0
        rounds = stat.output().count("Aeron Stat")
        assert (rounds - 1) * 0.1 < time.monotonic() - start
        assert "Traceback" not in stat.output()


def test_stat_on_a_terminal_shows_as_many_lines_as_fit_and_restores_the_screen(scene: Scene) -> None:
    """06-1"""
    terminal, other_side = pty.openpty()
    screen = {"TERM": "xterm", "LINES": "12", "COLUMNS": "60"}
    with Command("stat", "--dir", scene.directory, "-u", 100, output=other_side, **screen) as stat:
        os.close(other_side)
        shown, deadline = b"", time.monotonic() + 15
        while b"more: narrow" not in shown and time.monotonic() < deadline:
            shown += os.read(terminal, 65536)
        stat.send(signal.SIGTERM)
        while data := _read(terminal):
            shown += data
        assert stat.end() == 0
    os.close(terminal)
    assert b"Aeron Stat" in shown
    assert b"more: narrow" in shown
    assert shown.count(b"\x1b[?1049h") == shown.count(b"\x1b[?1049l") == 1


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux returns an error if the other end is closed
        return b""


def test_a_full_screen_shows_the_number_of_further_lines() -> None:
    lines = [str(number) for number in range(10)]
    assert fit(lines, 10, "use --once") == lines
    assert fit(lines, 4, "use --once") == ["0", "1", "2", "... 7 more: use --once"]


def test_stat_with_json_also_prints_keys_and_ids(scene: Scene) -> None:
    shown = json.loads(run("stat", "--dir", scene.directory, "--json").stdout)
    assert shown["cnc_version"] == 512
    assert shown["pid"] == os.getpid()
    counters = scene.client.counters_reader.snapshot()
    assert [counter["id"] for counter in shown["counters"]] == [counter.id for counter in counters]
    assert [bytes.fromhex(counter["key"]) for counter in shown["counters"]] == [counter.key for counter in counters]


def test_stat_takes_the_arguments_watch_and_delay_of_aeron(scene: Scene) -> None:
    printed = run("stat", "--dir", scene.directory, "watch=false", "type=^1$").stdout
    assert "pub-lmt" in printed
    with Command("stat", "--dir", scene.directory, "watch=true", "delay=1", "type=^1$") as stat:
        stat.wait_for("pub-lmt")
    for wrong in ("watch=no", "delay=x", "delay=0", "delay=-1"):
        result = run("stat", "--dir", scene.directory, wrong)
        assert (result.exit_code, result.stdout) == (1, "")
        assert wrong in result.stderr


@pytest.mark.parametrize(
    ("filters", "labels"),
    [
        (["type=^1$"], [r"pub-lmt: \d+ 7 1001 ", r"pub-lmt: \d+ 8 1002 "]),
        (["type=^(1|12|4)$", "stream=1001"], ["pub-pos \\(exclusive\\)", "pub-lmt", "sub-pos"]),
        (["type=^1$", "session=^8$"], [r"pub-lmt: \d+ 8 1002 "]),
        (["type=^1$", "channel=alias=first"], [r"pub-lmt: \d+ 7 1001 "]),
        (["type=^0$", "identity=^15$"], ["Errors: "]),
        (["type=^0$", "identity=^15$", "stream=5", "session=5", "channel=udp"], ["Errors: "]),
        (["type=^11$", "stream=5"], ["client-heartbeat: "]),
        (["type=^4$", "identity=^99999$"], []),
    ],
)
def test_stat_shows_a_counter_that_matches_all_filters_that_apply_to_its_type(
    scene: Scene, filters: list[str], labels: list[str]
) -> None:
    """06-2"""
    result = run("stat", "--dir", scene.directory, "--once", *filters)
    assert result.exit_code == 0
    shown = [LINE.fullmatch(line)[3] for line in result.stdout.splitlines()[2:]]
    assert len(shown) == len(labels), shown
    assert all(re.match(label, text) for label, text in zip(labels, shown, strict=True)), shown


def test_stat_shows_a_stream_by_its_registration_id(scene: Scene) -> None:
    """06-2"""
    result = run(
        "stat", "--dir", scene.directory, "--once", f"identity=^{scene.publication.registration_id}$", "type=^1$"
    )
    assert f"pub-lmt: {scene.publication.registration_id} 7 1001" in result.stdout


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("ipc", "Arguments must be in name=pattern format: Invalid 'ipc'"),
        ("colour=red", "Unrecognised argument: 'colour=red'"),
        ("type=(", "'type=(' is not a regular expression"),
    ],
)
def test_an_invalid_filter_is_an_error_and_nothing_is_printed(scene: Scene, wrong: str, says: str) -> None:
    """06-2"""
    result = run("stat", "--dir", scene.directory, "--once", wrong)
    assert result.exit_code == 1
    assert says in result.stderr
    assert result.stdout == ""


def test_a_command_ends_without_an_error_if_its_output_pipe_is_closed(scene: Scene) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with Command("stat", "--dir", scene.directory, output=writer) as stat:
        os.close(writer)
        assert stat.end() == 1
        assert stat.errors() == ""


# ---- errors --------------------------------------------------------------------------------------------------------


def test_errors_are_shown_with_their_counts_and_times(scene: Scene) -> None:
    """06-4"""
    result = run("errors", "--dir", scene.directory)
    assert result.exit_code == 0
    entries = result.stdout.split("***\n")[1:]
    counts = [re.match(rf"(\d+) observations from ({TIME}) to ({TIME}) for:\n \S", entry) for entry in entries]
    assert [int(match[1]) for match in counts] == [2, 1]
    assert all(match[2] <= match[3] for match in counts)
    assert "mtuLength" in entries[0]
    assert result.stdout.endswith("\n\n2 distinct errors observed.\n")


def test_errors_prints_no_errors_for_a_driver_without_errors() -> None:
    """06-4"""
    with driver_directory() as directory, aeron.MediaDriver(dir=directory):
        assert run("errors", "--dir", directory).stdout == "\n0 distinct errors observed.\n"
        assert run("errors", "--dir", directory, "--json").stdout == "[]\n"


def test_errors_reads_an_error_log_in_a_file_from_an_offset(scene: Scene) -> None:
    """06-4: the test computes the offset of the error log in the CnC file"""
    cnc = Path(scene.directory) / "cnc.dat"
    _, to_driver, to_clients, metadata, values, _ = struct.unpack_from("<6i", cnc.read_bytes())
    offset = 128 + to_driver + to_clients + metadata + values
    result = run("errors", "-f", cnc, "-o", offset)
    assert result.stdout == run("errors", "--dir", scene.directory).stdout
    beyond = run("errors", "-f", cnc, "-o", "1g")
    assert beyond.exit_code == 1
    assert re.search(r"offset 1073741824 is \w+ the end", beyond.stderr)


def test_errors_with_json_prints_counts_times_and_texts(scene: Scene) -> None:
    first, second = json.loads(run("errors", "--dir", scene.directory, "--json").stdout)
    assert (first["observation_count"], second["observation_count"]) == (2, 1)
    assert first["first_observation_ms"] <= first["last_observation_ms"]
    assert "mtuLength" in first["text"]


# ---- info ----------------------------------------------------------------------------------------------------------


def test_info_shows_version_process_and_times(scene: Scene) -> None:
    """06-6"""
    lines = run("info", "--dir", scene.directory).stdout.splitlines()
    assert lines[0] == f"Command 'n Control cnc_file: {scene.directory}/cnc.dat"
    assert lines[1] == f"Version: 512, PID: {os.getpid()}"
    now, start, activity = re.fullmatch(rf"({TIME}) \(start: ({TIME}), activity: ({TIME})\)", lines[2]).groups()
    assert start <= activity <= now
    assert run("info", "--dir", scene.directory, "--pid").stdout == f"{os.getpid()}\n"


def test_info_ends_a_driver_that_allows_it() -> None:
    """06-6: the driver ends with status 0 within 5 s"""
    with (
        driver_directory() as directory,
        running_driver(directory, AERON_DRIVER_TERMINATION_VALIDATOR="allow") as driver,
    ):
        asked = run("info", "--dir", directory, "--terminate")
        assert (asked.exit_code, asked.output) == (0, "")
        assert driver.end(5) == 0
        assert driver.output() == "Shutting down driver...\n"
        again = run("info", "--dir", directory, "--terminate")
        assert again.exit_code == 1
        assert f"no driver runs on {directory}" in again.stderr


def test_info_does_not_end_a_driver_that_denies_it(scene: Scene) -> None:
    """06-6"""
    with driver_directory() as directory, aeron.MediaDriver(dir=directory) as driver:
        assert run("info", "--dir", directory, "--terminate").output == ""
        time.sleep(0.2)
        assert not driver.is_terminated
        assert aeron.is_driver_active(directory)


# ---- inspect -------------------------------------------------------------------------------------------------------


def test_inspect_prints_metadata_and_every_frame_with_padding(scene: Scene) -> None:
    """06-8: a message of three frames, a message of one frame, an aborted claim, a message, and a length of zero"""
    log = scene.log(scene.publication)
    text = run("inspect", log).stdout
    assert re.match(rf"={{70}}\n{TIME} Inspection dump for {re.escape(str(log))}\n={{70}}\n", text)
    for line in ("   Is connected: true", "    Term length: 65536", "     MTU length: 1408", "     Term count: 0"):
        assert f"\n{line}\n" in text
    assert [(frame["offset"], frame["frame-length"], frame["flags"], frame["type"]) for frame in _frames(text, 0)] == [
        (0, 1408, "10000000", 1),
        (1408, 1408, "00000000", 1),
        (2816, 280, "01000000", 1),
        (3104, 37, "11000000", 1),
        (3168, 82, "11000000", 0),
        (3264, 36, "11000000", 1),
        (3328, 0, "00000000", 0),
    ]
    assert all(frame["term-offset"] == frame["offset"] for frame in _frames(text, 0)[:-1])
    assert "Index 0 Term Meta Data termOffset=3328 termId=" in text


def test_inspect_prints_the_padding_at_the_end_of_a_term(scene: Scene) -> None:
    """06-8: the stream began within a term, so zeros precede its frames"""
    text = run("inspect", scene.log(scene.rotated), 0, "-z").stdout
    frames = [(frame["offset"], frame["frame-length"], frame["type"]) for frame in _frames(text, 0)]
    assert frames == [(61440, 1408, 1), (62848, 1408, 1), (64256, 1280, 0)]
    assert [(frame["offset"], frame["term-id"]) for frame in _frames(text, 1)] == [(0, 6)]
    assert re.search(r"^     Term count: 1$", text, re.MULTILINE)
    assert re.search(
        r"^Index 0 Term Meta Data termOffset=65664 termId=5 rawTail=\d+ position=65536$", text, re.MULTILINE
    )


def test_inspect_shows_payloads_in_hex_or_ascii_up_to_a_limit(scene: Scene) -> None:
    """06-8"""
    log = scene.log(scene.publication)
    assert _payload(run("inspect", log, 4).stdout) == "4BC34BC3"
    assert _payload(run("inspect", log, 4, "-f", "ascii").stdout) == "K\0K\0"
    assert _payload(run("inspect", log, 0).stdout) == ""
    assert len(_payload(run("inspect", log).stdout)) == 2 * 1376


def test_inspect_omits_the_default_header_and_continues_after_gaps_on_request(scene: Scene, tmp_path: Path) -> None:
    """06-8"""
    log = scene.log(scene.publication)
    assert "\ndefault DATA Header{" in run("inspect", log, 0).stdout
    assert "\ndefault " not in run("inspect", log, 0, "-d").stdout
    gap = tmp_path / "gap.logbuffer"
    shutil.copy(log, gap)
    with gap.open("r+b") as file:
        file.seek(1408)
        file.write(bytes(1408))
    stopped, scanned = (_frames(run("inspect", gap, 0, *option).stdout, 0) for option in ((), ("-z",)))
    assert [frame["offset"] for frame in stopped] == [0, 1408]
    assert [frame["offset"] for frame in scanned] == [0, 2816, 3104, 3168, 3264]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-f", "bin"], "'bin' is not one of 'hex', 'ascii'"),
        (["--frobnicate"], "No such option"),
        (["-1"], "-1"),
        ([f"{10**30}"], "is not in the range 0<=x<=2147483647"),
    ],
)
def test_inspect_with_an_invalid_option_has_status_1(scene: Scene, arguments: list[str], says: str) -> None:
    """06-8"""
    result = run("inspect", scene.log(scene.publication), *arguments)
    assert result.exit_code == 1
    assert says in result.stderr
    assert result.stdout == ""


def test_a_period_above_the_maximum_is_a_usage_error(scene: Scene) -> None:
    result = run("stat", "--dir", scene.driver.dir, "-u", f"{10**30}")
    assert result.exit_code == 1
    assert "is not in the range 10<=x<=1000000000" in result.stderr


@pytest.mark.parametrize("content", [b"", b"no log", bytes(100_000), b"\xff" * 200_000])
def test_inspect_refuses_a_file_that_is_not_a_log(tmp_path: Path, content: bytes) -> None:
    """06-8"""
    file = tmp_path / "no.logbuffer"
    file.write_bytes(content)
    result = run("inspect", file)
    assert result.exit_code == 1
    assert str(file) in result.stderr
    assert result.stdout == ""


def _frames(text: str, index: int) -> list[dict[str, int | str]]:
    """Returns the printed frames of a term: the fields of each header by name."""
    term = re.split(r"^Index \d Term Data\n", text, flags=re.MULTILINE)[1 + index]
    frames = []
    for offset, header in re.findall(r"^(\d+): DATA Header\{(.*)\}$", term, re.MULTILINE):
        fields = dict(field.split("=") for field in header.split())
        numbers = {name: int(value) for name, value in fields.items() if name != "flags"}
        frames.append({"offset": int(offset), "flags": fields["flags"], **numbers})
    return frames


def _payload(text: str) -> str:
    """Returns the printed payload of the first frame."""
    return re.search(r"^0: DATA Header\{.*\}\n(.*)$", text, re.MULTILINE)[1]


# ---- all commands --------------------------------------------------------------------------------------------------

TOOLS = [["stat", "--once"], ["errors"], ["streams"], ["info"], ["info", "--terminate"]]


@pytest.mark.parametrize("tool", TOOLS, ids=" ".join)
def test_a_command_without_a_driver_fails_after_its_timeout(tmp_path: Path, tool: list[str]) -> None:
    """06-9"""
    start = time.monotonic()
    result = run(*tool, "--dir", tmp_path / "none", "--timeout", 1100)
    # The option exceeds the default of one second, so a command that ignores the option ends too early.
    assert 1.1 <= time.monotonic() - start < 10
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "CnC file not created" in result.stderr
    assert "Timed out waiting for CnC file to become available after 1100ms" in result.stderr
    assert f"start one with 'aeron driver --dir {tmp_path}/none'" in result.stderr


@pytest.mark.parametrize(
    "command",
    ["stat", "errors", "loss", "streams", "info", "inspect", "pub", "sub", "ping", "pong", "rate", "demo"],
)
def test_an_unknown_option_shows_the_usage(command: str) -> None:
    """06-9"""
    result = run(command, "--frobnicate")
    assert result.exit_code == 1
    assert f"Usage: aeron {command}" in result.stderr
    assert "No such option" in result.stderr


@pytest.mark.parametrize("tool", TOOLS[:4], ids=" ".join)
def test_the_directory_option_overrides_the_directory_of_the_environment(
    scene: Scene, tmp_path: Path, tool: list[str]
) -> None:
    """06-10"""
    assert run(*tool, AERON_DIR=scene.directory).exit_code == 0
    assert run(*tool, "--dir", scene.directory, AERON_DIR=str(tmp_path)).exit_code == 0
    refused = run(*tool, "--dir", tmp_path, "-t", 1, AERON_DIR=scene.directory)
    assert str(tmp_path) in refused.stderr


def test_commands_do_not_change_the_files_of_a_driver(scene: Scene, tmp_path: Path) -> None:
    """06-12: the tools read a copy of the files, to which no process writes"""
    directory = tmp_path / "aeron"
    shutil.copytree(scene.directory, directory)
    log = directory / "publications" / scene.log(scene.publication).name
    before = _state(directory)
    for tool in (*TOOLS[:4], ["loss"], ["stat", "--json"], ["errors", "--json"], ["info", "-P"]):
        assert run(*tool, "--dir", directory).exit_code == 0
    assert run("inspect", log).exit_code == 0
    assert run("inspect", log, "-z", "-f", "ascii").exit_code == 0
    assert _state(directory) == before


def _state(directory: Path) -> dict[str, tuple[int, int, str]]:
    files = {path: path.stat() for path in sorted(directory.rglob("*"))}
    return {
        str(path): (
            stat.st_mtime_ns,
            stat.st_size,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path, stat in files.items()
    }
