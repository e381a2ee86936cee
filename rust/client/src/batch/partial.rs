//! [`PartialMessages`]: unfinished messages that later polls complete.

use std::collections::HashMap;

use crate::error::OutOfMemory;

/// Unfinished messages, by session.
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
    /// Returns the unfinished message of a session; creates an empty one if necessary.
    pub(super) fn entry(&mut self, session_id: i32) -> Result<&mut PartialMessage, OutOfMemory> {
        if !self.by_session.contains_key(&session_id) {
            let reserved = self.by_session.try_reserve(1);
            reserved.map_err(|_| OutOfMemory(size_of::<PartialMessage>()))?;
        }
        Ok(self.by_session.entry(session_id).or_default())
    }

    /// Removes the message of a session after it was completed or lost.
    pub(super) fn forget(&mut self, session_id: i32) {
        if !self.by_session.is_empty() {
            self.by_session.remove(&session_id);
        }
    }

    /// Removes the messages of sessions without an image.
    pub(crate) fn retain(&mut self, is_there: impl Fn(i32) -> bool) {
        self.by_session
            .retain(|session_id, _| is_there(*session_id));
    }
}
