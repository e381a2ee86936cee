//! [`Closing`]: the last word between a driver that is to close and its conductor, so that what was published is not lost.
//!
//! The conductor ends all network publications, whose sender goes on, and reports what receivers have not consumed yet.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A network publication of which live receivers have not reported the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnconsumedStream {
    /// Channel of the publication, as the first client wrote it.
    pub channel: String,
    /// Stream id of the publication.
    pub stream_id: i32,
    /// Session of the publication.
    pub session_id: i32,
    /// Bytes that the sender has not sent.
    pub unsent_bytes: i64,
    /// Bytes that the slowest live receiver has not reported as consumed, the unsent ones included.
    pub unconsumed_bytes: i64,
    /// How long the publication lingers for its receivers.
    pub linger: Duration,
}

impl fmt::Display for UnconsumedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} bytes of {} stream {} session {}",
            self.unconsumed_bytes, self.channel, self.stream_id, self.session_id
        )
    }
}

/// What a conductor says of the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClosingReport {
    /// Streams that live receivers have not consumed.
    pub unconsumed: Vec<UnconsumedStream>,
    /// Images whose sender has not been told that this receiver leaves.
    pub untold_images: usize,
}

/// Shared by a driver and its conductor. While nobody asks, it costs the conductor one load for each duty cycle.
#[derive(Debug, Default)]
pub struct Closing {
    is_requested: AtomicBool,
    is_last_call: AtomicBool,
    /// `None` until the conductor has ended the publications.
    report: Mutex<Option<ClosingReport>>,
}

impl Closing {
    /// Asks the conductor to end the publications, and the images that nobody reads.
    pub fn request(&self) {
        self.is_requested.store(true, Ordering::Release);
    }

    /// Asks the conductor to end all images. What it reported before is forgotten, except what is not consumed.
    pub fn request_last_call(&self) {
        self.is_last_call.store(true, Ordering::Release);
    }

    /// By the conductor: whether the driver is to close.
    pub fn is_requested(&self) -> bool {
        self.is_requested.load(Ordering::Acquire)
    }

    /// By the conductor: whether all images are to end.
    pub fn is_last_call(&self) -> bool {
        self.is_last_call.load(Ordering::Acquire)
    }

    /// By the conductor: what is left to do now.
    pub fn report(&self, report: ClosingReport) {
        *self.lock() = Some(report);
    }

    /// The conductor's last report; `None` if it has not reported since it was asked last.
    pub fn last_report(&self) -> Option<ClosingReport> {
        self.lock().clone()
    }

    /// Forgets the last report.
    pub fn take_report(&self) -> Option<ClosingReport> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<ClosingReport>> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The wait for what a driver has yet to send and to say: [`MediaDriver::begin_drain`](crate::MediaDriver::begin_drain).
///
/// It lasts as long as something is being sent and then as long as the publications linger for their receivers; after that the
/// senders of this driver's images are told that it leaves.
#[derive(Debug)]
pub struct Drain {
    unsent_bytes: i64,
    last_progress: Instant,
    /// When the images were asked to end, with what was not consumed until then.
    last_call: Option<(Instant, Vec<UnconsumedStream>)>,
}

/// The conductor of a driver in mode INVOKER, or a stuck one, may not report at all.
const REPORT_TIMEOUT: Duration = Duration::from_secs(1);
/// The receiver tells senders in its next duty cycle, except those of images that a client has rejected.
const LAST_CALL_TIMEOUT: Duration = Duration::from_millis(100);

impl Drain {
    /// Starts at `now`.
    pub(crate) fn new(closing: &Closing, now: Instant) -> Self {
        closing.request();
        Self {
            unsent_bytes: i64::MAX,
            last_progress: now,
            last_call: None,
        }
    }

    /// Whether waiting is over at `now`. To be called until it is.
    pub(crate) fn is_over(&mut self, closing: &Closing, now: Instant) -> bool {
        if let Some((since, _)) = &self.last_call {
            let is_told = closing
                .last_report()
                .is_some_and(|report| report.untold_images == 0);
            return is_told || now - *since >= LAST_CALL_TIMEOUT;
        }
        let report = closing.last_report();
        if self.has_drained(report.as_ref(), now) {
            self.last_call = Some((now, report.unwrap_or_default().unconsumed));
            closing.request_last_call();
            closing.take_report();
        }
        false
    }

    /// The streams that live receivers did not consume in time; empty before the wait is over.
    pub fn unconsumed(&self) -> &[UnconsumedStream] {
        match &self.last_call {
            Some((_, unconsumed)) => unconsumed,
            None => &[],
        }
    }

    fn has_drained(&mut self, report: Option<&ClosingReport>, now: Instant) -> bool {
        let Some(report) = report else {
            return now - self.last_progress >= REPORT_TIMEOUT;
        };
        let streams = &report.unconsumed;
        let unsent_bytes = streams.iter().map(|stream| stream.unsent_bytes).sum();
        if unsent_bytes < self.unsent_bytes {
            self.unsent_bytes = unsent_bytes;
            self.last_progress = now;
        }
        let linger = streams.iter().map(|stream| stream.linger).max();
        linger.is_none_or(|linger| now - self.last_progress >= linger)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(unsent_bytes: &[i64], untold_images: usize) -> ClosingReport {
        let stream = |unsent_bytes: &i64| UnconsumedStream {
            channel: "aeron:udp?endpoint=localhost:1".to_owned(),
            stream_id: 1,
            session_id: 2,
            unsent_bytes: *unsent_bytes,
            unconsumed_bytes: unsent_bytes + 96,
            linger: Duration::from_secs(5),
        };
        ClosingReport {
            unconsumed: unsent_bytes.iter().map(stream).collect(),
            untold_images,
        }
    }

    #[test]
    fn a_drain_goes_on_while_bytes_are_sent_and_then_lasts_as_long_as_the_linger() {
        let (closing, start) = (Closing::default(), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut drain = Drain::new(&closing, start);
        for (unsent, seconds) in [(100, 1), (50, 5), (0, 9), (0, 13)] {
            closing.report(report(&[unsent], 0));
            assert!(!drain.is_over(&closing, after(seconds)));
            assert!(!closing.is_last_call());
        }
        assert!(!drain.is_over(&closing, after(14)));
        assert!(closing.is_last_call());
        assert_eq!(drain.unconsumed().len(), 1);
        // What was reported before the last call says nothing of the images.
        assert!(!drain.is_over(&closing, after(14)));
        closing.report(report(&[0], 1));
        assert!(!drain.is_over(&closing, after(14)));
        closing.report(report(&[0], 0));
        assert!(drain.is_over(&closing, after(14)));
    }

    #[test]
    fn nobody_waits_without_receivers() {
        let (closing, start) = (Closing::default(), Instant::now());
        let mut drain = Drain::new(&closing, start);
        closing.report(report(&[], 0));
        assert!(!drain.is_over(&closing, start));
        closing.report(report(&[], 0));
        assert!(drain.is_over(&closing, start));
        assert!(drain.unconsumed().is_empty());
    }

    #[test]
    fn a_conductor_that_is_stuck_is_not_waited_for() {
        let (closing, start) = (Closing::default(), Instant::now());
        let mut drain = Drain::new(&closing, start);
        assert!(!drain.is_over(&closing, start));
        assert!(!drain.is_over(&closing, start + REPORT_TIMEOUT));
        assert!(drain.is_over(&closing, start + REPORT_TIMEOUT + LAST_CALL_TIMEOUT));
    }
}
