//! [`SendEndpoint`]: a socket that publications share, and its destinations.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use aeron_protocol::frame::Rttm;

use super::context::SenderContext;
use super::destinations::{
    DestinationTracker, NO_REGISTRATION, StatusSource, TooManyDestinations, is_silent,
};
use super::endpoint_id::SendEndpointId;
use super::inbox::DatagramInbox;
use super::manual_destination::ManualDestination;
use super::validation::Unvalidated;
use crate::media::timestamps;
use crate::media::transport::{GsoBatch, Socket};
use crate::stream::StreamSession;

/// The destinations of an endpoint's datagrams.
#[derive(Debug)]
pub enum Destinations {
    /// One peer or one multicast group.
    One(Peer),
    /// Several destinations, which are added and removed at run time.
    Several(DestinationTracker),
    /// Each publication has its own destination: the sender of the requests. Used by response channels.
    PerPublication,
}

/// The only destination of an endpoint.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The name in the channel. It is resolved again if no status message arrives. `None` if the address never changes.
    pub name: Option<Arc<str>>,
    /// The current address.
    pub address: SocketAddr,
    /// Whether the address is a multicast group.
    pub is_multicast: bool,
    /// Whether the socket is connected to the address.
    pub is_connected: bool,
}

/// The destinations that a publication's data is sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    /// All destinations of the publication with this registration id. An unvalidated destination receives
    /// at most its allowance.
    All { publication: i64 },
    /// One destination, for a retransmit of data that this destination has missed.
    One(SocketAddr),
}

/// Parameters of a new endpoint.
pub struct SendEndpointConfig {
    /// Id of the endpoint, set by the conductor.
    pub id: SendEndpointId,
    /// Sends data and receives control frames.
    pub socket: Box<dyn Socket>,
    /// Destinations of the data.
    pub destinations: Destinations,
    /// Offset in a message at which the send time is written, see
    /// [`TimestampOffsets`](aeron_protocol::uri::TimestampOffsets).
    pub send_timestamp_offset: Option<i32>,
}

/// A send endpoint. The conductor creates it; the sender owns it.
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
    /// Creates an endpoint. The timeout for the first status message starts at `now_ns`.
    pub fn new(config: SendEndpointConfig, now_ns: i64) -> Self {
        Self {
            config,
            time_of_last_status_message_ns: now_ns,
        }
    }

    pub fn id(&self) -> SendEndpointId {
        self.config.id
    }

    pub(super) fn socket(&self) -> &dyn Socket {
        self.config.socket.as_ref()
    }

    /// Returns whether the channel allows at most one receiver.
    pub(super) fn is_unicast(&self) -> bool {
        match &self.config.destinations {
            Destinations::One(peer) => !peer.is_multicast,
            Destinations::Several(_) => false,
            Destinations::PerPublication => true,
        }
    }

    /// Returns the maximum number of datagrams for a GSO batch.
    pub(super) fn max_gso_batch_datagrams(&self, response_address: Option<SocketAddr>) -> usize {
        let to = match &self.config.destinations {
            Destinations::One(peer) => peer.to(),
            Destinations::Several(tracker) => tracker.first_address(),
            Destinations::PerPublication => response_address,
        };
        self.config.socket.max_gso_batch_datagrams(to)
    }

    /// Sends GSO batches to the audience. Returns the number of batches that count as sent.
    ///
    /// A response publication sends to `response_address`. With several destinations, all batches count as sent, even
    /// if a destination got only a part of the batches. Only a failed send to a validated destination is an error.
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

    /// Sends one datagram to all destinations, for example a heartbeat. The datagram is not part of a term.
    ///
    /// Returns whether the datagram counts as sent.
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

    /// Sends the challenges that are due for the stream of a publication.
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

    /// Reads up to `limit` messages from the socket into `inbox`.
    pub(super) fn receive(&mut self, limit: usize, inbox: &mut DatagramInbox) -> io::Result<()> {
        self.config.socket.receive(limit, &mut |datagram| {
            inbox.push(datagram.source, datagram.bytes);
        })?;
        Ok(())
    }

    /// Handles a status message: updates the timeout and the destinations.
    ///
    /// `is_known` says whether the publication of the status message exists.
    ///
    /// # Errors
    /// The receiver is new and there are too many destinations.
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

    /// Increases the allowance of the destination at `source` after a message of `length` bytes. Not for status
    /// messages: [`Self::on_status_message`] counts their bytes.
    pub(super) fn on_received(&mut self, source: SocketAddr, length: usize) {
        if let Destinations::Several(tracker) = &mut self.config.destinations {
            tracker.on_received(source, length);
        }
    }

    /// Validates the destination at `source` if `is_proof` returns true for the destination.
    ///
    /// If `receiver_id` is `None`, the destination may be that of any receiver at `source`.
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

    /// Returns the registration id of the manual destination of a receiver, else -1.
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

    /// Changes the address of the peer or the destinations with this name.
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

    /// Calls `re_resolve` for each name if no status message has arrived from the address of the name for too long.
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
    /// Returns the address to pass to the socket; `None` if the socket is connected.
    fn to(&self) -> Option<SocketAddr> {
        (!self.is_connected).then_some(self.address)
    }
}
