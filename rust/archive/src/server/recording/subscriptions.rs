//! [`RecordingSubscriptions`]: the subscriptions whose images the archive records.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use aeron_client::{Aeron, Image, PendingOperation, Subscription, SubscriptionHandlers};
use aeron_protocol::archive::RequestIds;

use crate::server::ArchiveError;
use crate::server::listing::SubscriptionEntry;

/// The use of a subscription's images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) enum RecordingPurpose {
    /// Each a recording of its own.
    New,
    /// The continuation of this recording.
    Extend {
        /// The recording.
        recording_id: i64,
    },
}

/// A subscription of the archive, from the request on.
pub(in crate::server) struct RecordingSubscription {
    /// Tells subscriptions apart, also before the driver has given them an id.
    pub number: u64,
    /// Key of stream and channel.
    pub key: String,
    /// Request that it serves: its session gets the signals.
    pub requester: RequestIds,
    /// Whether it ends with the first of its recordings.
    pub is_auto_stop: bool,
    /// The use of its images.
    pub purpose: RecordingPurpose,
    /// Stream.
    pub stream_id: i32,
    /// Channel that the archive subscribed to.
    pub subscribed_channel: String,
    /// Channel as it was requested.
    pub original_channel: String,
    /// Channel of the recordings.
    pub stripped_channel: String,
    state: State,
}

enum State {
    Adding(PendingOperation<Subscription>),
    Open(Subscription),
}

impl RecordingSubscription {
    /// The subscription, once the driver has added it.
    pub fn subscription(&self) -> Option<&Subscription> {
        match &self.state {
            State::Adding(_) => None,
            State::Open(subscription) => Some(subscription),
        }
    }

    /// Registration id of the subscription, once the driver has added it.
    pub fn registration_id(&self) -> Option<i64> {
        self.subscription().map(Subscription::registration_id)
    }
}

/// The subscriptions that record new images. A subscription that was stopped is not among them.
#[derive(Default)]
pub(in crate::server) struct RecordingSubscriptions {
    subscriptions: Vec<RecordingSubscription>,
    last_number: u64,
}

/// The parameters of a new subscription.
pub(in crate::server) struct NewSubscription {
    pub key: String,
    pub requester: RequestIds,
    pub is_auto_stop: bool,
    pub purpose: RecordingPurpose,
    pub stream_id: i32,
    pub subscribed_channel: String,
    pub original_channel: String,
    pub stripped_channel: String,
}

impl RecordingSubscriptions {
    /// Asks the driver for a subscription. Returns its number.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn add(
        &mut self,
        aeron: &Aeron,
        new: NewSubscription,
        arrivals: &ImageArrivals,
    ) -> Result<u64, ArchiveError> {
        self.last_number += 1;
        let number = self.last_number;
        let operation = aeron.async_add_subscription_with(
            &new.subscribed_channel,
            new.stream_id,
            arrivals.handlers(number),
        )?;
        self.subscriptions.push(RecordingSubscription {
            number,
            key: new.key,
            requester: new.requester,
            is_auto_stop: new.is_auto_stop,
            purpose: new.purpose,
            stream_id: new.stream_id,
            subscribed_channel: new.subscribed_channel,
            original_channel: new.original_channel,
            stripped_channel: new.stripped_channel,
            state: State::Adding(operation),
        });
        Ok(number)
    }

    /// Takes the driver's replies. Calls `on_reply` with each request and the registration id of its subscription, or the refusal.
    pub fn poll(
        &mut self,
        mut on_reply: impl FnMut(RequestIds, Result<i64, ArchiveError>),
    ) -> usize {
        let mut count = 0;
        self.subscriptions.retain_mut(|entry| {
            let State::Adding(operation) = &mut entry.state else {
                return true;
            };
            match operation.poll() {
                Ok(None) => true,
                Ok(Some(subscription)) => {
                    count += 1;
                    on_reply(entry.requester, Ok(subscription.registration_id()));
                    entry.state = State::Open(subscription);
                    true
                }
                Err(error) => {
                    count += 1;
                    on_reply(entry.requester, Err(error.into()));
                    false
                }
            }
        });
        count
    }

    /// Subscriptions, also those that the driver has not added yet.
    pub fn count(&self) -> usize {
        self.subscriptions.len()
    }

    pub fn by_key(&self, key: &str) -> Option<&RecordingSubscription> {
        self.subscriptions.iter().find(|entry| entry.key == key)
    }

    pub fn by_number(&self, number: u64) -> Option<&RecordingSubscription> {
        self.subscriptions
            .iter()
            .find(|entry| entry.number == number)
    }

    pub fn by_registration_id(&self, id: i64) -> Option<&RecordingSubscription> {
        self.subscriptions
            .iter()
            .find(|entry| entry.registration_id() == Some(id))
    }

    /// Takes a subscription out: it records no further images. It is closed when the last of its recordings drops it.
    pub fn remove(&mut self, number: u64) -> Option<RecordingSubscription> {
        let at = self
            .subscriptions
            .iter()
            .position(|entry| entry.number == number)?;
        Some(self.subscriptions.remove(at))
    }

    /// The entry at an index for a listing; subscriptions that the driver has not added yet are left out.
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

/// Images that have become available, by the number of their subscription. The client's conductor adds them, the archive's takes them.
pub(in crate::server) struct ImageArrivals {
    sender: Sender<(u64, Image)>,
    receiver: Receiver<(u64, Image)>,
}

impl ImageArrivals {
    pub fn new() -> Self {
        let (sender, receiver) = channel();
        Self { sender, receiver }
    }

    fn handlers(&self, number: u64) -> SubscriptionHandlers {
        let sender = self.sender.clone();
        SubscriptionHandlers {
            // If nobody receives, the archive has ended.
            available_image: Some(Arc::new(move |image: &Image| {
                let _ = sender.send((number, image.clone()));
            })),
            ..SubscriptionHandlers::default()
        }
    }

    /// The images that have come, in their order.
    pub fn take(&self) -> Vec<(u64, Image)> {
        self.receiver.try_iter().collect()
    }

    /// Keeps an image for the next [`take`](Self::take).
    pub fn put_back(&self, number: u64, image: Image) {
        self.sender
            .send((number, image))
            .expect("the receiver lives as long as the sender");
    }
}
