//! [`Extensions`]: data of an archive that Aeron's own files do not have. These are named readers and retention
//! policies; names, metadata and links of recordings; recording subscriptions that the archive resumes at its next
//! start; and deletions of segments that are in progress.
//!
//! All these data are in one file, `archive-extensions.dat`. The first change creates the file. Aeron's archive and
//! tools ignore the file. Recordings do not depend on it: without the file, no retention policy applies, and nothing is
//! deleted.

mod file;
mod record;
mod state;

pub use file::{DamagedExtensions, EXTENSIONS_FILE_NAME, MIN_COMPACTED_LENGTH};
pub use record::decode_records;
pub use state::{
    ClockState, ExtensionChange, NamedReader, RecordingLabels, RecordingLink,
    ResumableSubscription, RetentionPolicy, RetentionScope, SegmentDeletion,
};

use std::io;

use file::ExtensionFile;
use state::ExtensionState;

use crate::storage::{Access, Storage, SyncLevel};

/// Maximum number of named readers of an archive.
pub const MAX_READERS: usize = 10_000;
/// Maximum number of retention policies of an archive.
pub const MAX_POLICIES: usize = 1_000;

/// Named readers, retention policies, and the other data of the file of extensions, with the open
/// file. For one thread.
#[derive(Debug)]
pub struct Extensions<S: Storage> {
    state: ExtensionState,
    file: ExtensionFile<S>,
    damage: Option<DamagedExtensions>,
}

impl<S: Storage> Extensions<S> {
    /// Reads the file of the directory `storage`, which this process owns. A killed process may
    /// have left an incomplete last record. The next change removes this record.
    ///
    /// If the file is damaged, it is renamed, and no record of it is used. Otherwise a policy could be
    /// read while the record of a reader is lost, and the policy would delete data that this reader
    /// needs. [`damage`](Self::damage) returns the new name of a damaged file.
    ///
    /// # Errors
    /// The file has a later version than this software reads, or the file system returns an error.
    pub fn open(storage: S, sync_level: SyncLevel) -> io::Result<Self> {
        Self::open_with(storage, sync_level, MIN_COMPACTED_LENGTH)
    }

    /// Like [`open`](Self::open). A file of at most `min_compacted_length` bytes is not compacted.
    ///
    /// # Errors
    /// The same errors as [`open`](Self::open).
    pub fn open_with(
        storage: S,
        sync_level: SyncLevel,
        min_compacted_length: u64,
    ) -> io::Result<Self> {
        let (file, changes, damage) =
            ExtensionFile::open(storage, sync_level, min_compacted_length)?;
        let mut state = ExtensionState::default();
        for change in changes {
            state.apply(change);
        }
        Ok(Self {
            state,
            file,
            damage,
        })
    }

    /// Checks that the file of the directory `storage` has no later version than this software reads. The file may be
    /// missing or damaged.
    ///
    /// # Errors
    /// The file has a later version, or the file system returns an error.
    pub fn check_version(storage: &S) -> io::Result<()> {
        match storage.open(EXTENSIONS_FILE_NAME, Access::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            opened => file::check_version(&opened?),
        }
    }

    /// Returns the new name of the damaged file; `None` if the file was not damaged.
    pub fn damage(&self) -> Option<&DamagedExtensions> {
        self.damage.as_ref()
    }

