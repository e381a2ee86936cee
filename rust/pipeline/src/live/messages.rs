//! Implements [`RecordingMessages`] for an [`Index`], so that the planner can count messages and find cuts.

use aeron_archive::storage::Storage;

use crate::planning::RecordingMessages;
use crate::private::{Counts, Cut, Index, IndexError};

impl<S: Storage> RecordingMessages for Index<S> {
    type Error = IndexError;

    fn counts(&self, from: i64, to: i64) -> Result<Counts, IndexError> {
        self.count(from, to)
    }

    fn cut(&self, from: i64, to: i64, quota: Counts) -> Result<Cut, IndexError> {
        Self::cut(self, from, to, |counts| {
            counts.messages <= quota.messages && counts.payload_bytes <= quota.payload_bytes
        })
    }
}
