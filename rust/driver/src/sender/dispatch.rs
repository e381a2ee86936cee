//! [`Routes`]: finds the publication of each control frame and counts the frames (docs/spec/02, sections 16.2 and 17).

use std::collections::HashMap;
use std::net::SocketAddr;

use aeron_protocol::frame::{ControlFrame, ErrorFrame, MAX_TERM_LENGTH, Nak, StatusMessage};

use super::context::SenderContext;
use super::destinations::StatusSource;
use super::endpoint::SendEndpoint;
use super::inbox::ControlDatagram;
use super::publication::SenderPublication;
use crate::error::DriverError;
use crate::stream::StreamSession;

/// A publication and the slot of its endpoint.
pub(super) struct RoutedPublication {
    pub slot: usize,
    pub publication: Box<SenderPublication>,
}

/// Maps each route to the index of its publication.
#[derive(Debug, Default)]
pub struct Routes(HashMap<Route, usize>);

/// The key of a publication: the endpoint at which the control frame arrived, and the session in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Route {
    /// Slot of the endpoint in the sender.
    slot: usize,
    session: StreamSession,
}

impl Routes {
    /// Returns the number of routes.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Adds the route of a publication, or updates its index.
    pub fn add(&mut self, slot: usize, publication: &SenderPublication, index: usize) {
        let session = publication.session();
        let replaced = self.0.insert(Route { slot, session }, index);
        // `swap_remove` moves only the last publication to a lower index.
        debug_assert!(
            replaced.is_none_or(|old| old > index),
            "the route of {session:?} at endpoint slot {slot} is taken by publication {replaced:?}"
        );
    }

    pub fn remove(&mut self, slot: usize, publication: &SenderPublication) {
        let session = publication.session();
        debug_assert!(
            self.0.contains_key(&Route { slot, session }),
            "the publication of {session:?} at endpoint slot {slot} has no route"
        );
        self.0.remove(&Route { slot, session });
    }

    /// Handles a datagram that arrived at the endpoint in `slot`.
    pub fn dispatch(
        &self,
        slot: usize,
        endpoint: &mut SendEndpoint,
        publications: &mut [RoutedPublication],
        datagram: ControlDatagram<'_>,
        context: &mut SenderContext,
    ) {
        let frame = match ControlFrame::decode(datagram.bytes) {
            Ok(Some(frame)) => frame,
            Ok(None) => return,
            Err(_) => {
                context.counters.invalid_packets.fetch_add(1);
                return;
            }
        };
        let session = session_of(&frame);
        let publication = self.find(Route { slot, session }, publications);
        let source = datagram.source;
        match (frame, publication) {
            (ControlFrame::StatusMessage(message), publication) => {
                let source = StatusSource {
                    receiver_id: message.receiver_id,
                    address: source,
                    length: datagram.bytes.len(),
                };
                on_status_message(&message, source, publication, endpoint, context);
            }
            (ControlFrame::Error(frame), publication) => {
                on_error_frame(&frame, source, publication, endpoint, context);
            }
            (ControlFrame::Nak(nak), Some(publication)) => {
                endpoint.on_received(source, datagram.bytes.len());
                on_nak(&nak, source, publication, endpoint, context);
            }
            (ControlFrame::Rttm(rttm), Some(publication)) => {
                endpoint.on_received(source, datagram.bytes.len());
                publication.on_rttm(&rttm, source, endpoint, context);
            }
            (ControlFrame::ResponseSetup(frame), Some(publication)) => {
                publication.on_response_setup(&frame, context);
            }
            (_, None) => {}
        }
    }

    fn find<'a>(
        &self,
        route: Route,
        publications: &'a mut [RoutedPublication],
    ) -> Option<&'a mut SenderPublication> {
        let index = *self.0.get(&route)?;
        debug_assert!(
            index < publications.len(),
            "the route of {:?} leads to publication {index} of {}",
            route.session,
            publications.len()
        );
        let sending = publications.get_mut(index)?;
        debug_assert!(
            sending.slot == route.slot && sending.publication.session() == route.session,
            "the route of {:?} leads to the publication of {:?}",
            route.session,
            sending.publication.session()
        );
        Some(&mut sending.publication)
    }
}

fn session_of(frame: &ControlFrame<'_>) -> StreamSession {
    let (stream_id, session_id) = match frame {
        ControlFrame::StatusMessage(it) => (it.stream_id, it.session_id),
        ControlFrame::Nak(it) => (it.stream_id, it.session_id),
        ControlFrame::Error(it) => (it.stream_id, it.session_id),
        ControlFrame::Rttm(it) => (it.stream_id, it.session_id),
        ControlFrame::ResponseSetup(it) => (it.stream_id, it.session_id),
    };
    StreamSession {
        stream_id,
        session_id,
    }
}

/// Handles a status message. With dynamic control, the receiver becomes a destination even if the stream does not
/// exist.
fn on_status_message(
    message: &StatusMessage<'_>,
    source: StatusSource,
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
    let admitted = endpoint.on_status_message(source, is_known, context.now_ns);
    if let Err(refusal) = admitted {
        context
            .errors
            .record(&DriverError::invalid_argument(refusal));
        return;
    }
    if let Some(publication) = publication {
        publication.on_status_message(message, source.address, endpoint, context);
    }
}

fn on_nak(
    nak: &Nak,
    source: SocketAddr,
    publication: &mut SenderPublication,
    endpoint: &mut SendEndpoint,
    context: &mut SenderContext,
) {
    if nak.check(publication.term_length()).is_err() {
        context.counters.invalid_packets.fetch_add(1);
        return;
    }
    context.counters.naks_received.add_release(1);
    publication.on_nak(nak, source, endpoint, context);
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
