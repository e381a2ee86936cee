//! [`SendEndpoint`]: a socket that publications share, and where it sends to.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use aeron_protocol::frame::Rttm;

use super::context::SenderContext;
use super::destinations::{
    DestinationTracker, NO_REGISTRATION, StatusSource, TooManyDestinations, is_silent,
};
use super::endpoint_id::EndpointId;
use super::inbox::Inbox;
use super::manual_destination::ManualDestination;
use super::validation::Unvalidated;
use crate::media::timestamps;
use crate::media::transport::{GsoBatch, Socket};
use crate::stream::StreamSession;

/// Where the datagrams of an endpoint go.
#[derive(Debug)]
pub enum Destinations {
    /// To one peer or one group.
    One(Peer),
    /// To several destinations, which come and go.
    Several(DestinationTracker),
    /// Each publication knows where, once it was asked: response channels.
    PerPublication,
}

/// The only destination of an endpoint.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The name to look up again when nobody answers, as it stands in the channel; `None` to keep the address for ever.
    pub name: Option<Arc<str>>,
    /// Where it is now.
    pub address: SocketAddr,
    /// It is a group.
    pub is_multicast: bool,
    /// The socket is connected to the address.
    pub is_connected: bool,
}

/// For whom data of a publication is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    /// All destinations of the publication with this registration id. One that is not validated gets what its allowance holds.
    All { publication: i64 },
    /// What one destination missed.
    One(SocketAddr),
}

/// What makes an endpoint.
pub struct SendEndpointConfig {
    /// Its name between conductor and sender.
    pub id: EndpointId,
    /// Sends data, receives control frames.
    pub socket: Box<dyn Socket>,
    /// Where data goes.
    pub destinations: Destinations,
    /// Where in a message the time of sending is written, see [`TimestampOffsets`](aeron_protocol::uri::TimestampOffsets).
    pub send_timestamp_offset: Option<i32>,
}

/// A send endpoint; made by the conductor, owned by the sender.
pub struct SendEndpoint {
    config: SendEndpointConfig,
    time_of_last_status_message_ns: i64,
}

impl std::fmt::Debug for SendEndpoint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SendEndpoint")
            .field("id", &self.config.id)
            .field("destinations", &self.config.destinations)
            .finish_non_exhaustive()
    }
}

impl SendEndpoint {
    /// An endpoint that nobody has answered yet.
    pub fn new(config: SendEndpointConfig, now_ns: i64) -> Self {
        Self {
            config,
            time_of_last_status_message_ns: now_ns,
        }
    }

    /// Its name between conductor and sender.
    pub fn id(&self) -> EndpointId {
        self.config.id
    }

    pub(super) fn socket(&self) -> &dyn Socket {
        self.config.socket.as_ref()
    }

    /// Whether there is one receiver at most, as far as the channel tells.
    pub(super) fn is_unicast(&self) -> bool {
        match &self.config.destinations {
            Destinations::One(peer) => !peer.is_multicast,
            Destinations::Several(_) => false,
            Destinations::PerPublication => true,
        }
    }

    /// How many datagrams a GSO batch should have at most.
    pub(super) fn max_gso_batch_datagrams(&self, response_address: Option<SocketAddr>) -> usize {
        let to = match &self.config.destinations {
            Destinations::One(peer) => peer.to(),
            Destinations::Several(tracker) => tracker.first_address(),
            Destinations::PerPublication => response_address,
        };
        self.config.socket.max_gso_batch_datagrams(to)
    }

