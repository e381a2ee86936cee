//! The subscriber: adds a subscription, and checks the received messages.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use aeron_client::{
    Aeron, Context, Fragment, FragmentAssembler, Image, ImageHandler, PendingOperation,
    Subscription,
};

use super::{
    CurrentDriver, Graveyard, MissingDestinations, RETRY_NS, Reconnections, RoleEnvironment,
    add_missing, client_context, is_temporary,
};
use crate::host::Host;
use crate::network::HostId;
use crate::payload::Message;
use crate::truth::{ChannelStream, Finding, ImageProgress, Truth};

/// Maximum number of fragments that a subscriber reads in one turn.
const FRAGMENTS_PER_TURN: usize = 16;

/// Settings of a subscriber.
#[derive(Clone, Debug)]
pub struct SubscriberPlan {
    /// Host of the subscriber.
    pub host: HostId,
    /// Channel of the subscription.
    pub channel: String,
    /// Stream id.
    pub stream_id: i32,
    /// Whether the stream must be complete.
    pub is_reliable: bool,
    /// Whether the subscriber must have an image of its stream when there are no faults. `false` if no publication has
    /// the session or stream that the subscriber requests, or if the subscriber cannot rejoin a lost stream.
    pub is_served: bool,
    /// Whether the sender waits for this subscriber. With maximum flow control, the sender may overwrite data that the
    /// subscriber has not received.
    pub is_waited_for: bool,
    /// Destinations to add to a subscription with manual control.
    pub destinations: Vec<String>,
    /// Pause after each poll, in nanoseconds. If it is 0, the subscriber polls in each turn. Otherwise, each poll reads
    /// all data, so that the limit of the publisher advances in large steps.
    pub rest_ns: i64,
    /// Whether the subscriber's client reconnects. If it does, whether it notices the end of its driver at once.
    pub reconnects: Option<bool>,
}

/// See the [module](super).
pub struct SimulatedSubscriber {
    plan: SubscriberPlan,
    is_wanted: bool,
    polls_from_ns: i64,
    client: Option<Aeron>,
    driver: CurrentDriver,
    reconnections: Reconnections,
    /// Number of drivers that the client had lost when the last polled image became available.
    polled_epoch: u64,
    /// Number of the next message of each publication, over all drivers.
    next_messages: BTreeMap<u32, u32>,
    state: SubscriberState,
    /// Time at which the subscriber repeats a request that the driver has temporarily refused.
    adds_from_ns: i64,
    /// Destinations that the driver has not accepted yet, with their pending commands.
    missing: MissingDestinations<()>,
    /// Commands for the removal of destinations. They are kept until the subscriber leaves.
    removed: Vec<PendingOperation<()>>,
    /// Current images.
    images: Vec<Reading>,
    events: ImageEvents,
    /// Ended streams: the number of the publication, and the number of the message that would have been next.
    ended: Vec<(u32, u32)>,
}

enum SubscriberState {
    Away,
    Adding(PendingOperation<Subscription>),
    Open(Subscription),
}

/// An image, and the position up to which the subscriber has read it.
struct Reading {
    image: Image,
    /// Number of drivers that the client had lost when the image became available.
    epoch: u64,
    progress: ImageProgress,
    assembler: FragmentAssembler,
}

/// Calls of the handlers of images, in order.
type ImageEvents = Arc<Mutex<Vec<ImageEvent>>>;

enum ImageEvent {
    /// An image became available, after the client had lost this number of drivers.
    Available(Image, u64),
    Unavailable(Image),
}

impl SimulatedSubscriber {
    /// Creates a subscriber that is not present yet.
    pub fn new(plan: SubscriberPlan) -> Self {
        Self {
            plan,
            is_wanted: false,
            polls_from_ns: i64::MIN,
            client: None,
            driver: CurrentDriver::default(),
            reconnections: Reconnections::default(),
            polled_epoch: 0,
            next_messages: BTreeMap::new(),
            state: SubscriberState::Away,
            adds_from_ns: i64::MIN,
            missing: Vec::new(),
            removed: Vec::new(),
            images: Vec::new(),
            events: ImageEvents::default(),
            ended: Vec::new(),
        }
    }

