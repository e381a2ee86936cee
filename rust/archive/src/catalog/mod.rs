//! The catalog: the recordings of an archive, their streams, and their start and stop positions.
//!
//! One file, `archive.catalog`, has a header and then the entries. Each entry has a state. [`Catalog`] has a copy of
//! the file in memory, and writes each change to the file at once. If the process is killed at any moment, the file can
//! still be opened. If the method of a change returned before the kill, the file has the change. A change that a kill
//! interrupts leaves a valid file:
//!
//! * the next recording id in the header is increased before the entry with that id is written, so no id is used twice;
//! * an entry is first written with length 0, and its length is written last: an entry with length
//!   0 is the end of the catalog;
//! * fields that change together and are on one page are written with one write, because a killed write can only end at
//!   the end of a page;
//! * fields on two pages are written one by one: see [`Catalog::extend`] and [`Catalog::delete`];
//! * [`Catalog::create`], [`Catalog::compact`] and [`Catalog::replace`] write and sync a whole new
//!   file under another name, and then rename the file.
//!
//! At sync levels above [`SyncLevel::None`], the same is true after a loss of power. If the power
//! fails, pages may have reached the disk in any order. So an entry is synced before its length is
//! written.
//!
//! The content of a file is checked before it is used. If an entry fails [`RecordingDescriptor::check`], its recording
//! is not served, and all other recordings are: see [`CatalogEntry::fault`]. Only [`Catalog::open_unchecked`] does not
//! call this check. One process writes; others may read.
//!
//! A catalog [with a checksum](Catalog::set_checksum) writes the checksum of an entry with each change of the entry. If
//! a kill interrupts a change, the entry may have no checksum, but never a wrong checksum. Checksums are not checked
//! when a catalog is opened.

mod changes;
mod descriptor;
mod entry;
mod error;
mod load;

pub use changes::Extension;
pub use descriptor::{MAX_ENTRY_LENGTH, NULL_VALUE, RecordingDescriptor, RecordingState};
pub use entry::CatalogEntry;
pub use error::CatalogError;

use std::io;

use aeron_layout::catalog::{CatalogHeaderLayout, ENTRY_ALIGNMENT};
use aeron_layout::{FromZeros, I64, offset};
use aeron_memory::cnc::SemanticVersion;

use crate::Damage;
use crate::checksum::Checksum;
use crate::storage::{Access, Storage, StorageFile, SyncLevel};
use descriptor::{LENGTH_OFFSET, STATE_OFFSET};
use load::RecordingCheck;

/// Name of the catalog's file.
pub const CATALOG_FILE: &str = "archive.catalog";
/// Name of a new catalog until it replaces the existing catalog.
pub const NEW_CATALOG_FILE: &str = "archive.catalog.compact";
/// Name of a rebuilt catalog until it is complete.
const REBUILT_CATALOG_FILE: &str = "archive.catalog.new";
/// Version of the layout. A catalog of another major version is refused.
pub const CATALOG_VERSION: SemanticVersion = SemanticVersion::new(3, 1, 0);
/// Length of a new catalog in bytes; the file is sparse.
pub const DEFAULT_CAPACITY: u64 = 1024 * 1024;
/// Length of the shortest catalog in bytes: a header without entries.
pub const MIN_CAPACITY: u64 = HEADER_LENGTH as u64;
/// Longest catalog in bytes.
pub const MAX_CAPACITY: u64 = i32::MAX as u64;

const HEADER_LENGTH: usize = CatalogHeaderLayout::LENGTH;
const NEXT_RECORDING_ID_OFFSET: usize = offset!(CatalogHeaderLayout, next_recording_id: I64);

/// Length of a page in bytes. If a write is killed, the written part ends at the end of a page.
const PAGE_LENGTH: u64 = 4096;

/// The recordings of an archive directory. Not shared between threads.
#[derive(Debug)]
pub struct Catalog<S: Storage> {
    file: S::File,
    /// In the order of their ids.
    entries: Vec<CatalogEntry>,
    /// Number of entries of deleted recordings.
    deleted: usize,
    next_recording_id: i64,
    end: u64,
    capacity: u64,
    sync_level: SyncLevel,
    checksum: Option<Checksum>,
}

