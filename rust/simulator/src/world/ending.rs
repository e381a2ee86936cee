//! How a schedule ends: everybody finds everybody again, the last messages travel through bad weather, and nothing is left.
//!
//! A phase ends as soon as its condition holds, so that what comes next meets drivers that have only just recovered. A schedule
//! finds something if the condition does not hold within the limit of the phase.

use super::World;
use crate::clock::START_NS;
use crate::schedule::{
    Event, HEAL_NS, LAST_MESSAGES, LEAVING_LIMIT_NS, MESSAGES, PARTING_LIMIT_NS, PARTING_MESSAGES,
    RECOVERY_LIMIT_NS, SETTLED_NS,
};
use crate::truth::Finding;

/// Where a schedule is. The numbers are the times at which the phase must be over.
#[derive(Clone, Debug)]
pub(super) enum Phase {
    /// Faults happen.
    Faults,
    /// The network has healed; connections come back.
    Recovering(i64, Settling),
    /// The last messages are published, and each publisher leaves after its last one.
    Parting(i64),
    /// Subscribers know that their streams have ended, and leave too.
    Leaving(i64),
    /// Nothing is left.
    Over,
}

/// The connections between publishers and subscribers, and since when they have been the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Settling {
    connections: Vec<i64>,
    since_ns: i64,
}

impl World {
    /// All faults have ended. What is still missing of the schedule's messages comes now.
    pub(super) fn begin_recovery(&mut self) {
        let now_ns = self.clock.now_ns();
        self.phase = Phase::Recovering(now_ns + RECOVERY_LIMIT_NS, Settling::default());
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

    /// Begins the next phase if this one is over.
    ///
    /// # Errors
    /// Why this one is not over although it has to be.
    pub(super) fn end_phase_if_over(&mut self) -> Result<(), Finding> {
        let now_ns = self.clock.now_ns();
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

    /// An image of a receiver that had heard nothing for too long may still be there, but goes soon: connections count only after
    /// they have been the same for a while.
    fn settle(&mut self, deadline_ns: i64, settling: Settling, connections: Vec<i64>) {
        let now_ns = self.clock.now_ns();
        if settling.connections != connections {
            let since_ns = now_ns;
            let settling = Settling {
                connections,
                since_ns,
            };
            self.phase = Phase::Recovering(deadline_ns, settling);
        } else if now_ns - settling.since_ns > SETTLED_NS {
            self.begin_last_messages();
        }
    }

    /// Numbers of all publications and images of streams that are served.
    ///
    /// # Errors
    /// Which stream is not connected, or which subscriber misses what.
    fn connections(&self) -> Result<Vec<i64>, Finding> {
        let mut connections = Vec::new();
        for (index, stream) in self.streams.iter().enumerate() {
            let publisher = &stream.publisher;
            let number = publisher
                .publication()
                .filter(|_| publisher.is_at_home(&self.hosts));
            if !stream.is_served() {
                number.ok_or_else(|| format!("stream {index} has no publication"))?;
                continue;
            }
            let number = number.filter(|_| publisher.is_connected()).ok_or_else(|| {
                format!("stream {index} is not connected long after the network has healed")
            })?;
            connections.push(number.into());
            let record = self.truth.publication(number);
            for (who, subscriber) in stream.subscribers.iter().enumerate() {
                let plan = subscriber.plan();
                if !plan.is_served {
                    continue;
                }
                let image = subscriber
                    .image_of(record.stream.session_id)
                    .filter(|_| subscriber.is_at_home(&self.hosts));
                let image = image.ok_or_else(|| {
                    format!("subscriber {who} of stream {index} has no image long after the network has healed")
                })?;
                let next = subscriber.next_of(number);
                if plan.is_reliable && next.is_some_and(|next| next != record.count()) {
                    return Err(format!(
                        "subscriber {who} of stream {index} waits for message {next:?} of {} long after the network has healed",
                        record.count()
                    ));
                }
                connections.push(image);
            }
        }
        Ok(connections)
    }

    fn begin_last_messages(&mut self) {
        let now_ns = self.clock.now_ns();
        for (after_ns, weather) in self.schedule.parting.clone() {
            self.arrange(now_ns + after_ns, Event::Weather(weather));
        }
        let served = self.streams.iter_mut().filter(|stream| stream.is_served());
        for stream in served {
            stream.publisher.publish(PARTING_MESSAGES);
        }
        self.phase_times_ns[0] = now_ns - START_NS - HEAL_NS;
        self.phase = Phase::Parting(now_ns + PARTING_LIMIT_NS);
    }

    /// A publisher leaves right after its last message, however much of it has arrived.
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

    /// A stream whose end somebody does not know, who should.
    fn what_was_not_told(&self) -> Option<Finding> {
        for (index, stream) in self.streams.iter().enumerate() {
            let Some(number) = stream.last_publication else {
                let backlog = stream.publisher.backlog();
                return Some(format!(
                    "stream {index} still has {backlog} messages to publish"
                ));
            };
            for (who, subscriber) in stream.subscribers.iter().enumerate() {
                let plan = subscriber.plan();
                let must_know = plan.is_served && plan.is_waited_for;
                if must_know && !subscriber.has_seen_end_of(number) {
                    return Some(format!(
                        "subscriber {who} of stream {index} was not told of its end, and waits for message {:?} of {}",
                        subscriber.next_of(number),
                        self.truth.publication(number).count()
                    ));
                }
            }
        }
        None
    }

    fn begin_leaving(&mut self) {
        *self.wire.lock().weather() = self.schedule.fair.clone();
        for stream in &mut self.streams {
            for subscriber in &mut stream.subscribers {
                subscriber.set_wanted(false);
            }
        }
        self.phase = Phase::Leaving(self.clock.now_ns() + LEAVING_LIMIT_NS);
    }

    /// Drivers that everybody has left have nothing but themselves.
    fn check_nothing_left(&self) -> Result<(), Finding> {
        for host in &self.hosts {
            self.checks.check_left(host)?;
        }
        match self.wire.lock().socket_count() {
            0 => Ok(()),
            sockets => Err(format!("{sockets} sockets are still open")),
        }
    }

    fn close_drivers(&mut self) -> Result<(), Finding> {
        for host in &mut self.hosts {
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
