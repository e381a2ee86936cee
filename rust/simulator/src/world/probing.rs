//! The probes of a schedule. While the network has no faults, each probe disturbs one stream. The messages that are
//! published after this must arrive at all subscribers within a time limit.

use aeron_driver::log_storage::LogId;
use aeron_protocol::frame::StatusMessage;

use super::World;
use super::ending::Phase;
use crate::network::{HostId, SharedWire};
use crate::roles::SimulatedSubscriber;
use crate::schedule::probes::{DEATH_CLAIM_LENGTH, LONG_MESSAGE_LENGTH};
use crate::schedule::{GROUP_TAG, PROBE_LIMIT_NS, Probe, TermEndDeath};
use crate::truth::{Finding, PublicationRecord};

/// Number of messages after a probe that needs only a few.
const FEW_MESSAGES: usize = 20;
/// Number of long messages after a request for a SETUP. Together they are longer than the window of any receiver.
const MANY_MESSAGES: usize = 40;
/// Time limit until a publisher has filled its term, in nanoseconds.
const FILLING_LIMIT_NS: i64 = 10 * PROBE_LIMIT_NS;
/// Id of the receiver that sends no status message after its request for a SETUP.
const SILENT_RECEIVER_ID: i64 = 0x51_1E_57;

/// A probe that is in progress.
#[derive(Clone, Debug)]
pub(super) struct RunningProbe {
    probe: Probe,
    /// Time of the last event of the probe.
    since_ns: i64,
    limit_ns: i64,
    /// Whether a subscriber has not joined yet, or the publisher still fills its term before its death.
    is_preparing: bool,
}

impl World {
    /// Begins all probes.
    pub(super) fn begin_probes(&mut self) {
        let now_ns = self.frame.clock.now_ns();
        let mut running = Vec::new();
        for probe in self.schedule.probes.clone() {
            // A stream without receivers is not connected.
            if !self.streams[probe.stream()].is_served() {
                continue;
            }
            let is_preparing = match &probe {
                Probe::Join(..) => true,
                Probe::Death(_, death) => *death != TermEndDeath::InClaim,
                Probe::SilentReceiver(_) | Probe::RemoveDestination(..) => false,
            };
            running.push(RunningProbe {
                limit_ns: self.begin_probe(&probe),
                is_preparing,
                probe,
                since_ns: now_ns,
            });
        }
        self.phase = Phase::Probing(running);
    }

    /// Begins a probe. Returns its time limit in nanoseconds.
    fn begin_probe(&mut self, probe: &Probe) -> i64 {
        match probe {
            Probe::Join(index, plan) => {
                let mut subscriber = SimulatedSubscriber::new(plan.clone());
                subscriber.set_wanted(true);
                let stream = &mut self.streams[*index];
                stream.subscribers.push(subscriber);
                stream.publisher.publish(FEW_MESSAGES);
                PROBE_LIMIT_NS
            }
            Probe::SilentReceiver(index) => {
                let publisher = &mut self.streams[*index].publisher;
                publisher.publish_long(MANY_MESSAGES, LONG_MESSAGE_LENGTH);
                let number = publisher.publication();
                let timeout_ns = self.frame.hosts[self.publishing_host(*index)]
                    .context()
                    .flow_control_receiver_timeout_ns;
                if let Some(number) = number {
                    ask_for_setup(&self.frame.wire, self.truth.publication(number));
                }
                timeout_ns + PROBE_LIMIT_NS
            }
            Probe::Death(index, TermEndDeath::InClaim) => {
                let publisher = &mut self.streams[*index].publisher;
                publisher.abandon_claim();
                publisher.publish(FEW_MESSAGES);
                self.unblocking_limit_ns(*index)
            }
            Probe::Death(..) => FILLING_LIMIT_NS,
            Probe::RemoveDestination(index, destination) => {
                let stream = &mut self.streams[*index];
                for subscriber in &mut stream.subscribers {
                    subscriber.remove_destination(*destination);
                }
                stream.publisher.publish(FEW_MESSAGES);
                PROBE_LIMIT_NS
            }
        }
    }

    /// Goes on with the probes. Begins the last messages after all probes have ended.
    ///
    /// # Errors
    /// A probe has reached its time limit. The finding says what has not happened.
    pub(super) fn go_on_with_probes(
        &mut self,
        mut running: Vec<RunningProbe>,
    ) -> Result<(), Finding> {
        let now_ns = self.frame.clock.now_ns();
        let mut index = 0;
        while index < running.len() {
            let probe = &mut running[index];
            let finding = match self.go_on_with(probe) {
                Ok(()) => {
                    running.swap_remove(index);
                    continue;
                }
                Err(finding) => finding,
            };
            let after_ns = now_ns - running[index].since_ns;
            if after_ns > running[index].limit_ns {
                let probe = &running[index].probe;
                return Err(format!("{after_ns} ns after {probe:?}: {finding}"));
            }
            index += 1;
        }
        match running.is_empty() {
            true => {
                for stream in &mut self.streams {
                    stream.publisher.publish_long(0, 0);
                }
                self.begin_last_messages();
            }
            false => self.phase = Phase::Probing(running),
        }
        Ok(())
    }

