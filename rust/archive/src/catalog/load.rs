//! Reads and checks a catalog file, which may have any content.
//!
//! Nothing is read beyond the end of the file, and memory grows only with the bytes of the entries.

use std::io;

use aeron_layout::catalog::{CatalogHeaderLayout, ENTRY_ALIGNMENT, EntryHeaderLayout};
use aeron_layout::{I32, Layout, offset};
use aeron_memory::cnc::SemanticVersion;

use super::descriptor::{ENTRY_HEADER_LENGTH, RECORDING_ID_OFFSET, STATE_OFFSET, SharedTexts};
use super::{
    CATALOG_VERSION, CatalogEntry, CatalogError, HEADER_LENGTH, MAX_CAPACITY, MAX_ENTRY_LENGTH,
    RecordingDescriptor, RecordingState,
};
use crate::Damage;
use crate::storage::{Access, StorageFile};

const LENGTH_OFFSET: usize = offset!(CatalogHeaderLayout, length: I32);
const ALIGNMENT_OFFSET: usize = offset!(CatalogHeaderLayout, alignment: I32);

/// Content of a catalog file.
pub(super) struct Loaded {
    pub entries: Vec<CatalogEntry>,
    pub next_recording_id: i64,
    /// Offset at which the next entry will be written.
    pub end: u64,
    /// Length of the file.
    pub capacity: u64,
}

/// Whether a recording that exists must pass [`RecordingDescriptor::check`], so that it can be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordingCheck {
    Checked,
    Unchecked,
}

/// Reads `file` and checks whether it can be used with this access.
pub(super) fn load(
    file: &impl StorageFile,
    access: Access,
    recordings: RecordingCheck,
) -> Result<Loaded, CatalogError> {
    let capacity = file.length().map_err(reading)?;
    if capacity > MAX_CAPACITY {
        return Err(CatalogError::InvalidCapacity { capacity });
    }
    let next_in_header = load_header(file, capacity)?;
    let (entries, end) = load_entries(file, capacity, recordings)?;
    let next_recording_id = next_recording_id(next_in_header, &entries, access)?;
    Ok(Loaded {
        entries,
        next_recording_id,
        end,
        capacity,
    })
}

/// Checks the header and returns the next recording id in it.
fn load_header(file: &impl StorageFile, length: u64) -> Result<i64, CatalogError> {
    if length < HEADER_LENGTH as u64 {
        return Err(CatalogError::InvalidCapacity { capacity: length });
    }
    let mut header = [0; HEADER_LENGTH];
    file.read_exact_at(&mut header, 0).map_err(reading)?;
    let header = CatalogHeaderLayout::of(&header);
    let version = SemanticVersion(header.version.get());
    if version.major() != CATALOG_VERSION.major() {
        return Err(CatalogError::IncompatibleVersion { file: version });
    }
    expect("length", LENGTH_OFFSET, header.length, HEADER_LENGTH, "32")?;
    expect(
        "alignment",
        ALIGNMENT_OFFSET,
        header.alignment,
        ENTRY_ALIGNMENT,
        "64",
    )?;
    Ok(header.next_recording_id.get())
}

/// Checks that the header's field at `offset` is `value`. `expected` is the same value as text.
fn expect(
    field: &'static str,
    offset: usize,
    found: I32,
    value: usize,
    expected: &'static str,
) -> Result<(), Damage> {
    let found = i64::from(found.get());
    if found == value as i64 {
        return Ok(());
    }
    Err(Damage {
        field,
        offset: offset as u64,
        value: found,
        expected,
    })
}

/// Returns all entries, and the offset of their end.
fn load_entries(
    file: &impl StorageFile,
    capacity: u64,
    recordings: RecordingCheck,
) -> Result<(Vec<CatalogEntry>, u64), CatalogError> {
    let mut entries: Vec<CatalogEntry> = Vec::new();
    let mut offset = HEADER_LENGTH as u64;
    let mut reads = ReadAhead::new(file);
    let mut texts = SharedTexts::default();
    while let Some(length) = entry_length(&mut reads, offset, capacity)? {
        let bytes = reads.bytes(offset, length).map_err(reading)?;
        let entry = load_entry(bytes, offset, recordings, &mut texts)?;
        if entry.descriptor.recording_id <= last_id(&entries) {
            return Err(CatalogError::Damaged(Damage {
                field: "recordingId",
                offset: offset + (ENTRY_HEADER_LENGTH + RECORDING_ID_OFFSET) as u64,
                value: entry.descriptor.recording_id,
                expected: "an id greater than the ids before it",
            }));
        }
        entries.push(entry);
        offset += length as u64;
    }
    debug_assert!(
        offset <= capacity,
        "the entries of a catalog of {capacity} bytes must not end at {offset}"
    );
    Ok((entries, offset))
}

