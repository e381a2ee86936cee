"""Runs `aeron archive` and the real `ArchiveTool` on equal directories, and compares counts, verdicts and files."""

import json
import os
import random
import re
import shutil
import struct
import time

import pytest

import aeron
from commands import run
from interop.archive_protocol import Connection
from interop.archive_tool import ArchiveTool
from interop.waiting import eventually

_CHANNEL = "aeron:ipc?term-length=64k"
_ENTRY_STATE, _ENTRY_CHECKSUM, _START_POSITION, _STOP_POSITION = 4, 8, 72, 80
_STOP_TIMESTAMP = 64
_INVALID = 0


class Directories:
    """Two copies of an archive directory: one for our command and one for the real tool."""

    def __init__(self, directory):
        _age(directory)
        self.ours, self.real = (directory.with_name(f"{directory.name}-{name}") for name in ("ours", "real"))
        for copy in (self.ours, self.real):
            shutil.copytree(directory, copy)
        self.tool = ArchiveTool(self.real)

    def assert_same(self):
        """Checks that both copies have the same catalog entries and segment files."""
        assert _entries(self.ours) == _entries(self.real)
        assert _segments(self.ours) == _segments(self.real)


def _age(directory):
    """Makes the heartbeat of a killed archive so old that its directory may be used."""
    with open(directory / "archive-mark.dat", "r+b") as mark_file:
        mark_file.seek(16)
        (timestamp,) = struct.unpack("<q", mark_file.read(8))
        if timestamp > 0:
            mark_file.seek(16)
            mark_file.write(struct.pack("<q", int(time.time() * 1000) - 60_000))


def _segments(directory):
    return {path.name: path.read_bytes() for path in directory.glob("*.rec*")}


def _offsets(catalog):
    """Returns the offset of each recording's entry in the catalog."""
    offsets, at = {}, 32
    while at + 32 <= len(catalog) and (length := struct.unpack_from("<i", catalog, at)[0]) > 0:
        (recording,) = struct.unpack_from("<q", catalog, at + 48)
        offsets[recording] = at
        at += 32 + length
    return offsets


def _entries(directory):
    """Returns the header of the catalog, and the state, start position and stop position of each recording."""
    catalog = (directory / "archive.catalog").read_bytes()
    entries = {
        recording: (
            struct.unpack_from("<i", catalog, at + _ENTRY_STATE)[0],
            *struct.unpack_from("<qq", catalog, at + _START_POSITION),
        )
        for recording, at in _offsets(catalog).items()
    }
    return catalog[:32], entries


def _without_times(directory):
    """Returns the bytes of the catalog without the stop timestamps."""
    catalog = bytearray((directory / "archive.catalog").read_bytes())
    for at in _offsets(catalog).values():
        catalog[at + _STOP_TIMESTAMP : at + _STOP_TIMESTAMP + 8] = bytes(8)
    return bytes(catalog)


def _patched(recording, field, form, value):
    def change(directory):
        path = directory / "archive.catalog"
        catalog = bytearray(path.read_bytes())
        struct.pack_into(form, catalog, _offsets(catalog)[recording] + field, value)
        path.write_bytes(catalog)

    return change


def _written(name, offset, data):
    def change(directory):
        with open(directory / name, "r+b") as segment:
            segment.seek(offset)
            segment.write(data)

    return change


def _removed(*names):
    return lambda directory: [(directory / name).unlink() for name in names]


def _cut(name, length):
    return lambda directory: os.truncate(directory / name, length)


def _made(*names):
    return lambda directory: [(directory / name).write_bytes(b"x") for name in names]


def _both(*changes):
    return lambda directory: [change(directory) for change in changes]


def _nothing(directory):
    pass


def _verdicts(shown):
    return re.findall(r"\(recordingId=(\d+)[^)]*\) (OK|ERR|skipping)", shown)


