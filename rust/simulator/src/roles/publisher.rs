//! A publisher: adds a publication, and publishes what it is told to.

use aeron_client::{
    Aeron, AppendError, Error, ErrorCode, ExclusivePublication, OfferError, PendingOperation,
    Publication,
};
use aeron_memory::SharedBuffer;
use aeron_memory::log::{Claim, Positions};
use aeron_protocol::frame::{DataHeader, flags};
use fastrand::Rng;

use super::{Graveyard, RETRY_NS, Surroundings, client_context};
use crate::host::Host;
use crate::network::HostId;
use crate::payload::HEADER_LENGTH;
use crate::truth::{Finding, PublicationRecord, StreamKey};

/// Messages that a publisher offers in one turn at most.
const MESSAGES_PER_TURN: usize = 8;
/// The same if they are equally long.
const EQUAL_MESSAGES_PER_TURN: usize = 64;

/// What a publisher is.
#[derive(Clone, Debug)]
pub struct PublisherPlan {
    /// Where it is.
    pub host: HostId,
    /// Its channel.
    pub channel: String,
    /// Its stream.
    pub stream_id: i32,
    /// Whether it is the only one of its session.
    pub is_exclusive: bool,
    /// Destinations that it adds by hand.
    pub destinations: Vec<String>,
    /// Its longest message.
    pub max_message_length: usize,
    /// The length of all its messages, if they are equally long. It offers them in long runs, so that GSO batches become long.
    pub equal_length: Option<usize>,
    /// Before one in so many messages it aborts a claim; 0 is never.
    pub aborts_one_in: u32,
    /// When its client dies, it has a claim open.
    pub dies_in_claim: bool,
}

/// See the [module](super).
pub struct Publisher {
    plan: PublisherPlan,
    random: Rng,
    /// Decides which claims are aborted.
    aborts: Rng,
    is_wanted: bool,
    client: Option<Aeron>,
    /// How many drivers had been started on its host when the client connected.
    driver: u64,
    state: State,
    /// Destinations that the driver has not confirmed.
    destinations: Vec<PendingOperation<i64>>,
    /// When it adds again what was refused for now.
    adds_from_ns: i64,
    backlog: usize,
    /// Length of the message that is next, until it is taken.
    next_length: Option<usize>,
}

enum State {
    Away,
    Adding(Adding),
    Open(Handle, u32),
}

enum Adding {
    Shared(PendingOperation<Publication>),
    Exclusive(PendingOperation<ExclusivePublication>),
}

impl Adding {
    fn poll(&mut self) -> Result<Option<Handle>, Error> {
        match self {
            Adding::Shared(operation) => Ok(operation.poll()?.map(Handle::Shared)),
            Adding::Exclusive(operation) => Ok(operation.poll()?.map(Handle::Exclusive)),
        }
    }
}

enum Handle {
    Shared(Publication),
    Exclusive(ExclusivePublication),
}

impl Publisher {
    /// A publisher that is not present yet.
    pub fn new(plan: PublisherPlan, seed: u64) -> Self {
        Self {
            plan,
            random: Rng::with_seed(seed),
            aborts: Rng::with_seed(!seed),
            is_wanted: false,
            client: None,
            driver: 0,
            state: State::Away,
            destinations: Vec::new(),
            adds_from_ns: i64::MIN,
            backlog: 0,
            next_length: None,
        }
    }

    /// From now on it is present, or is not.
    pub fn set_wanted(&mut self, is_wanted: bool) {
        self.is_wanted = is_wanted;
    }

    /// It has more messages to publish.
    pub fn publish(&mut self, count: usize) {
        self.backlog += count;
    }

    /// Messages that were not taken yet.
    pub fn backlog(&self) -> usize {
        self.backlog
    }

    /// The number of its publication, while there is one.
    pub fn publication(&self) -> Option<u32> {
        match &self.state {
            State::Open(_, number) => Some(*number),
            _ => None,
        }
    }

    /// Whether somebody receives what it publishes.
    pub fn is_connected(&self) -> bool {
        match &self.state {
            State::Open(handle, _) => handle.is_connected(),
            _ => false,
        }
    }

    /// Its client dies.
    pub fn crash(&mut self, graveyard: &mut Graveyard) {
        if let (State::Open(handle, _), true) = (&self.state, self.plan.dies_in_claim) {
            handle.claim(HEADER_LENGTH, |claim| drop(claim.detach()));
        }
        if let Some(client) = self.client.take() {
            let state = std::mem::replace(&mut self.state, State::Away);
            graveyard.bury(client, (state, std::mem::take(&mut self.destinations)));
        }
    }

    /// It claims a message and never finishes it.
    pub fn abandon_claim(&mut self) {
        // The driver does not unblock exclusive publications while they live.
        if let State::Open(handle @ Handle::Shared(_), _) = &self.state {
            handle.claim(HEADER_LENGTH, |claim| drop(claim.detach()));
        }
    }

