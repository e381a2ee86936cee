"""The channel builder."""

from __future__ import annotations

import pytest

import aeron


def test_channels_are_built_from_typed_values() -> None:
    channel = aeron.ChannelUriBuilder("ipc", term_length=65536, alias="trades", sparse=True, linger="5s")
    assert str(channel) == "aeron:ipc?term-length=64k|linger=5s|alias=trades|sparse=true"
    assert channel.build() == str(channel)
    assert channel.get("term_length") == channel.get("term-length") == "64k"
    assert channel.put("alias", None).put("mtu", 8192).get("mtu") == "8k"
    assert channel.get("alias") is None
    channel.clear()
    assert str(channel) == "aeron:ipc"


def test_a_channel_is_parsed_and_built_again() -> None:
    """05-46: build, parse, build is the identity."""
    text = "aeron-spy:aeron:udp?endpoint=localhost:20121|mtu=8k|session-id=5"
    assert str(aeron.ChannelUriBuilder.parse(text)) == text


def test_values_are_checked_when_they_are_set() -> None:
    with pytest.raises(aeron.InvalidChannelError, match="mtu"):
        aeron.ChannelUriBuilder(mtu=33)
    with pytest.raises(ValueError, match="unknown channel parameter"):
        aeron.ChannelUriBuilder(no_such_parameter=1)
    with pytest.raises(ValueError, match="media"):
        aeron.ChannelUriBuilder("tcp")
    with pytest.raises(aeron.InvalidChannelError, match="garbage"):
        aeron.ChannelUriBuilder.parse("garbage")
    with pytest.raises(aeron.InvalidChannelError):
        aeron.ChannelUriBuilder("udp").validate()


def test_an_initial_position_sets_its_four_parameters(client: aeron.Aeron, stream_id: int) -> None:
    """05-22: the position is visible to the client at once."""
    channel = aeron.ChannelUriBuilder()
    channel.initial_position(65536 * 3 + 64, 7, 65536)
    assert str(channel) == "aeron:ipc?term-length=64k|init-term-id=7|term-id=10|term-offset=64"
    publication = client.add_exclusive_publication(channel, stream_id)
    assert publication.position == 65536 * 3 + 64
    assert publication.initial_term_id == 7
    with pytest.raises(aeron.InvalidChannelError):
        channel.initial_position(5, 0, 65536)
