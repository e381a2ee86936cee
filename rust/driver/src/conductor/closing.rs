//! What a conductor does for a driver that is to close: it ends the network publications and
//! the images that nobody reads, and reports what is left to do.

use std::time::Duration;

use super::Conductor;
use crate::closing::{ClosingReport, UnconsumedStream};
use crate::publication::NetworkPublication;

/// Time for the commands that were sent before the driver was to close, in ns. Clients may send more than the conductor executes in
/// this time; a drain that never began would lose what they published.
const COMMANDS_TIME_NS: i64 = 500_000_000;

/// When the drain begins.
#[derive(Debug, Default)]
pub(super) enum DrainBegin {
    /// The driver is not to close.
    #[default]
    Unknown,
    /// After the commands that were there when the driver was to close, or at the deadline.
    After { commands_end: i64, deadline_ns: i64 },
    /// It has begun.
    Begun,
}

impl Conductor {
    /// Whether the driver is to close, and the commands that clients had sent before are executed, or took too long.
    pub(super) fn is_drain_due(&mut self) -> bool {
        if !self.closing.is_requested() {
            return false;
        }
        let ring = self.commands.ring();
        if let DrainBegin::Unknown = self.drain_begin {
            self.drain_begin = DrainBegin::After {
                commands_end: ring.producer_position(),
                deadline_ns: self.outlets.now_ns.saturating_add(COMMANDS_TIME_NS),
            };
        }
        if let DrainBegin::After {
            commands_end,
            deadline_ns,
        } = self.drain_begin
        {
            let is_executed = ring.consumer_position() >= commands_end && !self.pending.is_busy();
            if is_executed || self.outlets.now_ns >= deadline_ns {
                self.drain_begin = DrainBegin::Begun;
            }
        }
        matches!(self.drain_begin, DrainBegin::Begun)
    }

    /// One step of the drain, in each duty cycle from its begin on.
    pub(super) fn drain(&mut self) {
        for publication in &mut self.network_publications {
            publication.remove_all_references(self.outlets.now_ns);
        }
        // At once and not at the next timer tick: closing waits for them.
        self.check_network_publications();
        self.check_images();
        let unconsumed = self
            .network_publications
            .iter()
            .filter_map(|publication| self.unconsumed(publication))
            .collect();
        let is_last_call = self.closing.is_last_call();
        let untold_images = self
            .images
            .iter()
            .filter(|image| !image.leave(is_last_call))
            .count();
        self.closing.report(ClosingReport {
            unconsumed,
            untold_images,
        });
    }

    fn unconsumed(&self, publication: &NetworkPublication) -> Option<UnconsumedStream> {
        let (unsent_bytes, unconsumed_bytes) = publication.unconsumed_bytes()?;
        let (config, options) = (publication.config(), publication.options());
        let channel = self.endpoints.sent_channel(options.endpoint);
        Some(UnconsumedStream {
            channel: channel.map_or_else(String::new, |channel| channel.text.to_string()),
            stream_id: config.stream_id,
            session_id: config.session_id,
            unsent_bytes,
            unconsumed_bytes,
            linger: Duration::from_nanos(options.linger_timeout_ns.unsigned_abs()),
        })
    }
}
