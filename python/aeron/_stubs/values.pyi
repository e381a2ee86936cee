"""Sizes, durations and the version."""

from typing import Self, TypeAlias

def parse_size(text: str) -> int:
    """Parses a size.

    Args:
        text: A number of bytes, or a number with the suffix `k`, `m` or `g`.

    Returns:
        The size in bytes.

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
        text: A number of nanoseconds, or a number with the suffix `ns`, `us`, `ms` or `s`.

    Returns:
        The duration in nanoseconds.

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
    """Returns all settings of a driver that have an environment variable, with their defaults if no variable is set."""

def _archive_settings() -> list[_Setting]:
    """Returns all settings of an archive, with their defaults if no property is set."""

def _counter_meanings() -> list[tuple[int, int | None, str, str | None, str | None, str]]:
    """Returns a row for each system counter and each type of counters that has a name."""

def _channel_parameters() -> list[tuple[str, str]]:
    """Returns name and meaning of all parameters of a channel, in the order in which a builder prints them."""

class _Exposition:
    """The metrics of drivers and archives in the text format of Prometheus. Thread-safe."""

    def __new__(
        cls,
        drivers: list[tuple[str, str]],
        archives: list[tuple[str, str]],
        *,
        max_series: int,
        per_session: bool,
        custom: str,
    ) -> Self: ...
    def families(self) -> list[tuple[str, str, str]]:
        """Returns name, type and description of each metric that can occur."""

    def render(self) -> bytes:
        """Reads all files and returns the text. Other Python threads run meanwhile: a service with thousands of streams
        must not wait for its own metrics.
        """

class _Users:
    """The users in a users file of an archive. Thread-safe."""

    def __new__(cls, path: str) -> Self: ...
    def has_password(self, name: str, password: bytes) -> bool:
        """Returns whether a user has a password."""
