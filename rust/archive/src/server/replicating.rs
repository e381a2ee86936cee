//! The conductor's operations for replication requests.

use aeron_protocol::archive::{ArchiveErrorCode, RequestIds};

use super::ArchiveError;
use super::conductor::ArchiveConductor;
use super::control::Response;
use super::replication::{ReplicationRequest, ReplicationTurn, active_destination};
use crate::storage::Storage;

impl<S: Storage + Clone> ArchiveConductor<S> {
    /// Begins to copy a recording of another archive. Responds with the id of the replication.
    /// Recording signals report the progress of the replication.
    ///
    /// # Errors
    /// There are too many replications, the destination is unknown or active, or a channel is not valid. Or the replay
    /// uses a response channel, and the request has a live destination or a tag.
    pub fn replicate(&mut self, request: ReplicationRequest) -> Result<(), ArchiveError> {
        self.replications.check(&request)?;
        if let Some(id) = request.destination_recording_id {
            self.store.recording(id).map_err(|_| {
                ArchiveError::new(
                    ArchiveErrorCode::UnknownRecording,
                    format!("unknown dst recording id {id}"),
                )
            })?;
            if self.recordings.is_active(id) {
                return Err(active_destination(id));
            }
        }
        let requester = request.requester;
        let replication_id = self.sessions.take_id();
        self.replications
            .begin(replication_id, request, &self.aeron, self.now_ns)?;
        self.outbox.respond(requester, Response::Ok(replication_id));
        Ok(())
    }

    /// Ends a replication at its current position.
    ///
    /// # Errors
    /// No replication has this id.
    pub fn stop_replication(
        &mut self,
        requester: RequestIds,
        replication_id: i64,
    ) -> Result<(), ArchiveError> {
        self.with_replications(|replications, turn| {
            replications.stop(replication_id, turn)?;
            turn.outbox.respond(requester, Response::Ok(0));
            Ok(())
        })
    }

    /// Runs one duty cycle of the replications. Returns the work count.
    pub(super) fn run_replications(&mut self) -> usize {
        self.with_replications(|replications, turn| replications.do_work(turn))
    }

    /// Ends all replications.
    pub(super) fn end_replications(&mut self) {
        self.with_replications(|replications, turn| replications.end_all(turn));
    }

    fn with_replications<T>(
        &mut self,
        act: impl FnOnce(&mut super::replication::Replications, &mut ReplicationTurn<'_, S>) -> T,
    ) -> T {
        let mut turn = ReplicationTurn {
            aeron: &self.aeron,
            store: &mut self.store,
            recordings: &mut self.recordings,
            objects: &mut self.objects,
            outbox: &mut self.outbox,
            now_ns: self.now_ns,
        };
        act(&mut self.replications, &mut turn)
    }
}
