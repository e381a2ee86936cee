//! [`Replications`]: starts, runs and ends the replications of an archive. The conductor uses it.

use aeron_client::Aeron;
use aeron_protocol::archive::ArchiveErrorCode;

use super::request::{ReplicationRequest, ReplicationSettings};
use super::session::{ReplicationSession, ReplicationTurn};
use super::streams::is_response_mode;
use crate::server::ArchiveError;
use crate::storage::Storage;

/// Maximum number of replications. Each of them has a control session with its source archive.
const MAX_REPLICATIONS: usize = 256;

/// The replications of an archive.
pub(in crate::server) struct Replications {
    settings: ReplicationSettings,
    sessions: Vec<ReplicationSession>,
}

impl Replications {
    pub fn new(settings: ReplicationSettings) -> Self {
        Self {
            settings,
            sessions: Vec::new(),
        }
    }

    /// Checks that the destinations of a request are possible with its replication channel.
    ///
    /// # Errors
    /// The replay uses a response channel, which has no destinations, and the request has a live destination or a tag.
    pub fn check(&self, request: &ReplicationRequest) -> Result<(), ArchiveError> {
        let channel = request.replication_channel.as_deref();
        if !is_response_mode(channel.unwrap_or(&self.settings.replication_channel)) {
            return Ok(());
        }
        if request.live_destination.is_some() {
            return Err(ArchiveError::generic(
                "response channels can't be used with live destinations",
            ));
        }
        match request.has_manual_destinations() {
            true => Err(ArchiveError::generic(
                "response channels can't be used with tagged replication",
            )),
            false => Ok(()),
        }
    }

    /// Begins a replication with this id. Its signals are sent to the requester with `control_session_id`.
    ///
    /// # Errors
    /// There are too many replications, or a channel is not valid.
    pub fn begin(
        &mut self,
        id: i64,
        control_session_id: i64,
        request: ReplicationRequest,
        aeron: &Aeron,
        now_ns: i64,
    ) -> Result<(), ArchiveError> {
        if self.sessions.len() >= MAX_REPLICATIONS {
            return Err(ArchiveError::generic(format!(
                "max concurrent replications reached {MAX_REPLICATIONS}: stop some, or wait until they end"
            )));
        }
        let session = ReplicationSession::new(
            id,
            control_session_id,
            request,
            &self.settings,
            aeron,
            now_ns,
        )?;
        debug_assert!(
            self.sessions.iter().all(|other| other.id() != id),
            "two replications must not have the id {id}"
        );
        self.sessions.push(session);
        Ok(())
    }

    /// Returns whether a replication copies into the recording, or will copy into it.
    pub fn is_destination(&self, recording_id: i64) -> bool {
        self.sessions
            .iter()
            .any(|session| session.is_destination(recording_id))
    }

    /// Ends a replication at its current position.
    ///
    /// # Errors
    /// No replication has this id.
    pub fn stop<S: Storage + Clone>(
        &mut self,
        id: i64,
        turn: &mut ReplicationTurn<'_, S>,
    ) -> Result<(), ArchiveError> {
        let Some(at) = self.sessions.iter().position(|session| session.id() == id) else {
            return Err(ArchiveError::new(
                ArchiveErrorCode::UnknownReplication,
                format!("unknown replication id {id}"),
            ));
        };
        self.sessions.swap_remove(at).end(turn);
        Ok(())
    }

    /// Runs one duty cycle of all replications. Returns the work count.
    pub fn do_work<S: Storage + Clone>(&mut self, turn: &mut ReplicationTurn<'_, S>) -> usize {
        let mut work = 0;
        for at in (0..self.sessions.len()).rev() {
            match self.sessions[at].do_work(turn) {
                Some(count) => work += count,
                None => {
                    work += 1;
                    self.sessions.swap_remove(at).end(turn);
                }
            }
        }
        work
    }

    /// Ends all replications, because the archive ends.
    pub fn end_all<S: Storage + Clone>(&mut self, turn: &mut ReplicationTurn<'_, S>) {
        self.sessions
            .drain(..)
            .for_each(|mut session| session.end(turn));
    }
}
