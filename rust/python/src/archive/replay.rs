//! [`Replay`]: the progress of a replay, for the subscription that receives it.

use std::sync::{Arc, Mutex, PoisonError};

use aeron_archive::client::{
    ArchiveCall, ArchiveClientError, ArchiveOperation, ReplayParams, StartedReplay,
};
use aeron_client::{Image, Subscription};
use aeron_protocol::archive::REPLAY_ALL_AND_FOLLOW;
use pyo3::prelude::*;

use super::link::Link;
use crate::errors::raise;

/// Default channel of replays. Valid if the archive is on the client's driver.
pub const REPLAY_CHANNEL: &str = "aeron:ipc";
/// Default stream id of all replays. Each replay has its own session id.
pub const REPLAY_STREAM_ID: i32 = 100;

/// A replay that a subscription receives. Dropping the value stops the replay.
pub struct Replay {
    link: Arc<Link>,
    recording_id: i64,
    replay_session_id: i64,
    subscription: Subscription,
    /// Position at which the replay ends if the recording does not stop earlier; `None` if only the archive knows it.
    end: Option<i64>,
    observed: Mutex<Observed>,
}

/// The objects that show the progress of a replay.
#[derive(Default)]
struct Observed {
    /// The image of the replay; `None` before there is an image.
    image: Option<Image>,
    /// A request that is sent after the end of the replay. A response shows that the archive was not killed.
    confirmation: Option<ArchiveOperation<Option<i64>>>,
}

/// The progress of a replay.
enum ReplayProgress {
    Running,
    /// The program has received the whole replay.
    Complete,
    /// The replay ended too early, at this position: its image was lost, or the archive ended the replay.
    Broken(i64),
    /// The replay ended at this position, and the archive did not confirm that this is the end.
    Unconfirmed(i64, String),
    /// The session with the archive ended before there was an image.
    NeverBegan,
}

impl Replay {
    pub fn new(
        link: &Arc<Link>,
        recording_id: i64,
        started: &StartedReplay,
        end: Option<i64>,
    ) -> Self {
        Self {
            link: Arc::clone(link),
            recording_id,
            replay_session_id: started.replay_session_id,
            subscription: started.subscription.clone(),
            end,
            observed: Mutex::default(),
        }
    }

    /// Returns the position at which a replay with these parameters ends if the recording does not stop earlier; `None`
    /// if only the archive knows it.
    pub fn end_of(params: &ReplayParams) -> Option<i64> {
        match params.length {
            REPLAY_ALL_AND_FOLLOW => Some(i64::MAX),
            length if length >= 0 && params.position >= 0 => params.position.checked_add(length),
            _ => None,
        }
    }

    /// Whether the replay has ended: no further message arrives.
    pub fn is_ended(&self) -> bool {
        !matches!(self.progress(), ReplayProgress::Running)
    }

    /// Returns an error if the replay ended before the end of its stream.
    pub fn check_complete(&self) -> PyResult<()> {
        let id = self.replay_session_id;
        let what = match self.progress() {
            ReplayProgress::Running | ReplayProgress::Complete => return Ok(()),
            ReplayProgress::Broken(position) => {
                let what = format!("ended at position {position}, before the end of its stream");
                match self.link.archive.error_of_replay(id) {
                    // Another replay would end at the same position, for example because the recording is damaged.
                    Some(error) => format!("{what}: {error}"),
                    None => format!("{what}: start another one"),
                }
            }
            ReplayProgress::Unconfirmed(position, error) => format!(
                "ended at position {position}, and its archive does not confirm that it is complete ({error}): start \
                 another one"
            ),
            ReplayProgress::NeverBegan => {
                "ended before its first message, because the control session ended: start another one".to_owned()
            }
        };
        if self.subscription.is_closed() {
            return Ok(());
        }
        Err(raise("ArchiveError", format!("the replay {id} {what}")))
    }

