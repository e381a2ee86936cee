//! The conductor's part of the shutdown of a driver. The conductor ends the network publications, announces to senders
//! that this receiver leaves the images, and reports the remaining work.

use std::sync::Arc;

use super::Conductor;
use super::command_ring::CommandRing;
use super::pending::PendingCommands;
use crate::closing::{Closing, ClosingReport};

/// Time limit in ns for the commands that clients sent before the shutdown. Clients may send more than the conductor
/// can execute. Without the limit the drain might never begin, and published messages would be lost.
const COMMANDS_TIME_NS: i64 = 500_000_000;

/// The state of the shutdown.
pub(super) struct ConductorDrain {
    closing: Arc<Closing>,
    begin: DrainBegin,
}

/// When the drain begins.
#[derive(Clone, Copy, Debug)]
enum DrainBegin {
    /// No shutdown was requested yet.
    Unknown,
    /// The drain begins after the commands that clients had sent before the request, or at the deadline.
    After { commands_end: i64, deadline_ns: i64 },
    /// The drain has begun.
    Begun,
}

impl ConductorDrain {
    /// Creates the state before the shutdown is requested through `closing`.
    pub(super) fn new(closing: Arc<Closing>) -> Self {
        Self {
            closing,
            begin: DrainBegin::Unknown,
        }
    }

    /// Returns whether the drain has begun.
    ///
    /// The drain begins after the request, once the commands that clients sent earlier are executed or their time limit
    /// is reached.
    fn is_due(&mut self, commands: &CommandRing, pending: &PendingCommands, now_ns: i64) -> bool {
        if !self.closing.is_requested() {
            return false;
        }
        if let DrainBegin::Unknown = self.begin {
            self.begin = DrainBegin::After {
                commands_end: commands.end_position(),
                deadline_ns: now_ns.saturating_add(COMMANDS_TIME_NS),
            };
        }
        if let DrainBegin::After {
            commands_end,
            deadline_ns,
        } = self.begin
        {
            let is_executed = commands.is_read_up_to(commands_end) && !pending.is_busy();
            if is_executed || now_ns >= deadline_ns {
                self.begin = DrainBegin::Begun;
            }
        }
        matches!(self.begin, DrainBegin::Begun)
    }
}

impl Conductor {
    /// Runs one step of the drain. Called in each duty cycle.
    pub(super) fn drain_if_due(&mut self) {
        let outlets = &mut self.outlets;
        if !self
            .drain
            .is_due(&self.commands, &self.pending, outlets.now_ns)
        {
            return;
        }
        self.publications.end_network(outlets.now_ns);
        // The checks run in each duty cycle, not only at the timer tick, because the closing driver waits for their
        // result.
        self.publications
            .check_network(&mut self.endpoints, outlets);
        self.images.check(&mut self.endpoints, outlets);
        let unconsumed = self.publications.unconsumed(&self.endpoints);
        let is_last_call = self.drain.closing.is_last_call();
        let images = self.images.all().iter();
        let untold_images = images.filter(|image| !image.leave(is_last_call)).count();
        self.drain.closing.report(ClosingReport {
            unconsumed,
            untold_images,
            is_last_call,
        });
    }
}
