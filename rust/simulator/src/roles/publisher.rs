//! [`Publisher`]: adds a publication, and publishes the messages of the schedule.

use aeron_client::{
    Aeron, AppendError, BufferClaim, Error, ExclusivePublication, OfferError, PendingOperation,
    Publication,
};
use aeron_memory::log::Positions;
use aeron_protocol::frame::{DataHeader, flags};
use fastrand::Rng;

use super::{
    CurrentDriver, Graveyard, MessageCounter, MissingDestinations, RETRY_NS, Reconnections,
    RoleEnvironment, add_missing, client_context, is_temporary,
};
use crate::host::Host;
use crate::network::HostId;
use crate::payload::HEADER_LENGTH;
use crate::truth::{ChannelStream, Finding, PublicationRecord};

/// Maximum number of messages that a publisher offers in one turn.
const MESSAGES_PER_TURN: usize = 8;
/// Maximum number of messages of equal length that a publisher offers in one turn.
const EQUAL_MESSAGES_PER_TURN: usize = 64;

/// Settings of a publisher.
#[derive(Clone, Debug)]
pub struct PublisherPlan {
    /// Host of the publisher.
    pub host: HostId,
    /// Channel of the publication.
    pub channel: String,
    /// Stream id.
    pub stream_id: i32,
    /// Whether the publication is exclusive.
    pub is_exclusive: bool,
    /// Destinations to add to a publication with manual control.
    pub destinations: Vec<String>,
    /// Maximum message length in bytes.
    pub max_message_length: usize,
    /// Length of all messages, if they have the same length. The publisher then offers long runs, so that GSO batches
    /// are long.
    pub equal_length: Option<usize>,
    /// Average number of messages from one aborted claim to the next; 0 for no aborted claims.
    pub aborts_one_in: u32,
    /// Whether the publisher's client has an open claim at its death.
    pub dies_in_claim: bool,
    /// Whether the publisher's client reconnects. If it does, whether it notices the end of its driver at once.
    pub reconnects: Option<bool>,
}

/// See the [module](super).
pub struct Publisher {
    plan: PublisherPlan,
    random: Rng,
    /// Random numbers that select the claims to abort.
    aborts: Rng,
    is_wanted: bool,
    client: Option<Aeron>,
    driver: CurrentDriver,
    reconnections: Reconnections,
    /// Counts the published messages, if the client reconnects.
    counter: MessageCounter,
    state: PublisherState,
    /// Destinations that the driver has not confirmed, with their pending commands.
    missing: MissingDestinations<i64>,
    /// Time at which the publisher repeats a request that the driver has temporarily refused.
    adds_from_ns: i64,
    backlog: usize,
    /// Length of the next message, kept until the publication accepts it.
    next_length: Option<usize>,
    /// Length of all messages while a probe is in progress.
    probe_length: Option<usize>,
}

enum PublisherState {
    Away,
    Adding(PendingPublication),
    Open(Open),
}

/// A publication. `number` is that of the publication in the current driver, and `generation` that of the driver.
struct Open {
    handle: Handle,
    number: u32,
    generation: u64,
}

enum PendingPublication {
    Shared(PendingOperation<Publication>),
    Exclusive(PendingOperation<ExclusivePublication>),
}

impl PendingPublication {
    fn poll(&mut self) -> Result<Option<Handle>, Error> {
        match self {
            PendingPublication::Shared(operation) => Ok(operation.poll()?.map(Handle::Shared)),
            PendingPublication::Exclusive(operation) => {
                Ok(operation.poll()?.map(Handle::Exclusive))
            }
        }
    }
}

enum Handle {
    Shared(Publication),
    Exclusive(ExclusivePublication),
}

impl Publisher {
    /// Creates a publisher that is not present yet.
    pub fn new(plan: PublisherPlan, seed: u64) -> Self {
        Self {
            plan,
            random: Rng::with_seed(seed),
            aborts: Rng::with_seed(!seed),
            is_wanted: false,
            client: None,
            driver: CurrentDriver::default(),
            reconnections: Reconnections::default(),
            counter: MessageCounter::default(),
            state: PublisherState::Away,
            missing: Vec::new(),
            adds_from_ns: i64::MIN,
            backlog: 0,
            next_length: None,
            probe_length: None,
        }
    }

    /// Returns the host of the publisher.
    pub fn host(&self) -> HostId {
        self.plan.host
    }

    /// Sets whether the publisher must be present.
    pub fn set_wanted(&mut self, is_wanted: bool) {
        self.is_wanted = is_wanted;
    }

