//! Copies recordings of other archives.

use aeron_protocol::archive::ArchiveErrorCode;

use super::{ArchiveConductor, Caller};
use crate::server::ArchiveError;
use crate::server::replication::{
    ReplicationRequest, ReplicationTurn, Replications, active_destination,
};
use crate::storage::Storage;

impl<S: Storage + Clone> ArchiveConductor<S> {
    /// Begins to copy a recording of another archive. Returns the id of the replication. Recording signals report the
    /// progress of the replication.
    ///
    /// # Errors
    /// There are too many replications, the destination is unknown or active, or a channel is not valid. Or the replay
    /// uses a response channel, and the request has a live destination or a tag.
    pub(super) fn replicate(
        &mut self,
        caller: &Caller<'_>,
        request: ReplicationRequest,
    ) -> Result<i64, ArchiveError> {
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
        let replication_id = self.take_id();
        let (requester, now_ns) = (caller.ids.control_session_id, self.now_ns());
        self.replications
            .begin(replication_id, requester, request, &self.aeron, now_ns)?;
        Ok(replication_id)
    }

    /// Ends a replication at its current position. The signal of its end comes before the reply.
    ///
    /// # Errors
    /// No replication has this id.
    pub(super) fn stop_replication(&mut self, replication_id: i64) -> Result<(), ArchiveError> {
        self.with_replications(|replications, turn| replications.stop(replication_id, turn))
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
        act: impl FnOnce(&mut Replications, &mut ReplicationTurn<'_, S>) -> T,
    ) -> T {
        let mut turn = ReplicationTurn {
            aeron: &self.aeron,
            store: &mut self.store,
            recordings: &mut self.recordings,
            objects: &mut self.objects,
            outlets: &mut self.outlets,
        };
        act(&mut self.replications, &mut turn)
    }
}
