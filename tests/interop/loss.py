"""Settings that make a driver lose datagrams, and a reader of the loss report."""

import struct
from pathlib import Path

_ENTRY_HEADER = struct.Struct("<4qii")
_ALL_FRAMES = "0xFFFF"
_PATIENT = {"AERON_IMAGE_LIVENESS_TIMEOUT": "10s"}
_INCOMING = "AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS"
_ARGUMENTS = "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS"
_JAVA_SUPPLIERS = {
    f"aeron.{side}ChannelEndpoint.supplier": f"io.aeron.driver.ext.Debug{side}ChannelEndpointSupplier"
    for side in ("Send", "Receive")
}


def lossy(kind, rate):
    """Returns settings of a driver that loses this share of received datagrams.

    The receiver loses data, and the sender loses status messages and NAKs.
    """
    if kind == "java":
        rates = {f"aeron.debug.{what}.loss.rate": str(rate) for what in ("receive.data", "send.control")}
        seeds = {f"aeron.debug.{what}.loss.seed": "27" for what in ("receive.data", "send.control")}
        return {**_PATIENT, **_JAVA_SUPPLIERS, **rates, **seeds}
    return {
        **_PATIENT,
        _INCOMING: "loss",
        f"{_ARGUMENTS}_LOSS_ARGS": f"rate={rate}|seed=27|recv-msg-mask={_ALL_FRAMES}",
    }


def fixed_loss(term, offset, length):
    """Returns settings with which the C driver or ours loses one range of one term, once per session."""
    arguments = f"term-id={term}|term-offset={offset}|length={length}"
    return {_INCOMING: "fixed-loss", f"{_ARGUMENTS}_FIXED_LOSS_ARGS": arguments}


def gaps(term, radix, length, total):
    """Returns settings with which the C driver or ours loses `total` ranges of one term, `radix` bytes apart."""
    arguments = f"term-id={term}|gap-radix={radix}|gap-length={length}|total-gaps={total}"
    return {_INCOMING: "multi-gap-loss", f"{_ARGUMENTS}_MULTI_GAP_LOSS_ARGS": arguments}


def loss_entries(driver):
    """Returns the entries of a driver's loss report."""
    report, at, entries = (Path(driver.directory) / "loss-report.dat").read_bytes(), 0, []
    while at + _ENTRY_HEADER.size <= len(report):
        observations, lost, _, _, session, stream = _ENTRY_HEADER.unpack_from(report, at)
        if observations <= 0:
            break
        channel, end = _text(report, at + _ENTRY_HEADER.size)
        source, end = _text(report, end)
        texts = {"channel": channel, "source": source}
        entries.append({"observations": observations, "bytes": lost, "session": session, "stream": stream, **texts})
        at = _align(end, 64)
    return entries


def _text(report, at):
    """Returns the text with a length prefix at offset `at`, and the offset of the next text."""
    (length,) = struct.unpack_from("<i", report, at)
    return report[at + 4 : at + 4 + length].decode(), _align(at + 4 + length, 4)


def _align(value, alignment):
    return (value + alignment - 1) & ~(alignment - 1)
