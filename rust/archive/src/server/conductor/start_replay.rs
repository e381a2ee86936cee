//! Starts and stops replays. A request waits while the recording is starting: the archive does not have the position
//! counter yet, although the client may have found the counter. It also waits while an archive that has just started
//! does not know the copies in object storage.

use aeron_protocol::archive::{NULL_VALUE, RequestIds};

use super::{ArchiveConductor, Caller, Later};
use crate::server::ArchiveError;
use crate::server::replay::{ReplayEvent, ReplayOrder, ReplayRequested};
use crate::storage::Storage;
use crate::store::StoreError;

/// A replay request that must wait.
#[derive(Debug)]
pub(super) struct HeldReplay {
    /// Principal of the user who sent the request.
    owner: Vec<u8>,
    order: ReplayOrder,
}

impl<S: Storage + Clone> ArchiveConductor<S> {
    /// Begins a replay at once, or when the position counter and the copies of its recording are known. The reply is
    /// sent when the segment file of the replay's first position is open.
    ///
    /// # Errors
    /// The reason why the request is refused.
    pub(super) fn replay(
        &mut self,
        caller: &Caller<'_>,
        order: ReplayOrder,
    ) -> Result<Later, ArchiveError> {
        if !self.must_wait(&order) {
            return self.begin_replay(caller.ids, caller.principal, &order);
        }
        self.replays.check_room(self.held_replays.count())?;
        let held = HeldReplay {
            owner: caller.principal.to_vec(),
            order,
        };
        self.held_replays.hold(caller.ids, held);
        Ok(Later)
    }

    /// Begins the held replays that need not wait any more. Returns the work count.
    pub(super) fn begin_held_replays(&mut self) -> usize {
        let mut held = std::mem::take(&mut self.held_replays);
        let ready = held.take_ready(|held| !self.must_wait(&held.order));
        self.held_replays = held;
        for (requester, held) in &ready {
            if let Err(error) = self.begin_replay(*requester, &held.owner, &held.order) {
                self.outlets.refuse(*requester, error);
            }
        }
        ready.len()
    }

    fn must_wait(&self, order: &ReplayOrder) -> bool {
        let id = order.recording_id;
        self.recordings.is_starting(id)
            || (self.begins_before_start(order) && self.must_wait_for_copies(Some(id)))
    }

    /// Returns whether a replay begins before the start position of its recording in the catalog.
    fn begins_before_start(&self, order: &ReplayOrder) -> bool {
        let recording = self.store.recording(order.recording_id);
        order.range.position != NULL_VALUE
            && recording.is_ok_and(|recording| order.range.position < recording.start_position)
    }

    fn begin_replay(
        &mut self,
        requester: RequestIds,
        owner: &[u8],
        order: &ReplayOrder,
    ) -> Result<Later, ArchiveError> {
        if self.begins_before_start(order) {
            self.objects.unknown().check(order.recording_id)?;
        }
        let recording = match self.store.recording(order.recording_id) {
            Err(error @ StoreError::Unserved { .. }) => return Err(error.into()),
            found => found.ok(),
        };
        let copied = recording.and_then(|it| self.objects.extended(it, order.range.position));
        let request = ReplayRequested {
            requester,
            owner,
            order,
            recording: copied.as_ref().or(recording),
            local_start: recording.map_or(0, |recording| recording.start_position),
            active_position: self.recordings.position_counter(order.recording_id),
        };
        self.replays.request(&self.aeron, &request)?;
        Ok(Later)
    }

    /// Creates a token with which a client can request a replay on another publication.
    pub(super) fn replay_token(
        &mut self,
        caller: &Caller<'_>,
        recording_id: i64,
    ) -> Result<i64, ArchiveError> {
        let (session_id, now_ns) = (caller.ids.control_session_id, self.now_ns());
        Ok(self.replays.issue_token(session_id, recording_id, now_ns))
    }

    /// Returns the requester to which a token for replays of a recording was given.
    ///
    /// # Errors
    /// The token is unknown or expired.
    pub fn token_session(&self, token: i64, recording_id: i64) -> Result<i64, ArchiveError> {
        self.replays
            .token_session(token, recording_id, self.now_ns())
            .ok_or_else(|| ArchiveError::generic("Unknown session or token timeout"))
    }

    /// Removes the tokens of a requester that has ended. Its replays continue.
    pub fn on_requester_ended(&mut self, control_session_id: i64) {
        self.replays.on_control_session_ended(control_session_id);
    }

    /// Stops a replay. It is not an error if the replay has ended.
    ///
    /// # Errors
    /// Another user has requested the replay, and the role of this user may not record.
    pub(super) fn stop_replay(
        &mut self,
        caller: &Caller<'_>,
        replay_session_id: i64,
    ) -> Result<(), ArchiveError> {
        caller.check_owner(self.replays.owner(replay_session_id))?;
        self.replays.stop(replay_session_id);
        Ok(())
    }

    /// Stops all replays of a recording, or all replays.
    pub(super) fn stop_all_replays(
        &mut self,
        recording_id: Option<i64>,
    ) -> Result<(), ArchiveError> {
        self.replays.stop_all(recording_id);
        Ok(())
    }

    /// Starts the replays whose publications the driver has added. Returns the work count.
    pub(super) fn start_replays(&mut self) -> usize {
        let mut events = Vec::new();
        let now_ns = self.now_ns();
        let work = self
            .replays
            .poll_publications(now_ns, |event| events.push(event));
        self.on_replay_events(events);
        work
    }

    /// Processes the events of the replayer. Returns the work count.
    pub(super) fn poll_replays(&mut self) -> usize {
        let mut events = Vec::new();
        let now_ns = self.now_ns();
        let work = self.replays.poll(now_ns, |event| events.push(event));
        self.on_replay_events(events);
        work
    }

    fn on_replay_events(&mut self, events: Vec<ReplayEvent>) {
        for event in events {
            match event {
                ReplayEvent::Started {
                    requester,
                    replay_session_id,
                } => self.outlets.reply(requester, Ok(replay_session_id)),
                ReplayEvent::Failed {
                    requester,
                    error,
                    damage,
                } => {
                    match damage {
                        Some(damage) => self.outlets.report(&damage),
                        None => self.outlets.report_client(&error.message),
                    }
                    self.outlets.refuse(requester, error);
                }
                ReplayEvent::Ended { .. } => {}
            }
        }
    }
}
