//! [`ArchiveOutlets`]: what leaves the conductor. Replies and signals go to the requesters, errors to the operator.

use std::sync::Arc;

use aeron_agent::{EpochClock, NanoClock};
use aeron_protocol::archive::{NULL_VALUE, RecordingSignal, RequestIds};

use super::counters::ArchiveCounters;
use super::listing::Listing;
use super::{ArchiveError, ErrorReports};

/// Clocks of an archive.
#[derive(Clone)]
pub(super) struct Clocks {
    /// Wall clock.
    pub epoch: Arc<dyn EpochClock>,
    /// Monotonic clock.
    pub nano: Arc<dyn NanoClock>,
}

/// The outputs of the conductor, and the time of its duty cycle.
pub(super) struct ArchiveOutlets {
    /// The archive's counters in its driver.
    pub counters: ArchiveCounters,
    reports: Box<dyn ErrorReports>,
    clocks: Clocks,
    /// Replies and signals that the requesters have not taken yet, in order.
    notices: Vec<ConductorNotice>,
    now_ns: i64,
    now_ms: i64,
}

/// The reply to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ConductorReply {
    /// The result of the request.
    Value(i64),
    /// No recording has this id.
    RecordingUnknown(i64),
    /// The entries of a list. The requester reads them with [`Listing::read`].
    Listing(Listing),
}

/// A reply or a signal for a requester.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ConductorNotice {
    /// The reply to a request, or the later failure of a request.
    Reply(RequestIds, Result<ConductorReply, ArchiveError>),
    /// A signal of a recording that the request has started or changed.
    Signal(RequestIds, RecordingSignal, SignalPlace),
}

/// The recording, the subscription and the position of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SignalPlace {
    /// Recording id.
    pub recording_id: i64,
    /// Registration id of the subscription.
    pub subscription_id: i64,
    /// Position of the signal in the recording.
    pub position: i64,
}

impl SignalPlace {
    /// Creates the place of a signal that has only a recording, without a subscription and a
    /// position.
    pub const fn recording(recording_id: i64) -> Self {
        Self {
            recording_id,
            subscription_id: NULL_VALUE,
            position: NULL_VALUE,
        }
    }
}

impl ArchiveOutlets {
    pub fn new(counters: ArchiveCounters, reports: Box<dyn ErrorReports>, clocks: Clocks) -> Self {
        Self {
            counters,
            reports,
            notices: Vec::new(),
            now_ns: clocks.nano.nano_time(),
            now_ms: clocks.epoch.time_ms(),
            clocks,
        }
    }

    /// Reads the clocks for a new duty cycle.
    pub fn begin_cycle(&mut self) {
        self.now_ns = self.clocks.nano.nano_time();
        self.now_ms = self.clocks.epoch.time_ms();
    }

    /// Returns the monotonic time of the duty cycle.
    pub fn now_ns(&self) -> i64 {
        self.now_ns
    }

    /// Returns the time of the duty cycle in milliseconds since the epoch.
    pub fn now_ms(&self) -> i64 {
        self.now_ms
    }

    /// Adds a reply to a request.
    pub fn reply(
        &mut self,
        requester: RequestIds,
        reply: Result<impl Into<ConductorReply>, ArchiveError>,
    ) {
        let reply = reply.map(Into::into);
        self.notices.push(ConductorNotice::Reply(requester, reply));
    }

    /// Adds the refusal of a request, or its later failure.
    pub fn refuse(&mut self, requester: RequestIds, error: ArchiveError) {
        self.reply(requester, Err::<ConductorReply, _>(error));
    }

    /// Adds a signal of a recording. The signal is sent to `requester`.
    pub fn signal(&mut self, requester: RequestIds, signal: RecordingSignal, place: SignalPlace) {
        self.notices
            .push(ConductorNotice::Signal(requester, signal, place));
    }

    /// Removes and returns all replies and signals.
    pub fn take_notices(&mut self) -> Vec<ConductorNotice> {
        std::mem::take(&mut self.notices)
    }

    /// Reports an error of the archive or its data to the operator of the archive.
    pub fn report(&mut self, error: &str) {
        self.reports.report(self.now_ms, error);
    }

    /// Reports an error that a client has caused. Without authentication, anybody can cause it any number of times. So
    /// the text has no session id, correlation id or length that the client chose.
    pub fn report_client(&mut self, error: &str) {
        self.reports.report_client(self.now_ms, error);
    }

    /// Reports a panic with its evidence.
    pub fn report_evidence(&mut self, error: &str, evidence: &str) {
        self.reports.report_evidence(self.now_ms, error, evidence);
    }

    /// Measures the duty cycle, and writes the archive's heartbeat.
    pub fn end_cycle(&mut self) {
        self.reports.heartbeat(self.now_ms);
        self.counters.conductor_cycles.measure(self.now_ns);
    }

    /// Releases the archive's directory.
    pub fn close(&mut self) {
        self.reports.close();
    }
}

impl From<i64> for ConductorReply {
    fn from(value: i64) -> Self {
        Self::Value(value)
    }
}

impl From<Listing> for ConductorReply {
    fn from(listing: Listing) -> Self {
        Self::Listing(listing)
    }
}
