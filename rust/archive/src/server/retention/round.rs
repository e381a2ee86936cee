//! [`Round`]: one application of the retention policies to all recordings, in small steps.

use std::collections::{BTreeMap, VecDeque};

use aeron_protocol::archive::RequestIds;

use super::turn::RetentionTurn;
use super::{ApplyRequest, Retention};
use crate::extensions::{RetentionPolicy, RetentionScope};
use crate::retention::{
    DoubtedAges, Holders, RecordingExtent, Removal, RetentionHolder, RetentionOutcome,
    doubted_removals, excess_bytes, needs_segment_time, outcome, removals,
};
use crate::storage::Storage;

/// One application of the policies.
pub(super) struct Round {
    request: Option<ApplyRequest>,
    /// Whether the round makes room for waiting recordings.
    is_for_room: bool,
    /// Lowest id of the recordings that are not assigned to policies yet; `None` if all recordings
    /// are assigned.
    next_recording_id: Option<i64>,
    groups: BTreeMap<RetentionScope, PolicyGroup>,
    removals: VecDeque<PlannedRemoval>,
    /// The data that are old by a clock that is not trusted.
    doubted: DoubtedTotal,
    outcomes: Vec<RetentionOutcome>,
}

/// The recordings of a policy.
struct PolicyGroup {
    policy: RetentionPolicy,
    extents: Vec<RecordingExtent>,
    /// Number of recordings for which all needed times of segments were read.
    timed: usize,
    /// Number of bytes above the limit of the policy; `None` until all recordings are assigned.
    excess_bytes: Option<i64>,
}

/// A removal, and the extent for which it was computed.
struct PlannedRemoval {
    extent: RecordingExtent,
    removal: Removal,
    doubted: Option<DoubtedAges>,
}

/// The data that a round would delete if the clock was trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DoubtedTotal {
    /// Number of recordings with such data.
    pub recordings: usize,
    /// Number of bytes.
    pub bytes: i64,
}

impl Round {
    pub fn new(request: Option<ApplyRequest>, is_for_room: bool) -> Self {
        Self {
            request,
            is_for_room,
            next_recording_id: Some(0),
            groups: BTreeMap::new(),
            removals: VecDeque::new(),
            doubted: DoubtedTotal::default(),
            outcomes: Vec::new(),
        }
    }

    pub fn is_for_room(&self) -> bool {
        self.is_for_room
    }

    /// Begins the round again. The deletions that were already made stay in the response.
    pub fn restart(&mut self) {
        self.next_recording_id = Some(0);
        self.groups.clear();
        self.removals.clear();
        self.doubted = DoubtedTotal::default();
        if self.is_dry_run() {
            self.outcomes.clear();
        }
    }

    /// Returns the data that are old by a clock that is not trusted.
    pub fn doubted(&self) -> DoubtedTotal {
        self.doubted
    }

    /// Does one step. Returns whether the round is over.
    pub fn step<S: Storage + Clone>(
        &mut self,
        retention: &Retention<S>,
        turn: &mut RetentionTurn<'_, S>,
    ) -> bool {
        if let Some(from) = self.next_recording_id {
            self.assign(from, retention, turn);
        } else if !self.groups.is_empty() {
            self.evaluate(retention, turn);
        } else if !self.removals.is_empty() {
            self.execute(retention, turn);
        } else {
            return true;
        }
        false
    }

    /// Returns the request and the outcomes for its response, by recording id; `None` for a round
    /// without a request.
    pub fn into_response(mut self) -> Option<(RequestIds, Vec<RetentionOutcome>)> {
        let request = self.request?;
        self.outcomes.sort_by_key(|outcome| outcome.recording_id);
        Some((request.requester, self.outcomes))
    }

    fn is_dry_run(&self) -> bool {
        self.request.is_some_and(|request| request.dry_run)
    }

    /// Assigns the next recordings to policies. Except in a dry run, also removes the expired readers of these
    /// recordings.
    fn assign<S: Storage + Clone>(
        &mut self,
        from: i64,
        retention: &Retention<S>,
        turn: &mut RetentionTurn<'_, S>,
    ) {
        let count = retention.steps.retention_recordings;
        let ids = turn.store.recordings_from(from);
        let ids: Vec<i64> = ids
            .take(count)
            .map(|recording| recording.recording_id)
            .collect();
        let last = ids.last().filter(|_| ids.len() == count);
        self.next_recording_id = last.map(|id| id.saturating_add(1));
        debug_assert!(
            self.next_recording_id.is_none_or(|next| next > from),
            "a round that examined recordings from {from} on must not examine them again"
        );
        for id in ids {
            let Ok(extent) = turn.store.extent(id, turn.recordings.position(id)) else {
                continue;
            };
            if !self.is_dry_run() {
                turn.expire_readers(&retention.clock, &retention.log, id, extent.end_position);
            }
            let Ok(Some(policy)) = turn.store.retention_policy(id) else {
                continue;
            };
            let new_group = || PolicyGroup {
                policy: policy.clone(),
                extents: Vec::new(),
                timed: 0,
                excess_bytes: None,
            };
            let group = self
                .groups
                .entry(policy.scope.clone())
                .or_insert_with(new_group);
            group.extents.push(extent);
        }
    }

