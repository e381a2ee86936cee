//! [`PublishingProcess`]: a process with a recorded publisher. The process can die. Another process then continues the
//! stream.

use std::sync::{Arc, Mutex, PoisonError};

use aeron_archive::client::{
    ArchiveClientContext, RecordedOfferError, RecordedPublisher, RecordedPublisherContext,
    RecordedPublisherError, RecordedPublisherListener, RecordedPublisherStatus,
};
use aeron_client::{Aeron, AppendError};
use aeron_protocol::archive::SourceLocation;
use fastrand::Rng;

use super::tape::PublishedTape;
use crate::clock::VirtualClock;
use crate::host::Host;
use crate::network::HostId;
use crate::payload::{HEADER_LENGTH, Message};
use crate::roles::{Graveyard, Reconnections, client_context};
use crate::schedule::{MS, SECOND};
use crate::truth::Finding;

/// Maximum number of messages offered in one turn.
const MESSAGES_PER_TURN: usize = 8;
/// Average number of turns between two bursts of messages.
const TURNS_BETWEEN_BURSTS: u8 = 100;
/// Maximum time for a response of the archive.
const MESSAGE_TIMEOUT_NS: u64 = 1_500 * MS as u64;
/// Time to wait until the recording of a killed process has ended. It is long because the archive may be away
/// meanwhile.
const TAKEOVER_TIMEOUT_NS: u64 = 30 * SECOND as u64;

/// Settings of a publisher.
#[derive(Clone, Debug)]
pub struct PublishingPlan {
    /// Host of the process.
    pub host: HostId,
    /// Channels of the requests and of the responses.
    pub control: [String; 2],
    /// Channel of the stream.
    pub channel: String,
    /// Parameters of the stream: term length, MTU.
    pub parameters: String,
    /// Source location of the stream.
    pub source_location: SourceLocation,
    /// Stream id.
    pub stream_id: i32,
    /// Maximum message length in bytes.
    pub max_message_length: usize,
    /// Whether frames may contain pages of zeros, as torn frames do.
    pub has_empty_pages: bool,
    /// Length in bytes of the publisher's buffer for messages that are not recorded yet.
    pub buffer_length: usize,
    /// Whether the process after a death finds the recording by its alias. If `false`, it finds the recording by its
    /// id.
    pub is_found_by_alias: bool,
    /// Position of the first message; `None` for 0.
    pub initial_position: Option<u32>,
    /// Whether the publisher offers batches. Of a batch, only the end position is known.
    pub offers_batches: bool,
}

/// See the [module](self).
pub struct PublishingProcess {
    plan: PublishingPlan,
    /// Whether the clients reconnect, and then whether they notice the end of the driver at once.
    client_reconnects: Option<bool>,
    random: Rng,
    process: Option<Process>,
    tape: PublishedTape,
    starts_from_ns: i64,
    is_stopping: bool,
    is_done: bool,
    backlog: usize,
    /// Errors that the publishers reported. They help to find the cause of a finding.
    errors: Arc<Mutex<Vec<String>>>,
    reconnects: u64,
    offered_again: u64,
}

struct Process {
    publisher: RecordedPublisher,
    status: RecordedPublisherStatus,
    client: ClientSlot,
    /// Whether the tape was compared with the end of the recording after the start of this process.
    has_continued: bool,
    next_message: Option<Message>,
}

/// Passes a client to the connector of a publisher.
#[derive(Clone, Default)]
struct ClientSlot(Arc<Mutex<Slot>>);

#[derive(Default)]
struct Slot {
    is_wanted: bool,
    offered: Option<Aeron>,
    /// The client that the publisher uses.
    taken: Option<Aeron>,
}

struct PublisherReports(Arc<Mutex<Vec<String>>>);

impl RecordedPublisherListener for PublisherReports {
    fn on_reconnect(&mut self, recording_id: i64, position: i64) {
        lock(&self.0).push(format!("recording {recording_id} goes on at {position}"));
    }

    fn on_error(&mut self, error: &RecordedPublisherError) {
        lock(&self.0).push(error.to_string());
    }
}

impl ClientSlot {
    fn take(&self) -> Option<Aeron> {
        let mut slot = lock(&self.0);
        let client = slot.offered.take();
        slot.is_wanted = client.is_none();
        if client.is_some() {
            slot.taken.clone_from(&client);
        }
        client
    }

    /// Returns the client of the publisher, or the client that the publisher has not taken yet.
    fn last(&self) -> Option<Aeron> {
        let slot = lock(&self.0);
        slot.offered.clone().or_else(|| slot.taken.clone())
    }

