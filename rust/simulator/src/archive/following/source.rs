//! [`FollowedSource`]: a process that publishes a stream. It does not know that the stream is recorded.

use aeron_client::{Aeron, ExclusivePublication, PendingOperation};
use fastrand::Rng;

use super::plan::FollowedStreamPlan;
use super::tape::StreamTape;
use crate::clock::VirtualClock;
use crate::host::Host;
use crate::network::HostId;
use crate::payload::{HEADER_LENGTH, Message};
use crate::roles::{Graveyard, client_context};
use crate::schedule::MS;

/// Maximum number of messages offered in one turn.
const MESSAGES_PER_TURN: usize = 8;
/// Longest time between two bursts of messages.
const BURST_INTERVAL_NS: i64 = 300 * MS;
/// Time without the driver after which the client is closed, in milliseconds.
const DRIVER_TIMEOUT_MS: u64 = 1_500;

/// See the [module](self).
pub struct FollowedSource {
    plan: FollowedStreamPlan,
    random: Rng,
    client: Option<Aeron>,
    adding: Option<PendingOperation<ExclusivePublication>>,
    publication: Option<ExclusivePublication>,
    tape: StreamTape,
    backlog: usize,
    next_length: Option<usize>,
    bursts_from_ns: i64,
    starts_from_ns: i64,
    is_stopped: bool,
}

impl FollowedSource {
    /// Creates a source that publishes from its first turn on.
    pub fn new(plan: FollowedStreamPlan, seed: u64) -> Self {
        Self {
            plan,
            random: Rng::with_seed(seed),
            client: None,
            adding: None,
            publication: None,
            tape: StreamTape::default(),
            backlog: 0,
            next_length: None,
            bursts_from_ns: i64::MIN,
            starts_from_ns: i64::MIN,
            is_stopped: false,
        }
    }

    /// Returns the host of the process.
    pub fn host(&self) -> HostId {
        self.plan.source_host
    }

    /// Returns the published messages.
    pub fn tape(&self) -> &StreamTape {
        &self.tape
    }

    /// Publishes no more messages from now on. The publication stays.
    pub fn stop(&mut self) {
        self.is_stopped = true;
    }

    /// Returns session and position of the publication, if it has one.
    pub fn position(&self) -> Option<(i32, i64)> {
        let publication = self.publication.as_ref()?;
        Some((publication.session_id(), publication.position().ok()?))
    }

    /// Simulates the death of the process. Another one starts at the given time, and publishes a new session.
    pub fn crash(&mut self, starts_from_ns: i64, graveyard: &mut Graveyard) {
        let handles = (self.adding.take(), self.publication.take());
        if let Some(client) = self.client.take() {
            graveyard.bury(client, handles);
        }
        self.starts_from_ns = starts_from_ns;
    }

    /// Does the work that is possible now. Returns a work count.
    pub fn do_work(&mut self, host: &Host, clock: &VirtualClock, seed: u64) -> usize {
        if clock.now_ns() < self.starts_from_ns {
            return 0;
        }
        if self.client.is_none() {
            let mut context = client_context(clock, host.id());
            context.keepalive_interval_ns = 200 * MS as u64;
            context.driver_timeout_ms = DRIVER_TIMEOUT_MS;
            self.client = host.connect(context);
        }
        let Some(client) = &self.client else {
            return 0;
        };
        let work_count = client.do_work();
        if client.is_closed() {
            (self.client, self.adding, self.publication) = (None, None, None);
            return 1;
        }
        if self.publication.is_some() {
            return work_count + self.offer(clock, seed);
        }
        let plan = &self.plan;
        let adding = self.adding.take().or_else(|| {
            let adding =
                client.async_add_exclusive_publication(&plan.publication_channel, plan.stream_id);
            adding.ok()
        });
        let Some(mut adding) = adding else {
            return work_count;
        };
        match adding.poll() {
            Ok(None) => self.adding = Some(adding),
            Ok(Some(publication)) => {
                let (stream_id, session_id) = (plan.stream_id, publication.session_id());
                let max_payload = publication.max_payload_length();
                self.tape.add_session(stream_id, session_id, max_payload);
                self.publication = Some(publication);
            }
            // The driver may still be closing the previous publication. The next turn tries again.
            Err(_) => {}
        }
        work_count + 1
    }

    fn offer(&mut self, clock: &VirtualClock, seed: u64) -> usize {
        let (Some(publication), Some(tape)) = (&mut self.publication, self.tape.last_mut()) else {
            return 0;
        };
        let now_ns = clock.now_ns();
        if self.backlog == 0 && now_ns >= self.bursts_from_ns {
            self.backlog = self.random.usize(1..200);
            self.bursts_from_ns = now_ns + self.random.i64(0..BURST_INTERVAL_NS);
        }
        let mut accepted = 0;
        while accepted < MESSAGES_PER_TURN.min(self.backlog) && !self.is_stopped {
            let (random, max) = (&mut self.random, self.plan.max_message_length);
            let length = *self
                .next_length
                .get_or_insert_with(|| message_length(random, max));
            let message = Message {
                publication: tape.publication,
                number: tape.count(),
                length,
            };
            let bytes = match self.plan.has_index {
                true => message.bytes_with_gaps(seed),
                false => message.bytes(seed),
            };
            let Ok(end) = publication.offer(&bytes) else {
                break;
            };
            tape.add(message, end, clock.true_ms());
            self.next_length = None;
            accepted += 1;
        }
        self.backlog -= accepted;
        // A refused message may have filled the term with padding.
        if let Ok(position) = publication.position() {
            tape.end = tape.end.max(position);
        }
        accepted
    }
}

/// Returns a random length for a message. Three of four messages have at most 300 bytes. The others may have several
/// fragments.
fn message_length(random: &mut Rng, max: usize) -> usize {
    match random.u8(..4) {
        0 => random.usize(HEADER_LENGTH..=max),
        _ => random.usize(HEADER_LENGTH..=max.min(300)),
    }
}
