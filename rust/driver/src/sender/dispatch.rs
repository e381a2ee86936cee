//! [`Routes`]: which publication a control frame is for, and what is counted on the way (reference 02, sections 16.2 and 17).

use std::collections::HashMap;
use std::net::SocketAddr;

use aeron_protocol::frame::{ControlFrame, ErrorFrame, MAX_TERM_LENGTH, Nak, StatusMessage};

use super::Sending;
use super::context::SenderContext;
use super::endpoint::SendEndpoint;
use super::publication::SenderPublication;
use crate::error::DriverError;

/// Indexes of publications by the slot of their endpoint, stream and session.
#[derive(Debug, Default)]
pub struct Routes(HashMap<(usize, i32, i32), usize>);

impl Routes {
    /// The publication is at `index` now.
    pub fn add(&mut self, slot: usize, publication: &SenderPublication, index: usize) {
        self.0.insert(key(slot, publication), index);
    }

    pub fn remove(&mut self, slot: usize, publication: &SenderPublication) {
        self.0.remove(&key(slot, publication));
    }

    /// Acts on a datagram that came to an endpoint's socket.
    pub fn dispatch(
        &self,
        (slot, endpoint): (usize, &mut SendEndpoint),
        publications: &mut [Sending],
        source: SocketAddr,
        datagram: &[u8],
        context: &mut SenderContext,
    ) {
        let frame = match ControlFrame::decode(datagram) {
            Ok(Some(frame)) => frame,
            Ok(None) => return,
            Err(_) => {
                context.counters.invalid_packets.fetch_add(1);
                return;
            }
        };
        match frame {
            ControlFrame::StatusMessage(message) => {
                let publication =
                    self.find(publications, (slot, message.stream_id, message.session_id));
                on_status_message(&message, source, publication, endpoint, context);
            }
            ControlFrame::Nak(nak) => {
                if let Some(publication) =
                    self.find(publications, (slot, nak.stream_id, nak.session_id))
                {
                    on_nak(&nak, publication, endpoint, context);
                }
            }
            ControlFrame::Error(frame) => {
                let publication =
                    self.find(publications, (slot, frame.stream_id, frame.session_id));
                on_error_frame(&frame, source, publication, endpoint, context);
            }
            ControlFrame::Rttm(rttm) => {
                if let Some(publication) =
                    self.find(publications, (slot, rttm.stream_id, rttm.session_id))
                {
                    publication.on_rttm(&rttm, endpoint, context);
                }
            }
            ControlFrame::ResponseSetup(frame) => {
                if let Some(publication) =
                    self.find(publications, (slot, frame.stream_id, frame.session_id))
                {
                    publication.on_response_setup(&frame, context);
                }
            }
        }
    }

    fn find<'a>(
        &self,
        publications: &'a mut [Sending],
        key: (usize, i32, i32),
    ) -> Option<&'a mut SenderPublication> {
        let sending = publications.get_mut(*self.0.get(&key)?)?;
        Some(&mut sending.publication)
    }
}

fn key(slot: usize, publication: &SenderPublication) -> (usize, i32, i32) {
    (slot, publication.stream_id(), publication.session_id())
}

/// A status message of a stream that is not here still makes a destination of its receiver.
fn on_status_message(
    message: &StatusMessage<'_>,
    source: SocketAddr,
    publication: Option<&mut SenderPublication>,
    endpoint: &mut SendEndpoint,
    context: &mut SenderContext,
) {
    let term_length = publication
        .as_ref()
        .map_or(MAX_TERM_LENGTH, |it| it.term_length());
    if message.check(term_length).is_err() {
        context.counters.invalid_packets.fetch_add(1);
        return;
    }
    context.counters.status_messages_received.add_release(1);
    if publication
        .as_ref()
        .is_some_and(|it| !it.is_in_range(message))
    {
        context.counters.status_messages_rejected.add_release(1);
        return;
    }
    let is_known = publication.is_some();
    let admitted =
        endpoint.on_status_message(message.receiver_id, source, is_known, context.now_ns);
    if let Err(refusal) = admitted {
        context
            .errors
            .record(&DriverError::invalid_argument(refusal));
        return;
    }
    if let Some(publication) = publication {
        publication.on_status_message(message, source, endpoint, context);
    }
}

fn on_nak(
    nak: &Nak,
    publication: &mut SenderPublication,
    endpoint: &mut SendEndpoint,
    context: &mut SenderContext,
) {
    if nak.check(publication.term_length()).is_err() {
        context.counters.invalid_packets.fetch_add(1);
        return;
    }
    context.counters.naks_received.add_release(1);
    publication.on_nak(nak, endpoint, context);
}

fn on_error_frame(
    frame: &ErrorFrame<'_>,
    source: SocketAddr,
    publication: Option<&mut SenderPublication>,
    endpoint: &SendEndpoint,
    context: &mut SenderContext,
) {
    context.counters.error_frames_received.add_release(1);
    if let Some(publication) = publication {
        let destination = endpoint.destination_registration_id(frame.receiver_id, source);
        publication.on_error_frame(frame, source, destination, context);
    }
}
