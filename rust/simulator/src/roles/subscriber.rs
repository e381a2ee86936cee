//! A subscriber: adds a subscription, and checks what it receives.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use aeron_client::{
    Aeron, Context, Error, ErrorCode, Fragment, Image, ImageFragmentAssembler, ImageHandler,
    PendingOperation, Subscription,
};

use super::{Graveyard, RETRY_NS, Surroundings, client_context};
use crate::host::Host;
use crate::network::HostId;
use crate::payload::Message;
use crate::truth::{Finding, Progress, StreamKey, Truth};

/// Fragments that a subscriber takes in one turn at most.
const FRAGMENTS_PER_TURN: usize = 16;

/// What a subscriber is.
#[derive(Clone, Debug)]
pub struct SubscriberPlan {
    /// Where it is.
    pub host: HostId,
    /// Its channel.
    pub channel: String,
    /// Its stream.
    pub stream_id: i32,
    /// Whether nothing may be missing in a stream.
    pub is_reliable: bool,
    /// Whether it must have an image of its stream whenever all is well: not if it wants another session, or comes back to no
    /// stream that left it behind.
    pub is_served: bool,
    /// Whether the sender waits for it. With maximum flow control the sender may overwrite what it misses.
    pub is_waited_for: bool,
    /// Destinations that it adds by hand.
    pub destinations: Vec<String>,
    /// How long it rests after each poll, which then takes all there is; 0 if it polls in each turn. The window of its publisher
    /// opens in long steps then.
    pub rest_ns: i64,
}

/// See the [module](super).
pub struct Subscriber {
    plan: SubscriberPlan,
    is_wanted: bool,
    polls_from_ns: i64,
    client: Option<Aeron>,
    /// How many drivers had been started on its host when the client connected.
    driver: u64,
    state: State,
    /// When it adds again what was refused for now.
    adds_from_ns: i64,
    /// Destinations that the driver has not taken yet, each with the command that says it.
    missing: Vec<(String, Option<PendingOperation<()>>)>,
    /// Images that are there, by their correlation ids.
    images: BTreeMap<i64, Reading>,
    gone: Gone,
    /// Streams that ended, each with the message that would have come next.
    ended: Vec<(u32, u32)>,
}

enum State {
    Away,
    Adding(PendingOperation<Subscription>),
    Open(Subscription),
}

/// An image and what was read of it.
struct Reading {
    progress: Progress,
    assembler: ImageFragmentAssembler,
}

/// Images that went away, as their handler saw them.
type Gone = Arc<Mutex<Vec<Departure>>>;

#[derive(Clone, Copy, Debug)]
struct Departure {
    correlation_id: i64,
    is_end_of_stream: bool,
    is_revoked: bool,
    position: i64,
}

impl Subscriber {
    /// A subscriber that is not present yet.
    pub fn new(plan: SubscriberPlan) -> Self {
        Self {
            plan,
            is_wanted: false,
            polls_from_ns: i64::MIN,
            client: None,
            driver: 0,
            state: State::Away,
            adds_from_ns: i64::MIN,
            missing: Vec::new(),
            images: BTreeMap::new(),
            gone: Gone::default(),
            ended: Vec::new(),
        }
    }

    /// What it is.
    pub fn plan(&self) -> &SubscriberPlan {
        &self.plan
    }

    /// From now on it is present, or is not.
    pub fn set_wanted(&mut self, is_wanted: bool) {
        self.is_wanted = is_wanted;
    }

    /// It reads nothing until then.
    pub fn stall(&mut self, until_ns: i64) {
        self.polls_from_ns = until_ns;
    }

    /// Its client dies.
    pub fn crash(&mut self, graveyard: &mut Graveyard) {
        if let Some(client) = self.client.take() {
            let state = std::mem::replace(&mut self.state, State::Away);
            graveyard.bury(client, (state, std::mem::take(&mut self.missing)));
        }
        self.images.clear();
    }

