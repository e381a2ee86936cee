//! [`Dispatcher`]: decides what a receive endpoint does with each frame of a session.
//!
//! Subscriptions decide which streams and sessions are of interest. A SETUP frame creates the image of such a session.
//! If data arrives before a SETUP, the receiver requests the SETUP from the sender. The decision for a session is
//! remembered, so a flood of datagrams of one session needs only one decision.

use std::collections::{HashMap, HashSet};

use super::sessions::{ForgettableState, ImageKey, SessionState, Sessions};
use crate::rules::{Rule, reach};
use crate::stream::StreamSession;

/// Maximum number of images of one endpoint.
pub const MAX_IMAGES: usize = 1_024;

/// Action for a data frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataAction {
    Ignore,
    /// Insert the frame into this image.
    Insert(ImageKey),
    /// Request a SETUP from the sender.
    AskForSetup,
}

/// Action for a SETUP frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupAction {
    Ignore,
    /// Record the activity of this image's source.
    Track(ImageKey),
    /// Request an image from the conductor, once. `was_asked_for` is true if the receiver has requested this SETUP.
    CreateImage {
        was_asked_for: bool,
    },
    /// Refuse the session, because the stream has its maximum number of images.
    RefuseSession,
    /// Refuse the image, because the endpoint has [`MAX_IMAGES`].
    RefuseImage,
}

/// The decisions of one endpoint.
#[derive(Debug)]
pub struct Dispatcher {
    interests: HashMap<i32, StreamInterest>,
    sessions: Sessions,
    stream_session_limit: usize,
    /// Number of the endpoint's images, including images of sessions that are no longer of interest.
    image_count: usize,
    /// The image of the last datagram. The next datagram usually belongs to the same image.
    last: Option<(StreamSession, ImageKey)>,
    /// Whether a session was forgotten to make room for another session.
    has_forgotten: bool,
}

/// The sessions of a stream that are of interest.
#[derive(Debug, Default)]
struct StreamInterest {
    all_sessions: bool,
    sessions: HashSet<i32>,
}

impl StreamInterest {
    fn includes(&self, session_id: i32) -> bool {
        self.all_sessions || self.sessions.contains(&session_id)
    }
}

/// Operations for the commands of the conductor.
impl Dispatcher {
    /// Creates a dispatcher that allows `stream_session_limit` images for each stream.
    pub fn new(stream_session_limit: usize) -> Self {
        Self {
            interests: HashMap::new(),
            sessions: Sessions::default(),
            stream_session_limit,
            image_count: 0,
            last: None,
            has_forgotten: false,
        }
    }

    /// Adds an interest in all sessions of the stream.
    pub fn add_subscription(&mut self, stream_id: i32) {
        reach(Rule::AddAll);
        self.interests.entry(stream_id).or_default().all_sessions = true;
        self.sessions
            .remove_all(stream_id, |_, state| state == SessionState::NoInterest);
    }

    /// Adds an interest in one session.
    pub fn add_subscription_by_session(&mut self, session: StreamSession) {
        reach(Rule::AddBySession);
        let interest = self.interests.entry(session.stream_id).or_default();
        interest.sessions.insert(session.session_id);
        self.sessions.remove_if(session, SessionState::NoInterest);
    }

    /// Removes the interest in all sessions of the stream. Interests in single sessions stay.
    pub fn remove_subscription(&mut self, stream_id: i32) {
        let Some(interest) = self.interests.get_mut(&stream_id) else {
            return;
        };
        reach(Rule::RemoveAll);
        interest.all_sessions = false;
        self.last = None;
        self.sessions
            .remove_all(stream_id, |id, _| !interest.sessions.contains(&id));
        self.remove_without_sessions(stream_id);
    }

    /// Removes the interest in one session.
    pub fn remove_subscription_by_session(&mut self, session: StreamSession) {
        let Some(interest) = self.interests.get_mut(&session.stream_id) else {
            return;
        };
        reach(Rule::RemoveBySession);
        interest.sessions.remove(&session.session_id);
        if !interest.all_sessions {
            self.last = None;
            self.sessions.remove(session);
            self.remove_without_sessions(session.stream_id);
        }
    }

    /// Returns whether the endpoint has any interest.
    pub fn has_interest(&self) -> bool {
        !self.interests.is_empty()
    }

    /// Adds an image. If the session is still of interest, the data of the session is inserted into the image.
    pub fn add_image(&mut self, session: StreamSession, image: ImageKey) {
        self.last = None;
        self.image_count += 1;
        let is_wanted = self
            .interests
            .get(&session.stream_id)
            .is_some_and(|interest| interest.includes(session.session_id));
        if is_wanted {
            reach(Rule::AddImage);
            self.sessions.set(session, SessionState::Image(image));
        }
    }

    /// Removes an image. If the stream has not ended, the state of the session becomes `CoolDown`.
    pub fn remove_image(&mut self, session: StreamSession, image: ImageKey, has_ended: bool) {
        debug_assert!(
            self.image_count > 0,
            "image {image} is removed, but the endpoint has no images"
        );
        self.image_count -= 1;
        if self.sessions.get(session) != Some(SessionState::Image(image)) {
            return;
        }
        self.last = None;
        self.sessions.remove(session);
        reach(match has_ended {
            true => Rule::RemoveImageEnded,
            false => Rule::RemoveImageCoolDown,
        });
        if !has_ended {
            self.sessions.set(session, SessionState::CoolDown);
        }
    }

