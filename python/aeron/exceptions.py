"""Every exception this package raises, below one root.

If the driver refuses a command, the client raises the subclass of :class:`RegistrationError` for the error code, with
the driver's text as its message. Every class also derives from the built-in exception for its kind of failure, so
``except TimeoutError`` and ``except ValueError`` work as for the standard library. Failures without a closer one are
``RuntimeError``.
"""

__all__ = [
    "ActiveListingError",
    "ActiveRecordingError",
    "ActiveSubscriptionError",
    "AeronError",
    "AgentTerminationError",
    "ArchiveActiveError",
    "ArchiveClosedError",
    "ArchiveDirectoryError",
    "ArchiveDisconnectedError",
    "ArchiveError",
    "ArchiveRefusedError",
    "ArchiveStorageSpaceError",
    "ArchiveTimeoutError",
    "ArgumentRangeError",
    "ArgumentTypeError",
    "AuthenticationRejectedError",
    "BackPressureTimeoutError",
    "ChannelEndpointError",
    "ClientClosedError",
    "ClientTimeoutError",
    "ConductorServiceTimeoutError",
    "ConfigurationError",
    "CorruptLogError",
    "CounterClosedError",
    "DriverActiveError",
    "DriverError",
    "DriverTimeoutError",
    "EmptyRecordingError",
    "ForkedError",
    "GenericDriverError",
    "ImageClosedError",
    "ImageRejectedError",
    "IndexRangeError",
    "InvalidArgumentError",
    "InvalidChannelError",
    "InvalidExtensionError",
    "InvalidPositionError",
    "MalformedCommandError",
    "MaxPositionExceededError",
    "MaxRecordingsError",
    "MaxReplaysError",
    "MessageTooLongError",
    "NotConnectedError",
    "NotSupportedError",
    "OperationCancelledError",
    "OperationTimeoutError",
    "PersistentSubscriptionError",
    "PublicationClosedError",
    "PublicationRevokedError",
    "ReentrantCallError",
    "RegistrationError",
    "ReplicationConnectionError",
    "ResourceTemporarilyUnavailableError",
    "StorageSpaceError",
    "SubscriptionClosedError",
    "UnauthorisedActionError",
    "UnknownCommandError",
    "UnknownCounterError",
    "UnknownHostError",
    "UnknownPublicationError",
    "UnknownRecordingError",
    "UnknownRecordingSubscriptionError",
    "UnknownReplayError",
    "UnknownReplicationError",
    "UnknownSubscriptionError",
    "ViewError",
    "archive_error",
    "registration_error",
]


class AeronError(Exception):
    """The root of everything this package raises."""


# ---- arguments and settings ------------------------------------------------------------------------------------------


class InvalidArgumentError(AeronError, ValueError):
    """An argument has a value that makes no sense for the call."""


class ArgumentRangeError(InvalidArgumentError, OverflowError):
    """An integer is outside the range of its parameter."""


class ArgumentTypeError(AeronError, TypeError):
    """An argument has the wrong type."""


class IndexRangeError(AeronError, IndexError):
    """An index or an id is beyond the last one."""


class ViewError(AeronError, BufferError):
    """A view of memory that is no longer lent, or that a handler kept."""


class ConfigurationError(AeronError, ValueError):
    """A setting is unknown, out of its range, or does not fit another one."""


class ForkedError(AeronError, RuntimeError):
    """The object belongs to the parent process: after a fork, open a client or a driver in the child."""


class ReentrantCallError(AeronError, RuntimeError):
    """An object that serves one caller at a time was entered again: from its own handler, or by a second thread."""


class AgentTerminationError(AeronError, RuntimeError):
    """Raised by an agent's ``do_work`` to end its runner in an orderly way."""


# ---- the driver as a process -----------------------------------------------------------------------------------------


class DriverError(AeronError, OSError):
    """The media driver could not start, or its directory is unusable."""


class DriverActiveError(DriverError):
    """A live driver owns the directory already."""


class DriverTimeoutError(AeronError, TimeoutError):
    """No media driver answered in time: none is running on the directory, or it died."""


# ---- the life of a client --------------------------------------------------------------------------------------------


class ClientClosedError(AeronError, RuntimeError):
    """The client is closed; ``__cause__`` says what closed it, if that was not the program."""