    fn fill(&self, connect: impl FnOnce() -> Option<Aeron>) {
        let mut slot = lock(&self.0);
        if slot.is_wanted && slot.offered.is_none() {
            slot.offered = connect();
        }
    }
}

impl PublishingProcess {
    /// Creates the publisher. Its first process starts in the first turn.
    pub fn new(plan: PublishingPlan, seed: u64) -> Self {
        Self {
            plan,
            // Not from the generator of the process, so that its other choices stay the same.
            client_reconnects: [None, Some(false), Some(true)][(seed % 3) as usize],
            random: Rng::with_seed(seed),
            process: None,
            tape: PublishedTape::default(),
            starts_from_ns: i64::MIN,
            is_stopping: false,
            is_done: false,
            backlog: 0,
            errors: Arc::default(),
            reconnects: 0,
            offered_again: 0,
        }
    }

    /// Returns the host of the process.
    pub fn host(&self) -> HostId {
        self.plan.host
    }

    /// Returns the accepted messages.
    pub fn tape(&self) -> &PublishedTape {
        &self.tape
    }

    /// Whether the last recorded frame of the current process is known not to be the end of a message.
    pub fn has_recorded_a_part(&self) -> bool {
        let status = self.process.as_ref().map(|process| &process.status);
        let recorded = status.and_then(RecordedPublisherStatus::recorded_position);
        recorded.is_some_and(|position| self.tape.is_between_ends(position))
    }

    /// Returns the number of extensions of recordings after a loss, and the number of messages that were sent again.
    pub fn repairs(&self) -> (u64, u64) {
        let status = self.process.as_ref().map(|process| &process.status);
        let count = |value: fn(&RecordedPublisherStatus) -> u64| status.map_or(0, value);
        (
            self.reconnects + count(RecordedPublisherStatus::reconnects),
            self.offered_again + count(RecordedPublisherStatus::offered_again),
        )
    }

    /// Returns the errors that the publishers reported.
    pub fn errors(&self) -> Vec<String> {
        lock(&self.errors).clone()
    }

    /// Stops offering messages.
    pub fn stop(&mut self) {
        self.is_stopping = true;
    }

    /// Whether all messages are recorded and the publisher is closed.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Returns the state of the publisher.
    pub fn summary(&self) -> String {
        let status = self.process.as_ref().map(|process| {
            let status = &process.status;
            format!(
                "position {:?}, recorded {:?}, {:?}",
                status.position(),
                status.recorded_position(),
                status.unrecorded()
            )
        });
        format!(
            "publisher on host {} of recording {:?}: {} messages, {status:?}",
            self.plan.host,
            self.tape.recording_id,
            self.tape.count()
        )
    }

    /// Simulates the death of the process. Another process starts at the given time.
    pub fn crash(&mut self, starts_from_ns: i64, graveyard: &mut Graveyard) {
        (self.reconnects, self.offered_again) = self.repairs();
        if let Some(process) = self.process.take() {
            // Without a client, the process has nothing that must be kept after its death.
            if let Some(client) = process.client.last() {
                graveyard.bury(client, process);
            }
        }
        self.starts_from_ns = starts_from_ns;
    }

    /// Does the work that is possible now. Returns a work count.
    ///
    /// # Errors
    /// The publisher has failed, or it reports a wrong position.
    pub fn do_work(
        &mut self,
        host: &Host,
        clock: &VirtualClock,
        seed: u64,
    ) -> Result<usize, Finding> {
        if self.is_done || clock.now_ns() < self.starts_from_ns {
            return Ok(0);
        }
        if self.process.is_none() {
            self.process = Some(self.start(clock)?);
        }
        let Some(process) = &mut self.process else {
            return Ok(0);
        };
        let reconnects = self.client_reconnects;
        process.client.fill(|| {
            let mut context = client_context(clock, host.id());
            context.keepalive_interval_ns = 200 * MS as u64;
            context.driver_timeout_ms = MESSAGE_TIMEOUT_NS / 1_000_000;
            Reconnections::default().connect(host, context, reconnects)
        });
        let mut work_count = process.publisher.poll();
        if let Some(failure) = process.status.failure() {
            return Err(format!(
                "the publisher on host {} has failed: {failure}",
                self.plan.host
            ));
        }
        let Some(recorded) = process.status.recorded_position() else {
            return Ok(work_count);
        };
        if !process.has_continued {
            process.has_continued = true;
            self.tape.recording_id = process.status.recording_id();
            self.tape
                .continue_at(process.status.position().unwrap_or(0))?;
        }
        self.tape.on_recorded(recorded)?;
        work_count += self.offer(seed)?;
        self.close_if_done();
        Ok(work_count)
    }