    /// It ends its stream without waiting for its receivers.
    pub fn revoke(&mut self) {
        if let State::Open(handle, _) = std::mem::replace(&mut self.state, State::Away) {
            handle.revoke();
        }
    }

    /// Whether its client is one of the driver that runs now: a client notices late that its driver has died.
    pub fn is_at_home(&self, hosts: &[Host]) -> bool {
        self.client.is_some() && self.driver == hosts[self.plan.host].starts()
    }

    /// Does what it can now; answers how much that was.
    ///
    /// # Errors
    /// The client misbehaved.
    pub fn do_work(&mut self, surroundings: &mut Surroundings<'_>) -> Result<usize, Finding> {
        if !self.is_wanted {
            self.leave();
            return Ok(0);
        }
        if self.client.is_none() {
            let host = &surroundings.hosts[self.plan.host];
            self.client = host.connect(client_context(surroundings.clock));
            self.driver = host.starts();
        }
        let Some(client) = self.client.clone() else {
            return Ok(0);
        };
        let mut work_count = client.do_work();
        if client.is_closed() {
            self.leave();
            return Ok(1);
        }
        self.destinations
            .retain_mut(|operation| matches!(operation.poll(), Ok(None)));
        match &self.state {
            State::Away if surroundings.clock.now_ns() < self.adds_from_ns => {}
            State::Away => {
                self.add(&client);
                work_count += 1;
            }
            State::Adding(_) => work_count += self.find(surroundings)?,
            State::Open(..) => work_count += self.offer(surroundings)?,
        }
        Ok(work_count)
    }

    fn leave(&mut self) {
        self.state = State::Away;
        if let Some(client) = self.client.take() {
            client.close();
        }
        self.destinations.clear();
    }

    fn add(&mut self, client: &Aeron) {
        let (channel, stream_id) = (&self.plan.channel, self.plan.stream_id);
        let added = match self.plan.is_exclusive {
            true => client
                .async_add_exclusive_publication(channel, stream_id)
                .map(Adding::Exclusive),
            false => client
                .async_add_publication(channel, stream_id)
                .map(Adding::Shared),
        };
        if let Ok(adding) = added {
            self.state = State::Adding(adding);
        }
    }

    fn find(&mut self, surroundings: &mut Surroundings<'_>) -> Result<usize, Finding> {
        let State::Adding(adding) = &mut self.state else {
            return Ok(0);
        };
        match adding.poll() {
            Ok(None) => Ok(0),
            Ok(Some(handle)) => {
                for destination in &self.plan.destinations {
                    self.destinations
                        .extend(handle.add_destination(destination));
                }
                let host = &surroundings.hosts[self.plan.host];
                let origin = (host.id(), host.starts(), handle.original_registration_id());
                let number = surroundings
                    .truth
                    .open_publication(origin, || handle.record());
                self.state = State::Open(handle, number);
                Ok(1)
            }
            // The driver may be gone; a refusal is nothing that a schedule asks for.
            Err(Error::Registration {
                code: ErrorCode::ResourceTemporarilyUnavailable,
                ..
            }) => {
                self.adds_from_ns = surroundings.clock.now_ns() + RETRY_NS;
                self.state = State::Away;
                Ok(1)
            }
            Err(Error::Registration { code, message, .. }) => Err(format!(
                "publication on {} refused: {code:?} {message}",
                self.plan.channel
            )),
            Err(_) => {
                self.state = State::Away;
                Ok(1)
            }
        }
    }

    fn offer(&mut self, surroundings: &mut Surroundings<'_>) -> Result<usize, Finding> {
        let State::Open(handle, number) = &self.state else {
            return Ok(0);
        };
        let mut taken = 0;
        let most = match self.plan.equal_length {
            Some(_) => EQUAL_MESSAGES_PER_TURN,
            None => MESSAGES_PER_TURN,
        };
        while self.backlog > 0 && taken < most {
            let (random, plan) = (&mut self.random, &self.plan);
            let length = *self.next_length.get_or_insert_with(|| {
                plan.equal_length
                    .unwrap_or_else(|| message_length(random, plan.max_message_length))
            });
            if self.plan.aborts_one_in > 0 && self.aborts.u32(..self.plan.aborts_one_in) == 0 {
                handle.abort_claim(length);
            }
            let message = surroundings.truth.next_message(*number, length);
            let (before, limit) = handle.position_and_limit();
            match handle.offer(&message.bytes(surroundings.seed)) {
                Ok(position) if before >= limit => {
                    return Err(format!(
                        "{message:?} was taken at {before}, beyond the limit {limit}: {position}"
                    ));
                }
                Ok(position) => surroundings.truth.on_published(message, position),
                Err(AppendError::Closed) => {
                    self.state = State::Away;
                    return Ok(taken + 1);
                }
                Err(
                    AppendError::NotConnected
                    | AppendError::BackPressured
                    | AppendError::AdminAction,
                ) => break,
                Err(error) => return Err(format!("offer failed: {error}")),
            }
            self.next_length = None;
            self.backlog -= 1;
            taken += 1;
        }
        Ok(taken)
    }
}

