//! The end of a schedule: all roles connect again, the last messages are sent under bad network conditions, and all
//! resources must be removed.
//!
//! A phase ends as soon as its condition is true, so the next phase runs with drivers that have only just recovered. If
//! the condition is not true within the time limit of the phase, this is a finding.

use super::probing::RunningProbe;
use super::{SimulatedStream, World};
use crate::clock::START_NS;
use crate::schedule::{
    DEATHS_NOTICED_NS, Event, HEAL_NS, LAST_MESSAGES, LEAVING_LIMIT_NS, MESSAGES, PARTING_LIMIT_NS,
    PARTING_MESSAGES, RECOVERY_LIMIT_NS, SETTLED_NS,
};
use crate::truth::Finding;

/// Phase of a schedule. The `i64` is the deadline of the phase.
#[derive(Clone, Debug)]
pub(super) enum Phase {
    /// Faults happen.
    Faults,
    /// The network has healed, and the roles connect again.
    Recovering(i64, Settling),
    /// Single streams are disturbed, and must go on.
    Probing(Vec<RunningProbe>),
    /// The last messages are published, and each publisher leaves after its last message.
    Parting(i64),
    /// Subscribers know that their streams have ended, and leave.
    Leaving(i64),
    /// All resources are removed.
    Over,
}

/// The connections between publishers and subscribers, and the time of their last change.
#[derive(Clone, Debug, Default)]
pub(super) struct Settling {
    connections: Vec<i64>,
    since_ns: i64,
}

impl World {
    /// Begins the recovery after the faults. The publishers get the remaining messages of the schedule to publish.
    pub(super) fn begin_recovery(&mut self) {
        let now_ns = self.frame.clock.now_ns();
        let begin_ns = now_ns.max(self.unblocked_ns());
        self.phase = Phase::Recovering(begin_ns + RECOVERY_LIMIT_NS, Settling::default());
        let backlogs = self.streams.iter().map(|stream| stream.publisher.backlog());
        let waiting: usize = backlogs.sum();
        let known = self.truth.published() as usize + waiting;
        let served = self.streams.iter_mut().filter(|stream| stream.is_served());
        for (index, stream) in served.enumerate() {
            let missing = match index {
                0 => MESSAGES.saturating_sub(known),
                _ => 0,
            };
            stream.publisher.publish(missing.max(LAST_MESSAGES));
        }
    }

    /// Returns the time at which the last abandoned claim is unblocked at the latest. A driver unblocks the claims of a
    /// publication one after the other, each after the whole timeout.
    fn unblocked_ns(&self) -> i64 {
        let mut unblocked_ns = vec![0; self.streams.len()];
        for (time_ns, event) in &self.schedule.events {
            if let Event::AbandonClaim(stream) = event {
                let host = self.schedule.streams[*stream].publisher.host;
                let context = &self.schedule.drivers[host].context;
                let timeout_ns =
                    context.publication_unblock_timeout_ns + 2 * context.timer_interval_ns;
                let begin_ns = unblocked_ns[*stream].max(START_NS + time_ns);
                unblocked_ns[*stream] = begin_ns + timeout_ns;
            }
        }
        unblocked_ns.into_iter().max().unwrap_or(0)
    }

    /// Starts the next phase if the current one is over.
    ///
    /// # Errors
    /// The deadline of the current phase is reached, and the phase is not over. The finding says what is not done.
    pub(super) fn end_phase_if_over(&mut self) -> Result<(), Finding> {
        let now_ns = self.frame.clock.now_ns();
        let within = |deadline_ns, finding| match now_ns < deadline_ns {
            true => Ok(()),
            false => Err(finding),
        };
        match self.phase.clone() {
            Phase::Faults | Phase::Over => Ok(()),
            Phase::Recovering(deadline_ns, settling) => match self.connections() {
                Ok(connections) => {
                    self.settle(deadline_ns, settling, connections);
                    Ok(())
                }
                Err(finding) => within(deadline_ns, finding),
            },
            Phase::Probing(running) => self.go_on_with_probes(running),
            Phase::Parting(deadline_ns) => {
                self.see_publishers_off();
                match self.what_was_not_told() {
                    None => {
                        self.phase_times_ns[1] = now_ns - deadline_ns + PARTING_LIMIT_NS;
                        self.begin_leaving();
                        Ok(())
                    }
                    Some(finding) => within(deadline_ns, finding),
                }
            }
            Phase::Leaving(deadline_ns) => match self.check_nothing_left() {
                Ok(()) => {
                    self.phase_times_ns[2] = now_ns - deadline_ns + LEAVING_LIMIT_NS;
                    self.phase = Phase::Over;
                    self.close_drivers()
                }
                Err(finding) => within(deadline_ns, finding),
            },
        }
    }

    /// Waits until the connections were unchanged for [`SETTLED_NS`], because a timed-out image of a receiver may still
    /// exist for a short time.
    fn settle(&mut self, deadline_ns: i64, settling: Settling, connections: Vec<i64>) {
        let now_ns = self.frame.clock.now_ns();
        if settling.connections != connections {
            let since_ns = now_ns;
            let settling = Settling {
                connections,
                since_ns,
            };
            self.phase = Phase::Recovering(deadline_ns, settling);
        } else if now_ns - settling.since_ns > SETTLED_NS && self.can_begin_probes() {
            self.phase_times_ns[0] = now_ns - START_NS - HEAL_NS;
            self.begin_probes();
        }
    }

    /// Whether the drivers have noticed the death of all clients, and all messages are published. A subscriber whose
    /// death is not noticed holds back its publisher, so that a probe would take longer.
    fn can_begin_probes(&self) -> bool {
        let are_dead_noticed = self.frame.clock.now_ns() > START_NS + HEAL_NS + DEATHS_NOTICED_NS;
        let is_waiting = |stream: &SimulatedStream| stream.publisher.backlog() > 0;
        let mut served = self.streams.iter().filter(|stream| stream.is_served());
        self.schedule.probes.is_empty() || (are_dead_noticed && !served.any(is_waiting))
    }

