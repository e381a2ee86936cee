//! System counters: the driver's statistics (`docs/spec/01-memory-layouts.md`, section 6).
//!
//! A driver allocates the system counters before all other counters, so that each counter id equals the number of the
//! system counter.

use super::{AllocateError, AtomicCounter, CountersManager, NULL_VALUE, NewCounter, types};
use crate::words::Words;

macro_rules! system_counters {
    ($($name:ident $text:literal,)*) => {
        /// The system counters in the order of their ids.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(i32)]
        pub enum SystemCounter {
            $(#[doc = $text] $name,)*
        }

        impl SystemCounter {
            /// All system counters, in the order of their ids.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns the beginning of the label.
            fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

system_counters! {
    BytesSent "Bytes sent",
    BytesReceived "Bytes received",
    ReceiverProxyFails "Failed offers to ReceiverProxy",
    SenderProxyFails "Failed offers to SenderProxy",
    ConductorProxyFails "Failed offers to DriverConductorProxy",
    NaksSent "NAKs sent",
    NaksReceived "NAKs received",
    StatusMessagesSent "Status Messages sent",
    StatusMessagesReceived "Status Messages received",
    HeartbeatsSent "Heartbeats sent",
    HeartbeatsReceived "Heartbeats received",
    RetransmitsSent "Retransmits sent",
    FlowControlUnderRuns "Flow control under runs",
    FlowControlOverRuns "Flow control over runs",
    InvalidPackets "Invalid packets",
    Errors "Errors",
    ShortSends "Short sends",
    FreeFails "Failed attempts to free log buffers",
    SenderFlowControlLimits "Sender flow control limits, i.e. back-pressure events",
    UnblockedPublications "Unblocked Publications",
    UnblockedCommands "Unblocked Control Commands",
    PossibleTtlAsymmetry "Possible TTL Asymmetry",
    ControllableIdleStrategy "ControllableIdleStrategy status",
    LossGapFills "Loss gap fills",
    ClientTimeouts "Client liveness timeouts",
    ResolutionChanges "Resolution changes",
    ConductorMaxCycleTime "Conductor max cycle time doing its work in ns",
    ConductorCycleTimeExceeded "Conductor work cycle exceeded threshold count",
    SenderMaxCycleTime "Sender max cycle time doing its work in ns",
    SenderCycleTimeExceeded "Sender work cycle exceeded threshold count",
    ReceiverMaxCycleTime "Receiver max cycle time doing its work in ns",
    ReceiverCycleTimeExceeded "Receiver work cycle exceeded threshold count",
    NameResolverMaxTime "NameResolver max time in ns",
    NameResolverTimeExceeded "NameResolver exceeded threshold count",
    Version "Aeron software",
    BytesMapped "Bytes currently mapped",
    RetransmittedBytes "Retransmitted bytes",
    RetransmitOverflow "Retransmit Pool Overflow count",
    ErrorFramesReceived "Error Frames received",
    ErrorFramesSent "Error Frames sent",
    PublicationsRevoked "Publications Revoked",
    PublicationImagesRevoked "Publication Images Revoked",
    ImagesRejected "Images rejected",
    ControlProtocolVersion "Control protocol version",
    StatusMessagesRejected "Status Messages rejected",
    NativeResourceAgentProxyFails "Failed offers to NativeResourceAgentProxy",
}

/// Values of the driver that appear in some labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemLabels {
    /// `version=<v> commit=<sha>` of the driver.
    pub software: String,
    /// Name of the driver in name resolution; empty if the driver has no name.
    pub resolver_name: String,
    /// `DEDICATED`, `SHARED_NETWORK`, `SHARED` or `INVOKER`.
    pub threading_mode: String,
    /// Cycle time threshold of the conductor with its unit, e.g. `100ms`.
    pub conductor_threshold: String,
    /// Cycle time threshold of the sender with its unit.
    pub sender_threshold: String,
    /// Cycle time threshold of the receiver with its unit.
    pub receiver_threshold: String,
    /// Time threshold of the name resolver with its unit, e.g. `5s`.
    pub name_resolver_threshold: String,
}

impl SystemCounter {
    /// Returns the counter id, which equals the number of the system counter.
    pub const fn id(self) -> i32 {
        self as i32
    }

    /// Returns the label as the driver writes it.
    pub fn label(self, labels: &SystemLabels) -> String {
        use SystemCounter::*;
        let text = self.text();
        let mode = &labels.threading_mode;
        match self {
            Errors | Version => format!("{text}: {}", labels.software),
            ResolutionChanges => format!("{text}: driverName={}", labels.resolver_name),
            ConductorMaxCycleTime | SenderMaxCycleTime | ReceiverMaxCycleTime => {
                format!("{text}: {mode}")
            }
            ConductorCycleTimeExceeded => {
                format!("{text}: threshold={} {mode}", labels.conductor_threshold)
            }
            SenderCycleTimeExceeded => {
                format!("{text}: threshold={} {mode}", labels.sender_threshold)
            }
            ReceiverCycleTimeExceeded => {
                format!("{text}: threshold={} {mode}", labels.receiver_threshold)
            }
            NameResolverTimeExceeded => {
                format!("{text}: threshold={}", labels.name_resolver_threshold)
            }
            _ => text.to_owned(),
        }
    }
}

/// The system counters of a running driver.
#[derive(Clone, Debug)]
pub struct SystemCounters<W> {
    counters: Vec<AtomicCounter<W>>,
}

impl<W: Words> SystemCounters<W> {
    /// Allocates all system counters. `manager` must not have allocated any counter before.
    pub fn allocate(
        manager: &mut CountersManager<W>,
        labels: &SystemLabels,
        now_ms: i64,
    ) -> Result<Self, AllocateError> {
        let counters = SystemCounter::ALL.iter().map(|&counter| {
            let label = counter.label(labels);
            let new = NewCounter {
                type_id: types::SYSTEM,
                key: &counter.id().to_le_bytes(),
                label: label.as_bytes(),
                registration_id: i64::from(counter.id()),
                owner_id: NULL_VALUE,
                reference_id: 0,
                value: 0,
            };
            manager.allocate(&new, now_ms)
        });
        Ok(Self {
            counters: counters.collect::<Result<_, _>>()?,
        })
    }

    /// Returns the handle on a system counter.
    pub fn get(&self, counter: SystemCounter) -> &AtomicCounter<W> {
        &self.counters[counter as usize]
    }
}
