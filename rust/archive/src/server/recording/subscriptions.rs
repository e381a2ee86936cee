//! [`RecordingSubscriptions`]: adds and removes the subscriptions with the images that the archive
//! records. The conductor of the archive uses it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use aeron_client::{Aeron, Image, PendingOperation, Subscription, SubscriptionHandlers};
use aeron_protocol::archive::{RequestIds, SourceLocation};

use crate::server::ArchiveError;
use crate::server::context::OnFailure;
use crate::server::listing::SubscriptionEntry;

/// The use of a subscription's images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) enum RecordingPurpose {
    /// Each image becomes a new recording.
    New,
    /// The image extends this recording.
    Extend {
        /// Recording id.
        recording_id: i64,
    },
    /// The subscription is resumed. An image that continues a recording extends this recording. Any
    /// other image becomes a new recording.
    Resume {
        /// Recording that the subscription extended before the restart; `None` if each image became
        /// a new recording.
        recording_id: Option<i64>,
    },
}

/// A subscription of the archive. It exists from the time of the request, before the driver has added the subscription.
pub(in crate::server) struct ServedSubscription {
    /// Number that identifies the subscription, even before the driver has assigned a registration
    /// id.
    pub number: u64,
    /// Key of the stream id and the channel.
    pub key: String,
    /// Request of the subscription. The archive sends signals to the control session of this request.
    pub requester: RequestIds,
    /// Whether the subscription ends when its first recording ends.
    pub is_auto_stop: bool,
    /// How the archive treats the rest of an image after its recording has failed.
    pub on_failure: OnFailure,
    /// The use of the subscription's images.
    pub purpose: RecordingPurpose,
    /// Stream id.
    pub stream_id: i32,
    /// Location of the source in the request.
    pub source_location: SourceLocation,
    /// Channel of the archive's subscription.
    pub subscribed_channel: String,
    /// Channel of the request.
    pub original_channel: String,
    /// Stripped channel of the recordings.
    pub stripped_channel: String,
    state: ServedSubscriptionState,
}

enum ServedSubscriptionState {
    Adding(PendingOperation<Subscription>),
    Open(Subscription),
}

impl ServedSubscription {
    /// Returns the subscription when the driver has added it.
    pub fn subscription(&self) -> Option<&Subscription> {
        match &self.state {
            ServedSubscriptionState::Adding(_) => None,
            ServedSubscriptionState::Open(subscription) => Some(subscription),
        }
    }

    /// Returns the registration id of the subscription when the driver has added it.
    pub fn registration_id(&self) -> Option<i64> {
        self.subscription().map(Subscription::registration_id)
    }
}

/// The subscriptions with the images that are recorded. Stopped subscriptions are removed.
#[derive(Default)]
pub(in crate::server) struct RecordingSubscriptions {
    subscriptions: Vec<ServedSubscription>,
    last_number: u64,
}

/// The parameters of a new subscription.
pub(in crate::server) struct NewSubscription {
    pub key: String,
    pub requester: RequestIds,
    pub is_auto_stop: bool,
    pub on_failure: OnFailure,
    pub purpose: RecordingPurpose,
    pub stream_id: i32,
    pub source_location: SourceLocation,
    pub subscribed_channel: String,
    pub original_channel: String,
    pub stripped_channel: String,
}

