//! [`ReplayedFrames`]: reads the frames of a range of a recording from a replay.
//!
//! The replay channel is a response channel: the worker connects to the archive, so only the archive needs a port that
//! is reachable from other machines. The frames of a replay have the recorded positions, flags and reserved values, and
//! other session and stream ids.

use std::sync::Arc;
use std::time::{Duration, Instant};

use aeron_archive::client::{ArchiveCall, ArchiveClientError, ReplayParams, StartedReplay};
use aeron_archive::frame::{CheckedFrame, FrameRules};
use aeron_client::{Image, TryPollError};
use aeron_columns::read::{Frame, Frames};
use aeron_memory::Words;
use aeron_protocol::archive::ArchiveErrorCode;

use super::connection::{ArchiveAccess, ArchiveConnections, ConnectionLease};
use super::partition::SharedPartition;
use crate::error::{LiveCode, LiveError};

/// Maximum length of a block that is copied from the image, in bytes.
const BLOCK_LENGTH: usize = 256 * 1024;
/// Pause before a replay is requested again, if the archive has reached its maximum number of replays.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Reads the frames of a replay. Used by one thread. Dropping the reader stops the replay.
pub(super) struct ReplayedFrames {
    access: Arc<ArchiveAccess>,
    connection: ConnectionLease,
    replay: StartedReplay,
    image: Option<Image>,
    rules: FrameRules,
    recording_id: i64,
    /// The last block, and the offset of the next frame in it.
    block: Vec<u8>,
    filled: usize,
    next: usize,
    position: i64,
    end: i64,
}

impl ReplayedFrames {
    /// Starts a replay of the partition's range, on a connection of `connections`.
    ///
    /// # Errors
    /// The archive cannot be reached, or refuses the replay.
    pub fn start(
        connections: &ArchiveConnections,
        access: &Arc<ArchiveAccess>,
        partition: &SharedPartition,
    ) -> Result<Self, LiveError> {
        let stream = partition
            .replayed_stream(access.replay_stream_id)
            .map_err(|error| LiveError::new(LiveCode::Archive, error.to_string()))?;
        let params = ReplayParams::range(partition.from, partition.to - partition.from);
        let id = partition.recording.id;
        let (connection, replay) = connections.with(access, |connection| {
            let replay = start(access, &connection, id, &params);
            let replay = replay.map_err(|error| refused(access, partition, &error))?;
            Ok((connection, replay))
        })?;
        Ok(Self {
            access: Arc::clone(access),
            connection,
            replay,
            image: None,
            rules: stream.rules(),
            recording_id: id,
            block: vec![0; BLOCK_LENGTH],
            filled: 0,
            next: 0,
            position: partition.from,
            end: partition.to,
        })
    }