    fn progress(&self) -> ReplayProgress {
        let mut observed = self.observed.lock().unwrap_or_else(PoisonError::into_inner);
        let Observed {
            image,
            confirmation,
        } = &mut *observed;
        if image.is_none() {
            *image = self.subscription.image_at(0);
        }
        let (position, is_revoked) = match (image, self.subscription.last_ended_image()) {
            (Some(image), _) if image.is_end_of_stream() => {
                (image.position(), image.is_publication_revoked())
            }
            (Some(image), _) if image.is_closed() => {
                return ReplayProgress::Broken(image.position());
            }
            (Some(_), _) => return ReplayProgress::Running,
            // The image started and ended between two calls of this function.
            (None, Some(ended)) if ended.is_end_of_stream => {
                (ended.position, ended.is_publication_revoked)
            }
            (None, Some(ended)) => return ReplayProgress::Broken(ended.position),
            (None, None) if self.link.is_connected() => return ReplayProgress::Running,
            (None, None) => return ReplayProgress::NeverBegan,
        };
        // The archive closes the publication of a complete replay, and revokes the publication of a replay that the
        // archive ends early. The driver also closes the publication of an archive that was killed.
        match is_revoked {
            true => self.after_revocation(position, confirmation),
            false => self.after_end_of_stream(position, confirmation),
        }
    }

    /// Returns the progress of a replay after its publication was revoked at `position`. The response to a request in
    /// the same session arrives after the error of the replay.
    fn after_revocation(
        &self,
        position: i64,
        confirmation: &mut Option<ArchiveOperation<Option<i64>>>,
    ) -> ReplayProgress {
        let answer = match confirmation {
            Some(operation) => operation.poll(),
            None => match self.stop_position_request() {
                Ok(operation) => {
                    *confirmation = Some(operation);
                    return ReplayProgress::Running;
                }
                Err(error) => Err(error),
            },
        };
        match answer {
            Ok(None) | Err(ArchiveClientError::ReentrantCall) => ReplayProgress::Running,
            Ok(Some(_)) | Err(_) => ReplayProgress::Broken(position),
        }
    }

    fn stop_position_request(&self) -> Result<ArchiveOperation<Option<i64>>, ArchiveClientError> {
        let call = ArchiveCall::stop_position(self.recording_id);
        self.link.archive.begin(call)
    }

    /// Returns the progress of a replay after its publication was closed at `position`. If this is not the requested
    /// end, a response in the same session confirms that the archive was not killed.
    fn after_end_of_stream(
        &self,
        position: i64,
        confirmation: &mut Option<ArchiveOperation<Option<i64>>>,
    ) -> ReplayProgress {
        let is_requested_end = self.end.is_some_and(|end| position >= end);
        if is_requested_end || self.link.is_closed_by_program() {
            return ReplayProgress::Complete;
        }
        let stop_position = match confirmation {
            Some(operation) => operation.poll(),
            None => match self.stop_position_request() {
                Ok(operation) => {
                    *confirmation = Some(operation);
                    return ReplayProgress::Running;
                }
                Err(error) => Err(error),
            },
        };
        match stop_position {
            Ok(None) | Err(ArchiveClientError::ReentrantCall) => ReplayProgress::Running,
            Ok(Some(Some(stop))) if self.end.is_some() && position < stop => {
                ReplayProgress::Broken(position)
            }
            Ok(Some(_)) => ReplayProgress::Complete,
            // The recording was deleted after the replay.
            Err(error) if error.archive_code().is_some() => ReplayProgress::Complete,
            Err(error) => ReplayProgress::Unconfirmed(position, error.to_string()),
        }
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        if matches!(self.progress(), ReplayProgress::Running) {
            // The response is ignored: if the request fails, the archive ends the replay because it has no subscriber.
            let _ = self
                .link
                .archive
                .begin(ArchiveCall::stop_replay(self.replay_session_id));
        }
    }
}