    fn start(&self, clock: &VirtualClock) -> Result<Process, Finding> {
        let client = ClientSlot::default();
        let connector = client.clone();
        let publisher =
            RecordedPublisher::new(Box::new(move || Ok(connector.take())), self.context(clock))
                .map_err(|error| error.to_string())?;
        Ok(Process {
            status: publisher.status(),
            publisher,
            client,
            has_continued: false,
            next_message: None,
        })
    }

    fn context(&self, clock: &VirtualClock) -> RecordedPublisherContext {
        let plan = &self.plan;
        let [request, response] = &plan.control;
        let archive = ArchiveClientContext {
            message_timeout_ns: MESSAGE_TIMEOUT_NS,
            nano_clock: clock.nano_clock(),
            ..ArchiveClientContext::new(request, response)
        };
        let separator = if plan.channel.contains('?') { '|' } else { '?' };
        let initial = plan.initial_position.map_or(String::new(), |position| {
            format!("|init-term-id=7|term-id=7|term-offset={position}")
        });
        let channel = format!("{}{separator}{}{initial}", plan.channel, plan.parameters);
        let mut context = RecordedPublisherContext::new(archive, &channel, plan.stream_id);
        context.source_location = plan.source_location;
        context.buffer_length = plan.buffer_length;
        context.takeover_timeout_ns = TAKEOVER_TIMEOUT_NS;
        context.listener = Some(Box::new(PublisherReports(Arc::clone(&self.errors))));
        match plan.is_found_by_alias {
            true => context.alias = Some(format!("stream-{}", plan.stream_id)),
            false => context.recording_id = self.tape.recording_id,
        }
        context
    }

    /// Offers messages, one by one or as a batch.
    fn offer(&mut self, seed: u64) -> Result<usize, Finding> {
        if self.is_stopping {
            return Ok(0);
        }
        if self.backlog == 0 && self.random.u8(..TURNS_BETWEEN_BURSTS) == 0 {
            self.backlog = self.random.usize(1..200);
        }
        let count = self.backlog.min(MESSAGES_PER_TURN);
        let Some(process) = &mut self.process else {
            return Ok(0);
        };
        let first = self.tape.count();
        let mut messages = Vec::new();
        for number in first..first + count {
            let message = Message {
                publication: self.plan.stream_id as u32,
                number: number as u32,
                length: message_length(&mut self.random, self.plan.max_message_length),
            };
            messages.push(message);
        }
        // A refused message is offered again with the same bytes.
        if let (Some(first), Some(refused)) = (messages.first_mut(), process.next_message.take())
            && refused.number == first.number
        {
            *first = refused;
        }
        let bytes: Vec<_> = messages
            .iter()
            .map(|message| match self.plan.has_empty_pages {
                true => message.bytes_with_gaps(seed),
                false => message.bytes(seed),
            })
            .collect();
        let is_batch = self.plan.offers_batches && self.random.bool();
        let mut accepted = 0;
        while accepted < count {
            let outcome = match is_batch {
                true => process.publisher.offer_batch(&bytes[..], accepted),
                false => process.publisher.offer(&bytes[accepted]).map(|position| {
                    aeron_client::Appended {
                        messages: 1,
                        position,
                    }
                }),
            };
            match outcome {
                Ok(appended) => {
                    let end = accepted + appended.messages;
                    for (number, message) in messages.iter().enumerate().take(end).skip(accepted) {
                        let is_last = number + 1 == end;
                        self.tape
                            .add(*message, is_last.then_some(appended.position));
                    }
                    accepted = end;
                }
                Err(RecordedOfferError::Append(
                    AppendError::BackPressured | AppendError::NotConnected,
                )) => {
                    process.next_message = messages.get(accepted).copied();
                    break;
                }
                Err(error) => return Err(format!("an offer failed: {error}")),
            }
        }
        self.backlog -= accepted;
        Ok(accepted)
    }

    fn close_if_done(&mut self) {
        let Some(process) = &mut self.process else {
            return;
        };
        if self.is_stopping && process.status.unrecorded().messages == 0 {
            (self.reconnects, self.offered_again) = self.repairs();
            self.process = None;
            self.is_done = true;
        }
    }
}

/// Returns a random message length. A quarter of the messages may have several fragments.
fn message_length(random: &mut Rng, max: usize) -> usize {
    match random.u8(..4) {
        0 => random.usize(HEADER_LENGTH..=max),
        _ => random.usize(HEADER_LENGTH..=max.min(300)),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
