//! Moves all segments of one recording to an adjacent recording. Two recordings are adjacent if one
//! ends at the position at which the other begins.
//!
//! Before the first segment is renamed, a file is created: the *note*. The note is removed after the catalog has
//! changed. If a note exists when a store is opened, the store finishes the migration. So after a kill, no
//! recording stays without a part of its segments.

use std::io;

use super::deletion::SegmentFile;
use super::{ArchiveStore, DeleteOperation, DetachedSegments, StoreError};
use crate::catalog::RecordingDescriptor;
use crate::index::hand_over;
use crate::segments::segment_name;
use crate::storage::{Storage, SyncLevel};

/// First and last part of a note's name. Between the two parts are the ids of source and
/// destination.
const NOTE_PREFIX: &str = "archive-migrate-";
const NOTE_SUFFIX: &str = ".note";

/// Result of a migration.
#[derive(Debug)]
pub struct Migration {
    /// Number of moved segments. It is the value of the response.
    pub moved: usize,
    /// Deletion of the empty last file of the source, if the source has such a file.
    pub deletion: DeleteOperation,
}

/// The two recordings of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Route {
    source: i64,
    destination: i64,
}

/// The note of an unfinished migration.
#[derive(Clone, Debug)]
pub(crate) struct MigrationNote {
    /// Name of the file.
    pub name: String,
    /// Ids of source and destination.
    pub recordings: [i64; 2],
}

impl MigrationNote {
    /// Parses the name of a note.
    pub fn parse(name: &str) -> Option<Self> {
        let Route {
            source,
            destination,
        } = Route::parse(name)?;
        Some(Self {
            name: name.to_owned(),
            recordings: [source, destination],
        })
    }
}

impl<S: Storage + Clone> ArchiveStore<S> {
    /// Moves all segments of `source` to `destination`. Then the destination has the range of both
    /// recordings, and the source is an empty recording.
    ///
    /// # Errors
    /// * One of the recordings does not exist, or its files are being deleted; the source is active; the streams or the
    ///   segment lengths differ.
    /// * The recordings do not meet at a segment base.
    /// * A segment file is missing, or a file with its new name exists.
    /// * An index has a later version than this software reads.
    ///
    /// In these cases, nothing has changed. If the file system returns an error, the next opening
    /// of the store finishes the migration. Until then, the start and stop positions of both
    /// recordings cannot be changed.
    pub fn migrate_segments(
        &mut self,
        source: i64,
        destination: i64,
    ) -> Result<Migration, StoreError> {
        let from = self.recording(source)?;
        let to = self.recording(destination)?;
        for descriptor in [from, to] {
            self.check_not_half_migrated(descriptor.recording_id)?;
        }
        check_alike(from, to)?;
        let join_position = join_position(from, to)?;
        for (role, descriptor) in [("src", from), ("dst", to)] {
            if descriptor.segment_base(join_position) != join_position {
                return Err(not_a_segment_base(join_position, descriptor, role));
            }
            self.check_not_deleting(descriptor.recording_id)?;
        }
        let bases = bases_of(from);
        let empty = self.check_files(from, to, &bases)?;
        let route = Route {
            source,
            destination,
        };
        debug_assert!(
            [source, destination]
                .iter()
                .all(|id| !self.deleting.contains_key(id))
                || self.options.detached_segments == DetachedSegments::Deleted,
            "segments of recordings {source} and {destination} are moved while files of one of them are deleted"
        );
        self.storage
            .create(&route.note(), 0)
            .map_err(|error| StoreError::storage(&route.note(), "create it", error))?;
        if let Err(error) = self.finish_migration(route) {
            self.half_migrated.extend([source, destination]);
            return Err(error);
        }
        debug_assert!(
            self.recording(source)
                .is_ok_and(|it| it.start_position == it.stop_position),
            "recording {source} must be empty after all its segments were moved"
        );
        let count = empty.len();
        Ok(Migration {
            moved: bases.len(),
            deletion: self.delete_files(source, count, empty),
        })
    }

    /// Finishes the migrations that a kill or an error has interrupted.
    ///
    /// `names` are the names of the directory's files.
    pub(super) fn finish_migrations(&mut self, names: &[String]) -> Result<(), StoreError> {
        for name in names {
            if let Some(route) = Route::parse(name)
                && self.has_both(route)
            {
                self.finish_migration(route)?;
            }
        }
        Ok(())
    }

    /// Returns whether both recordings exist. If one of them is marked as invalid, the migration
    /// stays unfinished until the recording is valid again.
    fn has_both(&self, route: Route) -> bool {
        [route.source, route.destination]
            .iter()
            .all(|&recording_id| self.recording(recording_id).is_ok())
    }

    /// Checks that the recording has no unfinished migration.
    ///
    /// # Errors
    /// [`StoreError::HalfMigrated`] if a migration from or to the recording is unfinished.
    pub(super) fn check_not_half_migrated(&self, recording_id: i64) -> Result<(), StoreError> {
        match self.half_migrated.contains(&recording_id) {
            true => Err(StoreError::HalfMigrated { recording_id }),
            false => Ok(()),
        }
    }

