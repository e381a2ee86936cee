//! Methods that replay recordings.

use std::sync::Arc;

use aeron_archive::client::{
    ArchiveCall, ArchiveOperation, NULL_COUNTER_ID, ReplayParams, Result, StartedReplay, TimeRange,
};
use aeron_protocol::archive::extension::SPEED_UNIT;
use aeron_protocol::archive::{NULL_LENGTH, NULL_VALUE, REPLAY_ALL_AND_FOLLOW};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::super::link::Link;
use super::super::persistent::PyPersistentSubscription;
use super::super::persistent_options::Options;
use super::super::replay::{REPLAY_CHANNEL, REPLAY_STREAM_ID, Replay};
use super::super::time::{EpochMicroseconds, warn_approximate};
use super::PyAeronArchive;
use super::methods::archive_methods;
use crate::argument::{self, Argument};
use crate::channel::Channel;
use crate::errors::raise;
use crate::operations::{Owned, PyPendingOperation};
use crate::subscription::PySubscription;

/// Maximum of the argument `speed`, which is a factor of the recorded pace.
const MAX_SPEED: f64 = 1_000_000.0;

/// The position at which a replay begins.
#[derive(Clone, Copy)]
enum ReplayBegin {
    /// The first position that the archive has, on its disk or in object storage.
    Earliest,
    At(i64),
}

impl ReplayBegin {
    /// Returns the position; `None` if the archive must be asked for it.
    const fn position(self) -> Option<i64> {
        match self {
            Self::Earliest => None,
            Self::At(position) => Some(position),
        }
    }
}

impl Argument for ReplayBegin {
    fn convert(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        if !value.is_instance_of::<PyString>() {
            return i64::convert(value, name).map(Self::At);
        }
        match value.extract::<&str>()? {
            "earliest" => Ok(Self::Earliest),
            other => {
                let reason = format!("{name}='{other}' is not a number of bytes or 'earliest'");
                Err(raise("InvalidArgumentError", reason))
            }
        }
    }
}

