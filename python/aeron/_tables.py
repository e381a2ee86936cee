"""`Batch.to_arrow`: a batch as an Arrow table, with the records of its messages as typed columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from aeron._pipeline import Layout
from aeron.exceptions import AeronError, ArgumentTypeError, InvalidArgumentError
from aeron.layouts import layout_text, schema_text

if TYPE_CHECKING:
    import numpy.typing as npt

    from aeron._aeron import Batch

__all__ = ["to_arrow"]

_PAYLOAD = "payload"


def to_arrow(batch: Batch, layout: str | npt.DTypeLike | pa.Schema | None) -> pa.Table:
    """Implements `Batch.to_arrow`."""
    messages = pa.record_batch(batch)
    if layout is None:
        return pa.Table.from_batches([messages])
    schema = layout if isinstance(layout, pa.Schema) else None
    try:
        records = Layout(_text_of(layout), nanoseconds=True)
    except (ArgumentTypeError, InvalidArgumentError):
        raise
    except AeronError as error:
        raise InvalidArgumentError(str(error).replace("option valueSchema: ", "layout: ")) from None
    length = records.record_length
    counts = pc.divide(pc.binary_length(messages[_PAYLOAD]), length)
    total = pc.sum(counts).as_py() or 0
    if total * length != len(batch.payload):
        raise InvalidArgumentError(f"not every message is a whole number of records of {length} bytes: {records}")
    try:
        typed = pa.record_batch(records.decode(batch.payload))
    except AeronError as error:
        raise InvalidArgumentError(str(error)) from None
    columns = dict(zip(typed.schema.names, typed.columns, strict=True))
    if schema is not None:
        columns = {name: column.cast(schema.field(name).type) for name, column in columns.items()}
    headers = messages if _are_all_one(counts) else messages.take(_messages_of_records(counts))
    for name in headers.schema.names:
        if name == _PAYLOAD:
            continue
        if name in columns:
            raise InvalidArgumentError(f"the layout has a field '{name}', which is a column of every batch: rename it")
        columns[name] = headers[name]
    return pa.table(columns)


def _text_of(layout: str | npt.DTypeLike | pa.Schema) -> str:
    if isinstance(layout, pa.Schema):
        return schema_text(layout)
    return layout if isinstance(layout, str) else layout_text(layout)


def _are_all_one(counts: pa.Array) -> bool:
    """Returns whether each message is one record. The usual case: then the columns of the batch need no copy."""
    return not pc.any(pc.not_equal(counts, 1)).as_py()


def _messages_of_records(counts: pa.Array) -> pa.Array:
    """Returns the index of the message of each record."""
    import numpy as np

    return pa.array(np.repeat(np.arange(len(counts)), counts.to_numpy()))
