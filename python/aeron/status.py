"""The status of a channel, as ``Publication.channel_status`` and ``Subscription.channel_status`` return it."""

from enum import IntEnum

__all__ = ["ChannelStatus"]


class ChannelStatus(IntEnum):
    """Status of a channel's endpoint at the driver. IPC channels and spies are always active. Immutable."""

    ERRORED = -1
    INITIALIZING = 0
    ACTIVE = 1
    CLOSING = 2


# Users import the class from `aeron`, so reprs and pickles name that module.
ChannelStatus.__module__ = "aeron"