class ClientTimeoutError(AeronError, TimeoutError):
    """The driver declared this client dead: it sent no keepalive for the client liveness timeout."""


class ConductorServiceTimeoutError(AeronError, TimeoutError):
    """The client's conductor was not run for longer than the inter-service timeout."""


# ---- publications and subscriptions ----------------------------------------------------------------------------------


class PublicationClosedError(AeronError, RuntimeError):
    """The publication is closed; ``__cause__`` says what closed it, if that was not the program."""


class SubscriptionClosedError(AeronError, RuntimeError):
    """The subscription is closed; ``__cause__`` says what closed it, if that was not the program."""


class ImageClosedError(ClientClosedError):
    """The image is closed; ``__cause__`` says what closed it, if that was not the program."""


class CounterClosedError(ClientClosedError):
    """The counter is closed; ``__cause__`` says what closed it, if that was not the program."""


class MaxPositionExceededError(AeronError, OverflowError):
    """The stream has used up its positions (2^31 terms): close this publication and add a new one."""


class MessageTooLongError(AeronError, ValueError):
    """A message is longer than the stream carries (``max_message_length``, for claims ``max_payload_length``)."""


class NotConnectedError(AeronError, TimeoutError):
    """No subscriber connected within the time given."""


class OperationTimeoutError(AeronError, TimeoutError):
    """A pending operation is not finished within the time given; it goes on."""


class OperationCancelledError(AeronError, RuntimeError):
    """The result of an operation that was cancelled."""


class BackPressureTimeoutError(AeronError, TimeoutError):
    """The slowest subscriber did not make room within the time given."""


class CorruptLogError(AeronError, RuntimeError):
    """A peer wrote something impossible into a shared log; the image was closed."""


# ---- refusals of the driver ------------------------------------------------------------------------------------------


class RegistrationError(AeronError, RuntimeError):
    """The driver refused a request; the message is the driver's.

    Attributes:
        code: the error code of the control protocol.
        correlation_id: of the request, or -1.
    """

    code: int = -1
    correlation_id: int

    def __init__(self, message: str, correlation_id: int = -1, code: int | None = None) -> None:
        super().__init__(message)
        self.correlation_id = correlation_id
        if code is not None:
            self.code = code


class InvalidChannelError(RegistrationError, ValueError):
    """The channel URI is wrong, or its parameters contradict each other or a live stream."""

    code = 1


class UnknownSubscriptionError(RegistrationError, LookupError):
    """The driver knows no such subscription."""

    code = 2


class UnknownPublicationError(RegistrationError, LookupError):
    """The driver knows no such publication of this client."""

    code = 3


class ChannelEndpointError(RegistrationError, OSError):
    """The channel's endpoint failed."""

    code = 4


class UnknownCounterError(RegistrationError, LookupError):
    """The driver knows no such counter of this client."""

    code = 5


class UnknownCommandError(RegistrationError):
    """The driver does not know the command."""

    code = 6


class MalformedCommandError(RegistrationError):
    """The driver could not read the command."""

    code = 7


class NotSupportedError(RegistrationError):
    """The driver does not support what was asked for."""

    code = 8


class UnknownHostError(RegistrationError, OSError):
    """A host name in the channel could not be resolved."""

    code = 9


class ResourceTemporarilyUnavailableError(RegistrationError):
    """The endpoint is just closing; try again."""

    code = 10


class GenericDriverError(RegistrationError):
    """Everything without a code of its own; the message says it."""

    code = 11


class StorageSpaceError(RegistrationError, OSError):
    """The log file does not fit on the file system of the Aeron directory."""

    code = 12


class ImageRejectedError(RegistrationError):
    """A subscriber rejected the stream."""

    code = 13


class PublicationRevokedError(RegistrationError):
    """The publisher revoked the stream."""

    code = 14


_BY_CODE: dict[int, type[RegistrationError]] = {kind.code: kind for kind in RegistrationError.__subclasses__()}


_BAD_PORTS = ("port out of range: ", "port invalid: ")
"""Drivers refuse a bad port with the code for everything else (11); only these texts tell it apart."""


def registration_error(code: int, message: str, correlation_id: int = -1) -> RegistrationError:
    """The exception for an error code of the control protocol; an unknown code gives the base class with that code.

    A channel with a bad port gives an :class:`InvalidChannelError` that keeps the driver's code.
    """
    kind = _BY_CODE.get(code, RegistrationError)
    if kind is GenericDriverError and any(text in message for text in _BAD_PORTS):
        kind = InvalidChannelError
    return kind(message, correlation_id, code)


