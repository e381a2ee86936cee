//! [`Conversation`]: clients that send requests, and a server that replies to each of them on a response channel.
//!
//! The server adds a publication with `control-mode=response` for the image of each client's requests, and sends each
//! request back. If a client gets no reply for some time, it closes its publication and its subscription, and begins
//! again: a response subscription takes the responses of one session only.

use std::collections::{BTreeMap, VecDeque};

use aeron_client::{
    Aeron, Error, ExclusivePublication, FragmentAssembler, Image, OfferError, PendingOperation,
    Subscription,
};
use fastrand::Rng;

use super::{Graveyard, RETRY_NS, RoleEnvironment, client_context};
use crate::network::HostId;
use crate::payload::{HEADER_LENGTH, Message};
use crate::schedule::SECOND;
use crate::truth::Finding;

/// Maximum number of requests without a reply.
const MAX_OUTSTANDING: u32 = 8;
/// Number of replies after which a conversation counts as connected again.
const ENOUGH_REPLIES: u32 = 16;
/// Time without a reply after which a client begins again, in nanoseconds.
const PATIENCE_NS: i64 = 3 * SECOND;
/// Time between two requests of a client, in nanoseconds.
const REQUEST_INTERVAL_NS: i64 = 20_000_000;
/// Maximum number of fragments that are read in one turn.
const FRAGMENTS_PER_TURN: usize = 16;
/// Number of the first client's requests as a publication. No publication of a stream has this number.
const FIRST_NUMBER: u32 = 1 << 30;

/// Settings of a conversation.
#[derive(Clone, Debug)]
pub struct ConversationPlan {
    /// Host of the server.
    pub server: HostId,
    /// Hosts of the clients.
    pub clients: Vec<HostId>,
    /// Channel of the requests.
    pub request_channel: String,
    /// Channel of the responses.
    pub response_channel: String,
    /// Stream id of the requests. The responses have the next one.
    pub stream_id: i32,
    /// Maximum length of a request in bytes.
    pub max_message_length: usize,
}

/// See the [module](self).
pub struct Conversation {
    server: Server,
    clients: Vec<Requester>,
}

/// A server or a client: a process with a client of the driver on its host.
struct Party {
    host: HostId,
    client: Option<Aeron>,
    is_wanted: bool,
    /// Time at which the process repeats a request that its driver has refused.
    adds_from_ns: i64,
}

struct Server {
    process: Party,
    plan: ConversationPlan,
    state: ServerState,
    /// The reply streams, by the correlation id of the image of the requests.
    replies: BTreeMap<i64, ReplyStream>,
    /// The last refusal of a publication. It helps to find the cause of a finding.
    refusal: Option<String>,
}

enum ServerState {
    Away,
    Adding(PendingOperation<Subscription>),
    Open(Subscription),
}

/// The requests of an image, and the publication for the replies.
#[derive(Default)]
struct ReplyStream {
    assembler: FragmentAssembler,
    adding: Option<PendingOperation<ExclusivePublication>>,
    publication: Option<ExclusivePublication>,
    queue: VecDeque<Vec<u8>>,
}

struct Requester {
    process: Party,
    plan: ConversationPlan,
    random: Rng,
    /// Number of the requests as a publication.
    number: u32,
    state: RequesterState,
    /// Number of times that the requester has begun.
    beginnings: i64,
    /// Number of requests sent.
    sent: u32,
    /// Number of requests without a reply, as far as the requester still waits for it.
    outstanding: u32,
    /// Number of replies since the last call of `expect_replies`.
    replies: u32,
    /// Time of the last reply or beginning.
    since_ns: i64,
    sends_from_ns: i64,
}

enum RequesterState {
    Away,
    Subscribing(PendingOperation<Subscription>),
    Publishing(Subscription, PendingOperation<ExclusivePublication>),
    Open(OpenRequester),
}

struct OpenRequester {
    responses: Subscription,
    requests: ExclusivePublication,
    /// The image of the responses, and the number of the next reply; `None` before the first reply.
    reading: Option<(i64, u32)>,
    assembler: FragmentAssembler,
}