    /// Does the remaining steps of a migration.
    fn finish_migration(&mut self, route: Route) -> Result<(), StoreError> {
        // The note must be on the disk before the first file is moved: because of it, the next start finishes the
        // migration.
        self.sync_directory()?;
        let from = self.recording(route.source)?.clone();
        let to = self.recording(route.destination)?.clone();
        for base in bases_of(&from) {
            let name = segment_name(route.source, base);
            let new_name = segment_name(route.destination, base);
            hand_over(&self.storage, &from, &to, base)
                .map_err(|error| StoreError::storage(&name, "rename its index", error))?;
            match self.storage.rename(&name, &new_name) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(StoreError::storage(&name, "rename it", error));
                }
                _ => {}
            }
        }
        // The moved files must be on the disk before the catalog has their range in the destination. If a kill comes
        // between the two changes of the catalog, the next start makes only the second one.
        self.sync_directory()?;
        if to.start_position == from.stop_position {
            self.catalog
                .set_start_position(route.destination, from.start_position)?;
        } else if to.stop_position == from.start_position {
            self.catalog
                .truncate(route.destination, from.stop_position)?;
        }
        self.catalog.truncate(route.source, from.start_position)?;
        self.storage
            .remove(&route.note())
            .map_err(|error| StoreError::storage(&route.note(), "remove it", error))
    }

    /// Checks that all segments of the source exist and that their new names are free. Returns the empty last file of
    /// the source.
    fn check_files(
        &self,
        from: &RecordingDescriptor,
        to: &RecordingDescriptor,
        bases: &[i64],
    ) -> Result<Vec<SegmentFile>, StoreError> {
        let mut present = self.segment_files(from.recording_id)?;
        let taken = self.segment_files(to.recording_id)?;
        for &base in bases {
            let name = segment_name(from.recording_id, base);
            if !present.iter().any(|file| file.name == name) {
                let name = self.storage.shown_name(&name);
                return Err(StoreError::MissingSegmentFile { name });
            }
            let name = segment_name(to.recording_id, base);
            if taken.iter().any(|file| file.name == name) {
                let name = self.storage.shown_name(&name);
                return Err(StoreError::PreexistingSegmentFile { name });
            }
            // An index of a later version cannot be moved.
            self.index_file(from.recording_id, base)?;
        }
        present.retain(|file| file.base == from.stop_position);
        Ok(present)
    }

    pub(super) fn sync_directory(&self) -> Result<(), StoreError> {
        if self.options.catalog_sync_level == SyncLevel::None {
            return Ok(());
        }
        self.storage
            .sync()
            .map_err(|error| StoreError::storage(".", "sync it", error))
    }
}

impl Route {
    fn note(self) -> String {
        let Self {
            source,
            destination,
        } = self;
        format!("{NOTE_PREFIX}{source}-{destination}{NOTE_SUFFIX}")
    }

    fn parse(name: &str) -> Option<Self> {
        let ids = name.strip_prefix(NOTE_PREFIX)?.strip_suffix(NOTE_SUFFIX)?;
        let (source, destination) = ids.split_once('-')?;
        Some(Self {
            source: source.parse().ok()?,
            destination: destination.parse().ok()?,
        })
    }
}

fn check_alike(from: &RecordingDescriptor, to: &RecordingDescriptor) -> Result<(), StoreError> {
    if from.is_unfinished() {
        return Err(StoreError::MigratesActive {
            recording_id: from.recording_id,
        });
    }
    let fields = [
        ("SegmentFileLength", from.segment_length, to.segment_length),
        ("TermBufferLength", from.term_length, to.term_length),
        ("InitialTermId", from.initial_term_id, to.initial_term_id),
        ("StreamId", from.stream_id, to.stream_id),
        ("MtuLength", from.mtu_length, to.mtu_length),
    ];
    match fields.into_iter().find(|(_, from, to)| from != to) {
        Some((field, from, to)) => Err(StoreError::Migrate {
            reason: format!("src{field}={from} dst{field}={to}"),
        }),
        None => Ok(()),
    }
}

/// Returns the position at which the two recordings meet.
fn join_position(from: &RecordingDescriptor, to: &RecordingDescriptor) -> Result<i64, StoreError> {
    if from.recording_id != to.recording_id {
        if from.stop_position == to.start_position {
            return Ok(to.start_position);
        }
        if from.start_position == to.stop_position {
            return Ok(from.start_position);
        }
    }
    Err(StoreError::Migrate {
        reason: format!(
            "src and dst are not contiguous srcStartPosition={} srcStopPosition={} dstStartPosition={} dstStopPosition={}",
            from.start_position, from.stop_position, to.start_position, to.stop_position
        ),
    })
}

fn not_a_segment_base(
    join_position: i64,
    recording: &RecordingDescriptor,
    role: &str,
) -> StoreError {
    StoreError::Migrate {
        reason: format!(
            "join position is not on segment boundary of {role} recording seamPosition={join_position} startPosition={} stopPosition={} termBufferLength={} segmentFileLength={}",
            recording.start_position,
            recording.stop_position,
            recording.term_length,
            recording.segment_length
        ),
    }
}

/// Returns the bases of the segments that contain bytes of the recording. The recording must have ended.
fn bases_of(recording: &RecordingDescriptor) -> Vec<i64> {
    (recording.first_segment_base()..recording.stop_position)
        .step_by(recording.segment_length as usize)
        .filter(|_| recording.start_position < recording.stop_position)
        .collect()
}