/// Mostly short messages, and some that need several frames.
fn message_length(random: &mut Rng, max: usize) -> usize {
    match random.u8(..10) {
        0 => random.usize(HEADER_LENGTH..=max),
        1 | 2 => random.usize(HEADER_LENGTH..=max.min(1_024)),
        _ => random.usize(HEADER_LENGTH..=256),
    }
}

impl Handle {
    fn offer(&self, message: &[u8]) -> Result<i64, AppendError> {
        match self {
            Handle::Shared(publication) => publication.offer(message),
            Handle::Exclusive(publication) => {
                publication.offer(message).map_err(|error| match error {
                    OfferError::Append(error) => error,
                    OfferError::InUse => unreachable!("there is one thread"),
                })
            }
        }
    }

    /// Claims as much of `length` bytes as fits into one frame, and lets `finish` do the rest.
    fn claim(&self, length: usize, finish: impl FnOnce(Claim<'_, SharedBuffer>)) {
        match self {
            Handle::Shared(publication) => {
                let length = length.min(publication.max_payload_length());
                publication.try_claim(length).ok().map(finish);
            }
            Handle::Exclusive(publication) => {
                let length = length.min(publication.max_payload_length());
                publication.try_claim(length).ok().map(finish);
            }
        }
    }

    /// Aborts a claim that is full of what looks like frames of this stream.
    fn abort_claim(&self, length: usize) {
        let (stream, positions) = self.stream();
        self.claim(length, |claim| {
            let mut at = claim.position() - claim.payload_length().next_multiple_of(32) as i64;
            for offset in (0..claim.payload_length() / DataHeader::LENGTH)
                .map(|number| number * DataHeader::LENGTH)
            {
                let header = DataHeader {
                    frame_length: DataHeader::LENGTH as i32,
                    flags: flags::UNFRAGMENTED,
                    is_padding: false,
                    term_offset: positions.term_offset(at) as i32,
                    session_id: stream.session_id,
                    stream_id: stream.stream_id,
                    term_id: positions.term_id(at),
                    reserved_value: 0,
                };
                let mut bytes = [0; DataHeader::LENGTH];
                header.encode(&mut bytes);
                claim.put(offset, &bytes);
                at += DataHeader::LENGTH as i64;
            }
            claim.abort();
        });
    }

    fn stream(&self) -> (StreamKey, Positions) {
        macro_rules! stream {
            ($publication:expr) => {
                (
                    StreamKey {
                        session_id: $publication.session_id(),
                        stream_id: $publication.stream_id(),
                    },
                    Positions::new(
                        $publication.term_buffer_length() as usize,
                        $publication.initial_term_id(),
                    )
                    .expect("a log has a valid term length"),
                )
            };
        }
        match self {
            Handle::Shared(publication) => stream!(publication),
            Handle::Exclusive(publication) => stream!(publication),
        }
    }

    fn position_and_limit(&self) -> (i64, i64) {
        let (position, limit) = match self {
            Handle::Shared(publication) => (publication.position(), publication.position_limit()),
            Handle::Exclusive(publication) => {
                (publication.position(), publication.position_limit())
            }
        };
        (position.unwrap_or(0), limit.unwrap_or(i64::MAX))
    }

    fn is_connected(&self) -> bool {
        match self {
            Handle::Shared(publication) => publication.is_connected(),
            Handle::Exclusive(publication) => publication.is_connected(),
        }
    }

    fn revoke(&self) {
        match self {
            Handle::Shared(publication) => publication.revoke(),
            Handle::Exclusive(publication) => publication.revoke(),
        }
    }

    /// Adds a destination. Its success shows in what arrives there.
    fn add_destination(&self, channel: &str) -> Option<PendingOperation<i64>> {
        match self {
            Handle::Shared(publication) => publication.async_add_destination(channel).ok(),
            Handle::Exclusive(publication) => publication.async_add_destination(channel).ok(),
        }
    }

    fn original_registration_id(&self) -> i64 {
        match self {
            Handle::Shared(publication) => publication.original_registration_id(),
            Handle::Exclusive(publication) => publication.original_registration_id(),
        }
    }

    fn record(&self) -> PublicationRecord {
        let (stream, positions) = self.stream();
        macro_rules! record {
            ($publication:expr) => {
                PublicationRecord::new(
                    stream,
                    $publication.position().unwrap_or_default(),
                    positions,
                    $publication.max_payload_length(),
                )
            };
        }
        match self {
            Handle::Shared(publication) => record!(publication),
            Handle::Exclusive(publication) => record!(publication),
        }
    }
}