impl Conversation {
    /// Creates a conversation of processes that are not present yet.
    pub fn new(plan: &ConversationPlan, seed: u64) -> Self {
        let clients = plan.clients.iter().enumerate();
        Self {
            server: Server {
                process: Party::new(plan.server),
                plan: plan.clone(),
                state: ServerState::Away,
                replies: BTreeMap::new(),
                refusal: None,
            },
            clients: clients
                .map(|(index, host)| Requester {
                    process: Party::new(*host),
                    plan: plan.clone(),
                    random: Rng::with_seed(seed ^ index as u64),
                    number: FIRST_NUMBER + index as u32,
                    state: RequesterState::Away,
                    beginnings: 0,
                    sent: 0,
                    outstanding: 0,
                    replies: 0,
                    since_ns: i64::MIN,
                    sends_from_ns: i64::MIN,
                })
                .collect(),
        }
    }

    /// Returns the host of each process.
    pub fn hosts(&self) -> impl Iterator<Item = HostId> {
        let clients = self.clients.iter().map(|client| client.process.host);
        clients.chain([self.server.process.host])
    }

    /// Sets whether all processes must be present.
    pub fn set_wanted(&mut self, is_wanted: bool) {
        let clients = self.clients.iter_mut().map(|client| &mut client.process);
        clients
            .chain([&mut self.server.process])
            .for_each(|process| process.is_wanted = is_wanted);
    }

    /// Simulates the death of a process: of the server if `victim` is 0, otherwise of a client. The next process starts
    /// at once.
    pub fn crash(&mut self, victim: usize, graveyard: &mut Graveyard) {
        match victim.checked_sub(1) {
            None => self.server.crash(graveyard),
            Some(client) => self.clients[client].crash(graveyard),
        }
    }

    /// Forgets the replies until now: [`check`](Self::check) then waits for new replies.
    pub fn expect_replies(&mut self) {
        self.clients
            .iter_mut()
            .for_each(|client| client.replies = 0);
    }

    /// Does the work that is possible now. Returns a work count.
    ///
    /// # Errors
    /// A reply is not the reply to the next request of its client.
    pub fn do_work(&mut self, environment: &RoleEnvironment<'_>) -> Result<usize, Finding> {
        let mut work_count = self.server.do_work(environment);
        for client in &mut self.clients {
            work_count += client.do_work(environment)?;
        }
        Ok(work_count)
    }

    /// Checks that each client has got enough replies. Returns the number of beginnings of each client.
    ///
    /// # Errors
    /// A client waits for replies.
    pub fn check(&self) -> Result<Vec<i64>, Finding> {
        let waiting = |client: &&Requester| client.replies < ENOUGH_REPLIES;
        match self.clients.iter().find(waiting) {
            None => Ok(self.clients.iter().map(|it| it.beginnings).collect()),
            Some(client) => Err(format!(
                "client {} on host {} got {} replies long after the network has healed, refusal {:?}",
                client.number, client.process.host, client.replies, self.server.refusal
            )),
        }
    }
}

impl Party {
    fn new(host: HostId) -> Self {
        Self {
            host,
            client: None,
            is_wanted: true,
            adds_from_ns: i64::MIN,
        }
    }

    /// Returns the client if it is connected, and whether it has just been closed. Connects it if possible.
    fn run(&mut self, environment: &RoleEnvironment<'_>) -> (Option<Aeron>, usize) {
        if self.client.is_none() && self.is_wanted {
            let host = &environment.hosts[self.host];
            self.client = host.connect(client_context(environment.clock, self.host));
        }
        let Some(client) = self.client.clone() else {
            return (None, 0);
        };
        let work_count = client.do_work();
        if client.is_closed() || !self.is_wanted {
            self.client = None;
            client.close();
            return (None, 1);
        }
        (Some(client), work_count)
    }

    fn retry(&mut self, now_ns: i64) {
        self.adds_from_ns = now_ns + RETRY_NS;
    }
}

impl Server {
    fn crash(&mut self, graveyard: &mut Graveyard) {
        if let Some(client) = self.process.client.take() {
            let state = std::mem::replace(&mut self.state, ServerState::Away);
            graveyard.bury(client, (state, std::mem::take(&mut self.replies)));
        }
    }

    fn do_work(&mut self, environment: &RoleEnvironment<'_>) -> usize {
        let (client, work_count) = self.process.run(environment);
        let Some(client) = client else {
            self.state = ServerState::Away;
            self.replies.clear();
            return work_count;
        };
        let now_ns = environment.clock.now_ns();
        match &mut self.state {
            ServerState::Away if now_ns < self.process.adds_from_ns => work_count,
            ServerState::Away => {
                let (channel, stream_id) = (&self.plan.request_channel, self.plan.stream_id);
                if let Ok(adding) = client.async_add_subscription(channel, stream_id) {
                    self.state = ServerState::Adding(adding);
                }
                work_count + 1
            }
            ServerState::Adding(adding) => match adding.poll() {
                Ok(None) => work_count,
                Ok(Some(subscription)) => {
                    self.state = ServerState::Open(subscription);
                    work_count + 1
                }
                Err(_) => {
                    self.state = ServerState::Away;
                    self.process.retry(now_ns);
                    work_count + 1
                }
            },
            ServerState::Open(_) => work_count + self.serve(&client, now_ns),
        }
    }

