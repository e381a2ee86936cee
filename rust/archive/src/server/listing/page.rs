//! [`DescriptorPage`]: a part of a list.

use std::collections::VecDeque;

use aeron_protocol::archive::extension::{
    CopiedRangeDescriptor, ExtensionResponse, MAX_LISTED, RetentionStep, TimePosition,
};
use aeron_protocol::archive::{NULL_VALUE, RequestIds};

use crate::extensions::{NamedReader, RecordingLabels, RetentionPolicy};
use crate::index::FoundPosition;
use crate::objects::CopiedRange;
use crate::retention::RetentionOutcome;
use crate::server::ArchiveError;

/// Number of bytes of messages after which no further entry is added to a page. It limits the memory that a
/// client can make the archive use.
const MAX_PAGE_LENGTH: usize = 256 * 1024;

/// The entries of a list that a requester wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) struct PageRange {
    /// Index of the first entry.
    pub from_index: i32,
    /// Maximum number of entries, at most [`MAX_LISTED`].
    pub count: i32,
}

/// Entries of one reply, and the index of the next entry of the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::server) struct DescriptorPage {
    entries: VecDeque<PageEntry>,
    next_index: i64,
}

/// An entry of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::server) enum PageEntry {
    /// A named reader.
    Reader(NamedReader),
    /// Recording id, and name, metadata and link of the recording.
    Labels(i64, RecordingLabels),
    /// A retention policy.
    Policy(RetentionPolicy),
    /// The deletion that retention has begun or would begin in one recording.
    Outcome(RetentionOutcome),
    /// Recording id, and the position that was found by time.
    Position(i64, FoundPosition),
    /// The parts of a recording that are on the disk and in object storage.
    CopiedRange(CopiedRange),
}

impl PageEntry {
    /// Returns the message of the entry in the response to a request.
    pub fn message(&self, ids: RequestIds) -> ExtensionResponse<'_> {
        let RequestIds {
            control_session_id,
            correlation_id,
        } = ids;
        match self {
            Self::Reader(reader) => {
                ExtensionResponse::Reader(reader.descriptor(control_session_id, correlation_id))
            }
            Self::Labels(recording_id, labels) => ExtensionResponse::RecordingInfo(labels.message(
                control_session_id,
                correlation_id,
                *recording_id,
            )),
            Self::Policy(policy) => {
                ExtensionResponse::Retention(policy.descriptor(control_session_id, correlation_id))
            }
            Self::Outcome(outcome) => ExtensionResponse::RetentionStep(RetentionStep {
                control_session_id,
                correlation_id,
                recording_id: outcome.recording_id,
                start_position: outcome.start_position,
                new_start_position: outcome.new_start_position,
                allowed_position: outcome.allowed_position,
                is_purge: outcome.is_purge,
                held_by: outcome.held_by,
                reader: outcome.reader.as_bytes(),
            }),
            Self::Position(recording_id, found) => ExtensionResponse::TimePosition(TimePosition {
                control_session_id,
                correlation_id,
                recording_id: *recording_id,
                position: found.position,
                timestamp_us: found.arrival_us.unwrap_or(NULL_VALUE),
                is_approximate: found.is_approximate,
            }),
            Self::CopiedRange(range) => ExtensionResponse::CopiedRange(CopiedRangeDescriptor {
                control_session_id,
                correlation_id,
                recording_id: range.recording_id,
                start_position: range.start_position,
                local_start_position: range.local_start_position,
                copied_position: range.copied_position,
            }),
        }
    }

    /// Returns the length of the entry's message, which does not depend on the ids.
    fn length(&self) -> usize {
        let ids = RequestIds {
            control_session_id: NULL_VALUE,
            correlation_id: NULL_VALUE,
        };
        self.message(ids).encoded_length()
    }
}

impl DescriptorPage {
    /// Takes the entries of a list from an index on.
    ///
    /// # Errors
    /// The index is negative, or the count is out of range.
    pub fn of<T>(
        items: impl Iterator<Item = T>,
        range: PageRange,
        entry: impl Fn(T) -> PageEntry,
    ) -> Result<Self, ArchiveError> {
        let PageRange { from_index, count } = range;
        let from = usize::try_from(from_index)
            .map_err(|_| ArchiveError::generic(format!("fromIndex={from_index} < 0")))?;
        if !(1..=MAX_LISTED).contains(&count) {
            return Err(ArchiveError::generic(format!(
                "count={count} is not from 1 to {MAX_LISTED}"
            )));
        }
        let mut page = Self::default();
        let mut length = 0;
        for (index, item) in items.enumerate().skip(from) {
            if page.entries.len() >= count as usize || length >= MAX_PAGE_LENGTH {
                page.next_index = index as i64;
                return Ok(page);
            }
            let entry = entry(item);
            length += entry.length();
            page.entries.push_back(entry);
        }
        page.next_index = NULL_VALUE;
        Ok(page)
    }

    /// Creates the page of a whole list.
    pub fn whole(entries: impl IntoIterator<Item = PageEntry>) -> Self {
        Self {
            entries: entries.into_iter().collect(),
            next_index: NULL_VALUE,
        }
    }

    /// Returns the first entry that was not taken yet.
    pub fn next(&self) -> Option<&PageEntry> {
        self.entries.front()
    }

    /// Removes the first entry after it was taken.
    pub fn remove_next(&mut self) {
        self.entries.pop_front();
    }

    /// Returns the index of the first entry after this page; −1 if no entry follows.
    pub fn next_index(&self) -> i64 {
        self.next_index
    }
}
