//! System counters: the driver's statistics (`docs/spec/01-memory-layouts.md`, section 6).
//!
//! A driver allocates the system counters before all other counters, so that each counter id equals the number of the
//! system counter.

use super::meaning::CounterKind::{self, Counter, Gauge, State};
use super::meaning::CounterUnit::{self, Bytes, Nanoseconds, Number};
use super::{AllocateError, AtomicCounter, CountersManager, NULL_VALUE, NewCounter, types};
use crate::words::Words;

macro_rules! system_counters {
    ($($name:ident $kind:ident $unit:ident $text:literal,)*) => {
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
            pub fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// Returns the name of the variant.
            fn variant(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// Returns the kind of the values.
            pub const fn kind(self) -> CounterKind {
                match self {
                    $(Self::$name => $kind,)*
                }
            }

            /// Returns the unit of the values.
            pub const fn unit(self) -> CounterUnit {
                match self {
                    $(Self::$name => $unit,)*
                }
            }
        }
    };
}

system_counters! {
    BytesSent Counter Bytes "Bytes sent",
    BytesReceived Counter Bytes "Bytes received",
    ReceiverProxyFails Counter Number "Failed offers to ReceiverProxy",
    SenderProxyFails Counter Number "Failed offers to SenderProxy",
    ConductorProxyFails Counter Number "Failed offers to DriverConductorProxy",
    NaksSent Counter Number "NAKs sent",
    NaksReceived Counter Number "NAKs received",
    StatusMessagesSent Counter Number "Status Messages sent",
    StatusMessagesReceived Counter Number "Status Messages received",
    HeartbeatsSent Counter Number "Heartbeats sent",
    HeartbeatsReceived Counter Number "Heartbeats received",
    RetransmitsSent Counter Number "Retransmits sent",
    FlowControlUnderRuns Counter Number "Flow control under runs",
    FlowControlOverRuns Counter Number "Flow control over runs",
    InvalidPackets Counter Number "Invalid packets",
    Errors Counter Number "Errors",
    ShortSends Counter Number "Short sends",
    FreeFails Counter Number "Failed attempts to free log buffers",
    SenderFlowControlLimits Counter Number "Sender flow control limits, i.e. back-pressure events",
    UnblockedPublications Counter Number "Unblocked Publications",
    UnblockedCommands Counter Number "Unblocked Control Commands",
    PossibleTtlAsymmetry Counter Number "Possible TTL Asymmetry",
    ControllableIdleStrategy State Number "ControllableIdleStrategy status",
    LossGapFills Counter Number "Loss gap fills",
    ClientTimeouts Counter Number "Client liveness timeouts",
    ResolutionChanges Counter Number "Resolution changes",
    ConductorMaxCycleTime Gauge Nanoseconds "Conductor max cycle time doing its work in ns",
    ConductorCycleTimeExceeded Counter Number "Conductor work cycle exceeded threshold count",
    SenderMaxCycleTime Gauge Nanoseconds "Sender max cycle time doing its work in ns",
    SenderCycleTimeExceeded Counter Number "Sender work cycle exceeded threshold count",
    ReceiverMaxCycleTime Gauge Nanoseconds "Receiver max cycle time doing its work in ns",
    ReceiverCycleTimeExceeded Counter Number "Receiver work cycle exceeded threshold count",
    NameResolverMaxTime Gauge Nanoseconds "NameResolver max time in ns",
    NameResolverTimeExceeded Counter Number "NameResolver exceeded threshold count",
    Version State Number "Aeron software",
    BytesMapped Gauge Bytes "Bytes currently mapped",
    RetransmittedBytes Counter Bytes "Retransmitted bytes",
    RetransmitOverflow Counter Number "Retransmit Pool Overflow count",
    ErrorFramesReceived Counter Number "Error Frames received",
    ErrorFramesSent Counter Number "Error Frames sent",
    PublicationsRevoked Counter Number "Publications Revoked",
    PublicationImagesRevoked Counter Number "Publication Images Revoked",
    ImagesRejected Counter Number "Images rejected",
    ControlProtocolVersion State Number "Control protocol version",
    StatusMessagesRejected Counter Number "Status Messages rejected",
    NativeResourceAgentProxyFails Counter Number "Failed offers to NativeResourceAgentProxy",
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

    /// Returns the system counter with this id.
    pub fn of(id: i32) -> Option<Self> {
        usize::try_from(id)
            .ok()
            .and_then(|id| Self::ALL.get(id))
            .copied()
    }

    /// Returns the name in lower case, with underscores.
    pub fn name(self) -> String {
        let mut name = String::new();
        for letter in self.variant().chars() {
            if letter.is_uppercase() && !name.is_empty() {
                name.push('_');
            }
            name.push(letter.to_ascii_lowercase());
        }
        name
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
        let counters: Vec<_> = counters.collect::<Result<_, _>>()?;
        debug_assert!(
            counters
                .iter()
                .zip(SystemCounter::ALL)
                .all(|(counter, system)| counter.id() == system.id()),
            "the system counters are not the first counters: clients would not find them by their ids"
        );
        Ok(Self { counters })
    }

    /// Returns the handle on a system counter.
    pub fn get(&self, counter: SystemCounter) -> &AtomicCounter<W> {
        &self.counters[counter as usize]
    }
}
