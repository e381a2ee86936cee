//! Notes about messages and values that are not in the rows. A worker leaves notes in the archive's directory, and the
//! source process reads them.
//!
//! Workers and the source share only files. A note is an empty file, and its name contains all values. The file is
//! therefore complete or absent, and each attempt to read a piece creates the same names. The source counts the notes
//! of finished batches and then removes all notes. So there are at most three notes for each piece of one batch, plus
//! notes of attempts that end late.

use std::io;

use aeron_archive::storage::Storage;
use aeron_columns::read::RowCounts;

/// The piece of a recording that a worker has read, and the numbers of messages and values that are not in its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowNotes {
    /// The recording.
    pub recording_id: i64,
    /// Start position of the piece.
    pub from: i64,
    /// End position of the piece.
    pub to: i64,
    /// The numbers.
    pub counts: RowCounts,
}

/// Names of the numbers of [`RowCounts`] in the names of notes.
const KINDS: [&str; 3] = ["malformed", "skipped", "unknown"];

fn numbers(counts: &mut RowCounts) -> [&mut u64; KINDS.len()] {
    [
        &mut counts.malformed,
        &mut counts.skipped,
        &mut counts.unknown,
    ]
}

impl RowNotes {
    /// Creates a note for each number that is not 0, unless it exists.
    ///
    /// # Errors
    /// A file-system operation failed.
    pub fn leave<S: Storage>(&self, storage: &S) -> io::Result<()> {
        for name in self.names() {
            match storage.create(&name, 0) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    fn names(&self) -> impl Iterator<Item = String> {
        let Self {
            recording_id,
            from,
            to,
            mut counts,
        } = *self;
        let counts = numbers(&mut counts).map(|count| *count);
        let notes = KINDS
            .into_iter()
            .zip(counts)
            .filter(|(_, count)| *count > 0);
        notes.map(move |(kind, count)| format!("{kind}-{recording_id}-{from}-{to}-{count}"))
    }

    /// Parses the name of one note. Accepts only exact names.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let (kind, values) = name.split_once('-')?;
        let place = KINDS.iter().position(|known| *known == kind)?;
        let mut parts = values.split('-');
        let mut notes = Self {
            recording_id: parts.next()?.parse().ok()?,
            from: parts.next()?.parse().ok()?,
            to: parts.next()?.parse().ok()?,
            counts: RowCounts::default(),
        };
        *numbers(&mut notes.counts)[place] = parts.next()?.parse().ok()?;
        notes.names().eq([name]).then_some(notes)
    }
}

/// Removes all notes, and returns the sums of the notes for which `counts` returns `true`. The other notes are not
/// needed: if a piece is read again, its worker leaves new notes.
///
/// # Errors
/// The directory cannot be listed.
pub fn take_notes<S: Storage>(
    storage: &S,
    counts: impl Fn(&RowNotes) -> bool,
) -> io::Result<RowCounts> {
    let mut sums = RowCounts::default();
    for name in storage.names()? {
        let Some(mut notes) = RowNotes::parse(&name) else {
            continue;
        };
        if counts(&notes) {
            let parts = numbers(&mut notes.counts);
            for (sum, part) in numbers(&mut sums).into_iter().zip(parts) {
                *sum = sum.saturating_add(*part);
            }
        }
        // A note that cannot be removed is not counted twice, because later calls count only later positions.
        let _ = storage.remove(&name);
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aeron_archive::memory_storage::MemoryStorage;

    fn notes(to: i64, counts: [u64; 3]) -> RowNotes {
        let [malformed, skipped, unknown] = counts;
        RowNotes {
            recording_id: 3,
            from: 64,
            to,
            counts: RowCounts {
                malformed,
                skipped,
                unknown,
            },
        }
    }

    /// 08-63
    #[test]
    fn a_note_counts_once_even_if_several_attempts_leave_it() {
        let disk = MemoryStorage::new();
        for to in [96, 96, 128, 160] {
            notes(to, [to as u64, 7, 0]).leave(&disk).unwrap();
        }
        disk.create("3-0.rec", 0).unwrap();
        let taken = take_notes(&disk, |note| note.to <= 128).unwrap();
        assert_eq!(taken, notes(0, [96 + 128, 14, 0]).counts);
        assert_eq!(disk.names().unwrap(), ["3-0.rec"]);
        assert_eq!(take_notes(&disk, |_| true).unwrap(), RowCounts::default());
    }

    #[test]
    fn other_file_names_are_not_parsed_as_notes() {
        for counts in [[7, 0, 0], [0, 7, 0], [0, 0, 7]] {
            let notes = notes(96, counts);
            let name = notes.names().next().unwrap();
            assert_eq!(RowNotes::parse(&name), Some(notes));
        }
        for name in [
            "malformed-3-64-96",
            "malformed-3-64-96-0",
            "malformed-3-64-96-7-8",
            "malformed-3-64-096-7",
            "malformed-3-64-+96-7",
            "malformed-3-64-96--7",
            "malformed-3-64-96-99999999999999999999",
            "dropped-3-64-96-7",
            "3-64.rec",
            "",
        ] {
            assert_eq!(RowNotes::parse(name), None, "{name}");
        }
    }
}
