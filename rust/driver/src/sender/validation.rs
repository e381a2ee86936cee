//! Address validation: limits the bytes that are sent to a dynamic destination before the destination has proved that
//! it receives datagrams.
//!
//! An attacker can send a status message with a forged source address. A new dynamic destination is therefore
//! *unvalidated*: it is sent at most [`AMPLIFICATION_LIMIT`] bytes for each byte that arrived from its address. One of
//! three events validates the destination:
//!
//! * The destination responds to a *challenge*: an RTT measurement with a secret timestamp. A receiver responds to a
//!   measurement at once if it has joined the stream. The first challenge is sent when data exceeds the allowance for
//!   the first time. After the response, the destination is sent the data that it missed since its *join position*, up
//!   to the end of its first window. The join position is the position in its first status message that has a position.
//! * A status message has a position after the join position.
//! * A NAK requests bytes at or after the join position.
//!
//! A destination that never uses up its allowance is never challenged.

use std::ops::Range;

use aeron_protocol::frame::Rttm;
use arrayvec::ArrayVec;

use super::gso_batches::MAX_GSO_BATCHES;
use crate::media::transport::GsoBatch;

/// Maximum number of bytes that are sent to an unvalidated destination for each byte that arrived from its address.
pub const AMPLIFICATION_LIMIT: usize = 120;
/// Part of an allowance, in bytes, that is reserved for SETUPs, heartbeats, replies and challenges.
const CONTROL_RESERVE_LENGTH: usize = 512;
/// Time between the first two challenges. The time doubles with each challenge.
const CHALLENGE_INTERVAL_NS: i64 = 1_000_000;

/// The state of a destination until it is validated; see the [module](self).
#[derive(Debug)]
pub(super) struct Unvalidated {
    /// The secret timestamp of the challenges.
    nonce: i64,
    /// Number of bytes that may still be sent.
    allowance: usize,
    streams: Vec<JoinedStream>,
    next_challenge_ns: i64,
    challenge_count: u32,
}

/// A stream for which the destination's receiver has an image.
#[derive(Debug)]
struct JoinedStream {
    /// Registration id of the publication.
    publication: i64,
    join_position: i64,
    /// End of the window in the first status message.
    window_end: i64,
    /// Whether some data since the join position was not sent because of the allowance.
    is_behind: bool,
}

impl Unvalidated {
    /// Creates the state of a destination from which nothing has arrived. `nonce` must be secret.
    pub fn new(nonce: i64) -> Self {
        Self {
            nonce,
            allowance: 0,
            streams: Vec::new(),
            next_challenge_ns: i64::MIN,
            challenge_count: 0,
        }
    }

    /// Increases the allowance for a message of `length` bytes from the address.
    pub fn on_received(&mut self, length: usize) {
        let earned = AMPLIFICATION_LIMIT.saturating_mul(length);
        self.allowance = self.allowance.saturating_add(earned);
    }

    /// Subtracts `length` bytes from the allowance. If the allowance is smaller, returns `false` and subtracts nothing.
    pub fn spend(&mut self, length: usize) -> bool {
        let rest = self.allowance.checked_sub(length);
        self.allowance = rest.unwrap_or(self.allowance);
        rest.is_some()
    }

    /// Handles a receiver's window in a status message. Returns whether the status message validates the destination.
    pub fn on_position(&mut self, publication: i64, window: Range<i64>) -> bool {
        if let Some(stream) = self.stream(publication) {
            return window.start > stream.join_position;
        }
        debug_assert!(
            window.start <= window.end,
            "status messages with the negative window {window:?} are refused before"
        );
        self.streams.push(JoinedStream {
            publication,
            join_position: window.start,
            window_end: window.end,
            is_behind: false,
        });
        false
    }

    /// Handles a NAK for sent bytes of a publication. Returns whether the NAK validates the destination.
    pub fn on_nak(&self, publication: i64, position: i64) -> bool {
        let stream = self.stream(publication);
        stream.is_some_and(|stream| position >= stream.join_position)
    }

    /// Handles the response to an RTT measurement. Returns whether the response validates the destination.
    pub fn on_answer(&self, echo_timestamp_ns: i64) -> bool {
        echo_timestamp_ns == self.nonce
    }

    /// Returns the window that the receiver of a publication had when it joined.
    pub fn first_window(&self, publication: i64) -> Option<Range<i64>> {
        let stream = self.stream(publication)?;
        Some(stream.join_position..stream.window_end)
    }

    /// Returns the timestamp of a challenge if a challenge is due for the stream of a publication. Subtracts the bytes
    /// of the challenge from the allowance.
    pub fn take_challenge(&mut self, publication: i64, now_ns: i64) -> Option<i64> {
        let is_behind = self.stream(publication).is_some_and(|it| it.is_behind);
        if !is_behind || now_ns < self.next_challenge_ns || !self.spend(Rttm::LENGTH) {
            return None;
        }
        self.next_challenge_ns = now_ns + (CHALLENGE_INTERVAL_NS << self.challenge_count.min(16));
        self.challenge_count += 1;
        Some(self.nonce)
    }

    /// Returns the first datagrams of the batches that fit into the allowance without the reserve for control frames.
    /// Subtracts the bytes of these datagrams from the allowance.
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
        debug_assert!(
            admitted.is_empty() || self.allowance >= CONTROL_RESERVE_LENGTH,
            "data has used the reserve of control frames: {} bytes are left",
            self.allowance
        );
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