    /// Returns the next frame, padding included; `None` at the end of the range. Waits for the archive.
    ///
    /// # Errors
    /// The replay ends early, sends nothing for the time-out of the access, or does not continue with the next frame of
    /// the recording.
    pub fn next_checked(&mut self) -> Result<Option<CheckedFrame<'_>>, LiveError> {
        if self.position >= self.end {
            return Ok(None);
        }
        if self.next >= self.filled {
            self.fill()?;
        }
        let bytes = &self.block[self.next..self.filled];
        let frame = self.rules.check(self.position, bytes).map_err(|fault| {
            let (id, position) = (self.recording_id, self.position);
            let text = format!("replay of recording {id}, position {position}: {fault}");
            LiveError::new(LiveCode::Archive, text)
        })?;
        let length = frame.end_position() - self.position;
        self.next += length as usize;
        self.position += length;
        Ok(Some(frame))
    }

    /// Waits for the next block of frames.
    fn fill(&mut self) -> Result<(), LiveError> {
        let deadline = Instant::now() + self.access.timeout;
        let mut waits = 0;
        loop {
            if self.poll()? {
                return Ok(());
            }
            let is_over = self.image.as_ref().is_some_and(Image::is_closed);
            if is_over || Instant::now() >= deadline {
                return Err(self.ended(is_over));
            }
            let idle = self.connection.aeron().idle_while_waiting(waits);
            idle.map_err(|error| self.access.error(&error.into()))?;
            waits += 1;
        }
    }

    /// Copies the next block. Returns `false` if there is none yet.
    fn poll(&mut self) -> Result<bool, LiveError> {
        if self.image.is_none() {
            let session_id = self.replay.replay_session_id as i32;
            let subscription = &self.replay.subscription;
            self.image = subscription.image_by_session_id(session_id);
        }
        let Some(image) = &self.image else {
            return Ok(false);
        };
        let (block, position) = (&mut self.block, self.position);
        let polled = image.block_poll(
            |found| {
                if found.begin_position() != position {
                    return Err(found.begin_position());
                }
                let length = found.length().min(BLOCK_LENGTH);
                found.term().copy_out(found.offset(), &mut block[..length]);
                Ok(())
            },
            BLOCK_LENGTH,
        );
        match polled {
            Ok(length) => {
                self.filled = length.min(BLOCK_LENGTH);
                self.next = 0;
                Ok(length > 0)
            }
            Err(TryPollError::Poll(error)) => Err(self.access.error(&error.into())),
            Err(TryPollError::Handler(found)) => {
                let id = self.recording_id;
                let text =
                    format!("replay of recording {id} continues at {found}, not at {position}");
                Err(LiveError::new(LiveCode::Archive, text))
            }
        }
    }

    fn ended(&self, is_over: bool) -> LiveError {
        let (id, position, end) = (self.recording_id, self.position, self.end);
        let what = match is_over {
            true => "has ended".to_owned(),
            false => format!("has sent nothing for {:?}", self.access.timeout),
        };
        let reason = self.connection.poll_for_error_response().ok().flatten();
        let reason = reason.map_or_else(String::new, |error| format!(": {error}"));
        let channel = &self.access.control_channel;
        let text = format!(
            "replay of recording {id} by the archive on {channel} {what} at position {position}, before {end}{reason}"
        );
        LiveError::new(LiveCode::Archive, text)
    }
}

impl Frames for ReplayedFrames {
    type Error = LiveError;

    fn position(&self) -> i64 {
        self.position
    }

    #[inline]
    fn next_frame(&mut self) -> Result<Option<Frame<'_>>, LiveError> {
        let frame = self.next_checked()?;
        Ok(frame.map(|frame| Frame {
            position: frame.position(),
            end_position: frame.end_position(),
            is_padding: frame.is_padding(),
            flags: frame.flags(),
            reserved_value: frame.reserved_value(),
            payload: frame.payload(),
        }))
    }
}

impl Drop for ReplayedFrames {
    fn drop(&mut self) {
        self.replay.subscription.close();
        if self.position < self.end {
            // Without this request, the archive would notice later that the replay has no subscriber.
            let stop = ArchiveCall::stop_replay(self.replay.replay_session_id);
            let _ = self.connection.begin(stop);
        }
    }
}

/// Starts a replay. Waits while the archive runs its maximum number of replays.
fn start(
    access: &ArchiveAccess,
    connection: &ConnectionLease,
    recording_id: i64,
    params: &ReplayParams,
) -> Result<StartedReplay, ArchiveClientError> {
    let deadline = Instant::now() + access.timeout;
    loop {
        let (channel, stream_id) = (&access.replay_channel, access.replay_stream_id);
        let starting = connection.async_replay(recording_id, channel, stream_id, params)?;
        match { starting }.wait() {
            Err(error)
                if error.archive_code() == Some(ArchiveErrorCode::MaxReplays)
                    && Instant::now() < deadline =>
            {
                connection.aeron().idle_while_waiting(0)?;
                std::thread::sleep(RETRY_INTERVAL);
            }
            started => return started,
        }
    }
}

fn refused(
    access: &ArchiveAccess,
    partition: &SharedPartition,
    error: &ArchiveClientError,
) -> LiveError {
    let cause = access.error(error);
    if error.archive_code().is_none() {
        return cause;
    }
    let code = match error.archive_code() {
        Some(ArchiveErrorCode::UnknownRecording) => LiveCode::DataLoss,
        _ => cause.code(),
    };
    let (id, from, to) = (partition.recording.id, partition.from, partition.to);
    let text = format!("recording {id} from {from} to {to} cannot be replayed: {cause}");
    LiveError::new(code, text)
}
