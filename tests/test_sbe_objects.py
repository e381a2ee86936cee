"""Tests of `aeron.sbe` with unusual objects: names, times, wrong types, copies, and files of schemas."""

from __future__ import annotations

import ast
import copy
import dataclasses
import datetime as dt
import pickle
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pyarrow as pa
import pytest

import aeron
from aeron.sbe import Schema, Template

_TYPES = """
<composite name="messageHeader"><type name="blockLength" primitiveType="uint16"/>
<type name="templateId" primitiveType="uint16"/><type name="schemaId" primitiveType="uint16"/>
<type name="version" primitiveType="uint16"/></composite>
<composite name="groupSizeEncoding"><type name="blockLength" primitiveType="uint16"/>
<type name="numInGroup" primitiveType="uint16"/></composite>
<composite name="text"><type name="length" primitiveType="uint32"/>
<type name="varData" primitiveType="uint8" length="0" characterEncoding="UTF-8"/></composite>
<composite name="blob"><type name="length" primitiveType="uint32"/>
<type name="varData" primitiveType="uint8" length="0"/></composite>
<type name="bytes4" primitiveType="uint8" length="4"/><type name="int16s" primitiveType="int16" length="4"/>
"""
_GROUP = '<group name="g" id="90"><field name="x" id="91" type="uint8"/></group>'


def schema_of(body: str, **options: Any) -> Schema:
    root = '<messageSchema package="p" id="7" version="3">'
    return Schema(text=f"{root}<types>{_TYPES}</types>{body}</messageSchema>", **options)


def message_of(elements: str, **options: Any) -> Template:
    return schema_of(f'<message name="M" id="1">{elements}</message>', **options)["M"]


def one(type_: str, more: str = "", **options: Any) -> Template:
    return message_of(f'<field name="v" id="1" type="{type_}" {more}/>', **options)


def test_the_module_is_an_attribute_of_the_package_and_loads_no_pyarrow() -> None:
    program = "import sys, aeron; aeron.sbe.Schema; sys.exit('pyarrow' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# ---- times ----------------------------------------------------------------------------------------------------------

TIMESTAMP = one("uint64", 'semanticType="UTCTimestamp"')
TIME_OF_DAY = one("uint64", 'semanticType="UTCTimeOnly"')
DATE = one("uint16", 'semanticType="LocalMktDate"')


@pytest.mark.parametrize(
    ("template", "values"),
    [
        (TIMESTAMP, pa.array([dt.date(2020, 1, 1)])),
        (TIMESTAMP, pa.array([dt.time(1, 2, 3)])),
        (TIME_OF_DAY, pa.array([dt.datetime(2020, 1, 1)])),
        (TIME_OF_DAY, pa.array([dt.date(2020, 1, 1)])),
        (DATE, pa.array([dt.time(1, 2, 3)])),
        (one("int32"), pa.array([7], pa.timestamp("us"))),
    ],
)
def test_a_column_of_another_kind_of_time_is_refused(template: Template, values: pa.Array) -> None:
    with pytest.raises(aeron.InvalidArgumentError, match=r"column 'v' cannot be .*, because the field is .*: cast it"):
        template.encode(pa.table({"v": values}))


def test_a_column_of_the_kind_of_the_field_is_encoded() -> None:
    times = pa.table({"v": [dt.time(1, 2, 3)]})
    assert TIME_OF_DAY.to_arrow(TIME_OF_DAY.encode(times))["v"].cast(pa.time64("us")).to_pylist() == [dt.time(1, 2, 3)]
    midnight = pa.table({"v": [dt.datetime(2020, 1, 1)]})
    assert DATE.to_arrow(DATE.encode(midnight))["v"].to_pylist() == [dt.date(2020, 1, 1)]


