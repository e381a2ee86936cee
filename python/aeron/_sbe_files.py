"""Files of SBE schemas: the encoding of their text, and included files."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

from aeron.exceptions import InvalidArgumentError

_DECLARED = re.compile(rb"""^\s*<\?xml[^>]*?\bencoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]*)["']""")
_BYTE_ORDER_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


def xml_text(xml: bytes, name: str) -> str:
    """Decodes a file with the encoding of its byte order mark or of its XML declaration; UTF-8 without them.

    Raises:
        InvalidArgumentError: If the encoding is unknown, or the bytes do not have it. The text has `name`.
    """
    encoding = next((found for mark, found in _BYTE_ORDER_MARKS.items() if xml.startswith(mark)), None)
    if encoding is None:
        declared = _DECLARED.match(xml)
        encoding = "utf-8" if declared is None else declared[1].decode("ascii")
    try:
        # A decoder of bytes to bytes, such as that of zip files, could make a huge text: it raises LookupError here.
        return str(xml, encoding)
    except LookupError:
        raise InvalidArgumentError(f"{name}: encoding '{encoding}' is unknown: convert the file to UTF-8") from None
    except UnicodeError as error:
        raise InvalidArgumentError(f"{name}: the text is not {encoding}: {error}") from None


class FolderLoader:
    """Reads included files below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()

    def __call__(self, name: str) -> str:
        """Returns the text of the file with this name relative to the folder."""
        file = (self._folder / name).resolve()
        if not file.is_relative_to(self._folder):
            raise InvalidArgumentError(f"included file '{name}' is not below the schema's folder: pass a loader")
        return xml_text(file.read_bytes(), name)
