//! [`ReplicationSource`]: the archive from which a replication copies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aeron_client::{Aeron, ExclusivePublication, Subscription};
use aeron_protocol::archive::ArchiveErrorCode;

use super::permission::ReplayPermission;
use super::request::{ReplicationRequest, ReplicationSettings};
use crate::client::{
    ArchiveCall, ArchiveClientContext, ArchiveSession, ConnectingSession, CredentialsSupplier,
    Ticket,
};
use crate::server::ArchiveError;

/// The control session of a replication with its source.
pub(super) struct ReplicationSource {
    context: ArchiveClientContext,
    credentials: Arc<RequestCredentials>,
    /// `None` until the session is connected.
    session: Option<ArchiveSession>,
}

/// Supplies the credentials of the request. It has no response to a challenge.
struct RequestCredentials {
    encoded: Vec<u8>,
    is_challenged: AtomicBool,
}

impl CredentialsSupplier for RequestCredentials {
    fn encoded_credentials(&self) -> Vec<u8> {
        self.encoded.clone()
    }

    fn on_challenge(&self, _: &[u8]) -> Vec<u8> {
        self.is_challenged.store(true, Ordering::Relaxed);
        Vec::new()
    }
}

impl ReplicationSource {
    /// Prepares the session of the replication with this id.
    pub fn new(id: i64, request: &ReplicationRequest, settings: &ReplicationSettings) -> Self {
        let response_channel = request.response_channel.as_deref();
        let credentials = Arc::new(RequestCredentials {
            encoded: request.encoded_credentials.clone(),
            is_challenged: AtomicBool::new(false),
        });
        let context = ArchiveClientContext {
            control_request_stream_id: request.control_stream_id,
            message_timeout_ns: settings.message_timeout_ns as u64,
            control_term_buffer_length: settings.control_term_length,
            control_term_buffer_sparse: settings.is_control_term_sparse,
            control_mtu_length: settings.control_mtu_length,
            client_name: format!(
                "archive archiveId={} replicationSessionId={id}",
                settings.archive_id
            ),
            credentials: Arc::<RequestCredentials>::clone(&credentials),
            ..ArchiveClientContext::new(
                &request.control_channel,
                response_channel.unwrap_or(&settings.response_channel),
            )
        };
        Self {
            context,
            credentials,
            session: None,
        }
    }

    /// Begins to connect.
    ///
    /// # Errors
    /// A channel is not valid, or the command cannot be sent to the driver.
    pub fn connect(&self, aeron: &Aeron, now_ns: i64) -> Result<ConnectingSession, ArchiveError> {
        ConnectingSession::new(aeron, self.context.clone(), now_ns).map_err(connection_error)
    }

    /// Continues to connect. Returns whether the session is connected.
    ///
    /// # Errors
    /// The source refuses the session, does not reply, or challenges the client.
    pub fn poll_connecting(
        &mut self,
        connecting: &mut ConnectingSession,
        now_ns: i64,
    ) -> Result<bool, ArchiveError> {
        let polled = connecting.poll(now_ns);
        if self.credentials.is_challenged.load(Ordering::Relaxed) {
            return Err(connection_error(
                "Replication does not support challenge/response authentication",
            ));
        }
        debug_assert!(
            self.session.is_none(),
            "a replication must not connect to its source twice"
        );
        self.session = polled.map_err(connection_error)?;
        Ok(self.session.is_some())
    }

    /// Receives messages. An error that does not belong to an outstanding request ends the replication.
    ///
    /// # Errors
    /// The session has ended, or the source has sent an error.
    pub fn poll(&mut self, now_ns: i64) -> Result<usize, ArchiveError> {
        let Some(session) = &mut self.session else {
            return Ok(0);
        };
        let work = session.poll(now_ns).map_err(ArchiveError::generic)?;
        let error = session.poll_for_error(now_ns);
        match error.map_err(ArchiveError::generic)? {
            Some(error) => Err(ArchiveError::generic(error)),
            None => Ok(work),
        }
    }

    /// Sends a request.
    ///
    /// # Errors
    /// The session has ended.
    pub fn submit<T>(
        &mut self,
        call: &ArchiveCall<T>,
        now_ns: i64,
    ) -> Result<Ticket<T>, ArchiveError> {
        let submitted = self.session()?.submit(call, now_ns);
        submitted.map_err(ArchiveError::generic)
    }

    /// Sends a request on another publication than that of the session.
    ///
    /// # Errors
    /// The session has ended.
    pub fn submit_on<T>(
        &mut self,
        publication: ExclusivePublication,
        call: &ArchiveCall<T>,
        now_ns: i64,
    ) -> Result<Ticket<T>, ArchiveError> {
        let submitted = self.session()?.submit_on(publication, call, now_ns);
        submitted.map_err(ArchiveError::generic)
    }

    /// Returns the result of a request; `None` if it has not arrived.
    ///
    /// # Errors
    /// The source has refused the request.
    pub fn take<T>(&mut self, ticket: &Ticket<T>) -> Result<Option<T>, ArchiveError> {
        let taken = self.session()?.take(ticket).transpose();
        taken.map_err(ArchiveError::generic)
    }

    /// Begins to request the permission for a replay over a response channel to `subscription`.
    ///
    /// # Errors
    /// See [`ReplayPermission::request`].
    pub fn request_permission(
        &self,
        aeron: &Aeron,
        subscription: &Subscription,
    ) -> Result<ReplayPermission, ArchiveError> {
        ReplayPermission::request(aeron, &self.context, subscription)
    }

    /// Returns the session.
    ///
    /// # Errors
    /// The source is not connected.
    pub fn session(&mut self) -> Result<&mut ArchiveSession, ArchiveError> {
        self.session.as_mut().ok_or_else(disconnected)
    }

    /// Stops the replay, and closes the session.
    pub fn close(&mut self, replay_session_id: Option<i64>, now_ns: i64) {
        let Some(mut session) = self.session.take() else {
            return;
        };
        if let Some(replay_session_id) = replay_session_id {
            // If the request cannot be sent, the replay ends when it has lost its subscriber.
            if let Ok(ticket) = session.submit(&ArchiveCall::stop_replay(replay_session_id), now_ns)
            {
                session.abandon(&ticket);
            }
        }
        session.close();
    }
}

pub(super) fn disconnected() -> ArchiveError {
    ArchiveError::generic("the source archive is not connected")
}

fn connection_error(error: impl std::fmt::Display) -> ArchiveError {
    ArchiveError::new(
        ArchiveErrorCode::ReplicationConnectionFailure,
        format!("Replication connection failed={error}"),
    )
}
