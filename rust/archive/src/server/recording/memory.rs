//! [`SubscriptionMemory`]: stores recording subscriptions, so that the archive can resume them
//! after a restart.
//!
//! A subscription is written into the file of extensions before the response to its request is sent,
//! and is removed when it is stopped. If the channel has a session id, the subscription is also
//! removed when the session ends. A subscription with auto-stop ends with its recording, so it is not
//! stored.

use std::collections::BTreeMap;

use aeron_protocol::uri::{ChannelUri, key};

use super::subscriptions::{RecordingPurpose, ServedSubscription};
use crate::extensions::{ExtensionChange, ResumableSubscription};
use crate::server::outlets::ArchiveOutlets;
use crate::storage::Storage;
use crate::store::ArchiveStore;

/// Changes of the stored subscriptions that are not in the file yet.
#[derive(Debug)]
pub(super) struct SubscriptionMemory {
    is_on: bool,
    /// Changed subscriptions by stream id and channel; `None` if the subscription is removed.
    changes: BTreeMap<(i32, String), Option<ResumableSubscription>>,
    /// Whether the changes must be written to the file. After an error, they are written together
    /// with the next change.
    is_due: bool,
}

impl SubscriptionMemory {
    /// Creates the memory. If `is_on` is `false`, no subscription is stored.
    pub(super) const fn new(is_on: bool) -> Self {
        Self {
            is_on,
            changes: BTreeMap::new(),
            is_due: false,
        }
    }

    /// Returns whether subscriptions are stored.
    pub(super) const fn is_on(&self) -> bool {
        self.is_on
    }

    /// Notes that the driver has added a subscription, or that the subscription has a new image.
    pub(super) fn remember(&mut self, entry: &ServedSubscription) {
        let subscription = ResumableSubscription {
            channel: entry.original_channel.clone(),
            stream_id: entry.stream_id,
            source_location: entry.source_location,
            recording_id: match entry.purpose {
                RecordingPurpose::New => None,
                RecordingPurpose::Extend { recording_id } => Some(recording_id),
                RecordingPurpose::Resume { recording_id } => recording_id,
            },
        };
        self.note(entry, Some(subscription));
    }

    /// Notes that a subscription was stopped.
    pub(super) fn forget(&mut self, removed: Option<&ServedSubscription>) {
        if let Some(entry) = removed {
            self.note(entry, None);
        }
    }

    /// Notes that the last image of a subscription has ended. If the channel of the subscription
    /// has a session id, removes the subscription: no image can follow, because a publisher that
    /// starts again has another session id. Without this, the subscription of a closed recorded
    /// publication would stay in the file for ever.
    pub(super) fn note_end_of_images(&mut self, entry: &ServedSubscription) {
        if has_session(&entry.original_channel) {
            self.note(entry, None);
        }
    }

    /// Removes a subscription of an earlier process.
    pub(super) fn forget_former(&mut self, former: ResumableSubscription) {
        self.change((former.stream_id, former.channel), None);
    }

    fn note(&mut self, entry: &ServedSubscription, subscription: Option<ResumableSubscription>) {
        if self.is_on && !entry.is_auto_stop {
            let key = (entry.stream_id, entry.original_channel.clone());
            self.change(key, subscription);
        }
    }

    fn change(&mut self, key: (i32, String), subscription: Option<ResumableSubscription>) {
        self.changes.insert(key, subscription);
        self.is_due = true;
    }
}

fn has_session(channel: &str) -> bool {
    ChannelUri::parse(channel).is_ok_and(|channel| channel.get(key::SESSION_ID).is_some())
}

impl SubscriptionMemory {
    /// Writes the changes to the file. Call it before the responses to the requests are sent.
    pub fn store<S: Storage + Clone>(
        &mut self,
        store: &mut ArchiveStore<S>,
        outlets: &mut ArchiveOutlets,
    ) {
        if !std::mem::take(&mut self.is_due) {
            return;
        }
        let extensions = store.extensions();
        let changes = self.changes.iter();
        let changes = changes.filter(|((stream_id, channel), subscription)| {
            extensions.subscription(*stream_id, channel) != subscription.as_ref()
        });
        let changes = changes.map(|((stream_id, channel), subscription)| match subscription {
            Some(subscription) => ExtensionChange::Subscription(subscription.clone()),
            None => ExtensionChange::SubscriptionStopped {
                channel: channel.clone(),
                stream_id: *stream_id,
            },
        });
        let changes = changes.collect();
        match store.extensions_mut().apply(changes) {
            Ok(()) => self.changes.clear(),
            Err(error) => outlets.report(&format!(
                "changes of the recording subscriptions are not stored, so the next start does not know them: {error}"
            )),
        }
    }
}