def test_times_of_numpy_do_not_wrap_around_and_nat_is_null() -> None:
    optional = one("int64", 'semanticType="UTCTimestamp" presence="optional"')
    assert optional.decode(optional.encode_one({"v": np.datetime64("NaT")})).v is None  # type: ignore[attr-defined]
    with pytest.raises(aeron.InvalidArgumentError, match=r"field 'v': .*2600.* is beyond 64 bits of nanoseconds"):
        optional.encode_one({"v": np.datetime64("2600-01-01")})
    with pytest.raises(aeron.InvalidArgumentError, match=r"field 'v': .*2600.* is beyond 64 bits of nanoseconds"):
        optional.encode_one({"v": dt.datetime(2600, 1, 1)})
    with pytest.raises(aeron.InvalidArgumentError, match="v"):
        TIMESTAMP.encode_one({"v": np.datetime64("NaT")})


@pytest.mark.parametrize(
    "value",
    [np.datetime64("2600-01-01", "s"), np.datetime64("2600"), np.datetime64("2600-01", "M"), dt.datetime(2600, 1, 1)],
)
def test_a_field_in_seconds_takes_the_year_2600(value: Any) -> None:
    seconds = one("uint64", timestamps={"v": "s"})
    expected = int(dt.datetime(2600, 1, 1, tzinfo=dt.UTC).timestamp())
    assert seconds.decode(seconds.encode_one({"v": value})).v == expected  # type: ignore[attr-defined]


def test_a_time_that_is_no_whole_number_of_units_is_refused_with_the_unit() -> None:
    seconds = one("uint64", timestamps={"v": "s"})
    with pytest.raises(aeron.InvalidArgumentError, match=r"field 'v': .* is not a whole number of seconds"):
        seconds.encode_one({"v": np.datetime64(1, "ms")})
    with pytest.raises(aeron.InvalidArgumentError, match=r"field 'v': .* is not a whole number of seconds"):
        seconds.encode_one({"v": dt.datetime(2020, 1, 1, microsecond=1)})
    with pytest.raises(aeron.ArgumentTypeError, match=r"field 'v': .* is a date: pass an integer or a datetime"):
        seconds.encode_one({"v": dt.date(2020, 1, 1)})


# ---- messages that become columns -----------------------------------------------------------------------------------

NUMBER = one("uint8")


def test_messages_without_a_header_and_of_other_templates_are_not_hidden() -> None:
    schema, good = NUMBER.schema, NUMBER.encode_one({"v": 1})
    other = good[:2] + b"\x09\0" + good[4:]
    mixed = pa.array([good, other, b"x", good], pa.binary())
    with pytest.raises(aeron.InvalidArgumentError, match="message 2: it is shorter than its header"):
        schema.to_arrow(mixed)
    with pytest.raises(aeron.InvalidArgumentError, match="message 0: it is shorter than its header"):
        schema.to_arrow(b"")
    tables = schema.to_arrow(pa.array([good, other, b"x", good[:-1], good], pa.binary()), malformed="drop")
    assert tables["M"]["message_index"].to_pylist() == [0, 4]
    assert (tables.skipped, tables.malformed) == (1, 2)


def test_data_frames_are_encoded_and_messages_in_them_are_decoded() -> None:
    book = Schema(Path(__file__).parent / "sbe" / "market.xml")["BookUpdate"]
    entry = {"price": 1, "size": 1, "securityId": 5, "action": "New", "side": "Buy"}
    entries = [{**entry, "orders": [{"orderId": 1, "quantity": 2}]}, {**entry, "price": None, "orders": []}]
    messages = book.encode([{"transactTime": 7000, "flags": ["EndOfEvent"], "entries": entries, "note": "n"}] * 3)
    frame = polars.DataFrame(book.to_arrow(messages))
    assert book.encode(frame) == messages
    assert book.to_arrow(polars.DataFrame({"value": messages.to_pylist()})) == book.to_arrow(messages)


