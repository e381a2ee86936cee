"""Makes text from peers safe for a terminal.

Characters that move the cursor, forge a line or reverse the direction of text are escaped.
"""

from __future__ import annotations

import re

# C0 and C1 controls, line and paragraph separators, direction marks and overrides, and surrogates.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str, *, keep: str = "") -> str:
    r"""Returns the text with control characters escaped as in Python: ``\x1b``, ``\n``. Characters in ``keep`` stay."""
    return _CONTROL.sub(lambda found: found[0] if found[0] in keep else _escape(found[0]), text)


def printable_lines(text: str) -> str:
    """Returns the text as :func:`printable` does, but line ends and tabs stay."""
    return printable(text, keep="\n\t")


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
