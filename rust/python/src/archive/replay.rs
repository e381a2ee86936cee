//! [`Replay`]: the end of a replay, seen from the subscription that receives it.

use std::sync::{Arc, Mutex, PoisonError};

use aeron_archive::client::{ArchiveCall, StartedReplay};
use aeron_client::{Image, Subscription};
use pyo3::prelude::*;

use super::link::Link;
use crate::errors::raise;

/// A replay that a subscription receives. Dropping it stops the replay.
pub struct Replay {
    link: Arc<Link>,
    replay_session_id: i64,
    subscription: Subscription,
    /// The image of the replay, once there was one.
    image: Mutex<Option<Image>>,
}

/// How far a replay has come.
enum Progress {
    Running,
    /// The program has received everything.
    Complete,
    /// The image went away before its end, or the archive cut the replay short, at this position.
    Broken(i64),
    /// The archive is gone, and there never was an image.
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

    /// Whether no further message comes.
    pub fn is_ended(&self) -> bool {
        !matches!(self.progress(), Progress::Running)
    }

    /// Refuses a replay that ended before its stream did.
    pub fn check_complete(&self) -> PyResult<()> {
        let what = match self.progress() {
            Progress::Running | Progress::Complete => return Ok(()),
            Progress::Broken(position) => {
                format!("ended at position {position}, before the end of its stream")
            }
            Progress::NeverBegan => {
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

    fn progress(&self) -> Progress {
        let mut image = self.image.lock().unwrap_or_else(PoisonError::into_inner);
        if image.is_none() {
            *image = self.subscription.image_at(0);
        }
        match (&*image, self.subscription.last_ended_image()) {
            (Some(image), _) if image.is_end_of_stream() => {
                end_of_stream(image.position(), image.is_publication_revoked())
            }
            (Some(image), _) if image.is_closed() => Progress::Broken(image.position()),
            (Some(_), _) => Progress::Running,
            // The image came and went before the program looked.
            (None, Some(ended)) if ended.is_end_of_stream => {
                end_of_stream(ended.position, ended.is_publication_revoked)
            }
            (None, Some(ended)) => Progress::Broken(ended.position),
            (None, None) if self.link.is_connected() => Progress::Running,
            (None, None) => Progress::NeverBegan,
        }
    }
}

/// The end of a stream of which everything was received. An archive closes the publication of a replay that it has finished, and revokes
/// that of one that it cuts short.
fn end_of_stream(position: i64, is_revoked: bool) -> Progress {
    match is_revoked {
        true => Progress::Broken(position),
        false => Progress::Complete,
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        if matches!(self.progress(), Progress::Running) {
            // The response is of no interest: the archive ends a replay without a subscriber anyway.
            let _ = self
                .link
                .archive
                .begin(ArchiveCall::stop_replay(self.replay_session_id));
        }
    }
}
