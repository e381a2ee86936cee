//! [`LostReplay`]: a replay that never arrives, because nobody subscribes to its channel. The archive must end it after
//! its connect timeout.

use aeron_archive::client::{
    AeronArchive, ArchiveCall, ArchiveClientError, ArchiveOperation, ReplayParams,
};
use aeron_protocol::archive::REPLAY_ALL_AND_STOP;

use crate::schedule::SECOND;

/// Stream id of replays that never arrive.
const STREAM_ID: i32 = 699;
/// Maximum time from the connect timeout until the error arrives, if there are no faults.
const TOLERANCE_NS: i64 = SECOND;
/// Part of the error with which the archive ends the replay.
const NOT_CONNECTED: &str = "no connection established";

/// See the [module](self).
pub(super) struct LostReplay {
    operation: ArchiveOperation<i64>,
    /// Id of the replay, and the time of the response; `None` before the response.
    started: Option<(i64, i64)>,
    connect_timeout_ns: i64,
}

impl LostReplay {
    /// Requests a replay of a recording from `begin` on. Returns `None` if the request cannot be sent.
    pub fn begin(
        archive: &AeronArchive,
        recording_id: i64,
        begin: i64,
        channel: &str,
        connect_timeout_ns: i64,
    ) -> Option<Self> {
        let params = ReplayParams::range(begin, REPLAY_ALL_AND_STOP);
        let call = ArchiveCall::start_replay(recording_id, channel, STREAM_ID, &params);
        Some(Self {
            operation: archive.begin(call).ok()?,
            started: None,
            connect_timeout_ns,
        })
    }

    /// Polls without waiting. Returns whether the archive has ended the replay.
    ///
    /// # Errors
    /// The archive refused the request.
    pub fn poll(
        &mut self,
        archive: &AeronArchive,
        now_ns: i64,
    ) -> Result<Option<()>, ArchiveClientError> {
        let Some((replay_session_id, _)) = self.started else {
            let started = self.operation.poll()?;
            self.started = started.map(|replay_session_id| (replay_session_id, now_ns));
            return Ok(None);
        };
        let id = format!("replaySessionId={replay_session_id}");
        while let Some(error) = archive.poll_for_error_response()? {
            let text = error.to_string();
            if text.contains(NOT_CONNECTED) && text.contains(&id) {
                return Ok(Some(()));
            }
        }
        Ok(None)
    }

    /// Whether the archive should have ended the replay by now.
    pub fn is_overdue(&self, now_ns: i64) -> bool {
        self.started
            .is_some_and(|(_, at_ns)| now_ns > at_ns + self.connect_timeout_ns + TOLERANCE_NS)
    }
}
