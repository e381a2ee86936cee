//! [`CopyLookup`]: asks the archive whether object storage has a part of the recording before the start position that
//! the catalog names.
//!
//! The subscription asks only if it must continue at a position before the start position. Without copies, it would
//! fail there. So an archive of another project does not get these requests in normal operation.

use aeron_protocol::archive::extension::Capabilities;

use super::super::call::{ArchiveCall, Ticket};
use super::super::extension::{CAPABILITIES_TIMEOUT_NS, ExtensionPage};
use super::super::link::Answered;
use super::core::{Core, Transition, is_past};
use super::error::PersistentSubscriptionError;
use super::listing;
use super::state::SubscriptionState;
use crate::catalog::RecordingDescriptor;
use crate::objects::CopiedRange;

/// A request for the copies of a recording.
pub(super) struct CopyLookup {
    recording: RecordingDescriptor,
    step: LookupStep,
}

enum LookupStep {
    /// Waits for the archive's capabilities. If no response arrives before this time in nanoseconds, the archive counts
    /// as an archive without copies.
    Capabilities(Ticket<i64>, i64),
    Ranges(Ticket<ExtensionPage<CopiedRange>>),
}

impl CopyLookup {
    /// Sends the first request. `recording` is the descriptor in the archive's catalog.
    pub(super) fn begin(
        core: &mut Core,
        recording: RecordingDescriptor,
        now_ns: i64,
    ) -> Transition {
        let deadline_ns = now_ns.saturating_add(CAPABILITIES_TIMEOUT_NS);
        let sent = core.archive.submit(&ArchiveCall::capabilities(), now_ns);
        Transition::to(match sent {
            Some(ticket) => SubscriptionState::AwaitCopies(Box::new(Self {
                recording,
                step: LookupStep::Capabilities(ticket, deadline_ns),
            })),
            None => SubscriptionState::AwaitArchive,
        })
    }

    /// Receives a response. Returns the transition that ends the lookup.
    pub(super) fn step(&mut self, core: &mut Core, now_ns: i64) -> Option<Transition> {
        match &self.step {
            LookupStep::Capabilities(ticket, deadline_ns) => {
                let has_copies = match core.archive.take(ticket) {
                    Answered::Pending if !is_past(*deadline_ns, now_ns) => return None,
                    Answered::Pending => {
                        core.archive.abandon(ticket);
                        false
                    }
                    Answered::Value(bits) => {
                        Capabilities::from_bits(bits).contains(Capabilities::OBJECTS)
                    }
                    Answered::Refused(_) | Answered::Expired => false,
                };
                if !has_copies {
                    return Some(listing::go_on(core, &self.recording));
                }
                self.ask_for_ranges(core, now_ns)
            }
            LookupStep::Ranges(ticket) => match core.archive.take(ticket) {
                Answered::Pending => None,
                Answered::Expired => Some(Transition::to(SubscriptionState::SendListRequest)),
                Answered::Value(page) => Some(self.go_on(core, &page.entries)),
                Answered::Refused(source) => {
                    let request = "list copied ranges request";
                    let error = PersistentSubscriptionError::Refused { request, source };
                    Some(Transition::fail(error))
                }
            },
        }
    }

    fn ask_for_ranges(&mut self, core: &mut Core, now_ns: i64) -> Option<Transition> {
        debug_assert!(
            matches!(self.step, LookupStep::Capabilities(..)),
            "the copies of recording {} are requested twice",
            self.recording.recording_id
        );
        let call = ArchiveCall::list_copied_ranges(Some(self.recording.recording_id), 0);
        match core.archive.submit(&call, now_ns) {
            Some(ticket) => {
                self.step = LookupStep::Ranges(ticket);
                None
            }
            None => Some(Transition::to(SubscriptionState::AwaitArchive)),
        }
    }

    /// Continues with a descriptor that begins at the first copy, if there are copies.
    fn go_on(&self, core: &mut Core, ranges: &[CopiedRange]) -> Transition {
        let mut recording = self.recording.clone();
        let mut ranges = ranges.iter();
        if let Some(range) = ranges.find(|it| it.recording_id == recording.recording_id) {
            recording.start_position = range.start_position.min(recording.start_position);
        }
        listing::go_on(core, &recording)
    }
}
