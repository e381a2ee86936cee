//! What a conductor does for a driver that is to close: it ends the network publications and
//! the images that nobody reads, and reports what is left to do.

use std::sync::Arc;

use super::Conductor;
use super::command_ring::CommandRing;
use super::pending::PendingCommands;
use crate::closing::{Closing, ClosingReport};

/// Time for the commands that were sent before the driver was to close, in ns. Clients may send more than the conductor executes in
/// this time; a drain that never began would lose what they published.
const COMMANDS_TIME_NS: i64 = 500_000_000;

/// The drain of a driver that is to close.
pub(super) struct Drain {
    closing: Arc<Closing>,
    begin: DrainBegin,
}

/// When the drain begins.
#[derive(Clone, Copy, Debug)]
enum DrainBegin {
    /// The driver is not to close.
    Unknown,
    /// After the commands that were there when the driver was to close, or at the deadline.
    After { commands_end: i64, deadline_ns: i64 },
    /// It has begun.
    Begun,
}

impl Drain {
    /// The drain that begins when `closing` is requested.
    pub(super) fn new(closing: Arc<Closing>) -> Self {
        Self {
            closing,
            begin: DrainBegin::Unknown,
        }
    }

    /// Whether the driver is to close, and the commands that clients had sent before are executed, or took too long.
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
    /// One step of the drain, in each duty cycle from its begin on.
    pub(super) fn drain_if_due(&mut self) {
        let outlets = &mut self.outlets;
        if !self
            .drain
            .is_due(&self.commands, &self.pending, outlets.now_ns)
        {
            return;
        }
        self.publications.end_network(outlets.now_ns);
        // At once and not at the next timer tick: closing waits for them.
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
        });
    }
}