    /// Does what is due for a probe. Returns `Ok` if the probe has ended.
    fn go_on_with(&mut self, running: &mut RunningProbe) -> Result<(), Finding> {
        let index = running.probe.stream();
        if let (Probe::Death(_, death), true) = (&running.probe, running.is_preparing) {
            self.check_backlog(index)?;
            self.die(index, *death)?;
            running.is_preparing = false;
            running.since_ns = self.frame.clock.now_ns();
            running.limit_ns = self.unblocking_limit_ns(index);
        }
        self.check_connections(index, &mut Vec::new())?;
        self.check_backlog(index)?;
        match running.probe {
            Probe::Join(..) if running.is_preparing => {
                self.streams[index].publisher.publish(1);
                running.is_preparing = false;
                Err(format!("stream {index} has a message to publish"))
            }
            Probe::Join(..) => self.check_last_subscriber(index),
            Probe::RemoveDestination(..) => self.check_transports(index),
            Probe::SilentReceiver(_) | Probe::Death(..) => Ok(()),
        }
    }

    /// Publishes a message if the term of a stream is not nearly full. Otherwise simulates the death of a publisher at
    /// the end of the term, and publishes more messages.
    fn die(&mut self, index: usize, death: TermEndDeath) -> Result<(), Finding> {
        let host = &self.frame.hosts[self.publishing_host(index)];
        let publisher = &mut self.streams[index].publisher;
        let log = publisher.registration_id().map(LogId::Publication);
        let log = log.ok_or_else(|| format!("stream {index} has no publication"))?;
        if !host.die_at_term_end(log, DEATH_CLAIM_LENGTH, death) {
            publisher.publish_long(1, LONG_MESSAGE_LENGTH);
            return Err(format!("the term of stream {index} is not full"));
        }
        publisher.publish_long(FEW_MESSAGES, LONG_MESSAGE_LENGTH);
        Ok(())
    }

    fn check_backlog(&self, index: usize) -> Result<(), Finding> {
        match self.streams[index].publisher.backlog() {
            0 => Ok(()),
            backlog => Err(format!("stream {index} still has {backlog} messages")),
        }
    }

    /// Checks that the subscriber that joined last has received the last message.
    fn check_last_subscriber(&self, index: usize) -> Result<(), Finding> {
        let stream = &self.streams[index];
        let (Some(number), Some(subscriber)) =
            (stream.publisher.publication(), stream.subscribers.last())
        else {
            return Err(format!("stream {index} has no publication"));
        };
        match subscriber.next_of(number) {
            Some(next) if next == self.truth.publication(number).count() => Ok(()),
            next => Err(format!(
                "the new subscriber of stream {index} waits for message {next:?}"
            )),
        }
    }

    /// Checks that each image of a stream has as many active transports as its subscription has destinations.
    fn check_transports(&self, index: usize) -> Result<(), Finding> {
        for subscriber in &self.streams[index].subscribers {
            let wanted = subscriber.plan().destinations.len() as i32;
            let counts = subscriber.active_transport_counts();
            if counts.iter().any(|count| *count != wanted) {
                return Err(format!(
                    "images of stream {index} have {counts:?} active transports, not {wanted}"
                ));
            }
        }
        Ok(())
    }

    fn publishing_host(&self, stream: usize) -> HostId {
        self.schedule.streams[stream].publisher.host
    }

    /// Returns the time after which the driver of a stream must have unblocked its publication, with the delivery of
    /// the following messages. The driver looks at a publication once in a timer interval. It finds the position
    /// blocked at one look, and the timeout over at another one.
    fn unblocking_limit_ns(&self, stream: usize) -> i64 {
        let context = self.frame.hosts[self.publishing_host(stream)].context();
        context.publication_unblock_timeout_ns + 2 * context.timer_interval_ns + PROBE_LIMIT_NS
    }
}

/// Sends the request of an unknown receiver for the SETUP of a publication to all sockets. The request has the tag that
/// the receivers of a group with tag have.
fn ask_for_setup(wire: &SharedWire, record: &PublicationRecord) {
    let tag = GROUP_TAG.to_le_bytes();
    let message = StatusMessage {
        wants_setup: true,
        is_end_of_stream: false,
        session_id: record.stream.session_id,
        stream_id: record.stream.stream_id,
        consumption_term_id: 0,
        consumption_term_offset: 0,
        receiver_window: 0,
        receiver_id: SILENT_RECEIVER_ID,
        feedback: &tag,
    };
    let mut bytes = [0; StatusMessage::MAX_LENGTH];
    let length = message.encode(&mut bytes);
    wire.lock().flood(&bytes[..length]);
}
