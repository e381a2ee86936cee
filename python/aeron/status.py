"""The status of a channel, which ``Publication.channel_status`` and ``Subscription.channel_status`` return."""

from enum import IntEnum

__all__ = ["ChannelStatus"]


class ChannelStatus(IntEnum):
    """Status of a channel's endpoint in the driver. IPC channels and spies are always active. Immutable."""

    ERRORED = -1
    INITIALIZING = 0
    ACTIVE = 1
    CLOSING = 2


# Users import the class from `aeron`, so reprs and pickles name that module.
ChannelStatus.__module__ = "aeron"
