"""Aeron for Python: a media driver and a client in one package, byte-compatible with Aeron 1.52.

>>> import aeron
>>> with aeron.MediaDriver() as driver, aeron.connect(driver) as client:
...     publication = client.add_exclusive_publication("aeron:ipc", 1001)
...     subscription = client.add_subscription("aeron:ipc", 1001)
...     publication.wait_connected(timeout=5)
...     position = publication.publish(b"hello", timeout=1)
...     while not subscription.poll(lambda payload, header: print(payload)):
...         pass
b'hello'

``import aeron`` loads the native module and nothing else: numpy, pyarrow and the libraries of the command line are
imported where they are used.
"""

from aeron._aeron import (
    Action,
    Aeron,
    BackoffIdleStrategy,
    Batch,
    Batches,
    BufferClaim,
    BusySpinIdleStrategy,
    ChannelUriBuilder,
    CncFile,
    Counter,
    CounterSnapshot,
    CountersReader,
    ErrorObservation,
    ExclusivePublication,
    FragmentAssembler,
    Header,
    IdleStrategy,
    Image,
    LogFile,
    LogFrame,
    LossObservation,
    MediaDriver,
    NoOpIdleStrategy,
    PendingOperation,
    Publication,
    PublicationErrorFrame,
    SleepingIdleStrategy,
    SleepingMillisIdleStrategy,
    Subscription,
    YieldingIdleStrategy,
    __version__,
    async_connect,
    default_directory,
    is_driver_active,
    parse_duration_ns,
    parse_size,
    read_error_log,
    read_loss_report,
    request_driver_termination,
)
from aeron.exceptions import (
    AeronError,
    AgentTerminationError,
    ArgumentRangeError,
    ArgumentTypeError,
    BackPressureTimeoutError,
    ChannelEndpointError,
    ClientClosedError,
    ClientTimeoutError,
    ConductorServiceTimeoutError,
    ConfigurationError,
    CorruptLogError,
    CounterClosedError,
    DriverActiveError,
    DriverError,
    DriverTimeoutError,
    ForkedError,
    GenericDriverError,
    ImageClosedError,
    ImageRejectedError,
    IndexRangeError,
    InvalidArgumentError,
    InvalidChannelError,
    MalformedCommandError,
    MaxPositionExceededError,
    MessageTooLongError,
    NotConnectedError,
    NotSupportedError,
    OperationCancelledError,
    OperationTimeoutError,
    PublicationClosedError,
    PublicationRevokedError,
    ReentrantCallError,
    RegistrationError,
    ResourceTemporarilyUnavailableError,
    StorageSpaceError,
    SubscriptionClosedError,
    UnknownCommandError,
    UnknownCounterError,
    UnknownHostError,
    UnknownPublicationError,
    UnknownSubscriptionError,
    ViewError,
)
from aeron.results import ADMIN_ACTION, BACK_PRESSURED, NOT_CONNECTED, NotSent

TYPE_CHECKING = False
if TYPE_CHECKING:  # what type checkers see of the names that __getattr__ loads
    from aeron.agent import Agent, AgentInvoker, AgentRunner, CompositeAgent, DynamicCompositeAgent
    from aeron.barrier import ShutdownSignalBarrier
    from aeron.loss import FixedLoss, FrameType, MultiGapLoss, RandomLoss
    from aeron.status import ChannelStatus

connect = Aeron

__all__ = [
    "ADMIN_ACTION",
    "BACK_PRESSURED",
    "NOT_CONNECTED",
    "Action",
    "Aeron",
    "AeronError",
    "Agent",
    "AgentInvoker",
    "AgentRunner",
    "AgentTerminationError",
    "ArgumentRangeError",
    "ArgumentTypeError",
    "BackPressureTimeoutError",
    "BackoffIdleStrategy",
    "Batch",
    "Batches",
    "BufferClaim",
    "BusySpinIdleStrategy",
    "ChannelEndpointError",
    "ChannelStatus",
    "ChannelUriBuilder",
    "ClientClosedError",
    "ClientTimeoutError",
    "CncFile",
    "CompositeAgent",
    "ConductorServiceTimeoutError",
    "ConfigurationError",
    "CorruptLogError",
    "Counter",
    "CounterClosedError",
    "CounterSnapshot",
    "CountersReader",
    "DriverActiveError",
    "DriverError",
    "DriverTimeoutError",
    "DynamicCompositeAgent",
    "ErrorObservation",
    "ExclusivePublication",
    "FixedLoss",
    "ForkedError",
    "FragmentAssembler",
    "FrameType",
    "GenericDriverError",
    "Header",
    "IdleStrategy",
    "Image",
    "ImageClosedError",
    "ImageRejectedError",
    "IndexRangeError",
    "InvalidArgumentError",
    "InvalidChannelError",
    "LogFile",
    "LogFrame",
    "LossObservation",
    "MalformedCommandError",
    "MaxPositionExceededError",
    "MediaDriver",
    "MessageTooLongError",
    "MultiGapLoss",
    "NoOpIdleStrategy",
    "NotConnectedError",
    "NotSent",
    "NotSupportedError",
    "OperationCancelledError",
    "OperationTimeoutError",
    "PendingOperation",
    "Publication",
    "PublicationClosedError",
    "PublicationErrorFrame",
    "PublicationRevokedError",
    "RandomLoss",
    "ReentrantCallError",
    "RegistrationError",
    "ResourceTemporarilyUnavailableError",
    "ShutdownSignalBarrier",
    "SleepingIdleStrategy",
    "SleepingMillisIdleStrategy",
    "StorageSpaceError",
    "Subscription",
    "SubscriptionClosedError",
    "UnknownCommandError",
    "UnknownCounterError",
    "UnknownHostError",
    "UnknownPublicationError",
    "UnknownSubscriptionError",
    "ViewError",
    "YieldingIdleStrategy",
    "__version__",
    "async_connect",
    "connect",
    "default_directory",
    "is_driver_active",
    "parse_duration_ns",
    "parse_size",
    "read_error_log",
    "read_loss_report",
    "request_driver_termination",
]

_LAZY = {
    "Agent": "agent",
    "AgentInvoker": "agent",
    "AgentRunner": "agent",
    "ChannelStatus": "status",
    "CompositeAgent": "agent",
    "DynamicCompositeAgent": "agent",
    "FixedLoss": "loss",
    "FrameType": "loss",
    "MultiGapLoss": "loss",
    "RandomLoss": "loss",
    "ShutdownSignalBarrier": "barrier",
}
"""What is rarely used and would have to import more of the standard library: loaded at its first use."""


def __getattr__(name: str) -> object:
    """Loads what is loaded at its first use (PEP 562)."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"aeron.{_LAZY[name]}"), name)
    globals()[name] = value
    return value
