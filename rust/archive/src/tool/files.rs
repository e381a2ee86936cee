//! [`ArchiveFiles`]: the catalog and the segment files of an archive directory.

use std::collections::HashMap;
use std::io;

use super::ToolError;
use crate::catalog::{Catalog, CatalogEntry, RecordingDescriptor, RecordingState};
use crate::index::IndexProof;
use crate::ownership::BootId;
use crate::recovery::{RecoveryPolicy, find_end_from};
use crate::segments::{SEGMENT_EXTENSION, SegmentFileName};
use crate::storage::{Access, Storage};
use crate::store::MigrationNote;
use crate::stream::RecordedStream;

/// The files of an archive, opened by a tool. Not shared between threads.
#[derive(Debug)]
pub struct ArchiveFiles<S: Storage> {
    pub(super) storage: S,
    pub(super) catalog: Catalog<S>,
    /// Bases of each recording's segment files when the files were opened, in ascending order.
    bases: HashMap<i64, Vec<i64>>,
    /// Migrations that were unfinished when the files were opened.
    migrations: Vec<MigrationNote>,
    /// The current boot of the machine, if it is known.
    boot_id: Option<BootId>,
}

impl<S: Storage + Clone> ArchiveFiles<S> {
    /// Opens the archive in a directory. With [`Access::Read`] every change fails.
    ///
    /// # Errors
    /// The catalog does not exist, is damaged or has another version, or the file system returns an
    /// error.
    pub fn open(storage: S, access: Access) -> Result<Self, ToolError> {
        let catalog = Catalog::open_unchecked(&storage, access)?;
        let names = storage
            .names()
            .map_err(|source| ToolError::storage(".".to_owned(), source))?;
        Ok(Self {
            storage,
            catalog,
            bases: bases_of_segments(&names),
            migrations: names
                .iter()
                .filter_map(|name| MigrationNote::parse(name))
                .collect(),
            boot_id: BootId::current(),
        })
    }

    /// Sets the boot of the machine. Indexes that were written in this boot prove whether a last frame is whole. The
    /// default is the current boot.
    #[must_use]
    pub fn in_boot(mut self, boot_id: Option<BootId>) -> Self {
        self.boot_id = boot_id;
        self
    }

    /// Returns the catalog.
    pub fn catalog(&self) -> &Catalog<S> {
        &self.catalog
    }

    /// Returns the entry of a recording in any state.
    ///
    /// # Errors
    /// [`ToolError::UnknownRecording`] if the catalog has no entry with this id.
    pub fn entry(&self, recording_id: i64) -> Result<&CatalogEntry, ToolError> {
        self.catalog
            .entry(recording_id)
            .ok_or(ToolError::UnknownRecording { recording_id })
    }

    /// Extends the catalog to `capacity` bytes, if the catalog is shorter.
    ///
    /// # Errors
    /// The capacity is out of range, or the file system returns an error.
    pub fn grow(&mut self, capacity: u64) -> Result<(), ToolError> {
        Ok(self.catalog.grow(capacity)?)
    }

    /// Marks a recording as broken, or removes this mark. Returns whether the state has changed.
    ///
    /// # Errors
    /// The recording is unknown or deleted, its values are not valid, or the file system returns an error.
    pub fn mark(&mut self, recording_id: i64, is_valid: bool) -> Result<bool, ToolError> {
        let to = match is_valid {
            true => RecordingState::Valid,
            false => RecordingState::Invalid,
        };
        let from = self.entry(recording_id)?.state;
        if from == RecordingState::Deleted {
            let to = to.name();
            return Err(ToolError::Deleted { recording_id, to });
        }
        match is_valid {
            true => self.catalog.revalidate(recording_id)?,
            false => self.catalog.invalidate(recording_id)?,
        }
        Ok(from != to)
    }

    /// Returns the total length of the segment files that a command on a recording reads, in bytes: all segment files,
    /// or only the last segment file.
    ///
    /// Returns 0 if the recording is deleted.
    ///
    /// # Errors
    /// The recording is unknown.
    pub fn segment_bytes(&self, recording_id: i64, all_segments: bool) -> Result<u64, ToolError> {
        let entry = self.entry(recording_id)?;
        if entry.state == RecordingState::Deleted {
            return Ok(0);
        }
        let segments = self.segments(&entry.descriptor);
        let count = match all_segments {
            true => segments.len(),
            false => segments.len().min(1),
        };
        let length = u64::try_from(entry.descriptor.segment_length).unwrap_or(0);
        Ok(length.saturating_mul(count as u64))
    }

    /// Returns the position at which a recording ends: the stop position. If the recording has no stop position,
    /// returns the end of the last whole frame.
    pub(super) fn end_of(
        &self,
        descriptor: &RecordingDescriptor,
        stream: &RecordedStream,
    ) -> Result<i64, ToolError> {
        if !descriptor.is_unfinished() {
            return Ok(descriptor.stop_position);
        }
        let last = self.segments(descriptor).last().copied();
        let (start, policy) = (descriptor.start_position, RecoveryPolicy::default());
        let prove = |base| self.proof(descriptor, stream, base);
        Ok(find_end_from(&self.storage, stream, start, last, &policy, prove)?.position)
    }

    /// Returns what the index proves about the last frame of a recording.
    ///
    /// If the recording has a stop position, all frames before it were acknowledged. Then the index can only prove that
    /// a frame is whole.
    pub(super) fn proof(
        &self,
        descriptor: &RecordingDescriptor,
        stream: &RecordedStream,
        base: i64,
    ) -> io::Result<Option<IndexProof>> {
        let proof = IndexProof::read(&self.storage, descriptor, stream, base, self.boot_id)?;
        Ok(proof.map(|proof| match descriptor.is_unfinished() {
            true => proof,
            false => IndexProof {
                begin_position: i64::MAX,
                ..proof
            },
        }))
    }

    /// Returns an error if the recording has an unfinished migration. The next start of an archive
    /// finishes the migration.
    pub(super) fn check_not_half_migrated(&self, recording_id: i64) -> Result<(), ToolError> {
        let exists = |id: &i64| {
            let entry = self.catalog.entry(*id);
            entry.is_some_and(|entry| entry.state != RecordingState::Deleted)
        };
        let of_it = |note: &&MigrationNote| {
            note.recordings.contains(&recording_id) && note.recordings.iter().all(exists)
        };
        match self.migrations.iter().find(of_it) {
            Some(MigrationNote { name, .. }) => Err(ToolError::HalfMigrated {
                recording_id,
                note: name.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Returns the bases of a recording's segment files, in ascending order, from the segment of
    /// the start position on.
    pub(super) fn segments(&self, descriptor: &RecordingDescriptor) -> &[i64] {
        let term_length = i64::from(descriptor.term_length);
        let first = descriptor.start_position & !(term_length - 1);
        let bases = self.bases.get(&descriptor.recording_id);
        let bases = bases.map_or(&[][..], Vec::as_slice);
        &bases[bases.partition_point(|&base| base < first)..]
    }
}

fn bases_of_segments(names: &[String]) -> HashMap<i64, Vec<i64>> {
    let mut bases: HashMap<i64, Vec<i64>> = HashMap::new();
    for file in names.iter().filter_map(|name| SegmentFileName::parse(name)) {
        if file.extension == SEGMENT_EXTENSION {
            bases.entry(file.recording_id).or_default().push(file.base);
        }
    }
    for of_recording in bases.values_mut() {
        of_recording.sort_unstable();
    }
    bases
}
