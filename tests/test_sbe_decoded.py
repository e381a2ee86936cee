"""Tests of decoded SBE messages: values are read from the bytes of the message when they are used."""

from __future__ import annotations

import contextlib
import copy
import gc
import mmap
import pickle
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aeron
from aeron.sbe import DecodedEntry, DecodedGroup, DecodedMessage, Schema
from test_sbe_objects import message_of

MARKET = Path(__file__).parent / "sbe" / "market.xml"
SCHEMA = Schema(MARKET)
BOOK = SCHEMA["BookUpdate"]


def book(entries: int = 2, orders: int = 2, note: str = "note") -> bytes:
    order = [{"orderId": number, "quantity": 7} for number in range(orders)]
    entry = {"size": 1, "securityId": 5, "action": "New", "side": "Sell", "orders": order}
    values = [{"price": Decimal(number) / 2, **entry} for number in range(1, entries + 1)]
    return BOOK.encode_one({"transactTime": 5, "flags": ["LastTrade"], "entries": values, "note": note})


def eager(record: Any) -> dict[str, Any]:
    """Reads all elements of a message or an entry by name, one after the other."""

    def value(name: str) -> Any:
        found = record[name]
        return [eager(entry) for entry in found] if isinstance(found, DecodedGroup) else found

    return {name: value(name) for name in record.as_dict()}


# ---- groups and entries ---------------------------------------------------------------------------------------------


def test_a_group_is_a_sequence_of_entries_with_attributes() -> None:
    decoded: Any = SCHEMA.decode(book(3))
    entries = decoded.entries
    assert isinstance(entries, Sequence)
    assert isinstance(entries, DecodedGroup)
    assert isinstance(entries[0], DecodedEntry)
    assert len(entries) == 3
    assert [entry.price for entry in entries] == [Decimal("0.5"), Decimal(1), Decimal("1.5")]
    assert (entries[-1].price, entries[-3]["price"]) == (Decimal("1.5"), Decimal("0.5"))
    assert [entry.price for entry in entries[1:]] == [Decimal(1), Decimal("1.5")]
    assert [entry.price for entry in entries[::-2]] == [Decimal("1.5"), Decimal("0.5")]
    assert [entry.price for entry in reversed(entries)] == [Decimal("1.5"), Decimal(1), Decimal("0.5")]
    assert entries.index(entries[1]) == 1
    assert entries[2] in entries
    assert [order.orderId for order in entries[1].orders] == [0, 1]
    assert not SCHEMA.decode(book(0)).entries
    for index in (3, -4, 2**62, -(2**62)):
        with pytest.raises(IndexError, match=f"entry {index} of group 'entries' does not exist: it has 3"):
            entries[index]
    for index in ("price", 1.5, None, 2**70):
        with pytest.raises((TypeError, OverflowError, IndexError)):
            entries[index]


def test_entries_are_equal_to_dicts_and_groups_to_lists() -> None:
    decoded: Any = SCHEMA.decode(book(1, 1))
    other: Any = SCHEMA.decode(bytearray(book(1, 1)))
    orders = [{"orderId": 0, "quantity": 7}]
    assert decoded.entries[0].orders == orders
    assert decoded.entries[0].orders[0] == orders[0]
    assert decoded.entries == other.entries
    assert decoded.entries[0] == other.entries[0]
    assert decoded.entries[0] != decoded.entries[0].orders[0]
    assert decoded.entries != SCHEMA.decode(book(2, 1)).entries
    assert decoded.entries != 5
    assert decoded != SCHEMA.decode(book(1, 2))
    for unhashable in (decoded, decoded.entries, decoded.entries[0]):
        with pytest.raises(TypeError, match="unhashable"):
            hash(unhashable)


def test_messages_and_entries_have_their_values_by_name_too() -> None:
    decoded = SCHEMA.decode(book())
    assert decoded["note"] == "note"
    assert decoded["entries"][1]["orders"][0]["quantity"] == 7
    with pytest.raises(KeyError, match="a BookUpdate has no element 'nose': it has transactTime, "):
        decoded["nose"]
    with pytest.raises(KeyError, match="a orders has no element 'x': it has orderId, quantity"):
        decoded["entries"][0]["orders"][0]["x"]
    with pytest.raises(AttributeError, match="a entries has no 'prise': it has price, "):
        _ = decoded["entries"][0].prise
    with pytest.raises(TypeError, match="not iterable"):
        iter(decoded)