/// Returns the length of the entry at `offset` with its header. Returns `None` at the end of the entries.
fn entry_length(
    reads: &mut ReadAhead<'_, impl StorageFile>,
    offset: u64,
    capacity: u64,
) -> Result<Option<usize>, CatalogError> {
    let available = capacity - offset;
    if available < ENTRY_HEADER_LENGTH as u64 {
        return Ok(None);
    }
    let header = reads.bytes(offset, ENTRY_HEADER_LENGTH).map_err(reading)?;
    let value = entry_header(header).length.get();
    if value <= 0 {
        return Ok(None);
    }
    let length = value as u64 + ENTRY_HEADER_LENGTH as u64;
    let expected = if !length.is_multiple_of(ENTRY_ALIGNMENT as u64) {
        "a multiple of 64 minus the 32 bytes of the header"
    } else if length > MAX_ENTRY_LENGTH as u64 {
        "at most 1 MiB"
    } else if length > available {
        "an entry that ends within the file"
    } else {
        return Ok(Some(length as usize));
    };
    Err(CatalogError::Damaged(Damage {
        field: "length",
        offset,
        value: value.into(),
        expected,
    }))
}

/// Decodes and checks the entry at `offset`. `bytes` are the bytes of the entry.
fn load_entry(
    bytes: &[u8],
    offset: u64,
    recordings: RecordingCheck,
    texts: &mut SharedTexts,
) -> Result<CatalogEntry, CatalogError> {
    let body_offset = offset + ENTRY_HEADER_LENGTH as u64;
    let (header, body) = bytes.split_at(ENTRY_HEADER_LENGTH);
    let header = entry_header(header);
    let value = header.state.get();
    let state = RecordingState::from_value(value).ok_or(Damage {
        field: "state",
        offset: offset + STATE_OFFSET as u64,
        value: value.into(),
        expected: "0, 1 or 2",
    })?;
    let descriptor =
        RecordingDescriptor::decode(body, texts).map_err(|damage| damage.at(body_offset))?;
    let is_checked = state == RecordingState::Valid && recordings == RecordingCheck::Checked;
    let damage = is_checked.then(|| descriptor.check().err()).flatten();
    Ok(CatalogEntry {
        fault: damage.map(|damage| damage.at(body_offset).to_string().into()),
        state,
        descriptor,
        offset,
        length: bytes.len(),
        checksum: header.checksum.get(),
    })
}

/// Returns the header at the beginning of an entry's bytes.
fn entry_header(bytes: &[u8]) -> &EntryHeaderLayout {
    EntryHeaderLayout::first_in(bytes).expect("the bytes are at least those of a header")
}

/// Reads a file in order and in large blocks. One read for each entry would need 0.1 s for a
/// hundred thousand entries.
struct ReadAhead<'f, F> {
    file: &'f F,
    bytes: Vec<u8>,
    /// Offset of the first byte of `bytes`.
    begin: u64,
}

impl<'f, F: StorageFile> ReadAhead<'f, F> {
    const BLOCK_LENGTH: usize = 64 * 1024;

    fn new(file: &'f F) -> Self {
        Self {
            file,
            bytes: Vec::new(),
            begin: 0,
        }
    }

    /// Returns `length` bytes at `offset`. The offset must not be below the offset of the previous call.
    fn bytes(&mut self, offset: u64, length: usize) -> io::Result<&[u8]> {
        debug_assert!(
            offset >= self.begin,
            "the catalog is read in order, so offset {offset} must not be before {}",
            self.begin
        );
        let held = (offset - self.begin) as usize;
        if held + length <= self.bytes.len() {
            return Ok(&self.bytes[held..][..length]);
        }
        self.begin = offset;
        self.bytes.resize(length.max(Self::BLOCK_LENGTH), 0);
        let mut filled = 0;
        while filled < length {
            let (rest, at) = (&mut self.bytes[filled..], offset + filled as u64);
            match self.file.read_at(rest, at) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.bytes.truncate(filled);
        Ok(&self.bytes[..length])
    }
}

/// Returns the next recording id. In the header, 0 means that no id has been counted yet.
///
/// If an entry has this id or a higher one, opening for writing fails. Opening for reading succeeds,
/// because a reader uses no new id.
fn next_recording_id(
    next: i64,
    entries: &[CatalogEntry],
    access: Access,
) -> Result<i64, CatalogError> {
    let last = last_id(entries);
    let next = if next == 0 {
        last.saturating_add(1)
    } else {
        next
    };
    if next <= last && access == Access::Write {
        return Err(CatalogError::NextRecordingId { next, last });
    }
    Ok(next)
}

/// Returns the id of the last entry, or -1 if there are no entries.
fn last_id(entries: &[CatalogEntry]) -> i64 {
    entries
        .last()
        .map_or(-1, |last| last.descriptor.recording_id)
}

fn reading(source: std::io::Error) -> CatalogError {
    CatalogError::Io {
        doing: "read it",
        source,
    }
}
