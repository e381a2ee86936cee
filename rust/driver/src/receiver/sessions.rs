//! [`Sessions`]: the states of all sessions from which a receive endpoint has received frames.
//!
//! An attacker can invent sessions, so their number is limited. If the limit is reached, a new session replaces the
//! oldest session without an image.

use std::collections::{BTreeMap, HashMap};

use crate::stream::StreamSession;

/// Maximum number of remembered sessions of an endpoint, with or without an image.
pub const MAX_REMEMBERED_SESSIONS: usize = 65_536;

/// Key of an image in the receiver.
pub type ImageKey = usize;

/// The state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// The session's data is inserted into this image.
    Image(ImageKey),
    /// The conductor is creating the session's image.
    InitInProgress,
    /// The session's SETUP was requested from the sender.
    PendingSetup,
    /// The session's image was removed before the stream ended.
    CoolDown,
    /// No subscription is interested in the session.
    NoInterest,
}

/// A state that the receiver forgets if the session still has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForgettableState {
    /// [`SessionState::CoolDown`], when its time is over.
    CoolDown,
    /// [`SessionState::InitInProgress`], when the conductor does not create the image.
    InitInProgress,
}

impl SessionState {
    /// Returns whether the session has an image, or is about to get one. Such a session is not forgotten.
    fn has_image(self) -> bool {
        matches!(self, Self::Image(_) | Self::InitInProgress)
    }
}

/// The sessions of an endpoint.
#[derive(Debug, Default)]
pub struct Sessions {
    entries: HashMap<StreamSession, SessionEntry>,
    /// Sessions without an image, oldest first.
    by_age: BTreeMap<u64, StreamSession>,
    next_age: u64,
    images_per_stream: HashMap<i32, usize>,
    init_in_progress_count: usize,
}

#[derive(Clone, Copy, Debug)]
struct SessionEntry {
    state: SessionState,
    /// Key in `by_age` if the session has no image.
    age: u64,
}

impl Sessions {
    /// Returns the state of `session`; `None` if the session is not remembered.
    pub fn get(&self, session: StreamSession) -> Option<SessionState> {
        self.entries.get(&session).map(|entry| entry.state)
    }

    /// Sets the state of `session`. Returns whether there were too many sessions, so that the oldest
    /// one without an image was forgotten.
    pub fn set(&mut self, session: StreamSession, state: SessionState) -> bool {
        self.remove(session);
        let is_full = self.entries.len() >= MAX_REMEMBERED_SESSIONS;
        if is_full && let Some((_, oldest)) = self.by_age.pop_first() {
            let forgotten = self.entries.remove(&oldest);
            debug_assert!(
                forgotten.is_some_and(|entry| !entry.state.has_image()),
                "the oldest session without an image, {oldest:?}, has the entry {forgotten:?}"
            );
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
        self.entries.insert(session, SessionEntry { state, age });
        self.assert_agreement();
        is_full
    }

    /// Forgets `session`. Returns the last state of the session.
    pub fn remove(&mut self, session: StreamSession) -> Option<SessionState> {
        let entry = self.entries.remove(&session)?;
        let aged = self.by_age.remove(&entry.age);
        debug_assert_eq!(
            aged,
            (!entry.state.has_image()).then_some(session),
            "the sessions without an image are sorted by age, and no others: {entry:?}"
        );
        match entry.state {
            SessionState::Image(_) => self.on_image_removed(session.stream_id),
            SessionState::InitInProgress => self.init_in_progress_count -= 1,
            _ => {}
        }
        self.assert_agreement();
        Some(entry.state)
    }

    /// Forgets `session` if its state is `state`. Returns whether the session was forgotten.
    pub fn remove_if(&mut self, session: StreamSession, state: SessionState) -> bool {
        let is_it = self.get(session) == Some(state);
        if is_it {
            self.remove(session);
        }
        is_it
    }

    /// Forgets those sessions of a stream for which `is_over` returns true.
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

    /// Returns the number of images of a stream.
    pub fn image_count(&self, stream_id: i32) -> usize {
        self.images_per_stream
            .get(&stream_id)
            .copied()
            .unwrap_or_default()
    }

    /// Returns the number of sessions that are about to get an image.
    pub fn init_in_progress_count(&self) -> usize {
        self.init_in_progress_count
    }

    fn on_image_removed(&mut self, stream_id: i32) {
        debug_assert!(
            self.images_per_stream.contains_key(&stream_id),
            "stream {stream_id} has no image to remove"
        );
        if let Some(count) = self.images_per_stream.get_mut(&stream_id) {
            *count -= 1;
            if *count == 0 {
                self.images_per_stream.remove(&stream_id);
            }
        }
    }

    /// Asserts that the collections and numbers describe the same sessions.
    fn assert_agreement(&self) {
        debug_assert!(
            self.entries.len() <= MAX_REMEMBERED_SESSIONS,
            "{} sessions are remembered",
            self.entries.len()
        );
        debug_assert!(
            self.by_age.len() + self.init_in_progress_count + self.images_per_stream.len()
                <= self.entries.len(),
            "{} sessions without an image, {} that wait for an image and {} streams with images need more than {} entries",
            self.by_age.len(),
            self.init_in_progress_count,
            self.images_per_stream.len(),
            self.entries.len()
        );
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
    fn a_session_above_the_limit_replaces_the_oldest_session_without_an_image() {
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
    fn a_removed_session_leaves_no_state() {
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