# ---- archives --------------------------------------------------------------------------------------------------------


class ArchiveError(AeronError, RuntimeError):
    """An archive refused a request, or a replay or the session with the archive failed.

    Attributes:
        code: the archive's error code, -1 if the error is not a refusal.
        correlation_id: of the request, or -1.
    """

    code: int = -1
    correlation_id: int

    def __init__(self, message: str, correlation_id: int = -1, code: int | None = None) -> None:
        super().__init__(message)
        self.correlation_id = correlation_id
        if code is not None:
            self.code = code


class ArchiveTimeoutError(ArchiveError, TimeoutError):
    """The archive did not answer within the message timeout."""


class ArchiveDisconnectedError(ArchiveError, ConnectionError):
    """The archive ended the session, or it is gone: connect again."""


class ArchiveClosedError(ArchiveError):
    """The client of the archive is closed."""


class PersistentSubscriptionError(ArchiveError):
    """An error that ends a persistent subscription, or that it survives; its cause is that of the archive or client.

    Attributes:
        reason: ``RECORDING_NOT_FOUND``, ``STREAM_ID_MISMATCH``, ``INVALID_START_POSITION``, or ``GENERIC`` for others.
    """

    reason: str = "GENERIC"


class ArchiveActiveError(ArchiveError, OSError):
    """A live archive uses the directory or the archive id already."""


class ArchiveDirectoryError(ArchiveError, OSError):
    """The archive could not start: its directory, catalog or a recording is unusable."""


class ArchiveRefusedError(ArchiveError):
    """The archive refused a request; the message is the archive's. Subclasses are for single codes."""

    code = 0


class ActiveListingError(ArchiveRefusedError):
    """The session has a listing that has not ended."""

    code = 1


class ActiveRecordingError(ArchiveRefusedError):
    """The recording is being recorded or replayed."""

    code = 2


class ActiveSubscriptionError(ArchiveRefusedError):
    """A subscription of the archive records this channel and stream already."""

    code = 3


class UnknownRecordingSubscriptionError(ArchiveRefusedError, LookupError):
    """The archive has no such subscription."""

    code = 4


class UnknownRecordingError(ArchiveRefusedError, LookupError):
    """The archive has no such recording, or its stream is another."""

    code = 5


class UnknownReplayError(ArchiveRefusedError, LookupError):
    """The archive has no such replay."""

    code = 6


class MaxReplaysError(ArchiveRefusedError):
    """The archive has as many replays as it may have (``max_concurrent_replays``)."""

    code = 7


class MaxRecordingsError(ArchiveRefusedError):
    """The archive has as many active recordings as it may have (``max_concurrent_recordings``)."""

    code = 8


class InvalidExtensionError(ArchiveRefusedError, ValueError):
    """The stream does not continue the recording that it was to extend."""

    code = 9


class AuthenticationRejectedError(ArchiveRefusedError, PermissionError):
    """The archive rejected the credentials."""

    code = 10


class ArchiveStorageSpaceError(ArchiveRefusedError, OSError):
    """The file system of the archive has too little space."""

    code = 11


class UnknownReplicationError(ArchiveRefusedError, LookupError):
    """The archive has no such replication."""

    code = 12


class UnauthorisedActionError(ArchiveRefusedError, PermissionError):
    """The client may not do this."""

    code = 13


class ReplicationConnectionError(ArchiveRefusedError, ConnectionError):
    """The source archive of a replication cannot be reached."""

    code = 14


class EmptyRecordingError(ArchiveRefusedError, ValueError):
    """The range to replay is empty."""

    code = 15


class InvalidPositionError(ArchiveRefusedError, ValueError):
    """The position is out of range, or no frame begins there."""

    code = 16


_BY_ARCHIVE_CODE: dict[int, type[ArchiveRefusedError]] = {
    kind.code: kind for kind in ArchiveRefusedError.__subclasses__()
}


def archive_error(code: int, message: str, correlation_id: int = -1) -> ArchiveRefusedError:
    """The exception for an error code of an archive; an unknown code gives the base class with that code."""
    return _BY_ARCHIVE_CODE.get(code, ArchiveRefusedError)(message, correlation_id, code)
