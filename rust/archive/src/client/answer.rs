//! [`Answer`]: the answer of an archive to a request.

use super::descriptor::RecordingSubscription;
use crate::catalog::RecordingDescriptor;

/// Kind of the answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// One response with a value.
    Value,
    /// Up to so many descriptors of recordings, then a response if there are fewer.
    Recordings(usize),
    /// Up to so many descriptors of subscriptions, then a response if there are fewer.
    Subscriptions(usize),
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Value(i64),
    Recordings(Vec<RecordingDescriptor>),
    Subscriptions(Vec<RecordingSubscription>),
}

impl Expected {
    /// Most descriptors that answer; `None` if descriptors do not answer.
    pub(super) const fn count(self) -> Option<usize> {
        match self {
            Self::Value => None,
            Self::Recordings(count) | Self::Subscriptions(count) => Some(count),
        }
    }
}

impl Answer {
    /// The answer of which nothing has come.
    pub(super) const fn none_of(expected: Expected) -> Self {
        match expected {
            Expected::Value => Self::Value(0),
            Expected::Recordings(_) => Self::Recordings(Vec::new()),
            Expected::Subscriptions(_) => Self::Subscriptions(Vec::new()),
        }
    }

    /// The value; 0 for listings, which have none.
    pub(super) const fn value(&self) -> i64 {
        match self {
            Self::Value(value) => *value,
            Self::Recordings(_) | Self::Subscriptions(_) => 0,
        }
    }

    /// The recordings of a listing; empty for others.
    pub(super) fn into_recordings(self) -> Vec<RecordingDescriptor> {
        match self {
            Self::Recordings(recordings) => recordings,
            Self::Value(_) | Self::Subscriptions(_) => Vec::new(),
        }
    }

    /// The subscriptions of a listing; empty for others.
    pub(super) fn into_subscriptions(self) -> Vec<RecordingSubscription> {
        match self {
            Self::Subscriptions(subscriptions) => subscriptions,
            Self::Value(_) | Self::Recordings(_) => Vec::new(),
        }
    }
}