archive_methods! {
    /// Replays a recording to a new subscription.
    ///
    /// An iteration over the subscription's batches ends at the end of the replay. If the archive ends the replay
    /// early, or the image is lost, the iteration raises `ArchiveError`. If the replay ends before `length` bytes, the
    /// client also checks that the archive still responds. If the archive does not respond, it may have been killed,
    /// and the iteration raises `ArchiveError`. After a close of this client, the check is left out. Closing the
    /// subscription stops the replay.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///     channel: Channel of the replay. Its port may be 0. For an archive on another host, the channel must
    ///         have an address of this machine.
    ///     stream_id: Stream id of the replay.
    ///     position: Position of the first message, in bytes. `None` stands for the start position of the recording on
    ///         the archive's disk. ``"earliest"`` includes older segments in object storage.
    ///     length: Number of bytes to replay. `REPLAY_ALL_AND_FOLLOW` replays to the end and follows an active
    ///         recording. `REPLAY_ALL_AND_STOP` stops at the position up to which the archive had recorded when
    ///         the replay started.
    ///     since: Replay the messages that arrived at or after this time, instead of `position`: a datetime with a
    ///         time zone, or a `numpy.datetime64`, which is in UTC.
    ///     until: Replay only messages that arrived before this time, instead of `length`. If the recording has no
    ///         index for `since` or `until`, whole segments are replayed, and a `UserWarning` says so.
    ///     rate: Maximum number of bytes of the stream per second, including the headers of frames. At least 1.
    ///     speed: Factor of the recorded pace, from 0.000001 to 1000000. The intervals between the arrivals of messages
    ///         are divided by this number, so `1.0` is the recorded pace. With `rate`, the slower of the two applies.
    ///         The recording must have an index.
    ///     bounding_limit_counter_id: Id of a counter. The replay does not go beyond the counter's value. Not together
    ///         with `rate` or `speed`.
    ///     file_io_max_length: Maximum number of bytes that the archive reads at once. `None` stands for the archive's
    ///         setting.
    ///
    /// Returns:
    ///     The `Subscription`.
    ///
    /// Raises:
    ///     InvalidArgumentError: If an argument is out of range, a datetime has no time zone, or two arguments
    ///         contradict each other.
    ///     RegistrationError: If the driver refuses the subscription; the subclass names the reason.
    ///     EmptyTimeRangeError: If the recording has no message in the range of time.
    ///     NotSupportedByArchiveError: If the archive does not have replays by time, rate or speed.
    ///
    /// Example:
    ///     ```python
    ///     for batch in archive.replay(recording_id).batches():
    ///         print(len(batch))
    ///     ```
    replay, async_replay (
        recording_id, channel = Channel(REPLAY_CHANNEL.into()), stream_id = REPLAY_STREAM_ID, *, position = None,
        length = REPLAY_ALL_AND_FOLLOW, since = None, until = None, rate = None, speed = None,
        bounding_limit_counter_id = None, file_io_max_length = None
    )
    as "($self, recording_id, channel='aeron:ipc', stream_id=100, *, position=None, length=-1, since=None, until=None, rate=None, speed=None, bounding_limit_counter_id=None, file_io_max_length=None)"
    [
        slf, recording_id: i64, channel: Channel, stream_id: i32, position: Option<ReplayBegin>, length: i64,
        since: Option<EpochMicroseconds>, until: Option<EpochMicroseconds>, rate: Option<i64>, speed: Option<f64>,
        bounding_limit_counter_id: Option<i32>, file_io_max_length: Option<i32>,
    ] {
        let params = ReplayParams {
            max_bytes_per_second: rate_value(rate)?,
            speed_millionths: speed_value(speed)?,
            ..replay_params(position.and_then(ReplayBegin::position), length, bounding_limit_counter_id, file_io_max_length)
        };
        if since.is_some() && matches!(position, Some(ReplayBegin::Earliest)) {
            let reason = "both since and position='earliest' are given: choose one begin of the replay";
            return Err(raise("InvalidArgumentError", reason));
        }
        let range = TimeRange {
            since_us: since.map(|time| time.0),
            until_us: until.map(|time| time.0),
        };
        let begin = |link: &Arc<Link>| -> Result<ArchiveOperation<StartedReplay>> {
            let (archive, channel) = (&link.archive, &channel.0);
            if range != TimeRange::default() {
                return archive.async_replay_in_time(recording_id, range, channel, stream_id, &params);
            }
            match position {
                Some(ReplayBegin::Earliest) => {
                    archive.async_replay_from_earliest(recording_id, channel, stream_id, &params)
                }
                _ => archive.async_replay(recording_id, channel, stream_id, &params),
            }
        };
        let end = match range == TimeRange::default() {
            true => Replay::end_of(&params),
            false => None,
        };
        Self::pending(slf, "replay", begin, move |py, owned, link, started| {
            if started.is_approximate {
                warn_approximate(py, recording_id)?;
            }
            let replay = Replay::new(link, recording_id, &started, end);
            replay_subscription(py, owned, replay, started)
        })
    }

    /// Replays a recording to a channel and stream. The program adds the subscription itself.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///     channel: Channel of the replay. For a channel with `control-mode=response`, use `replay`.
    ///     stream_id: Stream id of the replay.
    ///     position: Position of the first message, in bytes. `None` stands for the start position of the recording on
    ///         the archive's disk. For the first position in object storage, see `list_copied_ranges`.
    ///     length: Number of bytes to replay. `REPLAY_ALL_AND_FOLLOW` replays to the end and follows an active
    ///         recording. `REPLAY_ALL_AND_STOP` stops at the position up to which the archive had recorded when
    ///         the replay started.
    ///     rate: Maximum number of bytes of the stream per second, including the headers of frames. At least 1.
    ///     speed: Factor of the recorded pace, from 0.000001 to 1000000. The intervals between the arrivals of messages
    ///         are divided by this number, so `1.0` is the recorded pace. With `rate`, the slower of the two applies.
    ///         The recording must have an index.
    ///     bounding_limit_counter_id: Id of a counter. The replay does not go beyond the counter's value. Not together
    ///         with `rate` or `speed`.
    ///     file_io_max_length: Maximum number of bytes that the archive reads at once. `None` stands for the archive's
    ///         setting.
    ///
    /// Returns:
    ///     The id of the replay. Its low 32 bits are the session id of the replayed stream.
    ///
    /// Raises:
    ///     InvalidArgumentError: If an argument is out of range, two arguments contradict each other, or the channel
    ///         has `control-mode=response`.
    ///     NotSupportedByArchiveError: If the archive does not have replays with a rate or speed.
    start_replay, async_start_replay (
        recording_id, channel, stream_id, *, position = None, length = REPLAY_ALL_AND_FOLLOW, rate = None, speed = None,
        bounding_limit_counter_id = None, file_io_max_length = None
    )
    as "($self, recording_id, channel, stream_id, *, position=None, length=-1, rate=None, speed=None, bounding_limit_counter_id=None, file_io_max_length=None)"
    [
        slf, recording_id: i64, channel: Channel, stream_id: i32, position: Option<i64>, length: i64,
        rate: Option<i64>, speed: Option<f64>, bounding_limit_counter_id: Option<i32>, file_io_max_length: Option<i32>,
    ] {
        let params = ReplayParams {
            max_bytes_per_second: rate_value(rate)?,
            speed_millionths: speed_value(speed)?,
            ..replay_params(position, length, bounding_limit_counter_id, file_io_max_length)
        };
        let begin = |link: &Arc<Link>| {
            link.archive.async_start_replay(recording_id, &channel.0, stream_id, &params)
        };
        Self::pending(slf, "start replay", begin, |py, _, _, id: i64| id.into_py_any(py))
    }

    /// Stops a replay. An unknown id is not an error.
    ///
    /// Args:
    ///     replay_session_id: Id of the replay, which `start_replay` returned.
    stop_replay, async_stop_replay (replay_session_id) [slf, replay_session_id: i64] {
        Self::request(slf, ArchiveCall::stop_replay(replay_session_id))
    }

    /// Stops all replays of a recording, including the replays of other clients.
    ///
    /// Args:
    ///     recording_id: Id of the recording. `None` stops the replays of all recordings.
    stop_all_replays, async_stop_all_replays (recording_id = None) [slf, recording_id: Option<i64>] {
        Self::request(slf, ArchiveCall::stop_all_replays(recording_id.unwrap_or(NULL_VALUE)))
    }
    ---

    /// Adds a `PersistentSubscription` that replays a recording of this archive, and then joins its live stream.
    ///
    /// The subscription has its own session with the archive, with the settings of this client. If the
    /// credentials are a function, each connection of the subscription calls it.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///     live_channel: Channel of the live stream: IPC, unicast, multicast, `control-mode=dynamic` or a spy.
    ///     live_stream_id: Stream id of the live stream, which must be the stream id of the recording.
    ///     replay_channel: Channel of replays, with an address of this machine. Its port may be 0, and it may
    ///         have `control-mode=response`.
    ///     replay_stream_id: Stream id of replays.
    ///     start_position: Position of the first message in bytes, `FROM_START`, or `FROM_LIVE`. With
    ///         `FROM_LIVE` the subscription begins with the live stream.
    ///     on_live_joined: Called without arguments in a poll, when the subscription has joined the live stream.
    ///     on_live_left: Called without arguments in a poll, when the subscription has lost the live stream.
    ///     on_error: Called in a poll as `on_error(error)` with each `PersistentSubscriptionError`. If
    ///         `has_failed` is then `True`, the error has ended the subscription.
    ///
    /// Returns:
    ///     The subscription.
    ///
    /// Raises:
    ///     ArgumentTypeError: If a required argument is missing.
    ///     InvalidArgumentError: If a channel or `start_position` is not valid.
    ///     ConfigurationError: If a setting is not valid or contradicts another setting.
    ///     RegistrationError: If the driver refuses the counters of the subscription; the subclass names the reason.
    ///     DriverTimeoutError: If the driver does not respond within the driver timeout.
    ///     ClientClosedError: If the Aeron client is closed.
    #[pyo3(
        signature = (**settings),
        text_signature = "($self, *, recording_id, live_channel, live_stream_id, replay_channel='aeron:ipc', replay_stream_id=100, start_position=-2, on_live_joined=None, on_live_left=None, on_error=None)"
    )]
    fn persistent_subscription(
        &self,
        py: Python<'_>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyPersistentSubscription> {
        let (options, others) = Options::read(py, settings)?;
        if let Some((name, _)) = others.iter().next() {
            let reason = format!(
                "persistent_subscription has no setting {name}; help(aeron.PersistentSubscription) lists all"
            );
            return Err(raise("ArgumentTypeError", reason));
        }
        let (context, credentials) = self.settings_for_another(py)?;
        PyPersistentSubscription::open(self.client.bind(py), options, context, credentials)
    }
}