def test_no_messages_are_a_table_without_rows() -> None:
    expected = NUMBER.arrow_schema()
    for empty in (pa.chunked_array([], pa.binary()), pa.table({"value": pa.chunked_array([], pa.binary())}), []):
        table = NUMBER.to_arrow(empty)
        assert (table.num_rows, table.schema.remove_metadata()) == (0, expected)


def test_messages_are_chunks_lists_and_iterators_of_batches() -> None:
    sent = NUMBER.encode([{"v": 1}, {"v": 2}])
    chunked = pa.chunked_array([sent, sent])
    batches = [pa.record_batch({"value": sent}), pa.record_batch({"payload": sent})]
    for messages in (chunked, batches, iter(batches), [sent, sent], [each.as_py() for each in chunked]):
        copies = list(messages) if not hasattr(messages, "chunks") else messages
        assert NUMBER.to_arrow(copies)["v"].to_pylist() == [1, 2, 1, 2]
        assert NUMBER.schema.to_arrow(copies)["M"]["message_index"].to_pylist() == [0, 1, 2, 3]
    assert NUMBER.to_arrow(iter(batches))["v"].to_pylist() == [1, 2, 1, 2]
    with pytest.raises(aeron.ArgumentTypeError, match="messages are a int: pass a batch, Arrow data"):
        NUMBER.to_arrow(7)


# ---- names ----------------------------------------------------------------------------------------------------------


def test_names_of_fields_never_hide_names_of_the_class() -> None:
    names = [
        "_message",
        "__init__",
        "__getattribute__",
        "__slots__",
        "__del__",
        "template",
        "template_",
        "class",
        "class_",
    ]
    names += ["self", "claim", "as_dict"]
    fields = "".join(f'<field name="{name}" id="{id}" type="uint8"/>' for id, name in enumerate(names, 1))
    template = message_of(fields)
    values = {name: id for id, name in enumerate(names, 1)}
    decoded: Any = template.decode(template.encode_one(values))
    assert decoded.as_dict() == values
    assert decoded.template is template
    assert (decoded.class_, decoded.class__) == (values["class_"], values["class"])
    assert (decoded.template_, decoded.template__) == (values["template_"], values["template"])
    assert (decoded.self, decoded.__init___, decoded._message_) == (values["self"], values["__init__"], 1)
    buffer = bytearray(100)
    length = template.write_to(
        buffer, **{name: values[name] for name in names if name != "class"}, class__=values["class"]
    )
    assert template.decode(buffer[:length]) == decoded


def test_keywords_name_groups_and_data_of_any_name() -> None:
    template = message_of('<group name="self" id="1"><field name="x" id="2" type="uint8"/></group>')
    assert template.encoded_length(self=2) == template.encoded_length() + 2
    with pytest.raises(aeron.InvalidArgumentError, match="self=-1: pass a number from 0"):
        template.encoded_length(self=-1)


