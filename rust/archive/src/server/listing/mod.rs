//! [`Listing`]: recordings, subscriptions or other entries that a requester reads, some at a time.

mod page;

use crate::catalog::RecordingDescriptor;

pub(super) use page::{DescriptorPage, PageEntry, PageRange};

/// Maximum number of entries that one call of [`Listing::read`] checks.
const ENTRIES_PER_READ: usize = 64;

/// The recordings and subscriptions that a requester may list.
pub(super) trait ListingSource {
    /// Returns the recording with the lowest id that is at least `recording_id`.
    fn next_recording(&self, recording_id: i64) -> Option<&RecordingDescriptor>;

    /// Returns the recording subscription at an index. The order changes only when a subscription is added or removed.
    fn subscription(&self, index: usize) -> Option<SubscriptionEntry<'_>>;
}

/// A recording subscription in a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SubscriptionEntry<'a> {
    /// Registration id of the subscription.
    pub registration_id: i64,
    /// Stream id.
    pub stream_id: i32,
    /// Channel of the archive's subscription.
    pub channel: &'a str,
}

/// A request for a listing, and its progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listing {
    /// Number of entries that may still be read.
    left: i32,
    entries: Entries,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Entries {
    Recordings {
        next_id: i64,
        /// Id after the last recording that was checked.
        end_id: i64,
        filter: Option<StreamFilter>,
    },
    OneRecording(i64),
    Subscriptions {
        next_index: usize,
        stream_id: Option<i32>,
        fragment: Vec<u8>,
    },
    Page(DescriptorPage),
}

/// An entry of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListedEntry<'a> {
    Recording(&'a RecordingDescriptor),
    Subscription(SubscriptionEntry<'a>),
    OfPage(&'a PageEntry),
}

/// Selects recordings with a stream id and a channel that contains a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StreamFilter {
    /// Stream id.
    pub stream_id: i32,
    /// Part of the original channel; empty for all channels.
    pub channel_fragment: Vec<u8>,
}

/// How a listing ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListingEnd {
    /// The requester has read as many entries as it wanted.
    Full,
    /// No recording, or no further recording, has an id from this one on.
    RecordingUnknown(i64),
    /// There is no further subscription.
    SubscriptionUnknown,
    /// The page has ended. The list continues at this index, or has ended if it is −1.
    NextIndex(i64),
}

/// The outcome of one call of [`Listing::read`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ListingProgress {
    /// Number of entries that were taken.
    pub taken: usize,
    /// Set when the listing is complete.
    pub end: Option<ListingEnd>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListingStep {
    Taken,
    Skipped,
    Refused,
    End(ListingEnd),
}

impl ListingStep {
    fn of(is_taken: bool) -> Self {
        match is_taken {
            true => Self::Taken,
            false => Self::Refused,
        }
    }
}

impl StreamFilter {
    /// Returns whether the recording is selected.
    pub fn matches(&self, recording: &RecordingDescriptor) -> bool {
        recording.stream_id == self.stream_id
            && contains(
                recording.original_channel.as_bytes(),
                &self.channel_fragment,
            )
    }
}

impl Listing {
    /// Lists up to `count` recordings from an id on.
    pub fn recordings(from_recording_id: i64, count: i32, filter: Option<StreamFilter>) -> Self {
        Self {
            left: count,
            entries: Entries::Recordings {
                next_id: from_recording_id,
                end_id: from_recording_id,
                filter,
            },
        }
    }

    /// Lists one recording.
    pub fn recording(recording_id: i64) -> Self {
        Self {
            left: 1,
            entries: Entries::OneRecording(recording_id),
        }
    }

    /// Lists up to `count` recording subscriptions from an index on. Only subscriptions with a
    /// channel that contains `fragment` are listed, and only those with `stream_id` if it is set.
    pub fn subscriptions(
        first_index: i32,
        count: i32,
        stream_id: Option<i32>,
        fragment: Vec<u8>,
    ) -> Self {
        Self {
            left: count,
            entries: Entries::Subscriptions {
                // A negative index is out of range, like an index after the last subscription.
                next_index: usize::try_from(first_index).unwrap_or(usize::MAX),
                stream_id,
                fragment,
            },
        }
    }

