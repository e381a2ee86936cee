//! [`Closing`]: the requests and reports between a closing driver and its conductor. They prevent the loss of published
//! messages.
//!
//! On request, the conductor ends all network publications, and the sender continues to send their data. The conductor
//! then reports the bytes that receivers have not consumed yet.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A network publication with a live receiver that has not reported the end of the stream.
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
    /// Bytes that the slowest live receiver has not reported as consumed, including the unsent bytes.
    pub unconsumed_bytes: i64,
    /// Time for which the publication lingers for its receivers.
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

/// Returns a line about the bytes that receivers did not consume; `None` if they consumed everything.
pub fn describe_unconsumed(streams: &[UnconsumedStream]) -> Option<String> {
    let list: Vec<_> = streams.iter().map(UnconsumedStream::to_string).collect();
    (!list.is_empty()).then(|| {
        format!(
            "the driver closed before receivers reported that they consumed up to {}; \
             close later, or raise publication_linger_timeout_ns",
            list.join(", ")
        )
    })
}

/// The conductor's report on the work that is left before the driver can close.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClosingReport {
    /// Streams that live receivers have not consumed.
    pub unconsumed: Vec<UnconsumedStream>,
    /// Number of images for which no status message has announced yet that this receiver leaves the stream.
    pub untold_images: usize,
    /// Whether the conductor had found the request to end all images. Without it, `untold_images` does not count images
    /// with subscribers.
    pub is_last_call: bool,
}

/// State shared by a driver and its conductor. Without a request, it costs the conductor one load in each duty cycle.
#[derive(Debug, Default)]
pub struct Closing {
    is_requested: AtomicBool,
    is_last_call: AtomicBool,
    /// `None` until the conductor has ended the publications.
    report: Mutex<Option<ClosingReport>>,
}

impl Closing {
    /// Asks the conductor to end the publications, and the images without a subscriber.
    pub fn request(&self) {
        self.is_requested.store(true, Ordering::Release);
    }

    /// Asks the conductor to end all images.
    pub fn request_last_call(&self) {
        self.is_last_call.store(true, Ordering::Release);
    }

    /// Returns whether the driver is to close. Called by the conductor.
    pub fn is_requested(&self) -> bool {
        self.is_requested.load(Ordering::Acquire)
    }

    /// Returns whether all images are to end. Called by the conductor.
    pub fn is_last_call(&self) -> bool {
        self.is_last_call.load(Ordering::Acquire)
    }

    /// Stores the conductor's report on the work that is left.
    pub fn report(&self, report: ClosingReport) {
        *self.lock() = Some(report);
    }

    /// Returns the conductor's last report; `None` before the first.
    pub fn last_report(&self) -> Option<ClosingReport> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<ClosingReport>> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The wait of a closing driver for its receivers: [`MediaDriver::begin_drain`](crate::MediaDriver::begin_drain).
///
/// The wait has three parts. The first part lasts until all published bytes are sent. The second part lasts until live
/// receivers have consumed these bytes, at most for the linger time of the publications. In the last, short part, this
/// driver's own receiver announces to the sender of each image that it leaves the stream.
#[derive(Debug)]
pub struct Drain {
    unsent_bytes: i64,
    last_progress: Instant,
    /// The time at which the end of the images was requested, and the streams that were not consumed at this time.
    last_call: Option<(Instant, Vec<UnconsumedStream>)>,
}

/// Maximum wait for a first report. The conductor never reports if it is stuck, or if the application has to run the
/// conductor but does not do so.
const REPORT_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum wait for the announcements that the images end. The receiver sends these announcements in its next duty
/// cycle, but sends none for images that a client has rejected.
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

    /// Returns whether the wait is over at `now`. Call it repeatedly until it returns `true`.
    pub(crate) fn is_over(&mut self, closing: &Closing, now: Instant) -> bool {
        if let Some((since, _)) = &self.last_call {
            let is_told = closing
                .last_report()
                .is_some_and(|report| report.is_last_call && report.untold_images == 0);
            return is_told || now - *since >= LAST_CALL_TIMEOUT;
        }
        let report = closing.last_report();
        if self.has_drained(report.as_ref(), now) {
            self.last_call = Some((now, report.unwrap_or_default().unconsumed));
            closing.request_last_call();
        }
        false
    }

    /// Returns the streams that live receivers had not consumed at the conductor's last report.
    pub(crate) fn rest(&self, closing: &Closing) -> Vec<UnconsumedStream> {
        match &self.last_call {
            Some((_, unconsumed)) => unconsumed.clone(),
            None => closing.last_report().unwrap_or_default().unconsumed,
        }
    }

    /// Returns the streams that live receivers did not consume in time; empty until the last part of the wait begins.
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
        debug_assert!(
            unsent_bytes >= 0,
            "the streams have {unsent_bytes} unsent bytes"
        );
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

    fn report(unsent_bytes: &[i64], untold_images: Option<usize>) -> ClosingReport {
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
            untold_images: untold_images.unwrap_or_default(),
            is_last_call: untold_images.is_some(),
        }
    }

    #[test]
    fn a_drain_continues_while_bytes_are_sent_and_then_lasts_for_the_linger_time() {
        let (closing, start) = (Closing::default(), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut drain = Drain::new(&closing, start);
        for (unsent, seconds) in [(100, 1), (50, 5), (0, 9), (0, 13)] {
            closing.report(report(&[unsent], None));
            assert!(!drain.is_over(&closing, after(seconds)));
            assert!(!closing.is_last_call());
        }
        assert!(!drain.is_over(&closing, after(14)));
        assert!(closing.is_last_call());
        assert_eq!(drain.unconsumed().len(), 1);
        // A conductor that had not found the request to end the images may report before and after it. Such a report
        // does not count.
        assert!(!drain.is_over(&closing, after(14)));
        closing.report(report(&[0], None));
        assert!(!drain.is_over(&closing, after(14)));
        closing.report(report(&[0], Some(1)));
        assert!(!drain.is_over(&closing, after(14)));
        closing.report(report(&[0], Some(0)));
        assert!(drain.is_over(&closing, after(14)));
    }

    #[test]
    fn a_drain_without_unconsumed_streams_ends_with_the_second_report() {
        let (closing, start) = (Closing::default(), Instant::now());
        let mut drain = Drain::new(&closing, start);
        closing.report(report(&[], None));
        assert!(!drain.is_over(&closing, start));
        closing.report(report(&[], Some(0)));
        assert!(drain.is_over(&closing, start));
        assert!(drain.unconsumed().is_empty());
    }

    #[test]
    fn a_drain_ends_after_its_timeouts_if_the_conductor_is_stuck() {
        let (closing, start) = (Closing::default(), Instant::now());
        let mut drain = Drain::new(&closing, start);
        assert!(!drain.is_over(&closing, start));
        assert!(!drain.is_over(&closing, start + REPORT_TIMEOUT));
        assert!(drain.is_over(&closing, start + REPORT_TIMEOUT + LAST_CALL_TIMEOUT));
    }
}