    /// Stores changes, and then applies them.
    ///
    /// # Errors
    /// The file system returns an error. Then nothing has changed.
    pub fn apply(&mut self, changes: Vec<ExtensionChange>) -> io::Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        // The file first: a change that cannot be written must have no effect in memory.
        self.file.append(&changes)?;
        for change in changes {
            self.state.apply(change);
        }
        if self.file.is_compaction_due() {
            // The longer file is still valid, so an error has no effect.
            let _ = self.file.compact(self.state.changes());
        }
        Ok(())
    }

    /// Returns all readers, sorted by recording and name.
    pub fn readers(&self) -> impl Iterator<Item = &NamedReader> {
        self.state.readers.values()
    }

    /// Returns the readers of one recording, sorted by name.
    pub fn readers_of(&self, recording_id: i64) -> impl Iterator<Item = &NamedReader> {
        let range = (recording_id, String::new())..(recording_id.saturating_add(1), String::new());
        self.state.readers.range(range).map(|(_, reader)| reader)
    }

    /// Returns a reader.
    pub fn reader(&self, recording_id: i64, name: &str) -> Option<&NamedReader> {
        self.state.readers.get(&(recording_id, name.to_owned()))
    }

    /// Returns the number of readers.
    pub fn reader_count(&self) -> usize {
        self.state.readers.len()
    }

    /// Returns the retention policies. Policies of single recordings come first.
    pub fn policies(&self) -> impl Iterator<Item = &RetentionPolicy> {
        self.state.policies.values()
    }

    /// Returns the retention policy with this scope.
    pub fn policy(&self, scope: &RetentionScope) -> Option<&RetentionPolicy> {
        self.state.policies.get(scope)
    }

    /// Returns the number of retention policies.
    pub fn policy_count(&self) -> usize {
        self.state.policies.len()
    }

    /// Returns the recordings that have a name, metadata or a link, sorted by id.
    pub fn infos(&self) -> impl Iterator<Item = (i64, &RecordingLabels)> {
        self.state.infos.iter().map(|(id, info)| (*id, info))
    }

    /// Returns the recordings with at least this id that have a name, metadata or a link, sorted by id.
    pub fn infos_from(&self, recording_id: i64) -> impl Iterator<Item = (i64, &RecordingLabels)> {
        let infos = self.state.infos.range(recording_id..);
        infos.map(|(id, info)| (*id, info))
    }

    /// Returns the link of a recording to the recording that it continues.
    pub fn link(&self, recording_id: i64) -> Option<RecordingLink> {
        self.state.infos.get(&recording_id)?.link
    }

    /// Returns the name, metadata and link of a recording. They are empty if they were never set.
    pub fn info(&self, recording_id: i64) -> RecordingLabels {
        self.state
            .infos
            .get(&recording_id)
            .cloned()
            .unwrap_or_default()
    }

    /// Returns the recording subscriptions that the archive resumes at its next start, sorted by stream and channel.
    pub fn subscriptions(&self) -> impl Iterator<Item = &ResumableSubscription> {
        self.state.subscriptions.values()
    }

    /// Returns the recording subscription of this stream and channel that the archive resumes at
    /// its next start.
    pub fn subscription(&self, stream_id: i32, channel: &str) -> Option<&ResumableSubscription> {
        self.state
            .subscriptions
            .get(&(stream_id, channel.to_owned()))
    }

    /// Returns the state of the clock at the end of the last run with policies or readers, or shortly before its end.
    pub fn clock(&self) -> Option<ClockState> {
        self.state.clock
    }

    /// Returns the segments of a recording, if the archive has begun to delete them without a request. The deletion is
    /// in progress, or a kill has interrupted it.
    pub fn deletion(&self, recording_id: i64) -> Option<&SegmentDeletion> {
        self.state.deletions.get(&recording_id)
    }

    /// Returns all recordings with such a [`deletion`](Self::deletion), and the segments.
    pub fn deletions(&self) -> impl Iterator<Item = (i64, &SegmentDeletion)> {
        self.state
            .deletions
            .iter()
            .map(|(id, deletion)| (*id, deletion))
    }

    /// Removes the readers, the policy, the labels and the segment deletion of a deleted recording.
    ///
    /// # Errors
    /// The same errors as [`apply`](Self::apply).
    pub fn forget(&mut self, recording_id: i64) -> io::Result<()> {
        self.apply(self.state.changes_to_forget(recording_id))
    }

    /// Calls [`forget`](Self::forget) for each recording for which `exists` returns `false`. Data of such a recording
    /// are left if a process is killed after it has deleted the recording.
    ///
    /// # Errors
    /// The same errors as [`apply`](Self::apply).
    pub fn retain(&mut self, exists: impl Fn(i64) -> bool) -> io::Result<()> {
        let gone: Vec<i64> = self
            .state
            .recording_ids()
            .filter(|id| !exists(*id))
            .collect();
        gone.into_iter().try_for_each(|id| self.forget(id))
    }
}
