//! What workers drop as malformed, told to the source process through the archive's directory.
//!
//! They share nothing but files. So who has read a piece leaves a note: an empty file whose name says everything, which makes it
//! whole or absent, and the same one in every attempt. The source counts the notes on batches that are finished and removes all:
//! there are never more than the pieces of one batch, and those that a retired attempt leaves later.

use std::io;

use aeron_archive::storage::Storage;

const PREFIX: &str = "malformed-";

/// How much of one piece of a recording was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MalformedNote {
    /// The recording.
    pub recording_id: i64,
    /// Where the piece begins.
    pub from: i64,
    /// Where it ends.
    pub to: i64,
    /// Messages and records that were dropped.
    pub count: u64,
}

impl MalformedNote {
    /// Leaves the note, once.
    ///
    /// # Errors
    /// The file system refuses.
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

    /// The note of this name, if it is exactly that of one.
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

/// Removes all notes; answers the sum of those that `counts`. What they do not count on is read again.
///
/// # Errors
/// The file system does not tell which files there are.
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
        // One that stays lies before everything that is counted later.
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
    fn a_note_counts_once_however_often_it_is_left() {
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
    fn only_the_name_of_a_note_is_one() {
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