def test_names_of_entries_get_an_underscore_as_those_of_messages() -> None:
    names = ("class", "as_dict", "x")
    fields = "".join(f'<field name="{name}" id="{id}" type="uint8"/>' for id, name in enumerate(names, 1))
    template = message_of(f'<group name="import" id="9">{fields}</group>')
    values = {"class": 1, "as_dict": 2, "x": 3}
    decoded: Any = template.decode(template.encode_one({"import": [values]}))
    entry = decoded.import_[0]
    assert (entry.class_, entry.as_dict_, entry.x) == (1, 2, 3)
    assert (entry["class"], entry["as_dict"]) == (1, 2)
    assert entry.as_dict() == values


def test_values_cannot_be_changed() -> None:
    decoded: Any = SCHEMA.decode(book())
    for changed in (decoded, decoded.entries[0]):
        for name in ("note", "price", "template", "other"):
            with pytest.raises(AttributeError):
                setattr(changed, name, 5)


def test_a_descriptor_of_one_class_does_not_read_objects_of_another() -> None:
    decoded: Any = SCHEMA.decode(book())
    descriptor = type(decoded).__dict__["note"]
    assert type(decoded).note is descriptor
    assert repr(descriptor) == "<attribute 'note'>"
    assert descriptor.__get__(decoded) == "note"
    for other in (decoded.entries[0], 5, SCHEMA["Trade"]):
        with pytest.raises(TypeError, match="'note' is an attribute of other messages"):
            descriptor.__get__(other)
    with pytest.raises(TypeError):
        DecodedMessage({})  # type: ignore[call-arg, arg-type]
    entry_class = type(decoded.entries[0])
    with pytest.raises(TypeError, match="not that of the entries"):
        entry_class(BOOK._block, decoded.entries, 0)
    for number in (2, 4, 2**60):
        with pytest.raises(IndexError, match=f"BookUpdate has no field or data {number}"):
            BOOK._block.value(number)
    with pytest.raises(IndexError, match="BookUpdate has no group 1"):
        BOOK._block.group(1, DecodedGroup, entry_class)
    with pytest.raises(TypeError, match="an entry needs its group"):
        entry_class(BOOK._block.groups[0], book(), 0)


def test_elements_that_are_newer_than_the_message_are_none_and_empty() -> None:
    old = '<field name="v" id="1" type="uint8"/>'
    newer = old + '<field name="w" id="2" type="uint8" sinceVersion="2"/>'
    newer += '<group name="g" id="3" sinceVersion="2"><field name="x" id="4" type="uint8"/></group>'
    newer += '<data name="d" id="5" type="text" sinceVersion="2"/>'
    message = bytearray(message_of(old).encode_one({"v": 7}))
    message[6] = 1
    for buffer in (message, bytes(message)):
        decoded: Any = message_of(newer).decode(buffer)
        assert (decoded.v, decoded.w, len(decoded.g), decoded.d) == (7, None, 0, None)
        assert decoded.as_dict() == {"v": 7, "w": None, "g": [], "d": None}


def test_the_exponent_of_a_price_may_be_in_another_field_of_a_block_around_it() -> None:
    elements = '<field name="e" id="1" type="int8"/><field name="own" id="2" type="int32"/>'
    elements += '<group name="g" id="3"><field name="y" id="4" type="uint8"/>'
    elements += '<group name="h" id="5"><field name="price" id="6" type="int32"/></group></group>'
    template = message_of(elements, decimals={"own": "e", "price": "e"})
    values = {"e": -2, "own": Decimal("0.07"), "g": [{"y": 1, "h": [{"price": Decimal("1.25")}]}]}
    decoded: Any = template.decode(template.encode_one(values))
    assert (decoded.own, decoded.g[0].h[0].price) == (Decimal("0.07"), Decimal("1.25"))
    assert decoded.as_dict() == values
    assert decoded.g[0].as_dict() == values["g"][0]  # type: ignore[index]
    assert decoded.g[0].h[0].as_dict() == {"price": Decimal("1.25")}


def test_the_time_to_read_all_entries_grows_with_their_number_only() -> None:
    """The time of 16 times as many entries would be 256 times as long if each read began at the first entry."""
    template = message_of('<group name="g" id="1"><data name="d" id="2" type="blob"/></group>')

    def seconds(count: int) -> float:
        entries = [{"d": bytes([number % 256]) * 9} for number in range(count)]
        decoded: Any = template.decode(template.encode_one({"g": entries}))
        begin = time.thread_time()
        assert sum(entry.d[0] for entry in decoded.g) == sum(number % 256 for number in range(count))
        return time.thread_time() - begin

    few = min(seconds(2_000) for _ in range(5))
    assert min(seconds(32_000) for _ in range(3)) < 80 * few


