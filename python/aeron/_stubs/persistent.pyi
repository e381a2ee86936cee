"""Subscriptions that replay a recording and then follow the live stream."""

from collections.abc import Callable
from typing import Self, final

from aeron._stubs.batch import Batch
from aeron._stubs.client import Aeron
from aeron._stubs.operations import _Condition
from aeron.aio import AsyncBatches
from aeron.exceptions import PersistentSubscriptionError
from aeron.types import Channel, Credentials, FragmentHandler, ViewHandler

@final
class PersistentSubscription:
    def __new__(
        cls,
        client: Aeron,
        *,
        recording_id: int,
        live_channel: Channel,
        live_stream_id: int,
        replay_channel: Channel = "aeron:ipc",
        replay_stream_id: int = 100,
        start_position: int = -2,
        on_live_joined: Callable[[], object] | None = None,
        on_live_left: Callable[[], object] | None = None,
        on_error: Callable[[PersistentSubscriptionError], object] | None = None,
        control_channel: Channel | None = None,
        control_stream_id: int | None = None,
        response_channel: Channel | None = None,
        response_stream_id: int | None = None,
        credentials: Credentials | None = None,
        message_timeout: float | None = None,
        client_name: str | None = None,
        control_term_buffer_length: int | None = None,
        control_term_buffer_sparse: bool | None = None,
        control_mtu_length: int | None = None,
    ) -> Self: ...
    def poll(self, handler: FragmentHandler | ViewHandler, fragment_limit: int = 10, *, copy: bool = True) -> int: ...
    def controlled_poll(
        self, handler: FragmentHandler | ViewHandler, fragment_limit: int = 10, *, copy: bool = True
    ) -> int: ...
    def poll_batch(self, limit: int = 4096, *, max_bytes: int = 16777216) -> Batch: ...
    def batches(
        self, limit: int = 4096, *, timeout: float | None = None, max_bytes: int = 16777216
    ) -> PersistentBatches: ...
    def batches_async(self, limit: int = 4096, *, max_bytes: int = 16777216) -> AsyncBatches: ...
    def __aiter__(self) -> AsyncBatches: ...
    def _look(self, limit: int = 4096, max_bytes: int = 16777216, spin_ns: int = 0) -> Batch | None: ...
    @property
    def _is_over(self) -> bool: ...
    @property
    def _is_ready(self) -> _Condition: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, _type: object, _error: object, _traceback: object, /) -> None: ...
    @property
    def is_live(self) -> bool: ...
    @property
    def is_replaying(self) -> bool: ...
    @property
    def has_failed(self) -> bool: ...
    @property
    def failure_reason(self) -> PersistentSubscriptionError | None: ...
    @property
    def state(self) -> str: ...
    @property
    def join_difference(self) -> int | None: ...
    @property
    def is_closed(self) -> bool: ...

@final
class PersistentBatches:
    def __iter__(self) -> Self: ...
    def __next__(self) -> Batch: ...
