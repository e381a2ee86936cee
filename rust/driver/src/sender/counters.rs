//! What the sender counts.

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use aeron_memory::counters::system::{SystemCounter, SystemCounters};

type Counter = AtomicCounter<SharedBuffer>;

/// The system counters that the sender moves. Some of them have other writers too, so all are added to atomically where
/// that is rare, and by [`AtomicCounter::add_release`] only where it is not and the sender is alone.
#[derive(Clone, Debug)]
pub struct SenderCounters {
    /// Bytes of data and heartbeats.
    pub bytes_sent: Counter,
    /// NAKs that make sense, for publications that are here.
    pub naks_received: Counter,
    /// Status messages that make sense, whatever they are for.
    pub status_messages_received: Counter,
    /// Status messages far from the sender's position.
    pub status_messages_rejected: Counter,
    /// Heartbeats.
    pub heartbeats_sent: Counter,
    /// Ranges that were sent again.
    pub retransmits_sent: Counter,
    /// Bytes that were sent again, padding included.
    pub retransmitted_bytes: Counter,
    /// NAKs for which no action was free.
    pub retransmit_overflow: Counter,
    /// Datagrams that make no sense; the receiver counts here too.
    pub invalid_packets: Counter,
    /// Times that a socket took less than it was given; the receiver counts here too.
    pub short_sends: Counter,
    /// Times that flow control held back data.
    pub flow_control_limits: Counter,
    /// Error frames that make sense, whatever they are for.
    pub error_frames_received: Counter,
    /// Names that stand for another address; the receiver counts here too.
    pub resolution_changes: Counter,
}

impl SenderCounters {
    /// The sender's share of a driver's counters.
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