    /// Returns the ids of all publications and images of streams that must be connected.
    ///
    /// # Errors
    /// A stream is not connected, or a subscriber lacks messages.
    fn connections(&self) -> Result<Vec<i64>, Finding> {
        let mut connections = Vec::new();
        for index in 0..self.streams.len() {
            self.check_connections(index, &mut connections)?;
        }
        if let Some(conversation) = &self.conversation {
            connections.extend(conversation.check()?);
        }
        Ok(connections)
    }

    /// Adds the ids of the publication and the images of a stream, if it must be connected.
    ///
    /// # Errors
    /// The stream is not connected, or a subscriber lacks messages.
    pub(super) fn check_connections(
        &self,
        index: usize,
        connections: &mut Vec<i64>,
    ) -> Result<(), Finding> {
        let stream = &self.streams[index];
        let publisher = &stream.publisher;
        let number = publisher
            .publication()
            .filter(|_| publisher.is_client_of_running_driver(&self.frame.hosts));
        if !stream.is_served() {
            number.ok_or_else(|| format!("stream {index} has no publication"))?;
            return Ok(());
        }
        let number = number.filter(|_| publisher.is_connected()).ok_or_else(|| {
            format!("stream {index} is not connected long after the network has healed")
        })?;
        connections.push(number.into());
        let record = self.truth.publication(number);
        for (subscriber_number, subscriber) in stream.subscribers.iter().enumerate() {
            let plan = subscriber.plan();
            if !plan.is_served {
                continue;
            }
            let image = subscriber
                .image_of(record.stream.session_id)
                .filter(|_| subscriber.is_client_of_running_driver(&self.frame.hosts));
            let image = image.ok_or_else(|| {
                format!("subscriber {subscriber_number} of stream {index} has no image long after the network has healed")
            })?;
            let next = subscriber.next_of(number);
            if plan.is_reliable && next.is_some_and(|next| next != record.count()) {
                return Err(format!(
                    "subscriber {subscriber_number} of stream {index} waits for message {next:?} of {} long after the network has healed",
                    record.count()
                ));
            }
            connections.push(image);
        }
        Ok(())
    }

    pub(super) fn begin_last_messages(&mut self) {
        let now_ns = self.frame.clock.now_ns();
        for (after_ns, weather) in self.schedule.parting.clone() {
            self.frame
                .arrange(now_ns + after_ns, Event::Weather(weather));
        }
        let served = self.streams.iter_mut().filter(|stream| stream.is_served());
        for stream in served {
            stream.publisher.publish(PARTING_MESSAGES);
        }
        let begin_ns = now_ns.max(self.unblocked_ns());
        self.phase = Phase::Parting(begin_ns + PARTING_LIMIT_NS);
    }

    /// Makes each publisher leave directly after its last message, even if messages have not arrived yet.
    fn see_publishers_off(&mut self) {
        for stream in &mut self.streams {
            let is_served = stream.is_served();
            let publisher = &mut stream.publisher;
            let is_done = publisher.backlog() == 0 || !is_served;
            if stream.last_publication.is_none() && is_done {
                stream.last_publication = publisher.publication();
                publisher.set_wanted(stream.last_publication.is_none());
            }
        }
    }

    /// Returns a finding if a stream still has messages to publish, or if a subscriber does not know the end of its
    /// stream although it must.
    fn what_was_not_told(&self) -> Option<Finding> {
        for (index, stream) in self.streams.iter().enumerate() {
            let Some(number) = stream.last_publication else {
                let backlog = stream.publisher.backlog();
                return Some(format!(
                    "stream {index} still has {backlog} messages to publish"
                ));
            };
            for (subscriber_number, subscriber) in stream.subscribers.iter().enumerate() {
                let plan = subscriber.plan();
                let must_know = plan.is_served && plan.is_waited_for;
                if must_know && !subscriber.has_seen_end_of(number) {
                    return Some(format!(
                        "subscriber {subscriber_number} of stream {index} was not told of its end, and waits for message {:?} of {}",
                        subscriber.next_of(number),
                        self.truth.publication(number).count()
                    ));
                }
            }
        }
        None
    }

    fn begin_leaving(&mut self) {
        *self.frame.wire.lock().weather() = self.schedule.fair.clone();
        for stream in &mut self.streams {
            for subscriber in &mut stream.subscribers {
                subscriber.set_wanted(false);
            }
        }
        if let Some(conversation) = &mut self.conversation {
            conversation.set_wanted(false);
        }
        self.phase = Phase::Leaving(self.frame.clock.now_ns() + LEAVING_LIMIT_NS);
    }

    /// Checks that drivers without clients have no resources of clients.
    fn check_nothing_left(&self) -> Result<(), Finding> {
        for host in &self.frame.hosts {
            self.checks.check_left(host)?;
        }
        let of_resolvers = match self.schedule.names.is_gossip {
            true => self.frame.hosts.len(),
            false => 0,
        };
        match self.frame.wire.lock().socket_count() {
            sockets if sockets == of_resolvers => Ok(()),
            sockets => Err(format!(
                "{sockets} sockets are still open, and {of_resolvers} belong to name resolvers"
            )),
        }
    }

    fn close_drivers(&mut self) -> Result<(), Finding> {
        for host in &mut self.frame.hosts {
            let logs = host.close();
            if logs > 0 {
                return Err(format!(
                    "host {}: {logs} logs outlive the driver",
                    host.id()
                ));
            }
        }
        Ok(())
    }
}
