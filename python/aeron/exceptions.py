"""All exceptions of this package. Their root is :class:`AeronError`.

If the driver refuses a command, the client raises the subclass of :class:`RegistrationError` for the error code. The
message is the driver's text. Each class except the root also derives from a built-in exception for its kind of failure,
so ``except TimeoutError`` and ``except ValueError`` work as with the standard library. If no other built-in exception
fits, the class derives from ``RuntimeError``.
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
    "ClaimAbortedError",
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
    "EmptyTimeRangeError",
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
    "NotSupportedByArchiveError",
    "NotSupportedError",
    "OperationCancelledError",
    "OperationTimeoutError",
    "PersistentSubscriptionError",
    "PublicationClosedError",
    "PublicationRevokedError",
    "RecordedPublisherError",
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
    "UnrecordedMessagesError",
    "ViewError",
    "archive_error",
    "registration_error",
]


class AeronError(Exception):
    """Root of all exceptions of this package.

    Catch it for errors of every kind. The subclass names the cause and the remedy.
    """


# ---- arguments and settings ------------------------------------------------------------------------------------------


class InvalidArgumentError(AeronError, ValueError):
    """An argument is not valid for the call.

    The text names the argument: pass a value that it permits.
    """


class ArgumentRangeError(InvalidArgumentError, OverflowError):
    """An integer is outside the range of its parameter.

    The text names the range: pass a value within it.
    """


class ArgumentTypeError(AeronError, TypeError):
    """An argument has the wrong type.

    The text names the expected type: pass an object of that type.
    """


class IndexRangeError(AeronError, IndexError):
    """No object has this index or id.

    Compare the index with the length, or the counter id with `max_counter_id`, before the call.
    """


class ViewError(AeronError, BufferError):
    """A memoryview was used after its release, or a handler kept a memoryview.

    Copy the data with ``bytes(view)`` before the handler returns.
    """


class ConfigurationError(AeronError, ValueError):
    """A setting is not known, is out of its range, or contradicts another setting.

    The text names the setting. Correct its value.
    """


class ForkedError(AeronError, RuntimeError):
    """The object belongs to the parent process of a fork.

    Open a client or a driver in the child process.
    """


class ReentrantCallError(AeronError, RuntimeError):
    """The call is not permitted now: another thread uses the object, or the call is made in a handler.

    Use the object in one thread at a time. In a handler, use methods that do not wait.
    """


class AgentTerminationError(AeronError, RuntimeError):
    """An agent raises this exception in ``do_work`` to end its runner.

    No remedy is needed, because the agent requests the end.
    """


# ---- the driver as a process -----------------------------------------------------------------------------------------


class DriverError(AeronError, OSError):
    """The media driver cannot start, or its directory cannot be used.

    The text names the file. Correct the file, or use another ``dir``.
    """


class DriverActiveError(DriverError):
    """A live driver owns the directory.

    Connect a client to that driver, or start a driver with another ``dir``.
    """


class DriverTimeoutError(AeronError, TimeoutError):
    """No media driver responded in time: no driver runs on the directory, or it has ended.

    Start the driver, or correct the directory.
    """


# ---- the life of a client --------------------------------------------------------------------------------------------


class ClientClosedError(AeronError, RuntimeError):
    """The client is closed.

    If an error closed the client, ``__cause__`` is that error. Open a new client.
    """


class ClientTimeoutError(AeronError, TimeoutError):
    """The driver received no keepalive of this client in time, and closed the client.

    Open a new client; raise ``client_liveness_timeout_ns`` if the process pauses for long.
    """


class ConductorServiceTimeoutError(AeronError, TimeoutError):
    """The time between two runs of the client's conductor was longer than the inter-service timeout.

    Open a new client. If it has no threads, call ``do_work`` more often and keep handlers short.
    """


# ---- publications and subscriptions ----------------------------------------------------------------------------------


class PublicationClosedError(AeronError, RuntimeError):
    """The publication is closed.

    If an error closed the publication, ``__cause__`` is that error. Add a new publication.
    """


class SubscriptionClosedError(AeronError, RuntimeError):
    """The subscription is closed.

    If an error closed the subscription, ``__cause__`` is that error. Add a new subscription.
    """


class ImageClosedError(ClientClosedError):
    """The image is closed.

    If an error closed the image, ``__cause__`` is that error. Wait for a new image of the
    subscription.
    """


class CounterClosedError(ClientClosedError):
    """The counter is closed.

    If an error closed the counter, ``__cause__`` is that error. Add a new counter.
    """


class ClaimAbortedError(AeronError):
    """The client has lost its driver since the claim, so the message was not sent.

    Only a client with ``reconnect`` gets this error. Claim again, and send the message again.
    """


class MaxPositionExceededError(AeronError, OverflowError):
    """The stream has reached its largest position, after 2^31 terms.

    Close the publication and add a new one.
    """


class MessageTooLongError(AeronError, ValueError):
    """A message is longer than ``max_message_length``, or a claim is longer than ``max_payload_length``.

    Split the message, or raise the MTU or the term length.
    """


class NotConnectedError(AeronError, TimeoutError):
    """No peer connected within the timeout.

    Check channel and stream id on both sides, or wait longer.
    """


class OperationTimeoutError(AeronError, TimeoutError):
    """A pending operation is not complete within the timeout.

    The operation continues. Wait again, or cancel it.
    """


class OperationCancelledError(AeronError, RuntimeError):
    """The program cancelled the operation, so it has no result.

    Start it again if you need the result.
    """


class BackPressureTimeoutError(AeronError, TimeoutError):
    """The slowest subscriber made no room within the timeout.

    Poll faster in that subscriber, wait longer, or publish less.
    """


class CorruptLogError(AeronError, RuntimeError):
    """A peer wrote impossible data into a shared log, and the image was closed.

    Restart the publisher; report a bug if it repeats.
    """


# ---- refusals of the driver ------------------------------------------------------------------------------------------


class RegistrationError(AeronError, RuntimeError):
    """The driver refused a request. The text is from the driver.

    The subclass names the cause and the remedy.

    Args:
        message: The driver's text.
        correlation_id: Correlation id of the request; -1 if it is not known.
        code: Error code of the control protocol. ``None`` stands for the code of the class.

    Attributes:
        code: Error code of the control protocol.
        correlation_id: Correlation id of the request; -1 if it is not known.
    """

    code: int = -1
    correlation_id: int

    def __init__(self, message: str, correlation_id: int = -1, code: int | None = None) -> None:
        super().__init__(message)
        self.correlation_id = correlation_id
        if code is not None:
            self.code = code


class InvalidChannelError(RegistrationError, ValueError):
    """The channel URI is not valid, or its parameters contradict each other or a live stream.

    Correct the channel.
    """

    code = 1


class UnknownSubscriptionError(RegistrationError, LookupError):
    """The driver has no such subscription, for instance because it was closed.

    Add the subscription again.
    """

    code = 2


class UnknownPublicationError(RegistrationError, LookupError):
    """The driver has no such publication of this client, for instance because it was closed.

    Add the publication again.
    """

    code = 3


class ChannelEndpointError(RegistrationError, OSError):
    """The channel's socket failed.

    The text names the address. Correct the endpoint or the interface, and add the stream again.
    """

    code = 4


class UnknownCounterError(RegistrationError, LookupError):
    """The driver has no such counter of this client, for instance because it was closed.

    Add the counter again.
    """

    code = 5


class UnknownCommandError(RegistrationError):
    """The driver does not know the command.

    Use a driver of version 1.52 or later.
    """

    code = 6


class MalformedCommandError(RegistrationError):
    """The driver could not read the command.

    Use client and driver of the same version; report a bug if it repeats.
    """

    code = 7


class NotSupportedError(RegistrationError):
    """The driver does not support the request.

    The text says why. Change the request or the driver's settings.
    """

    code = 8


class UnknownHostError(RegistrationError, OSError):
    """A host name of the channel has no address.

    Correct the name, or the name resolution of the machine.
    """

    code = 9


class ResourceTemporarilyUnavailableError(RegistrationError):
    """An earlier endpoint on the same address is still closing.

    Repeat the request.
    """

    code = 10


class GenericDriverError(RegistrationError):
    """The driver refused a request for a reason that has no error code of its own.

    The text names the cause.
    """

    code = 11


class StorageSpaceError(RegistrationError, OSError):
    """The log file does not fit on the file system of the driver's directory.

    Free space, or use shorter terms.
    """

    code = 12


class ImageRejectedError(RegistrationError):
    """A subscriber rejected the stream.

    The text is the subscriber's reason. Remove the cause, and publish again.
    """

    code = 13


class PublicationRevokedError(RegistrationError):
    """The publisher revoked the stream.

    Wait for a new image.
    """

    code = 14


_BY_CODE: dict[int, type[RegistrationError]] = {kind.code: kind for kind in RegistrationError.__subclasses__()}


_BAD_PORTS = ("port out of range: ", "port invalid: ")
"""Texts about a bad port. Drivers refuse a bad port with the generic code 11, so only the text identifies the error."""


def registration_error(code: int, message: str, correlation_id: int = -1) -> RegistrationError:
    """Returns the exception for an error code of the control protocol.

    For a channel with a bad port, the exception is an `InvalidChannelError` with the driver's code.

    Args:
        code: Error code of the control protocol.
        message: The driver's text.
        correlation_id: Correlation id of the request; -1 if it is not known.

    Returns:
        The exception; for an unknown code, a `RegistrationError`.
    """
    kind = _BY_CODE.get(code, RegistrationError)
    if kind is GenericDriverError and any(text in message for text in _BAD_PORTS):
        kind = InvalidChannelError
    return kind(message, correlation_id, code)


# ---- archives --------------------------------------------------------------------------------------------------------


class ArchiveError(AeronError, RuntimeError):
    """An archive refused a request, or a replay or the session with the archive failed.

    The subclass names the cause and the remedy.

    Args:
        message: Text of the error.
        correlation_id: Correlation id of the request; -1 if the error belongs to no request.
        code: Error code of the archive. ``None`` stands for the code of the class.

    Attributes:
        code: Error code of the archive; -1 if the error is not a refusal.
        correlation_id: Correlation id of the request; -1 if the error belongs to no request.
    """

    code: int = -1
    correlation_id: int

    def __init__(self, message: str, correlation_id: int = -1, code: int | None = None) -> None:
        super().__init__(message)
        self.correlation_id = correlation_id
        if code is not None:
            self.code = code


class ArchiveTimeoutError(ArchiveError, TimeoutError):
    """The archive did not respond within the message timeout.

    Check the channels of the archive, or raise ``message_timeout``.
    """


class NotSupportedByArchiveError(ArchiveError, NotImplementedError):
    """The archive does not support the request, with which this project extends Aeron's protocol.

    Use an archive of this project, in a version that supports the request.
    """


class EmptyTimeRangeError(ArchiveError, LookupError):
    """The recording has no message in the range of time of a replay.

    Choose an earlier start or a later end.
    """


class ArchiveDisconnectedError(ArchiveError, ConnectionError):
    """The archive ended the session, or the connection to the archive is lost.

    Connect again, for example with ``AeronArchive.reconnect``.
    """


class ArchiveClosedError(ArchiveError):
    """The client of the archive is closed, by the program or because its session has ended.

    Connect again, for example with ``AeronArchive.reconnect``.
    """


class PersistentSubscriptionError(ArchiveError):
    """An error of a persistent subscription. The error may end the subscription.

    ``__cause__`` is the error of the archive or the client, if there is one. If the subscription has failed, open a new
    subscription at the position of the last message.

    Attributes:
        reason: ``RECORDING_NOT_FOUND``, ``STREAM_ID_MISMATCH``, ``INVALID_START_POSITION``, or ``GENERIC`` for any
            other reason.
    """

    reason: str = "GENERIC"


class RecordedPublisherError(ArchiveError):
    """An error of a recorded publisher. The error may end the publisher.

    ``__cause__`` is the error of the archive or the client, if there is one. If the publisher has failed, save the
    messages that `RecordedPublisher.unrecorded` returns, and open a new publisher.

    Attributes:
        reason: ``RECORDING_NOT_FOUND``, ``STREAM_ID_MISMATCH``, ``IN_USE`` and ``EXTENDED_BY_OTHER`` (another publisher
            of the recording), ``RECORDED_POSITION_LOST`` (the recording ends before a position that it had reached), or
            ``GENERIC`` for any other reason.
    """

    reason: str = "GENERIC"


class UnrecordedMessagesError(ArchiveError):
    """A recorded publisher was closed, and some of its messages are not known to be recorded.

    Close with a longer ``timeout``, or save the messages that `RecordedPublisher.unrecorded` returns. ``__cause__`` is
    the error that ended the publisher, if there is one.

    Attributes:
        messages: Number of messages.
        bytes: Number of bytes of these messages.
        position: Stream position after the last message, in bytes. ``None`` if there was no recording.
        recorded_position: Stream position up to which the messages are recorded, in bytes. ``None`` if there was no
            recording.
    """

    messages: int = 0
    bytes: int = 0
    position: int | None = None
    recorded_position: int | None = None


class ArchiveActiveError(ArchiveError, OSError):
    """A live archive uses the directory or the archive id.

    Stop that archive, or use another directory or ``archive_id``.
    """


class ArchiveDirectoryError(ArchiveError, OSError):
    """The directory of an archive, its catalog or one of its recordings cannot be used.

    ``aeron archive verify`` finds the cause.
    """


class ArchiveRefusedError(ArchiveError):
    """The archive refused a request. The text is from the archive.

    The subclass names the cause and the remedy.
    """

    code = 0


class ActiveListingError(ArchiveRefusedError):
    """The session has a listing that is not complete.

    Wait for the end of that listing before you request another listing.
    """

    code = 1


class ActiveRecordingError(ArchiveRefusedError):
    """The recording is active or is being replayed.

    Stop the recording and its replays first.
    """

    code = 2


class ActiveSubscriptionError(ArchiveRefusedError):
    """The archive already records this channel and stream.

    Stop the existing recording, or use it.
    """

    code = 3


class UnknownRecordingSubscriptionError(ArchiveRefusedError, LookupError):
    """The archive has no such subscription.

    ``list_recording_subscriptions`` returns the existing subscriptions.
    """

    code = 4


class UnknownRecordingError(ArchiveRefusedError, LookupError):
    """The archive has no such recording, or the recording is of another stream.

    ``list_recordings`` returns the existing recordings.
    """

    code = 5


class UnknownReplayError(ArchiveRefusedError, LookupError):
    """The archive has no such replay, for instance because it has ended.

    Start a new replay.
    """

    code = 6


class MaxReplaysError(ArchiveRefusedError):
    """The archive has reached its limit of replays.

    Stop a replay, or raise ``max_concurrent_replays``.
    """

    code = 7


class MaxRecordingsError(ArchiveRefusedError):
    """The archive has reached its limit of recordings.

    Stop a recording, or raise ``max_concurrent_recordings``.
    """

    code = 8


class InvalidExtensionError(ArchiveRefusedError, ValueError):
    """The stream does not continue the recording that it should extend.

    Publish with the recording's initial term id, term length and stop position.
    """

    code = 9


class AuthenticationRejectedError(ArchiveRefusedError, PermissionError):
    """The archive rejected the credentials.

    Pass valid ``credentials``.
    """

    code = 10


class ArchiveStorageSpaceError(ArchiveRefusedError, OSError):
    """The file system of the archive has too little space.

    Free space, for instance with ``purge_segments``.
    """

    code = 11


class UnknownReplicationError(ArchiveRefusedError, LookupError):
    """The archive has no such replication, for instance because it has ended.

    Start a new replication.
    """

    code = 12


class UnauthorisedActionError(ArchiveRefusedError, PermissionError):
    """The client has no permission for the request.

    Connect with other credentials, or change the archive's authorisation.
    """

    code = 13


class ReplicationConnectionError(ArchiveRefusedError, ConnectionError):
    """The source archive of a replication cannot be reached.

    Check the control channel of the source archive, and replicate again.
    """

    code = 14


class EmptyRecordingError(ArchiveRefusedError, ValueError):
    """The range to replay is empty.

    Replay a range that has data.
    """

    code = 15


class InvalidPositionError(ArchiveRefusedError, ValueError):
    """The position is out of range, or no frame begins there.

    Pass a position between the recording's start and stop positions.
    """

    code = 16


_BY_ARCHIVE_CODE: dict[int, type[ArchiveRefusedError]] = {
    kind.code: kind for kind in ArchiveRefusedError.__subclasses__()
}


def archive_error(code: int, message: str, correlation_id: int = -1) -> ArchiveRefusedError:
    """Returns the exception for an error code of an archive.

    Args:
        code: Error code of the archive.
        message: The archive's text.
        correlation_id: Correlation id of the request; -1 if it is not known.

    Returns:
        The exception; for an unknown code, an `ArchiveRefusedError`.
    """
    return _BY_ARCHIVE_CODE.get(code, ArchiveRefusedError)(message, correlation_id, code)


# Users import these names from `aeron`, so reprs, tracebacks and pickles name that module.
for _class in [thing for thing in globals().values() if isinstance(thing, type)]:
    _class.__module__ = "aeron"
