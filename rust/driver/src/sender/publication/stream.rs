//! [`SendStream`]: sends and retransmits the bytes of a publication.

use std::net::SocketAddr;

use aeron_memory::Words;
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::LogBuffers;
use aeron_memory::log::frame::{HEADER_LENGTH, offset as field};

use super::boundaries::FrameBoundaries;
use crate::media::transport::GsoBatch;
use crate::sender::context::SenderContext;
use crate::sender::endpoint::{Audience, SendEndpoint};
use crate::sender::gso_batches::{CutLimits, MAX_GSO_BATCHES, TailPolicy, cut};

/// The log of a publication, its position, and its response destination.
#[derive(Debug)]
pub struct SendStream {
    pub session_id: i32,
    pub stream_id: i32,
    pub log: LogBuffers<SharedBuffer>,
    pub mtu_length: usize,
    /// Position up to which the stream was sent.
    pub sender_position: i64,
    /// Recorded start positions of frames, for retransmits.
    pub boundaries: FrameBoundaries,
    pub is_response: bool,
    /// Destination of a response publication; `None` until the requester has requested a SETUP.
    pub response_address: Option<SocketAddr>,
}

impl SendStream {
    /// Returns whether a destination is known.
    pub fn has_destination(&self) -> bool {
        !self.is_response || self.response_address.is_some()
    }

    /// Sends GSO batches of the log. Returns the number of accepted batches.
    pub fn send_gso_batches(
        &self,
        batches: &[GsoBatch<'_>],
        audience: Audience,
        endpoint: &mut SendEndpoint,
        context: &SenderContext,
    ) -> usize {
        let taken =
            match endpoint.send_gso_batches(self.response_address, batches, audience, context) {
                Ok(taken) => taken,
                Err(error) => {
                    context.on_socket_error(&error, "failed to send data");
                    0
                }
            };
        debug_assert!(
            taken <= batches.len(),
            "the socket has accepted {taken} of {} batches",
            batches.len()
        );
        if taken < batches.len() {
            context.on_short_send();
        }
        taken
    }

    /// Sends a datagram that is not in the log. Returns whether the socket accepted the datagram.
    pub fn send(
        &self,
        datagram: &[u8],
        endpoint: &mut SendEndpoint,
        context: &SenderContext,
    ) -> bool {
        if !self.has_destination() {
            return false;
        }
        let is_taken = match endpoint.send(self.response_address, datagram, context) {
            Ok(is_taken) => is_taken,
            Err(error) => {
                context.on_socket_error(&error, "failed to send");
                false
            }
        };
        if !is_taken {
            context.on_short_send();
        }
        is_taken
    }

    /// Retransmits up to `length` bytes of whole frames from `position`, if a frame begins at `position`.
    ///
    /// Returns the number of retransmitted bytes, including padding. Bytes that were not sent before are not sent.
    pub fn resend(
        &self,
        position: i64,
        length: usize,
        audience: Audience,
        endpoint: &mut SendEndpoint,
        context: &SenderContext,
    ) -> usize {
        if !self.begins_frame(position) || !self.has_destination() {
            return 0;
        }
        let end = self
            .sender_position
            .min(position.saturating_add(length as i64));
        let limits = CutLimits {
            mtu_length: self.mtu_length,
            max_gso_batches: MAX_GSO_BATCHES,
            max_gso_batch_datagrams: endpoint.max_gso_batch_datagrams(self.response_address),
            tail: TailPolicy::Send,
        };
        let mut at = position;
        while at < end {
            // A receiver may request bytes that only resemble a frame. Such bytes are not sent. The request is not an
            // error of this driver.
            let Ok(cut) = cut(&self.log, at, end - at, &limits) else {
                break;
            };
            if cut.batches.is_empty() {
                break;
            }
            let taken = self.send_gso_batches(&cut.batches, audience, endpoint, context);
            at = cut.end_of(taken);
            if taken < cut.batches.len() {
                break;
            }
        }
        let resent = (at - position) as usize;
        if resent > 0 {
            context.counters.retransmits_sent.add_release(1);
            context
                .counters
                .retransmitted_bytes
                .add_release(resent as i64);
        }
        resent
    }

    /// Returns whether a frame of this stream begins at `position`.
    ///
    /// The header is checked first, because this check rejects nearly all forged requests without a walk.
    fn begins_frame(&self, position: i64) -> bool {
        self.has_header(position) && self.boundaries.begins_frame(&self.log, position)
    }

    /// Returns whether the bytes at `position` are a frame header of this stream with this position.
    fn has_header(&self, position: i64) -> bool {
        let positions = self.log.positions();
        let (term, offset) = (self.log.term_at(position), positions.term_offset(position));
        if position < 0 || offset + HEADER_LENGTH > positions.term_length() {
            return false;
        }
        let load = |at: usize| term.load_i32_relaxed(offset + at);
        load(field::TERM_OFFSET) == offset as i32
            && load(field::TERM_ID) == positions.term_id(position)
            && load(field::SESSION_ID) == self.session_id
            && load(field::STREAM_ID) == self.stream_id
    }
}