    /// Passes entries to `take`, until `take` returns false or [`ENTRIES_PER_READ`] entries were checked. An entry
    /// that was not taken is passed again by the next call.
    pub fn read(
        &mut self,
        source: &dyn ListingSource,
        mut take: impl FnMut(&ListedEntry<'_>) -> bool,
    ) -> ListingProgress {
        let mut taken = 0;
        for _ in 0..ENTRIES_PER_READ {
            let end = match self.step(source, &mut take) {
                ListingStep::Taken => {
                    taken += 1;
                    self.left -= 1;
                    (self.left <= 0).then_some(ListingEnd::Full)
                }
                ListingStep::Skipped => None,
                ListingStep::Refused => break,
                ListingStep::End(end) => Some(end),
            };
            if end.is_some() {
                return ListingProgress { taken, end };
            }
        }
        ListingProgress { taken, end: None }
    }

    fn step(
        &mut self,
        source: &dyn ListingSource,
        take: &mut impl FnMut(&ListedEntry<'_>) -> bool,
    ) -> ListingStep {
        let is_empty = self.left <= 0;
        match &mut self.entries {
            Entries::OneRecording(id) => {
                let found = source.next_recording(*id);
                match found.filter(|recording| recording.recording_id == *id) {
                    Some(recording) => ListingStep::of(take(&ListedEntry::Recording(recording))),
                    None => ListingStep::End(ListingEnd::RecordingUnknown(*id)),
                }
            }
            Entries::Recordings {
                next_id,
                end_id,
                filter,
            } => {
                let found = source.next_recording(*next_id).filter(|_| !is_empty);
                let Some(recording) = found else {
                    return ListingStep::End(ListingEnd::RecordingUnknown(*end_id));
                };
                let is_selected = filter
                    .as_ref()
                    .is_none_or(|filter| filter.matches(recording));
                let step = match is_selected {
                    true => ListingStep::of(take(&ListedEntry::Recording(recording))),
                    false => ListingStep::Skipped,
                };
                if step != ListingStep::Refused {
                    *next_id = recording.recording_id.saturating_add(1);
                    *end_id = *next_id;
                }
                step
            }
            Entries::Subscriptions {
                next_index,
                stream_id,
                fragment,
            } => {
                let found = source.subscription(*next_index).filter(|_| !is_empty);
                let Some(subscription) = found else {
                    return ListingStep::End(ListingEnd::SubscriptionUnknown);
                };
                let is_selected = stream_id.is_none_or(|id| id == subscription.stream_id)
                    && contains(subscription.channel.as_bytes(), fragment);
                let step = match is_selected {
                    true => ListingStep::of(take(&ListedEntry::Subscription(subscription))),
                    false => ListingStep::Skipped,
                };
                if step != ListingStep::Refused {
                    *next_index += 1;
                }
                step
            }
            Entries::Page(page) => {
                let Some(entry) = page.next() else {
                    return ListingStep::End(ListingEnd::NextIndex(page.next_index()));
                };
                let step = ListingStep::of(take(&ListedEntry::OfPage(entry)));
                if step != ListingStep::Refused {
                    page.remove_next();
                }
                step
            }
        }
    }
}

impl From<DescriptorPage> for Listing {
    /// Lists the entries of the page, and ends with the index of the next entry.
    fn from(page: DescriptorPage) -> Self {
        Self {
            // The number of entries is not limited: the listing ends at the end of the page.
            left: i32::MAX,
            entries: Entries::Page(page),
        }
    }
}

/// Returns whether `bytes` contain `part`. An empty `part` is always contained.
fn contains(bytes: &[u8], part: &[u8]) -> bool {
    part.is_empty() || bytes.windows(part.len()).any(|window| window == part)
}