    /// Forgets a session if its state is `state`.
    pub fn forget(&mut self, session: StreamSession, state: ForgettableState) {
        let state = match state {
            ForgettableState::CoolDown => SessionState::CoolDown,
            ForgettableState::InitInProgress => SessionState::InitInProgress,
        };
        if self.sessions.remove_if(session, state) {
            reach(Rule::RemoveState);
        }
    }

    /// Forgets that a SETUP was requested, because no SETUP arrived. The session's next datagram causes another
    /// request.
    ///
    /// Returns whether the request was still pending.
    pub fn forget_pending_setup(&mut self, session: StreamSession) -> bool {
        self.sessions.remove_if(session, SessionState::PendingSetup)
    }

    fn remove_without_sessions(&mut self, stream_id: i32) {
        let is_over =
            |interest: &StreamInterest| !interest.all_sessions && interest.sessions.is_empty();
        if self.interests.get(&stream_id).is_some_and(is_over) {
            self.interests.remove(&stream_id);
            self.sessions.remove_all(stream_id, |_, _| true);
        }
    }
}

/// Decisions for received frames.
impl Dispatcher {
    /// Returns the action for a frame of data, padding or a heartbeat.
    #[inline]
    pub fn on_data(&mut self, session: StreamSession, is_end_of_stream: bool) -> DataAction {
        debug_assert!(
            self.last
                .is_none_or(|(last, image)| self.image(last) == Some(image)),
            "{:?} is not the image of its session any more",
            self.last
        );
        match self.last {
            Some((last, image)) if last == session => DataAction::Insert(image),
            _ => self.on_data_of_another(session, is_end_of_stream),
        }
    }

    /// Returns the action for a SETUP frame.
    pub fn on_setup(&mut self, session: StreamSession) -> SetupAction {
        let Some(interest) = self.interests.get(&session.stream_id) else {
            reach(Rule::SetupUnknownStream);
            return SetupAction::Ignore;
        };
        if self.sessions.image_count(session.stream_id) >= self.stream_session_limit {
            reach(Rule::SetupSessionLimit);
            return SetupAction::RefuseSession;
        }
        match self.sessions.get(session) {
            Some(SessionState::Image(image)) => {
                reach(Rule::SetupImage);
                SetupAction::Track(image)
            }
            Some(SessionState::PendingSetup) => {
                reach(Rule::SetupPending);
                self.create_image(session, true)
            }
            None if interest.includes(session.session_id) => {
                reach(Rule::SetupInterest);
                self.create_image(session, false)
            }
            None => {
                reach(Rule::SetupNoInterest);
                self.remember(session, SessionState::NoInterest);
                SetupAction::Ignore
            }
            Some(_) => {
                reach(Rule::SetupIgnored);
                SetupAction::Ignore
            }
        }
    }

    /// Returns the image of a session.
    pub fn image(&self, session: StreamSession) -> Option<ImageKey> {
        match self.sessions.get(session) {
            Some(SessionState::Image(image)) => Some(image),
            _ => None,
        }
    }

    /// Returns whether a session was ever forgotten to make room for another session.
    pub fn has_forgotten(&self) -> bool {
        self.has_forgotten
    }

    fn on_data_of_another(&mut self, session: StreamSession, is_end_of_stream: bool) -> DataAction {
        let Some(interest) = self.interests.get(&session.stream_id) else {
            reach(Rule::DataUnknownStream);
            return DataAction::Ignore;
        };
        match self.sessions.get(session) {
            Some(SessionState::Image(image)) => {
                reach(Rule::DataImage);
                self.last = Some((session, image));
                DataAction::Insert(image)
            }
            Some(_) => ignore_data(),
            None if is_end_of_stream => ignore_data(),
            None if interest.includes(session.session_id) => {
                reach(Rule::DataInterest);
                self.remember(session, SessionState::PendingSetup);
                DataAction::AskForSetup
            }
            None => {
                reach(Rule::DataNoInterest);
                self.remember(session, SessionState::NoInterest);
                DataAction::Ignore
            }
        }
    }

    fn create_image(&mut self, session: StreamSession, was_asked_for: bool) -> SetupAction {
        debug_assert!(
            matches!(
                self.sessions.get(session),
                None | Some(SessionState::PendingSetup)
            ),
            "{session:?} requests an image in the state {:?}",
            self.sessions.get(session)
        );
        // Images of sessions without interest have no entry there, but they still count for the endpoint.
        debug_assert!(
            self.sessions.image_count(session.stream_id) <= self.image_count,
            "stream {} has {} images, but its endpoint has only {}",
            session.stream_id,
            self.sessions.image_count(session.stream_id),
            self.image_count
        );
        if self.image_count + self.sessions.init_in_progress_count() >= MAX_IMAGES {
            return SetupAction::RefuseImage;
        }
        self.sessions.set(session, SessionState::InitInProgress);
        SetupAction::CreateImage { was_asked_for }
    }

    fn remember(&mut self, session: StreamSession, state: SessionState) {
        debug_assert_eq!(
            self.sessions.get(session),
            None,
            "a datagram must not change the state of {session:?}"
        );
        self.has_forgotten |= self.sessions.set(session, state);
    }
}

fn ignore_data() -> DataAction {
    reach(Rule::DataIgnored);
    DataAction::Ignore
}
