"""Converts client options to arguments of the native classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aeron.spark.options import ClientOptions

if TYPE_CHECKING:
    from aeron._stubs.pipeline import _ClientSettings

__all__ = ["client_settings"]


def client_settings(options: ClientOptions) -> _ClientSettings:
    """Returns the settings of a client for these options. ``None`` stands for the client's default."""
    return {
        "aeron_dir": options.aeron_dir,
        "driver_timeout_ms": options.aeron_driver_timeout,
        "client_name": options.aeron_client_name,
        "resource_linger_duration_ns": options.aeron_client_resource_linger_duration,
        "idle_sleep_duration_ns": options.aeron_client_idle_sleep_duration,
        "pre_touch_mapped_memory": options.aeron_pre_touch_mapped_memory,
    }