    /// Sends GSO batches to their audience, a response publication's to `response_address`. Returns how many count as sent.
    /// With several destinations all do, whatever each of them got, unless a socket failed.
    pub(super) fn send_gso_batches(
        &mut self,
        response_address: Option<SocketAddr>,
        batches: &[GsoBatch<'_>],
        audience: Audience,
        context: &SenderContext,
    ) -> io::Result<usize> {
        if let Some(offset) = self.config.send_timestamp_offset {
            let time_ns = (context.epoch_nanos)();
            for batch in batches {
                timestamps::stamp_sent(batch, offset, time_ns);
            }
        }
        let socket = self.config.socket.as_mut();
        match &mut self.config.destinations {
            Destinations::One(peer) => socket.send_gso_batches(peer.to(), batches),
            Destinations::PerPublication => socket.send_gso_batches(response_address, batches),
            Destinations::Several(tracker) => {
                let publication = match audience {
                    Audience::One(address) => {
                        return socket.send_gso_batches(Some(address), batches);
                    }
                    Audience::All { publication } => publication,
                };
                let mut outcome = Ok(batches.len());
                for recipient in tracker.recipients(context.now_ns) {
                    let to = Some(recipient.address);
                    let Some(unvalidated) = recipient.unvalidated else {
                        if let Err(error) = socket.send_gso_batches(to, batches) {
                            outcome = Err(error);
                        }
                        continue;
                    };
                    let admitted = unvalidated.admit(publication, batches);
                    if !admitted.is_empty() {
                        let sent = socket.send_gso_batches(to, &admitted);
                        context.note_unvalidated(sent.err());
                    }
                }
                outcome
            }
        }
    }

    /// Sends one datagram that is not in a term to all destinations; answers whether it counts as sent.
    pub(super) fn send(
        &mut self,
        response_address: Option<SocketAddr>,
        datagram: &[u8],
        context: &SenderContext,
    ) -> io::Result<bool> {
        let socket = self.config.socket.as_mut();
        match &mut self.config.destinations {
            Destinations::One(peer) => socket.send(peer.to(), datagram),
            Destinations::PerPublication => socket.send(response_address, datagram),
            Destinations::Several(tracker) => {
                let mut outcome = Ok(true);
                for recipient in tracker.recipients(context.now_ns) {
                    let to = Some(recipient.address);
                    let Some(unvalidated) = recipient.unvalidated else {
                        if let Err(error) = socket.send(to, datagram) {
                            outcome = Err(error);
                        }
                        continue;
                    };
                    if unvalidated.spend(datagram.len()) {
                        context.note_unvalidated(socket.send(to, datagram).err());
                    }
                }
                outcome
            }
        }
    }

    /// Sends the challenges that are due on the stream of a publication.
    pub(super) fn send_challenges(
        &mut self,
        publication: i64,
        session: StreamSession,
        context: &SenderContext,
    ) {
        if let Destinations::Several(tracker) = &mut self.config.destinations {
            for (receiver_id, address, unvalidated) in tracker.unvalidated() {
                let Some(nonce) = unvalidated.take_challenge(publication, context.now_ns) else {
                    continue;
                };
                let challenge = Rttm {
                    is_request: true,
                    session_id: session.session_id,
                    stream_id: session.stream_id,
                    echo_timestamp_ns: nonce,
                    reception_delta_ns: 0,
                    receiver_id,
                };
                let mut datagram = [0; Rttm::LENGTH];
                challenge.encode(&mut datagram);
                let sent = self.config.socket.send(Some(address), &datagram);
                context.note_unvalidated(sent.err());
            }
        }
    }

    /// Takes a batch of up to `limit` messages out of the socket.
    pub(super) fn receive(&mut self, limit: usize, inbox: &mut Inbox) -> io::Result<()> {
        self.config.socket.receive(limit, &mut |datagram| {
            inbox.push(datagram.source, datagram.bytes);
        })?;
        Ok(())
    }

    /// A status message came; `is_known` if one of the endpoint's publications is meant.
    ///
    /// # Errors
    /// Its receiver would be one destination too many.
    pub(super) fn on_status_message(
        &mut self,
        source: StatusSource,
        is_known: bool,
        now_ns: i64,
    ) -> Result<(), TooManyDestinations> {
        if is_known {
            self.time_of_last_status_message_ns = now_ns;
        }
        match &mut self.config.destinations {
            Destinations::Several(tracker) => tracker.on_status_message(source, now_ns),
            _ => Ok(()),
        }
    }

    /// A receiver at `source` sent a message of `length` bytes that is not a status message.
    pub(super) fn on_received(&mut self, source: SocketAddr, length: usize) {
        if let Destinations::Several(tracker) = &mut self.config.destinations {
            tracker.on_received(source, length);
        }
    }

    /// A receiver at `source` proves that it receives if `is_proof` of its destination; `None` is any receiver there.
    pub(super) fn validate(
        &mut self,
        receiver_id: Option<i64>,
        source: SocketAddr,
        is_proof: impl FnMut(&mut Unvalidated) -> bool,
    ) {
        if let Destinations::Several(tracker) = &mut self.config.destinations {
            tracker.validate(receiver_id, source, is_proof);
        }
    }

    /// Registration id of the manual destination that a receiver belongs to, -1 if there is none.
    pub(super) fn destination_registration_id(&self, receiver_id: i64, source: SocketAddr) -> i64 {
        match &self.config.destinations {
            Destinations::Several(tracker) => tracker.registration_id(receiver_id, source),
            _ => NO_REGISTRATION,
        }
    }

    pub(super) fn add_destination(&mut self, destination: ManualDestination, now_ns: i64) {
        if let Destinations::Several(tracker) = &mut self.config.destinations {
            tracker.add(destination, now_ns);
        }
    }

    pub(super) fn remove_destination(&mut self, address: Option<SocketAddr>) {
        if let Destinations::Several(tracker) = &mut self.config.destinations {
            tracker.remove(address);
        }
    }

    pub(super) fn remove_destination_by_id(&mut self, registration_id: i64) {
        if let Destinations::Several(tracker) = &mut self.config.destinations {
            tracker.remove_by_id(registration_id);
        }
    }

    /// What `name` stands for is at `address` now.
    pub(super) fn on_resolution_change(
        &mut self,
        name: &str,
        address: SocketAddr,
    ) -> io::Result<()> {
        match &mut self.config.destinations {
            Destinations::One(peer) => {
                peer.address = address;
                if peer.is_connected {
                    self.config.socket.connect(address)?;
                }
            }
            Destinations::Several(tracker) => tracker.on_resolution_change(name, address),
            Destinations::PerPublication => {}
        }
        Ok(())
    }

    /// Calls `re_resolve` with each name at whose address nobody answers any more.
    pub(super) fn check_re_resolution(
        &mut self,
        now_ns: i64,
        mut re_resolve: impl FnMut(&Arc<str>, Option<SocketAddr>),
    ) {
        match &mut self.config.destinations {
            Destinations::One(peer) => {
                if let Some(name) = &peer.name
                    && is_silent(self.time_of_last_status_message_ns, now_ns)
                {
                    re_resolve(name, Some(peer.address));
                }
            }
            Destinations::Several(tracker) => tracker.check_re_resolution(now_ns, re_resolve),
            Destinations::PerPublication => {}
        }
    }
}

impl Peer {
    /// What a socket calls it.
    fn to(&self) -> Option<SocketAddr> {
        (!self.is_connected).then_some(self.address)
    }
}