fn replay_subscription(
    py: Python<'_>,
    owned: &Owned,
    replay: Replay,
    started: StartedReplay,
) -> PyResult<Py<PyAny>> {
    let client = owned.client(py)?;
    PySubscription::of_replay(started.subscription, client, replay)?.into_py_any(py)
}

fn replay_params(
    position: Option<i64>,
    length: i64,
    bounding_limit_counter_id: Option<i32>,
    file_io_max_length: Option<i32>,
) -> ReplayParams {
    ReplayParams {
        position: position.unwrap_or(NULL_VALUE),
        length,
        bounding_limit_counter_id: bounding_limit_counter_id.unwrap_or(NULL_COUNTER_ID),
        file_io_max_length: file_io_max_length.unwrap_or(NULL_LENGTH),
        ..ReplayParams::default()
    }
}

/// Returns the value of the field `rate` of a request, in bytes per second.
fn rate_value(rate: Option<i64>) -> PyResult<i64> {
    match rate {
        None => Ok(NULL_VALUE),
        Some(rate @ 1..) => Ok(rate),
        Some(rate) => {
            let reason = format!(
                "rate={rate} is not positive: pass a number of bytes per second, or None for no limit"
            );
            Err(raise("InvalidArgumentError", reason))
        }
    }
}

/// Returns the value of the field `speed` of a request.
fn speed_value(speed: Option<f64>) -> PyResult<i64> {
    let Some(speed) = speed else {
        return Ok(NULL_VALUE);
    };
    let millionths = (speed * SPEED_UNIT as f64).round();
    if (1.0..=MAX_SPEED * SPEED_UNIT as f64).contains(&millionths) {
        return Ok(millionths as i64);
    }
    let reason = format!(
        "speed={speed} is not from 0.000001 to {MAX_SPEED}: pass 1.0 for the recorded pace, or None to send as fast as possible"
    );
    Err(raise("InvalidArgumentError", reason))
}
