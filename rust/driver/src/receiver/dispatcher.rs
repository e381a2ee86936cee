//! [`Dispatcher`]: what a receive endpoint does with a frame of a stream and session.
//!
//! Subscriptions say which streams and sessions are wanted. A wanted session gets an image by a SETUP frame; a sender whose data
//! comes without one is asked for it. What was decided about a session is remembered, so that a flood of datagrams of one session
//! is one decision.

use std::collections::{HashMap, HashSet};

use super::sessions::{ForgettableState, ImageKey, SessionState, Sessions};
use crate::rules::{Rule, reach};
use crate::stream::StreamSession;

/// Images that SETUP frames can make at one endpoint.
pub const MAX_IMAGES: usize = 1_024;

/// What to do with a frame of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataAction {
    Ignore,
    /// It belongs to this image.
    Insert(ImageKey),
    /// The sender is to be asked for a SETUP.
    AskForSetup,
}

/// What to do with a SETUP frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupAction {
    Ignore,
    /// It is a sign of life for this image.
    Track(ImageKey),
    /// An image is to be made, once; `was_asked_for` when data made us ask for the frame.
    CreateImage {
        was_asked_for: bool,
    },
    /// The stream has as many images as are allowed.
    RefuseSession,
    /// The endpoint has [`MAX_IMAGES`].
    RefuseImage,
}

/// Decides for one endpoint.
#[derive(Debug)]
pub struct Dispatcher {
    interests: HashMap<i32, Interest>,
    sessions: Sessions,
    stream_session_limit: usize,
    /// Images that the receiver has, also of sessions that nobody wants any more.
    image_count: usize,
    /// The image of the last datagram: the next one is mostly for it.
    last: Option<(StreamSession, ImageKey)>,
    /// A session was forgotten for another.
    has_forgotten: bool,
}

/// The sessions of a stream that subscriptions want.
#[derive(Debug, Default)]
struct Interest {
    all_sessions: bool,
    sessions: HashSet<i32>,
}

impl Interest {
    fn includes(&self, session_id: i32) -> bool {
        self.all_sessions || self.sessions.contains(&session_id)
    }
}

/// What the conductor asks for.
impl Dispatcher {
    /// A dispatcher that allows `stream_session_limit` images for each stream.
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

    /// Every session of the stream is wanted.
    pub fn add_subscription(&mut self, stream_id: i32) {
        reach(Rule::AddAll);
        self.interests.entry(stream_id).or_default().all_sessions = true;
        self.sessions
            .remove_all(stream_id, |_, state| state == SessionState::NoInterest);
    }

    /// This session of the stream is wanted.
    pub fn add_subscription_by_session(&mut self, session: StreamSession) {
        reach(Rule::AddBySession);
        let interest = self.interests.entry(session.stream_id).or_default();
        interest.sessions.insert(session.session_id);
        self.sessions.remove_if(session, SessionState::NoInterest);
    }

    /// Only sessions of the stream that are wanted by themselves still are.
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

    /// This session of the stream is not wanted by itself.
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

    /// Whether any stream is wanted.
    pub fn has_interest(&self) -> bool {
        !self.interests.is_empty()
    }

    /// There is an image; its session has it from now on, unless nobody wants it any more.
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

    /// The image goes; its session cools down unless the stream has ended.
    pub fn remove_image(&mut self, session: StreamSession, image: ImageKey, has_ended: bool) {
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

    /// Forgets what is remembered about a session if it is `state`.
    pub fn forget(&mut self, session: StreamSession, state: ForgettableState) {
        let state = match state {
            ForgettableState::CoolDown => SessionState::CoolDown,
            ForgettableState::InitInProgress => SessionState::InitInProgress,
        };
        if self.sessions.remove_if(session, state) {
            reach(Rule::RemoveState);
        }
    }

    /// No SETUP came for the session: its next datagram is another reason to ask. Answers whether it was waited for.
    pub fn forget_pending_setup(&mut self, session: StreamSession) -> bool {
        self.sessions.remove_if(session, SessionState::PendingSetup)
    }

    fn remove_without_sessions(&mut self, stream_id: i32) {
        let is_over = |interest: &Interest| !interest.all_sessions && interest.sessions.is_empty();
        if self.interests.get(&stream_id).is_some_and(is_over) {
            self.interests.remove(&stream_id);
            self.sessions.remove_all(stream_id, |_, _| true);
        }
    }
}

/// What frames make of it.
impl Dispatcher {
    /// A frame of data, padding or a heartbeat.
    #[inline]
    pub fn on_data(&mut self, session: StreamSession, is_end_of_stream: bool) -> DataAction {
        match self.last {
            Some((last, image)) if last == session => DataAction::Insert(image),
            _ => self.on_data_of_another(session, is_end_of_stream),
        }
    }

    /// A SETUP frame.
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

    /// The image of a session.
    pub fn image(&self, session: StreamSession) -> Option<ImageKey> {
        match self.sessions.get(session) {
            Some(SessionState::Image(image)) => Some(image),
            _ => None,
        }
    }

    /// Whether a session was ever forgotten for another.
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
        if self.image_count + self.sessions.init_in_progress_count() >= MAX_IMAGES {
            return SetupAction::RefuseImage;
        }
        self.sessions.set(session, SessionState::InitInProgress);
        SetupAction::CreateImage { was_asked_for }
    }

    fn remember(&mut self, session: StreamSession, state: SessionState) {
        self.has_forgotten |= self.sessions.set(session, state);
    }
}

fn ignore_data() -> DataAction {
    reach(Rule::DataIgnored);
    DataAction::Ignore
}
