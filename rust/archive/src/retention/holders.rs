//! Reduces a removal, so that data that is still needed is kept.

use super::{RecordingExtent, Removal, RetentionHolder};

/// The uses of a recording that keep a part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holders<'a> {
    /// Name and position of each reader that has not expired. With object storage, they hold nothing, because they can
    /// read the copies.
    pub readers: Vec<(&'a str, i64)>,
    /// Name of a reader that has reached the end of the recording and must continue in a linked recording. The
    /// recording that the reader leaves is then not deleted as a whole.
    pub leaving_reader: Option<&'a str>,
    /// The lowest position that a replay may still read.
    pub lowest_replay_position: Option<i64>,
    /// Base of the first segment without a copy, if segments are copied to object storage.
    pub copied_base: Option<i64>,
    /// The removal that the policy allows without regard to ages, if the clock is not trusted.
    pub doubted: Option<DoubtedAges>,
    /// Whether a deletion, a migration or a start of the recording is in progress.
    pub is_changing: bool,
    /// Whether the recording waits for an image that extends it. Such a recording is not deleted as
    /// a whole.
    pub is_to_be_extended: bool,
}

/// The highest start position to which a policy allows to delete without regard to ages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DoubtedAges {
    /// Start position after this deletion; the start of the first segment if nothing may be deleted.
    pub new_start_position: i64,
    /// Whether the whole recording may be deleted.
    pub is_purge: bool,
}

/// A part of a recording that retention deletes, or would delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionOutcome {
    /// Recording id.
    pub recording_id: i64,
    /// Start position before the deletion.
    pub start_position: i64,
    /// Start position after the deletion; the stop position if the whole recording is deleted.
    pub new_start_position: i64,
    /// Start position after the deletion if there were no holders.
    pub allowed_position: i64,
    /// Whether the whole recording is deleted.
    pub is_purge: bool,
    /// The holder of data that the policy would delete.
    pub held_by: RetentionHolder,
    /// Name of the reader that holds the data; empty in other cases.
    pub reader: String,
}

impl RetentionOutcome {
    /// Returns whether nothing is deleted.
    pub fn is_nothing(&self) -> bool {
        !self.is_purge && self.new_start_position <= self.start_position
    }
}

/// A holder, and the highest start position that it allows.
struct Hold<'a> {
    new_start: i64,
    by: RetentionHolder,
    reader: &'a str,
}

/// Reduces a removal to the data that no holder needs. `extent` is the extent of the same
/// recording.
pub fn outcome(
    extent: &RecordingExtent,
    removal: &Removal,
    holders: &Holders<'_>,
) -> RetentionOutcome {
    let hold = holds(extent, holders)
        .into_iter()
        .filter(|hold| removal.is_purge || hold.new_start < removal.new_start_position)
        .min_by_key(|hold| hold.new_start);
    let new_start = hold.as_ref().map_or(removal.new_start_position, |hold| {
        hold.new_start.min(removal.new_start_position)
    });
    let is_purge = removal.is_purge && hold.is_none();
    // The start position may be after the base of the first segment.
    let new_start_position = match is_purge {
        true => new_start,
        false => new_start.max(extent.start_position),
    };
    debug_assert!(
        new_start_position <= extent.start_position
            || holders.copied_base.is_some()
            || holders
                .readers
                .iter()
                .all(|(_, read)| !is_unread(extent, *read)
                    || extent.base_of(*read) >= new_start_position),
        "recording {}: data before {new_start_position} are deleted, but a reader still needs them",
        extent.recording_id
    );
    debug_assert!(
        new_start_position <= extent.start_position
            || holders
                .lowest_replay_position
                .is_none_or(|read| !is_purge && extent.base_of(read) >= new_start_position),
        "recording {}: data before {new_start_position} are deleted, but a replay still reads them",
        extent.recording_id
    );
    debug_assert!(
        new_start_position <= removal.new_start_position.max(extent.start_position),
        "recording {}: the policy allows the start {}, not {new_start_position}",
        extent.recording_id,
        removal.new_start_position
    );
    RetentionOutcome {
        recording_id: extent.recording_id,
        start_position: extent.start_position,
        new_start_position,
        allowed_position: removal.new_start_position,
        is_purge,
        held_by: hold
            .as_ref()
            .map_or(RetentionHolder::Nothing, |hold| hold.by),
        reader: hold.map_or_else(String::new, |hold| hold.reader.to_owned()),
    }
}

/// Returns whether a reader at `read` still needs data of the recording.
fn is_unread(extent: &RecordingExtent, read: i64) -> bool {
    read < extent.end_position || extent.stop_timestamp_ms.is_none()
}

/// Returns the highest start position that each holder allows.
fn holds<'a>(extent: &RecordingExtent, holders: &Holders<'a>) -> Vec<Hold<'a>> {
    let change = |new_start| Hold {
        new_start,
        by: RetentionHolder::Change,
        reader: "",
    };
    let changing = holders.is_changing.then(|| change(extent.first_base));
    let extended = holders
        .is_to_be_extended
        .then(|| change(extent.last_base()));
    let changes = changing.into_iter().chain(extended);
    let unread =
        |position: i64| position < extent.end_position || extent.stop_timestamp_ms.is_none();
    let readers = holders
        .readers
        .iter()
        .filter(|(_, position)| holders.copied_base.is_none() && unread(*position));
    let readers = readers.map(|(name, position)| Hold {
        new_start: extent.base_of(*position),
        by: RetentionHolder::Reader,
        reader: name,
    });
    let leaving = holders.leaving_reader.map(|name| Hold {
        new_start: extent.last_base(),
        by: RetentionHolder::Reader,
        reader: name,
    });
    let doubted = holders.doubted.filter(|doubted| !doubted.is_purge);
    let doubted = doubted.map(|doubted| Hold {
        new_start: doubted.new_start_position,
        by: RetentionHolder::Clock,
        reader: "",
    });
    // A recording is never deleted during a replay, even if the replay has read all of it.
    let replay = holders.lowest_replay_position.map(|position| Hold {
        new_start: extent.base_of(position),
        by: RetentionHolder::Replay,
        reader: "",
    });
    // The last segment has no copy, and without the recording the copies could not be read. So a recording with object
    // storage is never deleted as a whole.
    let copies = holders.copied_base.map(|base| Hold {
        new_start: extent.base_of(base),
        by: RetentionHolder::Copy,
        reader: "",
    });
    changes
        .chain(readers)
        .chain(leaving)
        .chain(replay)
        .chain(copies)
        .chain(doubted)
        .collect()
}
