"""Tests of the channel builder."""

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
    """05-46: parsing a built channel and building it again returns the same channel."""
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
    """05-22: the publication reports the position immediately after it is added."""
    channel = aeron.ChannelUriBuilder()
    channel.initial_position(65536 * 3 + 64, 7, 65536)
    assert str(channel) == "aeron:ipc?term-length=64k|init-term-id=7|term-id=10|term-offset=64"
    publication = client.add_exclusive_publication(channel, stream_id)
    assert publication.position == 65536 * 3 + 64
    assert publication.initial_term_id == 7
    with pytest.raises(aeron.InvalidChannelError):
        channel.initial_position(5, 0, 65536)


def test_flow_control_is_built_from_its_parts() -> None:
    channel = aeron.ChannelUriBuilder("udp", control="localhost:1", control_mode="dynamic")
    assert channel.min_flow_control().get("fc") == "min"
    assert channel.min_flow_control(2, 5_000_000_000).get("fc") == "min,g:/2,t:5s"
    assert channel.tagged_flow_control().get("fc") == "tagged"
    assert channel.tagged_flow_control(group_tag=-7).get("fc") == "tagged,g:-7"
    full = channel.tagged_flow_control(group_tag=100, group_min_size=3, receiver_timeout_ns=250_000_000)
    assert full is channel
    assert full.get("fc") == "tagged,g:100/3,t:250ms"
    channel.validate()
    with pytest.raises(aeron.InvalidChannelError):
        channel.min_flow_control(group_min_size=-1)


def test_network_settings_of_a_channel_are_checked_when_they_are_set() -> None:
    """05-29, 05-30, 05-31: the builder prints the parameters in its own order"""
    channel = aeron.ChannelUriBuilder(
        "udp",
        endpoint="224.10.9.7:40123",
        interface="localhost",
        ttl=4,
        fc="max,rrwm:8",
        cc="cubic",
        gtag=-1,
        rcv_wnd=262144,
        so_rcvbuf="2m",
        so_sndbuf="1m",
        nak_delay="2ms",
        max_resend=32,
        media_rcv_ts_offset="reserved",
        channel_snd_ts_offset=8,
        response_correlation_id="prototype",
        group="infer",
    )
    assert str(channel) == (
        "aeron:udp?endpoint=224.10.9.7:40123|interface=localhost|ttl=4|cc=cubic|fc=max,rrwm:8|gtag=-1|group=infer"
        "|so-sndbuf=1m|so-rcvbuf=2m|rcv-wnd=256k|media-rcv-ts-offset=reserved|channel-snd-ts-offset=8"
        "|response-correlation-id=prototype|nak-delay=2ms|max-resend=32"
    )
    for name, value in [
        ("fc", "fastest"),
        ("fc", "min,g:100/x"),
        ("ttl", 256),
        ("max_resend", 257),
        ("gtag", "x"),
        ("control_mode", "automatic"),
        ("channel_rcv_ts_offset", "here"),
        ("response_correlation_id", -2),
        ("nak_delay", "-1s"),
    ]:
        with pytest.raises(aeron.InvalidChannelError):
            channel.put(name, value)
