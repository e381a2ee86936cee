//! [`LiveJoin`]: merges a replication with the live stream of its source.

use aeron_client::{Image, PendingOperation, Subscription};

use super::source::ReplicationSource;
use crate::client::{ArchiveCall, Ticket};
use crate::server::ArchiveError;

/// The live destination is added when the copy is at most this far from the live stream, in bytes. If a quarter of the
/// term length is shorter, this quarter is the limit.
const MAX_LIVE_DISTANCE: i64 = 32 * 1024 * 1024;

/// State of a replication that will merge with the live stream.
pub(super) struct LiveJoin {
    target: LiveTarget,
    subscription: Subscription,
    image: Image,
    adding: Option<PendingOperation<()>>,
    is_added: bool,
    step: LiveStep,
}

/// The outcome of a step.
pub(super) enum LiveOutcome {
    /// Nothing has happened.
    Wait,
    /// The step has made progress.
    Advanced,
    /// The copy continues with the live stream alone.
    Merged,
}

/// The source and the channels of a replication that merges.
pub(super) struct LiveTarget {
    /// Recording id in the source.
    pub recording_id: i64,
    /// Last known position of the source.
    pub source_position: i64,
    pub live_destination: String,
    pub replay_destination: String,
}

/// The step of a [`LiveJoin`].
pub(super) enum LiveStep {
    /// The copy has not reached the last known position of the source.
    CatchingUp,
    /// The source was asked for its position.
    Joining(Ticket<Option<i64>>),
    /// The replay's destination is being removed.
    Removing(PendingOperation<()>),
}

impl LiveJoin {
    pub fn new(target: LiveTarget, subscription: Subscription, image: Image) -> Self {
        Self {
            target,
            subscription,
            image,
            adding: None,
            is_added: false,
            step: LiveStep::CatchingUp,
        }
    }

    pub fn step(&self) -> &LiveStep {
        &self.step
    }

    /// Returns the position of the copy.
    pub fn position(&self) -> i64 {
        self.image.position()
    }

    /// Returns whether the stream of the copy has ended at this position.
    pub fn has_ended_at(&self, position: i64) -> bool {
        let has_ended = self.image.is_closed() || self.image.is_end_of_stream();
        has_ended && self.image.position() == position
    }

    /// Does the next step.
    ///
    /// # Errors
    /// The image has ended, the driver refuses a destination, or the source has stopped its recording.
    pub fn do_work(
        &mut self,
        source: &mut ReplicationSource,
        now_ns: i64,
    ) -> Result<LiveOutcome, ArchiveError> {
        let is_removing = matches!(self.step, LiveStep::Removing(_));
        if !is_removing && self.image.is_closed() {
            return Err(ArchiveError::generic(
                "replication image closed unexpectedly",
            ));
        }
        let next = match &mut self.step {
            LiveStep::CatchingUp => {
                if self.image.position() < self.target.source_position {
                    return Ok(LiveOutcome::Wait);
                }
                let call = ArchiveCall::recording_position(self.target.recording_id);
                LiveStep::Joining(source.submit(&call, now_ns)?)
            }
            LiveStep::Joining(ticket) => {
                if let Some(adding) = &mut self.adding
                    && adding.poll()?.is_some()
                {
                    self.adding = None;
                    self.is_added = true;
                }
                debug_assert!(
                    !self.is_added || self.adding.is_none(),
                    "a replication must not add its live destination twice"
                );
                let Some(position) = source.take(ticket)? else {
                    return Ok(LiveOutcome::Wait);
                };
                self.target.source_position = position.ok_or_else(not_live)?;
                self.join()?
            }
            LiveStep::Removing(operation) => {
                debug_assert!(
                    self.is_added,
                    "a replication merges with a live stream that it has not added"
                );
                return Ok(match operation.poll()? {
                    Some(()) => LiveOutcome::Merged,
                    None => LiveOutcome::Wait,
                });
            }
        };
        self.step = next;
        Ok(LiveOutcome::Advanced)
    }

    /// Adds the live destination when the copy is near the live stream. Removes the replay's destination when the copy
    /// has reached the live stream.
    fn join(&mut self) -> Result<LiveStep, ArchiveError> {
        let distance = self.target.source_position - self.image.position();
        let near = (self.image.term_buffer_length() as i64 / 4).min(MAX_LIVE_DISTANCE);
        let (subscription, target) = (&self.subscription, &self.target);
        if !self.is_added {
            if self.adding.is_none() && distance <= near {
                let destination = &target.live_destination;
                self.adding = Some(subscription.async_add_destination(destination)?);
            }
        } else if distance <= 0 && self.image.active_transport_count() >= 2 {
            let removing = subscription.async_remove_destination(&target.replay_destination)?;
            return Ok(LiveStep::Removing(removing));
        }
        Ok(LiveStep::CatchingUp)
    }
}

pub(super) fn not_live() -> ArchiveError {
    ArchiveError::generic("cannot live merge without active source recording")
}
