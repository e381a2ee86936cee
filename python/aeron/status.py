"""The status of a channel, as ``Publication.channel_status`` and ``Subscription.channel_status`` answer it."""

from enum import IntEnum

__all__ = ["ChannelStatus"]


class ChannelStatus(IntEnum):
    """What a driver says of a channel's endpoint; IPC and spies have none and are always active. Immutable."""

    ERRORED = -1
    INITIALIZING = 0
    ACTIVE = 1
    CLOSING = 2
