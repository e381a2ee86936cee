"""Channels made from typed values."""

from typing import Literal, Self, final

@final
class ChannelUriBuilder:
    """Builds a channel URI from typed values. One thread at a time may use it: it is not thread-safe.

    Keywords are the names of the channel's parameters, with `_` in place of `-`. Sizes are bytes or texts
    such as `"64k"`, durations are nanoseconds or texts such as `"5s"`. Each value is checked when it is set.

    Args:
        media: `"ipc"` or `"udp"`.
        spy: Whether the channel has the prefix `aeron-spy:`.
        parameters: Parameters of the channel. The documentation page of channel parameters lists them all.

    Raises:
        InvalidArgumentError: If the media or a parameter is not known.
        InvalidChannelError: If a value is not valid.

    Example:
        ```python
        aeron.ChannelUriBuilder("udp", endpoint="localhost:20121", term_length="64k").build()
        ```
    """
    def __new__(
        cls, media: Literal["ipc", "udp"] = "ipc", *, spy: bool = False, **parameters: str | int | bool | None
    ) -> Self: ...
    @staticmethod
    def parse(channel: str) -> ChannelUriBuilder:
        """Creates a builder with the parameters of a channel.

        Args:
            channel: A channel URI.

        Returns:
            The builder.

        Raises:
            InvalidChannelError: If the channel or a value is not valid.
        """
    def put(self, name: str, value: str | int | bool | None) -> Self:
        """Sets a parameter.

        Args:
            name: Name of the parameter, with `_` or `-`.
            value: The value; `None` removes the parameter.

        Returns:
            The builder itself.

        Raises:
            InvalidArgumentError: If the parameter is not known.
            InvalidChannelError: If the value is not valid.
        """
    def get(self, name: str) -> str | None:
        """Returns the value of a parameter.

        Args:
            name: Name of the parameter, with `_` or `-`.

        Returns:
            The value as text, or `None`.

        Raises:
            InvalidArgumentError: If the parameter is not known.
        """
    def clear(self) -> None:
        """Removes all parameters and the spy prefix."""
    def initial_position(self, position: int, initial_term_id: int, term_length: int) -> None:
        """Sets the position at which a publication starts.

        The method sets the parameters `term-length`, `init-term-id`, `term-id` and `term-offset`.

        Args:
            position: Position in bytes, a multiple of 32.
            initial_term_id: Id of the stream's first term.
            term_length: Length of a term in bytes, a power of two.

        Raises:
            InvalidChannelError: If a value is not valid.
        """
    def min_flow_control(self, group_min_size: int | None = None, receiver_timeout_ns: int | None = None) -> Self:
        """Sets flow control by the slowest receiver (`fc=min`).

        Args:
            group_min_size: Number of receivers that must be present before the publication is connected. `None`
                stands for the driver's setting.
            receiver_timeout_ns: Nanoseconds without a status message after which flow control removes a
                receiver. `None` stands for the driver's setting.

        Returns:
            The builder itself.

        Raises:
            InvalidChannelError: If a value is not valid.
        """
    def tagged_flow_control(
        self,
        group_tag: int | None = None,
        group_min_size: int | None = None,
        receiver_timeout_ns: int | None = None,
    ) -> Self:
        """Sets flow control by the slowest receiver with the group tag (`fc=tagged`).

        Args:
            group_tag: Group tag of the receivers. `None` stands for the driver's setting.
            group_min_size: Number of receivers with the tag that must be present before the publication is
                connected. `None` stands for the driver's setting.
            receiver_timeout_ns: Nanoseconds without a status message after which flow control removes a
                receiver. `None` stands for the driver's setting.

        Returns:
            The builder itself.

        Raises:
            InvalidChannelError: If a value is not valid.
        """
    def validate(self) -> None:
        """Checks the parameters together, as a driver does.

        Raises:
            InvalidChannelError: If parameters contradict each other.
        """
    def build(self) -> str:
        """Returns the channel URI.

        Returns:
            The URI as text.
        """
