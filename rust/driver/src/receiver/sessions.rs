//! [`Sessions`]: what a receive endpoint remembers about the sessions that it heard of.
//!
//! Anybody can make up sessions, so their number is bounded: for one too many the oldest without an image is forgotten.

use std::collections::{BTreeMap, HashMap};

use crate::stream::StreamSession;

/// Sessions that an endpoint remembers, with or without image.
pub const MAX_REMEMBERED_SESSIONS: usize = 65_536;

/// Key of an image in the receiver.
pub type ImageKey = usize;

/// What is known of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// Its datagrams go into this image.
    Image(ImageKey),
    /// The conductor makes an image for it.
    InitInProgress,
    /// The sender was asked for a SETUP.
    PendingSetup,
    /// It had an image that left before the stream ended.
    CoolDown,
    /// Nobody wants it.
    NoInterest,
}

/// What the conductor can have forgotten about a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForgettableState {
    /// The session had an image that left before the stream ended.
    CoolDown,
    /// The conductor was asked for an image, and there will be none.
    InitInProgress,
}

impl SessionState {
    /// Whether it has an image, or is about to; then it is not forgotten.
    fn has_image(self) -> bool {
        matches!(self, Self::Image(_) | Self::InitInProgress)
    }
}

/// The sessions of an endpoint.
#[derive(Debug, Default)]
pub struct Sessions {
    entries: HashMap<StreamSession, Entry>,
    /// Sessions without image, by age.
    by_age: BTreeMap<u64, StreamSession>,
    next_age: u64,
    images_per_stream: HashMap<i32, usize>,
    init_in_progress_count: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    state: SessionState,
    /// Key in `by_age` of a session without image.
    age: u64,
}

impl Sessions {
    /// What is known of `session`.
    pub fn get(&self, session: StreamSession) -> Option<SessionState> {
        self.entries.get(&session).map(|entry| entry.state)
    }

    /// Remembers something else about `session`; answers whether another one had to be forgotten for it.
    pub fn set(&mut self, session: StreamSession, state: SessionState) -> bool {
        self.remove(session);
        let is_full = self.entries.len() >= MAX_REMEMBERED_SESSIONS;
        if is_full && let Some((_, oldest)) = self.by_age.pop_first() {
            self.entries.remove(&oldest);
        }
        let age = self.next_age;
        self.next_age += 1;
        if !state.has_image() {
            self.by_age.insert(age, session);
        }
        match state {
            SessionState::Image(_) => {
                *self.images_per_stream.entry(session.stream_id).or_default() += 1;
            }
            SessionState::InitInProgress => self.init_in_progress_count += 1,
            _ => {}
        }
        self.entries.insert(session, Entry { state, age });
        is_full
    }

    /// Forgets `session`; answers what was known of it.
    pub fn remove(&mut self, session: StreamSession) -> Option<SessionState> {
        let entry = self.entries.remove(&session)?;
        self.by_age.remove(&entry.age);
        match entry.state {
            SessionState::Image(_) => self.on_image_removed(session.stream_id),
            SessionState::InitInProgress => self.init_in_progress_count -= 1,
            _ => {}
        }
        Some(entry.state)
    }

    /// Forgets `session` if what is known of it is `state`; answers whether it was.
    pub fn remove_if(&mut self, session: StreamSession, state: SessionState) -> bool {
        let is_it = self.get(session) == Some(state);
        if is_it {
            self.remove(session);
        }
        is_it
    }

    /// Forgets the sessions of a stream for which `is_over` says so.
    pub fn remove_all(&mut self, stream_id: i32, is_over: impl Fn(i32, SessionState) -> bool) {
        let over: Vec<StreamSession> = self
            .entries
            .iter()
            .filter(|(session, entry)| {
                session.stream_id == stream_id && is_over(session.session_id, entry.state)
            })
            .map(|(session, _)| *session)
            .collect();
        for session in over {
            self.remove(session);
        }
    }

    /// Images of a stream.
    pub fn image_count(&self, stream_id: i32) -> usize {
        self.images_per_stream
            .get(&stream_id)
            .copied()
            .unwrap_or_default()
    }

    /// Sessions that are about to have an image.
    pub fn init_in_progress_count(&self) -> usize {
        self.init_in_progress_count
    }

    fn on_image_removed(&mut self, stream_id: i32) {
        if let Some(count) = self.images_per_stream.get_mut(&stream_id) {
            *count -= 1;
            if *count == 0 {
                self.images_per_stream.remove(&stream_id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(session_id: i32) -> StreamSession {
        StreamSession {
            stream_id: 1001,
            session_id,
        }
    }

    #[test]
    fn of_too_many_sessions_the_oldest_without_an_image_is_forgotten() {
        let mut sessions = Sessions::default();
        sessions.set(session(0), SessionState::Image(7));
        sessions.set(session(1), SessionState::InitInProgress);
        for id in 2..MAX_REMEMBERED_SESSIONS as i32 {
            assert!(!sessions.set(session(id), SessionState::NoInterest));
        }
        assert!(sessions.set(session(-1), SessionState::PendingSetup));
        assert_eq!(sessions.get(session(0)), Some(SessionState::Image(7)));
        assert_eq!(sessions.get(session(1)), Some(SessionState::InitInProgress));
        assert_eq!(sessions.get(session(2)), None);
        assert_eq!(sessions.get(session(3)), Some(SessionState::NoInterest));
        assert_eq!(sessions.entries.len(), MAX_REMEMBERED_SESSIONS);
    }

    #[test]
    fn what_is_forgotten_leaves_nothing_behind() {
        let mut sessions = Sessions::default();
        for state in [
            SessionState::Image(1),
            SessionState::CoolDown,
            SessionState::InitInProgress,
            SessionState::NoInterest,
        ] {
            assert!(!sessions.set(session(5), state));
        }
        assert_eq!(sessions.image_count(1001), 0);
        assert_eq!(sessions.init_in_progress_count(), 0);
        sessions.set(session(6), SessionState::Image(2));
        assert_eq!(sessions.image_count(1001), 1);
        sessions.remove_if(session(5), SessionState::CoolDown);
        assert!(sessions.get(session(5)).is_some());
        sessions.remove_all(1001, |id, _| id == 5);
        sessions.remove_if(session(6), SessionState::Image(2));
        assert!(sessions.entries.is_empty());
        assert!(sessions.by_age.is_empty());
        assert!(sessions.images_per_stream.is_empty());
    }
}