    /// Reads requests, and sends replies.
    fn serve(&mut self, client: &Aeron, now_ns: i64) -> usize {
        let ServerState::Open(subscription) = &self.state else {
            return 0;
        };
        let images = subscription.images();
        let is_there = |id: i64| {
            images
                .iter()
                .any(|image: &Image| image.correlation_id() == id)
        };
        self.replies.retain(|id, _| is_there(*id));
        let replies = &mut self.replies;
        let polled = subscription.poll(
            |fragment| {
                let id = fragment.header().image().correlation_id();
                let ReplyStream {
                    assembler, queue, ..
                } = replies.entry(id).or_default();
                assembler.on_fragment(fragment, |request| queue.push_back(request.to_vec()));
            },
            FRAGMENTS_PER_TURN,
        );
        let mut work_count = polled.unwrap_or(0);
        for (id, stream) in &mut self.replies {
            work_count += stream.send();
            match stream.add(client, &self.plan, *id, now_ns >= self.process.adds_from_ns) {
                Ok(count) => work_count += count,
                Err(error) => {
                    self.refusal = Some(error.to_string());
                    self.process.retry(now_ns);
                }
            }
        }
        work_count
    }
}

impl ReplyStream {
    /// Adds the publication of the replies, if it is missing. Returns a work count.
    ///
    /// # Errors
    /// The driver refuses the publication.
    fn add(
        &mut self,
        client: &Aeron,
        plan: &ConversationPlan,
        image: i64,
        may_add: bool,
    ) -> Result<usize, Error> {
        if self.publication.is_some() {
            return Ok(0);
        }
        match &mut self.adding {
            None if !may_add => Ok(0),
            None => {
                let channel = format!("{}|response-correlation-id={image}", plan.response_channel);
                let adding = client.async_add_exclusive_publication(&channel, plan.stream_id + 1);
                self.adding = Some(adding?);
                Ok(1)
            }
            Some(adding) => match adding.poll() {
                Ok(None) => Ok(0),
                Ok(publication) => {
                    self.publication = publication;
                    self.adding = None;
                    Ok(1)
                }
                Err(error) => {
                    self.adding = None;
                    Err(error)
                }
            },
        }
    }

    /// Sends replies. Returns their number.
    fn send(&mut self) -> usize {
        let Some(publication) = &self.publication else {
            return 0;
        };
        let mut sent = 0;
        while let Some(reply) = self.queue.front() {
            if publication.offer(reply).is_err() {
                break;
            }
            self.queue.pop_front();
            sent += 1;
        }
        sent
    }
}

impl Requester {
    fn crash(&mut self, graveyard: &mut Graveyard) {
        let state = std::mem::replace(&mut self.state, RequesterState::Away);
        if let Some(client) = self.process.client.take() {
            graveyard.bury(client, state);
        }
    }

    fn do_work(&mut self, environment: &RoleEnvironment<'_>) -> Result<usize, Finding> {
        let (client, work_count) = self.process.run(environment);
        let Some(client) = client else {
            self.state = RequesterState::Away;
            return Ok(work_count);
        };
        let now_ns = environment.clock.now_ns();
        if now_ns > self.since_ns.saturating_add(PATIENCE_NS) {
            self.state = RequesterState::Away;
        }
        if matches!(self.state, RequesterState::Away) {
            if now_ns < self.process.adds_from_ns {
                return Ok(work_count);
            }
            self.process.retry(now_ns);
            self.begin(&client, now_ns);
            return Ok(work_count + 1);
        }
        match self.go_on(&client, environment) {
            Ok(result) => result.map(|count| work_count + count),
            // The driver or the client has ended, or an address is still in use.
            Err(_) => {
                self.state = RequesterState::Away;
                self.process.retry(now_ns);
                Ok(work_count + 1)
            }
        }
    }

