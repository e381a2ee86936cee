//! [`Stream`]: a publication's bytes and the way out.

use std::net::SocketAddr;

use aeron_memory::Words;
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::LogBuffers;
use aeron_memory::log::frame::{HEADER_LENGTH, offset as field};

use super::boundaries::FrameBoundaries;
use crate::media::transport::GsoBatch;
use crate::sender::context::SenderContext;
use crate::sender::endpoint::{Audience, SendEndpoint};
use crate::sender::gso_batches::{Limits, MAX_GSO_BATCHES, Tail, cut};

/// What may be sent, and where to.
#[derive(Debug)]
pub struct Stream {
    pub session_id: i32,
    pub stream_id: i32,
    pub log: LogBuffers<SharedBuffer>,
    pub mtu_length: usize,
    /// Everything before was sent.
    pub sender_position: i64,
    /// Positions at which frames begin that can be sent again.
    pub boundaries: FrameBoundaries,
    pub is_response: bool,
    /// Where a response publication goes, once somebody asked for it.
    pub response_address: Option<SocketAddr>,
}

impl Stream {
    /// Whether there is anywhere to send to.
    pub fn has_destination(&self) -> bool {
        !self.is_response || self.response_address.is_some()
    }

    /// Sends GSO batches of the log. Returns how many were taken.
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
        if taken < batches.len() {
            context.on_short_send();
        }
        taken
    }

    /// Sends a datagram that is not in the log; answers whether it was taken.
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

    /// Sends up to `length` bytes of whole frames from `position` on again, if a frame begins there, and nothing that was not
    /// sent before; answers the bytes, padding included.
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
        let limits = Limits {
            mtu_length: self.mtu_length,
            max_gso_batches: MAX_GSO_BATCHES,
            max_gso_batch_datagrams: endpoint.max_gso_batch_datagrams(self.response_address),
            tail: Tail::Send,
        };
        let mut at = position;
        while at < end {
            // A receiver may ask for what looks like a frame and is none: that is not sent, and nobody's fault here.
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

    /// Whether a frame of this stream begins at `position`.
    ///
    /// The header is compared first, because it refuses nearly all forged requests without a walk.
    fn begins_frame(&self, position: i64) -> bool {
        self.has_header(position) && self.boundaries.begins_frame(&self.log, position)
    }

    /// Whether the bytes at `position` are the header of a frame of this stream and of this place.
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
