"""Tests of ``aeron send`` and ``aeron receive`` with files of any length, and with hostile names and messages."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

import aeron
from aeron.cli.file_messages import BadMessageError, Chunk, Create, decode, encode
from commands import Command, run

CHANNEL = "aeron:ipc?term-length=64k"


@pytest.fixture(scope="module")
def driver() -> Iterator[aeron.MediaDriver]:
    with aeron.MediaDriver(timer_interval_ns=50_000_000, publication_linger_timeout_ns=10_000_000) as driver:
        yield driver


def test_files_of_any_length_arrive_unchanged(driver: aeron.MediaDriver, tmp_path: Path) -> None:
    """06-20: an empty file, and files of one chunk, of a chunk and a byte, and of several megabytes; one file is
    replaced"""
    sent, received = tmp_path / "sent", tmp_path / "received"
    sent.mkdir()
    received.mkdir()
    chunk_length = 1408 - 32 - 32
    contents = {
        "empty": b"",
        "one chunk": bytes(chunk_length),
        "one byte more": bytes(range(256)) * 5 + bytes(chunk_length - 1279),
        "größer": b"".join(struct.pack("<q", number) for number in range(500_000)),
    }
    (received / "one chunk").write_bytes(b"what was there before")
    with Command("receive", received, "--dir", driver.dir, "-c", CHANNEL, "--files", len(contents)) as receive:
        for name, content in contents.items():
            (sent / name).write_bytes(content)
            result = run("send", sent / name, "--dir", driver.dir, "-c", CHANNEL)
            assert result.exit_code == 0, result.output
            assert f"Sent {name}, {len(content)} bytes" in result.stdout
        assert receive.end(30) == 0
        assert receive.errors() == ""
    assert {file.name: file.read_bytes() for file in received.iterdir()} == contents


@pytest.mark.parametrize("name", ["../escaped", "/tmp/aeron-escaped", "sub/escaped", "..", ".", "", "a\\b", "nul\0"])
def test_a_name_outside_the_directory_is_refused_and_the_next_file_is_received(
    name: str, driver: aeron.MediaDriver, tmp_path: Path
) -> None:
    """06-20"""
    into = tmp_path / "into"
    into.mkdir()
    with (
        Command("receive", into, "--dir", driver.dir, "-c", CHANNEL, "--files", 1) as receive,
        aeron.connect(driver) as client,
    ):
        publication = client.add_exclusive_publication(CHANNEL, 1001)
        publication.wait_connected(20)
        for message in (Create(1, 3, name), Chunk(1, 0, b"bad"), Create(2, 4, "good"), Chunk(2, 0, b"file")):
            publication.publish(encode(message), 20)
        assert receive.end(30) == 0
        assert f"Refused file {name!r}" in receive.errors()
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")] == ["into", "into/good"]
    assert (into / "good").read_bytes() == b"file"


def test_an_invalid_chunk_ends_its_file_and_no_other_file(driver: aeron.MediaDriver, tmp_path: Path) -> None:
    """06-20"""
    nonsense = [
        b"",
        b"short",
        encode(Create(9, 1, "cut"))[:-1],
        struct.pack("<iiq", 0, 7, 1),
        struct.pack("<iiq", 1, 1, 1),
    ]
    with (
        Command("receive", tmp_path, "--dir", driver.dir, "-c", CHANNEL, "--files", 1) as receive,
        aeron.connect(driver) as client,
    ):
        publication = client.add_exclusive_publication(CHANNEL, 1001)
        publication.wait_connected(20)
        messages: list[Create | Chunk] = [
            Create(1, 4, "beyond"),
            Create(2, 4, "before"),
            Create(3, 4, "unfinished"),
            Create(4, 4, "whole"),
            Create(6, 4, "without its beginning"),
            Chunk(6, 2, b"34"),
            Chunk(1, 2, b"123"),
            Chunk(2, -1, b"1"),
            Chunk(3, 0, b"12"),
            Chunk(5, 0, b"never announced"),
            Chunk(4, 0, b"good"),
        ]
        for payload in [*nonsense, *map(encode, messages)]:
            publication.publish(payload, 20)
        assert receive.end(30) == 0
        errors = receive.errors()
    assert errors.count("Ignored a message") == len(nonsense)
    assert "Refused file 'beyond'" in errors
    assert "Refused file 'before'" in errors
    assert "Refused file 'without its beginning'" in errors
    assert [path.name for path in tmp_path.iterdir()] == ["whole"]


def test_a_file_transfer_fails_if_the_receiver_leaves(driver: aeron.MediaDriver, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(4 << 20))
    with aeron.connect(driver) as client:
        subscription = client.add_subscription(CHANNEL, 1001)
        with Command("send", file, "--dir", driver.dir, "-c", CHANNEL) as send:
            subscription.wait_connected(20)
            while subscription.poll(lambda payload, header: None) == 0:
                pass
            subscription.close()
            assert send.end(30) == 1
            assert "the receiver is gone" in send.errors()


def test_a_received_file_replaces_only_a_regular_file(driver: aeron.MediaDriver, tmp_path: Path) -> None:
    """06-20, 07-191"""
    os.mkfifo(tmp_path / "pipe")
    with (
        Command("receive", tmp_path, "--dir", driver.dir, "-c", CHANNEL, "--files", 1) as receive,
        aeron.connect(driver) as client,
    ):
        publication = client.add_exclusive_publication(CHANNEL, 1001)
        publication.wait_connected(20)
        for message in (Create(1, 3, "pipe"), Chunk(1, 0, b"bad"), Create(2, 4, "good"), Chunk(2, 0, b"file")):
            publication.publish(encode(message), 20)
        assert receive.end(30) == 0
        assert "Refused file 'pipe'" in receive.errors()
    assert (tmp_path / "pipe").is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good", "pipe"]


def test_no_file_is_received_into_the_directory_of_a_driver(driver: aeron.MediaDriver) -> None:
    """07-191"""
    result = run("receive", driver.dir, "--dir", driver.dir, "-c", CHANNEL)
    assert result.exit_code == 1
    assert "is the directory of an archive or a driver" in result.stderr


def test_a_pipe_is_not_sent_and_its_log_is_not_read(driver: aeron.MediaDriver, tmp_path: Path) -> None:
    """07-191: opening a pipe would block the process"""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for command in (["send", pipe, "--dir", driver.dir, "-c", CHANNEL], ["inspect", pipe], ["errors", "-f", pipe]):
        with Command(*command) as process:
            assert process.end(20) == 1
            assert "not a regular file" in process.errors()


def test_decoded_messages_equal_the_encoded_ones() -> None:
    for message in (Create(-1, 0, ""), Create(5, 1 << 40, "ä"), Chunk(5, 1 << 40, b"x"), Chunk(5, 0, b"")):
        assert decode(encode(message)) == message
    for payload in (b"", bytes(15), encode(Create(1, -1, "x")), encode(Chunk(1, 0, b"xy"))[:-1]):
        with pytest.raises(BadMessageError):
            decode(payload)
