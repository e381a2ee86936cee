"""Properties of SBE messages of random schemas, decoded element by element."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from aeron.sbe import Template
from test_sbe_decoded import eager
from test_sbe_objects import schema_of

_KINDS: dict[str, st.SearchStrategy[Any]] = {
    "uint8": st.integers(0, 254),
    "int16": st.integers(-32767, 32767),
    "int64": st.integers(-(2**63) + 1, 2**63 - 1),
    "uint64": st.integers(0, 2**64 - 2),
    "double": st.floats(allow_nan=False),
    "char": st.sampled_from("ABC"),
    "bytes4": st.binary(min_size=4, max_size=4),
    "int16s": st.lists(st.integers(-9, 9), min_size=4, max_size=4),
}


@st.composite
def blocks(draw: st.DrawFn, depth: int = 0, prefix: str = "") -> tuple[str, st.SearchStrategy[dict[str, Any]]]:
    """Draws the elements of a block, and returns a strategy for its values."""
    xml, values = "", {}
    for number, kind in enumerate(draw(st.lists(st.sampled_from(sorted(_KINDS)), max_size=4))):
        name = f"{prefix}f{number}"
        is_optional = draw(st.booleans()) and not kind.endswith("s") and kind != "bytes4"
        presence = ' presence="optional"' * is_optional
        xml += f'<field name="{name}" id="{number + 1}" type="{kind}"{presence}/>'
        values[name] = st.none() | _KINDS[kind] if is_optional else _KINDS[kind]
    for number in range(draw(st.integers(0, 2)) if depth < 3 else 0):
        name = f"{prefix}g{number}"
        inner, entry = draw(blocks(depth + 1, name))
        xml += f'<group name="{name}" id="{number + 10}">{inner}</group>'
        values[name] = st.lists(entry, max_size=3)
    for number in range(draw(st.integers(0, 2))):
        name = f"{prefix}d{number}"
        xml += f'<data name="{name}" id="{number + 20}" type="text"/>'
        values[name] = st.text(max_size=5)
    return xml, st.fixed_dictionaries(values)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_elements_read_one_by_one_are_the_values_that_were_encoded(data: st.DataObject) -> None:
    """13-29, 13-32"""
    xml, strategy = data.draw(blocks())
    template: Template = schema_of(f'<message name="M" id="1">{xml}</message>')["M"]
    values = data.draw(strategy)
    message = template.encode_one(values)
    for buffer in (message, bytearray(message)):
        decoded = template.decode(buffer)
        assert decoded.as_dict() == values
        assert eager(decoded) == values
        assert template.encode_one(decoded) == message
