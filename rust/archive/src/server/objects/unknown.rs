//! [`UnknownCopies`]: the recordings of which the archive does not know the copies yet, because it has just started.
//!
//! The copier reports the copies of each recording that was in the catalog at the start. Requests that need them wait,
//! but not longer than [`MAX_WAIT_NS`] after the start.

use std::collections::BTreeSet;

use crate::server::ArchiveError;

/// Maximum time after the start of the archive for which requests wait for copies, in nanoseconds. It is shorter than
/// the default message timeout of clients.
const MAX_WAIT_NS: i64 = 5_000_000_000;

/// Recordings of which the copies are not known yet.
#[derive(Debug, Default)]
pub(in crate::server) struct UnknownCopies {
    recording_ids: BTreeSet<i64>,
    deadline_ns: i64,
}

impl UnknownCopies {
    /// Creates the set at the start of an archive with these recordings.
    pub fn new(recording_ids: impl IntoIterator<Item = i64>, now_ns: i64) -> Self {
        Self {
            recording_ids: recording_ids.into_iter().collect(),
            deadline_ns: now_ns.saturating_add(MAX_WAIT_NS),
        }
    }

    /// Notes that the copies of a recording are known.
    pub fn remove(&mut self, recording_id: i64) {
        self.recording_ids.remove(&recording_id);
    }

    /// Returns whether a request that needs the copies of this recording must wait. Without `recording_id`, the request
    /// needs the copies of all recordings.
    pub fn is_awaited(&self, recording_id: Option<i64>, now_ns: i64) -> bool {
        let is_unknown = match recording_id {
            Some(recording_id) => self.recording_ids.contains(&recording_id),
            None => !self.recording_ids.is_empty(),
        };
        is_unknown && now_ns < self.deadline_ns
    }

    /// Checks that the copies of all recordings are known. `exists` returns whether a recording was not deleted since
    /// the start of the archive.
    ///
    /// # Errors
    /// The copies of at least one recording are not known.
    pub fn check_all(&self, exists: impl Fn(i64) -> bool) -> Result<(), ArchiveError> {
        let mut unknown = self.recording_ids.iter().filter(|id| exists(**id));
        let Some(first) = unknown.next() else {
            return Ok(());
        };
        let others = match unknown.count() {
            0 => String::new(),
            1 => " and of 1 other recording".to_owned(),
            count => format!(" and of {count} other recordings"),
        };
        Err(ArchiveError::generic(format!(
            "the copies of recording {first}{others} in object storage are not known yet: list the copies of a single recording, or try again later, and see the error log of the archive"
        )))
    }

    /// Checks that the copies of a recording are known.
    ///
    /// # Errors
    /// They are not known.
    pub fn check(&self, recording_id: i64) -> Result<(), ArchiveError> {
        match self.recording_ids.contains(&recording_id) {
            false => Ok(()),
            true => Err(ArchiveError::generic(format!(
                "the copies of recording {recording_id} in object storage are not known yet: try again later, and see the error log of the archive"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_wait_for_unknown_copies_for_some_seconds_and_are_then_refused() {
        let mut unknown = UnknownCopies::new([1, 2], 100);
        assert!(unknown.is_awaited(Some(1), 100) && unknown.is_awaited(None, 100));
        assert!(!unknown.is_awaited(Some(3), 100));
        unknown.remove(1);
        assert!(!unknown.is_awaited(Some(1), 100) && unknown.is_awaited(None, 100));
        assert!(unknown.check(1).is_ok());
        assert!(unknown.is_awaited(Some(2), 99 + MAX_WAIT_NS));
        assert!(!unknown.is_awaited(Some(2), 100 + MAX_WAIT_NS));
        assert!(!unknown.is_awaited(None, 100 + MAX_WAIT_NS));
        let error = unknown.check(2).unwrap_err();
        assert!(
            error
                .message
                .starts_with("the copies of recording 2 in object storage are not known yet")
        );
        unknown.remove(2);
        assert!(unknown.check(2).is_ok());
    }

    #[test]
    fn a_request_for_all_copies_is_refused_while_those_of_one_recording_are_unknown() {
        let mut unknown = UnknownCopies::new([3, 7, 8, 9], 0);
        let refusal = |unknown: &UnknownCopies| {
            let refused = unknown.check_all(|id| id != 3).unwrap_err();
            let (what, remedy) = refused.message.split_once(": ").unwrap();
            assert!(
                remedy.starts_with("list the copies of a single recording, or try again later")
            );
            what.to_owned()
        };
        let names = [
            "recording 7 and of 2 other recordings",
            "recording 8 and of 1 other recording",
            "recording 9",
        ];
        for (name, known) in names.iter().zip([7, 8, 9]) {
            let text = format!("the copies of {name} in object storage are not known yet");
            assert_eq!(refusal(&unknown), text);
            unknown.remove(known);
        }
        // The remaining recording was deleted.
        assert!(unknown.check_all(|id| id != 3).is_ok());
        assert!(unknown.check_all(|_| true).is_err());
    }
}