    /// Adds `count` messages to those that the publisher must publish.
    pub fn publish(&mut self, count: usize) {
        self.backlog += count;
    }

    /// Adds `count` messages of `length` bytes. Until the next call, all messages have this length. If `length` is 0,
    /// the messages have the lengths of the plan again.
    pub fn publish_long(&mut self, count: usize, length: usize) {
        self.backlog += count;
        self.probe_length = Some(length).filter(|length| *length > 0);
        self.next_length = None;
    }

    /// Returns the registration id of the publisher's publication, if it has one.
    pub fn registration_id(&self) -> Option<i64> {
        match &self.state {
            PublisherState::Open(open) => Some(open.handle.original_registration_id()),
            _ => None,
        }
    }

    /// Returns the number of messages that the publication has not accepted yet.
    pub fn backlog(&self) -> usize {
        self.backlog
    }

    /// Returns the number of the publisher's publication, if it has one.
    pub fn publication(&self) -> Option<u32> {
        match &self.state {
            PublisherState::Open(open) => Some(open.number),
            _ => None,
        }
    }

    /// Whether the publisher's publication has a receiver.
    pub fn is_connected(&self) -> bool {
        match &self.state {
            PublisherState::Open(open) => open.handle.is_connected(),
            _ => false,
        }
    }

    /// Simulates the death of the publisher's client.
    pub fn crash(&mut self, graveyard: &mut Graveyard) {
        if let (PublisherState::Open(open), true) = (&self.state, self.plan.dies_in_claim) {
            open.handle.claim(HEADER_LENGTH, BufferClaim::abandon);
        }
        if let Some(client) = self.client.take() {
            let state = std::mem::replace(&mut self.state, PublisherState::Away);
            let kept = (
                std::mem::take(&mut self.missing),
                std::mem::take(&mut self.counter),
            );
            graveyard.bury(client, (state, kept));
        }
    }

    /// Claims a message and never finishes it.
    pub fn abandon_claim(&mut self) {
        // The driver does not unblock an exclusive publication while its client is alive.
        if let PublisherState::Open(open) = &self.state
            && matches!(open.handle, Handle::Shared(_))
        {
            open.handle.claim(HEADER_LENGTH, BufferClaim::abandon);
        }
    }

    /// Revokes the publisher's publication. This ends the stream without waiting for receivers.
    pub fn revoke(&mut self) {
        if let PublisherState::Open(open) = std::mem::replace(&mut self.state, PublisherState::Away)
        {
            open.handle.revoke();
        }
    }

    /// Whether the publisher's client is connected to the running driver, not to an earlier one. A client detects the
    /// death of its driver late.
    pub fn is_client_of_running_driver(&self, hosts: &[Host]) -> bool {
        self.client.is_some() && self.driver.start() == Some(hosts[self.plan.host].starts())
    }

    /// Does the work that is possible now. Returns a work count.
    ///
    /// # Errors
    /// The client broke a rule.
    pub fn do_work(&mut self, environment: &mut RoleEnvironment<'_>) -> Result<usize, Finding> {
        if !self.is_wanted {
            self.leave();
            return Ok(0);
        }
        if self.client.is_none() {
            let host = &environment.hosts[self.plan.host];
            let context = client_context(environment.clock, self.plan.host);
            self.reconnections = Reconnections::default();
            self.client = self
                .reconnections
                .connect(host, context, self.plan.reconnects);
            self.driver = CurrentDriver::default();
        }
        let Some(client) = self.client.clone() else {
            return Ok(0);
        };
        let mut work_count = client.do_work();
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
        self.go_on(environment);
        for report in self.reconnections.take_reports() {
            environment.truth.on_report(&report, self.publication())?;
        }
        if self.plan.reconnects.is_some() {
            self.counter.check(&client, self.reconnections.is_over())?;
        }
        self.add_missing(environment.clock.now_ns());
        // The next driver has refused the publication for too long, for example while the lookup of a name fails.
        if matches!(&self.state, PublisherState::Open(open) if open.handle.is_closed()) {
            self.state = PublisherState::Away;
        }
        match &self.state {
            PublisherState::Away if environment.clock.now_ns() < self.adds_from_ns => {}
            PublisherState::Away => {
                self.add(&client);
                work_count += 1;
            }
            PublisherState::Adding(_) => work_count += self.find(environment)?,
            PublisherState::Open(..) => {
                work_count += self.offer(environment)?;
            }
        }
        Ok(work_count)
    }

