"""Arguments and results of fragment handlers."""

from collections.abc import Callable
from typing import Any, ClassVar, Self, final

@final
class Header:
    """The header of the message that a handler gets.

    The header is valid only until the handler returns. Until then it is thread-safe.
    """
    @property
    def position(self) -> int:
        """Stream position after the message, in bytes."""
    @property
    def reserved_value(self) -> int:
        """Reserved value of the first frame, a 64-bit integer; 0 unless the publisher set one."""
    @property
    def session_id(self) -> int:
        """Session id of the message's publisher."""
    @property
    def stream_id(self) -> int:
        """Stream id of the message."""
    @property
    def term_id(self) -> int:
        """Id of the term of the first frame."""
    @property
    def term_offset(self) -> int:
        """Offset of the first frame in its term, in bytes."""
    @property
    def next_term_offset(self) -> int:
        """Offset of the next frame in the term, in bytes."""
    @property
    def frame_length(self) -> int:
        """Length of header and payload, in bytes."""
    @property
    def fragmented_frame_length(self) -> int:
        """Length in the log of all fragments of an assembled message, in bytes; -1 if the message is one fragment."""
    @property
    def flags(self) -> int:
        """Flags: 0x80 marks the first and 0x40 the last fragment of a message. A whole message has 0xC0."""
    @property
    def type(self) -> int:
        """Type of the frame; 1 is data."""
    @property
    def initial_term_id(self) -> int:
        """Id of the stream's first term."""
    @property
    def position_bits_to_shift(self) -> int:
        """Base-two logarithm of the term length."""

@final
class Action:
    """The result of a controlled handler, which determines the next step of the poll. Immutable."""

    ABORT: ClassVar[Action]
    BREAK: ClassVar[Action]
    COMMIT: ClassVar[Action]
    CONTINUE: ClassVar[Action]
    def __int__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class FragmentAssembler:
    """Joins the fragments of long messages. Pass the assembler to `poll` in place of the handler.

    The assembler keeps incomplete messages between polls, so use one assembler for all polls of a
    subscription. One thread at a time may use it. If there is no memory for the first fragment of a poll,
    the poll raises `MemoryError`, and the next poll delivers that fragment again.

    Example:
        ```python
        assembler = aeron.FragmentAssembler(lambda payload, header: print(payload))
        subscription.poll(assembler)
        ```
    """
    def __new__(cls, handler: Callable[[Any, Header], object]) -> Self: ...
    @property
    def handler(self) -> Callable[[Any, Header], object]:
        """The handler that gets the whole messages."""
    def free_session_buffer(self, session_id: int) -> bool:
        """Frees the buffer of a session. An incomplete message of the session is dropped.

        Args:
            session_id: Session id of the publisher.

        Returns:
            `True` if the session had a buffer.

        Raises:
            ReentrantCallError: If a poll uses the assembler.
        """
    def clear(self) -> None:
        """Frees all buffers. Incomplete messages are dropped.

        Raises:
            ReentrantCallError: If a poll uses the assembler.
        """