    /// Reads times of segments for the first policy that is not evaluated yet. When all needed times are read, computes
    /// the removals of the policy.
    fn evaluate<S: Storage + Clone>(
        &mut self,
        retention: &Retention<S>,
        turn: &mut RetentionTurn<'_, S>,
    ) {
        let Some(mut entry) = self.groups.first_entry() else {
            return;
        };
        let clock = &retention.clock;
        let (now_ms, is_doubted) = (clock.now_ms(), clock.doubted().is_some());
        if entry.get_mut().read_times(retention, turn) {
            let PolicyGroup {
                policy, extents, ..
            } = entry.remove();
            let planned = match is_doubted {
                true => doubted_removals(&policy, &extents, now_ms),
                false => {
                    let removals = removals(&policy, &extents, now_ms).into_iter();
                    removals.map(|removal| (removal, None)).collect()
                }
            };
            self.plan(extents, planned);
        }
    }

    fn plan(
        &mut self,
        extents: Vec<RecordingExtent>,
        removals: Vec<(Removal, Option<DoubtedAges>)>,
    ) {
        let only = self.request.and_then(|request| request.recording_id);
        let mut extents = extents.into_iter();
        for (removal, doubted) in removals {
            let id = removal.recording_id;
            let Some(extent) = extents.find(|extent| extent.recording_id == id) else {
                return;
            };
            if only.is_none_or(|only| only == id) {
                self.removals.push_back(PlannedRemoval {
                    extent,
                    removal,
                    doubted,
                });
            }
        }
    }

    /// Executes one removal. In a dry run, executes nothing, and adds the outcomes of several removals to the response.
    fn execute<S: Storage + Clone>(
        &mut self,
        retention: &Retention<S>,
        turn: &mut RetentionTurn<'_, S>,
    ) {
        let count = match self.is_dry_run() {
            true => retention.steps.retention_recordings,
            false => 1,
        };
        for planned in self
            .removals
            .drain(..count.min(self.removals.len()))
            .collect::<Vec<_>>()
        {
            let id = planned.removal.recording_id;
            let recorded = turn.recordings.position(id);
            let Ok(extent) = turn.store.extent(id, recorded) else {
                continue;
            };
            // If a client has changed the recording after the removal was computed, the removal is dropped.
            // The next round takes the change into account.
            if !extent.is_still(&planned.extent) {
                continue;
            }
            let mut outcome = {
                let holders = Holders {
                    doubted: planned.doubted,
                    ..turn.holders(&retention.clock, id, extent.end_position)
                };
                outcome(&extent, &planned.removal, &holders)
            };
            debug_assert!(
                outcome.is_nothing() || outcome.allowed_position >= outcome.new_start_position,
                "recording {id}: the policy allows the start {}, not {}",
                outcome.allowed_position,
                outcome.new_start_position
            );
            if outcome.held_by == RetentionHolder::Clock && !self.is_dry_run() {
                self.doubted.recordings += 1;
                self.doubted.bytes += outcome.allowed_position - outcome.new_start_position;
                retention.note_doubted(&outcome, turn.outlets);
            }
            if !outcome.is_purge {
                turn.objects
                    .limit_to_copied(turn.store, &mut outcome, extent.first_base);
            }
            if !self.is_dry_run() && !outcome.is_nothing() {
                turn.remove(&retention.log, &outcome, extent.first_base);
            }
            if self.request.is_some() {
                self.outcomes.push(outcome);
            }
        }
    }
}

impl PolicyGroup {
    /// Reads the times of some segments. Returns whether no further time is needed.
    fn read_times<S: Storage + Clone>(
        &mut self,
        retention: &Retention<S>,
        turn: &mut RetentionTurn<'_, S>,
    ) -> bool {
        let excess = *self
            .excess_bytes
            .get_or_insert_with(|| excess_bytes(&self.policy, &self.extents));
        let now_ms = retention.clock.now_ms();
        let mut reads = 0;
        while let Some(extent) = self.extents.get_mut(self.timed) {
            if !needs_segment_time(&self.policy, extent, excess, now_ms) {
                self.timed += 1;
                continue;
            }
            if reads == retention.steps.retention_reads {
                return false;
            }
            reads += 1;
            let base = extent.segment_base(extent.segment_times_ms.len());
            match turn.store.segment_time_ms(extent, base) {
                Ok(time_ms) => extent.segment_times_ms.push(time_ms),
                Err(error) => {
                    turn.outlets.report(&error.to_string());
                    // A segment without a known time does not count as old. So this segment and the later segments of
                    // the recording are not deleted.
                    self.timed += 1;
                }
            }
        }
        true
    }
}
