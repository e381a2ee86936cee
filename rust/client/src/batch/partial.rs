//! [`PartialMessages`]: messages that later polls complete.

use std::collections::HashMap;

use crate::error::OutOfMemory;

/// Messages whose last fragments have yet to arrive, by session.
#[derive(Debug, Default)]
pub(crate) struct PartialMessages {
    pub(super) by_session: HashMap<i32, PartialMessage>,
}

#[derive(Debug, Default)]
pub(super) struct PartialMessage {
    pub(super) data: Vec<u8>,
    pub(super) used: usize,
    /// Position where the next fragment begins.
    pub(super) next_position: i64,
    pub(super) reserved_value: i64,
}

impl PartialMessages {
    /// The message of a session, empty if there was none.
    pub(super) fn entry(&mut self, session_id: i32) -> Result<&mut PartialMessage, OutOfMemory> {
        if !self.by_session.contains_key(&session_id) {
            let reserved = self.by_session.try_reserve(1);
            reserved.map_err(|_| OutOfMemory(size_of::<PartialMessage>()))?;
        }
        Ok(self.by_session.entry(session_id).or_default())
    }

    /// Forgets the message of a session: it is complete, or lost.
    pub(super) fn forget(&mut self, session_id: i32) {
        if !self.by_session.is_empty() {
            self.by_session.remove(&session_id);
        }
    }

    /// Forgets the sessions that are gone.
    pub(crate) fn retain(&mut self, is_there: impl Fn(i32) -> bool) {
        self.by_session
            .retain(|session_id, _| is_there(*session_id));
    }
}
