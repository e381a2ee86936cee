//! Address validation: what a dynamic destination is sent before it has shown that it receives.
//!
//! Anybody can send a status message with the address of somebody else. A new dynamic destination is therefore *unvalidated*: it is
//! sent at most [`AMPLIFICATION_LIMIT`] bytes for each byte that came from its address. One of three things validates it:
//!
//! * It answers a *challenge*: a request for the round trip whose timestamp nobody else knows. A receiver answers such a request at
//!   once if it has joined the stream. The first data that the allowance does not hold brings the challenge. After the answer it is sent
//!   what was sent since its *join position* (the position in its first status message that has one), and all that follows.
//! * A status message is beyond the join position.
//! * A NAK asks for bytes after the join position.
//!
//! A destination whose allowance is never used up is never challenged.

use std::ops::Range;

use aeron_protocol::frame::Rttm;
use arrayvec::ArrayVec;

use super::gso_batches::MAX_GSO_BATCHES;
use crate::media::transport::GsoBatch;

/// Bytes that an unvalidated destination is sent at most for each byte that came from its address.
pub const AMPLIFICATION_LIMIT: usize = 120;
/// Bytes of an allowance that data leaves for SETUPs, heartbeats, answers and challenges.
const CONTROL_RESERVE_LENGTH: usize = 512;
/// Time between the first two challenges; it doubles with each one.
const CHALLENGE_INTERVAL_NS: i64 = 1_000_000;

/// The state of a destination until it is validated; see the [module](self).
#[derive(Debug)]
pub(super) struct Unvalidated {
    /// Timestamp of the challenges.
    nonce: i64,
    /// Bytes that may be sent.
    allowance: usize,
    streams: Vec<JoinedStream>,
    next_challenge_ns: i64,
    challenge_count: u32,
}

/// A stream of which the destination's receiver has an image.
#[derive(Debug)]
struct JoinedStream {
    /// Registration id of the publication.
    publication: i64,
    join_position: i64,
    /// The end of the window in the first status message.
    window_end: i64,
    /// The allowance did not hold all data since the receiver joined.
    is_behind: bool,
}

impl Unvalidated {
    /// A destination that has sent nothing. Nobody else can guess the `nonce`.
    pub fn new(nonce: i64) -> Self {
        Self {
            nonce,
            allowance: 0,
            streams: Vec::new(),
            next_challenge_ns: i64::MIN,
            challenge_count: 0,
        }
    }

    /// A message of `length` bytes came from the address.
    pub fn on_received(&mut self, length: usize) {
        let earned = AMPLIFICATION_LIMIT.saturating_mul(length);
        self.allowance = self.allowance.saturating_add(earned);
    }

    /// Whether `length` bytes may be sent now; they count as sent.
    pub fn spend(&mut self, length: usize) -> bool {
        let rest = self.allowance.checked_sub(length);
        self.allowance = rest.unwrap_or(self.allowance);
        rest.is_some()
    }

    /// A status message names the window of a receiver of a publication. Returns whether that validates the destination.
    pub fn on_position(&mut self, publication: i64, window: Range<i64>) -> bool {
        if let Some(stream) = self.stream(publication) {
            return window.start > stream.join_position;
        }
        self.streams.push(JoinedStream {
            publication,
            join_position: window.start,
            window_end: window.end,
            is_behind: false,
        });
        false
    }

    /// A NAK asks for bytes of a publication that were sent. Returns whether that validates the destination.
    pub fn on_nak(&self, publication: i64, position: i64) -> bool {
        let stream = self.stream(publication);
        stream.is_some_and(|stream| position >= stream.join_position)
    }

    /// A request for the round trip was answered. Returns whether that validates the destination.
    pub fn on_answer(&self, echo_timestamp_ns: i64) -> bool {
        echo_timestamp_ns == self.nonce
    }

    /// The window that the receiver of a publication had when it joined.
    pub fn first_window(&self, publication: i64) -> Option<Range<i64>> {
        let stream = self.stream(publication)?;
        Some(stream.join_position..stream.window_end)
    }

    /// The timestamp of a challenge, if one is due on the stream of a publication; it counts as sent.
    pub fn take_challenge(&mut self, publication: i64, now_ns: i64) -> Option<i64> {
        let is_behind = self.stream(publication).is_some_and(|it| it.is_behind);
        if !is_behind || now_ns < self.next_challenge_ns || !self.spend(Rttm::LENGTH) {
            return None;
        }
        self.next_challenge_ns = now_ns + (CHALLENGE_INTERVAL_NS << self.challenge_count.min(16));
        self.challenge_count += 1;
        Some(self.nonce)
    }

    /// The first of these batches' datagrams that the allowance holds, as data of a publication; they count as sent.
    pub fn admit<'a>(
        &mut self,
        publication: i64,
        batches: &[GsoBatch<'a>],
    ) -> ArrayVec<GsoBatch<'a>, MAX_GSO_BATCHES> {
        let mut admitted = ArrayVec::new();
        let mut available = self.allowance.saturating_sub(CONTROL_RESERVE_LENGTH);
        for batch in batches {
            let first = batch.first_datagrams(available);
            let length = first.as_ref().map_or(0, GsoBatch::length);
            admitted.extend(first);
            available -= length;
            self.allowance -= length;
            if length < batch.length() {
                self.on_withheld(publication);
                break;
            }
        }
        admitted
    }

    fn on_withheld(&mut self, publication: i64) {
        let mut streams = self.streams.iter_mut();
        if let Some(stream) = streams.find(|it| it.publication == publication) {
            stream.is_behind = true;
        }
    }

    fn stream(&self, publication: i64) -> Option<&JoinedStream> {
        let mut streams = self.streams.iter();
        streams.find(|it| it.publication == publication)
    }
}
