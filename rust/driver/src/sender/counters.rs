//! [`SenderCounters`]: the system counters that the sender updates.

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use aeron_memory::counters::system::{SystemCounter, SystemCounters};

type Counter = AtomicCounter<SharedBuffer>;

/// The system counters that the sender updates.
///
/// Other agents also write some of the counters. The sender therefore adds atomically if additions are rare. It uses
/// [`AtomicCounter::add_release`] only if additions are frequent and the sender is the only writer.
#[derive(Clone, Debug)]
pub struct SenderCounters {
    /// Number of bytes of data and heartbeats sent.
    pub bytes_sent: Counter,
    /// Number of valid NAKs for existing publications.
    pub naks_received: Counter,
    /// Number of valid status messages, whether or not the publication exists.
    pub status_messages_received: Counter,
    /// Number of status messages with a position far from the sender position.
    pub status_messages_rejected: Counter,
    pub heartbeats_sent: Counter,
    /// Number of retransmitted ranges.
    pub retransmits_sent: Counter,
    /// Number of retransmitted bytes, including padding.
    pub retransmitted_bytes: Counter,
    /// Number of NAKs that were dropped because all retransmit actions were in use.
    pub retransmit_overflow: Counter,
    /// Number of invalid datagrams. The receiver uses the same counter.
    pub invalid_packets: Counter,
    /// Number of send calls that accepted only a part of their data. The receiver uses the same counter.
    pub short_sends: Counter,
    /// Number of times that flow control held back data.
    pub flow_control_limits: Counter,
    /// Number of valid error frames, whether or not the publication exists.
    pub error_frames_received: Counter,
    /// Number of changes of the address of a name. The receiver uses the same counter.
    pub resolution_changes: Counter,
}

impl SenderCounters {
    /// Takes the sender's counters from the system counters.
    pub fn of(system: &SystemCounters<SharedBuffer>) -> Self {
        let get = |counter| system.get(counter).clone();
        Self {
            bytes_sent: get(SystemCounter::BytesSent),
            naks_received: get(SystemCounter::NaksReceived),
            status_messages_received: get(SystemCounter::StatusMessagesReceived),
            status_messages_rejected: get(SystemCounter::StatusMessagesRejected),
            heartbeats_sent: get(SystemCounter::HeartbeatsSent),
            retransmits_sent: get(SystemCounter::RetransmitsSent),
            retransmitted_bytes: get(SystemCounter::RetransmittedBytes),
            retransmit_overflow: get(SystemCounter::RetransmitOverflow),
            invalid_packets: get(SystemCounter::InvalidPackets),
            short_sends: get(SystemCounter::ShortSends),
            flow_control_limits: get(SystemCounter::SenderFlowControlLimits),
            error_frames_received: get(SystemCounter::ErrorFramesReceived),
            resolution_changes: get(SystemCounter::ResolutionChanges),
        }
    }
}