    /// Registers the publication that the same object has in the next driver.
    fn go_on(&mut self, environment: &mut RoleEnvironment<'_>) {
        let PublisherState::Open(open) = &mut self.state else {
            return;
        };
        let Some(start) = self.driver.start() else {
            return;
        };
        if open.generation != open.handle.generation() {
            let host = environment.hosts[self.plan.host].id();
            let origin = (host, start, open.handle.original_registration_id());
            open.generation = open.handle.generation();
            open.number = environment
                .truth
                .open_publication(origin, || open.handle.record());
        }
    }

    fn leave(&mut self) {
        self.state = PublisherState::Away;
        if let Some(client) = self.client.take() {
            client.close();
        }
        self.counter = MessageCounter::default();
        self.missing.clear();
    }

    fn add(&mut self, client: &Aeron) {
        let (channel, stream_id) = (&self.plan.channel, self.plan.stream_id);
        let added = match self.plan.is_exclusive {
            true => client
                .async_add_exclusive_publication(channel, stream_id)
                .map(PendingPublication::Exclusive),
            false => client
                .async_add_publication(channel, stream_id)
                .map(PendingPublication::Shared),
        };
        if let Ok(adding) = added {
            self.state = PublisherState::Adding(adding);
        }
    }

    fn find(&mut self, environment: &mut RoleEnvironment<'_>) -> Result<usize, Finding> {
        let PublisherState::Adding(adding) = &mut self.state else {
            return Ok(0);
        };
        match adding.poll() {
            Ok(None) => Ok(0),
            Ok(Some(handle)) => {
                let destinations = self.plan.destinations.iter().cloned();
                self.missing = destinations.map(|channel| (channel, None)).collect();
                let host = &environment.hosts[self.plan.host];
                let start = self.driver.start().unwrap_or_else(|| host.starts());
                let origin = (host.id(), start, handle.original_registration_id());
                let number = environment
                    .truth
                    .open_publication(origin, || handle.record());
                self.state = PublisherState::Open(Open {
                    generation: handle.generation(),
                    handle,
                    number,
                });
                Ok(1)
            }
            Err(error) => {
                let resource = format!("publication on {}", self.plan.channel);
                if is_temporary(error, &resource)? {
                    self.adds_from_ns = environment.clock.now_ns() + RETRY_NS;
                }
                self.state = PublisherState::Away;
                Ok(1)
            }
        }
    }

    fn add_missing(&mut self, now_ns: i64) {
        if let PublisherState::Open(Open { handle, .. }) = &self.state {
            let add = |channel: &str| handle.add_destination(channel);
            add_missing(&mut self.missing, &mut self.adds_from_ns, now_ns, add);
        }
    }

    fn offer(&mut self, environment: &mut RoleEnvironment<'_>) -> Result<usize, Finding> {
        let PublisherState::Open(Open { handle, number, .. }) = &self.state else {
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
                self.probe_length
                    .or(plan.equal_length)
                    .unwrap_or_else(|| message_length(random, plan.max_message_length))
            });
            if self.plan.aborts_one_in > 0 && self.aborts.u32(..self.plan.aborts_one_in) == 0 {
                handle.abort_claim(length);
            }
            let message = environment.truth.next_message(*number, length);
            let (before, limit) = handle.position_and_limit();
            match handle.offer(&message.bytes(environment.seed)) {
                Ok(position) if before >= limit => {
                    return Err(format!(
                        "{message:?} was taken at {before}, beyond the limit {limit}: {position}"
                    ));
                }
                Ok(position) => {
                    environment.truth.on_published(message, position);
                    self.counter.add();
                }
                Err(AppendError::Closed) => {
                    self.state = PublisherState::Away;
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

/// Returns a random message length. Most messages are short, and some may have several frames.
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

    /// Claims a frame for at most `length` bytes, and passes the claim to `finish`.
    fn claim(&self, length: usize, finish: impl FnOnce(BufferClaim)) {
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

    /// Aborts a claim that contains bytes like those of frames of this stream.
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

    fn stream(&self) -> (ChannelStream, Positions) {
        macro_rules! stream {
            ($publication:expr) => {
                (
                    ChannelStream {
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

    /// Adds a destination.
    fn add_destination(&self, channel: &str) -> Option<PendingOperation<i64>> {
        match self {
            Handle::Shared(publication) => publication.async_add_destination(channel).ok(),
            Handle::Exclusive(publication) => publication.async_add_destination(channel).ok(),
        }
    }

    fn is_closed(&self) -> bool {
        match self {
            Handle::Shared(publication) => publication.is_closed(),
            Handle::Exclusive(publication) => publication.is_closed(),
        }
    }

    fn generation(&self) -> u64 {
        match self {
            Handle::Shared(publication) => publication.generation(),
            Handle::Exclusive(publication) => publication.generation(),
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
