//! [`Totals`]: the counts of a query since its first start, and the ranges of its streams that were not recorded.
//!
//! The totals are written to a file with another name, which is then renamed. So a kill leaves either the old totals or
//! the new ones. An archive of an older version does not have this file.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use aeron_archive::storage::{Access, Storage, StorageFile};
use serde::{Deserialize, Serialize};

use super::SessionKey;

/// Name of the file in a private archive.
pub const TOTALS_FILE: &str = "totals.json";
/// Name of the file while it is being written.
pub const NEW_TOTALS_FILE: &str = "totals.json.new";
/// Maximum number of gaps in the file. The oldest gaps are dropped. Sums include all gaps.
pub const MAX_GAPS: usize = 32;
/// Maximum length of the file in bytes. A longer file is treated as damaged. A file with 4096 open sessions and
/// channels of 4 KiB is shorter.
const MAX_LENGTH: u64 = 64 << 20;

/// Counts of one query over all its runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Totals {
    /// Sums, by their names in the progress report.
    pub numbers: BTreeMap<String, i64>,
    /// The latest gaps, the oldest first.
    pub gaps: VecDeque<RecordingGap>,
    /// Sessions with a stream that has not ended. The join position of the session's next image shows how many bytes
    /// were missed.
    pub open_sessions: Vec<OpenSession>,
    /// Time of the write, in epoch milliseconds.
    pub written_ms: i64,
}

/// A range of a session that was sent and not recorded. A field is `None` if its value is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordingGap {
    /// Stream id.
    pub stream: Option<i32>,
    /// Session id.
    pub session: Option<i32>,
    /// Position of the first missing byte.
    pub from: Option<i64>,
    /// Position from which the session was recorded again.
    pub to: Option<i64>,
    /// Number of missing bytes.
    pub bytes: Option<i64>,
    /// Reason why nothing was recorded.
    pub reason: String,
    /// Recording that began after the gap. `None` after the first message of the recording has shown the exact end of
    /// the gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<i64>,
}

/// A session with a stream that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenSession {
    /// Key of the session.
    pub key: SessionKey,
    /// Time at which the image of the session became unavailable, in epoch milliseconds; `None` while there is an
    /// image.
    pub gone_ms: Option<i64>,
}

impl Totals {
    /// Reads the file; returns `None` if it does not exist.
    ///
    /// # Errors
    /// A file-system operation failed, or the file is damaged.
    pub fn load<S: Storage>(storage: &S) -> io::Result<Option<Self>> {
        let file = match storage.open(TOTALS_FILE, Access::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let length = file.length()?;
        if length > MAX_LENGTH {
            let text = format!("{TOTALS_FILE} has {length} bytes, more than {MAX_LENGTH}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let mut text = vec![0; length as usize];
        file.read_exact_at(&mut text, 0)?;
        Ok(Some(serde_json::from_slice(&text)?))
    }

    /// Writes the totals and replaces the earlier file.
    ///
    /// # Errors
    /// A file-system operation failed; the earlier file is kept.
    pub fn store<S: Storage>(&self, storage: &S) -> io::Result<()> {
        match storage.remove(NEW_TOTALS_FILE) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = storage.create(NEW_TOTALS_FILE, 0)?;
        file.write_all_at(&serde_json::to_vec(self)?, 0)?;
        storage.rename(NEW_TOTALS_FILE, TOTALS_FILE)
    }

    /// Adds a gap. Drops the oldest gap if there are too many.
    pub fn push_gap(&mut self, gap: RecordingGap) {
        if self.gaps.len() == MAX_GAPS {
            self.gaps.pop_front();
        }
        self.gaps.push_back(gap);
    }
}

impl std::fmt::Display for RecordingGap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.bytes {
            Some(bytes) => write!(f, "{bytes} bytes")?,
            None => f.write_str("an unknown number of bytes")?,
        }
        if let (Some(stream), Some(session)) = (self.stream, self.session) {
            write!(f, " of stream {stream} session {session}")?;
        }
        if let Some(from) = self.from {
            write!(f, " from {from}")?;
        }
        if let Some(to) = self.to {
            write!(f, " to {to}")?;
        }
        write!(f, " were not recorded: {}", self.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aeron_archive::memory_storage::{MemoryStorage, StorageFault};

    fn gap(bytes: i64) -> RecordingGap {
        RecordingGap {
            stream: Some(1001),
            session: Some(-7),
            from: Some(64),
            to: Some(64 + bytes),
            bytes: Some(bytes),
            reason: "sent while no query ran".to_owned(),
            recording: None,
        }
    }

    fn totals(count: i64) -> Totals {
        let mut totals = Totals::default();
        totals.numbers.insert("gapBytes".to_owned(), count);
        for number in 0..count {
            totals.push_gap(gap(32 * number));
        }
        totals
    }

    #[test]
    fn stored_totals_are_loaded_and_an_archive_of_an_older_version_has_no_totals() {
        let disk = MemoryStorage::new();
        assert_eq!(Totals::load(&disk).unwrap(), None);
        totals(3).store(&disk).unwrap();
        assert_eq!(Totals::load(&disk).unwrap(), Some(totals(3)));
        assert_eq!(disk.names().unwrap(), [TOTALS_FILE]);
    }

    #[test]
    fn a_kill_at_any_step_of_a_store_leaves_the_old_totals_or_the_new_ones() {
        for step in 0..8 {
            for progress in 0..2 {
                let disk = MemoryStorage::new();
                totals(1).store(&disk).unwrap();
                disk.fail_at(disk.steps() + step, StorageFault::Kill { progress });
                let is_killed = totals(2).store(&disk).is_err();
                disk.restart();
                let found = Totals::load(&disk).unwrap();
                assert!(found == Some(totals(1)) || found == Some(totals(2)));
                assert!(is_killed || found == Some(totals(2)));
                totals(3).store(&disk).unwrap();
                assert_eq!(Totals::load(&disk).unwrap(), Some(totals(3)));
            }
        }
    }

    #[test]
    fn the_latest_gaps_are_kept() {
        let kept = totals(MAX_GAPS as i64 + 5).gaps;
        assert_eq!(kept.len(), MAX_GAPS);
        assert_eq!(kept.front().unwrap().bytes, Some(32 * 5));
    }

    #[test]
    fn a_damaged_file_is_an_error() {
        let disk = MemoryStorage::new();
        let file = disk.create(TOTALS_FILE, 0).unwrap();
        file.write_all_at(b"{\"numbers\": 5}", 0).unwrap();
        assert!(Totals::load(&disk).is_err());
    }
}