# ---- wrong values ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("elements", "value", "text"),
    [
        ('<field name="v" id="1" type="int32"/>', 2**70, "field 'v': 1180591620717411303424 does not fit 64 bits"),
        ('<field name="v" id="1" type="double"/>', 10**400, "field 'v': 1000.* does not fit a double"),
        ('<field name="v" id="1" type="int32"/>', {}, "field 'v': {} is a dict: pass an int"),
        ('<field name="v" id="1" type="int32"/>', {1}, r"field 'v': \{1\} is a set: pass an int"),
        ('<field name="v" id="1" type="bytes4"/>', 5, "field 'v': 5 is a int: pass bytes"),
        (
            '<field name="v" id="1" type="bytes4"/>',
            [1, 2, 3, 300],
            r"field 'v': \[1, 2, 3, 300\] is a list: pass bytes",
        ),
        (
            '<field name="v" id="1" type="int16s"/>',
            [1, None, 3, 4],
            r"field 'v\[1\]': None is a NoneType: pass a value",
        ),
        ('<field name="v" id="1" type="int16s"/>', object(), "field 'v': .* is a object: pass a list of numbers"),
        ('<data name="v" id="1" type="text"/>', 5, "field 'v': 5 is a int: pass a str or bytes"),
        ('<data name="v" id="1" type="blob"/>', "x", "field 'v': 'x' is a str: pass bytes"),
        ('<data name="v" id="1" type="text"/>', "\ud800", "field 'v': .* has a surrogate without its pair"),
        (_GROUP.replace('"g"', '"v"'), [{"x": 1}, {"x": {}}], r"field 'v\[1\].x': {} is a dict: pass an int"),
        (_GROUP.replace('"g"', '"v"'), [{"x": 1}, 5], r"field 'v\[1\]': 5 is a int: pass a dict of values"),
        (_GROUP.replace('"g"', '"v"'), [{"y": 1}], r"field 'v\[0\]': the message has no element 'y'"),
        (_GROUP.replace('"g"', '"v"'), 5, "field 'v': 5 is a int: pass a list of dicts"),
    ],
)
def test_a_wrong_value_is_refused_with_its_message_and_field(elements: str, value: Any, text: str) -> None:
    template = message_of(elements)
    with pytest.raises(aeron.AeronError, match=f"^{text}"):
        template.encode_one({"v": value})
    with pytest.raises(aeron.AeronError, match=f"^message 0: {text}"):
        template.encode([{"v": value}])


@pytest.mark.parametrize("message", [None, 5, "text", (1, 2), {5: 1}])
def test_a_message_without_names_is_refused_with_its_index(message: Any) -> None:
    with pytest.raises(aeron.ArgumentTypeError, match=r"message 1: .*pass"):
        NUMBER.encode([{"v": 1}, message])


@dataclasses.dataclass
class _Row:
    v: int


def test_messages_are_mappings_records_and_decoded_messages() -> None:
    message = NUMBER.encode_one({"v": 3})
    named = namedtuple("named", "v")(3)
    assert [NUMBER.encode_one(each) for each in (NUMBER.decode(message), named, _Row(3))] == [message] * 3


@pytest.mark.parametrize(
    "value", [b"\x01\x02\x03\x04", bytearray(b"\x01\x02\x03\x04"), np.arange(1, 5, dtype="u1"), [1, 2, 3, 4]]
)
def test_bytes_are_any_buffer_of_bytes(value: Any) -> None:
    for template in (one("bytes4"), message_of('<data name="v" id="1" type="blob"/>')):
        assert template.decode(template.encode_one({"v": value})).v == b"\x01\x02\x03\x04"  # type: ignore[attr-defined]


@pytest.mark.parametrize("value", [(1, 2, 3, 4), range(1, 5), np.arange(1, 5)])
def test_arrays_are_any_iterable_of_numbers(value: Any) -> None:
    template = one("int16s")
    assert template.decode(template.encode_one({"v": value})).v == [1, 2, 3, 4]  # type: ignore[attr-defined]


def test_a_large_integer_is_a_double() -> None:
    template = one("double")
    assert template.decode(template.encode_one({"v": 2**70})).v == float(2**70)  # type: ignore[attr-defined]


def test_options_are_checked() -> None:
    with pytest.raises(aeron.InvalidArgumentError, match="skip=-1: pass a number from 0"):
        NUMBER.to_arrow(b"", skip=-1)
    for scale in (-1, 300):
        with pytest.raises(aeron.InvalidArgumentError, match=f"decimal_scale={scale}: pass 0 to 38"):
            NUMBER.to_arrow(b"", decimal_scale=scale)


def test_a_message_is_written_to_any_writable_buffer() -> None:
    expected = NUMBER.encode_one({"v": 3})
    array = np.zeros(8, "i4")
    assert NUMBER.write_to(array, v=3) == len(expected)
    assert array.tobytes().startswith(expected)
    for buffer in (None, 5, "text"):
        with pytest.raises(aeron.ArgumentTypeError, match="pass a claim or a writable buffer"):
            NUMBER.write_to(buffer, v=3)
    for view in (memoryview(bytes(20)), memoryview(bytearray(40))[::2]):
        with pytest.raises(aeron.ArgumentTypeError, match="is read-only or has gaps"):
            NUMBER.write_to(view, v=3)