    /// Rejects what it receives.
    pub fn reject(&mut self) {
        if let State::Open(subscription) = &self.state {
            for image in subscription.images().iter() {
                // Spies cannot.
                let _ = image.async_reject("rejected by the schedule");
            }
        }
    }

    /// Correlation id of its image of the stream of this session.
    pub fn image_of(&self, session_id: i32) -> Option<i64> {
        match &self.state {
            State::Open(subscription) => subscription
                .image_by_session_id(session_id)
                .map(|image| image.correlation_id()),
            _ => None,
        }
    }

    /// The message of a publication that it waits for, if it reads that.
    pub fn next_of(&self, publication: u32) -> Option<u32> {
        self.images
            .values()
            .find(|reading| reading.progress.publication == Some(publication))
            .map(|reading| reading.progress.next)
    }

    /// Whether it has seen the orderly end of a publication.
    pub fn has_seen_end_of(&self, publication: u32) -> bool {
        self.ended.iter().any(|(ended, _)| *ended == publication)
    }

    /// Whether its client is one of the driver that runs now: a client notices late that its driver has died.
    pub fn is_at_home(&self, hosts: &[Host]) -> bool {
        self.client.is_some() && self.driver == hosts[self.plan.host].starts()
    }

    /// Does what it can now; answers how much that was.
    ///
    /// # Errors
    /// What it received cannot be.
    pub fn do_work(&mut self, surroundings: &mut Surroundings<'_>) -> Result<usize, Finding> {
        if !self.is_wanted {
            self.leave();
            return Ok(0);
        }
        if self.client.is_none() {
            let context = self.context(surroundings);
            let host = &surroundings.hosts[self.plan.host];
            self.client = host.connect(context);
            self.driver = host.starts();
        }
        let Some(client) = self.client.clone() else {
            return Ok(0);
        };
        let mut work_count = client.do_work();
        self.see_images_off(surroundings.truth)?;
        if client.is_closed() {
            self.leave();
            return Ok(1);
        }
        match &self.state {
            State::Away if surroundings.clock.now_ns() < self.adds_from_ns => {}
            State::Away => {
                let added = client.async_add_subscription(&self.plan.channel, self.plan.stream_id);
                if let Ok(operation) = added {
                    self.state = State::Adding(operation);
                }
                work_count += 1;
            }
            State::Adding(_) => work_count += self.find(surroundings)?,
            State::Open(_) if surroundings.clock.now_ns() >= self.polls_from_ns => {
                self.add_missing(surroundings.clock.now_ns());
                work_count += self.poll(surroundings)?;
            }
            State::Open(_) => {}
        }
        Ok(work_count)
    }

    fn context(&mut self, surroundings: &Surroundings<'_>) -> Context {
        self.gone = Gone::default();
        let gone = Arc::clone(&self.gone);
        let handler: ImageHandler = Arc::new(move |image: &Image| {
            let departure = Departure {
                correlation_id: image.correlation_id(),
                is_end_of_stream: image.is_end_of_stream(),
                is_revoked: image.is_publication_revoked(),
                position: image.position(),
            };
            gone.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(departure);
        });
        Context {
            unavailable_image_handler: Some(handler),
            ..client_context(surroundings.clock)
        }
    }

    fn leave(&mut self) {
        self.state = State::Away;
        if let Some(client) = self.client.take() {
            client.close();
        }
        self.images.clear();
    }

