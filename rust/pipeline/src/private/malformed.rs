//! Notes about malformed messages. A worker leaves a note in the archive's directory, and the source process reads it.
//!
//! Workers and the source share only files. A note is an empty file, and its name contains all values. The file is
//! therefore complete or absent, and each attempt to read a piece creates the same name. The source counts the notes of
//! finished batches and then removes all notes. So there is at most one note for each piece of one batch, plus notes of
//! attempts that end late.

use std::io;

use aeron_archive::storage::Storage;

const PREFIX: &str = "malformed-";

/// Number of malformed messages and records in one piece of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MalformedNote {
    /// The recording.
    pub recording_id: i64,
    /// Start position of the piece.
    pub from: i64,
    /// End position of the piece.
    pub to: i64,
    /// Messages and records that the worker dropped.
    pub count: u64,
}

impl MalformedNote {
    /// Creates the note unless it exists.
    ///
    /// # Errors
    /// A file-system operation failed.
    pub fn leave<S: Storage>(&self, storage: &S) -> io::Result<()> {
        match storage.create(&self.name(), 0) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    fn name(&self) -> String {
        let Self {
            recording_id,
            from,
            to,
            count,
        } = self;
        format!("{PREFIX}{recording_id}-{from}-{to}-{count}")
    }

    /// Parses the name of a note. Accepts only exact names.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix(PREFIX)?.split('-');
        let note = Self {
            recording_id: parts.next()?.parse().ok()?,
            from: parts.next()?.parse().ok()?,
            to: parts.next()?.parse().ok()?,
            count: parts.next()?.parse().ok()?,
        };
        (note.name() == name).then_some(note)
    }
}

/// Removes all notes, and returns the sum of the notes for which `counts` returns `true`. The other notes are not
/// needed: if a piece is read again, its worker leaves a new note.
///
/// # Errors
/// The directory cannot be listed.
pub fn take_notes<S: Storage>(
    storage: &S,
    counts: impl Fn(&MalformedNote) -> bool,
) -> io::Result<u64> {
    let mut sum: u64 = 0;
    for name in storage.names()? {
        let Some(note) = MalformedNote::parse(&name) else {
            continue;
        };
        if counts(&note) {
            sum = sum.saturating_add(note.count);
        }
        // A note that cannot be removed is not counted twice, because later calls count only later positions.
        let _ = storage.remove(&name);
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aeron_archive::memory_storage::MemoryStorage;

    fn note(to: i64, count: u64) -> MalformedNote {
        MalformedNote {
            recording_id: 3,
            from: 64,
            to,
            count,
        }
    }

    /// 08-63
    #[test]
    fn a_note_counts_once_even_if_several_attempts_leave_it() {
        let disk = MemoryStorage::new();
        for to in [96, 96, 128, 160] {
            note(to, to as u64).leave(&disk).unwrap();
        }
        disk.create("3-0.rec", 0).unwrap();
        assert_eq!(take_notes(&disk, |note| note.to <= 128).unwrap(), 96 + 128);
        assert_eq!(disk.names().unwrap(), ["3-0.rec"]);
        assert_eq!(take_notes(&disk, |_| true).unwrap(), 0);
    }

    #[test]
    fn other_file_names_are_not_parsed_as_notes() {
        assert_eq!(MalformedNote::parse(&note(96, 7).name()), Some(note(96, 7)));
        for name in [
            "malformed-3-64-96",
            "malformed-3-64-96-7-8",
            "malformed-3-64-096-7",
            "malformed-3-64-+96-7",
            "malformed-3-64-96--7",
            "malformed-3-64-96-99999999999999999999",
            "3-64.rec",
            "",
        ] {
            assert_eq!(MalformedNote::parse(name), None, "{name}");
        }
    }
}
