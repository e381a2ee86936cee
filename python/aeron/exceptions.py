"""Every exception this package raises, below one root.

An error that a driver answers arrives as the subclass of :class:`RegistrationError` that stands for its code, with the
driver's own text as its message. Where Python has a built-in meaning for a failure (a timeout, a bad value, a lost
connection) the class derives from that one too, so ``except TimeoutError`` does what it says.
"""

__all__ = [
    "AeronError",
    "AgentTerminationError",
    "BackPressureTimeoutError",
    "ChannelEndpointError",
    "ClientClosedError",
    "ClientTimeoutError",
    "ConductorServiceTimeoutError",
    "ConfigurationError",
    "CorruptLogError",
    "DriverActiveError",
    "DriverError",
    "DriverTimeoutError",
    "ForkedError",
    "GenericDriverError",
    "ImageRejectedError",
    "InvalidChannelError",
    "MalformedCommandError",
    "MaxPositionExceededError",
    "MessageTooLongError",
    "NotConnectedError",
    "NotSupportedError",
    "PublicationClosedError",
    "PublicationRevokedError",
    "ReentrantCallError",
    "RegistrationError",
    "ResourceTemporarilyUnavailableError",
    "StorageSpaceError",
    "SubscriptionClosedError",
    "UnknownCommandError",
    "UnknownCounterError",
    "UnknownHostError",
    "UnknownPublicationError",
    "UnknownSubscriptionError",
    "registration_error",
]


class AeronError(Exception):
    """The root of everything this package raises."""


class ConfigurationError(AeronError, ValueError):
    """A setting is unknown, out of its range, or does not fit another one."""


class ForkedError(AeronError, RuntimeError):
    """The object belongs to the parent process: after a fork, open a client or a driver in the child."""


class ReentrantCallError(AeronError, RuntimeError):
    """An object that serves one caller at a time was entered again: from its own handler, or by a second thread."""


class AgentTerminationError(AeronError):
    """Raised by an agent's ``do_work`` to end its runner in an orderly way."""


# ---- the driver as a process ----------------------------------------------------------------------------------------


class DriverError(AeronError, OSError):
    """The media driver could not start, or its directory is unusable."""


class DriverActiveError(DriverError):
    """A live driver owns the directory already."""


class DriverTimeoutError(AeronError, TimeoutError):
    """No media driver answered in time: none is running on the directory, or it died."""


# ---- the life of a client -------------------------------------------------------------------------------------------


class ClientClosedError(AeronError):
    """The client is closed; ``__cause__`` says what closed it, if that was not the program."""


class ClientTimeoutError(AeronError, TimeoutError):
    """The driver declared this client dead: it sent no keepalive for the client liveness timeout."""


class ConductorServiceTimeoutError(AeronError, TimeoutError):
    """The client's conductor was not run for longer than the inter-service timeout."""


# ---- publications and subscriptions ---------------------------------------------------------------------------------


class PublicationClosedError(AeronError):
    """The publication is closed; ``__cause__`` says what closed it, if that was not the program."""


class SubscriptionClosedError(AeronError):
    """The subscription is closed; ``__cause__`` says what closed it, if that was not the program."""


class MaxPositionExceededError(AeronError):
    """The stream has used up its positions (2^31 terms): close this publication and add a new one."""


class MessageTooLongError(AeronError, ValueError):
    """A message is longer than the stream carries (``max_message_length``, for claims ``max_payload_length``)."""


class NotConnectedError(AeronError, TimeoutError):
    """No subscriber connected within the time given."""


class BackPressureTimeoutError(AeronError, TimeoutError):
    """The slowest subscriber did not make room within the time given."""


class CorruptLogError(AeronError):
    """A peer wrote something impossible into a shared log; the image was closed."""


# ---- errors that a driver answers -----------------------------------------------------------------------------------


class RegistrationError(AeronError):
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


class UnknownSubscriptionError(RegistrationError):
    """The driver knows no such subscription."""

    code = 2


class UnknownPublicationError(RegistrationError):
    """The driver knows no such publication of this client."""

    code = 3


class ChannelEndpointError(RegistrationError):
    """The channel's endpoint failed."""

    code = 4


class UnknownCounterError(RegistrationError):
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


class UnknownHostError(RegistrationError):
    """A host name in the channel could not be resolved."""

    code = 9


class ResourceTemporarilyUnavailableError(RegistrationError):
    """The endpoint is just closing; try again."""

    code = 10


class GenericDriverError(RegistrationError):
    """Everything without a code of its own; the message says it."""

    code = 11


class StorageSpaceError(RegistrationError):
    """The log file does not fit on the file system of the Aeron directory."""

    code = 12


class ImageRejectedError(RegistrationError):
    """A subscriber rejected the stream."""

    code = 13


class PublicationRevokedError(RegistrationError):
    """The publisher revoked the stream."""

    code = 14


_BY_CODE: dict[int, type[RegistrationError]] = {kind.code: kind for kind in RegistrationError.__subclasses__()}


def registration_error(code: int, message: str, correlation_id: int = -1) -> RegistrationError:
    """The exception for an error code of the control protocol; an unknown code gives the base class with that code."""
    kind = _BY_CODE.get(code)
    return RegistrationError(message, correlation_id, code) if kind is None else kind(message, correlation_id)