    fn find(&mut self, surroundings: &Surroundings<'_>) -> Result<usize, Finding> {
        let State::Adding(adding) = &mut self.state else {
            return Ok(0);
        };
        match adding.poll() {
            Ok(None) => Ok(0),
            Ok(Some(subscription)) => {
                let destinations = self.plan.destinations.iter().cloned();
                self.missing = destinations.map(|channel| (channel, None)).collect();
                self.state = State::Open(subscription);
                Ok(1)
            }
            Err(Error::Registration {
                code: ErrorCode::ResourceTemporarilyUnavailable,
                ..
            }) => {
                self.adds_from_ns = surroundings.clock.now_ns() + RETRY_NS;
                self.state = State::Away;
                Ok(1)
            }
            Err(Error::Registration { code, message, .. }) => Err(format!(
                "subscription on {} refused: {code:?} {message}",
                self.plan.channel
            )),
            Err(_) => {
                self.state = State::Away;
                Ok(1)
            }
        }
    }

    /// Adds destinations until the driver has taken them: the subscription before may still have their addresses.
    fn add_missing(&mut self, now_ns: i64) {
        let State::Open(subscription) = &self.state else {
            return;
        };
        self.missing.retain_mut(|(channel, command)| match command {
            None if now_ns < self.adds_from_ns => true,
            None => {
                *command = subscription.async_add_destination(channel).ok();
                true
            }
            Some(operation) => match operation.poll() {
                Ok(Some(_)) => false,
                Ok(None) => true,
                Err(_) => {
                    *command = None;
                    self.adds_from_ns = now_ns + RETRY_NS;
                    true
                }
            },
        });
    }

    fn poll(&mut self, surroundings: &mut Surroundings<'_>) -> Result<usize, Finding> {
        let State::Open(subscription) = &self.state else {
            return Ok(0);
        };
        let (images, truth, seed) = (
            &mut self.images,
            &mut *surroundings.truth,
            surroundings.seed,
        );
        let is_reliable = self.plan.is_reliable;
        let mut found = Ok(());
        let polled = subscription.poll(
            |fragment| {
                let image = fragment.header().image();
                let reading = images
                    .entry(image.correlation_id())
                    .or_insert_with(|| Reading::of(image, is_reliable));
                let result = reading.take(fragment, truth, seed);
                if found.is_ok() {
                    found = result;
                }
            },
            match self.plan.rest_ns {
                0 => FRAGMENTS_PER_TURN,
                _ => usize::MAX,
            },
        );
        self.polls_from_ns = surroundings.clock.now_ns() + self.plan.rest_ns;
        found?;
        polled.map_err(|error| format!("poll failed: {error}"))
    }

    /// An image that ended in order has all that its publication published.
    fn see_images_off(&mut self, truth: &Truth) -> Result<(), Finding> {
        let gone = std::mem::take(&mut *self.gone.lock().unwrap_or_else(PoisonError::into_inner));
        for departure in gone {
            let Some(reading) = self.images.remove(&departure.correlation_id) else {
                continue;
            };
            let Some(publication) = reading.progress.publication else {
                continue;
            };
            if !departure.is_end_of_stream || departure.is_revoked {
                continue;
            }
            let (next, record) = (reading.progress.next, truth.publication(publication));
            if reading.progress.is_reliable && next != record.count() {
                return Err(format!(
                    "publication {publication} ended for a subscriber at {} before message {next} of {}",
                    departure.position,
                    record.count()
                ));
            }
            self.ended.push((publication, next));
        }
        Ok(())
    }
}

impl Reading {
    fn of(image: &Image, is_reliable: bool) -> Self {
        Self {
            progress: Progress {
                join_position: image.join_position(),
                is_reliable,
                publication: None,
                next: 0,
            },
            assembler: ImageFragmentAssembler::default(),
        }
    }

    fn take(
        &mut self,
        fragment: Fragment<'_>,
        truth: &mut Truth,
        seed: u64,
    ) -> Result<(), Finding> {
        let mut result = Ok(());
        let progress = &mut self.progress;
        self.assembler.on_fragment(fragment, |whole| {
            let header = whole.header();
            let message = Message::recognise(&whole.to_vec(), seed);
            let stream = StreamKey {
                session_id: header.session_id(),
                stream_id: header.stream_id(),
            };
            result = truth.on_received(progress, stream, message, header.position());
        });
        result
    }
}
