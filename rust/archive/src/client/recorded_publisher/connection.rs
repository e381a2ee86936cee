//! [`Connection`]: an Aeron client and a session with the archive. If one of them is lost, it is
//! opened again.

use aeron_client::Aeron;
use aeron_protocol::archive::ArchiveErrorCode;

use super::super::backoff::Backoff;
use super::super::context::ArchiveClientContext;
use super::super::error::ArchiveClientError;
use super::super::link::{ArchiveLink, LinkEvent};
use super::error::RecordedPublisherError;

/// Function that connects an Aeron client without waiting. It is called until it returns a client, and again after this
/// client was closed. A client that reconnects is closed only for good. After an error, the next call begins another
/// attempt.
pub type ClientConnector = Box<dyn FnMut() -> aeron_client::Result<Option<Aeron>> + Send>;

/// A client and a session.
pub(super) struct Connection {
    connector: ClientConnector,
    context: ArchiveClientContext,
    backoff: Backoff,
    state: ConnectionState,
}

enum ConnectionState {
    /// There is no client. The connector is not called before this time.
    Away {
        next_attempt_ns: Option<i64>,
    },
    /// The client reconnects, and has no driver.
    WithoutDriver(Aeron),
    Up(Box<Peers>),
    Closed,
}

/// The Aeron client, and the link to the archive that uses this client.
pub(super) struct Peers {
    pub(super) aeron: Aeron,
    pub(super) archive: ArchiveLink,
}

/// An event of the connection.
pub(super) enum ConnectionEvent {
    /// The client was closed.
    ClientLost(RecordedPublisherError),
    /// A session was opened.
    SessionOpened,
    /// The session has ended.
    SessionLost,
    /// An attempt to connect the client or to open a session failed. Another attempt follows.
    AttemptFailed(RecordedPublisherError),
    /// An attempt to connect the client or to open a session failed, and another attempt would fail too.
    Unusable(RecordedPublisherError),
}

impl Connection {
    pub(super) fn new(connector: ClientConnector, context: ArchiveClientContext) -> Self {
        Self {
            connector,
            context,
            backoff: Backoff::new(),
            state: ConnectionState::Away {
                next_attempt_ns: None,
            },
        }
    }

    /// Returns the client and the link to the archive, if there is a client.
    pub(super) fn peers(&mut self) -> Option<&mut Peers> {
        match &mut self.state {
            ConnectionState::Up(peers) => Some(peers),
            ConnectionState::Away { .. }
            | ConnectionState::WithoutDriver(_)
            | ConnectionState::Closed => None,
        }
    }

    /// Makes progress without waiting, and adds the amount of work to `work`. Returns an event if one has occurred.
    pub(super) fn poll(&mut self, now_ns: i64, work: &mut usize) -> Option<ConnectionEvent> {
        match &mut self.state {
            ConnectionState::Away { next_attempt_ns } => {
                let is_due = next_attempt_ns.is_none_or(|at_ns| now_ns.wrapping_sub(at_ns) >= 0);
                is_due.then(|| self.connect(now_ns, work)).flatten()
            }
            ConnectionState::WithoutDriver(aeron) => {
                let aeron = aeron.clone();
                *work += aeron.do_work();
                if aeron.is_closed() {
                    return Some(self.lose(&aeron));
                }
                if aeron.has_driver() {
                    self.open(aeron);
                }
                None
            }
            ConnectionState::Up(peers) => {
                *work += peers.aeron.do_work();
                if peers.aeron.is_closed() || !peers.aeron.has_driver() {
                    let aeron = peers.aeron.clone();
                    return Some(self.lose(&aeron));
                }
                peers.archive.poll(now_ns, work).and_then(of_link)
            }
            ConnectionState::Closed => None,
        }
    }

    /// Closes the session and the client, and does not open them again.
    pub(super) fn close(&mut self) {
        match std::mem::replace(&mut self.state, ConnectionState::Closed) {
            ConnectionState::Up(mut peers) => {
                peers.archive.close();
                peers.aeron.close();
            }
            ConnectionState::WithoutDriver(aeron) => aeron.close(),
            ConnectionState::Away { .. } | ConnectionState::Closed => {}
        }
    }

    /// Uses a client that has a driver.
    fn open(&mut self, aeron: Aeron) {
        let archive = ArchiveLink::new(&aeron, self.context.clone());
        self.state = ConnectionState::Up(Box::new(Peers { aeron, archive }));
    }

    /// Handles the loss of the driver, or the close of the client. Its streams and its session have ended.
    fn lose(&mut self, aeron: &Aeron) -> ConnectionEvent {
        let cause = aeron.outage_cause();
        self.state = match cause {
            Some(_) => ConnectionState::WithoutDriver(aeron.clone()),
            None => ConnectionState::Away {
                next_attempt_ns: None,
            },
        };
        let closed = || aeron_client::Error::ClientClosed(aeron.close_cause());
        ConnectionEvent::ClientLost(client_error(cause.unwrap_or_else(closed)))
    }

    fn connect(&mut self, now_ns: i64, work: &mut usize) -> Option<ConnectionEvent> {
        match (self.connector)() {
            Ok(None) => None,
            Ok(Some(aeron)) => {
                *work += 1;
                self.backoff = Backoff::new();
                self.open(aeron);
                None
            }
            Err(
                error @ (aeron_client::Error::Configuration(_)
                | aeron_client::Error::VersionMismatch { .. }),
            ) => Some(ConnectionEvent::Unusable(client_error(error))),
            Err(error) => {
                self.state = ConnectionState::Away {
                    next_attempt_ns: Some(self.backoff.next_attempt_ns(now_ns)),
                };
                Some(ConnectionEvent::AttemptFailed(client_error(error)))
            }
        }
    }
}

const fn client_error(source: aeron_client::Error) -> RecordedPublisherError {
    RecordedPublisherError::Client { source }
}

fn of_link(event: LinkEvent) -> Option<ConnectionEvent> {
    Some(match event {
        LinkEvent::Connected => ConnectionEvent::SessionOpened,
        LinkEvent::Lost => ConnectionEvent::SessionLost,
        LinkEvent::AttemptFailed(source) => {
            let is_rejected =
                source.archive_code() == Some(ArchiveErrorCode::AuthenticationRejected);
            let error = RecordedPublisherError::Archive { source };
            match is_rejected {
                true => ConnectionEvent::Unusable(error),
                false => ConnectionEvent::AttemptFailed(error),
            }
        }
        // The next poll reports the loss of the client.
        LinkEvent::Unusable(ArchiveClientError::Client(aeron_client::Error::ClientClosed(_))) => {
            return None;
        }
        LinkEvent::Unusable(source) => {
            ConnectionEvent::Unusable(RecordedPublisherError::Archive { source })
        }
    })
}