impl RecordingSubscriptions {
    /// Asks the driver to add a subscription. Returns the number of the subscription.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn add(
        &mut self,
        aeron: &Aeron,
        new: NewSubscription,
        arrivals: &ImageArrivals,
    ) -> Result<u64, ArchiveError> {
        debug_assert!(
            self.by_key(&new.key).is_none(),
            "two recording subscriptions must not have the same key {}",
            new.key
        );
        self.last_number += 1;
        let number = self.last_number;
        let operation = aeron.async_add_subscription_with(
            &new.subscribed_channel,
            new.stream_id,
            arrivals.handlers(number),
        )?;
        self.subscriptions.push(ServedSubscription {
            number,
            key: new.key,
            requester: new.requester,
            is_auto_stop: new.is_auto_stop,
            on_failure: new.on_failure,
            purpose: new.purpose,
            stream_id: new.stream_id,
            source_location: new.source_location,
            subscribed_channel: new.subscribed_channel,
            original_channel: new.original_channel,
            stripped_channel: new.stripped_channel,
            state: ServedSubscriptionState::Adding(operation),
        });
        Ok(number)
    }

    /// Processes the driver's replies. Calls `on_reply` with each subscription and its registration id, or the error.
    pub fn poll(
        &mut self,
        mut on_reply: impl FnMut(&ServedSubscription, Result<i64, ArchiveError>),
    ) -> usize {
        let mut count = 0;
        self.subscriptions.retain_mut(|entry| {
            let ServedSubscriptionState::Adding(operation) = &mut entry.state else {
                return true;
            };
            match operation.poll() {
                Ok(None) => true,
                Ok(Some(subscription)) => {
                    count += 1;
                    on_reply(entry, Ok(subscription.registration_id()));
                    entry.state = ServedSubscriptionState::Open(subscription);
                    true
                }
                Err(error) => {
                    count += 1;
                    on_reply(entry, Err(error.into()));
                    false
                }
            }
        });
        count
    }

    /// Returns the number of subscriptions, including those that the driver has not added yet.
    pub fn count(&self) -> usize {
        self.subscriptions.len()
    }

    pub fn by_key(&self, key: &str) -> Option<&ServedSubscription> {
        self.subscriptions.iter().find(|entry| entry.key == key)
    }

    pub fn by_number(&self, number: u64) -> Option<&ServedSubscription> {
        self.subscriptions
            .iter()
            .find(|entry| entry.number == number)
    }

    pub fn by_registration_id(&self, id: i64) -> Option<&ServedSubscription> {
        self.subscriptions
            .iter()
            .find(|entry| entry.registration_id() == Some(id))
    }

    /// Returns whether the next image of a subscription may extend this recording.
    pub fn extend(&self, recording_id: i64) -> bool {
        let extends = |purpose| match purpose {
            RecordingPurpose::New => false,
            RecordingPurpose::Extend { recording_id: id } => id == recording_id,
            RecordingPurpose::Resume { recording_id: id } => id == Some(recording_id),
        };
        self.subscriptions
            .iter()
            .any(|entry| extends(entry.purpose))
    }

    /// Removes a subscription, so that no further images are recorded. The subscription is closed
    /// when its last recording ends.
    pub fn remove(&mut self, number: u64) -> Option<ServedSubscription> {
        let at = self
            .subscriptions
            .iter()
            .position(|entry| entry.number == number)?;
        Some(self.subscriptions.remove(at))
    }

    /// Returns the entry at an index for a listing. Subscriptions that the driver has not added yet are left out.
    pub fn entry(&self, index: usize) -> Option<SubscriptionEntry<'_>> {
        self.subscriptions
            .iter()
            .filter_map(|entry| {
                Some(SubscriptionEntry {
                    registration_id: entry.registration_id()?,
                    stream_id: entry.stream_id,
                    channel: &entry.subscribed_channel,
                })
            })
            .nth(index)
    }
}

/// Images that have become available, with the number of their subscription. The conductor of the
/// Aeron client adds images, and the conductor of the archive removes them.
pub(in crate::server) struct ImageArrivals {
    sender: Sender<(u64, Image)>,
    receiver: Receiver<(u64, Image)>,
    /// Images that were received from the channel, and not taken yet.
    received: Vec<(u64, Image)>,
}

impl ImageArrivals {
    pub fn new() -> Self {
        let (sender, receiver) = channel();
        Self {
            sender,
            receiver,
            received: Vec::new(),
        }
    }

    fn handlers(&self, number: u64) -> SubscriptionHandlers {
        let sender = self.sender.clone();
        SubscriptionHandlers {
            // An error is ignored: it means that the archive has ended.
            available_image: Some(Arc::new(move |image: &Image| {
                let _ = sender.send((number, image.clone()));
            })),
            ..SubscriptionHandlers::default()
        }
    }

    /// Removes and returns the images that have arrived, in order.
    pub fn take(&mut self) -> Vec<(u64, Image)> {
        self.receive();
        std::mem::take(&mut self.received)
    }

    /// Returns whether images have arrived.
    pub fn has_any(&mut self) -> bool {
        self.receive();
        !self.received.is_empty()
    }

    fn receive(&mut self) {
        self.received.extend(self.receiver.try_iter());
    }

    /// Adds an image again, for the next [`take`](Self::take).
    pub fn put_back(&self, number: u64, image: Image) {
        self.sender
            .send((number, image))
            .expect("the receiver lives as long as the sender");
    }
}