impl<S: Storage> Catalog<S> {
    /// Creates an empty catalog of `capacity` bytes in a directory without a catalog.
    ///
    /// # Errors
    /// The directory has a catalog, the capacity is out of range, or the file system returns an error. If only the sync
    /// of the directory failed, the catalog exists.
    pub fn create(storage: &S, capacity: u64) -> Result<Self, CatalogError> {
        match storage.open(CATALOG_FILE, Access::Read) {
            Ok(_) => return Err(io_error("create it", io::ErrorKind::AlreadyExists.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io_error("create it", error)),
        }
        if !(MIN_CAPACITY..=MAX_CAPACITY).contains(&capacity) {
            return Err(CatalogError::InvalidCapacity { capacity });
        }
        let catalog = Self::write_new(storage, 0, Vec::new(), capacity)?;
        sync_directory(storage)?;
        Ok(catalog)
    }

    /// Opens the catalog of a directory for reading and writing. If the file is shorter than `capacity` bytes, extends
    /// the file to `capacity` bytes.
    ///
    /// # Errors
    /// The file is not a catalog, is damaged, or has another version; or the file system returns an error.
    pub fn open(storage: &S, capacity: u64) -> Result<Self, CatalogError> {
        let mut catalog = Self::open_with(storage, Access::Write, RecordingCheck::Checked)?;
        remove_new_file(storage).map_err(|error| io_error("remove an unfinished one", error))?;
        if capacity > MAX_CAPACITY {
            return Err(CatalogError::InvalidCapacity { capacity });
        }
        if capacity > catalog.capacity {
            catalog.set_capacity(capacity)?;
        }
        Ok(catalog)
    }

    /// Opens the catalog of a directory for reading only: every change fails.
    ///
    /// # Errors
    /// The same errors as [`open`](Self::open).
    pub fn open_read_only(storage: &S) -> Result<Self, CatalogError> {
        Self::open_with(storage, Access::Read, RecordingCheck::Checked)
    }

    /// Opens the catalog of a directory for tools. The values of the recordings are not checked. So a tool can show a
    /// recording with impossible values, and mark the recording as broken.
    ///
    /// # Errors
    /// The same errors as [`open`](Self::open), except for invalid values of recordings.
    pub fn open_unchecked(storage: &S, access: Access) -> Result<Self, CatalogError> {
        let catalog = Self::open_with(storage, access, RecordingCheck::Unchecked)?;
        if access == Access::Write {
            remove_new_file(storage)
                .map_err(|error| io_error("remove an unfinished one", error))?;
        }
        Ok(catalog)
    }

    /// Opens the new catalog that an interrupted compaction has left, for reading only. Returns `None` if there is
    /// none, or if it is damaged.
    pub(crate) fn open_compacted(storage: &S) -> Option<Self> {
        let file = storage.open(NEW_CATALOG_FILE, Access::Read).ok()?;
        Self::of_file(file, Access::Read, RecordingCheck::Unchecked).ok()
    }

    /// Writes the catalog of a directory without a catalog. The descriptors are in the order of their ids.
    ///
    /// # Errors
    /// An entry is too long, or the file system returns an error. If only the sync of the directory failed, the catalog
    /// exists.
    pub(crate) fn write_rebuilt(
        storage: &S,
        next_recording_id: i64,
        descriptors: impl Iterator<Item = (RecordingState, RecordingDescriptor)>,
    ) -> Result<(), CatalogError> {
        let mut bytes = header(next_recording_id).to_vec();
        for (state, descriptor) in descriptors {
            bytes.extend(descriptor.encode_entry(state, 0));
        }
        let capacity = DEFAULT_CAPACITY.max(bytes.len() as u64);
        if capacity > MAX_CAPACITY {
            return Err(CatalogError::Full);
        }
        write_new_file(storage, REBUILT_CATALOG_FILE, &bytes, capacity)
            .map_err(|error| io_error("write a new one", error))?;
        sync_directory(storage)
    }

    /// Sets how each change is forced to the disk before its call returns. The default is [`SyncLevel::None`].
    ///
    /// If the sync of a change fails, the call returns the error. The file may then contain all, a part or nothing of
    /// the change.
    pub fn set_sync_level(&mut self, level: SyncLevel) {
        self.sync_level = level;
    }

    /// Sets the checksum that each change writes for the changed entry. The default is `None`: the checksums in the
    /// file are not changed.
    pub fn set_checksum(&mut self, checksum: Option<Checksum>) {
        self.checksum = checksum;
    }

    /// Returns the length of the file in bytes.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns the id of the next recording that is added.
    pub fn next_recording_id(&self) -> i64 {
        self.next_recording_id
    }

    /// Returns all entries, by ascending id, including the entries of deleted and invalid
    /// recordings.
    pub fn entries(&self) -> &[CatalogEntry] {
        &self.entries
    }

    /// Returns the number of entries of deleted recordings.
    pub fn deleted_count(&self) -> usize {
        self.deleted
    }

    /// Returns the entry of an id, in any state.
    pub fn entry(&self, recording_id: i64) -> Option<&CatalogEntry> {
        let found = self.position_of(recording_id)?;
        self.entries.get(found)
    }

    /// Returns the recordings that exist and can be served, by ascending id.
    pub fn recordings(&self) -> impl DoubleEndedIterator<Item = &RecordingDescriptor> {
        self.recordings_from(i64::MIN)
    }

    /// Returns the recordings that exist, can be served, and have at least this id, by ascending id.
    pub fn recordings_from(
        &self,
        recording_id: i64,
    ) -> impl DoubleEndedIterator<Item = &RecordingDescriptor> {
        self.entries_from(recording_id)
            .filter(|entry| entry.is_served())
            .map(|entry| &entry.descriptor)
    }

    /// Returns the entries in any state that have at least this id, by ascending id.
    pub fn entries_from(
        &self,
        recording_id: i64,
    ) -> impl DoubleEndedIterator<Item = &CatalogEntry> {
        let first = self
            .entries
            .partition_point(|entry| entry.descriptor.recording_id < recording_id);
        self.entries[first..].iter()
    }

    /// Notes why a recording cannot be served. The file is not changed. Does nothing if the recording does not exist.
    pub(crate) fn note_fault(&mut self, recording_id: i64, fault: &str) {
        if let Ok(place) = self.existing(recording_id) {
            self.entries[place].fault = Some(fault.into());
        }
    }

    /// Returns the recording with an id, if it exists and can be served.
    ///
    /// # Errors
    /// [`CatalogError::UnknownRecording`]: the recording never existed, is deleted or invalid, or cannot be served.
    pub fn recording(&self, recording_id: i64) -> Result<&RecordingDescriptor, CatalogError> {
        self.entry(recording_id)
            .filter(|entry| entry.is_served())
            .map(|entry| &entry.descriptor)
            .ok_or(CatalogError::UnknownRecording { recording_id })
    }

    /// Adds a recording and returns its new id. The id in the descriptor is ignored.
    ///
    /// # Errors
    /// The descriptor fails [`RecordingDescriptor::check`], the entry does not fit, or the file
    /// system returns an error. Then the recording does not exist, but its id may be used up.
    pub fn add(&mut self, mut descriptor: RecordingDescriptor) -> Result<i64, CatalogError> {
        descriptor.check().map_err(CatalogError::InvalidRecording)?;
        let recording_id = self.next_recording_id;
        descriptor.recording_id = recording_id;
        let mut entry = CatalogEntry::new(descriptor);
        let bytes = entry.encode(self.checksum);
        self.make_room(bytes.len())?;
        self.take_id()?;
        self.write_entry(&bytes)?;
        // Each write of a changed field relies on this offset: then the field does not cross the end of a page.
        debug_assert_eq!(
            self.end % ENTRY_ALIGNMENT as u64,
            HEADER_LENGTH as u64,
            "the catalog entry of recording {recording_id} at offset {} must begin 32 bytes after a multiple of 64",
            self.end
        );
        debug_assert!(
            self.entries
                .last()
                .is_none_or(|last| last.descriptor.recording_id < recording_id),
            "recording {recording_id} is new, so all entries before it must have lower ids"
        );
        entry.offset = self.end;
        self.entries.push(entry);
        self.end += bytes.len() as u64;
        Ok(recording_id)
    }

    /// Changes the channels of a recording. The entry of the recording never becomes shorter.
    ///
    /// # Errors
    /// The same errors as [`replace`](Self::replace).
    pub fn update_channel(
        &mut self,
        storage: &S,
        recording_id: i64,
        original_channel: &str,
        stripped_channel: &str,
    ) -> Result<(), CatalogError> {
        let descriptor = RecordingDescriptor {
            original_channel: original_channel.into(),
            stripped_channel: stripped_channel.into(),
            ..self.recording(recording_id)?.clone()
        };
        self.replace(storage, recording_id, descriptor)
    }

    /// Replaces all data of a recording except its id. The entry of the recording never becomes shorter. If the entry
    /// becomes longer, the following entries are moved.
    ///
    /// # Errors
    /// The recording does not exist, the descriptor fails [`RecordingDescriptor::check`], the entry
    /// does not fit, or the file system returns an error. The catalog is then unchanged, with one
    /// exception: if only the sync of the directory failed, the change is made, but a loss of power
    /// may restore the old catalog.
    pub fn replace(
        &mut self,
        storage: &S,
        recording_id: i64,
        descriptor: RecordingDescriptor,
    ) -> Result<(), CatalogError> {
        descriptor.check().map_err(CatalogError::InvalidRecording)?;
        let place = self.existing(recording_id)?;
        let mut entries = self.entries.clone();
        let entry = &mut entries[place];
        let old_length = entry.length;
        entry.descriptor = RecordingDescriptor {
            recording_id,
            ..descriptor
        };
        let length = entry.encode(self.checksum).len();
        let end = self.end - old_length as u64;
        let capacity = self.capacity_for(end, length)?;
        self.rewrite(storage, entries, capacity)
    }

    /// Removes the entries of deleted recordings for which `keep` is false. Their ids are not used again.
    ///
    /// Before this call, the caller has removed the files of these recordings.
    ///
    /// # Errors
    /// The file system returns an error. The catalog is then unchanged, with one exception: if only
    /// the sync of the directory failed, the catalog is compact, but a loss of power may restore the
    /// old catalog.
    pub fn compact(
        &mut self,
        storage: &S,
        mut keep: impl FnMut(&CatalogEntry) -> bool,
    ) -> Result<(), CatalogError> {
        let kept = self
            .entries
            .iter()
            .filter(|entry| entry.state != RecordingState::Deleted || keep(entry))
            .cloned()
            .collect();
        self.rewrite(storage, kept, self.capacity)
    }

    /// Removes the entries of all deleted and invalid recordings, and shortens the file to the length of the other
    /// entries. No id is used again.
    ///
    /// # Errors
    /// The same errors as [`compact`](Self::compact).
    pub fn compact_to_valid(&mut self, storage: &S) -> Result<(), CatalogError> {
        let is_kept = |entry: &&CatalogEntry| entry.state == RecordingState::Valid;
        let kept: Vec<_> = self.entries.iter().filter(is_kept).cloned().collect();
        let used: usize = kept.iter().map(CatalogEntry::length).sum();
        self.rewrite(storage, kept, (HEADER_LENGTH + used) as u64)
    }

    /// Extends the file to `capacity` bytes, if the file is shorter.
    ///
    /// # Errors
    /// The capacity is out of range, or the file system returns an error.
    pub fn grow(&mut self, capacity: u64) -> Result<(), CatalogError> {
        if !(MIN_CAPACITY..=MAX_CAPACITY).contains(&capacity) {
            return Err(CatalogError::InvalidCapacity { capacity });
        }
        match capacity > self.capacity {
            true => self.set_capacity(capacity),
            false => Ok(()),
        }
    }

    fn open_with(
        storage: &S,
        access: Access,
        recordings: RecordingCheck,
    ) -> Result<Self, CatalogError> {
        let file = storage
            .open(CATALOG_FILE, access)
            .map_err(|error| io_error("open it", error))?;
        Self::of_file(file, access, recordings)
    }

    fn of_file(
        file: S::File,
        access: Access,
        recordings: RecordingCheck,
    ) -> Result<Self, CatalogError> {
        let loaded = load::load(&file, access, recordings)?;
        Ok(Self {
            file,
            deleted: count_deleted(&loaded.entries),
            entries: loaded.entries,
            next_recording_id: loaded.next_recording_id,
            end: loaded.end,
            capacity: loaded.capacity,
            sync_level: SyncLevel::None,
            checksum: None,
        })
    }

    /// Replaces the file by a new file with these entries.
    fn rewrite(
        &mut self,
        storage: &S,
        entries: Vec<CatalogEntry>,
        capacity: u64,
    ) -> Result<(), CatalogError> {
        let (sync_level, checksum) = (self.sync_level, self.checksum);
        *self = Self::write_new(storage, self.next_recording_id, entries, capacity)?;
        self.sync_level = sync_level;
        self.checksum = checksum;
        sync_directory(storage)
    }

    /// Writes a new catalog under another name, and then replaces the existing catalog with it by a rename.
    fn write_new(
        storage: &S,
        next_recording_id: i64,
        mut entries: Vec<CatalogEntry>,
        capacity: u64,
    ) -> Result<Self, CatalogError> {
        let mut bytes = header(next_recording_id).to_vec();
        for entry in &mut entries {
            entry.offset = bytes.len() as u64;
            bytes.extend(entry.encode(None));
        }
        debug_assert!(
            entries.is_sorted_by(
                |one, next| one.descriptor.recording_id < next.descriptor.recording_id
            ),
            "the entries of a new catalog must be in the order of their ids, because ids are found by binary search"
        );
        debug_assert!(
            entries
                .last()
                .is_none_or(|last| last.descriptor.recording_id < next_recording_id),
            "the next recording id {next_recording_id} must be higher than the ids of all entries"
        );
        debug_assert!(
            bytes.len() as u64 <= capacity,
            "a new catalog of {} bytes must fit into its capacity of {capacity} bytes",
            bytes.len()
        );
        let file = write_new_file(storage, NEW_CATALOG_FILE, &bytes, capacity)
            .map_err(|error| io_error("write a new one", error))?;
        Ok(Self {
            file,
            deleted: count_deleted(&entries),
            entries,
            next_recording_id,
            end: bytes.len() as u64,
            capacity,
            sync_level: SyncLevel::None,
            checksum: None,
        })
    }

    /// Extends the file so that `length` more bytes fit.
    fn make_room(&mut self, length: usize) -> Result<(), CatalogError> {
        let capacity = self.capacity_for(self.end, length)?;
        if capacity > self.capacity {
            self.set_capacity(capacity)?;
        }
        Ok(())
    }

    /// Returns the new capacity for an entry of `length` bytes after entries that end at `end`: the current capacity,
    /// increased by half until the entry fits.
    fn capacity_for(&self, end: u64, length: usize) -> Result<u64, CatalogError> {
        let length = length as u64;
        let needed = end + length;
        if length > MAX_ENTRY_LENGTH as u64 {
            let available = MAX_ENTRY_LENGTH as u64;
            return Err(CatalogError::TooBig { length, available });
        }
        if needed > MAX_CAPACITY {
            let available = MAX_CAPACITY - end;
            return Err(match self.capacity {
                MAX_CAPACITY => CatalogError::Full,
                _ => CatalogError::TooBig { length, available },
            });
        }
        let mut capacity = self.capacity;
        while capacity < needed {
            capacity = (capacity + capacity / 2).min(MAX_CAPACITY);
        }
        Ok(capacity)
    }

    fn set_capacity(&mut self, capacity: u64) -> Result<(), CatalogError> {
        debug_assert!(
            capacity >= self.end,
            "a catalog with entries up to offset {} must not be cut to {capacity} bytes",
            self.end
        );
        self.file
            .set_length(capacity)
            .map_err(|error| io_error("make it longer", error))?;
        self.capacity = capacity;
        Ok(())
    }

    /// Marks the next recording id as used.
    fn take_id(&mut self) -> Result<(), CatalogError> {
        let used = self.next_recording_id;
        let next = used.checked_add(1).ok_or(Damage {
            field: "nextRecordingId",
            offset: NEXT_RECORDING_ID_OFFSET as u64,
            value: used,
            expected: "an id below 9223372036854775807",
        })?;
        self.write(&I64::new(next).to_bytes(), NEXT_RECORDING_ID_OFFSET as u64)?;
        debug_assert!(
            used >= 0,
            "a new recording must not get the negative id {used}: names of segment files have no sign"
        );
        self.next_recording_id = next;
        Ok(())
    }

    /// Writes an entry after the last entry. The length is written last: a length other than 0 makes the entry valid.
    fn write_entry(&self, bytes: &[u8]) -> Result<(), CatalogError> {
        let (length, body) = bytes.split_at(STATE_OFFSET);
        debug_assert!(
            self.end + bytes.len() as u64 <= self.capacity,
            "an entry of {} bytes at offset {} must fit into the catalog of {} bytes",
            bytes.len(),
            self.end,
            self.capacity
        );
        let mut unborn = vec![0; STATE_OFFSET];
        unborn.extend(body);
        // A killed addition may have left bytes after this entry. They must not be read as the length of the next
        // entry, so the length field of the next entry is set to 0.
        let left = self.capacity - self.end - bytes.len() as u64;
        unborn.resize(bytes.len() + left.min(4) as usize, 0);
        self.write(&unborn, self.end)?;
        self.sync()?;
        self.write(length, self.end + LENGTH_OFFSET as u64)?;
        self.sync().inspect_err(|_| {
            // Writes length 0 again, so that the entry is not part of the catalog. If this write fails too, the
            // next addition overwrites the entry.
            let _ = self.write(&unborn[..STATE_OFFSET], self.end);
        })
    }

    fn existing(&self, recording_id: i64) -> Result<usize, CatalogError> {
        self.position_of(recording_id)
            .filter(|&found| self.entries[found].is_served())
            .ok_or(CatalogError::UnknownRecording { recording_id })
    }

    fn position_of(&self, recording_id: i64) -> Option<usize> {
        self.entries
            .binary_search_by_key(&recording_id, |entry| entry.descriptor.recording_id)
            .ok()
    }

    fn write(&self, bytes: &[u8], offset: u64) -> Result<(), CatalogError> {
        self.file
            .write_all_at(bytes, offset)
            .map_err(|error| io_error("write it", error))
    }

    /// Forces the catalog to the disk at any sync level.
    ///
    /// # Errors
    /// The file system returns an error.
    pub(crate) fn force(&self) -> Result<(), CatalogError> {
        self.file
            .sync(SyncLevel::Data)
            .map_err(|error| io_error("sync it", error))
    }

    /// Forces the catalog to the disk, as its sync level requires.
    ///
    /// # Errors
    /// The file system returns an error.
    pub(crate) fn sync(&self) -> Result<(), CatalogError> {
        self.file
            .sync(self.sync_level)
            .map_err(|error| io_error("sync it", error))
    }
}

/// Writes `bytes` to a new file of `capacity` bytes, and then renames it to the catalog's name.
fn write_new_file<S: Storage>(
    storage: &S,
    name: &str,
    bytes: &[u8],
    capacity: u64,
) -> io::Result<S::File> {
    remove_file(storage, name)?;
    let file = storage.create(name, capacity)?;
    file.write_all_at(bytes, 0)?;
    file.sync(SyncLevel::DataAndMetadata)?;
    storage.rename(name, CATALOG_FILE)?;
    Ok(file)
}

fn sync_directory(storage: &impl Storage) -> Result<(), CatalogError> {
    storage
        .sync()
        .map_err(|error| io_error("sync its directory", error))
}

/// Removes an unfinished new catalog, which a kill may have left.
fn remove_new_file(storage: &impl Storage) -> io::Result<()> {
    remove_file(storage, NEW_CATALOG_FILE)
}

fn remove_file(storage: &impl Storage, name: &str) -> io::Result<()> {
    match storage.remove(name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn count_deleted(entries: &[CatalogEntry]) -> usize {
    let is_deleted = |entry: &&CatalogEntry| entry.state == RecordingState::Deleted;
    entries.iter().filter(is_deleted).count()
}

fn header(next_recording_id: i64) -> [u8; HEADER_LENGTH] {
    let mut header = CatalogHeaderLayout::new_zeroed();
    header.version = CATALOG_VERSION.0.into();
    header.length = (HEADER_LENGTH as i32).into();
    header.next_recording_id = next_recording_id.into();
    header.alignment = (ENTRY_ALIGNMENT as i32).into();
    header.to_bytes()
}

fn io_error(doing: &'static str, source: io::Error) -> CatalogError {
    CatalogError::Io { doing, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_storage::MemoryStorage;

    /// 07-65
    #[test]
    fn a_catalog_does_not_grow_beyond_its_maximum_length() {
        let storage = MemoryStorage::new();
        let mut catalog = Catalog::create(&storage, DEFAULT_CAPACITY).unwrap();
        catalog.end = MAX_CAPACITY - 128;
        catalog.make_room(128).expect("just fits");
        assert_eq!(catalog.capacity(), MAX_CAPACITY);
        assert_eq!(
            catalog.make_room(129).unwrap_err().to_string(),
            "catalog is full, max capacity reached: 2147483647"
        );

        catalog.capacity = MAX_CAPACITY / 2;
        assert_eq!(
            catalog.make_room(129).unwrap_err().to_string(),
            "recording is too big: total recording length is 129 bytes, available space is 128 bytes"
        );
    }
}
