//! [`Answer`]: all messages that an archive sends in response to one request. These are one response, descriptors, or
//! descriptors and then a response.

use super::descriptor::RecordingSubscription;
use super::extension::ExtensionDescriptor;
use crate::catalog::RecordingDescriptor;

/// Kind of the answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// One response with a value.
    Value,
    /// Up to this number of recording descriptors. If there are fewer, a response follows.
    Recordings(usize),
    /// Up to this number of subscription descriptors. If there are fewer, a response follows.
    Subscriptions(usize),
    /// Any number of descriptors of an extension. Then a response follows with the index of the
    /// next entry.
    Page,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Value(i64),
    Recordings(Vec<RecordingDescriptor>),
    Subscriptions(Vec<RecordingSubscription>),
    Page(Vec<ExtensionDescriptor>, i64),
}

impl Expected {
    /// Returns the maximum number of descriptors; `None` if the answer has no descriptors.
    pub(super) const fn count(self) -> Option<usize> {
        match self {
            Self::Value => None,
            Self::Recordings(count) | Self::Subscriptions(count) => Some(count),
            // The archive decides how many descriptors a page has.
            Self::Page => Some(usize::MAX),
        }
    }
}

impl Answer {
    /// Creates the answer to a request. It is empty, because none of its messages has arrived yet.
    pub(super) const fn none_of(expected: Expected) -> Self {
        match expected {
            Expected::Value => Self::Value(0),
            Expected::Recordings(_) => Self::Recordings(Vec::new()),
            Expected::Subscriptions(_) => Self::Subscriptions(Vec::new()),
            Expected::Page => Self::Page(Vec::new(), 0),
        }
    }

    /// Returns the value of the response; 0 for listings, which have no value.
    pub(super) const fn value(&self) -> i64 {
        match self {
            Self::Value(value) => *value,
            Self::Recordings(_) | Self::Subscriptions(_) | Self::Page(..) => 0,
        }
    }

    /// Returns the recordings of a listing; empty for other requests.
    pub(super) fn into_recordings(self) -> Vec<RecordingDescriptor> {
        match self {
            Self::Recordings(recordings) => recordings,
            Self::Value(_) | Self::Subscriptions(_) | Self::Page(..) => Vec::new(),
        }
    }

    /// Returns the subscriptions of a listing; empty for other requests.
    pub(super) fn into_subscriptions(self) -> Vec<RecordingSubscription> {
        match self {
            Self::Subscriptions(subscriptions) => subscriptions,
            Self::Value(_) | Self::Recordings(_) | Self::Page(..) => Vec::new(),
        }
    }

    /// Returns the descriptors of a page and the index of the next entry; empty for other requests.
    pub(super) fn into_page(self) -> (Vec<ExtensionDescriptor>, i64) {
        match self {
            Self::Page(descriptors, next_index) => (descriptors, next_index),
            Self::Value(_) | Self::Recordings(_) | Self::Subscriptions(_) => {
                (Vec::new(), aeron_protocol::archive::NULL_VALUE)
            }
        }
    }
}
