//! [`Arrivals`]: handles the datagrams of one batch from one socket.

use std::net::SocketAddr;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::system::{SystemCounter, SystemCounters};
use aeron_protocol::frame::{DataFrame, DataHeader, FrameError, Rttm, Setup};
use slab::Slab;

use super::command::{ImageRequest, ReceiverEvent};
use super::destination::Link;
use super::dispatcher::{DataAction, MAX_IMAGES, SetupAction};
use super::endpoint::ReceiveEndpoint;
use super::image::{Arrival, ReceiverImage};
use super::sessions::{ForgettableState, MAX_REMEMBERED_SESSIONS};
use crate::diagnostics::ErrorRecorder;
use crate::error::DriverError;
use crate::media::timestamps::EpochNanos;
use crate::media::transport::Datagram;
use crate::queue::QueueProducer;
use crate::rules::{Rule, reach};
use crate::stream::StreamSession;

/// A frame that is sent from the socket after the batch was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// A request for a SETUP: data arrived for a session of interest that has no image.
    SetupRequest {
        to: SocketAddr,
        session: StreamSession,
    },
    /// The reply to a sender that measures the round trip.
    RoundTrip { to: SocketAddr, answer: Rttm },
}

/// The state that the frames of a batch change, and the replies that they cause.
pub(super) struct Arrivals<'a> {
    pub now_ns: i64,
    /// Key of the destination that received the datagrams.
    pub destination: usize,
    pub link: &'a mut Link,
    pub endpoint: &'a mut ReceiveEndpoint,
    pub images: &'a mut Slab<Box<ReceiverImage>>,
    pub replies: &'a mut Vec<Reply>,
    pub events: &'a mut QueueProducer<ReceiverEvent>,
    pub system: &'a SystemCounters<SharedBuffer>,
    pub errors: &'a ErrorRecorder,
    pub epoch_nanos: &'a EpochNanos,
}

impl Arrivals<'_> {
    /// Handles one datagram. An invalid datagram is counted and has no other effect.
    pub fn on_datagram(&mut self, datagram: &mut Datagram<'_>) {
        if self.on_frame(datagram).is_err() {
            self.system.get(SystemCounter::InvalidPackets).fetch_add(1);
        }
    }

    /// Records, once for each endpoint, that too many sessions arrived at the endpoint.
    pub fn note_forgotten_sessions(&mut self) {
        if self.endpoint.dispatcher.has_forgotten() && !self.endpoint.has_noted_forgetting {
            self.endpoint.has_noted_forgetting = true;
            self.errors
                .record(&DriverError::invalid_argument(format_args!(
                    "more than {MAX_REMEMBERED_SESSIONS} sessions, the oldest are forgotten: channel={}",
                    self.endpoint.channel
                )));
        }
    }

    fn on_frame(&mut self, datagram: &mut Datagram<'_>) -> Result<(), FrameError> {
        let Some(frame) = DataFrame::decode(datagram.bytes)? else {
            return Ok(());
        };
        match frame {
            DataFrame::Data(header) => self.on_data(&header, datagram)?,
            DataFrame::Setup(setup) => self.on_setup(&setup, datagram.source),
            DataFrame::Rttm(rttm) => self.on_round_trip(&rttm, datagram.source),
        }
        self.link.time_of_last_activity_ns = self.now_ns;
        Ok(())
    }

    fn on_data(
        &mut self,
        header: &DataHeader,
        datagram: &mut Datagram<'_>,
    ) -> Result<(), FrameError> {
        let session = StreamSession {
            stream_id: header.stream_id,
            session_id: header.session_id,
        };
        let is_end_of_stream = header.is_end_of_stream();
        match self.endpoint.dispatcher.on_data(session, is_end_of_stream) {
            DataAction::Ignore => Ok(()),
            DataAction::Insert(image) => {
                let arrival = self.arrival(datagram.source);
                self.link.stamp(datagram, self.epoch_nanos);
                match self.images.get_mut(image) {
                    Some(image) => image.on_data(header, datagram.bytes, &arrival, self.system),
                    None => Ok(()),
                }
            }
            DataAction::AskForSetup => {
                self.replies.push(Reply::SetupRequest {
                    to: self.link.control.address_for_answer(datagram.source),
                    session,
                });
                Ok(())
            }
        }
    }

    fn on_setup(&mut self, setup: &Setup, source: SocketAddr) {
        let session = StreamSession {
            stream_id: setup.stream_id,
            session_id: setup.session_id,
        };
        match self.endpoint.dispatcher.on_setup(session) {
            SetupAction::Ignore => {}
            SetupAction::Track(image) => {
                let arrival = self.arrival(source);
                if let Some(image) = self.images.get_mut(image) {
                    image.track(&arrival);
                }
            }
            SetupAction::CreateImage { .. } if !self.events.has_room() => {
                self.events.count_refusal();
                self.endpoint
                    .dispatcher
                    .forget(session, ForgettableState::InitInProgress);
            }
            SetupAction::CreateImage { was_asked_for } => {
                let ttl = self.link.multicast_ttl;
                if was_asked_for && ttl.is_some_and(|ttl| ttl < setup.ttl) {
                    self.system
                        .get(SystemCounter::PossibleTtlAsymmetry)
                        .add_release(1);
                }
                self.events
                    .send(ReceiverEvent::CreateImage(Box::new(ImageRequest {
                        endpoint: self.endpoint.id,
                        destination: self.link.id,
                        setup: *setup,
                        source_address: source,
                    })));
            }
            SetupAction::RefuseSession => {
                self.errors
                    .record(&DriverError::invalid_argument(format_args!(
                        "exceeded session limit, stream-id={}",
                        setup.stream_id
                    )))
            }
            SetupAction::RefuseImage => {
                self.errors
                    .record(&DriverError::invalid_argument(format_args!(
                        "exceeded {MAX_IMAGES} images: channel={}",
                        self.endpoint.channel
                    )))
            }
        }
    }

    fn on_round_trip(&mut self, rttm: &Rttm, source: SocketAddr) {
        let receiver_id = self.endpoint.identity.receiver_id;
        if rttm.receiver_id != receiver_id && rttm.receiver_id != 0 {
            return;
        }
        let session = StreamSession {
            stream_id: rttm.stream_id,
            session_id: rttm.session_id,
        };
        let image = self.endpoint.dispatcher.image(session);
        let Some(image) = image.and_then(|image| self.images.get_mut(image)) else {
            return;
        };
        reach(match rttm.is_request {
            true => Rule::RttmRequest,
            false => Rule::RttmAnswer,
        });
        if !rttm.is_request {
            image.on_round_trip(rttm, self.now_ns);
            return;
        }
        self.replies.push(Reply::RoundTrip {
            to: self.link.control.address_for_answer(source),
            answer: Rttm {
                is_request: false,
                reception_delta_ns: 0,
                receiver_id,
                ..*rttm
            },
        });
    }

    fn arrival(&self, source: SocketAddr) -> Arrival {
        Arrival {
            destination: self.destination,
            source,
            now_ns: self.now_ns,
        }
    }
}