# ---- copies ---------------------------------------------------------------------------------------------------------


def test_schemas_templates_and_messages_are_equal_to_their_copies() -> None:
    decoded = NUMBER.decode(NUMBER.encode_one({"v": 3}))
    for duplicate in (copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))):
        assert duplicate(NUMBER.schema) == NUMBER.schema
        assert duplicate(NUMBER) == NUMBER
        assert duplicate(decoded) == decoded
        assert len({duplicate(NUMBER), NUMBER}) == 1
    assert one("int32") != NUMBER
    assert one("int32").schema != NUMBER.schema


def test_a_copy_of_the_values_shares_no_lists() -> None:
    template = message_of(_GROUP)
    decoded: Any = template.decode(template.encode_one({"g": [{"x": 1}]}))
    decoded.as_dict()["g"][0]["x"] = 9
    assert decoded.g == [{"x": 1}]


# ---- files ----------------------------------------------------------------------------------------------------------

BODY = '<message name="M" id="1" description="Größe"><field name="v" id="1" type="uint8"/></message>'


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16", "ISO-8859-1"])
def test_the_encoding_of_a_file_is_that_of_its_declaration(tmp_path: Path, encoding: str) -> None:
    head = f'<?xml version="1.0" encoding="{encoding}"?>'
    text = f'{head}\n<messageSchema id="7"><types>{_TYPES}</types>{BODY}</messageSchema>'
    (tmp_path / "schema.xml").write_bytes(text.encode(encoding))
    assert Schema(tmp_path / "schema.xml")["M"].description == "Größe"
    assert Schema(text=text.encode(encoding))["M"].description == "Größe"


def test_a_file_without_its_encoding_is_refused() -> None:
    with pytest.raises(aeron.InvalidArgumentError, match="the schema: the text is not utf-8"):
        Schema(text="<messageSchema description='Größe'/>".encode("latin-1"))
    for encoding in ("EBCDIC-7", "zip"):
        with pytest.raises(aeron.InvalidArgumentError, match=f"encoding '{encoding}' is unknown: convert the file"):
            Schema(text=f"<?xml version='1.0' encoding='{encoding}'?><messageSchema/>".encode())


def test_a_name_of_an_included_file_is_relative_to_the_file_that_includes_it(tmp_path: Path) -> None:
    include = '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="{}"/>'
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "types.xml").write_text(f"<types>{_TYPES}</types>")
    (tmp_path / "sub" / "c.xml").write_text(f"<messageSchema>{include.format('types.xml')}</messageSchema>")
    root = f'<messageSchema id="7">{include.format("sub/types.xml")}{BODY}</messageSchema>'
    (tmp_path / "direct.xml").write_text(root)
    assert list(Schema(tmp_path / "direct.xml")) == ["M"]
    nested = root.replace("sub/types.xml", "sub/c.xml")
    loaded: list[str] = []

    def load(name: str) -> str:
        loaded.append(name)
        return (tmp_path / name).read_text()

    Schema(text=nested, loader=load)
    assert loaded == ["sub/c.xml", "sub/types.xml"]


# ---- types ----------------------------------------------------------------------------------------------------------