@pytest.mark.parametrize("state", ["stopped", "purged", "killed", "extended-with-checksums"])
def test_the_command_shows_the_same_recordings_count_and_process_id_as_the_tool(written, state):
    """07-132: describe, describe-all, count and pid; 07-66: deleted entries do not count, and no command fails
    because of them."""
    both = Directories(written(state))
    for command in ("describe", "describe-all"):
        ours = run("archive", command, both.ours)
        assert ours.exit_code == 0
        real = both.tool.succeed(command)
        assert _descriptors(ours.stdout) == _descriptors(real)
        assert _heading(ours.stdout) == _heading(real)
    assert run("archive", "count", both.ours).stdout == both.tool.succeed("count-entries")
    assert run("archive", "pid", both.ours).stdout == both.tool.succeed("pid")
    listed = json.loads(run("archive", "list", both.ours, "--json").stdout)
    assert len(listed) == int(both.tool.succeed("count-entries"))
    both.assert_same()


def _heading(shown):
    return [line for line in shown.splitlines() if line.startswith(("[MarkFileHeader]", "Catalog capacity"))]


def _descriptors(shown):
    return [line for line in shown.splitlines() if line.startswith("[RecordingDescriptor]")]


def test_the_command_dumps_the_same_frames_as_the_tool(written):
    """07-132"""
    both = Directories(written("stopped"))
    ours, real = run("archive", "dump", both.ours), both.tool.run("dump")
    assert ours.exit_code == real.returncode == 0
    assert _frames(ours.stdout) == _frames(real.stdout)
    assert len(_frames(ours.stdout)) > 100


def _frames(shown):
    found = re.findall(
        r"^Frame at position \[(\d+)\] (?:data|padding) at offset \[(\d+)\] with length = (\d+)$", shown, re.MULTILINE
    )
    return [frame for frame in found if int(frame[2]) < 10_000]


def test_the_command_dumps_an_archive_with_deleted_and_invalid_entries(written):
    """07-132: the tool fails for such a catalog."""
    directory = written("purged")
    _patched(2, _ENTRY_STATE, "<i", _INVALID)(directory)
    shown = run("archive", "dump", directory, "--json")
    assert shown.exit_code == 0
    lines = [json.loads(line) for line in shown.stdout.splitlines()]
    states = {line["recording_id"]: line["state"] for line in lines if line["type"] == "recording"}
    assert states == {0: "VALID", 1: "DELETED", 2: "INVALID"}


