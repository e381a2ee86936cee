//! [`Replay`]: the progress of a replay, for the subscription that receives it.

use std::sync::{Arc, Mutex, PoisonError};

use aeron_archive::client::{ArchiveCall, StartedReplay};
use aeron_client::{Image, Subscription};
use pyo3::prelude::*;

use super::link::Link;
use crate::errors::raise;

/// A replay that a subscription receives. Dropping the value stops the replay.
pub struct Replay {
    link: Arc<Link>,
    replay_session_id: i64,
    subscription: Subscription,
    /// The image of the replay; `None` before there is an image.
    image: Mutex<Option<Image>>,
}

/// The progress of a replay.
enum ReplayProgress {
    Running,
    /// The program has received the whole replay.
    Complete,
    /// The replay ended too early, at this position: its image was lost, or the archive ended the replay.
    Broken(i64),
    /// The session with the archive ended before there was an image.
    NeverBegan,
}

impl Replay {
    pub fn new(link: &Arc<Link>, started: &StartedReplay) -> Self {
        Self {
            link: Arc::clone(link),
            replay_session_id: started.replay_session_id,
            subscription: started.subscription.clone(),
            image: Mutex::default(),
        }
    }

    /// Whether the replay has ended: no further message arrives.
    pub fn is_ended(&self) -> bool {
        !matches!(self.progress(), ReplayProgress::Running)
    }

    /// Returns an error if the replay ended before the end of its stream.
    pub fn check_complete(&self) -> PyResult<()> {
        let what = match self.progress() {
            ReplayProgress::Running | ReplayProgress::Complete => return Ok(()),
            ReplayProgress::Broken(position) => {
                format!("ended at position {position}, before the end of its stream")
            }
            ReplayProgress::NeverBegan => {
                "ended with the session before a message was received".to_owned()
            }
        };
        if self.subscription.is_closed() {
            return Ok(());
        }
        let id = self.replay_session_id;
        let reason = format!("the replay {id} {what}: start another one");
        Err(raise("ArchiveError", reason))
    }

    fn progress(&self) -> ReplayProgress {
        let mut image = self.image.lock().unwrap_or_else(PoisonError::into_inner);
        if image.is_none() {
            *image = self.subscription.image_at(0);
        }
        match (&*image, self.subscription.last_ended_image()) {
            (Some(image), _) if image.is_end_of_stream() => {
                end_of_stream(image.position(), image.is_publication_revoked())
            }
            (Some(image), _) if image.is_closed() => ReplayProgress::Broken(image.position()),
            (Some(_), _) => ReplayProgress::Running,
            // The image started and ended between two calls of this function.
            (None, Some(ended)) if ended.is_end_of_stream => {
                end_of_stream(ended.position, ended.is_publication_revoked)
            }
            (None, Some(ended)) => ReplayProgress::Broken(ended.position),
            (None, None) if self.link.is_connected() => ReplayProgress::Running,
            (None, None) => ReplayProgress::NeverBegan,
        }
    }
}

/// Returns the progress of a replay after its stream has ended and was received completely. The archive closes
/// the publication of a complete replay, and revokes the publication of a replay that it ends early.
fn end_of_stream(position: i64, is_revoked: bool) -> ReplayProgress {
    match is_revoked {
        true => ReplayProgress::Broken(position),
        false => ReplayProgress::Complete,
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