def test_the_stub_has_the_types_of_all_decoded_values(tmp_path: Path) -> None:
    schema = Schema(Path(__file__).parent / "sbe" / "market.xml")
    text = schema.stub(tmp_path / "market.pyi")
    assert (tmp_path / "market.pyi").read_text("utf-8") == text
    classes = {each.name: each for each in ast.parse(text).body if isinstance(each, ast.ClassDef)}
    entries = ["BookUpdate_entries_orders", "BookUpdate_entries"]
    assert list(classes) == ["Trade", *entries, "BookUpdate", "Instrument"]
    assert [ast.unparse(classes[name].bases[0]) for name in ("Trade", entries[0])] == ["DecodedMessage", "DecodedEntry"]
    for line in (
        "    def transactTime(self) -> int: ...",
        "    def side(self) -> str | int: ...",
        "    def price(self) -> Decimal: ...",
        "    def quantity(self) -> int | None: ...",
        "    def entries(self) -> DecodedGroup[BookUpdate_entries]: ...",
        "    def orders(self) -> DecodedGroup[BookUpdate_entries_orders]: ...",
        "    def orderId(self) -> int: ...",
    ):
        assert line in text


def test_the_stub_of_a_message_with_names_that_are_not_names_in_python_is_valid() -> None:
    fields = "".join(f'<field name="{name}" id="{id}" type="uint8"/>' for id, name in enumerate(["class", "_values"]))
    message = f'<message name="class" id="1">{fields}</message><message name="Empty" id="2"/>'
    text = schema_of(message).stub()
    assert [each.name for each in ast.parse(text).body if isinstance(each, ast.ClassDef)] == ["class_", "Empty"]
    assert "    def class_(self) -> int: ..." in text


# ---- enums, sets and constants --------------------------------------------------------------------------------------

_NAMES = """
<types><enum name="E" encodingType="uint8"><validValue name="A">1</validValue></enum>
<set name="S" encodingType="uint8"><choice name="one">0</choice></set>
<type name="three" primitiveType="uint8" presence="constant">3</type>
<composite name="C"><type name="x" primitiveType="uint8"/><ref name="k" type="three"/></composite></types>
<message name="M" id="1"><field name="e" id="1" type="E"/><field name="s" id="2" type="S"/>
<field name="k" id="3" type="three"/><field name="c" id="4" type="C"/></message>
"""


def test_integers_keep_unknown_enums_and_bits_and_are_encoded_again() -> None:
    template = schema_of(_NAMES)["M"]
    message = template.encode_one({"e": 7, "s": 5, "c": {"x": 1}})
    names = template.to_arrow(message)
    assert names.to_pylist() == [{"e": None, "s": ["one"], "c": {"x": 1, "k": 3}}]
    assert names.schema.metadata is not None
    assert names.schema.metadata[b"sbe.unknown"] == b"2"
    for column in ("e", "s"):
        with pytest.raises(aeron.InvalidArgumentError, match=f"message 0: field '{column}' has the"):
            template.to_arrow(message, columns=[column], refuse_unknown=True)
    numbers = template.to_arrow(message, enums="integer", sets="integer", refuse_unknown=True)
    assert numbers.to_pylist() == [{"e": 7, "s": 5, "c": {"x": 1, "k": 3}}]
    assert numbers.schema == template.arrow_schema(enums="integer", sets="integer").with_metadata(
        numbers.schema.metadata
    )
    assert template.encode(numbers).to_pylist() == [message]
    with pytest.raises(aeron.InvalidArgumentError, match="enums='number': expected names or integer"):
        template.to_arrow(message, enums="number")  # type: ignore[arg-type]


def test_a_constant_takes_only_its_own_value() -> None:
    template = schema_of(_NAMES)["M"]
    values = {"e": "A", "s": [], "c": {"x": 1}}
    message = template.encode_one(values)
    assert template.encode_one({**values, "k": 3, "c": {"x": 1, "k": 3}}) == message
    with pytest.raises(aeron.InvalidArgumentError, match="field 'k' is constant 3, not 4: leave it out"):
        template.encode_one({**values, "k": 4})
    with pytest.raises(aeron.InvalidArgumentError, match="field 'k' is constant 3, not \"x\": leave it out"):
        template.encode_one({**values, "c": {"x": 1, "k": "x"}})