_VERIFIED = {
    **{state: (state, _nothing, "n") for state in ("stopped", "purged", "killed", "padding", "undoing", "created")},
    "torn kept": ("torn", _nothing, "n"),
    "torn cut": ("torn", _nothing, "y"),
    "zero page kept": ("zero-page", _nothing, "n"),
    "zero page cut": ("zero-page", _nothing, "y"),
    "segment end": ("segment-end", _nothing, "n"),
    "migrated": ("migrated", _nothing, "n"),
    "hole": ("stopped", _removed("0-131072.rec"), "n"),
    "first segment missing": ("stopped", _removed("0-0.rec"), "n"),
    "last segment missing": ("stopped", _removed("0-262144.rec"), "n"),
    "next segment missing": ("stopped", _removed("1-327680.rec"), "n"),
    "no segments": ("stopped", _removed("2-0.rec"), "n"),
    "bad offset": ("stopped", _written("0-0.rec", 8, b"\x07"), "n"),
    "bad stream": ("stopped", _written("0-262144.rec", 16, b"\x07"), "n"),
    "zeros in front": ("stopped", _written("0-0.rec", 0, bytes(4)), "n"),
    "zeros at the end": ("killed", _written("1-196608.rec", 0, bytes(131072)), "n"),
    "stop too early": ("stopped", _patched(0, _STOP_POSITION, "<q", 300_000 // 32 * 32), "n"),
    "stop too late": ("stopped", _patched(0, _STOP_POSITION, "<q", 315_520 + 3200), "n"),
    "unaligned start": ("stopped", _patched(0, _START_POSITION, "<q", 5), "n"),
    "stop before start": ("stopped", _patched(1, _STOP_POSITION, "<q", 64), "n"),
    "invalid with segments": ("stopped", _patched(1, _ENTRY_STATE, "<i", _INVALID), "n"),
    "invalid without": ("stopped", _both(_patched(2, _ENTRY_STATE, "<i", _INVALID), _removed("2-0.rec")), "n"),
    "short segment": ("stopped", _cut("0-262144.rec", 60_000), "n"),
    "cut amid a frame": ("stopped", _cut("2-0.rec", 1000), "n"),
    "empty segment": ("stopped", _cut("0-262144.rec", 0), "n"),
}


@pytest.mark.parametrize("name", _VERIFIED)
def test_the_command_verifies_and_repairs_like_the_tool(written, name):
    """07-132, 07-133, 07-79: without --repair the verdicts are the same, and no file changes."""
    state, change, answer = _VERIFIED[name]
    directory = written(state)
    change(directory)
    both = Directories(directory)
    before = _tree(both.ours)
    if answer == "n":
        looked = run("archive", "verify", both.ours, "-a")
        assert _tree(both.ours) == before
    real = both.tool.run("verify", "-a", answer=answer)
    torn = "truncate" if answer == "y" else "keep"
    ours = run("archive", "verify", both.ours, "-a", "--repair", "--on-torn-fragment", torn)
    assert _verdicts(ours.stdout) == _verdicts(real.stdout)
    assert ours.exit_code == real.returncode
    if answer == "n":
        assert (looked.exit_code, _verdicts(looked.stdout)) == (ours.exit_code, _verdicts(ours.stdout))
    both.assert_same()


def _tree(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_the_verdict_on_a_damaged_recording_is_never_milder_than_the_tools(written):
    """07-133: the verdict may be stricter about the type and the length of a frame. Otherwise it is the same."""
    directory = written("stopped")
    damages = _make_damaged_recordings(directory, 60)
    both = Directories(directory)
    real = dict(_verdicts(both.tool.run("verify", "-a").stdout))
    shown = run("archive", "verify", both.ours, "-a", "--repair", "--on-torn-fragment", "keep").stdout
    ours = dict(_verdicts(shown))
    (_, entries), (_, real_entries) = _entries(both.ours), _entries(both.real)
    for recording, damage in damages.items():
        verdicts = ours[str(recording)], real[str(recording)]
        if damage in ("type", "length"):
            assert verdicts != ("OK", "ERR"), (recording, damage)
        else:
            assert verdicts[0] == verdicts[1], (recording, damage)
            assert entries[recording] == real_entries[recording], (recording, damage)
    assert set(ours.values()) == {"OK", "ERR"}


def _make_damaged_recordings(directory, count):
    """Replaces all recordings by `count` recordings with one segment and one damaged frame each.

    Returns the kind of damage by recording.
    """
    generator = random.Random(7)
    catalog = (directory / "archive.catalog").read_bytes()
    whole = (directory / "0-0.rec").read_bytes()
    for path in directory.glob("*.rec"):
        path.unlink()
    damages = {}
    entries = bytearray(struct.pack("<8sq16s", catalog[:8], count, catalog[16:32]))
    for recording in range(count):
        # The last frame stays undamaged, because the tool asks on standard input about a torn last frame.
        damaged, last = generator.choice(_frames_of(whole)[:20]), generator.choice(_frames_of(whole)[21:40])
        segment = bytearray(whole[:last].ljust(len(whole), b"\0"))
        field, value = generator.choice(list(_DAMAGES.values()))
        struct.pack_into("<i", segment, damaged + field, value)
        damages[recording] = next(name for name, damage in _DAMAGES.items() if damage == (field, value))
        (directory / f"{recording}-0.rec").write_bytes(segment)
        entry = bytearray(catalog[32 : _offsets(catalog)[1]])
        struct.pack_into("<q", entry, 48, recording)
        struct.pack_into("<q", entry, _STOP_POSITION, generator.choice((-1, last)))
        entries += entry
    (directory / "archive.catalog").write_bytes(entries)
    return damages


def _frames_of(segment):
    """Returns the offsets of the frames in the first term."""
    frames, at = [], 0
    while at < 64 * 1024 and (length := struct.unpack_from("<i", segment, at)[0]) > 0:
        frames.append(at)
        at += (length + 31) // 32 * 32
    return frames


# By kind of damage: an offset in a frame's header, and a wrong value for the field at that offset.
_DAMAGES = {
    "length": (0, 1),
    "type": (4, 0x00410000),
    "offset": (8, 7),
    "session": (12, 7),
    "stream": (16, 7),
    "term": (20, 7),
    "end": (0, 0),
    "reserved": (24, 7),
}


@pytest.mark.parametrize("state", ["stopped", "killed", "purged"])
def test_the_command_writes_the_same_checksums_as_the_tool(written, state):
    """07-132, 07-51: first the checksums of the last segment file, then those of all segment files."""
    both = Directories(written(state))
    for arguments in ((), ("-a",)):
        assert run("archive", "checksum", both.ours, "CRC-32C", *arguments).exit_code == 0
        both.tool.succeed("checksum", "CRC-32C", *arguments)
        both.assert_same()
        assert _without_times(both.ours) == _without_times(both.real)
    for checksum, status in (("CRC-32C", 0), ("CRC-32", 255)):
        ours = run("archive", "verify", both.ours, "-a", "--checksum", checksum)
        real = both.tool.run("verify", "-a", "-checksum", checksum)
        assert ours.exit_code == real.returncode == status
        assert _verdicts(ours.stdout) == _verdicts(real.stdout)


def test_a_repair_without_a_checksum_option_updates_the_checksum_of_the_entry(written):
    """07-63; section 22: a repair by the tool keeps the old checksum, so the tool's next verification reports the
    recording as damaged."""
    directory = written("killed")
    _age(directory)
    assert run("archive", "checksum", directory, "CRC-32C", "-a").exit_code == 0
    assert run("archive", "verify", directory, "-a", "--repair").exit_code == 0
    assert not ArchiveTool(directory).verify(checksum="CRC-32C")


@pytest.mark.parametrize("state", ["stopped", "extended-with-checksums"])
def test_the_command_marks_recordings_like_the_tool(written, state):
    """07-132, 07-66"""
    both = Directories(written(state))
    for command in ("mark-invalid", "mark-invalid", "mark-valid", "mark-valid", "mark-invalid"):
        assert run("archive", command, both.ours, 0).stdout == both.tool.succeed(command, "0")
        both.assert_same()
        assert _without_times(both.ours) == _without_times(both.real)


def test_the_command_refuses_the_same_requests_as_the_tool(written, tmp_path):
    """07-132: the command and the tool end with the same exit status."""
    both = Directories(written("purged"))
    for command, *arguments in (
        ("describe", 9),
        ("verify", 9),
        ("mark-valid", 1),
        ("mark-invalid", 1),
        ("mark-invalid", 9),
    ):
        ours = run("archive", command, both.ours, *arguments)
        real = both.tool.run(command, *map(str, arguments))
        assert ours.exit_code == real.returncode == 1
        assert _reason(ours.stderr) == _reason(real.stderr)
    assert run("archive", "checksum", both.ours, "CRC-32", 1).exit_code == 1
    assert both.tool.run("checksum", "CRC-32", "1").returncode == 1
    assert run("archive", "no-such-command", both.ours).exit_code == both.tool.run("no-such-command").returncode == 255
    missing = tmp_path / "missing"
    assert run("archive", "describe", missing).exit_code == ArchiveTool(missing).run("describe").returncode == 255
    both.assert_same()


def _reason(shown):
    return re.search(r"(no recording found|state transition).*", shown)[0]


def test_a_catalog_older_than_version_3_is_refused_with_a_hint_to_the_tool(written):
    """07-67"""
    directory = written("stopped")
    _written("archive.catalog", 0, struct.pack("<i", 0x020000))(directory)
    for command in (("describe",), ("count",), ("verify", "--repair"), ("compact", "-y")):
        ours = run("archive", command[0], directory, *command[1:])
        assert ours.exit_code == 1
        assert "incompatible catalog file version 2.0.0" in ours.stderr
        assert "io.aeron.archive.ArchiveTool" in ours.stderr


def test_the_command_compacts_a_catalog_like_the_tool(written):
    """07-132, 07-64"""
    directory = written("purged")
    _patched(2, _ENTRY_STATE, "<i", _INVALID)(directory)
    _made("1-0.rec")(directory)
    both = Directories(directory)
    ours, real = run("archive", "compact", both.ours, "--yes"), both.tool.succeed("compact", answer="y")
    assert ours.stdout.strip() in real
    both.assert_same()
    assert _without_times(both.ours) == _without_times(both.real)
    assert sorted(path.name for path in both.ours.iterdir()) == sorted(path.name for path in both.real.iterdir())


@pytest.mark.parametrize("arguments", [(), ("1",)])
@pytest.mark.parametrize("state", ["stopped", "killed", "purged"])
def test_the_command_deletes_the_same_orphaned_segments_as_the_tool(written, state, arguments):
    """07-132, 07-110"""
    directory = written(state)
    names = [
        "0-393216.rec",
        "0-524288.rec",
        "99-0.rec",
        "1-0.rec",
        "1-458752.rec",
        "2-131072.rec",
        "0-7.rec",
        "foo.rec",
        "0-0.txt",
    ]
    _made(*(name for name in names if not (directory / name).exists()))(directory)
    _patched(2, _ENTRY_STATE, "<i", _INVALID)(directory)
    both = Directories(directory)
    assert run("archive", "delete-orphans", both.ours, *arguments, "--yes").exit_code == 0
    both.tool.succeed("delete-orphaned-segments", *arguments, answer="y")
    both.assert_same()
    assert sorted(path.name for path in both.ours.iterdir()) == sorted(path.name for path in both.real.iterdir())


@pytest.mark.parametrize("kind", ["ours", "java"])
def test_the_command_reads_a_live_archive_and_refuses_to_change_it(
    drivers, start_archive, archive_client, kind, stream
):
    """07-132: unlike the tool, the command refuses to change a live archive. After a kill it repairs like the tool."""
    driver = drivers("ours")
    archive = start_archive(kind, driver)
    client = archive_client(driver, archive)
    publication = client.add_recorded_publication(_CHANNEL, stream, exclusive=True)
    recording = client.await_signal("START")["recording"]
    publication.start_publish(400, (10, 3000, 0, 1400, 7))
    assert client.peer.answer()["sent"] == 400
    client.await_recorded(recording, publication.state()["position"])
    tool = ArchiveTool(archive.directory)
    before = _segments(archive.directory)
    shown = run("archive", "describe", archive.directory)
    assert _descriptors(shown.stdout) == _descriptors(tool.succeed("describe"))
    assert run("archive", "count", archive.directory).stdout == tool.succeed("count-entries")
    assert run("archive", "pid", archive.directory).stdout == f"{archive.process.pid}\n" == tool.succeed("pid")
    errors = json.loads(run("archive", "errors", archive.directory, "--json").stdout)
    assert errors == {"archive": [], "driver": []}
    assert "0 distinct" in run("archive", "errors", archive.directory).stdout
    assert run("archive", "verify", archive.directory, "-a").exit_code == 0
    for arguments in (
        ("compact", "-y"),
        ("delete-orphans", "-y"),
        ("verify", "--repair"),
        ("checksum", "CRC-32"),
        ("mark-invalid", recording),
        ("capacity", "2m"),
    ):
        refused = run("archive", arguments[0], archive.directory, *arguments[1:])
        assert refused.exit_code == 1
        assert "active mark file detected" in refused.stderr
    assert _segments(archive.directory) == before
    archive.kill()
    if kind == "ours":
        # The lock shows that our archive is dead, so the command need not wait for the heartbeat to become old.
        assert run("archive", "verify", archive.directory, "--repair").exit_code == 0
    both = Directories(archive.directory)
    both.tool.verify()
    assert run("archive", "verify", both.ours, "-a", "--repair").exit_code == 0
    both.assert_same()


@pytest.mark.parametrize("kind", ["ours", "java"])
def test_the_command_shows_the_same_errors_as_the_tool(drivers, start_archive, tmp_path, kind):
    """07-132, 07-74: the mark file is in another directory, and a link file names that directory."""
    driver = drivers("ours")
    archive = start_archive(kind, driver, {"aeron.archive.mark.file.dir": str(tmp_path)})
    with aeron.connect(driver.directory) as client:
        Connection(client, archive).send_connect("nonsense")
        eventually(archive.error_log)
    assert (archive.directory / "archive-mark.lnk").exists()
    real = ArchiveTool(archive.directory).succeed("errors")
    shown = run("archive", "errors", archive.directory).stdout
    [error] = json.loads(run("archive", "errors", archive.directory, "--json").stdout)["archive"]
    observed = f"{error['observation_count']} observations from"
    assert observed in real
    assert observed in shown
    # Only the first line is compared, because Java indents the lines of a stack trace differently.
    for line in error["text"].splitlines()[:1]:
        assert line in real
        assert line in shown
    assert run("archive", "pid", archive.directory).stdout == f"{archive.process.pid}\n"
