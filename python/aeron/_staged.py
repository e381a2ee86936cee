"""Names of the recordings of an exactly-once Spark sink: the aliases in the channels of the recordings."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from aeron._aeron import ChannelUriBuilder
from aeron.exceptions import AeronError

if TYPE_CHECKING:
    from aeron._aeron import Recording

__all__ = ["alias_of", "query_alias", "staged_batch"]

_STAGED = re.compile(r"spark-(.+)\.([0-9]{1,19})\.[0-9]{1,10}\.[0-9]{1,10}", re.ASCII)


def alias_of(recording: Recording) -> str:
    """Returns the alias in the channel with which the recording was requested; an empty text if it has none."""
    with suppress(AeronError):
        return ChannelUriBuilder.parse(recording.original_channel).get("alias") or ""
    return ""


def query_alias(query: str) -> str:
    """Returns the alias of a query's recording. The query's staged recordings append a dot and numbers."""
    return f"spark-{query}"


def staged_batch(recording: Recording) -> tuple[str, int] | None:
    """Returns the query and the batch of a staged recording; `None` for any other recording."""
    match = _STAGED.fullmatch(alias_of(recording))
    return None if match is None else (match.group(1), int(match.group(2)))