    fn begin(&mut self, client: &Aeron, now_ns: i64) {
        let (channel, stream_id) = (&self.plan.response_channel, self.plan.stream_id + 1);
        if let Ok(adding) = client.async_add_subscription(channel, stream_id) {
            self.state = RequesterState::Subscribing(adding);
            self.beginnings += 1;
            self.since_ns = now_ns;
            self.outstanding = 0;
        }
    }

    /// Does the next step of the requester.
    ///
    /// # Errors
    /// A resource cannot be added.
    fn go_on(
        &mut self,
        client: &Aeron,
        environment: &RoleEnvironment<'_>,
    ) -> Result<Result<usize, Finding>, Error> {
        match std::mem::replace(&mut self.state, RequesterState::Away) {
            RequesterState::Away => Ok(Ok(0)),
            RequesterState::Subscribing(mut adding) => {
                self.state = match adding.poll()? {
                    None => RequesterState::Subscribing(adding),
                    Some(responses) => {
                        let channel = format!(
                            "{}|response-correlation-id={}",
                            self.plan.request_channel,
                            responses.registration_id()
                        );
                        let stream_id = self.plan.stream_id;
                        let adding = client.async_add_exclusive_publication(&channel, stream_id)?;
                        RequesterState::Publishing(responses, adding)
                    }
                };
                Ok(Ok(0))
            }
            RequesterState::Publishing(responses, mut adding) => {
                self.state = match adding.poll()? {
                    None => RequesterState::Publishing(responses, adding),
                    Some(requests) => RequesterState::Open(OpenRequester {
                        responses,
                        requests,
                        reading: None,
                        assembler: FragmentAssembler::of_one_stream(),
                    }),
                };
                Ok(Ok(0))
            }
            RequesterState::Open(mut open) => {
                let result = self.talk(&mut open, environment);
                self.state = RequesterState::Open(open);
                Ok(result)
            }
        }
    }

    /// Reads replies, and sends a request if one is due.
    ///
    /// # Errors
    /// A reply is not the next one.
    fn talk(
        &mut self,
        open: &mut OpenRequester,
        environment: &RoleEnvironment<'_>,
    ) -> Result<usize, Finding> {
        let now_ns = environment.clock.now_ns();
        let (assembler, reading) = (&mut open.assembler, &mut open.reading);
        let (number, sent) = (self.number, self.sent);
        let mut found = Ok(0);
        let polled = open.responses.poll(
            |fragment| {
                let image = fragment.header().image().correlation_id();
                assembler.on_fragment(fragment, |reply| {
                    let message = Message::recognise(&reply.to_vec(), environment.seed);
                    let result = check_reply(message, number, image, reading, sent);
                    if let Ok(replies) = &mut found {
                        *replies += 1;
                        found = result.map(|()| *replies);
                    }
                });
            },
            FRAGMENTS_PER_TURN,
        );
        let replies = found?;
        if replies > 0 {
            self.replies += replies;
            self.outstanding = self.outstanding.saturating_sub(replies);
            self.since_ns = now_ns;
        }
        let work_count = polled.unwrap_or(0);
        if now_ns < self.sends_from_ns || self.outstanding >= MAX_OUTSTANDING {
            return Ok(work_count);
        }
        let length = self
            .random
            .usize(HEADER_LENGTH..=self.plan.max_message_length);
        let message = Message {
            publication: self.number,
            number: self.sent,
            length,
        };
        match open.requests.offer(&message.bytes(environment.seed)) {
            Ok(_) => {
                self.sent += 1;
                self.outstanding += 1;
                self.sends_from_ns = now_ns + REQUEST_INTERVAL_NS;
                Ok(work_count + 1)
            }
            Err(OfferError::InUse) => unreachable!("there is one thread"),
            Err(OfferError::Append(_)) => Ok(work_count),
        }
    }
}

/// Checks that a reply is the reply to the next request of a client. The first reply of an image may be to any request.
fn check_reply(
    message: Option<Message>,
    number: u32,
    image: i64,
    reading: &mut Option<(i64, u32)>,
    sent: u32,
) -> Result<(), Finding> {
    let expected = reading.filter(|(of, _)| *of == image).map(|(_, next)| next);
    let next = message
        .filter(|message| message.publication == number && message.number < sent)
        .filter(|message| expected.is_none_or(|expected| message.number == expected));
    match next {
        Some(message) => {
            *reading = Some((image, message.number + 1));
            Ok(())
        }
        None => Err(format!(
            "client {number} got the reply {message:?}, expected {expected:?} of {sent} requests"
        )),
    }
}