    /// Returns the settings.
    pub fn plan(&self) -> &SubscriberPlan {
        &self.plan
    }

    /// Sets whether the subscriber must be present.
    pub fn set_wanted(&mut self, is_wanted: bool) {
        self.is_wanted = is_wanted;
    }

    /// Makes the subscriber read nothing until the given time.
    pub fn stall(&mut self, until_ns: i64) {
        self.polls_from_ns = until_ns;
    }

    /// Removes one of the destinations, now and for all later subscriptions.
    pub fn remove_destination(&mut self, index: usize) {
        let channel = self.plan.destinations.remove(index);
        self.missing.retain(|(other, _)| *other != channel);
        if let SubscriberState::Open(subscription) = &self.state {
            self.removed
                .extend(subscription.async_remove_destination(&channel));
        }
    }

    /// Returns the number of active transports of each image.
    pub fn active_transport_counts(&self) -> Vec<i32> {
        match &self.state {
            SubscriberState::Open(subscription) => subscription
                .images()
                .iter()
                .map(Image::active_transport_count)
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Simulates the death of the subscriber's client.
    pub fn crash(&mut self, graveyard: &mut Graveyard) {
        if let Some(client) = self.client.take() {
            let state = std::mem::replace(&mut self.state, SubscriberState::Away);
            graveyard.bury(client, (state, std::mem::take(&mut self.missing)));
        }
        self.images.clear();
    }

    /// Rejects the subscriber's images.
    pub fn reject(&mut self) {
        if let SubscriberState::Open(subscription) = &self.state {
            for image in subscription.images().iter() {
                // Spies cannot reject an image.
                let _ = image.async_reject("rejected by the schedule");
            }
        }
    }

    /// Returns the correlation id of the subscriber's image with this session.
    pub fn image_of(&self, session_id: i32) -> Option<i64> {
        match &self.state {
            SubscriberState::Open(subscription) => subscription
                .image_by_session_id(session_id)
                .map(|image| image.correlation_id()),
            _ => None,
        }
    }

    /// Returns the number of the next expected message of a publication; `None` if the subscriber does not read this
    /// publication.
    pub fn next_of(&self, publication: u32) -> Option<u32> {
        self.images
            .iter()
            .find(|reading| reading.progress.publication == Some(publication))
            .map(|reading| reading.progress.next)
    }

    /// Whether the subscriber has seen the regular end of a publication.
    pub fn has_seen_end_of(&self, publication: u32) -> bool {
        self.ended.iter().any(|(ended, _)| *ended == publication)
    }

    /// Whether the subscriber's client is connected to the running driver, not to an earlier one. A client detects the
    /// death of its driver late.
    pub fn is_client_of_running_driver(&self, hosts: &[Host]) -> bool {
        self.client.is_some() && self.driver.start() == Some(hosts[self.plan.host].starts())
    }

    /// Does the work that is possible now. Returns a work count.
    ///
    /// # Errors
    /// The received data is wrong.
    pub fn do_work(&mut self, environment: &mut RoleEnvironment<'_>) -> Result<usize, Finding> {
        if !self.is_wanted {
            self.leave();
            return Ok(0);
        }
        if self.client.is_none() {
            let context = self.context(environment);
            let host = &environment.hosts[self.plan.host];
            self.client = self
                .reconnections
                .connect(host, context, self.plan.reconnects);
            self.driver = CurrentDriver::default();
            self.polled_epoch = 0;
            self.next_messages.clear();
        }
        let Some(client) = self.client.clone() else {
            return Ok(0);
        };
        let mut work_count = client.do_work();
        self.see_images(environment.truth)?;
        if client.is_closed() {
            self.leave();
            return match self.plan.reconnects {
                None => Ok(1),
                Some(_) => Err(format!(
                    "a client that reconnects was closed: {:?}",
                    client.close_cause()
                )),
            };
        }
        self.driver
            .update(&client, environment.hosts[self.plan.host].starts());
        // The next driver has refused the subscription for too long, for example while the lookup of a name fails.
        if matches!(&self.state, SubscriberState::Open(subscription) if subscription.is_closed()) {
            self.state = SubscriberState::Away;
        }
        match &self.state {
            SubscriberState::Away if environment.clock.now_ns() < self.adds_from_ns => {}
            SubscriberState::Away => {
                let added = client.async_add_subscription(&self.plan.channel, self.plan.stream_id);
                if let Ok(operation) = added {
                    self.state = SubscriberState::Adding(operation);
                }
                work_count += 1;
            }
            SubscriberState::Adding(_) => work_count += self.find(environment)?,
            SubscriberState::Open(_) if environment.clock.now_ns() >= self.polls_from_ns => {
                self.add_missing(environment.clock.now_ns());
                work_count += self.poll(environment)?;
            }
            SubscriberState::Open(_) => {}
        }
        Ok(work_count)
    }

    fn context(&mut self, environment: &RoleEnvironment<'_>) -> Context {
        self.events = ImageEvents::default();
        self.reconnections = Reconnections::default();
        let (available, unavailable) = (Arc::clone(&self.events), Arc::clone(&self.events));
        let losses = self.reconnections.losses();
        let add = |events: &ImageEvents, event| {
            let mut events = events.lock().unwrap_or_else(PoisonError::into_inner);
            events.push(event);
        };
        let on_available: ImageHandler = Arc::new(move |image: &Image| {
            let epoch = losses.load(Ordering::Relaxed);
            add(&available, ImageEvent::Available(image.clone(), epoch));
        });
        let on_unavailable: ImageHandler = Arc::new(move |image: &Image| {
            add(&unavailable, ImageEvent::Unavailable(image.clone()));
        });
        Context {
            available_image_handler: Some(on_available),
            unavailable_image_handler: Some(on_unavailable),
            ..client_context(environment.clock, self.plan.host)
        }
    }

    fn leave(&mut self) {
        self.state = SubscriberState::Away;
        if let Some(client) = self.client.take() {
            client.close();
        }
        self.removed.clear();
        self.images.clear();
    }

    fn find(&mut self, environment: &RoleEnvironment<'_>) -> Result<usize, Finding> {
        let SubscriberState::Adding(adding) = &mut self.state else {
            return Ok(0);
        };
        match adding.poll() {
            Ok(None) => Ok(0),
            Ok(Some(subscription)) => {
                let destinations = self.plan.destinations.iter().cloned();
                self.missing = destinations.map(|channel| (channel, None)).collect();
                self.state = SubscriberState::Open(subscription);
                Ok(1)
            }
            Err(error) => {
                let resource = format!("subscription on {}", self.plan.channel);
                if is_temporary(error, &resource)? {
                    self.adds_from_ns = environment.clock.now_ns() + RETRY_NS;
                }
                self.state = SubscriberState::Away;
                Ok(1)
            }
        }
    }

    fn add_missing(&mut self, now_ns: i64) {
        if let SubscriberState::Open(subscription) = &self.state {
            let add = |channel: &str| subscription.async_add_destination(channel).ok();
            add_missing(&mut self.missing, &mut self.adds_from_ns, now_ns, add);
        }
    }

    fn poll(&mut self, environment: &mut RoleEnvironment<'_>) -> Result<usize, Finding> {
        let SubscriberState::Open(subscription) = &self.state else {
            return Ok(0);
        };
        let (images, truth, seed) = (&mut self.images, &mut *environment.truth, environment.seed);
        let (polled_epoch, next_messages) = (&mut self.polled_epoch, &mut self.next_messages);
        let mut found = Ok(());
        let polled = subscription.poll(
            |fragment| {
                let image = fragment.header().image();
                let reading = images
                    .iter_mut()
                    .find(|reading| reading.image.is_same(image))
                    .expect("an image is available before its first message");
                if reading.epoch < *polled_epoch {
                    found = Err(format!(
                        "a message of session {} came after messages of the next driver",
                        image.session_id()
                    ));
                    return;
                }
                *polled_epoch = reading.epoch;
                let result = reading.take(fragment, truth, next_messages, seed);
                if found.is_ok() {
                    found = result;
                }
            },
            match self.plan.rest_ns {
                0 => FRAGMENTS_PER_TURN,
                _ => usize::MAX,
            },
        );
        self.polls_from_ns = environment.clock.now_ns() + self.plan.rest_ns;
        found?;
        polled.map_err(|error| format!("poll failed: {error}"))
    }

    /// Registers new images. Checks the images that ended regularly: the subscriber must have received all messages of
    /// their publications.
    fn see_images(&mut self, truth: &Truth) -> Result<(), Finding> {
        let events =
            std::mem::take(&mut *self.events.lock().unwrap_or_else(PoisonError::into_inner));
        for event in events {
            match event {
                ImageEvent::Available(image, epoch) => {
                    let older = self.images.iter().find(|reading| reading.epoch < epoch);
                    if let Some(older) = older {
                        return Err(format!(
                            "session {} became available before the end of session {} of the lost driver",
                            image.session_id(),
                            older.image.session_id()
                        ));
                    }
                    let is_reliable = self.plan.is_reliable;
                    self.images.push(Reading::of(image, epoch, is_reliable));
                }
                ImageEvent::Unavailable(image) => self.see_image_off(&image, truth)?,
            }
        }
        Ok(())
    }

    fn see_image_off(&mut self, image: &Image, truth: &Truth) -> Result<(), Finding> {
        let index = self
            .images
            .iter()
            .position(|reading| reading.image.is_same(image));
        let Some(reading) = index.map(|index| self.images.remove(index)) else {
            return Ok(());
        };
        let Some(publication) = reading.progress.publication else {
            return Ok(());
        };
        if !image.is_end_of_stream() || image.is_publication_revoked() {
            return Ok(());
        }
        let (next, record) = (reading.progress.next, truth.publication(publication));
        if reading.progress.is_reliable && next != record.count() {
            return Err(format!(
                "publication {publication} ended for a subscriber at {} before message {next} of {}",
                image.position(),
                record.count()
            ));
        }
        self.ended.push((publication, next));
        Ok(())
    }
}

impl Reading {
    fn of(image: Image, epoch: u64, is_reliable: bool) -> Self {
        Self {
            epoch,
            progress: ImageProgress {
                join_position: image.join_position(),
                is_reliable,
                publication: None,
                next: 0,
            },
            assembler: FragmentAssembler::of_one_stream(),
            image,
        }
    }

    /// Checks that the subscriber did not get the last message before, also not from an earlier driver.
    fn check_once(&self, next_messages: &mut BTreeMap<u32, u32>) -> Result<(), Finding> {
        let Some(publication) = self.progress.publication else {
            return Ok(());
        };
        let next = next_messages.entry(publication).or_default();
        if self.progress.next <= *next {
            return Err(format!(
                "message {} of publication {publication} was delivered twice",
                self.progress.next - 1
            ));
        }
        *next = self.progress.next;
        Ok(())
    }

    /// Checks the message that ends with this fragment. Messages of earlier drivers are in `next_messages`.
    fn take(
        &mut self,
        fragment: Fragment<'_>,
        truth: &mut Truth,
        next_messages: &mut BTreeMap<u32, u32>,
        seed: u64,
    ) -> Result<(), Finding> {
        let mut result = None;
        let progress = &mut self.progress;
        self.assembler.on_fragment(fragment, |whole| {
            let header = whole.header();
            let message = Message::recognise(&whole.to_vec(), seed);
            let stream = ChannelStream {
                session_id: header.session_id(),
                stream_id: header.stream_id(),
            };
            result = Some(truth.on_received(progress, stream, message, header.position()));
        });
        match result {
            Some(result) => result.and_then(|()| self.check_once(next_messages)),
            None => Ok(()),
        }
    }
}