# ---- buffers that end or change -------------------------------------------------------------------------------------


def test_a_message_in_a_handler_is_valid_until_the_handler_returns() -> None:
    kept: list[Any] = []

    def handle(payload: memoryview, header: aeron.Header) -> None:
        decoded: Any = SCHEMA.decode(payload)
        assert (decoded.note, decoded.entries[1].orders[1].orderId) == ("note", 1)
        kept.extend([decoded, decoded.entries, decoded.entries[1], decoded.as_dict(), pickle.dumps(decoded)])

    with aeron.MediaDriver() as driver, aeron.connect(driver) as client:
        publication = client.add_exclusive_publication("aeron:ipc", 1001)
        subscription = client.add_subscription("aeron:ipc", 1001)
        publication.wait_connected(timeout=5)
        publication.publish(book(), timeout=5)
        while not kept:
            subscription.poll(handle, copy=False)
    decoded, entries, entry, values, pickled = kept
    for read in (
        lambda: decoded.note,
        lambda: decoded.transactTime,
        lambda: decoded.entries,
        lambda: decoded["flags"],
        lambda: entries[0],
        lambda: list(entries),
        lambda: entry.price,
        decoded.as_dict,
        lambda: decoded == decoded,  # noqa: PLR0124
        lambda: pickle.dumps(decoded),
    ):
        with pytest.raises(ValueError, match="released memoryview"):
            read()
    assert repr(decoded).startswith("<BookUpdate, not readable: operation forbidden on released memoryview")
    assert (len(entries), values["note"], pickle.loads(pickled).note) == (2, "note", "note")


def test_a_released_memoryview_is_no_obstacle_to_its_owner() -> None:
    buffer = bytearray(book())
    view = memoryview(buffer)
    decoded: Any = SCHEMA.decode(view)
    assert decoded.note == "note"
    view.release()
    buffer += b"more"
    with pytest.raises(ValueError, match="released"):
        _ = decoded.note


