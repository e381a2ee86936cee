"""Sizes, durations and the version."""

from typing import TypeAlias

def parse_size(text: str) -> int:
    """Parses a size.

    Args:
        text: A number with the suffix `k`, `m` or `g`; without a suffix it is bytes.

    Returns:
        Bytes.

    Raises:
        InvalidArgumentError: If the text is not a size.

    Example:
        ```python
        aeron.parse_size("64k")
        ```
    """

def parse_duration_ns(text: str) -> int:
    """Parses a duration.

    Args:
        text: A number with the suffix `ns`, `us`, `ms` or `s`; without a suffix it is nanoseconds.

    Returns:
        Nanoseconds.

    Raises:
        InvalidArgumentError: If the text is not a duration.

    Example:
        ```python
        aeron.parse_duration_ns("100ms")
        ```
    """

__version__: str

_Setting: TypeAlias = tuple[
    str, str, str, str, bool | int | str, bool | int | str, tuple[int, int] | None, list[str], str
]

def _driver_settings() -> list[_Setting]:
    """All settings of a driver that have an environment variable, with their defaults in the absence of one."""

def _archive_settings() -> list[_Setting]:
    """All settings of an archive, with their defaults in the absence of a property."""

def _channel_parameters() -> list[tuple[str, str]]:
    """All parameters of a channel: name and meaning, in the order in which a builder prints them."""