def test_a_buffer_may_change_its_values_and_its_length() -> None:
    message = book()
    buffer = bytearray(message)
    decoded: Any = SCHEMA.decode(buffer)
    entry, orders = decoded.entries[1], decoded.entries[1].orders
    buffer[-4:] = b"note"[::-1]
    assert decoded.note == "eton"
    buffer[-1] = 0xFF
    with pytest.raises(aeron.InvalidArgumentError, match=r"'note': byte 0xff at 3 is not valid"):
        _ = decoded.note
    for length in range(len(message)):
        buffer[:] = message[:length]
        with pytest.raises(aeron.InvalidArgumentError):
            decoded.as_dict()
    buffer[:] = message[:20]
    changed = r"the message has 20 bytes now, and an element ends at \d+: its buffer has changed"
    with pytest.raises(aeron.InvalidArgumentError, match=changed):
        _ = entry.price
    buffer.clear()
    for read in (lambda: decoded.transactTime, lambda: decoded.entries, lambda: orders[0], lambda: decoded.note):
        with pytest.raises(aeron.InvalidArgumentError):
            read()
    buffer += message
    assert decoded.note == "note"


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_any_bytes_in_a_changed_buffer_are_values_or_an_error(data: st.DataObject) -> None:
    """13-32"""
    message = book()
    buffer = bytearray(message)
    decoded: Any = SCHEMA.decode(buffer)
    objects = [decoded, decoded.entries[1], decoded.entries[1].orders[0]]
    groups = [decoded.entries, decoded.entries[0].orders]
    for _ in range(data.draw(st.integers(1, 5))):
        buffer[data.draw(st.integers(0, len(buffer) - 1))] = data.draw(st.sampled_from([0, 1, 2, 127, 255]))
    del buffer[data.draw(st.integers(len(buffer) // 2, len(buffer))) :]
    for each in objects:
        for name in type(each)._of_elements:
            with contextlib.suppress(aeron.InvalidArgumentError):
                value = each[name]
                assert not isinstance(value, DecodedGroup) or len(list(value)) == len(value)
    for group in groups:
        with contextlib.suppress(aeron.InvalidArgumentError):
            assert len(list(group)) == len(group)


RACE = """
import mmap, os, sys, time
import aeron
from aeron.sbe import Schema

template = Schema(sys.argv[1])["BookUpdate"]
message = template.encode_one({"transactTime": 5, "flags": [], "note": "a" * 60_000})
shared = mmap.mmap(-1, len(message))
shared[:] = message
end, last = time.monotonic() + 1.5, len(message) - 1
if os.fork() == 0:
    while time.monotonic() < end:
        for _ in range(1000):
            shared[last] = 0xFF
            shared[last] = 0x61
    os._exit(0)
decoded, malformed = template.decode(shared), 0
while time.monotonic() < end:
    try:
        decoded.note
    except aeron.InvalidArgumentError:
        malformed += 1
assert malformed > 0
"""


def test_a_text_that_another_process_changes_meanwhile_is_a_text_or_an_error() -> None:
    """13-32. Python reads a text again after its check."""
    subprocess.run([sys.executable, "-c", RACE, MARKET], check=True, timeout=60)


def test_messages_are_read_from_any_buffer() -> None:
    message = book()
    with mmap.mmap(-1, len(message)) as mapped:
        mapped[:] = message
        decoded: Any = SCHEMA.decode(mapped)
        assert decoded == SCHEMA.decode(message)
        entry = decoded.entries[0]
    with pytest.raises(ValueError, match="mmap closed"):
        _ = entry.price
    padded = b"123" + message
    for buffer in (padded, bytearray(padded), memoryview(b"\0" + padded)[1:]):
        skipped: Any = SCHEMA.decode(buffer, skip=3)
        assert skipped == SCHEMA.decode(message)
        assert pickle.loads(pickle.dumps(skipped)) == SCHEMA.decode(message)
    for wrong in (None, 5, "text", [1]):
        with pytest.raises(TypeError, match="bytes-like"):
            SCHEMA.decode(wrong)
    for skip in (-1, 2**70):
        with pytest.raises(aeron.InvalidArgumentError, match="skip="):
            SCHEMA.decode(message, skip=skip)
    with pytest.raises(aeron.InvalidArgumentError, match="message of 0 bytes is shorter"):
        SCHEMA.decode(message, skip=2**40)


def test_a_malformed_text_is_an_error_when_it_is_used() -> None:
    message = book()[:-1] + b"\xff"
    decoded: Any = SCHEMA.decode(message)
    assert decoded.entries[0].price == Decimal("0.5")
    for read in (lambda: decoded.note, decoded.as_dict):
        with pytest.raises(aeron.InvalidArgumentError, match="'note': byte 0xff"):
            read()
    assert "not readable: 'note': byte 0xff" in repr(decoded)


@pytest.mark.parametrize("length", range(len(book(1, 1))))
def test_no_prefix_of_a_message_is_decoded(length: int) -> None:
    with pytest.raises(aeron.InvalidArgumentError):
        SCHEMA.decode(book(1, 1)[:length])


# ---- copies, threads and memory -------------------------------------------------------------------------------------


def test_messages_groups_and_entries_can_be_pickled_and_copied() -> None:
    buffer = bytearray(book())
    decoded: Any = SCHEMA.decode(buffer)
    everything = [decoded, decoded.entries, decoded.entries[1], decoded.entries[1].orders[0]]
    values = [repr(each) for each in everything]
    pickled = pickle.dumps(everything)
    copies = copy.deepcopy(everything)
    buffer.clear()
    assert [repr(each) for each in pickle.loads(pickled)] == values
    assert [repr(each) for each in copies] == values


def test_decoded_messages_and_entries_are_encoded_again() -> None:
    message = book()
    decoded: Any = SCHEMA.decode(message)
    assert BOOK.encode_one(decoded) == message
    assert BOOK.encode_one({**decoded.as_dict(), "entries": decoded.entries}) == message
    assert BOOK.encode_one({**decoded.as_dict(), "entries": list(decoded.entries)}) == message
    assert BOOK.encode([decoded, SCHEMA.decode(memoryview(message))]).to_pylist() == [message] * 2


def test_threads_read_one_message_at_the_same_time() -> None:
    decoded: Any = SCHEMA.decode(bytearray(book(50, 3)))
    expected = decoded.as_dict()
    wrong: list[object] = []

    def read() -> None:
        for _ in range(20):
            if eager(decoded) != expected:
                wrong.append(decoded)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_schema_is_freed_with_its_classes() -> None:
    schema = Schema(MARKET)
    decoded: Any = schema.decode(book())
    kept = decoded.entries[0]
    alive = weakref.ref(schema)
    del schema, decoded, kept
    gc.collect()
    assert alive() is None
